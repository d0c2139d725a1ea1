#include "front/mongo/command/transact.h"

#include "catalogue/agreements.h"
#include "catalogue/migration.h"
#include "catalogue/withheld.h"
#include "front/kit/queries.h"
#include "item/agreement.h"
#include "item/write_record.h"

enum { COMMITTED_STATEMENT = 0x7E000000 }; /* of the record of a commit: no client's */

/* A collection the transaction has made; in its arena. */
struct made {
    struct slice account, database, collection;
    uint32_t number;
    struct made *next;
};

/* A collection the transaction has met. */
struct pinned {
    struct container *container; /* a reference */
    struct item_space space;     /* once an operation needs it */
    bool has_space;
    struct pinned *next;
};

struct mongo_transact {
    struct mongo *mongo;
    struct arena *arena;                            /* of the transaction */
    struct agreement *agreement;                    /* NULL: nothing was pinned yet */
    uint64_t maps_published;                        /* before its snapshots were taken */
    struct query_moment moments[CLUSTER_NODES_MAX]; /* of its nodes, as it came to them */
    size_t moment_count;
    struct pinned *pinned;
    struct made *made;
    struct front_moment moment;
    uint32_t account;
    struct net_owner *owner;
    size_t held; /* bytes on its meter */
    uint8_t tag[FRONT_CURSOR_TAG_LEN];
    bool withholds; /* collections that it makes (catalogue/withheld.h), under the same tag */

    struct mongo_intent_list intents;
    struct write_record record; /* of the commit */
    uint8_t session[MONGO_SESSION_NAME_LEN];
    bool recorded;
    struct slice home; /* "database.collection" where the record will be; empty: not written yet */
};

static bool moment_take(void *self, struct query_request *request, struct error *err);

struct mongo_transact *mongo_transact_new(struct mongo_call *call, int64_t number)
{
    struct mongo_transact *transact = MEMORY_NEW(struct mongo_transact);

    transact->mongo = call->mongo;
    transact->arena = arena_new();
    transact->account = call->account.account ? account_info(call->account.account)->number : 0;
    transact->owner = call->owner;
    transact->moment = (struct front_moment){moment_take, transact};
    memcpy(transact->session, call->logical->name, MONGO_SESSION_NAME_LEN);
    random_secret(transact->tag, sizeof transact->tag);
    transact->record = (struct write_record){.session = transact->session,
                                             .statement = COMMITTED_STATEMENT,
                                             .number = number,
                                             .wall_ms = clock_read_wall_ms(call->services->clock)};
    return transact;
}

/* What it has made goes again, unless it has committed. */
static void made_drop(struct mongo_transact *transact)
{
    struct catalogue *catalogue = transact->mongo->options.services.catalogue;
    struct error ignored;

    for (const struct made *made = transact->made; made; made = made->next) {
        bool dropped = catalogue_container_drop(catalogue, made->account, made->database,
                                                made->collection, SLICE_NONE, &ignored);

        (void)dropped; /* else it stays, and is empty */
        mongo_pending_remove(transact->mongo->pending, made->number);
    }
    if (transact->withholds)
        catalogue_release(catalogue, transact->tag);
    transact->withholds = false;
}

void mongo_transact_free(void *self)
{
    struct mongo_transact *transact = self;

    if (!transact)
        return;
    made_drop(transact);
    front_cursors_kill_tagged(transact->mongo->cursors, transact->account, transact->tag);
    mongo_intents_let_go(transact->mongo->intents, &transact->intents);
    agreement_free(transact->agreement);
    for (struct pinned *p = transact->pinned; p; p = p->next)
        container_unref(p->container);
    memory_meter_set(net_owner_memory(transact->owner), transact->held, 0);
    arena_free(transact->arena);
    memory_free(transact);
}

void mongo_transact_enter(struct mongo_call *call, struct mongo_transact *transact)
{
    call->transact = transact;
    call->maker = transact;
    call->front.moment = &transact->moment;
}

bool mongo_transact_makes(const struct mongo_call *call, const struct mongo_namespace *name,
                          struct error *err)
{
    const struct catalogue_name withheld = {call->account.id, name->database, name->collection};

    call->transact->withholds = true;
    return catalogue_withhold(call->services->catalogue, &withheld, call->transact->tag, err);
}

void mongo_transact_makes_not(const struct mongo_call *call, const struct mongo_namespace *name)
{
    const struct catalogue_name withheld = {call->account.id, name->database, name->collection};

    catalogue_release_one(call->services->catalogue, &withheld, call->transact->tag);
}

