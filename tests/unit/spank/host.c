/* Stands in for Slurm's programs: loads the plugin as they do and calls it in their order.
 *
 *   host PLUGIN slurmd|srun|sbatch|step|prolog|epilog [words of plugstack.conf...]
 *
 * HOST_AS is the user of tasks, where that is not the caller. HOST_CONTAIN is for a Slurm that runs some calls in a process of their own (contain_spank). HOST_WAITS says how often an srun has to ask for its step, HOST_WAIT_MS how long it waits to be called, and with
 * HOST_LISTENS it listens elsewhere, too. HOST_OPTION is what the user gave to --pod-network ("" for no value; unset: not given), HOST_CONTAINER has a line for
 * each option of containers (name=value, or a name), HOST_JOB, HOST_UID and HOST_STEP are ids, HOST_TASKS counts tasks, and HOST_COMMAND is what a task runs. Unless HOST_FAKE is empty, calls
 * that need root are only reported, and the one that HOST_FAIL names fails. What came of it is on standard output, what the plugin
 * logged on standard error. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS_MAX = 64 };

struct spank_handle {
    bool init, job_script;
    int task;
};

static void *library;
static spank_context_t context;
static struct spank_option *registered[32];
static int options;

static void must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "host: %s\n", what);
        exit(99);
    }
}

static void tell(const char *level, const char *format, va_list arguments)
{
    fprintf(stderr, "%s: ", level);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

#define LOGGER(level)                          \
    void slurm_##level(const char *format, ...) \
    {                                          \
        va_list arguments;                     \
        va_start(arguments, format);           \
        tell(#level, format, arguments);       \
        va_end(arguments);                     \
    }
LOGGER(error)
LOGGER(info)

spank_context_t spank_context(void)
{
    return context;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
    must(spank->init, "options are registered in slurm_spank_init");
    for (int i = 0; i < options; i++) {
        must(strcmp(registered[i]->name, option->name) != 0, "an option is registered once");
    }
    registered[options++] = option;
    return getenv("HOST_REFUSES") ? ESPANK_BAD_ARG : ESPANK_SUCCESS;
}

spank_err_t spank_option_getopt(spank_t spank, struct spank_option *option, char **value)
{
    must(spank->job_script && strcmp(option->name, "pod-network") == 0, "getopt is asked in prolog and epilog");
    *value = getenv("HOST_OPTION");
    return *value ? ESPANK_SUCCESS : ESPANK_ERROR;
}

static uint32_t number(const char *name, uint32_t otherwise)
{
    return getenv(name) ? (uint32_t)strtoul(getenv(name), NULL, 10) : otherwise;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list arguments;
    uint32_t *value;

    va_start(arguments, item);
    value = va_arg(arguments, uint32_t *);
    va_end(arguments);
    must(spank->job_script || context == S_CTX_REMOTE, "items are asked where there are some");
    must(!spank->job_script || item == S_JOB_ID || item == S_JOB_UID, "a prolog has job, uid and gid only");
    *value = item == S_JOB_ID       ? number("HOST_JOB", 7)
             : item == S_JOB_UID    ? number("HOST_UID", 1001)
             : item == S_JOB_GID    ? (uint32_t)getgid()
             : item == S_JOB_STEPID ? number("HOST_STEP", 0)
             : item == S_JOB_LOCAL_TASK_COUNT ? number("HOST_TASKS", 1)
                                    : (uint32_t)spank->task;
    return getenv("HOST_REFUSES") ? ESPANK_BAD_ARG : ESPANK_SUCCESS;
}

spank_err_t spank_job_control_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
    (void)spank;
    printf("control %s=%s %d\n", name, value, overwrite);
    return ESPANK_SUCCESS;
}

/* A variable of the job; the program's own where the job's is not said apart. */
spank_err_t spank_getenv(spank_t spank, const char *name, char *value, int length)
{
    char given[64];
    const char *found;

    (void)spank;
    (void)snprintf(given, sizeof(given), "HOST_JOB_%s", name);
    found = getenv(given) ? getenv(given) : getenv(name);
    return found && snprintf(value, (size_t)length, "%s", found) < length ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
    (void)spank;
    return setenv(name, value, overwrite) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
    (void)spank;
    return unsetenv(name) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

spank_err_t spank_prepend_task_argv(spank_t spank, int argc, const char *argv[])
{
    (void)spank;
    for (int i = 0; i < argc; i++) {
        printf("prepend %s\n", argv[i]);
    }
    return ESPANK_SUCCESS;
}

static bool is_faked(void)
{
    return *getenv("HOST_FAKE") != '\0';
}

static int fake(const char *name, long really)
{
    bool fails = getenv("HOST_FAIL") && strcmp(getenv("HOST_FAIL"), name) == 0;

    errno = fails ? EPERM : errno;
    return fails ? -1 : (int)really;
}

int unshare(int flags)
{
    printf("unshare %s\n", flags == CLONE_NEWNS ? "mounts" : flags == CLONE_NEWPID ? "pids" : "else");
    return fake(flags == CLONE_NEWPID ? "unshare pids" : "unshare", is_faked() ? 0 : syscall(SYS_unshare, flags));
}

/* Whether what is forked now would be in another PID namespace, and whether this process is. */
static bool leads, led;

int setns(int fd, int type)
{
    const char *name = type == CLONE_NEWNET    ? "net"
                       : type == CLONE_NEWUSER ? "user"
                       : type == CLONE_NEWPID  ? "pids"
                                               : "mounts";

    printf("setns %s\n", name);
    leads = type == CLONE_NEWPID ? !leads : leads;
    return fake(type == CLONE_NEWNET ? "setns" : name, is_faked() ? 0 : syscall(SYS_setns, fd, type));
}

pid_t getppid(void)
{
    return is_faked() && led ? 0 : (pid_t)syscall(SYS_getppid);
}

int chroot(const char *path)
{
    printf("chroot %s\n", path);
    return fake("chroot", is_faked() ? 0 : syscall(SYS_chroot, path));
}

int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
    const char *name = flags & MS_SLAVE ? "slave" : flags & MS_BIND ? "bind" : type;

    printf("mount %s %s\n", name, target);
    return fake(name, is_faked() ? 0 : syscall(SYS_mount, source, target, type, flags, data));
}

