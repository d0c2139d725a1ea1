/* Words for what the compiler can check or do for us: cleanup at scope end, results that must be
 * looked at, printf-like arguments. Every source file gets banned.h through this header. */
#pragma once

#include "base/banned.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef NDEBUG
#error "asserts guard our own invariants and stay on in every build"
#endif

#define NODISCARD __attribute__((warn_unused_result))
#define UNUSED __attribute__((unused))
#define NORETURN __attribute__((noreturn))
#define PRINTF_LIKE(format_arg, first_arg)                                                         \
    __attribute__((format(printf, format_arg, first_arg), nonnull(format_arg)))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What a noun ends in behind its number: "%zu partition%s", count, PLURAL(count). */
#define PLURAL(number) ((number) == 1 ? "" : "s")
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) min_a_ = (a);                                                                \
        __typeof__(b) min_b_ = (b);                                                                \
        min_a_ < min_b_ ? min_a_ : min_b_;                                                         \
    })
#define MAX(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) max_a_ = (a);                                                                \
        __typeof__(b) max_b_ = (b);                                                                \
        max_a_ > max_b_ ? max_a_ : max_b_;                                                         \
    })

/* The structure that holds this member. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* CLEANUP(thing_free) struct thing *t = ...; frees t when the scope ends, unless TAKE(t) moved it
 * out. The function behind it is made once beside the destructor:
 *
 *     CLEANUP_FN(struct thing *, thing_free)     for destructors that take the pointer
 *     CLEANUP_VALUE_FN(struct buf, buf_done)     for _done functions of values held in place */
#define CLEANUP(fn) __attribute__((cleanup(fn##_cleanup_)))
#define CLEANUP_FN(type, fn)                                                                       \
    static inline void fn##_cleanup_(type *variable)                                               \
    {                                                                                              \
        if (*variable)                                                                             \
            fn(*variable);                                                                         \
    }
#define CLEANUP_VALUE_FN(type, fn)                                                                 \
    static inline void fn##_cleanup_(type *variable)                                               \
    {                                                                                              \
        fn(variable);                                                                              \
    }

/* Moves a pointer out of its variable, leaving NULL behind for the cleanup to find. */
#define TAKE(pointer)                                                                              \
    ({                                                                                             \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })
