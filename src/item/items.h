/* Items: the operations of all APIs on single items, each a transaction of its own.
 *
 * A call finds the physical partition by the container's map, runs, and on ERROR_CONFLICT runs
 * again, or with the next map if a migration has overtaken this one: clients never see a retry of a
 * plain operation. Calls on one key take turns at a gate, so
 * that a hot item costs each of them one commit and not many attempts.
 *
 * Blocking; from any thread. What is handed out lives in the arena. */
#pragma once

#include "definition/promotion.h"
#include "item/patch.h"
#include "item/scan.h"
#include "item/transaction.h"
#include "partition/map.h"

/* Gates by key, a fixed number of them: whoever writes a key holds its gate until the commit, on
 * whichever thread that ends. Owned by whoever owns the nodes. */
struct item_gates; /* opaque */
struct item_gates *item_gates_new(void);
void item_gates_free(struct item_gates *gates); /* NULL is fine */
CLEANUP_FN(struct item_gates *, item_gates_free)

/* For transactions, which have no key of one item: waits at the gate of a key, such as a logical
 * partition's. Whoever is at one takes no other. gates NULL: nothing happens. */
void item_gates_enter(struct item_gates *gates, struct slice key);
void item_gates_leave(struct item_gates *gates, struct slice key);

/* Claims are gates before those: who is at one may go on to a gate, but nobody at a gate comes to a
 * claim, and nobody waits for a second one. claim.h is who takes them. */
void item_gates_claim(struct item_gates *gates, struct slice key);
NODISCARD bool item_gates_claim_try(struct item_gates *gates, struct slice key);
void item_gates_unclaim(struct item_gates *gates, struct slice key);

/* One container as items see it: the map and how to get at the nodes it names. A plain value;
 * everything is borrowed. */
struct item_space {
    struct partition_map *map;
    const struct definition_fields *definition;
    uint32_t policy_version;
    const struct index_policy *policies_before[CONTAINER_POLICIES_BEFORE_MAX]; /* scope.h */
    size_t policies_before_count;
    int64_t logical_bytes_max, partition_bytes_max;
    size_t item_bytes_max;
    struct partition_key_limits key_limits; /* zeros: none */
    size_t id_bytes_max;                    /* of a text id; 0: no limit */
    const struct clock *clock;
    struct item_gates *gates;

    /* The node of a range of the map. */
    void *nodes;
    struct engine *(*engine)(void *nodes, uint32_t node);
    struct commit *(*commit)(void *nodes, uint32_t node);

    /* NULL: the map never changes. Else the space becomes that of the next map: see below. */
    bool (*renew)(struct item_space *space, struct error *err);
    void (*release)(struct item_space *space); /* lets go of what renew has made it hold */
    bool renewed;                              /* it holds something; a copy does not */
    bool rekeyed; /* by a renewal: keys are made otherwise than when the request was read */
    bool (*is_current)(void *nodes); /* is the map the last one? NULL: always */

    const struct promotion_list *promotions; /* keys it does not take; NULL: it takes all */
};

/* Physical partitions split, merge and move while requests run. Whoever writes under an old map is
 * turned away; plain operations below go on by themselves with the next map. Who runs a transaction
 * does it so:
 *
 *     struct item_space now = *space;
 *     now.renewed = false;
 *     while (!(done = transaction_runs(&now, err)) && item_space_try_again(&now, err))
 *         ;
 *     item_space_release(&now);
 *
 * Readers need none of this: what they hold stays until they let go. */
bool item_space_is_overtaken(const struct error *err);

/* Waits for the next map, briefly; may block. What the space held before through an earlier renewal
 * is let go. ERROR_FENCED: there is none to be expected. ERROR_REKEYED: under the next map keys are
 * made otherwise, and whoever read the request has to read it again. */
NODISCARD bool item_space_renew(struct item_space *space, struct error *err);
void item_space_release(struct item_space *space);

/* After an attempt that failed: is there any sense in another? Another one was first, or the space
 * is overtaken and has been renewed. */
NODISCARD bool item_space_try_again(struct item_space *space, struct error *err);
CLEANUP_VALUE_FN(struct item_space, item_space_release)

/* The scope of the physical partition that holds a logical one. */
struct item_scope item_space_scope(const struct item_space *space, struct slice logical);

/* The scope of one span of the map. */
struct item_scope item_space_span_scope(const struct item_space *space,
                                        const struct partition_span *span);

/* Does the container take a logical partition? ERROR_KEY_ELSEWHERE: not since a promotion. Whoever
 * reads or writes by a key asks; transactions do so by themselves. */
