/* An item as a client sent it. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "document/names.h"

/* Takes system properties out of it, and checks its id: a text within the rules. Both are borrowed
 * from document or in the arena. ERROR_BAD_REQUEST. */
NODISCARD bool front_item_clean(const struct document_names *names, struct slice document,
                                struct arena *arena, struct slice *ret_item,
                                struct document_value *ret_id, struct error *err);
