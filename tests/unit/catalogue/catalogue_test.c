#include "catalogue/catalogue.h"

#include "base/thread.h"
#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

#include <sched.h>
#include <stdatomic.h>

/* --- Short words for what the stories do ----------------------------------------------------- */

static bool try_database(struct bench *bench, const char *account, const char *id, int64_t ru,
                         struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct offer_request request = {.given = ru > 0, .ru = ru};

    return catalogue_database_create(bench->catalogue, slice_of_text(account), slice_of_text(id),
                                     &request, &database, err);
}

static bool try_container(struct bench *bench, const char *account, const char *database,
                          const char *json, const struct offer_request *request, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    return catalogue_container_create(bench->catalogue, slice_of_text(account),
                                      slice_of_text(database), document_of(bench->arena, json),
                                      request, &container, err);
}

static struct container *open_container(struct bench *bench, const char *account,
                                        const char *database, const char *id)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(bench->catalogue, slice_of_text(account),
                                       slice_of_text(database), slice_of_text(id), &container,
                                       &err),
              &err);
    return container;
}

static bool has_container(struct bench *bench, const char *account, const char *database,
                          const char *id)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    return catalogue_container_open(bench->catalogue, slice_of_text(account),
                                    slice_of_text(database), slice_of_text(id), &container, &err);
}

static bool drop_container(struct bench *bench, const char *account, const char *database,
                           const char *id, struct error *err)
{
    return catalogue_container_drop(bench->catalogue, slice_of_text(account),
                                    slice_of_text(database), slice_of_text(id), SLICE_NONE, err);
}

/* Physical partitions on the node, the catalogue's own and the history left out. */
static size_t partition_count(struct bench *bench)
{
    struct engine_partition *partitions;
    struct error err;
    size_t count;

    assert_ok(engine_partition_list(bench->engine, bench->arena, &partitions, &count, &err), &err);
    return history_others(partitions, count) - 1;
}

static size_t span_count(const struct container *container)
{
    size_t count;

    partition_map_spans(container_map(container), &count);
    return count;
}

/* A write into every partition of a container, as an item would make. */
static void assert_writable(struct container *container)
{
    const struct partition_span *spans;
    size_t count;

    spans = partition_map_spans(container_map(container), &count);
    for (size_t i = 0; i < count; i++) {
        struct engine_op op = {ENGINE_PUT, SLICE("d"), SLICE("x")};
        struct commit_part part = {
            .partition = spans[i].id, .epoch = spans[i].epoch, .ops = &op, .op_count = 1};
        struct commit_batch batch = {
            .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};
        struct error err;

        assert_ok(commit_run(container_commit(container, spans[i].node), &batch, &err), &err);
    }
}

/* --- Stories --------------------------------------------------------------------------------- */

static void whether_throughput_was_stated_is_kept(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *said = NULL, *not_said = NULL;
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("said"), 400);
    assert_ok(catalogue_container_create(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                         document_of(bench->arena, BENCH_BODY("not_said")), NULL,
                                         &not_said, &err),
              &err);
    container_unref(TAKE(not_said));
    bench_reopen(bench);
    said = open_container(bench, "acme", "shop", "said");
    not_said = open_container(bench, "acme", "shop", "not_said");
    assert_true(container_is_enforced(said));
    assert_false(container_is_enforced(not_said));
    assert_int_equal(container_offer(not_said)->ru, 400);
}

