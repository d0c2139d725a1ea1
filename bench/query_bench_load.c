/* The measuring side of query_bench.
 *
 *     query_bench_load fill NODE PARTITIONS ITEMS
 *     query_bench_load race NODE PARTITIONS ITEMS     against PostgreSQL and against point reads
 *     query_bench_load spread NODE ITEMS OTHER PARTITIONS    one partition against many
 *     query_bench_load repeat NODE PARTITIONS ITEMS QUERY TIMES    for whoever counts instructions
 *     query_bench_load charge NODE PARTITIONS ITEMS QUERY    its charge in hundredths of an RU
 *     query_bench_load http PORT PID KEY    point queries over HTTP
 *
 * Candidates take turns within every round; a turn is as many queries as fit into its time, at
 * least one, each with values of its own. Rates are medians over the rounds. CPU time is that of
 * whoever answers, all threads and processes together, and says more on a machine that is busy. */
#include "load.h"
#include "query_http.h"
#include "query_ours.h"
#include "query_theirs.h"
#include "rounds.h"

#include "base/clock.h"
#include "base/histogram.h"
#include "front/fan_out.h"
#include "net/workers.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TURN_MS = 120,
    ROUNDS = ROUNDS_DEFAULT,
    CANDIDATES_MAX = 2,
    THREADS = 2, /* for one query, where it has use for them */
};

/* Of either side: room for all items. */
#define CACHE_BYTES ((size_t)2 << 30)

/* Both sides index what the queries ask for, and the key. */
static const struct bench_space_options space_options = {
    .cache_bytes = CACHE_BYTES,
    .policy = "{\"indexingMode\": \"consistent\", \"includedPaths\": ["
              "{\"path\": \"/tenant/*\"}, {\"path\": \"/created/*\"}, {\"path\": \"/count/*\"},"
              "{\"path\": \"/updated/*\"}, {\"path\": \"/amount/*\"}, {\"path\": \"/open/*\"}],"
              "\"excludedPaths\": [{\"path\": \"/*\"}]}",
};

/* Who answers. */
struct candidate {
    const char *name;
    struct bench_space *space;   /* ours, or */
    struct query_theirs *theirs; /* PostgreSQL */
    const struct query_executor *executor;
    bool reads; /* by point reads */
    double rates[ROUNDS];
    double cpu_s;
    uint64_t queries; /* in that time */
    struct histogram us;
    struct query_ours_result ours_result;
    struct query_theirs_result theirs_result;
};

/* --- Turns ----------------------------------------------------------------------------------- */

static void values_draw(const struct query_case *query, struct random *random, uint64_t items,
                        struct arena *arena, struct query_values *ret_values)
{
    *ret_values = (struct query_values){0};
    if (query->draw)
        query->draw(random, items, arena, ret_values);
}

static void candidate_run(struct candidate *c, const struct query_case *query,
                          const struct query_values *values)
{
    if (c->theirs)
        query_theirs_run(c->theirs, query, values, &c->theirs_result);
    else if (c->reads)
        query_ours_read(c->space, values, &c->ours_result);
    else
        query_ours_run(c->space, c->executor, query, values, &c->ours_result);
}

static double cpu_s(const struct candidate *c)
{
    struct timespec now;

    if (c->theirs)
        return load_cpu_s(query_theirs_process(c->theirs));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Queries per second. */
static double turn(struct candidate *c, const struct query_case *query, uint64_t seed,
                   uint64_t items, bool measured)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    double cpu_begin_s = cpu_s(c);
    uint64_t begin_ns = clock_monotonic_ns(), now_ns = begin_ns, count = 0;
    struct random random;

    random_seed(&random, seed);
    while (now_ns - begin_ns < TURN_MS * UINT64_C(1000000)) {
        uint64_t before_ns = now_ns;
        struct query_values values;

        arena_reset(arena);
        values_draw(query, &random, items, arena, &values);
        candidate_run(c, query, &values);
        now_ns = clock_monotonic_ns();
        if (measured)
            histogram_record(&c->us, (now_ns - before_ns) / 1000);
        count++;
    }
    if (measured) {
        c->cpu_s += cpu_s(c) - cpu_begin_s;
        c->queries += count;
    }
    return (double)count / ((double)(now_ns - begin_ns) / 1e9);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void race(const struct query_case *query, struct candidate *candidates, size_t count,
                 uint64_t items)
{
    for (size_t i = 0; i < count; i++) /* all that is read later is read once before */
        turn(&candidates[i], query, 0, items, false);
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++) {
            struct candidate *c = &candidates[(round + i) % count];

            c->rates[round] = turn(c, query, round, items, true);
        }
    for (size_t i = 0; i < count; i++)
        qsort(candidates[i].rates, ROUNDS, sizeof candidates[i].rates[0], compare_doubles);
}

