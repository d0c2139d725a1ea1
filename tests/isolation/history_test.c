/* Concurrent clients on a few items of a real container; what they saw goes to the checker.
 *
 * Every client is a thread that does a number of things chosen from its seed: transactions that
 * read some items and write some, in one logical partition or two, and plain operations with and
 * without etags. Every write carries a version of its own.
 *
 *     HISTORY_FACTOR=20   that many times as much
 *     HISTORY_SEED=7      other choices; the seed is printed */
#include "base/random.h"
#include "base/thread.h"
#include "container/container_space.h"
#include "container/migrator.h"
#include "document/bson.h"
#include "isolation/checker.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/postgres.h"
#include "support/scratch.h"
#include "support/space.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 6, LOGICALS = 3, IDS = 4, ITEMS = LOGICALS * IDS, OPS_MAX = 16 };

/* What a client has last seen of an item, for preconditions. */
struct known {
    struct item_header header;
    uint64_t version; /* 0: never seen */
};

struct client {
    struct run *run;
    struct thread thread;
    struct random random;
    struct arena *kept;  /* the history */
    struct arena *arena; /* of one operation */
    uint32_t index;
    uint64_t versions; /* given out */
    struct known known[ITEMS];
    struct history_transaction *transactions;
    size_t count, capacity;
    size_t conflicts;
    char failure[300]; /* an answer that was not expected */
};

/* The same on a container of the catalogue whose partitions move about. */
struct moving {
    struct engine *engines[2];
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct migrator *migrator;
    struct item_gates *gates;
    struct random random;
    struct thread thread;
    atomic_bool stopping;
    atomic_uint begun;
    unsigned wanted; /* clients go on until so many were done */
};

struct run {
    struct moving *moving; /* NULL: partitions stay as they are */
    struct test_space test;
    struct partition_key keys[LOGICALS];
    struct slice logicals[LOGICALS];
    size_t operations;
    bool only_updates; /* read one item, write it back */
    struct client clients[CLIENTS];
};

static size_t factor(void)
{
    const char *text = getenv("HISTORY_FACTOR");

    return text ? (size_t)strtoul(text, NULL, 10) : 1;
}

static uint64_t seed(void)
{
    const char *text = getenv("HISTORY_SEED");

    return text ? strtoull(text, NULL, 10) : 1;
}

/* --- Recording ------------------------------------------------------------------------------- */

/* The transaction a client is in, as it will stand in the history. */
struct note {
    struct history_transaction transaction;
    struct history_op ops[OPS_MAX];
    size_t writes[OPS_MAX]; /* places of writes, in order */
    size_t write_count;
};

static void note_begin(struct note *note, struct client *client, bool plain)
{
    *note = (struct note){0};
    note->transaction.client = client->index;
    note->transaction.plain = plain;
    note->transaction.began_ns = note->transaction.asked_ns = clock_monotonic_ns();
}

static void note_op(struct note *note, enum history_op_kind kind, uint32_t item, uint64_t version)
{
    struct history_op *op = &note->ops[note->transaction.op_count];

    assert(note->transaction.op_count < OPS_MAX);
    *op = (struct history_op){.kind = kind, .item = item, .version = version};
    if (kind == HISTORY_READ)
        op->at_ns = clock_monotonic_ns();
    if (kind == HISTORY_WRITE || kind == HISTORY_DELETE)
        note->writes[note->write_count++] = note->transaction.op_count;
    note->transaction.op_count++;
}

static void note_end(struct note *note, struct client *client, enum history_outcome outcome)
{
    struct history_transaction *transaction;

    if (client->count == client->capacity) {
        client->capacity = client->capacity ? 2 * client->capacity : 256;
        client->transactions =
            memory_realloc(client->transactions,
                           memory_array_size(client->capacity, sizeof *client->transactions));
    }
    note->transaction.ended_ns = clock_monotonic_ns();
    note->transaction.outcome = outcome;
    transaction = &client->transactions[client->count++];
    *transaction = note->transaction;
    transaction->ops = ARENA_ARRAY(client->kept, struct history_op, transaction->op_count);
    memcpy(transaction->ops, note->ops, transaction->op_count * sizeof(struct history_op));
}

