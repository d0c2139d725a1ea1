/* Transfer: items of a file into a container, and rows of a query into a file. */
#pragma once

#include "cli/shell/pages.h"
#include "cli/shell/records.h"

struct shell_transfer {
    struct shell_server *server;
    struct slice database, container;
    const char *path; /* "-": standard input or output */
    enum shell_file_kind kind;
    bool quiet; /* no bar and no sums */
    bool json;  /* the sums as JSON, to standard output unless rows go there */

    /* Of an import. */
    bool upsert;              /* items that are there are replaced instead of refused */
    const char *columns_text; /* as of shell_records_open */
    bool graph;               /* the records are vertices and edges (graph.h) */
    const char *key_from;     /* as of shell_graph_new */

    /* Of an export. */
    struct slice query; /* empty: every item */
    struct slice parameters;
    bool system; /* _rid, _self, _etag, _attachments and _ts too */
};

/* Imports. A file that can be read twice is read through first, so that one which is broken changes
 * nothing. Items are sent in bulk; those the server has no throughput for are sent again after the
 * wait it names. Items that are refused are told on standard error, the first few by line, and the
 * rest goes on; *ret_failed counts them. An item without an id is given one. */
NODISCARD bool shell_import(const struct shell_transfer *transfer, uint64_t *ret_failed,
                            struct error *err);

/* Exports. The file appears whole or not at all. ret_fault as of shell_pages_next. */
NODISCARD bool shell_export(const struct shell_transfer *transfer, struct shell_fault *ret_fault,
                            struct arena *arena, struct error *err);
