/* Items of one container: the space they are in, where a key leads, and looks at several items.
 * operation.h has the operations on single ones. */
#pragma once

#include "definition/promotion.h"
#include "item/gates.h"
#include "item/patch.h"
#include "item/scan.h"
#include "item/transaction.h"
#include "partition/map.h"

struct item_reading;

/* One container as items see it: the map and how to get at the nodes it names. A plain value;
 * everything is borrowed. */
struct item_space {
    struct partition_map *map;
    const struct definition_fields *definition;
    uint32_t policy_version;
    uint32_t writers;                                                          /* scope.h */
    const struct index_policy *policies_before[CONTAINER_POLICIES_BEFORE_MAX]; /* scope.h */
    size_t policies_before_count;
    int64_t logical_bytes_max, spread_bytes_max, partition_bytes_max;
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
    struct item_holds *holds;                /* what is refused for a time; NULL: nothing */
    struct history_origin history;           /* scope.h */
    bool read_only;                          /* scope.h */

    int64_t since_ms; /* monotonic: since when map and definition hold; INT64_MAX: no standbys */
    struct item_reading *reading; /* reading.h; borrowed. NULL: the primaries are read */
};

/* Physical partitions split, merge and move while requests run. Whoever writes under an old map is
 * turned away; operations on single items go on by themselves with the next map. Who runs a
 * transaction does it so:
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

/* The engine that a span is read from: its node, or what stands before it (reading.h). */
struct engine *item_space_engine(const struct item_space *space, const struct partition_span *span);

/* The scope of the physical partition that holds a logical one. */
struct item_scope item_space_scope(const struct item_space *space, struct slice logical);

/* The scope of one span of the map. */
struct item_scope item_space_span_scope(const struct item_space *space,
                                        const struct partition_span *span);

/* Where a key leads by the map of a space; a plain value. One buffer in the arena holds all of its
 * bytes: family, routing key, pk and id, one behind the other. */
struct item_route {
    const struct item_space *space;    /* borrowed; NULL: not routed yet */
    const struct partition_span *span; /* lives as long as the map does */
    struct slice logical;              /* routing key and pk */
    struct slice pk;     /* what budgets and statistics know the key by; empty: of no single one */
    struct slice key;    /* of the item; the logical partition where no id was given */
    struct slice stored; /* family and key: what the engine knows the item by */
};

/* id NULL: of no item. A key that names no single logical partition, or only by what it was before
 * a re-key, leads to the first span. */
struct item_route item_space_route(const struct item_space *space, const struct partition_key *key,
                                   const struct document_value *id, struct arena *arena);

static inline struct item_scope item_route_scope(const struct item_route *route)
{
    return item_space_span_scope(route->space, route->span);
}

/* May a logical partition be read? ERROR_KEY_ELSEWHERE: not since a promotion. ERROR_PAUSED: not
 * now. Whoever reads by a key asks; transactions do so by themselves, for what they write too. */
NODISCARD bool item_space_admits(const struct item_space *space, struct slice logical,
                                 struct error *err);
/* May routing keys of a span be read that lie within a range? ERROR_PAUSED: one of them may not. */
NODISCARD bool item_space_admits_range(const struct item_space *space,
                                       const struct partition_span *span,
                                       struct partition_range range, struct error *err);

/* By number, wherever it is: one look per physical partition until it is found. */
NODISCARD bool items_read_number(const struct item_space *space, uint64_t number,
                                 struct arena *arena, struct item *ret_item, struct error *err);

struct items_reference {
    struct partition_key key;
    struct document_value id;
};

/* Several at once, those of one logical partition as of one moment; what is missing has
 * document.data NULL. */
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
