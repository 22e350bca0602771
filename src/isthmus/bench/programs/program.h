/* What the programs share: how they end, and memory that is there or ends them. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum { USAGE = 2 };

/* Rank 0 says why; all ranks end with status 2, as for wrong usage. Each rank must come here. */
_Noreturn void refuse(const char *program, const char *problem, const char *remedy);

/* Zeroed; a rank that gets none ends them all. */
void *allocate(size_t count, size_t size);

/* A whole number from 1 to limit; 0 where the text is none. */
int number(const char *text, int limit);

#endif
