/* Transactions over two nodes with every write of either cut: it is not done, or it is done and
 * nobody is told, or the disk is full. Then the process starts again from the same stores, or the
 * node recovers beneath it. No half is ever there, what was acknowledged stays, and nothing is left
 * open. */
#include "item/agreement.h"

#include "base/thread.h"
#include "catalogue/agreements.h"
#include "catalogue/container_space.h"
#include "document/bson.h"
#include "item/operation.h"
#include "item/write_record.h"
#include "partition/layout.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"

#include <stdatomic.h>
#include <unistd.h>

enum { NODES = 2, WRITES_MAX = 20, KEYS_TRIED = 100, NAP_US = 30000, LOOKS_MAX = 20000 };

/* A process on two stores that outlive it. */
struct pair {
    struct engine *stores[NODES], *faults[NODES];
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct container *container;
    char keys[NODES][8]; /* a partition key of each node */
};

/* --- The process ----------------------------------------------------------------------------- */

static void process_start(struct pair *pair)
{
    static const char *const names[] = {"a", "b"};
    struct error err;

    pair->cluster = cluster_new(NULL);
    for (size_t i = 0; i < NODES; i++) {
        pair->faults[i] = fault_engine_around(pair->stores[i]);
        assert_ok(cluster_add(pair->cluster, names[i], pair->faults[i], &err), &err);
    }
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = pair->cluster},
                             &pair->catalogue, &err),
              &err);
}

static void process_end(struct pair *pair)
{
    container_unref(TAKE(pair->container));
    catalogue_close(TAKE(pair->catalogue));
    cluster_free(TAKE(pair->cluster));
    for (size_t i = 0; i < NODES; i++)
        engine_close(TAKE(pair->faults[i]));
}

static void process_restart(struct pair *pair)
{
    struct error err;

    process_end(pair);
    process_start(pair);
    assert_ok(catalogue_container_open(pair->catalogue, SLICE("a"), SLICE("d"), SLICE("c"),
                                       &pair->container, &err),
              &err);
}

static struct item_space space_of(const struct pair *pair)
{
    return container_space(pair->container, &clock_system, NULL);
}

static struct partition_key key_of(const char *text, struct arena *arena)
{
    struct partition_key key = {.count = 1};

    key.components[0] = document_string(arena_copy(arena, slice_of_text(text)));
    return key;
}

static void keys_find(struct pair *pair)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_space space = space_of(pair);

    for (int i = 0; i < KEYS_TRIED; i++) {
        char text[8];
        struct partition_key key;

        snprintf(text, sizeof text, "p%d", i);
        key = key_of(text, arena);
        memcpy(
            pair->keys[item_space_scope(&space, item_logical(&space.definition->key, &key, arena))
                           .node],
            text, sizeof text);
    }
    assert_true(pair->keys[0][0] && pair->keys[1][0]);
}

static void container_make(struct pair *pair)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct offer_request request = {.given = true, .ru = 20000};
    struct error err;

    assert_ok(catalogue_account_create(pair->catalogue, SLICE("a"), document_of(arena, "{}"),
                                       &account, &err),
              &err);
    assert_ok(
        catalogue_database_create(pair->catalogue, SLICE("a"), SLICE("d"), NULL, &database, &err),
        &err);
    assert_ok(catalogue_container_create(
                  pair->catalogue, SLICE("a"), SLICE("d"),
                  document_of(arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}"),
                  &request, &pair->container, &err),
              &err);
}

static int setup(void **state)
{
    struct pair *pair = MEMORY_NEW(struct pair);
    struct error err;

    for (size_t i = 0; i < NODES; i++)
        assert_ok(
            engine_open(SLICE("memory:"), &(struct engine_options){0}, &pair->stores[i], &err),
            &err);
    process_start(pair);
    container_make(pair);
    keys_find(pair);
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;

    process_end(pair);
    for (size_t i = 0; i < NODES; i++)
        engine_close(pair->stores[i]);
    memory_free(pair);
    return 0;
}

/* --- Transactions ---------------------------------------------------------------------------- */

