/* Requests and replies as JSON, version 1. A reply is trusted only as far as it was read: every text has a bound and
 * a type, and what is missing or too long is a problem, never a default. */
#include "daemon.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1, DEPTH_MAX = 8 };
/* Longer the prolog does not wait: srun looks for ready nodes after 0.1 s, and then only after one second more. */
static const double ANSWER_S = 0.005;

static struct json_object *request(const char *op, const char *about, uint32_t number)
{
    struct json_object *object = json_object_new_object();

    json_object_object_add(object, "version", json_object_new_int(VERSION));
    json_object_object_add(object, "op", json_object_new_string(op));
    json_object_object_add(object, about, json_object_new_int64(number));
    return object;
}

static const char *text_of(struct json_object *object, const char *key)
{
    struct json_object *value = NULL;
    const char *text = NULL;

    if (json_object_object_get_ex(object, key, &value) && json_object_is_type(value, json_type_string)) {
        text = json_object_get_string(value);
        text = strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
    }
    return text;
}

/* Returns whether the text is there, not empty, and fits. */
static bool copy_text(struct json_object *object, const char *key, char *to, size_t size)
{
    const char *text = text_of(object, key);
    bool fits = text && *text && strlen(text) < size;

    strcpy(to, fits ? text : "");
    return fits;
}

static struct json_object *parse(const char *line)
{
    struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
    struct json_object *object = NULL;

    if (tokener) {
        json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
        object = json_tokener_parse_ex(tokener, line, (int)strlen(line));
        json_tokener_free(tokener);
    }
    if (object && !json_object_is_type(object, json_type_object)) {
        json_object_put(object);
        object = NULL;
    }
    return object;
}

static bool accepted(struct json_object *reply, struct problem *problem)
{
    struct json_object *version = NULL, *ok = NULL, *error = NULL;
    bool accepts = false;

    if (!json_object_object_get_ex(reply, "version", &version) || !json_object_is_type(version, json_type_int) ||
        json_object_get_int(version) != VERSION) {
        (void)problem_set(problem, "the network daemon speaks another version; install plugin and daemon of one release");
    } else if (!json_object_object_get_ex(reply, "ok", &ok) || !json_object_is_type(ok, json_type_boolean)) {
        (void)problem_set(problem, "the network daemon's answer does not say whether it is well; see its log");
    } else if (json_object_get_boolean(ok)) {
        accepts = true;
    } else {
        const char *message = json_object_object_get_ex(reply, "error", &error) ? text_of(error, "message") : NULL;

        (void)problem_set(problem, "%s", message ? message : "the network daemon refused without a reason; see its log");
    }
    return accepts;
}

/* Takes the request; gives the reply, which the caller frees, or NULL and the problem. */
static struct json_object *ask(const struct settings *settings, struct json_object *asked, const struct deadline *deadline,
                               struct problem *problem)
{
    const char *text = json_object_to_json_string_ext(asked, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    size_t length = strlen(text) + 1;
    char *line = malloc(LINE_MAX_BYTES);
    struct json_object *reply = NULL;

    if (!line) {
        (void)problem_set(problem, "no memory for a request");
    } else if (length > LINE_MAX_BYTES) {
        (void)problem_set(problem, "the job's description is over 64 KiB; give it fewer or more evenly named nodes");
    } else {
        memcpy(line, text, length - 1);
        line[length - 1] = '\n';
        if (socket_exchange(settings->socket, line, length, line, deadline, problem)) {
            reply = parse(line);
            if (!reply) {
                (void)problem_set(problem, "the network daemon's answer is no JSON object; see its log");
            } else if (!accepted(reply, problem)) {
                json_object_put(reply);
                reply = NULL;
            }
        }
    }
    free(line);
    json_object_put(asked);
    return reply;
}

/* The daemon gives up a little earlier, so that its reason arrives rather than our impatience. */
static int daemons_timeout_s(int timeout_s)
{
    int earlier = timeout_s - 1 - timeout_s / 10;

    return earlier > 1 ? earlier : 1;
}

bool daemon_prepare(const struct settings *settings, const struct job *job, const struct deadline *deadline,
                    struct problem *problem)
{
    struct json_object *asked = request("job_prepare", "job", job->id), *reply;

    json_object_object_add(asked, "uid", json_object_new_int64(job->uid));
    json_object_object_add(asked, "user", json_object_new_string(job->user));
    json_object_object_add(asked, "name", json_object_new_string(job->name));
    json_object_object_add(asked, "nodes", json_object_new_string(job->nodes));
    json_object_object_add(asked, "driver", json_object_new_string(driver_name(job->driver)));
    json_object_object_add(asked, "timeout_s", json_object_new_int(daemons_timeout_s(deadline->limit_s)));
    json_object_object_add(asked, "answer_s", json_object_new_double_s(ANSWER_S, "0.005"));
    if (*job->reservation) {
        json_object_object_add(asked, "reservation", json_object_new_string(job->reservation));
    }
    reply = ask(settings, asked, deadline, problem);
    json_object_put(reply);
    return reply != NULL;
}

static bool read_network(struct json_object *reply, struct network *network, struct problem *problem)
{
    const char *state = text_of(reply, "state");
    bool known = true;

    *network = (struct network){.state = NETWORK_ABSENT};
    if (!state) {
        known = false;
    } else if (strcmp(state, "ready") == 0) {
        network->state = NETWORK_READY;
        known = copy_text(reply, "netns", network->netns, sizeof(network->netns)) &&
                copy_text(reply, "leg", network->leg, sizeof(network->leg));
        (void)copy_text(reply, "resolv_conf", network->resolv_conf, sizeof(network->resolv_conf));
    } else if (strcmp(state, "failed") == 0) {
        const char *error = text_of(reply, "error");

        network->state = NETWORK_FAILED;
        (void)problem_set(&network->error, "%s", error ? error : "the network daemon gave no reason; see its log");
    } else if (strcmp(state, "preparing") == 0) {
        network->state = NETWORK_PREPARING;
    } else {
        known = strcmp(state, "absent") == 0;
    }
    return known || problem_set(problem, "the network daemon's answer about the job makes no sense; see its log");
}

bool daemon_get(const struct settings *settings, uint32_t job, const struct deadline *deadline, struct network *network,
                struct problem *problem)
{
    struct json_object *reply = ask(settings, request("job_get", "job", job), deadline, problem);
    bool known = reply && read_network(reply, network, problem);

    json_object_put(reply);
    return known;
}

bool daemon_release(const struct settings *settings, uint32_t job, const struct deadline *deadline, struct problem *problem)
{
    struct json_object *reply = ask(settings, request("job_release", "job", job), deadline, problem);

    json_object_put(reply);
    return reply != NULL;
}

bool daemon_login(const struct settings *settings, const char *op, uint32_t uid, const struct deadline *deadline,
                  struct login *login, struct problem *problem)
{
    struct json_object *asked = request(op, "uid", uid), *reply, *init = NULL;
    bool known = false;

    json_object_object_add(asked, "pid", json_object_new_int64(getpid()));
    reply = ask(settings, asked, deadline, problem);
    if (reply) {
        known = json_object_object_get_ex(reply, "init", &init) && json_object_is_type(init, json_type_int) &&
                copy_text(reply, "netns", login->netns, sizeof(login->netns));
        login->init = known ? json_object_get_int(init) : 0;
        known = (known && login->init > 1) ||
                problem_set(problem, "the network daemon's answer about the login pod makes no sense; see its log");
    }
    json_object_put(reply);
    return known;
}
