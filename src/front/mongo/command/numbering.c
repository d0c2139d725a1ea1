/* Commands that are numbered in their session: writes that may be sent again, statements of
 * transactions, and their ends. What fields may go together is checked before the session is taken;
 * what the number means is seen once it is. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/labels.h"
#include "front/mongo/command/retry.h"
#include "front/mongo/command/session.h"
#include "front/mongo/command/snapshot.h"
#include "front/mongo/command/transact.h"

enum { WAIT_MS_MAX = 15000 };

/* How a command is numbered. */
struct numbering {
    bool given; /* it is */
    bool within, starts;
    int64_t number;
};

static bool is_given(struct slice document, const char *name, struct document_value *ret_value)
{
    return document_find(document, slice_of_text(name), ret_value) &&
           ret_value->type != DOCUMENT_NULL && ret_value->type != DOCUMENT_UNDEFINED;
}

static bool is_any(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_retryable_command(const char *name)
{
    static const char *const names[] = {"insert", "update", "delete", "findAndModify", "bulkWrite"};

    return is_any(name, names, ARRAY_LEN(names));
}

static bool ends_transaction(const struct mongo_call *call)
{
    return strcmp(call->command->name, "commitTransaction") == 0 ||
           strcmp(call->command->name, "abortTransaction") == 0;
}

/* --- Fields ---------------------------------------------------------------------------------- */

static bool is_bool(const struct mongo_call *call, const char *name, bool wanted, bool *ret_given,
                    struct error *err)
{
    struct document_value value;

    *ret_given = is_given(call->message.body, name, &value);
    if (!*ret_given || (value.type == DOCUMENT_BOOL && value.boolean == wanted))
        return true;
    if (value.type != DOCUMENT_BOOL)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '%s.%s' is the wrong type '%s', expected type 'bool'",
                               call->command->name, name, mongo_type_name(value.type));
    return mongo_error_set(err, MONGO_INVALID_OPTIONS, "Specifying %s=%s is not allowed.", name,
                           wanted ? "false" : "true");
}

static bool number_read(const struct mongo_call *call, const struct document_value *value,
                        struct numbering *numbering, struct error *err)
{
    if (value->type != DOCUMENT_INT64)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '%s.txnNumber' is the wrong type '%s', expected type "
                               "'long'",
                               call->command->name, mongo_type_name(value->type));
    if (value->int64 < 0)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS, "Transaction number cannot be negative");
    if (!mongo_session_id(call).len)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Transaction number requires a session ID to also be specified");
    numbering->given = true;
    numbering->number = value->int64;
    return true;
}

static bool numbering_read(const struct mongo_call *call, struct numbering *ret_numbering,
                           struct error *err)
{
    struct document_value value;

    *ret_numbering = (struct numbering){0};
    if (!is_bool(call, "autocommit", false, &ret_numbering->within, err) ||
        !is_bool(call, "startTransaction", true, &ret_numbering->starts, err))
        return false;
    if (ret_numbering->starts && !ret_numbering->within)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "'startTransaction' requires 'autocommit' to be false");
    if (is_given(call->message.body, "txnNumber", &value))
        return number_read(call, &value, ret_numbering, err);
    return !ret_numbering->within ||
           mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "'autocommit' field requires a transaction number to also be specified");
}

/* --- What may be in a transaction ------------------------------------------------------------ */

static bool unsupported(struct error *err, const char *what)
{
    return mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                           "Cannot run '%s' in a multi-document transaction.", what);
}

/* Stages that write elsewhere, or look at what is no snapshot's. */
static bool stages_check(const struct mongo_call *call, struct error *err)
{
    static const char *const stages[] = {"$out",          "$merge",         "$changeStream",
                                         "$collStats",    "$indexStats",    "$currentOp",
                                         "$listSessions", "$planCacheStats"};
    struct document_value pipeline;
    struct document_iter iter, stage;

    if (!is_given(call->message.body, "pipeline", &pipeline) || pipeline.type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, pipeline.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&stage, iter.value.document);
        if (!document_iter_next(&stage))
            continue;
        for (size_t i = 0; i < ARRAY_LEN(stages); i++)
            if (slice_equal(stage.key, slice_of_text(stages[i])))
                return unsupported(err, stages[i]);
    }
    return true;
}