static void unexpected(struct client *client, const char *what, const struct error *err)
{
    if (!client->failure[0])
        snprintf(client->failure, sizeof client->failure, "%s: %s: %s", what,
                 error_face(err->code)->name, err->message);
}

static bool is_conflict(const struct error *err)
{
    return err->code == ERROR_CONFLICT || err->code == ERROR_SNAPSHOT_TOO_OLD ||
           item_space_is_overtaken(err);
}

/* The container as it is when an operation begins. *ret_container is to be let go behind it. */
static struct item_space space_now(const struct client *client, struct container **ret_container)
{
    struct moving *moving = client->run->moving;
    struct error err;

    *ret_container = NULL;
    if (!moving)
        return client->run->test.space;
    if (!catalogue_container_open(moving->catalogue, SLICE("a"), SLICE("d"), SLICE("c"),
                                  ret_container, &err))
        abort(); /* nobody drops it */
    return container_space(*ret_container, &clock_system, moving->gates);
}

/* --- Items ----------------------------------------------------------------------------------- */

static uint32_t pick(struct client *client, uint64_t limit)
{
    return (uint32_t)random_below(&client->random, limit);
}

static uint64_t version_new(struct client *client)
{
    return (uint64_t)(client->index + 1) << 32 | ++client->versions;
}

static struct document_value id_of(uint32_t item, struct arena *arena)
{
    return document_string(arena_printf(arena, "item%u", item % IDS));
}

static struct slice document_with(uint32_t item, uint64_t version, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), id_of(item, arena).text);
    document_append_string(&buf, SLICE("pk"), arena_printf(arena, "p%u", item / IDS));
    document_append_int64(&buf, SLICE("version"), (int64_t)version);
    document_append_int64(&buf, SLICE("low"), (int64_t)(version & 7));
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

static uint64_t version_of(const struct item *item)
{
    struct document_value value;
    int64_t version = -1;

    if (!document_find(item->document, SLICE("version"), &value) ||
        !document_to_int64(&value, &version))
        return UINT64_MAX; /* nobody wrote that */
    return (uint64_t)version;
}

static void learn(struct client *client, uint32_t index, const struct item *item)
{
    client->known[index] = (struct known){.header = item->header, .version = version_of(item)};
}

/* --- Transactions ---------------------------------------------------------------------------- */

static bool read_in(struct client *client, struct transaction *transaction, struct note *note,
                    uint32_t index, bool *ret_there)
{
    struct document_value id = id_of(index, client->arena);
    const struct item *item;
    struct error err;

    if (!transaction_read(transaction, &id, &item, &err)) {
        unexpected(client, "transaction_read", &err);
        return false;
    }
    note_op(note, HISTORY_READ, index, item ? version_of(item) : 0);
    *ret_there = item != NULL;
    return true;
}

static bool write_in(struct client *client, struct transaction *transaction, struct note *note,
                     uint32_t index, bool delete)
{
    struct document_value id = id_of(index, client->arena);
    uint64_t version = delete ? 0 : version_new(client);
    struct error err;

    if (!transaction_write(transaction, &id, delete ? TRANSACTION_DELETE : TRANSACTION_UPSERT,
                           delete ? SLICE_NONE : document_with(index, version, client->arena), NULL,
                           &err)) {
        unexpected(client, "transaction_write", &err);
        return false;
    }
    note_op(note, delete ? HISTORY_DELETE : HISTORY_WRITE, index, version);
    return true;
}

