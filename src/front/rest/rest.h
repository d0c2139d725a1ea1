/* REST: the NoSQL (DocumentDB) API of Cosmos DB over HTTP, as the vendors' client libraries speak
 * it in gateway mode.
 *
 * One handler for all of it: the path and a few headers say which operation of operations.def is
 * asked for (route.h, operation.h), the token who asks (authorize.h), and the operation's function
 * answers through its call (call.h). */
#pragma once

#include "front/front.h"
#include "front/kit/http.h"

struct rest; /* opaque, owned by the server */

enum { REST_SEAL_BYTES = 32 };

/* Who merges the results of several ranges: the library where it is one that does, always the
 * client, never. */
enum rest_merge { REST_MERGE_LIBRARY, REST_MERGE_CLIENT, REST_MERGE_SERVER };

/* What queries of this API may do; what they may use is the same for all (kit/queries.h). */
struct rest_query_rules {
    enum rest_merge merge;
    bool order_unindexed; /* ORDER BY may sort by paths that have no index */
    bool by_view;         /* views answer queries on their sources */
};

/* What scripts may use beyond what their pool says. */
struct rest_script_limits {
    int64_t time_ms;     /* of one run */
    uint32_t ru_seconds; /* throughput of the partition that one run may spend, in seconds' worth;
                          * 0: no end */
};

/* Of a server that does not own the nodes, and reads beside the one that does (docs/servers.md). It
 * may answer by itself while it holds a pass, which says that the catalogue it reads by is the
 * present one: taken before the request is looked at, asked for again before it is answered. */
struct rest_follow {
    bool (*take)(void *context, uint64_t ret_pass[2]);
    bool (*holds)(void *context, const uint64_t pass[2]);
    /* On the request's loop, outside every handler: the owner is asked. */
    void (*pass_on)(struct net_http_request *request, void *context);
    void *context;
};

struct rest_options {
    struct front_services services;
    struct front_door door;
    uint8_t seal[REST_SEAL_BYTES]; /* what continuations are sealed with */
    uint32_t metadata_ru;          /* RU/s of an account for metadata; 0: not held back */
    const char *cors_origins;      /* pages of these may use the API from browsers; "": of none */
    struct rest_query_rules queries;
    struct rest_script_limits scripts;
    const struct rest_follow *follow; /* borrowed; NULL: this server owns the nodes */
};

/* Options are copied, the texts in them are borrowed. */
struct rest *rest_new(const struct rest_options *options);

/* Waits for the writes that a committer will still end. After the listeners have gone, before the
 * loops go. */
void rest_wait(struct rest *rest);

/* After the http it handles for is gone. NULL is fine. */
void rest_free(struct rest *rest);
CLEANUP_FN(struct rest *, rest_free)

/* Answers a read of an item, of a server that follows, or passes it on later. False: it did
 * neither, and the request is as it was. On the loop, in a handler. */
bool rest_follow_try(struct net_http_request *request, struct rest *rest);

/* The handler for net_http_new; context is a struct rest. Answers every request, with an error if
 * need be. */
void rest_handle(struct net_http_request *request, void *context);
