/* Throughput as clients ask for it in headers, when they make a database or container. */
#pragma once

#include "definition/offer.h"
#include "front/rest/call.h"

/* ERROR_BAD_REQUEST: a header that is no such number or object. */
NODISCARD bool rest_throughput_request(const struct rest_call *call,
                                       struct offer_request *ret_request, struct error *err);
