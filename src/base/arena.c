/* A chain of blocks, each twice as large as the one before up to a ceiling; something larger than
 * the ceiling gets a block of its own. The arena itself lives in its first block, so that a small
 * request costs one malloc, and none when the arena is reset and used again.
 *
 * A request makes and frees a dozen arenas or two, mostly on one thread, and their first blocks are
 * larger than what malloc keeps for a thread: each thread keeps some of those it has freed.
 *
 * Under AddressSanitizer the unused rest of each block is poisoned, so that reading past an
 * allocation is caught as it would be with malloc, and no block is kept, so that one that is used
 * after its arena is seen. */
#include "base/arena.h"

#include <pthread.h>
#include <stdarg.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#endif
#ifdef ARENA_POISON
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#define RED_ZONE 16
#else
#define POISON(p, n) ((void)0)
#define UNPOISON(p, n) ((void)0)
#define RED_ZONE 0
#endif

enum {
    BLOCK_FIRST = 4096,
    /* The server lets the system map what is so large (memory_prepare), so that what a request
     * leaves behind lies in nobody's heap, and no loop that frees a few bytes has to trim it. */
    BLOCK_MAX = 1024 * 1024,
    ALIGNMENT = 16,
#ifdef ARENA_POISON
    KEPT_MAX = 0,
#else
    KEPT_MAX = 32, /* first blocks of a thread */
#endif
};

struct block {
    struct block *previous;
    size_t size; /* of bytes[] */
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

struct arena {
    struct block *current;
    size_t at;        /* first free byte of current */
    size_t used;      /* handed out from the blocks before current */
    size_t next_size; /* of the next ordinary block */
};

static size_t aligned(size_t size)
{
    return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static struct block *block_new(size_t size, struct block *previous)
{
    struct block *block = memory_alloc(sizeof *block + size);

    block->previous = previous;
    block->size = size;
    return block;
}

/* --- First blocks that a thread keeps --------------------------------------------------------- */

struct kept {
    struct block *last; /* the others by `previous` */
    unsigned count;
    bool known; /* the key has it, so that it ends with the thread */
};

static _Thread_local struct kept kept;
static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void kept_end(void *context)
{
    struct kept *ending = context;

    while (ending->last) {
        struct block *block = ending->last;

        ending->last = block->previous;
        memory_free(block);
    }
    ending->count = KEPT_MAX; /* what is freed from here on is not kept */
}

static void kept_begin(void)
{
    if (pthread_key_create(&kept_key, kept_end) != 0)
        memory_exhausted(sizeof kept);
}

static struct block *first_new(void)
{
    struct block *block = kept.last;

    if (!block)
        return block_new(BLOCK_FIRST - sizeof(struct block), NULL);
    kept.last = block->previous;
    kept.count--;
    block->previous = NULL;
    return block;
}

static void first_free_or_keep(struct block *block)
{
    if (!kept.known && KEPT_MAX > 0) {
        pthread_once(&kept_once, kept_begin);
        kept.known = pthread_setspecific(kept_key, &kept) == 0;
    }
    if (!kept.known || kept.count >= KEPT_MAX) {
        memory_free(block);
        return;
    }
    block->previous = kept.last;
    kept.last = block;
    kept.count++;
}

/* ---------------------------------------------------------------------------------------------- */

static size_t first_free(void)
{
    return aligned(sizeof(struct arena)) + RED_ZONE;
}

struct arena *arena_new(void)
{
    struct block *block = first_new();
    struct arena *arena = (struct arena *)block->bytes;

    *arena = (struct arena){.current = block, .at = first_free(), .next_size = 2 * BLOCK_FIRST};
    POISON(block->bytes + arena->at, block->size - arena->at);
    return arena;
}

/* Frees every block but the first, where the arena itself is. */
static struct block *blocks_drop_later(struct arena *arena)
{
    struct block *block = arena->current;

    while (block->previous) {
        struct block *previous = block->previous;

        UNPOISON(block->bytes, block->size);
        memory_free(block);
        block = previous;
    }
    return block;
}

void arena_free(struct arena *arena)
{
    struct block *first;

    if (!arena)
        return;
    first = blocks_drop_later(arena);
    UNPOISON(first->bytes, first->size);
    first_free_or_keep(first);
}

void arena_reset(struct arena *arena)
{
    struct block *first = blocks_drop_later(arena);

    *arena = (struct arena){.current = first, .at = first_free(), .next_size = 2 * BLOCK_FIRST};
    POISON(first->bytes + arena->at, first->size - arena->at);
}

static void arena_grow(struct arena *arena, size_t size)
{
    size_t block_size = MAX(arena->next_size, size);

    arena->used += arena->at;
    arena->current = block_new(block_size, arena->current);
    arena->at = 0;
    arena->next_size = MIN(arena->next_size * 2, (size_t)BLOCK_MAX);
    POISON(arena->current->bytes, block_size);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t wanted = aligned(size) + RED_ZONE;
    uint8_t *pointer;

    if (UNLIKELY(wanted < size))
        memory_exhausted(size);
    if (UNLIKELY(arena->current->size - arena->at < wanted))
        arena_grow(arena, wanted);
    pointer = arena->current->bytes + arena->at;
    arena->at += wanted;
    UNPOISON(pointer, size);
    return pointer;
}

void *arena_alloc_zero(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

size_t arena_used(const struct arena *arena)
{
    return arena->used + arena->at;
}

struct slice arena_copy(struct arena *arena, struct slice s)
{
    uint8_t *copy = arena_alloc(arena, s.len);

    if (s.len)
        memcpy(copy, s.data, s.len);
    return slice_of(copy, s.len);
}

char *arena_text(struct arena *arena, struct slice s)
{
    char *text = arena_alloc(arena, s.len + 1);

    if (s.len)
        memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    return text;
}

struct slice arena_join(struct arena *arena, const struct slice *parts, size_t count)
{
    size_t len = 0;
    uint8_t *bytes;

    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    bytes = arena_alloc(arena, len);
    len = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len)
            memcpy(bytes + len, parts[i].data, parts[i].len);
        len += parts[i].len;
    }
    return slice_of(bytes, len);
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args, again;
    int length;
    char *text;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    assert(length >= 0);
    text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return slice_of(text, (size_t)length);
}
