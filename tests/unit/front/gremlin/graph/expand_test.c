/* Expansions of random graphs against a model that knows nothing of partitions: every vertex has
 * the edges it was given, in either direction, whatever the number of partitions, the size of pages
 * and what is asked for. */
#include "front/gremlin/graph/graph.h"

#include "base/random.h"
#include "catalogue/container_space.h"
#include "catalogue/indexes.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"
#include "support/check.h"
#include "support/graph_bench.h"

enum { VERTICES = 120, EDGES = 700, KEYS = 17, LABELS = 3, ROUNDS = 40 };

static const char *const labels[LABELS] = {"a", "b", "c"};

struct model {
    struct {
        int from, to, label;
        int weight;
    } edges[EDGES];
    bool dropped[VERTICES];
    struct gremlin_value vertices[VERTICES]; /* as the graph gave them */
};

static int key_of(int vertex)
{
    return vertex % KEYS;
}

static struct gremlin_value vertex_add(struct graph_bench *bench, struct gremlin_graph *graph,
                                       int number, bool keyed)
{
    struct gremlin_value key =
        gremlin_string(bench->heap, arena_printf(bench->arena, "key %d", key_of(number)));
    const struct gremlin_assignment list[] = {
        {.key = SLICE("number"), .value = gremlin_int(number)}, {.key = SLICE("pk"), .value = key}};
    const struct gremlin_new_vertex vertex = {.label = slice_of_text(labels[number % LABELS]),
                                              .id = gremlin_int(number),
                                              .properties = list,
                                              .property_count = keyed ? 2 : 1};
    struct gremlin_value made;
    struct error err = {0};

    assert_ok(gremlin_graph_add_vertex(graph, &vertex, &made, &err), &err);
    gremlin_value_unref(key);
    return made;
}

static void edge_add(struct gremlin_graph *graph, struct model *model, int number)
{
    const struct gremlin_assignment weight = {.key = SLICE("weight"),
                                              .value = gremlin_int(model->edges[number].weight)};
    const struct gremlin_new_edge edge = {.label =
                                              slice_of_text(labels[model->edges[number].label]),
                                          .id = gremlin_int(1000 + number),
                                          .from = model->vertices[model->edges[number].from],
                                          .to = model->vertices[model->edges[number].to],
                                          .properties = &weight,
                                          .property_count = 1};
    struct gremlin_value made;
    struct error err = {0};

    assert_ok(gremlin_graph_add_edge(graph, &edge, &made, &err), &err);
    gremlin_value_unref(made);
}

static void build(struct graph_bench *bench, struct gremlin_graph *graph, struct random *random,
                  bool keyed, struct model *model)
{
    struct error err = {0};

    for (int i = 0; i < VERTICES; i++)
        model->vertices[i] = vertex_add(bench, graph, i, keyed);
    for (int i = 0; i < EDGES; i++) {
        model->edges[i].from = (int)random_below(random, VERTICES / 2); /* some have none */
        model->edges[i].to = (int)random_below(random, VERTICES);
        model->edges[i].label = (int)random_below(random, LABELS);
        model->edges[i].weight = (int)random_below(random, 10);
        edge_add(graph, model, i);
    }
    assert_ok(gremlin_graph_commit(graph, &err), &err);
}

/* --- The question
 * ---------------------------------------------------------------------------------- */

struct question {
    struct gremlin_expansion asked;
    int inputs[2 * VERTICES];
    struct gremlin_value vertices[2 * VERTICES];
    struct slice label;
    struct gremlin_condition heavy, even;
    int weight_min; /* 0: none */
    int number_max; /* of neighbours; VERTICES: any */
};

