#include "advise/records.h"

#include "document/bson.h"
#include "document/json.h"

#include <xxhash.h>

enum { RECORD_MIN = 5 };

uint32_t record_size(const uint8_t *record)
{
    return (uint32_t)record[0] | (uint32_t)record[1] << 8 | (uint32_t)record[2] << 16 |
           (uint32_t)record[3] << 24;
}

struct slice records_next(struct slice *rest)
{
    struct slice record = slice_first(*rest, record_size(rest->data));

    *rest = slice_skip(*rest, record.len);
    return record;
}

bool records_are_whole(struct slice records)
{
    while (records.len) {
        if (records.len < RECORD_MIN || record_size(records.data) < RECORD_MIN ||
            record_size(records.data) > records.len)
            return false;
        (void)records_next(&records);
    }
    return true;
}

void records_before(struct slice records, int64_t time_ms, struct buf *out)
{
    while (records.len) {
        struct slice record = records_next(&records);
        struct document_value value;
        int64_t at;

        if (document_find(record, SLICE("t"), &value) && document_to_int64(&value, &at) &&
            at < time_ms)
            buf_append_slice(out, record);
    }
}

/* --- Thinning -------------------------------------------------------------------------------- */

/* Operations that are alone take turns; those of a transaction have its number. */
static uint64_t turn_of(struct slice record, uint64_t *turn)
{
    struct document_value value;

    if (document_find(record, SLICE("transaction"), &value) && value.type == DOCUMENT_STRING)
        return XXH3_64bits(value.text.data, value.text.len);
    return (*turn)++;
}

static void weighed_append(struct slice record, uint32_t times, struct buf *out)
{
    struct document_iter iter;
    size_t begin = document_begin(out);
    int64_t weight = 1;

    document_iter_init(&iter, record);
    while (document_iter_next(&iter))
        if (slice_equal(iter.key, SLICE("weight")))
            (void)document_to_int64(&iter.value, &weight);
        else
            document_append(out, iter.key, &iter.value);
    document_append_int64(out, SLICE("weight"), weight * times);
    document_end(out, begin);
}

void records_thin(struct slice records, uint32_t shift, struct buf *out)
{
    uint64_t mask = (UINT64_C(1) << shift) - 1, turn = 0;

    if (!shift) {
        buf_append_slice(out, records);
        return;
    }
    while (records.len) {
        struct slice record = records_next(&records);

        if (!(turn_of(record, &turn) & mask))
            weighed_append(record, 1u << shift, out);
    }
}

/* --- Reading --------------------------------------------------------------------------------- */

size_t records_read(struct slice records, struct advise_workload *workload)
{
    struct error err;
    size_t count = 0;

    while (records.len)
        count += advise_workload_operation_read(workload, records_next(&records), &err);
    return count;
}

void records_lines(struct slice records, size_t max, struct buf *out)
{
    size_t count = 0;

    for (struct slice rest = records; rest.len; count++)
        (void)records_next(&rest);
    for (; records.len; count--) {
        struct slice record = records_next(&records);

        if (count > max)
            continue;
        document_json_write(record, out);
        buf_append_byte(out, '\n');
    }
}
