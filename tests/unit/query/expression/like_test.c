#include "support/check.h"
#include "support/documents.h"
#include "support/expressions.h"

static void patterns_have_wildcards_sets_and_escapes(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"like('abc', 'abc')", "true"},
        {"like('abc', 'ABC')", "false"},
        {"like('abc', 'ab')", "false"},
        {"like('abc', 'a%')", "true"},
        {"like('abc', '%c')", "true"},
        {"like('abc', '%b%')", "true"},
        {"like('abc', '%')", "true"},
        {"like('', '%')", "true"},
        {"like('', '')", "true"},
        {"like('a', '')", "false"},
        {"like('', '_')", "false"},
        {"like('abc', '___')", "true"},
        {"like('abc', '__')", "false"},
        {"like('abc', 'a_c')", "true"},
        {"like('abc', '%%%c')", "true"},
        {"like('aXbXc', 'a%X%c')", "true"},
        {"like('mississippi', 'm%iss%ippi')", "true"},
        {"like('mississippi', 'm%iss%isspi')", "false"},
        {"like('abab', '%ab')", "true"},
        {"like('a', '[abc]')", "true"},
        {"like('d', '[abc]')", "false"},
        {"like('b', '[a-c]')", "true"},
        {"like('d', '[a-c]')", "false"},
        {"like('d', '[^a-c]')", "true"},
        {"like('b', '[^a-c]')", "false"},
        {"like('-', '[a-]')", "true"},
        {"like('%', '[%]')", "true"},
        {"like('x', '[%]')", "false"},
        {"like('_a', '[_]a')", "true"},
        {"like('[', '[')", "true"},
        {"like('[abc', '[abc')", "true"},
        {"like('x1y', '%[0-9]%')", "true"},
        {"like('xy', '%[0-9]%')", "false"},
        {"like('50%', '50!%', '!')", "true"},
        {"like('50x', '50!%', '!')", "false"},
        {"like('a_b', 'a!_b', '!')", "true"},
        {"like('axb', 'a!_b', '!')", "false"},
        {"like('a!b', 'a!!b', '!')", "true"},
        {"like('a!', 'a!', '!')", "true"},
        {"like(']', '[!]]', '!')", "true"},
        {"like('caf\\u00e9', 'caf_')", "true"},
        {"like('\\ud83d\\ude00!', '_!')", "true"},
        {"like('\\u00e9', '[\\u00e0-\\u00ff]')", "true"},
        {"like('\\u00e9', '[a-z]')", "false"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void anything_but_strings_is_undefined(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"like(1, '1')", "undefined"},
        {"like('1', 1)", "undefined"},
        {"like(null, '%')", "undefined"},
        {"like(undefined, '%')", "undefined"},
        {"like('a', undefined)", "undefined"},
        {"like(c.none, '%')", "undefined"},
        {"like('a', c.p)", "true"},
        {"like('ab', c.p)", "false"},
        {"like('a', '%', c.none)", "undefined"},
        {"like('50%', '50#%', c.e)", "true"},
        {"like('a', '%', c.long)", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), "{'p': '_', 'e': '#', 'long': '##'}");
}

static void a_constant_escape_is_one_character(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(expression_result("like(c.a, 'a', '##')", NULL, true, arena),
                        "BAD_REQUEST");
    assert_string_equal(expression_result("like(c.a, 'a', '')", NULL, true, arena), "BAD_REQUEST");
    assert_string_equal(expression_result("like(c.a, 'a', 1)", NULL, true, arena), "BAD_REQUEST");
}

static void the_prefix_of_a_pattern_is_known(void **state UNUSED)
{
    static const struct {
        const char *text;
        const char *prefix;
        bool exact;
    } cases[] = {
        {"like(c.a, 'abc%')", "abc", false},       {"like(c.a, 'abc')", "abc", true},
        {"like(c.a, '%abc')", "", false},          {"like(c.a, '')", "", true},
        {"like(c.a, 'a!%b_', '!')", "a%b", false}, {"like(c.a, 'x[ab]')", "x", false},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    struct slice prefix;
    bool exact;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_true(query_like_prefix(expression_of(&build, cases[i].text, NULL), &prefix, &exact));
        assert_slice_equal(prefix, slice_of_text(cases[i].prefix));
        assert_int_equal(exact, cases[i].exact);
    }
    assert_false(query_like_prefix(expression_of(&build, "like(c.a, c.b)", NULL), &prefix, &exact));
    assert_false(query_like_prefix(expression_of(&build, "eq(c.a, c.b)", NULL), &prefix, &exact));
}

/* Text times pattern steps at worst, and they are counted. */
static void a_pattern_that_goes_back_often_meets_the_limit(void **state UNUSED)
{
    enum { LENGTH = 20000 };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    const struct query_limits limits = {.work_max = 1000000};
    struct query_slot slot;
    struct query_build build = {.arena = arena};
    char *text = arena_alloc(arena, LENGTH);
    struct document_value value;
    struct error err = {0};

    memset(text, 'a', LENGTH);
    slot = (struct query_slot){.value = document_string(slice_of(text, LENGTH))};
    query_context_init(&context, arena, &limits, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    assert_fails(query_evaluate(expression_of(&build,
                                              "like(c, '%_____________________________"
                                              "______________________________b')",
                                              NULL),
                                &context, &value, &err),
                 &err, ERROR_QUERY_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_have_wildcards_sets_and_escapes),
        cmocka_unit_test(anything_but_strings_is_undefined),
        cmocka_unit_test(a_constant_escape_is_one_character),
        cmocka_unit_test(the_prefix_of_a_pattern_is_known),
        cmocka_unit_test(a_pattern_that_goes_back_often_meets_the_limit),
    };
    return cmocka_run_group_tests_name("query/expression/like", tests, NULL, NULL);
}
