/* What a job's prolog leaves on its node for the job's steps and its epilog, in the folder `spank` beside the socket:
 *
 *   <job>.driver  which network the job has, where an option or a rule said so
 *   <job>.error   why it could not be had
 *   <job>.init    first process of its PID namespace, and when it began; zeros where it could not be made
 *
 * Only the prolog knows the partition, from Slurm's signed credential; and a job keeps what it began with, also when
 * plugstack.conf changes, the daemon is dead, or an inner srun was not handed the option. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "settings.h"

bool record_driver(const struct settings *settings, uint32_t job, enum driver driver, struct problem *problem);
bool record_error(const struct settings *settings, uint32_t job, const char *text, struct problem *problem);
bool record_first(const struct settings *settings, uint32_t job, pid_t first, unsigned long long began,
                  struct problem *problem);

/* Return whether there is such a record. */
bool record_read_driver(const struct settings *settings, uint32_t job, enum driver *driver);
bool record_read_error(const struct settings *settings, uint32_t job, struct problem *text);
bool record_read_first(const struct settings *settings, uint32_t job, pid_t *first, unsigned long long *began);

void record_remove(const struct settings *settings, uint32_t job);