static struct slice item_with(const char *key, int version, struct arena *arena)
{
    return document_of(arena, arena_text(arena, arena_printf(arena,
                                                             "{\"id\":\"x\",\"pk\":\"%s\","
                                                             "\"version\":%d}",
                                                             key, version)));
}

static bool enter(struct pair *pair, struct agreement *agreement, size_t node, struct arena *arena,
                  struct error *err)
{
    struct item_space space = space_of(pair);
    struct partition_key key = key_of(pair->keys[node], arena);
    struct slice logical = item_logical(&space.definition->key, &key, arena);
    struct item_scope scope = item_space_scope(&space, logical);

    return agreement_enter(agreement, &scope, logical, err);
}

static const uint8_t session[WRITE_RECORD_SESSION_LEN] = {7};

/* Puts this version on both nodes, or deletes (0); a record of it lies beside each item. */
static bool both_write(struct pair *pair, int version, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(agreement_free)
    struct agreement *agreement = agreement_new(catalogue_agreements(pair->catalogue), arena);
    struct document_value id = document_string(SLICE("x"));
    const struct agreement_member *members[NODES];
    const struct write_record record = {
        .session = session, .number = version, .outcome = SLICE("well")};
    const struct transaction_options options = {.record = &record};

    for (size_t i = 0; i < NODES; i++) {
        if (!enter(pair, agreement, i, arena, err) ||
            !transaction_write(agreement_transaction(agreement), &id,
                               version ? TRANSACTION_UPSERT : TRANSACTION_DELETE,
                               version ? item_with(pair->keys[i], version, arena) : SLICE_NONE,
                               &options, err))
            return false;
        members[i] = agreement_member(agreement);
    }
    if (!agreement_commit(agreement, err))
        return false;
    for (size_t i = 0; i < NODES; i++)
        assert_true(agreement_result(members[i], 0).lsn > 0);
    return true;
}

static bool one_read(struct pair *pair, size_t node, int *ret_version, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_space space = space_of(pair);
    struct item_operation op = {.space = &space,
                                .arena = arena,
                                .verb = ITEM_READ,
                                .key = key_of(pair->keys[node], arena),
                                .id = document_string(SLICE("x"))};
    struct document_value value;
    int64_t version = 0;

    *ret_version = 0;
    if (!item_operation_run(&op, err))
        return err->code == ERROR_ITEM_MISSING;
    assert_true(document_find(op.result.item.document, SLICE("version"), &value) &&
                document_to_int64(&value, &version));
    *ret_version = (int)version;
    return true;
}

static int version_at(struct pair *pair, size_t node)
{
    struct error err;
    int version;

    assert_ok(one_read(pair, node, &version, &err), &err);
    return version;
}

static bool plain_write(struct pair *pair, size_t node, int version, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_space space = space_of(pair);
    struct item_operation op = {.space = &space,
                                .arena = arena,
                                .verb = ITEM_UPSERT,
                                .key = key_of(pair->keys[node], arena),
                                .id = document_string(SLICE("x")),
                                .document = item_with(pair->keys[node], version, arena)};

    return item_operation_run(&op, err);
}

/* How many records there are of a version: one on each node, or none. */
static size_t records_of(struct pair *pair, int version)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_space space = space_of(pair);
    struct write_records records;
    struct error err;

    assert_ok(write_records_settle(&space, &err) &&
                  write_records_find(&space, session, version, arena, &records, &err),
              &err);
    for (size_t i = 0; i < records.count; i++)
        assert_slice_equal(records.list[i].outcome, SLICE("well"));
    return records.count;
}

