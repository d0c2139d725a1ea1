/* Migrator: carries out migrations, and begins those that limits ask for. One thread, in small
 * steps, so that requests hardly notice; whatever it was doing when the process ended it takes up
 * again.
 *
 * A container splits by itself when a physical partition holds more than partition.bytes_max, and
 * when its throughput is more than its partitions may give. Merging, moving and isolating are done
 * on request. */
#pragma once

#include "catalogue/catalogue.h"
#include "definition/rekey.h"
#include "definition/strategy.h"
#include "item/meters.h"
#include "partition/key.h"

struct migrator; /* opaque, owned */

struct migrator_options {
    struct catalogue *catalogue; /* borrowed; outlives it */
    struct meters *meters;       /* borrowed; for the heat of spans; NULL: it is not known */
    const struct clock *clock;   /* borrowed; NULL: the system's */
    struct log *log;             /* borrowed; NULL: silent */
    uint64_t bytes_per_second;   /* of copying; 0: as fast as it goes */
    struct bell *bell;           /* rung by commits; borrowed. NULL: looks never wait for it */
    int64_t pause_ms; /* between looks at limits while things happen, and after failures; 0: 1000 */
    size_t chunk_bytes; /* of one step; 0: 256 KB */
    size_t load_bytes;  /* that are written at once, if nodes can (mover.h); 0: 16 MB */
    size_t round_keys;  /* of the journal in one step; 0: 4096 */
    size_t lag_keys;    /* the fence comes when a round is not larger; 0: 512 */
    bool splits_off;    /* begins nothing by itself */
    bool by_hand;       /* no thread: the test calls migrator_round */

    /* The targets of a container's migration are complete, and will be used in a moment. NULL:
     * nobody. */
    void (*publishing)(const struct container *container, void *context);
    /* A container has another map: for whoever hands out throughput. NULL: nobody. */
    void (*published)(struct container *container, void *context);
    /* A container has other shares, or by a promotion other partitions of its own, without a
     * migration: likewise. NULL: nobody. */
    void (*shared)(struct container *container, void *context);
    /* The last one who used the sources of its migration is done with them; they go next. May be
     * called again for the same. NULL: nobody. */
    void (*leaving)(const struct container *container, void *context);
    /* A partition is gone, and nobody uses it any more. NULL: nobody. */
    void (*dropped)(uint32_t partition, void *context);
    void *context;
};

struct migrator *migrator_new(const struct migrator_options *options);
/* What is under way stays as it is, for the next start. */
void migrator_free(struct migrator *migrator); /* NULL is fine */
CLEANUP_FN(struct migrator *, migrator_free)

/* --- On request ------------------------------------------------------------------------------ */

/* Each begins a migration and returns; migrator_progress tells how it goes. Any state of the
 * container will do. Errors as catalogue_migration_begin says. */

/* Splits a partition into pieces of about as many bytes each; where there are too few logical
 * partitions for that, evenly. weights: of each piece, for its share of the throughput; NULL: by
 * its heat (heat_shares.h), or even where that is not known. ERROR_BAD_REQUEST: it cannot be cut so
 * often. */
NODISCARD bool migrator_split(struct migrator *migrator, const struct container *container,
                              uint32_t partition, size_t pieces, const double *weights,
                              struct error *err);

/* Splits a partition in two of about as much heat each, by the last minutes. ERROR_BAD_REQUEST: its
 * heat is not known, or cannot be divided. */
NODISCARD bool migrator_split_heat(struct migrator *migrator, const struct container *container,
                                   uint32_t partition, struct error *err);

/* Gives the spans of a container, in key order, other shares of its throughput, at once and without
 * moving anything. Errors as catalogue_shares_set says. */
NODISCARD bool migrator_share(struct migrator *migrator, const struct container *container,
                              const double *shares, size_t count, struct error *err);

/* Merges neighbours; the result is where the first of them in key order was. ERROR_BAD_REQUEST: the
 * throughput needs as many as there are. */
