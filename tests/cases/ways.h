/* Ways: how the query of a case is run. All of them must give the same rows. */
#pragma once

#include "front/rest/sql/compile.h"
#include "front/rest/sql/documents.h"
#include "cases/script.h"

enum way {
    WAY_DOCUMENTS, /* over documents at hand */
    WAY_COUNT
};

struct ways; /* the worlds of a file, made when first asked for */

const char *way_name(enum way way);

struct ways *ways_new(void);
void ways_free(struct ways *ways);
CLEANUP_FN(struct ways *, ways_free)

/* Runs the query of a case; the rows are in the arena. */
NODISCARD bool ways_run(struct ways *ways, enum way way, const struct script_case *test,
                        struct arena *arena, struct sql_rows *ret_rows,
                        struct sql_error *ret_error, struct error *err);

/* The value of a JSON text, in the arena. Text that is none ends the program. */
struct document_value ways_json(struct slice text, struct arena *arena);
