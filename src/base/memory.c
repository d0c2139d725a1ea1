#include "base/memory.h"

#include <unistd.h>

void *memory_alloc(size_t size)
{
    void *pointer = malloc(size ? size : 1);

    if (UNLIKELY(!pointer))
        memory_exhausted(size);
    return pointer;
}

void *memory_alloc_zero(size_t size)
{
    void *pointer = calloc(1, size ? size : 1);

    if (UNLIKELY(!pointer))
        memory_exhausted(size);
    return pointer;
}

void *memory_realloc(void *old, size_t size)
{
    void *pointer = realloc(old, size ? size : 1);

    if (UNLIKELY(!pointer))
        memory_exhausted(size);
    return pointer;
}

void memory_free(void *pointer)
{
    free(pointer);
}

/* Formats into the stack and writes at once: nothing here may allocate. */
void memory_exhausted(size_t size)
{
    char message[80];
    int length =
        snprintf(message, sizeof message, "orrery: out of memory (wanted %zu bytes)\n", size);

    if (write(STDERR_FILENO, message, (size_t)length) < 0) {
        /* There is nobody left to tell. */
    }
    _exit(70);
}
