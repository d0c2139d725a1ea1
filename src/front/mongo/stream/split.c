#include "front/mongo/stream/split.h"

#include "document/bson.h"
#include "front/mongo/error.h"

#include <stdlib.h>

/* Of a fragment besides the fields of the event: _id, splitEvent and the frame. */
enum { FRAME_BYTES = 256 };

struct mongo_piece {
    struct slice bytes; /* the element, with its type and name */
    size_t at;          /* among the fields of the event */
    uint32_t fragment;
};

/* By length; of the same length, as they stand in the event. */
static int piece_compare(const void *left, const void *right)
{
    const struct mongo_piece *a = left, *b = right;

    if (a->bytes.len != b->bytes.len)
        return a->bytes.len < b->bytes.len ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static struct mongo_piece *pieces_of(struct slice event, struct arena *arena, size_t *ret_count)
{
    struct mongo_piece *pieces = ARENA_ARRAY(arena, struct mongo_piece, document_count(event) + 1);
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, event);
    for (size_t i = 0; document_iter_next(&iter); i++)
        if (!slice_equal(iter.key, SLICE("_id")))
            pieces[count++] = (struct mongo_piece){
                .bytes = slice_of(iter.element, (size_t)(iter.at - iter.element)), .at = i};
    qsort(pieces, count, sizeof *pieces, piece_compare);
    *ret_count = count;
    return pieces;
}

bool mongo_split_plan(struct slice event, size_t bytes_max, struct arena *arena,
                      struct mongo_split *ret_split, struct error *err)
{
    struct mongo_split split = {.count = 1};
    struct document_value id;
    struct mongo_piece *pieces;
    size_t used = FRAME_BYTES;

    assert(bytes_max > FRAME_BYTES);
    if (!document_find(event, SLICE("_id"), &id) || id.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_CHANGE_STREAM_FATAL_ERROR, "an event without a token");
    if (!mongo_token_read(id.document, &split.token, err))
        return false;
    pieces = pieces_of(event, arena, &split.piece_count);
    for (size_t i = 0; i < split.piece_count; i++) {
        size_t len = pieces[i].bytes.len;

        if (len > bytes_max - FRAME_BYTES)
            return mongo_error_set(err, MONGO_BSON_OBJECT_TOO_LARGE,
                                   "Splitting change event failed: a field of %zu bytes is too "
                                   "large for a fragment",
                                   len);
        if (used + len > bytes_max) {
            split.count++;
            used = FRAME_BYTES;
        }
        used += len;
        pieces[i].fragment = split.count;
    }
    split.first = pieces;
    *ret_split = split;
    return true;
}

void mongo_split_append(const struct mongo_split *split, uint32_t fragment, struct slice name,
                        struct buf *out)
{
    struct mongo_token token = split->token;
    size_t begin = document_append_object_begin(out, name), inner;

    token.fragment = fragment;
    mongo_token_append(out, SLICE("_id"), &token);
    inner = document_append_object_begin(out, SLICE("splitEvent"));
    document_append_int32(out, SLICE("fragment"), (int32_t)fragment);
    document_append_int32(out, SLICE("of"), (int32_t)split->count);
    document_end(out, inner);
    for (size_t i = 0; i < split->piece_count; i++)
        if (split->first[i].fragment == fragment)
            buf_append_slice(out, split->first[i].bytes);
    document_end(out, begin);
}
