/* A run goes back and forth: the script is entered, returns, and whatever operations it has left
 * behind go to the server in one message; their callbacks are called with the answers, and may
 * leave further ones. Promises are settled by the engine each time it is left. When nothing is
 * under way any more the run is over. */
#include "script/worker/worker.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "script/protocol.h"
#include "script/worker/channel.h"
#include "script/worker/sandbox.h"

#include <unistd.h>

/* How a run ended, as DONE says it. */
struct ending {
    enum protocol_outcome outcome;
    JSValueRef thrown;   /* PROTOCOL_THREW */
    const char *message; /* where nothing was thrown by the script itself */
    bool uncompiled;     /* the text is no function; nothing of it was run */
    JSValueRef parts[4]; /* PROTOCOL_FINE: texts or undefined; NULL: not there */
};

void worker_init(struct worker *worker, int descriptor)
{
    *worker = (struct worker){.descriptor = descriptor};
    buf_init(&worker->run.operations, PROTOCOL_FROM_WORKER_MAX);
    buf_init(&worker->run.answers, BUF_DEFAULT_MAX * 4ul);
    buf_init(&worker->run.log, PROTOCOL_FROM_WORKER_MAX);
    buf_init(&worker->frame, PROTOCOL_TO_WORKER_MAX + 1ul);
    buf_init(&worker->answer, PROTOCOL_TO_WORKER_MAX + 1ul);
    buf_init(&worker->reply, PROTOCOL_FROM_WORKER_MAX * 3ul);
    engine_init(&worker->engine);
    realms_init(&worker->realms, &worker->engine, worker_natives, worker_native_count, worker);
    realms_prepare(&worker->realms); /* opens what the engine wants to have opened */
}

/* --- Operations and answers ------------------------------------------------------------------ */

/* Adds a frame's answers to those that wait, and gives their number; 0: it makes no sense. */
static uint32_t answers_take(struct worker *worker)
{
    struct worker_run *run = &worker->run;
    struct protocol_reader reader;
    struct slice records;
    uint32_t count;

    if (protocol_open(&reader, channel_frame(&worker->answer)) != PROTOCOL_ANSWERS)
        return 0;
    run->accepting = protocol_get_byte(&reader) && run->accepting;
    count = protocol_get_count(&reader, PROTOCOL_OPERATIONS_MAX, 32);
    records = reader.rest;
    for (uint32_t i = 0; i < count; i++) {
        protocol_get_number(&reader);
        protocol_get_number(&reader);
        protocol_get_long(&reader);
        for (int text = 0; text < 4; text++)
            protocol_get_text(&reader);
    }
    if (!protocol_whole(&reader))
        return 0;
    buf_append_slice(&run->answers, records);
    buf_append_byte(&run->answers, 0); /* room for the NUL behind the last text */
    if (!buf_overflowed(&run->answers))
        run->answers.len--;
    return buf_overflowed(&run->answers) ? 0 : count;
}

bool worker_exchange(struct worker *worker)
{
    struct worker_run *run = &worker->run;
    uint32_t missing = run->operation_count;

    protocol_end(&run->operations, 0);
    bytes_put_le32(run->operations.data + PROTOCOL_HEADER + 1, run->operation_count);
    run->operation_count = 0;
    if (!engine_in_time(&worker->engine) ||
        !channel_write(worker->descriptor, buf_slice(&run->operations)))
        return false;
    while (missing) {
        uint32_t count;

        if (!channel_read(worker->descriptor, false, &worker->answer))
            _exit(0); /* the server has gone or given this run up */
        count = answers_take(worker);
        if (!count || count > missing)
            _exit(1);
        missing -= count;
        run->answer_count += count;
    }
    return true;
}

/* --- Procedures and triggers ----------------------------------------------------------------- */

static bool ended_by_watch(const struct worker *worker, struct ending *ending)
{
    if (worker->engine.end == ENGINE_RUNNING)
        return false;
    ending->outcome =
        worker->engine.end == ENGINE_OUT_OF_MEMORY ? PROTOCOL_MEMORY_LIMIT : PROTOCOL_TIMED_OUT;
    return true;
}

