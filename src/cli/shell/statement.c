#include "cli/shell/statement.h"

void shell_statements_init(struct shell_statements *statements, bool blank_ends)
{
    *statements = (struct shell_statements){.blank_ends = blank_ends};
    buf_init(&statements->text, SHELL_STATEMENT_MAX);
    buf_init(&statements->waiting, SHELL_STATEMENT_MAX);
}

void shell_statements_done(struct shell_statements *statements)
{
    buf_done(&statements->text);
    buf_done(&statements->waiting);
}

void shell_statements_forget(struct shell_statements *statements)
{
    buf_clear(&statements->text);
    buf_clear(&statements->waiting);
    statements->inside = SHELL_INSIDE_QUERY;
    statements->given = false;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct slice trimmed(struct slice text)
{
    while (text.len && is_blank(text.data[0]))
        text = slice_skip(text, 1);
    while (text.len && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

bool shell_statements_open(const struct shell_statements *statements)
{
    return !statements->given && trimmed(buf_slice(&statements->text)).len > 0;
}

static void given_forget(struct shell_statements *statements)
{
    if (!statements->given)
        return;
    buf_clear(&statements->text);
    statements->given = false;
}

void shell_statements_feed(struct shell_statements *statements, struct slice line)
{
    given_forget(statements);
    buf_append_slice(&statements->waiting, line);
    buf_append_byte(&statements->waiting, '\n');
}

/* Is the present character, outside of everything, the first of one of these? */
static void outside_step(struct shell_statements *statements, struct slice rest)
{
    if (rest.data[0] == '\'' || rest.data[0] == '"') {
        statements->inside = SHELL_INSIDE_TEXT;
        statements->quote = rest.data[0];
    } else if (slice_starts_with(rest, SLICE("--"))) {
        statements->inside = SHELL_INSIDE_LINE;
    } else if (slice_starts_with(rest, SLICE("/*"))) {
        statements->inside = SHELL_INSIDE_COMMENT;
    }
}

/* How many characters belong together here. */
static size_t step(struct shell_statements *statements, struct slice rest)
{
    enum shell_inside before = statements->inside;

    switch (before) {
    case SHELL_INSIDE_QUERY:
        outside_step(statements, rest);
        return statements->inside == SHELL_INSIDE_COMMENT ? 2 : 1;
    case SHELL_INSIDE_TEXT:
        if (rest.data[0] == '\\' && rest.len > 1)
            return 2;
        if (rest.data[0] == statements->quote)
            statements->inside = SHELL_INSIDE_QUERY;
        return 1;
    case SHELL_INSIDE_LINE:
        if (rest.data[0] == '\n')
            statements->inside = SHELL_INSIDE_QUERY;
        return 1;
    case SHELL_INSIDE_COMMENT:
        if (!slice_starts_with(rest, SLICE("*/")))
            return 1;
        statements->inside = SHELL_INSIDE_QUERY;
        return 2;
    }
    return 1;
}

static bool statement_give(struct shell_statements *statements, struct slice *ret_statement)
{
    *ret_statement = trimmed(buf_slice(&statements->text));
    statements->given = true;
    if (ret_statement->len || buf_overflowed(&statements->text))
        return true;
    given_forget(statements);
    return false;
}

/* A command, or an empty line: a whole line at a time. */
static bool line_give(struct shell_statements *statements, struct slice *ret_statement)
{
    struct slice line, rest;

    if (!slice_split(buf_slice(&statements->waiting), '\n', &line, &rest))
        return false;
    if (trimmed(buf_slice(&statements->text)).len == 0) {
        if (trimmed(line).len == 0 || trimmed(line).data[0] != '.')
            return false;
        buf_clear(&statements->text);
        buf_append_slice(&statements->text, line);
        buf_consume(&statements->waiting, line.len + 1);
        return statement_give(statements, ret_statement);
    }
    if (!statements->blank_ends || trimmed(line).len || statements->inside != SHELL_INSIDE_QUERY ||
        statements->text.data[statements->text.len - 1] != '\n')
        return false;
    buf_consume(&statements->waiting, line.len + 1);
    return statement_give(statements, ret_statement);
}

bool shell_statement_next(struct shell_statements *statements, struct slice *ret_statement)
{
    given_forget(statements);
    while (statements->waiting.len) {
        struct slice rest = buf_slice(&statements->waiting);
        size_t at = 0;
        bool ended = false;

        if (line_give(statements, ret_statement))
            return true;
        while (at < rest.len && !ended) {
            uint8_t c = rest.data[at];

            if (statements->inside == SHELL_INSIDE_QUERY && c == ';') {
                ended = true;
                break;
            }
            at += step(statements, slice_skip(rest, at));
            if (c == '\n')
                break; /* what the next line is depends on what is open */
        }
        buf_append(&statements->text, rest.data, MIN(at, rest.len));
        buf_consume(&statements->waiting, MIN(at + ended, rest.len));
        if (ended && statement_give(statements, ret_statement))
            return true;
    }
    return false;
}

bool shell_statements_end(struct shell_statements *statements, struct slice *ret_statement,
                          bool *ret_any, struct error *err)
{
    *ret_any = false;
    given_forget(statements);
    if (buf_overflowed(&statements->text) || buf_overflowed(&statements->waiting)) {
        shell_statements_forget(statements);
        return error_set(err, ERROR_TOO_LARGE, "a query is longer than %d bytes",
                         SHELL_STATEMENT_MAX);
    }
    if (statements->inside == SHELL_INSIDE_TEXT || statements->inside == SHELL_INSIDE_COMMENT) {
        const char *what = statements->inside == SHELL_INSIDE_TEXT ? "text" : "comment";

        shell_statements_forget(statements);
        return error_set(err, ERROR_BAD_QUERY, "the input ends within a %s", what);
    }
    *ret_any = statement_give(statements, ret_statement);
    statements->inside = SHELL_INSIDE_QUERY;
    return true;
}
