/* The list is one, under one lock: it is taken twice for each command that goes to a worker, which
 * costs far more than that, and by whoever looks. A listed call is not freed while the lock is
 * held, for it takes itself from the list before it is answered; so killing it is safe there. */
#include "front/mongo/command/operations.h"

#include "base/clock.h"
#include "base/thread.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/permit.h"
#include "front/mongo/command/reading.h"
#include "front/mongo/command/source.h"

#include <sys/utsname.h>

enum { SHOWN_MAX = 10000, NAMESPACE_SHOWN_MAX = 320, USER_SHOWN_MAX = 256 };

/* What is told of one, copied from its call: all of it stays as it is while it is listed. */
struct mongo_running {
    struct mongo_running *next, *previous;
    struct mongo_request *request;
    uint32_t account;
    int32_t id;
    uint64_t started_ns, connection;
    const char *kind; /* query, insert, ... */
    struct slice database, collection, command, user, user_database, application, session;
    bool truncated; /* of command only a text is left */
    struct net_address client;
    bool killed;
};

struct mongo_operations {
    struct mutex lock;
    struct mongo_running *first;
    int32_t last_id;
};

struct mongo_operations *mongo_operations_new(void)
{
    struct mongo_operations *operations = MEMORY_NEW(struct mongo_operations);

    mutex_init(&operations->lock);
    return operations;
}

void mongo_operations_free(struct mongo_operations *operations)
{
    if (!operations)
        return;
    assert(!operations->first);
    mutex_done(&operations->lock);
    memory_free(operations);
}

/* --- Listing --------------------------------------------------------------------------------- */

static const char *kind_of(const struct mongo_call *call)
{
    static const char *const kinds[MONGO_TALLIES] = {
        [MONGO_TALLY_INSERT] = "insert",   [MONGO_TALLY_QUERY] = "query",
        [MONGO_TALLY_UPDATE] = "update",   [MONGO_TALLY_DELETE] = "remove",
        [MONGO_TALLY_GETMORE] = "getmore", [MONGO_TALLY_COMMAND] = "command"};

    return kinds[call->command->tally];
}

/* Commands with secrets in them show their name alone. */
static bool has_secrets(const struct mongo_call *call)
{
    static const char *const names[] = {"saslStart",  "saslContinue", "authenticate", "createUser",
                                        "updateUser", "hello",        "isMaster"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(call->command->name, names[i]))
            return true;
    return false;
}

static struct slice command_copy(const struct mongo_call *call, bool *ret_truncated)
{
    const struct document_value whole = document_object(call->message.body);
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    *ret_truncated = has_secrets(call) || call->message.body.len > MONGO_OPERATION_COMMAND_MAX;
    if (has_secrets(call))
        return slice_of_text(call->command->name);
    if (!*ret_truncated)
        return arena_copy(call->arena, call->message.body);
    mongo_text_append(&text, &whole, MONGO_OPERATION_COMMAND_MAX);
    return arena_copy(call->arena, buf_slice(&text));
}

static struct slice copy(const struct mongo_call *call, struct slice text, size_t max)
{
    return arena_copy(call->arena, slice_first(text, MIN(text.len, max)));
}

void mongo_operation_begin(struct mongo_call *call)
{
    struct mongo_operations *operations = call->mongo->operations;
    struct mongo_running *operation;
    struct slice command;
    bool truncated;

    if (call->running || !call->account.account)
        return;
    command = command_copy(call, &truncated);
    operation = ARENA_NEW(call->arena, struct mongo_running);
    *operation = (struct mongo_running){
        .request = call->request,
        .account = account_info(call->account.account)->number,
        .started_ns = call->request->started_ns,
        .connection = call->session->peer.number,
        .kind = kind_of(call),
        .database = copy(call, call->message.database, NAMESPACE_SHOWN_MAX),
        .collection = call->target.type == DOCUMENT_STRING
                          ? copy(call, call->target.text, NAMESPACE_SHOWN_MAX)
                          : SLICE("$cmd"),
        .command = command,
        .truncated = truncated,
        .user = copy(call, slice_of_text(call->session->user), USER_SHOWN_MAX),
        .user_database = copy(call, slice_of_text(call->session->user_database), USER_SHOWN_MAX),
        .application = copy(call, slice_of_text(call->session->application), MONGO_APPLICATION_MAX),
        .session = copy(call, mongo_session_id(call), MONGO_SESSION_ID_LEN),
        .client = call->session->peer.address};
    mutex_lock(&operations->lock);
    operation->id = operations->last_id = operations->last_id % INT32_MAX + 1;
    operation->next = operations->first;
    if (operation->next)
        operation->next->previous = operation;
    operations->first = operation;
    mutex_unlock(&operations->lock);
    call->running = operation;
}

