/* Queries are put together of parts, each of which is fit for a view by itself; what is not, under
 * the key that the view has by then, is not tried. The tables of the second source and of the
 * reference container hold versions alone: what an item says follows from its version. */
#include "property/beside.h"

#include "catalogue/container_space.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/rest/sql/compile.h"
#include "front/rest/views/views.h"
#include "partition/history.h"
#include "query/reference/copies.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/verify.h"
#include "support/views.h"

#include <sched.h>
#include <stdlib.h>

enum { ROWS = 40, TABLES = 2, COPY_BYTES = 1 << 20 };

/* A container of items i0 to i39, each with the version it was written with last; 0: none. */
struct table {
    const char *id, *body;
    uint32_t versions[ROWS];
};

struct beside {
    struct moving *moving;
    struct rest_views *views;
    struct query_copies *copies;
    struct table tables[TABLES];
    uint32_t version; /* the last one given */
    struct beside_counts counts;
};

/* The second source, and the reference container. */
static const struct table tables[TABLES] = {
    {.id = "s", .body = "{\"id\":\"s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}"},
    {.id = "r",
     .body = "{\"id\":\"r\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"
             "\"orrery\":{\"reference\":true}}"},
};

static const char *const view_ids[BESIDE_VIEWS] = {"v0", "v1", "v2", "v3", "v4"};

NORETURN static void failed(const struct beside *beside, const struct error *err)
{
    fail_msg("seed %llu step %u: %s: %s", (unsigned long long)beside->moving->seed,
             beside->moving->step, error_face(err->code)->name, err->message);
    abort();
}

/* A call that did not succeed met the fault of its step, or a node that is away. */
static void excuse(struct beside *beside, const struct error *err)
{
    if (moving_is_refusal(beside->moving, err))
        return;
    if (!moving_is_fault(err))
        failed(beside, err);
    moving_restart(beside->moving);
}

static unsigned below(struct beside *beside, unsigned limit)
{
    return moving_below(beside->moving, limit);
}

static const char *one_of(struct beside *beside, const char *const *list, size_t count)
{
    return list[below(beside, (unsigned)count)];
}
#define ONE_OF(list) one_of(beside, list, ARRAY_LEN(list))

/* --- Queries of views ------------------------------------------------------------------------ */

static void text_add(struct buf *text, const char *more)
{
    buf_append_slice(text, slice_of_text(more));
}

static void filter_add(struct beside *beside, struct buf *text)
{
    static const char *const filters[] = {"c.n % 3 != 1",      "c.n > 3 AND c.to < 'k3'",
                                          "IS_NUMBER(c.w)",    "ARRAY_CONTAINS(c.tags, 't1')",
                                          "NOT (c.v % 2 = 0)", "c.to IN ('k1', 'k2', 'k30', 'k7')"};

    if (below(beside, 2)) {
        text_add(text, " WHERE ");
        text_add(text, ONE_OF(filters));
    }
}

/* Each of the list or not, at random. */
static void some_add(struct beside *beside, struct buf *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (below(beside, 2)) {
            text_add(text, ", ");
            text_add(text, list[i]);
        }
}

static void rows_query(struct beside *beside, struct buf *text)
{
    static const char *const columns[] = {"c.w",
                                          "c.w AS y",
                                          "c.v % 4 AS r",
                                          "c.tags",
                                          "c.v",
                                          "IS_NUMBER(c.w) AS numeric",
                                          "c.tags[0] AS first",
                                          "CONCAT(c.to, '!') AS z"};

    text_add(text, "SELECT c.to, c.n, c.pk");
    some_add(beside, text, columns, ARRAY_LEN(columns));
    text_add(text, " FROM c");
    filter_add(beside, text);
}

