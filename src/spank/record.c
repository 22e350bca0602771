/* Files of one line below /run: they end with the machine, as the jobs do. Root writes them; srun reads those of networks. */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "spank"

struct path {
    char text[PATH_MAX];
};

static struct path path_of(const struct settings *settings, uint32_t job, const char *suffix)
{
    int folder = (int)(strrchr(settings->socket, '/') - settings->socket);
    struct path path;

    (void)snprintf(path.text, sizeof(path.text), "%.*s/" FOLDER "/%" PRIu32 ".%s", folder, settings->socket, job, suffix);
    return path;
}

static void make_folders(struct path path)
{
    char *file = strrchr(path.text, '/');
    char *folder;

    *file = '\0';
    folder = strrchr(path.text, '/');
    *folder = '\0';
    (void)mkdir(path.text, 0755);
    *folder = '/';
    (void)mkdir(path.text, 0755);
}

static bool write_line(const struct path *path, const char *text, mode_t mode, struct problem *problem)
{
    int fd = open(path->text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    bool written = fd >= 0 && dprintf(fd, "%s\n", text) == (int)strlen(text) + 1 && fchmod(fd, mode) == 0;

    if (!written) {
        (void)problem_set(problem, "%s cannot be written: %s", path->text, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return written;
}

static bool read_line(const struct path *path, char *text, size_t size)
{
    int fd = open(path->text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0) {
        (void)close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return length > 0;
}

bool record_driver(const struct settings *settings, uint32_t job, enum driver driver, struct problem *problem)
{
    struct path path = path_of(settings, job, "driver");

    make_folders(path);
    return write_line(&path, driver_name(driver), 0644, problem);
}

bool record_error(const struct settings *settings, uint32_t job, const char *text, struct problem *problem)
{
    struct path path = path_of(settings, job, "error");

    make_folders(path);
    return write_line(&path, text, 0644, problem);
}

bool record_read_driver(const struct settings *settings, uint32_t job, enum driver *driver)
{
    struct path path = path_of(settings, job, "driver");
    char text[16];

    return read_line(&path, text, sizeof(text)) && driver_read(text, driver);
}

bool record_read_error(const struct settings *settings, uint32_t job, struct problem *text)
{
    struct path path = path_of(settings, job, "error");

    return read_line(&path, text->text, sizeof(text->text));
}

bool record_first(const struct settings *settings, uint32_t job, pid_t first, unsigned long long began,
                  struct problem *problem)
{
    struct path path = path_of(settings, job, "init");
    char text[64];

    make_folders(path);
    (void)snprintf(text, sizeof(text), "%d %llu", (int)first, began);
    return write_line(&path, text, 0600, problem);
}

bool record_read_first(const struct settings *settings, uint32_t job, pid_t *first, unsigned long long *began)
{
    struct path path = path_of(settings, job, "init");
    char text[64];
    bool there = read_line(&path, text, sizeof(text));

    if (there && sscanf(text, "%d %llu", first, began) != 2) {
        *first = 0;
    }
    return there;
}

void record_remove(const struct settings *settings, uint32_t job)
{
    static const char *const suffixes[] = {"driver", "error", "init"};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        struct path path = path_of(settings, job, suffixes[i]);

        (void)unlink(path.text);
    }
}
