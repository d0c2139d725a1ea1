/* How many change streams each account has open, and may have. Any thread. */
#pragma once

#include "base/error.h"

struct mongo_stream_count; /* opaque, owned */

struct mongo_stream_count *mongo_stream_count_new(size_t account_max);
void mongo_stream_count_free(struct mongo_stream_count *count); /* NULL is fine */
CLEANUP_FN(struct mongo_stream_count *, mongo_stream_count_free)

/* One more. ERROR_BUSY: there are as many as there may be. */
NODISCARD bool mongo_stream_count_enter(struct mongo_stream_count *count, uint32_t account,
                                        struct error *err);
void mongo_stream_count_leave(struct mongo_stream_count *count, uint32_t account);

/* Of all accounts. */
size_t mongo_stream_count_all(struct mongo_stream_count *count);
