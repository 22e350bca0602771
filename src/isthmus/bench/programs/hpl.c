/*
 * HPL-like: a dense system of linear equations, solved as HPL's description says (LU with partial pivoting, right-looking,
 * by panels that are broadcast; its flops and its check of the residual). Columns lie on the ranks in turn, block by
 * block, which is HPL's grid of one row; the matrix is random and known by its indices, so nobody keeps a copy.
 *
 * hpl UNKNOWNS BLOCK. Rank 0 prints one line of JSON. Exit status: 0 verified, 1 residual too large, 2 wrong usage.
 */
#include "program.h"

#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HPL's own. */
#define THRESHOLD 16.0

struct system {
    int unknowns, block, rank, ranks;
    int width;      /* columns of this rank; the right side is the last column of all */
    double *matrix; /* they, one after the other */
};

/* From -0.5 to 0.5, by SplitMix64. */
static double element(uint64_t row, uint64_t column)
{
    uint64_t state = (row << 32 | column) * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x9e3779b97f4a7c15);

    state = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    state = (state ^ state >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((state ^ state >> 31) >> 11) * 0x1p-53 - 0.5;
}

static int owner(const struct system *all, int column)
{
    return column / all->block % all->ranks;
}

/* Where the first of this rank's columns that is not before `column` lies among them. */
static int place(const struct system *all, int column)
{
    int block = column / all->block, own = block / all->ranks * all->block, turn = block % all->ranks;

    if (turn == all->rank)
        return own + column % all->block;
    return turn < all->rank ? own : own + all->block;
}

static double *column_at(const struct system *all, int own)
{
    return all->matrix + (size_t)own * (size_t)all->unknowns;
}

static void fill(struct system *all)
{
    int last = all->unknowns;

    all->width = 0;
    for (int column = 0; column <= last; column++)
        all->width += owner(all, column) == all->rank;
    all->matrix = allocate((size_t)all->width * (size_t)last, sizeof *all->matrix);
    for (int column = 0; column <= last; column++)
        if (owner(all, column) == all->rank)
            for (int row = 0; row < last; row++)
                column_at(all, place(all, column))[row] = element((uint64_t)row, (uint64_t)column);
}

static void swap(double *column, int one, int other)
{
    double kept = column[one];

    column[one] = column[other];
    column[other] = kept;
}

/* target -= four columns, each by its factor. */
__attribute__((optimize("O3"))) static void subtract(double *restrict target, const double *restrict panel, size_t stride,
                                                     const double *factors, int count)
{
    const double *restrict b = panel + stride, *restrict c = b + stride, *restrict d = c + stride;

    for (int row = 0; row < count; row++)
        target[row] -= panel[row] * factors[0] + b[row] * factors[1] + c[row] * factors[2] + d[row] * factors[3];
}

/* What a finished panel does to a column right of it: `begin` rows are done, the panel holds those from there. */
static void update(double *column, const double *panel, const int *pivots, int begin, int wide, int unknowns)
{
    size_t stride = (size_t)(unknowns - begin);
    double *own = column + begin;
    int step = 0;

    for (int each = 0; each < wide; each++)
        swap(column, begin + each, pivots[each]);
    for (int each = 0; each < wide; each++)
        for (int row = each + 1; row < wide; row++)
            own[row] -= panel[(size_t)each * stride + (size_t)row] * own[each];
    for (; step + 4 <= wide; step += 4)
        subtract(own + wide, panel + (size_t)step * stride + wide, stride, own + step, unknowns - begin - wide);
    for (; step < wide; step++)
        for (int row = wide; row < unknowns - begin; row++)
            own[row] -= panel[(size_t)step * stride + (size_t)row] * own[step];
}

/* Its owner has all rows of a panel, so it finds the pivots by itself. */
static void factor(const struct system *all, double *panel, int *pivots, int begin, int wide)
{
    int unknowns = all->unknowns, first = place(all, begin);

    for (int each = 0; each < wide; each++) {
        double *column = column_at(all, first + each), *best = column + begin + each;

        for (double *other = best; other < column + unknowns; other++)
            if (fabs(*other) > fabs(*best))
                best = other;
        pivots[each] = (int)(best - column);
        for (int other = 0; other < wide; other++)
            swap(column_at(all, first + other), begin + each, pivots[each]);
        for (int row = begin + each + 1; row < unknowns; row++)
            column[row] /= column[begin + each];
        for (int other = each + 1; other < wide; other++)
            for (int row = begin + each + 1; row < unknowns; row++)
                column_at(all, first + other)[row] -= column[row] * column_at(all, first + other)[begin + each];
    }
    for (int each = 0; each < wide; each++)
        memcpy(panel + (size_t)each * (size_t)(unknowns - begin), column_at(all, first + each) + begin,
               (size_t)(unknowns - begin) * sizeof *panel);
}