static void everything_is_there_after_a_restart(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *before = NULL, *after = NULL;
    CLEANUP(account_unref) struct account *account = NULL;
    struct slice id, etag, rid, document;
    struct error err;
    int64_t ts_ms;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 25000);
    before = open_container(bench, "acme", "shop", "orders");
    id = arena_copy(bench->arena, container_info(before)->id);
    etag = arena_copy(bench->arena, container_info(before)->etag);
    rid = arena_copy(bench->arena, container_info(before)->rid);
    document = arena_copy(bench->arena, definition_fields(container_definition(before))->document);
    ts_ms = container_info(before)->ts_ms;
    container_unref(TAKE(before));

    bench_reopen(bench);
    after = open_container(bench, "acme", "shop", "orders");
    assert_slice_equal(container_info(after)->id, id);
    assert_slice_equal(container_info(after)->etag, etag);
    assert_slice_equal(container_info(after)->rid, rid);
    assert_true(slice_equal(definition_fields(container_definition(after))->document, document));
    assert_int_equal(container_info(after)->ts_ms, ts_ms);
    assert_int_equal(container_offer(after)->ru, 25000);
    assert_int_equal(span_count(after), 3);
    assert_int_equal(partition_count(bench), 3);
    assert_writable(after);
    assert_ok(catalogue_account_open(bench->catalogue, SLICE("acme"), &account, &err), &err);
    assert_true(slice_equal(account_properties(account),
                            document_of(bench->arena, "{\"key\":\"secret\"}")));
}

static void a_container_begins_with_as_many_partitions_as_its_throughput_needs(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *body;
        int64_t ru;
        size_t partitions;
    } cases[] = {
        {BENCH_BODY("a"), 0, 1},     {BENCH_BODY("b"), 400, 1},   {BENCH_BODY("c"), 10000, 1},
        {BENCH_BODY("d"), 10100, 2}, {BENCH_BODY("e"), 20000, 2}, {BENCH_BODY("f"), 50100, 6},
    };

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(container_unref) struct container *container = NULL;
        char id[2] = {(char)('a' + i), 0};
        const struct partition_span *spans;
        size_t count;

        bench_container(bench, "acme", "shop", cases[i].body, cases[i].ru);
        container = open_container(bench, "acme", "shop", id);
        spans = partition_map_spans(container_map(container), &count);
        assert_int_equal(count, cases[i].partitions);
        for (size_t j = 0; j < count; j++)
            assert_true(spans[j].share * (double)count > 0.999 &&
                        spans[j].share * (double)count < 1.001);
        assert_writable(container);
    }
}

static void a_recreated_container_has_another_rid(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *first = NULL, *second = NULL;
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
    first = open_container(bench, "acme", "shop", "orders");
    assert_ok(drop_container(bench, "acme", "shop", "orders", &err), &err);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
    second = open_container(bench, "acme", "shop", "orders");
    assert_false(slice_equal(container_info(first)->rid, container_info(second)->rid));
    assert_true(partition_map_spans(container_map(first), &(size_t){0})->id !=
                partition_map_spans(container_map(second), &(size_t){0})->id);
}

static void a_dropped_container_is_gone_at_once_and_its_partitions_later(void **state)
{
    struct bench *bench = *state;
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 20000);
    bench_container(bench, "acme", "shop", BENCH_BODY("kept"), 0);
    assert_ok(drop_container(bench, "acme", "shop", "orders", &err), &err);
    assert_false(has_container(bench, "acme", "shop", "orders"));
    assert_int_equal(partition_count(bench), 3);
    assert_int_equal(catalogue_purges_left(bench->catalogue), 1);
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    assert_int_equal(partition_count(bench), 1);
    assert_int_equal(catalogue_purges_left(bench->catalogue), 0);
    assert_fails(drop_container(bench, "acme", "shop", "orders", &err), &err, ERROR_NOT_FOUND);
    assert_true(has_container(bench, "acme", "shop", "kept"));
}

