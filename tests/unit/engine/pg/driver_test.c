/* What only the postgresql: driver does, on a server that behaves; the contract has the rest, and
 * fault/pg_connection a server that does not. */
#include "base/random.h"
#include "engine/pg/pg_private.h"
#include "support/check.h"
#include "support/postgres.h"

static struct postgres *server;

/* A clock whose hands we turn. */
struct hands {
    struct clock clock;
    int64_t now_ms;
};

static int64_t hands_read(void *context)
{
    return ((struct hands *)context)->now_ms;
}

struct store {
    struct engine *engine;
    struct arena *arena;
    struct hands hands;
    char url[256];
};

static struct engine_options options_of(struct store *store)
{
    return (struct engine_options){
        .clock = &store->hands.clock, .snapshot_ms_max = 20000, .connect_ms_max = 1000};
}

static void store_open(struct store *store, const struct engine_options *options)
{
    struct error err;

    assert_ok(engine_open(slice_of_text(store->url), options, &store->engine, &err), &err);
}

static int setup(void **state)
{
    struct store *store = MEMORY_NEW(struct store);
    struct engine_options options;
    struct error err;

    store->hands.clock = (struct clock){hands_read, hands_read, &store->hands};
    store->hands.now_ms = 1000000;
    snprintf(store->url, sizeof store->url, "%s", postgres_fresh_url(server));
    store->arena = arena_new();
    options = options_of(store);
    options.connections_max = 2;
    store_open(store, &options);
    assert_ok(engine_partition_create(store->engine, 1, 1, &err), &err);
    *state = store;
    return 0;
}

static int teardown(void **state)
{
    struct store *store = *state;

    engine_close(store->engine);
    arena_free(store->arena);
    memory_free(store);
    return 0;
}

static void put_in(struct store *store, uint32_t partition, struct slice key, struct slice value)
{
    struct engine_op op = {ENGINE_PUT, key, value};
    struct engine_section section = {.partition = partition, .epoch = 1, .ops = &op, .count = 1};
    struct error err;

    assert_ok(engine_write(store->engine, &section, 1, &err), &err);
}

static bool get(struct store *store, struct engine_snapshot *snapshot, uint32_t partition,
                struct slice key, struct engine_value *ret_value, struct error *err)
{
    return engine_get(store->engine, snapshot, partition, key, ENGINE_READ_ANY, store->arena,
                      ret_value, err);
}

static struct engine_snapshot *snapshot_of(struct store *store)
{
    struct engine_snapshot *snapshot;
    struct error err;

    assert_ok(engine_snapshot_new(store->engine, &snapshot, &err), &err);
    return snapshot;
}

/* --- Snapshots and the pool ------------------------------------------------------------------ */

static void a_snapshot_past_its_deadline_is_refused(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = snapshot_of(store);
    struct engine_value value;
    struct error err;

    store->hands.now_ms += 19999;
    assert_ok(get(store, snapshot, 1, SLICE("a"), &value, &err), &err);
    store->hands.now_ms += 1;
    assert_fails(get(store, snapshot, 1, SLICE("a"), &value, &err), &err,
                 ERROR_STORE_SNAPSHOT_EXPIRED);
}

static void the_server_ends_a_snapshot_nobody_uses(void **state)
{
    struct store *store = *state;
    struct engine_options options = {.snapshot_ms_max = 200};
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    static const char idle[] = "SELECT count(*) FROM pg_stat_activity"
                               " WHERE datname = current_database()"
                               " AND state = 'idle in transaction'";
    struct engine_value value;
    struct error err;

    engine_close(TAKE(store->engine));
    options.clock = &store->hands.clock; /* whose time stands still */
    store_open(store, &options);
    snapshot = snapshot_of(store);
    assert_ok(get(store, snapshot, 1, SLICE("a"), &value, &err), &err);
    while (strcmp(postgres_query(server, idle), "0") != 0)
        continue;
    assert_fails(get(store, snapshot, 1, SLICE("a"), &value, &err), &err,
                 ERROR_STORE_SNAPSHOT_EXPIRED);
    assert_fails(get(store, snapshot, 1, SLICE("a"), &value, &err), &err,
                 ERROR_STORE_SNAPSHOT_EXPIRED);
}

