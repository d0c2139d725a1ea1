/* A run is a conversation on the calling thread: the request goes out, then frames come in until
 * one says DONE. Every wait has the run's deadline; a worker that misses it, lies or is in the
 * middle of something when the host gives up is ended, and the pool starts another. */
#include "base/buf.h"
#include "document/json.h"
#include "script/pool.h"

struct run {
    struct script_pool *pool;
    const struct script_request *request;
    const struct script_host *host;
    struct process *process;
    struct script_result *result;
    int64_t deadline_ms;
    bool accepting;
};

/* --- Serving operations ---------------------------------------------------------------------- */

static bool is_write(enum script_verb verb)
{
    return verb != SCRIPT_READ && verb != SCRIPT_QUERY && verb != SCRIPT_READ_FEED;
}

/* Where writes are not allowed the host never sees one. */
static bool host_serve(struct run *run, const struct script_operation *operations, size_t count,
                       struct script_answer *answers, struct error *err)
{
    for (size_t from = 0; from < count;) {
        size_t to = from;

        while (to < count && (run->request->may_write || !is_write(operations[to].verb)))
            to++;
        if (to > from &&
            !run->host->serve(run->host->self, operations + from, to - from, answers + from,
                              &run->accepting, run->request->arena, err))
            return false;
        for (; to < count && !run->request->may_write && is_write(operations[to].verb); to++)
            answers[to] = (struct script_answer){.status = 403,
                                                 .message = SLICE("this script may not write")};
        from = to;
    }
    return true;
}

static void count_operations(struct script_counts *counts,
                             const struct script_operation *operations, size_t count)
{
    counts->operations += (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        counts->operation_bytes +=
            operations[i].link.len + operations[i].body.len + operations[i].options.len;
}

static bool answers_send(struct run *run, const struct script_answer *answers, size_t count,
                         struct error *err)
{
    for (size_t sent = 0; sent < count;) {
        size_t put = message_put_answers(&run->process->output, answers + sent, count - sent,
                                         run->accepting);

        if (!put)
            return error_set(
                err, ERROR_SCRIPT_LIMIT,
                "the answer to an operation of a script has %zu bytes and is too large",
                answers[sent].body.len);
        for (size_t i = sent; i < sent + put; i++)
            run->result->counts.answer_bytes += answers[i].body.len;
        if (!process_send(run->process, run->deadline_ms, err))
            return false;
        sent += put;
    }
    return true;
}

static bool operations_serve(struct run *run, struct slice frame, struct error *err)
{
    struct script_operation operations[SCRIPT_OPERATIONS_MAX];
    struct script_answer answers[SCRIPT_OPERATIONS_MAX];
    size_t count;

    if (!message_get_operations(frame, operations, &count))
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "a script's process sent what is not a message");
    memset(answers, 0, count * sizeof answers[0]);
    count_operations(&run->result->counts, operations, count);
    return host_serve(run, operations, count, answers, err) &&
           answers_send(run, answers, count, err);
}

/* --- The end --------------------------------------------------------------------------------- */

static struct slice keep(struct arena *arena, struct slice text)
{
    return text.data ? arena_copy(arena, text) : SLICE_NONE;
}

/* What clients will be given is JSON, whoever was in the worker. */
static bool body_check(struct slice body, struct error *err)
{
    CLEANUP(buf_done) struct buf bson;
    struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MAX,
                                     .bytes_max = PROTOCOL_FROM_WORKER_MAX};
    struct document_value unused;

    buf_init(&bson, PROTOCOL_FROM_WORKER_MAX + 1024ul);
    if (!body.data || document_json_read_value(body, &limits, &bson, &unused, err))
        return true;
    return error_prefix(err, "the body a script has set");
}

/* A text of the error, cut between characters. */
static bool failed(const struct script_request *request, const struct message_done *done,
                   struct error *err)
{
    error_set(err, ERROR_SCRIPT_FAILED, "\"%.*s\" failed: %.*s",
              (int)MIN(request->name.len, (size_t)60), (const char *)request->name.data,
              (int)MIN(done->message.len, (size_t)160), (const char *)done->message.data);
    return false;
}

