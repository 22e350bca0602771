/* What went wrong, in words for the person who reads it: `problem; remedy`, one line, bounded. */
#pragma once

#include <stdbool.h>

struct problem {
    char text[512];
};

/* Replaces what was reported before; returns false, so that a function can end with it. */
__attribute__((format(printf, 2, 3))) bool problem_set(struct problem *problem, const char *format, ...);
