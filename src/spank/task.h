/* One task: enter the network, or end with a reason. */
#pragma once

#include <slurm/spank.h>

/* As root, just forked. Returns 0 whatever happens. */
int task_enter(spank_t spank);

/* As the user, just before exec: does not return where the task has no right to run. */
int task_check(spank_t spank);
