#include "partition/key.h"

#include "document/order.h"
#include "fixture.h"

static const struct partition_key_limits limits = {PARTITION_KEY_BYTES_DEFAULT};

static struct partition_key key_in(struct arena *arena,
                                   const struct partition_definition *definition, const char *item)
{
    return partition_key_extract(definition, document_of(arena, item));
}

static const char *json_of(struct arena *arena, const struct partition_definition *definition,
                           const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    partition_key_json(definition, key, &buf);
    return arena_text(arena, buf_slice(&buf));
}

static struct slice bytes_of(struct arena *arena, const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    partition_key_append(key, &buf);
    return arena_copy(arena, buf_slice(&buf));
}

static void a_key_is_what_stands_at_the_paths(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition plain = definition_of(arena, V2),
                                deep = definition_of(arena, "{\"paths\":[\"/a/b\"],\"version\":2}"),
                                multi = definition_of(arena, MULTI);
    const struct {
        const struct partition_definition *definition;
        const char *item, *key;
    } samples[] = {
        {&plain, "{\"id\":\"1\",\"pk\":\"x\"}", "[\"x\"]"},
        {&plain, "{\"pk\":-2.5}", "[-2.5]"},
        {&plain, "{\"pk\":null}", "[null]"},
        {&plain, "{\"pk\":false}", "[false]"},
        {&plain, "{}", "[{}]"},
        {&deep, "{\"a\":{\"b\":\"x\"}}", "[\"x\"]"},
        {&deep, "{\"a\":\"x\"}", "[{}]"},
        {&multi, "{\"c\":3,\"a\":1,\"b\":2}", "[1,2,3]"},
        {&multi, "{\"c\":3,\"a\":1}", "[1,{},3]"},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct partition_key key = key_in(arena, samples[i].definition, samples[i].item);
        struct partition_key named = key_of(arena, samples[i].definition, samples[i].key);
        struct error err;

        assert_string_equal(json_of(arena, samples[i].definition, &key), samples[i].key);
        assert_true(partition_key_equal(&key, &named));
        assert_false(key.partial);
        assert_ok(partition_key_check(samples[i].definition, &key, &limits, &err), &err);
    }
}

static void missing_null_false_zero_and_empty_are_five_keys(void **state UNUSED)
{
    static const char *const texts[] = {"[{}]", "[null]", "[false]", "[0]", "[\"\"]"};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        for (size_t j = 0; j < ARRAY_LEN(texts); j++) {
            struct partition_key a = key_of(arena, &definition, texts[i]);
            struct partition_key b = key_of(arena, &definition, texts[j]);

            assert_int_equal(partition_key_equal(&a, &b), i == j);
            assert_int_equal(slice_equal(bytes_of(arena, &a), bytes_of(arena, &b)), i == j);
        }
    }
}

static void equal_numbers_are_one_key_whatever_their_text(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    struct partition_key a = key_of(arena, &definition, "[10]"),
                         b = key_of(arena, &definition, "[1.0e1]"),
                         zero = key_of(arena, &definition, "[0]"),
                         minus = key_of(arena, &definition, "[-0.0]");

    assert_true(partition_key_equal(&a, &b));
    assert_slice_equal(bytes_of(arena, &a), bytes_of(arena, &b));
    assert_true(partition_key_equal(&zero, &minus));
    assert_slice_equal(bytes_of(arena, &zero), bytes_of(arena, &minus));
}

/* Queries take both as undefined; a write of an array is refused. */
static void an_object_or_array_is_undefined_and_an_array_not_written(void **state UNUSED)
{
    static const char *const items[] = {"{\"pk\":{}}", "{\"pk\":{\"a\":1}}", "{\"pk\":[1]}"};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    struct partition_key undefined = key_of(arena, &definition, "[{}]");

    for (size_t i = 0; i < ARRAY_LEN(items); i++) {
        struct partition_key key = key_in(arena, &definition, items[i]);
        struct error err;

        assert_true(partition_key_equal(&key, &undefined));
        assert_int_equal(key.nested, i == 2);
        if (i < 2) {
            assert_ok(partition_key_check(&definition, &key, &limits, &err), &err);
            continue;
        }
        assert_fails(partition_key_check(&definition, &key, &limits, &err), &err,
                     ERROR_BAD_REQUEST);
        assert_contains(err.message, "is an array");
    }
}