static void groups_query(struct beside *beside, struct buf *text)
{
    static const char *const aggregates[] = {
        "COUNT(1) AS k",   "COUNT(c.w) AS d",     "SUM(c.w) AS s",           "AVG(c.w) AS a",
        "MIN(c.w) AS low", "MAX(c.w) AS high",    "SUM(c.n) AS t",           "MAX(c.v) AS last",
        "MIN(c.to) AS l",  "MAX(c.tags[0]) AS h", "COUNTIF(c.n > 4) AS more"};
    static const char *const keys[][2] = {{"c.to", "c.to"},
                                          {"c.to, c.n", "c.to, c.n"},
                                          {"c.n, c.w", "c.n, c.w"},
                                          {"c.n % 3 AS n", "c.n % 3"},
                                          {"c.pk, c.to", "c.pk, c.to"}};
    unsigned which = below(beside, ARRAY_LEN(keys));

    text_add(text, "SELECT ");
    text_add(text, keys[which][0]);
    some_add(beside, text, aggregates, ARRAY_LEN(aggregates));
    text_add(text, ", MIN(c.v) AS first FROM c");
    filter_add(beside, text);
    text_add(text, " GROUP BY ");
    text_add(text, keys[which][1]);
}

/* Of one kind each, so that there are always views of all of them. */
static const char *query_make(struct beside *beside, size_t view)
{
    CLEANUP(buf_done) struct buf text;
    bool groups = view == 4 ? below(beside, 2) : view >= 2;

    buf_init(&text, SIZE_MAX / 2);
    (groups ? groups_query : rows_query)(beside, &text);
    return arena_text(beside->moving->arena, buf_slice(&text));
}

static struct slice view_body(struct beside *beside, size_t view, struct slice key)
{
    static const char *const sources[BESIDE_VIEWS][2] = {{"\"c\"", "\"c\""},
                                                         {"\"s\"", "\"s\",\"c\""},
                                                         {"\"c\"", "\"c\""},
                                                         {"\"c\",\"s\"", "\"s\""},
                                                         {"\"v0\"", "\"v0\",\"c\""}};
    struct arena *arena = beside->moving->arena;
    CLEANUP(container_unref)
    struct container *before = moving_container(beside->moving, view_ids[view]);
    const struct definition_view *definition =
        before ? &definition_fields(container_definition(before))->view : NULL;
    /* sources stay what they are */
    unsigned which = definition ? definition->source_count > 1 : below(beside, 2);
    struct slice text;

    if (definition && view == 3)
        which = definition->source_count == 1;
    text = arena_printf(arena,
                        "{\"id\":\"%s\",\"partitionKey\":%.*s,"
                        "\"orrery\":{\"view\":{\"sources\":[%s],\"query\":\"%s\"}}}",
                        view_ids[view], SLICE_ARG(key), sources[view][which],
                        query_make(beside, view));
    return document_of(arena, arena_text(arena, text));
}

static struct slice key_make(struct beside *beside)
{
    static const char *const paths[] = {"/to", "/n", "/pk", "/_id"};

    return arena_printf(beside->moving->arena, "{\"paths\":[\"%s\"],\"version\":2}", ONE_OF(paths));
}

static void view_make(struct beside *beside, size_t view)
{
    CLEANUP(container_unref)
    struct container *source = view == 4 ? moving_container(beside->moving, "v0") : NULL;
    struct slice body = view_body(beside, view, key_make(beside));
    struct error err;

    if ((view == 4 && !source) || !rest_views_check(body, &err))
        return;
    container_unref(TAKE(source));
    if (moving_container_make(beside->moving, body, &err))
        beside->counts.made++;
    else if (err.code != ERROR_BUSY)
        excuse(beside, &err);
}

static void view_drop(struct beside *beside, size_t view)
{
    struct error err;

    if (catalogue_container_drop(beside->moving->catalogue, SLICE("default"), SLICE("d"),
                                 slice_of_text(view_ids[view]), SLICE_NONE, &err))
        beside->counts.dropped++;
    else if (err.code != ERROR_VIEW_BOUND && err.code != ERROR_BUSY)
        excuse(beside, &err);
}