static void a_pool_in_use_is_busy_until_something_is_given_back(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) UNUSED struct engine_snapshot *first = snapshot_of(store);
    CLEANUP(engine_snapshot_free) struct engine_snapshot *second = snapshot_of(store);
    struct engine_snapshot *third;
    struct engine_value value;
    struct error err;

    assert_fails(get(store, NULL, 1, SLICE("a"), &value, &err), &err, ERROR_BUSY);
    assert_fails(engine_snapshot_new(store->engine, &third, &err), &err, ERROR_BUSY);
    put_in(store, 1, SLICE("a"), SLICE("writers do not wait for readers"));
    engine_snapshot_free(TAKE(second));
    assert_ok(get(store, NULL, 1, SLICE("a"), &value, &err), &err);
    assert_int_equal(value.found, ENGINE_FOUND);
}

static void expired_snapshots_make_room_for_others(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *first = snapshot_of(store);
    CLEANUP(engine_snapshot_free) struct engine_snapshot *second = snapshot_of(store);
    struct engine_value value;
    struct error err;

    store->hands.now_ms += 20000;
    assert_ok(get(store, NULL, 1, SLICE("a"), &value, &err), &err);
    assert_fails(get(store, first, 1, SLICE("a"), &value, &err), &err,
                 ERROR_STORE_SNAPSHOT_EXPIRED);
    assert_fails(get(store, second, 1, SLICE("a"), &value, &err), &err,
                 ERROR_STORE_SNAPSHOT_EXPIRED);
}

static void a_short_iterator_holds_no_connection(void **state)
{
    struct store *store = *state;
    struct engine_iterator *iterators[10];
    struct engine_entry entry;
    struct error err;

    put_in(store, 1, SLICE("a"), SLICE("1"));
    put_in(store, 1, SLICE("b"), SLICE("2"));
    for (size_t i = 0; i < ARRAY_LEN(iterators); i++)
        assert_ok(engine_iterator_new(store->engine, NULL, 1, (struct engine_range){0}, false,
                                      ENGINE_READ_ANY, &iterators[i], &err),
                  &err);
    for (size_t i = 0; i < ARRAY_LEN(iterators); i++) {
        assert_ok(engine_iterator_seek(iterators[i], SLICE("aa"), &err), &err);
        assert_ok(engine_iterator_next(iterators[i], &entry, &err), &err);
        assert_slice_equal(entry.key, SLICE("b"));
        engine_iterator_free(iterators[i]);
    }
}

static void an_unknown_partition_does_not_spoil_a_snapshot(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct engine_value value;
    struct error err;

    put_in(store, 1, SLICE("a"), SLICE("1"));
    snapshot = snapshot_of(store);
    assert_fails(get(store, snapshot, 77, SLICE("a"), &value, &err), &err, ERROR_PARTITION_UNKNOWN);
    assert_ok(get(store, snapshot, 1, SLICE("a"), &value, &err), &err);
    assert_int_equal(value.found, ENGINE_FOUND);
    assert_fails(get(store, snapshot, 78, SLICE("a"), &value, &err), &err, ERROR_PARTITION_UNKNOWN);
    assert_ok(get(store, snapshot, 1, SLICE("a"), &value, &err), &err);
}

