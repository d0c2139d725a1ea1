/* Operations: what can be asked for, by resource and verb, and who does it. */
#pragma once

#include "front/rest/route.h"

struct rest_call;

enum rest_verb {
    REST_READ,    /* GET of one */
    REST_LIST,    /* GET of a feed */
    REST_CHANGES, /* the same as a change feed */
    REST_CREATE,  /* POST on a feed */
    REST_UPSERT,
    REST_QUERY,
    REST_PLAN,
    REST_BATCH,
    REST_EXECUTE, /* POST on one */
    REST_REPLACE, /* PUT */
    REST_PATCH,
    REST_DELETE,
    REST_VERB_COUNT
};

enum rest_access { REST_ACCESS_READ, REST_ACCESS_WRITE, REST_ACCESS_OWNER };
enum rest_place { REST_PLACE_INLINE, REST_PLACE_CACHED, REST_PLACE_WORKER };

/* One row of operations.def. */
struct rest_operation {
    const char *name; /* "ITEMS.CREATE", as the ledger calls it */
    enum rest_access access;
    enum rest_place place;
    bool (*run)(struct rest_call *call, struct error *err); /* NULL: refused */
    const char *meaning;                                    /* of a refused one: why */
};

/* ITEMS.READ by a server that does not own the nodes (item/follow.c), on a worker. ERROR_UNPROVED,
 * or any other error: the owner is to be asked. */
NODISCARD bool rest_items_follow(struct rest_call *call, struct error *err);

/* NULL: the resource knows no such verb. */
const struct rest_operation *rest_operation_find(enum rest_resource resource, enum rest_verb verb);

#define REST_OPERATION(resource, verb, access, place, function, meaning)                           \
    bool function(struct rest_call *call, struct error *err);
#define REST_REFUSED(resource, verb, meaning)
#include "front/rest/operations.def"
#undef REST_OPERATION
#undef REST_REFUSED
