#include "rounds.h"

static double clock_ns(clockid_t id);
static struct rounds_times times_of(double *samples, size_t count);
static void print_figure(double value);

void rounds_run(struct rounds_candidate *candidates, size_t candidate_count, size_t round_count)
{
    double(*cpu)[ROUNDS_MAX] = malloc(candidate_count * sizeof *cpu);
    double(*wall)[ROUNDS_MAX] = malloc(candidate_count * sizeof *wall);

    assert(cpu && wall);
    assert(round_count % 2 == 1 && round_count <= ROUNDS_MAX);
    for (size_t i = 0; i < candidate_count; i++)
        candidates[i].run(candidates[i].context);
    for (size_t round = 0; round < round_count; round++) {
        for (size_t turn = 0; turn < candidate_count; turn++) {
            size_t i = (round + turn) % candidate_count;
            double wall_begin = clock_ns(CLOCK_MONOTONIC);
            double cpu_begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

            candidates[i].run(candidates[i].context);
            cpu[i][round] = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
            wall[i][round] = clock_ns(CLOCK_MONOTONIC) - wall_begin;
        }
    }
    for (size_t i = 0; i < candidate_count; i++) {
        candidates[i].cpu = times_of(cpu[i], round_count);
        candidates[i].wall = times_of(wall[i], round_count);
    }
    free(cpu);
    free(wall);
}

size_t rounds_repeats(void (*run)(void *context), void *context, double turn_ms)
{
    size_t repeats = 1;

    for (;;) {
        double begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID), took_ms;

        for (size_t i = 0; i < repeats; i++)
            run(context);
        took_ms = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e6;
        if (took_ms >= turn_ms / 4)
            return MAX((size_t)((double)repeats * turn_ms / took_ms), (size_t)1);
        repeats *= 2;
    }
}

double rounds_per_cpu_s(const struct rounds_candidate *candidate, double work)
{
    return work / candidate->cpu.median_ns * 1e9;
}

double rounds_per_wall_s(const struct rounds_candidate *candidate, double work)
{
    return work / candidate->wall.median_ns * 1e9;
}

void rounds_print(const char *what, const struct rounds_candidate *candidate)
{
    printf("  %s, %s: cpu median %.3f ms (spread %.0f %%), wall median %.3f ms (spread %.0f %%)\n",
           what, candidate->name, candidate->cpu.median_ns / 1e6, candidate->cpu.spread * 100,
           candidate->wall.median_ns / 1e6, candidate->wall.spread * 100);
}

void rounds_ratio(const char *name, double ours, double theirs, const char *remark)
{
    printf("%s: ", name);
    print_figure(ours);
    printf(" / ");
    print_figure(theirs);
    printf(" = %.2f", ours / theirs);
    if (remark)
        printf(" (%s)", remark);
    printf("\n");
    fflush(stdout);
}

/* Three digits that mean something, never an exponent. */
static void print_figure(double value)
{
    if (value >= 100)
        printf("%.0f", value);
    else if (value >= 10)
        printf("%.1f", value);
    else
        printf("%.3f", value);
}

static double clock_ns(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct rounds_times times_of(double *samples, size_t count)
{
    struct rounds_times times;

    qsort(samples, count, sizeof *samples, compare_doubles);
    times.median_ns = samples[count / 2];
    times.min_ns = samples[0];
    times.max_ns = samples[count - 1];
    times.spread = (times.max_ns - times.min_ns) / times.median_ns;
    return times;
}