static void question_make(struct graph_bench *bench, struct random *random,
                          const struct model *model, struct question *q)
{
    struct gremlin_value bound;
    struct error err = {0};

    *q = (struct question){.number_max = VERTICES};
    q->asked.vertices = q->vertices;
    q->asked.vertex_count = random_below(random, 2 * VERTICES) + 1;
    for (size_t i = 0; i < q->asked.vertex_count; i++) {
        q->inputs[i] = (int)random_below(random, VERTICES);
        q->vertices[i] = model->vertices[q->inputs[i]];
    }
    q->asked.reach = (enum gremlin_reach)random_below(random, 3);
    q->asked.want = (enum gremlin_want)random_below(random, 3);
    q->asked.heads = random_below(random, 2);
    if (random_below(random, 2)) {
        q->label = slice_of_text(labels[random_below(random, LABELS)]);
        q->asked.labels = &q->label;
        q->asked.label_count = 1;
    }
    if (random_below(random, 2)) {
        q->weight_min = 1 + (int)random_below(random, 9);
        bound = gremlin_int(q->weight_min);
        q->heavy =
            (struct gremlin_condition){.kind = GREMLIN_CONDITION_PROPERTY, .key = SLICE("weight")};
        assert_ok(
            gremlin_predicate_new(bench->heap, SLICE("gte"), &bound, 1, &q->heavy.operand, &err),
            &err);
        q->asked.edge_conditions = &q->heavy;
        q->asked.edge_condition_count = 1;
    }
    if (q->asked.want != GREMLIN_WANT_EDGES && random_below(random, 2)) {
        q->number_max = (int)random_below(random, VERTICES);
        bound = gremlin_int(q->number_max);
        q->even =
            (struct gremlin_condition){.kind = GREMLIN_CONDITION_PROPERTY, .key = SLICE("number")};
        assert_ok(
            gremlin_predicate_new(bench->heap, SLICE("lt"), &bound, 1, &q->even.operand, &err),
            &err);
        q->asked.vertex_conditions = &q->even;
        q->asked.vertex_condition_count = 1;
    }
}

static void question_done(struct question *q)
{
    gremlin_value_unref(q->heavy.operand);
    gremlin_value_unref(q->even.operand);
}

/* --- The answers
 * ------------------------------------------------------------------------------------- */

/* How often each input has come to each thing: an edge, or a vertex. */
struct tally {
    uint16_t times[2 * VERTICES][EDGES + VERTICES];
};

static bool edge_fits(const struct model *model, const struct question *q, int edge)
{
    return (!q->asked.label_count ||
            slice_equal(q->label, slice_of_text(labels[model->edges[edge].label]))) &&
           model->edges[edge].weight >= q->weight_min && !model->dropped[model->edges[edge].from] &&
           !model->dropped[model->edges[edge].to];
}

static void model_answer(const struct model *model, const struct question *q, struct tally *tally)
{
    for (size_t i = 0; i < q->asked.vertex_count; i++) {
        for (int e = 0; e < EDGES; e++) {
            for (int in = 0; in < 2; in++) {
                int at = in ? model->edges[e].to : model->edges[e].from;
                int other = in ? model->edges[e].from : model->edges[e].to;

                if (at != q->inputs[i] || !edge_fits(model, q, e) ||
                    q->asked.reach == (in ? GREMLIN_REACH_OUT : GREMLIN_REACH_IN) ||
                    other >= q->number_max)
                    continue;
                tally->times[i][q->asked.want == GREMLIN_WANT_EDGES ? e : EDGES + other]++;
            }
        }
    }
}

static int number_of(struct gremlin_value element)
{
    struct slice id = gremlin_bytes(gremlin_element(element)->id);
    int number = 0;

    for (size_t i = 0; i < id.len; i++)
        number = number * 10 + (id.data[i] - '0');
    return number;
}

static void graph_answer(struct gremlin_graph *graph, const struct question *q, size_t want,
                         struct tally *tally)
{
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    struct gremlin_page page;
    struct error err = {0};

    assert_ok(gremlin_graph_expand(graph, &q->asked, &found, &err), &err);
    do {
        assert_ok(gremlin_found_next(found, want, &page, &err), &err);
        for (size_t i = 0; i < page.count; i++) {
            int number = number_of(page.elements[i]);

            assert_true(i == 0 || page.inputs[i - 1] <= page.inputs[i]);
            tally->times[page.inputs[i]]
                        [page.elements[i].type == GREMLIN_EDGE ? number - 1000 : EDGES + number]++;
            if (q->asked.want == GREMLIN_WANT_VERTICES_AND_EDGES)
                assert_int_equal(page.edges[i].type, GREMLIN_EDGE);
        }
    } while (page.count);
}