/* Calls an entry of the realm. NULL: the run is over, and ending says how. */
static JSValueRef enter(struct worker *worker, struct realm *realm, JSObjectRef function,
                        const JSValueRef *arguments, size_t count, struct ending *ending)
{
    JSValueRef value =
        engine_call(&worker->engine, realm->context, function, arguments, count, &ending->thrown);

    if (!value && !ended_by_watch(worker, ending))
        ending->outcome = PROTOCOL_THREW;
    return value;
}

/* The realm of a text, ready to run. NULL: ending says why. */
static struct realm *realm_ready(struct worker *worker, bool functions, struct slice key,
                                 struct slice name, struct slice source, struct realm **ret_realm,
                                 struct ending *ending)
{
    struct realm *realm = *ret_realm = realms_find(&worker->realms, key, functions);

    if (!realm) {
        if (!ended_by_watch(worker, ending))
            ending->outcome = PROTOCOL_MEMORY_LIMIT;
        return NULL;
    }
    if (realm->script)
        return realm;
    ending->uncompiled = true;
    if (source.len && memchr(source.data, 0, source.len)) {
        ending->outcome = PROTOCOL_THREW;
        ending->message = "SyntaxError: the script holds a NUL character";
        return NULL;
    }
    if (realm_compile(&worker->realms, realm, name, source, &ending->thrown)) {
        ending->uncompiled = false;
        return realm;
    }
    if (!ended_by_watch(worker, ending))
        ending->outcome = PROTOCOL_THREW;
    return NULL;
}

/* Back and forth until nothing is under way. */
static bool run_through(struct worker *worker, struct realm *realm, struct ending *ending)
{
    struct worker_run *run = &worker->run;

    while (run->operation_count || run->answer_count) {
        JSValueRef count;

        if (run->operation_count && !worker_exchange(worker)) {
            ending->outcome = PROTOCOL_TIMED_OUT;
            return false;
        }
        count = JSValueMakeNumber(realm->context, run->answer_count);
        if (!enter(worker, realm, realm->step, &count, 1, ending))
            return false;
    }
    return true;
}

static void run_script(struct worker *worker, struct protocol_reader *reader, uint8_t kind,
                       struct realm **ret_realm, struct ending *ending)
{
    struct slice key = protocol_get_text(reader), name = protocol_get_text(reader),
                 source = protocol_get_text(reader), texts[8];
    struct realm *realm;
    JSContextRef context;
    JSValueRef arguments[10], parts;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        texts[i] = protocol_get_text(reader);
    if (!protocol_whole(reader))
        _exit(1);
    realm = realm_ready(worker, false, key, name, source, ret_realm, ending);
    if (!realm)
        return;
    context = realm->context;
    arguments[0] = realm->script;
    arguments[1] = JSValueMakeNumber(context, kind);
    arguments[2] = engine_json(context, texts[0].len ? texts[0] : SLICE_NONE);
    if (!JSValueIsArray(context, arguments[2]))
        arguments[2] = JSObjectMakeArray(context, 0, NULL, NULL);
    for (size_t i = 1; i <= 3; i++)
        arguments[2 + i] = engine_text(context, texts[i]);
    for (size_t i = 4; i <= 7; i++)
        arguments[2 + i] = engine_json(context, texts[i]);
    if (!enter(worker, realm, realm->begin, arguments, ARRAY_LEN(arguments), ending) ||
        !run_through(worker, realm, ending))
        return;
    parts = enter(worker, realm, realm->end, NULL, 0, ending);
    for (unsigned i = 0; parts && i < ARRAY_LEN(ending->parts); i++)
        ending->parts[i] = engine_element(context, parts, i);
}

/* --- Functions of queries -------------------------------------------------------------------- */

static void run_calls(struct worker *worker, struct protocol_reader *reader,
                      struct realm **ret_realm, struct ending *ending)
{
    struct slice key = protocol_get_text(reader), name = protocol_get_text(reader),
                 source = protocol_get_text(reader), rows = protocol_get_text(reader);
    struct realm *realm;
    JSValueRef arguments[2];

