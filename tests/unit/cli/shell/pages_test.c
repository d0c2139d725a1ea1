#include "cli/shell/pages.h"

#include "support/check.h"

static void expect(const char *query, uint32_t start, uint32_t end, const char *shown)
{
    const struct shell_fault fault = {.located = true, .start = start, .end = end};
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    shell_fault_show(&fault, slice_of_text(query), &out);
    assert_slice_equal(buf_slice(&out), slice_of_text(shown));
}

static void a_fault_is_pointed_at_in_its_line(void **state UNUSED)
{
    expect("SELECT * FORM c", 9, 13, "  SELECT * FORM c\n           ^~~~\n");
    expect("SELECT *\nFORM c\nWHERE", 9, 13, "  FORM c\n  ^~~~\n");
    expect("SELECT", 6, 6, "  SELECT\n        ^\n");
    expect("SELECT\tx", 7, 8, "  SELECT x\n         ^\n");
}

/* Units of UTF-16 on the wire, columns of a terminal on the screen. */
static void characters_outside_of_ascii_do_not_move_the_caret(void **state UNUSED)
{
    expect("SELECT 'ü' x", 11, 12, "  SELECT 'ü' x\n             ^\n");
    expect("SELECT '日本' x", 12, 13, "  SELECT '日本' x\n                ^\n");
    expect("SELECT '😀' x", 12, 13, "  SELECT '😀' x\n              ^\n");
}

static void a_place_past_the_end_is_the_end(void **state UNUSED)
{
    expect("abc", 100, 200, "  abc\n     ^\n");
    expect("", 0, 1, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_is_pointed_at_in_its_line),
        cmocka_unit_test(characters_outside_of_ascii_do_not_move_the_caret),
        cmocka_unit_test(a_place_past_the_end_is_the_end),
    };
    return cmocka_run_group_tests_name("cli/shell/pages", tests, NULL, NULL);
}
