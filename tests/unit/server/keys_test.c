#include "server/keys.h"

#include "server/file.h"
#include "support/check.h"
#include "support/scratch.h"

#include <sys/stat.h>

/* A catalogue in memory, and a directory for the file. */
struct bench {
    struct scratch scratch;
    struct engine *engine;
    struct cluster *cluster;
    struct catalogue *catalogue;
};

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct error err;

    scratch_init(&bench->scratch);
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &bench->engine, &err),
              &err);
    bench->cluster = cluster_new(NULL);
    assert_ok(cluster_add(bench->cluster, "a", bench->engine, &err), &err);
    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = bench->cluster, .purge_by_hand = true},
                  &bench->catalogue, &err),
              &err);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    catalogue_close(bench->catalogue);
    cluster_free(bench->cluster);
    engine_close(bench->engine);
    scratch_done(&bench->scratch);
    memory_free(bench);
    return 0;
}

static void load(struct bench *bench, struct keys *ret_keys)
{
    struct error err;

    assert_ok(keys_load(bench->catalogue, bench->scratch.path, ret_keys, &err), &err);
}

static void file_put(struct bench *bench, const char *text)
{
    struct error err;

    assert_ok(
        server_file_write_private(scratch_path(&bench->scratch, "keys"), slice_of_text(text), &err),
        &err);
}

static void assert_file_holds(struct bench *bench, const char *text)
{
    CLEANUP(buf_done) struct buf left;
    struct error err;

    buf_init(&left, BUF_DEFAULT_MAX);
    assert_ok(server_file_read(scratch_path(&bench->scratch, "keys"), &left, &err), &err);
    assert_slice_equal(buf_slice(&left), slice_of_text(text));
}

/* The default account as it is now. */
static struct account *account_now(struct bench *bench)
{
    struct account *account;
    struct error err;

    assert_ok(catalogue_account_open(bench->catalogue, SLICE("default"), &account, &err), &err);
    return account;
}

/* What the file must hold for these keys. */
static void file_text(const struct account_keys *keys, struct buf *ret_text)
{
    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        char key[ACCOUNT_KEY_TEXT_SIZE];

        account_key_format(keys->secrets[i], key);
        buf_printf(ret_text, "%s %s\n", account_key_name((enum account_key)i), key);
    }
    buf_append_byte(ret_text, 0);
}

static void assert_file_shows(struct bench *bench, const struct account *account)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    file_text(account_keys(account), &text);
    assert_file_holds(bench, (const char *)text.data);
}

