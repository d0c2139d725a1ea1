#include "front/rest/query/patch.h"

#include "document/extended.h"
#include "front/rest/query/query.h"
#include "front/rest/sql/condition.h"
#include "item/shown.h"
#include "partition/synthetic.h"

bool rest_patch_parse(struct rest_call *call, const struct rest_items *items,
                      const struct document_value *body, struct rest_patch *ret_patch,
                      struct error *err)
{
    const struct document_names *names = definition_names_of(items->space.definition);
    const struct partition_definition *key = &items->space.definition->key;
    struct document_value taken = *body;
    struct document_path paths[PARTITION_PATHS_MAX + PARTITION_SOURCES_MAX];
    size_t count = 0;

    *ret_patch = (struct rest_patch){.call = call, .items = items};
    if (!item_shows_plainly(names) &&
        !document_extended_read(body, call->arena, &taken, err)) /* the values in it */
        return false;
    for (size_t i = 0; i < key->path_count; i++)
        paths[count++] = key->paths[i];
    for (size_t i = 0; key->synthetic && i < key->synthetic->source_count; i++)
        paths[count++] = key->synthetic->sources[i];
    return patch_parse(&taken, names, paths, count, call->arena, &ret_patch->patch, err);
}

bool rest_patch_condition(struct rest_call *call, const struct rest_items *items, struct slice text,
                          const struct item *item, bool *ret_holds, struct error *err)
{
    struct sql_compile_options options = rest_query_options(items);
    struct sql_error fault = {0};

    if (!rest_query_text_hold(call, text.len, err))
        return false;
    if (sql_condition_holds(text, item, container_rid(items->container), &options, call->arena,
                            ret_holds, &fault, err))
        return true;
    rest_query_fault(call, &fault);
    return false;
}

bool rest_patch_make(const struct item *item, void *rest_patch, struct arena *arena,
                     struct slice *ret_document, struct error *err)
{
    struct rest_patch *patch = rest_patch;
    bool holds = true;

    if (patch->patch->condition.data &&
        !rest_patch_condition(patch->call, patch->items, patch->patch->condition, item, &holds,
                              err))
        return false;
    if (!holds)
        return error_set(err, ERROR_PATCH_CONDITION,
                         "the condition of the patch does not hold for the item");
    return item_make_patched(item, (void *)patch->patch, arena, ret_document, err);
}
