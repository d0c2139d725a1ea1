#include "query/output.h"

#include "query/value/value.h"

enum { ROWS_DEFAULT = 100, BYTES_DEFAULT = 4 * 1024 * 1024 };

/* How many bytes of rows the page still takes, as they are kept and as they are rendered. */
static uint64_t bytes_left(const struct query_output *output)
{
    const struct query_page_limits *limits = &output->request->limits;
    uint64_t max = limits->bytes_max ? limits->bytes_max : BYTES_DEFAULT;
    uint64_t used = output->row_bytes;

    if (limits->rendered)
        used = MAX(used, (uint64_t)limits->rendered->len);
    return used < max ? max - used : 0;
}

/* An item always fits: this is of what was put together from items, or from parameters. */
static bool row_fits(const struct query_output *output, uint64_t bytes, struct error *err)
{
    uint64_t row_max = output->request->limits.row_bytes_max;

    return !row_max || bytes <= row_max ||
           error_set(err, ERROR_QUERY_LIMIT,
                     "a row of the query has %llu bytes, more than the %llu of a page",
                     (unsigned long long)bytes, (unsigned long long)row_max);
}

bool query_output_give(struct query_output *output, struct query_context *context,
                       const struct document_value *value, struct error *err)
{
    const struct query_request *request = output->request;
    uint64_t bytes = query_value_bytes(value) + 1, begin, rows_max = request->limits.rows_max;

    assert(!output->full);
    if (!row_fits(output, bytes, err))
        return false;
    if (request->is_short && output->row_bytes + bytes > QUERY_SHORT_BYTES)
        return error_set(err, ERROR_COLD, "this is for a worker");
    begin = request->timed ? clock_monotonic_ns() : 0;
    if (!request->row(request->self, value, err))
        return false;
    if (request->timed)
        output->given_ns += clock_monotonic_ns() - begin;
    if (!query_memory_hold(context, err))
        return false;
    output->rows++;
    output->row_bytes += bytes;
    output->full = output->rows >= (rows_max ? rows_max : ROWS_DEFAULT) || bytes_left(output) == 0;
    return true;
}

void query_metrics_add(struct query_metrics *to, const struct query_metrics *from)
{
    to->items_loaded += from->items_loaded;
    to->loaded_bytes += from->loaded_bytes;
    to->index_entries += from->index_entries;
    to->index_lookups += from->index_lookups;
    to->spilled_bytes += from->spilled_bytes;
    to->work += from->work;
    to->partitions = MAX(to->partitions, from->partitions);
    to->total_ns += from->total_ns;
    to->plan_ns += from->plan_ns;
    to->index_ns += from->index_ns;
    to->load_ns += from->load_ns;
    to->run_ns += from->run_ns;
    to->output_ns += from->output_ns;
}