static bool outcome_judge(const struct script_options *options,
                          const struct script_request *request, const struct message_done *done,
                          struct error *err)
{
    switch (done->outcome) {
    case PROTOCOL_FINE:
        return true;
    case PROTOCOL_THREW:
        return failed(request, done, err);
    case PROTOCOL_TIMED_OUT:
        return error_set(err, ERROR_SCRIPT_TIMED_OUT, "the script ran longer than it may");
    case PROTOCOL_OUTPUT_LIMIT:
        return error_set(err, ERROR_SCRIPT_LIMIT,
                         "the script's answer is over the limit of %zu "
                         "bytes",
                         options->output_bytes);
    case PROTOCOL_MEMORY_LIMIT:
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "the script used more memory than the limit of %zu bytes",
                         options->memory_bytes);
    case PROTOCOL_OUTCOME_COUNT:
        break;
    }
    return error_set(err, ERROR_SCRIPT_CRASHED, "a script's process sent what is not a message");
}

static bool result_fill(struct run *run, const struct message_done *done, struct error *err)
{
    struct script_result *result = run->result;
    struct arena *arena = run->request->arena;

    result->log = keep(arena, done->log);
    result->log_cut = done->log_cut;
    result->error_number = done->number;
    result->compile_failed = done->outcome == PROTOCOL_THREW && done->uncompiled;
    result->error_message = keep(arena, done->message);
    result->error_stack = keep(arena, done->stack);
    result->counts.output_bytes = done->body.len + done->request_body.len + done->log.len;
    if (!outcome_judge(pool_options(run->pool), run->request, done, err) ||
        !body_check(done->body, err))
        return false;
    result->response_body = keep(arena, done->body);
    result->request_body = keep(arena, done->request_body);
    return (!done->request_values.data ||
            message_get_values(done->request_values, arena, &result->request_values,
                               &result->request_value_count, err)) &&
           (!done->response_values.data ||
            message_get_values(done->response_values, arena, &result->response_values,
                               &result->response_value_count, err));
}

/* --- The conversation ------------------------------------------------------------------------ */

/* Until DONE. *ret_reusable: the worker waits for its next request. */
static bool converse(struct run *run, bool *ret_reusable, struct error *err)
{
    struct message_done done;
    struct slice frame;

    for (;;) {
        if (!process_receive(run->process, run->deadline_ms, &frame, err))
            return false;
        if (frame.len && frame.data[0] == PROTOCOL_DONE)
            break;
        if (!operations_serve(run, frame, err))
            return false;
    }
    if (!message_get_done(frame, &done))
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "a script's process sent what is not a message");
    *ret_reusable =
        !done.retire && done.outcome != PROTOCOL_TIMED_OUT && done.outcome != PROTOCOL_MEMORY_LIMIT;
    return result_fill(run, &done, err);
}

static bool run_in(struct run *run, bool *ret_reusable, struct error *err)
{
    const struct script_request *request = run->request;
    struct message_run_limits limits;

    run->deadline_ms = pool_limits(run->pool, request->deadline_ms, &limits);
    if (!message_put_run(&run->process->output, request, &limits))
        return error_set(err, ERROR_SCRIPT_LIMIT,
                         "the script and what it is given are over the limit of %d bytes",
                         PROTOCOL_TO_WORKER_MAX);
    return process_send(run->process, run->deadline_ms, err) && converse(run, ret_reusable, err);
}

bool script_run(struct script_pool *pool, const struct script_request *request,
                const struct script_host *host, struct script_result *ret_result, struct error *err)
{
    struct run run = {
        .pool = pool, .request = request, .host = host, .result = ret_result, .accepting = true};
    bool fine, reusable = false;

    *ret_result = (struct script_result){0};
    ret_result->counts.input_bytes = request->source.len + request->arguments.len +
                                     request->request_body.len + request->response_body.len;
    if (!pool_take(pool, &request->who, &run.process, err))
        return false;
    fine = run_in(&run, &reusable, err);
    pool_give(pool, run.process, !reusable);
    pool_count(pool, fine ? ERROR_NONE : err->code);
    return fine;
}
