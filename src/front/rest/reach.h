/* Reach: which resource a link or a route means, by numbers that nobody gets again, and whether the
 * permission on one covers the other.
 *
 * A permission on a resource covers it and what is below it. One on an item or script covers
 * besides what a client must read to get there: its container and that container's ranges. Two
 * things no permission covers: other permissions, whose answers carry tokens, and what is the
 * account's alone (offers, administration, the list of databases). */
#pragma once

#include "catalogue/catalogue.h"
#include "front/rest/operation.h"

struct rest_call;

struct rest_reach {
    enum rest_resource resource;
    bool single;
    bool by_rid;       /* an item named by its rid */
    uint32_t database; /* numbers of the catalogue; 0: it is not there */
    uint32_t owner;    /* the container, user or client encryption key */
    uint64_t number;   /* of a script */
    struct slice id;   /* of an item */
};

/* What the route means in the call's account. *ret_container is a reference where it is a container
 * or something below one that exists, else NULL. */
struct rest_reach rest_reach_of_route(struct rest_call *call, const struct rest_route *route,
                                      struct container **ret_container);

/* What a link in a permission means: "dbs/d/colls/c", of names or of rids, with escapes or without,
 * slashes around it or not. database is 0 when it names nothing a permission can be given on. */
struct rest_reach rest_reach_of_link(struct rest_call *call, struct slice link);

/* The same of a link that may be to an item, with its container: a reference, or NULL where it is
 * to something else or leads nowhere. *ret_item: it is to an item, be that there or not. */
struct rest_reach rest_reach_of_item_link(struct rest_call *call, struct slice link,
                                          struct container **ret_container, bool *ret_item);

/* Whether the permission on the first reaches the second for this operation. */
bool rest_reach_covers(const struct rest_reach *permitted, const struct rest_reach *wanted,
                       const struct rest_operation *operation);
