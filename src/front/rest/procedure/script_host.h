/* Script host: what a procedure or trigger asks of its collection, done within one transaction on
 * one logical partition.
 *
 * Operations read what the transaction sees, their own writes included; queries and feeds read the
 * moment it began, and so do not see them. Nothing of another partition key is there, and nothing
 * can be written there. What an operation is refused for goes to its callback; what ends the
 * transaction ends the run.
 *
 * Items that are written have no _rid, _etag and _ts before the commit. Scripts are shown
 * provisional ones, which work in links and as etags for as long as the script runs;
 * rest_script_names puts the real ones into a text afterwards. */
#pragma once

#include "front/rest/target/items.h"
#include "script/script.h"

struct rest_script_host {
    struct rest_call *call;
    const struct rest_items *items;
    struct partition_key key;
    bool strong;
    int64_t budget_cru;               /* no more is accepted when this is spent; 0: no end */
    struct slice self_link, alt_link; /* of the collection */

    /* Of the present attempt: set by rest_script_host_begin. */
    struct transaction *transaction;
    const struct item_space *space;
    struct arena *arena;
    int64_t reads_cru;  /* what operations that only read have cost */
    int64_t writes_cru; /* what writes will cost at the least */
    uint64_t bytes; /* that operations brought and were answered, with what they took in memory */
    struct arena *answers; /* owned: of the batch of operations being served */
    bool ended;            /* by the host: what the run failed with is not the script's */
};

/* ERROR_BAD_REQUEST and its kin from headers. The links and the budget are found. */
NODISCARD bool rest_script_host_init(struct rest_script_host *host, struct rest_call *call,
                                     const struct rest_items *items,
                                     const struct partition_key *key, bool strong,
                                     struct error *err);

void rest_script_host_done(struct rest_script_host *host);
CLEANUP_VALUE_FN(struct rest_script_host, rest_script_host_done)

/* Another attempt begins: what was spent is forgotten. */
void rest_script_host_begin(struct rest_script_host *host, struct metered_transaction *metered,
                            struct transaction *transaction);

/* What the script room is handed. */
struct script_host rest_script_host(struct rest_script_host *host);

/* Reads a JSON text as an item to be written: with an id, of the host's partition key, not too
 * large. make_id: without one it gets one. In the attempt's arena. */
NODISCARD bool rest_script_item(struct rest_script_host *host, struct slice json, bool make_id,
                                struct slice *ret_document, struct document_value *ret_id,
                                struct error *err);

/* Plans a write and counts it. */
NODISCARD bool rest_script_write(struct rest_script_host *host, const struct document_value *id,
                                 enum transaction_verb verb, struct slice document,
                                 const struct transaction_options *options, struct error *err);

/* The same for a patch: body is its JSON. */
NODISCARD bool rest_script_patch(struct rest_script_host *host, const struct document_value *id,
                                 struct slice json, const struct transaction_options *options,
                                 struct error *err);

/* The item as the transaction sees it, as JSON in the arena; absent: there is none. */
NODISCARD bool rest_script_shown(struct rest_script_host *host, const struct document_value *id,
                                 struct arena *arena, struct slice *ret_json, struct error *err);

/* A page of a query or of the read feed of the logical partition (script_queries.c). */
NODISCARD bool rest_script_query(struct rest_script_host *host,
                                 const struct script_operation *operation,
                                 struct script_answer *answer, struct arena *arena,
                                 struct error *err);

/* Whether an error is an operation's own, for its callback; others end the run. */
bool rest_script_error_is_operations(const struct error *err);
