/* In C++ (as is engine/rocks/memtable.cc): the standard library's shortest printing and exact reading of doubles have
 * no counterpart in C that is anywhere near as fast (the %.17g loop takes 20 to 30 times as long),
 * and the algorithms are too long to be our own. */
#include "document/double.h"

#include <charconv>

size_t double_to_text(double number, char text[DOUBLE_TEXT_MAX])
{
    return (size_t)(std::to_chars(text, text + DOUBLE_TEXT_MAX, number).ptr - text);
}

bool double_from_text(const char *text, size_t len, double *ret_number)
{
    std::from_chars_result result = std::from_chars(text, text + len, *ret_number);

    return result.ec == std::errc() && result.ptr == text + len;
}
