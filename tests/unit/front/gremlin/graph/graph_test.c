/* Graphs on a catalogue in memory: what is written is found again, over one and over several
 * partitions, and commits as a whole or not at all. */
#include "front/gremlin/graph/graph.h"

#include "catalogue/container_space.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"
#include "item/operation.h"
#include "support/check.h"
#include "support/graph_bench.h"

#include "document/json.h"

/* --- Short words --------------------------------------------------------------------------------
 */

static struct gremlin_value text(struct graph_bench *bench, const char *of)
{
    return gremlin_string(bench->heap, slice_of_text(of));
}

struct property {
    const char *key;
    struct gremlin_value value;
};

static bool vertex_try(struct graph_bench *bench, struct gremlin_graph *graph, const char *label,
                       const char *id, const char *pk, const struct property *more, size_t count,
                       struct gremlin_value *ret_vertex, struct error *err)
{
    struct gremlin_assignment list[8];
    struct gremlin_value name = text(bench, id), key = pk ? text(bench, pk) : GREMLIN_NOTHING;
    struct gremlin_new_vertex vertex = {
        .label = slice_of_text(label), .id = name, .properties = list};
    bool fine;

    if (pk)
        list[vertex.property_count++] =
            (struct gremlin_assignment){.key = SLICE("pk"), .value = key};
    for (size_t i = 0; i < count; i++)
        list[vertex.property_count++] =
            (struct gremlin_assignment){.key = slice_of_text(more[i].key), .value = more[i].value};
    fine = gremlin_graph_add_vertex(graph, &vertex, ret_vertex, err);
    gremlin_value_unref(name);
    gremlin_value_unref(key);
    return fine;
}

static struct gremlin_value vertex_with(struct graph_bench *bench, struct gremlin_graph *graph,
                                        const char *label, const char *id, const char *pk,
                                        const struct property *more, size_t count)
{
    struct gremlin_value vertex;
    struct error err = {0};

    assert_ok(vertex_try(bench, graph, label, id, pk, more, count, &vertex, &err), &err);
    return vertex;
}

static struct gremlin_value edge(struct graph_bench *bench, struct gremlin_graph *graph,
                                 const char *label, const char *id, struct gremlin_value from,
                                 struct gremlin_value to, double weight)
{
    const struct gremlin_assignment list = {.key = SLICE("weight"),
                                            .value = gremlin_double(weight)};
    struct gremlin_value made, name = text(bench, id);
    struct gremlin_new_edge asked = {.label = slice_of_text(label),
                                     .id = name,
                                     .from = from,
                                     .to = to,
                                     .properties = &list,
                                     .property_count = 1};
    struct error err = {0};

    assert_ok(gremlin_graph_add_edge(graph, &asked, &made, &err), &err);
    gremlin_value_unref(name);
    return made;
}

static struct slice id_of(struct gremlin_value element)
{
    return gremlin_bytes(gremlin_element(element)->id);
}

/* The ids found, sorted and joined: "a b c". */
static int by_text(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static const char *ids_joined(struct graph_bench *bench, struct slice *ids, size_t count,
                              bool sorted)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (sorted && count)
        qsort(ids, count, sizeof *ids, by_text);
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "%s%.*s", i ? " " : "", SLICE_ARG(ids[i]));
    return arena_text(bench->arena, buf_slice(&out));
}

static const char *drain(struct graph_bench *bench, struct gremlin_found *found, bool sorted)
{
    struct slice ids[4096];
    struct gremlin_page page;
    struct error err = {0};
    size_t count = 0;

    do {
        assert_ok(gremlin_found_next(found, 0, &page, &err), &err);
        for (size_t i = 0; i < page.count && count < ARRAY_LEN(ids); i++)
            ids[count++] = arena_copy(bench->arena, id_of(page.elements[i]));
    } while (page.count);
    gremlin_found_free(found);
    return ids_joined(bench, ids, count, sorted);
}

static const char *search(struct graph_bench *bench, struct gremlin_graph *graph,
                          const struct gremlin_search *asked, bool sorted)
{
    struct gremlin_found *found;
    struct error err = {0};

    assert_ok(gremlin_graph_search(graph, asked, &found, &err), &err);
    return drain(bench, found, sorted);
}

static const char *all(struct graph_bench *bench, struct gremlin_graph *graph,
                       enum gremlin_element_kind kind)
{
    return search(bench, graph, &(struct gremlin_search){.kind = kind}, true);
}

static struct gremlin_value predicate(struct graph_bench *bench, const char *name,
                                      struct gremlin_value value)
{
    struct gremlin_value made;
    struct error err = {0};

    assert_ok(gremlin_predicate_new(bench->heap, slice_of_text(name), &value, 1, &made, &err),
              &err);
    return made;
}

static const char *having(struct graph_bench *bench, struct gremlin_graph *graph, const char *key,
                          struct gremlin_value operand)
{
    const struct gremlin_condition condition = {
        .kind = GREMLIN_CONDITION_PROPERTY, .key = slice_of_text(key), .operand = operand};

