/* One random chain of stages per step, run over 1 and over 16 partitions, in both orders, in pages
 * of random size and with so little memory that everything spills, against an evaluator that shares
 * nothing with the engine. ORRERY_TEST_SEED repeats a run, ORRERY_TEST_STEPS says how many; one
 * that failed names both for that step alone. */
#include "document/json.h"
#include "property/stages/naive.h"
#include "query/stage/chain.h"
#include "support/faulty_disk.h"
#include "support/queries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 100, DOCUMENTS = 60, MEMORY = 6000, STEPS_PER_WORLD = 50, PAGES_MAX = 60 };

static const char *const fields[] = {"id", "pk", "a", "n", "s", "t"};

/* What is known of the rows at some point of a chain. */
struct shape {
    unsigned bound[NAIVE_LIST * 4];
    bool documents[NAIVE_LIST * 4]; /* of these: has the fields above */
    size_t count;
    struct naive_expr unique[3]; /* no two rows have the same values; 0 of them: not known */
    size_t unique_count;
    bool total;    /* the sequence is settled */
    unsigned next; /* slot */
    unsigned left; /* slot that a stage has left behind, to be bound again; 0: none */
};

/* A chain in both forms. */
struct made {
    struct naive_chain *naive;
    struct query_stage stages[NAIVE_STAGES];
    struct query_plan *plan; /* of a chain over documents */
    struct query_chain chain;
};

struct world {
    struct queries *one, *many;
    struct query_build *build;
    struct arena *arena;
    struct random random;
    struct naive_rows documents;
    struct query_spill *spill;
    bool per_row;                  /* the chain asks another plan for each row */
    struct query_plan *plans[200]; /* of the step, inner ones too */
    size_t plan_count;
};

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

static unsigned below(struct world *w, unsigned count)
{
    return (unsigned)random_below(&w->random, count);
}

/* --- Expressions ----------------------------------------------------------------------------- */

static struct naive_expr random_expr(struct world *w, const struct shape *shape)
{
    unsigned nth = below(w, (unsigned)shape->count);
    struct naive_expr expr = {.slot = shape->bound[nth]};

    if (shape->documents[nth])
        expr.field = fields[below(w, ARRAY_LEN(fields))];
    return expr;
}

static const struct query_expression *expr_of(struct world *w, struct naive_expr expr)
{
    const struct query_expression *made = query_variable(w->build, expr.slot);

    return expr.field ? query_property_of(w->build, made, slice_of_text(expr.field)) : made;
}

static struct document_value random_value(struct world *w)
{
    static const char *const values[] = {"null",
                                         "true",
                                         "false",
                                         "1",
                                         "2",
                                         "2.5",
                                         "7",
                                         "\"x\"",
                                         "\"y\"",
                                         "[1,2]",
                                         "{\"x\":1,\"y\":2}",
                                         "{\"y\":2,\"x\":1}"};

    return value_of(w->arena, values[below(w, ARRAY_LEN(values))]);
}

static void shape_bind(struct shape *shape, unsigned slot, bool document)
{
    shape->bound[shape->count] = slot;
    shape->documents[shape->count++] = document;
}

/* --- Stages ---------------------------------------------------------------------------------- */

struct making {
    struct world *w;
    struct made *made;
    struct shape shape;
};

static struct naive_stage *stage_new(struct making *m, enum naive_kind kind,
                                     enum query_stage_kind engine, struct query_stage **ret_stage)
{
    size_t nth = m->made->naive->count++;
    struct naive_stage *stage = &m->made->naive->stages[nth];

    assert_true(nth < NAIVE_STAGES);
    stage->kind = kind;
    *ret_stage = &m->made->stages[nth];
    (*ret_stage)->kind = engine;
    return stage;
}

static void make_match(struct making *m)
{
    static const enum query_comparison comparisons[] = {QUERY_EQUAL, QUERY_LESS,
                                                        QUERY_GREATER_EQUAL};
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_MATCH, QUERY_STAGE_MATCH, &engine);
    struct document_value constant =
        below(m->w, 2) ? document_int32((int32_t)below(m->w, 10)) : random_value(m->w);

    stage->test = 1 + below(m->w, 2);
    if (below(m->w, 3) == 0)
        stage->test = NAIVE_EQUAL;
    stage->exprs[0] = random_expr(m->w, &m->shape);
    stage->constant = naive_of(&constant, m->w->arena);
    engine->match =
        query_compare(m->w->build, comparisons[stage->test], expr_of(m->w, stage->exprs[0]),
                      query_constant(m->w->build, constant));
}

