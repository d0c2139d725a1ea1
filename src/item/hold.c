#include "item/hold.h"

#include "item/scope.h"

bool item_scope_admits(const struct item_scope *scope, struct slice logical, struct error *err)
{
    if (scope->promotions && !promotion_list_admits(scope->promotions, logical, err))
        return false;
    return item_holds_admit(
        scope->holds,
        &(struct item_hold_question){.nodes = scope->nodes, .node = scope->node, .min = logical},
        err);
}

bool item_scope_admits_write(const struct item_scope *scope, struct slice logical,
                             struct error *err)
{
    if (scope->read_only)
        return error_set(err, ERROR_VIEW_READ_ONLY,
                         "container \"%.*s\" is a view: its items follow from its sources, and "
                         "are not written",
                         SLICE_ARG(scope->definition->id));
    return item_holds_admit(
        scope->holds,
        &(struct item_hold_question){
            .nodes = scope->nodes, .node = scope->node, .min = logical, .changes = true},
        err);
}
