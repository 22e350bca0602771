/* An srun in a job's pod that waits for CPUs of its job, and others there that may have what it waits for. */
#pragma once

#include "settings.h"

/* srun has its options, and asks slurmctld for a step. */
void waiting_begin(const struct settings *settings);

/* It has a step. */
void waiting_over(void);

/* It ends, with a step or without. */
void waiting_end(void);