/* One to three items of a logical partition: read, sometimes read again, sometimes written. */
static bool touch_some(struct client *client, struct transaction *transaction, struct note *note,
                       uint32_t logical, bool write)
{
    uint32_t count = 1 + pick(client, 3), first = pick(client, IDS);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = logical * IDS + (first + i) % IDS;
        bool there, again;

        if (!read_in(client, transaction, note, index, &there))
            return false;
        if (pick(client, 4) == 0)
            sched_yield();
        if (write && (i == 0 || pick(client, 3) == 0) &&
            !write_in(client, transaction, note, index, there && pick(client, 6) == 0))
            return false;
        if (pick(client, 4) == 0 && !read_in(client, transaction, note, index, &again))
            return false;
    }
    return true;
}

static void commit_noted(struct client *client, struct transaction *transaction, struct note *note)
{
    struct error err;

    note->transaction.asked_ns = clock_monotonic_ns();
    if (transaction_commit(transaction, &err)) {
        for (size_t i = 0; i < note->write_count; i++)
            note->ops[note->writes[i]].lsn = transaction_result(transaction, i).lsn;
        note_end(note, client, HISTORY_COMMITTED);
        return;
    }
    if (!is_conflict(&err))
        unexpected(client, "transaction_commit", &err);
    client->conflicts++;
    note_end(note, client, HISTORY_ABORTED);
}

static void transact(struct client *client, bool write, bool both)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    uint32_t logical = pick(client, LOGICALS), other = (logical + 1) % LOGICALS;
    struct run *run = client->run;
    struct item_space space;
    struct item_scope scope;
    struct note note;
    struct error err;

    note_begin(&note, client, false);
    space = space_now(client, &container);
    scope = item_space_scope(&space, run->logicals[logical]);
    if (!transaction_begin(&scope, run->logicals[logical], client->arena, &transaction, &err)) {
        unexpected(client, "transaction_begin", &err);
        return;
    }
    if (!touch_some(client, transaction, &note, logical, write))
        return;
    if (both) {
        scope = item_space_scope(&space, run->logicals[other]);
        if (!transaction_enter(transaction, &scope, run->logicals[other], &err)) {
            if (run->moving && (is_conflict(&err) || err.code == ERROR_NOT_SUPPORTED)) {
                note_end(&note, client, HISTORY_ABORTED);
                return;
            }
            unexpected(client, "transaction_enter", &err);
            return;
        }
        if (!touch_some(client, transaction, &note, other, write))
            return;
    }
    if (write && pick(client, 10) == 0)
        note_end(&note, client, HISTORY_ABORTED); /* thought better of it */
    else
        commit_noted(client, transaction, &note);
}

/* Reads one item and writes it back: what loses updates when nobody watches. */
static void update(struct client *client)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct run *run = client->run;
    struct item_scope scope = item_space_scope(&run->test.space, run->logicals[0]);
    uint32_t index = pick(client, 2);
    struct note note;
    struct error err;
    bool there;

    note_begin(&note, client, false);
    if (!transaction_begin(&scope, run->logicals[0], client->arena, &transaction, &err)) {
        unexpected(client, "transaction_begin", &err);
        return;
    }
    if (!read_in(client, transaction, &note, index, &there))
        return;
    sched_yield();
    if (write_in(client, transaction, &note, index, false))
        commit_noted(client, transaction, &note);
}

/* --- Plain operations ------------------------------------------------------------------------ */

static void read_plain(struct client *client, uint32_t index)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct document_value id = id_of(index, client->arena);
    struct item_space space;
    struct item item;
    struct note note;
    struct error err;

    note_begin(&note, client, true);
    space = space_now(client, &container);
    if (items_read(&space, &client->run->keys[index / IDS], &id, client->arena, &item, &err)) {
        note_op(&note, HISTORY_READ, index, version_of(&item));
        learn(client, index, &item);
    } else if (err.code == ERROR_ITEM_MISSING) {
        note_op(&note, HISTORY_READ, index, 0);
    } else {
        unexpected(client, "items_read", &err);
        return;
    }
    note_end(&note, client, HISTORY_COMMITTED);
}

