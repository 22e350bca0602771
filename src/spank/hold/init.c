/* First process of a job's PID namespace on a node: it holds the namespace open, and reaps what loses its parent there, by
 * saying that it does not ask (sigaction(2), SIGCHLD). It ends when the job's epilog kills it, and the kernel then ends all
 * others in the namespace. From within nobody can: the kernel gives it only signals that it has a handler for. */
#include <signal.h>
#include <unistd.h>

int main(void)
{
    sigset_t all;

    (void)signal(SIGCHLD, SIG_IGN);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;) {
        (void)pause();
    }
}