/* Under the key it has by now. */
static void view_replace(struct beside *beside, size_t view, struct container *container)
{
    CLEANUP(container_unref) struct container *after = NULL;
    CLEANUP(buf_done) struct buf key;
    struct document_value value;
    struct slice body;
    struct error err;
    bool fit;

    buf_init(&key, SIZE_MAX / 2);
    assert_true(document_find(definition_fields(container_definition(container))->document,
                              SLICE("partitionKey"), &value));
    document_json_write(value.document, &key);
    body = view_body(beside, view, buf_slice(&key));
    fit = rest_views_replace_check(container, body, &err);
    container_unref(container);
    if (!fit)
        return;
    if (catalogue_container_replace(beside->moving->catalogue, SLICE("default"), SLICE("d"),
                                    slice_of_text(view_ids[view]), body, SLICE_NONE, &after, &err))
        beside->counts.queries++;
    else if (err.code != ERROR_BUSY)
        excuse(beside, &err);
}

static void view_change(struct beside *beside)
{
    size_t view = below(beside, BESIDE_VIEWS);
    struct container *container = moving_container(beside->moving, view_ids[view]);

    if (!container) {
        view_make(beside, view);
    } else if (below(beside, 3)) {
        view_replace(beside, view, container);
    } else {
        container_unref(container);
        view_drop(beside, view);
    }
}

/* --- Tables ---------------------------------------------------------------------------------- */

static struct slice row_document(struct beside *beside, unsigned row, uint32_t version)
{
    struct arena *arena = beside->moving->arena;
    struct random random;

    random_seed(&random, version);
    return document_of(
        arena,
        arena_text(arena, arena_printf(arena,
                                       "{\"id\":\"i%u\",\"pk\":\"k%u\",\"v\":%u,\"n\":%u,"
                                       "\"tags\":[\"t%u\"],\"to\":\"k%u\",\"w\":%s}",
                                       row, row % 9, version, (unsigned)random_below(&random, 9),
                                       (unsigned)random_below(&random, 3),
                                       (unsigned)random_below(&random, MOVING_KEYS),
                                       moving_value(&random))));
}

static struct container *table_open(struct beside *beside, const struct table *table)
{
    struct container *container = moving_container(beside->moving, table->id);

    assert_non_null(container);
    return container;
}

static bool row_operate(struct beside *beside, const struct table *table, unsigned row,
                        struct item_operation *op, struct error *err)
{
    CLEANUP(container_unref) struct container *container = table_open(beside, table);
    struct item_space space = container_space(container, &clock_system, beside->moving->gates);

    op->space = &space;
    op->arena = beside->moving->arena;
    op->id = document_string(arena_printf(beside->moving->arena, "i%u", row));
    /* what a key can be made of is in all versions */
    op->key = partition_key_extract(&space.definition->key, row_document(beside, row, 1));
    return item_operation_run(op, err);
}

static uint32_t row_read(struct beside *beside, const struct table *table, unsigned row)
{
    struct item_operation op = {.verb = ITEM_READ};
    struct document_value value;
    struct error err;
    int64_t version;

    if (!row_operate(beside, table, row, &op, &err)) {
        if (err.code != ERROR_ITEM_MISSING)
            failed(beside, &err);
        return 0;
    }
    assert_true(document_find(op.result.item.document, SLICE("v"), &value));
    assert_true(document_to_int64(&value, &version));
    return (uint32_t)version;
}

/* A write that met a fault was done or not. */
static void row_write(struct beside *beside, struct table *table)
{
    unsigned row = below(beside, ROWS);
    uint32_t version = below(beside, 4) ? ++beside->version : 0, found;
    struct item_operation op = {.verb = version ? ITEM_UPSERT : ITEM_DELETE,
                                .document =
                                    version ? row_document(beside, row, version) : SLICE_NONE};
    struct error err;

    beside->counts.writes++;
    if (row_operate(beside, table, row, &op, &err)) {
        table->versions[row] = version;
        return;
    }
    if (err.code == ERROR_ITEM_MISSING && !version) {
        assert_int_equal(table->versions[row], 0);
        return;
    }
    if (moving_is_refusal(beside->moving, &err))
        return;
    excuse(beside, &err);
    moving_return(beside->moving);
    found = row_read(beside, table, row);
    assert_true(found == version || found == table->versions[row]);
    table->versions[row] = found;
}

