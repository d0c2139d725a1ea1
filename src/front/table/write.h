/* Write: one change of an entity, alone or in an entity group transaction.
 *
 * What is to be written may follow from what is there: a merge needs the properties it keeps, an
 * ETag has to be that of the version it is compared with. So a change is planned against the item
 * as it is read, and written on the condition that this is still the version. */
#pragma once

#include "front/table/call.h"
#include "front/table/entity.h"
#include "front/traffic.h"
#include "item/operation.h"

enum table_write_kind {
    TABLE_WRITE_INSERT,
    TABLE_WRITE_REPLACE,
    TABLE_WRITE_MERGE,
    TABLE_WRITE_DELETE,
};

struct table_write {
    enum table_write_kind kind;
    struct table_keys keys;
    struct slice document; /* as the client sent it; not of a delete */
    struct slice etag;     /* If-Match; data NULL: none, then replace and merge insert too */
};

/* What becomes of it, given the item it meets. */
struct table_write_plan {
    enum transaction_verb verb;
    struct slice document;
    struct transaction_options options;
    bool relies; /* on what was read, without the client asking for it: who loses runs again */
    char etag[ITEM_ETAG_LEN];
};

/* The item is looked at for this write; the others can do without. */
bool table_write_needs_item(const struct table_write *write);

/* item: NULL: there is none; of writes that need none it is not looked at. The plan's options point
 * into it: it must stay where it is. ERROR_ITEM_MISSING, ERROR_PRECONDITION_FAILED and what merging
 * may answer. */
NODISCARD bool table_write_plan(const struct table_write *write, const struct item *item,
                                struct arena *arena, struct table_write_plan *ret_plan,
                                struct error *err);

/* Plans it in a transaction that is in its logical partition. */
NODISCARD bool table_write_add(const struct table_write *write, struct transaction *transaction,
                               struct arena *arena, struct error *err);

/* Takes the write's ETag from If-Match. A delete needs one (ERROR_TABLE_HEADER_MISSING), an insert
 * has none. ERROR_BAD_REQUEST: it is neither * nor one weak ETag. */
NODISCARD bool table_write_condition_read(const struct table_call *call, struct table_write *write,
                                          struct error *err);

/* What it costs at the least. */
int64_t table_write_price(const struct table_write *write);

/* Key and id of the item. */
struct partition_key table_write_key(const struct table_space *space,
                                     const struct table_keys *keys);
struct document_value table_write_id(const struct table_keys *keys);

/* In a table whose PartitionKey is made of other properties an insert with an empty one has it
 * made; other writes stay as they are. ERROR_BAD_REQUEST: a source is missing;
 * ERROR_TABLE_KEY_VALUE and its kin: what was made cannot be a key; ERROR_FORBIDDEN: the client may
 * not write there. */
NODISCARD bool table_write_complete(struct table_call *call, const struct table_space *space,
                                    struct table_write *write, struct error *err);

/* Runs it where blocking is fine. */
NODISCARD bool table_write_run(struct table_call *call, const struct table_space *space,
                               const struct table_write *write,
                               struct transaction_result *ret_result, struct error *err);

/* On a loop: begins it and leaves the call pending until it is durable; or sets call->cold where
 * that would block. Takes space over where it is under way. False as operations return it. The
 * answer is made by table_write_answer. */
NODISCARD bool table_write_start(struct table_call *call, struct table_space *space,
                                 const struct table_write *write, struct error *err);

/* Status, headers and body of a write that went well. */
void table_write_answer(struct table_call *call, const struct table_space *space,
                        const struct table_write *write, const struct transaction_result *result);

/* Of a write that failed: if for lack of throughput, it is told to the record for advice. */
void table_write_refused(const struct table_call *call, const struct table_space *space,
                         const struct table_write *write, const struct error *err);

/* What tells this attempt from others, for the record for advice. err NULL: it was carried out. */
struct front_traffic_attempt table_call_attempt(const struct table_call *call,
                                                const struct error *err);

/* How an entity of this table is shown to the client. */
struct table_shape table_call_shape(struct table_call *call, const struct table_space *space);

/* Notes the charge of a request, and the wait if it was refused for it. */
void table_call_charged(struct table_call *call, const struct metered_call *metered);

/* How requests pay. */
struct metered_call table_call_metered(const struct table_call *call);

/* Prefer: return-no-content, return-content; a client that says neither gets the content. */
bool table_call_wants_content(const struct table_call *call, bool *ret_said);
