/* Multipart: the body of an entity group transaction, taken apart into the requests it is made of.
 *
 *     --batch_a
 *     Content-Type: multipart/mixed; boundary=changeset_b
 *
 *     --changeset_b
 *     Content-Type: application/http
 *
 *     POST http://host/account/Table HTTP/1.1
 *     Content-Type: application/json
 *
 *     {...}
 *     --changeset_b--
 *     --batch_a--
 *
 * Lines end in CRLF or LF. A query stands in the batch itself, without a changeset. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "net/http.h"

enum { TABLE_PARTS_MAX = 100, TABLE_PART_HEADERS_MAX = 32, TABLE_BOUNDARY_MAX = 200 };

/* One request of a batch; all is borrowed from the body or in the arena. */
struct table_part {
    struct slice method, target;
    const struct net_http_header *headers;
    size_t header_count;
    struct slice body;
};

struct table_multipart {
    struct table_part *parts;
    size_t count;
    bool changeset; /* else the only part is a query */
};

/* content_type: of the request. ERROR_BAD_REQUEST. */
NODISCARD bool table_multipart_read(struct slice content_type, struct slice body,
                                    struct arena *arena, struct table_multipart *ret_multipart,
                                    struct error *err);
