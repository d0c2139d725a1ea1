/* Migrations as administration shows them: an object with its id, what becomes of what, and how far
 * it is. */
#pragma once

#include "catalogue/migration.h"
#include "front/admin/call.h"

/* Appends the migration a container has. */
void admin_migration_append(struct admin_call *call, const struct container *container);

/* Turns what the migrator refused into the words of administration. Returns false. */
bool admin_migration_refused(struct error *err);

/* Answers with the migration that has begun; not fine: with the error, as administration says it.
 */
NODISCARD bool admin_migration_begun(struct admin_call *call, const struct container *container,
                                     bool fine, struct error *err);

/* ERROR_NOT_SUPPORTED: the server has no migrator. */
NODISCARD bool admin_migrator_need(const struct admin_call *call, struct error *err);

/* Answers with what would be begun; not fine: with the error. planned: written by who made it. */
NODISCARD bool admin_plan_show(struct admin_call *call, const struct container *container,
                               bool fine, struct migration *const *planned, struct error *err);

/* Appends the same, an object that is not closed. plan NULL: nothing would move. moved: of each
 * span of the container's map the bytes that come to it less those that leave, where targets are
 * the sources again; NULL: targets divide what the sources hold. */
NODISCARD bool admin_plan_append(struct admin_call *call, const struct container *container,
                                 const struct migration *plan, enum migration_kind kind,
                                 const int64_t *moved, struct error *err);
