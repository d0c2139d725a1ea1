/* Plain writes of single items. */
#include "definition/names.h"
#include "document/bson.h"
#include "item/patch.h"
#include "property/operations.h"
#include "support/check.h"
#include "support/documents.h"

static void result_check(struct run *run, const struct transaction_result *result, unsigned key,
                         unsigned id)
{
    const struct model_item *item = &run->model->items[key][id];
    uint8_t expected[ITEM_HEADER_LEN], found[ITEM_HEADER_LEN];

    item_header_encode(&item->header, expected);
    item_header_encode(&result->item.header, found);
    if (item->stored && (memcmp(expected, found, sizeof found) != 0 ||
                         !slice_equal(result->item.document, item->document)))
        run_fail(run,
                 "the result of the write is another item: number %llx for %llx, lsn %llu for "
                 "%llu",
                 (unsigned long long)result->item.header.number,
                 (unsigned long long)item->header.number,
                 (unsigned long long)result->item.header.lsn, (unsigned long long)item->header.lsn);
}

/* One write, foretold and done. */
static void write_one(struct run *run, unsigned key, unsigned id, enum transaction_verb verb,
                      struct slice document, const struct transaction_options *options)
{
    CLEANUP(model_transaction_done) struct model_transaction foretold = {0};
    struct world *world = &run->world;
    struct model *after = model_copy(run->model);
    struct item_operation op = {.space = &world->space,
                                .arena = run->arena,
                                .verb = item_verb_of(verb),
                                .key = world->keys[key].key,
                                .id = world->ids[id],
                                .document = document,
                                .options = *options};
    enum error_code expected;
    struct error err;
    bool ok, existed = model_find(run->model, key, id);

    run_log(run, "write verb %d key %u id %u bytes %zu match %.*s none %.*s", verb, key, id,
            document.len, SLICE_ARG(options->if_match), SLICE_ARG(options->if_none_match));
    model_begin(&foretold, run->model);
    expected = model_write(&foretold, key, id, verb, document, options);
    if (expected == ERROR_NONE)
        expected = model_commit(&foretold, after);
    ok = item_operation_run(&op, &err);
    if (!run_settle(run, ok, &err, expected, after))
        return;
    result_check(run, &op.result, key, id);
    if (op.result.created == existed)
        run_fail(run, "the item was created, or not, wrongly");
}

static void write_random(struct run *run, enum transaction_verb verb)
{
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    struct transaction_options options = {.not_indexed = run_below(run, 20) == 0};
    struct slice document = verb == TRANSACTION_DELETE
                                ? SLICE_NONE
                                : world_document(&run->world, &run->random, key, id, 0);

    write_one(run, key, id, verb, document, &options);
}

void write_create(struct run *run)
{
    write_random(run, TRANSACTION_CREATE);
}

void write_replace(struct run *run)
{
    write_random(run, TRANSACTION_REPLACE);
}

void write_upsert(struct run *run)
{
    write_random(run, TRANSACTION_UPSERT);
}

void write_delete(struct run *run)
{
    write_random(run, TRANSACTION_DELETE);
}

static struct slice etag_random(struct run *run, unsigned key, unsigned id)
{
    char *text = arena_alloc(run->arena, ITEM_ETAG_LEN);
    unsigned other = run_below(run, WORLD_IDS);

    switch (run_below(run, 6)) {
    case 0:
        return SLICE("*");
    case 1:
        return SLICE("00000000-0000-0000-0000-000000000000");
    case 2:
        item_etag(&run->model->items[key][other].header, text);
        break;
    default:
        item_etag(&run->model->items[key][id].header, text);
    }
    return slice_of(text, ITEM_ETAG_LEN);
}

void write_with_etag(struct run *run)
{
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    enum transaction_verb verb = run_below(run, 4);
    struct transaction_options options = {0};
    struct slice document = verb == TRANSACTION_DELETE
                                ? SLICE_NONE
                                : world_document(&run->world, &run->random, key, id, 0);

    if (run_below(run, 3))
        options.if_match = etag_random(run, key, id);
    else
        options.if_none_match = etag_random(run, key, id);
    write_one(run, key, id, verb, document, &options);
}

