/* The bytes of paths in entries; their layout is at the top of index_policy.c.
 *
 * A walk pushes a segment when it steps down and returns to a mark when it steps up, so the bytes
 * of a path are made once for all entries below it. A segment that no longer fits goes into a hash,
 * which is made of the hash before it and the segment: names of any length cost what it takes to
 * read them once, however many values are below. */
#include "index/policy_private.h"

#include <xxhash.h>

void index_path_init(struct index_path *path)
{
    path->mark = (struct index_path_mark){0};
}

static void hash_segment(struct index_path *path, uint8_t kind, struct slice name)
{
    uint8_t bytes[INDEX_HASH_SIZE + 1 + sizeof(XXH128_canonical_t)];
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits(name.data, name.len));
    memcpy(bytes, path->mark.hash, INDEX_HASH_SIZE);
    bytes[INDEX_HASH_SIZE] = kind;
    memcpy(bytes + INDEX_HASH_SIZE + 1, &canonical, sizeof canonical);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, sizeof bytes));
    memcpy(path->mark.hash, &canonical, INDEX_HASH_SIZE);
    path->mark.hashed = true;
}

static size_t escaped_size(struct slice name)
{
    size_t size = name.len;

    for (size_t i = 0; i < name.len; i++)
        size += name.data[i] <= INDEX_MARK_ESCAPE;
    return size;
}

void index_path_push_name(struct index_path *path, struct slice name)
{
    struct index_path_mark *mark = &path->mark;
    size_t room = INDEX_PATH_MAX - mark->len;
    uint8_t *to = path->bytes + mark->len;

    if (UNLIKELY(mark->hashed || name.len >= room ||
                 (2 * name.len >= room && escaped_size(name) >= room))) {
        hash_segment(path, DOCUMENT_SEGMENT_PROPERTY, name);
        return;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (UNLIKELY(name.data[i] <= INDEX_MARK_ESCAPE))
            *to++ = INDEX_MARK_ESCAPE;
        *to++ = name.data[i];
    }
    *to++ = INDEX_MARK_BELOW;
    mark->len = (size_t)(to - path->bytes);
}

void index_path_push_elements(struct index_path *path)
{
    static const uint8_t bytes[] = {INDEX_MARK_ESCAPE, INDEX_ESCAPE_ELEMENTS, INDEX_MARK_BELOW};

    if (path->mark.hashed || INDEX_PATH_MAX - path->mark.len < sizeof bytes) {
        hash_segment(path, DOCUMENT_SEGMENT_ELEMENTS, SLICE_NONE);
        return;
    }
    memcpy(path->bytes + path->mark.len, bytes, sizeof bytes);
    path->mark.len += sizeof bytes;
}

void index_path_push(struct index_path *path, const struct document_segment *segment)
{
    assert(segment->kind != DOCUMENT_SEGMENT_TUPLE);
    if (segment->kind == DOCUMENT_SEGMENT_ELEMENTS)
        index_path_push_elements(path);
    else
        index_path_push_name(path, segment->name);
}

static void append_hash(const uint8_t *hash, struct buf *buf)
{
    buf_append_byte(buf, INDEX_MARK_ESCAPE);
    buf_append_byte(buf, INDEX_ESCAPE_HASH);
    buf_append(buf, hash, INDEX_HASH_SIZE);
}

void index_path_write(const struct index_path *path, struct buf *buf)
{
    if (path->mark.hashed) {
        buf_append(buf, path->bytes, path->mark.len);
        append_hash(path->mark.hash, buf);
    } else {
        assert(path->mark.len > 0);
        buf_append(buf, path->bytes, path->mark.len - 1);
    }
    buf_append_byte(buf, INDEX_MARK_END);
}

static void push_all(struct index_path *path, const struct document_path *from)
{
    index_path_init(path);
    for (size_t i = 0; i < from->count; i++)
        index_path_push(path, &from->segments[i]);
}

