#include "support/changes.h"

#include "document/bson.h"
#include "partition/layout.h"
#include "support/check.h"

static struct test_change change_of(const struct engine_entry *entry, struct arena *arena)
{
    struct slice key = arena_copy(arena, entry->key), value = arena_copy(arena, entry->value);
    struct document_value part;
    struct history_record record;
    struct test_change change;
    struct error err;

    assert_ok(history_record_decode(key, value, &record, &err), &err);
    change = (struct test_change){.place = record.place, .kind = record.kind};
    if (document_find(record.payload, SLICE("k"), &part))
        change.key = part.document;
    if (document_find(record.payload, SLICE("d"), &part))
        change.document = part.document;
    return change;
}

struct test_change *test_changes_read(struct engine *engine, struct arena *arena, size_t *ret_count)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct engine_range range = {.min = SLICE("h"), .max = SLICE("i")};
    struct history_size size;
    struct test_change *changes;
    struct engine_entry entry;
    uint64_t mark, bytes = 0;
    struct error err;
    size_t count = 0;

    assert_ok(history_size(engine, &size, &err), &err);
    assert_ok(history_mark(engine, &mark, &err), &err);
    changes = ARENA_ARRAY(arena, struct test_change, size.records + 1);
    assert_ok(engine_iterator_new(engine, NULL, PARTITION_HISTORY, range, false, ENGINE_READ_ANY,
                                  &iterator, &err),
              &err);
    for (;;) {
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found == ENGINE_ABSENT)
            break;
        if (mark && entry.value.len == sizeof mark)
            continue;
        assert_true(count < size.records);
        bytes += entry.key.len + entry.value.len;
        changes[count++] = change_of(&entry, arena);
    }
    assert_int_equal(count, size.records);
    assert_int_equal(bytes, size.bytes);
    *ret_count = count;
    return changes;
}
