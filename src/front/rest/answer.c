#include "front/rest/answer.h"

#include "base/clock.h"
#include "document/json.h"
#include "front/fault.h"
#include "front/rest/cors.h"
#include "throughput/cost.h"

static const char version_lines[] = "Content-Type: application/json\r\n"
                                    "x-ms-serviceversion: version=2.14.0.0\r\n"
                                    "x-ms-gatewayversion: version=2.14.0\r\n"
                                    "x-ms-schemaversion: 1.18\r\n";

/* --- The activity id ------------------------------------------------------------------------- */

static bool is_guid(struct slice text)
{
    if (text.len != RANDOM_UUID_SIZE - 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');

        if (dash ? c != '-' : !hex)
            return false;
    }
    return true;
}

void rest_answer_activity(struct rest_call *call, uint64_t secret, uint64_t number)
{
    struct slice sent = rest_call_header(call, REST_HEADER_ACTIVITY_ID);
    struct random sequence;
    uint64_t words[2];

    if (is_guid(sent)) {
        memcpy(call->activity_id, sent.data, sent.len);
        call->activity_id[sent.len] = '\0';
    } else {
        random_seed(&sequence, secret + number);
        words[0] = random_next(&sequence);
        words[1] = random_next(&sequence);
        random_uuid_of((const uint8_t *)words, call->activity_id);
    }
}

/* --- Header lines ---------------------------------------------------------------------------- */

void rest_answer_header(struct rest_call *call, struct slice name, struct slice value)
{
    size_t at;

    buf_append_slice(&call->lines, name);
    BUF_APPEND(&call->lines, ": ");
    at = call->lines.len;
    buf_append_slice(&call->lines, value);
    for (; at < call->lines.len; at++)
        if (call->lines.data[at] < 0x20 || call->lines.data[at] == 0x7F)
            call->lines.data[at] = ' ';
    BUF_APPEND(&call->lines, "\r\n");
}

void rest_answer_header_int(struct rest_call *call, struct slice name, int64_t value)
{
    buf_append_slice(&call->lines, name);
    BUF_APPEND(&call->lines, ": ");
    buf_append_int64(&call->lines, value);
    BUF_APPEND(&call->lines, "\r\n");
}

void rest_answer_etag(struct rest_call *call, struct slice etag)
{
    rest_answer_header(call, SLICE("etag"), etag);
}

static void common_lines(struct rest_call *call)
{
    struct slice correlated = rest_call_header(call, REST_HEADER_CORRELATED_ACTIVITY_ID);
    uint64_t spent_us = (clock_monotonic_ns() - call->http->started_ns) / 1000;
    char charge[COST_TEXT_SIZE];

    cost_text(call->charge_cru, charge);
    buf_append(&call->lines, version_lines, sizeof version_lines - 1);
    BUF_APPEND(&call->lines, "x-ms-activity-id: ");
    buf_append(&call->lines, call->activity_id, RANDOM_UUID_SIZE - 1);
    BUF_APPEND(&call->lines, "\r\nx-ms-request-charge: ");
    buf_append_text(&call->lines, charge);
    BUF_APPEND(&call->lines, "\r\nx-ms-request-duration-ms: ");
    buf_append_uint64(&call->lines, spent_us / 1000);
    buf_append_byte(&call->lines, '.');
    buf_append_byte(&call->lines, (uint8_t)('0' + spent_us % 1000 / 100));
    buf_append_byte(&call->lines, (uint8_t)('0' + spent_us % 100 / 10));
    buf_append_byte(&call->lines, (uint8_t)('0' + spent_us % 10));
    BUF_APPEND(&call->lines, "\r\n");
    BUF_APPEND(&call->lines, "x-ms-last-state-change-utc: ");
    buf_append_text(&call->lines, call->since);
    BUF_APPEND(&call->lines, "\r\n");
    if (correlated.data)
        rest_answer_header(call, SLICE("x-ms-cosmos-correlated-activityid"), correlated);
}

void rest_answer_send(struct rest_call *call)
{
    struct net_http_response response = {.body_kind = NET_HTTP_BODY_OWNED};
    CLEANUP(buf_done) struct buf lines = {0};
    CLEANUP(buf_done) struct buf body = {0};

    common_lines(call);
    rest_cors_answer(call);
    lines = call->lines; /* answering ends the request, and with it the arena the call is in */
    body = call->body;
    response.status = call->status;
    response.lines = buf_slice(&lines);
    if (body.len)
        response.body.data = buf_take(&body, &response.body.len);
    else
        response.body_kind = NET_HTTP_BODY_COPIED;
    net_http_respond(call->http, &response);
}

/* --- Errors ---------------------------------------------------------------------------------- */

