/* Clients: threads that go on using a living container, and what they notice, phase by phase.
 *
 *     clients_start(&clients, &living, names, PHASES);
 *     clients_calm(&clients, BEFORE, 5000);
 *     clients_migration(&clients, SPLITTING, begin_split, context);
 *     clients_stop(&clients);
 *     clients_print(&clients);
 *
 * As fast as they can, one operation after the other each, so the machine is busy in every phase:
 * what a migration uses, they do not get. */
#pragma once

#include "base/histogram.h"
#include "base/thread.h"
#include "living.h"

enum { CLIENTS = 8, CLIENTS_PHASES_MAX = 8 };

struct clients;

struct client {
    struct clients *clients;
    struct thread thread;
    struct random random;
    struct histogram phases[CLIENTS_PHASES_MAX]; /* microseconds; histograms take one writer */
};

struct clients {
    struct living *living;
    const char *const *names; /* of the phases; borrowed */
    size_t phase_count;
    atomic_size_t phase; /* now */
    atomic_bool stopping;
    int64_t took_ms[CLIENTS_PHASES_MAX];
    int64_t pause_ms[CLIENTS_PHASES_MAX]; /* of a migration */
    struct client each[CLIENTS];
};

/* They begin in the first phase. */
void clients_start(struct clients *clients, struct living *living, const char *const *names,
                   size_t phase_count);
void clients_stop(struct clients *clients);

/* A phase in which nothing moves. */
void clients_calm(struct clients *clients, size_t phase, int64_t ms);

/* A phase in which what begin begins runs to its end. Says how long it took. */
void clients_migration(struct clients *clients, size_t phase,
                       bool (*begin)(struct living *living, struct error *err));

/* Milliseconds that this part of a phase's operations did not exceed. */
double clients_quantile_ms(const struct clients *clients, size_t phase, double fraction);

/* A line for each phase there was, and how many operations failed. */
void clients_print(const struct clients *clients);

/* What a migration came to beside a calm phase, against goals, and the closing line. */
struct clients_goals {
    const char *what; /* "a partition splits" */
    size_t during, before;
    int64_t pause_ms; /* below it */
    double p99;       /* times before, at most */
};
void clients_compare(const struct clients *clients, const struct clients_goals *goals);
