/* What the targets of GraphSON and GraphBinary share. Holds that
 *  - whatever is refused leaves nothing on the heap, and says why;
 *  - what is read is written in every format (or has no form there, which is said), and what is
 *    written in a format that has all types reads back as what is written the same. */
#pragma once

#include "front/gremlin/format/format.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

enum { BYTES_MAX = 4 << 20 };

static const struct gremlin_format *format_of(const char *mime, bool typed)
{
    struct gremlin_format_options options = {.typed = typed};
    struct error err;
    const struct gremlin_format *format =
        gremlin_format_of_mime(slice_of_text(mime), &options, &err);

    FUZZ_CHECK(format);
    return format;
}

/* False: it has no form in the format, or is too large. */
static bool value_write(const struct gremlin_format *format, struct gremlin_heap *heap,
                        struct gremlin_value value, struct buf *out)
{
    CLEANUP(gremlin_batch_done) struct gremlin_batch batch;
    struct error err = {};
    bool fine;

    gremlin_batch_init(&batch, format, heap, false, BYTES_MAX);
    fine = gremlin_batch_add(&batch, value, 0, &err);
    FUZZ_CHECK(fine || err.code == ERROR_GREMLIN_FORMAT || err.code == ERROR_TOO_LARGE);
    buf_append_slice(out, buf_slice(&batch.items));
    return fine;
}

static void again(const struct gremlin_format *format, struct gremlin_heap *heap,
                  struct gremlin_value value)
{
    CLEANUP(buf_done) struct buf first, second;
    struct gremlin_value back;
    struct error err = {};

    buf_init(&first, BYTES_MAX);
    buf_init(&second, BYTES_MAX);
    if (!value_write(format, heap, value, &first))
        return;
    if (!gremlin_format_read_value(format, buf_slice(&first), heap, &back, &err)) {
        FUZZ_CHECK(err.code == ERROR_TOO_DEEP); /* wrappers count */
        return;
    }
    FUZZ_CHECK(value_write(format, heap, back, &second));
    FUZZ_CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
    gremlin_value_unref(back);
}

static void value_try(const char *own, struct slice bytes)
{
    CLEANUP(gremlin_heap_free)
    struct gremlin_heap *heap =
        gremlin_heap_new(&(struct gremlin_heap_options){.limit = 256 << 20});
    CLEANUP(buf_done) struct buf out;
    struct gremlin_value value;
    struct error err = {};

    buf_init(&out, BYTES_MAX);
    if (gremlin_format_read_value(format_of(own, true), bytes, heap, &value, &err)) {
        again(format_of("application/vnd.gremlin-v3.0+json", true), heap, value);
        again(format_of("application/vnd.graphbinary-v1.0", true), heap, value);
        value_write(format_of("application/vnd.gremlin-v2.0+json", true), heap, value, &out);
        value_write(format_of("application/vnd.gremlin-v2.0+json", false), heap, value, &out);
        gremlin_value_unref(value);
    } else {
        FUZZ_CHECK(err.code != ERROR_NONE);
    }
    FUZZ_CHECK(gremlin_heap_used(heap) == 0);
}

static void request_try(const char *own, struct slice bytes)
{
    CLEANUP(gremlin_heap_free)
    struct gremlin_heap *heap =
        gremlin_heap_new(&(struct gremlin_heap_options){.limit = 256 << 20});
    struct gremlin_request request;
    struct error err = {};

    if (gremlin_format_read(format_of(own, true), bytes, heap, &request, &err))
        FUZZ_CHECK(request.args.type == GREMLIN_MAP && request.op.type == GREMLIN_STRING);
    else
        FUZZ_CHECK(err.code != ERROR_NONE && gremlin_is_null(request.args));
    gremlin_request_done(&request);
    FUZZ_CHECK(gremlin_heap_used(heap) == 0);
}
