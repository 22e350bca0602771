/* The plan comes by the environment, so a user can write one: what it says is done with that user's rights alone. */
#include "container_plan.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "container.h"

enum { SCHEMA = 1, PLAN_MAX = 128 * 1024, WORDS_MAX = 4096 };

#define NVIDIA "/dev/nvidiactl"
#define MUNGE "/run/munge"

static char **words_of(struct json_object *object, const char *name, int extra, int *count)
{
    struct json_object *array = NULL;
    bool is_array = json_object_object_get_ex(object, name, &array) && json_object_is_type(array, json_type_array);
    size_t length = is_array ? json_object_array_length(array) : 0;
    char **words = is_array && length < WORDS_MAX ? calloc(length + (size_t)extra + 1, sizeof(*words)) : NULL;

    *count = 0;
    for (size_t i = 0; words && i < length; i++) {
        const char *text = json_object_get_string(json_object_array_get_idx(array, i));

        words[*count] = text ? strdup(text) : NULL;
        *count += words[*count] ? 1 : 0;
    }
    return words;
}

/* What only the node knows: whether it has GPUs, and a munge for MPI whose users are root in their containers. */
static void add_facts(char **environment, int count)
{
    if (access(NVIDIA, F_OK) == 0) {
        environment[count++] = strdup("APPTAINER_NV=1");
    }
    if (access(MUNGE, F_OK) == 0) {
        environment[count++] = strdup("APPTAINER_BIND=" MUNGE);
    }
}

static bool parse(const char *text, struct plan *plan)
{
    struct json_object *object = json_tokener_parse(text), *value = NULL;
    bool well = object && json_object_object_get_ex(object, "schema", &value) && json_object_get_int(value) == SCHEMA;
    int commands = 0, variables = 0, kept = 0;

    if (well) {
        plan->command = words_of(object, "command", 0, &commands);
        plan->environment = words_of(object, "environment", 2, &variables);
        plan->kept = words_of(object, "kept", 0, &kept);
        plan->entrypoint = words_of(object, "entrypoint", 0, &plan->entrypoint_count);
        plan->workdir = json_object_object_get_ex(object, "workdir", &value) ? strdup(json_object_get_string(value)) : NULL;
        well = plan->command && commands > 0 && plan->environment && plan->kept && plan->entrypoint && plan->workdir;
    }
    if (well) {
        add_facts(plan->environment, variables);
    }
    (void)json_object_put(object);
    return well;
}

bool plan_read(spank_t spank, struct plan *plan, struct problem *problem)
{
    char *text = calloc(1, PLAN_MAX);
    bool is_there = text && spank_getenv(spank, CONTAINER_VARIABLE, text, PLAN_MAX) == ESPANK_SUCCESS;
    bool well = is_there && parse(text, plan);

    if (!is_there) {
        (void)problem_set(problem, "srun's word on it did not come here; leave --export out, or say --export=ALL,...");
    } else if (!well) {
        (void)problem_set(problem, CONTAINER_VARIABLE " is of another version; use the srun of this cluster");
    }
    free(text);
    return well;
}

static void free_words(char **words)
{
    for (char **word = words; word && *word; word++) {
        free(*word);
    }
    free(words);
}

void plan_free(struct plan *plan)
{
    free_words(plan->command);
    free_words(plan->environment);
    free_words(plan->kept);
    free_words(plan->entrypoint);
    free(plan->workdir);
    *plan = (struct plan){0};
}

bool plan_keeps(const struct plan *plan, const char *name)
{
    bool keeps = false;

    for (char **word = plan->kept; *word && !keeps; word++) {
        size_t length = strlen(*word);
        bool prefix = length > 0 && (*word)[length - 1] == '*';

        keeps = prefix ? strncmp(name, *word, length - 1) == 0 : strcmp(name, *word) == 0;
    }
    return keeps;
}