    assert_true(gremlin_condition_is_stored(&condition));
    return search(bench, graph,
                  &(struct gremlin_search){.conditions = &condition, .condition_count = 1}, true);
}

static uint64_t count_of(struct gremlin_graph *graph, const struct gremlin_search *asked)
{
    uint64_t count;
    struct error err = {0};

    assert_ok(gremlin_graph_count(graph, asked, &count, &err), &err);
    return count;
}

/* A property's values as text: "marko", "1 2". */
static const char *values(struct graph_bench *bench, struct gremlin_value element, const char *key)
{
    struct slice name = slice_of_text(key), parts[64];
    CLEANUP(gremlin_properties_unref)
    struct gremlin_properties *into = gremlin_properties_new(bench->heap, 0);
    struct error err = {0};
    size_t count = 0;

    assert_ok(gremlin_element_select(element, &name, 1, into, &err), &err);
    for (uint32_t i = 0; i < into->count; i++) {
        struct gremlin_value value = into->slots[i].value;

        parts[count++] = gremlin_is_string(value)
                             ? gremlin_bytes(value)
                             : arena_printf(bench->arena, "%lld", (long long)value.integer);
    }
    return ids_joined(bench, parts, count, false);
}

static void commit(struct gremlin_graph *graph)
{
    struct error err = {0};

    assert_ok(gremlin_graph_commit(graph, &err), &err);
}

/* The modern graph, each vertex under a key of its own. */
static void modern(struct graph_bench *bench, struct gremlin_graph *graph, bool keyed)
{
    static const struct {
        const char *id, *label, *name;
        int age;
    } vertices[] = {{"1", "person", "marko", 29},   {"2", "person", "vadas", 27},
                    {"3", "software", "lop", 0},    {"4", "person", "josh", 32},
                    {"5", "software", "ripple", 0}, {"6", "person", "peter", 35}};
    static const struct {
        const char *id, *label;
        int from, to;
        double weight;
    } edges[] = {{"7", "knows", 1, 2, 0.5},    {"8", "knows", 1, 4, 1.0},
                 {"9", "created", 1, 3, 0.4},  {"10", "created", 4, 5, 1.0},
                 {"11", "created", 4, 3, 0.4}, {"12", "created", 6, 3, 0.2}};
    struct gremlin_value made[7];

    for (size_t i = 0; i < ARRAY_LEN(vertices); i++) {
        struct gremlin_value name = text(bench, vertices[i].name);
        struct property more[] = {{"name", name}, {"age", gremlin_int(vertices[i].age)}};

        made[i + 1] = vertex_with(bench, graph, vertices[i].label, vertices[i].id,
                                  keyed ? vertices[i].name : NULL, more, vertices[i].age ? 2 : 1);
        gremlin_value_unref(name);
    }
    for (size_t i = 0; i < ARRAY_LEN(edges); i++)
        gremlin_value_unref(edge(bench, graph, edges[i].label, edges[i].id, made[edges[i].from],
                                 made[edges[i].to], edges[i].weight));
    for (size_t i = 1; i < ARRAY_LEN(made); i++)
        gremlin_value_unref(made[i]);
    commit(graph);
}

/* --- Stories -------------------------------------------------------------------------------------
 */

static void what_is_written_is_found(void **state)
{
    struct graph_bench *bench = *state;

    for (int keyed = 0; keyed < 2; keyed++) {
        const char *id = keyed ? "keyed" : "fixed";
        struct gremlin_condition condition = {.kind = GREMLIN_CONDITION_LABEL};
        CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
        struct gremlin_search asked = {.conditions = &condition, .condition_count = 1};
        struct gremlin_value p;

        graph_bench_container(bench, id, keyed ? "\"/pk\"" : NULL, 8);
        graph = graph_bench_graph(bench, id);
        modern(bench, graph, keyed);
        assert_string_equal(all(bench, graph, GREMLIN_ELEMENT_VERTEX), "1 2 3 4 5 6");
        assert_string_equal(all(bench, graph, GREMLIN_ELEMENT_EDGE), "10 11 12 7 8 9");
        p = text(bench, "marko");
        assert_string_equal(having(bench, graph, "name", p), "1");
        gremlin_value_unref(p);
        assert_string_equal(having(bench, graph, "age", gremlin_int(32)), "4");
        assert_string_equal(having(bench, graph, "age", gremlin_double(32.0)), "4");
        p = predicate(bench, "gt", gremlin_int(28));
        assert_string_equal(having(bench, graph, "age", p), "1 4 6");
        gremlin_value_unref(p);
        p = predicate(bench, "neq", gremlin_int(29));
        assert_string_equal(having(bench, graph, "age", p), "2 4 6");
        gremlin_value_unref(p);
        condition.operand = text(bench, "software");
        assert_string_equal(search(bench, graph, &asked, true), "3 5");
        assert_int_equal(count_of(graph, &asked), 2);
        gremlin_value_unref(condition.operand);
        assert_int_equal(count_of(graph, &(struct gremlin_search){0}), 6);
        assert_int_equal(count_of(graph, &(struct gremlin_search){.kind = GREMLIN_ELEMENT_EDGE}),
                         6);
    }
}

