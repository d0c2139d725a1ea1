/* Ways: how the query of a case is run. All of them must give the same rows. */
#pragma once

#include "cases/script.h"
#include "front/rest/sql/documents.h"

enum way {
    WAY_SUBQUERY,   /* the plan as a subquery over one array of all documents: nothing is clever */
    WAY_DOCUMENTS,  /* over documents at hand, page by page */
    WAY_INDEXED,    /* over a container with the indexes of its policy */
    WAY_SCANNED,    /* over a container without any */
    WAY_PARTITIONS, /* over a container of 16 physical partitions */
    WAY_SHORT,      /* over a container, the first page as a loop makes it, if it can */
    WAY_REBOUND,    /* the same by a plan that had other values of its parameters before */
    WAY_COUNT
};

const char *way_name(enum way way);

struct ways; /* the containers of a file, made when first asked for */

struct ways *ways_new(void);
void ways_free(struct ways *ways);
CLEANUP_FN(struct ways *, ways_free)

/* Does the case say anything about this way? */
bool ways_apply(enum way way, const struct script_case *test);

/* Runs the query of a case in pages of three rows; the rows are in the arena. */
NODISCARD bool ways_run(struct ways *ways, enum way way, const struct script_case *test,
                        struct arena *arena, struct sql_rows *ret_rows, struct sql_error *ret_error,
                        struct error *err);

/* The value of a JSON text, in the arena. Text that is none ends the program. */
struct document_value ways_json(struct slice text, struct arena *arena);