/* All items of a logical partition at once: one snapshot. */
static void read_many(struct client *client)
{
    CLEANUP(container_unref) struct container *container = NULL;
    uint32_t logical = pick(client, LOGICALS);
    struct items_reference references[IDS];
    struct item_space space;
    struct item items[IDS];
    struct note note;
    struct error err;

    for (uint32_t i = 0; i < IDS; i++)
        references[i] = (struct items_reference){.key = client->run->keys[logical],
                                                 .id = id_of(i, client->arena)};
    note_begin(&note, client, false);
    space = space_now(client, &container);
    if (!items_read_many(&space, references, IDS, client->arena, items, &err)) {
        unexpected(client, "items_read_many", &err);
        return;
    }
    for (uint32_t i = 0; i < IDS; i++)
        note_op(&note, HISTORY_READ, logical * IDS + i,
                items[i].document.data ? version_of(&items[i]) : 0);
    note_end(&note, client, HISTORY_COMMITTED);
}

/* What a plain write saw, by its answer. */
static void note_seen(struct note *note, uint32_t index, enum transaction_verb verb, bool created,
                      uint64_t if_version)
{
    if (if_version)
        note_op(note, HISTORY_READ, index, if_version);
    else if (verb == TRANSACTION_CREATE || created)
        note_op(note, HISTORY_READ, index, 0);
    else
        note_op(note, HISTORY_PRESENT, index, 0);
}

static bool note_refused(struct note *note, uint32_t index, const struct error *err,
                         uint64_t if_version)
{
    if (err->code == ERROR_ITEM_EXISTS)
        note_op(note, HISTORY_PRESENT, index, 0);
    else if (err->code == ERROR_ITEM_MISSING)
        note_op(note, HISTORY_READ, index, 0);
    else if (err->code == ERROR_PRECONDITION_FAILED)
        note_op(note, HISTORY_OTHER, index, if_version);
    else
        return false;
    return true;
}

static void write_plain(struct client *client, uint32_t index)
{
    CLEANUP(container_unref) struct container *container = NULL;
    enum transaction_verb verb = (enum transaction_verb)pick(client, TRANSACTION_DELETE + 1);
    const struct known *known = &client->known[index];
    bool if_match = known->version && pick(client, 2) &&
                    (verb == TRANSACTION_REPLACE || verb == TRANSACTION_DELETE);
    uint64_t version = verb == TRANSACTION_DELETE ? 0 : version_new(client);
    uint64_t if_version = if_match ? known->version : 0;
    struct document_value id = id_of(index, client->arena);
    struct transaction_options options = {0};
    struct transaction_result result;
    struct item_space space;
    char etag[ITEM_ETAG_LEN];
    struct note note;
    struct error err;

    if (if_match) {
        item_etag(&known->header, etag);
        options.if_match = slice_of(etag, sizeof etag);
    }
    note_begin(&note, client, true);
    space = space_now(client, &container);
    if (items_write(&space, &client->run->keys[index / IDS], &id, verb,
                    version ? document_with(index, version, client->arena) : SLICE_NONE, &options,
                    client->arena, &result, NULL, &err)) {
        note_seen(&note, index, verb, result.created, if_version);
        note_op(&note, version ? HISTORY_WRITE : HISTORY_DELETE, index, version);
        note.ops[note.writes[0]].lsn = result.lsn;
        if (version)
            learn(client, index, &result.item);
    } else if (!note_refused(&note, index, &err, if_version)) {
        unexpected(client, "items_write", &err);
        return;
    }
    note_end(&note, client, HISTORY_COMMITTED);
}

/* --- The run --------------------------------------------------------------------------------- */

