/* Queries: plans built by hand and run in pages over containers of all kinds, beside what they
 * should give: the same plan over the documents themselves. */
#pragma once

#include "query/run.h"
#include "query/spool/cache.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

/* A container on a memory node, the documents in it, and a plan being built. */
struct queries {
    struct test_space test;
    bool open;
    struct arena *arena;
    struct query_build build;
    struct slice documents[4000];
    size_t document_count;
    struct query_cache *cache;
    size_t short_count; /* of first pages that were also made without blocking */
};

int queries_setup(void **state);
int queries_teardown(void **state);

/* Indexing policies: everything, nothing, and some paths with a composite index. */
enum { QUERIES_POLICIES = 3 };
extern const char *const queries_policies[QUERIES_POLICIES];

/* Opens an empty container in place of the one before; writes all documents into it. */
void queries_open(struct queries *f, const struct test_space_options *options);
void queries_open_at(struct queries *f, const char *url, const struct test_space_options *options);
void queries_put(struct queries *f);

/* Adds a document to the list: from JSON, or many that differ in id, pk, a, b, c and tags. */
void queries_add(struct queries *f, const char *json);
void queries_add_numbered(struct queries *f, size_t count);

/* --- Building -------------------------------------------------------------------------------- */

/* c.name; a constant; c.name compared with a constant; a plan of the two. */
const struct query_expression *queries_path(struct queries *f, const char *name);
const struct query_expression *queries_value(struct queries *f, const char *json);
const struct query_expression *queries_compare(struct queries *f, const char *name,
                                               enum query_comparison comparison, const char *json);
struct query_plan queries_plan(const struct query_expression *select,
                               const struct query_expression *filter);

/* --- Running --------------------------------------------------------------------------------- */

/* Rows as JSON. */
struct queries_rows {
    struct arena *arena;
    char *texts[4000];
    size_t count;
};

/* The row callback: self is a struct queries_rows. */
bool queries_row(void *self, const struct document_value *value, struct error *err UNUSED);

/* How a plan is run, and what came of it. */
struct queries_how {
    uint64_t page; /* rows of a page; 0: 3 */
    struct query_scope scope;
    size_t memory_max;
    bool cached;
    struct query_spill *spill;
    const struct query_executor *executor;
    struct query_udf_host udf;
    struct query_members *members;
    size_t pages;            /* out */
    int64_t charge_cru;      /* out: of all pages */
    uint64_t spilled_bytes;  /* out: the same */
    struct query_page last;  /* out */
    const char *explain_has; /* the first page's explanation contains this */
};

/* All pages, each with nothing but the continuation of the one before. */
struct queries_rows *queries_run(struct queries *f, const struct query_plan *plan,
                                 struct queries_how *how);

/* What it should be: the plan over the documents themselves. */
struct queries_rows *queries_expect(struct queries *f, const struct query_plan *plan);

/* The same rows; in any order; with 0 and -0 alike; and rows as texts with blanks between them. */
void queries_same(const struct queries_rows *got, const struct queries_rows *expected);
void queries_same_set(struct queries_rows *got, struct queries_rows *expected);
void queries_same_numbers(const struct queries_rows *got, const struct queries_rows *expected);
void queries_are(const struct queries_rows *got, const char *joined);

/* Calls check for every kind of container with the documents in it. */
void queries_everywhere(struct queries *f, void (*check)(struct queries *f, void *context),
                        void *context);

/* A check that the rows are right in any order; context is the plan. */
void queries_check_set(struct queries *f, void *plan);