static void eliminate(const struct system *all)
{
    double *panel = allocate((size_t)all->unknowns * (size_t)all->block, sizeof *panel);
    int *pivots = allocate((size_t)all->block, sizeof *pivots);

    for (int begin = 0; begin < all->unknowns; begin += all->block) {
        int left = all->unknowns - begin, wide = left < all->block ? left : all->block, root = owner(all, begin);

        if (root == all->rank)
            factor(all, panel, pivots, begin, wide);
        MPI_Bcast(pivots, wide, MPI_INT, root, MPI_COMM_WORLD);
        for (int each = 0; each < wide; each++)
            MPI_Bcast(panel + (size_t)each * (size_t)left, left, MPI_DOUBLE, root, MPI_COMM_WORLD);
        for (int own = place(all, begin + wide); own < all->width; own++)
            update(column_at(all, own), panel, pivots, begin, wide, all->unknowns);
    }
    free(pivots);
    free(panel);
}

/* Block by block from the last; whose block it is solves it, and takes it from the rows above. */
static double *substitute(const struct system *all)
{
    double *solution = allocate((size_t)all->unknowns, sizeof *solution);
    int root = owner(all, all->unknowns);

    if (root == all->rank)
        memcpy(solution, column_at(all, place(all, all->unknowns)), (size_t)all->unknowns * sizeof *solution);
    for (int end = all->unknowns, begin; end > 0; end = begin) {
        begin = (end - 1) / all->block * all->block;
        MPI_Bcast(solution, all->unknowns, MPI_DOUBLE, root, MPI_COMM_WORLD);
        root = owner(all, begin);
        for (int each = end - 1; root == all->rank && each >= begin; each--) {
            const double *column = column_at(all, place(all, each));

            solution[each] /= column[each];
            for (int row = 0; row < each; row++)
                solution[row] -= column[row] * solution[each];
        }
    }
    MPI_Bcast(solution, all->unknowns, MPI_DOUBLE, root, MPI_COMM_WORLD);
    return solution;
}

/* |Ax-b| / (epsilon (|A| |x| + |b|) n), all by the largest row. */
static double residual(const struct system *all, const double *solution)
{
    double own[4] = {0}, found[4];

    for (int row = all->rank; row < all->unknowns; row += all->ranks) {
        double right = element((uint64_t)row, (uint64_t)all->unknowns), rest = -right, sum = 0;

        for (int column = 0; column < all->unknowns; column++) {
            double each = element((uint64_t)row, (uint64_t)column);

            rest += each * solution[column];
            sum += fabs(each);
        }
        own[0] = fmax(own[0], fabs(rest));
        own[1] = fmax(own[1], sum);
        own[2] = fmax(own[2], fabs(solution[row]));
        own[3] = fmax(own[3], fabs(right));
    }
    MPI_Allreduce(own, found, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return found[0] / (DBL_EPSILON / 2 * (found[1] * found[2] + found[3]) * all->unknowns);
}

int main(int argc, char **argv)
{
    struct system all = {0};
    double began, seconds, longest = 0, wrong, *solution;
    bool verified;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &all.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all.ranks);
    all.unknowns = argc == 3 ? number(argv[1], 100000) : 0;
    all.block = argc == 3 ? number(argv[2], 1024) : 0;
    if (!all.unknowns || !all.block)
        refuse("hpl", "no number of unknowns, or none of columns in a block", "say both: hpl 1500 80");
    fill(&all);

    MPI_Barrier(MPI_COMM_WORLD);
    began = MPI_Wtime();
    eliminate(&all);
    solution = substitute(&all);
    seconds = MPI_Wtime() - began;
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    wrong = residual(&all, solution);
    verified = wrong < THRESHOLD;
    if (all.rank == 0) {
        double count = all.unknowns, flops = 2.0 / 3 * count * count * count + 1.5 * count * count;

        printf("{\"program\": \"hpl\", \"ranks\": %d, \"unknowns\": %d, \"residual\": %.6e, \"seconds\": %.6f, "
               "\"gflops\": %.4f, \"verified\": %s}\n",
               all.ranks, all.unknowns, wrong, longest, flops / longest / 1e9, verified ? "true" : "false");
    }
    free(solution);
    free(all.matrix);
    MPI_Finalize();
    return verified ? EXIT_SUCCESS : EXIT_FAILURE;
}