NODISCARD bool migrator_merge(struct migrator *migrator, const struct container *container,
                              const uint32_t *partitions, size_t count, struct error *err);

/* Moves a partition to another node, by the number the catalogue knows it by. */
NODISCARD bool migrator_move(struct migrator *migrator, const struct container *container,
                             uint32_t partition, uint32_t node, struct error *err);

/* Gives a partition key value, or all that begin with a partial one, a partition of their own.
 * heat: its part of what the partition spends now, above 0 and below 1; 0: as measured, with more
 * from partitions that have it to spare; by its size where that is not known.
 * ERROR_BAD_REQUEST: it is alone already, or in several partitions. */
NODISCARD bool migrator_isolate(struct migrator *migrator, const struct container *container,
                                const struct partition_key *key, double heat, struct error *err);

/* Makes another container of the same database that holds what this one does when it is published,
 * items with their times and etags; the map is the same, and so are definition and throughput.
 * Scripts are not copied. ERROR_NAME_TAKEN. ERROR_LIMIT_REACHED: it has more than
 * MIGRATION_SOURCES_MAX partitions. ERROR_PROMOTION_UNFIT: one of its keys is promoted. */
NODISCARD bool migrator_copy(struct migrator *migrator, const struct container *container,
                             struct slice id, struct error *err);

/* Each does what the one above of its name does, but begin it: *ret_plan is what would be, a
 * reference. Its targets may get other ids. */
NODISCARD bool migrator_split_plan(struct migrator *migrator, const struct container *container,
                                   uint32_t partition, size_t pieces, struct migration **ret_plan,
                                   struct error *err);
NODISCARD bool migrator_merge_plan(struct migrator *migrator, const struct container *container,
                                   const uint32_t *partitions, size_t count,
                                   struct migration **ret_plan, struct error *err);
NODISCARD bool migrator_move_plan(struct migrator *migrator, const struct container *container,
                                  uint32_t partition, uint32_t node, struct migration **ret_plan,
                                  struct error *err);
NODISCARD bool migrator_isolate_plan(struct migrator *migrator, const struct container *container,
                                     const struct partition_key *key, struct migration **ret_plan,
                                     struct error *err);
NODISCARD bool migrator_copy_plan(struct migrator *migrator, const struct container *container,
                                  struct slice id, struct migration **ret_plan, struct error *err);

/* Spreads a whole key over parts by the ids of its items, or gathers it again into a partition of
 * its own. *ret_plan: tried out, and nothing begins; NULL: it begins. ERROR_BAD_REQUEST: it is
 * spread, or is not, or has too few items, or too many bytes for one partition.
 * ERROR_NOT_SUPPORTED: the container has something that takes whole keys. */
NODISCARD bool migrator_spread(struct migrator *migrator, const struct container *container,
                               const struct partition_key *key, size_t parts,
                               struct migration **ret_plan, struct error *err);
NODISCARD bool migrator_gather(struct migrator *migrator, const struct container *container,
                               const struct partition_key *key, struct migration **ret_plan,
                               struct error *err);

/* How long the throttle lets so many bytes take to be copied; 0: there is none. */
int64_t migrator_copy_ms(const struct migrator *migrator, uint64_t bytes);

/* Cuts a partition where a range begins and ends, as far as that is within it, so that the range
 * has partitions of its own. They stay where they are. ERROR_BAD_REQUEST: the range holds all of
 * it, or nothing. */
NODISCARD bool migrator_carve(struct migrator *migrator, const struct container *container,
                              uint32_t partition, const struct partition_range *range,
                              struct error *err);
/* Changes lines of the directory of a container whose strategy is lookup. The items of keys that
 * belong elsewhere then are carried there, and the directory is published with the map. Nothing is
 * carried if no such key was ever used; if every key stays where it is, the directory is changed
 * when the call returns. ERROR_BAD_REQUEST: it has no directory, an edit cannot be, or is not
 * within limits. */
NODISCARD bool migrator_reroute(struct migrator *migrator, const struct container *container,
                                const struct definition_directory_change *edits, size_t count,
                                struct error *err);
