/* Entries read back: how long one is, and what it says to people. One reader does both; without a
 * buffer to print into it only steps. Layout: index_policy.c. */
#include "document/json.h"
#include "document/utf8.h"
#include "index/policy_private.h"

enum { MEMBERS_MAX = INDEX_COMPOSITE_PATHS_MAX };

struct reader {
    struct slice rest;
    enum document_order order; /* of the values */
    struct buf *buf;           /* NULL: nothing is printed */
    struct error *err;
};

static bool read_entry(struct reader *r);

bool index_entry_is_numbered(struct slice entry)
{
    return entry.len > 1 && entry.data[0] == INDEX_MARK_ESCAPE &&
           entry.data[1] == INDEX_ESCAPE_NUMBER;
}

size_t index_entry_group(struct slice entry)
{
    enum { SHAPE = 3, DIRECTIONS, TEXT = 0x18 /* document/key.c */ };
    size_t at, count;
    const uint8_t *end;

    if (entry.len <= DIRECTIONS || !index_entry_is_numbered(entry) ||
        entry.data[SHAPE] & INDEX_SHAPE_PATH)
        return 0;
    count = entry.data[SHAPE] & INDEX_SHAPE_COUNT;
    at = DIRECTIONS + (count + 7) / 8;
    if (count < 2 || at >= entry.len || entry.data[at] != TEXT)
        return 0;
    end = memchr(entry.data + at, 0, MIN(entry.len - at, (size_t)INDEX_VALUE_MAX));
    return end ? (size_t)(end - entry.data) + 1 : 0;
}

size_t index_entry_said_len(struct slice entry)
{
    return entry.len > 1 && entry.data[0] == INDEX_MARK_ESCAPE &&
                   entry.data[1] == INDEX_ESCAPE_TERMS
               ? INDEX_TERM_SAID
               : 0;
}

bool index_entry_skip(struct slice *bytes, struct error *err)
{
    struct reader r = {.rest = *bytes, .err = err};

    if (!read_entry(&r))
        return false;
    *bytes = r.rest;
    return true;
}

bool index_entry_print(struct slice *bytes, struct buf *buf, struct error *err)
{
    struct reader r = {.rest = *bytes, .buf = buf, .err = err};
    size_t begin = buf->len;

    if (!read_entry(&r)) {
        buf->len = begin;
        return false;
    }
    *bytes = r.rest;
    return true;
}

static bool corrupt(const struct reader *r)
{
    return error_set(r->err, ERROR_STORE_CORRUPT, "bytes of an index entry are broken");
}

static void put(const struct reader *r, const char *text)
{
    if (r->buf)
        buf_append_text(r->buf, text);
}

static void put_hex(const struct reader *r, struct slice bytes)
{
    for (size_t i = 0; r->buf && i < bytes.len; i++)
        buf_printf(r->buf, "%02x", bytes.data[i]);
}

static bool next_is(const struct reader *r, uint8_t first, uint8_t second)
{
    return r->rest.len >= 2 && r->rest.data[0] == first && r->rest.data[1] == second;
}

/* --- Paths ----------------------------------------------------------------------------------- */

/* After 02 06. */
static bool read_hash(struct reader *r)
{
    if (r->rest.len < INDEX_HASH_SIZE + 1 || r->rest.data[INDEX_HASH_SIZE] != INDEX_MARK_END)
        return corrupt(r);
    put(r, "/#");
    put_hex(r, slice_first(r->rest, INDEX_HASH_SIZE));
    r->rest = slice_skip(r->rest, INDEX_HASH_SIZE + 1);
    return true;
}

static void put_name(const struct reader *r, const uint8_t *name, size_t len)
{
    struct document_segment segment = {.name = slice_of(name, len)};

    if (r->buf)
        document_path_append(&(struct document_path){.segments = &segment, .count = 1}, r->buf);
}

/* A name and the byte behind it. */
static bool read_name(struct reader *r, uint8_t *ret_mark)
{
    uint8_t name[INDEX_PATH_MAX];
    size_t len = 0, at = 0;

    while (at < r->rest.len && r->rest.data[at] > INDEX_MARK_BELOW) {
        if (r->rest.data[at] == INDEX_MARK_ESCAPE &&
            (++at == r->rest.len || r->rest.data[at] < 1 || r->rest.data[at] > INDEX_MARK_ESCAPE))
            return corrupt(r);
        if (len == sizeof name)
            return corrupt(r);
        name[len++] = r->rest.data[at++];
    }
    if (at == r->rest.len)
        return corrupt(r);
    put_name(r, name, len);
    *ret_mark = r->rest.data[at];
    r->rest = slice_skip(r->rest, at + 1);
    return true;
}

