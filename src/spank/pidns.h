/* The PID namespace that a job's tasks on this node share, where plugstack.conf has the word init=. */
#pragma once

#include "record.h"

/* In the prolog: makes it, starts its first process, and notes that for steps, sessions and epilog. */
bool pidns_make(const struct settings *settings, uint32_t job, struct problem *problem);

/* In prolog and epilog: ends what an earlier prolog has made, with all that runs in it. */
void pidns_end(const struct settings *settings, uint32_t job);

/* Opens it: `first` is a descriptor (pidfd_open(2)), -1 for a job that has none. Returns false where there should be one. */
bool pidns_open(const struct settings *settings, uint32_t job, int *first, struct problem *problem);

/* What this thread forks from now on is in it; the thread itself stays where it is, and can begin no other thread. */
bool pidns_lead(int first, struct problem *problem);

/* The same for the namespace of this process, opened before as /proc/self/ns/pid. */
bool pidns_return(int own);
