/* Request headers of the NoSQL API, found in one pass and then read by name. */
#pragma once

#include "net/http.h"

enum rest_header {
#define REST_HEADER(code, ...) REST_HEADER_##code,
#include "front/rest/headers.def"
#undef REST_HEADER
    REST_HEADER_COUNT
};

enum rest_header_fate { REST_HEADER_OBEYED, REST_HEADER_HINT, REST_HEADER_REFUSED };

/* One row of headers.def. */
struct rest_header_row {
    struct slice name; /* lower case */
    enum rest_header_fate fate;
    const char *meaning;
};

extern const struct rest_header_row rest_header_rows[REST_HEADER_COUNT];

/* Values by name; data is NULL where a header is absent. The first of several counts. */
struct rest_headers {
    struct slice values[REST_HEADER_COUNT];
};

void rest_headers_find(const struct net_http_request *request, struct rest_headers *ret_headers);

/* "true" in any case; anything else, and absence, is false. */
bool rest_headers_true(const struct rest_headers *headers, enum rest_header header);