static void what_was_dropped_is_purged_after_a_restart(void **state)
{
    struct bench *bench = *state;
    struct error err;

    bench_account(bench, "acme");
    bench_account(bench, "zenith");
    bench_database(bench, "acme", "shop", 0);
    bench_database(bench, "zenith", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 20000);
    bench_container(bench, "acme", "shop", BENCH_BODY("other"), 20000);
    bench_container(bench, "zenith", "shop", BENCH_BODY("orders"), 0);
    assert_ok(drop_container(bench, "acme", "shop", "orders", &err), &err);
    assert_ok(catalogue_account_drop(bench->catalogue, SLICE("acme"), &err), &err);
    bench_reopen(bench);
    assert_false(has_container(bench, "acme", "shop", "other"));
    assert_int_equal(partition_count(bench), 5);
    assert_int_equal(catalogue_purges_left(bench->catalogue), 2);
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    assert_int_equal(partition_count(bench), 1);
    bench_reopen(bench);
    assert_int_equal(catalogue_purges_left(bench->catalogue), 0);
    assert_true(has_container(bench, "zenith", "shop", "orders"));
}

static void accounts_do_not_see_each_other(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL, *stranger = NULL;
    char text[RID_TEXT_SIZE];
    struct rid database;
    struct error err;

    for (int i = 0; i < 50; i++) {
        const char *id = arena_text(bench->arena, arena_printf(bench->arena, "account%d", i));

        bench_account(bench, id);
        bench_database(bench, id, "shop", 0);
        if (i % 10 == 0)
            bench_container(bench, id, "shop", BENCH_BODY("orders"), 0);
    }
    container = open_container(bench, "account10", "shop", "orders");
    database = rid_of_database(container_database_number(container));
    assert_false(has_container(bench, "account11", "shop", "orders"));

    /* Not even by the rids of another account's. */
    assert_fails(catalogue_container_open(bench->catalogue, SLICE("account20"),
                                          rid_format(database, text), SLICE("orders"), &stranger,
                                          &err),
                 &err, ERROR_OWNER_NOT_FOUND);
    assert_fails(catalogue_container_open(bench->catalogue, SLICE("account20"), SLICE("shop"),
                                          container_info(container)->rid, &stranger, &err),
                 &err, ERROR_NOT_FOUND);
    assert_ok(catalogue_account_drop(bench->catalogue, SLICE("account10"), &err), &err);
    assert_fails(try_database(bench, "account10", "new", 0, &err), &err, ERROR_OWNER_NOT_FOUND);
    assert_true(has_container(bench, "account20", "shop", "orders"));

    /* The name is free again, and the new account is empty. */
    bench_account(bench, "account10");
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    assert_false(has_container(bench, "account10", "shop", "orders"));
    assert_int_equal(partition_count(bench), 4);
}

static void a_container_opens_by_rid_too(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *by_name = NULL, *by_rid = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
    by_name = open_container(bench, "acme", "shop", "orders");
    assert_ok(
        catalogue_database_open(bench->catalogue, SLICE("acme"), SLICE("shop"), &database, &err),
        &err);
    assert_ok(catalogue_container_open(bench->catalogue, SLICE("acme"),
                                       database_info(database)->rid, container_info(by_name)->rid,
                                       &by_rid, &err),
              &err);
    assert_ptr_equal(by_name, by_rid);
}

static void names_are_taken_once_and_checked(void **state)
{
    struct bench *bench = *state;
    static const char *const wrong[] = {"", "a/b", "a\\b", "a#b", "a?b", "blank "};
    char name[260];
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    assert_fails(try_database(bench, "acme", "shop", 0, &err), &err, ERROR_NAME_TAKEN);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
    assert_fails(try_container(bench, "acme", "shop", BENCH_BODY("orders"), NULL, &err), &err,
                 ERROR_NAME_TAKEN);
    assert_fails(try_container(bench, "acme", "none", BENCH_BODY("orders"), NULL, &err), &err,
                 ERROR_OWNER_NOT_FOUND);
    assert_fails(try_container(bench, "acme", "shop", BENCH_BODY("or/ders"), NULL, &err), &err,
                 ERROR_BAD_REQUEST);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_fails(try_database(bench, "acme", wrong[i], 0, &err), &err, ERROR_BAD_REQUEST);
    memset(name, 'n', sizeof name);
    name[256] = 0;
    assert_fails(try_database(bench, "acme", name, 0, &err), &err, ERROR_BAD_REQUEST);
    name[255] = 0;
    bench_database(bench, "acme", name, 0);

    /* Characters count, not bytes. */
    for (int i = 0; i < 128; i++)
        memcpy(name + 2 * i, "\xC3\xA4", 2);
    name[256] = 0;
    bench_database(bench, "acme", name, 0);
    assert_int_equal(partition_count(bench), 1);
}

