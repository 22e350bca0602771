/* A mount namespace for a task, in which /sys shows the network namespace that the task is in. */
#pragma once

#include "problem.h"

/* Leaves the caller's mount namespace for a copy that still receives what the node mounts. */
bool mounts_unshare(struct problem *problem);

/* Covers /sys with a new one of the same flags, and brings back all that was mounted below it. */
bool mounts_renew_sys(struct problem *problem);

/* The same for /proc, which shows the PID namespace of who mounts it. */
bool mounts_renew_proc(struct problem *problem);

/* Covers /etc/resolv.conf, or what it links to, with this file. */
bool mounts_cover_resolv_conf(const char *path, struct problem *problem);
