/* Call: one request on its way through the Table front, and its answer in the making.
 *
 * An operation's function reads the call, fills in status, headers and body, and returns true; or
 * it returns false with an error, which becomes the answer. What it allocates lives in the call's
 * arena, which is the request's. */
#pragma once

#include "catalogue/container_space.h"
#include "front/kit/http.h"
#include "front/table/authorize.h"
#include "front/table/operation.h"
#include "front/table/table.h"

struct table_write;

enum table_level { TABLE_LEVEL_NONE, TABLE_LEVEL_MINIMAL, TABLE_LEVEL_FULL };
enum table_format { TABLE_FORMAT_JSON, TABLE_FORMAT_XML, TABLE_FORMAT_OTHER };

struct table_call {
    union {
        struct front_http_call over_http;
        struct front_http_call;
    };
    const struct table_options *options;
    struct table_parameters parameters;
    struct table_route route;
    enum table_verb verb;
    const struct table_operation *operation; /* of route and verb */
    struct table_identity identity;
    enum table_level level;   /* of metadata that the client wants */
    enum table_format format; /* of the answer's body; OTHER: its type is among the lines */
    bool emulator;            /* with --dev: the account of the storage emulators was asked for */
    const struct table_write *write; /* what was read of a request that is kept, for when it moves
                                      * to a worker; NULL: nothing yet */
    char request_id[RANDOM_UUID_SIZE];
    struct slice transaction; /* of a change in a batch: what it shares with the others, */
    uint32_t *traffic_weight; /* and how the record for advice counts them; else NULL */
    const struct net_http_request *batch; /* of a part of one: the request it came in; else NULL */
};

static inline struct slice table_call_header(const struct table_call *call, struct slice name)
{
    return net_http_header(call->http, name);
}

/* The life of a call is the kit's (kit/call.h); these name it for the operations. */
static inline void table_call_finish(struct table_call *call, bool fine, const struct error *err)
{
    front_call_finish(&call->front, fine, err);
}

static inline void table_call_keep(struct table_call *call)
{
    front_call_keep(&call->front);
}

static inline void table_call_move(struct table_call *call)
{
    front_call_move(&call->front);
}

/* Adds a header to the answer; control bytes in the value become blanks. */
static inline void table_answer_header(struct table_call *call, struct slice name,
                                       struct slice value)
{
    front_http_header(&call->over_http, name, value);
}

/* The account as the request names it; what it is stored as where the request names none. */
struct slice table_call_account(const struct table_call *call);

/* "http://host/account" or "http://host": what links of an answer begin with; in the arena. */
struct slice table_call_root(struct table_call *call);

/* How much metadata the client wants, by $format or Accept; what says neither is JSON with little
 * of it. ERROR_TABLE_ATOM. */
NODISCARD bool table_call_level(struct table_call *call, struct error *err);

/* The consistency level that it is read with: x-ms-consistency-level, or the account's.
 * ERROR_BAD_REQUEST. */
NODISCARD bool table_call_consistency(const struct table_call *call, enum item_level *ret_level,
                                      struct error *err);

/* A table as its entities see it. */
struct table_space {
    struct container *container; /* a reference */
    struct slice name;           /* as it was made; borrowed from the container */
    struct item_space space;
    struct item_reading *reading; /* owned; NULL: the primaries are read */
};

/* Opens the table of that name, whatever its letter case. ERROR_TABLE_MISSING: there is none, or
 * the container of that name has another partition key. */
NODISCARD bool table_space_open(struct table_call *call, struct slice name,
                                struct table_space *ret_space, struct error *err);
/* From now on entities are read as the request's consistency level allows (item/reading.h): of
 * operations that write nothing. ERROR_BAD_REQUEST: it asks for a stronger one than the account's.
 */
NODISCARD bool table_space_look(const struct table_call *call, struct table_space *space,
                                struct error *err);
/* Says who answered for a partition: x-orrery-served-by. */
void table_space_served(struct table_call *call, const struct table_space *space,
                        const struct partition_span *spans, size_t count);
void table_space_close(struct table_space *space);
CLEANUP_VALUE_FN(struct table_space, table_space_close)

/* Whether a container can be used as a table: its key is /PartitionKey alone. The server may make
 * it of other properties, but not with a random number, which whoever names an entity would not
 * know.
 */
bool table_container_fits(const struct container *container);

/* The container of a table by any letter case; NULL: there is none. Borrowed from the database. */
struct container *table_container_find(struct database *database, struct slice name);
