#include "front/gremlin/command/evaluate.h"

#include "base/memory.h"
#include "front/fan_out.h"
#include "front/gremlin/command/parsed.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"
#include "front/kit/queries.h"
#include "front/owner.h"
#include "item/view_bound.h"

/* BARRIER_SHARE: one barrier keeps at most a fourth of a request's memory before it spills. */
enum { ATTEMPTS = 6, SCRIPT_DEPTH_MAX = 64, BARRIER_SHARE = 4, INDEXES_AGAIN_MS = 60 * 1000 };

/* What may be tried on a loop, and what it may take there. */
enum {
    LOOP_SCRIPT_BYTES = 2048,
    LOOP_HEAP_BYTES = 512 * 1024,
    LOOP_WORK = 2000, /* about as many traversers at a step */
    LOOP_SPANS = 16,  /* partitions of the graph */
};

static bool evaluate(struct gremlin_evaluation *e, struct error *err);

/* --- Results -----------------------------------------------------------------------------------
 */

static void batch_begin(struct gremlin_evaluation *e)
{
    gremlin_batch_init(&e->batch, e->answering->format, e->heap, e->tokens,
                       e->gremlin->options.results_bytes_max);
}

static void results_drop(struct gremlin_evaluation *e)
{
    for (size_t i = 0; i < e->held_count; i++)
        gremlin_batch_done(&e->held[i]);
    e->held_count = 0;
    e->held_bytes = 0;
    gremlin_batch_clear(&e->batch);
}

/* Keeps a full batch until more is known. */
static bool batch_hold(struct gremlin_evaluation *e, struct error *err)
{
    size_t bytes = e->batch.items.len;

    if (e->held_bytes + bytes > e->gremlin->options.results_bytes_max)
        return error_set(err, ERROR_TOO_LARGE,
                         "the results of a request that writes are held until it is committed, and "
                         "may have %zu bytes (gremlin.results_bytes_max)",
                         e->gremlin->options.results_bytes_max);
    if (!front_call_hold(e->call, bytes, err))
        return false;
    e->held = memory_realloc(e->held, (e->held_count + 1) * sizeof *e->held);
    e->held[e->held_count++] = e->batch;
    e->held_bytes += bytes;
    batch_begin(e);
    return true;
}

static bool batch_send(struct gremlin_evaluation *e, const struct gremlin_batch *batch,
                       struct error *err)
{
    e->answering->charge_cru = gremlin_graph_figures(e->graph).charge_cru + e->call->charge_cru;
    e->answering->reference_lag_ms = gremlin_graph_figures(e->graph).reference_lag_ms;
    e->answering->results += batch->count;
    e->sent = true;
    return e->send(e, batch, err);
}

/* The batch is full, and there is more. */
static bool batch_pass(struct gremlin_evaluation *e, struct error *err)
{
    if (!e->call->may_block)
        return view_bound_cold(err);
    if (clock_read_monotonic_ms(e->call->services->clock) >= e->deadline_ms)
        return error_set(err, ERROR_TIMED_OUT, "the request took longer than %lld ms",
                         (long long)e->evaluation_ms);
    if (e->holding)
        return batch_hold(e, err);
    if (!batch_send(e, &e->batch, err))
        return false;
    gremlin_batch_clear(&e->batch);
    return true;
}

/* With so many results a frame is full; over HTTP there is only one. */
static bool batch_is_full(const struct gremlin_evaluation *e)
{
    return e->send && e->batch.count >= e->batch_max;
}

static bool result_tell(struct gremlin_evaluation *e, struct gremlin_value value, int64_t bulk,
                        struct error *err)
{
    if (batch_is_full(e) && !batch_pass(e, err))
        return false;
    if (gremlin_batch_add(&e->batch, value, bulk, err))
        return true;
    if (err->code != ERROR_TOO_LARGE || !e->send || !e->batch.count)
        return false;
    return batch_pass(e, err) && gremlin_batch_add(&e->batch, value, bulk, err);
}