static void table_check(struct beside *beside, const struct table *table)
{
    CLEANUP(container_unref) struct container *container = table_open(beside, table);
    size_t count = 0;

    for (unsigned row = 0; row < ROWS; row++) {
        if (row_read(beside, table, row) != table->versions[row])
            fail_msg("seed %llu step %u: item i%u of %s is not what was written",
                     (unsigned long long)beside->moving->seed, beside->moving->step, row,
                     table->id);
        count += table->versions[row] != 0;
    }
    assert_int_equal(verify_container(container), count);
}

/* --- Joins ----------------------------------------------------------------------------------- */

/* A join of the container with the reference container, and its rows. */
struct join {
    struct beside *beside;
    struct container *home; /* a reference */
    struct query_copy_taken taken;
    bool identified;
    struct slice *rows; /* in the arena */
    size_t count;
};

static bool join_open(void *self, struct slice database UNUSED, struct slice container,
                      const struct definition_fields **ret_fields, struct error *err UNUSED)
{
    struct join *join = self;

    assert_true(slice_equal(container, SLICE("r")));
    *ret_fields = definition_fields(container_definition(join->home));
    return true;
}

static bool join_find(void *self, size_t number, const struct document_value *keys, size_t count,
                      struct query_context *context, struct document_value *ret_items,
                      struct error *err)
{
    const struct join *join = self;

    assert_int_equal(number, 0);
    return query_copy_find(join->taken.copy, keys, count, join->identified, context, ret_items,
                           err);
}

static bool join_row(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct join *join = self;

    assert_true(join->count < VIEWS_ITEMS_MAX);
    join->rows[join->count++] = arena_copy(join->beside->moving->arena, value->document);
    return true;
}

/* By the key that the reference container has, "/pk" or "/id". */
static const struct joined {
    const char *where;
    bool by_pk, by_id; /* what is the same in both; the id of the one, or of the table's i7 */
    bool seventh;
    const char *not_by; /* a key it cannot be run by */
} joins[] = {
    {"r.pk = c.to", .by_pk = true, .not_by = "id"},
    {"r.id = c.id", .by_id = true, .not_by = "pk"},
    {"r.pk = c.to AND r.id = 'i7'", .by_pk = true, .seventh = true},
    {"r.id = c.id AND c.to = r.pk", .by_pk = true, .by_id = true},
};

/* One that is fit for the key as it is. */
static const struct joined *join_choose(struct beside *beside, const struct container *home)
{
    const struct partition_definition *key = &definition_fields(container_definition(home))->key;
    const struct joined *chosen;
    struct slice path = key->paths[0].segments[0].name;

    do
        chosen = &joins[below(beside, ARRAY_LEN(joins))];
    while (chosen->not_by && slice_equal(path, slice_of_text(chosen->not_by)));
    return chosen;
}

static bool join_take(struct beside *beside, struct join *join, struct error *err)
{
    struct item_space space = container_space(join->home, &clock_system, beside->moving->gates);
    const struct query_copy_home home = {.space = &space,
                                         .rid = container_rid(join->home),
                                         .number = container_info(join->home)->number,
                                         .bytes_max = COPY_BYTES};

    return query_copies_take(beside->copies, &home, &join->taken, err);
}

static bool join_query(struct beside *beside, struct join *join, const struct joined *which,
                       struct error *err)
{
    struct slice text = arena_printf(
        beside->moving->arena,
        "SELECT c.id, c.pk, r.id AS other, r.v FROM c JOIN r IN REFERENCE('r') WHERE %s",
        which->where);
    const struct sql_compile_options options = {.reference = join_open, .reference_self = join};
    CLEANUP(container_unref) struct container *container = moving_container(beside->moving, "c");
    struct item_space space = container_space(container, &clock_system, beside->moving->gates);
    const struct query_request request = {
        .space = &space,
        .container = container_rid(container),
        .limits = {.rows_max = 100000, .bytes_max = UINT32_MAX},
        .arena = beside->moving->arena,
        .reference = {join_find, join},
        .row = join_row,
        .self = join,
    };
    struct sql_prepared prepared;
    struct query_page page;