static void a_snapshot_whose_session_ended_says_so_and_frees_its_place(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *first = snapshot_of(store);
    CLEANUP(engine_snapshot_free) struct engine_snapshot *second = snapshot_of(store);
    struct engine_value value;
    struct error err;

    postgres_query(server, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                           " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    assert_fails(get(store, first, 1, SLICE("a"), &value, &err), &err, ERROR_STORE_UNAVAILABLE);
    assert_fails(get(store, first, 1, SLICE("a"), &value, &err), &err, ERROR_STORE_UNAVAILABLE);
    assert_ok(get(store, NULL, 1, SLICE("a"), &value, &err), &err);
    assert_fails(get(store, second, 1, SLICE("a"), &value, &err), &err, ERROR_STORE_UNAVAILABLE);
}

static void dropping_a_partition_does_not_wait_for_its_readers(void **state)
{
    struct store *store = *state;
    static const char tables[] = "SELECT count(*) FROM pg_class WHERE relname = 'p_1'";
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct engine_statistics statistics;
    struct engine_value value;
    struct error err;

    put_in(store, 1, SLICE("a"), SLICE("1"));
    snapshot = snapshot_of(store);
    assert_ok(get(store, snapshot, 1, SLICE("a"), &value, &err), &err);
    assert_ok(engine_partition_drop(store->engine, 1, &err), &err);
    assert_fails(get(store, NULL, 1, SLICE("a"), &value, &err), &err, ERROR_PARTITION_UNKNOWN);
    assert_ok(get(store, snapshot, 1, SLICE("a"), &value, &err), &err);
    assert_string_equal(postgres_query(server, tables), "1");
    assert_ok(engine_partition_drop(store->engine, 1, &err), &err);

    engine_snapshot_free(TAKE(snapshot));
    assert_ok(engine_statistics(store->engine, &statistics, &err), &err);
    assert_string_equal(postgres_query(server, tables), "0");
    assert_string_equal(postgres_query(server, "SELECT count(*) FROM orrery.partition"), "0");
    assert_fails(get(store, NULL, 1, SLICE("a"), &value, &err), &err, ERROR_PARTITION_UNKNOWN);
}

static void a_drop_begun_is_remembered_over_a_reopening(void **state)
{
    struct store *store = *state;
    struct engine_options options = options_of(store);
    struct engine_value value;
    struct error err;

    engine_close(TAKE(store->engine));
    postgres_query(server, "UPDATE orrery.partition SET dropped = true");
    store_open(store, &options);
    assert_fails(get(store, NULL, 1, SLICE("a"), &value, &err), &err, ERROR_PARTITION_UNKNOWN);
    assert_ok(engine_partition_create(store->engine, 1, 1, &err), &err);
    put_in(store, 1, SLICE("a"), SLICE("1"));
}

/* --- Keys, pages, statements ----------------------------------------------------------------- */

enum { LONG_KEYS = 60 };

static int slice_order(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Keys around the borders of the tree's nodes, many of them sharing their heads. Sorted, unique. */
static size_t long_keys(struct arena *arena, struct slice ret_keys[LONG_KEYS])
{
    static const size_t lens[] = {1,    100,  2047, 2048, 2049,  2050, 3000,
                                  4095, 4096, 4097, 6144, 10000, 16384};
    struct random random;
    size_t count = 0;

    random_seed(&random, 11);
    for (size_t i = 0; i < LONG_KEYS; i++) {
        size_t len = lens[random_below(&random, ARRAY_LEN(lens))];
        uint8_t *bytes = arena_alloc(arena, len);

        memset(bytes, 'm', len);
        if (random_below(&random, 2))
            bytes[random_below(&random, len)] = (uint8_t)random_next(&random);
        if (random_below(&random, 2))
            bytes[len - 1] = (uint8_t)random_next(&random);
        ret_keys[i] = slice_of(bytes, len);
    }
    qsort(ret_keys, LONG_KEYS, sizeof *ret_keys, slice_order);
    for (size_t i = 0; i < LONG_KEYS; i++)
        if (count == 0 || !slice_equal(ret_keys[i], ret_keys[count - 1]))
            ret_keys[count++] = ret_keys[i];
    return count;
}

static void long_keys_write(struct store *store, const struct slice *keys, size_t count)
{
    struct engine_op *ops = ARENA_ARRAY(store->arena, struct engine_op, count);
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = ops, .count = count};
    struct error err;

    for (size_t i = 0; i < count; i++)
        ops[i] = (struct engine_op){ENGINE_PUT, keys[i], arena_printf(store->arena, "%zu", i)};
    assert_ok(engine_write(store->engine, &section, 1, &err), &err);
}

/* Walks from the seek (NULL: none) and expects the keys from..to-1, or the other way round. */
static void walk_expect(struct store *store, struct engine_range range, bool backwards,
                        const struct slice *seek, const struct slice *keys, size_t from, size_t to)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct error err;

    assert_ok(engine_iterator_new(store->engine, NULL, 1, range, backwards, ENGINE_READ_ANY,
                                  &iterator, &err),
              &err);
    if (seek)
        assert_ok(engine_iterator_seek(iterator, *seek, &err), &err);
    for (size_t i = from; i < to; i++) {
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        assert_int_equal(entry.found, ENGINE_FOUND);
        assert_true(slice_equal(entry.key, keys[backwards ? to - 1 - (i - from) : i]));
    }
    assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
    assert_int_equal(entry.found, ENGINE_ABSENT);
}