static bool result_take(struct gremlin_evaluation *e, struct gremlin_value value, uint64_t bulk,
                        struct error *err)
{
    if (e->silent)
        return true;
    if (e->asked->op == GREMLIN_OP_BYTECODE)
        return result_tell(e, value, (int64_t)bulk, err);
    for (uint64_t i = 0; i < bulk; i++) {
        if (!gremlin_is_null(e->list))
            gremlin_list_add(e->list, value);
        else if (!result_tell(e, value, 0, err))
            return false;
        if (gremlin_heap_failed(e->heap))
            return gremlin_heap_error(e->heap, err);
    }
    return true;
}

static bool results_take(void *self, const struct gremlin_value *values, const uint64_t *bulks,
                         size_t count, struct error *err)
{
    struct gremlin_evaluation *e = self;

    for (size_t i = 0; i < count; i++)
        if (!result_take(e, values[i], bulks ? bulks[i] : 1, err))
            return false;
    return true;
}

/* --- Traversals --------------------------------------------------------------------------------
 */

/* What g.with(name, value) says, in a script or as a strategy of bytecode; NULL: nothing. */
static const struct gremlin_value *option_of(const struct gremlin_instruction *source,
                                             struct slice name)
{
    const struct gremlin_value *arguments = source->arguments, *found = NULL;

    if (slice_equal(source->name, SLICE("with")) && source->count == 2 &&
        gremlin_is_text(arguments[0], name))
        return &arguments[1];
    for (size_t i = 0; slice_equal(source->name, SLICE("withStrategies")) && !found &&
                       i < source->count && arguments[i].type == GREMLIN_STRATEGY;
         i++)
        if (gremlin_is_text(gremlin_strategy(arguments[i])->name, SLICE("OptionsStrategy")) &&
            gremlin_strategy(arguments[i])->configuration.type == GREMLIN_MAP)
            found = gremlin_map_get_text(gremlin_strategy(arguments[i])->configuration, name);
    return found;
}

/* A traversal that says how long its request may take is believed, within what the server allows:
 * counted from the beginning of the request, and for what follows it too. */
static bool timeout_take(struct gremlin_evaluation *e, const struct gremlin_value *timeout,
                         struct error *err)
{
    int64_t most = e->gremlin->options.evaluation_ms_max, asked;

    if (!gremlin_is_whole(*timeout) || !gremlin_number_long(*timeout, &asked) || asked < 0)
        return error_set(err, ERROR_GREMLIN_COMPILE,
                         "with('evaluationTimeout', ...) takes milliseconds");
    e->evaluation_ms = asked ? MIN(asked, most) : most;
    e->deadline_ms = e->begun_ms + e->evaluation_ms;
    gremlin_graph_set_deadline(e->graph, e->deadline_ms);
    return true;
}

static bool batch_take(struct gremlin_evaluation *e, const struct gremlin_value *batch,
                       struct error *err)
{
    int64_t asked;

    if (!gremlin_is_whole(*batch) || !gremlin_number_long(*batch, &asked) || asked < 1 ||
        asked > GREMLIN_BATCH_MAX)
        return error_set(err, ERROR_GREMLIN_COMPILE, "with('batchSize', ...) takes 1 to %d",
                         GREMLIN_BATCH_MAX);
    e->batch_max = (size_t)asked;
    return true;
}

/* How elements are written is a matter of a batch: those before it are as they were. */
static bool materialize_take(struct gremlin_evaluation *e, const struct gremlin_value *mode,
                             struct error *err)
{
    bool tokens = gremlin_is_text(*mode, SLICE("tokens"));

    if (!tokens && !gremlin_is_text(*mode, SLICE("all")))
        return error_set(err, ERROR_GREMLIN_COMPILE,
                         "with('materializeProperties', ...) takes 'all' or 'tokens'");
    if (tokens != e->tokens) {
        e->tokens = tokens;
        assert(!e->batch.count); /* results of a script are those of its last traversal */
        gremlin_batch_done(&e->batch);
        batch_begin(e);
    }
    return true;
}

/* 'Eventual' and others: the traversal does with less than the account's level. */
static bool level_take(struct gremlin_evaluation *e, const struct gremlin_value *level,
                       struct error *err)
{
    if (!gremlin_is_string(*level))
        return error_set(err, ERROR_GREMLIN_COMPILE,
                         "with('consistencyLevel', ...) takes the name of a level");
    return front_consistency_find(&e->call->services->consistency, gremlin_bytes(*level), &e->level,
                                  err);
}

