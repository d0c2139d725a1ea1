/* What every cmocka test includes: the headers cmocka insists on, in its order, and a few checks
 * for our own types. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The call succeeded; otherwise the error it set is the failure message. */
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s: %s", #call, error_face((err)->code)->name, (err)->message);          \
    } while (0)

/* The call failed with just this code. */
#define assert_fails(call, err, expected)                                                          \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s succeeded", #call);                                                       \
        if ((err)->code != (expected))                                                             \
            fail_msg("%s: wanted %s, got %s: %s", #call, error_face(expected)->name,               \
                     error_face((err)->code)->name, (err)->message);                               \
    } while (0)

#define assert_slice_equal(got, expected)                                                          \
    do {                                                                                           \
        struct slice got_ = (got), expected_ = (expected);                                         \
        if (!slice_equal(got_, expected_))                                                         \
            fail_msg("%s is \"%.*s\", not \"%.*s\"", #got, SLICE_ARG(got_), SLICE_ARG(expected_)); \
    } while (0)

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            fail_msg("\"%s\" does not contain \"%s\"", (text), (part));                            \
    } while (0)