static void ids_are_found_in_the_order_asked_for(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_reference references[4];
    struct gremlin_search asked = {.references = references, .reference_count = 4};
    struct gremlin_value two = text(bench, "2"), six = text(bench, "6"), none = text(bench, "x"),
                         key = text(bench, "vadas"), wrong = text(bench, "peter");
    struct gremlin_graph_figures before;

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    references[0] = (struct gremlin_reference){six, GREMLIN_NOTHING};
    references[1] = (struct gremlin_reference){none, GREMLIN_NOTHING};
    references[2] = (struct gremlin_reference){gremlin_int(2), GREMLIN_NOTHING};
    references[3] = (struct gremlin_reference){six, GREMLIN_NOTHING};
    assert_string_equal(search(bench, graph, &asked, false), "6 2 6");
    /* with its key it is one partition that is read */
    references[0] = (struct gremlin_reference){two, key};
    references[1] = (struct gremlin_reference){two, wrong};
    asked.reference_count = 1;
    before = gremlin_graph_figures(graph);
    assert_string_equal(search(bench, graph, &asked, false), "2");
    assert_int_equal(gremlin_graph_figures(graph).partitions - before.partitions, 1);
    asked.references = &references[1];
    assert_string_equal(search(bench, graph, &asked, false), "");
    gremlin_value_unref(two);
    gremlin_value_unref(six);
    gremlin_value_unref(none);
    gremlin_value_unref(key);
    gremlin_value_unref(wrong);
}

static void a_condition_on_the_partition_key_reads_one_partition(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_value key = text(bench, "josh");
    struct gremlin_graph_figures before;

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    before = gremlin_graph_figures(graph);
    assert_string_equal(having(bench, graph, "pk", key), "4");
    assert_int_equal(gremlin_graph_figures(graph).partitions - before.partitions, 1);
    gremlin_value_unref(key);
}

static struct gremlin_value find(struct graph_bench *bench, struct gremlin_graph *graph,
                                 enum gremlin_element_kind kind, const char *id)
{
    struct gremlin_value name = text(bench, id), got = GREMLIN_NOTHING;
    const struct gremlin_reference reference = {name, GREMLIN_NOTHING};
    struct gremlin_found *found;
    struct gremlin_page page;
    struct error err = {0};

    assert_ok(
        gremlin_graph_search(
            graph,
            &(struct gremlin_search){.kind = kind, .references = &reference, .reference_count = 1},
            &found, &err),
        &err);
    assert_ok(gremlin_found_next(found, 0, &page, &err), &err);
    if (page.count)
        got = gremlin_value_ref(page.elements[0]);
    gremlin_found_free(found);
    gremlin_value_unref(name);
    return got;
}

static const char *expand(struct graph_bench *bench, struct gremlin_graph *graph, const char *id,
                          struct gremlin_expansion asked)
{
    struct gremlin_value vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, id);
    struct gremlin_found *found;
    struct error err = {0};

    assert_int_equal(vertex.type, GREMLIN_VERTEX);
    asked.vertices = &vertex;
    asked.vertex_count = 1;
    assert_ok(gremlin_graph_expand(graph, &asked, &found, &err), &err);
    gremlin_value_unref(vertex);
    return drain(bench, found, true);
}

static void edges_lead_both_ways(void **state)
{
    struct graph_bench *bench = *state;
    const struct slice knows = SLICE("knows");

    for (int keyed = 0; keyed < 2; keyed++) {
        const char *id = keyed ? "keyed" : "fixed";
        CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
        struct gremlin_condition light = {.kind = GREMLIN_CONDITION_PROPERTY,
                                          .key = SLICE("weight")};
        struct gremlin_condition old = {.kind = GREMLIN_CONDITION_PROPERTY, .key = SLICE("age")};

        graph_bench_container(bench, id, keyed ? "\"/pk\"" : NULL, 8);
        graph = graph_bench_graph(bench, id);
        modern(bench, graph, keyed);
        for (int heads = 0; heads < 2; heads++) {
            assert_string_equal(
                expand(bench, graph, "1",
                       (struct gremlin_expansion){.want = GREMLIN_WANT_VERTICES, .heads = heads}),
                "2 3 4");
            assert_string_equal(expand(bench, graph, "3",
                                       (struct gremlin_expansion){.reach = GREMLIN_REACH_IN,
                                                                  .want = GREMLIN_WANT_VERTICES,
                                                                  .heads = heads}),
                                "1 4 6");
            assert_string_equal(expand(bench, graph, "4",
                                       (struct gremlin_expansion){.reach = GREMLIN_REACH_BOTH,
                                                                  .want = GREMLIN_WANT_VERTICES,
                                                                  .heads = heads}),
                                "1 3 5");
        }
        assert_string_equal(expand(bench, graph, "1",
                                   (struct gremlin_expansion){.labels = &knows, .label_count = 1}),
                            "7 8");
        light.operand = predicate(bench, "lt", gremlin_double(0.45));
        assert_string_equal(expand(bench, graph, "1",
                                   (struct gremlin_expansion){.edge_conditions = &light,
                                                              .edge_condition_count = 1}),
                            "9");
        old.operand = predicate(bench, "gte", gremlin_int(30));
        assert_string_equal(
            expand(bench, graph, "1",
                   (struct gremlin_expansion){.want = GREMLIN_WANT_VERTICES_AND_EDGES,
                                              .vertex_conditions = &old,
                                              .vertex_condition_count = 1}),
            "4");
        gremlin_value_unref(light.operand);
        gremlin_value_unref(old.operand);
        assert_string_equal(
            expand(bench, graph, "1",
                   (struct gremlin_expansion){.want = GREMLIN_WANT_VERTICES, .limit = 1}),
            "2");
    }
}