static int call(const char *name, struct spank_handle *spank, int ac, char **av)
{
    spank_f *function;

    *(void **)&function = dlsym(library, name);
    return function ? function(spank, ac, av) : 0;
}

/* With HOST_AS, the id of a user. */
static bool become(uint32_t effective, int all)
{
    return !getenv("HOST_AS") || setresuid((uid_t)all, effective, (uid_t)all) == 0;
}

static void run_task(int index, int go, int ac, char **av)
{
    struct spank_handle spank = {.task = index};
    const char *command = getenv("HOST_COMMAND");
    char byte;

    led = leads;
    must(become(0, -1), "a task has root's rights at first");
    must(read(go, &byte, 1) == 1, "a task is let go");
    if (getenv("HOST_TASK_FILE")) {
        FILE *file = fopen(getenv("HOST_TASK_FILE"), "w");

        must(file && fprintf(file, "%d", (int)getpid()) > 0 && fclose(file) == 0, "a task tells its id");
    }
    must(call("slurm_spank_task_init_privileged", &spank, ac, av) == 0, "a failure as root drains the node");
    fflush(stdout);
    must(become(number("HOST_AS", 0), (int)number("HOST_AS", 0)), "a task is the user's then");
    (void)call("slurm_spank_task_init", &spank, ac, av);
    fflush(stdout);
    if (command) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    }
    _exit(0);
}

/* All are forked, between two calls, before the first one goes on. With HOST_CONTAIN the first call is in a process of its own. */
static void fork_tasks(int count, pid_t *tasks, int *go, int ac, char **av)
{
    struct spank_handle spank = {.task = -1};
    pid_t own = getenv("HOST_CONTAIN") ? fork() : 0;

    if (own == 0) {
        must(become(number("HOST_AS", 0), -1), "slurmstepd has the user's rights meanwhile");
        must(call("slurm_spank_user_init", &spank, ac, av) == 0, "a step whose call fails drains the node");
        must(geteuid() == number("HOST_AS", geteuid()), "and keeps them");
    }
    if (own == 0 && getenv("HOST_CONTAIN")) {
        _exit(0);
    }
    must(own == 0 || waitpid(own, NULL, 0) == own, "a call ends");
    for (int index = 0; index < count; index++) {
        int ends[2];

        fflush(stdout);
        must(pipe2(ends, O_CLOEXEC) == 0 && (tasks[index] = fork()) >= 0, "a task is forked");
        if (tasks[index] == 0) {
            run_task(index, ends[0], ac, av);
        }
        (void)close(ends[0]);
        go[index] = ends[1];
    }
    must(become(0, -1), "slurmstepd is root again");
    for (int index = 0; index < count; index++) {
        spank.task = index;
        must(call("slurm_spank_task_post_fork", &spank, ac, av) == 0, "a step whose call fails drains the node");
    }
}

