/*
 * hpcg --local X,Y,Z   points of each rank (weak scaling)
 *      --global X,Y,Z  points of all ranks together (strong scaling)
 *      --sets N        sets of fifty iterations; or --seconds S: as many as fill these
 *
 * Each number of points is a multiple of eight in each rank's box: four levels. Rank 0 prints one line
 * of JSON. Exit status: 0 verified, 1 a check failed, 2 wrong usage.
 */
#include "hpcg.h"
#include "program.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 1 << 12, MOST_SETS = 1 << 20, SETS_OF_SETUP = 10 };

#define SYMMETRY_LIMIT 1e-12
#define RESIDUAL_LIMIT 1e-6
#define ERROR_LIMIT 1e-4

struct options {
    int points[AXES];
    bool is_whole;
    int sets;
    int seconds;
};

struct checks {
    double matrix;   /* how far from symmetric, relative to the larger side */
    double cycle;
    double error;    /* of the solution, which is 1 everywhere */
    double residual;
    bool is_repeated; /* each set ends at the same residual */
};

static bool read_points(char *text, int points[AXES])
{
    for (int axis = 0; axis < AXES; axis++) {
        char *word = strtok(axis ? NULL : text, ",");

        if (!word || !(points[axis] = number(word, MOST_POINTS)))
            return false;
    }
    return !strtok(NULL, ",");
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {.points = {0}};
    bool is_right = argc == 5;

    for (int place = 1; is_right && place < argc; place += 2) {
        if (!strcmp(argv[place], "--sets"))
            is_right = (options.sets = number(argv[place + 1], MOST_SETS)) > 0;
        else if (!strcmp(argv[place], "--seconds"))
            is_right = (options.seconds = number(argv[place + 1], MOST_SETS)) > 0;
        else if ((options.is_whole = !strcmp(argv[place], "--global")) || !strcmp(argv[place], "--local"))
            is_right = read_points(argv[place + 1], options.points);
        else
            is_right = false;
    }
    if (!is_right || !options.points[0] || !(options.sets || options.seconds))
        refuse("hpcg", "wrong options", "say for example: hpcg --local 16,16,16 --sets 1");
    return options;
}

/* Numbers that differ from point to point and from rank to rank, the same in each run. */
static void scatter(const struct level *level, double *vector, unsigned seed)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    seed += 7919u * (unsigned)rank;
    for (int row = 0; row < level->box.own; row++) {
        seed = seed * 1664525u + 1013904223u;
        vector[row] = seed / 4294967296.0;
    }
}

static double asymmetry(double one, double other)
{
    return fabs(one - other) / fmax(fabs(one), fabs(other));
}

static void check_symmetry(struct level *level, struct checks *checks)
{
    double *x = level_vector(level), *y = level_vector(level), *image = level_vector(level), one;

    scatter(level, x, 1);
    scatter(level, y, 2);
    level_multiply(level, y, image);
    one = level_dot(level, x, image);
    level_multiply(level, x, image);
    checks->matrix = asymmetry(one, level_dot(level, y, image));
    level_cycle(level, y, image);
    one = level_dot(level, x, image);
    level_cycle(level, x, image);
    checks->cycle = asymmetry(one, level_dot(level, y, image));
    free(x);
    free(y);
    free(image);
}

static double error_of(const struct level *level, const double *solution)
{
    double own = 0, all = 0;

    for (int row = 0; row < level->box.own; row++)
        own = fmax(own, fabs(solution[row] - 1));
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* The first set tells how many fill the time, for all ranks alike. */
static int sets_wanted(const struct options *options, double first)
{
    int sets = options->sets ? options->sets : (int)ceil(options->seconds / first);

    MPI_Bcast(&sets, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return sets < 1 ? 1 : sets > MOST_SETS ? MOST_SETS : sets;
}

static double run_sets(struct level *level, const struct options *options, int *sets, struct checks *checks)
{
    double *ones = level_vector(level), *right = level_vector(level), *solution = level_vector(level), seconds;
    struct solved solved;

    for (int row = 0; row < level->box.all; row++)
        ones[row] = 1;
    level_multiply(level, ones, right);
    /* The first one warms up. */
    level_solve(level, right, solution, &solved);
    checks->residual = solved.residual;
    checks->error = error_of(level, solution);
    checks->is_repeated = true;
    *sets = sets_wanted(options, solved.seconds);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime();
    for (int set = 0; set < *sets; set++) {
        level_solve(level, right, solution, &solved);
        checks->is_repeated = checks->is_repeated && fabs(solved.residual - checks->residual) <= 1e-6 * checks->residual;
    }
    return MPI_Wtime() - seconds;
}

static bool is_verified(const struct checks *checks)
{
    return checks->matrix <= SYMMETRY_LIMIT && checks->cycle <= SYMMETRY_LIMIT && checks->residual <= RESIDUAL_LIMIT &&
           checks->error <= ERROR_LIMIT && checks->is_repeated;
}

static int report(const struct level *level, const struct checks *checks, int sets, const double seconds[2], double work)
{
    const int *ranks = level->box.ranks, *points = level->box.points;
    double all_seconds = seconds[1] + sets * seconds[0] / SETS_OF_SETUP;

    printf("{\"program\": \"hpcg-like\", \"ranks\": %d, \"grid\": [%d, %d, %d], \"local\": [%d, %d, %d], "
           "\"sets\": %d, \"iterations\": %d, \"setup_seconds\": %.6f, \"seconds\": %.6f, \"gflops\": %.6f, "
           "\"asymmetry_matrix\": %.3e, \"asymmetry_cycle\": %.3e, \"residual\": %.6e, \"error\": %.3e, "
           "\"verified\": %s}\n",
           ranks[0] * ranks[1] * ranks[2], ranks[0], ranks[1], ranks[2], points[0], points[1], points[2], sets,
           sets * ITERATIONS, seconds[0], seconds[1], sets * work / all_seconds / 1e9, checks->matrix, checks->cycle,
           checks->residual, checks->error, is_verified(checks) ? "true" : "false");
    return is_verified(checks) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct level level = {.coarser = NULL};
    struct checks checks = {0};
    struct options options;
    double own[2], longest[2] = {0}, work;
    int rank, ranks, sets, status = EXIT_SUCCESS;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    options = read_options(argc, argv);
    if (!box_shape(&level.box, options.points, options.is_whole, ranks))
        refuse("hpcg", "no boxes of multiples of eight points for so many ranks", "take other points, or other ranks");

    own[0] = MPI_Wtime();
    level_make(&level, LEVELS);
    own[0] = MPI_Wtime() - own[0];
    check_symmetry(&level, &checks);
    own[1] = run_sets(&level, &options, &sets, &checks);
    work = level_operations(&level);
    MPI_Reduce(own, longest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        status = report(&level, &checks, sets, longest, work);
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