static const struct {
    struct slice name;
    bool (*take)(struct gremlin_evaluation *e, const struct gremlin_value *value,
                 struct error *err);
} options_taken[] = {
    {SLICE("evaluationTimeout"), timeout_take}, {SLICE("scriptEvaluationTimeout"), timeout_take},
    {SLICE("consistencyLevel"), level_take},    {SLICE("x-ms-consistency-level"), level_take},
    {SLICE("batchSize"), batch_take},           {SLICE("materializeProperties"), materialize_take}};

/* What the sources of a traversal say of the request. */
static bool options_take(struct gremlin_evaluation *e, const struct gremlin_traversal *traversal,
                         struct error *err)
{
    e->level = e->call->services->consistency.level;
    for (size_t i = 0; i < traversal->sources.count; i++) {
        for (size_t n = 0; n < ARRAY_LEN(options_taken); n++) {
            const struct gremlin_value *value =
                option_of(&traversal->sources.items[i], options_taken[n].name);

            if (value && !options_taken[n].take(e, value, err))
                return false;
        }
    }
    return true;
}

/* May the loop run it? How long one takes is also a matter of the graph. */
static bool loop_may_try(struct gremlin_evaluation *e, const struct gremlin_traversal *traversal)
{
    if (!gremlin_traversal_is_short(traversal, &e->kind))
        return false;
    e->kind += gremlin_graph_number(e->graph);
    e->tried = front_queries_may_try(e->call->services->queries, e->kind);
    return e->tried;
}

static bool steps_run(struct gremlin_evaluation *e, const struct gremlin_traversal *traversal,
                      struct error *err)
{
    const struct gremlin_options *options = &e->gremlin->options;
    const struct front_services *services = e->call->services;
    const struct gremlin_run_options run = {
        .version = options->version,
        .limits = {.operators_max = options->operators_max,
                   .loops_max = options->loops_max,
                   .work_max = e->call->may_block ? 0 : LOOP_WORK,
                   .deadline_ms = e->deadline_ms},
        .batch = MIN(e->batch_max, (size_t)1024),
        .bulked = true,
        .cloud = true,
        .text = e->asked->script,
        .clock = services->clock,
        .cancelled = e->call->cancelled,
        .breath = front_breath(services->workers),
        .spill = front_queries_spill(services->queries),
        .spill_at = MIN(front_queries_memory_max(services->queries),
                        options->memory_bytes_max / BARRIER_SHARE),
    };
    const struct gremlin_sink sink = {results_take, e};
    struct gremlin_outcome outcome = {0};
    bool fine;

    if (!e->call->may_block && !loop_may_try(e, traversal))
        return view_bound_cold(err);
    e->holding = !e->send || e->holding || gremlin_traversal_writes(traversal) ||
                 gremlin_graph_is_written(e->graph);
    /* a loop waits for no standby: what it has at hand is the primary's */
    if (e->call->may_block && !e->call->primary && !gremlin_traversal_writes(traversal) &&
        !gremlin_graph_is_written(e->graph)) {
        struct item_reading_options reading =
            front_consistency_reading(&services->consistency, e->level);

        gremlin_graph_look(e->graph, &reading);
    }
    fine = gremlin_run(e->graph, e->heap, traversal, &run, &sink, &outcome, err);
    gremlin_graph_look_away(e->graph);
    if (!fine && outcome.failed_step && gremlin_is_string(outcome.fail_message))
        e->fail_message = gremlin_string(e->heap, gremlin_bytes(outcome.fail_message));
    gremlin_outcome_done(&outcome);
    return fine;
}

static bool traversal_run(struct gremlin_evaluation *e, const struct gremlin_traversal *traversal,
                          struct error *err)
{
    return options_take(e, traversal, err) && steps_run(e, traversal, err);
}

/* --- Transactions ------------------------------------------------------------------------------
 */

/* ["tx", "commit"] and its like, alone. */
static bool transaction_is_asked(const struct gremlin_traversal *traversal, struct slice *ret_what)
{
    const struct gremlin_instruction *source = traversal->sources.items;

    if (!traversal->sources.count || !slice_equal(source->name, SLICE("tx")))
        return false;
    *ret_what = source->count && gremlin_is_string(source->arguments[0])
                    ? gremlin_bytes(source->arguments[0])
                    : SLICE_NONE;
    return true;
}