    if (!protocol_whole(reader))
        _exit(1);
    realm = realm_ready(worker, true, key, name, source, ret_realm, ending);
    if (!realm)
        return;
    arguments[0] = realm->script;
    arguments[1] = engine_json(realm->context, rows);
    ending->parts[0] = enter(worker, realm, realm->calls, arguments, 2, ending);
}

/* --- Replies --------------------------------------------------------------------------------- */

/* A text of the reply, of at most max bytes; longer ones are cut where `cut`, else refused. */
static bool put_part(JSContextRef context, JSValueRef value, size_t max, struct buf *reply)
{
    size_t begin = reply->len;

    if (!value || !context || !JSValueIsString(context, value)) {
        protocol_put_text(reply, SLICE_NONE);
        return true;
    }
    protocol_put_number(reply, 0);
    if (!engine_append(context, value, max, reply))
        return false;
    protocol_set_length(reply, begin);
    return true;
}

/* Number, message and stack of what was thrown. What explains it runs in the realm of the script
 * and may itself be interrupted, or be too long; then there is less to say. */
static void put_thrown(struct worker *worker, struct realm *realm, const struct ending *ending)
{
    struct buf *reply = &worker->reply;
    JSValueRef parts = NULL, thrown = ending->thrown, unused;
    JSContextRef context = realm ? realm->context : NULL;
    size_t begin = reply->len;

    if (thrown && context)
        parts = engine_call(&worker->engine, context, realm->explain, &thrown, 1, &unused);
    if (parts) {
        double number = JSValueToNumber(context, engine_element(context, parts, 0), NULL);

        protocol_put_number(reply, (uint32_t)(int32_t)number);
        if (put_part(context, engine_element(context, parts, 1), PROTOCOL_MESSAGE_MAX, reply) &&
            put_part(context, engine_element(context, parts, 2), PROTOCOL_MESSAGE_MAX, reply))
            return;
        reply->len = begin;
    }
    protocol_put_number(reply, 0);
    protocol_put_text(reply, ending->message ? slice_of_text(ending->message)
                             : thrown        ? SLICE("Error: the message is too long to be shown")
                                             : SLICE_NONE);
    protocol_put_text(reply, SLICE_NONE);
}

static bool put_parts(struct worker *worker, struct realm *realm, const struct ending *ending)
{
    struct buf *reply = &worker->reply;
    bool fits = true;

    for (size_t i = 0; fits && i < ARRAY_LEN(ending->parts); i++)
        fits = put_part(realm ? realm->context : NULL, ending->parts[i], worker->run.output_max,
                        reply);
    return fits;
}

/* A priority cannot be raised again, so one that has given way is as spent as one grown large. */
static bool is_spent(const struct worker *worker)
{
    return worker->engine.gave_way ||
           sandbox_memory_used() > worker->memory_max / 2 + worker->memory_max / 4;
}

static bool reply_send(struct worker *worker, struct realm *realm, struct ending *ending)
{
    struct worker_run *run = &worker->run;
    struct buf *reply = &worker->reply;
    size_t outcome_at = PROTOCOL_HEADER + 1, parts_at;
    uint8_t flags = (uint8_t)((run->log_cut ? PROTOCOL_LOG_CUT : 0) |
                              (ending->uncompiled ? PROTOCOL_UNCOMPILED : 0) |
                              (is_spent(worker) ? PROTOCOL_RETIRE : 0));

    buf_clear(reply);
    protocol_begin(reply, PROTOCOL_DONE);
    protocol_put_byte(reply, (uint8_t)ending->outcome);
    protocol_put_byte(reply, flags);
    put_thrown(worker, realm, ending);
    parts_at = reply->len;
    if (!put_parts(worker, realm, ending)) {
        reply->len = parts_at;
        reply->data[outcome_at] = PROTOCOL_OUTPUT_LIMIT;
        for (size_t i = 0; i < ARRAY_LEN(ending->parts); i++)
            protocol_put_text(reply, SLICE_NONE);
    }
    protocol_put_text(reply, run->log.len ? buf_slice(&run->log) : SLICE_NONE);
    protocol_end(reply, 0);
    return channel_write(worker->descriptor, buf_slice(reply));
}

