/* Users and roles in commands: what they share. */
#pragma once

#include "front/mongo/command/arguments.h"
#include "front/mongo/command/permit.h"

/* [{role, db}] of a list of names and {role, db}, in the arena; each is there.
 * MONGO_ROLE_NOT_FOUND. grant: the session's user may grant each. */
NODISCARD bool mongo_roles_read(struct mongo_call *call, const struct mongo_directory *directory,
                                struct slice array, enum mongo_action need, struct slice *ret_roles,
                                struct error *err);
/* The first list with those of the second, or without them. */
struct slice mongo_roles_merge(struct mongo_call *call, struct slice roles, struct slice others,
                               bool without);

/* Begins a change of the account's directory. Ended with mongo_directory_change_end. */
NODISCARD bool mongo_users_change(struct mongo_call *call, struct mongo_directory **ret_directory,
                                  struct error *err);

/* A record with other members: those named in fields are replaced, absent ones kept. */
struct mongo_member {
    struct slice name;
    struct document_value value; /* undefined: it is left out */
};
struct slice mongo_record_with(struct mongo_call *call, struct slice record,
                               const struct mongo_member *members, size_t count);
