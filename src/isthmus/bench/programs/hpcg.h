/*
 * A program like HPCG, written from its published description (Dongarra, Heroux, Luszczek: HPCG
 * benchmark: a new metric for ranking high performance computing systems, UT-EECS-15-736).
 *
 *   hpcg_grid.c    boxes of points, one per rank, and the exchange of what lies at their faces
 *   hpcg_solver.c  the matrix of each level, symmetric Gauss-Seidel, V-cycle, conjugate gradients
 *   hpcg.c         options, checks, timed sets, the report
 *
 * It is no HPCG: its score may be compared with its own alone.
 */
#ifndef BENCH_HPCG_H
#define BENCH_HPCG_H

#include <stdbool.h>

enum { AXES = 3, NEIGHBOURS = 27, LEVELS = 4, ITERATIONS = 50, COARSEST = 1 << (LEVELS - 1) };

struct face {
    int rank;     /* of the neighbour */
    int count;    /* of points exchanged with it */
    int *sent;    /* which of the own points */
    int received; /* where the neighbour's begin in a vector */
};

struct box {
    int points[AXES]; /* of a rank, along each axis */
    int ranks[AXES];
    int place[AXES];
    int own;          /* points of this rank */
    int all;          /* with those received from neighbours */
    int faces;
    struct face face[NEIGHBOURS];
    double *buffer;   /* of what is sent */
};

struct level {
    struct box box;
    int *columns;   /* NEIGHBOURS for each row */
    double *values;
    int *counts;    /* entries of each row */
    double nonzeros; /* of all ranks */
    struct level *coarser;
    int *fine;      /* coarser point -> the own point that it stands for */
    double *residual, *right, *solution; /* right and solution are the coarser level's */
};

struct solved {
    double seconds;
    double residual; /* of the last iteration, relative to the first */
};

/* Divides ranks so that each box has `points` (strong: so that all boxes together have them); false where none does. */
bool box_shape(struct box *box, const int points[AXES], bool is_whole, int ranks);
void box_make(struct box *box);
void box_exchange(struct box *box, double *vector);
/* The own point at x, y, z, or where a neighbour's is received; -1 outside the whole. */
int box_index(const struct box *box, int x, int y, int z);

void level_make(struct level *level, int depth);
void level_multiply(struct level *level, double *vector, double *product);
void level_cycle(struct level *level, const double *right, double *solution);
double level_dot(const struct level *level, const double *left, const double *right);
void level_solve(struct level *level, const double *right, double *solution, struct solved *solved);
/* Floating point operations of one set of iterations. */
double level_operations(const struct level *level);
double *level_vector(const struct level *level);

#endif
