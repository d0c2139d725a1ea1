/* Rounds: a fair race between candidates that do the same work.
 *
 * Candidates take turns within every round, so that a busy neighbour slows all of them alike. Each
 * turn is timed twice, by the wall and by the CPU this process used (all its threads). What counts
 * is the median over the rounds; the spread says how far to trust it.
 *
 *     struct rounds_candidate candidates[] = {{"ours", run_ours, context}, {"theirs", ...}};
 *     rounds_run(candidates, 2, ROUNDS_DEFAULT);
 *     rounds_print("json read 1 KB", &candidates[0]);
 *     rounds_ratio("json read 1 KB MB/s", ours_mb_per_s, theirs_mb_per_s, "vs theirs");
 *
 * Every comparison ends in one line of the form `name: ours / theirs = ratio`; lines of detail
 * come before it and begin with two blanks. */
#pragma once

#include "base/attrs.h"

enum { ROUNDS_DEFAULT = 9, ROUNDS_MAX = 101 };

struct rounds_times {
    double median_ns, min_ns, max_ns;
    double spread; /* (max - min) / median */
};

struct rounds_candidate {
    const char *name;
    void (*run)(void *context); /* one turn: long enough to time, some milliseconds */
    void *context;
    struct rounds_times cpu, wall; /* filled by rounds_run */
};

/* One turn each to warm up, then count rounds (odd, at most ROUNDS_MAX). Every round begins with
 * another candidate. */
void rounds_run(struct rounds_candidate *candidates, size_t candidate_count, size_t round_count);

/* How many repeats of run make a turn of about turn_ms; at least 1. */
size_t rounds_repeats(void (*run)(void *context), void *context, double turn_ms);

/* Work per CPU second, when one turn does `work` units of it. */
double rounds_per_cpu_s(const struct rounds_candidate *candidate, double work);
double rounds_per_wall_s(const struct rounds_candidate *candidate, double work);

/* A line of detail: median CPU and wall time of a turn and their spreads. */
void rounds_print(const char *what, const struct rounds_candidate *candidate);

/* The closing line: `name: ours / theirs = ratio (remark)`; remark may be NULL. Both figures are
 * such that more is better, unless the name says otherwise. */
void rounds_ratio(const char *name, double ours, double theirs, const char *remark);

/* Keeps the compiler from dropping a result nobody reads. */
static inline void rounds_keep(const void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}