static void check(struct gremlin_graph *graph, const struct model *model, const struct question *q,
                  size_t want)
{
    CLEANUP(memory_free) struct tally *expected = MEMORY_NEW(struct tally);
    CLEANUP(memory_free) struct tally *got = MEMORY_NEW(struct tally);

    model_answer(model, q, expected);
    graph_answer(graph, q, want, got);
    assert_memory_equal(expected->times, got->times, sizeof got->times);
    if (!q->asked.vertex_condition_count) {
        uint64_t counts[2 * VERTICES], sum;
        struct error err = {0};

        assert_ok(gremlin_graph_count_edges(graph, &q->asked, counts, &err), &err);
        for (size_t i = 0; i < q->asked.vertex_count; i++) {
            sum = 0;
            for (size_t k = 0; k < EDGES + VERTICES; k++)
                sum += expected->times[i][k];
            assert_int_equal(counts[i], sum);
        }
    }
}

/* The indexes of edges, added to a graph without items and so ready at once. */
static void indexes_add(struct graph_bench *bench)
{
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = graph_bench_graph(bench, "g");
    CLEANUP(container_unref) struct container *container = NULL;
    struct catalogue *catalogue = bench->services.catalogue;
    struct item_space space;
    struct error err = {0};
    bool conflicts;

    assert_ok(gremlin_graph_add_indexes(graph, SLICE("a"), SLICE("d"), &err), &err);
    assert_ok(
        catalogue_container_open(catalogue, SLICE("a"), SLICE("d"), SLICE("g"), &container, &err),
        &err);
    space = container_space(container, &bench->clock, bench->services.gates);
    assert_ok(catalogue_indexes_settle(catalogue, SLICE("a"), SLICE("d"), SLICE("g"),
                                       space.policy_version, &conflicts, &err),
              &err);
    assert_false(conflicts);
}

static void expansions_are_those_of_the_model(struct graph_bench *bench, unsigned partitions,
                                              bool keyed, bool indexed, uint64_t seed)
{
    CLEANUP(memory_free) struct model *model = MEMORY_NEW(struct model);
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct random random;

    random_seed(&random, seed);
    graph_bench_container(bench, "g", keyed ? "\"/pk\"" : NULL, partitions);
    if (indexed)
        indexes_add(bench);
    graph = graph_bench_graph_with(
        bench, "g", (struct gremlin_graph_options){.limits = {.page_rows = seed % 2 ? 7 : 0}});
    build(bench, graph, &random, keyed, model);
    for (int i = 0; i < ROUNDS; i++) {
        struct question q;

        if (i == ROUNDS / 2) { /* the second half reads the graph's own writes */
            struct gremlin_value gone[] = {model->vertices[3], model->vertices[70]};
            struct error err = {0};

            assert_ok(gremlin_graph_drop(graph, gone, 2, &err), &err);
            model->dropped[3] = model->dropped[70] = true;
        }
        question_make(bench, &random, model, &q);
        check(graph, model, &q, i % 3 ? 0 : 5);
        question_done(&q);
    }
    for (int i = 0; i < VERTICES; i++)
        gremlin_value_unref(model->vertices[i]);
}

static void over_one_partition(void **state)
{
    expansions_are_those_of_the_model(*state, 1, true, false, 1);
}

static void over_eight_partitions(void **state)
{
    expansions_are_those_of_the_model(*state, 8, true, false, 2);
}

static void over_eight_partitions_in_small_pages(void **state)
{
    expansions_are_those_of_the_model(*state, 8, true, false, 3);
}

static void without_a_partition_key(void **state)
{
    expansions_are_those_of_the_model(*state, 1, false, false, 4);
}

static void from_entries_over_one_partition(void **state)
{
    expansions_are_those_of_the_model(*state, 1, true, true, 6);
}

static void from_entries_over_eight_partitions_in_small_pages(void **state)
{
    expansions_are_those_of_the_model(*state, 8, true, true, 7);
}

static void from_entries_without_a_partition_key(void **state)
{
    expansions_are_those_of_the_model(*state, 1, false, true, 8);
}

