/* A process id comes again, so the first process is noted with the moment it began at, and held by a descriptor from the
 * moment it was found to be that one. */
#include "pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN "/proc/self/ns/pid"

/* The kernel should look elsewhere first when memory is short: its end is the end of all in the namespace. */
#define OOM_SCORE "-900"

enum { REPORT = STDERR_FILENO + 1 };

/* proc_pid_stat(5), starttime; 0 where there is no such process. The name before may contain anything. */
static unsigned long long begun(pid_t pid)
{
    char path[32], text[1024];
    unsigned long long found = 0;
    ssize_t length;
    char *rest;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1, "%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%llu", &found) != 1) {
        found = 0;
    }
    return found;
}

static void spare_from_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, OOM_SCORE, strlen(OOM_SCORE));
        (void)close(fd);
    }
}

/* In the child: nothing of slurmd's may stay open in a process that outlives the prolog. */
static void become_first(const char *program, int report)
{
    char *const words[] = {(char *)program, NULL}, *const variables[] = {NULL};
    int null = open("/dev/null", O_RDWR);
    bool ready = null >= 0 && setsid() > 0 && chdir("/") == 0;

    spare_from_oom();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        ready = ready && dup2(null, fd) >= 0;
    }
    if (ready && (report == REPORT || dup3(report, REPORT, O_CLOEXEC) >= 0)) {
        report = REPORT;
        (void)close_range(REPORT + 1, UINT_MAX, 0);
        (void)execve(program, words, variables);
    }
    (void)!write(report, &errno, sizeof(errno));
    _exit(1);
}

static pid_t fork_first(const char *program, int report)
{
    int own = open(OWN, O_RDONLY | O_CLOEXEC);
    pid_t first = -1;

    if (own >= 0 && unshare(CLONE_NEWPID) == 0) {
        first = fork();
        if (first == 0) {
            become_first(program, report);
        }
        /* What other plugins start in this process is no business of the job's. */
        (void)pidns_return(own);
    }
    if (own >= 0) {
        (void)close(own);
    }
    return first;
}

/* Returns once the program runs, or why it does not. */
static pid_t start(const char *program, struct problem *problem)
{
    int ends[2] = {-1, -1}, why = 0;
    pid_t first = pipe2(ends, O_CLOEXEC) == 0 ? fork_first(program, ends[1]) : -1;

    if (first < 0) {
        (void)problem_set(problem, "no PID namespace can be made: %s", strerror(errno));
    }
    if (ends[1] >= 0) {
        (void)close(ends[1]);
    }
    if (first > 0 && read(ends[0], &why, sizeof(why)) == (ssize_t)sizeof(why)) {
        (void)problem_set(problem, "%s cannot be started: %s; an administrator must run playbooks/network.yml", program,
                          strerror(why));
        first = -1;
    }
    if (ends[0] >= 0) {
        (void)close(ends[0]);
    }
    return first;
}

bool pidns_make(const struct settings *settings, uint32_t job, struct problem *problem)
{
    pid_t first = start(settings->init, problem);
    struct problem unwritten;
    bool noted = record_first(settings, job, first > 0 ? first : 0, first > 0 ? begun(first) : 0, &unwritten);

    if (first > 0 && !noted) {
        *problem = unwritten;
        (void)kill(first, SIGKILL);
    }
    return first > 0 && noted;
}

/* A descriptor of a process that has ended, and that its parent has not seen yet, can be read from (pidfd_open(2)). */
static bool lives(int process)
{
    struct pollfd polled = {.fd = process, .events = POLLIN};

    return poll(&polled, 1, 0) == 0;
}

bool pidns_open(const struct settings *settings, uint32_t job, int *first, struct problem *problem)
{
    unsigned long long began = 0;
    pid_t pid = 0;
    bool wanted = record_read_first(settings, job, &pid, &began), open = false;

    *first = -1;
    if (wanted && pid > 0) {
        *first = (int)syscall(SYS_pidfd_open, pid, 0);
        open = *first >= 0 && begun(pid) == began && lives(*first);
        if (*first >= 0 && !open) {
            (void)close(*first);
            *first = -1;
        }
        (void)(open || problem_set(problem, "its PID namespace has ended, and all that ran there; submit the job again"));
    } else if (wanted && !record_read_error(settings, job, problem)) {
        (void)problem_set(problem, "its PID namespace could not be made; slurmd's log says why");
    }
    return open || !wanted;
}

void pidns_end(const struct settings *settings, uint32_t job)
{
    struct problem problem;
    int first = -1;

    if (pidns_open(settings, job, &first, &problem) && first >= 0) {
        (void)syscall(SYS_pidfd_send_signal, first, SIGKILL, NULL, 0);
        (void)close(first);
    }
}

bool pidns_lead(int first, struct problem *problem)
{
    return setns(first, CLONE_NEWPID) == 0 ||
           problem_set(problem, "its PID namespace cannot be entered: %s", strerror(errno));
}

bool pidns_return(int own)
{
    return setns(own, CLONE_NEWPID) == 0;
}