static void make_unwind(struct making *m)
{
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_UNWIND, QUERY_STAGE_UNWIND, &engine);

    stage->exprs[0] = random_expr(m->w, &m->shape);
    stage->keep_empty = below(m->w, 2);
    stage->indexed = below(m->w, 2);
    stage->slots[0] = m->shape.next++;
    stage->slots[1] = m->shape.next++;
    engine->unwind = (struct query_unwind){.array = expr_of(m->w, stage->exprs[0]),
                                           .slot = stage->slots[0],
                                           .indexed = stage->indexed,
                                           .index_slot = stage->slots[1],
                                           .keep_empty = stage->keep_empty};
    shape_bind(&m->shape, stage->slots[0], false);
    if (stage->indexed)
        shape_bind(&m->shape, stage->slots[1], false);
    if (stage->indexed && m->shape.unique_count && m->shape.unique_count < 3)
        m->shape.unique[m->shape.unique_count++] = (struct naive_expr){stage->slots[1], NULL};
    else
        m->shape.unique_count = 0;
}

/* A slot for a document: a new one, or one that was left behind. */
static unsigned project_slot(struct making *m)
{
    unsigned left = m->shape.left;

    for (size_t i = 0; i < m->shape.count; i++)
        if (m->shape.bound[i] == left)
            left = 0;
    return left && below(m->w, 2) ? left : m->shape.next++;
}

static void shape_single(struct making *m, unsigned slot, bool document)
{
    m->shape.left = m->shape.count && m->shape.bound[0] != slot ? m->shape.bound[0] : 0;
    m->shape.count = 0;
    shape_bind(&m->shape, slot, document);
}

static void make_object(struct making *m)
{
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_PROJECT_OBJECT, QUERY_STAGE_PROJECT, &engine);
    const struct query_expression *values[NAIVE_LIST];
    struct slice names[NAIVE_LIST];
    bool keeps = m->shape.unique_count == 1;

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (i && below(m->w, 4) == 0)
            continue;
        stage->names[stage->count] = fields[i];
        names[stage->count] = slice_of_text(fields[i]);
        stage->exprs[stage->count] =
            i == 0 && keeps ? m->shape.unique[0] : random_expr(m->w, &m->shape);
        values[stage->count] = expr_of(m->w, stage->exprs[stage->count]);
        stage->count++;
    }
    stage->slots[0] = project_slot(m);
    engine->project = (struct query_project){query_object(m->w->build, names, values, stage->count),
                                             stage->slots[0]};
    shape_single(m, stage->slots[0], true);
    m->shape.unique_count = keeps;
    m->shape.unique[0] = (struct naive_expr){stage->slots[0], "id"};
}

static void make_project(struct making *m)
{
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_PROJECT, QUERY_STAGE_PROJECT, &engine);

    stage->exprs[0] = random_expr(m->w, &m->shape);
    stage->slots[0] = project_slot(m);
    engine->project = (struct query_project){expr_of(m->w, stage->exprs[0]), stage->slots[0]};
    shape_single(m, stage->slots[0], false);
    m->shape.unique_count = 0;
}

static const enum query_aggregate_kind aggregates[] = {QUERY_COUNT, QUERY_SUM, QUERY_AVG, QUERY_MIN,
                                                       QUERY_MAX};