/* Nothing is under way, and no store keeps anything of what was. */
static void assert_quiet(struct pair *pair)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;

    assert_ok(agreements_pause(catalogue_agreements(pair->catalogue), &err), &err);
    agreements_resume(catalogue_agreements(pair->catalogue));
    for (size_t i = 0; i < NODES; i++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        struct engine_range range = pledge_records(PLEDGE_DECISION, arena);
        struct engine_entry entry;

        range.max = pledge_records(PLEDGE_PROMISE, arena).max;
        assert_ok(engine_iterator_new(pair->stores[i], NULL, PARTITION_HISTORY, range, false,
                                      ENGINE_READ_ANY, &iterator, &err) &&
                      engine_iterator_next(iterator, &entry, &err),
                  &err);
        assert_int_equal(entry.found, ENGINE_ABSENT);
        assert_int_equal(atomic_load(&commit_pledges(cluster_at(pair->cluster, i)->commit)->count),
                         0);
        assert_int_equal(pledges_windows(commit_pledges(cluster_at(pair->cluster, i)->commit)), 0);
    }
    assert_int_equal(agreements_waiting(catalogue_agreements(pair->catalogue)), 0);
}

/* --- Stories --------------------------------------------------------------------------------- */

static void both_nodes_have_it_or_none(void **state)
{
    struct pair *pair = *state;
    struct error err;

    assert_ok(both_write(pair, 1, &err), &err);
    assert_int_equal(version_at(pair, 0), 1);
    assert_int_equal(version_at(pair, 1), 1);
    assert_ok(both_write(pair, 2, &err), &err);
    assert_quiet(pair);
    process_restart(pair);
    assert_int_equal(version_at(pair, 0), 2);
    assert_int_equal(version_at(pair, 1), 2);
    assert_ok(both_write(pair, 0, &err), &err);
    assert_int_equal(version_at(pair, 0), 0);
    assert_int_equal(version_at(pair, 1), 0);
    assert_int_equal(records_of(pair, 0), NODES);
    assert_false(both_write(pair, 0, &err)); /* there is nothing to delete */
    assert_int_equal(err.code, ERROR_ITEM_MISSING);
    assert_quiet(pair);
}

static void what_was_read_elsewhere_must_not_change(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    struct document_value id = document_string(SLICE("x"));

    for (size_t reads = 0; reads < NODES; reads++)
        for (int writes = 0; writes < 2; writes++) {
            CLEANUP(agreement_free)
            struct agreement *agreement =
                agreement_new(catalogue_agreements(pair->catalogue), arena);
            const struct item *item;
            struct error err;

            assert_ok(both_write(pair, 1, &err), &err);
            for (size_t i = 0; i < NODES; i++) {
                size_t node = (reads + i) % NODES;

                assert_ok(enter(pair, agreement, node, arena, &err) &&
                              transaction_read(agreement_transaction(agreement), &id, &item, &err),
                          &err);
                if (i && writes)
                    assert_ok(transaction_write(agreement_transaction(agreement), &id,
                                                TRANSACTION_UPSERT,
                                                item_with(pair->keys[node], 7, arena), NULL, &err),
                              &err);
            }
            assert_ok(plain_write(pair, reads, 2, &err), &err);
            assert_false(agreement_commit(agreement, &err));
            assert_int_equal(err.code, ERROR_CONFLICT);
            assert_int_equal(version_at(pair, reads), 2);
            assert_int_equal(version_at(pair, !reads), 1);
            assert_quiet(pair);
        }
}

struct cut {
    enum error_code code;
    enum fault_outcome outcome;
};

static const struct cut cuts[] = {
    {ERROR_STORE_IO, FAULT_NOT_WRITTEN},
    {ERROR_STORE_IO, FAULT_WRITTEN},
    {ERROR_STORE_FULL, FAULT_NOT_WRITTEN},
};

static void assert_whole(struct pair *pair, int version, bool done, const struct error *err)
{
    int now = version_at(pair, 0);

    assert_int_equal(version_at(pair, 1), now);
    assert_int_equal(records_of(pair, now), now ? NODES : 0);
    assert_true(now == version || (!done && now == version - 1));
    if (!done && err->code != ERROR_STORE_IO && err->code != ERROR_WRITE_IN_DOUBT)
        assert_int_equal(now, version - 1);
    assert_quiet(pair);
}

