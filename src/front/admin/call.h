/* Call: one request to administration, and what its operations have in common: who asks,
 * parameters, members of the answer. */
#pragma once

#include "front/admin/admin.h"
#include "front/kit/gateway.h"

struct backup_moments;

enum { ADMIN_NAMES_MAX = 3 };

struct admin_call {
    union {
        struct front_gateway_call over_gateway;
        struct front_gateway_call;
    };
    const struct admin_hooks *hooks;
    struct backup_moments *moments;
    const struct admin_operation *operation;
    struct slice names[ADMIN_NAMES_MAX]; /* that its path had in the places of the stars */
    struct slice prefix;                 /* of an account in the path: "/name" */
    bool may_only_read;                  /* it is signed with a read-only key */
    bool signed_by_owner;                /* with a read-write key of the account */
};

/* Has the request come to the default account? */
bool admin_is_owner(const struct admin_call *call);

/* ERROR_FORBIDDEN: it asks for what is the default account's alone. */
NODISCARD bool admin_need_owner(const struct admin_call *call, struct error *err);

/* A whole number of the query string, between min and max. ERROR_BAD_REQUEST. */
NODISCARD bool admin_number(const struct admin_call *call, struct slice name, uint64_t min,
                            uint64_t max, uint64_t preset, uint64_t *ret_number, struct error *err);

/* The same of a number that need not be whole. */
NODISCARD bool admin_decimal(const struct admin_call *call, struct slice name, double min,
                             double max, double preset, double *ret_number, struct error *err);

/* The value of a parameter of the query string, decoded; data NULL: it is not there. */
struct slice admin_parameter(const struct admin_call *call, struct slice name);

/* Appends "name":value and, before it unless it is the first member, a comma. */
void admin_text(struct buf *out, const char *name, struct slice text);
void admin_number_append(struct buf *out, const char *name, uint64_t number);
void admin_ru(struct buf *out, const char *name, int64_t cru); /* hundredths as a decimal */

/* "partitionKey":[...], as clients write it in the header, of its encoded bytes; of bytes that are
 * no whole key null, and "partitionKeyBytes" in hex. */
void admin_key(struct admin_call *call, const struct container *container, struct slice bytes);

/* Whether an item has the key, or a key that begins with it: what is done to a key that was
 * mistyped would otherwise be done to nobody's. ?empty=true: the key is to come, and none is asked
 * for. ERROR_NOT_FOUND. */
NODISCARD bool admin_key_check(struct admin_call *call, struct container *container,
                               const struct partition_key *key, struct error *err);

void admin_hex(struct buf *out, const char *name, struct slice bytes); /* in upper case */

/* ,"throughput":{...}: what was bought, and whether it holds requests back. */
void admin_offer_append(struct admin_call *call, const struct offer *offer);

/* ,"buckets":[...],"reservations":[...]: how the owner of a container divides it. */
void admin_throughput_append(struct admin_call *call, const struct container *container);

/* "node": what the operator calls it, or its number where it has no name here. */
void admin_node(struct admin_call *call, uint32_t node);

/* Where the clients of the account reach this server. */
struct slice admin_endpoint(struct admin_call *call);

/* The container of the first two names: of the account that asks, or with ?account=NAME, which only
 * the default account may say, of that one. The caller lets go of it. */
NODISCARD bool admin_container_open(struct admin_call *call, struct container **ret_container,
                                    struct error *err);

/* The operations, one function each. */
#define ADMIN_OPERATION(method, path, function)                                                    \
    bool function(struct admin_call *call, struct error *err);
#define ADMIN_SECRET ADMIN_OPERATION
#include "front/admin/operations.def"
#undef ADMIN_SECRET
#undef ADMIN_OPERATION