/* The same, tried out: the definition it would get, and the plan, NULL where every key stays where
 * it is; both are references. A plan without targets carries nothing: no such key was ever used. */
NODISCARD bool migrator_reroute_plan(struct migrator *migrator, const struct container *container,
                                     const struct definition_directory_change *edits, size_t count,
                                     struct definition **ret_definition,
                                     struct migration **ret_plan, struct error *err);

/* Gives a container another partition key, synthetic key or strategy, under its name. Items that
 * cannot be carried are conflicts, and with any the switch waits until they are resolved.
 * allows_missing: items without a value for the new key are no conflict. Where keys are others,
 * clients that name the ones before are understood until migrator_grace_end. ERROR_BAD_REQUEST: the
 * definition cannot be so, or is the one it has. ERROR_LIMIT_REACHED: it has, or would need, too
 * many physical partitions. */
NODISCARD bool migrator_rekey(struct migrator *migrator, const struct container *container,
                              const struct definition_rekey *rekey, bool allows_missing,
                              struct error *err);

/* What a rekey would come to. */
enum { MIGRATOR_SHOWN_MAX = 20 }; /* conflicts of each kind */
struct migrator_estimate {
    bool complete;         /* every item was looked at; else figures are of those that were */
    uint64_t items, bytes; /* looked at */
    uint64_t items_total, bytes_total; /* in the container, as far as known */
    uint64_t bytes_needed; /* on disk while both are there: entries of items and indexes */
    size_t partitions;     /* afterwards */
    uint64_t sampled;      /* items that were copied, into memory, to measure */
    int64_t duration_ms;   /* of copying, by the sample and the throttle */
    uint64_t invalid, missing, same; /* conflicts; same: items beyond the first with a key and id */
    uint64_t unique;                 /* likewise with a unique key */
    uint64_t logical_full;           /* logical partitions over their limit */
    unsigned same_one_in;            /* keys were compared of one item in so many */
};

/* Looks at items for at most so long and writes nothing. The first conflicts of each kind are
 * appended to json as members of an array. Blocks. Errors as migrator_rekey. */
NODISCARD bool migrator_rekey_estimate(struct migrator *migrator, struct container *container,
                                       const struct definition_rekey *rekey, bool allows_missing,
                                       int64_t max_ms, struct buf *json,
                                       struct migrator_estimate *ret_estimate, struct error *err);

/* From here on the keys before the last rekey are understood no longer. ERROR_BAD_REQUEST: there is
 * no such time. ERROR_BUSY: a migration is under way. */
NODISCARD bool migrator_grace_end(struct migrator *migrator, const struct container *container,
                                  struct error *err);

/* --- Promotions (catalogue_promotion.h has what they are) --------------------------------------
 */

/* Gives a key of the origin a container of its own: ties them, isolates the key if it is not alone
 * in its physical partition, and hands that over as soon as it is. Errors as
 * catalogue_promotion_begin says. */
NODISCARD bool migrator_promote(struct migrator *migrator, const struct container *origin,
                                const struct container *own, const struct partition_key *key,
                                struct error *err);

/* Makes the origin home again, ends the grace period, cuts the tie; all at once. What is still in
 * preparation is taken back by forgetting it, its isolation included. Errors as
 * catalogue_promotion_back, _end and _forget say. */
NODISCARD bool migrator_demote(struct migrator *migrator, const struct container *tied,
                               const struct promotion *promotion, struct error *err);
NODISCARD bool migrator_promotion_end(struct migrator *migrator, const struct container *tied,
                                      const struct promotion *promotion, struct error *err);
NODISCARD bool migrator_promotion_forget(struct migrator *migrator, const struct container *tied,
                                         const struct promotion *promotion, struct error *err);

/* Why a promotion in preparation was not done at the last try, as text in the arena; empty: it
 * waits for its isolation, or has not been tried. */
struct slice migrator_promotion_obstacle(struct migrator *migrator,
                                         const struct promotion *promotion, struct arena *arena);

