/* Traversals as scripts, in one form: every enumeration with its type, nested traversals with __,
 * numbers with their suffix, strings in single quotes. What is written so parses to the same. */
#pragma once

#include "front/gremlin/value/traversal.h"

void gremlin_text_traversal(const struct gremlin_traversal *traversal, struct buf *buf);
void gremlin_text_value(struct gremlin_value value, struct buf *buf);
