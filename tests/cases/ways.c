#include "cases/ways.h"

#include "base/memory.h"
#include "document/json.h"

#include <stdio.h>
#include <stdlib.h>

struct ways {
    struct arena *arena;
};

const char *way_name(enum way way)
{
    static const char *const names[] = {[WAY_DOCUMENTS] = "documents"};

    return names[way];
}

struct ways *ways_new(void)
{
    struct ways *ways = memory_alloc(sizeof *ways);

    *ways = (struct ways){.arena = arena_new()};
    return ways;
}

void ways_free(struct ways *ways)
{
    if (!ways)
        return;
    arena_free(ways->arena);
    memory_free(ways);
}

struct document_value ways_json(struct slice text, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value;
    struct slice copy;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (!document_json_read_value(text, NULL, &buf, &value, &err)) {
        fprintf(stderr, "%.*s: %s\n", SLICE_ARG(text), err.message);
        exit(2);
    }
    copy = arena_copy(arena, buf_slice(&buf));
    if (!document_find(copy, SLICE(""), &value))
        abort();
    return value;
}

static bool prepare(const struct script_case *test, struct arena *arena,
                    struct sql_prepared *ret_prepared, struct sql_error *ret_error,
                    struct error *err)
{
    struct sql_compile_options options = {0};
    struct slice parameters = SLICE_NONE;

    if (test->parameters.len)
        parameters = ways_json(test->parameters, arena).document;
    if (test->world->computed.len)
        options.computed = ways_json(test->world->computed, arena).document;
    return sql_prepare(test->query, parameters, &options, arena, ret_prepared, ret_error, err);
}

static bool run_documents(const struct script_case *test, const struct query_plan *plan,
                          struct arena *arena, struct sql_rows *ret_rows, struct error *err)
{
    const struct script_world *world = test->world;
    struct slice *documents = ARENA_ARRAY(arena, struct slice, world->document_count + 1);

    for (size_t i = 0; i < world->document_count; i++)
        documents[i] = ways_json(world->documents[i], arena).document;
    return sql_run_documents(plan, documents, world->document_count, NULL, arena, ret_rows, err);
}

bool ways_run(struct ways *ways UNUSED, enum way way UNUSED, const struct script_case *test,
              struct arena *arena, struct sql_rows *ret_rows, struct sql_error *ret_error,
              struct error *err)
{
    struct sql_prepared prepared;

    return prepare(test, arena, &prepared, ret_error, err) &&
           run_documents(test, &prepared.plan, arena, ret_rows, err);
}
