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
    return item_holds_admit(
        scope->holds,
        &(struct item_hold_question){
            .nodes = scope->nodes, .node = scope->node, .min = logical, .changes = true},
        err);
}