static void out_edges_are_read_from_one_partition(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_value vertex;
    struct gremlin_graph_figures before;
    struct gremlin_found *found;
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    before = gremlin_graph_figures(graph);
    assert_ok(gremlin_graph_expand(
                  graph, &(struct gremlin_expansion){.vertices = &vertex, .vertex_count = 1},
                  &found, &err),
              &err);
    assert_string_equal(drain(bench, found, true), "7 8 9");
    assert_int_equal(gremlin_graph_figures(graph).partitions - before.partitions, 1);
    assert_int_equal(gremlin_graph_figures(graph).items - before.items, 3);
    gremlin_value_unref(vertex);
}

/* What a rolled back request wrote never was; what it wrote it saw. */
static void writes_are_seen_at_once_and_kept_by_the_commit_alone(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL, *other = NULL;
    struct gremlin_value vertex, name;
    struct gremlin_assignment age = {.key = SLICE("age"), .value = gremlin_int(30)};
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    other = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    name = text(bench, "lena");
    vertex = vertex_with(bench, graph, "person", "20", "lena", &(struct property){"name", name}, 1);
    assert_string_equal(having(bench, graph, "name", name), "20");
    assert_string_equal(having(bench, other, "name", name), "");
    assert_ok(gremlin_graph_assign(graph, &vertex, &age, 1, &err), &err);
    assert_string_equal(values(bench, vertex, "age"), "30");
    gremlin_graph_rollback(graph);
    assert_string_equal(having(bench, graph, "name", name), "");
    assert_string_equal(all(bench, graph, GREMLIN_ELEMENT_VERTEX), "1 2 3 4 5 6");
    gremlin_value_unref(vertex);
    gremlin_value_unref(name);
}

static void the_second_of_two_writers_of_an_element_is_told(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL, *other = NULL;
    struct gremlin_value mine, theirs;
    struct gremlin_assignment age = {.key = SLICE("age"), .value = gremlin_int(30)};
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    other = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    gremlin_graph_begin(graph);
    gremlin_graph_begin(other);
    mine = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    theirs = find(bench, other, GREMLIN_ELEMENT_VERTEX, "1");
    assert_ok(gremlin_graph_assign(graph, &mine, &age, 1, &err), &err);
    age.value = gremlin_int(31);
    assert_ok(gremlin_graph_assign(other, &theirs, &age, 1, &err), &err);
    commit(graph);
    assert_fails(gremlin_graph_commit(other, &err), &err, ERROR_CONFLICT);
    assert_true(gremlin_graph_may_retry(other, &err));
    assert_false(gremlin_graph_is_written(other));
    gremlin_value_unref(theirs);
    theirs = find(bench, other, GREMLIN_ELEMENT_VERTEX, "1");
    assert_string_equal(values(bench, theirs, "age"), "30");
    assert_ok(gremlin_graph_assign(other, &theirs, &age, 1, &err), &err);
    commit(other);
    gremlin_value_unref(theirs);
    theirs = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    assert_string_equal(values(bench, theirs, "age"), "31");
    gremlin_value_unref(mine);
    gremlin_value_unref(theirs);
}

/* An edge to a vertex that somebody drops meanwhile would lead nowhere. */
static void an_edge_is_not_added_to_a_vertex_that_is_dropped_meanwhile(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL, *other = NULL;
    struct gremlin_value from, to, dropped;
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    other = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    from = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    to = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "6");
    dropped = find(bench, other, GREMLIN_ELEMENT_VERTEX, "6");
    gremlin_value_unref(edge(bench, graph, "knows", "30", from, to, 1.0));
    assert_ok(gremlin_graph_drop(other, &dropped, 1, &err), &err);
    commit(other);
    assert_fails(gremlin_graph_commit(graph, &err), &err, ERROR_CONFLICT);
    gremlin_graph_rollback(graph);
    assert_string_equal(all(bench, graph, GREMLIN_ELEMENT_EDGE), "10 11 7 8 9");
    gremlin_value_unref(from);
    gremlin_value_unref(to);
    gremlin_value_unref(dropped);
}

