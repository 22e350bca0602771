/*
 * The matrix has 26 on its diagonal and -1 for each of up to 26 neighbours of a point. It is kept as
 * any sparse matrix is, so that memory is read as real programs read it. Conjugate gradients are
 * preconditioned by one V-cycle: symmetric Gauss-Seidel before and after, injection between levels.
 */
#include "hpcg.h"
#include "program.h"

#include <math.h>
#include <mpi.h>
#include <string.h>

#define DIAGONAL 26.0

double *level_vector(const struct level *level)
{
    return allocate((size_t)level->box.all, sizeof(double));
}

static void fill_row(struct level *level, int x, int y, int z)
{
    int row = box_index(&level->box, x, y, z), *columns = level->columns + (size_t)row * NEIGHBOURS, count = 0;
    double *values = level->values + (size_t)row * NEIGHBOURS;

    for (int near = 0; near < NEIGHBOURS; near++) {
        int column = box_index(&level->box, x + near % 3 - 1, y + near / 3 % 3 - 1, z + near / 9 - 1);

        if (column < 0)
            continue;
        columns[count] = column;
        values[count++] = column == row ? DIAGONAL : -1;
    }
    level->counts[row] = count;
}

static void make_matrix(struct level *level)
{
    size_t own = (size_t)level->box.own;
    double entries = 0;

    level->columns = allocate(own * NEIGHBOURS, sizeof *level->columns);
    level->values = allocate(own * NEIGHBOURS, sizeof *level->values);
    level->counts = allocate(own, sizeof *level->counts);
    for (int z = 0; z < level->box.points[2]; z++)
        for (int y = 0; y < level->box.points[1]; y++)
            for (int x = 0; x < level->box.points[0]; x++)
                fill_row(level, x, y, z);
    for (size_t row = 0; row < own; row++)
        entries += level->counts[row];
    MPI_Allreduce(&entries, &level->nonzeros, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void level_make(struct level *level, int depth)
{
    struct level *coarser;

    box_make(&level->box);
    make_matrix(level);
    if (depth == 1)
        return;
    coarser = level->coarser = allocate(1, sizeof *coarser);
    for (int axis = 0; axis < AXES; axis++) {
        coarser->box.points[axis] = level->box.points[axis] / 2;
        coarser->box.ranks[axis] = level->box.ranks[axis];
    }
    level_make(coarser, depth - 1);
    level->residual = level_vector(level);
    level->right = level_vector(coarser);
    level->solution = level_vector(coarser);
    level->fine = allocate((size_t)coarser->box.own, sizeof *level->fine);
    for (int z = 0; z < coarser->box.points[2]; z++)
        for (int y = 0; y < coarser->box.points[1]; y++)
            for (int x = 0; x < coarser->box.points[0]; x++)
                level->fine[box_index(&coarser->box, x, y, z)] = box_index(&level->box, 2 * x, 2 * y, 2 * z);
}

static double row_product(const struct level *level, int row, const double *vector)
{
    const int *columns = level->columns + (size_t)row * NEIGHBOURS;
    const double *values = level->values + (size_t)row * NEIGHBOURS;
    double sum = 0;

    for (int place = 0; place < level->counts[row]; place++)
        sum += values[place] * vector[columns[place]];
    return sum;
}

void level_multiply(struct level *level, double *vector, double *product)
{
    box_exchange(&level->box, vector);
    for (int row = 0; row < level->box.own; row++)
        product[row] = row_product(level, row, vector);
}

static void relax_row(const struct level *level, int row, const double *right, double *solution)
{
    solution[row] += (right[row] - row_product(level, row, solution)) / DIAGONAL;
}

/* Forward, then backward; neighbours' points stay as they were before. */
static void smooth(struct level *level, const double *right, double *solution)
{
    box_exchange(&level->box, solution);
    for (int row = 0; row < level->box.own; row++)
        relax_row(level, row, right, solution);
    for (int row = level->box.own - 1; row >= 0; row--)
        relax_row(level, row, right, solution);
}

void level_cycle(struct level *level, const double *right, double *solution)
{
    struct level *coarser = level->coarser;

    memset(solution, 0, (size_t)level->box.all * sizeof *solution);
    smooth(level, right, solution);
    if (!coarser)
        return;
    level_multiply(level, solution, level->residual);
    for (int row = 0; row < coarser->box.own; row++)
        level->right[row] = right[level->fine[row]] - level->residual[level->fine[row]];
    level_cycle(coarser, level->right, level->solution);
    for (int row = 0; row < coarser->box.own; row++)
        solution[level->fine[row]] += level->solution[row];
    smooth(level, right, solution);
}

double level_dot(const struct level *level, const double *left, const double *right)
{
    double own = 0, all = 0;

    for (int row = 0; row < level->box.own; row++)
        own += left[row] * right[row];
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void add(const struct level *level, double *sum, const double *first, double factor, const double *second)
{
    for (int row = 0; row < level->box.own; row++)
        sum[row] = first[row] + factor * second[row];
}

void level_solve(struct level *level, const double *right, double *solution, struct solved *solved)
{
    static double *residual, *corrected, *along, *product;
    double before = 0, first, last = 0, began = MPI_Wtime();

    if (!residual) {
        residual = level_vector(level);
        corrected = level_vector(level);
        along = level_vector(level);
        product = level_vector(level);
    }
    memset(solution, 0, (size_t)level->box.all * sizeof *solution);
    level_multiply(level, solution, product);
    add(level, residual, right, -1, product);
    first = sqrt(level_dot(level, residual, residual));
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        double now, step;

        level_cycle(level, residual, corrected);
        now = level_dot(level, residual, corrected);
        add(level, along, corrected, iteration ? now / before : 0, along);
        before = now;
        level_multiply(level, along, product);
        step = now / level_dot(level, along, product);
        add(level, solution, solution, step, along);
        add(level, residual, residual, -step, product);
        last = sqrt(level_dot(level, residual, residual));
    }
    solved->residual = last / first;
    solved->seconds = MPI_Wtime() - began;
}

/* A sweep, and a product, is a multiplication and an addition for each entry. */
static double cycle_operations(const struct level *level)
{
    return level->coarser ? 10 * level->nonzeros + cycle_operations(level->coarser) : 4 * level->nonzeros;
}

double level_operations(const struct level *level)
{
    double own = level->box.own, rows = 0;

    MPI_Allreduce(&own, &rows, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return ITERATIONS * (cycle_operations(level) + 2 * level->nonzeros + 12 * rows) + 2 * level->nonzeros + 4 * rows;
}