/* Takes it back. ERROR_BUSY: its map is published. ERROR_BAD_REQUEST: there is none. */
NODISCARD bool migrator_cancel(struct migrator *migrator, const struct container *container,
                               struct error *err);

/* --- How it goes ----------------------------------------------------------------------------- */

enum migrator_phase {
    MIGRATOR_PLANNED,
    MIGRATOR_COPYING,
    MIGRATOR_CATCHING_UP,
    MIGRATOR_FENCED,
    MIGRATOR_DROPPING, /* the new map is published */
};
const char *migrator_phase_name(enum migrator_phase phase);

enum { MIGRATOR_ERROR_MAX = ERROR_MESSAGE_SIZE };

struct migrator_progress {
    uint32_t id; /* migration_id */
    enum migration_kind kind;
    enum migrator_phase phase;
    uint64_t bytes, items; /* copied by this process */
    uint64_t bytes_total;  /* of items in the sources when it began */
    uint64_t keys;         /* of the journal, caught up with */
    unsigned pressure;     /* writers have a 2^pressure-th of the time while it catches up */
    uint64_t
        conflicts; /* of a rekey: items that cannot be carried; with any nothing is published */
    uint64_t logical_full; /* likewise: logical partitions over their limit under the new key */
    int64_t pause_ms;      /* that writers waited; -1: not yet */
    int64_t elapsed_ms;    /* since this process took it up */
    unsigned failures;     /* steps that failed and are tried again */
    char error[MIGRATOR_ERROR_MAX]; /* what the last of them said; empty: none has */
};

/* False: no migration of that container is under way. */
NODISCARD bool migrator_progress(struct migrator *migrator, const struct container *container,
                                 struct migrator_progress *ret_progress);

/* Holds all migrations before their next step, and begins none by itself, or goes on. One whose
 * writers wait behind a fence is finished first. A new process is not paused. */
void migrator_pause(struct migrator *migrator, bool paused);
bool migrator_is_paused(struct migrator *migrator);

/* One that is over. The last MIGRATOR_OUTCOMES are remembered. */
enum { MIGRATOR_OUTCOMES = 64 };
struct migrator_outcome {
    uint32_t account;                 /* number */
    struct slice database, container; /* ids; in the arena */
    bool cancelled;
    int64_t ended_ms; /* wall clock */
    struct migrator_progress progress;
};

/* The latest first, in the arena. */
struct migrator_outcome *migrator_outcomes(struct migrator *migrator, struct arena *arena,
                                           size_t *ret_count);

/* What all of them came to, since the process began. */
struct migrator_statistics {
    uint64_t done[MIGRATION_KINDS], cancelled;
    uint64_t bytes, items;
    int64_t pause_ms_max, pause_ms_last;
};
struct migrator_statistics migrator_statistics(struct migrator *migrator);

/* One step of every migration under way, and a look at the limits if it is time. *ret_busy: there
 * is more to be done at once. For tests; the thread calls nothing else. */
NODISCARD bool migrator_round(struct migrator *migrator, bool *ret_busy, struct error *err);

/* --- Decisions ------------------------------------------------------------------------------- */

/* What is known of a span. */
struct migrator_figures {
    uint64_t bytes; /* of items */
    double share;   /* of the throughput */
    double reach;   /* of the load it is to meet, by the keys that come to it; 0: not known */
    bool whole;     /* it was found to be indivisible lately */
};

struct migrator_choice {
    bool wanted;
    bool by_bytes; /* else by throughput */
    size_t span;   /* index */
    size_t pieces;
};

/* Which span, if any, is to be split next: the fullest above bytes_max, else, while there are fewer
 * than count_wanted, the one with the largest share or reach; never beyond count_max. */
struct migrator_choice migrator_decide(const struct migrator_figures *figures, size_t count,
                                       uint64_t bytes_max, size_t count_wanted, size_t count_max);

/* How long to wait after copying so many bytes. */
int64_t migrator_throttle_ms(uint64_t bytes, uint64_t bytes_per_second);