void mongo_transact_made(const struct mongo_call *call, const struct container *container,
                         const struct mongo_namespace *name)
{
    struct mongo_transact *transact = call->transact;
    struct made *made = ARENA_NEW(transact->arena, struct made);

    *made = (struct made){.account = arena_copy(transact->arena, call->account.id),
                          .database = arena_copy(transact->arena, name->database),
                          .collection = arena_copy(transact->arena, name->collection),
                          .number = container_info(container)->number,
                          .next = transact->made};
    transact->made = made;
    mongo_pending_add(transact->mongo->pending, made->number, transact);
}

bool mongo_transact_has_made(const struct mongo_call *call, const struct container *container)
{
    return mongo_pending_owner(call->mongo->pending, container_info(container)->number) ==
           call->transact;
}

const uint8_t *mongo_transact_tag(const struct mongo_transact *transact)
{
    return transact->tag;
}

/* --- Limits ---------------------------------------------------------------------------------- */

static size_t overlays_bytes(const struct mongo_transact *transact)
{
    const struct agreement_member *member = NULL;
    size_t bytes = 0;

    while (transact->agreement && (member = agreement_next(transact->agreement, member)))
        bytes += transaction_overlay_bytes(agreement_member_transaction(member));
    return bytes;
}

/* What it holds is on the account's meter, and below the limit of one. */
static bool hold(struct mongo_transact *transact, struct error *err)
{
    size_t used = arena_used(transact->arena);
    size_t all = used + overlays_bytes(transact);

    if (used > transact->mongo->options.transaction_bytes_max)
        return mongo_error_set(err, MONGO_TRANSACTION_TOO_LARGE,
                               "the transaction holds %zu bytes, which is more than "
                               "mongo.transaction_bytes_max",
                               used);
    if (!memory_meter_change(net_owner_memory(transact->owner), transact->held, all))
        return mongo_error_set(err, MONGO_EXCEEDED_MEMORY_LIMIT,
                               "the account holds as much memory as it may");
    transact->held = all;
    return true;
}

/* Before each write. The record of the commit goes where the first one does. */
static bool guard(void *self, uint32_t partition, struct slice key, struct error *err)
{
    struct mongo_transact *transact = self;

    if (!hold(transact, err))
        return false;
    if (!mongo_intents_add(transact->mongo->intents, &transact->intents, partition, key))
        return error_set(err, ERROR_CONFLICT,
                         "another transaction that is still open wrote the same document");
    if (!transact->recorded)
        transaction_record_add(agreement_transaction(transact->agreement), &transact->record);
    transact->recorded = true;
    return true;
}

/* --- Collections ----------------------------------------------------------------------------- */

static struct pinned *pinned_find(const struct mongo_transact *transact,
                                  const struct container *container)
{
    struct pinned *p = transact->pinned;

    while (p && container_info(p->container)->number != container_info(container)->number)
        p = p->next;
    return p;
}

static void guards_set(struct mongo_transact *transact)
{
    const struct agreement_member *member = NULL;

    while ((member = agreement_next(transact->agreement, member)))
        transaction_set_guard(agreement_member_transaction(member), guard, transact);
}

/* Nodes that transactions of an account have come to one after the other: the next ones take their
 * moment of all of them at once, for between the first and the last of them others may write. */
static atomic_uint_fast64_t *together(const struct mongo_transact *transact)
{
    return &transact->mongo->nodes_together[transact->account % MONGO_ACCOUNTS_TOGETHER];
}

/* The moment is that of the first collection; those that come later must fit it. */
static bool meet(const struct mongo_call *call, struct container *container, struct error *err)
{
    struct mongo_transact *transact = call->transact;
    struct item_space space = front_space(call->services, container);
    uint64_t nodes = 0, before, also;
    size_t count;
    const struct partition_span *spans = partition_map_spans(space.map, &count);
    struct item_scope *scopes = ARENA_ARRAY(call->arena, struct item_scope, count);

    for (size_t i = 0; i < count; i++) {
        scopes[i] = item_space_span_scope(&space, &spans[i]);
        nodes |= UINT64_C(1) << scopes[i].node;
    }
    if (!transact->agreement) {
        transact->maps_published = catalogue_maps_published(call->services->catalogue);
        transact->agreement =
            agreement_new(catalogue_agreements(call->services->catalogue), transact->arena);
    }
    before = agreement_nodes(transact->agreement);
    also = atomic_load(together(transact));
    if (before && nodes & ~before)
        atomic_fetch_or(together(transact), before | nodes);
    if (!agreement_meet(transact->agreement, scopes, count, !before && also & nodes ? also : 0,
                        err))
        return false;
    guards_set(transact);
    return true;
}

static bool overtaken(struct error *err)
{
    return error_set(err, ERROR_CONFLICT,
                     "a collection was split, merged or moved since the transaction began");
}

