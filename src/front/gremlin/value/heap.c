/* Small pieces come from blocks, in classes of 16 bytes, each with a list of those given back;
 * larger ones from malloc, in a list of their own so that the heap can be freed whole. A block is
 * never given back before that: what a class has held once it may hold again. Weighed: malloc for
 * everything, which costs three times as much for the strings and path nodes of a traversal and
 * makes freeing the heap a walk over all values.
 *
 * Under AddressSanitizer every piece is malloc's, so that a value used after its last reference is
 * seen. */
#include "front/gremlin/value/heap_private.h"

#include "base/memory.h"
#include "base/random.h"

enum {
    STEP = 16,
    CLASSES = GREMLIN_HEAP_CLASSES, /* up to 512 bytes */
    SMALL_MAX = STEP * CLASSES,
    BLOCK_FIRST = 4096,
    BLOCK_MAX = 256 * 1024,
};

#if defined(__SANITIZE_ADDRESS__)
#define EVERY_PIECE_ALONE true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EVERY_PIECE_ALONE true
#endif
#endif
#ifndef EVERY_PIECE_ALONE
#define EVERY_PIECE_ALONE false
#endif

struct gremlin_piece {
    struct gremlin_piece *next;
};

struct gremlin_block {
    struct gremlin_block *next;
    size_t size; /* keeps what follows aligned to 16, too */
};

struct gremlin_large {
    struct gremlin_large *next, *before;
};

/* What values are hashed with must not be guessed, but is not shown to anybody either: a secret of
 * the thread and what follows from it will do, where asking the system is a call for each request.
 */
static uint64_t hash_seed(void)
{
    static _Thread_local struct random sequence;
    static _Thread_local bool begun;
    uint64_t secret;

    if (!begun) {
        random_secret(&secret, sizeof secret);
        random_seed(&sequence, secret);
        begun = true;
    }
    return random_next(&sequence);
}

struct gremlin_heap *gremlin_heap_new(const struct gremlin_heap_options *options)
{
    struct gremlin_heap *heap = MEMORY_NEW(struct gremlin_heap);

    heap->limit = options->limit ? options->limit : SIZE_MAX;
    heap->meter = options->meter;
    heap->shared = options->shared;
    heap->block_size = BLOCK_FIRST;
    heap->seed = hash_seed();
    return heap;
}

void gremlin_heap_free(struct gremlin_heap *heap)
{
    if (!heap)
        return;
    for (struct gremlin_block *block = heap->blocks; block;) {
        struct gremlin_block *next = block->next;

        memory_free(block);
        block = next;
    }
    for (struct gremlin_large *large = heap->large; large;) {
        struct gremlin_large *next = large->next;

        memory_free(large);
        large = next;
    }
    memory_meter_set(heap->meter, heap->held, 0);
    memory_free(heap);
}

/* The meter is told of what is held whether it likes it or not: the heap has it already. */
static void held_change(struct gremlin_heap *heap, size_t now)
{
    if (!memory_meter_change(heap->meter, heap->held, now)) {
        heap->over_meter = true;
        memory_meter_set(heap->meter, heap->held, now);
    }
    heap->held = now;
    if (now > heap->limit)
        heap->over_limit = true;
}

void gremlin_heap_set_limit(struct gremlin_heap *heap, size_t limit)
{
    heap->limit = limit ? limit : SIZE_MAX;
    heap->over_limit = heap->held > heap->limit;
}

bool gremlin_heap_failed(const struct gremlin_heap *heap)
{
    return heap->over_limit || heap->over_meter;
}

bool gremlin_heap_error(const struct gremlin_heap *heap, struct error *err)
{
    if (heap->over_limit)
        return error_set(err, ERROR_TOO_LARGE,
                         "the values of the request take more than the limit of %zu bytes",
                         heap->limit);
    return error_set(err, ERROR_MEMORY_FULL,
                     "requests of the account hold as much memory as they may");
}

size_t gremlin_heap_held(const struct gremlin_heap *heap)
{
    return heap->held;
}

