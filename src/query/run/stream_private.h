/* Streams from within: what those of indexes of vectors (stream_near.c), of full-text indexes
 * (stream_terms.c) and of several indexes (stream_common.c) share with the others. */
#pragma once

#include "query/run/stream.h"

enum { QUERY_BETWEEN_LOOKS = 4096 }; /* entries between two looks at clock and client */

/* ERROR_TIMED_OUT: the query was cancelled, or its time is up. */
NODISCARD bool query_stream_may_go_on(const struct query_streaming *how, struct error *err);

/* The place of a hit, copied; bytes of an index that is walked backwards are turned over, so that
 * places always ascend. */
void query_stream_place(const struct query_streaming *how, struct query_stream *stream,
                        const struct cursor_hit *hit);

/* What a cursor of the use is asked for. */
struct cursor_request query_stream_request(const struct query_streaming *how,
                                           const struct query_stream *stream,
                                           const struct query_index_use *use);

/* The cursor stands before its first entry again. */
NODISCARD bool query_stream_rewind(const struct query_streaming *how, struct query_stream *stream,
                                   struct error *err);

/* The next of the most alike. */
NODISCARD bool query_stream_near_next(const struct query_streaming *how,
                                      struct query_stream *stream, struct error *err);
void query_stream_near_done(struct query_stream *stream);

/* What several indexes have in common. */
struct query_common; /* opaque, owned: all but the cursor of the stream */
bool query_common_is(const struct query_streaming *how);
struct query_common *query_common_new(void);
void query_common_free(struct query_common *common); /* NULL is fine */
uint64_t query_common_entries(const struct query_common *common);
NODISCARD bool query_common_next(const struct query_streaming *how, struct query_stream *stream,
                                 bool *ret_more, struct error *err);

/* Items that have certain terms. */
NODISCARD bool query_terms_open(const struct query_streaming *how, struct query_stream *stream,
                                struct error *err);
NODISCARD bool query_terms_next(const struct query_streaming *how, struct query_stream *stream,
                                struct error *err);
NODISCARD bool query_terms_pass(const struct query_streaming *how, struct query_stream *stream,
                                uint64_t max, uint64_t *ret_count, struct error *err);
void query_terms_free(struct query_stream *stream);
