#include "cli/shell/explain.h"

#include "cli/client.h"
#include "document/bson.h"
#include "query/access/access.h"

enum { COUNTED_MAX = QUERY_ESTIMATE_MAX };

void shell_explained_add(struct shell_explained *explained, struct slice document,
                         struct arena *arena)
{
    struct slice actual = cli_answer_inside(document, "actual");
    struct slice charge = cli_answer_inside(document, "charge");

    if (document_count(document) == 0)
        return;
    if (explained->pages++ == 0)
        explained->plan = arena_copy(arena, document);
    explained->entries += cli_answer_number(actual, "indexEntries");
    explained->loaded += cli_answer_number(actual, "itemsLoaded");
    explained->matched += cli_answer_number(actual, "itemsMatched");
    explained->rows += cli_answer_number(actual, "rows");
    explained->total += cli_answer_number(charge, "total");
    explained->partitions += cli_answer_number(charge, "partitions");
    explained->index += cli_answer_number(charge, "index");
    explained->items += cli_answer_number(charge, "items");
    explained->output += cli_answer_number(charge, "output");
}

static bool is_true(struct slice document, const char *name)
{
    struct document_value value;

    return document_find(document, slice_of_text(name), &value) && value.type == DOCUMENT_BOOL &&
           value.boolean;
}

static void index_append(struct slice index, const char *what, struct buf *out)
{
    double ranges = cli_answer_number(index, "ranges");
    double expected = cli_answer_number(index, "estimatedEntries");

    buf_printf(out, "    %s %.*s, %.0f range%s", what, SLICE_ARG(cli_answer_text(index, "path")),
               ranges, PLURAL(ranges));
    buf_printf(out, "; %.0f%s entr%s counted in advance in the first partition\n", expected,
               expected >= COUNTED_MAX ? " or more" : "", expected == 1 ? "y" : "ies");
}

static void access_append(struct slice access, struct buf *out)
{
    struct slice kind = cli_answer_text(access, "kind");
    struct document_value index;
    struct document_iter iter;

    buf_printf(out, "  access: %.*s%s%s%s%s\n", SLICE_ARG(kind),
               is_true(access, "indexOnly") ? " alone, no items" : "",
               is_true(access, "backwards") ? ", backwards" : "",
               is_true(access, "ordered") ? ", in the order asked for" : "",
               is_true(access, "filterSettled") ? ", filter settled by it" : "");
    if (document_find(access, SLICE("index"), &index) && index.type == DOCUMENT_OBJECT)
        index_append(index.document, "index", out);
    if (document_find(access, SLICE("intersectedWith"), &index) && index.type == DOCUMENT_OBJECT)
        index_append(index.document, "and", out);
    if (document_find(access, SLICE("intersectedToo"), &index) && index.type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, index.document);
        while (document_iter_next(&iter))
            index_append(iter.value.document, "and", out);
    }
    if (document_find(access, SLICE("without"), &index) && index.type == DOCUMENT_OBJECT)
        index_append(index.document, "and not", out);
}

static void charge_append(const struct shell_explained *explained, struct buf *out)
{
    const struct {
        const char *name;
        double ru;
    } steps[] = {{"partitions", explained->partitions},
                 {"index", explained->index},
                 {"items", explained->items},
                 {"output", explained->output}};

    buf_printf(out, "  charge: %.2f RU\n", explained->total);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i].ru > 0)
            buf_printf(out, "    %-10s %8.2f\n", steps[i].name, steps[i].ru);
}

static void advice_append(struct slice advice, struct buf *out)
{
    struct document_iter iter;

    if (document_count(advice) == 0)
        return;
    BUF_APPEND(out, "  advice\n");
    document_iter_init(&iter, advice);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            buf_printf(out, "    %.*s\n", SLICE_ARG(cli_answer_text(iter.value.document, "text")));
}

/* Who answered in the place of the container, or why no view did. */
static void views_append(struct slice plan, struct buf *out)
{
    struct slice view = cli_answer_inside(plan, "view");
    struct document_value list;
    struct document_iter iter;

    if (document_count(view))
        buf_printf(out,
                   "  through the view %.*s, %.0f ms behind, instead of %.0f partitions of its "
                   "source\n",
                   SLICE_ARG(cli_answer_text(view, "id")), cli_answer_number(view, "lagMs"),
                   cli_answer_number(view, "insteadOfPartitions"));
    if (!document_find(plan, SLICE("viewsNotUsed"), &list) || list.type != DOCUMENT_ARRAY)
        return;
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            buf_printf(out, "  not through the view %.*s: %.*s\n",
                       SLICE_ARG(cli_answer_text(iter.value.document, "id")),
                       SLICE_ARG(cli_answer_text(iter.value.document, "reason")));
}

/* What is done with the rows that the partitions give. */
static void stages_append(struct slice stages, struct buf *out)
{
    struct document_iter iter;

    BUF_APPEND(out, "  stages behind it\n");
    document_iter_init(&iter, stages);
    while (document_iter_next(&iter)) {
        struct slice stage = iter.value.document;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        buf_printf(out, "    %-10.*s %.0f rows in, %.0f out, %.2f ms",
                   SLICE_ARG(cli_answer_text(stage, "stage")), cli_answer_number(stage, "rowsIn"),
                   cli_answer_number(stage, "rowsOut"), cli_answer_number(stage, "ms"));
        if (cli_answer_number(stage, "spilledBytes") > 0)
            buf_printf(out, ", %.0f bytes on disk", cli_answer_number(stage, "spilledBytes"));
        buf_append_byte(out, '\n');
    }
}

void shell_explained_append(const struct shell_explained *explained, struct buf *out)
{
    struct slice plan = explained->plan, partitions = cli_answer_inside(plan, "partitions");
    struct document_value only;

    if (explained->pages == 0) {
        BUF_APPEND(out, "plan: the server gave none\n");
        return;
    }
    buf_printf(out, "plan%s\n", explained->pages > 1 ? " of the first page, figures of all" : "");
    access_append(cli_answer_inside(plan, "access"), out);
    buf_printf(out, "  operator: %.*s\n", SLICE_ARG(cli_answer_text(plan, "operator")));
    buf_printf(out, "  partitions: %.0f of %.0f\n", cli_answer_number(partitions, "read"),
               cli_answer_number(partitions, "all"));
    views_append(plan, out);
    buf_printf(out,
               "  read: %.0f index entr%s, %.0f item%s, of which %.0f match%s\n"
               "  rows: %.0f\n",
               explained->entries, explained->entries == 1 ? "y" : "ies", explained->loaded,
               PLURAL(explained->loaded), explained->matched, explained->matched == 1 ? "es" : "",
               explained->rows);
    charge_append(explained, out);
    if (document_find(plan, SLICE("stages"), &only) && only.type == DOCUMENT_ARRAY)
        stages_append(only.document, out);
    if (document_find(plan, SLICE("advice"), &only) && only.type == DOCUMENT_ARRAY)
        advice_append(only.document, out);
}

void shell_explained_print(const struct shell_explained *explained, FILE *to)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    shell_explained_append(explained, &out);
    fwrite(out.data, 1, out.len, to);
}