static void make_group(struct making *m, size_t key_count)
{
    struct world *w = m->w;
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_GROUP, QUERY_STAGE_GROUP, &engine);
    struct query_group_key *keys = ARENA_ARRAY(w->arena, struct query_group_key, NAIVE_LIST);
    struct query_aggregate_call *calls =
        ARENA_ARRAY(w->arena, struct query_aggregate_call, NAIVE_LIST);
    struct shape before = m->shape;

    m->shape.count = 0;
    stage->count = key_count;
    stage->argument_count = 1 + below(w, 3);
    for (size_t i = 0; i < key_count; i++) {
        stage->exprs[i] = random_expr(w, &before);
        stage->slots[i] = m->shape.next++;
        keys[i] = (struct query_group_key){expr_of(w, stage->exprs[i]), stage->slots[i]};
        shape_bind(&m->shape, stage->slots[i], false);
        m->shape.unique[i] = (struct naive_expr){stage->slots[i], NULL};
    }
    for (size_t i = 0; i < stage->argument_count; i++) {
        stage->aggregates[i] = below(w, ARRAY_LEN(aggregates));
        stage->arguments[i] = random_expr(w, &before);
        stage->argument_slots[i] = m->shape.next++;
        calls[i] = (struct query_aggregate_call){aggregates[stage->aggregates[i]],
                                                 expr_of(w, stage->arguments[i]),
                                                 stage->argument_slots[i]};
        shape_bind(&m->shape, stage->argument_slots[i], false);
    }
    m->shape.unique_count = key_count;
    m->shape.total = key_count == 0;
    engine->group = (struct query_group){keys, key_count, calls, stage->argument_count};
}

/* all: no two rows are equal in it, if that can be had. */
static void make_sort(struct making *m, bool all)
{
    struct world *w = m->w;
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_SORT, QUERY_STAGE_SORT, &engine);
    struct query_order *order = ARENA_ARRAY(w->arena, struct query_order, NAIVE_LIST);

    for (unsigned i = below(w, 3) + !all; i > 0; i--)
        stage->exprs[stage->count++] = random_expr(w, &m->shape);
    for (size_t i = 0; all && i < m->shape.unique_count; i++)
        stage->exprs[stage->count++] = m->shape.unique[i];
    for (size_t i = 0; i < stage->count; i++) {
        stage->descending[i] = below(w, 2);
        order[i] = (struct query_order){expr_of(w, stage->exprs[i]), stage->descending[i]};
    }
    m->shape.total = m->shape.total || (all && m->shape.unique_count);
    engine->sort = (struct query_sort){order, stage->count};
}

static void make_amount(struct making *m)
{
    struct query_stage *engine;
    bool limit = below(m->w, 2);
    struct naive_stage *stage = stage_new(m, limit ? NAIVE_LIMIT : NAIVE_SKIP,
                                          limit ? QUERY_STAGE_LIMIT : QUERY_STAGE_SKIP, &engine);

    stage->amount = limit ? below(m->w, 40) : below(m->w, 8);
    engine->amount = stage->amount;
}

static void make_distinct(struct making *m)
{
    struct world *w = m->w;
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_DISTINCT, QUERY_STAGE_DISTINCT, &engine);
    const struct query_expression **keys =
        ARENA_ARRAY(w->arena, const struct query_expression *, NAIVE_LIST);

    stage->count = 1;
    stage->exprs[0] = (struct naive_expr){m->shape.bound[0], NULL};
    if (m->shape.total) {
        stage->count = 1 + below(w, 2);
        for (size_t i = 0; i < stage->count; i++)
            stage->exprs[i] = random_expr(w, &m->shape);
    }
    for (size_t i = 0; i < stage->count; i++) {
        keys[i] = expr_of(w, stage->exprs[i]);
        m->shape.unique[i] = stage->exprs[i];
    }
    m->shape.unique_count = stage->count;
    engine->distinct = (struct query_distinct){keys, stage->count};
}

static struct made *make_chain(struct world *w, struct shape shape, bool over_documents,
                               unsigned depth, bool total, struct shape *ret_shape);

static struct shape document_shape(void)
{
    return (struct shape){
        .documents = {true}, .count = 1, .unique = {{0, "id"}}, .unique_count = 1, .next = 2};
}

