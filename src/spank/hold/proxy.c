/* Stands in a container for a program that runs elsewhere: the ranks of an MPI program behind a wrapper. The program that starts it
 * need not know: it has an exit code, takes signals, and its streams are those of the other one.
 *
 * It hands its streams to the supervisor of its pod, writes the number of each signal that it gets, reads an exit code,
 * and ends with that. What it was started with (words, variables, folder) the supervisor reads in /proc. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ASK "/.isthmus/ranks/ask"

/* Its own exit codes: nobody listens, and the supervisor went away. */
enum { NOBODY = 126, GONE = 255, STREAMS = 3 };

static int connect_supervisor(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = ASK};
    int supervisor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (supervisor < 0 || connect(supervisor, (struct sockaddr *)&address, sizeof(address)) != 0) {
        return -1;
    }
    return supervisor;
}

static int hand_over_streams(int supervisor)
{
    static const int streams[STREAMS] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(streams))];
    } control;
    char any = '+';
    struct iovec part = {.iov_base = &any, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

    (void)memset(&control, 0, sizeof(control));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(streams));
    (void)memcpy(CMSG_DATA(&control.header), streams, sizeof(streams));
    return sendmsg(supervisor, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static void tell_signal(int signals, int supervisor)
{
    struct signalfd_siginfo got;
    int number;

    if (read(signals, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
        number = (int)got.ssi_signo;
        (void)send(supervisor, &number, sizeof(number), MSG_NOSIGNAL);
    }
}

static int exit_code(int supervisor)
{
    int code = GONE;

    return read(supervisor, &code, sizeof(code)) == (ssize_t)sizeof(code) ? code : GONE;
}

int main(void)
{
    struct pollfd waited[2] = {{.events = POLLIN}, {.events = POLLIN}};
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    waited[0].fd = connect_supervisor();
    waited[1].fd = signalfd(-1, &all, SFD_CLOEXEC);
    if (waited[0].fd < 0 || waited[1].fd < 0 || hand_over_streams(waited[0].fd) != 0) {
        return NOBODY;
    }
    for (;;) {
        if (poll(waited, 2, -1) < 0 && errno != EINTR) {
            return GONE;
        }
        if (waited[0].revents != 0) {
            return exit_code(waited[0].fd);
        }
        if (waited[1].revents != 0) {
            tell_signal(waited[1].fd, waited[0].fd);
        }
    }
}
