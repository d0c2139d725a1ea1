/* Workload: what a container stores and what is asked of it, as far as choosing a partition key
 * needs to know: a sample of items and a record of operations, with the values of the properties
 * that could be keys.
 *
 * Values are told apart by number: equal values of one path have the same number. What a value was
 * is kept for messages and for hashing as the server would, unless the record holds hashes only.
 *
 * Bounded: what does not fit is sampled evenly, and the workload knows how much there was. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"

enum {
    ADVISE_PATHS_MAX = 64,          /* properties followed; a bit each */
    ADVISE_ITEMS_MAX = 100000,      /* sampled */
    ADVISE_OPERATIONS_MAX = 200000, /* kept */
    ADVISE_TEXT_MAX = 256,          /* bytes of one value that are kept */
    ADVISE_LINE_MAX = 4 * 1024 * 1024,
};

enum advise_operation_kind {
    ADVISE_CREATE,
    ADVISE_READ,
    ADVISE_REPLACE,
    ADVISE_UPSERT,
    ADVISE_PATCH,
    ADVISE_DELETE,
    ADVISE_QUERY,
};
enum { ADVISE_OPERATION_KINDS = 7 };
const char *advise_operation_kind_name(enum advise_operation_kind kind);

/* Number of a value within the workload; 0: it is not there, or not known. */
typedef uint32_t advise_value;

struct advise_path {
    struct slice text; /* /address/city */
    uint64_t present;  /* items of the sample that have it */
    uint64_t nested;   /* items where it is an object or array, which cannot be a key */
    uint64_t changed;  /* operations that gave an existing item another value */
};

/* One item of the sample, or what an operation was about. */
struct advise_item {
    const advise_value *values; /* one for each path */
    uint32_t bytes;
    int64_t time_ms; /* when it was written; 0: not known */
};

struct advise_operation {
    enum advise_operation_kind kind;
    int64_t time_ms;
    int64_t cru;          /* what it cost under the key it ran with */
    double ms;            /* from the request to its answer; 0: not known */
    uint32_t bytes;       /* of what was written or answered */
    uint32_t weight;      /* how many like it there were, of which it is a sample */
    uint32_t transaction; /* operations with the same number belong together; 0: alone */
    uint64_t identity;    /* of the item, the same in all operations on it; 0: not known */
    bool whole;           /* values are of the whole item, which was written or found */
    bool failed;          /* refused for lack of throughput to the end; cru is a guess then */
    uint32_t refused;     /* answers 429 it got */
    int64_t due_ms;       /* of one that failed: when it might have come again; 0: not known */
    const advise_value *values; /* of the item it was about, or that its filter names */
    uint64_t given;             /* paths whose values the client named: a bit each */
    uint64_t ranges;            /* paths that its filter bounds otherwise than by equality */
};

struct advise_workload; /* opaque, owned */

struct advise_workload *advise_workload_new(void);
void advise_workload_free(struct advise_workload *workload); /* NULL is fine */
CLEANUP_FN(struct advise_workload *, advise_workload_free)

/* --- Filling --------------------------------------------------------------------------------- */

/* One stored item. time_ms: when it was written; 0: its _ts, if it has one. */
void advise_workload_item(struct advise_workload *workload, struct slice document, uint32_t bytes,
                          int64_t time_ms);

/* What is known of an operation: item and before are BSON documents or data NULL. */
struct advise_operation_parts {
    enum advise_operation_kind kind;
    int64_t time_ms, cru;
    double ms;
    uint32_t bytes;
    uint32_t weight;          /* 0: 1 */
    uint32_t refused;         /* answers 429 */
    bool failed;              /* the last answer was one; cru is then what is known of the price */
    int64_t due_ms;           /* of one that failed: when it was told to come again */
    uint64_t identity;        /* a hash of what names the item; 0: not known */
    struct slice transaction; /* a name operations of one transaction share; empty: alone */
    struct slice item;        /* what was written or found */
    struct slice before;      /* what was replaced: properties that differ have changed */
    struct slice where;       /* document of path: value, what the client named */
    struct slice ranges;      /* array of paths that are bounded otherwise */
    struct slice changed;     /* array of paths, where before is not at hand */
};
void advise_workload_operation(struct advise_workload *workload,
                               const struct advise_operation_parts *parts);

/* A line of JSON each, as docs/advise.md says. ERROR_BAD_JSON, ERROR_BAD_REQUEST: the message names
 * the line. */
NODISCARD bool advise_workload_read_items(struct advise_workload *workload, struct slice lines,
                                          struct error *err);
NODISCARD bool advise_workload_read_operations(struct advise_workload *workload, struct slice lines,
                                               struct error *err);

/* One such operation as a BSON document. */
NODISCARD bool advise_workload_operation_read(struct advise_workload *workload,
                                              struct slice document, struct error *err);

/* Sorts by time, notes which properties of an item differ from one operation to the next, guesses
 * what refused operations would have cost by those of their kind that were carried out, and closes
 * it: to be called once, before anything below. */
void advise_workload_finish(struct advise_workload *workload);

/* Times in which nothing came are taken for this long at most: operations before them are moved
 * nearer, so that a night or a restart between does not make the load look small. Of a finished
 * one. */
void advise_workload_close_gaps(struct advise_workload *workload, int64_t gap_ms_max);

/* --- Looking --------------------------------------------------------------------------------- */

const struct advise_path *advise_workload_paths(const struct advise_workload *workload,
                                                size_t *ret_count);
/* Index of a path, or -1. */
int advise_workload_path(const struct advise_workload *workload, struct slice text);

/* By time where it is known. */
const struct advise_item *advise_workload_items(const struct advise_workload *workload,
                                                size_t *ret_count);
const struct advise_operation *advise_workload_operations(const struct advise_workload *workload,
                                                          size_t *ret_count);

/* What there was in all, of which the above is an even sample. */
uint64_t advise_workload_items_seen(const struct advise_workload *workload);
uint64_t advise_workload_bytes_seen(const struct advise_workload *workload);
uint64_t advise_workload_operations_seen(const struct advise_workload *workload);

/* The value behind a number: text may be cut at ADVISE_TEXT_MAX. Undefined for 0. */
const struct document_value *advise_workload_value(const struct advise_workload *workload,
                                                   advise_value value);
/* How many values there are: numbers run from 1 to this. */
size_t advise_workload_value_count(const struct advise_workload *workload);