static void a_dropped_vertex_takes_its_edges_along(void **state)
{
    struct graph_bench *bench = *state;

    for (int keyed = 0; keyed < 2; keyed++) {
        const char *id = keyed ? "keyed" : "fixed";
        CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
        struct gremlin_value vertices[2];
        struct error err = {0};

        graph_bench_container(bench, id, keyed ? "\"/pk\"" : NULL, 8);
        graph = graph_bench_graph(bench, id);
        modern(bench, graph, keyed);
        vertices[0] = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "3");
        vertices[1] = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "4");
        assert_ok(gremlin_graph_drop(graph, vertices, 2, &err), &err);
        assert_string_equal(all(bench, graph, GREMLIN_ELEMENT_EDGE), "7");
        commit(graph);
        assert_string_equal(all(bench, graph, GREMLIN_ELEMENT_VERTEX), "1 2 5 6");
        assert_string_equal(all(bench, graph, GREMLIN_ELEMENT_EDGE), "7");
        /* once more: what is gone is passed over */
        assert_ok(gremlin_graph_drop(graph, vertices, 2, &err), &err);
        commit(graph);
        gremlin_value_unref(vertices[0]);
        gremlin_value_unref(vertices[1]);
    }
}

static void assign(struct gremlin_graph *graph, struct gremlin_value element, const char *key,
                   enum gremlin_enum_word cardinality, struct gremlin_value value)
{
    const struct gremlin_assignment asked = {
        .cardinality = cardinality, .key = slice_of_text(key), .value = value};
    struct error err = {0};

    assert_ok(gremlin_graph_assign(graph, &element, &asked, 1, &err), &err);
}

static void properties_have_cardinalities(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_value vertex, again, property;
    CLEANUP(gremlin_properties_unref) struct gremlin_properties *into = NULL;
    const struct slice n = SLICE("n");
    struct gremlin_pair meta = {.key = SLICE("since"), .value = gremlin_int(7)};
    struct gremlin_assignment with_meta = {.cardinality = GREMLIN_CARDINALITY_SET,
                                           .key = SLICE("n"),
                                           .value = gremlin_int(2),
                                           .meta = &meta,
                                           .meta_count = 1};
    struct error err = {0};

    graph_bench_container(bench, "fixed", NULL, 1);
    graph = graph_bench_graph(bench, "fixed");
    vertex = vertex_with(bench, graph, "x", "1", NULL, NULL, 0);
    again = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    assign(graph, vertex, "n", GREMLIN_CARDINALITY_LIST, gremlin_int(1));
    assign(graph, vertex, "n", GREMLIN_CARDINALITY_LIST, gremlin_int(2));
    assign(graph, vertex, "n", GREMLIN_CARDINALITY_LIST, gremlin_int(1));
    assert_string_equal(values(bench, vertex, "n"), "1 2 1");
    assert_string_equal(values(bench, again, "n"), "1 2 1"); /* whoever holds it */
    assign(graph, vertex, "n", GREMLIN_CARDINALITY_SET, gremlin_int(2));
    assert_string_equal(values(bench, vertex, "n"), "1 2 1");
    assert_ok(gremlin_graph_assign(graph, &vertex, &with_meta, 1, &err), &err);
    into = gremlin_properties_new(bench->heap, 0);
    assert_ok(gremlin_element_select(vertex, &n, 1, into, &err), &err);
    assert_null(into->slots[0].meta);
    assert_int_equal(into->slots[1].meta->slots[0].value.integer, 7);
    /* a value of it dropped, by its id */
    property = gremlin_vertex_property_new(bench->heap, &into->slots[1], vertex);
    assert_ok(gremlin_graph_drop(graph, &property, 1, &err), &err);
    gremlin_value_unref(property);
    assert_string_equal(values(bench, vertex, "n"), "1 1");
    assert_string_equal(having(bench, graph, "n", gremlin_int(2)), "");
    assert_string_equal(having(bench, graph, "n", gremlin_int(1)), "1");
    assign(graph, vertex, "n", GREMLIN_CARDINALITY_SINGLE, gremlin_int(9));
    assert_string_equal(values(bench, vertex, "n"), "9");
    assign(graph, vertex, "n", GREMLIN_CARDINALITY_SINGLE, GREMLIN_NOTHING);
    assert_string_equal(values(bench, vertex, "n"), "");
    commit(graph);
    gremlin_value_unref(vertex);
    gremlin_value_unref(again);
}