static void client_step(struct client *client)
{
    uint32_t choice = pick(client, 100), index = pick(client, ITEMS);

    arena_reset(client->arena);
    if (client->run->only_updates)
        update(client);
    else if (choice < 25)
        transact(client, true, false);
    else if (choice < 32)
        transact(client, true, true);
    else if (choice < 37)
        transact(client, false, false);
    else if (choice < 42)
        transact(client, false, true);
    else if (choice < 47)
        read_many(client);
    else if (choice < 75)
        read_plain(client, index);
    else
        write_plain(client, index);
}

static void client_main(void *context)
{
    struct client *client = context;

    const struct moving *moving = client->run->moving;

    for (size_t i = 0; !client->failure[0]; i++) {
        if (i >= client->run->operations && (!moving || moving->begun > moving->wanted))
            break;
        client_step(client);
    }
}

static void run_init(struct run *run, const char *url, const struct commit_options *commit)
{
    struct engine *engine;
    struct error err;
    struct commit_options options = *commit;
    size_t count;
    const struct partition_span *spans;

    *run = (struct run){0};
    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&run->test, engine, &(struct test_space_options){.partitions = 2});
    /* The committer this run wants, in place of the usual one. */
    commit_free(run->test.commit);
    options.engine = engine;
    options.clock = &run->test.clock;
    run->test.commit = commit_new(&options);
    spans = partition_map_spans(run->test.space.map, &count);
    for (size_t i = 0; i < count; i++)
        assert_ok(commit_partition_open(run->test.commit, spans[i].id, spans[i].epoch, &err), &err);
    for (uint32_t i = 0; i < LOGICALS; i++) {
        char json[16];

        snprintf(json, sizeof json, "[\"p%u\"]", i);
        run->keys[i] = test_space_key(&run->test, json);
        run->logicals[i] = item_logical(&run->test.definition.key, &run->keys[i], run->test.arena);
    }
}

static void run_clients(struct run *run)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *client = &run->clients[i];

        client->run = run;
        client->index = i;
        client->kept = arena_new();
        client->arena = arena_new();
        random_seed(&client->random, seed() * 1000 + i);
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        thread_start(&run->clients[i].thread, "client", client_main, &run->clients[i]);
    for (uint32_t i = 0; i < CLIENTS; i++)
        thread_join(&run->clients[i].thread);
}

static void run_check(const struct run *run, const char *what, struct checker_report *ret_report)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct history history = {.items = ITEMS};
    size_t conflicts = 0;

    for (uint32_t i = 0; i < CLIENTS; i++) {
        history.count += run->clients[i].count;
        conflicts += run->clients[i].conflicts;
        if (run->clients[i].failure[0])
            fail_msg("seed %llu, client %u: %s", (unsigned long long)seed(), i,
                     run->clients[i].failure);
    }
    history.transactions = ARENA_ARRAY(arena, struct history_transaction, history.count);
    for (size_t i = 0, at = 0; i < CLIENTS; at += run->clients[i++].count)
        memcpy(history.transactions + at, run->clients[i].transactions,
               run->clients[i].count * sizeof(struct history_transaction));
    *ret_report = (struct checker_report){0};
    checker_isolation(&history, ret_report);
    checker_items(&history, ret_report);
    print_message("# %s, seed %llu: %zu transactions and plain operations, %zu lost to a conflict, "
                  "%zu write skews\n",
                  what, (unsigned long long)seed(), history.count, conflicts,
                  ret_report->write_skews);
}

static void run_done(struct run *run)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        arena_free(run->clients[i].kept);
        arena_free(run->clients[i].arena);
        memory_free(run->clients[i].transactions);
    }
    test_space_done(&run->test);
}

/* Runs clients on a node and lets the checker look at all of it. */
static void run_on(const char *what, const char *url, const struct commit_options *commit,
                   size_t operations, bool only_updates, struct checker_report *ret_report)
{
    struct run run;

    run_init(&run, url, commit);
    run.operations = operations;
    run.only_updates = only_updates;
    run_clients(&run);
    run_check(&run, what, ret_report);
    run_done(&run);
}

/* --- Moving partitions ----------------------------------------------------------------------- */