static void a_key_over_its_limit_is_not_written(void **state UNUSED)
{
    static const struct {
        const char *definition;
        size_t max;
    } known[] = {{V1, 2048}, {V2, 2048}};
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct partition_definition definition = definition_of(arena, known[i].definition);
        struct document_value value =
            document_string(slice_of(memset(arena_alloc(arena, 4096), 'a', 4096), known[i].max));
        struct partition_key key = partition_key_of(&definition, &value, 1);
        struct error err;

        assert_ok(partition_key_check(&definition, &key, &limits, &err), &err);
        key.components[0].text.len++;
        assert_fails(partition_key_check(&definition, &key, &limits, &err), &err,
                     ERROR_BAD_REQUEST);
        assert_contains(err.message, "over the limit");
    }
}

static void components_count_together_towards_the_limit(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, MULTI);
    struct partition_key key = key_of(arena, &definition, "[\"aaaa\",\"bbbb\",\"cccc\"]");
    struct error err;

    assert_ok(partition_key_check(&definition, &key, &(struct partition_key_limits){12}, &err),
              &err);
    assert_fails(partition_key_check(&definition, &key, &(struct partition_key_limits){11}, &err),
                 &err, ERROR_BAD_REQUEST);
}

static void the_number_of_components_must_match_the_definition(void **state UNUSED)
{
    static const struct {
        const char *definition, *text;
        enum partition_key_need need;
        const char *message; /* NULL: taken */
    } known[] = {
#define MISMATCH(given, wanted)                                                                    \
    "Number of components in partition key value (" given ") does not match definition (" wanted ")"
#define INCOMPLETE(given, wanted)                                                                  \
    "Partition key provided either doesn't correspond to definition in the collection or doesn't " \
    "match partition key field values specified in the document. It has " given " of " wanted      \
    " components."
        {V2, "[\"a\"]", PARTITION_KEY_WHOLE, NULL},
        {V2, "[]", PARTITION_KEY_WHOLE, INCOMPLETE("0", "1")},
        {V2, "[]", PARTITION_KEY_ANY, NULL},
        {V2, "[\"a\",\"b\"]", PARTITION_KEY_ANY, MISMATCH("2", "1")},
        {MULTI, "[1,2,3]", PARTITION_KEY_WHOLE, NULL},
        {MULTI, "[1,2]", PARTITION_KEY_WHOLE, INCOMPLETE("2", "3")},
        {MULTI, "[1,2]", PARTITION_KEY_ANY, NULL},
        {MULTI, "[1,2,3,4,5]", PARTITION_KEY_ANY, MISMATCH("5", "3")},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct partition_definition definition = definition_of(arena, known[i].definition);
        struct slice text = slice_of_text(known[i].text);
        struct partition_key key;
        struct error err;

        if (known[i].message) {
            assert_fails(partition_key_parse(&definition, text, known[i].need, arena, &key, &err),
                         &err, *known[i].message == 'P' ? ERROR_KEY_MISMATCH : ERROR_BAD_REQUEST);
            assert_string_equal(err.message, known[i].message);
        } else {
            assert_ok(partition_key_parse(&definition, text, known[i].need, arena, &key, &err),
                      &err);
            assert_int_equal(key.partial, key.count < definition.path_count);
        }
    }
}

static void a_partial_key_is_no_key_to_write_under(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, MULTI);
    struct partition_key prefix = key_of(arena, &definition, "[1,2]"),
                         whole = key_of(arena, &definition, "[1,2,3]"),
                         other = key_of(arena, &definition, "[1,3,3]");
    struct error err;

    assert_fails(partition_key_check(&definition, &prefix, &limits, &err), &err, ERROR_BAD_REQUEST);
    assert_true(partition_key_starts_with(&whole, &prefix));
    assert_false(partition_key_starts_with(&other, &prefix));
    assert_false(partition_key_starts_with(&prefix, &whole));
    assert_false(partition_key_equal(&prefix, &whole));
    assert_true(slice_starts_with(bytes_of(arena, &whole), bytes_of(arena, &prefix)));
}

static void a_text_that_is_no_key_is_refused(void **state UNUSED)
{
    static const char *const texts[] = {
        "",          "\"a\"",   "{}",          "[",
        "[1]x",      "[1e999]", "[{\"a\":1}]", "[[]]",
        "[[\"a\"]]", "[tru]",   "[\"\xFF\"]",  "[[[[[[[[[[[[]]]]]]]]]]]]",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct partition_key key;
        struct error err;

        assert_fails(partition_key_parse(&definition, slice_of_text(texts[i]), PARTITION_KEY_ANY,
                                         arena, &key, &err),
                     &err, ERROR_BAD_REQUEST);
    }
}