    if (!sql_prepare(text, SLICE_NONE, &options, beside->moving->arena, &prepared, NULL, err))
        return false;
    assert_int_equal(prepared.plan.reference_count, 1);
    join->identified = prepared.plan.references[0].identified;
    if (!query_run(&prepared.plan, &request, &page, err))
        return false;
    assert_int_equal(page.continuation.len, 0);
    return true;
}

static struct slice text_of(struct slice document, const char *name)
{
    struct document_value value;

    assert_true(document_find(document, slice_of_text(name), &value));
    return value.text;
}

/* Each item beside each row of the table, one after the other. */
static size_t join_expected(struct beside *beside, const struct joined *which, struct slice *rows)
{
    CLEANUP(container_unref) struct container *container = moving_container(beside->moving, "c");
    struct arena *arena = beside->moving->arena;
    const struct table *table = &beside->tables[1];
    size_t item_count, count = 0;
    const struct item *items = views_items(container, arena, &item_count);

    for (size_t i = 0; i < item_count; i++)
        for (unsigned row = 0; row < ROWS; row++) {
            struct slice to = text_of(items[i].document, "to");
            struct slice id = text_of(items[i].document, "id");

            if (!table->versions[row] || (which->seventh && row != 7) ||
                (which->by_pk && !slice_equal(to, arena_printf(arena, "k%u", row % 9))) ||
                (which->by_id && !slice_equal(id, arena_printf(arena, "i%u", row))))
                continue;
            rows[count++] = document_of(
                arena,
                arena_text(arena,
                           arena_printf(arena,
                                        "{\"id\":\"%.*s\",\"pk\":\"%.*s\",\"other\":\"i%u\","
                                        "\"v\":%u}",
                                        SLICE_ARG(id), SLICE_ARG(text_of(items[i].document, "pk")),
                                        row, table->versions[row])));
        }
    return count;
}

static int row_compare(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;

    return slice_compare(*x, *y);
}

static void rows_compare(struct beside *beside, struct join *join, const struct joined *which)
{
    struct slice *wanted = ARENA_ARRAY(beside->moving->arena, struct slice, VIEWS_ITEMS_MAX);
    size_t count = join_expected(beside, which, wanted);

    qsort(join->rows, join->count, sizeof *join->rows, row_compare);
    qsort(wanted, count, sizeof *wanted, row_compare);
    for (size_t i = 0; i < MAX(count, join->count); i++)
        if (count != join->count || !slice_equal(join->rows[i], wanted[i]))
            fail_msg("seed %llu step %u: a join has %zu rows, not the %zu it should have",
                     (unsigned long long)beside->moving->seed, beside->moving->step, join->count,
                     count);
    beside->counts.joined += (unsigned)count;
}

/* A copy that is not known to be exact, for a node is away, is compared with nothing. */
static void join_run(struct beside *beside)
{
    struct join join = {.beside = beside,
                        .home = table_open(beside, &beside->tables[1]),
                        .rows = ARENA_ARRAY(beside->moving->arena, struct slice, VIEWS_ITEMS_MAX)};
    const struct joined *which = join_choose(beside, join.home);
    struct error err;
    bool fine = join_take(beside, &join, &err) && join_query(beside, &join, which, &err);

    container_unref(join.home);
    if (!fine) {
        query_copy_unref(join.taken.copy);
        excuse(beside, &err);
        return;
    }
    assert_true(join.taken.lag_ms == 0 || beside->moving->away);
    if (!join.taken.lag_ms && !beside->moving->away)
        rows_compare(beside, &join, which);
    query_copy_unref(join.taken.copy);
    beside->counts.joins++;
}

