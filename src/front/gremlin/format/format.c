/* Which format a mime type means, and what all formats share. */
#include "front/gremlin/format/format_private.h"

#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/traversal.h"

/* --- Formats ---------------------------------------------------------------------------------- */

enum { GRAPHSON_1, GRAPHSON_2, GRAPHSON_2_PLAIN, GRAPHSON_3, JSON_PLAIN, JSON_TYPED, BINARY };

#define JSON_FUNCTIONS                                                                             \
    .read = gremlin_graphson_read, .read_value = gremlin_graphson_read_value,                      \
    .write_item = gremlin_graphson_write_item, .write_answer = gremlin_graphson_write_answer

static const struct gremlin_format formats[] = {
    [GRAPHSON_1] = {.mime = "application/vnd.gremlin-v1.0+json",
                    .version = 1,
                    .write_value = gremlin_plain_write,
                    JSON_FUNCTIONS},
    [GRAPHSON_2] = {.mime = "application/vnd.gremlin-v2.0+json",
                    .version = 2,
                    .typed = true,
                    .write_value = gremlin_graphson_write,
                    JSON_FUNCTIONS},
    [GRAPHSON_2_PLAIN] = {.mime = "application/vnd.gremlin-v2.0+json",
                          .version = 2,
                          .write_value = gremlin_plain_write,
                          JSON_FUNCTIONS},
    [GRAPHSON_3] = {.mime = "application/vnd.gremlin-v3.0+json",
                    .version = 3,
                    .typed = true,
                    .write_value = gremlin_graphson_write,
                    JSON_FUNCTIONS},
    [JSON_PLAIN] = {.mime = "application/json",
                    .version = 1,
                    .write_value = gremlin_plain_write,
                    JSON_FUNCTIONS},
    [JSON_TYPED] = {.mime = "application/json",
                    .version = 3,
                    .typed = true,
                    .write_value = gremlin_graphson_write,
                    JSON_FUNCTIONS},
    [BINARY] = {.mime = "application/vnd.graphbinary-v1.0",
                .binary = true,
                .typed = true,
                .read = gremlin_binary_read,
                .read_value = gremlin_binary_read_value,
                .write_value = gremlin_binary_write,
                .write_item = gremlin_binary_write_item,
                .write_answer = gremlin_binary_write_answer},
};

/* The parameters behind the type say "types=false". */
static bool is_untyped(struct slice parameters)
{
    struct slice one, rest = parameters;

    while (rest.len) {
        if (!slice_split(rest, ';', &one, &rest)) {
            one = rest;
            rest = SLICE_NONE;
        }
        if (slice_equal_nocase(slice_trim(one), SLICE("types=false")))
            return true;
    }
    return false;
}

static const struct gremlin_format *graphson(int version, bool typed)
{
    if (!typed)
        return &formats[version == 2 ? GRAPHSON_2_PLAIN : GRAPHSON_1];
    return &formats[version == 2 ? GRAPHSON_2 : version == 1 ? GRAPHSON_1 : GRAPHSON_3];
}

const struct gremlin_format *gremlin_format_of_mime(struct slice mime,
                                                    const struct gremlin_format_options *options,
                                                    struct error *err)
{
    struct slice type = mime, parameters = SLICE_NONE;
    bool untyped;

    slice_split(mime, ';', &type, &parameters);
    type = slice_trim(type);
    untyped = is_untyped(parameters);
    if (slice_equal_nocase(type, SLICE("application/vnd.gremlin-v3.0+gryo")) ||
        slice_equal_nocase(type, SLICE("application/vnd.gremlin-v1.0+gryo")) ||
        slice_equal_nocase(type, SLICE("application/vnd.gremlin-v3.0+gryo-lite")) ||
        slice_equal_nocase(type, SLICE("application/vnd.gremlin-v1.0+gryo-lite"))) {
        error_set(err, ERROR_NOT_SUPPORTED,
                  "the format \"%.*s\" is Java's own; use GraphSON or GraphBinary",
                  SLICE_ARG(type));
        return NULL;
    }
    if (slice_equal_nocase(type, SLICE("application/vnd.graphbinary-v1.0")))
        return &formats[BINARY];
    if (slice_equal_nocase(type, SLICE("application/json")))
        return untyped ? &formats[JSON_PLAIN] : gremlin_format_json(options);
    if (slice_equal_nocase(type, SLICE("application/vnd.gremlin-v1.0+json")))
        return graphson(1, false);
    if (slice_equal_nocase(type, SLICE("application/vnd.gremlin-v2.0+json")))
        return graphson(2, options->typed && !untyped);
    return graphson(3, !untyped);
}