static bool graph_options(struct gremlin_evaluation *e, struct container *container,
                          struct gremlin_right *right, struct gremlin_graph_options *ret_options,
                          struct error *err)
{
    if (!gremlin_identity_check(e->identity, e->call, container, right, err))
        return false;
    *ret_options = (struct gremlin_graph_options){
        .services = e->call->services,
        .container = container,
        .heap = e->heap,
        .readonly = right->readonly,
        .alone = right->alone,
        .only = right->bound ? &right->only : NULL,
        .strong = front_consistency_is_dear(e->gremlin->options.services.consistency.level),
        .limits = {.transaction_bytes_max = e->gremlin->options.transaction_bytes_max,
                   .deadline_ms = e->deadline_ms},
    };
    return true;
}

static bool transaction_do(struct gremlin_evaluation *e, struct slice what, struct error *err)
{
    struct gremlin_transaction *transaction = e->session ? &e->session->transaction : NULL;
    bool fine = true;

    if (!transaction) {
        e->code = 499;
        return error_set(err, ERROR_BAD_REQUEST,
                         "tx() is of sessions: a request without one is a transaction by itself");
    }
    if (slice_equal(what, SLICE("begin")) || slice_equal(what, SLICE("open")))
        return gremlin_transaction_begin(e->session, e->options, net_owner_memory(e->call->owner),
                                         err);
    if (slice_equal(what, SLICE("commit"))) {
        fine = !transaction->graph || gremlin_graph_commit(transaction->graph, err);
    } else if (slice_equal(what, SLICE("rollback"))) {
        if (transaction->graph)
            gremlin_graph_rollback(transaction->graph);
    } else {
        e->code = 597;
        return error_set(err, ERROR_GREMLIN_COMPILE,
                         "tx() has begin(), commit() and rollback(), not \"%.*s\"",
                         (int)MIN(what.len, (size_t)32), (const char *)what.data);
    }
    if (!fine)
        gremlin_graph_rollback(transaction->graph); /* it lost, and cannot be saved */
    e->ended = true;
    return fine;
}

/* --- Scripts -----------------------------------------------------------------------------------
 */

/* A value as Gremlin's server gives it: what iterates, item by item. */
static bool value_tell(struct gremlin_evaluation *e, struct gremlin_value value, struct error *err)
{
    struct gremlin_cursor cursor = {0};
    struct gremlin_value item;
    int64_t bulk;
    bool fine = true;

    if (value.type != GREMLIN_LIST && value.type != GREMLIN_SET && value.type != GREMLIN_BULK_SET)
        return gremlin_is_null(value) || result_tell(e, value, 0, err);
    while (fine && gremlin_collection_next(value, &cursor, &item, &bulk)) {
        for (int64_t i = 0; fine && i < bulk; i++)
            fine = result_tell(e, item, 0, err);
        gremlin_value_unref(item);
    }
    gremlin_collection_done(&cursor);
    return fine;
}

/* What is assigned of a traversal: the one that next() gives, else all of them. */
static struct gremlin_value assigned_of(const struct gremlin_traversal *traversal,
                                        struct gremlin_value list)
{
    const struct gremlin_list *items = gremlin_list(list);

    if (traversal->terminal == GREMLIN_HAS_NEXT || traversal->terminal == GREMLIN_TRY_NEXT ||
        (traversal->terminal == GREMLIN_NEXT && traversal->amount <= 1))
        return items->count ? items->items[0] : GREMLIN_NOTHING;
    return list;
}

static bool variable_set(struct gremlin_evaluation *e, struct slice name,
                         struct gremlin_value value, struct error *err)
{
    struct gremlin_value key = gremlin_string(e->heap, name);

    if (gremlin_is_null(e->variables))
        e->variables = gremlin_map_new(e->heap);
    gremlin_map_put(e->variables, key, value);
    gremlin_value_unref(key);
    return !e->session ||
           gremlin_session_set(e->session, net_owner_memory(e->call->owner), name, value, err);
}

