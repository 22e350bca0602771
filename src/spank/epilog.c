/* The daemon answers at once and removes later. One that does not answer at all only delays the node's next job, so
 * it gets a short time; the controller's daemon frees what Slurm no longer lists. */
#include "epilog.h"

#include "daemon.h"
#include "log.h"
#include "options.h"
#include "pidns.h"

enum { TIMEOUT_S = 5 };

/* Without a record the prolog may still have prepared something; releasing what is not there is well. */
static bool has_network(const struct settings *settings, const struct choice *choice, uint32_t job)
{
    enum driver driver = settings->fallback;

    if (!record_read_driver(settings, job, &driver) && choice->given) {
        driver = choice->driver;
    }
    return driver != DRIVER_NONE;
}

static void release(const struct settings *settings, uint32_t job)
{
    struct deadline deadline = deadline_in(settings->timeout_s < TIMEOUT_S ? settings->timeout_s : TIMEOUT_S);
    struct problem problem;

    if (!daemon_release(settings, job, &deadline, &problem)) {
        log_error("job %u: its pod network is left to the daemon's garbage collection: %s", job, problem.text);
    }
}

int epilog_run(spank_t spank, int ac, char **av)
{
    struct choice choice = options_of_job(spank);
    struct settings settings;
    struct problem problem;
    uint32_t job = 0;

    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) {
        log_error("Slurm does not say which job this epilog is for");
    } else {
        (void)settings_read(&settings, ac, av, &problem);
        pidns_end(&settings, job);
        if (has_network(&settings, &choice, job)) {
            release(&settings, job);
        }
        record_remove(&settings, job);
    }
    return 0;
}
