/* The measuring side of gremlin_bench: traversals over WebSocket, ours against the same in SQL on
 * PostgreSQL, both durable, at 16 connections.
 *
 *     gremlin_bench_load --csv FILE --vertices N
 *     gremlin_bench_load --ours PORT:PID --vertices N [--rounds N] [--seconds S] [--only NAME]
 *         [--alone]
 *
 * The first writes the graph for `orrery import --graph`. The second measures: the graphs
 * bench.graph, of N vertices, and bench.small, of a tenth of them, are there already. Servers take
 * turns within every round; rates are medians over the rounds. With --alone there is only ours, to
 * be looked at with a profiler. */
#include "gremlin_client.h"
#include "gremlin_theirs.h"
#include "rounds.h"

#include "base/memory.h"
#include "base/random.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 16, SMALLER = 10 };
enum server { OURS, POSTGRESQL, SERVER_COUNT };

static const char *const server_names[] = {"ours", "PostgreSQL"};

static const struct {
    const char *name, *option;
    size_t reply_min;
} works[] = {
    [GREMLIN_POINT] = {"point read", "point", 300},
    [GREMLIN_HOP] = {"one hop, 10 names", "hop", 300},
    [GREMLIN_HOPS] = {"two hops, 100 edges, distinct ends counted", "hops", 200},
    [GREMLIN_BACK] = {"edges into a vertex counted", "back", 200},
    [GREMLIN_COUNT] = {"filtered count, one vertex of 100", "count", 200},
    [GREMLIN_ADD_VERTEX] = {"addV with two properties", "add-vertex", 200},
    [GREMLIN_ADD_EDGE] = {"addE between two vertices", "add-edge", 200},
};

static_assert(ARRAY_LEN(works) == GREMLIN_WORKS, "all of them");

struct target {
    uint16_t port;
    pid_t process;
    const char *graph;
    struct gremlin_theirs *theirs; /* of PostgreSQL alone */
    struct random random;
    uint64_t vertices;
    enum gremlin_work work;
    uint64_t added; /* numbers that were given out beyond them */
};

struct cell {
    double rates[ROUNDS_MAX];
    struct load_result total;
};

struct bench {
    size_t rounds;
    double seconds;   /* of a turn */
    const char *only; /* NULL: all */
    bool alone;
    uint64_t vertices;
    struct target targets[SERVER_COUNT], small;
    struct cell cells[SERVER_COUNT][GREMLIN_WORKS], scale[2];
};

/* --- Scripts ---------------------------------------------------------------------------------- */

static uint64_t number_next(void *context)
{
    struct target *target = context;

    if (target->work == GREMLIN_ADD_VERTEX)
        return target->vertices + target->added++;
    return random_below(&target->random, target->vertices);
}

static void vertex_append(struct buf *out, const char *key, const char *id, uint64_t n)
{
    buf_printf(out, "\"%s\":\"p%llu\",\"%s\":\"v%llu\"", key,
               (unsigned long long)(n % GREMLIN_GROUPS), id, (unsigned long long)n);
}

static void script_append(void *context, struct buf *out)
{
    static const char *const scripts[] = {
        [GREMLIN_POINT] = "g.V([p,i])",
        [GREMLIN_HOP] = "g.V([p,i]).out('knows').values('name')",
        [GREMLIN_HOPS] = "g.V([p,i]).out('knows').out('knows').dedup().count()",
        [GREMLIN_BACK] = "g.V([p,i]).inE('knows').count()",
        [GREMLIN_COUNT] = "g.V().has('person','age',a).count()",
        [GREMLIN_ADD_VERTEX] = "g.addV('person').property('id',i).property('pk',p)"
                               ".property('name',n).property('age',a)",
        [GREMLIN_ADD_EDGE] = "g.V([p,i]).addE('likes').to(g.V([q,j])).property('weight',0.5)",
    };
    struct target *target = context;
    uint64_t n = number_next(target);

    buf_printf(out, "\"gremlin\":\"%s\",\"bindings\":{", scripts[target->work]);
    if (target->work == GREMLIN_COUNT)
        buf_printf(out, "\"a\":%llu", (unsigned long long)(n % GREMLIN_AGES));
    else
        vertex_append(out, "p", "i", n);
    if (target->work == GREMLIN_ADD_VERTEX)
        buf_printf(out, ",\"n\":\"name%llu\",\"a\":%llu", (unsigned long long)n,
                   (unsigned long long)(n % GREMLIN_AGES));
    if (target->work == GREMLIN_ADD_EDGE) {
        BUF_APPEND(out, ",");
        vertex_append(out, "q", "j", number_next(target));
    }
    BUF_APPEND(out, "}");
}

