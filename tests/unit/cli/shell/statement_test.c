#include "cli/shell/statement.h"

#include "support/check.h"

/* Feeds lines (separated by |) and gives what comes out, separated by |; the end of input too. */
static void expect(bool blank_ends, const char *lines, const char *expected)
{
    struct shell_statements statements;
    CLEANUP(buf_done) struct buf got;
    struct slice rest = slice_of_text(lines), line, statement;
    struct error err;
    bool more = true, any;

    buf_init(&got, BUF_DEFAULT_MAX);
    shell_statements_init(&statements, blank_ends);
    while (more) {
        more = slice_split(rest, '|', &line, &rest);
        shell_statements_feed(&statements, more ? line : rest);
        while (shell_statement_next(&statements, &statement)) {
            buf_append_slice(&got, statement);
            BUF_APPEND(&got, "|");
        }
    }
    if (!shell_statements_end(&statements, &statement, &any, &err)) {
        buf_append_text(&got, err.message);
    } else if (any) {
        BUF_APPEND(&got, "end:");
        buf_append_slice(&got, statement);
    }
    assert_slice_equal(buf_slice(&got), slice_of_text(expected));
    shell_statements_done(&statements);
}

static void a_query_ends_with_a_semicolon(void **state UNUSED)
{
    expect(false, "SELECT 1;", "SELECT 1|");
    expect(false, "SELECT|  1 ;  ", "SELECT\n  1|");
    expect(false, "SELECT 1; SELECT 2; SELECT", "SELECT 1|SELECT 2|end:SELECT");
    expect(false, ";;|;SELECT 1;;", "SELECT 1|");
}

static void a_semicolon_within_text_or_comment_ends_nothing(void **state UNUSED)
{
    expect(false, "SELECT 'a;b';", "SELECT 'a;b'|");
    expect(false, "SELECT \"a;b\";", "SELECT \"a;b\"|");
    expect(false, "SELECT 'it\\';s';", "SELECT 'it\\';s'|");
    expect(false, "SELECT 1 -- one; two|;", "SELECT 1 -- one; two|");
    expect(false, "SELECT /* ; |' ; */ 1;", "SELECT /* ; \n' ; */ 1|");
    expect(false, "SELECT 'a|;b';", "SELECT 'a\n;b'|");
}

static void an_empty_line_ends_a_query_only_at_a_prompt(void **state UNUSED)
{
    expect(true, "SELECT 1||SELECT 2", "SELECT 1|end:SELECT 2");
    expect(true, "SELECT 1|   |", "SELECT 1|");
    expect(true, "||SELECT 1;", "SELECT 1|");
    expect(true, "SELECT 'a||b';", "SELECT 'a\n\nb'|");
    expect(false, "SELECT||1;", "SELECT\n\n1|");
}

static void a_dot_begins_a_command_only_where_no_query_is_open(void **state UNUSED)
{
    expect(false, ".use a;b|SELECT 1;", ".use a;b|SELECT 1|");
    expect(false, "  .help  |.quit", ".help|.quit|");
    expect(false, "SELECT c|.name FROM c;", "SELECT c\n.name FROM c|");
    expect(false, "SELECT 1;|.help", "SELECT 1|.help|");
    expect(false, ".set @a 'it|.help", ".set @a 'it|.help|");
}

static void what_never_ends_is_told(void **state UNUSED)
{
    expect(false, "SELECT 'a", "the input ends within a text");
    expect(false, "SELECT /* a", "the input ends within a comment");
    expect(false, "SELECT 1 -- a", "end:SELECT 1 -- a");
    expect(false, "", "");
}

static void a_statement_has_a_limit(void **state UNUSED)
{
    static uint8_t line[64 * 1024];
    struct shell_statements statements;
    struct slice statement;
    struct error err;
    bool any;

    memset(line, 'x', sizeof line);
    shell_statements_init(&statements, false);
    for (int i = 0; i < 10; i++) {
        shell_statements_feed(&statements, slice_of(line, sizeof line));
        assert_false(shell_statement_next(&statements, &statement));
    }
    assert_true(buf_overflowed(&statements.text));
    assert_fails(shell_statements_end(&statements, &statement, &any, &err), &err, ERROR_TOO_LARGE);
    shell_statements_feed(&statements, SLICE("SELECT 1;"));
    assert_true(shell_statement_next(&statements, &statement));
    assert_slice_equal(statement, SLICE("SELECT 1"));
    shell_statements_done(&statements);
}

static void the_prompt_knows_whether_a_query_is_open(void **state UNUSED)
{
    struct shell_statements statements;
    struct slice statement;

    shell_statements_init(&statements, true);
    assert_false(shell_statements_open(&statements));
    shell_statements_feed(&statements, SLICE("SELECT"));
    assert_false(shell_statement_next(&statements, &statement));
    assert_true(shell_statements_open(&statements));
    shell_statements_forget(&statements);
    assert_false(shell_statements_open(&statements));
    shell_statements_feed(&statements, SLICE("SELECT 1;"));
    assert_true(shell_statement_next(&statements, &statement));
    assert_false(shell_statements_open(&statements));
    shell_statements_done(&statements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_ends_with_a_semicolon),
        cmocka_unit_test(a_semicolon_within_text_or_comment_ends_nothing),
        cmocka_unit_test(an_empty_line_ends_a_query_only_at_a_prompt),
        cmocka_unit_test(a_dot_begins_a_command_only_where_no_query_is_open),
        cmocka_unit_test(what_never_ends_is_told),
        cmocka_unit_test(a_statement_has_a_limit),
        cmocka_unit_test(the_prompt_knows_whether_a_query_is_open),
    };
    return cmocka_run_group_tests_name("cli/shell/statement", tests, NULL, NULL);
}
