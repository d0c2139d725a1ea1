#include "front/mongo/command/labels.h"

#include <time.h>

/* Failures that pass: of the network, of a server that stops or is not the one to write to. */
static bool is_retryable(int code)
{
    static const int codes[] = {6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i] == code)
            return true;
    return false;
}

/* Lost against somebody else, or read what is no more there. */
static bool is_lost(int code)
{
    static const int codes[] = {24, 63, MONGO_WRITE_CONFLICT, 239, 246, 267, 272};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i] == code)
            return true;
    return false;
}

bool mongo_code_is_transient(int code)
{
    return is_lost(code) || is_retryable(code) || code == MONGO_NO_SUCH_TRANSACTION;
}

/* A change stream goes on behind these, from its token; other cursors do not care. */
static bool is_resumable(int code)
{
    return is_retryable(code) || code == 63 || code == 133 || code == 150 || code == 234 ||
           code == 13388;
}

static bool is_named(const struct mongo_call *call, const char *name)
{
    return call->command && strcmp(call->command->name, name) == 0;
}

static bool has_field(const struct mongo_call *call, const char *name)
{
    struct document_value value;

    return call->understood && document_find(call->message.body, slice_of_text(name), &value) &&
           value.type != DOCUMENT_NULL && value.type != DOCUMENT_UNDEFINED;
}

static void labels_put(struct mongo_call *call, const char *label)
{
    size_t list = document_append_array_begin(&call->reply, SLICE("errorLabels"));

    document_append_string(&call->reply, SLICE("0"), slice_of_text(label));
    document_end(&call->reply, list);
}

void mongo_labels_append(struct mongo_call *call, int code, bool concern)
{
    bool ends = is_named(call, "commitTransaction") || is_named(call, "abortTransaction");
    bool within = has_field(call, "autocommit");

    if (call->fail.labelled) {
        const struct document_value labels = {.type = DOCUMENT_ARRAY,
                                              .document = call->fail.labels};

        if (document_count(call->fail.labels))
            document_append(&call->reply, SLICE("errorLabels"), &labels);
        return;
    }
    if (within && !concern &&
        (ends ? is_lost(code) || code == MONGO_NO_SUCH_TRANSACTION : mongo_code_is_transient(code)))
        labels_put(call, "TransientTransactionError");
    else if (is_retryable(code) && has_field(call, "txnNumber") && (!within || ends))
        labels_put(call, "RetryableWriteError");
    else if (code == MONGO_CHANGE_STREAM_HISTORY_LOST || code == MONGO_CHANGE_STREAM_FATAL_ERROR)
        labels_put(call, "NonResumableChangeStreamError");
    else if (call->watches && is_resumable(code))
        labels_put(call, "ResumableChangeStreamError");
}

/* --- Faults that are asked for --------------------------------------------------------------- */

static void wait(const struct mongo_call *call)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int64_t until_ms = clock_monotonic_ms() + call->fail.block_ms;

    while (clock_monotonic_ms() < until_ms && !(call->cancelled && atomic_load(call->cancelled)))
        nanosleep(&pause, NULL);
}

bool mongo_fail_meet(struct mongo_call *call, struct error *err)
{
    struct mongo_fail_points *points = call->mongo->fail_points;
    struct mongo_fail_subject subject = {.command = slice_of_text(call->command->name),
                                         .application = slice_of_text(call->session->application),
                                         .database = call->message.database};

    if (LIKELY(!points))
        return true;
    if (call->target.type == DOCUMENT_STRING)
        subject.collection = call->target.text;
    if (!call->fail_looked && !mongo_fail_points_meet(points, &subject, call->arena, &call->fail))
        call->fail = (struct mongo_fail){0};
    call->fail_looked = true;
    if (call->fail.block_ms && !call->may_block) {
        call->cold = true;
        return false;
    }
    if (call->fail.block_ms)
        wait(call);
    if (call->fail.close) {
        call->broken = call->close = true; /* there is no reply */
        return mongo_error_set(err, 9001, "the connection is closed by a failpoint");
    }
    if (call->fail.fails)
        return mongo_error_set(err, call->fail.code, "Failing command via 'failCommand' failpoint");
    return true;
}

void mongo_fail_concern_append(struct mongo_call *call)
{
    const struct document_value concern = document_object(call->fail.concern);
    struct document_value value;
    int64_t code = 0;

    if (LIKELY(!call->fail.concern.data))
        return;
    document_append(&call->reply, SLICE("writeConcernError"), &concern);
    if (document_find(call->fail.concern, SLICE("code"), &value))
        (void)document_to_int64(&value, &code);
    mongo_labels_append(call, (int)code, true);
}