/* --- Turns ------------------------------------------------------------------------------------ */

static void turn(struct target *target, enum gremlin_work work, double seconds,
                 struct load_result *result)
{
    const struct gremlin_client_plan plan = {.port = target->port,
                                             .graph = target->graph,
                                             .reply_min = works[work].reply_min,
                                             .script_append = script_append,
                                             .context = target};
    struct gremlin_client *gremlin = NULL;
    struct load_client client;

    target->work = work;
    if (target->theirs) {
        client = gremlin_theirs_load(target->theirs, work, number_next, target);
    } else {
        gremlin = gremlin_client_new(&plan);
        client = gremlin_client_load(gremlin);
    }
    load_run(&client, target->process, CONNECTIONS, seconds, result);
    if (gremlin)
        gremlin_client_free(gremlin);
}

static void cell_turn(const struct bench *bench, struct target *target, enum gremlin_work work,
                      struct cell *cell, size_t round)
{
    uint64_t before = cell->total.operations;

    turn(target, work, bench->seconds, &cell->total);
    cell->rates[round] = (double)(cell->total.operations - before) / bench->seconds;
}

static bool is_asked(const struct bench *bench, const char *option)
{
    return !bench->only || strcmp(bench->only, option) == 0;
}

static void round_run(struct bench *bench, size_t round)
{
    for (size_t work = 0; work < GREMLIN_WORKS; work++) {
        for (size_t i = 0; is_asked(bench, works[work].option) && i < SERVER_COUNT; i++) {
            size_t server = (i + round) % SERVER_COUNT;

            if (bench->alone && server != OURS)
                continue;
            cell_turn(bench, &bench->targets[server], (enum gremlin_work)work,
                      &bench->cells[server][work], round);
        }
    }
    if (!is_asked(bench, "scale"))
        return;
    cell_turn(bench, &bench->targets[OURS], GREMLIN_HOPS, &bench->scale[0], round);
    cell_turn(bench, &bench->small, GREMLIN_HOPS, &bench->scale[1], round);
}

/* --- After ------------------------------------------------------------------------------------ */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double per_cpu_second(const struct cell *cell)
{
    return (double)cell->total.operations / cell->total.server_cpu_s;
}

static void cell_print(const struct bench *bench, struct cell *cell, const char *what,
                       const char *whose)
{
    double rate;

    qsort(cell->rates, bench->rounds, sizeof(double), compare_doubles);
    rate = cell->rates[bench->rounds / 2];
    printf("  %s, %s: %.0f/s, spread %.0f %%, p50 %.2f ms, p99 %.2f ms, generator busy %.0f %%\n",
           what, whose, rate, (cell->rates[bench->rounds - 1] - cell->rates[0]) / rate * 100,
           (double)histogram_quantile(&cell->total.latency_us, 0.5) / 1000,
           (double)histogram_quantile(&cell->total.latency_us, 0.99) / 1000,
           cell->total.generator_cpu_s / cell->total.seconds * 100);
}

static void work_print(struct bench *bench, size_t work)
{
    struct cell *ours = &bench->cells[OURS][work], *theirs = &bench->cells[POSTGRESQL][work];
    char name[160];

    cell_print(bench, ours, works[work].name, server_names[OURS]);
    if (bench->alone) {
        printf("  %s: %.1f us of CPU\n", works[work].name, 1e6 / per_cpu_second(ours));
        return;
    }
    cell_print(bench, theirs, works[work].name, server_names[POSTGRESQL]);
    snprintf(name, sizeof name, "Gremlin, %s, %d at once, per second, vs PostgreSQL",
             works[work].name, CONNECTIONS);
    rounds_ratio(name, ours->rates[bench->rounds / 2], theirs->rates[bench->rounds / 2], "goal: 1");
    snprintf(name, sizeof name, "Gremlin, %s, %d at once, per CPU second, vs PostgreSQL",
             works[work].name, CONNECTIONS);
    rounds_ratio(name, per_cpu_second(ours), per_cpu_second(theirs), NULL);
}

