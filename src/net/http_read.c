/* Lines are found with memchr and read one by one as soon as they are whole, so that a client which
 * ends its lines with a bare LF is told at once instead of running into a deadline. All slices
 * point into the input; when that moves between two calls they are moved along.
 *
 * Where the request smugglers work, the choice is always to refuse: Transfer-Encoding beside
 * Content-Length, either of them twice, blanks before a colon, folded lines, bare CR or LF. */
#include "net/http_read.h"

/* Bytes of a token (RFC 9110): names of methods and headers. */
static const uint8_t is_token[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

/* Bytes of a request target: visible ASCII but '#', for a fragment is never sent. */
static const uint8_t is_target[256] = {['!' ... '"'] = 1, ['$' ... '~'] = 1};

/* Bytes of a Host value. */
static const uint8_t is_host[256] = {
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, ['-'] = 1, ['.'] = 1, ['_'] = 1,
    ['~'] = 1,         ['%'] = 1,         ['!'] = 1,         ['$'] = 1, ['&'] = 1, ['\''] = 1,
    ['('] = 1,         [')'] = 1,         ['*'] = 1,         ['+'] = 1, [','] = 1, [';'] = 1,
    ['='] = 1,         [':'] = 1,         ['['] = 1,         [']'] = 1,
};

/* The path of a target that has none; not part of the input. */
static const uint8_t root_path[] = {'/'};

enum {
    CHUNK_FRAMING_MAX = 1024, /* of one chunk's size with its extensions */
    CRLF_LEN = 2,
};

enum chunk_state {
    CHUNK_SIZE_FIRST, /* a digit must come */
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    TRAILER_FIRST, /* a name or the end */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
};

static enum net_http_progress read_head(struct net_http_reader *reader, struct slice input);
static bool read_request_line(struct net_http_reader *reader, struct slice line);
static bool read_header(struct net_http_reader *reader, struct slice line);
static bool finish_head(struct net_http_reader *reader);
static enum net_http_progress read_body(struct net_http_reader *reader, struct slice input,
                                        size_t *ret_taken);
static enum net_http_progress read_chunks(struct net_http_reader *reader, struct slice input,
                                          size_t *ret_taken);

/* Notes why; returns false, to stand in a return statement. */
static bool refuse(struct net_http_reader *reader, uint16_t status, const char *reason)
{
    reader->status = status;
    reader->reason = reason;
    return false;
}

void net_http_reader_begin(struct net_http_reader *reader, const struct net_http_settings *settings,
                           struct net_http_request *request, struct net_http_header *headers)
{
    *reader = (struct net_http_reader){
        .settings = settings,
        .request = request,
        .headers = headers,
        .chunk_state = CHUNK_SIZE_FIRST,
    };
    buf_init(&reader->body, settings->body_max);
    request->method = request->target = request->path = request->query = SLICE_NONE;
    request->http_10 = false;
    request->headers = headers;
    request->header_count = 0;
    request->body = SLICE_NONE;
}

void net_http_reader_done(struct net_http_reader *reader)
{
    buf_done(&reader->body);
}

bool net_http_reader_keeps_alive(const struct net_http_reader *reader)
{
    if (reader->wants_close)
        return false;
    return !reader->request->http_10 || reader->wants_keep;
}

enum net_http_progress net_http_read(struct net_http_reader *reader, struct slice input,
                                     size_t *ret_taken)
{
    enum net_http_progress progress;
    size_t head_len, body_taken = 0;

    *ret_taken = 0;
    if (reader->phase != NET_HTTP_PHASE_HEAD)
        return read_body(reader, input, ret_taken);
    progress = read_head(reader, input);
    if (progress != NET_HTTP_DONE)
        return progress;
    head_len = reader->head_len;
    input = slice_skip(input, head_len);

    /* The usual case: the whole body is here, or there is none. */
    if (!reader->chunked && input.len >= reader->length) {
        reader->request->body = slice_first(input, (size_t)reader->length);
        *ret_taken = head_len + (size_t)reader->length;
        return NET_HTTP_DONE;
    }
    reader->phase = reader->chunked ? NET_HTTP_PHASE_CHUNKED : NET_HTTP_PHASE_LENGTH;
    progress = read_body(reader, input, &body_taken);
    *ret_taken = head_len + body_taken;
    if (progress == NET_HTTP_MORE)
        net_http_reader_keep(reader);
    return progress;
}

/* The head */

static void slice_move(struct slice *s, const uint8_t *from, const uint8_t *to)
{
    if (s->data)
        s->data = to + ((uintptr_t)s->data - (uintptr_t)from);
}

/* The head now lies elsewhere. */
static void head_move(struct net_http_reader *reader, const uint8_t *to)
{
    struct net_http_request *request = reader->request;
    const uint8_t *from = reader->base;

    reader->base = to;
    if (!from || !reader->has_request_line)
        return;
    slice_move(&request->method, from, to);
    slice_move(&request->target, from, to);
    if (request->path.data != root_path)
        slice_move(&request->path, from, to);
    slice_move(&request->query, from, to);
    for (size_t i = 0; i < request->header_count; i++) {
        slice_move(&reader->headers[i].name, from, to);
        slice_move(&reader->headers[i].value, from, to);
    }
}

void net_http_reader_keep(struct net_http_reader *reader)
{
    struct net_http_request *request = reader->request;

    if (reader->head_copied)
        return;
    reader->head_copied = true;
    head_move(reader, arena_copy(request->arena, slice_of(reader->base, reader->head_len)).data);
    /* A body that lies in the input came together with the head. */
    if (reader->phase == NET_HTTP_PHASE_HEAD && request->body.len)
        request->body = arena_copy(request->arena, request->body);
}

/* Whether the line being read, so far line_len bytes and head_len with all before it, is too long.
 */
static bool within_limits(struct net_http_reader *reader, size_t line_len, size_t head_len)
{
    const struct net_http_settings *settings = reader->settings;

    if (!reader->has_request_line &&
        line_len > MIN(settings->request_line_max, settings->head_max) + CRLF_LEN)
        return refuse(reader, 414, "the request line is longer than the limit");
    if (head_len > settings->head_max)
        return refuse(reader, 431, "the headers are longer than the limit");
    return true;
}

static enum net_http_progress read_head(struct net_http_reader *reader, struct slice input)
{
    if (reader->base != input.data)
        head_move(reader, input.data);
    for (;;) {
        const uint8_t *from = input.data + reader->scanned;
        const uint8_t *lf =
            input.len > reader->scanned ? memchr(from, '\n', input.len - reader->scanned) : NULL;
        size_t end = lf ? (size_t)(lf - input.data) + 1 : input.len;
        struct slice line = slice_of(input.data + reader->line_at, end - reader->line_at);

        if (!within_limits(reader, line.len, end))
            return NET_HTTP_BAD;
        reader->scanned = end;
        if (!lf)
            return NET_HTTP_MORE;
        reader->line_at = end;
        if (line.len < CRLF_LEN || line.data[line.len - CRLF_LEN] != '\r') {
            refuse(reader, 400, "a line of the head does not end in CRLF");
            return NET_HTTP_BAD;
        }
        line.len -= CRLF_LEN;
        if (!reader->has_request_line) {
            /* Empty lines before a request are left over from clients of long ago. */
            if (line.len && !read_request_line(reader, line))
                return NET_HTTP_BAD;
        } else if (line.len == 0) {
            reader->head_len = end;
            return finish_head(reader) ? NET_HTTP_DONE : NET_HTTP_BAD;
        } else if (!read_header(reader, line)) {
            return NET_HTTP_BAD;
        }
    }
}

static size_t span(const uint8_t *class, struct slice s)
{
    size_t i = 0;

    while (i < s.len && class[s.data[i]])
        i++;
    return i;
}

static bool read_version(struct net_http_reader *reader, struct slice version)
{
    if (slice_equal(version, SLICE("HTTP/1.1"))) {
        reader->request->http_10 = false;
        return true;
    }
    if (slice_equal(version, SLICE("HTTP/1.0"))) {
        reader->request->http_10 = true;
        return true;
    }
    if (version.len == 8 && slice_starts_with(version, SLICE("HTTP/")) && version.data[6] == '.' &&
        version.data[5] >= '0' && version.data[5] <= '9' && version.data[7] >= '0' &&
        version.data[7] <= '9')
        return refuse(reader, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    return refuse(reader, 400, "the request line does not end in an HTTP version");
}

/* Splits the target into path and query, leaving out scheme and host of a request to a proxy. */
static bool read_target(struct net_http_reader *reader, struct slice target)
{
    struct net_http_request *request = reader->request;
    struct slice path = target;

    request->target = target;
    request->query = SLICE_NONE;
    if (target.data[0] != '/') {
        size_t scheme = 0;

        if (slice_equal(target, SLICE("*")) && slice_equal(request->method, SLICE("OPTIONS"))) {
            request->path = target;
            return true;
        }
        if (target.len > 7 && slice_equal_nocase(slice_first(target, 7), SLICE("http://")))
            scheme = 7;
        else if (target.len > 8 && slice_equal_nocase(slice_first(target, 8), SLICE("https://")))
            scheme = 8;
        else
            return refuse(reader, 400, "the request target is not a path");
        path = slice_skip(target, scheme);
        while (path.len && path.data[0] != '/' && path.data[0] != '?')
            path = slice_skip(path, 1);
    }
    slice_split(path, '?', &path, &request->query);
    request->path = path.len ? path : slice_of(root_path, sizeof root_path);
    return true;
}

static bool read_request_line(struct net_http_reader *reader, struct slice line)
{
    struct net_http_request *request = reader->request;
    size_t method_len = span(is_token, line), target_len;
    struct slice rest;

    if (method_len == 0 || method_len == line.len || line.data[method_len] != ' ')
        return refuse(reader, 400, "the request line does not begin with a method");
    request->method = slice_first(line, method_len);
    rest = slice_skip(line, method_len + 1);
    target_len = span(is_target, rest);
    if (target_len == 0 || target_len == rest.len || rest.data[target_len] != ' ')
        return refuse(reader, 400, "the request target is missing or has bytes that need encoding");
    if (!read_version(reader, slice_skip(rest, target_len + 1)))
        return false;
    if (!read_target(reader, slice_first(rest, target_len)))
        return false;
    reader->has_request_line = true;
    return true;
}

static bool value_is_clean(struct slice value)
{
    size_t i = 0;

    for (; i + 8 <= value.len; i += 8) {
        uint64_t word;

        memcpy(&word, value.data + i, sizeof word);
        if (UNLIKELY(net_http_word_has_control(word)))
            break;
    }
    for (; i < value.len; i++)
        if ((value.data[i] < 0x20 && value.data[i] != '\t') || value.data[i] == 0x7f)
            return false;
    return true;
}

/* Headers that say how to read on */

static bool read_content_length(struct net_http_reader *reader, struct slice value)
{
    if (reader->has_length)
        return refuse(reader, 400, "Content-Length is given twice");
    if (!slice_to_uint64(value, &reader->length))
        return refuse(reader, 400, "Content-Length is not a number");
    reader->has_length = true;
    return true;
}

static bool read_transfer_encoding(struct net_http_reader *reader, struct slice value)
{
    if (reader->chunked)
        return refuse(reader, 400, "Transfer-Encoding is given twice");
    if (!slice_equal_nocase(value, SLICE("chunked")))
        return refuse(reader, 501, "the only Transfer-Encoding known here is chunked");
    reader->chunked = true;
    return true;
}

static bool read_host(struct net_http_reader *reader, struct slice value)
{
    if (reader->has_host)
        return refuse(reader, 400, "Host is given twice");
    if (span(is_host, value) != value.len)
        return refuse(reader, 400, "Host is not the name of one");
    reader->has_host = true;
    return true;
}

static bool read_connection(struct net_http_reader *reader, struct slice value)
{
    while (value.len) {
        struct slice option = value;

        if (!slice_split(value, ',', &option, &value))
            value.len = 0;
        option = slice_trim(option);
        if (slice_equal_nocase(option, SLICE("close")))
            reader->wants_close = true;
        else if (slice_equal_nocase(option, SLICE("keep-alive")))
            reader->wants_keep = true;
    }
    return true;
}

static bool read_expect(struct net_http_reader *reader, struct slice value)
{
    if (!slice_equal_nocase(value, SLICE("100-continue")))
        return refuse(reader, 417, "the only expectation known here is 100-continue");
    reader->expects = true;
    return true;
}

/* The length of a name rules out all but a few headers before any byte is compared. */
static bool read_known_header(struct net_http_reader *reader, struct slice name, struct slice value)
{
    switch (name.len) {
    case 4:
        if (slice_equal_nocase(name, SLICE("host")))
            return read_host(reader, value);
        break;
    case 6:
        if (slice_equal_nocase(name, SLICE("expect")))
            return read_expect(reader, value);
        break;
    case 10:
        if (slice_equal_nocase(name, SLICE("connection")))
            return read_connection(reader, value);
        break;
    case 14:
        if (slice_equal_nocase(name, SLICE("content-length")))
            return read_content_length(reader, value);
        break;
    case 17:
        if (slice_equal_nocase(name, SLICE("transfer-encoding")))
            return read_transfer_encoding(reader, value);
        break;
    }
    return true;
}

static bool read_header(struct net_http_reader *reader, struct slice line)
{
    struct net_http_request *request = reader->request;
    size_t name_len = span(is_token, line);
    struct slice name, value;

    if (name_len == 0 || name_len == line.len || line.data[name_len] != ':')
        return refuse(reader, 400, "a header has no name, or a byte in it that no name has");
    if (request->header_count == reader->settings->header_count_max)
        return refuse(reader, 431, "there are more headers than the limit");
    name = slice_first(line, name_len);
    value = slice_trim(slice_skip(line, name_len + 1));
    if (!value_is_clean(value))
        return refuse(reader, 400, "the value of a header has a control byte in it");
    reader->headers[request->header_count++] =
        (struct net_http_header){.name = name, .value = value};
    return read_known_header(reader, name, value);
}

static bool finish_head(struct net_http_reader *reader)
{
    if (!reader->has_host && !reader->request->http_10)
        return refuse(reader, 400, "Host is missing");
    if (reader->chunked && reader->has_length)
        return refuse(reader, 400, "Content-Length and Transfer-Encoding are given together");
    if (reader->chunked && reader->request->http_10)
        return refuse(reader, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (reader->length > reader->settings->body_max)
        return refuse(reader, 413, "the body is longer than the limit");
    if (reader->request->http_10)
        reader->expects = false;
    return true;
}

/* The body, where it does not lie behind the head already */

static enum net_http_progress read_body(struct net_http_reader *reader, struct slice input,
                                        size_t *ret_taken)
{
    size_t count;

    if (input.len)
        reader->expects = false; /* the client did not wait */
    if (reader->phase == NET_HTTP_PHASE_CHUNKED)
        return read_chunks(reader, input, ret_taken);
    buf_reserve(&reader->body, (size_t)reader->length);
    count = (size_t)MIN((uint64_t)input.len, reader->length);
    buf_append(&reader->body, input.data, count);
    reader->length -= count;
    *ret_taken = count;
    if (reader->length)
        return NET_HTTP_MORE;
    reader->request->body = buf_slice(&reader->body);
    return NET_HTTP_DONE;
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

static bool is_text(uint8_t byte)
{
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static bool chunk_digit(struct net_http_reader *reader, int digit)
{
    reader->length = reader->length * 16 + (uint64_t)digit;
    if (reader->length > reader->settings->body_max - reader->body.len)
        return refuse(reader, 413, "the body is longer than the limit");
    reader->chunk_state = CHUNK_SIZE;
    return true;
}

/* A byte of the line that tells a chunk's size. Extensions are skipped. */
static bool chunk_size_byte(struct net_http_reader *reader, uint8_t byte)
{
    int digit = hex_digit(byte);

    if (++reader->framing_bytes > CHUNK_FRAMING_MAX)
        return refuse(reader, 400, "a chunk's extensions are longer than the limit");
    switch (reader->chunk_state) {
    case CHUNK_SIZE_FIRST:
        if (digit >= 0)
            return chunk_digit(reader, digit);
        break;
    case CHUNK_SIZE:
        if (digit >= 0)
            return chunk_digit(reader, digit);
        if (byte == '\r' || byte == ';') {
            reader->chunk_state = byte == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
            return true;
        }
        break;
    case CHUNK_EXTENSION:
        if (byte == '\r')
            reader->chunk_state = CHUNK_SIZE_LF;
        if (byte == '\r' || is_text(byte))
            return true;
        break;
    case CHUNK_SIZE_LF:
        if (byte == '\n') {
            reader->chunk_state = reader->length ? CHUNK_DATA : TRAILER_FIRST;
            reader->framing_bytes = 0;
            return true;
        }
        break;
    }
    return refuse(reader, 400, "the size of a chunk is malformed");
}

/* A byte after a chunk's data, where a CRLF must be. */
static bool chunk_end_byte(struct net_http_reader *reader, uint8_t byte)
{
    if (byte != (reader->chunk_state == CHUNK_DATA_CR ? '\r' : '\n'))
        return refuse(reader, 400, "a chunk does not end where its size says");
    reader->chunk_state = reader->chunk_state == CHUNK_DATA_CR ? CHUNK_DATA_LF : CHUNK_SIZE_FIRST;
    return true;
}

/* A byte after the last chunk. Trailers must be well-formed and are thrown away: nothing we serve
 * has a meaning for them. */
static bool trailer_byte(struct net_http_reader *reader, uint8_t byte)
{
    int next = -1;

    if (++reader->framing_bytes > reader->settings->head_max)
        return refuse(reader, 431, "the trailers are longer than the limit");
    switch (reader->chunk_state) {
    case TRAILER_FIRST:
        next = byte == '\r' ? LAST_LF : is_token[byte] ? TRAILER_NAME : -1;
        break;
    case TRAILER_NAME:
        next = byte == ':' ? TRAILER_VALUE : is_token[byte] ? TRAILER_NAME : -1;
        break;
    case TRAILER_VALUE:
        next = byte == '\r' ? TRAILER_LF : is_text(byte) ? TRAILER_VALUE : -1;
        break;
    case TRAILER_LF:
        next = byte == '\n' ? TRAILER_FIRST : -1;
        break;
    }
    if (next < 0)
        return refuse(reader, 400, "a trailer is malformed");
    reader->chunk_state = next;
    return true;
}

static bool chunk_byte(struct net_http_reader *reader, uint8_t byte)
{
    if (reader->chunk_state <= CHUNK_SIZE_LF)
        return chunk_size_byte(reader, byte);
    if (reader->chunk_state <= CHUNK_DATA_LF)
        return chunk_end_byte(reader, byte);
    return trailer_byte(reader, byte);
}

static enum net_http_progress read_chunks(struct net_http_reader *reader, struct slice input,
                                          size_t *ret_taken)
{
    size_t at = 0;

    while (at < input.len) {
        if (reader->chunk_state == CHUNK_DATA) {
            size_t count = (size_t)MIN((uint64_t)(input.len - at), reader->length);

            buf_append(&reader->body, input.data + at, count);
            at += count;
            reader->length -= count;
            if (reader->length == 0)
                reader->chunk_state = CHUNK_DATA_CR;
            continue;
        }
        if (reader->chunk_state == LAST_LF) {
            if (input.data[at] != '\n') {
                refuse(reader, 400, "the body does not end in CRLF");
                return NET_HTTP_BAD;
            }
            *ret_taken = at + 1;
            reader->request->body = buf_slice(&reader->body);
            return NET_HTTP_DONE;
        }
        if (!chunk_byte(reader, input.data[at++]))
            return NET_HTTP_BAD;
    }
    *ret_taken = at;
    return NET_HTTP_MORE;
}
