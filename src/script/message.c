#include "script/message.h"

#include "base/bytes.h"
#include "document/json.h"

static_assert((int)SCRIPT_OPERATIONS_MAX == (int)PROTOCOL_OPERATIONS_MAX, "one batch, one frame");

enum {
    ANSWERS_BYTES = 1024 * 1024, /* a frame of answers that has grown to this is sent off */
    OPERATION_LEAST = 26,        /* bytes of the shortest operation */
};

/* --- Writing --------------------------------------------------------------------------------- */

static bool frame_end(struct buf *buf, size_t begin)
{
    if (buf_overflowed(buf) || buf->len - begin > PROTOCOL_TO_WORKER_MAX) {
        buf->len = begin;
        buf->overflowed = false;
        return false;
    }
    protocol_end(buf, begin);
    return true;
}

/* {"name":value,...} as a text. */
static void put_values(struct buf *buf, const struct script_value *values, size_t count)
{
    size_t begin = buf->len;

    protocol_put_number(buf, 0);
    BUF_APPEND(buf, "{");
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(buf, ",");
        document_json_write_string(values[i].name, buf);
        BUF_APPEND(buf, ":");
        buf_append_slice(buf, values[i].json);
    }
    BUF_APPEND(buf, "}");
    protocol_set_length(buf, begin);
}

bool message_put_run(struct buf *buf, const struct script_request *request,
                     const struct message_run_limits *limits)
{
    size_t begin = protocol_begin(buf, PROTOCOL_RUN);

    protocol_put_byte(buf, (uint8_t)request->kind);
    protocol_put_byte(buf, request->logging ? PROTOCOL_LOGGING : 0);
    protocol_put_number(buf, limits->time_ms);
    protocol_put_number(buf, limits->accept_ms);
    protocol_put_number(buf, limits->output_max);
    protocol_put_number(buf, limits->log_max);
    protocol_put_text(buf, request->key);
    protocol_put_text(buf, request->name);
    protocol_put_text(buf, request->source);
    protocol_put_text(buf, request->arguments);
    protocol_put_text(buf, request->self_link);
    protocol_put_text(buf, request->alt_link);
    protocol_put_text(buf, request->operation);
    protocol_put_text(buf, request->request_body);
    protocol_put_text(buf, request->response_body);
    put_values(buf, request->request_values, request->request_value_count);
    put_values(buf, request->response_values, request->response_value_count);
    return frame_end(buf, begin);
}

/* A type JSON lacks arrives as its extended JSON; undefined as null, with its bit in the mask. */
static void put_row(struct buf *buf, const struct document_value *values, size_t width)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < width; i++)
        mask |= values[i].type == DOCUMENT_UNDEFINED ? 1u << i : 0;
    BUF_APPEND(buf, "[");
    buf_append_uint64(buf, mask);
    for (size_t i = 0; i < width; i++) {
        BUF_APPEND(buf, ",");
        if (values[i].type == DOCUMENT_UNDEFINED)
            BUF_APPEND(buf, "null");
        else
            document_json_write_value(&values[i], buf);
    }
    BUF_APPEND(buf, "]");
}

bool message_put_calls(struct buf *buf, const struct script_function *function,
                       const struct document_value *values, size_t width, size_t rows,
                       const struct message_run_limits *limits)
{
    size_t begin = protocol_begin(buf, PROTOCOL_CALLS), text;

    protocol_put_number(buf, limits->time_ms);
    protocol_put_number(buf, limits->output_max);
    protocol_put_text(buf, function->key);
    protocol_put_text(buf, function->name);
    protocol_put_text(buf, function->source);
    text = buf->len;
    protocol_put_number(buf, 0);
    for (size_t i = 0; i < rows; i++) {
        buf_append_byte(buf, i ? ',' : '[');
        put_row(buf, width ? values + i * width : NULL, width);
    }
    BUF_APPEND(buf, "]");
    protocol_set_length(buf, text);
    return frame_end(buf, begin);
}

