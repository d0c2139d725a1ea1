#include "server/settings.h"

#include "support/check.h"

static void assign(struct settings *settings, const char *assignment)
{
    struct error err;

    assert_ok(settings_assign(settings, slice_of_text(assignment), &err), &err);
}

static void values_of_every_kind_are_read(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();

    assign(settings, "server.dev=yes");
    assert_true(settings->server_dev);
    assign(settings, "net.loops=3");
    assert_int_equal(settings->net_loops, 3);
    assign(settings, "net.body_bytes_max=2m");
    assert_int_equal(settings->net_body_bytes_max, 2 << 20);
    assign(settings, "net.body_bytes_max=65536");
    assert_int_equal(settings->net_body_bytes_max, 65536);
    assign(settings, "net.idle_ms_max=2m");
    assert_int_equal(settings->net_idle_ms_max, 120000);
    assign(settings, "net.idle_ms_max=1500ms");
    assert_int_equal(settings->net_idle_ms_max, 1500);
    assign(settings, "server.drain_ms=0");
    assert_int_equal(settings->server_drain_ms, 0);
    assign(settings, "log.level=error");
    assert_int_equal(settings->log_level, 3);
    assign(settings, " tls.key = a=b ");
    assert_string_equal(settings->tls_key, "a=b");
}

/* What is wrong with an assignment, as the user is told. */
static void refused_assignments_say_why(void **state UNUSED)
{
    static const struct {
        const char *assignment, *message;
    } cases[] = {
        {"log.levle=info", "there is no setting \"log.levle\": did you mean \"log.level\"?"},
        {"level=info", "there is no setting \"level\": did you mean \"log.level\"?"},
        {"colour=red", "there is no setting \"colour\": `orrery help settings` lists them"},
        {"log.level=loud",
         "--set: setting \"log.level\" cannot be \"loud\": it takes debug, info, warning, error"},
        {"server.dev=maybe", "setting \"server.dev\" cannot be \"maybe\": it takes true or false"},
        {"net.loops=-1", "setting \"net.loops\" cannot be \"-1\": it takes 0 to 1024"},
        {"net.loops=1025", "it takes 0 to 1024"},
        {"net.loops=2K", "it takes 0 to 1024"},
        {"net.loops=", "it takes 0 to 1024"},
        {"net.loops=99999999999999999999", "it takes 0 to 1024"},
        {"net.body_bytes_max=9223372036854775807G", "it takes 64K to 1G (4096, 64K, 16M, 1G)"},
        {"net.body_bytes_max=1.5M", "it takes 64K to 1G"},
        {"net.idle_ms_max=30", "it takes 100ms to 24h (500ms, 30s, 5m)"},
        {"net.idle_ms_max=25h", "it takes 100ms to 24h"},
        {"net.loops", "--set takes name=value, not \"net.loops\""},
        {"node.=memory:", "node name \"\" is not one to 32 small letters, digits and hyphens"},
        {"node.A=memory:", "node name \"A\" is not"},
        {"node.-a=memory:", "node name \"-a\" is not"},
        {"node.a=", "node \"a\" has no url"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(settings_free) struct settings *settings = settings_new();
        struct error err;

        assert_fails(settings_assign(settings, slice_of_text(cases[i].assignment), &err), &err,
                     ERROR_CONFIGURATION);
        assert_contains(err.message, cases[i].message);
    }
}

static void a_value_over_the_limit_is_refused(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    const struct settings_source source = {SETTINGS_COMMAND_LINE, "--set", 0};
    char value[SETTINGS_VALUE_MAX + 1];
    struct error err;

    memset(value, 'a', sizeof value);
    assert_fails(
        settings_set(settings, SLICE("tls.key"), slice_of(value, sizeof value), &source, &err),
        &err, ERROR_CONFIGURATION);
    assert_ok(
        settings_set(settings, SLICE("tls.key"), slice_of(value, sizeof value - 1), &source, &err),
        &err);
    assert_fails(settings_set(settings, SLICE("tls.key"), SLICE("a\0b"), &source, &err), &err,
                 ERROR_CONFIGURATION);
}

static void a_node_named_twice_in_one_layer_is_refused(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct error err;

    assign(settings, "node.a=memory:");
    assign(settings, "node.b=memory:");
    assert_fails(settings_assign(settings, SLICE("node.a=memory:"), &err), &err,
                 ERROR_CONFIGURATION);
    assert_contains(err.message, "node \"a\" is named twice");
    assert_int_equal(settings->node_count, 2);
}

static void nodes_have_a_limit(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct error err;

    for (int i = 0; i < SETTINGS_NODES_MAX; i++) {
        char assignment[64];

        snprintf(assignment, sizeof assignment, "node.n%d=memory:", i);
        assign(settings, assignment);
    }
    assert_fails(settings_assign(settings, SLICE("node.last=memory:"), &err), &err,
                 ERROR_CONFIGURATION);
}

static void the_environment_names_settings_in_capitals(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    char level[] = "ORRERY_LOG_LEVEL=warning", size[] = "ORRERY_ENGINE_CACHE_BYTES=32M";
    char node[] = "ORRERY_NODE_MAIN=memory:", other[] = "PATH=/bin";
    char *environment[] = {other, level, size, node, NULL};
    struct error err;

    assert_ok(settings_read_environment(settings, environment, &err), &err);
    assert_int_equal(settings->log_level, 2);
    assert_int_equal(settings->engine_cache_bytes, 32 << 20);
    assert_int_equal(settings->node_count, 1);
    assert_string_equal(settings->nodes[0].name, "main");
    assert_string_equal(settings->nodes[0].url, "memory:");
}

static void unknown_variables_are_refused_with_the_nearest(void **state UNUSED)
{
    static const struct {
        const char *variable, *message;
    } cases[] = {
        {"ORRERY_LOG_LEVLE=info",
         "ORRERY_LOG_LEVLE names no setting: did you mean ORRERY_LOG_LEVEL?"},
        {"ORRERY_=x", "ORRERY_ names no setting: `orrery help settings` lists them"},
        {"ORRERY_LOG_LEVEL=loud", "ORRERY_LOG_LEVEL: setting \"log.level\" cannot be \"loud\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(settings_free) struct settings *settings = settings_new();
        CLEANUP(memory_free) char *variable = slice_to_text(slice_of_text(cases[i].variable));
        char *environment[] = {variable, NULL};
        struct error err;

        assert_fails(settings_read_environment(settings, environment, &err), &err,
                     ERROR_CONFIGURATION);
        assert_contains(err.message, cases[i].message);
    }
}

static void help_lists_every_default_as_it_can_be_given(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    settings_describe(&out);
    buf_append_byte(&out, '\0');
    assert_contains((char *)out.data, "  log.level = info  (debug, info, warning, error)\n");
    assert_contains((char *)out.data, "  server.drain_ms = 10s  (0 to 1h)\n");
    assert_contains((char *)out.data, "  rest.listen = 127.0.0.1:8081  (text)\n");
    assert_contains((char *)out.data, "  node.NAME = URL\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_kind_are_read),
        cmocka_unit_test(refused_assignments_say_why),
        cmocka_unit_test(a_value_over_the_limit_is_refused),
        cmocka_unit_test(a_node_named_twice_in_one_layer_is_refused),
        cmocka_unit_test(nodes_have_a_limit),
        cmocka_unit_test(the_environment_names_settings_in_capitals),
        cmocka_unit_test(unknown_variables_are_refused_with_the_nearest),
        cmocka_unit_test(help_lists_every_default_as_it_can_be_given),
    };
    return cmocka_run_group_tests_name("server/settings", tests, NULL, NULL);
}
