/* Items on the wire: where one is, how it is read from a body and shown in an answer. Shared by all
 * operations on items, batches and feeds. */
#pragma once

#include "front/rest/call.h"
#include "front/traffic.h"
#include "item/operation.h"
#include "item/reading.h"

/* The container of a call as items see it. */
struct rest_items {
    struct container *container; /* a reference */
    struct item_space space;
    struct slice self;         /* "dbs/{db}/colls/{c}/docs/", in the arena */
    enum item_level level;     /* what the request is read with */
    struct item_token *tokens; /* what its session has seen; in the arena */
    size_t token_count;
    struct item_reading *reading; /* owned; NULL: the primaries are read */
};

/* From now on items are read as the request's consistency level allows, from standbys too
 * (item/reading.h): of operations that write nothing, before anything is opened. */
void rest_items_look(struct rest_call *call, struct rest_items *items);

/* Where a partition stands for whoever read it: the snapshot of a standby, or what is acknowledged.
 * False: not known. */
NODISCARD bool rest_items_lsn(const struct rest_items *items, const struct partition_span *span,
                              uint64_t *ret_lsn);

/* Says who answered: x-orrery-served-by. */
void rest_items_served(struct rest_call *call, const struct rest_items *items,
                       const struct partition_span *spans, size_t count);

/* Opens the container of the route and checks what goes for every operation on its items: the
 * session token, the consistency level. */
NODISCARD bool rest_items_open(struct rest_call *call, struct rest_items *ret_items,
                               struct error *err);
void rest_items_close(struct rest_items *items);
CLEANUP_VALUE_FN(struct rest_items, rest_items_close)

/* The partition key of the header. *ret_given false: there is no header, and *ret_key is not
 * written. A synthetic key may be open. */
NODISCARD bool rest_items_key(struct rest_call *call, const struct rest_items *items,
                              struct partition_key *ret_key, bool *ret_given, struct error *err);

/* The same, in the terms of now or of before a re-key (partition/former.h): for operations that
 * know what to do with a key of before. */
NODISCARD bool rest_items_key_either(struct rest_call *call, const struct rest_items *items,
                                     struct partition_key *ret_key, bool *ret_given,
                                     struct error *err);

/* The purpose of a continuation that has positions among routing keys: under another partition key
 * they mean nothing, and it is refused. In the arena. */
struct slice rest_items_purpose(const struct rest_items *items, struct slice purpose,
                                struct arena *arena);

/* ERROR_TOO_LARGE: the item (BSON) is over the limit. Refused before anything is admitted. */
NODISCARD bool rest_item_size_check(const struct rest_items *items, struct slice document,
                                    struct error *err);

/* Partition key and id of a stored item, from its key; in the arena. */
NODISCARD bool rest_item_names(const struct rest_items *items, struct slice item_key,
                               struct arena *arena, struct partition_key *ret_key,
                               struct document_value *ret_id, struct error *err);

/* Appends an item as clients see it: its properties, then _rid, _self, _etag, _attachments, _ts,
 * and _lsn where asked for (0: not). */
void rest_item_append(const struct rest_items *items, const struct item *item, uint64_t lsn,
                      struct buf *body);

/* What the request says about paying: consistency, priority, bucket. ERROR_BAD_REQUEST. */
NODISCARD bool rest_items_metered(struct rest_call *call, struct metered_call *ret_metered,
                                  struct error *err);

/* Headers of an answer from one physical partition: session token, lsn, range id, content paths.
 * lsn 0: where the partition stands now. */
void rest_items_headers(struct rest_call *call, const struct rest_items *items, uint32_t partition,
                        uint64_t lsn);

/* The physical partition of a key. */
uint32_t rest_items_partition(const struct rest_items *items, const struct partition_key *key,
                              struct arena *arena);

/* Where an item was read from, as it was asked for: Content-Location. */
void rest_items_location(struct rest_call *call);

/* Notes the charge of a request, and the wait if it was refused for it. */
void rest_items_charged(struct rest_call *call, const struct metered_call *metered);

/* The service's words for a key that is not there. False. */
bool rest_items_key_missing(struct error *err);

/* Whether Prefer asks for no body after a write. */
bool rest_items_minimal(const struct rest_call *call);

/* The etag of an item with its quotes, in the arena. */
struct slice rest_item_etag(const struct item *item, struct arena *arena);

/* Reads a value of x-ms-indexing-directive; data NULL: Default. ERROR_BAD_REQUEST. */
NODISCARD bool rest_items_directive(struct slice text, bool *ret_not_indexed, struct error *err);

/* Options of a write from the headers: etags, indexing directive. */
NODISCARD bool rest_items_options(struct rest_call *call, struct transaction_options *ret_options,
                                  struct error *err);

struct rest_patch;

/* What a request asks of one item: where it is, and what it shall become. Read once: see
 * rest_call.target. */
struct rest_item_target {
    struct partition_key key;
    struct document_value id;
    struct document_value new_id; /* of a replace that gives another; else without a type */
    struct slice document;        /* of writes that bring one */
    struct rest_patch *patch;     /* of a patch; else NULL */

    /* The container it was read for, and its map: under another one keys may mean something else.
     */
    uint32_t container;
    uint64_t map_version;
};

/* What options say of an id that is given: the target's, which outlives them. */
static inline void rest_item_target_options(const struct rest_item_target *target,
                                            struct transaction_options *options)
{
    if (target->new_id.type)
        options->new_id = &target->new_id;
}

/* The item that the path of the call names: by id, with the partition key of the header, or by its
 * _rid where the path is made of those. On a loop call->cold may be set. */
NODISCARD bool rest_item_target_of_path(struct rest_call *call, const struct rest_items *items,
                                        struct rest_item_target *ret_target, struct error *err);

/* Runs a write and answers. On a loop it is begun, and the call left pending until it is durable;
 * then items are taken over. Or call->cold is set, where that would block. False as operations
 * return it. */
NODISCARD bool rest_item_write(struct rest_call *call, struct rest_items *items,
                               const struct rest_item_target *target, enum item_verb verb,
                               struct error *err);

/* Ends a write that went well, routed by items: headers, status and, unless the client wants none,
 * the item. */
void rest_item_written(struct rest_call *call, const struct rest_items *items,
                       const struct item_operation *op);

/* Of an operation that was refused: for what is stored, headers that say where the partition
 * stands; for lack of throughput, the record for advice. */
void rest_item_refused(struct rest_call *call, const struct rest_items *items,
                       const struct item_operation *op, const struct error *err);

/* What tells this attempt from others, for the record for advice. err NULL: it was carried out. */
struct front_traffic_attempt rest_items_attempt(const struct rest_call *call,
                                                const struct error *err);