size_t message_put_answers(struct buf *buf, const struct script_answer *answers, size_t count,
                           bool accepting)
{
    size_t begin = protocol_begin(buf, PROTOCOL_ANSWERS), count_at, put = 0;

    protocol_put_byte(buf, accepting);
    count_at = buf->len;
    protocol_put_number(buf, 0);
    for (; put < count; put++) {
        const struct script_answer *answer = &answers[put];
        size_t bytes = answer->body.len + answer->message.len;

        if (put && (buf->len - begin) + bytes > ANSWERS_BYTES)
            break;
        protocol_put_number(buf, answer->status);
        protocol_put_number(buf, answer->substatus);
        protocol_put_long(buf, (uint64_t)answer->charge_cru);
        protocol_put_text(buf, answer->message);
        protocol_put_text(buf, answer->body);
        protocol_put_text(buf, answer->etag);
        protocol_put_text(buf, answer->continuation.len ? answer->continuation : SLICE_NONE);
    }
    if (!frame_end(buf, begin))
        return 0;
    bytes_put_le32(buf->data + count_at, (uint32_t)put);
    return put;
}

/* --- Reading --------------------------------------------------------------------------------- */

/* A text that is UTF-8 and not longer than max. */
static struct slice get_text(struct protocol_reader *reader, size_t max)
{
    struct slice text = protocol_get_text(reader);

    if (text.len > max || (text.len && !protocol_is_text(text)))
        reader->broken = true;
    return text;
}

bool message_get_ready(struct slice frame, struct message_ready *ret_ready)
{
    struct protocol_reader reader;
    struct message_ready ready;

    if (protocol_open(&reader, frame) != PROTOCOL_READY)
        return false;
    ready.version = protocol_get_number(&reader);
    ready.hidden = protocol_get_number(&reader);
    if (!protocol_whole(&reader))
        return false;
    *ret_ready = ready;
    return true;
}

static bool needs_body(enum script_verb verb)
{
    return verb == SCRIPT_CREATE || verb == SCRIPT_REPLACE || verb == SCRIPT_UPSERT ||
           verb == SCRIPT_PATCH || verb == SCRIPT_QUERY;
}

static void get_operation(struct protocol_reader *reader, struct script_operation *operation)
{
    uint8_t verb = protocol_get_byte(reader), flags = protocol_get_byte(reader);
    int32_t page_size = (int32_t)protocol_get_number(reader);

    *operation = (struct script_operation){
        .verb = verb,
        .page_size = page_size,
        .id_given = flags & PROTOCOL_ID_GIVEN,
        .scan_enabled = flags & PROTOCOL_SCAN_ENABLED,
        .link = get_text(reader, PROTOCOL_TEXT_MAX),
        .body = get_text(reader, PROTOCOL_BODY_MAX),
        .etag = get_text(reader, PROTOCOL_TEXT_MAX),
        .continuation = get_text(reader, PROTOCOL_TEXT_MAX),
        .options = get_text(reader, PROTOCOL_TEXT_MAX),
    };
    if (verb >= SCRIPT_VERB_COUNT || flags & ~(PROTOCOL_ID_GIVEN | PROTOCOL_SCAN_ENABLED) ||
        page_size < -1 || !operation->link.len || !operation->body.data == needs_body(verb))
        reader->broken = true;
}

bool message_get_operations(struct slice frame, struct script_operation *ret_operations,
                            size_t *ret_count)
{
    struct protocol_reader reader;
    uint32_t count;

    if (protocol_open(&reader, frame) != PROTOCOL_OPERATIONS)
        return false;
    count = protocol_get_count(&reader, SCRIPT_OPERATIONS_MAX, OPERATION_LEAST);
    for (uint32_t i = 0; i < count && !reader.broken; i++)
        get_operation(&reader, &ret_operations[i]);
    if (!protocol_whole(&reader) || !count)
        return false;
    *ret_count = count;
    return true;
}

