/* Limits of scripts are those of the server, so the text is all of the key, behind a mark that no
 * key of a query begins with: those begin with the length of their text. A long script is more
 * likely a load of its own than something that comes again, and is not kept. */
#include "front/gremlin/command/parsed.h"

#include "front/kit/queries.h"

enum { TEXT_BYTES_MAX = 8 * 1024, TREE_BYTES_MAX = 64 * 1024 };

static const uint8_t mark[] = {0xFF, 0xFF, 0xFF, 0xFF, 'g'};

static struct front_plans *plans_of(const struct front_call *call)
{
    return front_queries_plans(call->services->queries);
}

static uint64_t account_of(const struct front_call *call)
{
    return account_info(call->account.account)->number;
}

static bool is_kept(const struct front_call *call, struct slice text)
{
    return call->account.account && text.len <= TEXT_BYTES_MAX;
}

static struct slice key_of(const struct front_call *call, struct slice text)
{
    uint8_t *key = arena_alloc(call->arena, sizeof mark + text.len);

    memcpy(key, mark, sizeof mark);
    if (text.len)
        memcpy(key + sizeof mark, text.data, text.len);
    return slice_of(key, sizeof mark + text.len);
}

bool gremlin_parsed_take(struct front_call *call, struct slice text,
                         const struct gremlin_script_limits *limits,
                         struct gremlin_parsed **ret_parsed, struct error *err)
{
    struct slice key = SLICE_NONE;
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct gremlin_parsed *parsed;

    if (is_kept(call, text)) {
        struct front_plan *plan;

        key = key_of(call, text);
        plan = front_plans_take(plans_of(call), account_of(call), key);
        if (plan) {
            *ret_parsed = CONTAINER_OF(plan, struct gremlin_parsed, plan);
            return true;
        }
    }
    arena = arena_new();
    parsed = ARENA_NEW(arena, struct gremlin_parsed);
    if (!gremlin_script_parse(text, limits, arena, &parsed->syntax, err))
        return false;
    parsed->key_first = key;
    parsed->plan.arena = TAKE(arena);
    *ret_parsed = parsed;
    return true;
}

void gremlin_parsed_give(struct front_call *call, struct gremlin_parsed *parsed)
{
    struct slice key = parsed->plan.key.data ? parsed->plan.key : parsed->key_first;

    if (key.data && arena_used(parsed->plan.arena) <= TREE_BYTES_MAX)
        front_plans_give(plans_of(call), account_of(call), key, &parsed->plan);
    else
        arena_free(parsed->plan.arena);
}