static void keys_of_any_length_are_walked_in_order(void **state)
{
    struct store *store = *state;
    struct slice keys[LONG_KEYS];
    size_t count = long_keys(store->arena, keys);
    struct engine_value values[LONG_KEYS];
    struct error err;

    long_keys_write(store, keys, count);
    assert_ok(engine_multi_get(store->engine, NULL, 1, keys, count, ENGINE_READ_ANY, store->arena,
                               values, &err),
              &err);
    for (size_t i = 0; i < count; i++)
        assert_slice_equal(values[i].bytes, arena_printf(store->arena, "%zu", i));
    for (size_t i = 0; i < count; i += 3)
        for (size_t j = i; j < count; j += 5) {
            struct engine_range range = {keys[i], keys[j]};

            walk_expect(store, range, false, NULL, keys, i, j);
            walk_expect(store, range, true, NULL, keys, i, j);
        }
    for (size_t i = 0; i < count; i++) {
        walk_expect(store, (struct engine_range){0}, false, &keys[i], keys, i, count);
        walk_expect(store, (struct engine_range){0}, true, &keys[i], keys, 0, i + 1);
    }
}

static void a_range_of_long_keys_is_dropped_exactly(void **state)
{
    struct store *store = *state;
    struct slice keys[LONG_KEYS];
    size_t count = long_keys(store->arena, keys);
    struct slice left[LONG_KEYS];
    struct error err;

    for (size_t i = 0; i < count; i += 7)
        for (size_t j = i + 1; j < count; j += 11) {
            size_t left_count = 0;

            for (size_t k = 0; k < count; k++)
                if (k < i || k >= j)
                    left[left_count++] = keys[k];
            long_keys_write(store, keys, count);
            assert_ok(engine_range_drop(store->engine, 1, 1,
                                        (struct engine_range){keys[i], keys[j]}, &err),
                      &err);
            walk_expect(store, (struct engine_range){0}, false, NULL, left, 0, left_count);
        }
    assert_ok(engine_range_drop(store->engine, 1, 1, (struct engine_range){0}, &err), &err);
    assert_string_equal(postgres_query(server, "SELECT count(*) FROM orrery.p_1"), "0");
    assert_fails(engine_range_drop(store->engine, 1, 2, (struct engine_range){0}, &err), &err,
                 ERROR_FENCED);
}

static void pages_of_large_values_stay_small_and_complete(void **state)
{
    enum { COUNT = 9, LEN = 3 * 1024 * 1024 };
    struct store *store = *state;
    uint8_t *bytes = arena_alloc_zero(store->arena, LEN);
    struct slice keys[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = arena_printf(store->arena, "%zu", i);
        put_in(store, 1, keys[i], slice_of(bytes, LEN));
    }
    walk_expect(store, (struct engine_range){0}, false, NULL, keys, 0, COUNT);
    walk_expect(store, (struct engine_range){0}, true, NULL, keys, 0, COUNT);
}

static void a_value_of_the_largest_size_comes_back(void **state)
{
    struct store *store = *state;
    uint8_t *bytes = arena_alloc(store->arena, ENGINE_VALUE_MAX);
    struct slice keys[] = {SLICE("a"), SLICE("b"), SLICE("c")};
    struct engine_value value;
    struct error err;

    memset(bytes, 0xAB, ENGINE_VALUE_MAX);
    put_in(store, 1, SLICE("a"), SLICE("1"));
    put_in(store, 1, SLICE("b"), slice_of(bytes, ENGINE_VALUE_MAX));
    put_in(store, 1, SLICE("c"), SLICE("3"));
    assert_ok(get(store, NULL, 1, SLICE("b"), &value, &err), &err);
    assert_true(slice_equal(value.bytes, slice_of(bytes, ENGINE_VALUE_MAX)));
    walk_expect(store, (struct engine_range){0}, false, NULL, keys, 0, ARRAY_LEN(keys));
}

