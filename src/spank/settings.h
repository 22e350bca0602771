/* The words after the plugin's path in plugstack.conf:
 *
 *   default=none socket=/run/isthmus/networkd-root.sock timeout_s=30 command=/opt/isthmus/bin/isthmus-step-container
 *   init=/usr/lib/isthmus/isthmus_init partition=<name>:<driver> user=<name>:<driver>
 *
 * The last two may be repeated. Nothing is copied: Slurm keeps the words as long as the plugin. */
#pragma once

#include "driver.h"
#include "problem.h"

struct settings {
    enum driver fallback; /* of jobs that no option and no rule speaks of */
    const char *socket;
    int timeout_s; /* a job that asks waits no longer for the daemon, in the prolog and again in each step */
    const char *command; /* what understands the options of containers */
    const char *init;    /* first process of jobs' PID namespaces; NULL where jobs have none of their own */
    int ac;
    char **av;
};

/* On a wrong word the settings are the built-in ones, but for a right socket, beside which a job's records lie; the
 * problem names the first such word. */
bool settings_read(struct settings *settings, int ac, char **av, struct problem *problem);

/* Returns how long a job waits. A reserved address may be that of a job which has to end in order first: the control
 * plane of a user's cluster, whose successor begins while it still serves. */
int settings_patience_s(const struct settings *settings, bool reserved);

/* Returns whether a rule of this kind ("partition" or "user") speaks of the name; a missing name has none. */
bool settings_rule(const struct settings *settings, const char *kind, const char *name, enum driver *driver);
