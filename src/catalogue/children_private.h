/* Children from within: what a child and a tree of them are made of. */
#pragma once

#include "catalogue/child.h"

#include <stdatomic.h>

/* One allocation, its body included: an account may have a hundred thousand. */
struct catalogue_child {
    atomic_uint refs;
    enum child_kind kind;
    uint32_t rank;                          /* its place in the trees: children.c */
    uint32_t account, database, owner;      /* owner: container or user; 0: the database */
    struct catalogue_info info;             /* id is in the body, rid and etag are below */
    struct catalogue_children *permissions; /* of a user; a reference */
    char rid[RID_TEXT_SIZE];
    char etag[OFFER_ETAG_SIZE];
    uint32_t whole_len; /* of the body in its record, of which this has a part; 0: this is whole */
    struct slice body;
    uint8_t bytes[]; /* of the body */
};

/* A child not yet published: body is copied and has an id. Without number, rid and etag. */
struct catalogue_child *child_new(enum child_kind kind, uint32_t account, uint32_t database,
                                  uint32_t owner, struct slice body);
void child_stamp(struct catalogue_child *child, uint32_t number, uint64_t lsn, int64_t ts_ms);

/* What of a child stays in memory, which is taken over: itself, or for a script of more than some
 * hundred bytes one without most of its body. */
enum { CHILD_RESIDENT_BYTES = 512 };
struct catalogue_child *child_resident(struct catalogue_child *whole);

/* How long the body is, wherever it is. */
static inline size_t child_body_len(const struct catalogue_child *child)
{
    return child->whole_len ? child->whole_len : child->body.len;
}

/* Of all bodies. */
uint64_t children_bytes(const struct catalogue_children *children);

/* The same user with other permissions, which are taken over. */
struct catalogue_child *child_with_permissions(const struct catalogue_child *user,
                                               struct catalogue_children *permissions);

/* Another tree that shares what it can with the given one (which may be NULL and stays as it is).
 * put takes a reference of its own and replaces the child of that number, if there is one. */
NODISCARD struct catalogue_children *children_with(const struct catalogue_children *children,
                                                   struct catalogue_child *child);
NODISCARD struct catalogue_children *children_without(const struct catalogue_children *children,
                                                      const struct catalogue_child *child);

/* Puts one more into a tree nobody else holds, for loading; takes the child over. */
void children_load(struct catalogue_children **children, struct catalogue_child *child);

struct catalogue_child *children_find_id(const struct catalogue_children *children,
                                         struct slice id);
struct catalogue_child *children_find_number(const struct catalogue_children *children,
                                             uint32_t number);

/* A body that was checked, without system properties, and the name in it. */
struct child_body {
    struct slice bytes, id; /* in the arena */
};

NODISCARD bool child_body_check(const struct definition_limits *limits, enum child_kind kind,
                                struct slice body, struct arena *arena, struct child_body *ret_body,
                                struct error *err);