static bool concerns_check(const struct mongo_call *call, const struct numbering *numbering,
                           struct error *err)
{
    struct document_value concern, level;

    if (!ends_transaction(call) && is_given(call->message.body, "writeConcern", &concern))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "writeConcern is not allowed within a multi-statement transaction");
    if (!is_given(call->message.body, "readConcern", &concern))
        return true;
    if (!numbering->starts)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Only the first command in a transaction may specify a readConcern");
    if (is_given(concern.document, "level", &level) && level.type == DOCUMENT_STRING &&
        (slice_equal(level.text, SLICE("available")) ||
         slice_equal(level.text, SLICE("linearizable"))))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "The readConcern level must be either 'local' (default), 'majority' "
                               "or 'snapshot' in order to run in a transaction");
    return true;
}

static bool within_check(const struct mongo_call *call, const struct numbering *numbering,
                         struct error *err)
{
    static const char *const commands[] = {"abortTransaction",
                                           "aggregate",
                                           "commitTransaction",
                                           "create",
                                           "createIndexes",
                                           "delete",
                                           "distinct",
                                           "find",
                                           "findAndModify",
                                           "getMore",
                                           "insert",
                                           "killCursors",
                                           "update"};
    static const char *const later[] = {"abortTransaction", "commitTransaction", "getMore",
                                        "killCursors"};
    struct slice database = call->message.database;
    const char *name = call->command->name;

    if (!is_any(name, commands, ARRAY_LEN(commands)))
        return unsupported(err, name);
    if (numbering->starts && is_any(name, later, ARRAY_LEN(later)))
        return mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                               "Cannot start a transaction with '%s'", name);
    if (!ends_transaction(call) &&
        (slice_equal(database, SLICE("admin")) || slice_equal(database, SLICE("config")) ||
         slice_equal(database, SLICE("local"))))
        return mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                               "Cannot run command against the '%.*s' database in a transaction.",
                               SLICE_ARG(database));
    return concerns_check(call, numbering, err) && stages_check(call, err);
}

static bool command_check(const struct mongo_call *call, const struct numbering *numbering,
                          struct error *err)
{
    if (numbering->within)
        return within_check(call, numbering, err);
    if (ends_transaction(call))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "%s must be sent with autocommit: false and a transaction number",
                               call->command->name);
    return !numbering->given || is_retryable_command(call->command->name) ||
           mongo_error_set(err, 50768,
                           "txnNumber may only be provided for multi-document transactions and "
                           "retryable write commands. autocommit:false was not provided, and %s is "
                           "not a retryable write command.",
                           call->command->name);
}

/* --- Entering -------------------------------------------------------------------------------- */

static bool too_old(const struct mongo_call *call, int64_t number, struct error *err)
{
    return mongo_error_set(err, MONGO_TRANSACTION_TOO_OLD,
                           "Cannot start a transaction or retryable write with txnNumber %lld on "
                           "the session because one with txnNumber %lld has already started on it",
                           (long long)number, (long long)call->logical->number);
}

static void abort_open(struct mongo_call *call)
{
    mongo_transact_free(
        mongo_sessions_close(call->mongo->sessions, call->logical, MONGO_NUMBER_ABORTED));
}

/* A later number ends a transaction that is still open. */
static void number_take(struct mongo_call *call, int64_t number, enum mongo_number_use use)
{
    struct mongo_logical *session = call->logical;

    if (session->use == MONGO_NUMBER_OPEN)
        abort_open(call);
    session->number = number;
    session->use = use;
    session->expired = false;
}

/* A number that this process has not seen of the session may have been used before it was
 * forgotten, or the server began anew. */
static bool write_begin(struct mongo_call *call, int64_t number, struct error *err)
{
    struct mongo_logical *session = call->logical;
    bool look = session->number < 0 || number == session->number;

    if (number < session->number)
        return too_old(call, number, err);
    if (number == session->number && session->use != MONGO_NUMBER_WRITE)
        return mongo_error_set(err, MONGO_CONFLICTING_OPERATION,
                               "txnNumber %lld of the session is that of a transaction",
                               (long long)number);
    if (number > session->number)
        number_take(call, number, MONGO_NUMBER_WRITE);
    mongo_retry_begin(call, number, look);
    return true;
}

