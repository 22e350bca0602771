/* A mount namespace for a task, in which /sys shows the network namespace that the task is in; and that one's localhost. */
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

/* Gives the caller's network namespace ::1: sshd forwards X11 only where every address of localhost can be bound, and a pod
 * has no IPv6 otherwise. A kernel may have none at all. */
bool mounts_allow_localhost(struct problem *problem);
