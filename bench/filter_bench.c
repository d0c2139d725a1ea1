/* Filters over items of 1 KB: an expression tree against the same test written by hand with
 * libbson, which looks up the two properties and compares them. Both start from the stored BSON
 * each time. */
#include "rounds.h"

#include "document/json.h"
#include "query/expression/expression.h"

#include <bson/bson.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURN_MS = 12, ITEMS = 256 };

struct job {
    struct slice items[ITEMS];
    const struct query_expression *filter;
    struct query_context *context;
    struct query_slot *slot;
    size_t repeats;
    size_t found;
};

/* About 1 KB: the two properties asked for stand amid twenty others. */
static struct slice make_item(struct arena *arena, int number)
{
    CLEANUP(buf_done) struct buf text, bson;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    buf_printf(&text, "{\"id\":\"item-%d\",\"tenant\":\"contoso-retail\"", number);
    for (int i = 0; i < 20; i++) {
        if (i == 7)
            buf_printf(&text, ",\"a\":%d", number % 2 ? 5 : 6);
        if (i == 14)
            buf_printf(&text, ",\"b\":%d", number % 8);
        buf_printf(&text, ",\"property%d\":\"some text of a usual length %d\"", i, number + i);
    }
    BUF_APPEND(&text, "}");
    if (!document_json_read(buf_slice(&text), NULL, &bson, &err))
        abort();
    return arena_copy(arena, buf_slice(&bson));
}

static void run_ours(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        struct error err;
        bool holds;

        job->slot->value = document_object(job->items[i % ITEMS]);
        if (!query_holds(job->filter, job->context, &holds, &err))
            abort();
        job->found += holds;
    }
}

static void run_libbson(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        struct slice item = job->items[i % ITEMS];
        bson_iter_t iter;
        bson_t bson;

        bson_init_static(&bson, item.data, item.len);
        if (bson_iter_init_find(&iter, &bson, "a") && bson_iter_as_int64(&iter) == 5 &&
            bson_iter_init_find(&iter, &bson, "b") && bson_iter_as_int64(&iter) > 3)
            job->found++;
    }
}

int main(void)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_build b = {.arena = arena};
    struct query_slot slot;
    struct job job = {.context = &context, .slot = &slot};
    struct rounds_candidate candidates[] = {
        {.name = "ours", .run = run_ours, .context = &job},
        {.name = "libbson", .run = run_libbson, .context = &job},
    };
    const struct query_expression *item = query_variable(&b, 0);
    double figures[2];

    job.filter = query_and(&b,
                           query_compare(&b, QUERY_EQUAL, query_property_of(&b, item, SLICE("a")),
                                         query_constant(&b, document_int32(5))),
                           query_compare(&b, QUERY_GREATER, query_property_of(&b, item, SLICE("b")),
                                         query_constant(&b, document_int32(3))));
    for (int i = 0; i < ITEMS; i++)
        job.items[i] = make_item(arena, i);
    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    job.repeats = 1;
    job.repeats = rounds_repeats(run_ours, &job, TURN_MS);
    rounds_run(candidates, ARRAY_LEN(candidates), ROUNDS_DEFAULT);
    for (size_t i = 0; i < ARRAY_LEN(candidates); i++) {
        rounds_print("filter c.a = 5 AND c.b > 3", &candidates[i]);
        figures[i] = rounds_per_cpu_s(&candidates[i], (double)job.repeats / 1e6);
    }
    rounds_keep(&job.found);
    printf("  items of %zu bytes\n", job.items[0].len);
    rounds_ratio("filter c.a = 5 AND c.b > 3, million items/s", figures[0], figures[1],
                 "vs libbson by hand");
    return 0;
}