static void run_tasks(int ac, char **av)
{
    int count = (int)number("HOST_TASKS", 1), go[TASKS_MAX];
    pid_t tasks[TASKS_MAX];

    must(count <= TASKS_MAX, "there are few tasks");
    fork_tasks(count, tasks, go, ac, av);
    for (int index = 0; index < count; index++) {
        pid_t pid = tasks[index];
        int status;

        fflush(stdout);
        must(write(go[index], "", 1) == 1 && close(go[index]) == 0, "a task is let go");
        must(waitpid(pid, &status, 0) == pid, "a task ends");
        must(WIFEXITED(status) || getenv("HOST_TASK_FILE"), "a task ends by itself");
        (void)call("slurm_spank_task_exit", &(struct spank_handle){.task = index}, ac, av);
        printf("task=%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
}

static int give(const char *name, const char *value)
{
    int rc = -1;

    for (int i = 0; i < options; i++) {
        if (strcmp(registered[i]->name, name) == 0) {
            rc = registered[i]->cb(registered[i]->val, value, context == S_CTX_REMOTE);
        }
    }
    return rc;
}

static int give_options(void)
{
    const char *value = getenv("HOST_OPTION");
    char *lines = strdup(getenv("HOST_CONTAINER") ? getenv("HOST_CONTAINER") : "");
    int rc = value ? give("pod-network", *value ? value : NULL) : 0;

    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        char *equals = strchr(line, '=');

        if (equals) {
            *equals = '\0';
        }
        must(give(line, equals ? equals + 1 : NULL) == 0, "options of containers are taken as they are");
    }
    free(lines);
    return rc;
}

static int listening(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0 && listen(fd, 8) == 0, "a port can be had");
    return fd;
}

/* srun whose step must wait: each time it is called it asks again, at another port. */
static void wait_for_step(void)
{
    int other = getenv("HOST_LISTENS") ? listening() : -1;

    for (uint32_t i = 0; i < number("HOST_WAITS", 0); i++) {
        struct pollfd called = {.fd = listening(), .events = POLLIN};
        int count = poll(&called, 1, (int)number("HOST_WAIT_MS", 20000));

        printf(count ? "called\n" : "waited in vain\n");
        fflush(stdout);
        (void)close(called.fd);
    }
    if (other >= 0) {
        (void)close(other);
    }
}

static void run_program(int ac, char **av)
{
    struct spank_handle spank = {.init = true};
    int rc = call("slurm_spank_init", &spank, ac, av);

    spank.init = false;
    printf("init=%d\n", rc);
    if (context != S_CTX_SLURMD) {
        rc = give_options();
        printf("option=%d\n", rc);
        rc = rc ? rc : call("slurm_spank_init_post_opt", &spank, ac, av);
        printf("post_opt=%d\n", rc);
    }
    if (context == S_CTX_LOCAL && rc == 0) {
        wait_for_step();
        must(call("slurm_spank_local_user_init", &spank, ac, av) == 0, "a step that was made begins");
    }
    if (context == S_CTX_REMOTE && rc == 0) {
        const char *interface = getenv("PMIX_MCA_ptl_base_if_include");

        printf("pmix=%s\n", interface ? interface : "");
        run_tasks(ac, av);
    }
    if (getenv("HOST_SHOW")) {
        const char *value = getenv(getenv("HOST_SHOW"));

        printf(value ? "%s=%s\n" : "%s is unset\n", getenv("HOST_SHOW"), value);
    }
    printf("exit=%d\n", call("slurm_spank_exit", &spank, ac, av));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        spank_context_t context;
        const char *script;
    } programs[] = {
        {"slurmd", S_CTX_SLURMD, NULL},
        {"srun", S_CTX_LOCAL, NULL},
        {"sbatch", S_CTX_ALLOCATOR, NULL},
        {"step", S_CTX_REMOTE, NULL},
        {"prolog", S_CTX_JOB_SCRIPT, "slurm_spank_job_prolog"},
        {"epilog", S_CTX_JOB_SCRIPT, "slurm_spank_job_epilog"},
    };
    struct spank_handle script = {.job_script = true};
    bool known = false;

    must(argc >= 3, "usage: host PLUGIN PROGRAM [WORD...]");
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    must(library != NULL, "the plugin cannot be loaded");
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
        if (strcmp(argv[2], programs[i].name) == 0) {
            known = true;
            context = programs[i].context;
            if (programs[i].script) {
                printf("rc=%d\n", call(programs[i].script, &script, argc - 3, argv + 3));
            } else {
                run_program(argc - 3, argv + 3);
            }
        }
    }
    must(known, "no such program");
    return 0;
}
