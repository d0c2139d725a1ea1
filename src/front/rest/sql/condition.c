#include "front/rest/sql/condition.h"

#include "front/rest/sql/parser.h"
#include "front/rest/sql/resolve.h"
#include "query/expression/item.h"

/* A patch holds up others of its logical partition, cannot be interrupted and costs the same
 * whatever its condition: that gets as much as some milliseconds are good for. */
static const struct query_limits condition_limits = {.bytes_max = 16 * 1024 * 1024,
                                                     .work_max = 200 * 1000};

bool sql_condition_holds(struct slice text, const struct item *item, struct rid container,
                         const struct sql_compile_options *options, struct arena *arena,
                         bool *ret_holds, struct sql_error *ret_error, struct error *err)
{
    CLEANUP(arena_free) struct arena *temporary = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slots[QUERY_SLOTS_MAX];
    struct query_item bound;
    struct sql_query *query;
    struct query_plan plan;
    struct query_rows *rows;
    struct document_value value;

    query_context_init(&context, temporary, &condition_limits, NULL);
    if (!sql_parse_condition(text, NULL, arena, &query, ret_error, err) ||
        !sql_bind(query, SLICE_NONE, arena, ret_error, err) ||
        !sql_resolve(query, arena, ret_error, err) ||
        !sql_compile(query, options, arena, &plan, ret_error, err))
        return false;
    for (uint32_t i = 0; i < plan.slot_count; i++)
        slots[i] = (struct query_slot){.value = document_undefined()};
    context.slots = slots;
    context.slot_count = plan.slot_count;
    query_item_bind(&bound, item, sql_names(options), container, &slots[0]);
    rows = query_subquery_open(&plan.query, &context, err);
    return rows && query_rows_next(rows, &context, ret_holds, &value, err);
}
