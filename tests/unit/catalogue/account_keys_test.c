#include "catalogue/account_keys.h"

#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

static void a_key_reads_back_from_its_text(void **state UNUSED)
{
    struct account_keys keys;
    uint8_t secret[ACCOUNT_KEY_BYTES];
    char text[ACCOUNT_KEY_TEXT_SIZE];

    account_keys_make(&keys);
    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        account_key_format(keys.secrets[i], text);
        assert_int_equal(strlen(text), ACCOUNT_KEY_TEXT_SIZE - 1);
        assert_true(account_key_parse(slice_of_text(text), secret));
        assert_memory_equal(secret, keys.secrets[i], sizeof secret);
    }
    assert_true(account_key_parse(slice_of_text(account_key_emulator), secret));
}

static void a_text_that_is_no_key_is_refused(void **state UNUSED)
{
    uint8_t secret[ACCOUNT_KEY_BYTES] = {1, 2, 3}, before[ACCOUNT_KEY_BYTES] = {1, 2, 3};
    char text[ACCOUNT_KEY_TEXT_SIZE];
    struct slice key = slice_of_text(account_key_emulator);

    assert_false(account_key_parse(SLICE(""), secret));
    assert_false(account_key_parse(slice_first(key, key.len - 1), secret));
    assert_false(account_key_parse(slice_first(key, key.len - 4), secret));
    for (size_t at = 0; at < key.len; at++) {
        memcpy(text, account_key_emulator, sizeof text);
        text[at] = at == key.len - 3 ? 'x' : '\n'; /* bits behind the last byte; or no base64 */
        assert_false(account_key_parse(slice_of_text(text), secret));
    }
    assert_memory_equal(secret, before, sizeof secret);
}

static void names_tell_the_keys_apart(void **state UNUSED)
{
    enum account_key which;

    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        assert_true(
            account_key_named(slice_of_text(account_key_name((enum account_key)i)), &which));
        assert_int_equal(which, i);
        assert_int_equal(account_key_is_readonly(which), i >= 2);
    }
    assert_false(account_key_named(SLICE("Primary"), &which));
}

static void keys_of_a_damaged_record_are_refused(void **state)
{
    struct bench *bench = *state;
    struct account_keys keys;
    struct error err;

    assert_fails(account_keys_read(document_of(bench->arena, "{}"), &keys, &err), &err,
                 ERROR_STORE_CORRUPT);
    assert_fails(
        account_keys_read(document_of(bench->arena, "{\"primary\":\"text\"}"), &keys, &err), &err,
        ERROR_STORE_CORRUPT);
}

/* --- In the catalogue ------------------------------------------------------------------------ */

static struct account *open_account(struct bench *bench, const char *id)
{
    struct account *account;
    struct error err;

    assert_ok(catalogue_account_open(bench->catalogue, slice_of_text(id), &account, &err), &err);
    return account;
}

static void make_keyed(struct bench *bench, const char *id, struct account_keys *ret_keys)
{
    CLEANUP(account_unref) struct account *account = NULL;
    struct error err;

    account_keys_make(ret_keys);
    assert_ok(catalogue_account_create_keyed(bench->catalogue, slice_of_text(id),
                                             document_of(bench->arena, "{\"plan\":1}"), ret_keys,
                                             &account, &err),
              &err);
    assert_memory_equal(account_keys(account), ret_keys, sizeof *ret_keys);
}

static void keys_survive_restarts_and_other_changes(void **state)
{
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *account = NULL, *replaced = NULL;
    struct account_keys keys;
    struct error err;

    make_keyed(bench, "acme", &keys);
    bench_database(bench, "acme", "shop", 0);
    assert_ok(catalogue_account_replace(bench->catalogue, SLICE("acme"),
                                        document_of(bench->arena, "{\"plan\":2}"), &replaced, &err),
              &err);
    assert_memory_equal(account_keys(replaced), &keys, sizeof keys);
    account_unref(TAKE(replaced));
    bench_reopen(bench);
    account = open_account(bench, "acme");
    assert_memory_equal(account_keys(account), &keys, sizeof keys);
    assert_true(
        slice_equal(account_properties(account), document_of(bench->arena, "{\"plan\":2}")));
}

