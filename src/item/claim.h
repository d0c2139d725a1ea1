/* Claim: operations on items whose partition key the request does not name whole, because the
 * server makes a part of it (partition/synthetic.h).
 *
 * Under a random suffix an id is unique within its base: "2018-08-09" and id "a" are one item,
 * whichever suffix it was given. So whoever creates one, and whoever does not know the suffix,
 * claims base and id: takes turns with all others that do, and looks for the id by one seek of the
 * index on id in every physical partition, each paid for there (cost_id_seek). What is found, or a
 * suffix drawn, is the whole key the operation then runs with. Claims live in this process, which
 * is the only one that writes its nodes.
 *
 * No work is done for who cannot pay. Who may create has drawn a suffix before the seeks, and the
 * partition of that admits the request; the seeks of the others are charged with it. Otherwise all
 * partitions admit their seek, or none is done.
 *
 * operation.h and bulk.h do all this; fronts hand them the keys that partition_key_derive and
 * partition_key_parse gave. */
#pragma once

#include "item/operation.h"

enum claim_purpose {
    CLAIM_READ,   /* the item must be there; nobody is kept waiting */
    CLAIM_CHANGE, /* the item must be there: replace, patch, delete */
    CLAIM_CREATE, /* it may be there, or come to be: create, upsert */
};

struct claim {
    /* For claim_take. */
    struct item_operation *op;       /* by op->key, paid as it is paid */
    const struct document_value *id; /* what is looked for: its id, or the one it gets */
    enum claim_purpose purpose;

    struct item_space space;  /* the claimed container, by its last map; let go with the claim */
    struct partition_key key; /* whole; in the arena. Of a creation what it will be if there is no
                                 item yet, until claim_look */
    struct partition_key wanted; /* of a creation: as the request has it */
    int64_t cru;                 /* what looking for it was charged */
    struct slice held;           /* what is claimed; data NULL: nothing is */
    bool creates;                /* claim_look is to come */
};

/* Does an operation with this key need one? Never without a synthetic key. */
bool claim_is_needed(const struct partition_definition *definition, const struct partition_key *key,
                     enum claim_purpose purpose);

/* Takes it. wait false: where another one has it, *ret_taken is false and nothing is held. Released
 * also after a failure, which may have been charged. ERROR_ITEM_MISSING; ERROR_BAD_REQUEST: the key
 * cannot be found out, or several items have the id; ERROR_TOO_MANY_REQUESTS. */
NODISCARD bool claim_take(struct claim *claim, bool wait, bool *ret_taken, struct error *err);

/* Of a creation, after it was admitted; nothing is done for others. *ret_moved: there is an item
 * already, and the key is another now. ERROR_ITEM_EXISTS: under another suffix than the one named.
 */
NODISCARD bool claim_look(struct claim *claim, bool *ret_moved, struct error *err);

void claim_release(struct claim *claim);
CLEANUP_VALUE_FN(struct claim, claim_release)