static void counts_are_limited(void **state)
{
    struct bench *bench = *state;
    struct error err;

    bench->limits.account_resources_max = 4;
    bench->limits.accounts_max = 2;
    bench->limits.shared_containers_max = 2;
    bench_reopen(bench);
    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 400);
    bench_container(bench, "acme", "shop", BENCH_BODY("a"), 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("b"), 0);
    assert_fails(try_container(bench, "acme", "shop", BENCH_BODY("c"), NULL, &err), &err,
                 ERROR_LIMIT_REACHED);
    bench_container(bench, "acme", "shop", BENCH_BODY("c"), 400);
    assert_fails(try_database(bench, "acme", "more", 0, &err), &err, ERROR_LIMIT_REACHED);
    assert_fails(try_container(bench, "acme", "shop", BENCH_BODY("d"),
                               &(struct offer_request){.given = true, .ru = 400}, &err),
                 &err, ERROR_LIMIT_REACHED);
    bench_account(bench, "beta");
    assert_fails(catalogue_account_create(bench->catalogue, SLICE("gamma"), SLICE_NONE,
                                          &(struct account *){NULL}, &err),
                 &err, ERROR_LIMIT_REACHED);
    assert_int_equal(partition_count(bench), 3);
}

static void a_container_without_a_key_is_fixed(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {.given = true, .ru = 10100};
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    assert_fails(try_container(bench, "acme", "shop", "{\"id\":\"old\"}", &request, &err), &err,
                 ERROR_BAD_REQUEST);
    bench_container(bench, "acme", "shop", "{\"id\":\"old\"}", 10000);
    container = open_container(bench, "acme", "shop", "old");
    assert_true(container_is_fixed(container));
    assert_int_equal(span_count(container), 1);
    assert_int_equal(container_bytes_max(container), 10 * DEFINITION_LIMITS_GB);
}

