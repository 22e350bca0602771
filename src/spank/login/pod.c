/* isthmus_login FOLDER UID MIB: makes the namespaces of a login pod, and is its first process.
 *
 * The daemon leaves in the folder what the pod is made of: `netns` and `resolv.conf` lead to the network, `ports` holds the
 * ports that the kernel chooses from there. In `init` it finds the process id whose namespaces the sessions enter.
 * MIB bounds each of the pod's own /tmp, /var/tmp and /dev/shm. /run/user is its own, too: the user's systemd, which is
 * reached there, would start programs on the host.
 *
 * The first process ends when it is asked to (SIGTERM), and the kernel then ends all others of the pod. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../mounts.h"

enum { MIB_MAX = 1024 * 1024 };

struct view {
    const char *resolv_conf;
    int ports;
    uid_t uid;
    long mib;
};

static bool failed(struct problem *problem, const char *what)
{
    return problem_set(problem, "%s: %s", what, strerror(errno));
}

static bool enter_network(struct problem *problem)
{
    int fd = open("netns", O_RDONLY | O_CLOEXEC);
    bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return entered || failed(problem, "the pod's network cannot be entered");
}

/* The pod's own, with nothing in it that others could have put there. */
static bool cover(const char *path, const char *type, const char *data, struct problem *problem)
{
    return mount(type, path, type, MS_NOSUID | MS_NODEV | (data ? 0 : MS_NOEXEC), data) == 0 || errno == ENOENT ||
           failed(problem, path);
}

/* The networks of the host, whose names are mounts, once more in each pod: a thousand pods would hold a million of them,
 * and nobody in a pod has use for one. A host may have none yet. */
static bool leave_out_networks(struct problem *problem)
{
    return umount2("/run/netns", MNT_DETACH) == 0 || errno == EINVAL || errno == ENOENT || failed(problem, "/run/netns");
}

static bool set_network(const char *name, const char *text)
{
    char path[64];
    size_t length = strlen(text);
    int fd = -1;
    bool is_set = false;

    (void)snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    is_set = fd >= 0 && write(fd, text, length) == (ssize_t)length;
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_set;
}

/* Ports of closed connections are out of use for a minute (TIME_WAIT, tcp_max_tw_buckets in tcp(7)), and each srun leaves
 * six: a script of steps would have none left. So an eighth may be such; the kernel then closes the rest at once. */
static bool choose_ports(int ports, struct problem *problem)
{
    char text[32] = "";
    char kept[16];
    unsigned first = 0;
    unsigned last = 0;
    bool chosen = read(ports, text, sizeof(text) - 1) > 0 && sscanf(text, "%5u %5u", &first, &last) == 2 && first < last;

    (void)snprintf(kept, sizeof(kept), "%u", (last - first) / 8 + 1);
    chosen = chosen && set_network("ip_local_port_range", text) && set_network("tcp_max_tw_buckets", kept);
    return chosen || failed(problem, "the pod's ports cannot be set");
}

/* The runtime folder that pam_systemd names (XDG_RUNTIME_DIR), empty; a host without systemd-logind has none. */
static bool make_runtime(uid_t uid, struct problem *problem)
{
    char path[64];
    struct stat there;

    (void)snprintf(path, sizeof(path), "/run/user/%u", (unsigned)uid);
    return (stat("/run/user", &there) != 0 && errno == ENOENT) ||
           (cover("/run/user", "tmpfs", "mode=755,size=16m", problem) &&
            ((mkdir(path, 0700) == 0 && chown(path, uid, (gid_t)-1) == 0) || failed(problem, path)));
}

static bool make_view(const struct view *view, struct problem *problem)
{
    char size[32];

    (void)snprintf(size, sizeof(size), "mode=1777,size=%ldm", view->mib);
    return cover("/proc", "proc", NULL, problem) && mounts_renew_sys(problem) &&
           mounts_cover_resolv_conf(view->resolv_conf, problem) && cover("/dev/mqueue", "mqueue", NULL, problem) &&
           cover("/dev/shm", "tmpfs", size, problem) && cover("/tmp", "tmpfs", size, problem) &&
           cover("/var/tmp", "tmpfs", size, problem) && make_runtime(view->uid, problem) &&
           choose_ports(view->ports, problem) && mounts_allow_localhost(problem);
}

static void wait_for_the_end(const sigset_t *awaited)
{
    int number = 0;

    do {
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        (void)sigwait(awaited, &number);
    } while (number != SIGTERM);
}

/* Ends without a word to the parent where the pod could not be made. */
static int be_first(int ready, const struct view *view)
{
    struct problem problem = {""};
    sigset_t awaited;
    bool made = make_view(view, &problem) || (fprintf(stderr, "%s\n", problem.text), false);

    (void)sigemptyset(&awaited);
    (void)sigaddset(&awaited, SIGCHLD);
    (void)sigaddset(&awaited, SIGTERM);
    if (made && write(ready, "", 1) == 1 && close(ready) == 0 && close(view->ports) == 0 && chdir("/") == 0) {
        wait_for_the_end(&awaited);
    }
    return made ? 0 : 1;
}

/* Renamed into place, so that nobody reads half a number. */
static bool tell(pid_t first, struct problem *problem)
{
    FILE *file = fopen("init.new", "we");
    bool written = file && fprintf(file, "%d\n", (int)first) > 0;

    if (file) {
        written = fclose(file) == 0 && written;
    }
    return (written && rename("init.new", "init") == 0) || failed(problem, "init cannot be written");
}

static bool start(const struct view *view, struct problem *problem)
{
    int ready[2] = {-1, -1};
    char byte;
    pid_t first = pipe(ready) == 0 ? fork() : -1;

    if (first == 0) {
        (void)close(ready[0]);
        _exit(be_first(ready[1], view));
    }
    (void)close(ready[1]);
    return (first > 0 && read(ready[0], &byte, 1) == 1 && tell(first, problem)) ||
           problem_set(problem, "the pod was not made; see above");
}

static bool read_words(int argc, char **argv, struct view *view, struct problem *problem)
{
    long uid = argc == 4 ? strtol(argv[2], NULL, 10) : 0;

    view->uid = (uid_t)uid;
    view->mib = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    return (uid > 0 && uid < UINT32_MAX && view->mib > 0 && view->mib <= MIB_MAX) ||
           problem_set(problem, "usage: isthmus_login FOLDER UID MIB");
}

int main(int argc, char **argv)
{
    struct problem problem = {""};
    struct view view = {.ports = -1};
    char *resolv_conf = NULL;
    sigset_t all;
    bool done = read_words(argc, argv, &view, &problem);

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    done = done && (chdir(argv[1]) == 0 || failed(&problem, argv[1]));
    done = done && ((view.resolv_conf = resolv_conf = realpath("resolv.conf", NULL)) || failed(&problem, "resolv.conf"));
    done = done && ((view.ports = open("ports", O_RDONLY | O_CLOEXEC)) >= 0 || failed(&problem, "ports"));
    done = done && enter_network(&problem) && mounts_unshare(&problem) && leave_out_networks(&problem) &&
           (unshare(CLONE_NEWIPC | CLONE_NEWPID) == 0 || failed(&problem, "no namespaces can be made"));
    done = done && start(&view, &problem);
    if (*problem.text) {
        (void)fprintf(stderr, "%s\n", problem.text);
    }
    free(resolv_conf);
    return done ? 0 : 1;
}
