/* A step on one node, in slurmstepd: find the job's network before PMIx and the tasks start. */
#pragma once

#include <slurm/spank.h>

#include "daemon.h"

struct step {
    uint32_t job;
    bool wanted;            /* whether its tasks belong into a pod network */
    bool reserved;          /* whether it has a reserved address, which another job may still have */
    int netns;              /* open namespace; -1 where there is none */
    int first;              /* first process of the job's PID namespace; -1 where the job has none */
    int own;                /* this process's PID namespace, to return to */
    bool leads;             /* whether what this process forks is in the job's */
    struct problem problem; /* why there is none; empty when all is well */
    char resolv_conf[PATH_MAX];
};

/* Returns 0 whatever happens: slurmstepd's failure drains the node, so tasks fail instead. */
int step_start(spank_t spank, int ac, char **av);
void step_end(void);

/* Around forks: what is forked between them is in the job's PID namespace, where it has one. With the user's rights this
 * takes back those of root for a moment. Returns false where that failed. */
bool step_lead(void);
void step_return(void);

struct step *step_of_this_process(void);