static void replacing_a_container_changes_what_may_change(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *before = NULL, *after = NULL, *now = NULL;
    struct slice with_ttl =
        document_of(bench->arena, "{\"id\":\"orders\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                                  "\"defaultTtl\":60}");
    struct slice other_key =
        document_of(bench->arena, "{\"id\":\"orders\",\"partitionKey\":{\"paths\":[\"/x\"]}}");
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
    before = open_container(bench, "acme", "shop", "orders");
    assert_fails(catalogue_container_replace(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                             SLICE("orders"), other_key, SLICE_NONE, &after, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_fails(catalogue_container_replace(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                             SLICE("orders"), with_ttl, SLICE("\"other\""), &after,
                                             &err),
                 &err, ERROR_PRECONDITION_FAILED);
    assert_ok(catalogue_container_replace(bench->catalogue, SLICE("acme"), SLICE("shop"),
                                          SLICE("orders"), with_ttl, container_info(before)->etag,
                                          &after, &err),
              &err);
    assert_int_equal(definition_fields(container_definition(after))->default_ttl, 60);
    assert_int_equal(definition_fields(container_definition(before))->default_ttl,
                     DEFINITION_TTL_OFF);
    assert_false(slice_equal(container_info(before)->etag, container_info(after)->etag));
    assert_slice_equal(container_info(before)->rid, container_info(after)->rid);
    now = open_container(bench, "acme", "shop", "orders");
    assert_ptr_equal(now, after);
}

static void a_shared_offer_reaches_the_containers_that_share_it(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *own = NULL, *sharing = NULL;
    struct catalogue_offer_change change = {.request = {.given = true, .ru = 900}};
    struct offer *offers, offer;
    struct error err;
    size_t count;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 500);
    bench_container(bench, "acme", "shop", BENCH_BODY("sharing"), 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("own"), 1000);
    assert_ok(
        catalogue_offers(bench->catalogue, SLICE("acme"), bench->arena, &offers, &count, &err),
        &err);
    assert_int_equal(count, 2);
    assert_true(offers[0].shared);
    assert_ok(catalogue_offer_replace(bench->catalogue, SLICE("acme"), slice_of_text(offers[0].rid),
                                      &change, &offer, &err),
              &err);
    assert_int_equal(offer.ru, 900);
    assert_string_not_equal(offer.etag, offers[0].etag);
    sharing = open_container(bench, "acme", "shop", "sharing");
    own = open_container(bench, "acme", "shop", "own");
    assert_int_equal(container_offer(sharing)->ru, 900);
    assert_int_equal(container_offer(own)->ru, 1000);
}

static void throughput_is_limited_by_how_many_partitions_there_may_be(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct catalogue_offer_change change = {.request = {.given = true, .ru = 20000}};
    struct offer offer;
    struct error err;
    struct slice rid;

    bench->limits.container_partitions_max = 5;
    bench_reopen(bench);
    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 12000);
    container = open_container(bench, "acme", "shop", "orders");
    rid = slice_of_text(container_offer(container)->rid);
    assert_ok(catalogue_offer_replace(bench->catalogue, SLICE("acme"), rid, &change, &offer, &err),
              &err);
    change.request.ru = 60000;
    assert_fails(
        catalogue_offer_replace(bench->catalogue, SLICE("acme"), rid, &change, &offer, &err), &err,
        ERROR_BAD_REQUEST);
    assert_contains(err.message, "needs 6 physical partitions; the limit is 5");
    assert_ok(catalogue_offer_read(bench->catalogue, SLICE("acme"), rid, &offer, &err), &err);
    assert_int_equal(offer.ru, 20000);
    change.request.ru = 100;
    assert_fails(
        catalogue_offer_replace(bench->catalogue, SLICE("acme"), rid, &change, &offer, &err), &err,
        ERROR_BAD_REQUEST);
    assert_string_equal(err.message,
                        "Requested throughput 100 is less than required minimum throughput 400");
    change.request.ru = 50000; /* the migrator splits, in its own time */
    assert_ok(catalogue_offer_replace(bench->catalogue, SLICE("acme"), rid, &change, &offer, &err),
              &err);
}

/* --- Crashes --------------------------------------------------------------------------------- */

/* What a half-done change must leave: the world before it or after it, and no partition without an
 * owner once purged. */
static void assert_consistent(struct bench *bench, bool orders_possible)
{
    bool there = has_container(bench, "acme", "shop", "orders");
    struct error err;

    assert_true(has_container(bench, "acme", "shop", "kept"));
    if (there) {
        CLEANUP(container_unref)
        struct container *container = open_container(bench, "acme", "shop", "orders");

        assert_true(orders_possible);
        assert_int_equal(span_count(container), 3);
        assert_writable(container);
    }
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    assert_int_equal(partition_count(bench), there ? 4 : 1);
}

static void crash_bench(struct bench *bench)
{
    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("kept"), 0);
}