static void migration_begin(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = NULL;
    static const char *const keys[LOGICALS] = {"[\"p0\"]", "[\"p1\"]", "[\"p2\"]"};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct partition_span *spans;
    struct partition_key key;
    uint32_t ids[2];
    size_t count, at;
    struct error err;
    bool begun;

    if (!catalogue_container_open(moving->catalogue, SLICE("a"), SLICE("d"), SLICE("c"), &container,
                                  &err))
        return;
    if (container_migration(container)) {
        sched_yield();
        return;
    }
    spans = partition_map_spans(container_map(container), &count);
    at = random_below(&moving->random, count);
    ids[0] = spans[at].id;
    ids[1] = spans[MIN(at + 1, count - 1)].id;
    switch (count > 5 ? 1 : random_below(&moving->random, 4)) {
    case 0:
        begun = migrator_split(moving->migrator, container, ids[0], 2, NULL, &err);
        break;
    case 1:
        begun = migrator_merge(moving->migrator, container, ids, 2, &err);
        break;
    case 2:
        begun = migrator_move(moving->migrator, container, ids[0], 1 - spans[at].node, &err);
        break;
    default:
        begun = partition_key_parse(&definition_fields(container_definition(container))->key,
                                    slice_of_text(keys[random_below(&moving->random, LOGICALS)]),
                                    PARTITION_KEY_WHOLE, arena, &key, &err) &&
                migrator_isolate(moving->migrator, container, &key, 0, &err);
        break;
    }
    moving->begun += begun;
}

static void moving_main(void *context)
{
    struct moving *moving = context;

    while (!atomic_load(&moving->stopping))
        migration_begin(moving);
}

static void moving_init(struct moving *moving, struct run *run, const char *const *urls)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    *moving =
        (struct moving){.cluster = cluster_new(NULL), .gates = item_gates_new(), .wanted = 10};
    random_seed(&moving->random, seed());
    for (size_t i = 0; i < 2; i++) {
        assert_ok(engine_open(slice_of_text(urls[i]), &(struct engine_options){0},
                              &moving->engines[i], &err),
                  &err);
        assert_ok(cluster_add(moving->cluster, urls[i], moving->engines[i], &err), &err);
    }
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = moving->cluster},
                             &moving->catalogue, &err),
              &err);
    assert_ok(catalogue_account_create(moving->catalogue, SLICE("a"),
                                       document_of(run->test.arena, "{}"), &account, &err),
              &err);
    assert_ok(
        catalogue_database_create(moving->catalogue, SLICE("a"), SLICE("d"), NULL, &database, &err),
        &err);
    assert_ok(
        catalogue_container_create(
            moving->catalogue, SLICE("a"), SLICE("d"),
            document_of(run->test.arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],"
                                         "\"version\":2}}"),
            NULL, &container, &err),
        &err);
    moving->migrator = migrator_new(&(struct migrator_options){
        .catalogue = moving->catalogue, .chunk_bytes = 1000, .pause_ms = 5, .splits_off = true});
    run->moving = moving;
}

static void moving_done(struct moving *moving)
{
    migrator_free(moving->migrator);
    catalogue_close(moving->catalogue);
    cluster_free(moving->cluster);
    for (size_t i = 0; i < 2; i++)
        engine_close(moving->engines[i]);
    item_gates_free(moving->gates);
}

static void run_moving(const char *what, const char *const *urls, size_t operations)
{
    struct checker_report report;
    struct moving moving;
    struct migrator_statistics statistics;
    uint64_t done = 0;
    struct run run;

    run_init(&run, "memory:", &(struct commit_options){0});
    moving_init(&moving, &run, urls);
    run.operations = operations;
    thread_start(&moving.thread, "moving", moving_main, &moving);
    run_clients(&run);
    atomic_store(&moving.stopping, true);
    thread_join(&moving.thread);
    run_check(&run, what, &report);
    statistics = migrator_statistics(moving.migrator);
    for (size_t i = 0; i < MIGRATION_KINDS; i++)
        done += statistics.done[i];
    print_message("# %u migrations begun, %llu done, longest pause %lld ms\n",
                  atomic_load(&moving.begun), (unsigned long long)done,
                  (long long)statistics.pause_ms_max);
    assert_true(done >= moving.wanted);
    moving_done(&moving);
    run_done(&run);
    if (report.violations)
        fail_msg("seed %llu: %zu violations, the first: %s", (unsigned long long)seed(),
                 report.violations, report.first);
}

