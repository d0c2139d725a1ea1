#include "query_cases.h"

#include "space.h"

#include <stdio.h>
#include <stdlib.h>

static void value_int(struct query_values *values, int64_t value, struct arena *arena)
{
    values->texts[values->count] = arena_text(arena, arena_printf(arena, "%lld", (long long)value));
    values->list[values->count++] = document_int64(value);
}

static void draw_point(struct random *random, uint64_t items, struct arena *arena,
                       struct query_values *values)
{
    uint64_t n = random_below(random, items);

    values->count = 1;
    values->list[0] = bench_item_id(n, arena);
    values->tenant = bench_item_tenant(n, arena);
    values->texts[0] = arena_text(arena, values->list[0].text);
    values->texts[1] = arena_text(arena, values->tenant.text);
}

static void draw_created(struct random *random, uint64_t items, struct arena *arena,
                         struct query_values *values)
{
    value_int(values, (int64_t)(BENCH_CREATED_FIRST + random_below(random, items)), arena);
}

static void draw_count(struct random *random, uint64_t items UNUSED, struct arena *arena,
                       struct query_values *values)
{
    value_int(values, (int64_t)random_below(random, BENCH_COUNTS), arena);
}

static void draw_updated(struct random *random, uint64_t items UNUSED, struct arena *arena,
                         struct query_values *values)
{
    value_int(values, (int64_t)(BENCH_CREATED_FIRST + random_below(random, 900000000)), arena);
}

/* A tenth of all. */
static void draw_amount(struct random *random, uint64_t items UNUSED, struct arena *arena,
                        struct query_values *values)
{
    int64_t least = (int64_t)random_below(random, 9000);

    value_int(values, least, arena);
    value_int(values, least + 1000, arena);
}

const struct query_case query_cases[] = {
    {.name = "point query by id and key",
     .ours = "SELECT * FROM c WHERE c.id = @a",
     .theirs = "SELECT doc FROM items WHERE id = $1 AND pk = $2",
     .draw = draw_point,
     .keyed = true},
    {.name = "equality, one item",
     .ours = "SELECT * FROM c WHERE c.created = @a",
     .theirs = "SELECT doc FROM items WHERE (doc->>'created')::bigint = $1",
     .draw = draw_created},
    {.name = "equality, 1 % of all items",
     .ours = "SELECT * FROM c WHERE c.count = @a",
     .theirs = "SELECT doc FROM items WHERE (doc->>'count')::int = $1",
     .draw = draw_count},
    {.name = "range, ordered, first 20",
     .ours = "SELECT * FROM c WHERE c.updated >= @a ORDER BY c.updated OFFSET 0 LIMIT 20",
     .theirs = "SELECT doc FROM items WHERE (doc->>'updated')::bigint >= $1 "
               "ORDER BY (doc->>'updated')::bigint LIMIT 20",
     .draw = draw_updated},
    {.name = "count of all",
     .ours = "SELECT VALUE COUNT(1) FROM c",
     .theirs = "SELECT count(*) FROM items",
     .scalar = true},
    {.name = "count of a range, 10 % of all items",
     .ours = "SELECT VALUE COUNT(1) FROM c WHERE c.amount >= @a AND c.amount < @b",
     .theirs = "SELECT count(*) FROM items WHERE (doc->>'amount')::numeric >= $1 "
               "AND (doc->>'amount')::numeric < $2",
     .draw = draw_amount,
     .scalar = true},
    {.name = "groups of one path, counted",
     .ours = "SELECT c.count, COUNT(1) AS n FROM c GROUP BY c.count",
     .theirs = "SELECT (doc->>'count')::int, count(*) FROM items GROUP BY 1"},
    {.name = "groups of one path, another summed",
     .ours = "SELECT c.open, SUM(c.amount) AS total, COUNT(1) AS n FROM c GROUP BY c.open",
     .theirs = "SELECT (doc->>'open')::boolean, sum((doc->>'amount')::float8), count(*) "
               "FROM items GROUP BY 1"},
};
const size_t query_case_count = ARRAY_LEN(query_cases);

const char *const query_indexes[] = {
    "CREATE INDEX ON items (((doc->>'created')::bigint))",
    "CREATE INDEX ON items (((doc->>'count')::int))",
    "CREATE INDEX ON items (((doc->>'updated')::bigint))",
    "CREATE INDEX ON items (((doc->>'amount')::numeric))",
    "CREATE INDEX ON items (((doc->>'open')::boolean))",
};
const size_t query_index_count = ARRAY_LEN(query_indexes);

const struct query_case *query_case_find(const char *name)
{
    for (size_t i = 0; i < query_case_count; i++)
        if (strcmp(query_cases[i].name, name) == 0)
            return &query_cases[i];
    fprintf(stderr, "there is no query \"%s\"\n", name);
    exit(2);
}
