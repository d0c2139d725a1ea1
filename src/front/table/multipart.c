#include "front/table/multipart.h"

/* --- Lines and headers ----------------------------------------------------------------------- */

/* Takes a line off the text, without its end. False at the end of the text. */
static bool line_take(struct slice *text, struct slice *ret_line)
{
    const uint8_t *end;
    size_t len;

    if (text->len == 0)
        return false;
    end = memchr(text->data, '\n', text->len);
    len = end ? (size_t)(end - text->data) : text->len;
    *ret_line = slice_first(*text, len);
    *text = slice_skip(*text, end ? len + 1 : len);
    if (ret_line->len && ret_line->data[ret_line->len - 1] == '\r')
        ret_line->len--;
    return true;
}

struct headers {
    struct net_http_header *list;
    size_t count;
};

/* Lines up to an empty one, or the end. */
static bool headers_take(struct slice *text, struct arena *arena, struct headers *ret_headers,
                         struct error *err)
{
    struct slice line;

    ret_headers->list = ARENA_ARRAY(arena, struct net_http_header, TABLE_PART_HEADERS_MAX);
    ret_headers->count = 0;
    while (line_take(text, &line) && line.len) {
        struct net_http_header *header = &ret_headers->list[ret_headers->count];

        if (ret_headers->count == TABLE_PART_HEADERS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "a part of the batch has more than %d headers",
                             TABLE_PART_HEADERS_MAX);
        if (!slice_split(line, ':', &header->name, &header->value) || header->name.len == 0)
            return error_set(err, ERROR_BAD_REQUEST, "a part of the batch has a broken header");
        header->value = slice_trim(header->value);
        ret_headers->count++;
    }
    return true;
}

static struct slice header_find(const struct headers *headers, struct slice name)
{
    for (size_t i = 0; i < headers->count; i++)
        if (slice_equal_nocase(headers->list[i].name, name))
            return headers->list[i].value;
    return SLICE_NONE;
}

static bool type_is(struct slice type, struct slice wanted)
{
    return type.len >= wanted.len && slice_equal_nocase(slice_first(type, wanted.len), wanted);
}

/* The boundary of multipart/mixed; boundary=..., perhaps in quotes. */
static bool boundary_find(struct slice type, struct slice *ret_boundary, struct error *err)
{
    static const struct slice name = SLICE("boundary=");
    struct slice part, rest = type;

    if (!type_is(type, SLICE("multipart/mixed")))
        return error_set(err, ERROR_BAD_REQUEST, "a batch is multipart/mixed");
    while (slice_split(rest, ';', &part, &rest)) {
        struct slice value = slice_trim(rest), behind;

        if (value.len <= name.len || !slice_equal_nocase(slice_first(value, name.len), name))
            continue;
        value = slice_skip(value, name.len);
        (void)slice_split(value, ';', &value, &behind);
        value = slice_trim(value);
        if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"')
            value = slice_of(value.data + 1, value.len - 2);
        if (value.len == 0 || value.len > TABLE_BOUNDARY_MAX)
            break;
        *ret_boundary = value;
        return true;
    }
    return error_set(err, ERROR_BAD_REQUEST, "the batch has no boundary of 1 to %d characters",
                     TABLE_BOUNDARY_MAX);
}

/* --- Parts ----------------------------------------------------------------------------------- */

enum delimiter { DELIMITER_NONE, DELIMITER_NEXT, DELIMITER_LAST };

static enum delimiter delimiter_of(struct slice line, struct slice boundary)
{
    if (line.len < boundary.len + 2 || line.data[0] != '-' || line.data[1] != '-' ||
        !slice_starts_with(slice_skip(line, 2), boundary))
        return DELIMITER_NONE;
    line = slice_trim(slice_skip(line, boundary.len + 2));
    if (line.len == 0)
        return DELIMITER_NEXT;
    return slice_equal(line, SLICE("--")) ? DELIMITER_LAST : DELIMITER_NONE;
}

/* A text between delimiters. */
struct walk {
    struct slice rest, boundary;
    bool last; /* the closing delimiter has come */
};

/* Moves behind the first delimiter. */
static bool walk_begin(struct walk *walk, struct slice text, struct slice boundary,
                       struct error *err)
{
    struct slice line;

    *walk = (struct walk){.rest = text, .boundary = boundary};
    while (line_take(&walk->rest, &line)) {
        enum delimiter found = delimiter_of(line, boundary);

        walk->last = found == DELIMITER_LAST;
        if (found != DELIMITER_NONE)
            return true;
    }
    return error_set(err, ERROR_BAD_REQUEST, "the boundary of the batch does not occur in it");
}

