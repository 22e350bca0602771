/* Before the job's first step, on each of its nodes (PrologFlags=Alloc): have the network made. */
#pragma once

#include <slurm/spank.h>

/* Returns 0 whatever happens: a prolog that fails drains the node. */
int prolog_run(spank_t spank, int ac, char **av);
