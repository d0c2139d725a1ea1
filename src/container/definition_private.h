/* Parts of a definition that have a file of their own. */
#pragma once

#include "container/definition.h"

/* Checks the vector, full-text and client encryption policies of a body, and that the indexes of
 * its indexing policy fit them. What they say is kept as it is; before: the definition a replace
 * begins with, else NULL. ERROR_BAD_REQUEST in the words of the service. */
NODISCARD bool definition_policies_check(struct slice body, const struct definition_fields *before,
                                         struct arena *arena, struct error *err);
