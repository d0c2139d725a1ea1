/* Mover: carries the bytes of a migration from its sources to its targets.
 *
 * The order of calls is the migrator's: copy until done, catch up until the lag is small, fence,
 * catch up until nothing is left, finish; clean when the map is published. Each may fail and be
 * begun again with another mover, also after a crash: how far it is stands in the targets.
 *
 * Where the migration comes with another definition, entries are rewritten on the way
 * (mover_reroute.c); one without targets carries nothing and only sees to it that nothing had to be
 * carried. A re-key gives items other keys, so it carries items instead of entries (mover_rekey.c).
 *
 * The journals of the sources are on from the first mover of a migration to its end; after a
 * restart the catalogue switches them on before anybody can write. One thread at a time. */
#pragma once

#include "cluster/cluster.h"
#include "definition/migration.h"
#include "item/items.h"

struct mover; /* opaque, owned */

struct mover_options {
    const struct cluster *cluster;  /* borrowed */
    struct migration *migration;    /* a reference is taken */
    struct definition *definition;  /* of the container now; a reference is taken */
    struct partition_map *map;      /* that the sources are in; a reference is taken */
    const struct item_space *space; /* of a rekey: the container now; copied, and what it borrows
                                       outlives the mover */
    size_t chunk_bytes;             /* read in one go; 0: 256 KB */
    size_t load_bytes; /* written at once where nodes can; then journals are followed; 0: 16 MB */
    size_t round_keys; /* of the journal in one go; 0: 4096 */
};

/* Switches the journals on and reads how far an earlier mover has come. ERROR_CONFIGURATION: a node
 * is not here. */
NODISCARD bool mover_new(const struct mover_options *options, struct mover **ret_mover,
                         struct error *err);
void mover_free(struct mover *mover); /* NULL is fine */
CLEANUP_FN(struct mover *, mover_free)

/* Was a source fenced when the mover was made? Then writers are waiting. */
bool mover_is_fenced(const struct mover *mover);

/* Is a node of it so far behind with work it has put off, such as merging files, that copying on
 * would make its clients wait? Never for long. */
bool mover_must_rest(struct mover *mover, int64_t now_ms);

/* Copies one chunk, or follows the journals for a round. *ret_done: there is nothing left to copy.
 */
NODISCARD bool mover_copy(struct mover *mover, bool *ret_done, struct error *err);

/* One round over the journals of all sources: *ret_keys of them were looked at. 0: the targets
 * are what the sources were when the round began. */
NODISCARD bool mover_catch_up(struct mover *mover, size_t *ret_keys, struct error *err);

/* How many transactions the sources have had so far, and up to which of them the targets have
 * caught up; sums of LSNs, so that only their growth tells something. */
struct mover_race {
    uint64_t written, caught_up;
};
NODISCARD bool mover_race(const struct mover *mover, struct mover_race *ret_race,
                          struct error *err);

/* Of a rekey: items that cannot be carried, because they would meet another one or have no key. */
struct mover_conflicts {
    size_t count;
    uint64_t logical_full; /* logical partitions over their limit, as last counted */
};
struct mover_conflicts mover_conflicts(const struct mover *mover);

/* Counts logical partitions of the targets that are over their limit. Of a rekey; slow. */
NODISCARD bool mover_count_full(struct mover *mover, struct error *err);

/* Appends the conflicts as the members of a JSON array, at most max of them. For whoever shows
 * them: from any thread, without a mover. */
NODISCARD bool mover_conflicts_show(const struct cluster *cluster,
                                    const struct migration *migration, size_t max, struct buf *json,
                                    size_t *ret_count, struct error *err);

/* Lets writers of the sources wait for so long, a second at most; 0: no longer. */
NODISCARD bool mover_hold(struct mover *mover, int64_t ms, struct error *err);

/* Before the fence: no source has promised parts of transactions over several nodes, nor does so
 * for a while. ERROR_PLEDGED: one has, and waits for another node. */
NODISCARD bool mover_unpledge(struct mover *mover, struct error *err);

/* From here on no write of a source succeeds. May be called again. */
NODISCARD bool mover_fence(struct mover *mover, struct error *err);

/* Numbering, sums and marks of the targets, behind a fence and when nothing is left to catch up.
 * ERROR_RANGES_BROKEN: there are no targets, and yet something would have to be carried.
 * ERROR_REKEY_CONFLICTS: items cannot be carried. */
NODISCARD bool mover_finish(struct mover *mover, struct error *err);

/* Removes what reminds of copying from the first target. */
NODISCARD bool mover_clean(struct mover *mover, struct error *err);

/* Was a key of this range of routing keys ever used in a partition? */
NODISCARD bool mover_range_used(struct engine *engine, uint32_t partition,
                                struct partition_range range, struct arena *arena, bool *ret_used,
                                struct error *err);

/* What this mover has done. */
struct mover_figures {
    uint64_t bytes, items; /* copied */
    uint64_t keys;         /* caught up with */
};
struct mover_figures mover_figures(const struct mover *mover);
