/* Notes of servers, as commands find them. */
#include "server/presence.h"

#include "support/check.h"
#include "support/scratch.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct presence_note here = {"http://127.0.0.1:9000", "/data", true};

static size_t notes_count(struct arena *arena, struct presence_note *ret_first)
{
    struct presence_note notes[PRESENCE_NOTES_MAX];
    size_t count = presence_list(arena, notes);

    if (count)
        *ret_first = notes[0];
    return count;
}

static void a_note_is_there_as_long_as_its_server(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct presence *presence;
    struct presence_note note = {0};
    struct stat status;
    struct error err;

    scratch_init(&scratch);
    setenv("XDG_STATE_HOME", scratch.path, 1);
    assert_int_equal(notes_count(arena, &note), 0);
    assert_ok(presence_leave(&here, &presence, &err), &err);
    assert_int_equal(notes_count(arena, &note), 1);
    assert_string_equal(note.endpoint, "http://127.0.0.1:9000");
    assert_string_equal(note.directory, "/data");
    assert_true(note.dev);
    assert_int_equal(stat(scratch_path(&scratch, "orrery/servers"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    presence_take_back(presence);
    assert_int_equal(notes_count(arena, &note), 0);
}

static void a_killed_server_is_not_believed_and_the_next_one_clears_its_note(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(presence_take_back) struct presence *presence = NULL;
    struct presence_note note;
    struct stat status;
    struct error err;
    pid_t child;
    int end;

    scratch_init(&scratch);
    setenv("XDG_STATE_HOME", scratch.path, 1);
    child = fork();
    if (child == 0) {
        struct presence *killed;

        (void)!presence_leave(&(struct presence_note){"http://127.0.0.1:1", "", false}, &killed,
                              &err);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(notes_count(arena, &note), 0);
    assert_ok(presence_leave(&here, &presence, &err), &err);
    assert_int_equal(notes_count(arena, &note), 1);
    assert_string_equal(note.endpoint, "http://127.0.0.1:9000");
    assert_int_equal(stat(scratch_path(&scratch, "orrery/servers"), &status), 0);
    assert_int_equal(status.st_nlink, 2);
}

static void without_a_place_there_is_a_reason(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct presence *presence;
    struct presence_note note;
    struct error err;

    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_fails(presence_leave(&here, &presence, &err), &err, ERROR_SYSTEM);
    assert_int_equal(notes_count(arena, &note), 0);
    setenv("HOME", "/dev/null/nobody", 1);
    assert_fails(presence_leave(&here, &presence, &err), &err, ERROR_SYSTEM);
    assert_int_equal(notes_count(arena, &note), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_is_there_as_long_as_its_server),
        cmocka_unit_test(a_killed_server_is_not_believed_and_the_next_one_clears_its_note),
        cmocka_unit_test(without_a_place_there_is_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
