/* One container a node and step. The first task starts Apptainer, which holds the image open around a program that only
 * waits (hold.c); then it and all others join that program's user and mount namespaces and its root. So a step costs
 * one start of Apptainer a node however many tasks there are, and all see one /tmp, one overlay, one FUSE mount. All of it
 * is done with the user's rights; that the tasks are in the job's pod network by then is task.c's work. */
#include "container.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "container_plan.h"
#include "log.h"
#include "step.h"

enum { START_MS = 120 * 1000, ENVIRONMENT_MAX = 1 << 20, END_TRIES = 500, END_PAUSE_NS = 2 * 1000 * 1000, PROCESSES_MAX = 8 };

/* What the tasks of a node share: one of them starts the container, under the lock, and one reports why it cannot be started. */
struct shared {
    pthread_mutex_t lock;
    pid_t holder; /* 0: nobody tried yet; -1: somebody did in vain */
    pid_t all[PROCESSES_MAX]; /* Apptainer, which leads a session, and what it started: the holder, FUSE's programs */
    struct problem problem;
    atomic_bool reported;
};

static struct shared *shared;
static bool wanted;

void container_start(spank_t spank)
{
    uint32_t id = SLURM_EXTERN_CONT;
    pthread_mutexattr_t kind;

    (void)spank_get_item(spank, S_JOB_STEPID, &id);
    wanted = container_is_asked() && id <= SLURM_MAX_NORMAL_STEP_ID;
    if (wanted) {
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED) {
            shared = NULL;
        } else if (pthread_mutexattr_init(&kind) == 0) {
            (void)pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
            /* A task that dies while it starts the container must not keep the others waiting. */
            (void)pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
            (void)pthread_mutex_init(&shared->lock, &kind);
        }
    }
}

/* In the grandchild: becomes Apptainer. Its parent ends at once, so that the user's program has no child it did not
 * start; container_task_ended() ends it. */
static void become_holder(const struct plan *plan, int output, int complaints)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);

    (void)setsid();
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(complaints, STDERR_FILENO) >= 0) {
        /* Nothing of slurmstepd's may stay open in a process that outlives the task. */
        (void)close_range(STDERR_FILENO + 1, UINT_MAX, 0);
        (void)execvpe(plan->command[0], plan->command, plan->environment);
    }
    (void)dprintf(STDERR_FILENO, "%s cannot be started: %s\n", plan->command[0], strerror(errno));
    _exit(1);
}

static bool spawn(const struct plan *plan, int output, int complaints)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        pid_t holder = fork();

        if (holder == 0) {
            become_holder(plan, output, complaints);
        }
        _exit(holder > 0 ? 0 : 1);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The last line of what Apptainer said. */
static void read_complaint(int fd, struct problem *problem)
{
    char text[4096];
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    char *line;

    text[length > 0 ? length : 0] = '\0';
    for (char *end = text + strlen(text); end > text && end[-1] == '\n'; end--) {
        end[-1] = '\0';
    }
    line = strrchr(text, '\n');
    (void)problem_set(problem, "%s", *text ? (line ? line + 1 : text) : "Apptainer did not answer in time");
}

static pid_t read_pid(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    char text[16] = "";
    int rc = poll(&wait, 1, START_MS);
    ssize_t length = rc > 0 ? read(fd, text, sizeof(text) - 1) : -1;
    long pid = length > 0 && text[length - 1] == '\n' ? strtol(text, NULL, 10) : 0;

    return pid > 1 && pid < INT_MAX ? (pid_t)pid : -1;
}

static pid_t start(const struct plan *plan, struct problem *problem)
{
    int ends[2] = {-1, -1}, complaints = memfd_create("apptainer", MFD_CLOEXEC);
    pid_t holder = -1;

    if (complaints < 0 || pipe2(ends, O_CLOEXEC) != 0 || !spawn(plan, ends[1], complaints)) {
        (void)problem_set(problem, "no process for it can be made: %s", strerror(errno));
    } else {
        (void)close(ends[1]);
        ends[1] = -1;
        holder = read_pid(ends[0]);
        if (holder < 0) {
            read_complaint(complaints, problem);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            (void)close(ends[i]);
        }
    }
    if (complaints >= 0) {
        (void)close(complaints);
    }
    return holder;
}

static int open_of(pid_t pid, const char *name, int flags)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return open(path, flags | O_CLOEXEC);
}

/* Notes the children of one of Apptainer's threads; returns how many processes are noted then. */
static int note_children(pid_t session, const char *thread, int count)
{
    char name[64], text[256] = "", *rest = text, *word;
    int fd;

    (void)snprintf(name, sizeof(name), "task/%.20s/children", thread);
    fd = open_of(session, name, O_RDONLY);
    if (fd >= 0) {
        if (read(fd, text, sizeof(text) - 1) < 0) {
            *text = '\0';
        }
        (void)close(fd);
    }
    while (count < PROCESSES_MAX && (word = strtok_r(rest, " ", &rest))) {
        shared->all[count++] = (pid_t)strtol(word, NULL, 10);
    }
    return count;
}

/* FUSE's programs are in process groups of their own, so Apptainer's children are noted one by one. */
static void note_processes(pid_t holder)
{
    pid_t session = holder > 0 ? getsid(holder) : -1;
    int folder = session > 1 ? open_of(session, "task", O_RDONLY | O_DIRECTORY) : -1, count = 1;
    DIR *threads = folder >= 0 ? fdopendir(folder) : NULL;
    struct dirent *thread;

    if (threads) {
        shared->all[0] = session;
        while ((thread = readdir(threads))) {
            count = note_children(session, thread->d_name, count);
        }
        (void)closedir(threads);
    }
}