/* Alone, or for many rows at once; what is found then comes in any sequence, so it is unwound. */
static void make_lookup(struct making *m)
{
    struct world *w = m->w;
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_LOOKUP, QUERY_STAGE_LOOKUP, &engine);
    bool alone = below(w, 2);
    struct shape inner_shape = document_shape();
    struct query_let *let = ARENA_NEW(w->arena, struct query_let);
    struct made *inner;

    stage->has_local = !alone || below(w, 2);
    stage->local = random_expr(w, &m->shape);
    stage->foreign = fields[1 + below(w, 4)];
    stage->has_let = alone && below(w, 2);
    stage->let = random_expr(w, &m->shape);
    stage->let_slot = 1;
    if (stage->has_let)
        shape_bind(&inner_shape, 1, false);
    *let = (struct query_let){expr_of(w, stage->let), 1};
    inner = make_chain(w, inner_shape, true, 0, alone, NULL);
    stage->chains[0] = inner->naive;
    stage->slots[0] = m->shape.next++;
    engine->lookup = (struct query_lookup){
        .container = SLICE("others"),
        .plan = inner->plan,
        .local = stage->has_local ? expr_of(w, stage->local) : NULL,
        .foreign = expr_of(w, (struct naive_expr){0, stage->foreign}),
        .lets = stage->has_let ? let : NULL,
        .let_count = stage->has_let,
        .slot = stage->slots[0],
    };
    w->per_row = true;
    if (!alone) {
        struct query_stage *unwind;
        struct naive_stage *each = stage_new(m, NAIVE_UNWIND, QUERY_STAGE_UNWIND, &unwind);

        each->exprs[0] = (struct naive_expr){stage->slots[0], NULL};
        each->keep_empty = true;
        each->slots[0] = m->shape.next++;
        unwind->unwind = (struct query_unwind){
            .array = expr_of(w, each->exprs[0]), .slot = each->slots[0], .keep_empty = true};
        shape_bind(&m->shape, each->slots[0], false);
        m->shape.unique_count = 0;
        m->shape.total = false;
        return;
    }
    shape_bind(&m->shape, stage->slots[0], false);
}

static void make_facet(struct making *m)
{
    struct world *w = m->w;
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_FACET, QUERY_STAGE_FACET, &engine);
    struct query_chain *chains = ARENA_ARRAY(w->arena, struct query_chain, NAIVE_LIST);
    uint32_t *slots = ARENA_ARRAY(w->arena, uint32_t, NAIVE_LIST);
    struct shape before = m->shape;

    m->shape.count = 0;
    stage->count = 1 + below(w, 3);
    for (size_t i = 0; i < stage->count; i++) {
        struct shape behind;
        struct made *made = make_chain(w, before, false, 0, true, &behind);

        before.next = behind.next;
        stage->chains[i] = made->naive;
        chains[i] = made->chain;
    }
    m->shape.next = before.next;
    for (size_t i = 0; i < stage->count; i++) {
        stage->slots[i] = slots[i] = m->shape.next++;
        shape_bind(&m->shape, slots[i], false);
    }
    m->shape.total = true;
    m->shape.unique_count = 1;
    m->shape.unique[0] = (struct naive_expr){slots[0], NULL};
    engine->facet = (struct query_facet){chains, slots, stage->count};
}

static void make_union(struct making *m)
{
    struct world *w = m->w;
    struct query_stage *engine;
    struct naive_stage *stage;
    struct made *other = make_chain(w, document_shape(), true, 0, false, NULL);

    if (m->shape.count != 1 || m->shape.bound[0] == 0)
        make_object(m);
    stage = stage_new(m, NAIVE_UNION, QUERY_STAGE_UNION, &engine);
    stage->chains[0] = other->naive;
    stage->slots[0] = m->shape.bound[0];
    engine->unite = (struct query_union){SLICE("others"), other->plan, m->shape.bound[0]};
    m->shape.unique_count = 0;
    m->shape.total = false;
}

static struct query_bound bound_of(bool open, double offset)
{
    return (struct query_bound){open ? QUERY_BOUND_UNBOUNDED : QUERY_BOUND_OFFSET, offset};
}

static void random_output(struct making *m, struct naive_output *output, bool range,
                          struct query_window_output *engine)
{
    static const enum query_window_kind kinds[] = {
        QUERY_WINDOW_AGGREGATE,  QUERY_WINDOW_FIRST,      QUERY_WINDOW_LAST,  QUERY_WINDOW_RANK,
        QUERY_WINDOW_DENSE_RANK, QUERY_WINDOW_ROW_NUMBER, QUERY_WINDOW_SHIFT, QUERY_WINDOW_FOLD};
    struct world *w = m->w;
    double a = below(w, 7) - 3.0, b = below(w, 7) - 3.0;
    unsigned state = m->shape.next++, argument = m->shape.next++;

