#include "server/settings.h"

#include "support/check.h"

static void a_file_sets_by_section_and_name(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct error err;

    assert_ok(settings_read_text(settings, "f.conf",
                                 SLICE("# a comment\n"
                                       "server.dev = true\n"
                                       "\n"
                                       "[log]\n"
                                       "level = debug ; another\n"
                                       "[node]\n"
                                       "local = rocksdb:/var/lib/orrery\n"
                                       "archive = postgresql://db/archive\n"
                                       "[net]\r\n"
                                       "idle_ms_max: 5s"),
                                 &err),
              &err);
    assert_true(settings->server_dev);
    assert_int_equal(settings->log_level, 0);
    assert_int_equal(settings->node_count, 2);
    assert_string_equal(settings->nodes[0].url, "rocksdb:/var/lib/orrery");
    assert_string_equal(settings->nodes[1].name, "archive");
    assert_int_equal(settings->net_idle_ms_max, 5000);
}

static void faults_are_told_with_file_and_line(void **state UNUSED)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[log]\n\nlevle = info\n",
         "f.conf:3: there is no setting \"log.levle\": did you mean \"log.level\"?"},
        {"[log]\nlevel = loud\n", "f.conf:2: setting \"log.level\" cannot be \"loud\""},
        {"[log]\nlevel = info\nlevel = error\n",
         "f.conf:3: setting \"log.level\" was already given in line 2"},
        {"[log\n", "f.conf:1: a line is neither"},
        {"\nnonsense\n", "f.conf:2: a line is neither"},
        {"[node]\na = memory:\na = memory:\n", "f.conf:3: setting \"node.a\" was already given"},
        {"[engine]\ncache_bytes = 1T\n", "f.conf:2: setting \"engine.cache_bytes\" cannot be"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(settings_free) struct settings *settings = settings_new();
        struct error err;

        assert_fails(settings_read_text(settings, "f.conf", slice_of_text(cases[i].text), &err),
                     &err, ERROR_CONFIGURATION);
        assert_contains(err.message, cases[i].message);
    }
}

/* The library beneath would cut the line and take its end for a line of its own. */
static void a_line_too_long_is_refused_whole(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    CLEANUP(buf_done) struct buf text;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    BUF_APPEND(&text, "[tls]\nkey = ");
    for (int i = 0; i < 20000; i++)
        buf_append_byte(&text, 'x');
    BUF_APPEND(&text, "\n");
    assert_fails(settings_read_text(settings, "f.conf", buf_slice(&text), &err), &err,
                 ERROR_CONFIGURATION);
    assert_contains(err.message, "f.conf:2: the line has more than");
}

static void a_nul_byte_is_refused(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct error err;

    assert_fails(settings_read_text(settings, "f.conf", SLICE("[log]\nlevel = in\0fo\n"), &err),
                 &err, ERROR_CONFIGURATION);
    assert_contains(err.message, "f.conf:2: the line holds a NUL byte");
}

static void later_layers_win(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    char level[] = "ORRERY_LOG_LEVEL=warning", node[] = "ORRERY_NODE_A=postgresql://db/a";
    char *environment[] = {level, node, NULL};
    struct error err;

    assert_ok(settings_read_text(settings, "f.conf",
                                 SLICE("[log]\nlevel = debug\nformat = json\n[net]\nloops = 2\n"
                                       "[node]\na = memory:\n"),
                                 &err),
              &err);
    assert_ok(settings_read_environment(settings, environment, &err), &err);
    assert_ok(settings_assign(settings, SLICE("net.loops=4"), &err), &err);
    assert_int_equal(settings->log_level, 2);
    assert_int_equal(settings->log_format, 2);
    assert_int_equal(settings->net_loops, 4);
    assert_int_equal(settings->node_count, 1);
    assert_string_equal(settings->nodes[0].url, "postgresql://db/a");
}

static void a_missing_file_is_told_by_name(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct error err;

    assert_fails(settings_read_file(settings, "/nowhere/orrery.conf", &err), &err,
                 ERROR_CONFIGURATION);
    assert_contains(err.message, "--config: file \"/nowhere/orrery.conf\": No such file");
    assert_fails(settings_read_file(settings, "/", &err), &err, ERROR_CONFIGURATION);
    assert_contains(err.message, "Is a directory");
}

static void an_endless_file_stops_at_the_limit(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct error err;

    assert_fails(settings_read_file(settings, "/dev/zero", &err), &err, ERROR_CONFIGURATION);
    assert_contains(err.message, "is larger than the 1048576 bytes allowed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_sets_by_section_and_name),
        cmocka_unit_test(faults_are_told_with_file_and_line),
        cmocka_unit_test(a_line_too_long_is_refused_whole),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(later_layers_win),
        cmocka_unit_test(a_missing_file_is_told_by_name),
        cmocka_unit_test(an_endless_file_stops_at_the_limit),
    };
    return cmocka_run_group_tests_name("server/settings_file", tests, NULL, NULL);
}
