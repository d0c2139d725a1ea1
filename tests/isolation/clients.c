#include "isolation/clients.h"

#include "base/clock.h"
#include "document/bson.h"
#include "support/check.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAP_US = 300 }; /* of one who has done enough, so that histories stay short */

size_t clients_factor(void)
{
    const char *text = getenv("HISTORY_FACTOR");

    return text ? (size_t)strtoul(text, NULL, 10) : 1;
}

uint64_t clients_seed(void)
{
    const char *text = getenv("HISTORY_SEED");

    return text ? strtoull(text, NULL, 10) : 1;
}

/* --- Answers --------------------------------------------------------------------------------- */

static void unexpected(struct client *client, const char *what, const struct error *err)
{
    if (!client->failure[0])
        snprintf(client->failure, sizeof client->failure, "%s: %s: %.200s", what,
                 error_face(err->code)->name, err->message);
}

static bool is_conflict(const struct error *err)
{
    return err->code == ERROR_CONFLICT || err->code == ERROR_SNAPSHOT_TOO_OLD ||
           item_space_is_overtaken(err);
}

/* As commit.h says: of these alone it is not known whether anything was written. */
static bool is_unknown(const struct client *client, const struct error *err)
{
    return client->clients->place.disturbed &&
           (err->code == ERROR_STORE_IO || err->code == ERROR_STORE_POISONED ||
            err->code == ERROR_WRITE_IN_DOUBT);
}

/* Nothing was done, because of a node that is down, a migration or the end of the server. Without
 * any trouble but migrations there is just one such answer, on which fronts read a request again.
 */
static bool is_refusal(const struct client *client, const struct error *err)
{
    const struct clients_place *place = &client->clients->place;

    if (err->code == ERROR_REKEYED)
        return place->moves;
    return place->disturbed &&
           (err->code == ERROR_NODE_DOWN || err->code == ERROR_STORE_UNAVAILABLE ||
            err->code == ERROR_PLEDGED || err->code == ERROR_STORE_SNAPSHOT_EXPIRED ||
            item_space_is_overtaken(err));
}

/* It has come to a partition whose window was open when its snapshot was taken, and would begin
 * anew. Parts of keys that are spread are come to by reading. */
static bool is_too_early(const struct client *client, const struct error *err)
{
    return client->clients->place.agreements && err->code == ERROR_CONFLICT;
}

/* What becomes of a transaction or a read that fails before it asked for anything. */
static void given_up(struct client *client, struct note *note, const char *what,
                     const struct error *err)
{
    if (!is_unknown(client, err) && !is_refusal(client, err) && !is_too_early(client, err))
        unexpected(client, what, err);
    client->refused++;
    note_end(note, client->recorder, CHECKED_ABORTED);
}

/* --- The container --------------------------------------------------------------------------- */

/* One operation's stay in the container. */
struct visit {
    const struct clients_place *place;
    struct item_space space;
    void *visit;
};

static struct visit visit_begin(struct client *client, struct note *note, bool plain)
{
    struct visit visit = {.place = &client->clients->place};

    visit.space = visit.place->enter(visit.place->context, note, plain, &visit.visit);
    return visit;
}

static void visit_end(struct visit *visit)
{
    visit->place->leave(visit->place->context, visit->visit);
}
CLEANUP_VALUE_FN(struct visit, visit_end)

static struct slice logical_of(struct client *client, const struct visit *visit, uint32_t logical)
{
    return item_logical(&visit->space.definition->key, &client->clients->keys[logical],
                        client->arena);
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
    return document_string(arena_printf(arena, "item%u", item % CLIENT_IDS));
}

static struct slice document_with(uint32_t item, uint64_t version, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), id_of(item, arena).text);
    document_append_string(&buf, SLICE("pk"), arena_printf(arena, "p%u", item / CLIENT_IDS));
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
    client->known[index] =
        (struct client_known){.header = item->header, .version = version_of(item)};
}

/* --- Transactions ---------------------------------------------------------------------------- */