void mongo_operation_end(struct mongo_call *call)
{
    struct mongo_operations *operations = call->mongo->operations;
    struct mongo_running *operation = call->running;

    if (!operation || !operation->request)
        return;
    mutex_lock(&operations->lock);
    if (operation->previous)
        operation->previous->next = operation->next;
    else
        operations->first = operation->next;
    if (operation->next)
        operation->next->previous = operation->previous;
    operation->request = NULL; /* killed is the call's own from now on */
    mutex_unlock(&operations->lock);
}

void mongo_operation_tell(const struct mongo_call *call, struct error *err)
{
    if (call->running && call->running->killed)
        (void)mongo_error_set(err, MONGO_INTERRUPTED, "operation was interrupted");
}

/* --- Showing --------------------------------------------------------------------------------- */

static bool is_own(const struct mongo_call *call, const struct mongo_running *operation)
{
    return slice_equal(operation->user, slice_of_text(call->session->user)) &&
           slice_equal(operation->user_database, slice_of_text(call->session->user_database));
}

static void user_append(const struct mongo_running *operation, struct buf *out)
{
    size_t list, entry;

    if (!operation->user.len)
        return;
    list = document_append_array_begin(out, SLICE("effectiveUsers"));
    entry = document_append_object_begin(out, SLICE("0"));
    document_append_string(out, SLICE("user"), operation->user);
    document_append_string(out, SLICE("db"), operation->user_database);
    document_end(out, entry);
    document_end(out, list);
}

static void session_append(const struct mongo_running *operation, struct buf *out)
{
    const struct document_value id = {.type = DOCUMENT_BINARY,
                                      .binary = {.bytes = operation->session, .subtype = 4}};
    size_t part;

    if (operation->session.len != MONGO_SESSION_ID_LEN)
        return;
    part = document_append_object_begin(out, SLICE("lsid"));
    document_append(out, SLICE("id"), &id);
    document_end(out, part);
}

static void command_append(const struct mongo_running *operation, struct buf *out)
{
    const struct document_value whole = document_object(operation->command);
    size_t part;

    if (!operation->truncated) {
        document_append(out, SLICE("command"), &whole);
        return;
    }
    part = document_append_object_begin(out, SLICE("command"));
    document_append_string(out, SLICE("$truncated"), operation->command);
    document_end(out, part);
}

static void operation_append(const struct mongo_call *call, const struct mongo_running *operation,
                             struct buf *out)
{
    uint64_t ran_us = (clock_monotonic_ns() - operation->started_ns) / 1000;
    char client[NET_ADDRESS_TEXT_SIZE], connection[32];
    struct utsname names = {0};

    (void)uname(&names);
    net_address_text(&operation->client, client);
    snprintf(connection, sizeof connection, "conn%llu", (unsigned long long)operation->connection);
    document_append_string(out, SLICE("type"), SLICE("op"));
    document_append_string(out, SLICE("host"), slice_of_text(names.nodename));
    document_append_string(out, SLICE("desc"), slice_of_text(connection));
    document_append_int64(out, SLICE("connectionId"), (int64_t)operation->connection);
    document_append_string(out, SLICE("client"), slice_of_text(client));
    if (operation->application.len)
        document_append_string(out, SLICE("appName"), operation->application);
    document_append_bool(out, SLICE("active"), true);
    document_append_date(out, SLICE("currentOpTime"), clock_read_wall_ms(call->services->clock));
    user_append(operation, out);
    document_append_int32(out, SLICE("opid"), operation->id);
    session_append(operation, out);
    document_append_int64(out, SLICE("secs_running"), (int64_t)(ran_us / 1000000));
    document_append_int64(out, SLICE("microsecs_running"), (int64_t)ran_us);
    document_append_string(out, SLICE("op"), slice_of_text(operation->kind));
    document_append_string(out, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(operation->database),
                                        SLICE_ARG(operation->collection)));
    command_append(operation, out);
    if (operation->killed)
        document_append_bool(out, SLICE("killPending"), true);
    document_append_int32(out, SLICE("numYields"), 0);
    document_end(out, document_append_object_begin(out, SLICE("locks")));
    document_append_bool(out, SLICE("waitingForLock"), false);
}

