#include "item/view_overlay.h"

#include "document/order.h"
#include "index/policy.h"
#include "item/cursor.h"
#include "item/operation.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

enum { ITEMS = 24, ROUNDS = 60, KEYS_MAX = 256 };

struct fixture {
    struct test_space test;
    struct arena *arena;
    uint32_t chance;
};

static void space_make(struct fixture *f, const char *unique_path)
{
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine, &(struct test_space_options){.unique_paths = {unique_path}});
}

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);

    f->arena = arena_new();
    f->chance = 12345;
    space_make(f, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    test_space_done(&f->test);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static uint32_t draw(struct fixture *f, uint32_t below)
{
    f->chance = f->chance * 1664525u + 1013904223u;
    return (f->chance >> 8) % below;
}

static struct item_scope scope_of(struct fixture *f)
{
    return item_space_span_scope(&f->test.space, partition_map_find_id(f->test.space.map, 1));
}

static struct item_operation operation_of(struct fixture *f, struct transaction *within,
                                          uint32_t which, uint32_t value)
{
    struct item_operation op = {
        .space = &f->test.space, .arena = f->arena, .within = within, .verb = ITEM_UPSERT};
    char json[128];

    snprintf(json, sizeof json, "{\"id\":\"%02u\",\"pk\":\"p%u\",\"a\":%u,\"own\":%u}", which,
             which % 3, value, which);
    op.document = document_of(f->arena, json);
    op.key = partition_key_extract(&f->test.definition.key, op.document);
    assert_true(document_find(op.document, SLICE("id"), &op.id));
    return op;
}

static void put(struct fixture *f, struct transaction *within, uint32_t which, uint32_t value)
{
    struct item_operation op = operation_of(f, within, which, value);
    struct error err;

    assert_ok(item_operation_run(&op, &err), &err);
}

/* Writes or deletes one of a few items, alone or within a transaction. */
static void act(struct fixture *f, struct transaction *within)
{
    uint32_t which = draw(f, ITEMS);
    struct item_operation op = operation_of(f, within, which, draw(f, 6));
    struct error err;

    op.verb = draw(f, 3) ? ITEM_UPSERT : ITEM_DELETE;
    if (op.verb == ITEM_DELETE)
        op.document = SLICE_NONE;
    if (!item_operation_run(&op, &err))
        assert_int_equal(err.code, ERROR_ITEM_MISSING);
}

static struct slice index_path(struct fixture *f)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_path path;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(document_path_parse(SLICE("/a/?"), DOCUMENT_PATH_INDEX, f->arena, &path, &err), &err);
    index_path_append(&path, &buf);
    return arena_copy(f->arena, buf_slice(&buf));
}

static struct slice index_value(struct fixture *f, int32_t number)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value = document_int32(number);

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_key_append(DOCUMENT_ORDER_SQL, &value, &buf);
    return arena_copy(f->arena, buf_slice(&buf));
}

struct seen {
    struct slice keys[KEYS_MAX], documents[KEYS_MAX];
    size_t count;
    uint64_t counted; /* by the counter of the partition */
};

static void walk(struct fixture *f, const struct view *view, const struct cursor_request *request,
                 struct seen *ret_seen)
{
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct item items[KEYS_MAX];
    struct cursor_hit hit;
    struct error err;
    uint64_t bytes;
    bool more;

    ret_seen->count = 0;
    assert_ok(cursor_open(view, request, &cursor, &err), &err);
    for (;;) {
        assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
        if (!more)
            break;
        assert_true(ret_seen->count < KEYS_MAX);
        ret_seen->keys[ret_seen->count++] = arena_copy(f->arena, hit.key);
    }
    assert_ok(view_fetch(view, ret_seen->keys, ret_seen->count, f->arena, items, &err), &err);
    for (size_t i = 0; i < ret_seen->count; i++)
        ret_seen->documents[i] = items[i].document;
    assert_ok(view_count(view, SLICE_NONE, &ret_seen->counted, &bytes, &err), &err);
}

static void requests_make(struct fixture *f, struct cursor_range *ranges,
                          struct cursor_request ret_requests[4])
{
    ranges[0] = (struct cursor_range){index_value(f, 1), index_value(f, 3)};
    ranges[1] = (struct cursor_range){index_value(f, 4), index_value(f, 9)};
    ret_requests[0] = (struct cursor_request){.kind = CURSOR_KEYS};
    ret_requests[1] = (struct cursor_request){.kind = CURSOR_NUMBERS};
    ret_requests[2] = (struct cursor_request){.kind = CURSOR_INDEX,
                                              .path = index_path(f),
                                              .value_count = 1,
                                              .ranges = ranges,
                                              .range_count = 2};
    ret_requests[3] = ret_requests[2];
    ret_requests[3].backwards = true;
}

