/* The end of objects: what each holds is let go of, and its memory given back.
 *
 * An object whose last reference goes while another is being taken apart waits in a list of its
 * heap, so that a path of a million nodes or a list in a list in a list ends without recursion. */
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/heap_private.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/traversal.h"

static void list_end(struct gremlin_heap *heap, struct gremlin_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        gremlin_value_unref(list->items[i]);
    gremlin_heap_release(heap, list->items, list->capacity * sizeof list->items[0]);
    gremlin_heap_release(heap, list, sizeof *list);
}

static void table_end(struct gremlin_heap *heap, struct gremlin_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        gremlin_value_unref(table->rows[i].key);
        gremlin_value_unref(table->rows[i].value);
    }
    gremlin_heap_release(heap, table->rows, table->capacity * sizeof table->rows[0]);
    gremlin_heap_release(heap, table->slots, table->slot_count * sizeof table->slots[0]);
    gremlin_heap_release(heap, table, sizeof *table);
}

static void end_unref(struct gremlin_end *end)
{
    gremlin_value_unref(end->id);
    gremlin_value_unref(end->label);
    gremlin_value_unref(end->partition);
}

/* What all elements hold. */
static void element_unref(struct gremlin_element *element)
{
    gremlin_value_unref(element->id);
    gremlin_value_unref(element->label);
    gremlin_value_unref(element->partition);
    gremlin_object_unref(element->properties);
    gremlin_object_unref(element->stored);
}

static void properties_end(struct gremlin_heap *heap, struct gremlin_properties *properties)
{
    gremlin_properties_clear(properties);
    gremlin_heap_release(heap, properties->slots,
                         properties->capacity * sizeof properties->slots[0]);
    gremlin_heap_release(heap, properties, sizeof *properties);
}

static void instructions_end(struct gremlin_heap *heap, struct gremlin_instructions *instructions)
{
    for (size_t i = 0; i < instructions->count; i++) {
        struct gremlin_instruction *instruction = &instructions->items[i];

        for (size_t j = 0; j < instruction->count; j++)
            gremlin_value_unref(instruction->arguments[j]);
        gremlin_heap_release(heap, instruction->arguments,
                             instruction->capacity * sizeof instruction->arguments[0]);
        if (instruction->name.len)
            gremlin_heap_release(heap, (void *)instruction->name.data, instruction->name.len);
    }
    gremlin_heap_release(heap, instructions->items,
                         instructions->capacity * sizeof instructions->items[0]);
}

static void stored_end(struct gremlin_heap *heap, struct gremlin_stored *stored)
{
    if (stored->done)
        stored->done(stored);
    gremlin_heap_release(heap, stored, stored->size);
}

static void two_values_end(struct gremlin_heap *heap, void *object, size_t size,
                           struct gremlin_value a, struct gremlin_value b)
{
    gremlin_value_unref(a);
    gremlin_value_unref(b);
    gremlin_heap_release(heap, object, size);
}

/* Vertices, edges, properties, paths. */
static void element_end(struct gremlin_heap *heap, struct gremlin_object *object)
{
    struct gremlin_value value = {.type = (enum gremlin_type)object->type, .object = object};

    switch (value.type) {
    case GREMLIN_VERTEX:
        element_unref(gremlin_element(value));
        gremlin_heap_release(heap, object, sizeof(struct gremlin_vertex));
        break;
    case GREMLIN_EDGE:
        element_unref(gremlin_element(value));
        end_unref(&gremlin_edge(value)->out);
        end_unref(&gremlin_edge(value)->in);
        gremlin_heap_release(heap, object, sizeof(struct gremlin_edge));
        break;
    case GREMLIN_VERTEX_PROPERTY:
        element_unref(gremlin_element(value));
        two_values_end(heap, object, sizeof(struct gremlin_vertex_property),
                       gremlin_vertex_property(value)->value,
                       gremlin_vertex_property(value)->vertex);
        break;
    case GREMLIN_PROPERTY:
        gremlin_value_unref(gremlin_property(value)->owner);
        two_values_end(heap, object, sizeof(struct gremlin_property), gremlin_property(value)->key,
                       gremlin_property(value)->value);
        break;
    default:
        gremlin_object_unref(gremlin_path(value)->before);
        two_values_end(heap, object, sizeof(struct gremlin_path), gremlin_path(value)->value,
                       gremlin_path(value)->labels);
        break;
    }
}

static void traversal_end(struct gremlin_heap *heap, struct gremlin_traversal *traversal)
{
    instructions_end(heap, &traversal->sources);
    instructions_end(heap, &traversal->steps);
    gremlin_heap_release(heap, traversal, sizeof *traversal);
}