static void rules_of_the_partition_key_hold(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_value vertex, other = text(bench, "b"), same = text(bench, "a");
    struct gremlin_assignment key = {.key = SLICE("pk"), .value = other};
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 2);
    graph = graph_bench_graph(bench, "keyed");
    assert_fails(vertex_try(bench, graph, "x", "1", NULL, NULL, 0, &vertex, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_contains(err.message, "Cannot add a vertex where the partition key property has value "
                                 "'null'.");
    vertex = vertex_with(bench, graph, "x", "1", "a", NULL, 0);
    assert_string_equal(values(bench, vertex, "pk"), "a");
    assert_fails(gremlin_graph_assign(graph, &vertex, &key, 1, &err), &err, ERROR_BAD_REQUEST);
    key.value = same;
    assert_ok(gremlin_graph_assign(graph, &vertex, &key, 1, &err), &err);
    gremlin_value_unref(vertex);
    /* an id is unique under its key */
    vertex = vertex_with(bench, graph, "x", "1", "b", NULL, 0);
    gremlin_value_unref(vertex);
    commit(graph);
    assert_fails(vertex_try(bench, graph, "x", "1", "a", NULL, 0, &vertex, &err), &err,
                 ERROR_ITEM_EXISTS);
    assert_contains(err.message, "Conflicting request to resource has been attempted.");
    gremlin_value_unref(other);
    gremlin_value_unref(same);
}

static void edges_do_not_show_the_key_they_are_kept_under(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_condition kept = {.kind = GREMLIN_CONDITION_PROPERTY, .key = SLICE("pk")};
    struct gremlin_value found;

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    found = find(bench, graph, GREMLIN_ELEMENT_EDGE, "7");
    assert_string_equal(values(bench, found, "pk"), "");
    gremlin_value_unref(found);
    kept.operand = text(bench, "marko");
    assert_string_equal(search(bench, graph,
                               &(struct gremlin_search){.kind = GREMLIN_ELEMENT_EDGE,
                                                        .conditions = &kept,
                                                        .condition_count = 1},
                               true),
                        "7 8 9");
    gremlin_value_unref(kept.operand);
}

static void graphs_refuse_keys_that_edges_cannot_share(void **state)
{
    static const char *const definitions[] = {
        "{\"id\":\"c0\",\"partitionKey\":{\"paths\":[\"/id\"]}}",
        "{\"id\":\"c1\",\"partitionKey\":{\"paths\":[\"/label\"]}}",
        "{\"id\":\"c2\",\"partitionKey\":{\"paths\":[\"/a/b\"]}}",
        "{\"id\":\"c3\",\"orrery\":{\"identity\":\"_id\"}}",
    };
    struct graph_bench *bench = *state;

    for (size_t i = 0; i < ARRAY_LEN(definitions); i++) {
        CLEANUP(container_unref) struct container *container = NULL;
        struct slice id = arena_printf(bench->arena, "c%zu", i);
        struct gremlin_graph *graph;
        struct error err = {0};

        graph_bench_define(bench, definitions[i], 0);
        assert_ok(catalogue_container_open(bench->bench->catalogue, SLICE("a"), SLICE("d"), id,
                                           &container, &err),
                  &err);
        assert_fails(gremlin_graph_new(&(struct gremlin_graph_options){.services = &bench->services,
                                                                       .container = container,
                                                                       .heap = bench->heap},
                                       &graph, &err),
                     &err, ERROR_NOT_SUPPORTED);
    }
}

static void hierarchical_keys_route(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_value a = text(bench, "a"), made[2], id;
    struct error err = {0};

    graph_bench_container(bench, "deep", "\"/t\",\"/u\"", 4);
    graph = graph_bench_graph(bench, "deep");
    for (int i = 0; i < 2; i++) {
        const struct gremlin_assignment list[] = {{.key = SLICE("t"), .value = a},
                                                  {.key = SLICE("u"), .value = gremlin_int(i)}};
        struct gremlin_new_vertex vertex = {
            .label = SLICE("x"), .properties = list, .property_count = 2};

        id = text(bench, i ? "1" : "0");
        vertex.id = id;
        assert_ok(gremlin_graph_add_vertex(graph, &vertex, &made[i], &err), &err);
        gremlin_value_unref(id);
    }
    gremlin_value_unref(edge(bench, graph, "to", "e", made[0], made[1], 1.0));
    commit(graph);
    assert_string_equal(
        expand(bench, graph, "0", (struct gremlin_expansion){.want = GREMLIN_WANT_VERTICES}), "1");
    assert_string_equal(expand(bench, graph, "1",
                               (struct gremlin_expansion){.reach = GREMLIN_REACH_IN,
                                                          .want = GREMLIN_WANT_VERTICES}),
                        "0");
    gremlin_value_unref(a);
    gremlin_value_unref(made[0]);
    gremlin_value_unref(made[1]);
}

static void items_of_the_nosql_api_are_vertices(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_value vertex, p = text(bench, "bare");
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 2);
    graph_bench_item(
        bench, "keyed",
        "{\"id\":\"1\",\"label\":\"x\",\"pk\":\"a\",\"name\":[{\"id\":\"n\",\"_value\":"
        "\"Ann\",\"_meta\":{\"since\":1}}],\"plain\":\"bare\"}");
    graph_bench_item(bench, "keyed", "{\"id\":\"2\",\"pk\":\"a\"}");
    graph_bench_item(bench, "keyed",
                     "{\"id\":\"e\",\"label\":\"knows\",\"_isEdge\":true,\"_vertexId\":\"1\","
                     "\"_vertexLabel\":\"x\",\"_sink\":\"2\",\"_sinkLabel\":\"vertex\","
                     "\"_sinkPartition\":\"a\",\"pk\":\"a\",\"weight\":1}");
    graph = graph_bench_graph(bench, "keyed");
    vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    assert_string_equal(values(bench, vertex, "name"), "Ann");
    assert_string_equal(values(bench, vertex, "plain"), "bare");
    assert_string_equal(having(bench, graph, "plain", p), "1");
    assert_string_equal(
        expand(bench, graph, "1", (struct gremlin_expansion){.want = GREMLIN_WANT_VERTICES}), "2");
    assign(graph, vertex, "plain", GREMLIN_CARDINALITY_LIST, p);
    assert_string_equal(values(bench, vertex, "plain"), "bare bare");
    gremlin_value_unref(vertex);
    vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "2");
    assert_slice_equal(gremlin_bytes(gremlin_element(vertex)->label), SLICE("vertex"));
    gremlin_value_unref(vertex);
    gremlin_value_unref(p);
    (void)err;
}

