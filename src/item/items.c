#include "item/items.h"

#include "base/bytes.h"
#include "base/thread.h"
#include "partition/layout.h"

#include <stdatomic.h>
#include <xxhash.h>

enum {
    GATES = 1024,
    GATE_NODES = 16,
    ATTEMPTS_MAX =
        1000, /* each loses only to one that won, so this many means something is wrong */
};

/* Held by a request, not by a thread: a plain mutex would have to be let go where it was taken. */
struct gate {
    struct mutex lock;
    struct condition opened;
    bool held;
    uint32_t waiting;
};

struct item_gates {
    _Atomic(struct gate *) items[GATE_NODES]; /* GATES each; made when a node is first used */
    struct gate gates[GATES];                 /* of logical partitions */
    struct gate claims[GATES];
};

static void gates_init(struct gate *gates)
{
    for (size_t i = 0; i < GATES; i++) {
        mutex_init(&gates[i].lock);
        condition_init(&gates[i].opened);
    }
}

static void gates_done(struct gate *gates)
{
    for (size_t i = 0; i < GATES; i++) {
        condition_done(&gates[i].opened);
        mutex_done(&gates[i].lock);
    }
}

static void gates_free(struct gate *gates)
{
    if (gates)
        gates_done(gates);
    memory_free(gates);
}

struct item_gates *item_gates_new(void)
{
    struct item_gates *gates = MEMORY_NEW(struct item_gates);

    gates_init(gates->gates);
    gates_init(gates->claims);
    return gates;
}

void item_gates_free(struct item_gates *gates)
{
    if (!gates)
        return;
    for (size_t i = 0; i < GATE_NODES; i++)
        gates_free(gates->items[i]);
    gates_done(gates->claims);
    gates_done(gates->gates);
    memory_free(gates);
}

static struct gate *gate_find(struct item_gates *gates, struct slice key)
{
    return gates ? &gates->gates[XXH3_64bits(key.data, key.len) % GATES] : NULL;
}

/* Two may make them at once; one of them is let go again. */
static struct gate *gates_of_node(struct item_gates *gates, uint32_t node)
{
    _Atomic(struct gate *) *place = &gates->items[node % GATE_NODES];
    struct gate *found = atomic_load(place), *made;

    if (found)
        return found;
    made = memory_alloc_zero(memory_array_size(GATES, sizeof *made));
    gates_init(made);
    if (atomic_compare_exchange_strong(place, &found, made))
        return made;
    gates_free(made);
    return found;
}

/* Keys of different nodes share no gate: whoever waits for a node that hangs would keep others from
 * theirs. */
static struct gate *gate_find_at(const struct item_space *space, struct slice logical,
                                 struct slice key)
{
    if (!space->gates)
        return NULL;
    return &gates_of_node(
        space->gates,
        partition_map_find(space->map, logical)->node)[XXH3_64bits(key.data, key.len) % GATES];
}

static struct gate *gate_of(const struct item_space *space, struct slice logical,
                            const struct document_value *id, struct arena *arena)
{
    return gate_find_at(space, logical,
                        item_key(definition_names_of(space->definition), logical, id, arena));
}

static void gate_enter(struct gate *gate)
{
    if (!gate)
        return;
    mutex_lock(&gate->lock);
    gate->waiting++;
    while (gate->held)
        condition_wait(&gate->opened, &gate->lock);
    gate->waiting--;
    gate->held = true;
    mutex_unlock(&gate->lock);
}

/* Nobody who waits is passed by. */
static bool gate_try(struct gate *gate)
{
    bool entered;

    if (!gate)
        return true;
    mutex_lock(&gate->lock);
    entered = !gate->held && gate->waiting == 0;
    gate->held = gate->held || entered;
    mutex_unlock(&gate->lock);
    return entered;
}

static void gate_leave(struct gate *gate)
{
    bool waiting;

    if (!gate)
        return;
    mutex_lock(&gate->lock);
    gate->held = false;
    waiting = gate->waiting > 0;
    mutex_unlock(&gate->lock);
    if (waiting)
        condition_signal(&gate->opened);
}

void item_gates_enter(struct item_gates *gates, struct slice key)
{
    gate_enter(gate_find(gates, key));
}

