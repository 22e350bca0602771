/* A step's tasks in a container: srun --container-image=REF, with the names of pyxis' options. What can be decided before
 * the step starts is decided in srun, by `isthmus-step-container`; the nodes find it in the step's environment. */
#pragma once

#include <slurm/spank.h>

#include "settings.h"

/* Where srun leaves, and a task finds, what `isthmus-step-container` printed: JSON, see src/isthmus/steps/container.py. */
#define CONTAINER_VARIABLE "ISTHMUS_STEP_CONTAINER"

/* Makes the options known, in srun, sbatch, salloc and slurmstepd alike. */
void container_register(spank_t spank);

/* Whether the option was given to this program, or to the step that this process belongs to. */
bool container_is_asked(void);

/* In srun, sbatch and salloc, after all options: has them checked, and in srun the image pulled. Ends the program where
 * that fails, for Slurm ignores what this call of an optional plugin returns. */
void container_submit(const struct settings *settings);

/* In slurmstepd, before the tasks are forked: what they share. A batch script and the like stay on the node: what sbatch
 * and salloc are given is for each srun of the job. */
void container_start(spank_t spank);

/* In a task, as the user, just before exec: the first one on the node starts the container, all enter it. Where one cannot,
 * `tells` is set in the first such task of the node. */
bool container_enter(spank_t spank, struct problem *problem, bool *tells);

/* In slurmstepd, for each task that ended: after the last one the container ends, too. */
void container_task_ended(spank_t spank);
