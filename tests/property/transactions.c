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
    return run_settle_read(
        run, transaction_begin(&scope, run->world.keys[key].logical, run->arena, &pair->real, &err),
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

    run_log_more(run, "; %s %u/%u", rely ? "rely on" : "read", key, id);
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
    unsigned new_id = run_below(run, WORLD_IDS);
    struct transaction_options options = {.not_indexed = run_below(run, 20) == 0};
    bool exists = model_read(&pair->foretold, key, id) != NULL;
    bool renames = run_below(run, 4) == 0;
    /* Mostly what will succeed, or no batch would. */
    enum transaction_verb verb = run_below(run, 12) == 0 ? run_below(run, 4)
                                 : !exists               ? TRANSACTION_CREATE
                                 : renames               ? TRANSACTION_REPLACE
                                 : run_below(run, 3)     ? TRANSACTION_UPSERT
                                                         : TRANSACTION_DELETE;
    struct slice document;
    enum error_code expected;
    struct error err;
    bool ok;

    if (verb != TRANSACTION_REPLACE || !renames)
        new_id = id;
    document = verb == TRANSACTION_DELETE
                   ? SLICE_NONE
                   : world_document(&run->world, &run->random, key, new_id, 0);
    if (verb == TRANSACTION_REPLACE) {
        options.new_id = &run->world.ids[new_id];
        expected = model_rename(&pair->foretold, key, id, new_id, document, &options);
    } else {
        expected = model_write(&pair->foretold, key, id, verb, document, &options);
    }
    run_log_more(run, "; verb %d %u/%u as %u", verb, key, id, new_id);
    ok = transaction_write(pair->real, &run->world.ids[id], verb, document, &options, &err);

    if (!ok && run_is_fault(run, &err))
        return run_settle_read(run, false, &err);
    if (ok != (expected == ERROR_NONE) || (!ok && err.code != expected))
        run_fail(run, "in a transaction, verb %d key %u id %u: wanted %s, got %s", verb, key, id,
                 expected ? error_face(expected)->name : "success",
                 ok ? "success" : error_face(err.code)->name);
    pair->given_up = !ok;
    return ok;
}

/* Pages of any size; the model's items sorted by key. */
static bool pair_scan(struct run *run, struct pair *pair, unsigned key, bool rely)
{
    struct transaction_page page = {.more = true};
    size_t max = 1 + run_below(run, WORLD_IDS + 2), given = 0, expected = 0;

    for (unsigned id = 0; id < WORLD_IDS; id++)
        expected += model_view(&pair->foretold, key, id) != NULL;
    run_log_more(run, "; scan %u%s", key, rely ? " and rely" : "");
    while (page.more) {
        struct slice after = page.position;
        struct error err;

        if (!run_settle_read(run, transaction_scan(pair->real, after, max, rely, &page, &err),
                             &err))
            return false;
        for (size_t i = 0; i < page.count; i++, given++) {
            const struct model_item *item = NULL;

            for (unsigned id = 0; id < WORLD_IDS && !item; id++)
                if (slice_equal(run->world.item_keys[key][id], page.items[i].key))
                    item = model_view(&pair->foretold, key, id);
            if (!item || !slice_equal(item->document, page.items[i].document) ||
                slice_compare(page.items[i].key, after) <= 0)
                run_fail(run, "a transaction scans another item");
            after = page.items[i].key;
        }
    }
    if (given != expected)
        run_fail(run, "a transaction scans %zu items in place of %zu", given, expected);
    if (rely)
        model_rely_all(&pair->foretold, key);
    return true;
}

static bool pair_act(struct run *run, struct pair *pair, unsigned key)
{
    /* Often the same few, or two transactions would seldom meet. */
    unsigned id = run_below(run, run_below(run, 2) ? 3 : WORLD_IDS);

    if (run_below(run, 8) == 0)
        return pair_scan(run, pair, key, run_below(run, 3) == 0);
    if (run_below(run, 4) == 0)
        return pair_read(run, pair, key, id, run_below(run, 3) == 0);
    return pair_write(run, pair, key, id);
}

static void pair_commit(struct run *run, struct pair *pair)
{
    struct model *after = model_copy(run->model);
    enum error_code expected = model_commit(&pair->foretold, after);
    struct error err;
    bool ok;

    if (expected == ERROR_NONE && model_evicts_across(&pair->foretold)) {
        run_log_more(run, "; given up");
        model_free(after);
        return;
    }
    run_log_more(run, "; commit");
    ok = transaction_commit(pair->real, &err);

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
    unsigned key = run_below(run, WORLD_KEYS), count = 2 + run_below(run, 6);

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