void item_gates_leave(struct item_gates *gates, struct slice key)
{
    gate_leave(gate_find(gates, key));
}

static struct gate *claim_find(struct item_gates *gates, struct slice key)
{
    return gates ? &gates->claims[XXH3_64bits(key.data, key.len) % GATES] : NULL;
}

void item_gates_claim(struct item_gates *gates, struct slice key)
{
    gate_enter(claim_find(gates, key));
}

bool item_gates_claim_try(struct item_gates *gates, struct slice key)
{
    return gate_try(claim_find(gates, key));
}

void item_gates_unclaim(struct item_gates *gates, struct slice key)
{
    gate_leave(claim_find(gates, key));
}

/* --- Finding the place ----------------------------------------------------------------------- */

struct item_scope item_space_span_scope(const struct item_space *space,
                                        const struct partition_span *span)
{
    return (struct item_scope){
        .engine = space->engine(space->nodes, span->node),
        .commit = space->commit(space->nodes, span->node),
        .partition = span->id,
        .epoch = span->epoch,
        .definition = space->definition,
        .policy = space->definition->policy,
        .policy_version = space->policy_version,
        .policies_before = space->policies_before,
        .policies_before_count = space->policies_before_count,
        .logical_bytes_max = space->logical_bytes_max,
        .partition_bytes_max = space->partition_bytes_max,
        .item_bytes_max = space->item_bytes_max,
        .clock = space->clock,
        .is_current = space->is_current,
        .nodes = space->nodes,
        .promotions = space->promotions,
    };
}

bool item_space_admits(const struct item_space *space, struct slice logical, struct error *err)
{
    return !space->promotions || promotion_list_admits(space->promotions, logical, err);
}

struct item_scope item_space_scope(const struct item_space *space, struct slice logical)
{
    /* A stored key lies between the same bounds as its routing key alone. */
    return item_space_span_scope(space, partition_map_find(space->map, logical));
}

bool item_space_is_overtaken(const struct error *err)
{
    return err->code == ERROR_FENCED || err->code == ERROR_PARTITION_UNKNOWN;
}

static bool rekeyed_check(const struct item_space *space, struct error *err)
{
    return !space->rekeyed ||
           error_set(err, ERROR_REKEYED, "the container was given another partition key meanwhile");
}

bool item_space_renew(struct item_space *space, struct error *err)
{
    return space->renew && space->renew(space, err) && rekeyed_check(space, err);
}

void item_space_release(struct item_space *space)
{
    if (space->release)
        space->release(space);
}

bool item_space_try_again(struct item_space *space, struct error *err)
{
    if (item_space_is_overtaken(err))
        return item_space_renew(space, err);
    return err->code == ERROR_CONFLICT || err->code == ERROR_SNAPSHOT_TOO_OLD;
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool missing(struct error *err)
{
    return error_set(err, ERROR_ITEM_MISSING,
                     "entity with the specified id does not exist in the system");
}

bool items_read(const struct item_space *space, const struct partition_key *key,
                const struct document_value *id, struct arena *arena, struct item *ret_item,
                struct error *err)
{
    struct slice logical = item_logical(&space->definition->key, key, arena);
    struct item_scope scope = item_space_scope(space, logical);
    struct slice key_bytes = item_key(definition_names_of(space->definition), logical, id, arena);
    struct item item;

    if (!item_space_admits(space, logical, err) ||
        !item_scan_fetch(&scope, &key_bytes, 1, arena, &item, err))
        return false;
    if (!item.document.data)
        return missing(err);
    *ret_item = item;
    return true;
}

bool items_read_cached(const struct item_space *space, const struct partition_key *key,
                       const struct document_value *id, struct arena *arena, struct item *ret_item,
                       bool *ret_cold, struct error *err)
{
    struct slice logical = item_logical(&space->definition->key, key, arena);
    struct item_scope scope = item_space_scope(space, logical);
    struct slice key_bytes = item_key(definition_names_of(space->definition), logical, id, arena);
    struct engine_value value;
    struct item item;

    *ret_cold = false;
    if (!item_space_admits(space, logical, err))
        return false;
    if (!engine_get(scope.engine, NULL, scope.partition,
                    item_family_key(arena, PARTITION_FAMILY_ITEM, key_bytes), ENGINE_READ_CACHED,
                    arena, &value, err))
        return false;
    if (value.found == ENGINE_COLD) {
        *ret_cold = true;
        return true;
    }
    if (value.found != ENGINE_FOUND)
        return missing(err);
    if (!item_decode(key_bytes, value.bytes, &item, err))
        return false;
    if (item_is_over(&item.header, space->definition->default_ttl,
                     clock_read_wall_ms(space->clock)))
        return missing(err);
    *ret_item = item;
    return true;
}

bool items_read_number(const struct item_space *space, uint64_t number, struct arena *arena,
                       struct item *ret_item, struct error *err)
{
    uint8_t key[9] = {PARTITION_FAMILY_NUMBER};
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);

    bytes_put_be64(key + 1, number);
    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);
        struct engine_value value;
        struct item item;

        if (!engine_get(scope.engine, NULL, scope.partition, slice_of(key, sizeof key),
                        ENGINE_READ_ANY, arena, &value, err))
            return false;
        if (value.found != ENGINE_FOUND)
            continue;
        if (!item_scan_fetch(&scope, &value.bytes, 1, arena, &item, err))
            return false;
        if (!item.document.data || item.header.number != number)
            break;
        *ret_item = item;
        return true;
    }
    return missing(err);
}