NODISCARD bool item_space_admits(const struct item_space *space, struct slice logical,
                                 struct error *err);

/* ERROR_ITEM_MISSING. */
NODISCARD bool items_read(const struct item_space *space, const struct partition_key *key,
                          const struct document_value *id, struct arena *arena,
                          struct item *ret_item, struct error *err);

/* The same without ever blocking. *ret_cold: it is not known without; nothing else is written, and
 * the caller asks again where it may block. */
NODISCARD bool items_read_cached(const struct item_space *space, const struct partition_key *key,
                                 const struct document_value *id, struct arena *arena,
                                 struct item *ret_item, bool *ret_cold, struct error *err);

/* By number, wherever it is: one look per physical partition until it is found. */
NODISCARD bool items_read_number(const struct item_space *space, uint64_t number,
                                 struct arena *arena, struct item *ret_item, struct error *err);

struct items_reference {
    struct partition_key key;
    struct document_value id;
};

/* Several at once, grouped by physical partition; what is missing has document.data NULL. */
NODISCARD bool items_read_many(const struct item_space *space,
                               const struct items_reference *references, size_t count,
                               struct arena *arena, struct item *ret_items, struct error *err);

/* The id a write leaves the item with. */
static inline const struct document_value *
items_id_written(const struct document_value *id, const struct transaction_options *options)
{
    return options && options->new_id ? options->new_id : id;
}

/* Whether a key and id may be written: within their limits, and no object or array.
 * ERROR_BAD_REQUEST. */
NODISCARD bool items_names_check(const struct item_space *space, const struct partition_key *key,
                                 const struct document_value *id, struct error *err);

/* Create, replace, upsert or delete. The document's partition key must be the given one: the
 * caller has extracted or compared it. ERROR_BAD_REQUEST: key or id is over its limit, or the key
 * is an object or array. */
NODISCARD bool items_write(const struct item_space *space, const struct partition_key *key,
                           const struct document_value *id, enum transaction_verb verb,
                           struct slice document, const struct transaction_options *options,
                           struct arena *arena, struct transaction_result *ret_result,
                           struct transaction_work *ret_work, struct error *err);

/* The same without ever blocking, for event loops. *ret_begun false: it cannot be done without (the
 * item is not in memory, another write is at its gate, the container has unique keys); call
 * items_write where blocking is fine. Otherwise done is called once, with a result or an error, on
 * the committer's thread, where it must be quick; what was handed in is borrowed until then.
 * ERROR_CONFLICT may come as well, or that the space is overtaken: then too items_write settles it.
 */
typedef void items_write_done(const struct transaction_result *result,
                              const struct transaction_work *work, const struct error *err,
                              void *context);
NODISCARD bool items_write_start(const struct item_space *space, const struct partition_key *key,
                                 const struct document_value *id, enum transaction_verb verb,
                                 struct slice document, const struct transaction_options *options,
                                 struct arena *arena, items_write_done *done, void *context,
                                 bool *ret_begun, struct error *err);

/* Replaces an item by what make makes of it, as often as it takes: make may be called again with a
 * later version. It leaves its document in the arena. ERROR_ITEM_MISSING. */
NODISCARD bool items_change(const struct item_space *space, const struct partition_key *key,
                            const struct document_value *id,
                            bool (*make)(const struct item *item, void *context,
                                         struct arena *arena, struct slice *ret_document,
                                         struct error *err),
                            void *context, const struct transaction_options *options,
                            struct arena *arena, struct transaction_result *ret_result,
                            struct transaction_work *ret_work, struct error *err);

/* items_change with a patch, which has been checked against the key's paths when it was parsed.
 * ERROR_BAD_REQUEST: it does not fit the item. */
NODISCARD bool items_patch(const struct item_space *space, const struct partition_key *key,
                           const struct document_value *id, const struct patch *patch,
                           const struct transaction_options *options, struct arena *arena,
                           struct transaction_result *ret_result, struct transaction_work *ret_work,
                           struct error *err);

/* The make of items_change and metered_change that applies a patch: context is the patch. */
bool items_make_patched(const struct item *item, void *patch, struct arena *arena,
                        struct slice *ret_document, struct error *err);

/* Moves an item to another partition key value, atomically: document is the item as it shall be
 * under the new key. It is a new item there, with a number of its own. ERROR_NOT_SUPPORTED: the two
 * values are on different nodes. */
NODISCARD bool items_move(const struct item_space *space, const struct partition_key *from,
                          const struct document_value *id, const struct partition_key *to,
                          struct slice document, const struct transaction_options *options,
                          struct arena *arena, struct item *ret_item, struct error *err);
