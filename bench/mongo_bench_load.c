/* The measuring side of mongo_bench: commands of MongoDB's drivers on documents of 1 KB, ours
 * against the same work in SQL on jsonb, both durable.
 *
 *     mongo_bench_load --ours PORT:PID [--rounds N] [--seconds S] [--only NAME]
 *
 * Servers take turns within every round; rates are medians over the rounds. The generator shares
 * the machine with the servers, so a rate says what the pair of them manages; operations per CPU
 * second of the server, also printed, says what the server needs. */
#include "mongo_client.h"
#include "mongo_theirs.h"
#include "rounds.h"
#include "space.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 5000, BODY_MIN = 900 };
enum server { OURS, POSTGRESQL, SERVER_COUNT };

static const char *const server_names[] = {"ours", "PostgreSQL"};
static const size_t connection_counts[] = {1, 16, 128};

enum { CONNECTION_COUNTS = ARRAY_LEN(connection_counts) };

struct target {
    uint16_t port;
    pid_t process;
    struct cosmos_requests *requests; /* borrowed */
    struct mongo_theirs *theirs;      /* of PostgreSQL alone */
    struct random random;
    enum mongo_work work;
    uint64_t inserted; /* numbers that were given out */
};

static const struct {
    const char *name, *option;
    size_t reply_min;
    double each; /* documents, or results, of an operation */
} works[] = {
    [MONGO_INSERT_ONE] = {"insertOne", "insert-one", 0, 1},
    [MONGO_INSERT_MANY] = {"documents of insertMany, 100 at a time", "insert-many", 0, MONGO_MANY},
    [MONGO_FIND_ID] = {"find by _id", "find-id", BODY_MIN, 1},
    [MONGO_FIND_INDEXED] = {"find by an index, 10 documents", "find-indexed", 10 * BODY_MIN, 1},
    [MONGO_UPDATE_INC] = {"updateOne with $inc", "update-inc", 0, 1},
    [MONGO_GROUP] = {"$group of 5,000 documents into 100", "group", 1000, 1},
};

static_assert(ARRAY_LEN(works) == MONGO_WORKS, "all of them");

struct cell {
    double rates[ROUNDS_MAX];
    struct load_result total;
};

struct bench {
    size_t rounds;
    double seconds;   /* of a turn */
    const char *only; /* NULL: all */
    struct target targets[SERVER_COUNT];
    struct cell cells[SERVER_COUNT][MONGO_WORKS][CONNECTION_COUNTS];
};

/* --- Commands -------------------------------------------------------------------------------- */

static bool is_insert(enum mongo_work work)
{
    return work == MONGO_INSERT_ONE || work == MONGO_INSERT_MANY;
}

static uint64_t number_next(void *context)
{
    struct target *target = context;
    uint64_t n = target->inserted;

    if (!is_insert(target->work))
        return random_below(&target->random, ITEMS);
    target->inserted += target->work == MONGO_INSERT_MANY ? MONGO_MANY : 1;
    return n;
}

/* Item n with its id as _id. */
static void document_put(struct buf *out, struct slice key, uint64_t n)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_iter iter;
    size_t begin = document_append_object_begin(out, key);

    document_iter_init(&iter, bench_item_document(n, 0, arena));
    while (document_iter_next(&iter))
        document_append(out, slice_equal(iter.key, SLICE("id")) ? SLICE("_id") : iter.key,
                        &iter.value);
    document_end(out, begin);
}

static void documents_append(struct buf *out, uint64_t first, uint64_t count)
{
    size_t list = document_append_array_begin(out, SLICE("documents"));
    char text[DOCUMENT_INDEX_SIZE];

    for (uint64_t i = 0; i < count; i++)
        document_put(out, document_index_key(i, text), first + i);
    document_end(out, list);
}

static void filter_append(struct buf *out, struct slice name, struct slice field, const char *value)
{
    size_t filter = document_append_object_begin(out, name);

    document_append_string(out, field, slice_of_text(value));
    document_end(out, filter);
}

static void inc_append(struct buf *out, const char *id)
{
    size_t list = document_append_array_begin(out, SLICE("updates"));
    size_t update = document_append_object_begin(out, SLICE("0")), change, fields;

    filter_append(out, SLICE("q"), SLICE("_id"), id);
    change = document_append_object_begin(out, SLICE("u"));
    fields = document_append_object_begin(out, SLICE("$inc"));
    document_append_int32(out, SLICE("revision"), 1);
    document_end(out, fields);
    document_end(out, change);
    document_end(out, update);
    document_end(out, list);
}