static bool statement_run(struct gremlin_evaluation *e, const struct gremlin_statement *statement,
                          bool last, struct error *err)
{
    struct gremlin_value value = statement->value;
    struct slice what;

    if (statement->traversal && transaction_is_asked(statement->traversal, &what))
        return transaction_do(e, what, err);
    if (statement->traversal && !statement->name.data) {
        e->silent = !last;
        return traversal_run(e, statement->traversal, err);
    }
    if (statement->traversal) {
        e->silent = false;
        e->list = gremlin_list_new(e->heap, 0);
        if (!traversal_run(e, statement->traversal, err))
            return false;
        value = assigned_of(statement->traversal, e->list);
        e->list = GREMLIN_NOTHING; /* its memory goes with the heap */
    }
    if (statement->name.data && !variable_set(e, statement->name, value, err))
        return false;
    e->silent = false;
    return !last || value_tell(e, value, err);
}

static bool statements_run(struct gremlin_evaluation *e, struct gremlin_script_request *request,
                           struct error *err)
{
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    struct gremlin_statement statement;
    size_t count, at = 0;

    if (!gremlin_script_open(request, &script, err))
        return false;
    count = gremlin_script_count(script);
    if (count > 1 && !e->call->may_block)
        return view_bound_cold(err);
    for (;;) {
        if (!gremlin_script_next(script, &e->variables, &statement, err))
            return false;
        if (!statement.present)
            return true;
        if (!statement_run(e, &statement, ++at == count, err))
            return false;
    }
}

static bool whole_run(struct gremlin_evaluation *e, struct error *err)
{
    const struct gremlin_options *options = &e->gremlin->options;
    struct gremlin_script_request request = {
        .text = e->asked->script,
        .source = e->asked->source,
        .limits = {options->script_bytes_max, SCRIPT_DEPTH_MAX, options->operators_max},
        .heap = e->heap,
        .bindings = e->asked->bindings,
        .variables = &e->variables,
        .now_ms = clock_read_wall_ms(e->call->services->clock),
    };
    struct gremlin_parsed *parsed;
    bool fine;

    if (!gremlin_session_variables(e->session, e->heap, &e->variables, err) ||
        !gremlin_parsed_take(e->call, request.text, &request.limits, &parsed, err))
        return false;
    request.syntax = parsed->syntax;
    fine = statements_run(e, &request, err);
    gremlin_parsed_give(e->call, parsed);
    return fine;
}

/* --- One attempt -------------------------------------------------------------------------------
 */

static bool code_run(struct gremlin_evaluation *e, struct error *err)
{
    struct slice what;

    e->silent = e->holding = false;
    e->list = e->variables = GREMLIN_NOTHING;
    if (e->asked->op == GREMLIN_OP_EVAL)
        return whole_run(e, err);
    if (transaction_is_asked(e->asked->traversal, &what))
        return transaction_do(e, what, err);
    return traversal_run(e, e->asked->traversal, err);
}

static bool ends_transaction(const struct gremlin_evaluation *e)
{
    struct slice what;

    return e->asked->op == GREMLIN_OP_BYTECODE && transaction_is_asked(e->asked->traversal, &what);
}

/* A transaction of the session has figures of requests before this one: they were told with them.
 */
static void observe(struct gremlin_evaluation *e, const struct gremlin_graph_figures *before,
                    const struct gremlin_graph_figures *now)
{
    e->call->observed.reads = (struct observed_reads){
        .queries = now->reads - before->reads,
        .items = now->items - before->items,
        .index_entries = now->index_entries - before->index_entries,
        .partitions = now->partitions - before->partitions,
        .rows = e->answering->results,
    };
}

/* Within a transaction of the session, which others of its requests go on with. */
static bool run_within(struct gremlin_evaluation *e, const struct gremlin_graph_options *options,
                       struct error *err)
{
    struct gremlin_transaction *transaction = &e->session->transaction;
    struct gremlin_graph_figures before, figures;
    bool fine;