/* The document of another item of the logical partition under this item's id, so that all its
 * unique keys clash. */
static struct slice document_as(struct run *run, struct slice document, unsigned id)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_iter iter;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append(&buf, SLICE("id"), &run->world.ids[id]);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("id")))
            document_append(&buf, iter.key, &iter.value);
    document_end(&buf, begin);
    return arena_copy(run->world.arena, buf_slice(&buf));
}

void write_unique_clash(struct run *run)
{
    static const struct transaction_options none;
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    unsigned other = run_below(run, WORLD_IDS);

    /* Of an item that is stored, even if its time is over: then nothing clashes. */
    for (unsigned i = 0; i < WORLD_IDS && !run->model->items[key][other].stored; i++)
        other = (other + 1) % WORLD_IDS;
    if (!run->model->items[key][other].stored)
        return;
    write_one(run, key, id, TRANSACTION_UPSERT,
              document_as(run, run->model->items[key][other].document, id), &none);
}

/* Large items, so that logical partitions fill up; some too large by themselves. */
void write_fill(struct run *run)
{
    static const struct transaction_options none;
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    size_t filler = run_below(run, 5) ? 2000 + run_below(run, 2000) : 6000;

    write_one(run, key, id, TRANSACTION_UPSERT,
              world_document(&run->world, &run->random, key, id, filler), &none);
}

/* --- Patches --------------------------------------------------------------------------------- */

static bool patch_make(const struct item *item, void *context, struct arena *arena,
                       struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf after;

    buf_init(&after, BUF_DEFAULT_MAX);
    if (!patch_apply(context, item->document, &after, err))
        return false;
    *ret_document = arena_copy(arena, buf_slice(&after));
    return true;
}

/* What a patch of the property n does: the value set, or taken away (undefined), or added to. */
static enum error_code patch_foretell(struct run *run, struct slice document, const char *op,
                                      int32_t number, struct slice *ret_document)
{
    CLEANUP(buf_done) struct buf buf;
    bool increments = strcmp(op, "incr") == 0, removes = strcmp(op, "remove") == 0, found = false;
    struct document_iter iter;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        bool is_n = slice_equal(iter.key, SLICE("n"));

        found |= is_n;
        if (!is_n) {
            document_append(&buf, iter.key, &iter.value);
        } else if (increments) {
            if (iter.value.type == DOCUMENT_INT32)
                document_append_int32(&buf, iter.key, iter.value.int32 + number);
            else if (iter.value.type == DOCUMENT_DOUBLE)
                document_append_double(&buf, iter.key, iter.value.number + number);
            else
                return ERROR_BAD_REQUEST;
        } else if (!removes) {
            document_append_int32(&buf, iter.key, number);
        }
    }
    if (!found && (removes || strcmp(op, "replace") == 0))
        return ERROR_BAD_REQUEST;
    if (!found)
        document_append_int32(&buf, SLICE("n"), number);
    document_end(&buf, begin);
    *ret_document = arena_copy(run->world.arena, buf_slice(&buf));
    return ERROR_NONE;
}

/* n of a random document may be an int64: what adding to it gives is none of this test. */
static bool is_hard_to_foretell(const struct model_item *item)
{
    struct document_value n;

    return item && document_find(item->document, SLICE("n"), &n) &&
           (n.type == DOCUMENT_INT64 || n.type == DOCUMENT_DECIMAL128 ||
            (n.type == DOCUMENT_DOUBLE && !(n.number >= -1e6 && n.number <= 1e6)) ||
            (n.type == DOCUMENT_INT32 && (n.int32 > 1000000 || n.int32 < -1000000)));
}

