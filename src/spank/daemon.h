/* What plugin and PAM module ask of the node's network daemon (src/isthmus/network), as root. */
#pragma once

#include <limits.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/types.h>

#include "settings.h"
#include "socket.h"

/* A job as its prolog sees it; texts are empty where Slurm does not set them. */
struct job {
    uint32_t id;
    uint32_t uid;
    const char *user;
    const char *name;
    const char *nodes; /* folded, as c[1-4000] */
    const char *reservation;
    enum driver driver;
};

enum network_state { NETWORK_ABSENT, NETWORK_PREPARING, NETWORK_READY, NETWORK_FAILED };

/* A job's network on this node; the texts below are filled when the state is NETWORK_READY, the error when NETWORK_FAILED. */
struct network {
    enum network_state state;
    char netns[PATH_MAX];
    char leg[IF_NAMESIZE];
    char resolv_conf[PATH_MAX]; /* empty: the task keeps the node's */
    struct problem error;
};

/* A user's login pod on this host: a process of it, and the network that process is in. */
struct login {
    pid_t init;
    char netns[PATH_MAX];
};

/* `op` is login_prepare, which makes the pod, or login_enter, which also counts this process as a session in it. */
bool daemon_login(const struct settings *settings, const char *op, uint32_t uid, const struct deadline *deadline,
                  struct login *login, struct problem *problem);
bool daemon_prepare(const struct settings *settings, const struct job *job, const struct deadline *deadline,
                    struct problem *problem);
bool daemon_get(const struct settings *settings, uint32_t job, const struct deadline *deadline, struct network *network,
                struct problem *problem);
bool daemon_release(const struct settings *settings, uint32_t job, const struct deadline *deadline,
                    struct problem *problem);