static void an_endless_text_is_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    size_t len = 1 << 20;
    char *text = memset(arena_alloc(arena, len), 'a', len);
    struct partition_key key;
    struct error err;

    text[0] = '[';
    text[1] = text[len - 2] = '"';
    text[len - 1] = ']';
    assert_fails(
        partition_key_parse(&definition, slice_of(text, len), PARTITION_KEY_ANY, arena, &key, &err),
        &err, ERROR_BAD_REQUEST);
}

static void escapes_and_utf8_name_the_same_key(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    struct partition_key escaped = key_of(arena, &definition, "[\"\\u9c40\"]"),
                         plain = key_of(arena, &definition, "[\"\xE9\xB1\x80\"]");

    assert_true(partition_key_equal(&escaped, &plain));
}

static void a_system_key_is_empty_to_clients_and_undefined_inside(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, SYSTEM);
    struct partition_key in_item = key_in(arena, &definition, "{\"id\":\"1\"}"),
                         empty = key_of(arena, &definition, "[]"),
                         undefined = key_of(arena, &definition, "[{}]"),
                         filled = key_of(arena, &definition, "[\"a\"]");

    assert_true(partition_key_equal(&in_item, &empty));
    assert_true(partition_key_equal(&in_item, &undefined));
    assert_false(partition_key_equal(&in_item, &filled));
    assert_false(empty.partial);
    assert_string_equal(json_of(arena, &definition, &in_item), "[]");
    assert_string_equal(json_of(arena, &definition, &filled), "[\"a\"]");
}

/* Any scalar of BSON can be a component: its bytes sort as it does, end by themselves and read
 * back equal. */
static void stored_bytes_keep_every_key_of_any_type(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, MULTI);
    CLEANUP(arena_free) struct arena *scratch = arena_new();
    struct random random;

    random_seed(&random, 9);
    for (int round = 0; round < 20000; round++) {
        struct document_value values[2][PARTITION_PATHS_MAX];
        struct partition_key keys[2], again;
        struct slice bytes[2], rest;
        struct error err;
        int order = 0;

        arena_reset(scratch);
        for (size_t k = 0; k < 2; k++) {
            for (size_t i = 0; i < PARTITION_PATHS_MAX; i++)
                values[k][i] = value_random(&random, scratch, 0);
            keys[k] = partition_key_of(&definition, values[k], PARTITION_PATHS_MAX);
            bytes[k] = bytes_of(scratch, &keys[k]);
        }
        for (size_t i = 0; i < PARTITION_PATHS_MAX && order == 0; i++)
            order = document_compare(DOCUMENT_ORDER_SQL, &keys[0].components[i],
                                     &keys[1].components[i]);
        assert_int_equal(order < 0, slice_compare(bytes[0], bytes[1]) < 0);
        assert_int_equal(order == 0, slice_equal(bytes[0], bytes[1]));
        assert_int_equal(order == 0, partition_key_equal(&keys[0], &keys[1]));

        rest = arena_copy(scratch, bytes[0]);
        assert_ok(partition_key_read(&definition, &rest, scratch, &again, &err), &err);
        assert_int_equal(rest.len, 0);
        assert_true(partition_key_equal(&again, &keys[0]));
        rest = bytes[0];
        assert_ok(partition_key_skip(&definition, &rest, &err), &err);
        assert_int_equal(rest.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_what_stands_at_the_paths),
        cmocka_unit_test(missing_null_false_zero_and_empty_are_five_keys),
        cmocka_unit_test(equal_numbers_are_one_key_whatever_their_text),
        cmocka_unit_test(an_object_or_array_is_undefined_and_an_array_not_written),
        cmocka_unit_test(a_key_over_its_limit_is_not_written),
        cmocka_unit_test(components_count_together_towards_the_limit),
        cmocka_unit_test(the_number_of_components_must_match_the_definition),
        cmocka_unit_test(a_partial_key_is_no_key_to_write_under),
        cmocka_unit_test(a_text_that_is_no_key_is_refused),
        cmocka_unit_test(an_endless_text_is_refused),
        cmocka_unit_test(escapes_and_utf8_name_the_same_key),
        cmocka_unit_test(a_system_key_is_empty_to_clients_and_undefined_inside),
        cmocka_unit_test(stored_bytes_keep_every_key_of_any_type),
    };
    return cmocka_run_group_tests_name("partition/key", tests, NULL, NULL);
}
