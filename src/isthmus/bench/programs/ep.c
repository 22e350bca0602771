/*
 * EP, "embarrassingly parallel", of the NAS Parallel Benchmarks, written from their specification
 * (The NAS Parallel Benchmarks, RNR-94-007, section 2.2.1): pairs of uniform random numbers become
 * pairs of Gaussian ones, whose sums and counts in ten square annuli are known beforehand.
 *
 * ep CLASS, or a name that says it: ep.CLASS.RANKS. Rank 0 prints one line of JSON. Exit status: 0
 * verified, 1 another result than the published one, 2 wrong usage.
 */
#include "program.h"

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANNULI = 10, BATCH_LOG2 = 16 };

#define MODULUS_MASK ((UINT64_C(1) << 46) - 1)
#define MULTIPLIER UINT64_C(1220703125) /* 5^13 */
#define SEED UINT64_C(271828183)
#define TOLERANCE 1e-8

struct class {
    char name;
    int pairs_log2;
    double sum_x;
    double sum_y;
};

static const struct class CLASSES[] = {
    {'S', 24, -3.247834652034740e3, -6.958407078382297e3}, {'W', 25, -2.863319731645753e3, -6.320053679109499e3},
    {'A', 28, -4.295875165629892e3, -1.580732573678431e4}, {'B', 30, 4.033815542441498e4, -2.660669192809235e4},
    {'C', 32, 4.764367927995374e4, -8.084072988043731e4},
};

struct result {
    double sums[2];
    double counts[ANNULI];
};

/* Products wrap at 2^64, which 2^46 divides: what is left of them is exact. */
static uint64_t multiply(uint64_t left, uint64_t right)
{
    return left * right & MODULUS_MASK;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t found = 1;

    for (; exponent; exponent >>= 1, base = multiply(base, base))
        if (exponent & 1)
            found = multiply(found, base);
    return found;
}

static double uniform(uint64_t *state)
{
    *state = multiply(*state, MULTIPLIER);
    return 2 * ldexp((double)*state, -46) - 1;
}

/* Batches are independent: each begins where its first number stands in the one sequence of all. */
static void add_batch(uint64_t batch, struct result *result)
{
    const uint64_t pairs = UINT64_C(1) << BATCH_LOG2;
    uint64_t state = multiply(SEED, power(MULTIPLIER, 2 * pairs * batch));

    for (uint64_t pair = 0; pair < pairs; pair++) {
        double x = uniform(&state), y = uniform(&state), square = x * x + y * y, factor, far;

        if (square > 1)
            continue;
        factor = sqrt(-2 * log(square) / square);
        x *= factor;
        y *= factor;
        far = fmax(fabs(x), fabs(y));
        result->counts[(int)far]++;
        result->sums[0] += x;
        result->sums[1] += y;
    }
}

static const struct class *class_named(const char *name)
{
    for (size_t place = 0; place < sizeof CLASSES / sizeof *CLASSES; place++)
        if (name && name[0] == CLASSES[place].name && !name[1])
            return &CLASSES[place];
    return NULL;
}

/* A link ep.A.4 is class A with four ranks, as the benchmark's own programs are called. */
static const struct class *chosen(int argc, char **argv, int ranks)
{
    const char *base = strrchr(argv[0], '/');
    char letter[2] = "", problem[120];
    int wanted = 0, end = 0;

    base = base ? base + 1 : argv[0];
    if (argc == 1 && sscanf(base, "ep.%1[A-Z].%d%n", letter, &wanted, &end) == 2 && !base[end]) {
        if (wanted != ranks) {
            snprintf(problem, sizeof problem, "%.40s is for %d ranks, and there are %d", base, wanted, ranks);
            refuse("ep", problem, "start so many, or say the class: ep A");
        }
        return class_named(letter);
    }
    return argc == 2 ? class_named(argv[1]) : NULL;
}

static bool near(double found, double known)
{
    return fabs((found - known) / known) <= TOLERANCE;
}

static int report(const struct class *class, const struct result *result, double seconds, int ranks)
{
    bool verified = near(result->sums[0], class->sum_x) && near(result->sums[1], class->sum_y);
    double pairs = 0;

    printf("{\"program\": \"ep\", \"class\": \"%c\", \"ranks\": %d, \"counts\": [", class->name, ranks);
    for (int annulus = 0; annulus < ANNULI; annulus++) {
        printf("%s%.0f", annulus ? ", " : "", result->counts[annulus]);
        pairs += result->counts[annulus];
    }
    printf("], \"pairs\": %.0f, \"sum_x\": %.15e, \"sum_y\": %.15e, \"seconds\": %.6f, \"mops\": %.3f, "
           "\"verified\": %s}\n",
           pairs, result->sums[0], result->sums[1], seconds, ldexp(1e-6, class->pairs_log2 + 1) / seconds,
           verified ? "true" : "false");
    return verified ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct result own = {0}, all = {0};
    const struct class *class;
    double began, seconds, longest = 0;
    int rank, ranks, status = EXIT_SUCCESS;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    class = chosen(argc, argv, ranks);
    if (!class)
        refuse("ep", "no class, or an unknown one", "say S, W, A, B or C: ep W");

    MPI_Barrier(MPI_COMM_WORLD);
    began = MPI_Wtime();
    for (uint64_t batch = (uint64_t)rank; batch < UINT64_C(1) << (class->pairs_log2 - BATCH_LOG2); batch += (uint64_t)ranks)
        add_batch(batch, &own);
    MPI_Reduce(own.sums, all.sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(own.counts, all.counts, ANNULI, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    seconds = MPI_Wtime() - began;
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    if (rank == 0)
        status = report(class, &all, longest, ranks);
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
