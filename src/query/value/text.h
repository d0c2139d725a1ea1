/* Text: strings by position, case and parts.
 *
 * SQL counts positions in UTF-16 units, documents hold UTF-8; a character above U+FFFF is two
 * units. Cutting one in half leaves a surrogate in its three-byte form, and whoever joins texts
 * makes the halves one again: so every text made here is one that the validator takes. For text
 * that is all ASCII, units are bytes and nothing is copied.
 *
 * Case is changed character by character with the simple mappings of Unicode, as the invariant
 * culture of the service does: no locale, and a text never changes its number of characters. */
#pragma once

#include "query/value/context.h"

/* Is every byte ASCII? */
bool query_text_is_ascii(struct slice text);

/* The code point at `at` (at < end) and the bytes it takes; bytes that are no character count one
 * by one. */
uint32_t query_text_decode(const uint8_t *at, const uint8_t *end, size_t *ret_len);

/* Length in UTF-16 units. */
uint64_t query_text_units(struct slice text);

/* The byte at which unit number `unit` begins, text.len if there is none. If that is inside a
 * character, the byte at which the character begins, and *ret_inside. */
size_t query_text_offset(struct slice text, uint64_t unit, bool *ret_inside);

/* count units from unit start on, cut to what is there. */
NODISCARD bool query_text_cut(struct slice text, uint64_t start, uint64_t count,
                              struct query_context *context, struct slice *ret_part,
                              struct error *err);

/* Appends to a text that was begun at mark, and joins the halves of a character that meet there. */
void query_text_append(struct buf *buf, size_t mark, struct slice part);

/* The text put together in the context's scratch since mark, as a value. */
NODISCARD bool query_text_end(struct query_context *context, size_t mark,
                              struct document_value *ret_value, struct error *err);

enum query_case { QUERY_CASE_LOWER, QUERY_CASE_UPPER };

/* The text in that case. If nothing changes it is the text itself. */
NODISCARD bool query_text_convert(struct slice text, enum query_case to,
                                  struct query_context *context, struct slice *ret_text,
                                  struct error *err);

/* The first, or last, place of part in text as a byte offset; SIZE_MAX: it is not there. The empty
 * part is at the beginning, and at the end. */
size_t query_text_find(struct slice text, struct slice part);
size_t query_text_find_last(struct slice text, struct slice part);
bool query_text_ends_with(struct slice text, struct slice part);
