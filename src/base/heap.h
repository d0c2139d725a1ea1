/* Heap: the greatest of a list on top, by the order that qsort would be given, so that a walk keeps
 * the least of what it sees in bounded memory. The list is the caller's. */
#pragma once

#include "base/attrs.h"

#include <stddef.h>

enum { HEAP_ELEMENT_MAX = 64 }; /* bytes */

/* The element at a place is no longer above those below it: it goes down. */
void heap_sift(void *list, size_t count, size_t size, size_t at,
               int (*order)(const void *a, const void *b));

/* The element at a place is no longer below the one above it: it goes up. */
void heap_rise(void *list, size_t size, size_t at, int (*order)(const void *a, const void *b));

/* Any list becomes a heap. */
void heap_make(void *list, size_t count, size_t size, int (*order)(const void *a, const void *b));
