/* Begins and ends MPI with some traffic between: what fails at start fails here. Exits 1 on a wrong result. */
#include <mpi.h>
#include <stdio.h>

enum { ALLREDUCES = 20, BROADCAST_BYTES = 1 << 20 };

static char payload[BROADCAST_BYTES];

int main(int argc, char **argv)
{
    int rank, size, sum;
    int wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Ranks that did not find each other are as wrong as a crash. */
    if (argc < 2 || sscanf(argv[1], "%d", &sum) != 1 || sum != size)
        wrong = 1;
    for (int i = 0; i < ALLREDUCES; i++) {
        int own = rank + i;

        MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong |= sum != size * (size - 1) / 2 + size * i;
    }
    payload[BROADCAST_BYTES - 1] = (char)(rank == 0);
    MPI_Bcast(payload, BROADCAST_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    wrong |= payload[BROADCAST_BYTES - 1] != 1;
    MPI_Finalize();
    return wrong;
}