    output->kind = below(w, 2) ? NAIVE_AGGREGATE : below(w, ARRAY_LEN(kinds));
    if (range)
        output->kind = below(w, 3) ? NAIVE_AGGREGATE : NAIVE_RANK + below(w, 2);
    output->aggregate = below(w, ARRAY_LEN(aggregates));
    output->argument = random_expr(w, &m->shape);
    output->range = range;
    output->from_open = below(w, 3) == 0;
    output->to_open = below(w, 3) == 0;
    output->from = MIN(a, b);
    output->to = MAX(a, b);
    output->shift = (int)below(w, 7) - 3;
    *engine = (struct query_window_output){
        .kind = kinds[output->kind],
        .fold = query_coalesce(w->build, query_variable(w->build, argument),
                               query_variable(w->build, state)),
        .fold_slot = state,
        .fold_argument = argument,
        .aggregate = aggregates[output->aggregate],
        .argument = expr_of(w, output->argument),
        .otherwise = query_constant(w->build, document_string(SLICE("none"))),
        .shift = output->shift,
        .by = range ? QUERY_FRAME_RANGE : QUERY_FRAME_ROWS,
        .from = bound_of(output->from_open, output->from),
        .to = bound_of(output->to_open, output->to),
    };
}

/* Frames of rows need to know which is next; those of a range take all that are equal. */
static void make_window(struct making *m)
{
    struct world *w = m->w;
    struct query_stage *engine;
    struct naive_stage *stage = stage_new(m, NAIVE_WINDOW, QUERY_STAGE_WINDOW, &engine);
    const struct query_expression **keys =
        ARENA_ARRAY(w->arena, const struct query_expression *, NAIVE_LIST);
    struct query_order *order = ARENA_ARRAY(w->arena, struct query_order, NAIVE_LIST);
    struct query_window_output *outputs =
        ARENA_ARRAY(w->arena, struct query_window_output, NAIVE_LIST);
    bool range = !m->shape.unique_count || below(w, 3) == 0;
    size_t count = 1 + below(w, 3);

    stage->partition_count = below(w, 2);
    for (size_t i = 0; i < stage->partition_count; i++) {
        stage->partition[i] = random_expr(w, &m->shape);
        keys[i] = expr_of(w, stage->partition[i]);
    }
    if (range || below(w, 2))
        stage->exprs[stage->count++] = random_expr(w, &m->shape);
    for (size_t i = 0; !range && i < m->shape.unique_count; i++)
        stage->exprs[stage->count++] = m->shape.unique[i];
    for (size_t i = 0; i < stage->count; i++) {
        stage->descending[i] = below(w, 2);
        order[i] = (struct query_order){expr_of(w, stage->exprs[i]), stage->descending[i]};
    }
    for (size_t i = 0; i < count; i++)
        random_output(m, &stage->outputs[i], range, &outputs[i]);
    for (size_t i = 0; i < count; i++) {
        stage->outputs[i].slot = outputs[i].slot = m->shape.next++;
        shape_bind(&m->shape, outputs[i].slot, false);
    }
    stage->output_count = count;
    m->shape.total = !range;
    engine->window =
        (struct query_window){keys, stage->partition_count, order, stage->count, outputs, count};
}

static void make_stage(struct making *m, unsigned depth, bool total)
{
    bool single = m->shape.count == 1 && !m->shape.documents[0];

    switch (below(m->w, depth ? 16 : 8)) {
    case 0:
    case 1:
        make_match(m);
        break;
    case 2:
        make_object(m);
        break;
    case 3:
        make_group(m, 1 + below(m->w, 2));
        break;
    case 4:
        make_sort(m, below(m->w, 4));
        break;
    case 5:
    case 6:
        if (m->shape.total)
            make_amount(m);
        else
            make_sort(m, true);
        break;
    case 7:
        if (m->shape.total || single)
            make_distinct(m);
        else if (!total)
            make_project(m);
        break;
    case 8:
    case 9:
        make_unwind(m);
        break;
    case 10:
        make_group(m, 0);
        break;
    case 11:
        make_lookup(m);
        break;
    case 12:
        make_facet(m);
        break;
    case 13:
        make_union(m);
        break;
    default:
        make_window(m);
        break;
    }
}

static const struct query_expression *select_of(struct world *w, const struct shape *shape,
                                                struct naive_chain *naive)
{
    const struct query_expression *values[NAIVE_LIST * 4];
    struct slice names[NAIVE_LIST * 4];

