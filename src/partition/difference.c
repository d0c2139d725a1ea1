#include "partition/difference.h"

size_t partition_difference(const struct partition_entry *before, size_t before_count,
                            const struct partition_entry *after, size_t after_count,
                            struct engine_op *ret_ops)
{
    size_t b = 0, a = 0, count = 0;

    while (b < before_count || a < after_count) {
        int order = b == before_count  ? 1
                    : a == after_count ? -1
                                       : slice_compare(before[b].key, after[a].key);

        if (order < 0) {
            ret_ops[count++] = (struct engine_op){ENGINE_DELETE, before[b++].key, SLICE_NONE};
            continue;
        }
        if (order > 0 || !slice_equal(before[b].value, after[a].value))
            ret_ops[count++] = (struct engine_op){ENGINE_PUT, after[a].key, after[a].value};
        b += order == 0;
        a++;
    }
    assert(b == before_count && a == after_count && count <= before_count + after_count);
    return count;
}