/* One segment and the byte behind it; a hash is the last there is. */
static bool read_segment(struct reader *r, uint8_t *ret_mark)
{
    if (next_is(r, INDEX_MARK_ESCAPE, INDEX_ESCAPE_HASH)) {
        r->rest = slice_skip(r->rest, 2);
        *ret_mark = INDEX_MARK_END;
        return read_hash(r);
    }
    if (next_is(r, INDEX_MARK_ESCAPE, INDEX_ESCAPE_ELEMENTS)) {
        if (r->rest.len < 3 || r->rest.data[2] > INDEX_MARK_BELOW)
            return corrupt(r);
        put(r, "/[]");
        *ret_mark = r->rest.data[2];
        r->rest = slice_skip(r->rest, 3);
        return true;
    }
    return read_name(r, ret_mark);
}

static bool read_path(struct reader *r)
{
    uint8_t mark = INDEX_MARK_BELOW;

    while (mark != INDEX_MARK_END) {
        if (!read_segment(r, &mark))
            return false;
    }
    return true;
}

/* The segments before a tuple: 01 behind each, and 00. */
static bool read_tuple_place(struct reader *r)
{
    uint8_t mark = INDEX_MARK_BELOW;

    while (mark != INDEX_MARK_END && r->rest.len && r->rest.data[0] != INDEX_MARK_END) {
        if (!read_segment(r, &mark))
            return false;
    }
    if (mark == INDEX_MARK_END)
        return true; /* a hash, which brought its own */
    if (!r->rest.len)
        return corrupt(r);
    r->rest = slice_skip(r->rest, 1);
    return true;
}

/* --- Values ---------------------------------------------------------------------------------- */

/* What is left of a text that was cut: the characters that are whole. */
static bool print_cut_text(const struct reader *r, struct slice key, struct arena *arena)
{
    uint8_t *ended = arena_alloc(arena, key.len + 1);
    struct slice rest = slice_of(ended, key.len + 1);
    struct document_value value;
    struct error err;

    memcpy(ended, key.data, key.len);
    if (ended[key.len - 1] == 1)
        rest.len--; /* half an escape */
    ended[rest.len - 1] = 0;
    if (!document_key_read(r->order, &rest, arena, &value, &err) || value.type != DOCUMENT_STRING)
        return false;
    value.text = slice_first(value.text, utf8_valid_length(value.text));
    document_json_write_value(&value, r->buf);
    return true;
}

static bool print_value(const struct reader *r, struct slice key, bool cut)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value value;

    if (cut) {
        if (!print_cut_text(r, key, arena))
            put_hex(r, key);
        put(r, "...");
        return true;
    }
    if (!document_key_read(r->order, &key, arena, &value, r->err))
        return false;
    if (value.type == DOCUMENT_UNDEFINED)
        put(r, "undefined");
    else if (value.type == DOCUMENT_ARRAY)
        put(r, "array");
    else if (value.type == DOCUMENT_OBJECT)
        put(r, "object");
    else if (value.type == DOCUMENT_CODE_WITH_SCOPE)
        put(r, "code with scope");
    else
        document_json_write_value(&value, r->buf);
    return true;
}

static bool read_value(struct reader *r, bool descending)
{
    uint8_t inverted[INDEX_VALUE_MAX];
    struct slice key = slice_first(r->rest, MIN(r->rest.len, sizeof inverted)), after;
    bool cut;

    for (size_t i = 0; descending && i < key.len; i++)
        inverted[i] = (uint8_t)~key.data[i];
    if (descending)
        key.data = inverted;
    after = key;
    if (!document_key_skip_cut(r->order, INDEX_VALUE_MAX, &after, &cut, r->err))
        return false;
    key.len -= after.len;
    r->rest = slice_skip(r->rest, key.len);
    return !r->buf || print_value(r, key, cut);
}

/* --- Entries --------------------------------------------------------------------------------- */

/* The members of a composite or tuple, the values of which follow. */
struct members {
    bool orders; /* of a composite: the order is printed */
    bool hashed; /* their paths are not there, only their marks */
    size_t count;
    bool descending[MEMBERS_MAX];
};

/* In a tuple paths are written without their first slash. */
static bool read_member_path(struct reader *r, bool slash)
{
    size_t begin = r->buf ? r->buf->len : 0;

    if (!read_path(r))
        return false;
    if (r->buf && !slash && r->buf->len > begin) {
        r->buf->len--;
        memmove(r->buf->data + begin, r->buf->data + begin + 1, r->buf->len - begin);
    }
    return true;
}