static bool rows_add(struct mongo_rows *rows, bool own, struct error *err)
{
    struct mongo_call *call = rows->call;
    struct mongo_operations *operations = call->mongo->operations;
    uint32_t account = call->account.account ? account_info(call->account.account)->number : 0;
    CLEANUP(buf_done) struct buf row;
    bool fine = true;

    buf_init(&row, BUF_DEFAULT_MAX);
    mutex_lock(&operations->lock);
    for (const struct mongo_running *one = operations->first;
         one && fine && rows->count < SHOWN_MAX; one = one->next) {
        size_t begin;

        if (one->account != account || (own && !is_own(call, one)))
            continue;
        begin = mongo_row_begin(&row);
        operation_append(call, one, &row);
        fine = mongo_row_end(rows, begin, &row, err);
    }
    mutex_unlock(&operations->lock);
    return fine;
}

static bool builds_add(struct mongo_rows *rows, struct error *err)
{
    struct mongo_call *call = rows->call;
    CLEANUP(buf_done) struct buf row;
    size_t count;
    struct mongo_index_build *builds = mongo_index_progress(call, &count);

    buf_init(&row, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct document_value shown = document_object(builds[i].shown);
        size_t begin = mongo_row_begin(&row), command, list, progress;

        document_append_string(&row, SLICE("type"), SLICE("op"));
        document_append_string(
            &row, SLICE("desc"),
            arena_printf(call->arena, "IndexBuild-%.*s", SLICE_ARG(builds[i].name)));
        document_append_bool(&row, SLICE("active"), true);
        document_append_string(&row, SLICE("op"), SLICE("command"));
        document_append_string(&row, SLICE("ns"),
                               arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(builds[i].database),
                                            SLICE_ARG(builds[i].collection)));
        command = document_append_object_begin(&row, SLICE("command"));
        document_append_string(&row, SLICE("createIndexes"), builds[i].collection);
        list = document_append_array_begin(&row, SLICE("indexes"));
        document_append(&row, SLICE("0"), &shown);
        document_end(&row, list);
        document_append_string(&row, SLICE("$db"), builds[i].database);
        document_end(&row, command);
        document_append_string(&row, SLICE("msg"),
                               arena_printf(call->arena,
                                            "Index Build: scanning collection %u/100 %u%%",
                                            builds[i].progress, builds[i].progress));
        progress = document_append_object_begin(&row, SLICE("progress"));
        document_append_int64(&row, SLICE("done"), builds[i].progress);
        document_append_int64(&row, SLICE("total"), 100);
        document_end(&row, progress);
        document_append_int32(&row, SLICE("numYields"), 0);
        document_append_bool(&row, SLICE("waitingForLock"), false);
        if (!mongo_row_end(rows, begin, &row, err))
            return false;
    }
    return true;
}

/* Whoever may not look at others' commands sees its own. */
static bool may_see_all(const struct mongo_call *call)
{
    return mongo_permit_cluster(call, MONGO_ACTION_INPROG);
}

/* --- $currentOp ------------------------------------------------------------------------------ */

struct listing {
    bool all_users, idle_connections, idle_cursors, idle_sessions, local, truncate, backtrace;
};

bool mongo_source_current_op(const struct mongo_source *source, struct mongo_rows *rows,
                             struct error *err)
{
    static const struct mongo_field fields[] = {
        {"allUsers", MONGO_FIELD_BOOL, offsetof(struct listing, all_users)},
        {"idleConnections", MONGO_FIELD_BOOL, offsetof(struct listing, idle_connections)},
        {"idleCursors", MONGO_FIELD_BOOL, offsetof(struct listing, idle_cursors)},
        {"idleSessions", MONGO_FIELD_BOOL, offsetof(struct listing, idle_sessions)},
        {"localOps", MONGO_FIELD_BOOL, offsetof(struct listing, local)},
        {"truncateOps", MONGO_FIELD_BOOL, offsetof(struct listing, truncate)},
        {"backtrace", MONGO_FIELD_BOOL, offsetof(struct listing, backtrace)},
    };
    struct listing asked = {0};

    if (source->specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$currentOp options must be specified in an object, but found: %s",
                               mongo_type_name(source->specification->type));
    if (!mongo_fields_read(source->specification->document, "$currentOp", fields, ARRAY_LEN(fields),
                           &asked, err))
        return false;
    if (!slice_equal(source->name->database, SLICE("admin")))
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                               "$currentOp must be run against the 'admin' database with "
                               "{aggregate: 1}");
    if (asked.idle_connections || asked.idle_cursors)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "$currentOp: %s is not offered: what does nothing is not listed",
                               asked.idle_connections ? "idleConnections" : "idleCursors");
    if (asked.all_users && !may_see_all(rows->call))
        return mongo_permit_refuse(rows->call, err);
    return rows_add(rows, !asked.all_users, err) && builds_add(rows, err);
}