void write_patch(struct run *run)
{
    static const char *const ops[] = {"add", "set", "replace", "remove", "incr"};
    CLEANUP(model_transaction_done) struct model_transaction foretold = {0};
    struct world *world = &run->world;
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    const char *op = ops[run_below(run, 5)];
    int32_t number = (int32_t)run_below(run, 12);
    const struct model_item *item = model_find(run->model, key, id);
    struct item_operation change = {.space = &world->space,
                                    .arena = run->arena,
                                    .verb = ITEM_CHANGE,
                                    .key = world->keys[key].key,
                                    .id = world->ids[id]};
    struct model *after;
    struct document_value body;
    const struct patch *patch;
    struct slice document;
    enum error_code expected;
    struct error err;
    bool ok;

    run_log(run, "patch %s n by %d key %u id %u", op, number, key, id);
    if (is_hard_to_foretell(item))
        return;
    body = value_of(run->arena, (const char *)arena_printf(
                                    run->arena, "[{\"op\":\"%s\",\"path\":\"/n\",\"value\":%d}]%c",
                                    op, number, 0)
                                    .data);
    assert_ok(patch_parse(&body, definition_names(DEFINITION_IDENTITY_ID),
                          world->definition.key.paths, world->definition.key.path_count, run->arena,
                          &patch, &err),
              &err);
    after = model_copy(run->model);
    model_begin(&foretold, run->model);
    expected =
        item ? patch_foretell(run, item->document, op, number, &document) : ERROR_ITEM_MISSING;
    if (expected == ERROR_NONE)
        expected = model_write(&foretold, key, id, TRANSACTION_REPLACE, document, NULL);
    if (expected == ERROR_NONE)
        expected = model_commit(&foretold, after);
    change.make = patch_make;
    change.context = (void *)patch;
    ok = item_operation_run(&change, &err);
    if (run_settle(run, ok, &err, expected, after))
        result_check(run, &change.result, key, id);
}

/* --- Moving ---------------------------------------------------------------------------------- */

void write_move(struct run *run)
{
    CLEANUP(model_transaction_done) struct model_transaction foretold = {0};
    struct world *world = &run->world;
    unsigned from = run_below(run, WORLD_KEYS), to = run_below(run, WORLD_KEYS);
    unsigned id = run_below(run, WORLD_IDS);
    struct slice document = world_document(world, &run->random, to, id, 0);
    struct model *after = model_copy(run->model);
    enum error_code expected;
    struct item_operation move = {.space = &world->space,
                                  .arena = run->arena,
                                  .key = world->keys[from].key,
                                  .id = world->ids[id],
                                  .document = document};
    struct error err;
    bool ok;

    run_log(run, "move key %u to %u id %u", from, to, id);
    model_begin(&foretold, run->model);
    expected = from == to ? ERROR_BAD_REQUEST
                          : model_write(&foretold, from, id, TRANSACTION_DELETE, SLICE_NONE, NULL);
    if (expected == ERROR_NONE)
        expected = model_write(&foretold, to, id, TRANSACTION_CREATE, document, NULL);
    if (expected == ERROR_NONE)
        expected = model_commit(&foretold, after);
    ok = item_operation_move(&move, &world->keys[to].key, NULL, &err);
    if (run_settle(run, ok, &err, expected, after) &&
        move.result.item.header.number != run->model->items[to][id].header.number)
        run_fail(run, "the moved item has another number");
}

/* --- Another id ------------------------------------------------------------------------------ */

void write_rename(struct run *run)
{
    CLEANUP(model_transaction_done) struct model_transaction foretold = {0};
    struct world *world = &run->world;
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    unsigned new_id = run_below(run, WORLD_IDS);
    struct transaction_options options = {.new_id = &world->ids[new_id],
                                          .not_indexed = run_below(run, 20) == 0};
    struct slice document = world_document(world, &run->random, key, new_id, 0);
    struct model *after = model_copy(run->model);
    struct item_operation op = {.space = &world->space,
                                .arena = run->arena,
                                .verb = ITEM_REPLACE,
                                .key = world->keys[key].key,
                                .id = world->ids[id],
                                .document = document,
                                .options = options};
    enum error_code expected;
    struct error err;
    bool ok;

    run_log(run, "rename key %u id %u to %u", key, id, new_id);
    model_begin(&foretold, run->model);
    expected = model_rename(&foretold, key, id, new_id, document, &options);
    if (expected == ERROR_NONE)
        expected = model_commit(&foretold, after);
    ok = item_operation_run(&op, &err);
    if (run_settle(run, ok, &err, expected, after))
        result_check(run, &op.result, key, new_id);
}
