/* The sizes of BSON values, for the walker and the validator of this folder. */
#pragma once

#include "document/value.h"

/* Says how many bytes the value at `at` takes, given that `room` bytes follow. False if the type is
 * unknown, a length leads outside, or a terminator is missing. Looks at the outermost level only.
 */
bool bson_value_size(uint8_t type, const uint8_t *at, size_t room, size_t *ret_size);

/* Decodes a value whose size was just given by bson_value_size. */
void bson_value_decode(uint8_t type, const uint8_t *at, size_t size,
                       struct document_value *ret_value);
