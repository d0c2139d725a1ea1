#include "fault/transfers.h"

#include "document/bson.h"
#include "item/transaction.h"
#include "support/changes.h"
#include "support/check.h"

#include <stdio.h>

static const char *const logicals[TRANSFER_PARTITIONS] = {"a", "b", "c", "d"};

const struct test_space_options transfer_options = {.bounds = {"b", "c", "d"},
                                                    .partitions = TRANSFER_PARTITIONS,
                                                    .unique_paths = {"/unique"},
                                                    .tells = true};

/* --- Writing --------------------------------------------------------------------------------- */

static struct slice document_with(struct slice id, const char *logical, uint32_t n,
                                  struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), id);
    document_append_string(&buf, SLICE("pk"), slice_of_text(logical));
    document_append_int64(&buf, SLICE("n"), n);
    document_append_string(&buf, SLICE("unique"), id);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

static bool put(struct transaction *transaction, struct slice id, const char *logical, uint32_t n,
                struct arena *arena, struct error *err)
{
    struct document_value value = document_string(id);

    return transaction_write(transaction, &value, TRANSACTION_UPSERT,
                             document_with(id, logical, n, arena), NULL, err);
}

/* The number of the client's batch before; false with err, or *ret_there false: there is none. */
static bool before_read(struct transaction *transaction, struct slice last, bool *ret_there,
                        int64_t *ret_n, struct error *err)
{
    struct document_value id = document_string(last), n;
    const struct item *item;

    if (!transaction_read(transaction, &id, &item, err))
        return false;
    *ret_there = item != NULL;
    if (item) {
        assert_true(document_find(item->document, SLICE("n"), &n));
        *ret_n = n.int64;
    }
    return true;
}

static bool partition_run(struct transaction *transaction, uint32_t client, uint32_t n,
                          const char *logical, struct arena *arena, struct error *err)
{
    struct slice last = arena_printf(arena, "last-%u", client);
    struct document_value old;
    int64_t before;
    bool there;

    if (!before_read(transaction, last, &there, &before, err))
        return false;
    if (there) {
        old = document_string(arena_printf(arena, "%u-%lld", client, (long long)before));
        if (!transaction_write(transaction, &old, TRANSACTION_DELETE, SLICE_NONE, NULL, err))
            return false;
    }
    return put(transaction, last, logical, n, arena, err) &&
           put(transaction, arena_printf(arena, "%u-%u", client, n), logical, n, arena, err);
}

static struct partition_key key_of(size_t partition)
{
    return (struct partition_key){
        .components = {document_string(slice_of_text(logicals[partition]))}, .count = 1};
}

bool transfer_run(struct test_space *test, uint32_t client, uint32_t n, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(transaction_free) struct transaction *transaction = NULL;

    for (size_t i = 0; i < TRANSFER_PARTITIONS; i++) {
        struct partition_key key = key_of(i);
        struct slice logical = item_logical(&test->definition.key, &key, arena);
        struct item_scope scope = item_space_scope(&test->space, logical);

        if (i == 0 ? !transaction_begin(&scope, logical, arena, &transaction, err)
                   : !transaction_enter(transaction, &scope, logical, err))
            return false;
        if (!partition_run(transaction, client, n, logicals[i], arena, err))
            return false;
    }
    return transaction_commit(transaction, err);
}

/* --- Looking --------------------------------------------------------------------------------- */

/* An item as the changes so far leave it. */
struct state {
    struct slice id;
    size_t partition;
    bool there;
    int64_t n;
};

struct states {
    struct state *list;
    size_t count;
};

static size_t partition_of(struct slice text)
{
    for (size_t i = 0; i < TRANSFER_PARTITIONS; i++)
        if (slice_equal(text, slice_of_text(logicals[i])))
            return i;
    fail_msg("no such partition");
    return 0;
}

static struct slice text_of(struct slice document, const char *name)
{
    struct document_value value;

    assert_true(document_find(document, slice_of_text(name), &value));
    return value.text;
}

/* From the end: what changes is what was made last. */
static struct state *state_of(struct states *states, struct slice id, size_t partition)
{
    for (size_t i = states->count; i-- > 0;)
        if (states->list[i].partition == partition && slice_equal(states->list[i].id, id))
            return &states->list[i];
    states->list[states->count] = (struct state){.id = id, .partition = partition};
    return &states->list[states->count++];
}

