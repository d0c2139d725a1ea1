/* The bytes are a $filter, as a stranger may send it. Holds that
 *  - what is refused says so with an error of a query, and what is taken compiles or says why not;
 *  - it can be evaluated for an item, and is then true or false;
 *  - a filter that is a point names both keys. */
#include "front/table/filter.h"
#include "front/table/route.h"
#include "fuzz/fuzz.h"

#include "document/bson.h"

static struct slice item_make(struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin, ticks;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("id"), SLICE("r"));
    document_append_string(&out, SLICE("PartitionKey"), SLICE("p"));
    document_append_int32(&out, SLICE("a"), 5);
    document_append_bool(&out, SLICE("b"), true);
    document_append_date(&out, SLICE("d"), 1700000000000);
    document_append(&out, SLICE("g"),
                    &(struct document_value){.type = DOCUMENT_BINARY,
                                             .binary = {SLICE("0123456789abcdef"), 4}});
    ticks = document_append_object_begin(&out, SLICE("$ticks"));
    document_append_int32(&out, SLICE("d"), 7);
    document_end(&out, ticks);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static void evaluate(const struct query_expression *expression, struct arena *arena)
{
    struct query_slot slot = {.value = document_object(item_make(arena))};
    struct query_context context;
    struct error err;
    bool holds;

    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    FUZZ_CHECK(query_holds(expression, &context, &holds, &err));
    query_context_done(&context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct table_filter_place place = {SLICE("PartitionKey"), SLICE("id"), true};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    const struct query_expression *expression;
    const struct table_filter *filter;
    struct table_keys keys;
    struct error err;

    if (!table_filter_parse(slice_of(data, size), arena, &filter, &err)) {
        FUZZ_CHECK(err.code == ERROR_BAD_QUERY);
        return 0;
    }
    if (table_filter_is_point(filter, &keys))
        FUZZ_CHECK(keys.partition.data && keys.row.data);
    expression = table_filter_compile(filter, &place, &build);
    if (!build.failed)
        evaluate(expression, arena);
    return 0;
}
