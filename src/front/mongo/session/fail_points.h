/* Fail points: faults that a test asks for by configureFailPoint, of commands that come after.
 *
 * There is one, failCommand: it makes commands of given names fail with a code, break the
 * connection, wait first, or tell of a write concern that was not met. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#include <stdatomic.h>

struct mongo_fail_points; /* opaque, owned */

struct mongo_fail_points *mongo_fail_points_new(void);
void mongo_fail_points_free(struct mongo_fail_points *points); /* NULL is fine */

/* Sets one as the command (BSON) says. *ret_count: how often it was met since it was set before.
 * ERROR_MONGO with its codes: unknown name, mode or field, or a value that makes no sense. */
NODISCARD bool mongo_fail_points_configure(struct mongo_fail_points *points, struct slice command,
                                           int64_t *ret_count, struct error *err);

/* A command that comes. */
struct mongo_fail_subject {
    struct slice command;     /* its name as the client writes it */
    struct slice application; /* name of the client's application; empty: it named none */
    struct slice database;
    struct slice collection; /* empty: it is about none */
};

/* What is to become of it; slices are in the arena of mongo_fail_points_meet. */
struct mongo_fail {
    int64_t block_ms;     /* it waits so long first */
    bool close;           /* the connection ends without a reply */
    bool fails;           /* with the code below, before anything is done */
    int32_t code;         /* of fails */
    struct slice concern; /* BSON of the writeConcernError its reply gets; data NULL: none */
    bool labelled;        /* labels are these and no others: */
    struct slice labels;  /* BSON array; empty array: none */
};

/* False: nothing; else *ret_fail says what. */
bool mongo_fail_points_meet(struct mongo_fail_points *points,
                            const struct mongo_fail_subject *subject, struct arena *arena,
                            struct mongo_fail *ret_fail);
