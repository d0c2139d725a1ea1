#include "front/kit/gateway.h"

#include "document/json.h"
#include "front/fault.h"
#include "front/kit/cors.h"
#include "throughput/cost.h"

enum { LINES_USUAL = 1024 }; /* bytes of header lines in most answers */

static const char version_lines[] = "x-ms-serviceversion: version=2.14.0.0\r\n"
                                    "x-ms-gatewayversion: version=2.14.0\r\n"
                                    "x-ms-schemaversion: 1.18\r\n";

static struct front_gateway_call *gateway_of(struct front_call *call)
{
    return CONTAINER_OF(call, struct front_gateway_call, front);
}

/* --- Beginning ------------------------------------------------------------------------------- */

void front_gateway_init(struct front_gateway *gateway, const struct front_services *services,
                        const struct front_door *door, const struct front_call_kind *kind,
                        const char *cors_origins)
{
    front_http_init(&gateway->http, services, door, kind);
    gateway->cors_origins = cors_origins;
    clock_http_date(clock_read_wall_ms(services->clock), gateway->since);
}

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

void front_gateway_begin(struct front_gateway *gateway, struct front_gateway_call *call,
                         struct net_http_request *request, struct slice activity_id)
{
    front_http_begin(&gateway->http, &call->over_http, request, LINES_USUAL);
    call->gateway = gateway;
    if (is_guid(activity_id)) {
        memcpy(call->activity_id, activity_id.data, activity_id.len);
        call->activity_id[activity_id.len] = '\0';
    } else {
        front_http_id_make(&gateway->http, call->activity_id);
    }
}

/* The client's own words for where we are: whatever it reached us by must lead here again. */
struct slice front_gateway_endpoint(struct front_gateway_call *call, struct slice host,
                                    struct slice prefix)
{
    static const struct slice local = SLICE("localhost");
    struct slice name = host, port = SLICE_NONE;

    /* As the emulator does: some clients try ::1 first and do not come back from it. */
    if (call->door->dev && host.len >= local.len &&
        slice_equal_nocase(slice_first(host, local.len), local) &&
        (host.len == local.len || host.data[local.len] == ':')) {
        name = SLICE("127.0.0.1");
        port = slice_skip(host, local.len);
    }
    return arena_printf(call->arena, "%s://%.*s%.*s%.*s/", call->http->tls ? "https" : "http",
                        SLICE_ARG(name), SLICE_ARG(port), SLICE_ARG(prefix));
}

/* --- Answers --------------------------------------------------------------------------------- */

static void common_lines(struct front_gateway_call *call)
{
    uint64_t spent_us = (call->ended_ns - call->http->started_ns) / 1000;
    char charge[COST_TEXT_SIZE];

    cost_text(call->charge_cru, charge);
    if (call->is_bytes)
        BUF_APPEND(&call->lines, "Content-Type: application/octet-stream\r\n");
    else
        BUF_APPEND(&call->lines, "Content-Type: application/json\r\n");
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
    buf_append_text(&call->lines, call->gateway->since);
    BUF_APPEND(&call->lines, "\r\n");
    if (call->correlated.data)
        front_http_header(&call->over_http, SLICE("x-ms-cosmos-correlated-activityid"),
                          call->correlated);
}

void front_gateway_answer(struct front_call *front)
{
    struct front_gateway_call *call = gateway_of(front);

    common_lines(call);
    front_cors_answer(call);
    front_http_send(&call->over_http);
}

void front_gateway_describe(const struct front_gateway_call *call, struct observed_request *request)
{
    request->id = slice_of(call->activity_id, RANDOM_UUID_SIZE - 1);
    front_http_describe(&call->over_http, request);
}

/* --- Errors ---------------------------------------------------------------------------------- */

const char *front_gateway_code(uint16_t status)
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

static void error_body(struct front_gateway_call *call, const struct error *err)
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
    buf_append_text(&call->body, front_gateway_code(err->status));
    BUF_APPEND(&call->body, "\",\"message\":");
    document_json_write_string(message, &call->body);
    if (call->error_info.data) {
        BUF_APPEND(&call->body, ",\"additionalErrorInfo\":");
        document_json_write_string(call->error_info, &call->body);
    }
    BUF_APPEND(&call->body, "}");
}

void front_gateway_refuse(struct front_call *front, const struct error *err)
{
    struct front_gateway_call *call = gateway_of(front);

    call->status = err->status;
    call->is_bytes = false;
    if (err->substatus)
        front_http_header_int(&call->over_http, SLICE("x-ms-substatus"), err->substatus);
    if (err->status == 429 || (err->status == 503 && call->wait_ms))
        front_http_header_int(&call->over_http, SLICE("x-ms-retry-after-ms"),
                              MAX(call->wait_ms, (int64_t)1));
    error_body(call, err);
    front_gateway_answer(front);
}

static struct slice too_large_body(struct arena *arena, const char *reason)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, 1024);
    buf_printf(&body, "{\"code\":\"%s\",\"message\":", front_gateway_code(413));
    document_json_write_string(arena_printf(arena, FRONT_TOO_LARGE_TEXT "\r\n%s", reason), &body);
    BUF_APPEND(&body, "}");
    return arena_copy(arena, buf_slice(&body));
}

struct net_http_response front_gateway_refusal(struct arena *arena, uint16_t status,
                                               const char *reason)
{
    return (struct net_http_response){.lines = SLICE("Content-Type: application/json\r\n"),
                                      .body = status == 413
                                                  ? too_large_body(arena, reason)
                                                  : net_http_error_body(arena, status, reason)};
}