static void clients_stay_isolated_while_partitions_move_in_memory(void **state UNUSED)
{
    static const char *const urls[] = {"memory:", "memory:"};

    run_moving("moving, memory", urls, 4000 * factor());
}

static void clients_stay_isolated_while_partitions_move_between_disks(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    char text[2][200];
    const char *const urls[] = {text[0], text[1]};

    scratch_init(&scratch);
    for (size_t i = 0; i < 2; i++)
        snprintf(text[i], sizeof text[i], "rocksdb:%s%zu", scratch_path(&scratch, "node"), i);
    run_moving("moving, rocksdb", urls, 800 * factor());
}

static void clients_stay_isolated_while_partitions_move_to_postgresql(void **state UNUSED)
{
    CLEANUP(postgres_free) struct postgres *postgres = postgres_start(false);
    char text[300];
    const char *const urls[] = {"memory:", text};

    snprintf(text, sizeof text, "%s", postgres_fresh_url(postgres));
    run_moving("moving, postgresql", urls, 300 * factor());
}

static void expect_fine(const struct checker_report *report)
{
    if (report->violations)
        fail_msg("seed %llu: %zu violations, the first: %s", (unsigned long long)seed(),
                 report->violations, report->first);
}

static void clients_on_a_memory_node_are_snapshot_isolated(void **state UNUSED)
{
    struct checker_report report;

    run_on("memory", "memory:", &(struct commit_options){0}, 2000 * factor(), false, &report);
    expect_fine(&report);
}

static void clients_on_a_rocksdb_node_are_snapshot_isolated(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    struct checker_report report;
    char url[200];

    scratch_init(&scratch);
    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&scratch, "node"));
    run_on("rocksdb", url, &(struct commit_options){0}, 400 * factor(), false, &report);
    expect_fine(&report);
}

/* What the committer remembers is so little that snapshots are too old all the time. */
static void a_short_memory_of_commits_costs_retries_and_nothing_else(void **state UNUSED)
{
    struct checker_report report;

    run_on("short memory", "memory:", &(struct commit_options){.recent_keys_max = 8},
           500 * factor(), false, &report);
    expect_fine(&report);
}

static void without_validation_the_checker_objects(void **state UNUSED)
{
    struct checker_report report;

    run_on("validation off", "memory:", &(struct commit_options){.validation_off = true}, 500, true,
           &report);
    print_message("# %zu violations, the first: %s\n", report.violations, report.first);
    assert_true(report.counts[CHECKER_LOST_UPDATE] > 0);
}

static void the_same_clients_with_validation_are_fine(void **state UNUSED)
{
    struct checker_report report;

    run_on("validation on", "memory:", &(struct commit_options){0}, 500, true, &report);
    expect_fine(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_on_a_memory_node_are_snapshot_isolated),
        cmocka_unit_test(clients_on_a_rocksdb_node_are_snapshot_isolated),
        cmocka_unit_test(a_short_memory_of_commits_costs_retries_and_nothing_else),
        cmocka_unit_test(clients_stay_isolated_while_partitions_move_in_memory),
        cmocka_unit_test(clients_stay_isolated_while_partitions_move_between_disks),
        cmocka_unit_test(clients_stay_isolated_while_partitions_move_to_postgresql),
        cmocka_unit_test(without_validation_the_checker_objects),
        cmocka_unit_test(the_same_clients_with_validation_are_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
