/* slurmstepd itself stays in the host's network; only its tasks, forked later, enter. The namespace is opened here,
 * where the node's own /run is seen whatever a job container does to the tasks' mounts.
 *
 * So it is with the job's PID namespace. Who enters one is not in it, but what it forks then: slurmstepd enters right before it
 * forks the tasks, and returns right after. It goes on to know them by the node's process ids, and so do cgroups, accounting
 * and signals; only the tasks themselves see others. */
#include "step.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"
#include "options.h"
#include "pidns.h"

/* Where the prolog has waited for the daemon in vain, a step does not wait as long again. */
enum { FIRST_PAUSE_MS = 5, LONGEST_PAUSE_MS = 100, AGAIN_S = 5 };

static struct step step = {.netns = -1, .first = -1, .own = -1};

struct step *step_of_this_process(void)
{
    return &step;
}

/* Another kind of file, say one left where a namespace was mounted, does not know the ioctl. */
static bool open_namespace(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool network = fd >= 0 && ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET;

    if (network) {
        step.netns = fd;
    } else if (fd >= 0) {
        (void)close(fd);
        (void)problem_set(&step.problem, "%s is no network namespace; see isthmus-networkd's log", path);
    } else {
        (void)problem_set(&step.problem, "%s cannot be opened: %s", path, strerror(errno));
    }
    return network;
}

/* Whether there is one was decided in the prolog: all steps of a job are in the same. */
static bool open_processes(const struct settings *settings)
{
    bool known = pidns_open(settings, step.job, &step.first, &step.problem);

    if (step.first >= 0) {
        step.own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
        known = step.own >= 0 || problem_set(&step.problem, "/proc/self/ns/pid: %s", strerror(errno));
    }
    return known;
}

/* The PMIx server of this process listens where the tasks can reach it: on the host's end of the job's own network. */
static void enter_later(const struct settings *settings, const struct network *network)
{
    if (open_namespace(network->netns) && open_processes(settings)) {
        memcpy(step.resolv_conf, network->resolv_conf, sizeof(step.resolv_conf));
        if (setenv("PMIX_MCA_ptl_base_if_include", network->leg, 1) != 0) {
            (void)problem_set(&step.problem, "PMIx cannot use %s: %s", network->leg, strerror(errno));
        }
    }
}

/* The daemon does not know the job: the prolog could not ask it, or had no reason to, or it has forgotten. */
static void judge_absent(const struct problem *earlier, bool asked, bool certain)
{
    if (*earlier->text) {
        step.problem = *earlier;
    } else if (asked) {
        (void)problem_set(&step.problem, "the network daemon began again before it was made; submit the job again");
    } else if (certain) {
        (void)problem_set(&step.problem, "none was made for it when it began; give --pod-network to sbatch or salloc, "
                                         "not to a step alone (administrators: is PrologFlags=Alloc set?)");
    } else {
        log_info("job %u began without a pod network, though the default is one", step.job);
        step.wanted = false;
    }
}

static void find_network(const struct settings *settings, bool asked, bool certain)
{
    struct problem earlier = {""};
    bool in_vain = record_read_error(settings, step.job, &earlier), known, heard = false;
    int patience_s = settings_patience_s(settings, step.reserved);
    struct deadline deadline = deadline_in(in_vain && patience_s > AGAIN_S ? AGAIN_S : patience_s);
    struct network network = {.state = NETWORK_PREPARING};
    int pause_ms = FIRST_PAUSE_MS;

    do {
        known = daemon_get(settings, step.job, &deadline, &network, &step.problem);
        heard = heard || known;
        pause_ms = pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
    } while (known && network.state == NETWORK_PREPARING && deadline_pause(&deadline, pause_ms));
    /* The last question was cut off: it is the time that is over, and nothing is wrong with the daemon. */
    if (!known && heard && !deadline_pause(&deadline, 0)) {
        known = true;
        network.state = NETWORK_PREPARING;
    }
    if (!known && in_vain) {
        step.problem = earlier;
    } else if (known) {
        switch (network.state) {
        case NETWORK_READY:
            enter_later(settings, &network);
            break;
        case NETWORK_ABSENT:
            judge_absent(&earlier, asked, certain);
            break;
        case NETWORK_FAILED:
            step.problem = network.error;
            break;
        case NETWORK_PREPARING:
            (void)problem_set(&step.problem, "it was not ready within %d s; try again", deadline.limit_s);
            break;
        }
    }
}

