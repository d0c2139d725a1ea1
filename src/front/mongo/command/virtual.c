#include "front/mongo/command/virtual.h"

static const struct mongo_virtual table[] = {
#define MONGO_VIRTUAL(database, collection, function) {database, collection, function},
#include "front/mongo/command/virtual.def"
#undef MONGO_VIRTUAL
};

const struct mongo_virtual *mongo_virtual_find(struct slice database, struct slice collection)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (slice_equal(database, slice_of_text(table[i].database)) &&
            slice_equal(collection, slice_of_text(table[i].collection)))
            return &table[i];
    return NULL;
}

const struct mongo_virtual *mongo_virtuals(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(table);
    return table;
}

size_t mongo_row_begin(struct buf *row)
{
    return document_begin(row);
}

bool mongo_row_end(struct mongo_rows *rows, size_t begin, struct buf *row, struct error *err)
{
    document_end(row, begin);
    rows->bytes += row->len - begin;
    if (rows->bytes > MONGO_ROWS_BYTES_MAX)
        return mongo_error_set(err, MONGO_EXCEEDED_MEMORY_LIMIT,
                               "the collection would have more than %d bytes",
                               MONGO_ROWS_BYTES_MAX);
    if (rows->count == rows->capacity) {
        size_t capacity = MAX(2 * rows->capacity, (size_t)16);
        struct slice *list = ARENA_ARRAY(rows->call->arena, struct slice, capacity);

        if (rows->count)
            memcpy(list, rows->list, rows->count * sizeof *list);
        rows->list = list;
        rows->capacity = capacity;
    }
    rows->list[rows->count++] = arena_copy(rows->call->arena, slice_skip(buf_slice(row), begin));
    buf_clear(row);
    return true;
}

bool mongo_virtual_rows(struct mongo_call *call, const struct mongo_virtual *of,
                        struct mongo_rows *ret_rows, struct error *err)
{
    assert(call->may_block);
    *ret_rows = (struct mongo_rows){.call = call};
    return of->rows(ret_rows, err);
}