const struct gremlin_format *gremlin_format_json(const struct gremlin_format_options *options)
{
    return &formats[options->typed ? JSON_TYPED : JSON_PLAIN];
}

bool gremlin_format_is_binary(const struct gremlin_format *format)
{
    return format->binary;
}

struct slice gremlin_format_mime(const struct gremlin_format *format)
{
    return slice_of_text(format->mime);
}

/* --- Requests --------------------------------------------------------------------------------- */

void gremlin_request_done(struct gremlin_request *request)
{
    gremlin_value_unref(request->id);
    gremlin_value_unref(request->op);
    gremlin_value_unref(request->processor);
    gremlin_value_unref(request->args);
    *request = (struct gremlin_request){};
}

/* What is absent is empty; bytecode begins at g. */
static void request_complete(struct gremlin_heap *heap, struct gremlin_request *request)
{
    const struct gremlin_value *gremlin;

    if (gremlin_is_null(request->op))
        request->op = gremlin_string(heap, SLICE(""));
    if (gremlin_is_null(request->processor))
        request->processor = gremlin_string(heap, SLICE(""));
    if (gremlin_is_null(request->args))
        request->args = gremlin_map_new(heap);
    gremlin = gremlin_map_get_text(request->args, SLICE("gremlin"));
    if (gremlin && gremlin->type == GREMLIN_TRAVERSAL)
        gremlin_traversal(*gremlin)->spawned = true;
}

bool gremlin_format_read(const struct gremlin_format *format, struct slice message,
                         struct gremlin_heap *heap, struct gremlin_request *ret_request,
                         struct error *err)
{
    struct gremlin_request request = {};
    bool fine = format->read(message, heap, &request, err);

    if (fine && gremlin_heap_failed(heap))
        fine = gremlin_heap_error(heap, err);
    if (fine) {
        request_complete(heap, &request);
    } else {
        struct gremlin_value id = gremlin_value_take(&request.id);

        gremlin_request_done(&request);
        request.id = id;
    }
    *ret_request = request;
    return fine;
}

bool gremlin_format_read_value(const struct gremlin_format *format, struct slice bytes,
                               struct gremlin_heap *heap, struct gremlin_value *ret_value,
                               struct error *err)
{
    return format->read_value(bytes, heap, ret_value, err);
}

struct gremlin_value gremlin_bytecode_finish_take(struct gremlin_heap *heap,
                                                  struct gremlin_value value)
{
    const struct gremlin_traversal *traversal = gremlin_traversal(value);
    const struct gremlin_instructions *list =
        traversal->sources.count ? &traversal->sources : &traversal->steps;
    const struct gremlin_instruction *only = list->items;
    struct gremlin_value cardinal;

    if (traversal->sources.count + traversal->steps.count != 1 ||
        !slice_equal(only->name, SLICE("CardinalityValueTraversal")) || only->count != 2 ||
        only->arguments[0].type != GREMLIN_ENUM ||
        only->arguments[0].word.family != GREMLIN_ENUM_CARDINALITY)
        return value;
    cardinal = gremlin_cardinal_new(heap, (enum gremlin_enum_word)only->arguments[0].word.word,
                                    only->arguments[1]);
    gremlin_value_unref(value);
    return cardinal;
}

bool gremlin_format_predicate(struct gremlin_heap *heap, struct slice name,
                              const struct gremlin_value *values, size_t count,
                              struct gremlin_value *ret_value, struct error *err)
{
    static const struct slice single[] = {{(const uint8_t *)"eq", 2}, {(const uint8_t *)"neq", 3},
                                          {(const uint8_t *)"lt", 2}, {(const uint8_t *)"lte", 3},
                                          {(const uint8_t *)"gt", 2}, {(const uint8_t *)"gte", 3}};
    CLEANUP(gremlin_value_unref) struct gremlin_value list = GREMLIN_NOTHING;