static void more_partitions_than_prepared_statements_are_served(void **state)
{
    enum { COUNT = PG_STATEMENTS_MAX + 20 };
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct engine_value value;
    struct error err;

    for (uint32_t id = 2; id < COUNT; id++) {
        assert_ok(engine_partition_create(store->engine, id, 1, &err), &err);
        put_in(store, id, SLICE("a"), arena_printf(store->arena, "%u", id));
    }
    for (int round = 0; round < 2; round++)
        for (uint32_t id = 2; id < COUNT; id++) {
            assert_ok(get(store, NULL, id, SLICE("a"), &value, &err), &err);
            assert_slice_equal(value.bytes, arena_printf(store->arena, "%u", id));
        }
    snapshot = snapshot_of(store);
    for (uint32_t id = COUNT - 1; id >= 2; id--) {
        assert_ok(get(store, snapshot, id, SLICE("a"), &value, &err), &err);
        assert_slice_equal(value.bytes, arena_printf(store->arena, "%u", id));
    }
}

/* A table is read from one end to the other once, to build the index of the empty table. */
static void reads_and_writes_go_through_the_index(void **state)
{
    struct store *store = *state;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;
    struct error err;

    for (unsigned i = 0; i < 20; i++) {
        put_in(store, 1, arena_printf(arena, "%u", i), SLICE("1"));
        assert_ok(get(store, NULL, 1, arena_printf(arena, "%u", i), &value, &err), &err);
        assert_ok(engine_multi_get(store->engine, NULL, 1, &SLICE("1"), 1, ENGINE_READ_ANY, arena,
                                   &value, &err),
                  &err);
        walk_expect(store, (struct engine_range){SLICE("1"), SLICE("10")}, false, NULL, &SLICE("1"),
                    0, i >= 1);
    }
    assert_ok(engine_range_drop(store->engine, 1, 1, (struct engine_range){0}, &err), &err);
    engine_close(TAKE(store->engine)); /* sessions hand in their figures when they end */
    while (strcmp(postgres_query(server, "SELECT count(*) FROM pg_stat_activity"
                                         " WHERE datname = current_database()"),
                  "1") != 0)
        continue;
    assert_string_equal(postgres_query(server, "SELECT seq_scan || ' ' || (idx_scan > 60)"
                                               " FROM pg_stat_user_tables WHERE relname = 'p_1'"),
                        "1 true");
}

static void the_size_of_a_range_follows_its_share(void **state)
{
    enum { COUNT = 20000 };
    struct store *store = *state;
    struct engine_op *ops = ARENA_ARRAY(store->arena, struct engine_op, COUNT);
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = ops, .count = COUNT};
    uint64_t all, quarter, few;
    struct error err;

    for (size_t i = 0; i < COUNT; i++)
        ops[i] = (struct engine_op){ENGINE_PUT, arena_printf(store->arena, "%08zu", i),
                                    arena_printf(store->arena, "%0100zu", i)};
    assert_ok(engine_write(store->engine, &section, 1, &err), &err);
    assert_ok(engine_range_size(store->engine, 1, (struct engine_range){0}, &all, &err), &err);
    assert_ok(engine_range_size(store->engine, 1,
                                (struct engine_range){SLICE("00005000"), SLICE("00010000")},
                                &quarter, &err),
              &err);
    assert_ok(engine_range_size(store->engine, 1,
                                (struct engine_range){SLICE("00005000"), SLICE("00005010")}, &few,
                                &err),
              &err);
    assert_true(all >= (uint64_t)COUNT * 108);
    assert_in_range(quarter, all / 20, all / 2);
    assert_in_range(few, 1080, 1200);
}

/* --- Opening --------------------------------------------------------------------------------- */

static void servers_too_old_are_refused_naming_both_versions(void **state UNUSED)
{
    struct error err;

    assert_true(pg_server_version_check(130000, &err));
    assert_true(pg_server_version_check(170002, &err));
    assert_fails(pg_server_version_check(120022, &err), &err, ERROR_STORE_VERSION);
    assert_contains(err.message, "12.22");
    assert_contains(err.message, "13");
}

static void open_fails(const char *url, enum error_code code, const char *part)
{
    struct engine_options options = {.connect_ms_max = 500};
    struct engine *engine;
    struct error err;

    assert_fails(engine_open(slice_of_text(url), &options, &engine, &err), &err, code);
    assert_contains(err.message, part);
    assert_null(strstr(err.message, "secret"));
    assert_null(strchr(err.message, '\n'));
}

