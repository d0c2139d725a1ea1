/* Throughput as clients ask for it in headers, when they make a database, container or table. */
#pragma once

#include "definition/offer.h"

/* The values of the headers; data NULL: it is not there. */
struct front_throughput {
    struct slice ru;        /* x-ms-offer-throughput */
    struct slice autoscale; /* x-ms-cosmos-offer-autopilot-settings */
    struct slice type;      /* x-ms-offer-type */
    bool ru_per_minute;     /* x-ms-offer-is-ru-per-minute-throughput-enabled */
};

/* ERROR_BAD_REQUEST: a header that is no such number or object. */
NODISCARD bool front_throughput_read(const struct front_throughput *asked,
                                     struct offer_request *ret_request, struct error *err);