    for (size_t i = 0; count != 1 && i < ARRAY_LEN(single); i++)
        if (slice_equal(name, single[i])) {
            list = gremlin_list_new(heap, count);
            for (size_t j = 0; j < count; j++)
                gremlin_list_add(list, values[j]);
            return gremlin_predicate_new(heap, name, &list, 1, ret_value, err);
        }
    return gremlin_predicate_new(heap, name, values, count, ret_value, err);
}

/* --- Writing ---------------------------------------------------------------------------------- */

bool gremlin_writer_enter(struct gremlin_writer *writer)
{
    if (writer->depth == GREMLIN_FORMAT_DEPTH)
        return error_set(writer->err, ERROR_GREMLIN_FORMAT,
                         "a result is nested deeper than %d values", GREMLIN_FORMAT_DEPTH);
    writer->depth++;
    return true;
}

bool gremlin_writer_room(struct gremlin_writer *writer)
{
    if (buf_overflowed(writer->buf))
        return error_set(writer->err, ERROR_TOO_LARGE,
                         "the results of a frame are larger than the limit of %zu bytes",
                         writer->buf->max);
    return true;
}

bool gremlin_writer_properties(struct gremlin_writer *writer, struct gremlin_value element,
                               struct gremlin_properties **ret_properties)
{
    struct gremlin_properties *properties;
    bool fine;

    *ret_properties = NULL;
    if (writer->tokens || gremlin_element(element)->reference)
        return true;
    properties = writer->properties ? writer->properties : gremlin_properties_new(writer->heap, 0);
    writer->properties = NULL;
    fine = gremlin_element_select(element, NULL, 0, properties, writer->err);
    if (fine)
        *ret_properties = properties;
    else
        gremlin_writer_release(writer, properties);
    return fine;
}

void gremlin_writer_release(struct gremlin_writer *writer, struct gremlin_properties *properties)
{
    if (!properties)
        return;
    gremlin_properties_clear(properties);
    if (writer->properties)
        gremlin_properties_unref(properties);
    else
        writer->properties = properties;
}

void gremlin_batch_init(struct gremlin_batch *batch, const struct gremlin_format *format,
                        struct gremlin_heap *heap, bool tokens, size_t bytes_max)
{
    *batch = (struct gremlin_batch){.format = format, .heap = heap, .tokens = tokens};
    buf_init(&batch->items, bytes_max);
}

void gremlin_batch_done(struct gremlin_batch *batch)
{
    gremlin_object_unref(batch->properties);
    batch->properties = NULL;
    buf_done(&batch->items);
}

void gremlin_batch_clear(struct gremlin_batch *batch)
{
    buf_clear(&batch->items);
    batch->count = 0;
}

bool gremlin_batch_add(struct gremlin_batch *batch, struct gremlin_value value, int64_t bulk,
                       struct error *err)
{
    struct gremlin_writer writer = {.format = batch->format,
                                    .heap = batch->heap,
                                    .buf = &batch->items,
                                    .tokens = batch->tokens,
                                    .properties = TAKE(batch->properties),
                                    .err = err};
    size_t before = batch->items.len;
    bool fine = batch->format->write_item(&writer, value, bulk, batch->count == 0) &&
                gremlin_writer_room(&writer);

    batch->properties = writer.properties;
    if (fine) {
        batch->count++;
    } else {
        batch->items.len = before;
        batch->items.overflowed = false;
    }
    return fine;
}

bool gremlin_format_write(const struct gremlin_format *format, const struct gremlin_answer *answer,
                          struct gremlin_heap *heap, struct buf *out, struct error *err)
{
    struct gremlin_writer writer = {.format = format, .heap = heap, .buf = out, .err = err};
    bool fine = format->write_answer(&writer, answer) && gremlin_writer_room(&writer);

    gremlin_object_unref(writer.properties);
    return fine;
}
