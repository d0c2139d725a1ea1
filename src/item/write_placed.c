#include "item/write_placed.h"

#include "base/bytes.h"
#include "document/order.h"
#include "partition/layout.h"
#include "partition/map.h"
#include "partition/strategy.h"

/* Is every value of the entry whole? */
static bool values_check(const struct index_definition *index, struct slice entry,
                         struct error *err)
{
    struct slice rest = slice_skip(entry, index->prefix.len);
    bool cut;

    for (size_t i = 0; i < index->part_count; i++) {
        if (!document_key_skip_cut(index->order, INDEX_VALUE_MAX, &rest, &cut, err))
            return false;
        if (cut)
            return error_set(err, ERROR_TOO_LARGE,
                             "index \"%.*s\" holds whole values, of at most %d bytes each: that of "
                             "\"%.*s\" is longer",
                             SLICE_ARG(index->name), INDEX_VALUE_MAX,
                             SLICE_ARG(index->parts[i].path.segments[0].name));
    }
    return true;
}

static bool key_find(const struct partition_definition *definition,
                     const struct index_definition *index, struct slice document,
                     struct partition_key *ret_key, struct error *err)
{
    static const struct partition_key_limits unlimited = {.bytes_max = SIZE_MAX};
    struct document_value value;

    if (!document_path_find(index->placed, document, &value))
        value = document_undefined();
    *ret_key = partition_key_of(definition, &value, 1);
    if (value.type == DOCUMENT_UNDEFINED ||
        !partition_key_check(definition, ret_key, &unlimited, err))
        return error_set(err, ERROR_BAD_REQUEST,
                         "index \"%.*s\" is placed by \"/%.*s\", where the item has no partition "
                         "key",
                         SLICE_ARG(index->name), SLICE_ARG(index->placed->segments[0].name));
    return true;
}

bool write_placed_make(const struct partition_definition *definition,
                       const struct index_definition *index, struct slice document,
                       struct slice entry, uint64_t number, struct arena *arena,
                       struct write_placed *ret_placed, struct error *err)
{
    CLEANUP(buf_done) struct buf bytes;
    struct partition_key key;
    uint8_t end[8];
    struct slice stored;

    assert(index->placed);
    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (!key_find(definition, index, document, &key, err) || !values_check(index, entry, err))
        return false;
    buf_append_byte(&bytes, PARTITION_FAMILY_INDEX);
    buf_append_slice(&bytes, entry);
    partition_route(definition, &key, &bytes);
    bytes_put_be64(end, number);
    buf_append(&bytes, end, sizeof end);
    stored = arena_copy(arena, buf_slice(&bytes));
    *ret_placed = (struct write_placed){
        .routing = slice_of(stored.data + 1 + entry.len, stored.len - 1 - entry.len - sizeof end),
        .op = {ENGINE_PUT, stored, SLICE("")}};
    return true;
}

const struct partition_span *write_placed_span(const struct item_scope *scope,
                                               const struct write_placed *placed)
{
    assert(scope->map);
    return partition_map_find(scope->map, placed->routing);
}

static size_t part_of(const struct item_scope *scope, const struct partition_span *span,
                      struct commit_part *parts, size_t *part_count)
{
    for (size_t i = 0; i < *part_count; i++)
        if (parts[i].partition == span->id)
            return i;
    parts[*part_count] = (struct commit_part){
        .partition = span->id, .epoch = span->epoch, .writers = scope->writers};
    return (*part_count)++;
}

bool write_placed_parts(const struct item_scope *scope, const struct write_placed *placed,
                        size_t count, struct commit_part *parts, size_t *part_count,
                        struct arena *arena, struct error *err)
{
    size_t *to = ARENA_ARRAY(arena, size_t, count + 1);

    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span = write_placed_span(scope, &placed[i]);

        if (span->node != scope->node)
            return error_set(err, ERROR_NOT_SUPPORTED,
                             "the entries of an index lie on another node than their item");
        to[i] = part_of(scope, span, parts, part_count);
    }
    for (size_t p = 0; p < *part_count; p++) {
        struct engine_op *ops;
        size_t added = 0;

        for (size_t i = 0; i < count; i++)
            added += to[i] == p;
        if (!added)
            continue;
        ops = ARENA_ARRAY(arena, struct engine_op, parts[p].op_count + added);
        if (parts[p].op_count)
            memcpy(ops, parts[p].ops, parts[p].op_count * sizeof *ops);
        for (size_t i = 0; i < count; i++)
            if (to[i] == p)
                ops[parts[p].op_count++] = placed[i].op;
        parts[p].ops = ops;
    }
    return true;
}