/* What is left to the thread is done, or was tried in vain. */
static void settling_await(struct pair *pair)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct agreements *agreements = catalogue_agreements(pair->catalogue);
    struct agreement_info *list;

    for (int i = 0; i < LOOKS_MAX && agreements_list(agreements, arena, &list) &&
                    !agreements_waiting(agreements);
         i++)
        usleep(1000);
}

static void a_cut_write_leaves_no_half(void **state)
{
    struct pair *pair = *state;
    int version = 0;
    unsigned steps = 0;

    for (size_t node = 0; node < NODES; node++)
        for (size_t c = 0; c < ARRAY_LEN(cuts); c++)
            for (unsigned nth = 1; nth <= WRITES_MAX; nth++) {
                unsigned before = fault_engine_count(pair->faults[node], FAULT_WRITES);
                struct error err = {0};
                bool done, met;

                fault_engine_fail_nth(pair->faults[node], FAULT_WRITES, nth, cuts[c].code,
                                      cuts[c].outcome);
                done = both_write(pair, ++version, &err);
                settling_await(pair);
                met = fault_engine_count(pair->faults[node], FAULT_WRITES) - before >= nth;
                steps += met;
                process_restart(pair);
                assert_whole(pair, version, done, &err);
                if (version_at(pair, 0) != version)
                    version--;
                if (!met)
                    break;
            }
    assert_true(steps >= 3 * (2 + 2)); /* decide and forget; promise and apply */
}

static void a_node_that_recovers_is_settled_without_a_restart(void **state)
{
    struct pair *pair = *state;
    int version = 0;

    for (size_t node = 0; node < NODES; node++)
        for (size_t c = 0; c < ARRAY_LEN(cuts); c++)
            for (unsigned nth = 1; nth <= 2; nth++) {
                struct error err = {0};
                bool done;

                fault_engine_fail_nth(pair->faults[node], FAULT_WRITES, nth, cuts[c].code,
                                      cuts[c].outcome);
                done = both_write(pair, ++version, &err);
                usleep(NAP_US); /* some tries in vain */
                fault_engine_heal(pair->faults[node]);
                assert_ok(agreements_pause(catalogue_agreements(pair->catalogue), &err), &err);
                agreements_resume(catalogue_agreements(pair->catalogue));
                assert_int_equal(version_at(pair, 0), version_at(pair, 1));
                assert_true(!done || version_at(pair, 0) == version);
                assert_quiet(pair);
                version = version_at(pair, 0);
            }
}

/* --- Beside others --------------------------------------------------------------------------- */

struct other {
    struct thread thread;
    struct pair *pair;
    size_t node;
    int version;
    bool writes;
    atomic_bool finished;
    bool done;
    struct error err;
};

static void other_main(void *context)
{
    struct other *other = context;

    if (other->writes)
        other->done = other->node == NODES
                          ? both_write(other->pair, other->version, &other->err)
                          : plain_write(other->pair, other->node, other->version, &other->err);
    else
        other->done = one_read(other->pair, other->node, &other->version, &other->err);
    atomic_store(&other->finished, true);
}

static void other_start(struct other *other, struct pair *pair, size_t node, int version,
                        bool writes)
{
    *other = (struct other){.pair = pair, .node = node, .version = version, .writes = writes};
    thread_start(&other->thread, "other", other_main, other);
}

static void other_join(struct other *other)
{
    thread_join(&other->thread);
    assert_ok(other->done, &other->err);
}

static struct pledges *pledges_at(struct pair *pair, size_t node)
{
    return commit_pledges(cluster_at(pair->cluster, node)->commit);
}

