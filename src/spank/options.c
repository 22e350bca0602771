/* An option without a value means private. Slurm turns the missing value into NULL in slurmstepd, "" in an
 * environment, and "(null)" in the prolog's, so all three are read as none given. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "settings.h"

static int take(int val, const char *value, int remote);

static struct choice given;
/* Why plugstack.conf is worth nothing; empty when it is well. */
static struct problem off;
static struct spank_option option = {
    .name = "pod-network",
    .arginfo = DRIVER_ARGUMENT,
    .usage = "give the job a network namespace of its own on each node: " DRIVER_USAGE,
    .has_arg = optional_argument,
    .cb = take,
};

static struct choice choice_read(const char *value)
{
    struct choice choice = {.given = true, .valid = true, .driver = DRIVER_PRIVATE};

    if (value && *value && strcmp(value, "(null)") != 0) {
        choice.valid = driver_read(value, &choice.driver);
        (void)snprintf(choice.text, sizeof(choice.text), "%s", value);
    }
    return choice;
}

/* Only this refuses a submission: Slurm ignores the later calls of a plugin that plugstack.conf calls optional. */
static int take(int val, const char *value, int remote)
{
    int rc = 0;

    (void)val;
    given = choice_read(value);
    if (!remote && !given.valid) {
        log_error("--pod-network=%s: there is no such network; choose " DRIVER_CHOICES, value);
        rc = -1;
    } else if (!remote && given.driver != DRIVER_NONE && *off.text) {
        log_error("--pod-network: the plugin is off until an administrator corrects %s", off.text);
        rc = -1;
    }
    return rc;
}

void options_register(spank_t spank, int ac, char **av)
{
    struct settings settings;

    (void)settings_read(&settings, ac, av, &off);
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
        log_error("Slurm refused the option --pod-network");
    }
}

const struct choice *options_given(void)
{
    return &given;
}

struct choice options_of_job(spank_t spank)
{
    struct choice choice = {.given = false};
    char *value = NULL;

    if (spank_option_getopt(spank, &option, &value) == ESPANK_SUCCESS) {
        choice = choice_read(value);
    }
    return choice;
}

void options_submit(spank_t spank)
{
    const char *reservation = getenv(RESERVATION);

    if (reservation && *reservation) {
        (void)spank_job_control_setenv(spank, RESERVATION, reservation, 1);
    }
}