    for (size_t i = 0; i < shape->count; i++) {
        naive->bound[naive->bound_count++] = shape->bound[i];
        names[i] = arena_printf(w->arena, "s%u", shape->bound[i]);
        values[i] = query_variable(w->build, shape->bound[i]);
    }
    return query_object(w->build, names, values, shape->count);
}

/* total: the sequence of what it gives is settled, if the rows that come in can be told apart. */
static struct made *make_chain(struct world *w, struct shape shape, bool over_documents,
                               unsigned depth, bool total, struct shape *ret_shape)
{
    struct making m = {w, ARENA_NEW(w->arena, struct made), shape};
    unsigned count = depth ? 1 + below(w, 7) : below(w, 4);

    m.made->naive = ARENA_NEW(w->arena, struct naive_chain);
    for (unsigned i = 0; i < count && m.shape.count < 20; i++)
        make_stage(&m, depth, total);
    if (total && !m.shape.total && m.shape.unique_count)
        make_sort(&m, true);
    if (total && !m.shape.total)
        make_group(&m, 0);
    if (m.shape.bound[0] == 0)
        make_object(&m);
    m.made->chain = (struct query_chain){m.made->stages, m.made->naive->count,
                                         select_of(w, &m.shape, m.made->naive)};
    assert_true(m.shape.next < NAIVE_SLOTS);
    if (over_documents) {
        m.made->plan = ARENA_NEW(w->arena, struct query_plan);
        m.made->plan->slot_count = NAIVE_SLOTS;
        m.made->plan->fingerprint = 1 + random_below(&w->random, UINT32_MAX);
        query_chain_plan(w->build, &m.made->chain, m.made->plan);
        assert_true(w->plan_count < ARRAY_LEN(w->plans));
        w->plans[w->plan_count++] = m.made->plan;
    }
    if (ret_shape)
        *ret_shape = m.shape;
    return m.made;
}

/* --- Worlds ---------------------------------------------------------------------------------- */

static void document_add(struct world *w, unsigned nth)
{
    char a[400] = "", n[32] = "", t[64] = "", json[1000], long_text[301];
    struct naive_row *row = ARENA_NEW(w->arena, struct naive_row);
    static const char *const lists[] = {
        "", ",\"t\":[]", ",\"t\":[3]", ",\"t\":[1,2,\"x\"]", ",\"t\":[[1],2,null,2]", ",\"t\":5"};
    struct document_value value;

    memset(long_text, 'l', sizeof long_text - 1);
    long_text[300] = 0;
    if (below(w, 6)) {
        CLEANUP(buf_done) struct buf text;
        struct document_value random = random_value(w);

        buf_init(&text, BUF_DEFAULT_MAX);
        document_json_write_value(&random, &text);
        snprintf(a, sizeof a, ",\"a\":%.*s", (int)text.len, (char *)text.data);
    }
    if (below(w, 8))
        snprintf(n, sizeof n, ",\"n\":%u%s", below(w, 10), below(w, 4) ? "" : ".5");
    snprintf(t, sizeof t, "%s", lists[below(w, ARRAY_LEN(lists))]);
    snprintf(json, sizeof json, "{\"id\":\"d%03u\",\"pk\":\"p%u\"%s%s%s,\"s\":\"%s%c\"}", nth,
             below(w, 9), a, n, t, below(w, 5) ? "" : long_text, 'a' + (char)below(w, 4));
    queries_add(w->one, json);
    w->many->documents[w->many->document_count++] = w->one->documents[w->one->document_count - 1];
    value = document_object(w->one->documents[w->one->document_count - 1]);
    row->slots[0] = naive_of(&value, w->arena);
    naive_add(&w->documents, row, w->arena);
}

static void world_make(struct world *w)
{
    w->one->document_count = w->many->document_count = 0;
    w->documents = (struct naive_rows){0};
    w->arena = w->one->arena;
    w->build = &w->one->build;
    for (unsigned i = 0; i < DOCUMENTS; i++)
        document_add(w, i);
    queries_open(w->one, &(struct test_space_options){.policy = queries_policies[below(w, 3)]});
    queries_open(w->many, &(struct test_space_options){.policy = queries_policies[below(w, 3)],
                                                       .partitions = 16});
    queries_put(w->one);
    queries_put(w->many);
}

/* --- Running --------------------------------------------------------------------------------- */

struct got {
    struct arena *arena;
    struct naive rows[20000];
    size_t count;
    bool refused;
};