/* Cuts the nth write of a creation, restarts, looks. */
static void create_crashes_at_every_write(void **state, enum fault_outcome outcome)
{
    struct bench *bench = *state;
    struct offer_request request = {.given = true, .ru = 30000};
    struct error err;
    unsigned nth = 1;

    crash_bench(bench);
    for (bool made = false; !made; nth++) {
        unsigned before = fault_engine_count(bench->engine, FAULT_WRITES);

        fault_engine_fail_nth(bench->engine, FAULT_WRITES, nth, ERROR_STORE_IO, outcome);
        made = try_container(bench, "acme", "shop", BENCH_BODY("orders"), &request, &err);
        fault_engine_fail_nth(bench->engine, FAULT_WRITES, 0, ERROR_STORE_IO, outcome);
        assert_true(made || fault_engine_count(bench->engine, FAULT_WRITES) >= before + nth);
        bench_close(bench);
        fault_engine_heal(bench->engine);
        bench_open(bench);
        assert_consistent(bench, made || outcome == FAULT_WRITTEN);
        if (!made && has_container(bench, "acme", "shop", "orders")) {
            assert_ok(drop_container(bench, "acme", "shop", "orders", &err), &err);
            assert_ok(catalogue_purge(bench->catalogue, &err), &err);
        }
    }
    assert_int_equal(nth, 3 + 1 + 1 + 1); /* three partitions, one commit, one without a fault */
}

static void a_creation_cut_before_any_write_leaves_nothing_half_there(void **state)
{
    create_crashes_at_every_write(state, FAULT_NOT_WRITTEN);
}

static void a_creation_cut_after_any_write_leaves_nothing_half_there(void **state)
{
    create_crashes_at_every_write(state, FAULT_WRITTEN);
}

static void drop_crashes_at_every_write(void **state, enum fault_outcome outcome)
{
    struct bench *bench = *state;
    struct error err;
    unsigned nth = 1;

    crash_bench(bench);
    for (bool purged = false; !purged; nth++) {
        bool dropped;

        if (!has_container(bench, "acme", "shop", "orders"))
            bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 30000);
        fault_engine_fail_nth(bench->engine, FAULT_WRITES, nth, ERROR_STORE_IO, outcome);
        dropped = drop_container(bench, "acme", "shop", "orders", &err);
        purged = dropped && catalogue_purge(bench->catalogue, &err);
        fault_engine_fail_nth(bench->engine, FAULT_WRITES, 0, ERROR_STORE_IO, outcome);
        bench_close(bench);
        fault_engine_heal(bench->engine);
        bench_open(bench);
        assert_consistent(bench, !dropped);
    }
    assert_int_equal(nth, 1 + 3 + 1 + 1 + 1); /* tombstone, partitions, records, and none */
}

static void a_drop_cut_before_any_write_is_finished_or_undone(void **state)
{
    drop_crashes_at_every_write(state, FAULT_NOT_WRITTEN);
}

static void a_drop_cut_after_any_write_is_finished_or_undone(void **state)
{
    drop_crashes_at_every_write(state, FAULT_WRITTEN);
}

/* The engine finds out what became of its write, as postgresql: does, and the server goes on. */
static void a_creation_in_doubt_is_settled_without_a_restart(void **state)
{
    struct bench *bench = *state;
    struct offer_request request = {.given = true, .ru = 30000};
    struct error err;

    crash_bench(bench);
    for (unsigned nth = 1; nth <= 4; nth++)
        for (int written = 0; written < 2; written++) {
            fault_engine_fail_nth(bench->engine, FAULT_WRITES, nth, ERROR_STORE_IO,
                                  written ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
            assert_false(
                try_container(bench, "acme", "shop", BENCH_BODY("orders"), &request, &err));
            assert_false(try_database(bench, "acme", "other", 0, &err));
            fault_engine_heal(bench->engine);
            while (!try_database(bench, "acme", "other", 0, &err))
                assert_true(err.code == ERROR_STORE_POISONED);
            assert_consistent(bench, nth == 4 && written);
            assert_int_equal(has_container(bench, "acme", "shop", "orders"), nth == 4 && written);
            assert_ok(catalogue_database_drop(bench->catalogue, SLICE("acme"), SLICE("other"),
                                              SLICE_NONE, &err),
                      &err);
        }
}

static void a_full_disk_refuses_a_creation_and_leaves_nothing(void **state)
{
    struct bench *bench = *state;
    struct offer_request request = {.given = true, .ru = 30000};
    struct error err;

    crash_bench(bench);
    for (unsigned nth = 1; nth <= 4; nth++) {
        fault_engine_fail_nth(bench->engine, FAULT_WRITES, nth, ERROR_STORE_FULL,
                              FAULT_NOT_WRITTEN);
        assert_fails(try_container(bench, "acme", "shop", BENCH_BODY("orders"), &request, &err),
                     &err, ERROR_STORE_FULL);
        assert_int_equal(partition_count(bench), 1);
    }
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 30000);
    assert_consistent(bench, true);
}

