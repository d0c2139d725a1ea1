/* Administration: /_orrery/..., in JSON, for the command line, the portal and scripts.
 *
 * It is an operation of the REST front like any other (operations.def sends all verbs here) and is
 * signed the same way: resource type `_orrery`, link the path behind /_orrery/. It takes read-write
 * keys only. The default account administers the server; every other account sees itself alone.
 * docs/admin.md is the manual. */
#pragma once

#include "front/rest/call.h"

enum { ADMIN_NAMES_MAX = 3 };

/* One request: the names its path had in the places of the stars. */
struct admin_request {
    struct rest_call *call;
    struct slice names[ADMIN_NAMES_MAX];
};

/* Has the request come to the default account? */
bool admin_is_owner(const struct rest_call *call);

/* ERROR_FORBIDDEN: it asks for what is the default account's alone. */
NODISCARD bool admin_need_owner(const struct rest_call *call, struct error *err);

/* A whole number of the query string, between min and max. ERROR_BAD_REQUEST. */
NODISCARD bool admin_number(const struct rest_call *call, struct slice name, uint64_t min,
                            uint64_t max, uint64_t preset, uint64_t *ret_number, struct error *err);

/* The same of a number that need not be whole. */
NODISCARD bool admin_decimal(const struct rest_call *call, struct slice name, double min,
                             double max, double preset, double *ret_number, struct error *err);

/* The value of a parameter of the query string, decoded; data NULL: it is not there. */
struct slice admin_parameter(const struct rest_call *call, struct slice name);

/* Appends "name":value and, before it unless it is the first member, a comma. */
void admin_text(struct buf *out, const char *name, struct slice text);
void admin_number_append(struct buf *out, const char *name, uint64_t number);
void admin_ru(struct buf *out, const char *name, int64_t cru); /* hundredths as a decimal */

/* "partitionKey":[...], as clients write it in the header, of its encoded bytes; of bytes that are
 * no whole key null, and "partitionKeyBytes" in hex. */
void admin_key(struct rest_call *call, const struct container *container, struct slice bytes);

/* Whether an item has the key, or a key that begins with it: what is done to a key that was
 * mistyped would otherwise be done to nobody's. ?empty=true: the key is to come, and none is asked
 * for. ERROR_NOT_FOUND. */
NODISCARD bool admin_key_check(struct rest_call *call, struct container *container,
                               const struct partition_key *key, struct error *err);

void admin_hex(struct buf *out, const char *name, struct slice bytes); /* in upper case */

/* ,"throughput":{...}: what was bought, and whether it holds requests back. */
void admin_offer_append(struct rest_call *call, const struct offer *offer);

/* ,"buckets":[...],"reservations":[...]: how the owner of a container divides it. */
void admin_throughput_append(struct rest_call *call, const struct container *container);

/* "node": what the operator calls it, or its number where it has no name here. */
void admin_node(struct rest_call *call, uint32_t node);

/* The container of the first two names: of the account that asks, or with ?account=NAME, which only
 * the default account may say, of that one. The caller lets go of it. */
NODISCARD bool admin_container_open(struct admin_request *request, struct container **ret_container,
                                    struct error *err);

/* The resources, one function each; admin.c has the table. */
bool admin_accounts_list(struct admin_request *request, struct error *err);
bool admin_accounts_create(struct admin_request *request, struct error *err);
bool admin_accounts_show(struct admin_request *request, struct error *err);
bool admin_accounts_drop(struct admin_request *request, struct error *err);
bool admin_keys_show(struct admin_request *request, struct error *err);
bool admin_keys_rotate(struct admin_request *request, struct error *err);
bool admin_databases_list(struct admin_request *request, struct error *err);
bool admin_containers_show(struct admin_request *request, struct error *err);
bool admin_throughput_show(struct admin_request *request, struct error *err);
bool admin_throughput_edit(struct admin_request *request, struct error *err);
bool admin_advice_show(struct admin_request *request, struct error *err);
bool admin_traffic_show(struct admin_request *request, struct error *err);
bool admin_what_if(struct admin_request *request, struct error *err);
bool admin_containers_keys(struct admin_request *request, struct error *err);

/* nodes.c */
bool admin_nodes_list(struct admin_request *request, struct error *err);
bool admin_nodes_add(struct admin_request *request, struct error *err);
bool admin_nodes_show(struct admin_request *request, struct error *err);
bool admin_nodes_change(struct admin_request *request, struct error *err);
bool admin_nodes_remove(struct admin_request *request, struct error *err);
bool admin_nodes_drain(struct admin_request *request, struct error *err);
bool admin_nodes_undrain(struct admin_request *request, struct error *err);
bool admin_nodes_pause(struct admin_request *request, struct error *err);
bool admin_nodes_resume(struct admin_request *request, struct error *err);
bool admin_regions_pause(struct admin_request *request, struct error *err);
bool admin_regions_resume(struct admin_request *request, struct error *err);
bool admin_rebalance_show(struct admin_request *request, struct error *err);
bool admin_rebalance_begin(struct admin_request *request, struct error *err);
bool admin_rebalance_cancel(struct admin_request *request, struct error *err);
bool admin_partitions_list(struct admin_request *request, struct error *err);
bool admin_partitions_split(struct admin_request *request, struct error *err);
bool admin_partitions_merge(struct admin_request *request, struct error *err);
bool admin_partitions_move(struct admin_request *request, struct error *err);
bool admin_partitions_isolate(struct admin_request *request, struct error *err);
bool admin_migration_show(struct admin_request *request, struct error *err);
bool admin_migration_cancel(struct admin_request *request, struct error *err);
bool admin_migrations_list(struct admin_request *request, struct error *err);
bool admin_migrations_pause(struct admin_request *request, struct error *err);
bool admin_migrations_resume(struct admin_request *request, struct error *err);
bool admin_directory_show(struct admin_request *request, struct error *err);
bool admin_directory_edit(struct admin_request *request, struct error *err);
bool admin_shards_show(struct admin_request *request, struct error *err);
bool admin_containers_key(struct admin_request *request, struct error *err);
bool admin_heat_show(struct admin_request *request, struct error *err);
bool admin_hot_container(struct admin_request *request, struct error *err);
bool admin_hot_all(struct admin_request *request, struct error *err);
bool admin_item_move(struct admin_request *request, struct error *err);
bool admin_promote_begin(struct admin_request *request, struct error *err);
bool admin_promote_show(struct admin_request *request, struct error *err);
bool admin_promote_demote(struct admin_request *request, struct error *err);
bool admin_promote_end(struct admin_request *request, struct error *err);
bool admin_promote_forget(struct admin_request *request, struct error *err);
bool admin_rekey_begin(struct admin_request *request, struct error *err);
bool admin_rekey_show(struct admin_request *request, struct error *err);
bool admin_rekey_abort(struct admin_request *request, struct error *err);
bool admin_rekey_end_grace(struct admin_request *request, struct error *err);
