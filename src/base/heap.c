#include "base/heap.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static void swap(uint8_t *a, uint8_t *b, size_t size)
{
    uint8_t moved[HEAP_ELEMENT_MAX];

    assert(size <= sizeof moved);
    memcpy(moved, a, size);
    memcpy(a, b, size);
    memcpy(b, moved, size);
}

void heap_sift(void *list, size_t count, size_t size, size_t at,
               int (*order)(const void *a, const void *b))
{
    uint8_t *heap = list;

    for (;;) {
        size_t most = at, left = 2 * at + 1;

        for (size_t child = left; child < left + 2 && child < count; child++)
            if (order(heap + child * size, heap + most * size) > 0)
                most = child;
        if (most == at)
            return;
        swap(heap + at * size, heap + most * size, size);
        at = most;
    }
}

void heap_rise(void *list, size_t size, size_t at, int (*order)(const void *a, const void *b))
{
    uint8_t *heap = list;

    while (at > 0 && order(heap + at * size, heap + (at - 1) / 2 * size) > 0) {
        swap(heap + at * size, heap + (at - 1) / 2 * size, size);
        at = (at - 1) / 2;
    }
}

void heap_make(void *list, size_t count, size_t size, int (*order)(const void *a, const void *b))
{
    for (size_t i = count / 2; i-- > 0;)
        heap_sift(list, count, size, i, order);
}
