/* The bytes are a binary batch. Whatever they are, fields stay within them and reading ends. The
 * checksums in records are set right first, so that what is behind them is reached. */
#include "front/rest/item/hybrid_row.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "fuzz/fuzz.h"

enum { SEGMENT = 10, RECORD = 13 };

static void checksums_mend(uint8_t *data, size_t size)
{
    size_t at = SEGMENT;

    while (at + RECORD <= size) {
        size_t length = bytes_get_le32(data + at + 5);

        if (length > size - at - RECORD)
            return;
        bytes_put_le32(data + at + 9, hybrid_row_crc32(slice_of(data + at + RECORD, length)));
        at += RECORD + length;
    }
}

static void check_within(struct slice field, struct slice body)
{
    if (field.data)
        FUZZ_CHECK(field.data >= body.data && field.data + field.len <= body.data + body.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = memory_alloc(size + 1);
    struct slice body = slice_of(bytes, size);
    struct hybrid_operation operation;
    struct hybrid_reader reader;
    struct error err;
    size_t count = 0;
    bool end = false;

    if (size)
        memcpy(bytes, data, size);
    checksums_mend(bytes, size);
    if (hybrid_reader_init(&reader, body, &err))
        while (hybrid_reader_next(&reader, &operation, &end, &err) && !end) {
            const struct slice fields[] = {operation.partition_key,
                                           operation.effective_partition_key,
                                           operation.id,
                                           operation.binary_id,
                                           operation.resource_body,
                                           operation.indexing_directive,
                                           operation.if_match,
                                           operation.if_none_match};

            for (size_t i = 0; i < ARRAY_LEN(fields); i++)
                check_within(fields[i], body);
            FUZZ_CHECK(++count <= size / RECORD);
        }
    memory_free(bytes);
    return 0;
}
