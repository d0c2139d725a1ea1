/* View: a container whose items follow from those of others by a query. Its definition says which
 * and how, in one of three forms:
 *
 *     "materializedViewDefinition": {"sourceCollectionId": "orders",
 *                                    "definition": "SELECT c.id, c.email FROM c"}
 *     "globalSecondaryIndexDefinition": the same
 *     "orrery": {"view": {"sources": ["orders", "returns"],
 *                         "query": "SELECT c.id, c.email FROM c WHERE c.open"}}
 *
 * The server completes it by the rids of the sources ("sourceCollectionRid", "rids") and by
 * "status". What the query says is for whoever can read it (front/rest/views/). A view has the
 * identity of items by id, no time to live, no unique keys and no synthetic key: its items come and
 * go with those of its sources. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "definition/rid.h"

struct definition_fields;

enum { DEFINITION_VIEW_SOURCES_MAX = 8, DEFINITION_VIEW_QUERY_MAX = 32 * 1024 };

enum definition_view_form {
    DEFINITION_VIEW_NONE, /* it is no view */
    DEFINITION_VIEW_MATERIALIZED,
    DEFINITION_VIEW_SECONDARY,
    DEFINITION_VIEW_OWN, /* orrery.view */
};

/* In the words of the service. */
enum definition_view_status {
    DEFINITION_VIEW_INITIALIZING, /* nothing was done for it yet */
    DEFINITION_VIEW_BUILDING,     /* items that are there are brought in */
    DEFINITION_VIEW_ACTIVE,       /* changes are followed */
    DEFINITION_VIEW_STATUSES,
};

struct definition_view {
    enum definition_view_form form;
    size_t source_count;
    struct slice sources[DEFINITION_VIEW_SOURCES_MAX];   /* names they had */
    struct rid source_rids[DEFINITION_VIEW_SOURCES_MAX]; /* owner 0: not known yet */
    struct slice query;
    enum definition_view_status status;
};

/* Reads the two forms of the service from a body, and writes what it understood. before: of a
 * replace, which keeps what it leaves out and changes nothing. ERROR_BAD_REQUEST. */
NODISCARD bool definition_view_read(struct definition_fields *fields, struct slice body,
                                    const struct definition_fields *before, struct arena *arena,
                                    struct buf *out, struct error *err);

/* The same for the value of orrery.view, whose query a replace may change; value NULL: it leaves it
 * out. */
struct document_value;
NODISCARD bool definition_view_own_read(struct definition_fields *fields,
                                        const struct document_value *value,
                                        const struct definition_fields *before, struct arena *arena,
                                        struct buf *out, struct error *err);

/* Whether the rest of a definition is fit for a view. ERROR_BAD_REQUEST, ERROR_NOT_SUPPORTED. */
NODISCARD bool definition_view_check(const struct definition_fields *fields, struct slice body,
                                     struct error *err);

/* The document of a view with these rids and this status, for definition_new; in the arena. */
struct slice definition_with_view(const struct definition_fields *fields, const struct rid *rids,
                                  enum definition_view_status status, struct arena *arena);

/* A body of a create without what only the server says of a view. */
struct slice definition_view_fresh(struct slice body, struct arena *arena);

/* The document of a definition whose changes are followed, or no more; in the arena. */
struct slice definition_with_followed(const struct definition_fields *fields, bool followed,
                                      struct arena *arena);
