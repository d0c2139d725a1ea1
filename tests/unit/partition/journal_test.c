#include "partition/journal.h"

#include "support/check.h"

/* The notes of these operations. */
static struct slice notes_of(const struct engine_op *ops, size_t count, struct buf *buf)
{
    for (size_t i = 0; i < count; i++)
        journal_append(&ops[i], buf);
    return buf_slice(buf);
}

static void a_note_has_small_values_and_of_large_ones_the_key(void **state UNUSED)
{
    static const uint8_t bytes[JOURNAL_SMALL_MAX + 1];
    const struct engine_op ops[] = {
        {ENGINE_PUT, SLICE("small"), slice_of(bytes, JOURNAL_SMALL_MAX)},
        {ENGINE_PUT, SLICE("large"), slice_of(bytes, sizeof bytes)},
        {ENGINE_PUT, SLICE("empty"), SLICE_NONE},
        {ENGINE_DELETE, SLICE("gone"), SLICE_NONE},
    };
    CLEANUP(buf_done) struct buf buf;
    struct journal_note note;
    struct slice value;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    value = notes_of(ops, ARRAY_LEN(ops), &buf);
    assert_ok(journal_next(&value, &note, &err), &err);
    assert_slice_equal(note.key, SLICE("small"));
    assert_true(note.known);
    assert_int_equal(note.value.found, ENGINE_FOUND);
    assert_slice_equal(note.value.bytes, ops[0].value);
    assert_ok(journal_next(&value, &note, &err), &err);
    assert_slice_equal(note.key, SLICE("large"));
    assert_false(note.known);
    assert_ok(journal_next(&value, &note, &err), &err);
    assert_true(note.known);
    assert_int_equal(note.value.found, ENGINE_FOUND);
    assert_int_equal(note.value.bytes.len, 0);
    assert_ok(journal_next(&value, &note, &err), &err);
    assert_slice_equal(note.key, SLICE("gone"));
    assert_true(note.known);
    assert_int_equal(note.value.found, ENGINE_ABSENT);
    assert_int_equal(value.len, 0);
}

static void notes_cut_short_or_of_no_known_kind_are_refused(void **state UNUSED)
{
    const struct engine_op op = {ENGINE_PUT, SLICE("key"), SLICE("value")};
    CLEANUP(buf_done) struct buf buf;
    struct journal_note note;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    (void)notes_of(&op, 1, &buf);
    for (size_t len = 1; len < buf.len; len++) {
        struct slice cut = slice_of(buf.data, len);

        assert_fails(journal_next(&cut, &note, &err), &err, ERROR_STORE_CORRUPT);
    }
    buf.data[0] = 3;
    assert_fails(journal_next(&(struct slice){buf.data, buf.len}, &note, &err), &err,
                 ERROR_STORE_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_has_small_values_and_of_large_ones_the_key),
        cmocka_unit_test(notes_cut_short_or_of_no_known_kind_are_refused),
    };
    return cmocka_run_group_tests_name("partition/journal", tests, NULL, NULL);
}
