#include "front/mongo/command/source.h"

static const struct {
    const char *stage;
    bool (*rows)(const struct mongo_source *source, struct mongo_rows *rows, struct error *err);
} table[] = {
#define MONGO_SOURCE(stage, function) {stage, function},
#include "front/mongo/command/sources.def"
#undef MONGO_SOURCE
};

static struct slice array_of(const struct mongo_rows *rows, struct arena *arena)
{
    CLEANUP(buf_done) struct buf array;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&array, 2 * MONGO_ROWS_BYTES_MAX);
    begin = document_begin(&array);
    for (size_t i = 0; i < rows->count; i++) {
        const struct document_value row = document_object(rows->list[i]);

        document_append(&array, document_index_key((uint32_t)i, text), &row);
    }
    document_end(&array, begin);
    return arena_copy(arena, buf_slice(&array));
}

bool mongo_source_read(struct mongo_call *call, const struct mongo_source *source,
                       struct arena *arena, struct slice *ret_array, struct error *err)
{
    struct mongo_rows rows = {.call = call};

    assert(call->may_block);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (!slice_equal(source->stage, slice_of_text(table[i].stage)))
            continue;
        if (!table[i].rows(source, &rows, err))
            return false;
        *ret_array = array_of(&rows, arena);
        return true;
    }
    return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "%.*s is not offered yet",
                           SLICE_ARG(source->stage));
}