/* The overlay of random writes, looked at now and then. */
static const struct view_overlay *overlay_of(struct fixture *f, struct transaction *transaction)
{
    const struct view_overlay *overlay = NULL;
    struct error err;

    for (uint32_t i = 1 + draw(f, 20); i > 0; i--) {
        act(f, transaction);
        if (i == 1 || !draw(f, 3))
            assert_ok(transaction_overlay(transaction, &overlay, &err), &err);
    }
    return overlay;
}

/* Whatever is read with the overlay before the commit is what is read without it afterwards. */
static void overlays_are_what_is_committed(struct fixture *f)
{
    struct item_scope scope = scope_of(f);

    for (int round = 0; round < ROUNDS; round++) {
        CLEANUP(transaction_free) struct transaction *transaction = NULL;
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(view_done) struct view after = {0};
        struct cursor_range ranges[2];
        struct cursor_request requests[4];
        struct seen *seen = ARENA_ARRAY(arena, struct seen, 5);
        const struct view_overlay *overlay;
        struct view view;
        struct error err;

        requests_make(f, ranges, requests);
        for (uint32_t i = draw(f, 10); i > 0; i--)
            act(f, NULL);
        assert_ok(transaction_open(&scope, arena, &transaction, &err), &err);
        overlay = overlay_of(f, transaction);
        view = view_of(&scope, transaction_snapshot(transaction));
        view.planned = view_overlay_find(overlay, scope.partition);
        for (size_t i = 0; i < ARRAY_LEN(requests); i++)
            walk(f, &view, &requests[i], &seen[i]);
        assert_ok(transaction_commit(transaction, &err), &err);
        assert_ok(view_open(&scope, &after, &err), &err);
        for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
            walk(f, &after, &requests[i], &seen[4]);
            assert_int_equal(seen[i].count, seen[4].count);
            assert_int_equal(seen[i].counted, seen[4].counted);
            for (size_t n = 0; n < seen[4].count; n++) {
                assert_slice_equal(seen[i].keys[n], seen[4].keys[n]);
                assert_slice_equal(seen[i].documents[n], seen[4].documents[n]);
            }
        }
    }
}

static void a_reader_sees_before_the_commit_what_all_see_behind_it(void **state)
{
    overlays_are_what_is_committed(*state);
}

/* Then items depend on one another, and the overlay is built anew with each write. */
static void so_does_one_where_items_own_values(void **state)
{
    struct fixture *f = *state;

    test_space_done(&f->test);
    space_make(f, "/own");
    overlays_are_what_is_committed(f);
}

/* A write between two looks costs what its item adds, not what all have. */
static void an_overlay_grows_with_what_is_written(void **state)
{
    enum { WRITES = 2000, EACH_BYTES_MAX = 16 * 1024 };
    struct fixture *f = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_scope scope = scope_of(f);
    const struct view_overlay *overlay;
    struct error err;

    assert_ok(transaction_open(&scope, arena, &transaction, &err), &err);
    for (uint32_t i = 0; i < WRITES; i++) {
        put(f, transaction, i, i % 7);
        assert_ok(transaction_overlay(transaction, &overlay, &err), &err);
        assert_true(transaction_overlay_bytes(transaction) < (size_t)(i + 64) * EACH_BYTES_MAX);
    }
    /* all of one item: what was before is given up in time */
    for (uint32_t i = 0; i < WRITES; i++) {
        put(f, transaction, 1, i);
        assert_ok(transaction_overlay(transaction, &overlay, &err), &err);
        assert_true(transaction_overlay_bytes(transaction) <
                    (size_t)(WRITES + 64) * 2 * EACH_BYTES_MAX);
    }
}

static void an_operation_within_is_refused_once_another_wrote_the_item(void **state)
{
    struct fixture *f = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_scope scope = scope_of(f);
    struct item_operation op = {.space = &f->test.space, .arena = f->arena, .verb = ITEM_UPSERT};
    struct error err;

    op.document = document_of(f->arena, "{\"id\":\"x\",\"pk\":\"p\",\"a\":1}");
    op.key = partition_key_extract(&f->test.definition.key, op.document);
    assert_true(document_find(op.document, SLICE("id"), &op.id));
    assert_ok(transaction_open(&scope, f->arena, &transaction, &err), &err);
    assert_ok(item_operation_run(&op, &err), &err);
    op.within = transaction;
    assert_false(item_operation_run(&op, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    op.verb = ITEM_READ; /* of the moment before */
    assert_false(item_operation_run(&op, &err));
    assert_int_equal(err.code, ERROR_ITEM_MISSING);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_reader_sees_before_the_commit_what_all_see_behind_it),
        TEST(so_does_one_where_items_own_values),
        TEST(an_overlay_grows_with_what_is_written),
        TEST(an_operation_within_is_refused_once_another_wrote_the_item),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