bool message_get_done(struct slice frame, struct message_done *ret_done)
{
    struct protocol_reader reader;
    struct message_done done;
    uint8_t outcome, flags;

    if (protocol_open(&reader, frame) != PROTOCOL_DONE)
        return false;
    outcome = protocol_get_byte(&reader);
    flags = protocol_get_byte(&reader);
    done = (struct message_done){
        .outcome = outcome,
        .log_cut = flags & PROTOCOL_LOG_CUT,
        .retire = flags & PROTOCOL_RETIRE,
        .uncompiled = flags & PROTOCOL_UNCOMPILED,
        .number = (int32_t)protocol_get_number(&reader),
        .message = get_text(&reader, PROTOCOL_MESSAGE_MAX),
        .stack = get_text(&reader, PROTOCOL_MESSAGE_MAX),
        .body = get_text(&reader, PROTOCOL_FROM_WORKER_MAX),
        .request_body = get_text(&reader, PROTOCOL_FROM_WORKER_MAX),
        .request_values = get_text(&reader, PROTOCOL_FROM_WORKER_MAX),
        .response_values = get_text(&reader, PROTOCOL_FROM_WORKER_MAX),
        .log = get_text(&reader, PROTOCOL_FROM_WORKER_MAX),
    };
    if (!protocol_whole(&reader) || outcome >= PROTOCOL_OUTCOME_COUNT)
        return false;
    *ret_done = done;
    return true;
}

/* JSON into BSON that lives in arena. */
static bool parse(struct slice json, struct arena *arena, struct document_value *ret_value,
                  struct error *err)
{
    CLEANUP(buf_done) struct buf bson;
    struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_DEFAULT + 2,
                                     .bytes_max = PROTOCOL_FROM_WORKER_MAX};
    struct document_value value;

    buf_init(&bson, PROTOCOL_FROM_WORKER_MAX + 1024ul);
    if (!document_json_read_value(json, &limits, &bson, &value, err))
        return false;
    /* The wrapping document is copied whole; the value is found in the copy again. */
    return document_find(arena_copy(arena, buf_slice(&bson)), SLICE(""), ret_value);
}

bool message_get_rows(struct slice json, size_t rows, struct arena *arena,
                      struct document_value *ret_values, struct error *err)
{
    struct document_value all;
    struct document_iter iter;
    size_t count = 0;

    if (!parse(json, arena, &all, err))
        return error_prefix(err, "what a user-defined function returned");
    if (all.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_SCRIPT_CRASHED, "a script worker did not answer with rows");
    document_iter_init(&iter, all.document);
    for (; document_iter_next(&iter) && count < rows; count++) {
        if (iter.value.type != DOCUMENT_ARRAY)
            break;
        if (!document_find_index(iter.value.document, 0, &ret_values[count]))
            ret_values[count] = document_undefined();
    }
    if (count != rows)
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "a script worker answered %zu rows where %zu were asked", count, rows);
    return true;
}

bool message_get_values(struct slice json, struct arena *arena,
                        const struct script_value **ret_values, size_t *ret_count,
                        struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value all;
    struct document_iter iter;
    struct script_value *values;
    size_t count;

    buf_init(&text, PROTOCOL_FROM_WORKER_MAX);
    if (!parse(json, arena, &all, err))
        return error_prefix(err, "values a script has set");
    count = all.type == DOCUMENT_OBJECT ? document_count(all.document) : 0;
    if (all.type != DOCUMENT_OBJECT || count > PROTOCOL_VALUES_MAX)
        return error_set(err, ERROR_SCRIPT_LIMIT, "a script has set more than %d values",
                         PROTOCOL_VALUES_MAX);
    values = ARENA_ARRAY(arena, struct script_value, count);
    document_iter_init(&iter, all.document);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++) {
        buf_clear(&text);
        document_json_write_value(&iter.value, &text);
        if (buf_overflowed(&text))
            return error_set(err, ERROR_SCRIPT_LIMIT, "a value a script has set is too large");
        values[i] =
            (struct script_value){.name = iter.key, .json = arena_copy(arena, buf_slice(&text))};
    }
    *ret_values = values;
    *ret_count = count;
    return true;
}
