/* Cost: what a request is charged, from what it did and never from how long it took.
 *
 * Charges are whole hundredths of a request unit ("cru"), so sums are exact and the same request
 * on the same committed state is charged the same, on every machine. Inputs are counts and bytes
 * of that state: internal retries, cold caches and slow disks are free.
 *
 * Every function is pure and saturates at COST_MAX_CRU instead of overflowing. What is not yet
 * known when a request is admitted is left zero; the full price is settled afterwards (budget.h).
 */
#pragma once

#include "base/attrs.h"

/* Ten trillion RU: far above any request, far below where adding charges could overflow. */
#define COST_MAX_CRU INT64_C(1000000000000000)

/* The model: millionths of an RU per unit of work. A write or read has its first KB in its base.
 *
 *     published                                      here
 *     point read 1 KB = 1, 100 KB = 10, miss = 1     read_base + 99 KB of read_kb = 10.00
 *     write 1 KB without index 5.29 to 5.5           write_base = 5.29
 *     write 100 KB = 50                              write_base + 99 KB of write_kb = 50.00
 *     an indexed property 0.2 to 0.4                 index_entry = 0.38
 *     1 KB, 10 properties, all indexed: about 10     with id and _ts 12 entries = 9.85
 *     replace about twice an insert                  takes the old away, puts the new: 19.70
 *     delete about an insert                         the same
 *     query 2.3 to 2.8 per partition visited         query_partition = 2.30, one lookup and one
 *                                                    1 KB item = 2.64
 *     1,000 items of 1 KB = 35 to 60                 47.30, and 47.75 in pages of 100
 *     metadata 1 to 5                                read 1, list 2, write 5
 *     an id sought in one partition                  id_seek = 0.10; nothing is published, for the
 *                                                    service has no such thing
 *
 *     evaluation                                     nothing is published. 0.1 for a thousand units
 *                                                    of work above those that come with what is
 *                                                    read (cost_work_surplus), so that ordinary
 *                                                    queries pay none: a second of one processor
 *                                                    is some thousands of RU, as it is elsewhere
 *
 * Strong and bounded staleness read two replicas: reads and queries count twice. */
struct cost_model {
    uint32_t read_base, read_kb;
    uint32_t write_base, write_kb, index_entry;
    uint32_t query_partition, query_resume, query_lookup, query_entry;
    uint32_t query_item, query_loaded_kb, query_output_kb;
    uint32_t feed_page;
    uint32_t script_base, script_call, script_kb;
    uint32_t metadata_read, metadata_list, metadata_write;
    uint32_t id_seek;
    uint32_t query_work;
};
extern const struct cost_model cost_model;

/* A point read of an item of this size. A miss, and a read that answers "not modified", counts 0
 * bytes and so costs the least: 1.00. */
int64_t cost_read(uint64_t bytes, bool strong);

/* What one write did to one item. An insert has no old bytes, a delete no new ones; replace, patch
 * and an upsert that finds the item have both. Index entries are all that the commit put and
 * deleted for the item besides itself: index, unique keys, expiry. */
struct cost_write {
    bool removes, puts; /* an old version went, a new one came */
    uint64_t old_bytes, new_bytes;
    uint64_t index_puts, index_deletes;
    uint64_t history_bytes; /* kept for change streams; the first KB comes with the write */
};
int64_t cost_write(const struct cost_write *write);

/* A write that changed nothing because it was refused (exists already, precondition, missing): what
 * it read to find out. A refusal for lack of budget costs nothing. */
int64_t cost_write_refused(uint64_t old_bytes);

/* One page of a query. A partition is begun on the page that first reads from it and resumed on
 * later pages, so that cutting a result into pages hardly changes its sum. */
struct cost_query {
    uint32_t partitions_begun, partitions_resumed;
    uint64_t index_lookups; /* distinct values or ranges sought; not repeated when resuming */
    uint64_t index_entries; /* walked */
    uint64_t items_loaded, loaded_bytes;
    uint64_t output_bytes;
    uint64_t function_bytes;             /* handed to functions of the user and back */
    uint64_t joined_items, joined_bytes; /* of reference containers: as entries, and as loaded */
    uint64_t work; /* of evaluation, above what is included: cost_work_surplus */
    bool strong;
};
int64_t cost_query(const struct cost_query *query);

/* How many of these units of work (query/value/context.h) are to be paid: a page comes with
 * 20,000, with 500 for each item loaded and each index entry, and with one for every two bytes
 * loaded. */
uint64_t cost_work_surplus(const struct cost_query *query, uint64_t units);

/* What evaluation costs that read nothing. 0 for what every page includes. */
int64_t cost_work(uint64_t units);

/* One page of the change feed of one span; an empty one too. */
int64_t cost_feed(uint64_t entries, uint64_t output_bytes);

/* A stored procedure, trigger or function on top of the operations it ran: its calls of the server
 * and the bytes handed in and out stand for its work, as processor time would not repeat. */
int64_t cost_script(uint64_t calls, uint64_t bytes);

/* An id sought in one physical partition, found or not: of items under a random suffix. */
int64_t cost_id_seek(void);

/* Databases, containers, offers, users, scripts as resources: paid from the account's own budget.
 */
enum cost_metadata { COST_METADATA_READ, COST_METADATA_LIST, COST_METADATA_WRITE };
int64_t cost_metadata(enum cost_metadata kind);

/* a + b, not above COST_MAX_CRU. A batch is the sum of its operations. */
int64_t cost_add(int64_t a_cru, int64_t b_cru);

/* "6.29": two decimals, NUL-terminated, as x-ms-request-charge shows it. */
enum { COST_TEXT_SIZE = 24 };
void cost_text(int64_t cru, char ret_text[COST_TEXT_SIZE]);