static void change_apply(struct states *states, const struct test_change *change)
{
    struct slice id = text_of(change->key, "id");
    struct state *state = state_of(states, id, partition_of(text_of(change->key, "pk")));
    struct document_value n;

    assert_true(state->there == (change->kind != HISTORY_INSERT));
    state->there = change->kind != HISTORY_DELETE;
    if (!state->there)
        return;
    assert_true(document_find(change->document, SLICE("n"), &n));
    state->n = n.int64;
}

/* Items of the store and items of the changes: the same. */
static void items_check(struct test_space *test, struct states *states)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t expected = 0, found = 0;

    for (size_t i = 0; i < states->count; i++)
        expected += states->list[i].there;
    for (size_t i = 0; i < TRANSFER_PARTITIONS; i++) {
        CLEANUP(transaction_free) struct transaction *transaction = NULL;
        struct partition_key key = key_of(i);
        struct slice logical = item_logical(&test->definition.key, &key, arena);
        struct item_scope scope = item_space_scope(&test->space, logical);
        struct transaction_page page = {.more = true};
        struct error err;

        assert_ok(transaction_begin(&scope, logical, arena, &transaction, &err), &err);
        while (page.more) {
            assert_ok(transaction_scan(transaction, page.position, 100, false, &page, &err), &err);
            for (size_t n = 0; n < page.count; n++, found++) {
                struct slice document = page.items[n].document;
                struct state *state = state_of(states, text_of(document, "id"), i);
                struct document_value value;

                assert_true(document_find(document, SLICE("n"), &value));
                assert_true(state->there);
                assert_int_equal(state->n, value.int64);
            }
        }
    }
    assert_int_equal(found, expected);
}

/* One batch: changes of one time. Returns how many. */
static size_t batch_check(struct states *states, const struct test_change *changes, size_t count,
                          struct transfer *ret_transfer)
{
    size_t marks = 0, made = 0, deleted = 0, at = 0;

    *ret_transfer = (struct transfer){.time = changes[0].place.time};
    for (; at < count && changes[at].place.time == changes[0].place.time; at++) {
        const struct test_change *change = &changes[at];
        struct slice id = text_of(change->key, "id");
        struct document_value n = document_int64(0);
        char text[40];
        unsigned client;

        snprintf(text, sizeof text, "%.*s", SLICE_ARG(id));
        change_apply(states, change);
        deleted += change->kind == HISTORY_DELETE;
        if (change->kind == HISTORY_DELETE)
            continue;
        assert_true(document_find(change->document, SLICE("n"), &n));
        if (sscanf(text, "last-%u", &client) == 1)
            marks++;
        else
            made += sscanf(text, "%u-", &client) == 1;
        if (marks + made > 1) {
            assert_int_equal(ret_transfer->client, client);
            assert_int_equal(ret_transfer->n, n.int64);
        }
        ret_transfer->client = client;
        ret_transfer->n = (uint32_t)n.int64;
    }
    assert_int_equal(marks, TRANSFER_PARTITIONS);
    assert_int_equal(made, TRANSFER_PARTITIONS);
    assert_true(deleted == 0 || deleted == TRANSFER_PARTITIONS);
    return at;
}

struct transfer *transfers_check(struct test_space *test, struct arena *arena, size_t *ret_count)
{
    size_t count, batches = 0;
    struct test_change *changes = test_changes_read(test->engine, arena, &count);
    struct transfer *transfers = ARENA_ARRAY(arena, struct transfer, count + 1);
    struct states states = {.list = ARENA_ARRAY(arena, struct state, count + 1)};

    for (size_t at = 0; at < count; batches++) {
        struct transfer *transfer = &transfers[batches];

        at += batch_check(&states, changes + at, count - at, transfer);
        for (size_t i = batches; i-- > 0;) {
            assert_true(transfers[i].time < transfer->time);
            if (transfers[i].client == transfer->client) {
                assert_true(transfers[i].n < transfer->n);
                break;
            }
        }
    }
    items_check(test, &states);
    *ret_count = batches;
    return transfers;
}
