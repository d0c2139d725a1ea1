#include "base/log.h"

#include "support/check.h"

#include <unistd.h>

/* What one event looks like, without its time. */
static void line_of(enum log_format format, enum log_level level, const char *event,
                    struct log_field field, char *ret_line, size_t size)
{
    int ends[2];
    ssize_t got;

    assert_int_equal(pipe(ends), 0);
    CLEANUP(log_free) struct log *log = log_new(ends[1], LOG_INFO, format);
    log_fields(log, level, event, &field, 1);
    close(ends[1]);
    got = read(ends[0], ret_line, size - 1);
    close(ends[0]);
    ret_line[got > 0 ? got : 0] = '\0';
}

static void json_lines_escape_what_json_must(void **state UNUSED)
{
    char line[512];

    line_of(LOG_FORMAT_JSON, LOG_INFO, "it happened", LOG_TEXT("name", "a\"b\n\\"), line,
            sizeof line);
    assert_contains(
        line, "\"level\":\"info\",\"event\":\"it happened\",\"name\":\"a\\\"b\\u000a\\\\\"}\n");
}

static void human_lines_keep_control_bytes_off_the_terminal(void **state UNUSED)
{
    char line[512];

    line_of(LOG_FORMAT_HUMAN, LOG_WARNING, "odd", LOG_TEXT("name", "\033[2J"), line, sizeof line);
    assert_contains(line, "warning: odd name=\"\\u001b[2J\"\n");
}

static void a_pipe_gets_json_by_itself(void **state UNUSED)
{
    char line[512];

    line_of(LOG_FORMAT_AUTO, LOG_INFO, "count", LOG_INT("n", -5), line, sizeof line);
    assert_contains(line, "\"n\":-5}");
}

static void levels_below_the_wanted_one_are_silent(void **state UNUSED)
{
    char line[512];

    line_of(LOG_FORMAT_JSON, LOG_DEBUG, "detail", LOG_BOOL("b", true), line, sizeof line);
    assert_string_equal(line, "");
}

static void a_field_too_long_is_cut_and_the_line_stays_whole(void **state UNUSED)
{
    char line[8192], value[6000];

    memset(value, '\n', sizeof value);
    line_of(LOG_FORMAT_JSON, LOG_INFO, "long", LOG_SLICE("value", slice_of(value, sizeof value)),
            line, sizeof line);
    assert_true(strlen(line) < 4096);
    assert_string_equal(line + strlen(line) - 3, "\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_lines_escape_what_json_must),
        cmocka_unit_test(human_lines_keep_control_bytes_off_the_terminal),
        cmocka_unit_test(a_pipe_gets_json_by_itself),
        cmocka_unit_test(levels_below_the_wanted_one_are_silent),
        cmocka_unit_test(a_field_too_long_is_cut_and_the_line_stays_whole),
    };
    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