const char *rest_answer_code(uint16_t status)
{
    switch (status) {
    case 400:
        return "BadRequest";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "NotFound";
    case 405:
        return "MethodNotAllowed";
    case 408:
        return "RequestTimeout";
    case 409:
        return "Conflict";
    case 410:
        return "Gone";
    case 412:
        return "PreconditionFailed";
    case 413:
        return "RequestEntityTooLarge";
    case 421:
        return "MisdirectedRequest";
    case 423:
        return "Locked";
    case 424:
        return "FailedDependency";
    case 429:
        return "TooManyRequests";
    case 449:
        return "RetryWith";
    case 501:
        return "NotImplemented";
    case 503:
        return "ServiceUnavailable";
    case 507:
        return "InsufficientStorage";
    default:
        return "InternalServerError";
    }
}

/* The service's own words, which programs look for, before ours. */
static const char *service_text(enum error_code code)
{
    switch (code) {
    case ERROR_ITEM_MISSING:
    case ERROR_NOT_FOUND:
        return "Entity with the specified id does not exist in the system.";
    case ERROR_ITEM_EXISTS:
    case ERROR_NAME_TAKEN:
        return "Entity with the specified id already exists in the system.";
    case ERROR_UNIQUE_KEY:
        return "Unique index constraint violation.";
    case ERROR_OWNER_NOT_FOUND:
        return "Owner resource does not exist.";
    case ERROR_PRECONDITION_FAILED:
        return "One of the specified pre-condition is not met.";
    case ERROR_TOO_MANY_REQUESTS:
    case ERROR_METADATA_THROTTLED:
    case ERROR_BUCKET_THROTTLED:
    case ERROR_KEY_THROTTLED:
        return "Request rate is large. More Request Units may be needed, so no changes were made.";
    case ERROR_TOO_LARGE:
        return "Request size is too large.";
    case ERROR_BAD_JSON:
        return "The request payload is invalid. Ensure to provide a valid request payload.";
    default:
        return NULL;
    }
}

/* What is said twice is said once: of two texts that begin alike the longer one, in the service's
 * letters; others stand one after the other. */
static struct slice texts_join(struct slice service, struct slice own, struct arena *arena)
{
    struct slice sentence = slice_first(service, service.len - 1); /* without its full stop */
    size_t shorter = MIN(sentence.len, own.len);

    if (!slice_equal_nocase(slice_first(sentence, shorter), slice_first(own, shorter)))
        return arena_printf(arena, "%.*s %.*s", SLICE_ARG(service), SLICE_ARG(own));
    if (own.len <= sentence.len)
        return service;
    return arena_printf(arena, "%.*s%.*s", SLICE_ARG(sentence),
                        SLICE_ARG(slice_skip(own, sentence.len)));
}

static void error_body(struct rest_call *call, const struct error *err)
{
    const char *service = service_text(err->code);
    struct slice own = call->message.data
                           ? call->message
                           : front_fault_tell(call->services, err, call->activity_id, call->arena);
    struct slice text =
        call->message.data || !service ? own : texts_join(slice_of_text(service), own, call->arena);
    struct slice message =
        arena_printf(call->arena, "%.*s\r\nActivityId: %s, orrery/" ORRERY_VERSION, SLICE_ARG(text),
                     call->activity_id);

    buf_clear(&call->body);
    BUF_APPEND(&call->body, "{\"code\":\"");
    buf_append_text(&call->body, rest_answer_code(err->status));
    BUF_APPEND(&call->body, "\",\"message\":");
    document_json_write_string(message, &call->body);
    if (call->error_info.data) {
        BUF_APPEND(&call->body, ",\"additionalErrorInfo\":");
        document_json_write_string(call->error_info, &call->body);
    }
    BUF_APPEND(&call->body, "}");
}

void rest_answer_send_error(struct rest_call *call, const struct error *err)
{
    call->status = err->status;
    if (err->substatus)
        rest_answer_header_int(call, SLICE("x-ms-substatus"), err->substatus);
    if (err->status == 429)
        rest_answer_header_int(call, SLICE("x-ms-retry-after-ms"), MAX(call->wait_ms, (int64_t)1));
    error_body(call, err);
    rest_answer_send(call);
}

static struct slice too_large_body(struct arena *arena, const char *reason)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, 1024);
    buf_printf(&body, "{\"code\":\"%s\",\"message\":", rest_answer_code(413));
    document_json_write_string(arena_printf(arena, REST_TOO_LARGE_TEXT "\r\n%s", reason), &body);
    BUF_APPEND(&body, "}");
    return arena_copy(arena, buf_slice(&body));
}

struct net_http_response rest_refusal(struct arena *arena, uint16_t status, const char *reason)
{
    return (struct net_http_response){.lines = SLICE("Content-Type: application/json\r\n"),
                                      .body = status == 413
                                                  ? too_large_body(arena, reason)
                                                  : net_http_error_body(arena, status, reason)};
}
