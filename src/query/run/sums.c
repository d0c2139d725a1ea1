/* Items are counted, words are added up by a sum that the index keeps for each logical partition
 * (index/text.c), phrases are counted by walking entries. Where a phrase has several words, or a
 * text more terms than the index has of one, the items are read and the phrase is looked for.
 *
 * Sums and entries do not know of time: where items expire all of them are read. */
#include "query/run/sums.h"

#include "item/view_overlay.h"
#include "partition/counters.h"
#include "query/function/function.h"
#include "query/run/lists.h"

enum { LOOK_EVERY = 1024 }; /* counters between two looks at the clock */

/* How an aggregate is told. */
struct told {
    const struct index_definition *words; /* whose words are added up; NULL: another */
    const struct query_index_use *hits;   /* whose items are counted; NULL: all are */
};

/* --- Which aggregates --------------------------------------------------------------------------
 */

static const struct index_definition *words_find(const struct query_run_state *run,
                                                 const struct query_expression *argument)
{
    const struct item_space *space = run->request->space;
    const struct index_definition *definition;
    const struct document_value *language;
    struct document_path path;
    bool elements;

    if (argument->kind != &query_kind_call ||
        ((const struct query_call *)argument)->function->text != QUERY_TEXT_WORDS ||
        !query_is_constant(argument->children[0]) ||
        !query_path_find(run->plan, argument->children[1], run->arena, &path, &elements) ||
        elements)
        return NULL;
    language = query_constant_value(argument->children[0]);
    definition = query_text_at(space, &path);
    return definition && language->type == DOCUMENT_STRING &&
                   slice_equal(slice_first(definition->language, 2), slice_first(language->text, 2))
               ? definition
               : NULL;
}

static bool told_find(const struct query_run_state *run, const struct query_aggregate_call *call,
                      struct told *ret_told)
{
    *ret_told = (struct told){0};
    switch (call->kind) {
    case QUERY_COUNT:
        return query_is_constant(call->argument) &&
               query_constant_value(call->argument)->type != DOCUMENT_UNDEFINED;
    case QUERY_SUM:
        ret_told->words = words_find(run, call->argument);
        return ret_told->words;
    case QUERY_COUNT_IF:
        ret_told->hits =
            query_words_use(run->plan, run->request->space, call->argument, run->arena);
        return ret_told->hits;
    default:
        return false;
    }
}

/* A logical partition has sums of its own, which nobody has asked for so far; what is planned
 * besides is in none. */
static bool is_of_spans(const struct query_run_state *run)
{
    for (size_t i = 0; i < run->access.target_count; i++)
        if (run->access.targets[i].logical.len)
            return false;
    return !run->request->overlay;
}

static bool all_told(const struct query_run_state *run, struct told *told)
{
    const struct query_subquery *query = &run->plan->query;
    bool some = false;

    if (!run->feed || run->from.begun || query->filter || query->source_count ||
        run->access.kind != QUERY_ACCESS_SCAN || run->request->space->definition->default_ttl ||
        !is_of_spans(run))
        return false;
    for (size_t i = 0; i < query->aggregate_count; i++) {
        if (!told_find(run, &query->aggregates[i], &told[i]))
            return false;
        some |= told[i].words || told[i].hits;
    }
    return some;
}

/* --- Words -------------------------------------------------------------------------------------
 */

static bool counter_add(const struct engine_entry *entry, struct slice tail,
                        struct query_list_sum *sum, struct error *err)
{
    int64_t numbers[COUNTER_NUMBERS];

    sum->counters++;
    if (entry->key.len < tail.len ||
        memcmp(entry->key.data + entry->key.len - tail.len, tail.data, tail.len) != 0)
        return true;
    if (!counter_decode(entry->value, numbers, err))
        return false;
    sum->words += numbers[INDEX_TEXT_WORDS];
    return true;
}

/* c | k | routing key | pk | number of the index | name (item/write_set.c) */
static bool span_walk(struct query_run_state *run, const struct query_span *span, struct slice tail,
                      struct query_list_sum *sum, struct error *err)
{
    CLEANUP(view_walk_done) struct view_walk walk = {0};
    struct slice min = SLICE("ck");
    struct engine_entry entry;

