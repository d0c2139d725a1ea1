#include "front/rest/metadata/metadata_query.h"

#include "document/json.h"
#include "front/fan_out.h"
#include "front/rest/continuation.h"
#include "front/rest/metadata/metadata.h"
#include "front/rest/query/query.h"
#include "front/rest/sql/documents.h"
#include "throughput/cost.h"

enum {
    DEADLINE_MS = 30000,
    /* Some hundred milliseconds: metadata are few, and nothing holds back who asks for them. */
    WORK_MAX = 20 * 1000 * 1000,
};

static const struct slice purpose = {(const uint8_t *)"metadata query 1", 16};

static void rows_answer(struct rest_call *call, const struct sql_rows *rows, struct slice owner,
                        struct slice name)
{
    BUF_APPEND(&call->body, "{\"_rid\":");
    document_json_write_string(owner, &call->body);
    BUF_APPEND(&call->body, ",");
    document_json_write_string(name, &call->body);
    BUF_APPEND(&call->body, ":[");
    for (size_t i = 0; i < rows->count; i++) {
        if (i)
            buf_append_byte(&call->body, ',');
        document_json_write_value(&rows->values[i], &call->body);
    }
    buf_printf(&call->body, "],\"_count\":%zu}", rows->count);
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)rows->count);
    call->status = 200;
}

bool rest_metadata_query(struct rest_call *call, const struct slice *documents, size_t count,
                         struct slice owner, struct slice name, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_CONTINUATION), at = SLICE_NONE, body,
                 next;
    struct query_page_limits limits = {
        .bytes_max = REST_PAGE_BYTES_MAX,
        .row_bytes_max = REST_PAGE_BYTES_MAX,
        .deadline_ms = clock_read_monotonic_ms(call->services->clock) + DEADLINE_MS,
        .work_max = WORK_MAX,
        .cancelled = call->cancelled,
        .breath = front_breath(call->services->workers),
        .memory = net_owner_memory(call->owner)};
    struct sql_error fault = {0};
    struct sql_rows rows = {0};
    size_t size;
    bool asked, done;

    if (!rest_page_size(call, &size, &asked, err) || !rest_call_body(call, &body, err) ||
        (text.len && !rest_continuation_open(call, owner, purpose, text, &at, err)) ||
        !rest_query_text_hold(call, body.len, err))
        return false;
    limits.rows_max = size;
    done = sql_query_documents(body, documents, count, &limits, at, call->arena, &rows, &next,
                               &fault, err);
    call->charge_cru = cost_add(call->charge_cru, cost_work(rows.work));
    if (!done) {
        rest_query_fault(call, &fault);
        return false;
    }
    if (next.len)
        rest_continuation_answer(call, rest_continuation_seal(call, owner, purpose, next));
    rows_answer(call, &rows, owner, name);
    return !buf_overflowed(&call->body) ||
           error_set(err, ERROR_TOO_LARGE, "a row of the query is larger than an answer may be");
}
