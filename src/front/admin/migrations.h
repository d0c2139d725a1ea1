/* Migrations as administration shows them: an object with its id, what becomes of what, and how far
 * it is. */
#pragma once

#include "container/catalogue_migration.h"
#include "front/rest/call.h"

/* Appends the migration a container has. */
void admin_migration_append(struct rest_call *call, const struct container *container);

/* Turns what the migrator refused into the words of administration. Returns false. */
bool admin_migration_refused(struct error *err);
