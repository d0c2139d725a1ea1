/* Operation: one read or write of one item, from what is asked to what became of it.
 *
 * A front fills in what is asked and runs it: it is routed by the map of its space, let in by the
 * budget of the partition it leads to, carried out as a transaction of its own, and charged. On
 * ERROR_CONFLICT it runs again, or with the next map if a migration has overtaken this one: clients
 * never see a retry. Writers of one item take turns at its gate.
 *
 *     struct item_operation op = {.space = &space, .arena = arena, .verb = ITEM_CREATE,
 *                                 .key = key, .id = id, .document = document};
 *     if (!item_operation_run(&op, err))
 *         return false;
 *     show(&op.result.item, op.metered.charge_cru);
 *
 * A request is priced with what is known up front, refused before any work if the budget is used
 * up, run, and settled with what it really did. The charge follows from the committed state alone:
 * attempts that lost against another transaction are free.
 *
 * The key need not be known whole (claim.h), and may be one of before a re-key (alias.h): then the
 * item is looked for, and `key` is the key it was found with.
 *
 * The life of an operation on a loop, which must not block:
 *
 *     item_operation_start   cold: nothing was done; the same operation is run by a worker
 *                            ended: a read from memory, or a refusal
 *                            under way: the commit is submitted
 *     op->done(op)           on the committer's thread: hands the operation to its loop
 *     item_operation_settle  on the loop: result and charge are there */
#pragma once

#include "item/items.h"
#include "item/metering.h"

struct agreement;
struct agreements;

enum item_verb {
    ITEM_READ, /* ERROR_ITEM_MISSING */
    /* those of a transaction, in their order: */
    ITEM_CREATE,  /* ERROR_ITEM_EXISTS */
    ITEM_REPLACE, /* ERROR_ITEM_MISSING */
    ITEM_UPSERT,
    ITEM_DELETE, /* ERROR_ITEM_MISSING; no document */
    ITEM_CHANGE, /* replaces the item by what `make` makes of it. ERROR_ITEM_MISSING */
};

static inline enum item_verb item_verb_of(enum transaction_verb verb)
{
    static_assert((int)ITEM_DELETE == (int)TRANSACTION_DELETE + 1, "in the same order");
    return (enum item_verb)(ITEM_CREATE + (int)verb);
}

/* Makes the document an item becomes, in the arena; called again with a later version if another
 * writer was first. */
typedef bool item_make(const struct item *item, void *context, struct arena *arena,
                       struct slice *ret_document, struct error *err);

struct item_operation {
    /* What is asked; what it points to is borrowed until the operation has ended. */
    const struct item_space *space;
    struct meters *meters; /* NULL: priced, but not held back */
    struct arena *arena;   /* where everything handed out lives */
    enum item_verb verb;
    struct partition_key key; /* by the end the whole one it was done with */
    struct document_value id;
    struct slice document; /* of create, replace and upsert. Its partition key is `key`: the
                            * caller has extracted or compared it */
    item_make *make;       /* of a change */
    void *context;         /* for make */
    struct transaction_options options; /* of a write */
    /* It is a part of this one, which somebody else commits: it sees what is planned there, a write
     * is planned there too, and costs nothing before the commit. ERROR_CONFLICT: another one has
     * written the item since that began. The space outlives it. NULL: it is alone. */
    struct transaction *within;
    struct agreement *among;     /* the same of several nodes: `within` is found by the key */
    struct metered_call metered; /* in and out */
    void (*done)(
        struct item_operation *op); /* of one that is started, see above; once, and quick */

    /* Where it leads, by the map of `space`; there from the beginning to the end. */
    struct item_route route;

    /* What became of it. */
    bool ended;       /* for item_operation_settle and bulk.h: it was run, well or not */
    struct error err; /* likewise: code ERROR_NONE if well */
    struct transaction_result result; /* of a read the item alone */
    struct transaction_work work;     /* of a write */

    /* While it is under way. */
    struct transaction *transaction;
    struct item_gate *gate;
    struct metering metering;
};

/* Runs it; blocks. ERROR_BAD_REQUEST: key or id is over its limit, or the key is an object or
 * array, or cannot be found out. ERROR_TOO_MANY_REQUESTS, ERROR_BUCKET_THROTTLED,
 * ERROR_KEY_THROTTLED: the budget; the wait is in `metered`. ERROR_REKEYED: the container has
 * another partition key by now, and whoever read the request has to read it again. */
NODISCARD bool item_operation_run(struct item_operation *op, struct error *err);

enum item_start {
    ITEM_START_ENDED,     /* the result is there */
    ITEM_START_FAILED,    /* the error is */
    ITEM_START_COLD,      /* it cannot be done without blocking (the item is not in memory, another
                           * write is at its gate, the key is to be looked for, ...): nothing was
                           * done or charged; to be run where blocking is fine */
    ITEM_START_UNDER_WAY, /* done will be called, or has been: the operation may be gone */
};

/* Items longer than this are cold too: what is done with them next takes longer than a loop has
 * time for. */
enum { ITEM_START_BYTES_MAX = 64 * 1024 };

/* Begins it without ever blocking. Not of changes, which are always cold. */
NODISCARD enum item_start item_operation_start(struct item_operation *op, struct error *err);

/* After done: takes what became of it, and settles the charge. False with the error; one for which
 * item_operation_is_overtaken holds is settled by item_operation_run. */
NODISCARD bool item_operation_settle(struct item_operation *op, struct error *err);

/* Lost a started operation against another writer or a migration? It left no trace. */
bool item_operation_is_overtaken(const struct error *err);

/* The least it costs, as far as is known before it is run. */
int64_t item_operation_price(const struct item_operation *op);

/* A make that applies a patch, which has been checked against the key's paths when it was parsed:
 * context is the struct patch. ERROR_BAD_REQUEST: it does not fit the item. */
item_make item_make_patched;

/* Moves the item to another partition key value, atomically: op->document is the item as it shall
 * be under the new key. It is a new item there, with a number of its own; op->result.item is that.
 * Not metered. agreements: for values on different nodes (agreement.h, whose errors it has then);
 * NULL: ERROR_NOT_SUPPORTED. */
NODISCARD bool item_operation_move(struct item_operation *op, const struct partition_key *to,
                                   struct agreements *agreements, struct error *err);
