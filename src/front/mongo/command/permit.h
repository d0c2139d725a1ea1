/* Permission: what a user that was made by createUser may do, by the roles it has. Whoever came in
 * by a key of the account, or needs none (--dev), is not asked here. */
#pragma once

#include "front/mongo/command/call.h"

/* On the loop, before a command of a session that a user opened: looks whether it is still the same
 * user with the same password, and what its roles give now. MONGO_REAUTHENTICATION_REQUIRED. */
NODISCARD bool mongo_permit_refresh(struct mongo_call *call, struct error *err);

/* May the session's user run the command? MONGO_UNAUTHORIZED. */
NODISCARD bool mongo_permit_check(const struct mongo_call *call, struct error *err);

/* May it do this there? True of whoever is no user. */
bool mongo_permit_allows(const struct mongo_call *call, enum mongo_action action,
                         struct slice database, struct slice collection);

/* May it read or write anything there? */
bool mongo_permit_touches(const struct mongo_call *call, struct slice database,
                          struct slice collection);

/* The same for what is of no database. */
bool mongo_permit_cluster(const struct mongo_call *call, enum mongo_action action);

/* MONGO_UNAUTHORIZED, in MongoDB's words. */
bool mongo_permit_refuse(const struct mongo_call *call, struct error *err);
