/* An item as a client sent it. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "document/names.h"

/* The item that a client means by what it sent (item/shown.h), without system properties; its id is
 * a text within the rules, or what MongoDB takes. Both are borrowed from document or in the arena.
 * ERROR_BAD_REQUEST. */
NODISCARD bool front_item_clean(const struct document_names *names, struct slice document,
                                struct arena *arena, struct slice *ret_item,
                                struct document_value *ret_id, struct error *err);