bool mongo_transact_pin(const struct mongo_call *call, struct container **container,
                        struct error *err)
{
    struct mongo_transact *transact = call->transact;
    struct pinned *p = pinned_find(transact, *container);

    if (!p) {
        if (!meet(call, *container, err))
            return false;
        if (catalogue_maps_published(call->services->catalogue) != transact->maps_published ||
            !container_is_current(*container))
            return overtaken(err);
        p = ARENA_NEW(transact->arena, struct pinned);
        p->container = container_ref(*container);
        p->next = transact->pinned;
        transact->pinned = p;
    }
    container_unref(*container);
    *container = container_ref(p->container);
    return true;
}

bool mongo_transact_unpin(const struct mongo_call *call, const struct container *container)
{
    struct pinned **link = &call->transact->pinned;

    while (*link && container_info((*link)->container)->number != container_info(container)->number)
        link = &(*link)->next;
    if (!*link)
        return true;
    if ((*link)->has_space)
        return false;
    container_unref((*link)->container);
    *link = (*link)->next;
    return true;
}

const struct item_space *mongo_transact_space(const struct mongo_call *call,
                                              const struct mongo_collection *collection)
{
    struct pinned *p = pinned_find(call->transact, collection->container);

    assert(p);
    if (!p->has_space)
        p->space = collection->space;
    p->has_space = true;
    return &p->space;
}

struct agreement *mongo_transact_agreement(const struct mongo_call *call)
{
    return call->transact ? call->transact->agreement : NULL;
}

/* --- Reading --------------------------------------------------------------------------------- */

static struct query_moment *moment_of(struct mongo_transact *transact, const struct engine *engine)
{
    size_t i = 0;

    while (i < transact->moment_count && transact->moments[i].engine != engine)
        i++;
    assert(i < CLUSTER_NODES_MAX);
    transact->moments[i].engine = engine;
    transact->moment_count = MAX(transact->moment_count, i + 1);
    return &transact->moments[i];
}

/* Those that were handed out before stay where they are: a query may read from within another. */
static bool moment_take(void *self, struct query_request *request, struct error *err)
{
    struct mongo_transact *transact = self;
    const struct agreement_member *member = NULL;

    if (!transact->agreement)
        return true; /* no collection is read */
    while ((member = agreement_next(transact->agreement, member))) {
        struct transaction *transaction = agreement_member_transaction(member);
        struct query_moment *moment = moment_of(transact, agreement_member_engine(member));

        if (!transaction_overlay(transaction, &moment->overlay, err))
            return false;
        moment->snapshot = transaction_snapshot(transaction);
        if (moment->overlay)
            request->overlay = moment->overlay;
    }
    request->moments = transact->moments;
    request->moment_count = transact->moment_count;
    request->snapshot = transact->moments[0].snapshot;
    request->snapshot_of = transact->moments[0].engine;
    return hold(transact, err);
}

/* --- Its end --------------------------------------------------------------------------------- */

void mongo_transact_leave(struct mongo_call *call)
{
    struct mongo_transact *transact = call->transact;
    size_t token;

    if (!transact->recorded)
        return;
    if (!transact->home.len && call->target.type == DOCUMENT_STRING)
        transact->home =
            arena_printf(transact->arena, "%.*s.%.*s", SLICE_ARG(call->message.database),
                         SLICE_ARG(call->target.text));
    if (call->session->face != MONGO_FACE_MONGOS)
        return;
    token = document_append_object_begin(&call->reply, SLICE("recoveryToken"));
    document_append_string(&call->reply, SLICE("recoveryShardId"), transact->home);
    document_end(&call->reply, token);
}

/* Each write on the budget of its partition. */
static void charge(struct mongo_call *call, const struct agreement *agreement)
{
    const struct agreement_member *member = NULL;

    while ((member = agreement_next(agreement, member))) {
        const struct transaction *transaction = agreement_member_transaction(member);

        for (size_t i = 0; i < transaction_write_count(transaction); i++) {
            int64_t cru = transaction_result(transaction, i).charge_cru;

            metering_charge(call->services->meters, transaction_partition(transaction, i), cru);
            call->charge_cru += cru;
        }
    }
}

static bool has_writes(const struct mongo_transact *transact)
{
    const struct agreement_member *member = NULL;

    while (transact->agreement && (member = agreement_next(transact->agreement, member)))
        if (transaction_write_count(agreement_member_transaction(member)))
            return true;
    return false;
}

