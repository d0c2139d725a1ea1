/* Text as requests of all fronts write it: percent escapes, and names without case. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

/* Percent escapes replaced; the same bytes when there are none. False when one is broken. */
NODISCARD bool front_percent_decode(struct slice text, struct arena *arena, struct slice *ret_text);

/* Appends the text with escapes, as encodeURI of JavaScript does: what clients compare links by. */
void front_percent_encode(struct slice text, struct buf *out);

/* A path without the slashes at its end, which mean nothing: the Python library ends every path in
 * one. "/" becomes empty. */
struct slice front_slashes_drop(struct slice path);

/* ASCII letters made small; in the arena. */
struct slice front_lower(struct slice text, struct arena *arena);

/* 0 to 15; -1: it is no hexadecimal digit. */
int front_hex_digit(uint8_t c);
