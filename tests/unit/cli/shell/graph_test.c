/* Records of graphs become items as the Gremlin API stores them. */
#include "cli/shell/graph.h"

#include "base/arena.h"
#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

struct items {
    struct arena *arena;
    struct slice list[16]; /* BSON */
    size_t count;
};

static bool item_take(void *self, struct slice json, struct error *err UNUSED)
{
    struct items *items = self;

    assert_true(items->count < ARRAY_LEN(items->list));
    items->list[items->count++] = document_of(items->arena, arena_text(items->arena, json));
    return true;
}

static const char *text_at(const struct items *items, size_t item, const char *name)
{
    struct document_value value;

    if (!document_find(items->list[item], slice_of_text(name), &value) ||
        value.type != DOCUMENT_STRING)
        return "";
    return arena_text(items->arena, value.text);
}

static void run(struct shell_graph *graph, const char *const *records, size_t count,
                struct items *items)
{
    struct error err = {0};

    for (size_t i = 0; i < count; i++)
        assert_ok(shell_graph_learn(graph, document_of(items->arena, records[i]), &err), &err);
    for (size_t i = 0; i < count; i++)
        assert_ok(
            shell_graph_items(graph, document_of(items->arena, records[i]), item_take, items, &err),
            &err);
}

#define MARKO                                                                                      \
    "{\"id\":{\"@type\":\"g:Int32\",\"@value\":1},\"label\":\"person\",\"outE\":{\"knows\":[{"     \
    "\"id\":{\"@type\":\"g:Int32\",\"@value\":2},\"inV\":{\"@type\":\"g:Int32\",\"@value\":2},"    \
    "\"properties\":{\"weight\":{\"@type\":\"g:Double\",\"@value\":1.0}}}]},\"properties\":{"      \
    "\"name\":[{\"id\":{\"@type\":\"g:Int64\",\"@value\":0},\"value\":\"marko\",\"properties\":"   \
    "{\"since\":{\"@type\":\"g:Int64\",\"@value\":7}}}]}}"
#define VADAS                                                                                      \
    "{\"id\":{\"@type\":\"g:Int32\",\"@value\":2},\"label\":\"person\",\"inE\":{\"knows\":[]},"    \
    "\"properties\":{\"name\":[{\"value\":\"vadas\"}]}}"

static void graphson_becomes_vertices_and_edges(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(shell_graph_free) struct shell_graph *graph = shell_graph_new(SLICE("pk"), "name");
    static const char *const records[] = {MARKO, VADAS};
    struct items items = {.arena = arena};
    struct document_value list, entry, value;

    run(graph, records, 2, &items);
    assert_int_equal(items.count, 3);
    assert_string_equal(text_at(&items, 0, "id"), "1");
    assert_string_equal(text_at(&items, 0, "pk"), "marko");
    assert_true(document_find(items.list[0], SLICE("name"), &list));
    assert_true(document_find_index(list.document, 0, &entry));
    assert_true(document_find(entry.document, SLICE("_value"), &value));
    assert_slice_equal(value.text, SLICE("marko"));
    assert_true(document_find(entry.document, SLICE("_metaTypes"), &value));
    assert_true(document_find(value.document, SLICE("since"), &value));
    assert_slice_equal(value.text, SLICE("long"));
    assert_string_equal(text_at(&items, 1, "id"), "2"); /* another key: no clash */
    assert_string_equal(text_at(&items, 1, "_vertexId"), "1");
    assert_string_equal(text_at(&items, 1, "_sink"), "2");
    assert_string_equal(text_at(&items, 1, "_sinkPartition"), "vadas");
    assert_string_equal(text_at(&items, 1, "pk"), "marko");
    assert_true(document_find(items.list[1], SLICE("_types"), &value));
    assert_true(document_find(value.document, SLICE("weight"), &value));
    assert_slice_equal(value.text, SLICE("double"));
}

static void an_edge_with_the_id_of_a_vertex_gets_another(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(shell_graph_free) struct shell_graph *graph = shell_graph_new(SLICE_NONE, NULL);
    static const char *const records[] = {MARKO, VADAS};
    struct items items = {.arena = arena};

    run(graph, records, 2, &items);
    assert_string_equal(text_at(&items, 1, "id"), "edge-2");
}

static void rows_with_from_and_to_are_edges(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(shell_graph_free) struct shell_graph *graph = shell_graph_new(SLICE("pk"), NULL);
    static const char *const records[] = {
        "{\"id\":\"a\",\"label\":\"x\",\"pk\":\"p\",\"age\":3}",
        "{\"id\":\"b\",\"label\":\"y\",\"pk\":\"q\"}",
        "{\"id\":\"e\",\"label\":\"to\",\"from\":\"a\",\"to\":\"b\",\"weight\":2}",
    };
    struct items items = {.arena = arena};

    run(graph, records, 3, &items);
    assert_int_equal(items.count, 3);
    assert_string_equal(text_at(&items, 2, "_vertexLabel"), "x");
    assert_string_equal(text_at(&items, 2, "_sinkLabel"), "y");
    assert_string_equal(text_at(&items, 2, "_sinkPartition"), "q");
    assert_string_equal(text_at(&items, 2, "from"), "");
}

static void what_is_no_graph_is_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(shell_graph_free) struct shell_graph *graph = shell_graph_new(SLICE("pk"), NULL);
    struct items items = {.arena = arena};
    struct error err = {0};

    assert_fails(shell_graph_learn(graph, document_of(arena, VADAS), &err), &err,
                 ERROR_BAD_REQUEST);
    assert_contains(err.message, "--key-from");
    assert_fails(shell_graph_learn(graph, document_of(arena, "{\"pk\":\"p\"}"), &err), &err,
                 ERROR_BAD_REQUEST);
    assert_ok(shell_graph_learn(graph, document_of(arena, "{\"id\":\"a\",\"pk\":\"p\"}"), &err),
              &err);
    assert_fails(shell_graph_learn(graph, document_of(arena, "{\"id\":\"a\",\"pk\":\"p\"}"), &err),
                 &err, ERROR_BAD_REQUEST);
    assert_fails(shell_graph_items(graph, document_of(arena, "{\"from\":\"a\",\"to\":\"z\"}"),
                                   item_take, &items, &err),
                 &err, ERROR_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphson_becomes_vertices_and_edges),
        cmocka_unit_test(an_edge_with_the_id_of_a_vertex_gets_another),
        cmocka_unit_test(rows_with_from_and_to_are_edges),
        cmocka_unit_test(what_is_no_graph_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
