/* A task that fails as root, right after its fork, dies while slurmstepd still puts it into cgroups; slurmstepd then
 * fails as a whole, which drains the node (slurmctld: "batch job complete failure"). So the failure waits until
 * slurmstepd has let the task go: until then only Slurm's own code runs, and standard error is the user's.
 *
 * The task ends itself, because Slurm ignores what a plugin returns that plugstack.conf calls optional: it would run
 * the user's program in the host's network. */
#include "task.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "container.h"
#include "log.h"
#include "mounts.h"
#include "step.h"

/* Whether the failure is this task's alone; one that all share is reported once per node. */
static bool own;

/* A parent in another namespace has no number here. Where Slurm runs plugins in processes of their own, slurmstepd itself did
 * not enter, and the task is elsewhere. */
static bool enter_processes(struct problem *problem)
{
    return (getppid() == 0 || problem_set(problem, "Slurm did not start it in its PID namespace; an administrator must take "
                                                   "contain_spank out of SlurmdParameters")) &&
           mounts_renew_proc(problem);
}

static bool enter(const struct step *step, struct problem *problem)
{
    return mounts_unshare(problem) &&
           (setns(step->netns, CLONE_NEWNET) == 0 ||
            problem_set(problem, "its network namespace cannot be entered: %s", strerror(errno))) &&
           (step->first < 0 || enter_processes(problem)) && mounts_renew_sys(problem) && (!*step->resolv_conf || mounts_cover_resolv_conf(step->resolv_conf, problem));
}

int task_enter(spank_t spank)
{
    struct step *step = step_of_this_process();

    (void)spank;
    if (step->wanted && !*step->problem.text) {
        own = !enter(step, &step->problem);
    }
    return 0;
}

/* Ends the task, with a reason where nobody on the node has reported it yet. */
static void refuse(const char *what, const struct problem *problem, bool tells)
{
    char node[HOST_NAME_MAX + 1] = "this node";

    if (tells) {
        (void)gethostname(node, sizeof(node) - 1);
        log_error("job %u cannot use its %s on %s, so the task was not started: %s", step_of_this_process()->job, what,
                  node, problem->text);
    }
    _exit(1);
}

int task_check(spank_t spank)
{
    const struct step *step = step_of_this_process();
    struct problem problem = {""};
    bool tells = false;
    int index = 0;

    if (step->wanted && *step->problem.text) {
        (void)spank_get_item(spank, S_TASK_ID, &index);
        refuse("pod network", &step->problem, own || index == 0);
    }
    if (!container_enter(spank, &problem, &tells)) {
        refuse("container", &problem, tells);
    }
    return 0;
}
