/* Names are told apart by length first: few of the known ones share one, so a request header meets
 * about two comparisons. The lengths are bytes of an array of their own, in which memchr finds one
 * some thirty at a time: walking the rows was one instruction in twenty of a request. */
#include "front/rest/header.h"

const struct rest_header_row rest_header_rows[REST_HEADER_COUNT] = {
#define REST_HEADER(code, wire, fate_, text)                                                       \
    [REST_HEADER_##code] = {SLICE(wire), REST_HEADER_##fate_, text},
#include "front/rest/headers.def"
#undef REST_HEADER
};

static const uint8_t name_lens[REST_HEADER_COUNT] = {
#define REST_HEADER(code, wire, fate_, text) [REST_HEADER_##code] = sizeof(wire) - 1,
#include "front/rest/headers.def"
#undef REST_HEADER
};

#define REST_HEADER(code, wire, fate_, text)                                                       \
    static_assert(sizeof(wire) - 1 <= UINT8_MAX, "a length is one byte");
#include "front/rest/headers.def"
#undef REST_HEADER

/* REST_HEADER_COUNT: it is none of ours. */
static size_t row_find(struct slice name)
{
    const uint8_t *at = name_lens, *end = name_lens + REST_HEADER_COUNT;

    if (name.len > UINT8_MAX)
        return REST_HEADER_COUNT;
    for (; (at = memchr(at, (int)name.len, (size_t)(end - at))); at++)
        if (slice_equal_nocase(rest_header_rows[at - name_lens].name, name))
            return (size_t)(at - name_lens);
    return REST_HEADER_COUNT;
}

void rest_headers_find(const struct net_http_request *request, struct rest_headers *ret_headers)
{
    *ret_headers = (struct rest_headers){0};
    for (size_t i = 0; i < request->header_count; i++) {
        size_t row = row_find(request->headers[i].name);

        if (row < REST_HEADER_COUNT && !ret_headers->values[row].data)
            ret_headers->values[row] = request->headers[i].value;
    }
}

bool rest_headers_true(const struct rest_headers *headers, enum rest_header header)
{
    return slice_equal_nocase(headers->values[header], SLICE("true"));
}