static void sum_append(struct buf *out, struct slice name, bool amount)
{
    size_t sum = document_append_object_begin(out, name);

    if (amount)
        document_append_string(out, SLICE("$sum"), SLICE("$amount"));
    else
        document_append_int32(out, SLICE("$sum"), 1);
    document_end(out, sum);
}

static void group_append(struct buf *out)
{
    size_t list = document_append_array_begin(out, SLICE("pipeline"));
    size_t stage = document_append_object_begin(out, SLICE("0"));
    size_t group = document_append_object_begin(out, SLICE("$group")), cursor;

    document_append_string(out, SLICE("_id"), SLICE("$count"));
    sum_append(out, SLICE("n"), false);
    sum_append(out, SLICE("total"), true);
    document_end(out, group);
    document_end(out, stage);
    document_end(out, list);
    cursor = document_append_object_begin(out, SLICE("cursor"));
    document_end(out, cursor);
}

static void command_append(void *context, struct buf *out)
{
    struct target *target = context;
    uint64_t n = number_next(target);
    struct cosmos_item item = cosmos_item_parts(target->requests, n);
    size_t begin = document_begin(out);

    switch (target->work) {
    case MONGO_INSERT_ONE:
        document_append_string(out, SLICE("insert"), SLICE("one"));
        documents_append(out, n, 1);
        break;
    case MONGO_INSERT_MANY:
        document_append_string(out, SLICE("insert"), SLICE("many"));
        documents_append(out, n, MONGO_MANY);
        break;
    case MONGO_FIND_ID:
        document_append_string(out, SLICE("find"), SLICE("items"));
        filter_append(out, SLICE("filter"), SLICE("_id"), item.id);
        break;
    case MONGO_FIND_INDEXED:
        document_append_string(out, SLICE("find"), SLICE("items"));
        filter_append(out, SLICE("filter"), SLICE("tenant"), item.tenant);
        break;
    case MONGO_UPDATE_INC:
        document_append_string(out, SLICE("update"), SLICE("items"));
        inc_append(out, item.id);
        break;
    case MONGO_GROUP:
    default:
        document_append_string(out, SLICE("aggregate"), SLICE("items"));
        group_append(out);
        break;
    }
    document_append_string(out, SLICE("$db"), SLICE("bench"));
    document_end(out, begin);
}

/* --- Turns ----------------------------------------------------------------------------------- */

static void turn(struct target *target, enum mongo_work work, size_t connections, double seconds,
                 struct load_result *result)
{
    const struct mongo_client_plan plan = {.port = target->port,
                                           .reply_min = works[work].reply_min,
                                           .command_append = command_append,
                                           .context = target};
    struct mongo_client *mongo = NULL;
    struct load_client client;

    target->work = work;
    if (target->theirs) {
        client = mongo_theirs_load(target->theirs, work, number_next, target);
    } else {
        mongo = mongo_client_new(&plan);
        client = mongo_client_load(mongo);
    }
    load_run(&client, target->process, connections, seconds, result);
    if (mongo)
        mongo_client_free(mongo);
}

static void round_run(struct bench *bench, size_t round)
{
    for (size_t at = 0; at < CONNECTION_COUNTS; at++) {
        for (size_t work = 0; work < MONGO_WORKS; work++) {
            if (bench->only && strcmp(bench->only, works[work].option) != 0)
                continue;
            for (size_t i = 0; i < SERVER_COUNT; i++) {
                size_t server = (i + round) % SERVER_COUNT;
                struct cell *cell = &bench->cells[server][work][at];
                uint64_t before = cell->total.operations;

                turn(&bench->targets[server], (enum mongo_work)work, connection_counts[at],
                     bench->seconds, &cell->total);
                cell->rates[round] =
                    (double)(cell->total.operations - before) / bench->seconds * works[work].each;
            }
        }
    }
}

/* --- Before ---------------------------------------------------------------------------------- */

struct filling {
    uint64_t first;
};

static void fill_append(void *context, struct buf *out)
{
    const struct filling *filling = context;
    size_t begin = document_begin(out);

    document_append_string(out, SLICE("insert"), SLICE("items"));
    documents_append(out, filling->first, MONGO_MANY);
    document_append_string(out, SLICE("$db"), SLICE("bench"));
    document_end(out, begin);
}