/* What it has made is there for everybody. */
static void made_publish(struct mongo_transact *transact)
{
    for (const struct made *made = transact->made; made; made = made->next)
        mongo_pending_remove(transact->mongo->pending, made->number);
    transact->made = NULL;
    if (transact->withholds)
        catalogue_release(transact->mongo->options.services.catalogue, transact->tag);
    transact->withholds = false;
}

/* A transaction that has made collections and written nothing has no commit of its own that could
 * tell of them: a change of the catalogue does. */
static void made_tell(const struct mongo_call *call, const struct history_record *records,
                      size_t count)
{
    struct error ignored;

    for (size_t i = 0; i < count; i++) {
        bool told = catalogue_container_tell(
            call->services->catalogue, call->account.id, records[i].origin.database_name,
            records[i].origin.container_name, records[i].kind, records[i].payload, &ignored);

        (void)told; /* it is there all the same */
    }
}

/* Whether it was done is not known yet. What it has made stays: it may have documents. */
static bool doubt(struct mongo_transact *transact, char **ret_home, struct error *err)
{
    const struct error cause = *err;

    made_publish(transact);
    *ret_home = memory_alloc(transact->home.len + 1);
    if (transact->home.len)
        memcpy(*ret_home, transact->home.data, transact->home.len);
    (*ret_home)[transact->home.len] = '\0';
    return mongo_error_set(err, MONGO_EXCEEDED_TIME_LIMIT,
                           "it is not known yet whether the transaction is committed: %s",
                           cause.message);
}

/* Nothing was done, for others are in the way, or a node is busy: another attempt may do it. */
static bool refuse(struct error *err)
{
    const struct error cause = *err;

    if (cause.code == ERROR_PLEDGED || cause.code == ERROR_BUSY || cause.code == ERROR_FENCED)
        return error_set(err, ERROR_CONFLICT, "%s", cause.message);
    return false;
}

bool mongo_transact_commit(struct mongo_call *call, struct mongo_transact *transact,
                           char **ret_home, struct error *err)
{
    bool writes = has_writes(transact);
    const struct history_record *told = NULL;
    size_t told_count = 0;

    if (transact->withholds)
        told = catalogue_withheld_tellings(call->services->catalogue, transact->tag,
                                           transact->arena, &told_count);
    if (writes) {
        agreement_announce(transact->agreement, told, told_count);
        if (!agreement_commit(transact->agreement, err)) {
            enum agreement_outcome outcome = agreement_outcome(transact->agreement);

            if (outcome == AGREEMENT_UNKNOWN)
                return doubt(transact, ret_home, err);
            if (outcome == AGREEMENT_NOTHING)
                return refuse(err);
        } /* what is decided is done: nobody sees a node without it */
        charge(call, transact->agreement);
    }
    made_publish(transact);
    if (!writes || !agreement_has_announced(transact->agreement))
        made_tell(call, told, told_count);
    return true;
}

static bool home_split(struct slice home, struct mongo_namespace *ret_name)
{
    return slice_split(home, '.', &ret_name->database, &ret_name->collection);
}

static bool home_read(const struct mongo_call *call, struct mongo_namespace *ret_name)
{
    struct document_value token, home;

    if (!document_find(call->message.body, SLICE("recoveryToken"), &token) ||
        token.type != DOCUMENT_OBJECT ||
        !document_find(token.document, SLICE("recoveryShardId"), &home) ||
        home.type != DOCUMENT_STRING)
        return false;
    return home_split(home.text, ret_name);
}

static bool unknown(struct error *err, const char *why)
{
    return mongo_error_set(err, MONGO_EXCEEDED_TIME_LIMIT,
                           "it is not known yet whether the transaction is committed: %s", why);
}

/* One that is in doubt is looked for first: once it is not, what it wrote is there, or has a window
 * that is waited for. */
bool mongo_transact_recover(struct mongo_call *call, int64_t number, const char *home,
                            bool *ret_committed, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_namespace name;
    struct write_records records;

    *ret_committed = false;
    if (!(home ? home_split(slice_of_text(home), &name) : home_read(call, &name)))
        return true;
    if (agreements_in_doubt(catalogue_agreements(call->services->catalogue)))
        return unknown(err, "a node that decides transactions over several nodes is away");
    if (!mongo_collection_open(call, &name, &collection, err))
        return false;
    if (!collection.container)
        return true;
    if (!write_records_settle(&collection.space, err) ||
        !write_records_find(&collection.space, call->logical->name, number, call->arena, &records,
                            err)) {
        const struct error cause = *err; /* nothing that would have it run again as a whole */

        return unknown(err, cause.message);
    }
    for (size_t i = 0; i < records.count; i++)
        *ret_committed = *ret_committed || records.list[i].statement == COMMITTED_STATEMENT;
    return true;
}
