#include "definition/strategy.h"

#include "document/bson.h"
#include "document/json.h"
#include "partition/lookup.h"
#include "partition/strategy.h"
#include "support/check.h"
#include "support/documents.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

#define ONE "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}"
#define TWO                                                                                        \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\","            \
    "\"version\":2}"
#define LOOKUP                                                                                     \
    "{\"kind\":\"lookup\",\"shards\":16,\"default\":\"hash\",\"directory\":["                      \
    "{\"key\":[\"b\"],\"shard\":3},{\"key\":[\"a\"],\"shard\":15}]}"

static bool define(struct arena *arena, const char *front, const char *strategy,
                   struct definition *before, struct definition **ret_definition, struct error *err)
{
    struct slice text =
        strategy ? arena_printf(arena, "%s,\"orrery\":{\"strategy\":%s}}", front, strategy)
                 : arena_printf(arena, "%s}", front);

    return definition_new(document_of(arena, arena_text(arena, text)), before, ret_definition, err);
}

static struct definition *defined(struct arena *arena, const char *front, const char *strategy)
{
    struct definition *definition;
    struct error err;

    assert_ok(define(arena, front, strategy, NULL, &definition, &err), &err);
    return definition;
}

static void assert_strategy(struct definition *definition, const char *json)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value orrery, strategy;

    buf_init(&text, BUF_DEFAULT_MAX);
    assert_true(document_find(definition_fields(definition)->document, SLICE("orrery"), &orrery));
    assert_true(document_find(orrery.document, SLICE("strategy"), &strategy));
    document_json_write_value(&strategy, &text);
    assert_slice_equal(buf_slice(&text), slice_of_text(json));
}

static void a_range_has_bounds_of_any_beginning_of_the_key(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *bare = defined(arena, ONE, "\"range\"");
    CLEANUP(definition_unref)
    struct definition *cut =
        defined(arena, TWO, "{\"kind\":\"range\",\"bounds\":[null,\"g\",[\"g\",5]]}");
    const struct partition_definition *key = &definition_fields(cut)->key;

    assert_strategy(bare, "{\"kind\":\"range\"}");
    assert_int_equal(definition_fields(bare)->key.strategy, PARTITION_STRATEGY_RANGE);
    assert_strategy(cut, "{\"kind\":\"range\",\"bounds\":[[null],[\"g\"],[\"g\",5]]}");
    assert_int_equal(key->bound_count, 3);
    assert_true(slice_starts_with(key->bounds[2], key->bounds[1]));
}

static void a_directory_is_kept_in_order(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *definition = defined(arena, ONE, LOOKUP);
    const struct partition_lookup *lookup = definition_fields(definition)->key.lookup;

    assert_strategy(definition, "{\"kind\":\"lookup\",\"shards\":16,\"default\":\"hash\","
                                "\"directory\":[{\"key\":[\"a\"],\"shard\":15},"
                                "{\"key\":[\"b\"],\"shard\":3}]}");
    assert_int_equal(lookup->shards, 16);
    assert_true(lookup->hashes);
    assert_int_equal(lookup->line_count, 2);
    assert_int_equal(lookup->lines[0].shard, 15);
}

static void what_cannot_be_a_strategy_is_refused(void **state)
{
    static const char *const wrong[] = {
        "1",
        "null",
        "\"lookup\"",
        "{}",
        "{\"kind\":\"hash\",\"bounds\":[]}",
        "{\"kind\":\"range\",\"bounds\":[\"b\",\"a\"]}",
        "{\"kind\":\"range\",\"bounds\":[[]]}",
        "{\"kind\":\"range\",\"bounds\":[[1,2]]}",
        "{\"kind\":\"range\",\"bounds\":[{\"a\":1}]}",
        "{\"kind\":\"range\",\"shards\":3}",
        "{\"kind\":\"range\",\"bounds\":7}",
        "{\"kind\":\"lookup\"}",
        "{\"kind\":\"lookup\",\"shards\":0}",
        "{\"kind\":\"lookup\",\"shards\":32769}",
        "{\"kind\":\"lookup\",\"shards\":2.5}",
        "{\"kind\":\"lookup\",\"shards\":4,\"default\":4}",
        "{\"kind\":\"lookup\",\"shards\":4,\"default\":\"modulo\"}",
        "{\"kind\":\"lookup\",\"shards\":4,\"directory\":[{\"key\":[\"a\"],\"shard\":4}]}",
        "{\"kind\":\"lookup\",\"shards\":4,\"directory\":[{\"key\":[\"a\"],\"shard\":-1}]}",
        "{\"kind\":\"lookup\",\"shards\":4,\"directory\":[{\"key\":[\"a\",1],\"shard\":1}]}",
        "{\"kind\":\"lookup\",\"shards\":4,\"directory\":[{\"key\":[\"a\"]}]}",
        ("{\"kind\":\"lookup\",\"shards\":4,\"directory\":[{\"key\":1,\"shard\":1},"
         "{\"key\":1.0,\"shard\":2}]}"),
    };
    struct definition *definition;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (define(*state, ONE, wrong[i], NULL, &definition, &err))
            fail_msg("%s was taken", wrong[i]);
        assert_int_equal(err.code, ERROR_BAD_REQUEST);
    }
    assert_fails(define(*state, "{\"id\":\"c\"", "\"range\"", NULL, &definition, &err), &err,
                 ERROR_BAD_REQUEST);
}

