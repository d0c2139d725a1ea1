/* The size of a head is bounded first and room for all of it taken at once, so that writing it is a
 * row of memcpy without a check between them. Status lines are constants. */
#include "net/http_private.h"

struct status_line {
    uint16_t status;
    const char *reason;
    struct slice line;
};

#define STATUS(code, reason)                                                                       \
    {                                                                                              \
        code, reason, SLICE("HTTP/1.1 " #code " " reason "\r\nDate: ")                             \
    }

static const struct status_line status_lines[] = {
    STATUS(100, "Continue"),
    STATUS(101, "Switching Protocols"),
    STATUS(200, "OK"),
    STATUS(201, "Created"),
    STATUS(202, "Accepted"),
    STATUS(204, "No Content"),
    STATUS(206, "Partial Content"),
    STATUS(207, "Multi-Status"),
    STATUS(301, "Moved Permanently"),
    STATUS(302, "Found"),
    STATUS(303, "See Other"),
    STATUS(304, "Not Modified"),
    STATUS(307, "Temporary Redirect"),
    STATUS(308, "Permanent Redirect"),
    STATUS(400, "Bad Request"),
    STATUS(401, "Unauthorized"),
    STATUS(403, "Forbidden"),
    STATUS(404, "Not Found"),
    STATUS(405, "Method Not Allowed"),
    STATUS(406, "Not Acceptable"),
    STATUS(408, "Request Timeout"),
    STATUS(409, "Conflict"),
    STATUS(410, "Gone"),
    STATUS(411, "Length Required"),
    STATUS(412, "Precondition Failed"),
    STATUS(413, "Content Too Large"),
    STATUS(414, "URI Too Long"),
    STATUS(415, "Unsupported Media Type"),
    STATUS(417, "Expectation Failed"),
    STATUS(421, "Misdirected Request"),
    STATUS(424, "Failed Dependency"),
    STATUS(426, "Upgrade Required"),
    STATUS(428, "Precondition Required"),
    STATUS(429, "Too Many Requests"),
    STATUS(431, "Request Header Fields Too Large"),
    STATUS(449, "Retry With"),
    STATUS(500, "Internal Server Error"),
    STATUS(501, "Not Implemented"),
    STATUS(502, "Bad Gateway"),
    STATUS(503, "Service Unavailable"),
    STATUS(504, "Gateway Timeout"),
    STATUS(505, "HTTP Version Not Supported"),
    STATUS(507, "Insufficient Storage"),
};

static const struct status_line *status_find(uint16_t status)
{
    for (size_t i = 0; i < ARRAY_LEN(status_lines); i++)
        if (status_lines[i].status == status)
            return &status_lines[i];
    return NULL;
}

const char *net_http_reason(uint16_t status)
{
    const struct status_line *found = status_find(status);

    return found ? found->reason : "Status";
}

bool net_http_status_has_body(uint16_t status)
{
    return status >= 200 && status != 204 && status != 304;
}

static uint8_t *put(uint8_t *to, struct slice s)
{
    if (s.len)
        memcpy(to, s.data, s.len);
    return to + s.len;
}

static uint8_t *put_number(uint8_t *to, uint64_t number)
{
    uint8_t digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number);
    return put(to, slice_of(digits + at, sizeof digits - at));
}

size_t net_http_front_write(uint8_t *to, uint16_t status, struct slice date, bool close,
                            bool http_10)
{
    const struct status_line *known = status_find(status);
    uint8_t *at = to;

    if (LIKELY(known)) {
        at = put(at, known->line);
    } else {
        at = put(at, SLICE("HTTP/1.1 "));
        at = put_number(at, status);
        at = put(at, SLICE(" Status\r\nDate: "));
    }
    at = put(at, date);
    at = put(at, SLICE("\r\n"));
    if (close)
        at = put(at, SLICE("Connection: close\r\n"));
    else if (http_10)
        at = put(at, SLICE("Connection: keep-alive\r\n"));
    assert(at - to <= NET_HTTP_FRONT_MAX);
    return (size_t)(at - to);
}

size_t net_http_tail_bound(const struct net_http_response *response)
{
    /* "Content-Length: ", 20 digits, CRLF twice */
    size_t bound = 16 + 20 + 4 + response->lines.len;

    for (size_t i = 0; i < response->header_count; i++)
        bound += response->headers[i].name.len + response->headers[i].value.len + 4;
    return bound;
}

/* A line break in a value would let whoever chose it write headers of their own. Eight bytes at a
 * time are looked at while they are copied; the rare ones that hold a control byte are looked at
 * again one by one. */
static uint8_t *put_value(uint8_t *to, struct slice value)
{
    size_t i = 0;

    for (; i + 8 <= value.len; i += 8) {
        uint64_t word;

        memcpy(&word, value.data + i, sizeof word);
        if (UNLIKELY(net_http_word_has_control(word)))
            break;
        memcpy(to + i, &word, sizeof word);
    }
    for (; i < value.len; i++) {
        uint8_t byte = value.data[i];

        to[i] = LIKELY(byte >= 0x20 && byte != 0x7f) ? byte : ' ';
    }
    return to + value.len;
}

size_t net_http_tail_write(uint8_t *to, const struct net_http_response *response)
{
    uint8_t *at = to;

    if (net_http_status_has_body(response->status)) {
        at = put(at, SLICE("Content-Length: "));
        at = put_number(at, response->body.len);
        at = put(at, SLICE("\r\n"));
    }
    at = put(at, response->lines);
    for (size_t i = 0; i < response->header_count; i++) {
        at = put(at, response->headers[i].name);
        *at++ = ':';
        *at++ = ' ';
        at = put_value(at, response->headers[i].value);
        *at++ = '\r';
        *at++ = '\n';
    }
    *at++ = '\r';
    *at++ = '\n';
    return (size_t)(at - to);
}

/* "Bad Request" is "BadRequest" in the code. The reasons are our own texts and need no escapes. */
struct slice net_http_error_body(struct arena *arena, uint16_t status, const char *reason)
{
    char code[64];
    size_t len = 0;

    for (const char *c = net_http_reason(status); *c && len < sizeof code - 1; c++)
        if (*c != ' ')
            code[len++] = *c;
    code[len] = '\0';
    return arena_printf(arena, "{\"code\":\"%s\",\"message\":\"%s\"}", code, reason);
}
