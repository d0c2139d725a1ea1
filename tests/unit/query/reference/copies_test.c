/* Copies of reference containers: exact at their LSNs, filled anew, old where the home is away,
 * bounded; items by key and by id. */
#include "query/reference/copies.h"

#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"
#include "support/space.h"

struct fixture {
    struct test_space test;
    struct engine *fault; /* the space's */
    struct arena *arena;
    struct query_copies *copies;
};

static int setup_of(void **state, size_t partitions)
{
    struct fixture *f = MEMORY_NEW(struct fixture);
    struct engine *engine;
    struct error err;

    f->arena = arena_new();
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    f->fault = fault_engine_new(engine);
    test_space_init(&f->test, f->fault, &(struct test_space_options){.partitions = partitions});
    f->copies = query_copies_new(1 << 20);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_of(state, 1);
}

static int setup_many(void **state)
{
    return setup_of(state, 4);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    query_copies_free(f->copies);
    test_space_done(&f->test);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static void write_item(struct fixture *f, enum item_verb verb, const char *json)
{
    struct slice document = document_of(f->arena, json);
    struct document_value id;
    struct error err;

    assert_true(document_find(document, SLICE("id"), &id));
    assert_ok(item_operation_run(
                  &(struct item_operation){
                      .space = &f->test.space,
                      .arena = f->arena,
                      .verb = verb,
                      .key = partition_key_extract(&f->test.definition.key, document),
                      .id = id,
                      .document = verb == ITEM_DELETE ? SLICE_NONE : document},
                  &err),
              &err);
}

static struct query_copy_home home_of(struct fixture *f, uint32_t number)
{
    return (struct query_copy_home){.space = &f->test.space,
                                    .rid = {.database = 1, .owner = number},
                                    .number = number,
                                    .bytes_max = 64 * 1024};
}

static bool take(struct fixture *f, uint32_t number, struct query_copy_taken *ret_taken,
                 struct error *err)
{
    struct query_copy_home home = home_of(f, number);

    return query_copies_take(f->copies, &home, ret_taken, err);
}

static struct query_copy_taken taken(struct fixture *f)
{
    struct query_copy_taken is;
    struct error err;

    assert_ok(take(f, 7, &is, &err), &err);
    return is;
}

/* The ids of what has these values, in a row. */
static void has(struct fixture *f, const struct query_copy *copy, const char *keys, bool identified,
                const char *ids)
{
    CLEANUP(query_context_done) struct query_context context = {0};
    struct document_value list = value_of(f->arena, keys), values[4], items, id;
    struct document_iter iter;
    char found[256] = "";
    size_t count = 0;
    struct error err;

    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter))
        values[count++] = iter.value;
    query_context_init(&context, f->arena, NULL, NULL);
    assert_ok(query_copy_find(copy, values, count, identified, &context, &items, &err), &err);
    if (items.type == DOCUMENT_UNDEFINED) {
        assert_string_equal("", ids);
        return;
    }
    assert_int_equal(items.type, DOCUMENT_ARRAY);
    document_iter_init(&iter, items.document);
    while (document_iter_next(&iter)) {
        size_t len = strlen(found);

        assert_true(document_find(iter.value.document, SLICE("id"), &id));
        snprintf(found + len, sizeof found - len, "%s%.*s", len ? " " : "", SLICE_ARG(id.text));
    }
    assert_string_equal(found, ids);
}

static void items_are_found_by_key_and_by_id(void **state)
{
    struct fixture *f = *state;
    struct query_copy_taken is;

    write_item(f, ITEM_UPSERT, "{\"id\":\"a\",\"pk\":1,\"n\":1}");
    write_item(f, ITEM_UPSERT, "{\"id\":\"b\",\"pk\":1.0}");
    write_item(f, ITEM_UPSERT, "{\"id\":\"a\",\"pk\":\"1\"}");
    write_item(f, ITEM_UPSERT, "{\"id\":\"c\"}");
    write_item(f, ITEM_UPSERT, "{\"id\":\"d\",\"pk\":null}");
    is = taken(f);
    assert_int_equal(query_copy_items(is.copy), 4); /* one has no key */
    has(f, is.copy, "[1]", false, "a b");
    has(f, is.copy, "[1.0]", false, "a b");
    has(f, is.copy, "[\"1\"]", false, "a");
    has(f, is.copy, "[null]", false, "d");
    has(f, is.copy, "[2]", false, "");
    has(f, is.copy, "[1, \"b\"]", true, "b");
    has(f, is.copy, "[1, \"c\"]", true, "");
    has(f, is.copy, "[\"1\", \"a\"]", true, "a");
    query_copy_unref(is.copy);
}

