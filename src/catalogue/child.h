/* Catalogue children: the small resources below databases and containers: users with their
 * permissions, client encryption keys, and scripts (stored procedures, triggers, user-defined
 * functions), which are only kept here.
 *
 * All are of one make: a name, a number and rid that nobody gets again, etag and time, and a BSON
 * body, checked and kept as it was given. What readers hold is an immutable state, as of
 * containers. Dropping a parent drops its children.
 *
 * The children of one kind in one parent are an immutable balanced tree, ordered by id and a second
 * time by number. Opening one takes O(log n) steps. A change copies O(log n) nodes of those trees,
 * and besides what any change of a container copies: its database's list of containers, its
 * account's list of databases, the list of accounts. No list of siblings is copied. */
#pragma once

#include "catalogue/catalogue.h"

enum child_kind {
    CHILD_USER,           /* of a database */
    CHILD_ENCRYPTION_KEY, /* of a database */
    CHILD_PERMISSION,     /* of a user */
    CHILD_PROCEDURE,      /* of a container, like the two below */
    CHILD_TRIGGER,
    CHILD_FUNCTION,
};

enum { CHILD_KINDS = 6, CHILD_SCRIPT_KINDS = 3 };

/* "user", "permission", "stored procedure" and so on, for messages. */
const char *child_kind_name(enum child_kind kind);

/* Where children are; every part by name or by rid. */
struct child_place {
    enum child_kind kind;
    struct slice account, database;
    struct slice parent; /* the container of scripts, the user of permissions; else not looked at */
};

struct catalogue_child; /* opaque, shared, immutable: one state of one child */

/* body: valid BSON as a client sent it. System properties (`_rid`, `_self`, `_etag`, `_ts`,
 * `_lsn`, `_permissions`, `_token`) are left out, everything else is kept as it is. It must have
 *
 *     all                    id, under the same rules as a container's
 *     permission             permissionMode: read or all in any case; resource: a link that is not
 *                            empty; resourcePartitionKey, if given, an array
 *     client encryption key  encryptionAlgorithm and wrappedDataEncryptionKey, texts that are not
 *                            empty; keyWrapMetadata, an object
 *     script                 body, a text
 *     trigger                triggerType: Pre or Post; triggerOperation: All, Create, Update,
 *                            Delete, Replace or Upsert; in any case
 *
 * ERROR_BAD_REQUEST names the property. ERROR_NAME_TAKEN, ERROR_OWNER_NOT_FOUND,
 * ERROR_LIMIT_REACHED, ERROR_TOO_LARGE. */
NODISCARD bool catalogue_child_create(struct catalogue *catalogue, const struct child_place *place,
                                      struct slice body, struct catalogue_child **ret_child,
                                      struct error *err);

/* Replaces the child of the body's id, which if_match (or SLICE_NONE) is asked of, else creates. */
NODISCARD bool catalogue_child_upsert(struct catalogue *catalogue, const struct child_place *place,
                                      struct slice body, struct slice if_match,
                                      struct catalogue_child **ret_child, bool *ret_created,
                                      struct error *err);

/* Users and permissions take the id of the body, whatever theirs was; of others it must be the
 * same. A user keeps its permissions. ERROR_NOT_FOUND, ERROR_PRECONDITION_FAILED. */
NODISCARD bool catalogue_child_replace(struct catalogue *catalogue, const struct child_place *place,
                                       struct slice id, struct slice body, struct slice if_match,
                                       struct catalogue_child **ret_child, struct error *err);
NODISCARD bool catalogue_child_drop(struct catalogue *catalogue, const struct child_place *place,
                                    struct slice id, struct slice if_match, struct error *err);

/* ERROR_NOT_FOUND, ERROR_OWNER_NOT_FOUND. The caller owns one reference. */
NODISCARD bool catalogue_child_open(struct catalogue *catalogue, const struct child_place *place,
                                    struct slice id, struct catalogue_child **ret_child,
                                    struct error *err);
struct catalogue_child *catalogue_child_ref(struct catalogue_child *child);
void catalogue_child_unref(struct catalogue_child *child); /* NULL is fine */
CLEANUP_FN(struct catalogue_child *, catalogue_child_unref)

/* The child with its body. Of scripts the states above have only names, and what triggers are
 * chosen by: their texts are in the store, and of those read of late in a cache. Blocks. What was
 * replaced meanwhile comes as it is now. ERROR_NOT_FOUND: it was dropped meanwhile. The caller owns
 * one reference. */
NODISCARD bool catalogue_child_whole(struct catalogue *catalogue, struct catalogue_child *child,
                                     struct catalogue_child **ret_whole, struct error *err);

/* A text that triggers are chosen by, which every state has: triggerType, triggerOperation. */
struct slice catalogue_child_trait(const struct catalogue_child *child, struct slice name);

/* Borrowed while the child is held. */
const struct catalogue_info *catalogue_child_info(const struct catalogue_child *child);
struct slice
catalogue_child_body(const struct catalogue_child *child); /* with its id; of a whole */
struct rid catalogue_child_rid(const struct catalogue_child *child);

/* --- All of a kind --------------------------------------------------------------------------- */

/* The children of one kind in one parent at one moment: opaque, shared, immutable. NULL is the one
 * without any, and good for every function here. */
struct catalogue_children;

/* ERROR_OWNER_NOT_FOUND. The caller owns one reference. */
NODISCARD bool catalogue_children_open(struct catalogue *catalogue, const struct child_place *place,
                                       struct catalogue_children **ret_children, struct error *err);
struct catalogue_children *catalogue_children_ref(struct catalogue_children *children);
void catalogue_children_unref(struct catalogue_children *children);
CLEANUP_FN(struct catalogue_children *, catalogue_children_unref)

size_t catalogue_children_count(const struct catalogue_children *children);

/* The child at a place in id order, in O(log n); borrowed. */
struct catalogue_child *catalogue_children_at(const struct catalogue_children *children,
                                              size_t index);

/* By name, else by rid if the text is one; NULL: there is none. Borrowed. */
struct catalogue_child *catalogue_children_find(const struct catalogue_children *children,
                                                struct slice id);

/* Those of a state that is held, borrowed from it. Users or encryption keys; scripts;
 * permissions. */
const struct catalogue_children *database_children(const struct database *database,
                                                   enum child_kind kind);
const struct catalogue_children *container_children(const struct container *container,
                                                    enum child_kind kind);
