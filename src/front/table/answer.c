#include "front/table/answer.h"

#include "base/clock.h"
#include "document/json.h"
#include "front/fault.h"
#include "front/table/edm.h"
#include "front/table/xml.h"
#include "throughput/cost.h"

static const struct table_code codes[] = {
#define TABLE_CODE(code, status, words) {code, status, words},
#include "front/table/codes.def"
#undef TABLE_CODE
};

const struct table_code *table_code_of(enum error_code code)
{
    const char *name = error_face(code)->table_code;

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (strcmp(codes[i].code, name) == 0)
            return &codes[i];
    assert(!"every row of errors.def names a row of codes.def");
    return &codes[0];
}

const char *table_content_type(enum table_level level)
{
    static const char *const types[] = {
        "application/json;odata=nometadata;streaming=true;charset=utf-8",
        "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
        "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
    };

    return types[level];
}

static void type_line(struct table_call *call)
{
    if (call->body.len == 0 || call->format == TABLE_FORMAT_OTHER)
        return;
    BUF_APPEND(&call->lines, "Content-Type: ");
    buf_append_text(&call->lines, call->format == TABLE_FORMAT_XML
                                      ? "application/xml"
                                      : table_content_type(call->level));
    BUF_APPEND(&call->lines, "\r\n");
}

static void common_lines(struct table_call *call)
{
    struct slice version = table_call_header(call, SLICE("x-ms-version"));
    struct slice client = table_call_header(call, SLICE("x-ms-client-request-id"));
    char charge[COST_TEXT_SIZE];

    type_line(call);
    cost_text(call->charge_cru, charge);
    BUF_APPEND(&call->lines, "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n"
                             "x-ms-request-id: ");
    buf_append(&call->lines, call->request_id, RANDOM_UUID_SIZE - 1);
    BUF_APPEND(&call->lines, "\r\nx-ms-request-charge: ");
    buf_append_text(&call->lines, charge);
    BUF_APPEND(&call->lines, "\r\n");
    table_answer_header(call, SLICE("x-ms-version"), version.len ? version : SLICE("2019-02-02"));
    if (client.len)
        table_answer_header(call, SLICE("x-ms-client-request-id"), client);
}

static struct table_call *table_of(struct front_call *call)
{
    return CONTAINER_OF(call, struct table_call, front);
}

void table_answer_send(struct front_call *front)
{
    common_lines(table_of(front));
    front_http_send(&table_of(front)->over_http);
}

/* --- Errors ---------------------------------------------------------------------------------- */

/* Our own words say more than the service's where the request was wrong or cannot be served. */
static bool words_help(const struct table_code *code)
{
    return code->status == 400 || code->status == 403 || code->status == 405 ||
           code->status == 421 || code->status == 501 || code->status >= 500;
}

static struct slice error_text(struct table_call *call, const struct error *err, int index)
{
    const struct table_code *code = table_code_of(err->code);
    char time[EDM_DATE_LEN];
    struct slice prefix = index >= 0 ? arena_printf(call->arena, "%d:", index) : SLICE("");
    bool own = words_help(code) && err->message[0];
    struct slice message =
        own ? front_fault_tell(call->services, err, call->request_id, call->arena) : SLICE("");

    edm_date_write_full(edm_ticks_of_ms(clock_read_wall_ms(call->services->clock)), time);
    return arena_printf(call->arena, "%.*s%s%s%.*s\nRequestId:%s\nTime:%.*s", SLICE_ARG(prefix),
                        code->words, own ? " " : "", SLICE_ARG(message), call->request_id,
                        EDM_DATE_LEN, time);
}

void table_error_append(struct table_call *call, const struct error *err, int index,
                        struct buf *out)
{
    BUF_APPEND(out, "{\"odata.error\":{\"code\":\"");
    buf_append_text(out, table_code_of(err->code)->code);
    BUF_APPEND(out, "\",\"message\":{\"lang\":\"en-US\",\"value\":");
    document_json_write_string(error_text(call, err, index), out);
    BUF_APPEND(out, "}}}");
}

/* Read before the path is known, so that XML cannot be chosen; clients read the header first. */
struct net_http_response table_refusal(struct arena *arena, uint16_t status, const char *reason)
{
    const struct table_code *code = table_code_of(status == 413   ? ERROR_TABLE_BODY_TOO_LARGE
                                                  : status >= 500 ? ERROR_BUSY
                                                                  : ERROR_BAD_REQUEST);

    return (struct net_http_response){
        .lines = arena_printf(arena, "Content-Type: %s\r\nx-ms-error-code: %s\r\n",
                              table_content_type(TABLE_LEVEL_MINIMAL), code->code),
        .body = arena_printf(arena,
                             "{\"odata.error\":{\"code\":\"%s\",\"message\":{\"lang\":\"en-US\","
                             "\"value\":\"%s %s\"}}}",
                             code->code, code->words, reason)};
}

static bool speaks_xml(const struct table_call *call)
{
    enum table_resource resource = call->route.resource;

    return resource == TABLE_PROPERTIES || resource == TABLE_STATS || resource == TABLE_ACCESS ||
           resource == TABLE_SERVICE;
}

static void xml_error_append(struct table_call *call, const struct error *err)
{
    BUF_APPEND(&call->body, XML_HEAD "<Error><Code>");
    buf_append_text(&call->body, table_code_of(err->code)->code);
    BUF_APPEND(&call->body, "</Code><Message>");
    xml_append_text(&call->body, error_text(call, err, -1));
    BUF_APPEND(&call->body, "</Message></Error>");
}

void table_answer_refuse(struct front_call *front, const struct error *err)
{
    const struct table_code *code = table_code_of(err->code);
    struct table_call *call = table_of(front);

    call->status = code->status;
    buf_clear(&call->body);
    buf_clear(&call->lines);
    table_answer_header(call, SLICE("x-ms-error-code"), slice_of_text(code->code));
    if (code->status == 429) {
        int64_t wait_ms = MAX(call->wait_ms, (int64_t)1);

        front_http_header_int(&call->over_http, SLICE("x-ms-retry-after-ms"), wait_ms);
        front_http_header_int(&call->over_http, SLICE("Retry-After"), (wait_ms + 999) / 1000);
    }
    if (speaks_xml(call)) {
        call->format = TABLE_FORMAT_XML;
        xml_error_append(call, err);
    } else {
        call->format = TABLE_FORMAT_JSON;
        call->level = TABLE_LEVEL_MINIMAL;
        table_error_append(call, err, -1, &call->body);
    }
    table_answer_send(front);
}