/* The purger's own thread does the same in the background. */
static void the_purger_works_by_itself(void **state)
{
    struct bench *bench = *state;
    struct error err;

    catalogue_close(TAKE(bench->catalogue));
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = bench->cluster},
                             &bench->catalogue, &err),
              &err);
    crash_bench(bench);
    assert_ok(catalogue_account_drop(bench->catalogue, SLICE("acme"), &err), &err);
    while (catalogue_purges_left(bench->catalogue))
        sched_yield();
    assert_int_equal(partition_count(bench), 0);
}

/* --- Threads --------------------------------------------------------------------------------- */

struct reader {
    struct bench *bench;
    atomic_bool *stop;
    struct thread thread;
    unsigned found, missed;
};

static void reader_run(void *context)
{
    struct reader *reader = context;

    while (!atomic_load(reader->stop)) {
        CLEANUP(container_unref) struct container *container = NULL;
        struct error err;

        if (!catalogue_container_open(reader->bench->catalogue, SLICE("acme"), SLICE("shop"),
                                      SLICE("orders"), &container, &err)) {
            reader->missed++;
            continue;
        }
        reader->found++;
        if (!slice_equal(container_info(container)->id, SLICE("orders")) ||
            span_count(container) != 2 || container_offer(container)->ru != 20000)
            abort();
    }
}

static void readers_see_whole_states_while_everything_changes(void **state)
{
    struct bench *bench = *state;
    atomic_bool stop = false;
    struct reader readers[2];
    struct error err;

    crash_bench(bench);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
        readers[i] = (struct reader){.bench = bench, .stop = &stop};
        thread_start(&readers[i].thread, "reader", reader_run, &readers[i]);
    }
    for (int i = 0; i < 100; i++) {
        CLEANUP(container_unref) struct container *replaced = NULL;

        bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 20000);
        assert_ok(catalogue_container_replace(
                      bench->catalogue, SLICE("acme"), SLICE("shop"), SLICE("orders"),
                      document_of(bench->arena, BENCH_BODY("orders")), SLICE_NONE, &replaced, &err),
                  &err);
        assert_ok(drop_container(bench, "acme", "shop", "orders", &err), &err);
        assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    }
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 20000);
    atomic_store(&stop, true);
    for (size_t i = 0; i < ARRAY_LEN(readers); i++)
        thread_join(&readers[i].thread);
    assert_int_equal(partition_count(bench), 1 + 2);
}

static void partitions_are_gone_when_nobody_holds_their_dropped_container_any_more(void **state)
{
    struct bench *bench = *state;
    CLEANUP(container_unref) struct container *first = NULL, *second = NULL;
    struct error err;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 20000);
    bench_container(bench, "acme", "shop", BENCH_BODY("other"), 0);
    first = open_container(bench, "acme", "shop", "orders");
    assert_ok(catalogue_container_replace(
                  bench->catalogue, SLICE("acme"), SLICE("shop"), SLICE("orders"),
                  document_of(bench->arena, BENCH_BODY("orders")), SLICE_NONE, &second, &err),
              &err);
    assert_ok(drop_container(bench, "acme", "shop", "orders", &err), &err);
    assert_ok(catalogue_purge(bench->catalogue, &err), &err);
    container_unref(TAKE(second));
    assert_int_equal(atomic_load(&bench->gone), 0); /* the state of before is still held */
    container_unref(TAKE(first));
    assert_int_equal(atomic_load(&bench->gone), 2);
    assert_ok(catalogue_account_drop(bench->catalogue, SLICE("acme"), &err), &err);
    assert_int_equal(atomic_load(&bench->gone), 3);
}