/* The step's own option wins, then what the prolog noted, then the default, which may be newer than the job. */
static void start(const struct settings *settings, const struct problem *off)
{
    const struct choice *choice = options_given();
    enum driver driver = settings->fallback, noted = DRIVER_NONE;
    bool is_noted = record_read_driver(settings, step.job, &noted);

    if (choice->given || is_noted) {
        driver = choice->given ? choice->driver : noted;
    }
    step.wanted = driver != DRIVER_NONE;
    if (choice->given && !choice->valid) {
        (void)problem_set(&step.problem, "there is no network %s; choose " DRIVER_CHOICES, choice->text);
    } else if (step.wanted && off) {
        (void)problem_set(&step.problem, "the plugin is off until an administrator corrects %s", off->text);
    } else if (step.wanted && noted != DRIVER_NONE && noted != driver) {
        (void)problem_set(&step.problem, "its network is %s, and a step cannot have %s; leave the option out",
                          driver_name(noted), driver_name(driver));
    } else if (step.wanted) {
        find_network(settings, noted != DRIVER_NONE, choice->given || is_noted);
    }
}

/* A longer name is none, see the daemon's bounds. */
static bool is_reserved(spank_t spank)
{
    char name[64];

    return spank_getenv(spank, RESERVATION, name, sizeof(name)) == ESPANK_SUCCESS && *name;
}

int step_start(spank_t spank, int ac, char **av)
{
    struct settings settings;
    struct problem problem;
    uint32_t id = SLURM_EXTERN_CONT;

    if (spank_get_item(spank, S_JOB_ID, &step.job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &id) != ESPANK_SUCCESS) {
        log_error("Slurm does not say which step this is");
    } else if (id != SLURM_EXTERN_CONT) {
        bool valid = settings_read(&settings, ac, av, &problem);

        step.reserved = is_reserved(spank);
        start(&settings, valid ? NULL : &problem);
        if (*step.problem.text) {
            log_error("job %u: its tasks will fail: %s", step.job, step.problem.text);
        }
    }
    return 0;
}

/* Of this thread alone: the C library's seteuid() would give root's rights to all threads of slurmstepd. */
static bool become(uid_t uid)
{
    return syscall(SYS_setresuid, (uid_t)-1, uid, (uid_t)-1) == 0;
}

bool step_lead(void)
{
    uid_t uid = geteuid();

    if (step.first >= 0 && !*step.problem.text) {
        if (uid != 0 && !become(0)) {
            (void)problem_set(&step.problem, "slurmstepd cannot be root again: %s", strerror(errno));
        } else {
            step.leads = pidns_lead(step.first, &step.problem);
        }
        if (uid != 0 && !become(uid)) {
            (void)problem_set(&step.problem, "slurmstepd cannot be the user again: %s", strerror(errno));
        }
    }
    return step.first < 0 || step.leads;
}

void step_return(void)
{
    if (step.leads && !pidns_return(step.own)) {
        log_error("job %u: slurmstepd cannot leave its PID namespace: %s", step.job, strerror(errno));
    }
    step.leads = false;
}

void step_end(void)
{
    int *const all[] = {&step.netns, &step.first, &step.own};

    step_return();
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (*all[i] >= 0) {
            (void)close(*all[i]);
            *all[i] = -1;
        }
    }
}