/* --- Migrations ------------------------------------------------------------------------------ */

/* The other strategy, or another key: of tables one that every version of an item has, of views
 * perhaps one that their rows lack, under which they are carried all the same. */
static bool rekey(struct beside *beside, struct container *container, struct error *err)
{
    static const char *const paths[] = {"/pk", "/id"};
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct arena *arena = beside->moving->arena;
    struct definition_rekey rekey = {0};

    if (below(beside, 2)) {
        bool hashed = fields->key.strategy == PARTITION_STRATEGY_HASH;

        rekey.strategy =
            document_of(arena, hashed ? "{\"strategy\":\"range\"}" : "{\"strategy\":\"hash\"}");
        return migrator_rekey(beside->moving->migrator, container, &rekey, fields->view.form, err);
    }
    rekey.partition_key = document_of(
        arena, arena_text(arena, fields->view.form
                                     ? key_make(beside)
                                     : arena_printf(arena, "{\"paths\":[\"%s\"],\"version\":2}",
                                                    ONE_OF(paths))));
    return (!fields->view.form ||
            rest_views_key_check(container, rekey.partition_key, true, err)) &&
           migrator_rekey(beside->moving->migrator, container, &rekey, fields->view.form, err);
}

/* The keys of before are answered for no longer. */
static void grace_end(struct beside *beside, const char *id)
{
    CLEANUP(container_unref) struct container *container = moving_container(beside->moving, id);
    struct error err;

    if (!container || migrator_grace_end(beside->moving->migrator, container, &err) ||
        err.code == ERROR_BAD_REQUEST || err.code == ERROR_BUSY)
        return;
    container_unref(TAKE(container));
    excuse(beside, &err);
}

static void migrate(struct beside *beside)
{
    static const enum migration_kind kinds[] = {MIGRATION_SPLIT, MIGRATION_MERGE, MIGRATION_MOVE,
                                                MIGRATION_ISOLATE, MIGRATION_REKEY};
    const char *id = beside_id(beside, below(beside, BESIDE_CONTAINERS_MAX));
    enum migration_kind kind = kinds[below(beside, ARRAY_LEN(kinds))];
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;
    size_t count;
    bool fine;

    grace_end(beside, id);
    container = moving_container(beside->moving, id);
    if (!container)
        return;
    (void)partition_map_spans(container_map(container), &count);
    if (kind == MIGRATION_MERGE ? count < 2 : kind != MIGRATION_MOVE && count > 6)
        return;
    fine = kind == MIGRATION_REKEY ? rekey(beside, container, &err)
                                   : moving_migrate(beside->moving, container, kind, &err);
    container_unref(TAKE(container));
    if (fine)
        beside->counts.migrations[kind]++;
    else if (err.code != ERROR_BUSY && err.code != ERROR_BAD_REQUEST &&
             err.code != ERROR_VIEW_UNFIT)
        excuse(beside, &err);
}

/* --- Keeping views --------------------------------------------------------------------------- */

static void views_round(struct beside *beside)
{
    unsigned rounds = 1 + below(beside, 3);
    struct error err;
    bool more;

    for (unsigned i = 0; i < rounds; i++)
        if (!rest_views_round(beside->views, &more, &err)) {
            excuse(beside, &err);
            return;
        }
    beside->counts.rounds++;
}

/* Histories lose what views may not have seen. */
static void history_cut(struct beside *beside)
{
    struct error err;
    bool removed;

    for (size_t i = 0; i < cluster_count(beside->moving->cluster); i++) {
        const struct cluster_node *node = cluster_at(beside->moving->cluster, i);

        if (!history_trim(node->engine, node->commit, &(struct history_limits){.retention_ms = 1},
                          clock_read_wall_ms(&clock_system) + 3600 * 1000, &removed, &err)) {
            excuse(beside, &err);
            return;
        }
    }
    beside->counts.trims++;
}