static void readers_wait_for_their_own_node_alone(void **state)
{
    struct pair *pair = *state;
    struct other writer, reader;
    struct error err;

    assert_ok(both_write(pair, 1, &err), &err);
    assert_quiet(pair);

    /* The home writes its decision: its readers wait, those of the other node do not. */
    fault_engine_hold_writes(pair->faults[0]);
    other_start(&writer, pair, NODES, 2, true);
    fault_engine_wait_held(pair->faults[0]);
    other_start(&reader, pair, 0, 0, false);
    assert_int_equal(version_at(pair, 1), 1);
    usleep(NAP_US);
    assert_false(atomic_load(&reader.finished));

    /* It is decided, and the other node has not applied it: now it is the other way round. */
    fault_engine_hold_writes(pair->faults[1]);
    fault_engine_release_writes(pair->faults[0]);
    fault_engine_wait_held(pair->faults[1]);
    other_join(&reader);
    assert_int_equal(reader.version, 2);
    other_start(&reader, pair, 1, 0, false);
    assert_int_equal(version_at(pair, 0), 2);
    usleep(NAP_US);
    assert_false(atomic_load(&reader.finished));

    fault_engine_release_writes(pair->faults[1]);
    other_join(&reader);
    assert_int_equal(reader.version, 2);
    other_join(&writer);
    assert_quiet(pair);
}

static void writers_wait_for_what_is_promised(void **state)
{
    struct pair *pair = *state;
    struct other both, plain;
    struct error err;

    assert_ok(both_write(pair, 1, &err), &err);
    assert_quiet(pair);
    fault_engine_hold_writes(pair->faults[0]);
    other_start(&both, pair, NODES, 2, true);
    fault_engine_wait_held(pair->faults[0]);
    assert_int_equal(atomic_load(&pledges_at(pair, 1)->count), 1);
    other_start(&plain, pair, 1, 3, true);
    usleep(NAP_US);
    assert_false(atomic_load(&plain.finished));
    assert_int_equal(version_at(pair, 1), 1);
    fault_engine_release_writes(pair->faults[0]);
    other_join(&both);
    other_join(&plain);
    assert_int_equal(version_at(pair, 0), 2);
    assert_int_equal(version_at(pair, 1), 3);
    assert_quiet(pair);
}

static void nobody_waits_for_another_with_a_promise_of_his_own(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    struct item_space space = space_of(pair);
    struct error err;

    for (size_t node = 0; node < NODES; node++) {
        struct partition_key pk = key_of(pair->keys[node], arena);
        struct slice logical = item_logical(&space.definition->key, &pk, arena);
        struct item_scope scope = item_space_scope(&space, logical);
        struct document_value id = document_string(SLICE("x"));
        struct slice key =
            item_family_key(arena, PARTITION_FAMILY_ITEM,
                            item_key(definition_names_of(space.definition), logical, &id, arena));
        struct commit_part part = {
            .partition = scope.partition, .epoch = scope.epoch, .relied = &key, .relied_count = 1};
        struct commit_batch batch = {.parts = &part, .part_count = 1};
        struct pledge_id another = {{1}};

        pledges_add(commit_pledges(scope.commit), pledge_new(another, 0, 0, &batch, SLICE_NONE));
        assert_false(both_write(pair, 9, &err)); /* also where it would decide */
        assert_int_equal(err.code, ERROR_CONFLICT);
        pledges_remove(commit_pledges(scope.commit), another);
        assert_quiet(pair);
    }
    assert_ok(both_write(pair, 9, &err), &err);
    assert_quiet(pair);
}

static void what_waits_is_told_and_keeps_its_nodes(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    struct agreements *agreements = catalogue_agreements(pair->catalogue);
    struct agreement_info *list;
    struct error err;

    assert_ok(both_write(pair, 1, &err), &err);
    assert_quiet(pair);
    fault_engine_fail_nth(pair->faults[1], FAULT_WRITES, 2, ERROR_STORE_IO, FAULT_NOT_WRITTEN);
    assert_false(both_write(pair, 2, &err));
    assert_int_equal(err.code, ERROR_WRITE_IN_DOUBT);
    assert_int_equal(agreements_list(agreements, arena, &list), 1);
    assert_int_equal(list[0].state, AGREEMENT_APPLYING);
    assert_int_equal(list[0].home, 0);
    assert_int_equal(list[0].nodes, 1 << 1);
    assert_int_equal(agreements_waiting(agreements), 1);
    assert_true(list[0].why[0]);
    assert_false(agreements_spare(agreements, 1, &err));
    assert_int_equal(err.code, ERROR_PLEDGED);
    assert_int_equal(version_at(pair, 0), 2); /* the home has it, and serves */
    assert_false(one_read(pair, 1, &(int){0}, &err));
    assert_int_equal(err.code, ERROR_PLEDGED); /* rather than the half that it has not */
    fault_engine_heal(pair->faults[1]);
    for (int i = 0; i < LOOKS_MAX && agreements_waiting(agreements); i++)
        usleep(1000);
    assert_int_equal(version_at(pair, 1), 2);
    assert_ok(agreements_spare(agreements, 1, &err), &err);
    assert_quiet(pair);
}

