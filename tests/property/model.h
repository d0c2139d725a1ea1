/* Model: what a container should hold, in the plainest way there is: a table of items, a list of
 * changes, sums. No index, no group commit, no snapshots but copies. Everything the real one leaves
 * to the commit (LSNs, numbers, times) is predicted too, so that the stored bytes can be. */
#pragma once

#include "item/feed.h"
#include "property/world.h"

struct model_item {
    bool stored; /* perhaps expired */
    struct item_header header;
    struct slice document;
    uint64_t touched_at; /* sequence of the last commit that wrote it or removed it */
};

/* One record of the feed. */
struct model_record {
    uint32_t partition;
    uint64_t lsn, previous_lsn;
    uint32_t ordinal, previous_ordinal;
    enum feed_kind kind;
    int64_t wall_ms;
    uint64_t number;
    unsigned key, id;
    struct slice image;
};

/* A unique key somebody took. */
struct model_claim {
    uint64_t sequence;
    struct slice key;
};

enum { MODEL_CLAIMS = 64 }; /* the last so many; more than two open transactions can make */

struct model {
    const struct world *world;
    struct model_item items[WORLD_KEYS][WORLD_IDS];
    struct {
        bool touched;
        int64_t bytes, items;
    } logicals[WORLD_KEYS];
    struct {
        uint64_t lsn, counter;
        int64_t wall_ms;
        uint64_t trimmed_lsn; /* the highest of a record removed by trimming */
    } partitions[WORLD_PARTITIONS];
    struct model_record *records; /* owned; by partition, in the order of its feed */
    size_t record_count, record_capacity;
    uint64_t sequence;
    struct model_claim claims[MODEL_CLAIMS];
    size_t claim_count;
};

struct model *model_new(const struct world *world);
struct model *model_copy(const struct model *model);
void model_free(struct model *model); /* NULL is fine */
CLEANUP_FN(struct model *, model_free)

/* The item, unless there is none or its time is over. */
const struct model_item *model_find(const struct model *model, unsigned key, unsigned id);
bool model_is_over(const struct world *world, const struct model_item *item);

/* The bytes of a unique key: the values of an item at its paths, in its logical partition. */
struct slice model_unique_key(const struct world *world, unsigned key, size_t which,
                              struct slice document, struct arena *arena);

/* --- Transactions ---------------------------------------------------------------------------- */

/* A key and id that the transaction has looked at. */
struct model_planned {
    unsigned key, id;
    bool written, relied, expired;
    int own, here; /* entities: the one stored here, the one here by now; NO_ENTITY */
    struct model_item view;
};

/* One item through the transaction: where it was stored, if it was, and where it is, if it is. */
struct model_entity {
    bool stored, there;
    unsigned stored_id, id, key;
    int last; /* step */
};

/* One write. */
struct model_step {
    int entity, before; /* before: the step of the same item before this one; -1: none */
    unsigned id;
    struct slice after; /* data NULL: deleted */
    uint8_t flags;
    int32_t ttl;
};

enum { MODEL_PLANNED_MAX = 32, NO_ENTITY = -1 };

struct model_transaction {
    struct model *snapshot;                          /* owned */
    struct model_planned planned[MODEL_PLANNED_MAX]; /* by first mention */
    size_t planned_count;
    struct model_entity entities[MODEL_PLANNED_MAX];
    struct model_step steps[MODEL_PLANNED_MAX];
    size_t entity_count, step_count;
    bool relied_keys[WORLD_KEYS]; /* logical partitions scanned and relied on */
};

void model_begin(struct model_transaction *transaction, const struct model *model);
void model_transaction_done(struct model_transaction *transaction);
CLEANUP_VALUE_FN(struct model_transaction, model_transaction_done)

const struct model_item *model_read(struct model_transaction *transaction, unsigned key,
                                    unsigned id);

/* The same without noting that it was looked at. */
const struct model_item *model_view(const struct model_transaction *transaction, unsigned key,
                                    unsigned id);
void model_rely(struct model_transaction *transaction, unsigned key, unsigned id);

/* All of the logical partition, also what is not there. */
void model_rely_all(struct model_transaction *transaction, unsigned key);

/* ERROR_NONE, or what the write is refused with. */
enum error_code model_write(struct model_transaction *transaction, unsigned key, unsigned id,
                            enum transaction_verb verb, struct slice document,
                            const struct transaction_options *options);

/* The same of a replace that gives the item another id (or the one it has). */
enum error_code model_rename(struct model_transaction *transaction, unsigned key, unsigned id,
                             unsigned new_id, struct slice document,
                             const struct transaction_options *options);
void model_remove_expired(struct model_transaction *transaction, unsigned key, unsigned id);

/* Applies it to the model, which may have gone on since the transaction began; or leaves the model
 * alone and says why. */
enum error_code model_commit(struct model_transaction *transaction, struct model *model);

/* After model_commit: do expired items make way in several partitions? The store numbers their
 * records in the order in which it finds them, which the model does not foretell. */
bool model_evicts_across(const struct model_transaction *transaction);

/* --- Care ------------------------------------------------------------------------------------ */

/* Removes one expired item of a partition, the one that comes first. False: there is none. */
bool model_sweep_one(struct model *model, uint32_t partition);

/* Removes stale records; says how many. */
size_t model_trim(struct model *model, uint32_t partition, size_t max);

/* Remakes the entries of the first item of a partition behind *position, which becomes its key, if
 * they are of an older policy; then *remade is one more. False: there is no item left. */
bool model_transform_next(struct model *model, uint32_t partition, struct slice *position,
                          size_t *remade);
