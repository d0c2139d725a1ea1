/* Several writes that happen together or not at all, alone and beside one another. */
#include "property/operations.h"
#include "support/check.h"

/* A transaction and what the model thinks of it. */
struct pair {
    struct transaction *real;
    struct model_transaction foretold;
    bool given_up; /* a write was refused */
};

static void pair_done(struct pair *pair)
{
    transaction_free(pair->real);
    model_transaction_done(&pair->foretold);
}
CLEANUP_VALUE_FN(struct pair, pair_done)

static bool pair_begin(struct run *run, struct pair *pair, unsigned key)
{
    struct item_scope scope = item_space_scope(&run->world.space, run->world.keys[key].logical);
    struct error err;

    model_begin(&pair->foretold, run->model);
    return run_settle_read(run,
                           transaction_begin(&scope, run->world.keys[key].logical, run->arena,
                                             &pair->real, &err),
                           &err);
}

static bool pair_enter(struct run *run, struct pair *pair, unsigned key)
{
    struct item_scope scope = item_space_scope(&run->world.space, run->world.keys[key].logical);
    struct error err;

    return run_settle_read(
        run, transaction_enter(pair->real, &scope, run->world.keys[key].logical, &err), &err);
}

static bool pair_read(struct run *run, struct pair *pair, unsigned key, unsigned id, bool rely)
{
    const struct model_item *expected = model_read(&pair->foretold, key, id);
    const struct item *item;
    struct error err;

    if (!run_settle_read(run, transaction_read(pair->real, &run->world.ids[id], &item, &err), &err))
        return false;
    if (!item != !expected || (item && !slice_equal(item->document, expected->document)))
        run_fail(run, "a transaction reads another item at key %u id %u", key, id);
    if (rely) {
        transaction_rely(pair->real, &run->world.ids[id]);
        model_rely(&pair->foretold, key, id);
    }
    return true;
}

/* False: the transaction cannot go on, for its write was refused, or met the fault. */
static bool pair_write(struct run *run, struct pair *pair, unsigned key, unsigned id)
{
    struct transaction_options options = {.not_indexed = run_below(run, 20) == 0};
    bool exists = model_read(&pair->foretold, key, id) != NULL;
    /* Mostly what will succeed, or no batch would. */
    enum transaction_verb verb = run_below(run, 12) == 0 ? run_below(run, 4)
                                 : !exists               ? TRANSACTION_CREATE
                                 : run_below(run, 3)     ? TRANSACTION_UPSERT
                                                         : TRANSACTION_DELETE;
    struct slice document = verb == TRANSACTION_DELETE
                                ? SLICE_NONE
                                : world_document(&run->world, &run->random, key, id, 0);
    enum error_code expected =
        model_write(&pair->foretold, key, id, verb, document, &options);
    struct error err;
    bool ok = transaction_write(pair->real, &run->world.ids[id], verb, document, &options, &err);

    if (!ok && run_is_fault(run, &err))
        return run_settle_read(run, false, &err);
    if (ok != (expected == ERROR_NONE) || (!ok && err.code != expected))
        run_fail(run, "in a transaction, verb %d key %u id %u: wanted %s, got %s", verb, key, id,
                 expected ? error_face(expected)->name : "success",
                 ok ? "success" : error_face(err.code)->name);
    pair->given_up = !ok;
    return ok;
}

static bool pair_act(struct run *run, struct pair *pair, unsigned key)
{
    unsigned id = run_below(run, WORLD_IDS);

    if (run_below(run, 4) == 0)
        return pair_read(run, pair, key, id, run_below(run, 3) == 0);
    return pair_write(run, pair, key, id);
}

static void pair_commit(struct run *run, struct pair *pair)
{
    struct model *after = model_copy(run->model);
    enum error_code expected = model_commit(&pair->foretold, after);
    struct error err;
    bool ok = transaction_commit(pair->real, &err);

    run_settle(run, ok, &err, expected, after);
}

void transaction_batch(struct run *run)
{
    CLEANUP(pair_done) struct pair pair = {0};
    unsigned key = run_below(run, WORLD_KEYS), count = 2 + run_below(run, 6);

    run_log(run, "batch of %u in key %u", count, key);
    if (!pair_begin(run, &pair, key))
        return;
    for (unsigned i = 0; i < count; i++)
        if (!pair_act(run, &pair, key))
            return; /* nothing of it must be there */
    pair_commit(run, &pair);
}

void transaction_span(struct run *run)
{
    CLEANUP(pair_done) struct pair pair = {0};
    unsigned key = run_below(run, WORLD_KEYS), count = 2 + run_below(run, 6);

    run_log(run, "transaction of %u over several keys", count);
    if (!pair_begin(run, &pair, key))
        return;
    for (unsigned i = 0; i < count; i++) {
        if (!pair_act(run, &pair, key))
            return;
        key = run_below(run, WORLD_KEYS);
        if (!pair_enter(run, &pair, key))
            return;
    }
    pair_commit(run, &pair);
}

/* Two at once on one logical partition: the first to commit wins. */
void transaction_interleaved(struct run *run)
{
    CLEANUP(pair_done) struct pair a = {0}, b = {0};
    unsigned key = run_below(run, WORLD_KEYS), count = 2 + run_below(run, 4);

    run_log(run, "two transactions of together %u in key %u", count, key);
    if (!pair_begin(run, &a, key) || !pair_begin(run, &b, key))
        return;
    for (unsigned i = 0; i < count; i++) {
        struct pair *pair = run_below(run, 2) ? &a : &b;

        if (!pair->given_up && !pair_act(run, pair, key) && !pair->given_up)
            return;
    }
    if (!a.given_up)
        pair_commit(run, &a);
    if (!b.given_up && !run->hit)
        pair_commit(run, &b);
}
