/* sysfs shows the network namespace that it was mounted in, so a new one is needed; it would hide the cgroups, debugfs, resctrl,
 * and what a container masks. Each of these is held by a descriptor while /sys is covered, and then bound, with all
 * that is mounted below it, to its old path: right for one cgroup2 mount and for a tmpfs full of hierarchies alike.
 * So it is with proc and the PID namespace.
 * There is nothing to undo: a task that did not get all of it ends. */
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* More than any node has; a container runtime masks about ten. */
enum { HELD_MAX = 64 };

struct held {
    int count;
    struct {
        int fd;
        char path[256];
    } mounts[HELD_MAX];
};

static bool failed(struct problem *problem, const char *what)
{
    return problem_set(problem, "%s: %s", what, strerror(errno));
}

bool mounts_unshare(struct problem *problem)
{
    return (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0) ||
           failed(problem, "no mount namespace can be made");
}

static bool is_held(const struct held *held, const char *path)
{
    bool found = false;

    for (int i = 0; i < held->count; i++) {
        size_t length = strlen(held->mounts[i].path);

        found = found || (strncmp(path, held->mounts[i].path, length) == 0 && (path[length] == '\0' || path[length] == '/'));
    }
    return found;
}

/* What cannot be seen, since something else was mounted above it, need not be held. */
static bool hold(struct held *held, const char *path, struct problem *problem)
{
    bool holds = false;

    if (held->count == HELD_MAX || strlen(path) >= sizeof(held->mounts[0].path)) {
        (void)problem_set(problem, "too much is mounted below it");
    } else {
        int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);

        holds = fd >= 0 || errno == ENOENT || failed(problem, path);
        if (fd >= 0) {
            held->mounts[held->count].fd = fd;
            strcpy(held->mounts[held->count].path, path);
            held->count++;
        }
    }
    return holds;
}

/* An automount point, which systemd has for binfmt_misc, would be mounted by looking at it; what it then holds is listed too. */
static bool is_automount(const char *line)
{
    const char *type = strstr(line, " - ");

    return type && strncmp(type, " - autofs ", strlen(" - autofs ")) == 0;
}

/* The kernel lists a mount before those below it (proc_pid_mountinfo(5)), so the first of each branch is enough. */
static bool hold_below(const char *folder, struct held *held, struct problem *problem)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[2 * PATH_MAX], path[PATH_MAX];
    size_t length = strlen(folder);
    bool going = file || failed(problem, "/proc/self/mountinfo");

    while (going && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1 && strncmp(path, folder, length) == 0 &&
            path[length] == '/' && !is_automount(line) && !is_held(held, path)) {
            going = hold(held, path, problem);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return going;
}

static bool mount_new(const char *type, const char *folder, struct problem *problem)
{
    static const struct {
        unsigned long shown, wanted;
    } flags[] = {
        {ST_RDONLY, MS_RDONLY},   {ST_NOSUID, MS_NOSUID},   {ST_NODEV, MS_NODEV},
        {ST_NOEXEC, MS_NOEXEC},   {ST_NOATIME, MS_NOATIME}, {ST_RELATIME, MS_RELATIME},
    };
    struct statvfs is;
    unsigned long wanted = 0;
    bool known = statvfs(folder, &is) == 0;

    for (size_t i = 0; known && i < sizeof(flags) / sizeof(*flags); i++) {
        wanted |= is.f_flag & flags[i].shown ? flags[i].wanted : 0;
    }
    return (known && mount(type, folder, type, wanted, NULL) == 0) ||
           problem_set(problem, "%s cannot be mounted: %s", folder, strerror(errno));
}

/* A place that the new one does not have, a device's say, needs no mask. */
static bool bring_back(const struct held *held, struct problem *problem)
{
    bool going = true;

    for (int i = 0; going && i < held->count; i++) {
        char from[64];

        (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", held->mounts[i].fd);
        going = mount(from, held->mounts[i].path, NULL, MS_BIND | MS_REC, NULL) == 0 || errno == ENOENT ||
                failed(problem, held->mounts[i].path);
    }
    return going;
}

static bool renew(const char *type, const char *folder, struct problem *problem)
{
    struct held held = {.count = 0};
    bool done = hold_below(folder, &held, problem) && mount_new(type, folder, problem) && bring_back(&held, problem);

    for (int i = 0; i < held.count; i++) {
        (void)close(held.mounts[i].fd);
    }
    return done;
}

bool mounts_renew_sys(struct problem *problem)
{
    return renew("sysfs", "/sys", problem);
}

bool mounts_renew_proc(struct problem *problem)
{
    return renew("proc", "/proc", problem);
}

bool mounts_cover_resolv_conf(const char *path, struct problem *problem)
{
    return mount(path, "/etc/resolv.conf", NULL, MS_BIND, NULL) == 0 || failed(problem, "/etc/resolv.conf");
}

bool mounts_allow_localhost(struct problem *problem)
{
    int fd = open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_WRONLY | O_CLOEXEC);
    bool allowed = fd < 0 ? errno == ENOENT : write(fd, "0", 1) == 1;

    if (fd >= 0) {
        (void)close(fd);
    }
    return allowed || failed(problem, "the pod's localhost cannot be set");
}