static void index_append(void *context UNUSED, struct buf *out)
{
    size_t begin = document_begin(out), list, index, key;

    document_append_string(out, SLICE("createIndexes"), SLICE("items"));
    list = document_append_array_begin(out, SLICE("indexes"));
    index = document_append_object_begin(out, SLICE("0"));
    key = document_append_object_begin(out, SLICE("key"));
    document_append_int32(out, SLICE("tenant"), 1);
    document_end(out, key);
    document_append_string(out, SLICE("name"), SLICE("tenant_1"));
    document_end(out, index);
    document_end(out, list);
    document_append_string(out, SLICE("$db"), SLICE("bench"));
    document_end(out, begin);
}

static void ours_fill(struct target *target)
{
    struct mongo_client_plan plan = {.port = target->port, .command_append = index_append};
    struct filling filling;

    mongo_client_once(&plan);
    plan.command_append = fill_append;
    plan.context = &filling;
    for (filling.first = 0; filling.first < ITEMS; filling.first += MONGO_MANY)
        mongo_client_once(&plan);
}

/* --- After ----------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void cell_print(const struct bench *bench, size_t server, size_t work, size_t at)
{
    const struct cell *cell = &bench->cells[server][work][at];
    double rate = cell->rates[bench->rounds / 2];

    printf("  %s, %zu at once, %s: %.0f/s, spread %.0f %%, p50 %.2f ms, p99 %.2f ms, generator "
           "busy %.0f %%\n",
           works[work].name, connection_counts[at], server_names[server], rate,
           (cell->rates[bench->rounds - 1] - cell->rates[0]) / rate * 100,
           (double)histogram_quantile(&cell->total.latency_us, 0.5) / 1000,
           (double)histogram_quantile(&cell->total.latency_us, 0.99) / 1000,
           cell->total.generator_cpu_s / cell->total.seconds * 100);
}

static void work_print(struct bench *bench, size_t work, size_t at)
{
    const struct load_result *ours = &bench->cells[OURS][work][at].total;
    const struct load_result *theirs = &bench->cells[POSTGRESQL][work][at].total;
    char name[160];

    for (size_t server = 0; server < SERVER_COUNT; server++) {
        qsort(bench->cells[server][work][at].rates, bench->rounds, sizeof(double), compare_doubles);
        cell_print(bench, server, work, at);
    }
    snprintf(name, sizeof name, "MongoDB, %s, %zu at once, per second, vs PostgreSQL",
             works[work].name, connection_counts[at]);
    rounds_ratio(name, bench->cells[OURS][work][at].rates[bench->rounds / 2],
                 bench->cells[POSTGRESQL][work][at].rates[bench->rounds / 2], "goal: 1");
    snprintf(name, sizeof name, "MongoDB, %s, %zu at once, per CPU second, vs PostgreSQL",
             works[work].name, connection_counts[at]);
    rounds_ratio(name, (double)ours->operations / ours->server_cpu_s,
                 (double)theirs->operations / theirs->server_cpu_s, NULL);
}

static void arguments_read(int argc, char **argv, struct bench *bench)
{
    static const struct option options[] = {{"ours", required_argument, NULL, 'o'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"only", required_argument, NULL, 'y'},
                                            {NULL}};
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
        else if (option != 'o')
            exit(2);
    }
    if (!port || port > UINT16_MAX || bench->rounds < 1 || bench->rounds > ROUNDS_MAX ||
        bench->seconds <= 0)
        load_fail("an argument is missing or wrong");
    bench->targets[OURS].port = (uint16_t)port;
    bench->targets[OURS].process = process;
}

int main(int argc, char **argv)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct cosmos_requests *requests = cosmos_requests_new("bm9ib2R5"); /* signs nothing here */
    struct mongo_theirs *theirs = mongo_theirs_new(requests);

    bench->rounds = ROUNDS_DEFAULT;
    bench->seconds = 0.4;
    arguments_read(argc, argv, bench);
    bench->targets[POSTGRESQL].theirs = theirs;
    bench->targets[POSTGRESQL].process = mongo_theirs_server(theirs);
    for (size_t i = 0; i < SERVER_COUNT; i++) {
        bench->targets[i].requests = requests;
        random_seed(&bench->targets[i].random, 1);
    }
    ours_fill(&bench->targets[OURS]);
    mongo_theirs_fill(theirs, ITEMS);
    for (size_t round = 0; round < bench->rounds; round++)
        round_run(bench, round);
    for (size_t work = 0; work < MONGO_WORKS; work++)
        for (size_t at = 0; at < CONNECTION_COUNTS; at++)
            if (!bench->only || strcmp(bench->only, works[work].option) == 0)
                work_print(bench, work, at);
    mongo_theirs_free(theirs);
    cosmos_requests_free(requests);
    memory_free(bench);
    return 0;
}
