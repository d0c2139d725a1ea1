/* Collator: texts compared as people of a language order them, by ICU.
 *
 * There is one collator of each kind in the process; it is made when it is first asked for and
 * never freed, so that definitions, plans and cursors of any thread may point to it, and two that
 * are the same kind are one pointer. At most DOCUMENT_COLLATORS_MAX kinds are made.
 *
 * Values are not compared by the collator itself. They are brought into comparison form, in which
 * each text stands for its sort key: a text again, whose bytes order as the collator orders. All
 * that compares, sorts, groups and keeps values goes on as it does. Sort keys of one version of a
 * collator are not those of another (document_collator_version): whoever keeps them says which. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"

struct document_collator;

enum { DOCUMENT_COLLATORS_MAX = 256, DOCUMENT_COLLATE_MAX = 1 << 20 };

/* What a collator is asked to do. Words are MongoDB's; where there is none it is as the locale has
 * it. */
struct document_collation {
    struct slice locale;       /* "fr", "de@collation=phonebook" */
    int64_t strength;          /* 1 to 5 */
    struct slice case_first;   /* off, upper, lower */
    struct slice alternate;    /* non-ignorable, shifted */
    struct slice max_variable; /* punct, space */
    bool case_level, numeric, normalization;
    bool backwards, backwards_given;
};

/* ERROR_BAD_REQUEST: *ret_wrong is the member of the document that is wrong; ERROR_NOT_SUPPORTED:
 * there are too many kinds by now. */
NODISCARD bool document_collator_find(const struct document_collation *terms,
                                      const struct document_collator **ret_collator,
                                      struct slice *ret_wrong, struct error *err);

/* The same from a document with members of these names, as document_collator_document gives it;
 * others are refused, "version" is not looked at. */
NODISCARD bool document_collator_read(struct slice document,
                                      const struct document_collator **ret_collator,
                                      struct error *err);

/* The document with all its members, as lists of collections show it; lives as long as the process.
 */
struct slice document_collator_document(const struct document_collator *collator);

/* Which rules make its sort keys, such as "153.120"; lives as long as the process. */
struct slice document_collator_version(const struct document_collator *collator);

/* The sort key of a text, as text. Returns its length; it is written if it fits the room. */
size_t document_collator_key(const struct document_collator *collator, struct slice text,
                             uint8_t *room, size_t size);

/* Is there a text in the value, at any depth? Without one collations make no difference. */
bool document_collate_matters(const struct document_value *value);

/* The value in comparison form: in the arena, or as it is where there is nothing to do. collator
 * NULL: as it is. Its texts are at most DOCUMENT_COLLATE_MAX bytes together. */
struct document_value document_collate(const struct document_collator *collator,
                                       const struct document_value *value, struct arena *arena);
