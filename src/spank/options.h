/* The user's option: --pod-network[=DRIVER] of srun, sbatch and salloc. */
#pragma once

#include <slurm/spank.h>

#include "driver.h"

/* Name of an address that the user has reserved: of the environment at submission, for programs rather than people. */
#define RESERVATION "ISTHMUS_RESERVATION"

struct choice {
    bool given;
    bool valid;
    enum driver driver;
    char text[32]; /* as it was given, perhaps cut */
};

/* Makes the option known, in srun, sbatch, salloc and slurmstepd alike. */
void options_register(spank_t spank, int ac, char **av);

/* What was given to this program or step; filled once Slurm has processed the options. */
const struct choice *options_given(void);

/* What was given to the job, asked in its prolog or epilog. */
struct choice options_of_job(spank_t spank);

/* In srun, sbatch and salloc, after all options: hands on what only the user's environment has. */
void options_submit(spank_t spank);