static bool transaction_start(struct mongo_call *call, int64_t number, struct error *err)
{
    struct mongo_logical *session = call->logical;
    struct mongo_transact *transact;

    if (number == session->number)
        return mongo_error_set(err, MONGO_CONFLICTING_OPERATION,
                               "Cannot start a transaction at the given transaction number %lld: "
                               "the session has used it",
                               (long long)number);
    number_take(call, number, MONGO_NUMBER_ABORTED);
    transact = mongo_transact_new(call, number);
    if (!mongo_sessions_open(call->mongo->sessions, session, transact, err)) {
        mongo_transact_free(transact);
        return false;
    }
    mongo_transact_enter(call, transact);
    return true;
}

static bool no_such(const struct mongo_call *call, int64_t number, struct error *err)
{
    const struct mongo_logical *session = call->logical;

    if (number == session->number && session->use == MONGO_NUMBER_COMMITTED)
        return mongo_error_set(err, MONGO_TRANSACTION_COMMITTED,
                               "Transaction with { txnNumber: %lld } has been committed.",
                               (long long)number);
    if (number == session->number && session->use == MONGO_NUMBER_ABORTED)
        return mongo_error_set(err, MONGO_NO_SUCH_TRANSACTION,
                               "Transaction with { txnNumber: %lld } has been aborted%s.",
                               (long long)number,
                               session->expired ? ": it was open longer than "
                                                  "mongo.transaction_ms_max"
                                                : "");
    return mongo_error_set(err, MONGO_NO_SUCH_TRANSACTION,
                           "Given transaction number %lld does not match any in-progress "
                           "transactions.",
                           (long long)number);
}

static bool within_begin(struct mongo_call *call, const struct numbering *numbering,
                         struct error *err)
{
    struct mongo_logical *session = call->logical;

    if (numbering->number < session->number)
        return too_old(call, numbering->number, err);
    if (numbering->starts)
        return transaction_start(call, numbering->number, err);
    if (ends_transaction(call))
        return true; /* it sees for itself */
    if (numbering->number != session->number || session->use != MONGO_NUMBER_OPEN)
        return no_such(call, numbering->number, err);
    mongo_transact_enter(call, session->transaction);
    return true;
}

static uint32_t account_number(const struct mongo_call *call)
{
    return call->account.account ? account_info(call->account.account)->number : 0;
}

static bool is_point_command(const struct mongo_call *call)
{
    return slice_equal(call->name, SLICE("insert")) || slice_equal(call->name, SLICE("update"));
}

/* On a loop nothing is waited for and nothing looked up: a later number than the last of a session
 * that nobody else uses now was never used before. */
static bool loop_enter(struct mongo_call *call, const struct numbering *numbering)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];
    struct mongo_logical *session;

    if (numbering->within || !is_point_command(call))
        return mongo_call_blocks(call);
    mongo_call_session_name(call, mongo_session_id(call), name);
    if (!mongo_sessions_try(call->mongo->sessions, name, &session))
        return mongo_call_blocks(call);
    if (session->number < 0 || numbering->number <= session->number ||
        session->use == MONGO_NUMBER_OPEN || session->expired) {
        mongo_sessions_give_back(call->mongo->sessions, session);
        return mongo_call_blocks(call);
    }
    call->logical = session;
    call->number = numbering->number;
    call->before.number = session->number;
    call->before.use = session->use;
    number_take(call, numbering->number, MONGO_NUMBER_WRITE);
    mongo_retry_begin(call, numbering->number, false);
    return true;
}

bool mongo_session_enter(struct mongo_call *call, struct error *err)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];
    struct numbering numbering;
    bool fine;

    if (!numbering_read(call, &numbering, err) || !command_check(call, &numbering, err))
        return false;
    if (UNLIKELY(mongo_snapshot_is_asked(call)))
        return mongo_snapshot_enter(call, err);
    if (!numbering.given)
        return true;
    if (!call->may_block)
        return loop_enter(call, &numbering);
    mongo_call_session_name(call, mongo_session_id(call), name);
    if (!mongo_sessions_take(call->mongo->sessions, name, account_number(call),
                             clock_monotonic_ms() + WAIT_MS_MAX, &call->logical, err))
        return false;
    if (mongo_session_id(call).len == MONGO_SESSION_ID_LEN)
        mongo_sessions_note(call->mongo->sessions, call->logical, mongo_session_id(call));
    call->number = numbering.number;
    fine = numbering.within ? within_begin(call, &numbering, err)
                            : write_begin(call, numbering.number, err);
    return fine || mongo_session_leave(call, false, err);
}

