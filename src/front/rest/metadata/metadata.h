/* Metadata: resources of the catalogue as documents, and feeds of them.
 *
 * A resource is made as one BSON document with its system properties; answers and queries are both
 * made from that. Feeds are in order of creation: a page goes on behind the _rid of its last
 * resource, so nothing is left out or told twice when others come and go meanwhile. */
#pragma once

#include "definition/rid.h"
#include "front/rest/call.h"

enum {
    REST_PAGE_DEFAULT = 100,
    REST_PAGE_MAX = 1000,
    REST_PAGE_BYTES_MAX = 4 * 1024 * 1024, /* a page ends with the resource that reaches it */
};

/* Appends _rid, _self, _etag and _ts to a document being written. */
void rest_metadata_system(struct buf *document, const struct catalogue_info *info,
                          struct slice self);

/* "dbs/{rid}/" and "dbs/{rid}/colls/{rid}/", in the arena. */
struct slice rest_metadata_database_self(struct rest_call *call, uint32_t database);
struct slice rest_metadata_container_self(struct rest_call *call, uint32_t database,
                                          uint32_t container);

/* Answers with one resource: body, etag and lsn, which is 0 where there is none. A read that has
 * seen this etag already (If-None-Match) is answered 304. */
void rest_metadata_answer(struct rest_call *call, uint16_t status, struct slice document,
                          struct slice etag, uint64_t lsn);

/* Headers that say what the resource is in: x-ms-content-path and x-ms-alt-content-path. container
 * may be NULL. */
void rest_metadata_owner(struct rest_call *call, const struct database *database,
                         const struct container *container);

/* Does If-None-Match name this etag, with its quotes or without, or any? */
bool rest_metadata_seen(const struct rest_call *call, struct slice etag);

/* Resources of one kind in one owner. */
struct rest_feed {
    struct slice name;  /* of the array: "Databases" */
    struct slice owner; /* rid; "" for the account */
    struct rid rid;     /* of any of them: the number does not count */
    size_t count;
    const void *context;
    uint64_t (*number)(const void *context, size_t index); /* of its rid */
    struct slice (*document)(struct rest_call *call, const void *context,
                             size_t index); /* BSON, in the arena; data NULL: it has gone */
};

/* Answers with one page: x-ms-max-item-count, x-ms-continuation. ERROR_BAD_CONTINUATION,
 * ERROR_BAD_REQUEST. */
NODISCARD bool rest_feed_list(struct rest_call *call, const struct rest_feed *feed,
                              struct error *err);

/* Answers the query of the body over all of them (metadata_query.h). */
NODISCARD bool rest_feed_query(struct rest_call *call, const struct rest_feed *feed,
                               struct error *err);

/* The page size a request asks for. *ret_asked false: it leaves that to the server.
 * ERROR_BAD_REQUEST: neither 1 and more nor -1. */
NODISCARD bool rest_page_size(const struct rest_call *call, size_t *ret_size, bool *ret_asked,
                              struct error *err);
