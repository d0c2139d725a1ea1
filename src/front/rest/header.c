/* Names are told apart by length first: few of the known ones share one, so a request header meets
 * about two comparisons. */
#include "front/rest/header.h"

const struct rest_header_row rest_header_rows[REST_HEADER_COUNT] = {
#define REST_HEADER(code, wire, fate_, text)                                                       \
    [REST_HEADER_##code] = {SLICE(wire), REST_HEADER_##fate_, text},
#include "front/rest/headers.def"
#undef REST_HEADER
};

void rest_headers_find(const struct net_http_request *request, struct rest_headers *ret_headers)
{
    *ret_headers = (struct rest_headers){0};
    for (size_t i = 0; i < request->header_count; i++) {
        const struct net_http_header *header = &request->headers[i];

        for (size_t row = 0; row < REST_HEADER_COUNT; row++) {
            if (rest_header_rows[row].name.len != header->name.len ||
                !slice_equal_nocase(rest_header_rows[row].name, header->name))
                continue;
            if (!ret_headers->values[row].data)
                ret_headers->values[row] = header->value;
            break;
        }
    }
}

bool rest_headers_true(const struct rest_headers *headers, enum rest_header header)
{
    return slice_equal_nocase(headers->values[header], SLICE("true"));
}
