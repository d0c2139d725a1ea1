/* Patches as the REST API brings them: parsed, and with their condition asked. */
#pragma once

#include "front/rest/target/items.h"

/* A patch on its way to an item; the context of rest_patch_make. */
struct rest_patch {
    struct rest_call *call;
    const struct rest_items *items;
    const struct patch *patch;
};

/* body: the array of operations, or an object with them. ERROR_BAD_REQUEST. */
NODISCARD bool rest_patch_parse(struct rest_call *call, const struct rest_items *items,
                                const struct document_value *body, struct rest_patch *ret_patch,
                                struct error *err);

/* The make of an operation that patches: the item as it is after the patch. ERROR_PATCH_CONDITION:
 * the condition does not hold for it. */
bool rest_patch_make(const struct item *item, void *rest_patch, struct arena *arena,
                     struct slice *ret_document, struct error *err);

/* Whether a condition ("from c where ...") holds for an item as it is stored. */
NODISCARD bool rest_patch_condition(struct rest_call *call, const struct rest_items *items,
                                    struct slice text, const struct item *item, bool *ret_holds,
                                    struct error *err);
