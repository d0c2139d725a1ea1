/* Prices are summed in millionths of an RU and rounded once, at the end, so that a hundred index
 * entries cost exactly what a hundred times one would before rounding. Terms are added with 128
 * bits: ten terms of 64 by 32 bits cannot overflow them, so saturation is one comparison.
 *
 * The coefficients are straight lines through the published figures. A table of measured charges
 * would fit those better and everything between worse. */
#include "throughput/cost.h"

const struct cost_model cost_model = {
    .read_base = 1000000,
    .read_kb = 90909, /* 9 RU over 99 KB */
    .write_base = 5290000,
    .write_kb = 451616, /* 44.71 RU over 99 KB */
    .index_entry = 380000,
    .query_partition = 2300000,
    .query_resume = 50000,
    .query_lookup = 295000,
    .query_entry = 5000,
    .query_item = 15000,
    .query_loaded_kb = 10000,
    .query_output_kb = 15000,
    .feed_page = 1000000,
    .script_base = 1000000,
    .script_call = 50000,
    .script_kb = 100000,
    .metadata_read = 1000000,
    .metadata_list = 2000000,
    .metadata_write = 5000000,
    .id_seek = 100000,
    .query_work = 100,
};

enum {
    KB = 1024,
    MICRO_PER_CRU = 10000,
    /* What evaluating a page may take before it is paid for: far more than filters and selections
     * of any size need, and less time than reading what they are evaluated over. */
    WORK_PAGE = 20000,
    WORK_ITEM = 500,
    WORK_BYTES_SHIFT = 1,
};

static unsigned __int128 times(uint64_t count, uint32_t price)
{
    return (unsigned __int128)count * price;
}

static unsigned __int128 kilobytes(uint64_t bytes, uint32_t price)
{
    return times(bytes, price) / KB;
}

/* The first KB is in the base. */
static unsigned __int128 further_kilobytes(uint64_t bytes, uint32_t price)
{
    return bytes > KB ? kilobytes(bytes - KB, price) : 0;
}

static int64_t rounded(unsigned __int128 micro)
{
    unsigned __int128 cru = (micro + MICRO_PER_CRU / 2) / MICRO_PER_CRU;

    return cru < COST_MAX_CRU ? (int64_t)cru : COST_MAX_CRU;
}

int64_t cost_read(uint64_t bytes, bool strong)
{
    return rounded((cost_model.read_base + further_kilobytes(bytes, cost_model.read_kb)) *
                   (strong ? 2 : 1));
}

int64_t cost_write(const struct cost_write *write)
{
    unsigned __int128 micro = times(write->index_puts, cost_model.index_entry) +
                              times(write->index_deletes, cost_model.index_entry);

    assert(write->removes || write->puts);
    if (write->removes)
        micro += cost_model.write_base + further_kilobytes(write->old_bytes, cost_model.write_kb);
    if (write->puts)
        micro += cost_model.write_base + further_kilobytes(write->new_bytes, cost_model.write_kb);
    micro += further_kilobytes(write->history_bytes, cost_model.write_kb);
    return rounded(micro);
}

int64_t cost_write_refused(uint64_t old_bytes)
{
    return cost_read(old_bytes, false);
}

int64_t cost_query(const struct cost_query *query)
{
    unsigned __int128 micro = times(query->partitions_begun, cost_model.query_partition) +
                              times(query->partitions_resumed, cost_model.query_resume) +
                              times(query->index_lookups, cost_model.query_lookup) +
                              times(query->index_entries, cost_model.query_entry) +
                              times(query->items_loaded, cost_model.query_item) +
                              kilobytes(query->loaded_bytes, cost_model.query_loaded_kb) +
                              kilobytes(query->output_bytes, cost_model.query_output_kb) +
                              kilobytes(query->function_bytes, cost_model.script_kb) +
                              times(query->joined_items, cost_model.query_entry) +
                              kilobytes(query->joined_bytes, cost_model.query_loaded_kb) +
                              times(query->work, cost_model.query_work);
    int64_t cru = rounded(micro * (query->strong ? 2 : 1));

    return MAX(cru, 1); /* clients take a page without a charge for a fault */
}

uint64_t cost_work_surplus(const struct cost_query *query, uint64_t units)
{
    unsigned __int128 included = WORK_PAGE + times(query->items_loaded, WORK_ITEM) +
                                 times(query->index_entries, WORK_ITEM) +
                                 (query->loaded_bytes >> WORK_BYTES_SHIFT);

    return units > included ? (uint64_t)(units - included) : 0;
}

int64_t cost_work(uint64_t units)
{
    return rounded(times(cost_work_surplus(&(struct cost_query){0}, units), cost_model.query_work));
}

int64_t cost_feed(uint64_t entries, uint64_t output_bytes)
{
    return rounded(cost_model.feed_page + times(entries, cost_model.query_item) +
                   kilobytes(output_bytes, cost_model.query_loaded_kb) +
                   kilobytes(output_bytes, cost_model.query_output_kb));
}

int64_t cost_script(uint64_t calls, uint64_t bytes)
{
    return rounded(cost_model.script_base + times(calls, cost_model.script_call) +
                   kilobytes(bytes, cost_model.script_kb));
}

int64_t cost_id_seek(void)
{
    return rounded(cost_model.id_seek);
}

int64_t cost_metadata(enum cost_metadata kind)
{
    switch (kind) {
    case COST_METADATA_READ:
        return rounded(cost_model.metadata_read);
    case COST_METADATA_LIST:
        return rounded(cost_model.metadata_list);
    case COST_METADATA_WRITE:
        break;
    }
    return rounded(cost_model.metadata_write);
}

int64_t cost_add(int64_t a_cru, int64_t b_cru)
{
    assert(a_cru >= 0 && a_cru <= COST_MAX_CRU && b_cru >= 0 && b_cru <= COST_MAX_CRU);
    return MIN(a_cru + b_cru, COST_MAX_CRU);
}

void cost_text(int64_t cru, char ret_text[COST_TEXT_SIZE])
{
    assert(cru >= 0 && cru <= COST_MAX_CRU);
    char digits[COST_TEXT_SIZE];
    size_t count = 0, len = 0;

    for (int64_t whole = cru / 100; whole || count == 0; whole /= 10)
        digits[count++] = (char)('0' + whole % 10);
    while (count)
        ret_text[len++] = digits[--count];
    ret_text[len++] = '.';
    ret_text[len++] = (char)('0' + cru % 100 / 10);
    ret_text[len++] = (char)('0' + cru % 10);
    ret_text[len] = '\0';
}
