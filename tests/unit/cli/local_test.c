/* Which server a command means when it is not told. */
#include "cli/local.h"

#include "server/presence.h"
#include "support/check.h"
#include "support/scratch.h"

struct bench {
    struct scratch scratch;
    struct presence *presences[3];
};

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);

    scratch_init(&bench->scratch);
    setenv("XDG_STATE_HOME", bench->scratch.path, 1);
    setenv("XDG_DATA_HOME", "/nowhere", 1);
    unsetenv("ORRERY_SERVER_DEV");
    unsetenv("ORRERY_REST_LISTEN");
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    unsetenv("ORRERY_SERVER_DEV");
    unsetenv("ORRERY_REST_LISTEN");
    for (size_t i = 0; i < ARRAY_LEN(bench->presences); i++)
        presence_take_back(bench->presences[i]);
    scratch_done(&bench->scratch);
    memory_free(bench);
    return 0;
}

static void runs(struct bench *bench, size_t place, const char *endpoint, const char *directory,
                 bool dev)
{
    struct error err;

    assert_ok(presence_leave(&(struct presence_note){endpoint, directory, dev},
                             &bench->presences[place], &err),
              &err);
}

static void finds(const char *endpoint, const char *directory, const char *expected_endpoint,
                  const char *expected_directory, bool dev)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct cli_local local;
    struct error err;

    assert_ok(cli_local_find(endpoint, directory, settings, &local, &err), &err);
    assert_string_equal(local.endpoint, expected_endpoint);
    assert_string_equal(local.directory, expected_directory);
    assert_int_equal(local.dev, dev);
}

static void without_any_server_there_are_the_defaults(void **state UNUSED)
{
    finds(NULL, NULL, "http://127.0.0.1:8081", "/nowhere/orrery", false);
    finds("http://db:1", "/d", "http://db:1", "/d", false);
}

static void the_server_that_runs_here_is_meant(void **state)
{
    struct bench *bench = *state;

    runs(bench, 0, "https://127.0.0.1:9000", bench->scratch.path, true);
    finds(NULL, NULL, "https://127.0.0.1:9000", bench->scratch.path, true);
    finds(NULL, bench->scratch.path, "https://127.0.0.1:9000", bench->scratch.path, true);
    finds("http://localhost:9000/team-a/", NULL, "http://localhost:9000/team-a/",
          bench->scratch.path, true);
    finds("http://[::1]:9000", NULL, "http://[::1]:9000", bench->scratch.path, true);
}

static void a_note_says_nothing_of_other_ports_hosts_and_directories(void **state)
{
    struct bench *bench = *state;

    runs(bench, 0, "http://127.0.0.1:9000", bench->scratch.path, true);
    finds("http://127.0.0.1:9001", NULL, "http://127.0.0.1:9001", "/nowhere/orrery", false);
    finds("http://db:9000", NULL, "http://db:9000", "/nowhere/orrery", false);
    finds("http://127.example.org:9000", NULL, "http://127.example.org:9000", "/nowhere/orrery",
          false);
    finds(NULL, "/elsewhere", "http://127.0.0.1:8081", "/elsewhere", false);
}

static void of_several_the_default_port_is_meant_or_they_are_named(void **state)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct bench *bench = *state;
    struct cli_local local;
    struct error err;

    runs(bench, 0, "http://127.0.0.1:9000", "", true);
    runs(bench, 1, "http://127.0.0.1:9001", "", false);
    assert_fails(cli_local_find(NULL, NULL, settings, &local, &err), &err, ERROR_CONFIGURATION);
    assert_contains(err.message, "http://127.0.0.1:9001");
    finds("http://127.0.0.1:9001", NULL, "http://127.0.0.1:9001", "", false);
    runs(bench, 2, "http://127.0.0.1:8081", "", false);
    finds(NULL, NULL, "http://127.0.0.1:8081", "", false);
}

static void the_environment_of_a_server_is_honoured_on_loopback(void **state UNUSED)
{
    setenv("ORRERY_SERVER_DEV", "true", 1);
    finds(NULL, NULL, "http://127.0.0.1:8081", "/nowhere/orrery", true);
    finds("http://db:8081", NULL, "http://db:8081", "/nowhere/orrery", false);
    setenv("ORRERY_REST_LISTEN", "127.0.0.1:9100", 1);
    finds(NULL, NULL, "http://127.0.0.1:9100", "/nowhere/orrery", true);
    setenv("ORRERY_REST_LISTEN", "0.0.0.0:9100", 1);
    finds(NULL, NULL, "http://127.0.0.1:9100", "/nowhere/orrery", true);
    setenv("ORRERY_REST_LISTEN", "[::]:9100", 1);
    finds(NULL, NULL, "http://[::1]:9100", "/nowhere/orrery", true);
    setenv("ORRERY_REST_LISTEN", "127.0.0.1:0", 1);
    finds(NULL, NULL, "http://127.0.0.1:8081", "/nowhere/orrery", true);
}

static void a_wrong_environment_is_told(void **state UNUSED)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct cli_local local;
    struct error err;

    setenv("ORRERY_SERVER_DEV", "perhaps", 1);
    assert_fails(cli_local_find(NULL, NULL, settings, &local, &err), &err, ERROR_CONFIGURATION);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(without_any_server_there_are_the_defaults),
        CASE(the_server_that_runs_here_is_meant),
        CASE(a_note_says_nothing_of_other_ports_hosts_and_directories),
        CASE(of_several_the_default_port_is_meant_or_they_are_named),
        CASE(the_environment_of_a_server_is_honoured_on_loopback),
        CASE(a_wrong_environment_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