static void a_partition_is_fenced_without_promises(void **state)
{
    struct pair *pair = *state;
    struct item_space space = space_of(pair);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key key = key_of(pair->keys[1], arena);
    struct item_scope scope =
        item_space_scope(&space, item_logical(&space.definition->key, &key, arena));
    struct error err;

    assert_ok(both_write(pair, 1, &err), &err);
    assert_ok(commit_partition_unpledge(scope.commit, scope.partition, &err), &err);
    assert_false(both_write(pair, 2, &err));
    assert_int_equal(err.code, ERROR_FENCED);
    assert_ok(plain_write(pair, 1, 3, &err), &err); /* only promises are refused */
    assert_ok(commit_partition_open(scope.commit, scope.partition, scope.epoch, &err), &err);
    assert_ok(both_write(pair, 4, &err), &err);
    assert_quiet(pair);
}

/* --- Moves ----------------------------------------------------------------------------------- */

/* The item of node `from` gets the key of the other node. */
static bool item_move(struct pair *pair, size_t from, int version, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_space space = space_of(pair);
    struct partition_key to = key_of(pair->keys[!from], arena);
    struct item_operation op = {.space = &space,
                                .arena = arena,
                                .key = key_of(pair->keys[from], arena),
                                .id = document_string(SLICE("x")),
                                .document = item_with(pair->keys[!from], version, arena)};

    if (!item_operation_move(&op, &to, catalogue_agreements(pair->catalogue), err))
        return false;
    assert_true(op.result.created && op.result.lsn > 0 && op.work.writes == 2);
    return true;
}

static void an_item_is_moved_between_nodes_or_stays(void **state)
{
    struct pair *pair = *state;
    size_t at = 0;
    int version = 1;
    struct error err;

    assert_ok(plain_write(pair, 0, version, &err), &err);
    for (size_t node = 0; node < NODES; node++)
        for (size_t c = 0; c < ARRAY_LEN(cuts); c++)
            for (unsigned nth = 1; nth <= 3; nth++) {
                bool done;

                fault_engine_fail_nth(pair->faults[node], FAULT_WRITES, nth, cuts[c].code,
                                      cuts[c].outcome);
                done = item_move(pair, at, version + 1, &err);
                settling_await(pair);
                process_restart(pair);
                if (version_at(pair, at) == 0) {
                    at = !at;
                    version++;
                } else {
                    assert_false(done);
                }
                assert_int_equal(version_at(pair, at), version);
                assert_int_equal(version_at(pair, !at), 0); /* it is in one place */
                assert_quiet(pair);
            }
    assert_ok(plain_write(pair, !at, 99, &err), &err);
    assert_false(item_move(pair, at, 100, &err));
    assert_int_equal(err.code, ERROR_ITEM_EXISTS);
    assert_int_equal(version_at(pair, at), version);
}

/* --- One moment ------------------------------------------------------------------------------ */

static bool meet(struct pair *pair, struct agreement *agreement, size_t first, size_t count,
                 struct arena *arena, struct error *err)
{
    struct item_space space = space_of(pair);
    struct item_scope scopes[NODES];

    for (size_t i = 0; i < count; i++) {
        struct partition_key key = key_of(pair->keys[first + i], arena);

        scopes[i] = item_space_scope(&space, item_logical(&space.definition->key, &key, arena));
    }
    return agreement_meet(agreement, scopes, count, 0, err);
}

static int version_within(struct pair *pair, struct agreement *agreement, size_t node,
                          struct arena *arena)
{
    struct document_value id = document_string(SLICE("x")), value;
    const struct item *item = NULL;
    int64_t version = 0;
    struct error err;