/* --- currentOp ------------------------------------------------------------------------------- */

static bool is_true(struct slice body, struct slice name)
{
    struct document_value value;
    double number;

    if (!document_find(body, name, &value))
        return false;
    return value.type == DOCUMENT_BOOL ? value.boolean
                                       : document_to_double(&value, &number) && number != 0;
}

/* What the command has besides is a filter of the operations. */
static struct slice filter_of(const struct mongo_call *call)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin;
    bool first = true;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, call->message.body);
    for (; document_iter_next(&iter); first = false)
        if (!first && !mongo_field_is_generic(iter.key) &&
            !slice_equal(iter.key, SLICE("$ownOps")) && !slice_equal(iter.key, SLICE("$all")) &&
            !slice_equal(iter.key, SLICE("truncateOps")))
            document_append(&out, iter.key, &iter.value);
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

struct listed {
    struct buf *out;
    uint32_t count;
};

static bool row_append(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct listed *listed = self;
    char text[DOCUMENT_INDEX_SIZE];

    document_append(listed->out, document_index_key(listed->count++, text), value);
    return true;
}

bool mongo_current_op(struct mongo_call *call, struct error *err)
{
    struct mongo_rows rows = {.call = call};
    struct mongo_reading reading = {
        .shape = MONGO_SHAPE_DOCUMENT, .filter = filter_of(call), .limit = UINT64_MAX};
    struct listed listed = {&call->reply, 0};
    struct query_request request = {.limits = {.rows_max = SHOWN_MAX,
                                               .bytes_max = MONGO_ROWS_BYTES_MAX,
                                               .cancelled = call->cancelled},
                                    .arena = call->arena,
                                    .row = row_append,
                                    .self = &listed};
    bool own = is_true(call->message.body, SLICE("$ownOps"));
    struct query_page page;
    size_t list;

    if (!own && !may_see_all(call))
        return mongo_permit_refuse(call, err);
    if (!rows_add(&rows, own, err) || !builds_add(&rows, err) ||
        !mongo_reading_prepare(call, &reading, call->arena, err))
        return false;
    if (reading.script)
        return mongo_error_set(err, MONGO_QUERY_FEATURE_NOT_ALLOWED,
                               "currentOp: %s is not allowed here", reading.script);
    list = document_append_array_begin(&call->reply, SLICE("inprog"));
    if (!query_run_documents(&reading.plan, rows.list, rows.count, &request, &page, err))
        return false;
    document_end(&call->reply, list);
    return true;
}

/* --- killOp ---------------------------------------------------------------------------------- */

struct killing {
    struct document_value op;
};

/* The number that currentOp shows; a mongos shows "shard:number", and so do clients of one send it.
 */
static bool op_read(const struct document_value *value, int64_t *ret_id)
{
    struct slice shard, number;
    uint64_t id;

    if (value->type != DOCUMENT_STRING)
        return document_to_int64(value, ret_id);
    number = value->text;
    while (slice_split(number, ':', &shard, &number)) {
    }
    if (!slice_to_uint64(number, &id) || id > INT32_MAX)
        return false;
    *ret_id = (int64_t)id;
    return true;
}

/* One that is not there any more, or of another account, is no error: it may have ended. */
bool mongo_kill_op(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"op", MONGO_FIELD_VALUE, offsetof(struct killing, op), true}};
    struct mongo_operations *operations = call->mongo->operations;
    uint32_t account = call->account.account ? account_info(call->account.account)->number : 0;
    bool all = mongo_permit_cluster(call, MONGO_ACTION_KILL_OP);
    struct killing killing = {0};
    int64_t id;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &killing, err))
        return false;
    if (!op_read(&killing.op, &id))
        return mongo_error_set(err, MONGO_TYPE_MISMATCH, "Expected \"op\" to be a number");
    mutex_lock(&operations->lock);
    for (struct mongo_running *one = operations->first; one; one = one->next)
        if (one->id == id && one->account == account && one != call->running &&
            (all || is_own(call, one))) {
            one->killed = true;
            mongo_request_cancel(one->request);
        }
    mutex_unlock(&operations->lock);
    mongo_waits_look(call->mongo->waits); /* it may wait for changes */
    document_append_string(&call->reply, SLICE("info"), SLICE("attempting to kill op"));
    return true;
}
