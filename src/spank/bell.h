/* The bells of a job's sruns that wait, in the network namespace of this process. */
#pragma once

#include <stdint.h>

/* Gives a descriptor that can be read when somebody rang; -1 where there can be none. */
int bell_hang(uint32_t job);

/* Reads what was rung. */
void bell_silence(int bell);

/* Rings at some of those who wait: Slurm itself wakes no more than a few. One that then starts rings again. */
void bell_ring(uint32_t job);
