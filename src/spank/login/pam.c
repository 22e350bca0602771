/* A session of sshd goes on in the user's pod: on a login host in the login pod, on a compute node in that of the job whose
 * cgroup pam_slurm_adopt has put the process in.
 *
 *   account required /usr/lib/isthmus/pam_isthmus.so login
 *   session required /usr/lib/isthmus/pam_isthmus.so login
 *
 * sshd opens the session in the process that watches over the connection, before it forks the one with the user's
 * rights. That one does all forwarding and starts all programs, so what it listens to and reaches is the pod's.
 * `account` is where a user can be given the reason; a session whose opening fails would go on in the host's network, as
 * sshd only restricts it. So the process ends there.
 *
 * Nothing of the user's is read: the account comes from the name service, the job from the cgroup that Slurm made. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <security/pam_modutil.h>

#include "../daemon.h"
#include "../mounts.h"
#include "../pidns.h"

#define VISIBLE __attribute__((visibility("default")))

enum { PATIENCE_S = 20, PAUSE_MS = 50 };

enum kind { NOT_SAID, LOGIN, JOB };

struct words {
    enum kind kind;
    struct settings settings;
};

/* Where the session moves to; empty where it stays. */
struct place {
    bool inside;
    struct login login;
    struct network network;
    uint32_t job;
};

static bool read_words(int argc, const char **argv, struct words *words, struct problem *problem)
{
    bool valid = true;

    *words = (struct words){.settings = {.socket = "/run/isthmus/networkd-root.sock"}};
    for (int i = 0; valid && i < argc; i++) {
        if (strcmp(argv[i], "login") == 0 || strcmp(argv[i], "job") == 0) {
            words->kind = *argv[i] == 'l' ? LOGIN : JOB;
        } else if (strncmp(argv[i], "socket=/", strlen("socket=/")) == 0) {
            words->settings.socket = argv[i] + strlen("socket=");
        } else {
            valid = problem_set(problem, "pam_isthmus does not know the word %s; an administrator must correct it", argv[i]);
        }
    }
    return valid && (words->kind != NOT_SAID || problem_set(problem, "pam_isthmus needs one of the words login and job"));
}

/* Returns the job of a line of /proc/self/cgroup, 0 where it is of none. */
static uint32_t job_of(const char *line)
{
    const char *found = strstr(line, "/job_");
    char *end = NULL;
    unsigned long job = found ? strtoul(found + strlen("/job_"), &end, 10) : 0;

    return found && *end == '/' && job <= UINT32_MAX ? (uint32_t)job : 0;
}

static uint32_t adopted_by(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    uint32_t job = 0;

    while (file && !job && fgets(line, sizeof(line), file)) {
        job = job_of(line);
    }
    if (file) {
        (void)fclose(file);
    }
    return job;
}

/* A job that asked for no network has no record, and nobody is asked. */
static bool find_job(const struct settings *settings, struct place *place, struct problem *problem)
{
    struct deadline deadline = deadline_in(PATIENCE_S);
    enum driver driver = DRIVER_NONE;
    uint32_t job = place->job = adopted_by();
    bool known = true;

    if (job && record_read_driver(settings, job, &driver) && driver != DRIVER_NONE) {
        do {
            known = daemon_get(settings, job, &deadline, &place->network, problem);
        } while (known && place->network.state == NETWORK_PREPARING && deadline_pause(&deadline, PAUSE_MS));
        place->inside = known && place->network.state == NETWORK_READY;
        if (known && !place->inside) {
            known = problem_set(problem, "job %u has no network on this node%s%s; log in again, or end the job", job,
                                *place->network.error.text ? ": " : "", place->network.error.text);
        }
    }
    return known;
}

static bool find(pam_handle_t *pam, const struct words *words, const char *op, struct place *place, struct problem *problem)
{
    const char *name = NULL;
    const struct passwd *account = NULL;
    bool found = false;

    if (pam_get_user(pam, &name, NULL) == PAM_SUCCESS && name) {
        account = pam_modutil_getpwnam(pam, name);
    }
    if (!account) {
        (void)problem_set(problem, "the account is not known here");
    } else if (words->kind == JOB) {
        found = find_job(&words->settings, place, problem);
    } else {
        struct deadline deadline = deadline_in(PATIENCE_S);

        place->inside = found = daemon_login(&words->settings, op, account->pw_uid, &deadline, &place->login, problem);
    }
    return found;
}

