/* Operations: what can be asked for, by resource and verb, and who does it. */
#pragma once

#include "front/table/route.h"

struct table_call;

enum table_verb {
    TABLE_LIST, /* GET of several, or of what has no name */
    TABLE_READ, /* GET of one */
    TABLE_CREATE,
    TABLE_REPLACE,
    TABLE_MERGE,
    TABLE_DELETE,
    TABLE_VERB_COUNT
};

enum table_scope { TABLE_SCOPE_SERVICE, TABLE_SCOPE_CONTAINER, TABLE_SCOPE_OBJECT };
enum table_place { TABLE_PLACE_LOOP, TABLE_PLACE_WORKER };

/* One row of operations.def. */
struct table_operation {
    const char *name; /* "ENTITY.MERGE", as the ledger calls it */
    const char *rights;
    enum table_scope scope;
    enum table_place place;
    bool (*run)(struct table_call *call, struct error *err); /* NULL: refused */
    const char *meaning;                                     /* of a refused one: why */
};

/* NULL: the resource knows no such verb. */
const struct table_operation *table_operation_find(enum table_resource resource,
                                                   enum table_verb verb);

/* The verb of a method, which X-HTTP-Method may replace (data NULL: none).
 * ERROR_METHOD_NOT_ALLOWED, ERROR_TABLE_METHOD_OVERRIDE, ERROR_TABLE_METHOD_NOT_POST. */
NODISCARD bool table_verb_find(struct slice method, struct slice instead,
                               enum table_resource resource, enum table_verb *ret_verb,
                               struct error *err);

#define TABLE_OPERATION(resource, verb, rights, scope, place, function, meaning)                   \
    bool function(struct table_call *call, struct error *err);
#define TABLE_REFUSED(resource, verb, meaning)
#include "front/table/operations.def"
#undef TABLE_OPERATION
#undef TABLE_REFUSED
