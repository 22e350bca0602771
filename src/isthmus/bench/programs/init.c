/* Starts MPI and ends it: how long a step takes is the time of its start. Rank 0 prints one line of JSON. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, ranks, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* Ranks that know nothing of one another are each a rank 0. */
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"program\": \"init\", \"ranks\": %d, \"verified\": %s}\n", ranks, sum == ranks ? "true" : "false");
    MPI_Finalize();
    return sum != ranks;
}