/* What a transaction wrote itself has no LSN yet. */
static bool read_in(struct client *client, struct transaction *transaction, struct note *note,
                    uint32_t index, bool is_written, bool *ret_there)
{
    struct document_value id = id_of(index, client->arena);
    const struct item *item;
    struct error err;

    if (!transaction_read(transaction, &id, &item, &err)) {
        given_up(client, note, "transaction_read", &err);
        return false;
    }
    note_read(note, index, item ? version_of(item) : 0, item && !is_written ? item->header.lsn : 0);
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
        given_up(client, note, "transaction_write", &err);
        return false;
    }
    note_op(note, delete ? CHECKED_DELETE : CHECKED_WRITE, index, version);
    return true;
}

/* One to three items of a logical partition: read, sometimes read again, sometimes written. */
static bool touch_some(struct client *client, struct transaction *transaction, struct note *note,
                       uint32_t logical, bool write)
{
    uint32_t count = 1 + pick(client, 3), first = pick(client, CLIENT_IDS);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = logical * CLIENT_IDS + (first + i) % CLIENT_IDS;
        bool there, again, writes;

        if (!read_in(client, transaction, note, index, false, &there))
            return false;
        if (pick(client, 4) == 0)
            sched_yield();
        writes = write && (i == 0 || pick(client, 3) == 0);
        if (writes && !write_in(client, transaction, note, index, there && pick(client, 6) == 0))
            return false;
        if (pick(client, 4) == 0 && !read_in(client, transaction, note, index, writes, &again))
            return false;
    }
    return true;
}

static void commit_noted(struct client *client, struct transaction *transaction, struct note *note)
{
    struct error err;

    note_ask(note);
    if (transaction_commit(transaction, &err)) {
        for (size_t i = 0; i < note->write_count; i++)
            note_lsn(note, i, transaction_result(transaction, i).lsn);
        note_end(note, client->recorder, CHECKED_COMMITTED);
    } else if (is_conflict(&err)) {
        client->conflicts++;
        note_end(note, client->recorder, CHECKED_ABORTED);
    } else if (is_unknown(client, &err)) {
        client->unknown++;
        note_end(note, client->recorder, CHECKED_UNKNOWN);
    } else {
        given_up(client, note, "transaction_commit", &err);
    }
}

/* Goes on to another logical partition. False: the transaction is over. */
static bool enter_noted(struct client *client, struct transaction *transaction, struct note *note,
                        const struct visit *visit, uint32_t logical)
{
    struct slice bytes = logical_of(client, visit, logical);
    struct item_scope scope = item_space_scope(&visit->space, bytes);
    struct error err;

    if (transaction_enter(transaction, &scope, bytes, &err))
        return true;
    if (client->clients->place.moves && (is_conflict(&err) || err.code == ERROR_NOT_SUPPORTED))
        note_end(note, client->recorder, CHECKED_ABORTED);
    else
        given_up(client, note, "transaction_enter", &err);
    return false;
}

static bool begin_noted(struct client *client, const struct visit *visit, uint32_t logical,
                        struct note *note, struct transaction **ret_transaction)
{
    struct slice bytes = logical_of(client, visit, logical);
    struct item_scope scope = item_space_scope(&visit->space, bytes);
    struct error err;

    if (transaction_begin(&scope, bytes, client->arena, ret_transaction, &err))
        return true;
    given_up(client, note, "transaction_begin", &err);
    return false;
}

/* --- Over nodes ------------------------------------------------------------------------------ */

/* A logical partition of an agreement. False: it is over. */
static bool touch_over(struct client *client, struct agreement *agreement, struct note *note,
                       const struct visit *visit, uint32_t logical, bool write)
{
    struct slice bytes = logical_of(client, visit, logical);
    struct item_scope scope = item_space_scope(&visit->space, bytes);
    struct error err;

    if (agreement_enter(agreement, &scope, bytes, &err))
        return touch_some(client, agreement_transaction(agreement), note, logical, write);
    if (is_conflict(&err))
        note_end(note, client->recorder, CHECKED_ABORTED);
    else
        given_up(client, note, "agreement_enter", &err);
    return false;
}

/* Which part of it made a write, and which of its writes that was. */
struct made {
    const struct agreement_member *member;
    size_t nth;
};

static void made_note(const struct agreement *agreement, size_t begun, const struct note *note,
                      struct made *made)
{
    size_t here = transaction_write_count(agreement_transaction(agreement));

