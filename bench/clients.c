#include "clients.h"

#include "rounds.h"
#include "space.h"

#include <stdio.h>

static void client_main(void *context)
{
    struct client *client = context;
    struct clients *clients = client->clients;
    CLEANUP(arena_free) struct arena *arena = arena_new();

    while (!atomic_load(&clients->stopping)) {
        size_t phase = atomic_load(&clients->phase);
        int64_t begun_ns = clock_monotonic_ns();

        living_operate(clients->living, &client->random, arena);
        histogram_record(&client->phases[phase],
                         (uint64_t)(clock_monotonic_ns() - begun_ns) / 1000);
        arena_reset(arena);
    }
}

void clients_start(struct clients *clients, struct living *living, const char *const *names,
                   size_t phase_count)
{
    assert(phase_count <= CLIENTS_PHASES_MAX);
    memset(clients, 0, sizeof *clients);
    clients->living = living;
    clients->names = names;
    clients->phase_count = phase_count;
    for (size_t i = 0; i < CLIENTS; i++) {
        struct client *client = &clients->each[i];

        client->clients = clients;
        random_seed(&client->random, i);
        thread_start(&client->thread, "client", client_main, client);
    }
}

void clients_stop(struct clients *clients)
{
    atomic_store(&clients->stopping, true);
    for (size_t i = 0; i < CLIENTS; i++)
        thread_join(&clients->each[i].thread);
}

void clients_calm(struct clients *clients, size_t phase, int64_t ms)
{
    int64_t begun_ms = clock_monotonic_ms();

    atomic_store(&clients->phase, phase);
    living_rest_until(begun_ms + ms);
    clients->took_ms[phase] = clock_monotonic_ms() - begun_ms;
}

/* How the time of a migration is divided, as far as looking now and then tells. */
struct course {
    int64_t copying_ms, following_ms;
    unsigned pressure; /* the highest */
};

static struct course migration_watch(struct living *living)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct migrator_progress progress;
    struct course course = {0};
    int64_t before_ms = clock_monotonic_ms();

    for (;;) {
        int64_t now_ms = clock_monotonic_ms();
        bool moving;

        container = living_container(living);
        moving = migrator_progress(living->migrator, container, &progress);
        container_unref(TAKE(container));
        if (!moving)
            return course;
        *(progress.phase <= MIGRATOR_COPYING ? &course.copying_ms : &course.following_ms) +=
            now_ms - before_ms;
        course.pressure = MAX(course.pressure, progress.pressure);
        before_ms = now_ms;
        living_rest_until(now_ms + 1);
    }
}

void clients_migration(struct clients *clients, size_t phase,
                       bool (*begin)(struct living *living, struct error *err))
{
    struct living *living = clients->living;
    int64_t begun_ms = clock_monotonic_ms();
    struct migrator_statistics before = migrator_statistics(living->migrator), after;
    struct course course;
    struct error err;

    atomic_store(&clients->phase, phase);
    bench_must(begin(living, &err), &err);
    course = migration_watch(living);
    after = migrator_statistics(living->migrator);
    clients->took_ms[phase] = clock_monotonic_ms() - begun_ms;
    clients->pause_ms[phase] = after.pause_ms_last;
    printf(
        "  %s: %.0f MB of entries in %.1f s, copying %.1f, then catching up %.1f with pressure %u "
        "on writers; pause %lld ms\n",
        clients->names[phase], (double)(after.bytes - before.bytes) / LIVING_MB,
        (double)clients->took_ms[phase] / 1000, (double)course.copying_ms / 1000,
        (double)course.following_ms / 1000, course.pressure, (long long)after.pause_ms_last);
    fflush(stdout);
}

static void phase_sum(const struct clients *clients, size_t phase, struct histogram *ret_sum)
{
    histogram_clear(ret_sum);
    for (size_t i = 0; i < CLIENTS; i++)
        histogram_add(ret_sum, &clients->each[i].phases[phase]);
}

double clients_quantile_ms(const struct clients *clients, size_t phase, double fraction)
{
    static struct histogram sum;

    phase_sum(clients, phase, &sum);
    return (double)histogram_quantile(&sum, fraction) / 1000;
}

void clients_print(const struct clients *clients)
{
    static struct histogram sum;

    for (size_t phase = 0; phase < clients->phase_count; phase++) {
        phase_sum(clients, phase, &sum);
        if (!clients->took_ms[phase])
            continue;
        printf("  %-11s %7.0f operations/s, p50 %.2f ms, p99 %.2f ms, longest %.1f ms\n",
               clients->names[phase],
               (double)histogram_count(&sum) * 1000 / (double)clients->took_ms[phase],
               (double)histogram_quantile(&sum, 0.5) / 1000,
               (double)histogram_quantile(&sum, 0.99) / 1000,
               (double)histogram_quantile(&sum, 1) / 1000);
    }
    printf("  failed operations: %u (goal 0)\n", atomic_load(&clients->living->failed));
}

void clients_compare(const struct clients *clients, const struct clients_goals *goals)
{
    double p99 = clients_quantile_ms(clients, goals->during, 0.99);
    double calm = clients_quantile_ms(clients, goals->before, 0.99);
    long long pause_ms = clients->pause_ms[goals->during];
    char name[128];

    printf("  %s: pause %lld ms (goal below %lld: %s), p99 %.2f ms, %.1f times before (goal at "
           "most %.0f: %s)\n",
           clients->names[goals->during], pause_ms, (long long)goals->pause_ms,
           pause_ms < goals->pause_ms ? "met" : "missed", p99, p99 / calm, goals->p99,
           p99 <= goals->p99 * calm ? "met" : "missed");
    snprintf(name, sizeof name, "p99 in ms while %s, less is better", goals->what);
    rounds_ratio(name, p99, calm, "against before it");
}
