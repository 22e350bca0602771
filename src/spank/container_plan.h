/* What `isthmus-step-container` decided, as a task finds it in its environment. */
#pragma once

#include <slurm/spank.h>

#include "problem.h"

struct plan {
    char **command;     /* Apptainer's, ended by NULL */
    char **environment; /* NAME=value, of Apptainer itself, ended by NULL */
    char **kept;        /* names of variables of the job that win over the image's; NAME* for all that begin so */
    char **entrypoint;
    int entrypoint_count;
    char *workdir;
};

/* Reads it from the task's environment; what it read is to be freed in any case. */
bool plan_read(spank_t spank, struct plan *plan, struct problem *problem);
void plan_free(struct plan *plan);

bool plan_keeps(const struct plan *plan, const char *name);
