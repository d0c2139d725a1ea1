#include "support/views.h"

#include "catalogue/container_space.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/rest/sql/compile.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/resolve.h"
#include "front/rest/views/query.h"
#include "item/scan.h"
#include "query/run.h"
#include "support/check.h"
#include "support/verify.h"

#include <stdlib.h>

/* A view, what it holds and what it should. */
struct look {
    struct arena *arena;
    const char *id;
    struct catalogue *catalogue;
    struct slice account, database;
    const struct definition_view *definition;
    struct slice stored[VIEWS_ITEMS_MAX], wanted[VIEWS_ITEMS_MAX];
    size_t stored_count, wanted_count;
};

struct item *views_items(struct container *container, struct arena *arena, size_t *ret_count)
{
    struct item_space space = container_space(container, &clock_system, NULL);
    size_t spans_count, count = 0;
    const struct partition_span *spans = partition_map_spans(space.map, &spans_count);
    struct item *items = ARENA_ARRAY(arena, struct item, VIEWS_ITEMS_MAX);
    struct error err;

    for (size_t i = 0; i < spans_count; i++) {
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);
        struct item_scan_page page;

        assert_ok(item_scan_items(&scope, &(struct item_scan_request){.items_max = 2000}, arena,
                                  &page, &err),
                  &err);
        assert_false(page.more);
        assert_true(count + page.count <= VIEWS_ITEMS_MAX);
        for (size_t n = 0; n < page.count; n++)
            items[count++] = page.items[n];
    }
    *ret_count = count;
    return items;
}

static struct container *opened_as(const struct look *look, struct slice id)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(look->catalogue, look->account, look->database, id,
                                       &container, &err),
              &err);
    return container;
}

/* --- Rows of items --------------------------------------------------------------------------- */

static void rows_make(struct look *look, const struct rest_view_query *query)
{
    for (size_t s = 0; s < look->definition->source_count; s++) {
        CLEANUP(container_unref)
        struct container *source = opened_as(look, look->definition->sources[s]);
        size_t count;
        const struct item *items = views_items(source, look->arena, &count);

        for (size_t i = 0; i < count; i++) {
            struct rid rid = container_rid_below(source, RID_ITEM, items[i].header.number);
            char text[RID_TEXT_SIZE];
            struct error err;
            struct slice row;

            assert_ok(rest_view_query_row(query, items[i].document, rid_format(rid, text),
                                          look->arena, &row, &err),
                      &err);
            if (row.data)
                look->wanted[look->wanted_count++] = row;
        }
    }
}

/* --- Rows of groups -------------------------------------------------------------------------- */

static bool row_keep(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct look *look = self;

    assert_true(look->wanted_count < VIEWS_ITEMS_MAX);
    look->wanted[look->wanted_count++] = arena_copy(look->arena, value->document);
    return true;
}

/* The query of a view over documents, as any query is run. */
static void groups_make(struct look *look)
{
    const struct query_request request = {
        .limits = {.rows_max = 10000}, .arena = look->arena, .row = row_keep, .self = look};
    struct slice *documents = ARENA_ARRAY(look->arena, struct slice, VIEWS_ITEMS_MAX);
    struct query_plan plan;
    struct query_page page;
    struct sql_query *tree;
    size_t count = 0;
    struct error err;

    for (size_t s = 0; s < look->definition->source_count; s++) {
        CLEANUP(container_unref)
        struct container *source = opened_as(look, look->definition->sources[s]);
        size_t items_count;
        const struct item *items = views_items(source, look->arena, &items_count);

        for (size_t i = 0; i < items_count; i++)
            documents[count++] = items[i].document;
    }
    assert_ok(sql_parse(look->definition->query, NULL, look->arena, &tree, NULL, &err), &err);
    assert_ok(sql_resolve(tree, look->arena, NULL, &err), &err);
    assert_ok(sql_compile(tree, NULL, look->arena, &plan, NULL, &err), &err);
    assert_ok(query_run_documents(&plan, documents, count, &request, &page, &err), &err);
    assert_int_equal(page.continuation.len, 0);
}

/* Ids of groups follow from their values. */
static struct slice without_id(struct slice document, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, SIZE_MAX / 2);
    begin = document_begin(&out);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("id")))
            document_append(&out, iter.key, &iter.value);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* --- Comparing ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;

    return slice_compare(*x, *y);
}

static const char *as_text(const struct look *look, struct slice document)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    document_json_write(document, &text);
    return arena_text(look->arena, buf_slice(&text));
}

static void rows_compare(struct look *look)
{
    size_t s = 0, w = 0;

    qsort(look->stored, look->stored_count, sizeof look->stored[0], compare);
    qsort(look->wanted, look->wanted_count, sizeof look->wanted[0], compare);
    for (; s < look->stored_count || w < look->wanted_count; s++, w++) {
        int order = s == look->stored_count   ? 1
                    : w == look->wanted_count ? -1
                                              : slice_compare(look->stored[s], look->wanted[w]);

        if (order)
            fail_msg("view %s (%.*s) %s %s; it has %zu rows, %zu are wanted", look->id,
                     SLICE_ARG(look->definition->query), order < 0 ? "should not have" : "lacks",
                     as_text(look, order < 0 ? look->stored[s] : look->wanted[w]),
                     look->stored_count, look->wanted_count);
    }
}

void views_expect(struct catalogue *catalogue, struct slice account, struct slice database,
                  const char *id)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
    CLEANUP(container_unref) struct container *view = NULL;
    struct look *look = ARENA_NEW(arena, struct look);
    const struct item *items;
    struct error err;

    *look = (struct look){
        .arena = arena, .id = id, .catalogue = catalogue, .account = account, .database = database};
    view = opened_as(look, slice_of_text(id));
    look->definition = &definition_fields(container_definition(view))->view;
    assert_ok(rest_view_query_new(look->definition, &query, &err), &err);
    items = views_items(view, arena, &look->stored_count);
    for (size_t i = 0; i < look->stored_count; i++)
        look->stored[i] = rest_view_query_is_grouped(query) ? without_id(items[i].document, arena)
                                                            : items[i].document;
    if (rest_view_query_is_grouped(query))
        groups_make(look);
    else
        rows_make(look, query);
    rows_compare(look);
    (void)verify_container(view);
}
