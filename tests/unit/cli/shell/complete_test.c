#include "cli/shell/complete.h"

#include "base/buf.h"
#include "support/check.h"

/* Candidates of a line, separated by blanks. */
static void expect(struct shell *shell, const char *line, const char *expected)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shell_candidates *candidates = ARENA_NEW(arena, struct shell_candidates);
    CLEANUP(buf_done) struct buf got;

    buf_init(&got, BUF_DEFAULT_MAX);
    shell_complete(shell, slice_of_text(line), arena, candidates);
    for (size_t i = 0; i < candidates->count; i++) {
        buf_append_text(&got, i ? " " : "");
        buf_append_slice(&got, candidates->list[i]);
    }
    assert_slice_equal(buf_slice(&got), slice_of_text(expected));
}

static void commands_and_their_words_are_completed(void **state UNUSED)
{
    struct shell shell = {0};

    expect(&shell, ".ex", ".explain .export");
    expect(&shell, ".explain ", "off on");
    expect(&shell, ".format l", "lines");
    expect(&shell, ".nothing", "");
    expect(&shell, ".import a.csv --", "--text --upsert");
}

static void keywords_and_functions_follow_the_letters_typed(void **state UNUSED)
{
    struct shell shell = {0};

    expect(&shell, "SEL", "SELECT");
    expect(&shell, "select dist", "distinct");
    expect(&shell, "SELECT Array_conc", "ARRAY_CONCAT(");
    expect(&shell, "select array_conc", "array_concat(");
    expect(&shell, "SELECT VALUE COUNT(1) FROM c WHERE c.a BETW", "BETWEEN");
}

static void properties_that_were_seen_come_behind_a_dot(void **state UNUSED)
{
    struct shell shell = {0};

    assert_true(shell_words_put(&shell.properties, SLICE("total"), SLICE_NONE));
    assert_true(shell_words_put(&shell.properties, SLICE("Total2"), SLICE_NONE));
    assert_true(shell_words_put(&shell.properties, SLICE("selected"), SLICE_NONE));
    expect(&shell, "SELECT c.to", "Total2 total");
    expect(&shell, "SELECT c.sel", "selected");
    expect(&shell, "sel", "select selected");
    shell_words_done(&shell.properties);
}

static void parameters_come_behind_an_at_sign(void **state UNUSED)
{
    struct shell shell = {0};

    assert_true(shell_words_put(&shell.parameters, SLICE("@min"), SLICE("1")));
    assert_true(shell_words_put(&shell.parameters, SLICE("@max"), SLICE("2")));
    expect(&shell, "SELECT @m", "@max @min");
    expect(&shell, ".set @mi", "@min");
    shell_words_done(&shell.parameters);
}

static void what_candidates_share_is_found_without_case(void **state UNUSED)
{
    struct shell_candidates candidates = {.list = {SLICE("STRINGEQUALS("), SLICE("StringSplit(")},
                                          .count = 2};

    assert_int_equal(shell_candidates_common(&candidates).len, 6);
    candidates.count = 0;
    assert_int_equal(shell_candidates_common(&candidates).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_and_their_words_are_completed),
        cmocka_unit_test(keywords_and_functions_follow_the_letters_typed),
        cmocka_unit_test(properties_that_were_seen_come_behind_a_dot),
        cmocka_unit_test(parameters_come_behind_an_at_sign),
        cmocka_unit_test(what_candidates_share_is_found_without_case),
    };
    return cmocka_run_group_tests_name("cli/shell/complete", tests, NULL, NULL);
}
