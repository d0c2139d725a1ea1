/* Random queries, answered in every way that tests/cases/ knows and by an evaluator that shares
 * nothing with the engine. ORRERY_TEST_SEED repeats a run, ORRERY_TEST_STEPS says how many. */
#include "cases/ways.h"
#include "document/json.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/resolve.h"
#include "property/sql/naive.h"
#include "property/sql/queries.h"
#include "support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUERIES = 5000, QUERIES_PER_WORLD = 100, DOCUMENTS = 30, ROW_BYTES_SHOWN = 300 };

struct world {
    struct arena *arena;
    struct script_world script;
    struct naive *documents;
};

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void world_make(struct world *world, struct random *random)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    world->script.documents = ARENA_ARRAY(world->arena, struct slice, DOCUMENTS);
    world->script.document_count = DOCUMENTS;
    world->documents = ARENA_ARRAY(world->arena, struct naive, DOCUMENTS);
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        struct document_value value;

        buf_clear(&text);
        random_document(random, i, &text);
        world->script.documents[i] = arena_copy(world->arena, buf_slice(&text));
        value = ways_json(world->script.documents[i], world->arena);
        world->documents[i] = naive_of(&value, world->arena);
    }
}

static int by_value(const void *a, const void *b)
{
    return naive_compare(a, b);
}

static bool rows_equal(const struct naive *a, const struct naive *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (naive_compare(&a[i], &b[i]) != 0)
            return false;
    return true;
}

/* Is every row one of all, no more often than it is there? Both are sorted. */
static bool rows_within(const struct naive *rows, size_t count, const struct naive_rows *all)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        while (at < all->count && naive_compare(&all->rows[at], &rows[i]) < 0)
            at++;
        if (at == all->count || naive_compare(&all->rows[at++], &rows[i]) != 0)
            return false;
    }
    return true;
}

static bool keys_equal(const struct naive *a, const struct naive *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (naive_compare(&a[i].items[0], &b[i].items[0]) != 0)
            return false;
    return true;
}

static bool agree(enum random_promise promise, struct naive *got, size_t count,
                  const struct naive_rows *expected, const struct naive_rows *all,
                  struct arena *arena)
{
    struct naive_rows sorted = {.count = all->count};

    if (count != expected->count)
        return false;
    if (promise == RANDOM_SEQUENCE)
        return rows_equal(got, expected->rows, count);
    if (promise == RANDOM_KEYS && !keys_equal(got, expected->rows, count))
        return false;
    sorted.rows = ARENA_ARRAY(arena, struct naive, all->count + 1);
    if (all->count)
        memcpy(sorted.rows, all->rows, all->count * sizeof *all->rows);
    qsort(sorted.rows, sorted.count, sizeof *sorted.rows, by_value);
    qsort(got, count, sizeof *got, by_value);
    return rows_within(got, count, &sorted);
}

static void rows_print(const struct sql_rows *rows)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < rows->count; i++) {
        buf_clear(&text);
        document_json_write_value(&rows->values[i], &text);
        print_message("# got %.*s\n", (int)MIN(text.len, (size_t)ROW_BYTES_SHOWN), text.data);
    }
}

static struct sql_query *query_read(struct slice text, struct arena *arena)
{
    struct sql_query *query;
    struct error err;

    if (!sql_parse(text, NULL, arena, &query, NULL, &err) ||
        !sql_bind(query, SLICE_NONE, arena, NULL, &err) || !sql_resolve(query, arena, NULL, &err))
        fail_msg("%.*s: %s", SLICE_ARG(text), err.message);
    return query;
}

/* One query in one way. A query that fails for two values where one is asked for may do so or
 * not: AND and OR need not look at both sides. */
static void way_check(struct ways *ways, enum way way, const struct script_case *test,
                      enum random_promise promise, bool may_fail, const struct naive_rows *expected,
                      const struct naive_rows *all, struct arena *arena)
{
    struct sql_error fault;
    struct sql_rows rows;
    struct naive *got;
    struct error err;

    if (!ways_run(ways, way, test, arena, &rows, &fault, &err)) {
        if (!may_fail)
            fail_msg("%s: %.*s: %s", way_name(way), SLICE_ARG(test->query), err.message);
        return;
    }
    if (may_fail)
        return;
    got = ARENA_ARRAY(arena, struct naive, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        got[i] = naive_of(&rows.values[i], arena);
    if (agree(promise, got, rows.count, expected, all, arena))
        return;
    rows_print(&rows);
    for (size_t i = 0; i < test->world->document_count; i++)
        print_message("# of %.*s\n", SLICE_ARG(test->world->documents[i]));
    fail_msg("%s: %.*s: %zu rows where %zu are expected, or others", way_name(way),
             SLICE_ARG(test->query), rows.count, expected->count);
}

static bool query_check(struct ways *ways, const struct world *world, struct random *random)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf text;
    struct script_case test = {.world = &world->script};
    struct naive_rows expected, all;
    enum random_promise promise;
    bool may_fail;

    buf_init(&text, BUF_DEFAULT_MAX);
    promise = random_query(random, &text);
    test.query = buf_slice(&text);
    may_fail = !naive_query(query_read(test.query, arena), world->documents, DOCUMENTS, arena,
                            &expected, &all);
    for (enum way way = 0; way < WAY_COUNT; way++)
        way_check(ways, way, &test, promise, may_fail, &expected, &all, arena);
    return expected.count > 0;
}

static void random_queries_are_answered_as_the_manual_reads(void **state UNUSED)
{
    uint64_t seed = number_from("ORRERY_TEST_SEED", 20240511);
    uint64_t queries = number_from("ORRERY_TEST_STEPS", QUERIES), answered = 0;
    struct random random;

    print_message("# ORRERY_TEST_SEED=%" PRIu64 "\n", seed);
    random_seed(&random, seed);
    for (uint64_t done = 0; done < queries;) {
        CLEANUP(ways_free) struct ways *ways = ways_new();
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct world world = {.arena = arena};

        world_make(&world, &random);
        for (int i = 0; i < QUERIES_PER_WORLD && done < queries; i++, done++)
            answered += query_check(ways, &world, &random);
    }
    print_message("# %" PRIu64 " of %" PRIu64 " queries had rows\n", answered, queries);
    assert_true(answered * 2 > queries); /* or they say little */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_queries_are_answered_as_the_manual_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
