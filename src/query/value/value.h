/* Values that outlive what they were read from. */
#pragma once

#include "base/arena.h"
#include "document/value.h"

/* The value with all its bytes in the arena. */
struct document_value query_value_copy(const struct document_value *value, struct arena *arena);

/* Is the value nested at most that deep? A scalar has no level, [] has one. */
bool query_value_nests_within(const struct document_value *value, unsigned levels);

/* The bytes such a copy takes. */
size_t query_value_bytes(const struct document_value *value);