static void a_replace_leaves_the_strategy_alone(void **state)
{
    static const char *const same[] = {NULL,
                                       "{\"kind\":\"lookup\",\"shards\":16,\"default\":\"hash\"}",
                                       "{\"kind\":\"lookup\",\"shards\":16.0}", LOOKUP};
    static const char *const other[] = {"\"hash\"", "\"range\"",
                                        "{\"kind\":\"lookup\",\"shards\":17}",
                                        "{\"kind\":\"lookup\",\"shards\":16,\"default\":1}",
                                        "{\"kind\":\"lookup\",\"shards\":16,\"directory\":[]}"};
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *before = defined(arena, ONE, LOOKUP);
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        CLEANUP(definition_unref) struct definition *after = NULL;

        assert_ok(define(arena, ONE, same[i], before, &after, &err), &err);
        assert_int_equal(definition_fields(after)->key.lookup->line_count, 2);
        assert_slice_equal(definition_fields(after)->document, definition_fields(before)->document);
    }
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        struct definition *after;

        assert_fails(define(arena, ONE, other[i], before, &after, &err), &err, ERROR_BAD_REQUEST);
        assert_non_null(strstr(err.message, "orrery.strategy cannot be changed"));
    }
}

static void lines_are_set_and_removed(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *before = defined(arena, ONE, LOOKUP);
    CLEANUP(definition_unref) struct definition *after = NULL;
    CLEANUP(definition_unref) struct definition *range = defined(arena, ONE, "\"range\"");
    const struct definition_directory_change edits[] = {
        {.value = document_string(SLICE("a")), .removes = true},
        {.value = document_string(SLICE("b")), .shard = 4},
        {.value = document_double(7), .shard = 5},
    };
    const struct definition_directory_change twice[] = {edits[1], edits[1]};
    const struct definition_directory_change beyond = {.value = edits[1].value, .shard = 16};
    struct definition *none;
    struct error err;

    assert_ok(definition_directory_edit(before, edits, ARRAY_LEN(edits), &after, &err), &err);
    assert_strategy(after, "{\"kind\":\"lookup\",\"shards\":16,\"default\":\"hash\",\"directory\":["
                           "{\"key\":[7],\"shard\":5},{\"key\":[\"b\"],\"shard\":4}]}");
    assert_fails(definition_directory_edit(before, twice, 2, &none, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(definition_directory_edit(before, &beyond, 1, &none, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(definition_directory_edit(range, edits, 1, &none, &err), &err, ERROR_BAD_REQUEST);
}

static void the_directory_is_not_shown_with_the_container(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *definition = defined(arena, ONE, LOOKUP);
    CLEANUP(buf_done) struct buf shown, text;
    struct document_value orrery;
    size_t begin;

    buf_init(&shown, BUF_DEFAULT_MAX);
    buf_init(&text, BUF_DEFAULT_MAX);
    assert_true(document_find(definition_fields(definition)->document, SLICE("orrery"), &orrery));
    begin = document_begin(&shown);
    definition_orrery_show(orrery.document, &shown);
    document_end(&shown, begin);
    document_json_write(buf_slice(&shown), &text);
    assert_slice_equal(buf_slice(&text),
                       SLICE("{\"orrery\":{\"strategy\":{\"kind\":\"lookup\",\"shards\":16,"
                             "\"default\":\"hash\"}}}"));
    assert_int_equal(document_count(definition_directory(definition_fields(definition))), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_range_has_bounds_of_any_beginning_of_the_key, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_directory_is_kept_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_a_strategy_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_replace_leaves_the_strategy_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(lines_are_set_and_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_directory_is_not_shown_with_the_container, setup,
                                        teardown),
    };

    return cmocka_run_group_tests_name("definition/strategy", tests, NULL, NULL);
}