static void an_account_has_no_keys_until_it_is_given_some(void **state)
{
    struct bench *bench = *state;
    CLEANUP(account_unref) struct account *before = NULL, *after = NULL;
    struct account_keys keys;
    struct error err;

    bench_account(bench, "acme");
    bench_reopen(bench);
    before = open_account(bench, "acme");
    assert_null(account_keys(before));
    assert_fails(catalogue_account_rotate(bench->catalogue, SLICE("acme"), ACCOUNT_KEY_PRIMARY,
                                          &after, &err),
                 &err, ERROR_BAD_REQUEST);
    account_keys_make(&keys);
    assert_ok(catalogue_account_set_keys(bench->catalogue, SLICE("acme"), &keys, &after, &err),
              &err);
    assert_memory_equal(account_keys(after), &keys, sizeof keys);
    assert_null(account_keys(before));
    assert_fails(catalogue_account_set_keys(bench->catalogue, SLICE("none"), &keys, &after, &err),
                 &err, ERROR_NOT_FOUND);
}

static void rotating_one_key_leaves_the_others(void **state)
{
    struct bench *bench = *state;
    struct account_keys keys;
    struct error err;

    make_keyed(bench, "acme", &keys);
    for (size_t which = 0; which < ACCOUNT_KEYS; which++) {
        CLEANUP(account_unref) struct account *rotated = NULL, *loaded = NULL;

        assert_ok(catalogue_account_rotate(bench->catalogue, SLICE("acme"), (enum account_key)which,
                                           &rotated, &err),
                  &err);
        for (size_t i = 0; i < ACCOUNT_KEYS; i++)
            assert_int_equal(
                memcmp(account_keys(rotated)->secrets[i], keys.secrets[i], ACCOUNT_KEY_BYTES) == 0,
                i != which);
        keys = *account_keys(rotated);
        account_unref(TAKE(rotated));
        bench_reopen(bench);
        loaded = open_account(bench, "acme");
        assert_memory_equal(account_keys(loaded), &keys, sizeof keys);
        account_unref(TAKE(loaded));
    }
}

/* Either the old keys or the new, never a mixture or none. */
static void a_rotation_cut_off_leaves_whole_keys(void **state)
{
    struct bench *bench = *state;
    struct account_keys keys;
    struct error err;

    make_keyed(bench, "acme", &keys);
    for (int written = 0; written < 2; written++) {
        CLEANUP(account_unref) struct account *account = NULL;

        fault_engine_fail_nth(bench->engine, FAULT_WRITES, 1, ERROR_STORE_IO,
                              written ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
        assert_false(catalogue_account_rotate(bench->catalogue, SLICE("acme"),
                                              ACCOUNT_KEY_SECONDARY, &account, &err));
        bench_close(bench);
        fault_engine_heal(bench->engine);
        bench_open(bench);
        account = open_account(bench, "acme");
        for (size_t i = 0; i < ACCOUNT_KEYS; i++)
            assert_int_equal(
                memcmp(account_keys(account)->secrets[i], keys.secrets[i], ACCOUNT_KEY_BYTES) == 0,
                i != ACCOUNT_KEY_SECONDARY || !written);
        account_unref(TAKE(account));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_reads_back_from_its_text),
        cmocka_unit_test(a_text_that_is_no_key_is_refused),
        cmocka_unit_test(names_tell_the_keys_apart),
        ON(memory, keys_of_a_damaged_record_are_refused),
        ON_BOTH(keys_survive_restarts_and_other_changes),
        ON(memory, an_account_has_no_keys_until_it_is_given_some),
        ON_BOTH(rotating_one_key_leaves_the_others),
        ON(memory, a_rotation_cut_off_leaves_whole_keys),
    };
    return cmocka_run_group_tests_name("catalogue/account_keys", tests, NULL, NULL);
}