void index_path_append(const struct document_path *path, struct buf *buf)
{
    struct index_path walked;

    assert(path->count > 0);
    if (path->segments[path->count - 1].kind == DOCUMENT_SEGMENT_TUPLE) {
        CLEANUP(arena_free) struct arena *arena = arena_new();

        buf_append_slice(buf, index_tuple_prefix(path, arena));
        return;
    }
    push_all(&walked, path);
    index_path_write(&walked, buf);
}

void index_path_append_below(const struct document_path *path, struct buf *buf)
{
    struct index_path walked;

    push_all(&walked, path);
    buf_append(buf, walked.bytes, walked.mark.len);
}

/* --- Tuples and composites ------------------------------------------------------------------- */

/* A prefix that is too long is known by its hash, and says only how many values follow. */
static struct slice prefix_take(struct buf *buf, uint8_t escape, const bool *descending,
                                size_t count, struct arena *arena)
{
    XXH128_canonical_t canonical;

    if (buf->len <= INDEX_PATH_MAX)
        return arena_copy(arena, buf_slice(buf));
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(buf->data, buf->len));
    buf_clear(buf);
    buf_append_byte(buf, INDEX_MARK_ESCAPE);
    buf_append_byte(buf, escape);
    buf_append(buf, canonical.digest, INDEX_HASH_SIZE);
    for (size_t i = 0; i < count; i++)
        buf_append_byte(buf,
                        descending && descending[i] ? INDEX_MARK_DESCENDING : INDEX_MARK_ASCENDING);
    buf_append_byte(buf, INDEX_MARK_END);
    return arena_copy(arena, buf_slice(buf));
}

struct slice index_tuple_prefix(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    const struct document_segment *tuple = &path->segments[path->count - 1];
    struct index_path walked;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_append_byte(&buf, INDEX_MARK_ESCAPE);
    buf_append_byte(&buf, INDEX_ESCAPE_TUPLE);
    push_all(&walked,
             &(struct document_path){.segments = path->segments, .count = path->count - 1});
    buf_append(&buf, walked.bytes, walked.mark.len);
    if (walked.mark.hashed)
        append_hash(walked.mark.hash, &buf);
    buf_append_byte(&buf, INDEX_MARK_END);
    for (size_t i = 0; i < tuple->member_count; i++) {
        buf_append_byte(&buf, INDEX_MARK_ASCENDING);
        index_path_append(&tuple->members[i], &buf);
    }
    buf_append_byte(&buf, INDEX_MARK_END);
    return prefix_take(&buf, INDEX_ESCAPE_TUPLE_HASH, NULL, tuple->member_count, arena);
}

struct slice index_composite_prefix(const struct index_part *parts, size_t count,
                                    struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    bool descending[INDEX_PARTS_MAX];

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_append_byte(&buf, INDEX_MARK_ESCAPE);
    buf_append_byte(&buf, INDEX_ESCAPE_COMPOSITE);
    for (size_t i = 0; i < count; i++) {
        descending[i] = parts[i].descending;
        buf_append_byte(&buf, descending[i] ? INDEX_MARK_DESCENDING : INDEX_MARK_ASCENDING);
        index_path_append(&parts[i].path, &buf);
    }
    buf_append_byte(&buf, INDEX_MARK_END);
    return prefix_take(&buf, INDEX_ESCAPE_COMPOSITE_HASH, descending, count, arena);
}

void index_escape_append(uint8_t escape, struct buf *buf)
{
    buf_append_byte(buf, INDEX_MARK_ESCAPE);
    buf_append_byte(buf, escape);
}

struct slice index_escape_prefix(uint8_t escape, const struct document_path *path,
                                 struct arena *arena)
{
    CLEANUP(buf_done) struct buf prefix;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    index_escape_append(escape, &prefix);
    index_path_append(path, &prefix);
    return arena_copy(arena, buf_slice(&prefix));
}
