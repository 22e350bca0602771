/* The options are read here and understood by `isthmus-step-container`, so this table is all there is of them in C. Slurm
 * hands those of sbatch and salloc to each srun in the job; the batch script itself stays on the node. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "container.h"
#include "log.h"

static int take(int val, const char *value, int remote);

enum { IMAGE };

#define WORD(NAME, ARGUMENT, USAGE) {.option = {(NAME), (ARGUMENT), (USAGE), required_argument, 0, take}}
#define FLAG(NAME, USAGE) {.option = {(NAME), NULL, (USAGE), no_argument, 0, take}}

static struct {
    struct spank_option option;
    char *value; /* NULL where it was not given; "" for a flag */
} options[] = {
    [IMAGE] = WORD("container-image", "IMAGE|FILE", "run the tasks in this container image, one container a node"),
    WORD("container-mounts", "SRC:DST[:FLAGS][,...]", "show folders of the node in the container; flags: ro, rw"),
    WORD("container-workdir", "PATH", "where tasks start in the container; else the image's own"),
    WORD("container-env", "NAME[,NAME...]", "variables of the job that win over the image's"),
    FLAG("container-mount-home", "show the home in the container"),
    FLAG("no-container-mount-home", "do not show it (default)"),
    FLAG("container-remap-root", "be root in the container, of the user's own rights"),
    FLAG("no-container-remap-root", "be the same user as outside (default)"),
    FLAG("container-entrypoint", "start the image's entrypoint with the command as its arguments"),
    FLAG("no-container-entrypoint", "do not start it (default)"),
    FLAG("container-writable", "let tasks write to the root; what they write is lost with the step"),
    FLAG("container-readonly", "do not let them (default)"),
};

enum { COUNT = sizeof(options) / sizeof(*options) };

static int take(int val, const char *value, int remote)
{
    (void)remote;
    free(options[val].value);
    options[val].value = strdup(value ? value : "");
    return options[val].value ? 0 : -1;
}

void container_register(spank_t spank)
{
    for (int i = 0; i < COUNT; i++) {
        options[i].option.val = i;
        if (spank_option_register(spank, &options[i].option) != ESPANK_SUCCESS) {
            log_error("Slurm refused the option --%s", options[i].option.name);
        }
    }
}

bool container_is_asked(void)
{
    return options[IMAGE].value != NULL;
}

static bool is_any_given(void)
{
    bool given = false;

    for (int i = 0; i < COUNT; i++) {
        given = given || options[i].value;
    }
    return given;
}

/* Never returns: replaces this child by the command. */
static void run(const char *command, bool check, int output)
{
    char *words[COUNT + 3] = {(char *)command};
    int count = 1;

    if (check) {
        words[count++] = "--check";
    }
    for (int i = 0; i < COUNT; i++) {
        char *word = NULL;

        if (options[i].value && asprintf(&word, *options[i].value ? "--%s=%s" : "--%s", options[i].option.name,
                                         options[i].value) > 0) {
            words[count++] = word;
        }
    }
    if (dup2(output, STDOUT_FILENO) >= 0) {
        (void)execv(command, words);
    }
    log_error("%s cannot be started; an administrator looks at command= in plugstack.conf", command);
    _exit(1);
}

static bool read_all(int fd, char **text)
{
    FILE *file = fdopen(fd, "r");
    size_t size = 0;
    bool read = file && getdelim(text, &size, '\0', file) > 0;

    if (file) {
        (void)fclose(file);
    }
    return read;
}

/* The command prints its own error. */
static bool ask(const char *command, bool check, char **answer)
{
    int ends[2] = {-1, -1}, status = -1;
    bool answered = false;
    pid_t pid = pipe(ends) == 0 ? fork() : -1;

    if (pid == 0) {
        (void)close(ends[0]);
        run(command, check, ends[1]);
    } else if (pid > 0) {
        (void)close(ends[1]);
        answered = read_all(ends[0], answer);
        while (waitpid(pid, &status, 0) < 0) {
        }
    }
    return (answered || check) && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void container_submit(const struct settings *settings)
{
    bool check = spank_context() != S_CTX_LOCAL;
    char *answer = NULL;

    (void)unsetenv(CONTAINER_VARIABLE);
    if (is_any_given()) {
        if (!ask(settings->command, check, &answer) || (!check && setenv(CONTAINER_VARIABLE, answer, 1) != 0)) {
            exit(1);
        }
    }
    free(answer);
}
