/* Resident placement rules (cluster/placement.h): what keeps them true at every moment.
 *
 * Whoever makes a map, a definition or a table of nodes that would break one is refused, so that
 * nobody has to look when an item is written: the partition it is written to may hold it. */
#pragma once

#include "catalogue/catalogue.h"
#include "definition/migration.h"

struct catalogue_change; /* one under way */

/* May spans with keys of a container of this definition be on their nodes? ERROR_RESIDENCE: the
 * message names the rule and the node. */
NODISCARD bool catalogue_resident_check(struct catalogue *catalogue,
                                        const struct definition *definition,
                                        const struct partition_span *spans, size_t count,
                                        struct error *err);

/* May a container be made or become so? ERROR_RESIDENCE: rules do not hold where its items are, or
 * its index has entries that lie elsewhere. ERROR_BUSY: a migration is under way, whose sources
 * would be left behind for a while. ERROR_PROMOTION_BOUND; ERROR_VIEW_BOUND: its items are
 * elsewhere too. */
NODISCARD bool catalogue_resident_lets_create(const struct definition *definition,
                                              struct error *err);
NODISCARD bool catalogue_resident_lets_replace(struct catalogue *catalogue,
                                               const struct container *container,
                                               const struct definition *definition,
                                               struct error *err);

/* May the targets of a migration be where they are planned? Another definition that comes with it
 * must hold in the rest of the map, too. ERROR_RESIDENCE. */
NODISCARD bool catalogue_resident_lets_migrate(struct catalogue *catalogue,
                                               const struct container *container,
                                               const struct migration *migration,
                                               struct error *err);

/* May nodes be so? ERROR_RESIDENCE: a container relies on what they were. */
NODISCARD bool catalogue_resident_lets_change(struct catalogue_change *change,
                                              const struct node_table *table, struct error *err);

/* ERROR_VIEW_UNFIT: items of the source are bound to nodes that rows of the view are not. */
NODISCARD bool catalogue_resident_lets_view(const struct container *source,
                                            const struct definition_fields *view,
                                            struct error *err);

/* ERROR_PROMOTION_UNFIT. */
NODISCARD bool catalogue_resident_lets_promote(const struct container *container,
                                               struct error *err);