/* The next part, without the line end before its delimiter. */
static bool walk_next(struct walk *walk, bool *ret_more, struct slice *ret_part, struct error *err)
{
    const uint8_t *begin = walk->rest.data;
    struct slice line;

    *ret_more = !walk->last;
    if (walk->last)
        return true;
    while (line_take(&walk->rest, &line)) {
        enum delimiter found = delimiter_of(line, walk->boundary);
        size_t len = (size_t)(line.data - begin);

        if (found == DELIMITER_NONE)
            continue;
        walk->last = found == DELIMITER_LAST;
        if (len && begin[len - 1] == '\n')
            len--;
        if (len && begin[len - 1] == '\r')
            len--;
        *ret_part = slice_of(begin, len);
        return true;
    }
    return error_set(err, ERROR_BAD_REQUEST, "a part of the batch is not closed by its boundary");
}

/* METHOD target HTTP/1.1, headers, body; JavaScript puts two empty lines before a body. */
static bool request_read(struct slice text, struct arena *arena, struct table_part *ret_part,
                         struct error *err)
{
    struct slice line = SLICE(""), version;
    struct headers headers;

    while (line.len == 0)
        if (!line_take(&text, &line))
            return error_set(err, ERROR_BAD_REQUEST, "a part of the batch has no request");
    if (!slice_split(line, ' ', &ret_part->method, &line) ||
        !slice_split(line, ' ', &ret_part->target, &version) ||
        !slice_starts_with(version, SLICE("HTTP/1.")) || ret_part->method.len == 0 ||
        ret_part->target.len == 0)
        return error_set(err, ERROR_BAD_REQUEST, "a part of the batch has no request line");
    if (!headers_take(&text, arena, &headers, err))
        return false;
    ret_part->headers = headers.list;
    ret_part->header_count = headers.count;
    while (text.len && (text.data[0] == '\r' || text.data[0] == '\n'))
        text = slice_skip(text, 1);
    ret_part->body = text;
    return true;
}

static bool http_part_read(struct slice text, const struct headers *headers, struct arena *arena,
                           struct table_part *ret_part, struct error *err)
{
    if (!type_is(header_find(headers, SLICE("content-type")), SLICE("application/http")))
        return error_set(err, ERROR_BAD_REQUEST, "a part of the batch is not application/http");
    return request_read(text, arena, ret_part, err);
}

static bool changeset_read(struct slice text, struct slice type, struct arena *arena,
                           struct table_multipart *multipart, struct error *err)
{
    struct slice boundary, part;
    struct headers headers;
    struct walk walk;
    bool more;

    if (!boundary_find(type, &boundary, err) || !walk_begin(&walk, text, boundary, err))
        return false;
    multipart->parts = ARENA_ARRAY(arena, struct table_part, TABLE_PARTS_MAX);
    multipart->changeset = true;
    for (;;) {
        if (!walk_next(&walk, &more, &part, err))
            return false;
        if (!more)
            return true;
        if (multipart->count == TABLE_PARTS_MAX)
            return error_set(err, ERROR_BAD_REQUEST,
                             "the batch request operation exceeds the maximum %d changes per "
                             "change set",
                             TABLE_PARTS_MAX);
        if (!headers_take(&part, arena, &headers, err) ||
            !http_part_read(part, &headers, arena, &multipart->parts[multipart->count], err))
            return false;
        multipart->count++;
    }
}

static bool batch_part_read(struct slice part, struct arena *arena,
                            struct table_multipart *multipart, struct error *err)
{
    struct headers headers;
    struct slice type;

    if (!headers_take(&part, arena, &headers, err))
        return false;
    type = header_find(&headers, SLICE("content-type"));
    if (type_is(type, SLICE("multipart/mixed")))
        return changeset_read(part, type, arena, multipart, err);
    multipart->parts = ARENA_ARRAY(arena, struct table_part, 1);
    multipart->count = 1;
    return http_part_read(part, &headers, arena, &multipart->parts[0], err);
}

bool table_multipart_read(struct slice content_type, struct slice body, struct arena *arena,
                          struct table_multipart *ret_multipart, struct error *err)
{
    struct table_multipart multipart = {0};
    struct slice boundary, part;
    struct walk walk;
    bool more;

    if (!boundary_find(content_type, &boundary, err) || !walk_begin(&walk, body, boundary, err) ||
        !walk_next(&walk, &more, &part, err))
        return false;
    if (!more)
        return error_set(err, ERROR_BAD_REQUEST, "the batch is empty");
    if (!batch_part_read(part, arena, &multipart, err) || !walk_next(&walk, &more, &part, err))
        return false;
    if (more)
        return error_set(err, ERROR_BAD_REQUEST, "a batch has one changeset, or one query");
    if (multipart.count == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the batch is empty");
    *ret_multipart = multipart;
    return true;
}
