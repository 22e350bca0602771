/* Slurm runs this in a short process of its own, as root, with the job's facts in the environment; slurm_spank_init()
 * is not called there. An error is left for the steps, where the user will read it. */
#include "prolog.h"

#include <stdlib.h>

#include "daemon.h"
#include "log.h"
#include "options.h"
#include "pidns.h"

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

/* The user's option, else the rule for the user, else the one for the partition, else the default. */
static enum driver decide(const struct settings *settings, const struct choice *choice, bool *chosen)
{
    enum driver driver = settings->fallback;

    *chosen = choice->given;
    if (choice->given) {
        driver = choice->driver;
    } else {
        *chosen = settings_rule(settings, "user", getenv("SLURM_JOB_USER"), &driver) ||
                settings_rule(settings, "partition", getenv("SLURM_JOB_PARTITION"), &driver);
    }
    return driver;
}

static void keep_driver(const struct settings *settings, uint32_t job, enum driver driver)
{
    struct problem problem;

    if (!record_driver(settings, job, driver, &problem)) {
        log_error("job %u: %s", job, problem.text);
    }
}

static void keep_error(const struct settings *settings, uint32_t job, const struct problem *why)
{
    struct problem problem;

    log_error("job %u has no pod network here: %s", job, why->text);
    if (!record_error(settings, job, why->text, &problem)) {
        log_error("job %u: %s", job, problem.text);
    }
}

static bool prepare(const struct settings *settings, struct job *job, enum driver driver, struct problem *problem)
{
    struct deadline deadline;

    job->driver = driver;
    job->user = environment("SLURM_JOB_USER");
    job->name = environment("SLURM_JOB_NAME");
    /* Slurm 22.05 has the older name only. */
    job->nodes = environment(getenv("SLURM_JOB_NODELIST") ? "SLURM_JOB_NODELIST" : "SLURM_NODELIST");
    job->reservation = environment("SPANK_ISTHMUS_RESERVATION");
    deadline = deadline_in(settings_patience_s(settings, *job->reservation));
    return daemon_prepare(settings, job, &deadline, problem);
}

static void run(struct job *job, const struct choice *choice, int ac, char **av)
{
    struct settings settings;
    struct problem problem;
    bool valid = settings_read(&settings, ac, av, &problem), chosen = false;
    enum driver driver = decide(&settings, choice, &chosen);

    pidns_end(&settings, job->id);
    record_remove(&settings, job->id);
    if (!valid && !choice->given) {
        log_error("the plugin is off until an administrator corrects %s", problem.text);
    } else if (chosen || driver != DRIVER_NONE) {
        keep_driver(&settings, job->id, driver);
    }
    if (choice->given && !choice->valid) {
        valid = problem_set(&problem, "there is no network %s; choose " DRIVER_CHOICES, choice->text);
    }
    if (driver != DRIVER_NONE && (!valid || !prepare(&settings, job, driver, &problem) ||
                                  (settings.init && !pidns_make(&settings, job->id, &problem)))) {
        keep_error(&settings, job->id, &problem);
    }
}

int prolog_run(spank_t spank, int ac, char **av)
{
    struct choice choice = options_of_job(spank);
    struct job job = {0};

    if (spank_get_item(spank, S_JOB_ID, &job.id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_UID, &job.uid) != ESPANK_SUCCESS) {
        log_error("Slurm does not say which job this prolog is for");
    } else {
        run(&job, &choice, ac, av);
    }
    return 0;
}