static void who_may_only_read_writes_nothing(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL, *reader = NULL;
    struct gremlin_value vertex;
    struct error err = {0};

    graph_bench_container(bench, "fixed", NULL, 1);
    graph = graph_bench_graph(bench, "fixed");
    modern(bench, graph, false);
    reader =
        graph_bench_graph_with(bench, "fixed", (struct gremlin_graph_options){.readonly = true});
    assert_fails(vertex_try(bench, reader, "x", "9", NULL, NULL, 0, &vertex, &err), &err,
                 ERROR_FORBIDDEN);
    vertex = find(bench, reader, GREMLIN_ELEMENT_VERTEX, "1");
    assert_fails(gremlin_graph_drop(reader, &vertex, 1, &err), &err, ERROR_FORBIDDEN);
    assert_string_equal(values(bench, vertex, "name"), "marko");
    gremlin_value_unref(vertex);
}

/* A resource token that holds for one partition key shows nothing else. */
static void a_bound_graph_is_that_of_its_key(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL, *bound = NULL;
    const struct partition_key only = {.components = {document_string(SLICE("marko"))}, .count = 1};
    struct gremlin_value vertex;
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    bound = graph_bench_graph_with(bench, "keyed", (struct gremlin_graph_options){.only = &only});
    assert_string_equal(all(bench, bound, GREMLIN_ELEMENT_VERTEX), "1");
    assert_string_equal(all(bench, bound, GREMLIN_ELEMENT_EDGE), "7 8 9");
    for (int heads = 0; heads < 2; heads++)
        assert_string_equal(
            expand(bench, bound, "1",
                   (struct gremlin_expansion){.want = GREMLIN_WANT_VERTICES, .heads = heads}),
            "");
    vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "2");
    assert_fails(gremlin_graph_drop(bound, &vertex, 1, &err), &err, ERROR_FORBIDDEN);
    gremlin_value_unref(vertex);
}

static void what_takes_too_long_or_too_much_ends(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL, *small = NULL;
    struct gremlin_found *found;
    struct gremlin_page page;
    struct gremlin_value vertex, filler;
    struct error err = {0};
    bool fine = true;

    graph_bench_container(bench, "fixed", NULL, 1);
    graph = graph_bench_graph(bench, "fixed");
    modern(bench, graph, false);
    atomic_store(&bench->cancelled, true);
    assert_ok(gremlin_graph_search(graph, &(struct gremlin_search){0}, &found, &err), &err);
    assert_fails(gremlin_found_next(found, 0, &page, &err), &err, ERROR_CANCELLED);
    gremlin_found_free(found);
    atomic_store(&bench->cancelled, false);
    gremlin_graph_set_deadline(graph, clock_read_monotonic_ms(&bench->clock) + 1000);
    bench->later_ms = 2000;
    assert_ok(gremlin_graph_search(graph, &(struct gremlin_search){0}, &found, &err), &err);
    assert_fails(gremlin_found_next(found, 0, &page, &err), &err, ERROR_TIMED_OUT);
    gremlin_found_free(found);
    gremlin_graph_set_deadline(graph, 0);
    small = graph_bench_graph_with(
        bench, "fixed", (struct gremlin_graph_options){.limits = {.transaction_bytes_max = 20000}});
    filler = text(bench, "some text that takes some room in a transaction");
    for (int i = 0; fine && i < 1000; i++) {
        struct slice id = arena_printf(bench->arena, "many%d", i);

        fine = vertex_try(bench, small, "x", arena_text(bench->arena, id), NULL,
                          &(struct property){"filler", filler}, 1, &vertex, &err);
        if (fine)
            gremlin_value_unref(vertex);
    }
    assert_false(fine);
    assert_int_equal(err.code, ERROR_TOO_LARGE);
    gremlin_value_unref(filler);
}

