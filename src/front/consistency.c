#include "front/front.h"

#include <inttypes.h>

bool front_consistency_find(const struct front_consistency *own, struct slice name,
                            enum item_level *ret_level, struct error *err)
{
    *ret_level = own->level;
    if (name.len == 0)
        return true;
    if (slice_equal_nocase(name, SLICE("Bounded"))) /* as the first clients wrote it */
        name = SLICE("BoundedStaleness");
    for (enum item_level level = ITEM_STRONG; level <= ITEM_EVENTUAL; level++) {
        if (!slice_equal_nocase(name, slice_of_text(item_level_name(level))))
            continue;
        if (level < own->level)
            return error_set(err, ERROR_BAD_REQUEST,
                             "consistency level %s is stronger than the account's, which is %s",
                             item_level_name(level), item_level_name(own->level));
        *ret_level = level;
        return true;
    }
    return error_set(err, ERROR_BAD_REQUEST, "there is no such consistency level");
}

enum { SERVED_BYTES_MAX = 2048 };

/* What the primary says is as strong as can be, whatever was asked for. */
void front_served_append(const struct container *container, struct item_reading *reading,
                         const struct partition_span *spans, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count && out->len < SERVED_BYTES_MAX; i++) {
        struct item_served served = {0};

        if (!reading && i && spans[i].node == spans[i - 1].node)
            continue; /* the same again */
        buf_printf(out, "%s%s", out->len ? ", " : "",
                   container_node_name(container, spans[i].node));
        if (item_reading_served(reading, spans[i].id, &served) && !served.standby)
            buf_printf(out, ";level=%s", item_level_name(served.level));
        else if (served.standby)
            buf_printf(out, "/standby%u;level=%s;age=%" PRId64, served.standby,
                       item_level_name(served.level), served.age_ms);
        else
            BUF_APPEND(out, ";level=Strong");
    }
}
