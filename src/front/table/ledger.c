#include "front/table/ledger.h"

#include "front/table/operation.h"

static const char *const paths[TABLE_RESOURCE_COUNT] = {
    [TABLE_SERVICE] = "/",
    [TABLE_PROPERTIES] = "/?restype=service&comp=properties",
    [TABLE_STATS] = "/?restype=service&comp=stats",
    [TABLE_TABLES] = "/Tables",
    [TABLE_ONE] = "/Tables('{table}')",
    [TABLE_ACCESS] = "/{table}?comp=acl",
    [TABLE_ENTITIES] = "/{table}()",
    [TABLE_ENTITY] = "/{table}(PartitionKey='{p}',RowKey='{r}')",
    [TABLE_BATCH] = "/$batch",
    [TABLE_METADATA] = "/$metadata",
};

static const char *const methods[TABLE_VERB_COUNT] = {
    [TABLE_LIST] = "GET",    [TABLE_READ] = "GET",    [TABLE_CREATE] = "POST",
    [TABLE_REPLACE] = "PUT", [TABLE_MERGE] = "MERGE", [TABLE_DELETE] = "DELETE",
};

static void operations_print(struct buf *out)
{
    BUF_APPEND(out, "## Operations\n\n"
                    "Rights are the letters of a shared access signature.\n\n"
                    "| operation | request | | rights | what |\n|---|---|---|---|---|\n");
    for (int r = 0; r < TABLE_RESOURCE_COUNT; r++)
        for (int v = 0; v < TABLE_VERB_COUNT; v++) {
            const struct table_operation *operation =
                table_operation_find((enum table_resource)r, (enum table_verb)v);

            if (!operation)
                continue;
            buf_printf(out, "| `%s` | %s `%s` | %s | ", operation->name, methods[v], paths[r],
                       operation->run ? "yes" : "refused");
            for (const char *c = operation->rights; *c; c++)
                if (*c == '|')
                    BUF_APPEND(out, " or ");
                else
                    buf_append_byte(out, (uint8_t)*c);
            buf_printf(out, " | %s |\n", operation->meaning);
        }
}

static void codes_print(struct buf *out)
{
    BUF_APPEND(out, "\n## Error codes\n\n| code | status | the service's words |\n|---|---|---|\n");
#define TABLE_CODE(code, status, words)                                                            \
    buf_printf(out, "| `%s` | %d | %s |\n", code, status, words);
#include "front/table/codes.def"
#undef TABLE_CODE
}

void table_ledger_print(struct buf *out)
{
    BUF_APPEND(out,
               "# Compatibility: the Table API\n\n"
               "Made by `orrery help tables --markdown` from `src/front/table/operations.def` and "
               "`codes.def`; a test\nsends each operation and keeps this page true. What is "
               "refused answers 501 with the reason.\n\n");
    operations_print(out);
    codes_print(out);
    BUF_APPEND(
        out,
        "\n## Queries\n\n"
        "`$filter`: eq, ne, gt, ge, lt, le, and, or, not, parentheses; texts, Int32, Int64, "
        "Double, "
        "Boolean, datetime, guid\nand binary literals, on either side; 256 comparisons, 64 levels. "
        "`$select`, `$top` (1 to 1000), `$format`. Other\noptions that begin with a dollar are "
        "refused.\n");
}