static void scale_print(struct bench *bench)
{
    char name[160];

    cell_print(bench, &bench->scale[0], "two hops", "the whole graph");
    cell_print(bench, &bench->scale[1], "two hops", "a tenth of it");
    snprintf(name, sizeof name,
             "Gremlin, two hops among %llu edges, per CPU second, vs among %llu edges",
             (unsigned long long)(bench->vertices * GREMLIN_DEGREE),
             (unsigned long long)(bench->vertices / SMALLER * GREMLIN_DEGREE));
    rounds_ratio(name, per_cpu_second(&bench->scale[0]), per_cpu_second(&bench->scale[1]),
                 "goal: 0.8, for it is edges touched that cost");
}

/* --- The graph as CSV ------------------------------------------------------------------------- */

static void csv_write(const char *path, uint64_t vertices)
{
    FILE *file = fopen(path, "we");

    if (!file)
        load_fail("%s cannot be written", path);
    fprintf(file, "id,label,pk,from,to,name,age,weight\n");
    for (uint64_t n = 0; n < vertices; n++)
        fprintf(file, "v%llu,person,p%llu,,,name%llu,%llu,\n", (unsigned long long)n,
                (unsigned long long)(n % GREMLIN_GROUPS), (unsigned long long)n,
                (unsigned long long)(n % GREMLIN_AGES));
    for (uint64_t n = 0; n < vertices; n++)
        for (uint64_t k = 0; k < GREMLIN_DEGREE; k++)
            fprintf(file, "e%llu,knows,,v%llu,v%llu,,,0.5\n",
                    (unsigned long long)(n * GREMLIN_DEGREE + k), (unsigned long long)n,
                    (unsigned long long)gremlin_target(n, k, vertices));
    if (fclose(file) != 0)
        load_fail("%s cannot be written", path);
}

/* --- Before ----------------------------------------------------------------------------------- */

static const char *arguments_read(int argc, char **argv, struct bench *bench)
{
    static const struct option options[] = {
        {"ours", required_argument, NULL, 'o'},     {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},  {"only", required_argument, NULL, 'y'},
        {"vertices", required_argument, NULL, 'v'}, {"csv", required_argument, NULL, 'c'},
        {"alone", no_argument, NULL, 'a'},          {NULL}};
    const char *csv = NULL;
    unsigned port = 0;
    int option, process = 0;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'o' && sscanf(optarg, "%u:%d", &port, &process) != 2)
            load_fail("\"%s\" is not PORT:PID", optarg);
        else if (option == 'r')
            bench->rounds = strtoul(optarg, NULL, 10);
        else if (option == 's')
            bench->seconds = strtod(optarg, NULL);
        else if (option == 'y')
            bench->only = optarg;
        else if (option == 'v')
            bench->vertices = strtoull(optarg, NULL, 10);
        else if (option == 'c')
            csv = optarg;
        else if (option == 'a')
            bench->alone = true;
        else if (option != 'o')
            exit(2);
    }
    if (bench->vertices < SMALLER || bench->rounds < 1 || bench->rounds > ROUNDS_MAX ||
        bench->seconds <= 0 || (!csv && (!port || port > UINT16_MAX)))
        load_fail("an argument is missing or wrong");
    bench->targets[OURS] = (struct target){.port = (uint16_t)port,
                                           .process = process,
                                           .graph = "bench.graph",
                                           .vertices = bench->vertices};
    bench->small = bench->targets[OURS];
    bench->small.graph = "bench.small";
    bench->small.vertices = bench->vertices / SMALLER;
    bench->targets[POSTGRESQL].vertices = bench->vertices;
    return csv;
}

int main(int argc, char **argv)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct gremlin_theirs *theirs = NULL;
    const char *csv;

    bench->rounds = ROUNDS_DEFAULT;
    bench->seconds = 0.4;
    csv = arguments_read(argc, argv, bench);
    if (csv) {
        csv_write(csv, bench->vertices);
        memory_free(bench);
        return 0;
    }
    if (!bench->alone) {
        theirs = gremlin_theirs_new();
        bench->targets[POSTGRESQL].theirs = theirs;
        bench->targets[POSTGRESQL].process = gremlin_theirs_server(theirs);
        gremlin_theirs_fill(theirs, bench->vertices);
    }
    for (size_t i = 0; i < SERVER_COUNT; i++)
        random_seed(&bench->targets[i].random, 1);
    random_seed(&bench->small.random, 1);
    for (size_t round = 0; round < bench->rounds; round++)
        round_run(bench, round);
    for (size_t work = 0; work < GREMLIN_WORKS; work++)
        if (is_asked(bench, works[work].option))
            work_print(bench, work);
    if (is_asked(bench, "scale"))
        scale_print(bench);
    if (theirs)
        gremlin_theirs_free(theirs);
    memory_free(bench);
    return 0;
}