    if (!view_walk_open(
            &walk,
            &(struct view_walk_options){.engine = span->view.scope.engine,
                                        .snapshot = span->view.snapshot,
                                        .partition = span->view.scope.partition,
                                        .range = {min, cursor_prefix_end(run->arena, min)},
                                        .bound = span->view.bound},
            err))
        return false;
    for (;;) {
        if ((sum->counters % LOOK_EVERY == LOOK_EVERY - 1 &&
             !query_work(&run->context, LOOK_EVERY, err)) ||
            !view_walk_next(&walk, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!counter_add(&entry, tail, sum, err))
            return false;
    }
}

/* From memory, as entries of terms are (lists.h), or by a walk. Both are charged alike. */
static bool span_add(struct query_run_state *run, struct query_span *span, struct slice tail,
                     int64_t *words, struct error *err)
{
    CLEANUP(query_list_unref) struct query_list *kept = NULL;
    struct query_lists *lists = span->view.snapshot ? run->request->lists : NULL;
    struct query_list_key key = {.node = span->view.scope.node,
                                 .partition = span->view.scope.partition,
                                 .epoch = span->view.scope.epoch,
                                 .prefix = SLICE("words"),
                                 .value = tail};
    struct query_list_sum sum = {0};

    if (lists && !view_lsn(&span->view, &key.lsn, err))
        return false;
    kept = lists ? query_lists_find(lists, &key) : NULL;
    if (kept)
        sum = query_list_sum(kept);
    else if (!span_walk(run, span, tail, &sum, err))
        return false;
    if (lists && !kept && query_lists_again(lists, &key)) {
        kept = query_list_begin(&key);
        query_list_set_sum(kept, sum);
        query_lists_put(lists, kept);
    }
    span->cost.index_lookups++;
    span->cost.index_entries += sum.counters;
    *words += sum.words;
    return true;
}

/* The spans are whole, and were admitted when items were counted. */
static bool words_add(struct query_run_state *run, const struct index_definition *definition,
                      uint64_t items, struct query_aggregate *state, struct error *err)
{
    struct slice tail = arena_join(run->arena,
                                   (struct slice[]){slice_of(&definition->number, 1),
                                                    index_text_sum_name(definition, run->arena)},
                                   2);
    struct document_value value;
    int64_t words = 0;

    for (size_t t = 0; t < run->access.target_count; t++) {
        size_t first,
            count = query_spans_overlap(&run->spans, run->access.targets[t].range, &first);

        for (size_t i = first; i < first + count; i++)
            if (!span_add(run, &run->spans.list[i], tail, &words, err))
                return false;
    }
    value = document_int64(MAX(words, (int64_t)0));
    return !items || query_aggregate_add_times(state, &value, 1, err);
}

/* --- Phrases -----------------------------------------------------------------------------------
 */

struct counting {
    const struct query_aggregate_call *call;
    struct query_aggregate *state;
};

static bool hit_count(struct query_run_state *run, bool *ret_stop UNUSED, struct error *err)
{
    struct counting *counting = run->taking;
    struct document_value value = document_bool(true);

    if ((!run->access.index->exact || run->hit->unsure) &&
        !query_evaluate(counting->call->argument, &run->context, &value, err))
        return false;
    return query_aggregate_add_times(counting->state, &value, run->hit->times, err);
}

static bool hits_add(struct query_run_state *run, const struct query_index_use *use,
                     struct counting *counting, struct error *err)
{
    struct query_hits_options options = {.order = QUERY_HITS_ANY,
                                         .load = !use->exact,
                                         .runs = use->exact ? QUERY_RUNS_ANY : QUERY_RUNS_NONE,
                                         .timed = run->request->timed};
    struct query_position nowhere = {0};
    void *taking = run->taking;
    bool ended, fine;

    query_hits_free(run->feed);
    run->access.kind = QUERY_ACCESS_INDEX;
    run->access.index = use;
    run->hits = run->looked_at = 0;
    run->feed = query_hits_new(&run->spans, &run->access, &options, &nowhere);
    run->taking = counting;
    fine = query_rows_take(run, hit_count, false, &ended, err);
    run->taking = taking;
    return fine && (ended || error_set(err, ERROR_TOO_MANY_REQUESTS,
                                       "the throughput of a partition that the query needs is "
                                       "used up"));
}

bool query_sums_take(struct query_run_state *run, struct query_aggregate *states, bool *ret_known,
                     struct error *err)
{
    size_t count = run->plan->query.aggregate_count;
    struct told *told = ARENA_ARRAY(run->arena, struct told, count + 1);
    struct query_position at = run->at;
    uint64_t items = 0;

    *ret_known = false;
    if (!all_told(run, told))
        return true;
    if (!query_hits_count(&run->spans, &run->access, ret_known, &items, err))
        return false;
    for (size_t i = 0; *ret_known && i < count; i++) {
        struct counting counting = {&run->plan->query.aggregates[i], &states[i]};

        if (told[i].words ? !words_add(run, told[i].words, items, &states[i], err)
                          : told[i].hits && !hits_add(run, told[i].hits, &counting, err))
            return false;
        if (!told[i].words && !told[i].hits)
            states[i].count += items;
    }
    run->at = at;
    return true;
}
