/* Authorisation: who signed a request to the Table API, and what they may do.
 *
 * A request carries SharedKey or SharedKeyLite, made with one of the account's keys, or a shared
 * access signature in its query string: of the account, or of one table. Secrets are compared in
 * constant time. */
#pragma once

#include "front/table/route.h"

struct table_call;

/* Rights, as the letters of shared access signatures. */
enum table_right {
    TABLE_RIGHT_READ = 1,
    TABLE_RIGHT_ADD = 2,
    TABLE_RIGHT_UPDATE = 4,
    TABLE_RIGHT_DELETE = 8,
    TABLE_RIGHT_LIST = 16,
    TABLE_RIGHT_CREATE = 32,
    TABLE_RIGHT_WRITE = 64,
    TABLE_RIGHT_ALL = 127,
};

/* A bound of a table's SAS; data NULL: none. */
struct table_bound {
    struct slice partition, row;
};

struct table_identity {
    bool shared; /* by a shared access signature, not by a key */
    unsigned rights;
    unsigned scopes;    /* bit of each enum table_scope */
    struct slice table; /* the only one; data NULL: all */
    struct table_bound first, last;
};

/* Who asks: fills in call->identity. ERROR_TABLE_AUTHENTICATION and the other codes of its kind. */
NODISCARD bool table_authorize(struct table_call *call, struct error *err);

/* Whether the identity has the rights of a row of operations.def; table: that it is about, data
 * NULL: none. ERROR_TABLE_PERMISSION, ERROR_TABLE_RESOURCE_TYPE. */
struct table_operation;
NODISCARD bool table_identity_check(const struct table_identity *identity,
                                    const struct table_operation *operation, struct slice table,
                                    struct error *err);

/* Whether it reaches an entity. ERROR_TABLE_PERMISSION. */
NODISCARD bool table_identity_check_keys(const struct table_identity *identity,
                                         const struct table_keys *keys, struct error *err);

/* Whether it may also add what is not there, as insert-or-replace does. ERROR_TABLE_PERMISSION. */
NODISCARD bool table_identity_check_add(const struct table_identity *identity, struct error *err);

/* The letters as rights; letters of other services are passed over. False: one is unknown. */
NODISCARD bool table_rights_parse(struct slice letters, unsigned *ret_rights);
