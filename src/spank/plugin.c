/* What Slurm sees: which of its calls, in which of its programs, leads where. All else in the plugin is hidden. */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(isthmus, 1)
#pragma GCC visibility pop

#include <unistd.h>
#include "container.h"
#include "epilog.h"
#include "log.h"
#include "options.h"
#include "prolog.h"
#include "settings.h"
#include "step.h"
#include "task.h"
#include "waiting.h"

enum { SLURMD_CLOSES = 256 };

/* In slurmd: once, so that its log reports a wrong line before a job meets it. */
static void report_settings(int ac, char **av)
{
    struct settings settings;
    struct problem problem;

    if (!settings_read(&settings, ac, av, &problem)) {
        log_error("the plugin is off until an administrator corrects %s", problem.text);
    }
}

/* In slurmstepd, before it starts anything. When slurmd starts it, it has only its first 256 descriptors closed
   (_forkexec_slurmstepd in its req.c). Where many jobs begin at once there are more, and the pipe on which slurmd waits
   for the end of one job's prolog stays open in another job's step: that prolog would last as long as this job. A new
   slurmstepd has no descriptor of its own so high. */
static void close_slurmd_descriptors(void)
{
    (void)close_range(SLURMD_CLOSES, ~0U, 0);
}

int slurm_spank_init(spank_t spank, int ac, char **av)
{
    switch (spank_context()) {
    case S_CTX_REMOTE:
        close_slurmd_descriptors();
        /* fall through */
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        options_register(spank, ac, av);
        container_register(spank);
        break;
    case S_CTX_SLURMD:
        report_settings(ac, av);
        break;
    default:
        break;
    }
    return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
    struct settings settings;
    struct problem problem;
    int rc = 0;

    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        options_submit(spank);
        (void)settings_read(&settings, ac, av, &problem);
        container_submit(&settings);
        if (spank_context() == S_CTX_LOCAL) {
            waiting_begin(&settings);
        }
        break;
    case S_CTX_REMOTE:
        rc = step_start(spank, ac, av);
        container_start(spank);
        break;
    default:
        break;
    }
    return rc;
}

/* In srun, once it has a step. */
int slurm_spank_local_user_init(spank_t spank, int ac, char **av)
{
    (void)spank;
    (void)ac;
    (void)av;
    waiting_over();
    return 0;
}

int slurm_spank_job_prolog(spank_t spank, int ac, char **av)
{
    return prolog_run(spank, ac, av);
}

/* Right before the tasks are forked, and right after. */
int slurm_spank_user_init(spank_t spank, int ac, char **av)
{
    (void)spank;
    (void)ac;
    (void)av;
    (void)step_lead();
    return 0;
}

int slurm_spank_task_post_fork(spank_t spank, int ac, char **av)
{
    (void)spank;
    (void)ac;
    (void)av;
    step_return();
    return 0;
}

int slurm_spank_task_init_privileged(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    return task_enter(spank);
}

int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    return task_check(spank);
}

int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    container_task_ended(spank);
    return 0;
}

int slurm_spank_exit(spank_t spank, int ac, char **av)
{
    (void)spank;
    (void)ac;
    (void)av;
    step_end();
    waiting_end();
    return 0;
}

int slurm_spank_job_epilog(spank_t spank, int ac, char **av)
{
    return epilog_run(spank, ac, av);
}