static bool row_keep(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct got *got = self;

    assert_true(got->count < ARRAY_LEN(got->rows));
    got->rows[got->count++] = naive_of(value, got->arena);
    return true;
}

/* The other container is the same. */
static bool other_find(void *self UNUSED, struct slice container,
                       struct query_request *request UNUSED, struct error *err UNUSED)
{
    assert_slice_equal(container, SLICE("others"));
    return true;
}

static uint64_t chain_run(struct world *w, struct queries *f, const struct query_plan *plan,
                          uint64_t page_rows, bool cached, struct got *got)
{
    struct query_request request = {.space = &f->test.space,
                                    .container = rid_of_container(1, 2),
                                    .limits = {.rows_max = page_rows, .memory_max = MEMORY},
                                    .cache = cached ? f->cache : NULL,
                                    .spill = w->spill,
                                    .order_unindexed = true,
                                    .arena = w->arena,
                                    .other = other_find,
                                    .row = row_keep,
                                    .self = got};
    uint64_t spilled = 0;

    got->count = 0;
    got->refused = false;
    got->arena = w->arena;
    for (;;) {
        size_t before = got->count;
        struct query_page page;
        struct error err;

        if (!query_run(plan, &request, &page, &err)) {
            /* A single value that is larger than the memory is refused. */
            assert_fails(false, &err, ERROR_QUERY_LIMIT);
            got->refused = true;
            return spilled;
        }
        assert_true(got->count - before <= page_rows);
        spilled += page.metrics.spilled_bytes;
        if (!page.continuation.len)
            return spilled;
        assert_true(got->count > before || page_rows == 0);
        request.continuation = page.continuation;
    }
}

static int compare_sql(const void *a, const void *b)
{
    return naive_compare(false, a, b);
}

static int compare_mongo(const void *a, const void *b)
{
    return naive_compare(true, a, b);
}

static void rows_print(struct world *w, const char *what, const struct naive *rows, size_t count)
{
    for (size_t i = 0; i < MIN(count, (size_t)40); i++)
        print_message("# %s %s\n", what, naive_print(&rows[i], w->arena));
}

static void chain_print(const struct naive_chain *chain, unsigned depth)
{
    static const char *const names[] = {"match",  "match", "unwind", "project", "object",
                                        "group",  "sort",  "skip",   "limit",   "distinct",
                                        "lookup", "facet", "union",  "window"};

    for (size_t i = 0; i < chain->count; i++) {
        const struct naive_stage *stage = &chain->stages[i];

        print_message("# %*s%s amount %zu keep %d indexed %d local %d let %d", (int)depth * 4, "",
                      names[stage->kind], stage->amount, stage->keep_empty, stage->indexed,
                      stage->has_local, stage->has_let);
        for (size_t e = 0; e < MAX(stage->count, (size_t)1); e++)
            print_message(" %s%s%u.%s%s", stage->names[e] ? stage->names[e] : "",
                          stage->names[e] ? "=" : "", stage->exprs[e].slot,
                          stage->exprs[e].field ? stage->exprs[e].field : "",
                          stage->descending[e] ? "-" : "");
        for (size_t a = 0; a < stage->argument_count; a++)
            print_message(" s%u = %d of %u.%s", stage->argument_slots[a], stage->aggregates[a],
                          stage->arguments[a].slot,
                          stage->arguments[a].field ? stage->arguments[a].field : "");
        print_message("\n");
        for (size_t c = 0; c < NAIVE_LIST && stage->chains[c]; c++)
            chain_print(stage->chains[c], depth + 1);
        for (size_t o = 0; o < stage->output_count; o++)
            print_message(
                "#   output %d %d of %u.%s range %d %d:%g %d:%g shift %d\n", stage->outputs[o].kind,
                stage->outputs[o].aggregate, stage->outputs[o].argument.slot,
                stage->outputs[o].argument.field ? stage->outputs[o].argument.field : "",
                stage->outputs[o].range, stage->outputs[o].from_open, stage->outputs[o].from,
                stage->outputs[o].to_open, stage->outputs[o].to, stage->outputs[o].shift);
    }
}

