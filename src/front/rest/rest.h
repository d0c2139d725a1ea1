/* REST: the NoSQL (DocumentDB) API of Cosmos DB over HTTP, as the vendors' client libraries speak
 * it in gateway mode.
 *
 * One handler for all of it: the path and a few headers say which operation of operations.def is
 * asked for (route.h, operation.h), the token who asks (authorize.h), and the operation's function
 * answers through its call (call.h). */
#pragma once

#include "front/front.h"
#include "front/hooks.h"
#include "net/http.h"

struct rest; /* opaque, owned by the server */

enum rest_consistency {
    REST_STRONG,
    REST_BOUNDED_STALENESS,
    REST_SESSION,
    REST_CONSISTENT_PREFIX,
    REST_EVENTUAL,
};

enum { REST_SEAL_BYTES = 32 };

/* Who merges the results of several ranges: the library where it is one that does, always the
 * client, never. */
enum rest_merge { REST_MERGE_LIBRARY, REST_MERGE_CLIENT, REST_MERGE_SERVER };

/* What one query may use, and all together. */
struct rest_query_limits {
    int64_t pause_ms;               /* a page ends then, and the client comes again for more */
    int64_t deadline_ms;            /* of what cannot be interrupted, such as a sort */
    size_t memory_bytes_max;        /* of what a query sorts, groups or makes distinct */
    size_t cache_bytes_max;         /* of results between two pages */
    const char *spill_directory;    /* where the rest goes; copied */
    uint64_t spill_bytes_max;       /* of one query; 0: nothing is spilled */
    uint64_t spill_total_bytes_max; /* of all; the same */
    enum rest_merge merge;
    bool order_unindexed; /* ORDER BY may sort by paths that have no index */
};

/* What scripts may use beyond what their pool says. */
struct rest_script_limits {
    int64_t time_ms;     /* of one run */
    uint32_t ru_seconds; /* throughput of the partition that one run may spend, in seconds' worth;
                          * 0: no end */
};

struct rest_options {
    struct front_services services;
    uint8_t seal[REST_SEAL_BYTES];     /* what continuations are sealed with */
    bool dev;                          /* the public emulator key is accepted as well */
    enum rest_consistency consistency; /* of the account */
    bool accounts_by_use;              /* an account is made when it is first named */
    uint32_t metadata_ru;              /* RU/s of an account for metadata; 0: not held back */
    const char *host_suffix;  /* hosts LABEL.suffix name the account LABEL; besides .localhost */
    const char *cors_origins; /* pages of these may use the API from browsers; "": of none */
    struct rest_query_limits queries;
    struct rest_script_limits scripts;
    struct front_hooks admin; /* what /_orrery/ asks of the server */
};

/* Options are copied, the texts in them are borrowed. */
struct rest *rest_new(const struct rest_options *options);

/* What queries have spilled. */
struct query_spill_metrics;
void rest_spill_metrics(const struct rest *rest, struct query_spill_metrics *ret_metrics);

/* Waits for the writes that a committer will still end. After the listeners have gone, before the
 * loops go. */
void rest_wait(struct rest *rest);

/* After the http it handles for is gone. NULL is fine. */
void rest_free(struct rest *rest);
CLEANUP_FN(struct rest *, rest_free)

/* What never reaches the handler, as libraries know it: net_http_settings.refusal. */
struct net_http_response rest_refusal(struct arena *arena, uint16_t status, const char *reason);

/* The handler for net_http_new; context is a struct rest. Answers every request, with an error if
 * need be. */
void rest_handle(struct net_http_request *request, void *context);
