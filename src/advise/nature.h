/* Nature: what sort of thing the value of a property is, as far as the value itself shows it. A
 * measurement, a time or a sentence may be spread as evenly as one likes: nobody asks for "all
 * items of 21.37 degrees", so that it makes no key unless requests show that somebody does. */
#pragma once

#include "base/buf.h"
#include "document/value.h"

enum advise_nature {
    ADVISE_NATURE_NAME,    /* could name something: short texts, and whatever is none of these */
    ADVISE_NATURE_INTEGER, /* a count or an amount, or a number somebody gave to something */
    ADVISE_NATURE_NUMBER,  /* a measurement */
    ADVISE_NATURE_TIME,    /* a date, or a time of a day */
    ADVISE_NATURE_PROSE,   /* text for people */
};
enum { ADVISE_NATURES = 5 };

/* Also of a text that advise_nature_mark has made. */
enum advise_nature advise_nature_of(const struct document_value *value);

/* What a record holds instead of a value that is not to be seen: the hash, behind its nature. */
void advise_nature_mark(enum advise_nature nature, uint64_t hash, struct buf *out);

/* Does a property of this path, by its last word, number things: /customerId, /order_no? */
bool advise_nature_path_numbers(struct slice path);
