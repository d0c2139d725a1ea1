#include "front/gremlin/value/traversal.h"

struct gremlin_value gremlin_traversal_new(struct gremlin_heap *heap, bool spawned)
{
    struct gremlin_traversal *traversal =
        gremlin_object_new(heap, GREMLIN_TRAVERSAL, sizeof *traversal);

    traversal->spawned = spawned;
    traversal->sources = (struct gremlin_instructions){};
    traversal->steps = (struct gremlin_instructions){};
    traversal->terminal = GREMLIN_TO_LIST;
    traversal->amount = 0;
    return gremlin_value_of_take(traversal);
}

struct gremlin_instruction *gremlin_traversal_add(struct gremlin_traversal *traversal,
                                                  struct gremlin_instructions *into,
                                                  struct slice name)
{
    struct gremlin_heap *heap = traversal->object.heap;
    struct gremlin_instruction *instruction;
    void *copy = NULL;

    if (into->count == into->capacity) {
        uint32_t capacity = into->capacity ? into->capacity * 2 : 4;

        into->items = gremlin_heap_grow(heap, into->items, into->capacity * sizeof into->items[0],
                                        capacity * sizeof into->items[0]);
        into->capacity = capacity;
    }
    if (name.len) {
        copy = gremlin_heap_alloc(heap, name.len);
        memcpy(copy, name.data, name.len);
    }
    instruction = &into->items[into->count++];
    *instruction = (struct gremlin_instruction){.name = slice_of(copy, name.len)};
    return instruction;
}

void gremlin_instruction_add_take(struct gremlin_traversal *traversal,
                                  struct gremlin_instruction *instruction,
                                  struct gremlin_value argument)
{
    if (instruction->count == instruction->capacity) {
        uint32_t capacity = instruction->capacity ? instruction->capacity * 2 : 2;

        instruction->arguments =
            gremlin_heap_grow(traversal->object.heap, instruction->arguments,
                              instruction->capacity * sizeof argument, capacity * sizeof argument);
        instruction->capacity = capacity;
    }
    instruction->arguments[instruction->count++] = argument;
}