/* For each member its mark and its path; 00. */
static bool read_members(struct reader *r, struct members *members)
{
    for (; r->rest.len && r->rest.data[0] != INDEX_MARK_END; members->count++) {
        uint8_t mark = r->rest.data[0];

        if (mark > INDEX_MARK_DESCENDING || members->count == MEMBERS_MAX)
            return corrupt(r);
        r->rest = slice_skip(r->rest, 1);
        put(r, members->count ? ", " : "");
        if (!members->hashed && !read_member_path(r, members->orders))
            return false;
        members->descending[members->count] = mark == INDEX_MARK_DESCENDING;
        put(r, members->orders && !members->hashed ? " " : "");
        put(r, !members->orders ? "" : mark == INDEX_MARK_DESCENDING ? "desc" : "asc");
    }
    if (!r->rest.len || !members->count)
        return corrupt(r);
    r->rest = slice_skip(r->rest, 1);
    return true;
}

static bool read_members_hash(struct reader *r)
{
    if (r->rest.len < INDEX_HASH_SIZE)
        return corrupt(r);
    put(r, "#");
    put_hex(r, slice_first(r->rest, INDEX_HASH_SIZE));
    r->rest = slice_skip(r->rest, INDEX_HASH_SIZE);
    return true;
}

/* After 02 and the kind. */
static bool read_together(struct reader *r, uint8_t kind)
{
    bool tuple = kind == INDEX_ESCAPE_TUPLE || kind == INDEX_ESCAPE_TUPLE_HASH;
    struct members members = {.orders = !tuple, .hashed = kind >= INDEX_ESCAPE_COMPOSITE_HASH};

    r->rest = slice_skip(r->rest, 2);
    if (members.hashed && !read_members_hash(r))
        return false;
    if (kind == INDEX_ESCAPE_TUPLE && !read_tuple_place(r))
        return false;
    put(r, tuple ? "/{" : "(");
    if (!read_members(r, &members))
        return false;
    put(r, tuple ? "} = " : ") = ");
    for (size_t i = 0; i < members.count; i++) {
        put(r, i ? ", " : "");
        if (!read_value(r, members.descending[i]))
            return false;
    }
    return true;
}

/* After 02 0B. */
static bool read_vector(struct reader *r)
{
    size_t length;

    r->rest = slice_skip(r->rest, 2);
    put(r, "vector of ");
    if (!read_path(r))
        return false;
    if (!index_vector_length(r->rest, &length))
        return corrupt(r);
    if (r->buf)
        buf_printf(r->buf, " = %zu bytes", length);
    r->rest = slice_skip(r->rest, length);
    return true;
}

/* After 02 09: format 2. */
static bool read_numbered(struct reader *r)
{
    uint8_t number, shape;
    struct slice directions;
    size_t count;

    if (r->rest.len < 4)
        return corrupt(r);
    number = r->rest.data[2];
    shape = r->rest.data[3];
    count = shape & INDEX_SHAPE_COUNT;
    if (!count || count > INDEX_PARTS_MAX || r->rest.len < 4 + (count + 7) / 8)
        return corrupt(r);
    r->order = shape & INDEX_SHAPE_MONGO ? DOCUMENT_ORDER_MONGO : DOCUMENT_ORDER_SQL;
    directions = slice_first(slice_skip(r->rest, 4), (count + 7) / 8);
    r->rest = slice_skip(r->rest, 4 + directions.len);
    if (r->buf)
        buf_printf(r->buf, "index %u", number);
    if (shape & INDEX_SHAPE_PATH) {
        put(r, " ");
        if (!read_path(r))
            return false;
    }
    put(r, " = ");
    for (size_t i = 0; i < count; i++) {
        put(r, i ? ", " : "");
        if (!read_value(r, directions.data[i / 8] >> i % 8 & 1))
            return false;
    }
    return true;
}

static bool read_entry(struct reader *r)
{
    if (next_is(r, INDEX_MARK_ESCAPE, INDEX_ESCAPE_NUMBER))
        return read_numbered(r);
    if (next_is(r, INDEX_MARK_ESCAPE, INDEX_ESCAPE_VECTOR))
        return read_vector(r);
    if (r->rest.len >= 2 && r->rest.data[0] == INDEX_MARK_ESCAPE) {
        uint8_t kind = r->rest.data[1];

        if (kind == INDEX_ESCAPE_COMPOSITE || kind == INDEX_ESCAPE_TUPLE ||
            kind == INDEX_ESCAPE_COMPOSITE_HASH || kind == INDEX_ESCAPE_TUPLE_HASH)
            return read_together(r, kind);
    }
    if (next_is(r, INDEX_MARK_ESCAPE, INDEX_ESCAPE_CELLS)) {
        r->rest = slice_skip(r->rest, 2);
        put(r, "cell of ");
    } else if (next_is(r, INDEX_MARK_ESCAPE, INDEX_ESCAPE_TERMS)) {
        r->rest = slice_skip(r->rest, 2);
        put(r, "term of ");
    }
    if (!read_path(r))
        return false;
    put(r, " = ");
    return read_value(r, false);
}