    assert_ok(enter(pair, agreement, node, arena, &err) &&
                  transaction_read(agreement_transaction(agreement), &id, &item, &err),
              &err);
    if (item)
        assert_true(document_find(item->document, SLICE("version"), &value) &&
                    document_to_int64(&value, &version));
    return (int)version;
}

static bool write_within(struct pair *pair, struct agreement *agreement, size_t node, int version,
                         struct arena *arena, struct error *err)
{
    struct document_value id = document_string(SLICE("x"));

    return enter(pair, agreement, node, arena, err) &&
           transaction_write(agreement_transaction(agreement), &id, TRANSACTION_UPSERT,
                             item_with(pair->keys[node], version, arena), NULL, err);
}

static void what_is_met_at_once_is_of_one_moment(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    struct error err;

    for (size_t writes = 0; writes < NODES; writes++) {
        CLEANUP(agreement_free)
        struct agreement *agreement = agreement_new(catalogue_agreements(pair->catalogue), arena);

        assert_ok(both_write(pair, 1, &err), &err);
        assert_ok(meet(pair, agreement, 0, NODES, arena, &err), &err);
        assert_int_equal(agreement_nodes(agreement), 3);
        assert_ok(plain_write(pair, !writes, 2, &err), &err);
        assert_int_equal(version_within(pair, agreement, 0, arena), 1);
        assert_int_equal(version_within(pair, agreement, 1, arena), 1);
        assert_ok(write_within(pair, agreement, writes, 7, arena, &err), &err);
        assert_ok(agreement_commit(agreement, &err), &err); /* what it only read may change */
        assert_int_equal(version_at(pair, writes), 7);
        assert_int_equal(version_at(pair, !writes), 2);
        assert_quiet(pair);
    }
}

static void what_is_written_at_one_moment_must_not_change(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    struct error err;

    for (size_t other = 0; other <= NODES; other++) {
        CLEANUP(agreement_free)
        struct agreement *agreement = agreement_new(catalogue_agreements(pair->catalogue), arena);
        bool raced = other < NODES;

        assert_ok(both_write(pair, 1, &err), &err);
        assert_ok(meet(pair, agreement, 0, NODES, arena, &err) &&
                      write_within(pair, agreement, 0, 7, arena, &err) &&
                      write_within(pair, agreement, 1, 7, arena, &err),
                  &err);
        if (raced)
            assert_ok(plain_write(pair, other, 2, &err), &err);
        assert_int_equal(agreement_commit(agreement, &err), !raced);
        assert_int_equal(agreement_outcome(agreement),
                         raced ? AGREEMENT_NOTHING : AGREEMENT_DECIDED);
        if (raced)
            assert_int_equal(err.code, ERROR_CONFLICT);
        for (size_t node = 0; node < NODES; node++)
            assert_int_equal(version_at(pair, node), !raced ? 7 : node == other ? 2 : 1);
        assert_quiet(pair);
    }
}

static void a_node_that_is_met_later_must_fit_the_moment(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    struct error err;

    for (size_t changed = 0; changed < NODES; changed++) {
        CLEANUP(agreement_free)
        struct agreement *agreement = agreement_new(catalogue_agreements(pair->catalogue), arena);

        assert_ok(both_write(pair, 1, &err), &err);
        assert_ok(meet(pair, agreement, 0, 1, arena, &err), &err);
        assert_int_equal(version_within(pair, agreement, 0, arena), 1);
        assert_ok(plain_write(pair, changed, 2, &err), &err);
        if (changed == 0) {
            assert_false(meet(pair, agreement, 1, 1, arena, &err));
            assert_int_equal(err.code, ERROR_CONFLICT);
            continue;
        }
        assert_ok(meet(pair, agreement, 1, 1, arena, &err), &err);
        assert_int_equal(version_within(pair, agreement, 1, arena), 2);
        assert_ok(agreement_commit(agreement, &err), &err);
    }
}

