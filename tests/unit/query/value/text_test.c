#include "query/value/text.h"

#include "base/random.h"
#include "document/bson.h"
#include "document/utf8.h"
#include "support/check.h"

/* UTF-16 by the book, to check positions against. */
struct units {
    uint16_t list[512];
    size_t count;
};

static void units_of(struct slice text, struct units *units)
{
    const uint8_t *at = text.data, *end = at + text.len;

    units->count = 0;
    while (at < end) {
        size_t len;
        uint32_t code = query_text_decode(at, end, &len);

        if (code >= 0x10000) {
            units->list[units->count++] = (uint16_t)(0xD800 | (code - 0x10000) >> 10);
            units->list[units->count++] = (uint16_t)(0xDC00 | ((code - 0x10000) & 0x3FF));
        } else {
            units->list[units->count++] = (uint16_t)code;
        }
        at += len;
    }
}

/* Letters of one to four bytes and halves of characters, as a text that documents take. */
static struct slice text_random(struct random *random, struct query_context *context)
{
    static const uint32_t codes[] = {'a', 'Z', 0xE9, 0x20AC, 0x1F600, 0xD83D, 0xDE00, 0x10FFFF};
    size_t mark = query_build_begin(context), count = random_below(random, 12);
    struct error err = {0};
    struct slice text;

    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[4];
        size_t len = utf8_encode(codes[random_below(random, ARRAY_LEN(codes))], bytes);

        query_text_append(&context->scratch, mark, slice_of(bytes, len));
    }
    assert_ok(query_build_end(context, mark, &text, &err), &err);
    return text;
}

static void parts_are_those_of_utf16(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct random random;

    random_seed(&random, 17);
    query_context_init(&context, arena, NULL, NULL);
    for (int i = 0; i < 20000; i++) {
        struct slice text = text_random(&random, &context), part;
        uint64_t start = random_below(&random, 14), count = random_below(&random, 14);
        struct units whole, cut;
        struct error err = {0};
        size_t from, to;

        units_of(text, &whole);
        assert_int_equal(query_text_units(text), whole.count);
        assert_ok(query_text_cut(text, start, count, &context, &part, &err), &err);
        assert_int_equal(utf8_valid_length(part), part.len);
        units_of(part, &cut);
        from = MIN(start, whole.count);
        to = MIN(start + count, whole.count);
        assert_int_equal(cut.count, to - from);
        assert_memory_equal(cut.list, whole.list + from, (to - from) * sizeof whole.list[0]);
        arena_reset(arena);
    }
}

static void halves_that_meet_become_one(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct random random;

    random_seed(&random, 19);
    query_context_init(&context, arena, NULL, NULL);
    for (int i = 0; i < 20000; i++) {
        struct slice text = text_random(&random, &context), left, right, joined;
        uint64_t at = random_below(&random, 14);
        struct error err = {0};
        size_t mark;

        assert_ok(query_text_cut(text, 0, at, &context, &left, &err), &err);
        assert_ok(query_text_cut(text, at, UINT64_MAX, &context, &right, &err), &err);
        mark = query_build_begin(&context);
        query_text_append(&context.scratch, mark, left);
        query_text_append(&context.scratch, mark, right);
        assert_ok(query_build_end(&context, mark, &joined, &err), &err);
        assert_slice_equal(joined, text);
        arena_reset(arena);
    }
}

static void case_changes_character_by_character(void **state UNUSED)
{
    static const struct {
        const char *text, *lower, *upper;
    } cases[] = {
        {"aBc1", "abc1", "ABC1"}, {"Éé", "éé", "ÉÉ"}, {"ЖЯя", "жяя", "ЖЯЯ"}, {"Σσς", "σσς", "ΣΣΣ"},
        {"日本", "日本", "日本"}, {"", "", ""},       {"ǆ", "ǆ", "Ǆ"},       {"ÿ", "ÿ", "Ÿ"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct error err = {0};
    struct slice text;

    query_context_init(&context, arena, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_ok(query_text_convert(slice_of_text(cases[i].text), QUERY_CASE_LOWER, &context,
                                     &text, &err),
                  &err);
        assert_slice_equal(text, slice_of_text(cases[i].lower));
        assert_ok(query_text_convert(slice_of_text(cases[i].text), QUERY_CASE_UPPER, &context,
                                     &text, &err),
                  &err);
        assert_slice_equal(text, slice_of_text(cases[i].upper));
    }
}

static void places_are_found_from_both_ends(void **state UNUSED)
{
    assert_int_equal(query_text_find(SLICE("abab"), SLICE("ab")), 0);
    assert_int_equal(query_text_find_last(SLICE("abab"), SLICE("ab")), 2);
    assert_true(query_text_find(SLICE("ab"), SLICE("abc")) == SIZE_MAX);
    assert_true(query_text_find_last(SLICE("ab"), SLICE("x")) == SIZE_MAX);
    assert_true(query_text_find_last(SLICE(""), SLICE("x")) == SIZE_MAX);
    assert_int_equal(query_text_find(SLICE("ab"), SLICE("")), 0);
    assert_int_equal(query_text_find_last(SLICE("ab"), SLICE("")), 2);
    assert_true(query_text_ends_with(SLICE("ab"), SLICE("b")));
    assert_false(query_text_ends_with(SLICE("b"), SLICE("ab")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_those_of_utf16),
        cmocka_unit_test(halves_that_meet_become_one),
        cmocka_unit_test(case_changes_character_by_character),
        cmocka_unit_test(places_are_found_from_both_ends),
    };
    return cmocka_run_group_tests_name("query/value/text", tests, NULL, NULL);
}
