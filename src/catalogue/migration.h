/* Migrations in the catalogue: begun, published, ended, cancelled; and how those who hold an old
 * state of a container come to the new one.
 *
 * A container has one migration at a time, from the commit that begins it to the commit behind the
 * drop of its sources. Etag and time of the container stay as they are throughout. What happens in
 * between is the migrator's (migrator.h). Every call takes any state of the container and works on
 * the present one; ERROR_NOT_FOUND: it is gone. */
#pragma once

#include "catalogue/catalogue.h"

/* Makes the targets and commits the plan. *ret_container: the state with it, a reference. A reroute
 * with targets may take the place of one without, which found that it needs them; the era of its
 * LSNs is filled in. ERROR_BUSY: another is under way, or, of a reroute, the map has changed since
 * the state it comes with. ERROR_LIMIT_REACHED: container.partitions_max. ERROR_NOT_SUPPORTED: a
 * container without a partition key is split. Else as migration_new. */
NODISCARD bool catalogue_migration_begin(struct catalogue *catalogue,
                                         const struct container *container,
                                         const struct migration_request *request,
                                         struct container **ret_container, struct error *err);

/* The plan that would be committed, a reference; nothing is made or changed, and its targets may
 * get other ids. Errors as those of beginning it; and of a node that does not serve. */
NODISCARD bool catalogue_migration_plan(struct catalogue *catalogue,
                                        const struct container *container,
                                        const struct migration_request *request,
                                        struct migration **ret_migration, struct error *err);

/* The targets are complete: the new map holds from here on. Nothing happens if it does already. */
NODISCARD bool catalogue_migration_publish(struct catalogue *catalogue,
                                           const struct container *container, struct error *err);

/* How many were, since the start: who has looked at this before taking a snapshot of a node, and
 * finds it the same when it opens a container, finds its partitions whole in the snapshot. */
uint64_t catalogue_maps_published(const struct catalogue *catalogue);

/* Drops what is left behind, and the migration is over: of a published one the sources, which
 * nobody reads any more; of a cancelled one the targets and the journals. */
NODISCARD bool catalogue_migration_end(struct catalogue *catalogue,
                                       const struct container *container, struct error *err);

/* Takes back what is not published; sources that were fenced are opened again. What is left goes
 * with catalogue_migration_end. No mover of it may be at work. ERROR_BAD_REQUEST: none is under
 * way. ERROR_BUSY: it is published. */
NODISCARD bool catalogue_migration_cancel(struct catalogue *catalogue,
                                          const struct container *container, struct error *err);

/* Opens the sources again that were fenced, and the migration goes on as if they never were: what
 * has to be settled before it can be published was found behind the fence. No mover of it may be at
 * work. ERROR_BAD_REQUEST: none is under way. */
NODISCARD bool catalogue_migration_unfence(struct catalogue *catalogue,
                                           const struct container *container, struct error *err);

/* The present state of a container; a reference. */
NODISCARD bool catalogue_container_reopen(struct catalogue *catalogue,
                                          const struct container *container,
                                          struct container **ret_container, struct error *err);

/* Is its map the last one published? */
bool container_is_current(const struct container *container);

/* Waits until a later map than that of this state is published; a reference. ERROR_FENCED: no
 * migration is under way that would bring one, or it takes too long. Blocks. */
NODISCARD bool container_renew(const struct container *container, struct container **ret_container,
                               struct error *err);

/* Commits another definition that places every key where the one before does; nothing moves. So is
 * a directory edited that no key is moved by, and the grace period behind a re-key ended.
 * ERROR_BUSY: a migration is under way. */
NODISCARD bool catalogue_directory_note(struct catalogue *catalogue,
                                        const struct container *container,
                                        const struct definition *definition, struct error *err);
/* Would it be refused now? Nothing is committed. */
NODISCARD bool catalogue_directory_notable(struct catalogue *catalogue,
                                           const struct container *container, struct error *err);
