/* Call: one request on its way through the Table front, and its answer in the making.
 *
 * An operation's function reads the call, fills in status, headers and body, and returns true; or
 * it returns false with an error, which becomes the answer. What it allocates lives in the call's
 * arena, which is the request's. */
#pragma once

#include "base/random.h"
#include "catalogue/container_space.h"
#include "front/account.h"
#include "front/table/authorize.h"
#include "front/table/operation.h"
#include "front/table/table.h"

#include <stdatomic.h>

enum table_level { TABLE_LEVEL_NONE, TABLE_LEVEL_MINIMAL, TABLE_LEVEL_FULL };
enum table_format { TABLE_FORMAT_JSON, TABLE_FORMAT_XML, TABLE_FORMAT_OTHER };

struct table_call {
    const struct table_options *options;
    const struct front_services *services;
    atomic_uint *under_way; /* calls that a committer will end: see table_wait */
    struct net_http_request *http;
    struct arena *arena;
    struct table_parameters parameters;
    struct table_route route;
    struct front_account account;
    bool emulator;           /* with --dev: that of the storage emulators was asked for */
    struct net_owner *owner; /* the account, as workers and memory know it; may be NULL */
    enum table_verb verb;
    const struct table_operation *operation; /* of route and verb */
    struct table_identity identity;
    enum table_level level;       /* of metadata that the client wants */
    bool may_block;               /* false: on a loop; set cold and return rather than block */
    const atomic_bool *cancelled; /* the client has gone; NULL: nobody would notice */
    bool cold;     /* out: run again where it may block; the answer so far is thrown away */
    bool *pending; /* out, on a loop: the operation ends later, by table_call_finish; the call must
                    * not be touched after that was set in motion */
    bool kept;     /* the request's bytes are in the arena */
    char request_id[RANDOM_UUID_SIZE];
    struct slice transaction; /* of a change in a batch: what it shares with the others, */
    uint32_t *traffic_weight; /* and how the record for advice counts them; else NULL */
    const struct net_http_request *batch; /* of a part of one: the request it came in; else NULL */

    /* The answer. */
    uint16_t status;
    enum table_format format; /* of the body; OTHER: its type is among the lines */
    struct buf lines;         /* header lines, each ending in CRLF */
    struct buf body;          /* or empty */
    int64_t charge_cru;
    int64_t wait_ms; /* of a 429 */
    struct net_work work;
};

static inline struct slice table_call_header(const struct table_call *call, struct slice name)
{
    return net_http_header(call->http, name);
}

/* Ends the call: answers with what it has gathered, or with the error. From any thread. */
void table_call_finish(struct table_call *call, bool fine, const struct error *err);

/* On a loop: keeps the request beyond the handler's return. Route and parameters are found anew,
 * since the request's bytes have moved. */
void table_call_keep(struct table_call *call);

/* Runs the operation on a worker, from its beginning. From any thread; the call is kept. */
void table_call_move(struct table_call *call);

/* The account as the request names it; what it is stored as where the request names none. */
struct slice table_call_account(const struct table_call *call);

/* "http://host/account" or "http://host": what links of an answer begin with; in the arena. */
struct slice table_call_root(struct table_call *call);

/* How much metadata the client wants, by $format or Accept; what says neither is JSON with little
 * of it. ERROR_TABLE_ATOM. */
NODISCARD bool table_call_level(struct table_call *call, struct error *err);

/* A table as its entities see it. */
struct table_space {
    struct container *container; /* a reference */
    struct slice name;           /* as it was made; borrowed from the container */
    struct item_space space;
};

/* Opens the table of that name, whatever its letter case. ERROR_TABLE_MISSING: there is none, or
 * the container of that name has another partition key. */
NODISCARD bool table_space_open(struct table_call *call, struct slice name,
                                struct table_space *ret_space, struct error *err);
void table_space_close(struct table_space *space);
CLEANUP_VALUE_FN(struct table_space, table_space_close)

/* Whether a container can be used as a table: its key is /PartitionKey alone. The server may make
 * it of other properties, but not with a random number, which whoever names an entity would not
 * know.
 */
bool table_container_fits(const struct container *container);

/* The container of a table by any letter case; NULL: there is none. Borrowed from the database. */
struct container *table_container_find(struct database *database, struct slice name);