static void what_cannot_be_reached_says_why_and_keeps_the_password(void **state UNUSED)
{
    open_fails("postgresql://u:secret@127.0.0.1:1/db", ERROR_STORE_UNAVAILABLE, "refused");
    open_fails("postgres://u:secret@/db?host=/nowhere", ERROR_STORE_UNAVAILABLE, "No such file");
    open_fails("postgresql://u:secret@127.0.0.1/db?password=secret&what=1", ERROR_STORE_URL,
               "what");
    open_fails("postgresql://u:secret@[::1/db", ERROR_STORE_URL, "***");
}

static void a_schema_of_somebody_else_is_left_alone(void **state UNUSED)
{
    char url[256];

    snprintf(url, sizeof url, "%s", postgres_fresh_url(server));
    postgres_query(server, "CREATE SCHEMA orrery; CREATE TABLE orrery.planets (name text)");
    open_fails(url, ERROR_STORE_FOREIGN, "not an Orrery node");
    assert_string_equal(
        postgres_query(server, "SELECT count(*) FROM pg_tables WHERE schemaname = 'orrery'"), "1");
}

static void an_empty_schema_made_for_us_is_used(void **state UNUSED)
{
    struct engine *engine;
    struct error err;
    char url[256];

    snprintf(url, sizeof url, "%s", postgres_fresh_url(server));
    postgres_query(server, "CREATE SCHEMA orrery");
    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){0}, &engine, &err), &err);
    assert_null(memmem(engine_name(engine).data, engine_name(engine).len, "secret", 6));
    engine_close(engine);
}

static void a_newer_format_is_refused(void **state)
{
    struct store *store = *state;

    engine_close(TAKE(store->engine));
    postgres_query(server, "UPDATE orrery.node SET format = 3");
    open_fails(store->url, ERROR_STORE_VERSION, "format 3");
}

static void a_server_without_fsync_does_not_count_as_durable(void **state)
{
    struct store *store = *state;
    struct engine_statistics statistics;
    struct error err;

    assert_ok(engine_statistics(store->engine, &statistics, &err), &err);
    assert_false(statistics.durable); /* the test's own server runs without */
    assert_true(statistics.bytes_stored > 0);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(a_snapshot_past_its_deadline_is_refused),
        WITH_STORE(the_server_ends_a_snapshot_nobody_uses),
        WITH_STORE(a_pool_in_use_is_busy_until_something_is_given_back),
        WITH_STORE(expired_snapshots_make_room_for_others),
        WITH_STORE(a_short_iterator_holds_no_connection),
        WITH_STORE(an_unknown_partition_does_not_spoil_a_snapshot),
        WITH_STORE(a_snapshot_whose_session_ended_says_so_and_frees_its_place),
        WITH_STORE(dropping_a_partition_does_not_wait_for_its_readers),
        WITH_STORE(a_drop_begun_is_remembered_over_a_reopening),
        WITH_STORE(keys_of_any_length_are_walked_in_order),
        WITH_STORE(a_range_of_long_keys_is_dropped_exactly),
        WITH_STORE(pages_of_large_values_stay_small_and_complete),
        WITH_STORE(a_value_of_the_largest_size_comes_back),
        WITH_STORE(more_partitions_than_prepared_statements_are_served),
        WITH_STORE(reads_and_writes_go_through_the_index),
        WITH_STORE(the_size_of_a_range_follows_its_share),
        cmocka_unit_test(servers_too_old_are_refused_naming_both_versions),
        cmocka_unit_test(what_cannot_be_reached_says_why_and_keeps_the_password),
        cmocka_unit_test(a_schema_of_somebody_else_is_left_alone),
        cmocka_unit_test(an_empty_schema_made_for_us_is_used),
        WITH_STORE(a_newer_format_is_refused),
        WITH_STORE(a_server_without_fsync_does_not_count_as_durable),
    };
    int failed;

    server = postgres_start(false);
    failed = cmocka_run_group_tests_name("engine/pg/driver", tests, NULL, NULL);
    postgres_free(server);
    return failed;
}
