/* Audit: who did what, when, from where, with what result, in a record that cannot be changed
 * unnoticed.
 *
 * Every order to the server and every change of databases, containers, users and throughput is
 * recorded, refused ones too; of containers the operator names also operations on their items.
 * Records are numbered without gaps, each names the SHA-256 of the one before it, and the last one
 * is named beside them: whoever removes, changes or inserts one breaks the chain. They are notes on
 * the root node, durable as every commit is, and bounded in size and age: what makes way does so
 * from the oldest on, and the place the chain begins at is noted in the same commit.
 *
 * Somebody who can write to the store can write a whole new chain. So the number and the hash of
 * the last record are shown: kept elsewhere, they tell later whether it is still the same. */
#pragma once

#include "base/log.h"
#include "catalogue/catalogue.h"
#include "observe/observed.h"

enum {
    AUDIT_HASH_BYTES = 32,
    AUDIT_HASH_TEXT_SIZE = 2 * AUDIT_HASH_BYTES + 1,
    AUDIT_RECORD_BYTES_MAX = 16 * 1024,
    AUDIT_PAGE_MAX = 1000,
};

struct audit; /* opaque, owned; from any thread */

struct audit_options {
    struct catalogue *catalogue; /* borrowed; outlives it */
    const struct clock *clock;   /* borrowed */
    struct log *log;             /* borrowed; NULL: silent */
    const char *containers;      /* "DB/CONTAINER", "DB/" and a star, separated by commas: whose
                                  * operations on items are recorded; borrowed */
    bool reads;                  /* of those: also what changes nothing */
    uint64_t bytes_max;          /* of all records */
    int64_t age_ms_max;
    size_t waiting_max; /* records not written yet; above it they are lost, and counted */
};

/* ERROR_STORE_CORRUPT: what is noted of the chain makes no sense. */
NODISCARD bool audit_new(const struct audit_options *options, struct audit **ret_audit,
                         struct error *err);
void audit_free(struct audit *audit); /* writes what waits; NULL is fine */
CLEANUP_FN(struct audit *, audit_free)

/* Whether "a/b, c/" and a star is such a list. ERROR_CONFIGURATION. */
NODISCARD bool audit_containers_check(const char *list, struct error *err);

/* Records the request if it is one to be recorded. Where it was told by a thread that may block,
 * the record is durable on return, unless the store does not take it. */
void audit_tell(struct audit *audit, const struct observed_request *request);

/* What is asked for; empty or 0: anything. */
struct audit_filter {
    uint64_t before;        /* number: only those below it */
    int64_t from_ms, to_ms; /* from inclusive, to exclusive */
    struct slice account, database, container, operation, who, from;
    uint16_t status;
    bool failed; /* only what was refused or failed */
    size_t max;  /* 1 to AUDIT_PAGE_MAX */
};

/* Appends records as members of a JSON array, the newest first. *ret_next: the number to go on
 * before; 0: there are no more. Looks at a bounded number of records at a time, so a page may have
 * fewer than asked for, or none, and go on all the same. Blocks. */
NODISCARD bool audit_read(struct audit *audit, const struct audit_filter *filter, struct buf *out,
                          uint64_t *ret_next, struct error *err);

/* What a walk along the whole chain found. */
struct audit_verdict {
    bool whole;
    uint64_t first, last, count; /* numbers; 0: there is none */
    uint64_t broken_at;          /* the number that should have been found whole; 0: none */
    char because[120];
    char hash[AUDIT_HASH_TEXT_SIZE]; /* of the last record */
};

/* expected_number 0: nothing is expected; else that record must have that hash (hex), or have made
 * way by now. Blocks. */
NODISCARD bool audit_verify(struct audit *audit, uint64_t expected_number,
                            struct slice expected_hash, struct audit_verdict *ret_verdict,
                            struct error *err);

struct audit_figures {
    uint64_t records, bytes; /* kept */
    uint64_t lost;           /* since the start */
};
void audit_figures(struct audit *audit, struct audit_figures *ret_figures);