    for (size_t i = note->write_count; i > begun; i--)
        made[i - 1] = (struct made){agreement_member(agreement), --here};
}

static void agree_noted(struct client *client, struct agreement *agreement, struct note *note,
                        const struct made *made)
{
    struct error err;

    note_ask(note);
    if (agreement_commit(agreement, &err)) {
        for (size_t i = 0; i < note->write_count; i++) {
            note_lsn(note, i, agreement_result(made[i].member, made[i].nth).lsn);
            client->over_nodes += i && made[i].member != made[i - 1].member;
        }
        note_end(note, client->recorder, CHECKED_COMMITTED);
    } else if (is_conflict(&err)) {
        client->conflicts++;
        note_end(note, client->recorder, CHECKED_ABORTED);
    } else if (is_unknown(client, &err)) {
        client->unknown++;
        note_end(note, client->recorder, CHECKED_UNKNOWN);
    } else {
        given_up(client, note, "agreement_commit", &err);
    }
}

static void transact_over(struct client *client, bool write)
{
    uint32_t logical = pick(client, CLIENT_LOGICALS), other = (logical + 1) % CLIENT_LOGICALS;
    const struct clients_place *place = &client->clients->place;
    struct note note;
    CLEANUP(visit_end) struct visit visit = visit_begin(client, &note, false);
    CLEANUP(agreement_free)
    struct agreement *agreement = agreement_new(place->agreements(place->context), client->arena);
    struct made made[NOTE_OPS_MAX];
    size_t begun;

    if (!touch_over(client, agreement, &note, &visit, logical, write))
        return;
    made_note(agreement, 0, &note, made);
    begun = note.write_count;
    if (!touch_over(client, agreement, &note, &visit, other, write))
        return;
    made_note(agreement, begun, &note, made);
    agree_noted(client, agreement, &note, made);
}

static void transact(struct client *client, bool write, bool both)
{
    uint32_t logical = pick(client, CLIENT_LOGICALS), other = (logical + 1) % CLIENT_LOGICALS;
    struct note note;
    CLEANUP(visit_end) struct visit visit = visit_begin(client, &note, false);
    CLEANUP(transaction_free) struct transaction *transaction = NULL;

    if (!begin_noted(client, &visit, logical, &note, &transaction) ||
        !touch_some(client, transaction, &note, logical, write))
        return;
    if (both && (!enter_noted(client, transaction, &note, &visit, other) ||
                 !touch_some(client, transaction, &note, other, write)))
        return;
    if (write && pick(client, 10) == 0)
        note_end(&note, client->recorder, CHECKED_ABORTED); /* thought better of it */
    else
        commit_noted(client, transaction, &note);
}

static void transact_both(struct client *client, bool write)
{
    if (client->clients->place.agreements)
        transact_over(client, write);
    else
        transact(client, write, true);
}

/* Reads one item and writes it back: what loses updates when nobody watches. */
static void update(struct client *client)
{
    uint32_t index = pick(client, 2);
    struct note note;
    CLEANUP(visit_end) struct visit visit = visit_begin(client, &note, false);
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    bool there;

    if (!begin_noted(client, &visit, 0, &note, &transaction) ||
        !read_in(client, transaction, &note, index, false, &there))
        return;
    sched_yield();
    if (write_in(client, transaction, &note, index, false))
        commit_noted(client, transaction, &note);
}

/* --- Plain operations ------------------------------------------------------------------------ */

static void read_plain(struct client *client, uint32_t index)
{
    struct note note;
    CLEANUP(visit_end) struct visit visit = visit_begin(client, &note, true);
    struct item_operation op = {.space = &visit.space,
                                .arena = client->arena,
                                .verb = ITEM_READ,
                                .key = client->clients->keys[index / CLIENT_IDS],
                                .id = id_of(index, client->arena)};
    const struct item *item = &op.result.item;
    struct error err;

    if (item_operation_run(&op, &err)) {
        note_read(&note, index, version_of(item), item->header.lsn);
        learn(client, index, item);
    } else if (err.code == ERROR_ITEM_MISSING) {
        note_read(&note, index, 0, 0);
    } else {
        given_up(client, &note, "read", &err);
        return;
    }
    note_end(&note, client->recorder, CHECKED_COMMITTED);
}

