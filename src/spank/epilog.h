/* After the job, on each of its nodes: let the network go. */
#pragma once

#include <slurm/spank.h>

/* Returns 0 whatever happens: an epilog that fails drains the node. */
int epilog_run(spank_t spank, int ac, char **av);
