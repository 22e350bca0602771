/* A daemon may be gone, stuck before or within any byte, or be another program: each ends in one problem, in time.
 * The socket never blocks; all waiting is in wait_until(). */
#include "socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define REMEDY "; an administrator must look at isthmus-networkd on this node"

/* A UNIX socket whose queue of callers is full returns EAGAIN, and poll does not report when there is room. */
enum { QUEUE_FULL_PAUSE_MS = 20 };

/* A daemon that is restarted has no socket, or nobody behind it, for a second or two. */
enum { RESTART_S = 5, RESTART_PAUSE_MS = 50 };

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct deadline deadline_in(int seconds)
{
    return (struct deadline){.at_ms = now_ms() + (int64_t)seconds * 1000, .limit_s = seconds};
}

static int left_ms(const struct deadline *deadline)
{
    int64_t left = deadline->at_ms - now_ms();

    return left > 0 ? (int)left : 0;
}

bool deadline_pause(const struct deadline *deadline, int pause_ms)
{
    int left = left_ms(deadline);

    (void)poll(NULL, 0, left < pause_ms ? left : pause_ms);
    return left_ms(deadline) > 0;
}

static bool failed(struct problem *problem, const char *path, const char *why)
{
    return problem_set(problem, "the network daemon at %s %s" REMEDY, path, why);
}

static bool wait_until(int fd, short events, const char *path, const struct deadline *deadline, struct problem *problem)
{
    struct pollfd polled = {.fd = fd, .events = events};
    char why[64];
    int count;

    do {
        count = poll(&polled, 1, left_ms(deadline));
    } while (count < 0 && errno == EINTR);
    (void)snprintf(why, sizeof(why), "did not answer within %d s", deadline->limit_s);
    return count > 0 || failed(problem, path, why);
}

/* Whether a refused call is worth another one, after a pause. */
static bool dial_again(int refusal, const struct deadline *restarted, const struct deadline *deadline)
{
    switch (refusal) {
    case EAGAIN:
    case EINTR:
        return deadline_pause(deadline, QUEUE_FULL_PAUSE_MS);
    case ECONNREFUSED:
    case ENOENT:
        return deadline_pause(restarted, RESTART_PAUSE_MS) && left_ms(deadline) > 0;
    default:
        return false;
    }
}

static bool dial(int fd, const char *path, const struct deadline *deadline, struct problem *problem)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct deadline restarted = deadline_in(deadline->limit_s / 3 < RESTART_S ? deadline->limit_s / 3 : RESTART_S);
    int refusal;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    do {
        refusal = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
    } while (refusal && dial_again(refusal, &restarted, deadline));
    if (refusal) {
        char why[128];

        (void)snprintf(why, sizeof(why), "cannot be reached (%s)", refusal == EAGAIN ? "it takes no calls" : strerror(refusal));
        (void)failed(problem, path, why);
    }
    return !refusal;
}

static bool send_line(int fd, const char *line, size_t length, const char *path, const struct deadline *deadline,
                      struct problem *problem)
{
    bool going = true;
    size_t sent = 0;

    while (going && sent < length) {
        ssize_t count = send(fd, line + sent, length - sent, MSG_NOSIGNAL);

        if (count >= 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN) {
            going = wait_until(fd, POLLOUT, path, deadline, problem);
        } else if (errno != EINTR) {
            going = failed(problem, path, "closed the connection before it was asked");
        }
    }
    return going;
}

static bool receive_line(int fd, char *reply, const char *path, const struct deadline *deadline, struct problem *problem)
{
    char *end = NULL;
    bool going = true;
    size_t held = 0;

    while (going && !end) {
        ssize_t count = recv(fd, reply + held, LINE_MAX_BYTES - held, 0);

        if (count > 0) {
            end = memchr(reply + held, '\n', (size_t)count);
            held += (size_t)count;
            going = end || held < LINE_MAX_BYTES || failed(problem, path, "answered more than 64 KiB");
        } else if (count == 0) {
            going = failed(problem, path, held ? "stopped in the middle of its answer" : "closed the connection unanswered");
        } else if (errno == EAGAIN) {
            going = wait_until(fd, POLLIN, path, deadline, problem);
        } else if (errno != EINTR) {
            going = failed(problem, path, "broke the connection");
        }
    }
    if (end) {
        *end = '\0';
    }
    return going;
}

bool socket_exchange(const char *path, const char *line, size_t length, char *reply, const struct deadline *deadline,
                     struct problem *problem)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool done = false;

    if (fd < 0) {
        (void)problem_set(problem, "no socket can be made: %s", strerror(errno));
    } else {
        done = dial(fd, path, deadline, problem) && send_line(fd, line, length, path, deadline, problem) &&
               receive_line(fd, reply, path, deadline, problem);
        (void)close(fd);
    }
    return done;
}
