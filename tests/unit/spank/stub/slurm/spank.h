/* The part of Slurm's spank.h that the plugin uses, so that its tests need no Slurm; values are Slurm's own. */
#pragma once

#define SLURM_VERSION_NUMBER 0x180b05
#define SPANK_PLUGIN(name, version)                               \
    const char plugin_name[] = #name;                             \
    const char plugin_type[] = "spank";                           \
    const unsigned int plugin_version = SLURM_VERSION_NUMBER;     \
    const unsigned int spank_plugin_version = version;

typedef struct spank_handle *spank_t;
typedef int(spank_f)(spank_t spank, int ac, char *argv[]);
typedef int (*spank_opt_cb_f)(int val, const char *optarg, int remote);
typedef enum { ESPANK_SUCCESS = 0, ESPANK_ERROR = 3000, ESPANK_BAD_ARG, ESPANK_NOT_AVAIL = 3010 } spank_err_t;
typedef enum { S_JOB_UID, S_JOB_GID, S_JOB_ID, S_JOB_STEPID, S_JOB_LOCAL_TASK_COUNT = 6, S_TASK_ID = 11 } spank_item_t;
typedef enum {
    S_CTX_ERROR,
    S_CTX_LOCAL,
    S_CTX_REMOTE,
    S_CTX_ALLOCATOR,
    S_CTX_SLURMD,
    S_CTX_JOB_SCRIPT
} spank_context_t;

struct spank_option {
    char *name;
    char *arginfo;
    char *usage;
    int has_arg;
    int val;
    spank_opt_cb_f cb;
};

extern spank_f slurm_spank_init, slurm_spank_init_post_opt, slurm_spank_local_user_init, slurm_spank_user_init,
    slurm_spank_job_prolog, slurm_spank_task_init_privileged, slurm_spank_task_init, slurm_spank_task_post_fork,
    slurm_spank_task_exit, slurm_spank_exit, slurm_spank_job_epilog;

spank_context_t spank_context(void);
spank_err_t spank_option_register(spank_t spank, struct spank_option *opt);
spank_err_t spank_option_getopt(spank_t spank, struct spank_option *opt, char **optarg);
spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...);
spank_err_t spank_job_control_setenv(spank_t spank, const char *name, const char *value, int overwrite);
spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len);
spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite);
spank_err_t spank_unsetenv(spank_t spank, const char *var);
spank_err_t spank_prepend_task_argv(spank_t spank, int argc, const char *argv[]);
void slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