size_t gremlin_heap_used(const struct gremlin_heap *heap)
{
    return heap->used;
}

uint64_t gremlin_heap_seed(const struct gremlin_heap *heap)
{
    return heap->seed;
}

/* --- Pieces ----------------------------------------------------------------------------------- */

static bool is_small(size_t size)
{
    return !EVERY_PIECE_ALONE && size <= SMALL_MAX;
}

static void *large_new(struct gremlin_heap *heap, size_t size)
{
    struct gremlin_large *large = memory_alloc(memory_array_size(size + sizeof *large, 1));

    *large = (struct gremlin_large){.next = heap->large};
    if (heap->large)
        heap->large->before = large;
    heap->large = large;
    held_change(heap, heap->held + size + sizeof *large);
    return large + 1;
}

static void large_unlink(struct gremlin_heap *heap, struct gremlin_large *large)
{
    if (large->next)
        large->next->before = large->before;
    if (large->before)
        large->before->next = large->next;
    else
        heap->large = large->next;
}

static void *block_piece(struct gremlin_heap *heap, size_t size)
{
    uint8_t *piece;

    if ((size_t)(heap->end - heap->at) < size) {
        struct gremlin_block *block = memory_alloc(heap->block_size);

        *block = (struct gremlin_block){heap->blocks, heap->block_size};
        heap->blocks = block;
        heap->at = (uint8_t *)(block + 1);
        heap->end = (uint8_t *)block + heap->block_size;
        held_change(heap, heap->held + heap->block_size);
        heap->block_size = MIN(heap->block_size * 2, (size_t)BLOCK_MAX);
    }
    piece = heap->at;
    heap->at += size;
    return piece;
}

void *gremlin_heap_alloc(struct gremlin_heap *heap, size_t size)
{
    size_t class;
    struct gremlin_piece *piece;

    size = size ? size : 1;
    heap->used += size;
    if (!is_small(size))
        return large_new(heap, size);
    class = (size - 1) / STEP;
    piece = heap->free[class];
    if (UNLIKELY(!piece))
        return block_piece(heap, (class + 1) * STEP);
    heap->free[class] = piece->next;
    return piece;
}

void gremlin_heap_release(struct gremlin_heap *heap, void *memory, size_t size)
{
    size = size ? size : 1;
    if (!memory)
        return;
    heap->used -= size;
    if (is_small(size)) {
        struct gremlin_piece *piece = memory;

        piece->next = heap->free[(size - 1) / STEP];
        heap->free[(size - 1) / STEP] = piece;
    } else {
        struct gremlin_large *large = (struct gremlin_large *)memory - 1;

        large_unlink(heap, large);
        memory_free(large);
        held_change(heap, heap->held - size - sizeof *large);
    }
}

/* Large pieces move with realloc, which for the largest copies nothing. */
void *gremlin_heap_grow(struct gremlin_heap *heap, void *old, size_t old_size, size_t size)
{
    if (old && old_size && !is_small(old_size) && !is_small(size)) {
        struct gremlin_large *large = (struct gremlin_large *)old - 1;

        large_unlink(heap, large);
        large = memory_realloc(large, memory_array_size(size + sizeof *large, 1));
        *large = (struct gremlin_large){.next = heap->large};
        if (heap->large)
            heap->large->before = large;
        heap->large = large;
        heap->used += size - old_size;
        held_change(heap, heap->held + size - old_size);
        return large + 1;
    }
    void *memory = gremlin_heap_alloc(heap, size);

    if (old) {
        memcpy(memory, old, MIN(old_size, size));
        gremlin_heap_release(heap, old, old_size);
    }
    return memory;
}

void *gremlin_object_new(struct gremlin_heap *heap, enum gremlin_type type, size_t size)
{
    struct gremlin_object *object = gremlin_heap_alloc(heap, size);

    *object = (struct gremlin_object){heap->shared ? GREMLIN_FOREVER : 1, type, heap};
    return object;
}