/* --- Requests -------------------------------------------------------------------------------- */

static void run_reset(struct worker *worker)
{
    struct worker_run *run = &worker->run;

    run->logging = run->log_cut = false;
    run->accepting = true;
    run->operation_count = run->answer_count = 0;
    run->answers_read = 0;
    buf_clear(&run->operations);
    buf_clear(&run->answers);
    buf_clear(&run->log);
}

/* One request. False: the worker has served its time. */
static bool request_serve(struct worker *worker)
{
    struct worker_run *run = &worker->run;
    struct protocol_reader reader;
    struct ending ending = {.outcome = PROTOCOL_FINE};
    struct realm *realm = NULL;
    uint8_t type = protocol_open(&reader, channel_frame(&worker->frame)), kind = 0;
    int64_t now = clock_monotonic_ms();
    JSValueRef clean, unused;

    run_reset(worker);
    if (type == PROTOCOL_RUN) {
        kind = protocol_get_byte(&reader);
        run->logging = protocol_get_byte(&reader) & PROTOCOL_LOGGING;
    }
    engine_watch(&worker->engine, now + protocol_get_number(&reader));
    if (type == PROTOCOL_RUN)
        run->accept_until_ms = now + protocol_get_number(&reader);
    run->output_max = protocol_get_number(&reader);
    if (type == PROTOCOL_RUN) {
        run->log_max = protocol_get_number(&reader);
        run_script(worker, &reader, kind, &realm, &ending);
    } else if (type == PROTOCOL_CALLS) {
        run_calls(worker, &reader, &realm, &ending);
    } else {
        return false;
    }
    if (!reply_send(worker, realm, &ending) || worker->engine.end != ENGINE_RUNNING)
        return false;

    /* From here on nobody waits. */
    if (realm) {
        clean = engine_call(&worker->engine, realm->context, realm->close, NULL, 0, &unused);
        if (!realm->script || !clean || !JSValueToBoolean(realm->context, clean))
            realms_drop(&worker->realms, realm);
    }
    realms_prepare(&worker->realms);
    return worker->engine.end == ENGINE_RUNNING;
}

bool worker_warm_up(struct worker *worker)
{
    struct slice source = SLICE("async function () { let all = []; for (let i = 0; i < 9000; i++)"
                                " all.push({i}); await 1; return JSON.parse(JSON.stringify(all))"
                                ".map(x => `${x.i}`.replace(/1/g, 'x')).sort().length; } ");
    CLEANUP(buf_done) struct buf text;
    struct ending ending = {.outcome = PROTOCOL_FINE};
    struct realm *realm;
    JSValueRef unused;
    bool fine;

    buf_init(&text, 4096); /* texts are given a NUL for a moment, so they are not literals */
    buf_append_slice(&text, source);
    source = slice_first(buf_slice(&text), text.len - 1);
    engine_watch(&worker->engine, clock_monotonic_ms() + 10000);
    fine = realm_ready(worker, false, SLICE("warm-up"), slice_first(source, 0), source, &realm,
                       &ending) &&
           engine_call(&worker->engine, realm->context, realm->script, NULL, 0, &unused);
    if (realm)
        realms_drop(&worker->realms, realm);
    realms_prepare(&worker->realms);
    return fine && worker->realms.blank;
}

void worker_serve(struct worker *worker, unsigned hidden)
{
    protocol_begin(&worker->reply, PROTOCOL_READY);
    protocol_put_number(&worker->reply, PROTOCOL_VERSION);
    protocol_put_number(&worker->reply, hidden);
    protocol_end(&worker->reply, 0);
    if (!channel_write(worker->descriptor, buf_slice(&worker->reply)))
        return;
    while (channel_read(worker->descriptor, true, &worker->frame)) {
        if (!request_serve(worker))
            return;
    }
}