/* A node that came back may have to find out what became of its last write. */
static void times_settle(struct beside *beside)
{
    struct commit_clock *times = cluster_times(beside->moving->cluster);
    int64_t since_ms = clock_monotonic_ms();
    uint64_t now = commit_clock_now(times);

    while (commit_clock_settled(times) < now) {
        if (clock_monotonic_ms() - since_ms > 60 * 1000)
            fail_msg("seed %llu step %u: what was committed is never settled",
                     (unsigned long long)beside->moving->seed, beside->moving->step);
        sched_yield();
    }
}

static void views_settle(struct beside *beside)
{
    struct error err;
    bool more;

    times_settle(beside);

    /* twice: a view of a view hears of what the round before has written */
    for (int times = 0; times < 2; times++)
        for (int i = 0; i == 0 || more; i++) {
            if (!rest_views_round(beside->views, &more, &err))
                failed(beside, &err);
            if (i == 20000)
                fail_msg("seed %llu step %u: a view is never done",
                         (unsigned long long)beside->moving->seed, beside->moving->step);
        }
}

/* --- All of it ------------------------------------------------------------------------------- */

struct beside *beside_new(struct moving *moving)
{
    struct beside *beside = MEMORY_NEW(struct beside);
    struct error err;

    beside->moving = moving;
    for (size_t i = 0; i < TABLES; i++) {
        beside->tables[i] = tables[i];
        assert_ok(moving_container_make(moving, document_of(moving->arena, tables[i].body), &err),
                  &err);
    }
    for (size_t i = 0; i < BESIDE_VIEWS; i++)
        view_make(beside, i);
    return beside;
}

void beside_free(struct beside *beside)
{
    memory_free(beside);
}

void beside_start(struct beside *beside, struct moving *moving)
{
    if (!beside)
        return;
    beside->copies = query_copies_new(COPY_BYTES);
    beside->views =
        rest_views_new(&(struct rest_views_options){.services = {.catalogue = moving->catalogue,
                                                                 .gates = moving->gates,
                                                                 .clock = &clock_system},
                                                    .lag_ms_max = INT64_MAX / 2,
                                                    .by_hand = true});
}

void beside_stop(struct beside *beside)
{
    if (!beside)
        return;
    rest_views_free(TAKE(beside->views));
    query_copies_free(TAKE(beside->copies));
}

const char *beside_id(const struct beside *beside, size_t nth)
{
    if (!beside || nth >= BESIDE_CONTAINERS_MAX)
        return NULL;
    return nth < TABLES ? tables[nth].id : view_ids[nth - TABLES];
}

void beside_go_on(struct beside *beside)
{
    struct error err;
    bool more;

    if (beside && !rest_views_round(beside->views, &more, &err))
        failed(beside, &err);
}

void beside_step(struct beside *beside)
{
    unsigned dice = below(beside, 100);

    if (dice < 30)
        row_write(beside, &beside->tables[below(beside, TABLES)]);
    else if (dice < 60)
        views_round(beside);
    else if (dice < 75)
        join_run(beside);
    else if (dice < 92)
        migrate(beside);
    else if (dice < 99)
        view_change(beside);
    else
        history_cut(beside);
}

void beside_check(struct beside *beside)
{
    struct error err;

    if (!beside)
        return;
    views_settle(beside);
    assert_ok(catalogue_purge(beside->moving->catalogue, &err), &err); /* what was dropped */
    for (size_t i = 0; i < TABLES; i++)
        table_check(beside, &beside->tables[i]);
    for (size_t i = 0; i < BESIDE_VIEWS; i++) {
        CLEANUP(container_unref)
        struct container *view = moving_container(beside->moving, view_ids[i]);

        if (!view)
            continue;
        container_unref(TAKE(view));
        views_expect(beside->moving->catalogue, SLICE("default"), SLICE("d"), view_ids[i]);
        beside->counts.checked++;
    }
    join_run(beside);
}

const struct beside_counts *beside_counts(const struct beside *beside)
{
    return &beside->counts;
}
