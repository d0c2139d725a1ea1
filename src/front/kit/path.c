#include "front/kit/path.h"

#include "front/account.h"
#include "front/text.h"

static bool segments_split(struct slice path, struct arena *arena, struct front_path *ret_path,
                           struct error *err)
{
    while (path.len) {
        struct slice segment = path, rest = SLICE_NONE;
        bool more = slice_split(path, '/', &segment, &rest);

        if (ret_path->count == FRONT_PATH_SEGMENTS_MAX)
            return error_set(err, ERROR_NOT_FOUND, "the path has more than %d segments",
                             FRONT_PATH_SEGMENTS_MAX);
        if (segment.len == 0)
            return error_set(err, ERROR_BAD_REQUEST, "the path has an empty segment");
        if (!front_percent_decode(segment, arena, &ret_path->decoded[ret_path->count]))
            return error_set(err, ERROR_BAD_REQUEST, "the path has a broken percent escape");
        ret_path->raw[ret_path->count++] = segment;
        path = more ? rest : SLICE_NONE;
    }
    return true;
}

static void account_take(struct front_path *path)
{
    path->account = path->decoded[0];
    path->prefix = slice_of(path->raw[0].data - 1, path->raw[0].len + 1);
    path->count--;
    memmove(path->raw, path->raw + 1, path->count * sizeof *path->raw);
    memmove(path->decoded, path->decoded + 1, path->count * sizeof *path->decoded);
}

bool front_path_split(struct slice path, struct arena *arena, struct front_path *ret_path,
                      struct error *err)
{
    ret_path->count = 0;
    ret_path->account = ret_path->prefix = SLICE_NONE;
    if (path.len == 0 || path.data[0] != '/')
        return error_set(err, ERROR_BAD_REQUEST, "the path does not begin with a slash");
    if (!segments_split(front_slashes_drop(slice_skip(path, 1)), arena, ret_path, err))
        return false;
    if (ret_path->count && !front_path_is_root(ret_path->decoded[0]))
        account_take(ret_path);
    return true;
}

/* A segment without the memory that front_percent_decode needs; what is not shorter than the
 * buffer is no root and no word of ours. */
static struct slice segment_decode(struct slice segment, uint8_t buffer[16])
{
    size_t len = 0;

    if (!memchr(segment.data, '%', segment.len))
        return segment;
    for (size_t i = 0; i < segment.len && len < 16; i++) {
        int high, low;

        if (segment.data[i] != '%') {
            buffer[len++] = segment.data[i];
            continue;
        }
        if (segment.len - i < 3 || (high = front_hex_digit(segment.data[i + 1])) < 0 ||
            (low = front_hex_digit(segment.data[i + 2])) < 0)
            return segment;
        buffer[len++] = (uint8_t)(high * 16 + low);
        i += 2;
    }
    return len < 16 ? slice_of(buffer, len) : segment;
}

bool front_path_begins(struct slice path, struct slice word)
{
    struct slice first, second, rest;
    uint8_t buffer[16];

    if (path.len < 2 || path.data[0] != '/')
        return false;
    path = slice_skip(path, 1);
    if (!slice_split(path, '/', &first, &rest)) {
        first = path;
        rest = SLICE_NONE;
    }
    first = segment_decode(first, buffer);
    if (slice_equal(first, word))
        return true;
    if (!rest.len || front_path_is_root(first))
        return false;
    if (!slice_split(rest, '/', &second, &rest))
        second = rest;
    return slice_equal(segment_decode(second, buffer), word);
}

bool front_path_is_door(struct slice path, struct slice word)
{
    static const struct slice root = {(const uint8_t *)"/_orrery/", 9};
    const uint8_t *at;
    struct slice name, rest;

    if (!front_path_begins(path, SLICE("_orrery")))
        return false;
    at = memmem(path.data, path.len, root.data, root.len);
    if (!at || (at != path.data && memchr(path.data + 1, '/', (size_t)(at - path.data) - 1)))
        return false;
    return slice_split(slice_skip(path, (size_t)(at - path.data) + root.len), '/', &name, &rest) &&
           slice_equal(name, word);
}

struct slice front_path_join(const struct slice *parts, size_t count, struct arena *arena)
{
    size_t len = 0, at = 0;
    uint8_t *bytes;

    if (count == 0)
        return SLICE("");
    for (size_t i = 0; i < count; i++)
        len += parts[i].len + 1;
    bytes = arena_alloc(arena, len);
    for (size_t i = 0; i < count; i++) {
        if (i)
            bytes[at++] = '/';
        memcpy(bytes + at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    return slice_of(bytes, at);
}
