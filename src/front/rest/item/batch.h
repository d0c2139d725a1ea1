/* Batches: several operations on items in one request, as JSON or as hybrid rows.
 *
 * Atomic, they are one transaction on one logical partition; else (bulk) each stands alone. Both
 * are read and answered the same way. */
#pragma once

#include "front/rest/query/patch.h"
#include "front/rest/target/items.h"

enum {
    REST_BATCH_OPERATIONS_MAX = 100,
    /* The service says 2 MB; the .NET library fills bodies up to 2,202,010 bytes. */
    REST_BATCH_BYTES_MAX = 2 * 1024 * 1024 + 256 * 1024,
    REST_BATCH_ANSWER_MAX = 4 * 1024 * 1024,
    REST_BATCH_WORK_MAX = 32 * 1024 * 1024, /* items read and written, before and after */
};

enum rest_batch_kind {
    REST_BATCH_CREATE,
    REST_BATCH_UPSERT,
    REST_BATCH_READ,
    REST_BATCH_REPLACE,
    REST_BATCH_DELETE,
    REST_BATCH_PATCH,
};

struct rest_batch_operation {
    /* As it was sent; data NULL or type undefined where something was not. */
    enum rest_batch_kind kind;
    struct slice id_given;
    struct slice key_given; /* JSON text */
    struct document_value body;
    struct slice if_match, if_none_match; /* without quotes */
    struct slice directive;
    bool minimal;

    /* As it is understood (rest_batch_prepare). err: why it cannot be run; code ERROR_NONE: it can.
     */
    struct error err;
    struct partition_key key;
    struct document_value id;
    struct document_value new_id; /* of a replace that gives another */
    struct slice document;        /* of create, upsert and replace */
    struct rest_patch patch;
    struct transaction_options options;

    /* What became of it. */
    uint16_t status;
    uint32_t substatus;
    int64_t charge_cru;
    int64_t retry_after_ms; /* 0: none */
    struct slice etag;      /* with quotes; data NULL: none */
    struct slice shown;     /* JSON of the item; data NULL: none */
    struct slice message;   /* of a failure */
};

struct rest_batch {
    bool binary; /* hybrid rows, to be answered likewise */
    struct rest_batch_operation *operations;
    size_t count;
};

/* Reads the body. ERROR_BAD_REQUEST, ERROR_BAD_JSON, ERROR_TOO_LARGE: all of it is refused. */
NODISCARD bool rest_batch_read(struct rest_call *call, struct rest_batch *ret_batch,
                               struct error *err);

/* Finds out what an operation wants; header NULL: the request names no key. What is wrong with it
 * is noted in its err. */
void rest_batch_prepare(struct rest_call *call, const struct rest_items *items,
                        const struct partition_key *header, struct rest_batch_operation *operation);

/* Notes what became of an operation: an item written or read (document.data NULL: it has none to
 * show), or an error. */
void rest_batch_done(struct rest_call *call, const struct rest_items *items,
                     struct rest_batch_operation *operation, uint16_t status,
                     const struct item *item);
void rest_batch_failed(struct rest_call *call, struct rest_batch_operation *operation,
                       const struct error *err);

/* Renders all results: 200, or 207 if one failed. */
void rest_batch_answer(struct rest_call *call, const struct rest_batch *batch);

/* The two ways to run one; items is open. They answer through the call. */
NODISCARD bool rest_batch_run_atomic(struct rest_call *call, const struct rest_items *items,
                                     struct rest_batch *batch, struct error *err);
NODISCARD bool rest_batch_run_bulk(struct rest_call *call, const struct rest_items *items,
                                   struct rest_batch *batch, struct error *err);

/* Finds the key of now for an atomic batch whose key may be meant in the terms of before a re-key.
 * ERROR_NOT_SUPPORTED: its items are in several logical partitions by now. */
NODISCARD bool rest_batch_former(struct rest_call *call, const struct rest_items *items,
                                 const struct rest_batch *batch, struct metered_call *metered,
                                 struct partition_key *key, struct error *err);
