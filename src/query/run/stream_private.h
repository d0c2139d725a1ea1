/* Streams from within: what those of indexes of vectors (stream_near.c) share with the others. */
#pragma once

#include "query/run/stream.h"

enum { QUERY_BETWEEN_LOOKS = 4096 }; /* entries between two looks at clock and client */

/* The cursor stands before its first entry again. */
NODISCARD bool query_stream_rewind(const struct query_streaming *how, struct query_stream *stream,
                                   struct error *err);

/* The next of the most alike. */
NODISCARD bool query_stream_near_next(const struct query_streaming *how,
                                      struct query_stream *stream, struct error *err);
void query_stream_near_done(struct query_stream *stream);
