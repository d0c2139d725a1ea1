/* Verify from within: verify.c walks items forwards, verify_surplus.c entries backwards,
 * verify_placed.c those that lie elsewhere than their items,
 * verify_resident.c looks whether keys are where rules keep them,
 * verify_repair.c makes entries anew, verify_history.c reads the history of changes. */
#pragma once

#include "backup/verify.h"
#include "catalogue/node.h"
#include "item/write_set.h"

enum verify_phase {
    VERIFY_PHASE_ITEMS,   /* what each makes is looked up */
    VERIFY_PHASE_COUNT,   /* entries of each family */
    VERIFY_PHASE_SURPLUS, /* of the families that have too many */
    VERIFY_PHASE_HISTORY, /* of the partition that has it: all of it */
    VERIFY_PHASE_DONE,
};

enum { VERIFY_FAMILIES = 256, VERIFY_SUMS_MAX = 4096 };

struct verify_sum {
    struct slice key;
    int64_t amounts[COUNTER_NUMBERS];
};

struct verify {
    const struct backup_moment *moment;
    const struct backup_partition *partition;
    bool repair;
    struct item_scope scope; /* of the current policy */
    uint32_t versions_from;  /* of the first definition in before */
    struct definition *const *before;
    size_t before_count;
    bool claims_change; /* a unique index is being built: who owns what is not settled */
    uint64_t numbering_lsn, numbering_counter;

    enum verify_phase phase;
    struct buf position;                /* the last key looked at in the phase */
    uint64_t expected[VERIFY_FAMILIES]; /* entries that items make */
    uint64_t missing[VERIFY_FAMILIES];  /* of those */
    uint64_t found[VERIFY_FAMILIES];
    struct arena *sums_arena; /* of the logical partition at hand */
    struct slice logical;
    struct verify_sum *sums;
    size_t sum_count;
    int64_t total[COUNTER_NUMBERS]; /* of the physical partition */
    uint64_t history_mark;          /* records up to this time are about to go */
    int64_t history_counted[COUNTER_NUMBERS];
    struct verify_figures figures;
    bool resident_known;
    struct node_table *table; /* owned; NULL: no rule of the container is resident */

    const struct verify_sink *sink; /* while a step runs */
    struct arena *arena;            /* of what is looked at together */
};

/* An item and all that it makes; in the arena. */
struct verify_item {
    struct item item;
    struct write_set_change change;
    struct write_set *set;
    struct commit_part part;
};

/* Takes a stored item apart and builds what it makes. False with ERROR_STORE_CORRUPT and its kin:
 * it is damaged. */
NODISCARD bool verify_item_build(const struct verify *verify, struct slice key, struct slice stored,
                                 struct arena *arena, struct verify_item *ret_item,
                                 struct error *err);

/* Is the stored value what the operation puts? Records of the feed know more than items do. */
bool verify_value_fits(const struct engine_op *op, struct slice stored,
                       const struct item_header *header);

void verify_tell(struct verify *verify, enum verify_kind kind, struct slice key, const char *format,
                 ...) PRINTF_LIKE(4, 5);

/* Names the entries of a family that no item makes. *ret_finished: the family is done. */
NODISCARD bool verify_surplus_step(struct verify *verify, uint8_t family, size_t entries_max,
                                   size_t *ret_looked, bool *ret_finished, struct error *err);

/* Is it an entry that lies elsewhere than its item? */
bool verify_is_placed(const struct verify *verify, struct slice key);
/* Looks up those that an item makes. */
NODISCARD bool verify_placed_check(struct verify *verify, const struct verify_item *item,
                                   struct error *err);
/* Looks for the item of one that was found. */
NODISCARD bool verify_placed_look(struct verify *verify, struct slice key, struct error *err);

/* Maps, and migrations under way, against resident rules. */
NODISCARD bool verify_resident_maps(const struct backup_moment *moment,
                                    const struct verify_sink *sink, size_t *ret_count,
                                    struct error *err);
/* Before the first item of a partition of a container. */
NODISCARD bool verify_resident_begin(struct verify *verify, struct error *err);
/* May an item be on its node? stored_key: with its family. */
void verify_resident_item(struct verify *verify, struct slice stored_key);

/* Goes on through the history of a node's changes. */
NODISCARD bool verify_history_step(struct verify *verify, size_t entries_max, size_t *looked,
                                   struct error *err);

/* Puts what the item of this key makes and lacks, and deletes an entry that it does not make
 * (surplus.data NULL: none), as things are now. */
NODISCARD bool verify_repair_item(struct verify *verify, struct slice item_key,
                                  struct slice surplus, struct error *err);
/* Adds to a sum what it lacks. */
NODISCARD bool verify_repair_sum(struct verify *verify, struct slice key, const int64_t *lacks,
                                 struct error *err);
