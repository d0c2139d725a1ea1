/* Indexes of a container besides its policy: added, dropped and listed by whatever language has
 * words for them, and what the caretaker makes of them.
 *
 * An index that is added is building: from then on every write keeps its entries, and the caretaker
 * makes those of items that were there. No plan uses it and nothing is refused because of it until
 * it is ready; of one that failed nothing is left but the reason. */
#pragma once

#include "catalogue/caretaker.h"

/* index: BSON, in the words of index/definition_read.c. Adding what is there already does nothing.
 * ERROR_BAD_REQUEST, ERROR_NOT_SUPPORTED; ERROR_NAME_TAKEN: another index has its name; ERROR_BUSY:
 * too many are being built or removed. */
NODISCARD bool catalogue_index_add(struct catalogue *catalogue, struct slice account,
                                   struct slice database, struct slice id, struct slice index,
                                   struct error *err);

/* Its entries are removed behind the call. ERROR_NOT_FOUND, ERROR_BUSY. */
NODISCARD bool catalogue_index_drop(struct catalogue *catalogue, struct slice account,
                                    struct slice database, struct slice id, struct slice name,
                                    struct error *err);

/* Several at once, as one change: those of these names go, then these are added; one that goes and
 * comes back with the same entries is not built again. ERROR_NAME_TAKEN also where two that are
 * added have one name. */
struct catalogue_index_change {
    const struct slice *drop; /* names; those that are not there are passed over */
    size_t drop_count;
    const struct slice *add; /* BSON, as above */
    size_t add_count;
};

NODISCARD bool catalogue_indexes_change(struct catalogue *catalogue, struct slice account,
                                        struct slice database, struct slice id,
                                        const struct catalogue_index_change *asked,
                                        struct error *err);

struct catalogue_index {
    const struct index_definition *definition; /* its state too */
    struct slice document;                     /* BSON: as it is shown; of one that failed, why */
    unsigned progress;                         /* 0 to 100: of its items */
};

/* All of them, in the arena; good while the container is held. caretaker NULL: no progress is
 * known.
 */
struct catalogue_index *catalogue_indexes(struct container *container, struct caretaker *caretaker,
                                          struct arena *arena, size_t *ret_count);

/* --- For the caretaker ----------------------------------------------------------------------- */

/* All items are indexed by the container's policy: policies before can go, and indexes that were
 * building are ready. *ret_conflicts: not so, for items stand in the way of a unique one. Nothing
 * happens if the container has moved on to a later policy. ERROR_NOT_FOUND. */
NODISCARD bool catalogue_indexes_settle(struct catalogue *catalogue, struct slice account,
                                        struct slice database, struct slice id,
                                        uint32_t policy_version, bool *ret_conflicts,
                                        struct error *err);

/* Lists the conflicts of every unique index that is being built and has some, and gives these up.
 */
NODISCARD bool catalogue_indexes_give_up(struct catalogue *catalogue, struct slice account,
                                         struct slice database, struct slice id, struct error *err);

/* Gives up one of them, for this reason. Nothing happens if it is not being built. */
NODISCARD bool catalogue_index_fail(struct catalogue *catalogue, struct slice account,
                                    struct slice database, struct slice id, struct slice name,
                                    const char *reason, struct error *err);
