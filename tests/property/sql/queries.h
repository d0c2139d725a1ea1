/* Random documents and random queries over them, as text, from a seed. */
#pragma once

#include "base/buf.h"
#include "base/random.h"

/* One document as JSON: its id and u are the number, the rest is of few values and many types, so
 * that equal and nearly equal ones are common. */
void random_document(struct random *random, unsigned number, struct buf *text);

/* What of the answer is fixed. */
enum random_promise {
    RANDOM_ROWS,     /* the rows, in any order */
    RANDOM_SEQUENCE, /* the rows, in their order */
    RANDOM_KEYS,     /* the first elements of the rows, in their order: the rest may be tied */
    RANDOM_COUNT,    /* so many of all the rows there are */
};

/* Appends a query that is well-formed and resolves. */
enum random_promise random_query(struct random *random, struct buf *text);