static void the_keys_are_made_once_and_the_file_shows_all_four(void **state)
{
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *account = NULL;
    struct keys first, second;
    struct stat status;

    load(bench, &first);
    load(bench, &second);
    assert_string_equal(first.primary, second.primary);
    assert_int_equal(strlen(first.primary), ACCOUNT_KEY_TEXT_SIZE - 1);
    assert_int_equal(stat(first.path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    account = account_now(bench);
    assert_file_shows(bench, account);
}

static void the_primary_of_an_old_file_is_imported(void **state)
{
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *account = NULL;
    struct account_keys none = {0};
    char line[ACCOUNT_KEY_TEXT_SIZE + 16];
    struct keys keys;

    snprintf(line, sizeof line, "primary %s\n", account_key_emulator);
    file_put(bench, line);
    load(bench, &keys);
    assert_string_equal(keys.primary, account_key_emulator);
    account = account_now(bench);
    for (size_t i = 1; i < ACCOUNT_KEYS; i++)
        assert_memory_not_equal(account_keys(account)->secrets[i], none.secrets[i],
                                ACCOUNT_KEY_BYTES);
    assert_file_shows(bench, account);
}

static void a_file_of_all_four_is_imported_whole(void **state)
{
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(buf_done) struct buf text;
    struct account_keys keys;
    struct keys loaded;

    buf_init(&text, BUF_DEFAULT_MAX);
    account_keys_make(&keys);
    file_text(&keys, &text);
    file_put(bench, (const char *)text.data);
    load(bench, &loaded);
    account = account_now(bench);
    assert_memory_equal(account_keys(account), &keys, sizeof keys);
}

static void an_account_without_keys_is_given_some_and_stays_what_it_is(void **state)
{
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *before = NULL, *after = NULL;
    struct keys keys;
    struct error err;

    assert_ok(
        catalogue_account_create(bench->catalogue, SLICE("default"), SLICE_NONE, &before, &err),
        &err);
    load(bench, &keys);
    after = account_now(bench);
    assert_int_equal(account_info(after)->number, account_info(before)->number);
    assert_file_shows(bench, after);
}

/* The catalogue is the one truth: what the file says does not matter any more. */
static void the_file_follows_the_catalogue(void **state)
{
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *rotated = NULL, *after = NULL;
    struct keys keys, again;
    struct error err;

    load(bench, &keys);
    assert_ok(catalogue_account_rotate(bench->catalogue, SLICE("default"), ACCOUNT_KEY_PRIMARY,
                                       &rotated, &err),
              &err);
    assert_ok(keys_write_file(keys.path, account_keys(rotated), &err), &err);
    assert_file_shows(bench, rotated);
    file_put(bench, "nonsense");
    load(bench, &again);
    assert_string_not_equal(again.primary, keys.primary);
    after = account_now(bench);
    assert_file_shows(bench, after);
}

static void without_a_directory_the_catalogue_alone_keeps_them(void **state)
{
    struct bench *bench = *state;
    struct keys first, second;
    struct error err;

    assert_ok(keys_load(bench->catalogue, NULL, &first, &err), &err);
    assert_ok(keys_load(bench->catalogue, NULL, &second, &err), &err);
    assert_string_equal(first.primary, second.primary);
    assert_string_equal(first.path, "");
}

static void keys_others_can_read_are_refused(void **state)
{
    struct bench *bench = *state;
    struct keys keys;
    struct error err;

    load(bench, &keys);
    assert_int_equal(chmod(keys.path, 0640), 0);
    assert_fails(keys_load(bench->catalogue, bench->scratch.path, &keys, &err), &err,
                 ERROR_CONFIGURATION);
    assert_contains(err.message, "chmod 600");
}

static void a_broken_file_is_refused_and_kept_while_it_is_needed(void **state)
{
    static const char *const texts[] = {
        "", "\n", "primary\n", "primary short\n", "secondary x\n", "tertiary x\n"};
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *account = NULL;
    struct keys keys;
    struct error err;
    char twice[2 * ACCOUNT_KEY_TEXT_SIZE + 32];

    for (size_t i = 0; i <= ARRAY_LEN(texts); i++) {
        snprintf(twice, sizeof twice, "primary %s\nprimary %s\n", account_key_emulator,
                 account_key_emulator);
        file_put(bench, i < ARRAY_LEN(texts) ? texts[i] : twice);
        assert_fails(keys_load(bench->catalogue, bench->scratch.path, &keys, &err), &err,
                     ERROR_CONFIGURATION);
        assert_file_holds(bench, i < ARRAY_LEN(texts) ? texts[i] : twice);
        assert_fails(catalogue_account_open(bench->catalogue, SLICE("default"), &account, &err),
                     &err, ERROR_NOT_FOUND);
    }
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(the_keys_are_made_once_and_the_file_shows_all_four),
        STORY(the_primary_of_an_old_file_is_imported),
        STORY(a_file_of_all_four_is_imported_whole),
        STORY(an_account_without_keys_is_given_some_and_stays_what_it_is),
        STORY(the_file_follows_the_catalogue),
        STORY(without_a_directory_the_catalogue_alone_keeps_them),
        STORY(keys_others_can_read_are_refused),
        STORY(a_broken_file_is_refused_and_kept_while_it_is_needed),
    };
    return cmocka_run_group_tests_name("server/keys", tests, NULL, NULL);
}