static void predicate_end(struct gremlin_heap *heap, struct gremlin_predicate *predicate)
{
    for (size_t i = 0; i < predicate->count; i++)
        gremlin_value_unref(predicate->values[i]);
    gremlin_heap_release(heap, predicate,
                         sizeof *predicate + predicate->count * sizeof predicate->values[0]);
}

static void bury(struct gremlin_heap *heap, struct gremlin_object *object)
{
    struct gremlin_value value = {.type = (enum gremlin_type)object->type, .object = object};

    switch (value.type) {
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
    case GREMLIN_STRING:
    case GREMLIN_UUID:
    case GREMLIN_BINARY:
    case GREMLIN_CLASS:
        gremlin_heap_release(heap, object, sizeof(struct gremlin_bytes) + gremlin_bytes(value).len);
        break;
    case GREMLIN_DATE_TIME:
        gremlin_heap_release(heap, object, sizeof(struct gremlin_date_time));
        break;
    case GREMLIN_DURATION:
        gremlin_heap_release(heap, object, sizeof(struct gremlin_duration));
        break;
    case GREMLIN_TEMPORAL:
        gremlin_heap_release(heap, object,
                             sizeof(struct gremlin_temporal) + gremlin_temporal_name(value).len +
                                 gremlin_temporal_text(value).len);
        break;
    case GREMLIN_LIST:
        list_end(heap, gremlin_list(value));
        break;
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        table_end(heap, gremlin_table(value));
        break;
    case GREMLIN_ENTRY:
        two_values_end(heap, object, sizeof(struct gremlin_entry), gremlin_entry(value)->key,
                       gremlin_entry(value)->value);
        break;
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
    case GREMLIN_VERTEX_PROPERTY:
    case GREMLIN_PROPERTY:
    case GREMLIN_PATH:
        element_end(heap, object);
        break;
    case GREMLIN_GRAPH:
        two_values_end(heap, object, sizeof(struct gremlin_subgraph),
                       gremlin_subgraph(value)->vertices, gremlin_subgraph(value)->edges);
        break;
    case GREMLIN_TRAVERSER:
        two_values_end(heap, object, sizeof(struct gremlin_traverser),
                       gremlin_traverser(value)->value, GREMLIN_NOTHING);
        break;
    case GREMLIN_PREDICATE:
        predicate_end(heap, (struct gremlin_predicate *)object);
        break;
    case GREMLIN_TRAVERSAL:
        traversal_end(heap, gremlin_traversal(value));
        break;
    case GREMLIN_STRATEGY:
        two_values_end(heap, object, sizeof(struct gremlin_strategy), gremlin_strategy(value)->name,
                       gremlin_strategy(value)->configuration);
        break;
    case GREMLIN_CARDINAL:
        two_values_end(heap, object, sizeof(struct gremlin_cardinal),
                       gremlin_cardinal(value)->value, GREMLIN_NOTHING);
        break;
    case GREMLIN_LAMBDA:
        two_values_end(heap, object, sizeof(struct gremlin_lambda), gremlin_lambda(value)->script,
                       gremlin_lambda(value)->language);
        break;
    case GREMLIN_METRICS:
    case GREMLIN_EXPLANATION:
        two_values_end(heap, object, sizeof(struct gremlin_report), gremlin_report(value)->map,
                       GREMLIN_NOTHING);
        break;
    case GREMLIN_PROPERTIES:
        properties_end(heap, (struct gremlin_properties *)object);
        break;
    case GREMLIN_STORED:
        stored_end(heap, (struct gremlin_stored *)object);
        break;
    default:
        assert(!"no object has such a type");
    }
}

/* Texts, bytes and dates hold nothing: they need not wait. */
static bool holds_nothing(const struct gremlin_object *object)
{
    return object->type >= GREMLIN_BIG_INTEGER && object->type <= GREMLIN_TEMPORAL;
}

void gremlin_object_release(struct gremlin_object *object)
{
    struct gremlin_heap *heap = object->heap;

    if (holds_nothing(object)) {
        bury(heap, object);
        return;
    }
    object->heap = (struct gremlin_heap *)heap->dying;
    heap->dying = object;
    if (heap->burying)
        return;
    heap->burying = true;
    while (heap->dying) {
        object = heap->dying;
        heap->dying = (struct gremlin_object *)object->heap;
        object->heap = heap;
        bury(heap, object);
    }
    heap->burying = false;
}