/* Returns the process whose namespaces are the container. */
static pid_t start_once(const struct plan *plan, struct problem *problem)
{
    int rc = shared ? pthread_mutex_lock(&shared->lock) : ENOMEM;
    pid_t holder = -1;

    if (rc == EOWNERDEAD) {
        (void)pthread_mutex_consistent(&shared->lock);
        shared->holder = -1;
        (void)problem_set(&shared->problem, "the task that started it was killed");
    }
    if (rc == 0 || rc == EOWNERDEAD) {
        if (shared->holder == 0) {
            shared->holder = start(plan, &shared->problem);
            note_processes(shared->holder);
        }
        holder = shared->holder;
        *problem = shared->problem;
        (void)pthread_mutex_unlock(&shared->lock);
    } else {
        (void)problem_set(problem, "its lock cannot be had: %s", strerror(rc));
    }
    return holder;
}

/* The image's variables win over the job's, but for those that describe the user's own session. */
static bool import_environment(spank_t spank, const struct plan *plan, pid_t holder, struct problem *problem)
{
    int fd = open_of(holder, "environ", O_RDONLY);
    char *text = calloc(1, ENVIRONMENT_MAX + 1);
    size_t length = 0;
    ssize_t got = 0;

    while (fd >= 0 && text && length < ENVIRONMENT_MAX &&
           (got = read(fd, text + length, ENVIRONMENT_MAX - length)) > 0) {
        length += (size_t)got;
    }
    for (char *entry = text; entry && entry < text + length; entry += strlen(entry) + 1) {
        char *equals = strchr(entry, '=');

        if (equals) {
            *equals = '\0';
            if (!plan_keeps(plan, entry)) {
                (void)spank_setenv(spank, entry, equals + 1, 1);
            }
            *equals = '=';
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    free(text);
    return length > 0 || problem_set(problem, "the image's variables cannot be read: %s", strerror(errno));
}

/* Both descriptors are opened before: in the container /proc may be another. */
static bool join(pid_t holder, struct problem *problem)
{
    int user = open_of(holder, "ns/user", O_RDONLY), files = open_of(holder, "ns/mnt", O_RDONLY);
    int root = open_of(holder, "root", O_PATH | O_DIRECTORY);
    bool joined = user >= 0 && files >= 0 && root >= 0 && setns(user, CLONE_NEWUSER) == 0 &&
                  setns(files, CLONE_NEWNS) == 0 && fchdir(root) == 0 && chroot(".") == 0;

    if (!joined) {
        (void)problem_set(problem, "its namespaces cannot be entered: %s", strerror(errno));
    }
    for (int i = 0, all[] = {user, files, root}; i < 3; i++) {
        if (all[i] >= 0) {
            (void)close(all[i]);
        }
    }
    return joined;
}

static bool change_folder(const struct plan *plan, struct problem *problem)
{
    return chdir(plan->workdir) == 0 ||
           problem_set(problem, "%s in it cannot be entered: %s; give --container-workdir", plan->workdir, strerror(errno));
}

static bool prepend_entrypoint(spank_t spank, const struct plan *plan, struct problem *problem)
{
    return plan->entrypoint_count == 0 ||
           spank_prepend_task_argv(spank, plan->entrypoint_count, (const char **)plan->entrypoint) == ESPANK_SUCCESS ||
           problem_set(problem, "Slurm did not take the image's entrypoint");
}

bool container_enter(spank_t spank, struct problem *problem, bool *tells)
{
    struct plan plan = {0};
    bool entered = true;

    if (wanted) {
        pid_t holder = plan_read(spank, &plan, problem) ? start_once(&plan, problem) : -1;

        entered = holder > 0 && prepend_entrypoint(spank, &plan, problem) &&
                  import_environment(spank, &plan, holder, problem) && join(holder, problem) &&
                  change_folder(&plan, problem);
        *tells = !entered && (!shared || !atomic_exchange(&shared->reported, true));
        (void)spank_unsetenv(spank, CONTAINER_VARIABLE);
        plan_free(&plan);
    }
    return entered;
}

/* Returns whether any of them is still there; a number that Linux gave out again is of another session. */
static bool kill_all(const pid_t *all)
{
    bool killed = false;

    for (int i = 0; i < PROCESSES_MAX && all[i] > 1; i++) {
        killed = (getsid(all[i]) == all[0] && kill(all[i], SIGKILL) == 0) || killed;
    }
    return killed;
}

/* Who noted the processes had the user's rights, and so has who kills them. */
static void kill_as(uid_t uid, gid_t gid)
{
    const struct timespec pause = {.tv_nsec = END_PAUSE_NS};

    if (setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0) {
        for (int i = 0; i < END_TRIES && kill_all(shared->all); i++) {
            (void)nanosleep(&pause, NULL);
        }
    }
    _exit(0);
}

/* Slurm would end it as well, but looks again only after a second, and as long the step would last. */
void container_task_ended(spank_t spank)
{
    static uint32_t ended;
    uint32_t tasks = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    pid_t pid;

    ended++;
    if (wanted && shared && shared->all[0] > 1 &&
        spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS && ended == tasks &&
        spank_get_item(spank, S_JOB_UID, &uid) == ESPANK_SUCCESS &&
        spank_get_item(spank, S_JOB_GID, &gid) == ESPANK_SUCCESS) {
        /* The tasks have noted the numbers that they see. */
        pid = step_lead() ? fork() : -1;
        if (pid == 0) {
            kill_as(uid, gid);
        }
        step_return();
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
}
