/* Split: fragments of an event hold all of it, each within the limit; tokens say how far. */
#include "support/check.h"

#include "document/bson.h"
#include "front/mongo/error.h"
#include "front/mongo/stream/split.h"

enum { LIMIT = 1000 };

/* {_id: token, f0: text, f1: text, ...} with texts of these lengths. */
static struct slice event_of(struct arena *arena, const size_t *lengths, size_t count)
{
    const struct mongo_token token = {.place = {.time = 7, .origin = 3, .ordinal = 2}};
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    mongo_token_append(&out, SLICE("_id"), &token);
    for (size_t i = 0; i < count; i++) {
        uint8_t *text = arena_alloc(arena, lengths[i] + 1);

        memset(text, 'a' + (int)(i % 26), lengths[i]);
        document_append_string(&out, arena_printf(arena, "f%zu", i), slice_of(text, lengths[i]));
    }
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static void fragments_hold_every_field_once_and_are_within_the_limit(void **state UNUSED)
{
    static const size_t lengths[] = {500, 10, 700, 300, 0, 500, 499, 20};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice event = event_of(arena, lengths, ARRAY_LEN(lengths));
    bool seen[ARRAY_LEN(lengths)] = {0};
    struct mongo_split split;
    struct error err;

    assert_ok(mongo_split_plan(event, LIMIT, arena, &split, &err), &err);
    assert_true(split.count > 2);
    for (uint32_t i = 1; i <= split.count; i++) {
        CLEANUP(buf_done) struct buf out;
        struct document_value fragment, id, part, number, whole;
        struct mongo_token token;
        struct document_iter iter;
        size_t begin;

        buf_init(&out, BUF_DEFAULT_MAX);
        begin = document_begin(&out);
        mongo_split_append(&split, i, SLICE("0"), &out);
        document_end(&out, begin);
        assert_true(document_find(buf_slice(&out), SLICE("0"), &fragment));
        assert_true(fragment.document.len <= LIMIT);
        assert_true(document_find(fragment.document, SLICE("_id"), &id));
        assert_ok(mongo_token_read(id.document, &token, &err), &err);
        assert_int_equal(token.fragment, i);
        assert_int_equal(token.place.time, 7);
        assert_true(document_find(fragment.document, SLICE("splitEvent"), &part));
        assert_true(document_find(part.document, SLICE("fragment"), &number));
        assert_int_equal(number.int32, i);
        assert_true(document_find(part.document, SLICE("of"), &number));
        assert_int_equal(number.int32, split.count);
        document_iter_init(&iter, fragment.document);
        while (document_iter_next(&iter)) {
            size_t at;

            if (iter.key.data[0] != 'f')
                continue;
            at = (size_t)(iter.key.data[1] - '0');
            assert_false(seen[at]);
            seen[at] = true;
            assert_true(document_find(event, iter.key, &whole));
            assert_true(slice_equal(whole.text, iter.value.text));
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        assert_true(seen[i]);
}

static void a_field_that_fits_no_fragment_is_refused(void **state UNUSED)
{
    static const size_t lengths[] = {10, LIMIT};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct mongo_split split;
    struct error err;

    assert_false(mongo_split_plan(event_of(arena, lengths, 2), LIMIT, arena, &split, &err));
    assert_int_equal(mongo_error_code(&err), MONGO_BSON_OBJECT_TOO_LARGE);
}

/* The text of a token. */
static struct slice text_of(const struct mongo_token *token, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value id, data;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    mongo_token_append(&out, SLICE("_id"), token);
    document_end(&out, begin);
    assert_true(document_find(buf_slice(&out), SLICE("_id"), &id));
    assert_true(document_find(id.document, SLICE("_data"), &data));
    return arena_copy(arena, data.text);
}

static void tokens_sort_as_what_they_stand_behind(void **state UNUSED)
{
    const struct mongo_token tokens[] = {
        {.place = {.time = 7, .origin = 3, .ordinal = 2}},
        {.place = {.time = 7, .origin = 3, .ordinal = 2}, .fragment = 1},
        {.place = {.time = 7, .origin = 3, .ordinal = 2}, .fragment = 2},
        {.place = {.time = 7, .origin = 3, .ordinal = 2}, .fragment = 256},
        {.place = {.time = 7, .origin = 3, .ordinal = 3}},
        mongo_token_behind(7),
        {.place = {.time = 8}},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 1; i < ARRAY_LEN(tokens); i++)
        assert_true(slice_compare(text_of(&tokens[i - 1], arena), text_of(&tokens[i], arena)) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragments_hold_every_field_once_and_are_within_the_limit),
        cmocka_unit_test(a_field_that_fits_no_fragment_is_refused),
        cmocka_unit_test(tokens_sort_as_what_they_stand_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