static void check(struct world *w, const struct made *made, const struct shape *shape, bool mongo,
                  bool many, uint64_t seed, struct got *got, uint64_t *spilled)
{
    uint64_t page_rows = 1 + below(w, 15) + (w->per_row ? 30 : 0);
    bool cached = below(w, 2);
    struct naive *expected;
    size_t count, at = 0;

    for (size_t i = 0; i < w->plan_count; i++)
        w->plans[i]->order = mongo ? DOCUMENT_ORDER_MONGO : DOCUMENT_ORDER_SQL;
    expected = naive_run(made->naive, mongo, &w->documents, &w->documents, w->arena, &count);
    /* each page may run the whole chain again: thousands of pages of thousands of rows take hours
     */
    page_rows = MAX(page_rows, (uint64_t)count / PAGES_MAX);
    *spilled += chain_run(w, many ? w->many : w->one, made->plan, page_rows, cached, got);
    if (got->refused)
        return;
    if (!shape->total) {
        qsort(expected, count, sizeof *expected, mongo ? compare_mongo : compare_sql);
        qsort(got->rows, got->count, sizeof *got->rows, mongo ? compare_mongo : compare_sql);
    }
    while (at < count && at < got->count &&
           naive_compare(mongo, &expected[at], &got->rows[at]) == 0)
        at++;
    if (at == count && at == got->count)
        return;
    chain_print(made->naive, 0);
    rows_print(w, "expected", expected, count);
    rows_print(w, "got", got->rows, got->count);
    fail_msg("ORRERY_TEST_SEED=%" PRIu64
             " ORRERY_TEST_STEPS=1: %s order, %d partitions, pages of %" PRIu64
             "%s: row %zu differs, %zu rows instead of %zu",
             seed, mongo ? "MongoDB's" : "SQL's", many ? 16 : 1, page_rows,
             cached ? ", cached" : "", at, got->count, count);
}

static void chains_give_what_a_naive_evaluator_gives(void **state UNUSED)
{
    uint64_t seed = number_from("ORRERY_TEST_SEED", 20261116);
    uint64_t steps = number_from("ORRERY_TEST_STEPS", STEPS), spilled = 0, pushed = 0;
    uint64_t refused = 0;
    struct faulty_disk disk;
    struct world w = {0};
    struct got *got = MEMORY_NEW(struct got);
    size_t kinds[16] = {0};

    print_message("# seed %" PRIu64 ", %" PRIu64 " steps\n", seed, steps);
    faulty_disk_init(&disk);
    w.spill = faulty_disk_spill(&disk, 1 << 30);
    for (uint64_t step = 0; step < steps; step++) {
        struct shape shape;
        struct made *made;

        /* the same world for the same step, so that one step can be repeated alone */
        if (step == 0 || (seed + step) % STEPS_PER_WORLD == 0) {
            if (w.one) {
                queries_teardown((void **)&w.one);
                queries_teardown((void **)&w.many);
            }
            queries_setup((void **)&w.one);
            queries_setup((void **)&w.many);
            w.one->cache = query_cache_new(1 << 20, UINT64_MAX);
            w.many->cache = query_cache_new(1 << 20, UINT64_MAX);
            random_seed(&w.random, (seed + step) / STEPS_PER_WORLD);
            world_make(&w);
        }
        random_seed(&w.random, seed + step);
        w.per_row = false;
        w.plan_count = 0;
        w.build->nodes = 0;
        made = make_chain(&w, document_shape(), true, 1, false, &shape);
        if (w.build->failed)
            fail_msg("%s", w.build->error.message);
        pushed += !made->plan->rest;
        for (size_t i = 0; i < made->naive->count; i++)
            kinds[made->naive->stages[i].kind]++;
        for (int way = 0; way < 4; way++) {
            check(&w, made, &shape, way & 1, way & 2, seed + step, got, &spilled);
            refused += got->refused;
        }
    }
    print_message("# %" PRIu64 " bytes spilled; %" PRIu64
                  " chains wholly in the partitions; %" PRIu64 " runs refused\n",
                  spilled, pushed, refused);
    if (steps >= STEPS) {
        assert_true(spilled > 1000 * steps && refused < steps / 10);
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
            assert_true(kinds[i] > 3 || i == NAIVE_MATCH_SLOTS || i > NAIVE_WINDOW);
    }
    queries_teardown((void **)&w.one);
    queries_teardown((void **)&w.many);
    query_spill_free(w.spill);
    memory_free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_give_what_a_naive_evaluator_gives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
