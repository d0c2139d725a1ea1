/* Reading: documents of a collection that match a filter, page by page; what find, count, distinct,
 * update and delete have in common. */
#pragma once

#include "front/mongo/command/index_keys.h"
#include "front/mongo/command/item.h"
#include "front/mongo/expression/expression.h"
#include "front/mongo/match/match.h"
#include "front/mongo/match/near.h"
#include "query/run.h"

/* What is given of an item that matches. */
enum mongo_shape {
    MONGO_SHAPE_DOCUMENT, /* the document, as far as the projection shows it */
    MONGO_SHAPE_VERSION,  /* {d: the document, e: its etag} */
};

/* A query over a collection; lives in an arena and may be used for many pages. */
struct mongo_reading {
    enum mongo_shape shape;
    struct slice filter, projection, sort, collation, let; /* BSON; data NULL: none */
    struct slice collation_default;        /* of the collection, where the command names none */
    const struct index_definition *text;   /* its text index, until it is prepared; NULL: none */
    uint64_t cluster_time;                 /* what CLUSTER_TIME is; 0: nobody says */
    uint64_t skip, limit;                  /* limit UINT64_MAX: all */
    struct document_value hint;            /* a name, a key, {$natural: 1}; or absent */
    const struct mongo_key_bounds *bounds; /* min and max; NULL: none */
    bool return_key, show_record_id;

    /* Of mongo_reading_prepare. */
    bool natural; /* the hint is a scan */
    bool counts;  /* in: one row, how many documents match; shape, skip and limit do not count */
    struct query_plan plan;
    const struct document_collator *collator; /* NULL: texts compare by bytes */
    const struct mongo_match *match;
    const struct mongo_near
        *near; /* what it is ordered by, and needs an index for; NULL: nothing */
    struct mongo_expression_options expressions; /* the variables of let, the collator */

    const char *script; /* by which word JavaScript is called; NULL: none is */

    bool in_memory; /* nothing may be kept on disk */
    bool tail;      /* a batch may be asked for behind the last document (query/run.h) */
};

/* Compiles it. What it needs is copied into the arena. */
NODISCARD bool mongo_reading_prepare(const struct mongo_call *call, struct mongo_reading *reading,
                                     struct arena *arena, struct error *err);

/* What its hint means besides an index; mongo_reading_prepare does it too. 9: it is none. */
NODISCARD bool mongo_reading_hint(struct mongo_reading *reading, struct arena *arena,
                                  struct error *err);

/* Is there a hint? */
bool mongo_reading_is_hinted(const struct mongo_reading *reading);

/* Documents come in the order they were made in. Of one that is prepared. */
void mongo_reading_by_creation(struct mongo_reading *reading, struct arena *arena);
/* CLUSTER_TIME, for expressions; in the build's arena. */
const struct mongo_variable *mongo_cluster_time_variable(uint64_t time, struct query_build *build);

/* The variables of a command's `let`, which see no document, and CLUSTER_TIME unless it is 0; in
 * the build's arena. The collator of ret_options is there already, and stays. */
NODISCARD bool mongo_command_let(struct slice let, uint64_t cluster_time, struct query_build *build,
                                 struct mongo_expression_options *ret_options, struct error *err);

/* One page of it, from the continuation on (empty: from the beginning). */
struct mongo_page {
    uint64_t rows_max, bytes_max;
    int64_t deadline_ms;          /* of the monotonic clock; 0: the server's own */
    struct slice continuation;    /* in and out; empty: there is no more */
    bool explain;                 /* in: tell how it was done */
    struct slice explained;       /* out: BSON, of query/run/explain.c; in the call's arena */
    struct query_metrics metrics; /* out */
    bool (*row)(void *self, const struct document_value *value, struct error *err);
    void *self;
};

/* Without a collection there are no documents but those the plan brings. Other collections that its
 * stages name are opened for the page. MONGO_NO_DISK_USE_ALLOWED: it does not fit the memory. */
NODISCARD bool mongo_reading_page(struct mongo_call *call,
                                  const struct mongo_collection *collection,
                                  const struct mongo_reading *reading, struct mongo_page *page,
                                  struct error *err);

/* When maxTimeMS of the command ends; 0: it names none. */
NODISCARD bool mongo_deadline(const struct mongo_call *call, int64_t *ret_deadline_ms,
                              struct error *err);