static bool failed(struct problem *problem, const char *what)
{
    return problem_set(problem, "%s: %s", what, strerror(errno));
}

/* Whether a process is in the network that the daemon names. Looked at while a descriptor of the process is held, so no
 * other one that got its number later can be entered. */
static bool is_in(pid_t process, const char *netns)
{
    struct stat its, wanted;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)process);
    return stat(path, &its) == 0 && stat(netns, &wanted) == 0 && its.st_dev == wanted.st_dev && its.st_ino == wanted.st_ino;
}

static bool enter_login(const struct login *login, struct problem *problem)
{
    int process = (int)syscall(SYS_pidfd_open, login->init, 0);
    bool entered = process >= 0 && is_in(login->init, login->netns);

    if (!entered) {
        (void)problem_set(problem, "the login pod ended a moment ago; log in again");
    } else {
        entered = setns(process, CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID) == 0 ||
                  failed(problem, "the login pod cannot be entered");
    }
    if (process >= 0) {
        (void)close(process);
    }
    return entered;
}

/* /proc is mounted by a process that is in the namespace: what sshd forks from now on, and so this child of it. */
static bool enter_processes(int first, struct problem *problem)
{
    bool entered = pidns_lead(first, problem);
    pid_t child = entered ? fork() : -1;
    int status = -1;

    if (child == 0) {
        struct problem unseen;

        _exit(mounts_renew_proc(&unseen) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return entered && (status == 0 || problem_set(problem, "the job's /proc cannot be mounted"));
}

/* The job's PID namespace comes last: in its /proc this process is not. */
static bool enter_job(const struct settings *settings, uint32_t job, const struct network *network, struct problem *problem)
{
    int fd = open(network->netns, O_RDONLY | O_CLOEXEC | O_NOCTTY), first = -1;
    bool entered = (fd >= 0 || failed(problem, network->netns)) && pidns_open(settings, job, &first, problem);

    entered = entered && mounts_unshare(problem) &&
              (setns(fd, CLONE_NEWNET) == 0 || failed(problem, "the job's network cannot be entered")) &&
              mounts_allow_localhost(problem) && mounts_renew_sys(problem) &&
              (!*network->resolv_conf || mounts_cover_resolv_conf(network->resolv_conf, problem)) &&
              (first < 0 || enter_processes(first, problem));
    for (int i = 0, all[] = {fd, first}; i < 2; i++) {
        if (all[i] >= 0) {
            (void)close(all[i]);
        }
    }
    return entered;
}

VISIBLE int pam_sm_acct_mgmt(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    struct problem problem = {""};
    struct place place = {.inside = false};
    struct words words;
    bool found = read_words(argc, argv, &words, &problem) && find(pam, &words, "login_prepare", &place, &problem);

    if (!found) {
        pam_syslog(pam, LOG_ERR, "%s", problem.text);
        if (!(flags & PAM_SILENT)) {
            (void)pam_error(pam, "isthmus: you cannot log in here now: %s", problem.text);
        }
    }
    return found ? PAM_SUCCESS : PAM_PERM_DENIED;
}

VISIBLE int pam_sm_open_session(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    struct problem problem = {""};
    struct place place = {.inside = false};
    struct words words;
    bool done = read_words(argc, argv, &words, &problem) && find(pam, &words, "login_enter", &place, &problem);

    (void)flags;
    if (done && place.inside) {
        done = words.kind == LOGIN ? enter_login(&place.login, &problem)
                                   : enter_job(&words.settings, place.job, &place.network, &problem);
    }
    if (!done) {
        pam_syslog(pam, LOG_ERR, "the session is ended, it must not go on outside of its pod: %s", problem.text);
        _exit(EXIT_FAILURE);
    }
    return PAM_SUCCESS;
}

/* The daemon sees the process end. */
VISIBLE int pam_sm_close_session(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    (void)pam;
    (void)flags;
    (void)argc;
    (void)argv;
    return PAM_SUCCESS;
}
