/* Route: what a path and its query name.
 *
 *     /                                 the service: properties, stats
 *     /Tables, /Tables('name')          tables
 *     /name, /name()                    entities of a table; its access policies with comp=acl
 *     /name(PartitionKey='a',RowKey='b')   one entity
 *     /$batch                           entity group transactions
 *
 * Any of these may stand behind /{account}. Names and keys are percent-decoded once, then two
 * single quotes in a key stand for one. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

enum table_resource {
    TABLE_SERVICE, /* nothing but the account is named */
    TABLE_PROPERTIES,
    TABLE_STATS,
    TABLE_TABLES,
    TABLE_ONE,
    TABLE_ACCESS,
    TABLE_ENTITIES,
    TABLE_ENTITY,
    TABLE_BATCH,
    TABLE_METADATA,
    TABLE_RESOURCE_COUNT
};

struct table_keys {
    struct slice partition, row; /* UTF-8; data NULL: not given */
};

struct table_route {
    enum table_resource resource;
    struct slice account; /* of the path; data NULL: none */
    bool secondary;       /* it ended in -secondary, which account lacks */
    struct slice prefix;  /* of the path as sent, with its slash: "/name"; or empty */
    struct slice table;
    struct table_keys keys; /* of one entity */
};

/* One parameter of a query string. */
struct table_parameter {
    struct slice name, value; /* decoded */
};

enum { TABLE_PARAMETERS_MAX = 64 };

struct table_parameters {
    struct table_parameter *list; /* in the arena */
    size_t count;
};

/* query: data NULL: none. In $filter and $select a plus stands for a blank. ERROR_BAD_REQUEST. */
NODISCARD bool table_parameters_parse(struct slice query, struct arena *arena,
                                      struct table_parameters *ret_parameters, struct error *err);

/* The value; data NULL: there is none of that name. */
struct slice table_parameter(const struct table_parameters *parameters, struct slice name);

/* ERROR_BAD_REQUEST: broken escapes, quotes or text that is not UTF-8. */
NODISCARD bool table_route_parse(struct slice path, const struct table_parameters *parameters,
                                 struct arena *arena, struct table_route *ret_route,
                                 struct error *err);

/* ERROR_TABLE_KEY_TOO_LARGE, ERROR_TABLE_KEY_CHARACTER: what no entity can have as its keys. */
NODISCARD bool table_keys_check(const struct table_keys *keys, struct error *err);

/* ERROR_TABLE_NAME. */
NODISCARD bool table_name_check(struct slice name, struct error *err);

/* How many UTF-16 units a text has; limits count them. */
size_t table_text_units(struct slice text);
