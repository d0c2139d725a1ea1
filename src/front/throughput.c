#include "front/throughput.h"

#include "document/json.h"

static bool number_of(struct slice text, int64_t *ret_number)
{
    bool negative = text.len && text.data[0] == '-';
    uint64_t number;

    if (!slice_to_uint64(negative ? slice_skip(text, 1) : text, &number) || number > INT64_MAX)
        return false;
    *ret_number = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static bool autoscale_read(struct slice text, struct offer_request *request, struct error *err)
{
    CLEANUP(buf_done) struct buf document;
    struct document_value maximum, policy, throughput, increment;
    int64_t percent;

    buf_init(&document, 64 * 1024);
    if (!document_json_read(text, NULL, &document, err))
        return error_prefix(err, "x-ms-cosmos-offer-autopilot-settings");
    if (!document_find(buf_slice(&document), SLICE("maxThroughput"), &maximum) ||
        !document_to_int64(&maximum, &request->autoscale_max))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-cosmos-offer-autopilot-settings has no whole number maxThroughput");
    if (document_find(buf_slice(&document), SLICE("autoUpgradePolicy"), &policy) &&
        policy.type == DOCUMENT_OBJECT &&
        document_find(policy.document, SLICE("throughputPolicy"), &throughput) &&
        throughput.type == DOCUMENT_OBJECT &&
        document_find(throughput.document, SLICE("incrementPercent"), &increment)) {
        if (!document_to_int64(&increment, &percent) || percent < 0 || percent > 100)
            return error_set(err, ERROR_BAD_REQUEST, "incrementPercent must be 0 to 100");
        request->increment_given = true;
        request->increment_percent = (uint32_t)percent;
    }
    request->autoscale_given = true;
    return true;
}

static bool tier_read(struct slice text, struct offer_request *request, struct error *err)
{
    if (slice_equal_nocase(text, SLICE("Invalid")))
        return true; /* user-defined throughput */
    if (text.len != 2 || (text.data[0] | 0x20) != 's' || text.data[1] < '1' || text.data[1] > '3')
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-offer-type must be S1, S2 or S3, or Invalid for throughput of one's "
                         "own choice");
    request->given = true;
    request->tier = (uint8_t)(text.data[1] - '0');
    return true;
}

bool front_throughput_read(const struct front_throughput *asked, struct offer_request *ret_request,
                           struct error *err)
{
    struct offer_request request = {.ru_per_minute = asked->ru_per_minute};

    if (asked->ru.data) {
        if (!number_of(asked->ru, &request.ru))
            return error_set(err, ERROR_BAD_REQUEST, "x-ms-offer-throughput is not a whole number");
        request.given = true;
    }
    if (asked->type.data && !tier_read(asked->type, &request, err))
        return false;
    if (asked->autoscale.data && !autoscale_read(asked->autoscale, &request, err))
        return false;
    *ret_request = request;
    return true;
}