/* A reference on its way to its partition. */
struct wanted {
    struct slice key;
    const struct partition_span *span;
    size_t place; /* in the caller's order */
};

static int wanted_compare(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;

    if (a->span != b->span)
        return a->span < b->span ? -1 : 1;
    return slice_compare(a->key, b->key);
}

static bool wanted_fetch(const struct item_space *space, const struct wanted *wanted, size_t count,
                         struct arena *arena, struct item *ret_items, struct error *err)
{
    struct item_scope scope = item_space_span_scope(space, wanted->span);
    struct slice *keys = ARENA_ARRAY(arena, struct slice, count);
    struct item *items = ARENA_ARRAY(arena, struct item, count);

    for (size_t i = 0; i < count; i++)
        keys[i] = wanted[i].key;
    if (!item_scan_fetch(&scope, keys, count, arena, items, err))
        return false;
    for (size_t i = 0; i < count; i++)
        ret_items[wanted[i].place] = items[i];
    return true;
}

bool items_read_many(const struct item_space *space, const struct items_reference *references,
                     size_t count, struct arena *arena, struct item *ret_items, struct error *err)
{
    struct wanted *wanted = ARENA_ARRAY(arena, struct wanted, count);

    for (size_t i = 0; i < count; i++) {
        struct slice logical = item_logical(&space->definition->key, &references[i].key, arena);

        if (!item_space_admits(space, logical, err))
            return false;
        wanted[i] = (struct wanted){.key = item_key(definition_names_of(space->definition), logical,
                                                    &references[i].id, arena),
                                    .span = partition_map_find(space->map, logical),
                                    .place = i};
    }
    qsort(wanted, count, sizeof *wanted, wanted_compare);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && wanted[end].span == wanted[begin].span;)
            end++;
        if (!wanted_fetch(space, &wanted[begin], end - begin, arena, ret_items, err))
            return false;
    }
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

/* What one attempt of a write does within its transaction. */
struct attempt {
    const struct document_value *id;
    enum transaction_verb verb;
    struct slice document;
    bool (*make)(const struct item *item, void *context, struct arena *arena,
                 struct slice *ret_document, struct error *err); /* NULL: document is given */
    void *context;
    const struct transaction_options *options;
};

static bool document_make(struct transaction *transaction, const struct attempt *attempt,
                          struct arena *arena, struct slice *ret_document, struct error *err)
{
    const struct item *item;

    if (!transaction_read(transaction, attempt->id, &item, err))
        return false;
    if (!item)
        return missing(err);
    return attempt->make(item, attempt->context, arena, ret_document, err);
}

static bool attempt_run(const struct item_scope *scope, struct slice logical,
                        const struct attempt *attempt, struct arena *arena,
                        struct transaction_result *ret_result, struct transaction_work *ret_work,
                        struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct slice document = attempt->document;

    if (!transaction_begin(scope, logical, arena, &transaction, err) ||
        (attempt->make && !document_make(transaction, attempt, arena, &document, err)) ||
        !transaction_write(transaction, attempt->id, attempt->verb, document, attempt->options,
                           err) ||
        !transaction_commit(transaction, err))
        return false;
    *ret_result = transaction_result(transaction, 0);
    if (ret_work)
        *ret_work = transaction_work(transaction);
    return true;
}