/* All items of a logical partition at once: one snapshot. */
static void read_many(struct client *client)
{
    uint32_t logical = pick(client, CLIENT_LOGICALS);
    struct items_reference references[CLIENT_IDS];
    struct item items[CLIENT_IDS];
    struct note note;
    CLEANUP(visit_end) struct visit visit = visit_begin(client, &note, false);
    struct error err;

    for (uint32_t i = 0; i < CLIENT_IDS; i++)
        references[i] = (struct items_reference){.key = client->clients->keys[logical],
                                                 .id = id_of(i, client->arena)};
    if (!items_read_many(&visit.space, references, CLIENT_IDS, client->arena, items, &err)) {
        given_up(client, &note, "items_read_many", &err);
        return;
    }
    for (uint32_t i = 0; i < CLIENT_IDS; i++)
        note_read(&note, logical * CLIENT_IDS + i,
                  items[i].document.data ? version_of(&items[i]) : 0,
                  items[i].document.data ? items[i].header.lsn : 0);
    note_end(&note, client->recorder, CHECKED_COMMITTED);
}

/* What a plain write saw, by its answer, or would have to see: created is what it was told. */
static void note_seen(struct note *note, uint32_t index, enum transaction_verb verb, bool created,
                      uint64_t if_version)
{
    if (if_version)
        note_op(note, CHECKED_READ, index, if_version);
    else if (verb == TRANSACTION_CREATE || created)
        note_op(note, CHECKED_READ, index, 0);
    else
        note_op(note, CHECKED_PRESENT, index, 0);
}

static bool note_refused(struct note *note, uint32_t index, const struct error *err,
                         uint64_t if_version)
{
    if (err->code == ERROR_ITEM_EXISTS)
        note_op(note, CHECKED_PRESENT, index, 0);
    else if (err->code == ERROR_ITEM_MISSING)
        note_op(note, CHECKED_READ, index, 0);
    else if (err->code == ERROR_PRECONDITION_FAILED)
        note_op(note, CHECKED_OTHER, index, if_version);
    else
        return false;
    return true;
}

/* Not known, or turned away: then what it meant to write may be seen, or never. */
static void write_failed(struct client *client, struct note *note, uint32_t index,
                         enum transaction_verb verb, uint64_t version, uint64_t if_version,
                         const struct error *err)
{
    bool unknown = is_unknown(client, err);

    if (unknown && verb != TRANSACTION_UPSERT)
        note_seen(note, index, verb, false, if_version);
    note_op(note, version ? CHECKED_WRITE : CHECKED_DELETE, index, version);
    if (!unknown) {
        given_up(client, note, "write", err);
        return;
    }
    client->unknown++;
    note_end(note, client->recorder, CHECKED_UNKNOWN);
}

static void write_plain(struct client *client, uint32_t index)
{
    enum transaction_verb verb = (enum transaction_verb)pick(client, TRANSACTION_DELETE + 1);
    const struct client_known *known = &client->known[index];
    bool if_match = known->version && pick(client, 2) &&
                    (verb == TRANSACTION_REPLACE || verb == TRANSACTION_DELETE);
    uint64_t version = verb == TRANSACTION_DELETE ? 0 : version_new(client);
    uint64_t if_version = if_match ? known->version : 0;
    struct note note;
    CLEANUP(visit_end) struct visit visit = visit_begin(client, &note, true);
    struct item_operation op = {
        .space = &visit.space,
        .arena = client->arena,
        .verb = item_verb_of(verb),
        .key = client->clients->keys[index / CLIENT_IDS],
        .id = id_of(index, client->arena),
        .document = version ? document_with(index, version, client->arena) : SLICE_NONE,
    };
    char etag[ITEM_ETAG_LEN];
    struct error err;

    if (if_match) {
        item_etag(&known->header, etag);
        op.options.if_match = slice_of(etag, sizeof etag);
    }
    if (item_operation_run(&op, &err)) {
        note_seen(&note, index, verb, op.result.created, if_version);
        note_op(&note, version ? CHECKED_WRITE : CHECKED_DELETE, index, version);
        note_lsn(&note, 0, op.result.lsn);
        if (version)
            learn(client, index, &op.result.item);
    } else if (!note_refused(&note, index, &err, if_version)) {
        write_failed(client, &note, index, verb, version, if_version, &err);
        return;
    }
    note_end(&note, client->recorder, CHECKED_COMMITTED);
}