static void candidate_print(const struct query_case *query, const struct candidate *c)
{
    printf("  %s, %s: %.5g/s, spread %.0f %%, p50 %.5g ms, p99 %.5g ms, CPU %.5g ms each\n",
           query->name, c->name, c->rates[ROUNDS / 2],
           (c->rates[ROUNDS - 1] - c->rates[0]) / c->rates[ROUNDS / 2] * 100,
           (double)histogram_quantile(&c->us, 0.5) / 1000,
           (double)histogram_quantile(&c->us, 0.99) / 1000, c->cpu_s / (double)c->queries * 1000);
}

static void candidates_compare(const struct query_case *query, const struct candidate *candidates,
                               const char *remark)
{
    char name[160];

    for (size_t i = 0; i < CANDIDATES_MAX; i++)
        candidate_print(query, &candidates[i]);
    snprintf(name, sizeof name, "%s, per second, %s vs %s", query->name, candidates[0].name,
             candidates[1].name);
    rounds_ratio(name, candidates[0].rates[ROUNDS / 2], candidates[1].rates[ROUNDS / 2], remark);
    snprintf(name, sizeof name, "%s, per CPU second, %s vs %s", query->name, candidates[0].name,
             candidates[1].name);
    rounds_ratio(name, (double)candidates[0].queries / candidates[0].cpu_s,
                 (double)candidates[1].queries / candidates[1].cpu_s, NULL);
}

/* --- What is compared ------------------------------------------------------------------------ */

/* Both must have the same rows, or the comparison means nothing. */
static void answers_check(const struct query_case *query, struct bench_space *space,
                          struct query_theirs *theirs, uint64_t items)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_ours_result ours = {0};
    struct query_theirs_result other = {0};
    struct query_values values;
    struct random random;

    random_seed(&random, 7);
    values_draw(query, &random, items, arena, &values);
    query_ours_run(space, NULL, query, &values, &ours);
    query_theirs_run(theirs, query, &values, &other);
    if (ours.rows != other.rows || (query->scalar && strcmp(ours.first, other.first) != 0)) {
        fprintf(stderr, "%s: %llu rows, %s; PostgreSQL %llu rows, %s\n", query->name,
                (unsigned long long)ours.rows, ours.first, (unsigned long long)other.rows,
                other.first);
        exit(1);
    }
    printf("  %s: %llu rows, %.2f RU\n", query->name, (unsigned long long)ours.rows,
           (double)ours.charge_cru / 100);
    if (getenv("QUERY_BENCH_EXPLAIN")) {
        query_ours_explain(space, query, &values);
        query_theirs_explain(theirs, query, &values);
    }
}

/* Reads every item once, by both, so that both have in memory what they keep there. */
static void all_warm(struct bench_space *space, struct query_theirs *theirs)
{
    const struct query_case *query = query_case_find("equality, 1 % of all items");
    struct query_ours_result ours = {0};
    struct query_theirs_result other = {0};

    for (unsigned i = 0; i < BENCH_COUNTS; i++) {
        char text[16];
        struct query_values values = {
            .count = 1, .list = {document_int32((int32_t)i)}, .texts = {text}};

        snprintf(text, sizeof text, "%u", i);
        query_ours_run(space, NULL, query, &values, &ours);
        if (theirs)
            query_theirs_run(theirs, query, &values, &other);
    }
}

static void race_run(const char *url, uint32_t partitions, uint64_t items)
{
    struct bench_space space;
    struct query_theirs *theirs;
    uint64_t begin_ns = clock_monotonic_ns();

    bench_space_open_with(&space, url, partitions, &space_options);
    theirs = query_theirs_new(items, CACHE_BYTES);
    printf("  PostgreSQL loaded, indexed and analysed in %.0f s\n",
           (double)(clock_monotonic_ns() - begin_ns) / 1e9);
    all_warm(&space, theirs);
    for (size_t i = 0; i < query_case_count; i++) {
        const struct query_case *query = &query_cases[i];

        answers_check(query, &space, theirs, items);
        if (query->keyed) {
            struct candidate reads[CANDIDATES_MAX] = {
                {.name = "queries", .space = &space},
                {.name = "point reads", .space = &space, .reads = true}};

            race(query, reads, CANDIDATES_MAX, items);
            candidates_compare(query, reads, "goal: 0.5");
        }
        struct candidate candidates[CANDIDATES_MAX] = {{.name = "ours", .space = &space},
                                                       {.name = "PostgreSQL", .theirs = theirs}};

        race(query, candidates, CANDIDATES_MAX, items);
        candidates_compare(query, candidates, "goal: above 1");
    }
    query_theirs_free(theirs);
    bench_space_close(&space);
}