/* Each attempt routes anew: with another map another definition may have come. */
static bool attempts_run(const struct item_space *space, const struct partition_key *key,
                         const struct attempt *attempt, struct arena *arena,
                         struct transaction_result *ret_result, struct transaction_work *ret_work,
                         struct error *err)
{
    CLEANUP(item_space_release) struct item_space now = *space;

    now.renewed = false;
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        struct slice logical = item_logical(&now.definition->key, key, arena);
        struct item_scope scope = item_space_scope(&now, logical);

        if (attempt_run(&scope, logical, attempt, arena, ret_result, ret_work, err))
            return true;
        if (!item_space_try_again(&now, err))
            return false;
    }
    return false;
}

/* Only what is written is held to the limits: what cannot be stored is simply not found. */
bool items_names_check(const struct item_space *space, const struct partition_key *key,
                       const struct document_value *id, struct error *err)
{
    if (space->key_limits.bytes_max &&
        !partition_key_check(&space->definition->key, key, &space->key_limits, err))
        return false;
    if (space->id_bytes_max && id->type == DOCUMENT_STRING && id->text.len > space->id_bytes_max)
        return error_set(err, ERROR_BAD_REQUEST, "an id of %zu bytes is over the limit of %zu",
                         id->text.len, space->id_bytes_max);
    return true;
}

static bool write_at_gate(const struct item_space *space, const struct partition_key *key,
                          const struct attempt *attempt, struct arena *arena,
                          struct transaction_result *ret_result, struct transaction_work *ret_work,
                          struct error *err)
{
    struct slice logical = item_logical(&space->definition->key, key, arena);
    struct gate *gate = gate_of(space, logical, attempt->id, arena);
    bool done;

    if (!items_names_check(space, key, items_id_written(attempt->id, attempt->options), err))
        return false;
    gate_enter(gate);
    done = attempts_run(space, key, attempt, arena, ret_result, ret_work, err);
    gate_leave(gate);
    return done;
}

bool items_write(const struct item_space *space, const struct partition_key *key,
                 const struct document_value *id, enum transaction_verb verb, struct slice document,
                 const struct transaction_options *options, struct arena *arena,
                 struct transaction_result *ret_result, struct transaction_work *ret_work,
                 struct error *err)
{
    struct attempt attempt = {.id = id, .verb = verb, .document = document, .options = options};

    return write_at_gate(space, key, &attempt, arena, ret_result, ret_work, err);
}

/* A write between its beginning on one thread and its end on another; in the arena. */
struct started {
    struct transaction *transaction;
    struct gate *gate;
    items_write_done *done;
    void *context;
};

static void started_end(struct transaction *transaction, const struct error *err, void *context)
{
    struct started started = *(struct started *)context; /* done may end the arena */
    struct transaction_result result = {0};
    struct transaction_work work = {0};

    gate_leave(started.gate);
    if (!err) {
        result = transaction_result(transaction, 0);
        work = transaction_work(transaction);
    }
    started.done(&result, &work, err, started.context);
    transaction_free(transaction);
}

/* Is what the write will look at in memory? Then reading it again will not block either. */
static bool is_warm(const struct item_scope *scope, struct slice logical,
                    const struct document_value *id, struct arena *arena, bool *ret_warm,
                    struct error *err)
{
    struct slice key =
        item_family_key(arena, PARTITION_FAMILY_ITEM,
                        item_key(definition_names_of(scope->definition), logical, id, arena));
    struct engine_value value;

    if (!engine_get(scope->engine, NULL, scope->partition, key, ENGINE_READ_CACHED, arena, &value,
                    err))
        return false;
    *ret_warm = value.found != ENGINE_COLD;
    return true;
}

bool items_write_start(const struct item_space *space, const struct partition_key *key,
                       const struct document_value *id, enum transaction_verb verb,
                       struct slice document, const struct transaction_options *options,
                       struct arena *arena, items_write_done *done, void *context, bool *ret_begun,
                       struct error *err)
{
    struct slice logical = item_logical(&space->definition->key, key, arena);
    struct item_scope scope = item_space_scope(space, logical);
    struct gate *gate = gate_of(space, logical, id, arena);
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct started *started = ARENA_NEW(arena, struct started);
    bool warm;

