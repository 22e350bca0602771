/* Where a job's CPUs are all in use, srun listens until slurmctld calls, and asks again by itself only a minute later.
 * slurmctld calls the node's address, at which no srun in a pod listens. So here srun is woken from within the pod:
 *
 *   - by an srun of the same job whose step ends, or begins (more may fit beside it): it rings;
 *   - without that, after pauses that become longer, for steps that end elsewhere.
 *
 * A bell is a socket in the pod's network namespace, so nobody rings from outside of the pod. What wakes srun is any
 * connection to the port it listens at (step_ctx_create_timeout() in Slurm); it does not even accept it. But an srun that
 * has its step reads from there, and would complain: so nobody calls one that is not seen to wait. */
#include "waiting.h"

#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bell.h"
#include "record.h"

/* A step that has ended has its CPUs until slurmctld knows. Pauses grow by a factor, up to half of Slurm's own. */
enum { FIRST_PAUSE_MS = 150, RUNG_PAUSE_MS = 50, GROWTH = 3, LONGEST_PAUSE_MS = 30000, CALL_S = 1 };

/* No port that the kernel chooses. */
static const in_port_t TALKS = 1;

/* Sockets that srun was started with are not its own: slurmstepd leaves one of its own to tasks. */
enum { INHERITED_MAX = 64 };

static struct {
    uint32_t job; /* 0: this srun is in no pod */
    pid_t process;
    pthread_t thread;
    bool runs, has_step;
    int stop, bell;
    ino_t inherited[INHERITED_MAX];
    size_t inherited_count;
} waiting = {.stop = -1, .bell = -1};

/* The port at which a TCP socket listens; TALKS for another one, 0 for what is none. */
static in_port_t port_of(int fd)
{
    struct sockaddr_in6 address = {.sin6_family = AF_UNSPEC};
    socklen_t length = sizeof(address), size = sizeof(int), type_size = sizeof(int);
    int listens = 0, type = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 || type != SOCK_STREAM ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0 ||
        (address.sin6_family != AF_INET && address.sin6_family != AF_INET6) ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) {
        return 0;
    }
    return listens ? ntohs(address.sin6_port) : TALKS;
}

static bool is_inherited(int fd)
{
    struct stat found;
    bool known = fstat(fd, &found) != 0;

    for (size_t i = 0; i < waiting.inherited_count && !known; i++) {
        known = waiting.inherited[i] == found.st_ino;
    }
    return known;
}

/* Calls for each socket of TCP of this process, until it returns false. */
static void each_socket(bool (*call)(int fd, in_port_t port, void *of), void *of)
{
    DIR *folder = opendir("/proc/self/fd");
    bool goes_on = true;

    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry && goes_on; entry = readdir(folder)) {
        int fd = *entry->d_name == '.' ? -1 : atoi(entry->d_name);
        in_port_t port = fd < 0 ? 0 : port_of(fd);

        goes_on = !port || call(fd, port, of);
    }
    if (folder) {
        (void)closedir(folder);
    }
}

static bool inherit(int fd, in_port_t port, void *of)
{
    struct stat found;

    (void)port;
    (void)of;
    if (fstat(fd, &found) == 0) {
        waiting.inherited[waiting.inherited_count++] = found.st_ino;
    }
    return waiting.inherited_count < INHERITED_MAX;
}

/* Keeps the one port; TALKS where there is another socket as well. */
static bool take(int fd, in_port_t port, void *of)
{
    in_port_t *only = of;

    if (!is_inherited(fd)) {
        *only = *only ? TALKS : port;
    }
    return *only != TALKS;
}

/* The one port at which this process listens while it talks to nobody; 0 where it is otherwise. */
static in_port_t only_port(void)
{
    in_port_t only = 0;

    each_socket(take, &only);
    return only == TALKS ? 0 : only;
}

/* Whether srun's own thread is in poll(2) or ppoll(2) for one descriptor (proc(5), syscall). */
static bool polls(void)
{
    char path[64];
    long call = -1;
    unsigned long descriptors = 0, count = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)waiting.process);
    file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%ld %lx %lx", &call, &descriptors, &count) != 3) {
            call = -1;
        }
        (void)fclose(file);
    }
#ifdef SYS_poll
    if (call == SYS_poll) {
        return count == 1;
    }
#endif
    return call == SYS_ppoll && count == 1;
}

static void wake(void)
{
    in_port_t port = polls() ? only_port() : 0;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = CALL_S};
    int fd = port ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;

    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        (void)connect(fd, (struct sockaddr *)&address, sizeof(address));
        (void)close(fd);
    }
}

static void *keep_waking(void *unused)
{
    struct pollfd heard[] = {{.fd = waiting.stop, .events = POLLIN}, {.fd = waiting.bell, .events = POLLIN}};
    int pause_ms = FIRST_PAUSE_MS;
    bool rung = false;

    (void)unused;
    for (;;) {
        /* Once it was rung only the end is awaited: constant ringing must not keep srun from asking. */
        int count = poll(heard, rung ? 1 : 2, pause_ms);

        if (count > 0 && heard[0].revents) {
            break;
        }
        rung = count > 0 && heard[1].revents;
        if (rung) {
            pause_ms = RUNG_PAUSE_MS;
        } else {
            bell_silence(waiting.bell);
            wake();
            pause_ms = pause_ms * GROWTH < LONGEST_PAUSE_MS ? pause_ms * GROWTH : LONGEST_PAUSE_MS;
        }
    }
    return NULL;
}

/* The job whose pod this process is in, as far as this node knows; 0 for none. */
static uint32_t job_of_pod(const struct settings *settings)
{
    const char *text = getenv("SLURM_JOB_ID");
    uint32_t job = text ? (uint32_t)strtoul(text, NULL, 10) : 0;
    enum driver driver = settings->fallback;

    /* Slurm names the node to what it starts there, and not to a salloc's commands on a login host. */
    if (job && getenv("SLURMD_NODENAME")) {
        (void)record_read_driver(settings, job, &driver);
    } else {
        driver = DRIVER_NONE;
    }
    return driver == DRIVER_NONE ? 0 : job;
}

/* Signals are srun's own threads'. */
static bool start(void)
{
    sigset_t all, before;
    bool started;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&waiting.thread, NULL, keep_waking, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void waiting_begin(const struct settings *settings)
{
    waiting.job = job_of_pod(settings);
    waiting.process = getpid();
    if (waiting.job) {
        each_socket(inherit, NULL);
        waiting.stop = eventfd(0, EFD_CLOEXEC);
        waiting.bell = bell_hang(waiting.job);
        waiting.runs = waiting.stop >= 0 && waiting.bell >= 0 && start();
    }
}

/* Slurm unloads the plugin after this, so the thread has ended when it returns; a forked child has none. */
static void stop(void)
{
    if (waiting.runs && waiting.process == getpid()) {
        (void)eventfd_write(waiting.stop, 1);
        (void)pthread_join(waiting.thread, NULL);
    }
    waiting.runs = false;
    if (waiting.stop >= 0) {
        (void)close(waiting.stop);
    }
    if (waiting.bell >= 0) {
        (void)close(waiting.bell);
    }
    waiting.stop = waiting.bell = -1;
}

void waiting_over(void)
{
    stop();
    waiting.has_step = true;
    if (waiting.job) {
        bell_ring(waiting.job);
    }
}

void waiting_end(void)
{
    stop();
    if (waiting.job && waiting.has_step && waiting.process == getpid()) {
        bell_ring(waiting.job);
    }
    waiting.has_step = false;
}