/* --- Leaving --------------------------------------------------------------------------------- */

/* Whatever fails within a transaction ends it. What another attempt would mend is the command's
 * error, not that of one of its writes. */
static bool statement_end(struct mongo_call *call, bool fine, struct error *err)
{
    if (fine && call->unwritten && mongo_code_is_transient(mongo_error_code(call->unwritten))) {
        *err = *call->unwritten;
        fine = false;
    }
    if (!fine && err->code == ERROR_PLEDGED) {
        const struct error cause = *err;

        (void)error_set(err, ERROR_CONFLICT, "%s", cause.message); /* the next attempt may do */
    }
    if (!fine && err->code == ERROR_NOT_SUPPORTED) {
        const struct error cause = *err;

        mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION, "%s", cause.message);
    }
    if (fine)
        mongo_transact_leave(call);
    if (!fine || call->unwritten)
        abort_open(call);
    call->transact = NULL;
    call->maker = NULL;
    call->front.moment = NULL;
    call->unwritten = NULL;
    return fine;
}

bool mongo_session_leave(struct mongo_call *call, bool fine, struct error *err)
{
    if (LIKELY(!call->logical))
        return fine;
    if (call->snapshot)
        return mongo_snapshot_leave(call, fine, err);
    if (call->transact)
        fine = statement_end(call, fine, err);
    if (call->cold) {
        assert(!call->may_block);
        call->logical->number = call->before.number;
        call->logical->use = call->before.use;
    } else if (fine) {
        mongo_retry_append(call);
    }
    mongo_sessions_give_back(call->mongo->sessions, call->logical);
    call->logical = NULL;
    call->retry = NULL;
    return fine;
}

/* --- Ends of transactions -------------------------------------------------------------------- */

static bool is_open(const struct mongo_call *call)
{
    return call->number == call->logical->number && call->logical->use == MONGO_NUMBER_OPEN;
}

static bool open_commit(struct mongo_call *call, struct error *err)
{
    struct mongo_logical *session = call->logical;
    char *home = NULL;
    bool fine = mongo_transact_commit(call, session->transaction, &home, err);

    mongo_transact_free(mongo_sessions_close(call->mongo->sessions, session,
                                             fine   ? MONGO_NUMBER_COMMITTED
                                             : home ? MONGO_NUMBER_DOUBT
                                                    : MONGO_NUMBER_ABORTED));
    memory_free(session->home);
    session->home = home;
    return fine;
}

/* Of one whose commit nobody knew the outcome of, or of before this process. */
static bool commit_recover(struct mongo_call *call, struct error *err)
{
    struct mongo_logical *session = call->logical;
    bool doubt = call->number == session->number, committed;

    assert(!doubt || (session->use == MONGO_NUMBER_DOUBT && session->home));
    if (!mongo_transact_recover(call, call->number, doubt ? session->home : NULL, &committed, err))
        return false;
    if (doubt)
        session->use = committed ? MONGO_NUMBER_COMMITTED : MONGO_NUMBER_ABORTED;
    return committed || no_such(call, call->number, err);
}

bool mongo_commit_transaction(struct mongo_call *call, struct error *err)
{
    const struct mongo_logical *session = call->logical;

    if (is_open(call))
        return open_commit(call, err);
    if (call->number == session->number && session->use == MONGO_NUMBER_COMMITTED)
        return true;
    if (call->number > session->number ||
        (call->number == session->number && session->use == MONGO_NUMBER_DOUBT))
        return commit_recover(call, err);
    return no_such(call, call->number, err);
}

bool mongo_abort_transaction(struct mongo_call *call, struct error *err)
{
    if (!is_open(call))
        return no_such(call, call->number, err);
    abort_open(call);
    return true;
}