    *ret_begun = false;
    if (!items_names_check(space, key, items_id_written(id, options), err))
        return false;
    if (space->definition->unique_key_count || (options && options->new_id))
        return true;
    if (!is_warm(&scope, logical, id, arena, &warm, err))
        return false;
    if (!warm || !gate_try(gate))
        return true;
    *started = (struct started){.gate = gate, .done = done, .context = context};
    if (!transaction_begin(&scope, logical, arena, &transaction, err) ||
        !transaction_write(transaction, id, verb, document, options, err) ||
        !transaction_commit_start(transaction, started_end, started, err)) {
        gate_leave(gate);
        return false;
    }
    (void)TAKE(transaction); /* started_end frees it, perhaps already has */
    *ret_begun = true;
    return true;
}

bool items_change(const struct item_space *space, const struct partition_key *key,
                  const struct document_value *id,
                  bool (*make)(const struct item *item, void *context, struct arena *arena,
                               struct slice *ret_document, struct error *err),
                  void *context, const struct transaction_options *options, struct arena *arena,
                  struct transaction_result *ret_result, struct transaction_work *ret_work,
                  struct error *err)
{
    struct attempt attempt = {.id = id,
                              .verb = TRANSACTION_REPLACE,
                              .make = make,
                              .context = context,
                              .options = options};

    return write_at_gate(space, key, &attempt, arena, ret_result, ret_work, err);
}

bool items_make_patched(const struct item *item, void *patch, struct arena *arena,
                        struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf after;

    buf_init(&after, BUF_DEFAULT_MAX);
    if (!patch_apply(patch, item->document, &after, err))
        return false;
    *ret_document = arena_copy(arena, buf_slice(&after));
    return true;
}

bool items_patch(const struct item_space *space, const struct partition_key *key,
                 const struct document_value *id, const struct patch *patch,
                 const struct transaction_options *options, struct arena *arena,
                 struct transaction_result *ret_result, struct transaction_work *ret_work,
                 struct error *err)
{
    return items_change(space, key, id, items_make_patched, (void *)patch, options, arena,
                        ret_result, ret_work, err);
}

/* --- Moving ---------------------------------------------------------------------------------- */

static bool move_run(const struct item_space *space, const struct partition_key *from_key,
                     const struct partition_key *to_key, const struct attempt *attempt,
                     struct arena *arena, struct item *ret_item, struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct slice from = item_logical(&space->definition->key, from_key, arena);
    struct slice to = item_logical(&space->definition->key, to_key, arena);
    struct item_scope source = item_space_scope(space, from);
    struct item_scope target = item_space_scope(space, to);

    if (!transaction_begin(&source, from, arena, &transaction, err) ||
        !transaction_write(transaction, attempt->id, TRANSACTION_DELETE, SLICE_NONE,
                           attempt->options, err) ||
        !transaction_enter(transaction, &target, to, err) ||
        !transaction_write(transaction, attempt->id, TRANSACTION_CREATE, attempt->document, NULL,
                           err) ||
        !transaction_commit(transaction, err))
        return false;
    *ret_item = transaction_result(transaction, 1).item;
    return true;
}

bool items_move(const struct item_space *space, const struct partition_key *from,
                const struct document_value *id, const struct partition_key *to,
                struct slice document, const struct transaction_options *options,
                struct arena *arena, struct item *ret_item, struct error *err)
{
    struct slice source = item_logical(&space->definition->key, from, arena);
    struct slice target = item_logical(&space->definition->key, to, arena);
    struct attempt attempt = {.id = id, .document = document, .options = options};
    CLEANUP(item_space_release) struct item_space now = *space;

    now.renewed = false;
    if (!items_names_check(space, to, id, err))
        return false;
    if (slice_equal(source, target))
        return error_set(err, ERROR_BAD_REQUEST, "the item has that partition key already");
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        if (move_run(&now, from, to, &attempt, arena, ret_item, err))
            return true;
        if (!item_space_try_again(&now, err))
            return false;
    }
    return false;
}