struct meeter {
    struct thread thread;
    struct pair *pair;
    struct arena *arena;
    struct agreement *agreement;
    atomic_bool finished;
    bool met;
    struct error err;
};

static void meeter_main(void *context)
{
    struct meeter *meeter = context;

    meeter->met = meet(meeter->pair, meeter->agreement, 0, NODES, meeter->arena, &meeter->err);
    atomic_store(&meeter->finished, true);
}

static void a_moment_has_no_half_of_what_is_decided(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    CLEANUP(agreement_free)
    struct agreement *agreement = agreement_new(catalogue_agreements(pair->catalogue), arena);
    struct meeter meeter = {.pair = pair, .arena = arena, .agreement = agreement};
    struct other writer;
    struct error err;

    assert_ok(both_write(pair, 1, &err), &err);
    assert_quiet(pair);
    fault_engine_hold_writes(pair->faults[0]);
    other_start(&writer, pair, NODES, 2, true);
    fault_engine_wait_held(pair->faults[0]);
    fault_engine_hold_writes(pair->faults[1]);
    fault_engine_release_writes(pair->faults[0]);
    fault_engine_wait_held(pair->faults[1]); /* decided, and not applied */
    thread_start(&meeter.thread, "meeter", meeter_main, &meeter);
    usleep(NAP_US);
    assert_false(atomic_load(&meeter.finished));
    fault_engine_release_writes(pair->faults[1]);
    other_join(&writer);
    thread_join(&meeter.thread);
    assert_ok(meeter.met, &meeter.err);
    assert_int_equal(version_within(pair, agreement, 0, arena), 2);
    assert_int_equal(version_within(pair, agreement, 1, arena), 2);
    assert_quiet(pair);
}

/* The other way round: the first snapshot was taken before the decision, the second one behind it,
 * and the node of the first has not written its part yet. */
static void an_earlier_snapshot_is_of_no_use_beside_what_is_decided(void **state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct pair *pair = *state;
    struct agreements *agreements = catalogue_agreements(pair->catalogue);
    CLEANUP(agreement_free) struct agreement *agreement = agreement_new(agreements, arena);
    struct other writer;
    struct error err;

    assert_ok(both_write(pair, 1, &err), &err);
    assert_quiet(pair);
    assert_ok(meet(pair, agreement, 1, 1, arena, &err), &err);
    assert_int_equal(version_within(pair, agreement, 1, arena), 1);
    fault_engine_hold_writes(pair->faults[0]);
    other_start(&writer, pair, NODES, 2, true);
    fault_engine_wait_held(pair->faults[0]);
    fault_engine_unplug(pair->faults[1], true); /* so that it does not even try to write */
    fault_engine_release_writes(pair->faults[0]);
    thread_join(&writer.thread);
    assert_false(writer.done);
    assert_int_equal(writer.err.code, ERROR_WRITE_IN_DOUBT);
    assert_int_equal(version_at(pair, 0), 2);
    assert_false(meet(pair, agreement, 0, 1, arena, &err));
    assert_int_equal(err.code, ERROR_CONFLICT);
    fault_engine_unplug(pair->faults[1], false);
    for (int i = 0; i < LOOKS_MAX && agreements_waiting(agreements); i++)
        usleep(1000);
    assert_int_equal(version_at(pair, 1), 2);
    assert_quiet(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_nodes_have_it_or_none, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_read_elsewhere_must_not_change, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cut_write_leaves_no_half, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_recovers_is_settled_without_a_restart, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(readers_wait_for_their_own_node_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(writers_wait_for_what_is_promised, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_for_another_with_a_promise_of_his_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_waits_is_told_and_keeps_its_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_partition_is_fenced_without_promises, setup, teardown),
        cmocka_unit_test_setup_teardown(an_item_is_moved_between_nodes_or_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_met_at_once_is_of_one_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_at_one_moment_must_not_change, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_that_is_met_later_must_fit_the_moment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_moment_has_no_half_of_what_is_decided, setup, teardown),
        cmocka_unit_test_setup_teardown(an_earlier_snapshot_is_of_no_use_beside_what_is_decided,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
