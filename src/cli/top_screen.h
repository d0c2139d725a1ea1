/* The picture that `orrery top` shows: a function of two answers of the server and the time between
 * them. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum cli_top_order { CLI_TOP_RU, CLI_TOP_REQUESTS, CLI_TOP_THROTTLED, CLI_TOP_TIME };
enum { CLI_TOP_ORDERS = 4 };
const char *cli_top_order_name(enum cli_top_order order);

/* Documents are BSON of answers; data NULL: there is none. */
struct cli_top_sample {
    struct slice before, now;   /* of /_orrery/figures */
    struct slice keys;          /* of /_orrery/containers/D/C/keys */
    struct slice slow;          /* of /_orrery/slow */
    struct slice keys_database; /* whose those keys are */
    struct slice keys_container;
};

/* The container that spends the most of what is shown: false if none was asked at all. */
bool cli_top_busiest(const struct cli_top_sample *sample, enum cli_top_order order,
                     struct arena *arena, struct slice *ret_database, struct slice *ret_container);

/* Appends at most so many rows of so many columns, each with its line feed. */
void cli_top_draw(const struct cli_top_sample *sample, enum cli_top_order order, size_t rows,
                  size_t columns, struct arena *arena, struct buf *out);
