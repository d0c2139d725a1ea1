/* Privileges: what somebody may do, and to what; and the roles that MongoDB has built in.
 *
 * A resource is a namespace, the cluster, or anything. An empty name of a database or a collection
 * stands for all of them. Plain values; nothing here knows who anybody is. */
#pragma once

#include "base/arena.h"
#include "document/bson.h"

enum mongo_action {
#define MONGO_ACTION(name, text) MONGO_ACTION_##name,
#include "front/mongo/auth/actions.def"
#undef MONGO_ACTION
    MONGO_ACTIONS
};

struct mongo_actions {
    uint64_t bits[2];
};

const char *mongo_action_name(enum mongo_action action);
/* False: there is none of that name. */
bool mongo_action_find(struct slice name, enum mongo_action *ret_action);
void mongo_actions_add(struct mongo_actions *actions, enum mongo_action action);
/* anyAction is all of them. */
bool mongo_actions_have(const struct mongo_actions *actions, enum mongo_action action);
bool mongo_actions_cover(const struct mongo_actions *all, const struct mongo_actions *some);

enum mongo_resource_kind { MONGO_RESOURCE_NAMESPACE, MONGO_RESOURCE_CLUSTER, MONGO_RESOURCE_ANY };

struct mongo_resource {
    enum mongo_resource_kind kind;
    struct slice database, collection; /* "": all */
};

struct mongo_privilege {
    struct mongo_resource resource;
    struct mongo_actions actions;
};

/* A list that grows in an arena. */
struct mongo_privileges {
    struct arena *arena;
    struct mongo_privilege *list;
    size_t count, capacity;
};

/* One more, or more actions on a resource that is there. */
void mongo_privileges_add(struct mongo_privileges *privileges,
                          const struct mongo_privilege *privilege);
/* Takes these actions on the resource from the list; nothing happens where it is not there. */
void mongo_privileges_remove(struct mongo_privileges *privileges,
                             const struct mongo_privilege *privilege);
/* May this be done to that? A resource of a whole database is collection "". */
bool mongo_privileges_allow(const struct mongo_privileges *privileges, enum mongo_action action,
                            const struct mongo_resource *resource);
/* Is anything allowed in the database? */
bool mongo_privileges_touch(const struct mongo_privileges *privileges, struct slice database);

/* [{resource, actions}, ...] as rolesInfo and connectionStatus show them. */
void mongo_privileges_append(const struct mongo_privileges *privileges, struct slice name,
                             struct buf *out);
/* Reads such a list. MONGO_FAILED_TO_PARSE, MONGO_BAD_VALUE. */
NODISCARD bool mongo_privileges_read(struct slice array, struct mongo_privileges *privileges,
                                     struct error *err);

/* Adds what a built-in role gives in a database. False: there is none of that name there. */
bool mongo_role_builtin(struct slice role, struct slice database,
                        struct mongo_privileges *privileges);
/* The names of those that a database has, up to the count. */
const char *mongo_role_builtin_name(size_t index, struct slice database);
