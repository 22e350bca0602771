/*
 * Each rank has a box of points, and around it one layer of its neighbours' points, which lie behind
 * the own ones in a vector: a face, an edge or a corner for each of up to 26 neighbours.
 */
#include "hpcg.h"
#include "program.h"

#include <limits.h>
#include <mpi.h>

enum { TAG = 1, MIDDLE = NEIGHBOURS / 2 };

static bool fits(const int points[AXES], bool is_whole, const int ranks[AXES], int own[AXES])
{
    for (int axis = 0; axis < AXES; axis++) {
        own[axis] = is_whole ? points[axis] / ranks[axis] : points[axis];
        if (own[axis] % COARSEST || !own[axis] || (is_whole && points[axis] % ranks[axis]))
            return false;
    }
    return true;
}

/* Of all shapes the one with the smallest faces: least is sent. */
bool box_shape(struct box *box, const int points[AXES], bool is_whole, int ranks)
{
    long least = LONG_MAX;

    for (int x = 1; x <= ranks; x++) {
        for (int y = 1; x * y <= ranks; y++) {
            int shape[AXES] = {x, y, ranks / (x * y)}, own[AXES];
            long surface;

            if (ranks % (x * y) || !fits(points, is_whole, shape, own))
                continue;
            surface = (long)own[0] * own[1] * (shape[2] > 1) + (long)own[0] * own[2] * (shape[1] > 1) +
                      (long)own[1] * own[2] * (shape[0] > 1);
            if (surface >= least)
                continue;
            least = surface;
            for (int axis = 0; axis < AXES; axis++) {
                box->points[axis] = own[axis];
                box->ranks[axis] = shape[axis];
            }
        }
    }
    return least < LONG_MAX;
}

static void direction(int number, int step[AXES])
{
    step[0] = number % 3 - 1;
    step[1] = number / 3 % 3 - 1;
    step[2] = number / 9 - 1;
}

/* Whether the whole goes on there: it has no points beyond its sides. */
static bool has_neighbour(const struct box *box, const int step[AXES])
{
    for (int axis = 0; axis < AXES; axis++) {
        int there = box->place[axis] + step[axis];

        if (there < 0 || there >= box->ranks[axis])
            return false;
    }
    return true;
}

static int rank_at(const struct box *box, const int step[AXES])
{
    int place[AXES];

    for (int axis = 0; axis < AXES; axis++)
        place[axis] = box->place[axis] + step[axis];
    return place[0] + box->ranks[0] * (place[1] + box->ranks[1] * place[2]);
}

static int extent(const struct box *box, const int step[AXES], int axis)
{
    return step[axis] ? 1 : box->points[axis];
}

static int own_index(const struct box *box, int x, int y, int z)
{
    return x + box->points[0] * (y + box->points[1] * z);
}

/* Both sides count a face's points in the same order. */
static void list_face(const struct box *box, const int step[AXES], struct face *face)
{
    int size[AXES], begin[AXES], *sent;

    for (int axis = 0; axis < AXES; axis++) {
        size[axis] = extent(box, step, axis);
        begin[axis] = step[axis] > 0 ? box->points[axis] - 1 : 0;
    }
    face->count = size[0] * size[1] * size[2];
    sent = face->sent = allocate((size_t)face->count, sizeof *sent);
    for (int z = 0; z < size[2]; z++)
        for (int y = 0; y < size[1]; y++)
            for (int x = 0; x < size[0]; x++)
                *sent++ = own_index(box, begin[0] + x, begin[1] + y, begin[2] + z);
}

void box_make(struct box *box)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    box->place[0] = rank % box->ranks[0];
    box->place[1] = rank / box->ranks[0] % box->ranks[1];
    box->place[2] = rank / (box->ranks[0] * box->ranks[1]);
    box->own = box->all = box->points[0] * box->points[1] * box->points[2];
    for (int number = 0; number < NEIGHBOURS; number++) {
        struct face *face = &box->face[number];
        int step[AXES];

        direction(number, step);
        if (number == MIDDLE || !has_neighbour(box, step))
            continue;
        face->rank = rank_at(box, step);
        list_face(box, step, face);
        face->received = box->all;
        box->all += face->count;
        box->faces++;
    }
    box->buffer = allocate((size_t)(box->all - box->own), sizeof *box->buffer);
}

void box_exchange(struct box *box, double *vector)
{
    MPI_Request requests[2 * NEIGHBOURS];
    double *next = box->buffer;
    int begun = 0;

    for (int number = 0; number < NEIGHBOURS; number++) {
        struct face *face = &box->face[number];

        if (face->count)
            MPI_Irecv(vector + face->received, face->count, MPI_DOUBLE, face->rank, TAG, MPI_COMM_WORLD, &requests[begun++]);
    }
    for (int number = 0; number < NEIGHBOURS; number++) {
        struct face *face = &box->face[number];

        if (!face->count)
            continue;
        for (int place = 0; place < face->count; place++)
            next[place] = vector[face->sent[place]];
        MPI_Isend(next, face->count, MPI_DOUBLE, face->rank, TAG, MPI_COMM_WORLD, &requests[begun++]);
        next += face->count;
    }
    MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
}

int box_index(const struct box *box, int x, int y, int z)
{
    int point[AXES] = {x, y, z}, step[AXES], size[AXES], number;
    const struct face *face;

    for (int axis = 0; axis < AXES; axis++)
        step[axis] = point[axis] < 0 ? -1 : point[axis] >= box->points[axis];
    number = step[0] + 1 + 3 * (step[1] + 1) + 9 * (step[2] + 1);
    if (number == MIDDLE)
        return own_index(box, x, y, z);
    face = &box->face[number];
    if (!face->count)
        return -1;
    for (int axis = 0; axis < AXES; axis++) {
        size[axis] = extent(box, step, axis);
        point[axis] = step[axis] ? 0 : point[axis];
    }
    return face->received + point[0] + size[0] * (point[1] + size[1] * point[2]);
}
