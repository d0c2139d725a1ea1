/* A hand-written parser of one character of lookahead. A path is short and parsed once, when a
 * container is opened, so it collects segments in a buffer and copies them into the arena. */
#include "document/path.h"

#include "document/bson.h"
#include "document/utf8.h"

struct parser {
    struct slice text;
    size_t at;
    bool index;    /* for an indexing policy; else of a key, whose names may have dashes */
    bool in_tuple; /* tuples do not nest, and hold properties alone */
    struct arena *arena;
    struct error *err;
};

static bool parse_relative(struct parser *p, struct document_path *ret_path);
static bool parse_segment(struct parser *p, struct document_segment *ret_segment);
static bool parse_quoted(struct parser *p, char quote, struct slice *ret_name);
static bool parse_tuple(struct parser *p, struct document_segment *ret_segment);

#define NEEDS_QUOTES                                                                               \
    "this character has no place here, or the name needs quotes, as in /\"first-name\""

static bool fail(const struct parser *p, const char *what)
{
    return error_set(p->err, ERROR_BAD_REQUEST,
                     "path '%.*s' could not be accepted, failed near position '%zu': %s",
                     (int)MIN(p->text.len, (size_t)100), (const char *)p->text.data, p->at, what);
}

static inline bool at_end(const struct parser *p)
{
    return p->at == p->text.len;
}

static inline bool next_is(const struct parser *p, char c)
{
    return !at_end(p) && p->text.data[p->at] == (uint8_t)c;
}

static bool accept(struct parser *p, char c)
{
    if (!next_is(p, c))
        return false;
    p->at++;
    return true;
}

static bool is_name_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c >= 0x80;
}

bool document_path_parse(struct slice text, enum document_path_use use, struct arena *arena,
                         struct document_path *ret_path, struct error *err)
{
    struct parser p = {
        .text = text, .index = use == DOCUMENT_PATH_INDEX, .arena = arena, .err = err};
    struct document_path path;

    if (text.len > DOCUMENT_PATH_BYTES_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "path of %zu bytes is over the limit of %d",
                         text.len, DOCUMENT_PATH_BYTES_MAX);
    if (utf8_valid_length(text) != text.len)
        return error_set(err, ERROR_BAD_REQUEST, "path is not UTF-8 at byte %zu",
                         utf8_valid_length(text));
    if (!accept(&p, '/'))
        return fail(&p, "a path begins with a slash");
    if (p.index && at_end(&p)) {
        /* The whole document: older clients write it without its asterisk. */
        *ret_path = (struct document_path){.end = DOCUMENT_PATH_END_ALL};
        return true;
    }
    if (!parse_relative(&p, &path))
        return false;
    if (!at_end(&p))
        return fail(&p, NEEDS_QUOTES);
    *ret_path = path;
    return true;
}

/* Segments between slashes, as far as they go. */
static bool parse_relative(struct parser *p, struct document_path *ret_path)
{
    struct document_segment segments[DOCUMENT_PATH_SEGMENTS_MAX], *kept;
    size_t count = 0;
    enum document_path_end end = DOCUMENT_PATH_END_NONE;
    bool special = p->index && !p->in_tuple;

    do {
        if (special && accept(p, '?'))
            end = DOCUMENT_PATH_END_SCALAR;
        else if (special && accept(p, '*'))
            end = DOCUMENT_PATH_END_ALL;
        if (end != DOCUMENT_PATH_END_NONE)
            break;
        if (count == DOCUMENT_PATH_SEGMENTS_MAX)
            return fail(p, "too many segments");
        if (!parse_segment(p, &segments[count]))
            return false;
        if (count && segments[count - 1].kind == DOCUMENT_SEGMENT_TUPLE)
            return fail(p, "only ? may follow a tuple");
        count++;
    } while (accept(p, '/'));
    if (count && segments[count - 1].kind == DOCUMENT_SEGMENT_TUPLE &&
        end != DOCUMENT_PATH_END_SCALAR)
        return fail(p, "a tuple is followed by /?");
    kept = ARENA_ARRAY(p->arena, struct document_segment, count + 1);
    memcpy(kept, segments, count * sizeof *segments);
    *ret_path = (struct document_path){.segments = kept, .count = count, .end = end};
    return true;
}