static void a_restart_calls_nothing_gone(void **state)
{
    struct bench *bench = *state;

    bench_account(bench, "acme");
    bench_database(bench, "acme", "shop", 0);
    bench_container(bench, "acme", "shop", BENCH_BODY("orders"), 0);
    bench_reopen(bench);
    assert_int_equal(atomic_load(&bench->gone), 0);
}

/* Two that make the same name: one of them is told. */
struct maker {
    struct bench *bench;
    struct thread thread;
    unsigned made, taken;
};

static void maker_run(void *context)
{
    struct maker *maker = context;

    for (int i = 0; i < 50; i++) {
        CLEANUP(database_unref) struct database *database = NULL;
        struct error err;
        char id[16];

        snprintf(id, sizeof id, "db%d", i);
        if (catalogue_database_create(maker->bench->catalogue, SLICE("acme"), slice_of_text(id),
                                      NULL, &database, &err))
            maker->made++;
        else if (err.code == ERROR_NAME_TAKEN)
            maker->taken++;
    }
}

static void a_name_is_made_once_however_many_try(void **state)
{
    struct bench *bench = *state;
    struct maker makers[3];
    unsigned made = 0, taken = 0;

    bench_account(bench, "acme");
    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        makers[i] = (struct maker){.bench = bench};
        thread_start(&makers[i].thread, "maker", maker_run, &makers[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        thread_join(&makers[i].thread);
        made += makers[i].made;
        taken += makers[i].taken;
    }
    assert_int_equal(made, 50);
    assert_int_equal(taken, 100);
}

int main(void)
{
    CLEANUP(postgres_free) struct postgres *server = postgres_start(false);
    const struct CMUnitTest tests[] = {
        ON_BOTH(whether_throughput_was_stated_is_kept),
        ON_BOTH(everything_is_there_after_a_restart),
        ON_BOTH(a_container_begins_with_as_many_partitions_as_its_throughput_needs),
        ON_BOTH(a_recreated_container_has_another_rid),
        ON_BOTH(a_dropped_container_is_gone_at_once_and_its_partitions_later),
        ON_BOTH(what_was_dropped_is_purged_after_a_restart),
        ON_BOTH(accounts_do_not_see_each_other),
        ON_BOTH(a_container_opens_by_rid_too),
        ON_BOTH(names_are_taken_once_and_checked),
        ON_BOTH(counts_are_limited),
        ON_BOTH(a_container_without_a_key_is_fixed),
        ON_BOTH(replacing_a_container_changes_what_may_change),
        ON_BOTH(a_shared_offer_reaches_the_containers_that_share_it),
        ON_BOTH(throughput_is_limited_by_how_many_partitions_there_may_be),
        ON_BOTH(the_purger_works_by_itself),
        ON_BOTH(readers_see_whole_states_while_everything_changes),
        ON_BOTH(a_name_is_made_once_however_many_try),
        ON_BOTH(partitions_are_gone_when_nobody_holds_their_dropped_container_any_more),
        ON_BOTH(a_restart_calls_nothing_gone),
        ON(memory, a_creation_cut_before_any_write_leaves_nothing_half_there),
        ON(memory, a_creation_cut_after_any_write_leaves_nothing_half_there),
        ON(memory, a_drop_cut_before_any_write_is_finished_or_undone),
        ON(memory, a_drop_cut_after_any_write_is_finished_or_undone),
        ON(memory, a_creation_in_doubt_is_settled_without_a_restart),
        ON(memory, a_full_disk_refuses_a_creation_and_leaves_nothing),
        ON_POSTGRESQL(everything_is_there_after_a_restart),
        ON_POSTGRESQL(a_dropped_container_is_gone_at_once_and_its_partitions_later),
        ON_POSTGRESQL(what_was_dropped_is_purged_after_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
