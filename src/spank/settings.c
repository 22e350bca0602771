/* A word that is wrong makes all of them worth nothing: half a configuration could put a job in the wrong network. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static const struct settings built_in = {
    .fallback = DRIVER_NONE,
    .socket = "/run/isthmus/networkd-root.sock",
    .timeout_s = 30,
    .command = "/opt/isthmus/bin/isthmus-step-container",
};
/* Slurm's own limit of a prolog may be as low; longer would only hide a dead daemon. */
enum { TIMEOUT_MAX_S = 600, RESERVED_S = 120 };

static bool read_default(struct settings *settings, const char *value, struct problem *problem)
{
    return driver_read(value, &settings->fallback) || problem_set(problem, "not one of " DRIVER_CHOICES);
}

static bool read_socket(struct settings *settings, const char *value, struct problem *problem)
{
    bool fits = *value == '/' && strlen(value) < sizeof(((struct sockaddr_un *)0)->sun_path);

    settings->socket = fits ? value : settings->socket;
    return fits || problem_set(problem, "not an absolute path of at most 107 characters");
}

static bool read_timeout(struct settings *settings, const char *value, struct problem *problem)
{
    char *end = NULL;
    long seconds = strtol(value, &end, 10);
    bool valid = *value != '\0' && *end == '\0' && seconds >= 1 && seconds <= TIMEOUT_MAX_S;

    settings->timeout_s = valid ? (int)seconds : settings->timeout_s;
    return valid || problem_set(problem, "not a whole number from 1 to %d", TIMEOUT_MAX_S);
}

static bool read_command(struct settings *settings, const char *value, struct problem *problem)
{
    settings->command = value;
    return *value == '/' || problem_set(problem, "not an absolute path");
}

static bool read_init(struct settings *settings, const char *value, struct problem *problem)
{
    settings->init = value;
    return *value == '/' || problem_set(problem, "not an absolute path");
}

static bool read_rule(struct settings *settings, const char *value, struct problem *problem)
{
    const char *colon = strchr(value, ':');
    enum driver driver = DRIVER_NONE;

    (void)settings;
    return (colon && colon > value && driver_read(colon + 1, &driver)) ||
           problem_set(problem, "not a name, a colon and one of " DRIVER_CHOICES);
}

static const struct {
    const char *key;
    bool (*read)(struct settings *settings, const char *value, struct problem *problem);
    bool rule;
} keys[] = {
    {"default=", read_default, false},    {"socket=", read_socket, false}, {"timeout_s=", read_timeout, false},
    {"command=", read_command, false},    {"init=", read_init, false},     {"partition=", read_rule, true},
    {"user=", read_rule, true},
};

static bool read_word(struct settings *settings, const char *word, size_t *identity, struct problem *problem)
{
    struct problem why = {"unknown; there are default=, socket=, timeout_s=, command=, init=, partition= and user="};
    bool valid = false;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        size_t length = strlen(keys[i].key);

        if (strncmp(word, keys[i].key, length) == 0) {
            valid = keys[i].read(settings, word + length, &why);
            *identity = keys[i].rule && valid ? (size_t)(strchr(word, ':') - word) + 1 : length;
        }
    }
    return valid || problem_set(problem, "plugstack.conf: %s: %s", word, why.text);
}

/* Returns whether a word, up to its value or a rule's driver, stands before too. */
static bool is_repeated(char **av, int index, size_t identity)
{
    bool repeated = false;

    for (int i = 0; i < index; i++) {
        repeated = repeated || strncmp(av[i], av[index], identity) == 0;
    }
    return repeated;
}

bool settings_read(struct settings *settings, int ac, char **av, struct problem *problem)
{
    struct settings read = built_in;
    bool valid = true;

    for (int i = 0; i < ac; i++) {
        struct problem why;
        size_t identity = 0;
        bool good = read_word(&read, av[i], &identity, &why);

        if (good && is_repeated(av, i, identity)) {
            good = problem_set(&why, "plugstack.conf: %.*s is given twice", (int)identity - 1, av[i]);
        }
        if (valid && !good) {
            *problem = why;
            valid = false;
        }
    }
    *settings = valid ? read : built_in;
    settings->socket = read.socket;
    settings->ac = valid ? ac : 0;
    settings->av = av;
    return valid;
}

int settings_patience_s(const struct settings *settings, bool reserved)
{
    return reserved && settings->timeout_s < RESERVED_S ? RESERVED_S : settings->timeout_s;
}

bool settings_rule(const struct settings *settings, const char *kind, const char *name, enum driver *driver)
{
    size_t kind_length = strlen(kind), name_length = name ? strlen(name) : 0;
    bool found = false;

    for (int i = 0; name && !found && i < settings->ac; i++) {
        const char *word = settings->av[i];

        found = strncmp(word, kind, kind_length) == 0 && word[kind_length] == '=' &&
                strncmp(word + kind_length + 1, name, name_length) == 0 &&
                word[kind_length + 1 + name_length] == ':' && driver_read(word + kind_length + name_length + 2, driver);
    }
    return found;
}