static void a_copy_is_filled_once_and_again_after_each_write(void **state)
{
    struct fixture *f = *state;
    struct query_copies_metrics m;
    struct query_copy_taken is;

    for (int i = 0; i < 20; i++) {
        char json[64];

        snprintf(json, sizeof json, "{\"id\":\"%d\",\"pk\":\"p%d\"}", i, i % 5);
        write_item(f, ITEM_UPSERT, json);
    }
    is = taken(f);
    assert_true(is.filled_cru > 0);
    assert_int_equal(is.lag_ms, 0);
    query_copy_unref(is.copy);
    is = taken(f);
    assert_int_equal(is.filled_cru, 0);
    has(f, is.copy, "[\"p1\"]", false, "1 6 11 16");
    write_item(f, ITEM_DELETE, "{\"id\":\"6\",\"pk\":\"p1\"}");
    has(f, is.copy, "[\"p1\"]", false, "1 6 11 16"); /* who holds it holds one moment */
    query_copy_unref(is.copy);
    is = taken(f);
    assert_true(is.filled_cru > 0);
    has(f, is.copy, "[\"p1\"]", false, "1 11 16");
    query_copy_unref(is.copy);
    query_copies_metrics(f->copies, &m);
    assert_int_equal(m.filled, 2);
    assert_int_equal(m.found, 1);
    assert_int_equal(m.count, 1);
    assert_true(m.bytes > 0);
}

static void a_home_that_is_away_leaves_the_last_copy_with_its_age(void **state)
{
    struct fixture *f = *state;
    struct query_copy_taken is;
    struct error err;

    write_item(f, ITEM_UPSERT, "{\"id\":\"a\",\"pk\":1}");
    fault_engine_fail_nth(f->fault, FAULT_READS, 1, ERROR_NODE_DOWN, FAULT_NOT_WRITTEN);
    assert_fails(take(f, 7, &is, &err), &err, ERROR_NODE_DOWN); /* there is none */
    is = taken(f);
    query_copy_unref(is.copy);
    write_item(f, ITEM_UPSERT, "{\"id\":\"b\",\"pk\":1}");
    fault_engine_fail_nth(f->fault, FAULT_READS, 1, ERROR_NODE_DOWN, FAULT_NOT_WRITTEN);
    is = taken(f);
    assert_true(is.lag_ms > 0);
    assert_int_equal(is.filled_cru, 0);
    has(f, is.copy, "[1]", false, "a");
    query_copy_unref(is.copy);
    is = taken(f);
    assert_int_equal(is.lag_ms, 0);
    has(f, is.copy, "[1]", false, "a b");
    query_copy_unref(is.copy);
    write_item(f, ITEM_UPSERT, "{\"id\":\"c\",\"pk\":1}");
    fault_engine_fail_nth(f->fault, FAULT_READS, 1, ERROR_STORE_IO, FAULT_NOT_WRITTEN);
    assert_fails(take(f, 7, &is, &err), &err, ERROR_STORE_IO); /* what is damaged is told */
}

static void what_is_too_large_is_refused_and_what_is_too_much_goes(void **state)
{
    struct fixture *f = *state;
    struct query_copies_metrics m;
    struct query_copy_taken is;
    char json[4096];
    struct error err;

    for (int i = 0; i < 16; i++) {
        snprintf(json, sizeof json, "{\"id\":\"%d\",\"pk\":%d,\"text\":\"%0*d\"}", i, i, 3000, i);
        write_item(f, ITEM_UPSERT, json);
    }
    for (uint32_t number = 1; number <= 40; number++) { /* each of some 55 KB, of 1 MB */
        assert_ok(take(f, number, &is, &err), &err);
        query_copy_unref(is.copy);
    }
    query_copies_metrics(f->copies, &m);
    assert_true(m.bytes <= 1 << 20 && m.bytes > 1 << 19);
    assert_true(m.count < 40);
    for (int i = 16; i < 32; i++) {
        snprintf(json, sizeof json, "{\"id\":\"%d\",\"pk\":%d,\"text\":\"%0*d\"}", i, i, 3000, i);
        write_item(f, ITEM_UPSERT, json);
    }
    assert_fails(take(f, 99, &is, &err), &err, ERROR_REFERENCE_FULL);
    query_copies_metrics(f->copies, &m);
    assert_true(m.bytes <= 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(items_are_found_by_key_and_by_id, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_is_filled_once_and_again_after_each_write,
                                        setup_many, teardown),
        cmocka_unit_test_setup_teardown(a_home_that_is_away_leaves_the_last_copy_with_its_age,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_too_large_is_refused_and_what_is_too_much_goes,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