    if ((!ends_transaction(e) && gremlin_transaction_is_long(transaction, err)) ||
        !gremlin_transaction_begin(e->session, options, net_owner_memory(e->call->owner), err))
        return false;
    e->graph = transaction->graph;
    gremlin_graph_enter(e->graph, e->call);
    gremlin_graph_set_deadline(e->graph, e->deadline_ms);
    /* what requests before it took was told with them */
    before = gremlin_graph_figures(e->graph);
    e->call->charge_cru = -before.charge_cru;
    fine = code_run(e, err);
    figures = gremlin_graph_figures(e->graph);
    observe(e, &before, &figures);
    e->call->charge_cru += figures.charge_cru;
    e->answering->charge_cru = e->call->charge_cru;
    e->answering->wait_ms = figures.wait_ms;
    e->answering->reference_lag_ms = figures.reference_lag_ms;
    return fine;
}

/* A standby was lost in the middle: what follows is read from the primary. */
static bool primary_is_left(struct gremlin_evaluation *e, const struct error *err)
{
    bool lost = engine_reader_may_repeat(err) && !e->call->primary;

    e->call->primary = e->call->primary || lost;
    return lost;
}

static bool run_alone(struct gremlin_evaluation *e, struct error *err)
{
    bool fine = false;

    for (int attempt = 1;; attempt++) {
        fine = code_run(e, err);
        if (fine)
            fine = gremlin_graph_commit(e->graph, err);
        if (fine || e->sent || attempt == ATTEMPTS || !e->call->may_block ||
            gremlin_heap_failed(e->heap) ||
            (!primary_is_left(e, err) && !gremlin_graph_may_retry(e->graph, err)))
            break;
        gremlin_graph_rollback(e->graph);
        results_drop(e);
        gremlin_value_unref(e->fail_message);
        e->fail_message = GREMLIN_NOTHING;
    }
    return fine;
}

static bool run_by_itself(struct gremlin_evaluation *e, const struct gremlin_graph_options *options,
                          struct error *err)
{
    struct gremlin_graph_figures figures;
    bool fine;

    if (!gremlin_graph_new(options, &e->graph, err))
        return false;
    gremlin_graph_enter(e->graph, e->call);
    gremlin_graph_set_paid(e->graph, e->tried_reads);
    fine = run_alone(e, err);
    figures = gremlin_graph_figures(e->graph);
    observe(e, &(struct gremlin_graph_figures){0}, &figures);
    e->call->charge_cru += figures.charge_cru + e->tried_cru;
    if (!e->call->may_block)
        e->tried_reads = figures.charged;
    e->answering->charge_cru = e->call->charge_cru;
    e->answering->wait_ms = figures.wait_ms;
    e->answering->reference_lag_ms = figures.reference_lag_ms;
    return fine;
}

/* Is the request part of a transaction that ends with a later one? Bytecode in a session always is:
 * drivers send commit by themselves. A script is where it says so, or one is open. */
static bool is_within(const struct gremlin_evaluation *e)
{
    return e->session && (e->asked->op == GREMLIN_OP_BYTECODE || e->asked->open_ended ||
                          e->session->transaction.graph);
}

static bool held_send(struct gremlin_evaluation *e, struct error *err)
{
    for (size_t i = 0; i < e->held_count; i++) {
        e->answering->results += e->held[i].count;
        e->sent = true;
        if (!e->send(e, &e->held[i], err))
            return false;
    }
    return true;
}

/* A graph in which edges were met gets indexes of them, unless a transaction of a session is open,
 * which would not survive another definition of its container. Where that cannot be, it is tried
 * again after a while. On a loop the request is left to a worker then. */
static bool indexes_offer(struct gremlin_evaluation *e, struct error *err)
{
    atomic_int_fast64_t *again_ms =
        &e->gremlin->offers_ms[gremlin_graph_number(e->graph) % ARRAY_LEN(e->gremlin->offers_ms)];
    struct error ignored;

    if (e->session || !e->gremlin->options.indexes || !gremlin_graph_wants_indexes(e->graph) ||
        atomic_load(again_ms) > e->begun_ms)
        return true;
    if (!e->call->may_block)
        return view_bound_cold(err);
    if (!gremlin_graph_add_indexes(e->graph, e->call->account.id, e->database, &ignored))
        atomic_store(again_ms, e->begun_ms + INDEXES_AGAIN_MS);
    return true;
}

/* Is it left to workers from the beginning? Who makes a graph, opens a permission or goes on with a
 * transaction may block. */