static void system_properties_are_shown_to_who_asks(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    const struct slice names[] = {SLICE("_ts"), SLICE("_etag")}, unknown = SLICE("_none");
    struct gremlin_value vertex;
    struct error err = {0};

    graph_bench_container(bench, "fixed", NULL, 1);
    graph = graph_bench_graph(bench, "fixed");
    modern(bench, graph, false);
    vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    assert_string_equal(values(bench, vertex, "_ts"), "");
    gremlin_value_unref(vertex);
    assert_fails(gremlin_graph_show_system(graph, &unknown, 1, &err), &err, ERROR_BAD_REQUEST);
    assert_ok(gremlin_graph_show_system(graph, names, 2, &err), &err);
    vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    assert_true(strlen(values(bench, vertex, "_ts")) > 0);
    assert_true(strlen(values(bench, vertex, "_etag")) == 38);
    assert_string_equal(values(bench, vertex, "_rid"), "");
    gremlin_value_unref(vertex);
}

static void heads_are_read_in_one_go(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct gremlin_value edges[2], ends[4];
    struct gremlin_graph_figures before;
    struct error err = {0};

    graph_bench_container(bench, "keyed", "\"/pk\"", 8);
    graph = graph_bench_graph(bench, "keyed");
    modern(bench, graph, true);
    edges[0] = find(bench, graph, GREMLIN_ELEMENT_EDGE, "7");
    edges[1] = find(bench, graph, GREMLIN_ELEMENT_EDGE, "12");
    before = gremlin_graph_figures(graph);
    assert_ok(gremlin_graph_ends(graph, edges, 2, GREMLIN_REACH_BOTH, true, ends, &err), &err);
    assert_int_equal(gremlin_graph_figures(graph).reads, before.reads);
    assert_slice_equal(id_of(ends[0]), SLICE("1"));
    assert_slice_equal(id_of(ends[3]), SLICE("3"));
    assert_ok(gremlin_graph_load(graph, ends, 4, NULL, &err), &err);
    assert_int_equal(gremlin_graph_figures(graph).reads, before.reads + 1);
    assert_string_equal(values(bench, ends[0], "name"), "marko");
    assert_string_equal(values(bench, ends[3], "name"), "lop");
    assert_int_equal(gremlin_graph_figures(graph).reads, before.reads + 1);
    for (size_t i = 0; i < 4; i++)
        gremlin_value_unref(ends[i]);
    gremlin_value_unref(edges[0]);
    gremlin_value_unref(edges[1]);
}

/* Values show what they were read with after their graph has gone. */
static void elements_outlive_their_graph(void **state)
{
    struct graph_bench *bench = *state;
    struct gremlin_graph *graph;
    struct gremlin_value vertex;

    graph_bench_container(bench, "fixed", NULL, 1);
    graph = graph_bench_graph(bench, "fixed");
    modern(bench, graph, false);
    vertex = find(bench, graph, GREMLIN_ELEMENT_VERTEX, "1");
    gremlin_graph_free(graph);
    assert_string_equal(values(bench, vertex, "name"), "marko");
    gremlin_value_unref(vertex);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, graph_bench_setup, graph_bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(what_is_written_is_found),
        STORY(ids_are_found_in_the_order_asked_for),
        STORY(a_condition_on_the_partition_key_reads_one_partition),
        STORY(edges_lead_both_ways),
        STORY(out_edges_are_read_from_one_partition),
        STORY(writes_are_seen_at_once_and_kept_by_the_commit_alone),
        STORY(the_second_of_two_writers_of_an_element_is_told),
        STORY(an_edge_is_not_added_to_a_vertex_that_is_dropped_meanwhile),
        STORY(a_dropped_vertex_takes_its_edges_along),
        STORY(properties_have_cardinalities),
        STORY(rules_of_the_partition_key_hold),
        STORY(edges_do_not_show_the_key_they_are_kept_under),
        STORY(graphs_refuse_keys_that_edges_cannot_share),
        STORY(hierarchical_keys_route),
        STORY(items_of_the_nosql_api_are_vertices),
        STORY(who_may_only_read_writes_nothing),
        STORY(a_bound_graph_is_that_of_its_key),
        STORY(what_takes_too_long_or_too_much_ends),
        STORY(system_properties_are_shown_to_who_asks),
        STORY(heads_are_read_in_one_go),
        STORY(elements_outlive_their_graph),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
