/* A continuation, format 2. Numbers are in groups of seven bits, low ones first, the top bit says
 * that more follow; bytes are their length and themselves:
 *
 *     1        format, 2
 *     8        what the plan binds it to, little-endian
 *     1        flags: 1 begun, 2 to be sorted, 4 stages are half done
 *     number   offset left, limit left, time, access, number in the cache
 *     bytes    aggregate states, or counters of stages
 *     if stages are half done: bytes continuation below them
 *     if begun: bytes window min, window max, key, routing key; number number, rows */
#include "query/position.h"

#include "index/policy.h"

enum { FORMAT = 2, FLAG_BEGUN = 1, FLAG_SORTED = 2, FLAG_STAGES = 4, HEAD = 10 };

struct query_position query_position_first(const struct query_plan *plan, int64_t now_ticks)
{
    return (struct query_position){
        .offset = plan->query.offset, .limit = plan->query.limit, .now_ticks = now_ticks};
}

static void put_number(struct buf *buf, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(buf, (uint8_t)(number | 0x80));
    buf_append_byte(buf, (uint8_t)number);
}

static void put_bytes(struct buf *buf, struct slice bytes)
{
    put_number(buf, bytes.len);
    buf_append_slice(buf, bytes);
}

struct slice query_position_save(const struct query_position *position, uint64_t binding,
                                 struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct slice key = position->place.key;

    buf_init(&buf, QUERY_CONTINUATION_MAX);
    buf_append_byte(&buf, FORMAT);
    buf_append_le64(&buf, binding);
    buf_append_byte(&buf, (uint8_t)((position->begun ? FLAG_BEGUN : 0) |
                                    (position->sorted ? FLAG_SORTED : 0) |
                                    (position->head.data ? FLAG_STAGES : 0)));
    put_number(&buf, position->offset);
    put_number(&buf, position->limit);
    put_number(&buf, (uint64_t)position->now_ticks);
    put_number(&buf, position->access);
    put_number(&buf, position->cached);
    put_bytes(&buf, position->states);
    if (position->head.data)
        put_bytes(&buf, position->head);
    if (position->begun) {
        put_bytes(&buf, position->window.min);
        put_bytes(&buf, position->window.max);
        put_bytes(&buf, slice_first(key, MIN(key.len, (size_t)QUERY_PLACE_KEY_MAX)));
        put_bytes(&buf, position->place.routing);
        put_number(&buf, position->place.number);
        put_number(&buf, position->place.rows);
    }
    return buf_overflowed(&buf) ? SLICE_NONE : arena_copy(arena, buf_slice(&buf));
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool get_number(struct slice *rest, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 64 && rest->len; shift += 7) {
        uint8_t byte = rest->data[0];

        *rest = slice_skip(*rest, 1);
        if (shift == 63 && byte > 1)
            return false;
        number |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static bool get_bytes(struct slice *rest, struct slice *ret_bytes)
{
    uint64_t len;

    if (!get_number(rest, &len) || len > rest->len)
        return false;
    *ret_bytes = slice_first(*rest, (size_t)len);
    *rest = slice_skip(*rest, (size_t)len);
    return true;
}

static bool get_small(struct slice *rest, uint32_t *ret_number)
{
    uint64_t number;

    if (!get_number(rest, &number) || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool get_place(struct slice *rest, struct query_position *p)
{
    return get_bytes(rest, &p->window.min) && get_bytes(rest, &p->window.max) &&
           get_bytes(rest, &p->place.key) && get_bytes(rest, &p->place.routing) &&
           get_number(rest, &p->place.number) && get_small(rest, &p->place.rows);
}

static bool read_all(struct slice bytes, uint64_t binding, struct query_position *p)
{
    struct slice rest;
    uint64_t known = 0, now;
    uint8_t flags;

    if (bytes.len < HEAD || bytes.data[0] != FORMAT)
        return false;
    for (unsigned i = 0; i < 8; i++)
        known |= (uint64_t)bytes.data[1 + i] << 8 * i;
    flags = bytes.data[9];
    rest = slice_skip(bytes, HEAD);
    if (known != binding || (flags & ~(FLAG_BEGUN | FLAG_SORTED | FLAG_STAGES)) ||
        !get_number(&rest, &p->offset) || !get_number(&rest, &p->limit) ||
        !get_number(&rest, &now) || !get_small(&rest, &p->access) ||
        !get_number(&rest, &p->cached) || !get_bytes(&rest, &p->states) ||
        ((flags & FLAG_STAGES) && !get_bytes(&rest, &p->head)))
        return false;
    p->now_ticks = (int64_t)now;
    p->begun = flags & FLAG_BEGUN;
    p->sorted = flags & FLAG_SORTED;
    if (p->begun && !get_place(&rest, p))
        return false;
    p->place.cut = p->place.key.len >= INDEX_VALUE_MAX;
    return rest.len == 0;
}

bool query_position_load(struct slice bytes, uint64_t binding, struct query_position *ret_position,
                         struct error *err)
{
    struct query_position position = {0};

    if (bytes.len > QUERY_CONTINUATION_MAX || !read_all(bytes, binding, &position))
        return error_set(err, ERROR_BAD_REQUEST, "Invalid Continuation Token");
    *ret_position = position;
    return true;
}

/* --- Order ----------------------------------------------------------------------------------- */

int query_place_compare(const struct query_place *a, const struct query_place *b)
{
    size_t len = a->cut ? a->key.len : b->cut ? b->key.len : SIZE_MAX;
    int order = slice_compare(slice_first(a->key, MIN(a->key.len, len)),
                              slice_first(b->key, MIN(b->key.len, len)));

    if (order)
        return order;
    order = slice_compare(a->routing, b->routing);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}
