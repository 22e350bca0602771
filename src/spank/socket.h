/* One exchange with the daemon: a line there, a line back, within a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "problem.h"

/* The limit of a line that this plugin sends or reads, its end included; the daemon takes longer ones of others. */
enum { LINE_MAX_BYTES = 64 * 1024 };

struct deadline {
    int64_t at_ms; /* on the monotonic clock */
    int limit_s;   /* as it was set, for texts */
};

struct deadline deadline_in(int seconds);

/* Waits a moment before another try; returns false when the time is over. */
bool deadline_pause(const struct deadline *deadline, int pause_ms);

/* Sends a line, which ends with a newline, and reads one into a buffer of LINE_MAX_BYTES, without its newline. */
bool socket_exchange(const char *path, const char *line, size_t length, char *reply, const struct deadline *deadline,
                     struct problem *problem);
