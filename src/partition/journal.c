#include "partition/journal.h"

#include "base/bytes.h"
#include "partition/layout.h"

void journal_key_encode(struct journal_position position, uint8_t ret_key[JOURNAL_KEY_LEN])
{
    ret_key[0] = PARTITION_FAMILY_JOURNAL;
    bytes_put_be64(ret_key + 1, position.lsn);
    bytes_put_be32(ret_key + 9, position.nth);
}

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the journal of a partition is broken");
}

bool journal_key_decode(struct slice key, struct journal_position *ret_position, struct error *err)
{
    if (key.len != JOURNAL_KEY_LEN || key.data[0] != PARTITION_FAMILY_JOURNAL)
        return broken(err);
    *ret_position = (struct journal_position){.lsn = bytes_get_be64(key.data + 1),
                                              .nth = bytes_get_be32(key.data + 9)};
    return true;
}

struct engine_range journal_range(struct journal_position after, struct arena *arena)
{
    uint8_t *min = arena_alloc(arena, JOURNAL_KEY_LEN + 1), *max = arena_alloc(arena, 1);

    journal_key_encode(after, min);
    min[JOURNAL_KEY_LEN] = 0;
    max[0] = PARTITION_FAMILY_JOURNAL + 1;
    return (struct engine_range){.min = slice_of(min, JOURNAL_KEY_LEN + 1),
                                 .max = slice_of(max, 1)};
}

bool journal_notes(struct slice key)
{
    static const uint8_t total[] = {PARTITION_FAMILY_COUNTER, 't'};

    assert(key.len > 0);
    switch (key.data[0]) {
    case PARTITION_FAMILY_JOURNAL:
    case PARTITION_FAMILY_META:
    case PARTITION_FAMILY_PROGRESS:
        return false;
    default:
        return !slice_equal(key, slice_of(total, sizeof total));
    }
}

enum note_kind { NOTE_LOOK = 0, NOTE_DELETED = 1, NOTE_PUT = 2 };
enum { NOTE_HEAD = 4, NOTE_KIND_SHIFT = 24, NOTE_LEN_MASK = 0xFFFFFF };

void journal_append(const struct engine_op *op, struct buf *value)
{
    enum note_kind kind = op->kind == ENGINE_DELETE            ? NOTE_DELETED
                          : op->value.len <= JOURNAL_SMALL_MAX ? NOTE_PUT
                                                               : NOTE_LOOK;
    uint8_t head[NOTE_HEAD], len = (uint8_t)op->value.len;

    assert(op->key.len > 0 && op->key.len <= NOTE_LEN_MASK);
    bytes_put_be32(head, (uint32_t)kind << NOTE_KIND_SHIFT | (uint32_t)op->key.len);
    buf_append(value, head, sizeof head);
    buf_append_slice(value, op->key);
    if (kind != NOTE_PUT)
        return;
    buf_append(value, &len, 1);
    buf_append_slice(value, op->value);
}

/* The value of a note, which stands behind its key. */
static bool small_take(struct slice *value, struct slice *ret_small, struct error *err)
{
    if (value->len < 1 || value->data[0] > value->len - 1)
        return broken(err);
    *ret_small = slice_of(value->data + 1, value->data[0]);
    *value = slice_skip(*value, 1 + ret_small->len);
    return true;
}

bool journal_next(struct slice *value, struct journal_note *ret_note, struct error *err)
{
    struct journal_note note = {0};
    uint32_t head;
    size_t len;

    if (value->len < NOTE_HEAD)
        return broken(err);
    head = bytes_get_be32(value->data);
    len = head & NOTE_LEN_MASK;
    if (len == 0 || len > value->len - NOTE_HEAD || head >> NOTE_KIND_SHIFT > NOTE_PUT)
        return broken(err);
    note.key = slice_of(value->data + NOTE_HEAD, len);
    *value = slice_skip(*value, NOTE_HEAD + len);
    note.known = head >> NOTE_KIND_SHIFT != NOTE_LOOK;
    note.value.found = ENGINE_ABSENT;
    if (head >> NOTE_KIND_SHIFT == NOTE_PUT) {
        note.value.found = ENGINE_FOUND;
        if (!small_take(value, &note.value.bytes, err))
            return false;
    }
    *ret_note = note;
    return true;
}