static void spread_run(const char *one_url, uint64_t items, const char *many_url,
                       uint32_t partitions)
{
    struct net_workers_settings settings = net_workers_settings_default();
    CLEANUP(net_workers_free) struct net_workers *workers = net_workers_new(&settings);
    const struct front_helpers helpers = {.workers = workers, .width = THREADS};
    const struct query_executor executor = front_fan_out(&helpers);
    struct bench_space one, many;
    char name[32];

    bench_space_open_with(&one, one_url, 1, &space_options);
    bench_space_open_with(&many, many_url, partitions, &space_options);
    snprintf(name, sizeof name, "%u partitions", partitions);
    all_warm(&one, NULL);
    all_warm(&many, NULL);
    for (size_t i = 0; i < query_case_count; i++) {
        struct candidate candidates[CANDIDATES_MAX] = {
            {.name = name, .space = &many, .executor = &executor},
            {.name = "1 partition", .space = &one, .executor = &executor}};

        race(&query_cases[i], candidates, CANDIDATES_MAX, items);
        candidates_compare(&query_cases[i], candidates, "goal: 1");
    }
    bench_space_close(&one);
    bench_space_close(&many);
}

static void fill_run(const char *url, uint32_t partitions, uint64_t items)
{
    uint64_t begin_ns = clock_monotonic_ns();
    struct bench_space space;

    bench_space_open_with(&space, url, partitions, &space_options);
    query_ours_fill(&space, items);
    bench_space_close(&space);
    printf("  %llu items in %u partitions filled in %.0f s\n", (unsigned long long)items,
           partitions, (double)(clock_monotonic_ns() - begin_ns) / 1e9);
}

/* The function whose instructions are counted, by its name: without those of compactions and of
 * opening the node. */
__attribute__((noinline)) static void counted_run(struct bench_space *space,
                                                  const struct query_case *query,
                                                  const struct query_values *values,
                                                  struct query_ours_result *result)
{
    query_ours_run(space, NULL, query, values, result);
}

/* Each query twice with the same values: the first time brings what it needs into the cache. */
static int64_t repeat_run(const char *url, uint32_t partitions, uint64_t items,
                          const struct query_case *query, unsigned long times)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_ours_result result = {0};
    struct bench_space space;
    struct random random;

    bench_space_open_with(&space, url, partitions, &space_options);
    random_seed(&random, 1);
    while (times--) {
        struct query_ours_result unused = {0};
        struct query_values values;

        values_draw(query, &random, items, arena, &values);
        query_ours_run(&space, NULL, query, &values, &unused);
        counted_run(&space, query, &values, &result);
    }
    bench_space_close(&space);
    return result.charge_cru;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 4 ? argv[1] : "";
    uint32_t partitions = argc > 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    uint64_t items = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    char url[512], other[512];

    snprintf(url, sizeof url, "rocksdb:%s", argc > 4 ? argv[2] : "");
    if (strcmp(mode, "fill") == 0) {
        fill_run(url, partitions, items);
    } else if (strcmp(mode, "race") == 0) {
        race_run(url, partitions, items);
    } else if (strcmp(mode, "spread") == 0 && argc == 6) {
        snprintf(other, sizeof other, "rocksdb:%s", argv[4]);
        spread_run(url, strtoull(argv[3], NULL, 10), other, (uint32_t)strtoul(argv[5], NULL, 10));
    } else if (strcmp(mode, "repeat") == 0 && argc == 7) {
        repeat_run(url, partitions, items, query_case_find(argv[5]), strtoul(argv[6], NULL, 10));
    } else if (strcmp(mode, "charge") == 0 && argc == 6) {
        printf("%lld\n",
               (long long)repeat_run(url, partitions, items, query_case_find(argv[5]), 1));
    } else if (strcmp(mode, "http") == 0) {
        query_http_run((uint16_t)strtoul(argv[2], NULL, 10), (pid_t)partitions, argv[4]);
    } else {
        fprintf(stderr, "query_bench_load: see the top of query_bench_load.c\n");
        return 2;
    }
    return 0;
}
