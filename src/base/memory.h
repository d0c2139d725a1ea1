/* Heap memory that never fails to the caller: exhausted memory ends the process with a message.
 * Whatever grows from outside input carries its own maximum long before that (STYLE.md). */
#pragma once

#include "base/attrs.h"

void *memory_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *memory_alloc_zero(size_t size) __attribute__((malloc, returns_nonnull));
void *memory_realloc(void *old, size_t size) __attribute__((returns_nonnull));
void memory_free(void *pointer); /* NULL is fine */

/* CLEANUP(memory_free) works on a pointer to anything. */
static inline void memory_free_cleanup_(void *variable)
{
    memory_free(*(void **)variable);
}

/* Ends the process: "out of memory" is not a state the server can serve from. */
NORETURN void memory_exhausted(size_t size);

#define MEMORY_NEW(type) ((type *)memory_alloc_zero(sizeof(type)))

/* Multiplies sizes; an overflow counts as exhausted memory. */
static inline size_t memory_array_size(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        memory_exhausted(SIZE_MAX);
    return total;
}
