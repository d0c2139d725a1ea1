/* Arena: memory that is freed whole. One lives for each request; longer lives own one of theirs.
 *
 * Allocation moves a pointer; there is no way to give a single piece back. Not for several threads
 * at once. The memory is aligned for any type and not cleared, except by ARENA_NEW. */
#pragma once

#include "base/memory.h"
#include "base/slice.h"

struct arena; /* opaque, owned by its maker */

struct arena *arena_new(void);
void arena_free(struct arena *arena); /* NULL is fine */
CLEANUP_FN(struct arena *, arena_free)

/* Forgets everything allocated but keeps the first block, for the next request. */
void arena_reset(struct arena *arena);

void *arena_alloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));

/* Bytes handed out so far, for limits. */
size_t arena_used(const struct arena *arena);

struct slice arena_copy(struct arena *arena, struct slice s);
char *arena_text(struct arena *arena, struct slice s); /* NUL-terminated */
/* The parts one after the other. */
struct slice arena_join(struct arena *arena, const struct slice *parts, size_t count);
struct slice arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

void *arena_alloc_zero(struct arena *arena, size_t size) __attribute__((returns_nonnull));

#define ARENA_NEW(arena, type) ((type *)arena_alloc_zero((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count)                                                            \
    ((type *)arena_alloc((arena), memory_array_size((count), sizeof(type))))
