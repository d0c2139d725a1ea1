/* Doubles as decimal text: shortest form that reads back the same, and exact reading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DOUBLE_TEXT_MAX = 32 };

/* Writes the shortest decimal form of a finite number and gives its length: 0.1, 1e-07, 1e+21. */
size_t double_to_text(double number, char text[DOUBLE_TEXT_MAX]);

/* Reads the number that the text of len bytes is, correctly rounded. False if it is no number as a
 * whole, or too large or too small for a double. */
bool double_from_text(const char *text, size_t len, double *ret_number);

#ifdef __cplusplus
}
#endif
