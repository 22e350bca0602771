/* A bell is a datagram socket with an abstract name (unix(7)), which belongs to the network namespace; /proc/net/unix lists
 * those of the reader's own. What is sent is empty: all it can do is to make srun ask earlier. */
#include "bell.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RINGS_MAX = 4, LISTED_MAX = 4096 };

struct name {
    struct sockaddr_un address;
    socklen_t length;
};

static struct name name_of(uint32_t job, int process)
{
    struct name name = {.address = {.sun_family = AF_UNIX}};
    int length = snprintf(name.address.sun_path + 1, sizeof(name.address.sun_path) - 1, "isthmus-waiting-%" PRIu32 "-%d",
                          job, process);

    name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return name;
}

int bell_hang(uint32_t job)
{
    struct name name = name_of(job, (int)getpid());
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&name.address, name.length) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

void bell_silence(int bell)
{
    char nothing;

    while (recv(bell, &nothing, sizeof(nothing), 0) >= 0) {
    }
}

/* The processes that wait, no more than fit. */
static size_t list(uint32_t job, int *processes, size_t size)
{
    FILE *file = fopen("/proc/net/unix", "re");
    char *line = NULL, wanted[64];
    size_t room = 0, count = 0;

    (void)snprintf(wanted, sizeof(wanted), "@isthmus-waiting-%" PRIu32 "-", job);
    while (file && count < size && getline(&line, &room, file) > 0) {
        const char *found = strstr(line, wanted);

        if (found) {
            processes[count++] = atoi(found + strlen(wanted));
        }
    }
    free(line);
    if (file) {
        (void)fclose(file);
    }
    return count;
}

static void ring(int fd, uint32_t job, int process)
{
    struct name name = name_of(job, process);

    (void)sendto(fd, "", 0, 0, (struct sockaddr *)&name.address, name.length);
}

void bell_ring(uint32_t job)
{
    static int processes[LISTED_MAX];
    size_t count = list(job, processes, LISTED_MAX);
    int fd = count ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    unsigned int first = 0;

    if (fd >= 0) {
        /* From a random start: otherwise those that cannot start yet could be the only ones asked. */
        if (getrandom(&first, sizeof(first), GRND_NONBLOCK) != sizeof(first)) {
            first = (unsigned int)getpid();
        }
        for (size_t rung = 0; rung < count && rung < RINGS_MAX; rung++) {
            ring(fd, job, processes[(first + rung) % count]);
        }
        (void)close(fd);
    }
}
