#include "program.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void refuse(const char *program, const char *problem, const char *remedy)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "%s: %s; %s\n", program, problem, remedy);
    MPI_Finalize();
    exit(USAGE);
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);

    if (!memory) {
        fprintf(stderr, "out of memory: %zu times %zu bytes; take a smaller problem or more ranks\n", count, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

int number(const char *text, int limit)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    return errno || end == text || *end || value < 1 || value > limit ? 0 : (int)value;
}
