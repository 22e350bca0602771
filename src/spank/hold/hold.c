/* Runs in any image, also one without a shell, and keeps a container's namespaces open, of a step or of a pod: prints its
 * process id, in decimal and with a newline, and then waits for ever. All signals are blocked, for Slurm sends those of
 * the step to every process of it, and Apptainer passes them on. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)printf("%d\n", (int)getpid());
    (void)fclose(stdout);
    for (;;) {
        (void)pause();
    }
}