/* --- All of them ----------------------------------------------------------------------------- */

static void client_step(struct client *client)
{
    uint32_t choice = pick(client, 100), index = pick(client, CLIENT_ITEMS);

    arena_reset(client->arena);
    if (client->clients->only_updates)
        update(client);
    else if (choice < 25)
        transact(client, true, false);
    else if (choice < 32)
        transact_both(client, true);
    else if (choice < 37)
        transact(client, false, false);
    else if (choice < 42)
        transact_both(client, false);
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
    const struct clients *clients = client->clients;
    const struct clients_place *place = &clients->place;

    for (size_t i = 0; !client->failure[0]; i++) {
        size_t troubles = client->refused + client->unknown;

        if (i >= clients->operations && (!place->is_over || place->is_over(place->context)))
            break;
        if (i >= clients->operations)
            usleep(NAP_US);
        client_step(client);
        if (client->refused + client->unknown > troubles && place->disturbed)
            place->disturbed(place->context);
    }
}

void clients_init(struct clients *clients, const struct clients_place *place, size_t operations)
{
    *clients = (struct clients){.place = *place, .operations = operations};
    for (uint32_t i = 0; i < CLIENT_LOGICALS; i++) {
        snprintf(clients->key_texts[i], sizeof clients->key_texts[i], "p%u", i);
        clients->keys[i] = (struct partition_key){
            .components = {document_string(slice_of_text(clients->key_texts[i]))}, .count = 1};
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *client = &clients->all[i];

        client->clients = clients;
        client->index = i;
        client->arena = arena_new();
        client->recorder = &clients->recorders[i];
        recorder_init(client->recorder, i);
        random_seed(&client->random, clients_seed() * 1000 + i);
    }
}

void clients_done(struct clients *clients)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        arena_free(clients->all[i].arena);
        recorder_done(&clients->recorders[i]);
    }
}

void clients_start(struct clients *clients)
{
    for (uint32_t i = 0; i < CLIENTS; i++)
        thread_start(&clients->all[i].thread, "client", client_main, &clients->all[i]);
}

void clients_join(struct clients *clients)
{
    for (uint32_t i = 0; i < CLIENTS; i++)
        thread_join(&clients->all[i].thread);
}

void clients_look(struct clients *clients)
{
    for (uint32_t i = 0; i < CLIENT_ITEMS; i++) {
        arena_reset(clients->all[0].arena);
        read_plain(&clients->all[0], i);
    }
}

void clients_check(const struct clients *clients, const char *what, const uint64_t *settled,
                   size_t settled_count, struct checker_report *ret_report)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    unsigned long long seed = clients_seed();
    size_t conflicts = 0, refused = 0, unknown = 0;
    struct history history;

    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &clients->all[i];

        conflicts += client->conflicts;
        refused += client->refused;
        unknown += client->unknown;
        if (client->failure[0])
            fail_msg("seed %llu, client %u: %s", seed, i, client->failure);
    }
    history =
        recorders_history(clients->recorders, CLIENTS, CLIENT_ITEMS, settled, settled_count, arena);
    *ret_report = (struct checker_report){0};
    checker_isolation(&history, ret_report);
    checker_items(&history, ret_report);
    print_message("# %s, seed %llu: %zu transactions and plain operations, %zu lost to a conflict, "
                  "%zu turned away, %zu of unknown outcome, %zu write skews\n",
                  what, seed, history.count, conflicts, refused, unknown, ret_report->write_skews);
    assert_true(2 * refused <= history.count); /* else it would not say much */
}

void clients_expect_fine(const struct checker_report *report)
{
    if (report->violations)
        fail_msg("seed %llu: %zu violations, the first: %s", (unsigned long long)clients_seed(),
                 report->violations, report->first);
}
