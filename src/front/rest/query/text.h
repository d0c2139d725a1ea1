/* Text: a query as a request brings it, read, held on the meter and paid for. */
#pragma once

#include "front/rest/sql/documents.h"
#include "front/rest/target/items.h"
#include "item/metering.h"

/* The query of the call's body. ERROR_BAD_QUERY and its kin; the answer says why. */
NODISCARD bool rest_query_body(struct rest_call *call, struct sql_body *ret_body,
                               struct error *err);

/* A text that is long is held on the meter and paid for by the partition the request begins in,
 * also where it turns out to be no query. Whoever owes too much is refused before it is read. */
NODISCARD bool rest_query_text_begin(struct rest_call *call, const struct rest_items *items,
                                     struct partition_range range, struct slice text,
                                     struct metering *metering, struct metered_call *metered,
                                     struct error *err);
void rest_query_text_end(struct rest_call *call, struct slice text, struct metering *metering);
