/* Output: the rows of a page as they are handed to the caller, and when the page has enough. */
#pragma once

#include "query/run.h"

struct query_output {
    const struct query_request *request;
    uint64_t rows, row_bytes; /* given */
    uint64_t given_ns;        /* of giving them, where that is measured */
    bool full;                /* the page is: from here on the next row is only looked for */
};

/* Hands a row out, and says whether the page is full by now. ERROR_QUERY_LIMIT: the row is larger
 * than one may be; ERROR_MEMORY_FULL; errors of the caller. */
NODISCARD bool query_output_give(struct query_output *output, struct query_context *context,
                                 const struct document_value *value, struct error *err);

/* Sums of several pages that are one to the client. */
void query_metrics_add(struct query_metrics *to, const struct query_metrics *from);