/* All neighbours of these as heads; how many there are. */
static bool heads_count(struct gremlin_graph *graph, const struct model *model, size_t count,
                        uint64_t *ret_found, struct error *err)
{
    const struct gremlin_expansion asked = {.vertices = model->vertices,
                                            .vertex_count = count,
                                            .reach = GREMLIN_REACH_BOTH,
                                            .want = GREMLIN_WANT_VERTICES,
                                            .heads = true};
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    struct gremlin_page page;

    *ret_found = 0;
    assert_ok(gremlin_graph_expand(graph, &asked, &found, err), err);
    do {
        if (!gremlin_found_next(found, 0, &page, err))
            return false;
        *ret_found += page.count;
    } while (page.count);
    return true;
}

static void heads_come_from_entries_without_an_item(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(memory_free) struct model *model = MEMORY_NEW(struct model);
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    struct random random;
    struct error err = {0};
    uint64_t found, items;

    random_seed(&random, 9);
    graph_bench_container(bench, "g", "\"/pk\"", 8);
    indexes_add(bench);
    graph = graph_bench_graph(bench, "g");
    build(bench, graph, &random, true, model);
    assert_false(gremlin_graph_wants_indexes(graph));
    items = gremlin_graph_figures(graph).items;
    assert_ok(heads_count(graph, model, VERTICES, &found, &err), &err);
    assert_int_equal(found, 2 * EDGES);
    assert_int_equal(gremlin_graph_figures(graph).items, items);
    for (int i = 0; i < VERTICES; i++)
        gremlin_value_unref(model->vertices[i]);
}

static void vertices_come_without_the_edges_between_them(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(memory_free) struct model *model = MEMORY_NEW(struct model);
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL;
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    const struct gremlin_search all = {.kind = GREMLIN_ELEMENT_VERTEX};
    struct gremlin_page page;
    struct random random;
    struct error err = {0};
    uint64_t items, count = 0;

    random_seed(&random, 12);
    graph_bench_container(bench, "g", "\"/pk\"", 8);
    indexes_add(bench);
    graph = graph_bench_graph(bench, "g");
    build(bench, graph, &random, true, model);
    items = gremlin_graph_figures(graph).items;
    assert_ok(gremlin_graph_search(graph, &all, &found, &err), &err);
    do {
        assert_ok(gremlin_found_next(found, 0, &page, &err), &err);
        count += page.count;
    } while (page.count);
    assert_int_equal(count, VERTICES);
    assert_int_equal(gremlin_graph_figures(graph).items - items, VERTICES);
    for (int i = 0; i < VERTICES; i++)
        gremlin_value_unref(model->vertices[i]);
}

static void indexes_are_wanted_by_those_who_met_edges_and_may_write(void **state)
{
    struct graph_bench *bench = *state;
    CLEANUP(memory_free) struct model *model = MEMORY_NEW(struct model);
    CLEANUP(gremlin_graph_free) struct gremlin_graph *graph = NULL, *reader = NULL;
    struct random random;
    struct error err = {0};
    uint64_t found;

    random_seed(&random, 11);
    graph_bench_container(bench, "g", "\"/pk\"", 1);
    graph = graph_bench_graph(bench, "g");
    reader = graph_bench_graph_with(bench, "g", (struct gremlin_graph_options){.readonly = true});
    build(bench, graph, &random, true, model);
    assert_false(gremlin_graph_wants_indexes(graph));
    assert_ok(heads_count(graph, model, 10, &found, &err), &err);
    assert_true(gremlin_graph_wants_indexes(graph));
    assert_ok(heads_count(reader, model, 10, &found, &err), &err);
    assert_false(gremlin_graph_wants_indexes(reader));
    for (int i = 0; i < VERTICES; i++)
        gremlin_value_unref(model->vertices[i]);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, graph_bench_setup, graph_bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(over_one_partition),
        STORY(over_eight_partitions),
        STORY(over_eight_partitions_in_small_pages),
        STORY(without_a_partition_key),
        STORY(from_entries_over_one_partition),
        STORY(from_entries_over_eight_partitions_in_small_pages),
        STORY(from_entries_without_a_partition_key),
        STORY(heads_come_from_entries_without_an_item),
        STORY(vertices_come_without_the_edges_between_them),
        STORY(indexes_are_wanted_by_those_who_met_edges_and_may_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
