#include "cli/table.h"

#include "support/check.h"

static struct cli_table *sample(struct arena *arena)
{
    static const struct slice headings[] = {{(const uint8_t *)"name", 4},
                                            {(const uint8_t *)"n", 1}};
    static const bool right[] = {false, true};
    struct cli_table *table = cli_table_new_columns(arena, headings, right, 2);

    cli_table_text(table, SLICE("a rather long name"));
    cli_table_text(table, SLICE("5"));
    cli_table_text(table, SLICE("日本"));
    cli_table_text(table, SLICE("1234"));
    return table;
}

static void expect(const struct cli_table *table, const char *expected)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    cli_table_append(table, &out);
    assert_slice_equal(buf_slice(&out), slice_of_text(expected));
}

static void columns_are_as_wide_as_their_widest_cell(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    expect(sample(arena), "name                   n\n"
                          "a rather long name     5\n"
                          "日本                1234\n");
}

static void the_widest_columns_are_cut_first(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_table *table = sample(arena);

    assert_int_equal(cli_table_fit(table, 16), 0);
    expect(table, "name           n\n"
                  "a rather …     5\n"
                  "日本        1234\n");
}

static void columns_without_room_are_left_out(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_table *table = sample(arena);

    assert_int_equal(cli_table_fit(table, 6), 1);
    expect(table, "name\n"
                  "a rat…\n"
                  "日本\n");
}

static void cells_cannot_steer_the_terminal(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const char *const headings[] = {"X", NULL};
    struct cli_table *table = cli_table_new(arena, headings);

    cli_table_text(table, SLICE("a\033[2Jb\nc\x7F"));
    cli_table_text(table, SLICE("\xC2\x9Bx"));
    cli_table_text(table, SLICE("\xFF"));
    expect(table, "X\na?[2Jb?c?\n?x\n?\n");
}

static void widths_are_those_of_a_terminal(void **state UNUSED)
{
    assert_int_equal(cli_table_width(SLICE("")), 0);
    assert_int_equal(cli_table_width(SLICE("abc")), 3);
    assert_int_equal(cli_table_width(SLICE("\xC3\xBC")), 1);
    assert_int_equal(cli_table_width(SLICE("e\xCC\x81")), 1);
    assert_int_equal(cli_table_width(SLICE("日")), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(the_widest_columns_are_cut_first),
        cmocka_unit_test(columns_without_room_are_left_out),
        cmocka_unit_test(cells_cannot_steer_the_terminal),
        cmocka_unit_test(widths_are_those_of_a_terminal),
    };
    return cmocka_run_group_tests_name("cli/table", tests, NULL, NULL);
}
