#include "backup/chunk.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/check.h"

enum { ENTRIES = 60000 };

/* Entries of a partition, cut into chunks. */
struct cut {
    uint8_t digests[512][BACKUP_DIGEST_LEN];
    size_t count;
    struct buf bytes[512];
};

static void cut_make(struct cut *cut, size_t skipped, size_t count)
{
    CLEANUP(backup_chunk_done) struct backup_chunk chunk;
    bool ends = true;

    backup_chunk_init(&chunk);
    cut->count = 0;
    for (size_t i = 0; i < count; i++) {
        char key[32], value[200];

        if (i == skipped)
            continue;
        snprintf(key, sizeof key, "i|path|%08zu", i);
        memset(value, 'a' + (int)(i % 26), sizeof value);
        ends = backup_chunk_add(&chunk, slice_of_text(key), slice_of(value, i % sizeof value));
        if (!ends && i + 1 < count)
            continue;
        backup_digest(buf_slice(&chunk.bytes), cut->digests[cut->count]);
        buf_init(&cut->bytes[cut->count], BUF_DEFAULT_MAX);
        buf_append_slice(&cut->bytes[cut->count], buf_slice(&chunk.bytes));
        cut->count++;
        assert_true(cut->count < 512);
        backup_chunk_clear(&chunk);
    }
}

static void cut_done(struct cut *cut)
{
    for (size_t i = 0; i < cut->count; i++)
        buf_done(&cut->bytes[i]);
}

static void entries_come_back_as_they_were_added(void **state UNUSED)
{
    struct cut *cut = MEMORY_NEW(struct cut);
    size_t nth = 0;

    cut_make(cut, SIZE_MAX, ENTRIES);
    assert_true(cut->count > 5);
    for (size_t i = 0; i < cut->count; i++) {
        CLEANUP(backup_chunk_reader_done) struct backup_chunk_reader reader;
        struct slice key, value;
        struct error err;
        bool found = true;

        backup_chunk_reader_init(&reader, buf_slice(&cut->bytes[i]));
        for (;;) {
            char expected[32];

            assert_ok(backup_chunk_next(&reader, &key, &value, &found, &err), &err);
            if (!found)
                break;
            snprintf(expected, sizeof expected, "i|path|%08zu", nth);
            assert_slice_equal(key, slice_of_text(expected));
            assert_int_equal(value.len, nth % 200);
            nth++;
        }
    }
    assert_int_equal(nth, ENTRIES);
    cut_done(cut);
    memory_free(cut);
}

static void
a_deleted_entry_changes_the_chunk_it_was_in_and_the_one_behind_at_most(void **state UNUSED)
{
    struct cut *all = MEMORY_NEW(struct cut), *without = MEMORY_NEW(struct cut);
    size_t changed = 0;

    cut_make(all, SIZE_MAX, ENTRIES);
    cut_make(without, ENTRIES / 2, ENTRIES);
    for (size_t i = 0; i < without->count; i++) {
        bool known = false;

        for (size_t k = 0; k < all->count && !known; k++)
            known = memcmp(all->digests[k], without->digests[i], BACKUP_DIGEST_LEN) == 0;
        changed += !known;
    }
    assert_in_range(changed, 1, 2);
    cut_done(all);
    cut_done(without);
    memory_free(all);
    memory_free(without);
}

/* Whatever the bytes are, reading ends, with entries or an error. */
static void damaged_bytes_are_refused_or_read_never_beyond_their_end(void **state UNUSED)
{
    struct random random;

    random_seed(&random, 22);
    for (int round = 0; round < 20000; round++) {
        CLEANUP(backup_chunk_reader_done) struct backup_chunk_reader reader;
        uint8_t bytes[64];
        size_t len = random_below(&random, sizeof bytes);
        struct slice key, value;
        struct error err;
        bool found = true;

        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)random_below(&random, 4) ? (uint8_t)random_below(&random, 12)
                                                         : (uint8_t)random_below(&random, 256);
        backup_chunk_reader_init(&reader, slice_of(bytes, len));
        while (found && backup_chunk_next(&reader, &key, &value, &found, &err))
            ;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_back_as_they_were_added),
        cmocka_unit_test(a_deleted_entry_changes_the_chunk_it_was_in_and_the_one_behind_at_most),
        cmocka_unit_test(damaged_bytes_are_refused_or_read_never_beyond_their_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