static bool is_for_worker(const struct gremlin_evaluation *e, const struct container *container)
{
    size_t spans;

    (void)partition_map_spans(container_map(container), &spans);
    return e->session || !e->send || e->identity->kind == GREMLIN_TOKEN ||
           e->asked->script.len > LOOP_SCRIPT_BYTES || spans > LOOP_SPANS;
}

/* Did a loop fail for what a worker would not? */
static bool is_cold(const struct gremlin_evaluation *e, const struct error *err)
{
    return err->code == ERROR_COLD || err->code == ERROR_QUERY_LIMIT ||
           err->code == ERROR_TIMED_OUT || err->code == ERROR_CONFLICT ||
           err->code == ERROR_SNAPSHOT_TOO_OLD || err->code == ERROR_REKEYED ||
           item_space_is_overtaken(err) || gremlin_heap_failed(e->heap);
}

/* On a loop. What is cold is run again by a worker, with what was paid for. */
static bool loop_evaluate(struct gremlin_evaluation *e, struct error *err)
{
    bool fine;

    gremlin_heap_set_limit(e->heap, LOOP_HEAP_BYTES);
    fine = evaluate(e, err);
    gremlin_heap_set_limit(e->heap, e->gremlin->options.memory_bytes_max);
    if (fine && e->tried)
        front_queries_was_short(e->call->services->queries, e->kind);
    if (fine || !is_cold(e, err))
        return fine;
    if (e->tried)
        front_queries_was_cold(e->call->services->queries, e->kind);
    e->tried_cru = e->call->charge_cru;
    e->call->cold = true;
    return false;
}

bool gremlin_evaluate(struct gremlin_evaluation *e, struct error *err)
{
    return e->call->may_block ? evaluate(e, err) : loop_evaluate(e, err);
}

static bool evaluate(struct gremlin_evaluation *e, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct gremlin_graph_options options;
    struct gremlin_target target;
    struct gremlin_right right;
    bool fine;

    e->fail_message = e->list = e->variables = GREMLIN_NOTHING;
    e->begun_ms = clock_read_monotonic_ms(e->call->services->clock);
    e->evaluation_ms = e->asked->evaluation_ms;
    e->deadline_ms = e->begun_ms + e->evaluation_ms;
    e->batch_max = e->asked->batch;
    e->tokens = e->asked->tokens;
    batch_begin(e);
    if (!gremlin_target_find(e->identity, e->asked, &target, err)) {
        e->code = 499;
        return false;
    }
    target.indexes = e->gremlin->options.indexes;
    if (!gremlin_target_open(e->call, &target, &container, err))
        return false;
    if (!e->call->may_block && is_for_worker(e, container))
        return view_bound_cold(err);
    if (!graph_options(e, container, &right, &options, err))
        return false;
    e->options = &options;
    e->database = target.database;
    fine = is_within(e) ? run_within(e, &options, err) : run_by_itself(e, &options, err);
    if (fine && !indexes_offer(e, err))
        return false;
    if (fine && gremlin_heap_failed(e->heap))
        fine = gremlin_heap_error(e->heap, err);
    /* what was told cannot be told again by a request that is run anew */
    if (!fine && e->sent)
        (void)primary_is_left(e, err);
    if (!fine && e->sent && err->code == ERROR_REKEYED)
        error_set(err, ERROR_CONFLICT,
                  "the graph was given another partition key while its results were read");
    return fine && held_send(e, err);
}

/* Of a transaction that goes on, the values of a request within it are kept. */
static void transaction_leave(struct gremlin_evaluation *e)
{
    struct gremlin_transaction *transaction = &e->session->transaction;

    if (!transaction->graph)
        return;
    gremlin_graph_enter(transaction->graph, NULL);
    if (e->ended && !gremlin_graph_is_written(transaction->graph))
        gremlin_transaction_end(transaction);
    else
        gremlin_transaction_keep(transaction, TAKE(e->heap));
}

void gremlin_evaluation_done(struct gremlin_evaluation *e)
{
    results_drop(e);
    memory_free(e->held);
    gremlin_batch_done(&e->batch);
    e->held = NULL;
    if (!e->session || e->graph != e->session->transaction.graph)
        gremlin_graph_free(e->graph);
    e->graph = NULL;
    if (e->session)
        transaction_leave(e);
    gremlin_heap_free(e->heap);
    e->heap = NULL;
}
