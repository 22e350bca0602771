/*
 * Does MPI work between these nodes, and how fast?
 *
 * Each check has a result known beforehand: a token that went round all ranks holds the sum of what
 * each of them added, and an allreduce gives every rank the same sums. A ping-pong between rank 0 and
 * the first rank on another node then gives latency and bandwidth. Rank 0 prints one line of JSON; any
 * wrong value ends the program with a message and exit status 1.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAG = 7,
    WIDTH = 1024,
    LATENCY_BYTES = 8,
    LATENCY_ROUNDS = 500,
    BANDWIDTH_BYTES = 1 << 20,
    BANDWIDTH_ROUNDS = 50,
    WARM_UP_ROUNDS = 10,
};

struct world {
    int rank;
    int size;
    int nodes;     /* how many different ones */
    int far_rank;  /* first rank that isn't on rank 0's node; the last rank if there is none */
    bool far_away; /* whether far_rank is on another node */
};

static void fail_unless(bool right, const char *what, int rank)
{
    if (right)
        return;
    fprintf(stderr, "ring: rank %d: wrong result of %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (!memory) {
        fprintf(stderr, "ring: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static struct world look_around(void)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "";
    struct world world = {0};
    int length;

    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    MPI_Get_processor_name(own, &length);

    char(*names)[MPI_MAX_PROCESSOR_NAME] = allocate((size_t)world.size * sizeof *names);
    MPI_Allgather(own, sizeof own, MPI_CHAR, names, sizeof own, MPI_CHAR, MPI_COMM_WORLD);

    world.far_rank = world.size - 1;
    for (int i = 0; i < world.size; i++) {
        int first = 0;

        while (strcmp(names[first], names[i]) != 0)
            first++;
        if (first != i)
            continue;
        world.nodes++;
        if (world.nodes == 2) {
            world.far_rank = i;
            world.far_away = true;
        }
    }
    free(names);
    return world;
}

/* Every rank adds its number (from 1) to a token that passes through all of them. */
static void check_ring(const struct world *world)
{
    int before = (world->rank + world->size - 1) % world->size;
    int after = (world->rank + 1) % world->size;
    long own = world->rank + 1;
    long token = own;
    long expected = (long)world->size * (world->size + 1) / 2;

    if (world->rank > 0) {
        MPI_Recv(&token, 1, MPI_LONG, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token += own;
    }
    /* A single rank would wait for itself in a plain send. */
    if (world->size > 1)
        MPI_Send(&token, 1, MPI_LONG, after, TAG, MPI_COMM_WORLD);
    if (world->rank > 0)
        return;
    if (world->size > 1)
        MPI_Recv(&token, 1, MPI_LONG, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fail_unless(token == expected, "the ring", world->rank);
}

static void check_allreduce(const struct world *world)
{
    long mine[WIDTH];
    long sums[WIDTH];
    long ranks = (long)world->size * (world->size + 1) / 2;

    for (long i = 0; i < WIDTH; i++)
        mine[i] = (world->rank + 1) * (i + 1);
    MPI_Allreduce(mine, sums, WIDTH, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < WIDTH; i++)
        fail_unless(sums[i] == ranks * (i + 1), "allreduce", world->rank);
}

static void ping_pong(const struct world *world, char *buffer, int bytes, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (world->rank == 0) {
            MPI_Send(buffer, bytes, MPI_CHAR, world->far_rank, TAG, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_CHAR, world->far_rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
        }
    }
}

/* Seconds a message of this size needs one way; the ranks that take no part sleep in a barrier. */
static double one_way_s(const struct world *world, int bytes, int rounds)
{
    double begin = 0;
    double end = 0;

    if (world->rank == 0 || world->rank == world->far_rank) {
        char *buffer = allocate((size_t)bytes);

        ping_pong(world, buffer, bytes, WARM_UP_ROUNDS);
        begin = MPI_Wtime();
        ping_pong(world, buffer, bytes, rounds);
        end = MPI_Wtime();
        free(buffer);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (end - begin) / (2.0 * rounds);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);

    struct world world = look_around();
    double latency_s = 0;
    double transfer_s = 0;

    check_ring(&world);
    check_allreduce(&world);
    if (world.size > 1) {
        latency_s = one_way_s(&world, LATENCY_BYTES, LATENCY_ROUNDS);
        transfer_s = one_way_s(&world, BANDWIDTH_BYTES, BANDWIDTH_ROUNDS);
    }
    if (world.rank == 0)
        printf("{\"schema\":1,\"ranks\":%d,\"nodes\":%d,\"ring\":\"right\",\"allreduce\":\"right\","
               "\"between_nodes\":%s,\"latency_us\":%.2f,\"bandwidth_mb_s\":%.1f}\n",
               world.size, world.nodes, world.far_away ? "true" : "false", latency_s * 1e6,
               transfer_s > 0 ? BANDWIDTH_BYTES / transfer_s / 1e6 : 0.0);
    MPI_Finalize();
    return 0;
}
