#include "front/rest/metadata/throughput.h"

#include "front/throughput.h"

bool rest_throughput_request(const struct rest_call *call, struct offer_request *ret_request,
                             struct error *err)
{
    const struct front_throughput asked = {
        .ru = rest_call_header(call, REST_HEADER_OFFER_THROUGHPUT),
        .autoscale = rest_call_header(call, REST_HEADER_OFFER_AUTOPILOT),
        .type = rest_call_header(call, REST_HEADER_OFFER_TYPE),
        .ru_per_minute = rest_headers_true(&call->headers, REST_HEADER_OFFER_RU_PER_MINUTE),
    };

    return front_throughput_read(&asked, ret_request, err);
}