static bool parse_segment(struct parser *p, struct document_segment *ret_segment)
{
    size_t begin = p->at;
    bool special = p->index && !p->in_tuple;

    *ret_segment = (struct document_segment){.kind = DOCUMENT_SEGMENT_PROPERTY};
    if (accept(p, '"'))
        return parse_quoted(p, '"', &ret_segment->name);
    if (accept(p, '\''))
        return parse_quoted(p, '\'', &ret_segment->name);
    if (special && accept(p, '[')) {
        ret_segment->kind = DOCUMENT_SEGMENT_ELEMENTS;
        return accept(p, ']') || fail(p, "expected ]");
    }
    if (special && accept(p, '{'))
        return parse_tuple(p, ret_segment);
    while (!at_end(p) && (is_name_byte(p->text.data[p->at]) || (next_is(p, '-') && !p->index)))
        p->at++;
    if (p->at == begin)
        return fail(p, at_end(p) ? "a path does not end in a slash" : NEEDS_QUOTES);
    ret_segment->name = arena_copy(p->arena, slice_of(p->text.data + begin, p->at - begin));
    return true;
}

/* After the opening quote. */
static bool parse_quoted(struct parser *p, char quote, struct slice *ret_name)
{
    uint8_t *name = arena_alloc(p->arena, p->text.len - p->at + 1);
    size_t len = 0;

    while (!at_end(p) && !next_is(p, quote)) {
        if (accept(p, '\\') && !next_is(p, quote) && !next_is(p, '\\'))
            return fail(p, "unknown escape");
        if (next_is(p, '\0'))
            return fail(p, "a name holds no NUL");
        name[len++] = p->text.data[p->at++];
    }
    if (!accept(p, quote))
        return fail(p, "a quote is not closed");
    *ret_name = slice_of(name, len);
    return true;
}

/* After the opening brace: relative paths between commas. */
static bool parse_tuple(struct parser *p, struct document_segment *ret_segment)
{
    struct document_path members[DOCUMENT_PATH_SEGMENTS_MAX], *kept;
    size_t count = 0;

    p->in_tuple = true;
    do {
        while (accept(p, ' '))
            continue;
        if (count == DOCUMENT_PATH_SEGMENTS_MAX)
            return fail(p, "too many members");
        if (!parse_relative(p, &members[count++]))
            return false;
        while (accept(p, ' '))
            continue;
    } while (accept(p, ','));
    if (!accept(p, '}'))
        return fail(p, "expected }");
    p->in_tuple = false;
    kept = ARENA_ARRAY(p->arena, struct document_path, count);
    memcpy(kept, members, count * sizeof *members);
    *ret_segment = (struct document_segment){
        .kind = DOCUMENT_SEGMENT_TUPLE, .members = kept, .member_count = count};
    return true;
}

bool document_path_find(const struct document_path *path, struct slice document,
                        struct document_value *ret_value)
{
    struct document_value value = document_object(document);
    uint64_t index;

    for (size_t i = 0; i < path->count; i++) {
        struct slice name = path->segments[i].name;

        assert(path->segments[i].kind == DOCUMENT_SEGMENT_PROPERTY);
        if (value.type == DOCUMENT_OBJECT) {
            if (!document_find(value.document, name, &value))
                return false;
        } else if (value.type != DOCUMENT_ARRAY || !slice_to_uint64(name, &index) ||
                   !document_find_index(value.document, index, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

static void append_name(struct slice name, struct buf *buf)
{
    bool plain = name.len > 0;

    for (size_t i = 0; i < name.len; i++)
        plain = plain && is_name_byte(name.data[i]);
    if (plain) {
        buf_append_slice(buf, name);
        return;
    }
    buf_append_byte(buf, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '"' || name.data[i] == '\\')
            buf_append_byte(buf, '\\');
        buf_append_byte(buf, name.data[i]);
    }
    buf_append_byte(buf, '"');
}

static void append_tuple(const struct document_segment *tuple, struct buf *buf)
{
    buf_append_byte(buf, '{');
    for (size_t i = 0; i < tuple->member_count; i++) {
        const struct document_path *member = &tuple->members[i];

        if (i)
            BUF_APPEND(buf, ", ");
        for (size_t s = 0; s < member->count; s++) {
            if (s)
                buf_append_byte(buf, '/');
            append_name(member->segments[s].name, buf);
        }
    }
    buf_append_byte(buf, '}');
}

void document_path_append(const struct document_path *path, struct buf *buf)
{
    for (size_t i = 0; i < path->count; i++) {
        buf_append_byte(buf, '/');
        if (path->segments[i].kind == DOCUMENT_SEGMENT_ELEMENTS)
            BUF_APPEND(buf, "[]");
        else if (path->segments[i].kind == DOCUMENT_SEGMENT_TUPLE)
            append_tuple(&path->segments[i], buf);
        else
            append_name(path->segments[i].name, buf);
    }
    if (path->end == DOCUMENT_PATH_END_SCALAR)
        BUF_APPEND(buf, "/?");
    else if (path->end == DOCUMENT_PATH_END_ALL)
        BUF_APPEND(buf, "/*");
}
