/* Two sorted arrays of hashes, searched by bisection: of partition keys, each with the array of its
 * items as BSON, which a query walks where it stands; and of single items. A copy is made whole
 * when its container has changed and is read far more often, so nothing in it can be changed.
 *
 * Hashes have no secret, and keys that share one share an array. A container is small and its
 * writers are those whose queries become slower. */
#include "query/reference/copy.h"

#include "base/memory.h"
#include "document/bson.h"
#include "document/order.h"
#include "query/value/compare.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
    ITEM_ADDED_BYTES = 512, /* system properties of an item, at most */
    ENTRIES_FIRST = 64,
};

struct copy_entry {
    uint64_t key, item; /* hashes: of the partition key, and of that and the identity */
    size_t number;      /* in which it was added */
    struct slice document;
};

struct group {
    uint64_t key;
    struct slice items; /* a BSON array */
};

struct single {
    uint64_t item;
    struct slice document;
};

/* The items by what they have at a top-level property, in MongoDB's order. */
struct valued {
    uint64_t hash; /* of the key of the value (document/order.h): of equal values it is equal */
    size_t number;
};

struct by_value {
    struct slice name;     /* data NULL: there is none */
    struct valued *valued; /* sorted */
    size_t valued_count;
    size_t *loose; /* items with an array there, of which any element may be wanted */
    size_t loose_count;
};

struct query_copy {
    atomic_uint refs;
    struct arena *arena; /* owned: of all below */
    size_t bytes;
    struct group *groups; /* sorted */
    size_t group_count;
    struct single *singles; /* sorted */
    size_t single_count;
    struct slice *documents; /* in the order of adding */
    bool left_out;
    struct by_value by_value[2]; /* of the identity, and of a key of one property */
};

/* --- Making ---------------------------------------------------------------------------------- */

void query_copy_builder_init(struct query_copy_builder *builder)
{
    *builder = (struct query_copy_builder){.arena = arena_new()};
}

void query_copy_builder_done(struct query_copy_builder *builder)
{
    arena_free(builder->arena);
    memory_free(builder->entries);
    *builder = (struct query_copy_builder){0};
}

static uint64_t hash_add(uint64_t hash, const struct document_value *value)
{
    uint64_t own = query_value_hash(value);

    return XXH3_64bits_withSeed(&own, sizeof own, hash);
}

static bool item_hash(const struct query_copy_builder *builder, struct slice item,
                      uint64_t *ret_key, uint64_t *ret_item)
{
    struct document_value value;
    uint64_t hash = 0;

    for (size_t i = 0; i < builder->path_count; i++) {
        if (!document_path_find(&builder->paths[i], item, &value))
            return false;
        hash = hash_add(hash, &value);
    }
    *ret_key = hash;
    if (!document_find(item, builder->identity, &value))
        return false;
    *ret_item = hash_add(hash, &value);
    return true;
}

bool query_copy_builder_add(struct query_copy_builder *builder, struct slice item,
                            struct error *err)
{
    struct copy_entry entry = {.number = builder->count};

    if (!item_hash(builder, item, &entry.key, &entry.item)) {
        builder->left_out = true;
        return true;
    }
    builder->bytes += item.len;
    if (builder->bytes > builder->bytes_max + (builder->count + 1) * ITEM_ADDED_BYTES)
        return error_set(err, ERROR_REFERENCE_FULL,
                         "the reference container holds more than %zu bytes (reference.bytes_max)",
                         builder->bytes_max);
    if (builder->count == builder->capacity) {
        builder->capacity = MAX(builder->capacity * 2, (size_t)ENTRIES_FIRST);
        builder->entries = memory_realloc(
            builder->entries, memory_array_size(builder->capacity, sizeof *builder->entries));
    }
    entry.document = arena_copy(builder->arena, item);
    builder->entries[builder->count++] = entry;
    return true;
}

static int entry_compare(const void *a, const void *b)
{
    const struct copy_entry *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int single_compare(const void *a, const void *b)
{
    const struct single *x = a, *y = b;

    return x->item < y->item ? -1 : x->item > y->item;
}

/* The array of the entries from first to end. */
static struct slice group_items(const struct copy_entry *entries, size_t first, size_t end,
                                struct arena *arena)
{
    CLEANUP(buf_done) struct buf array;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&array, SIZE_MAX / 2);
    begin = document_begin(&array);
    for (size_t i = first; i < end; i++) {
        const struct document_value item = document_object(entries[i].document);

        document_append(&array, document_index_key((uint32_t)(i - first), text), &item);
    }
    document_end(&array, begin);
    return arena_copy(arena, buf_slice(&array));
}

/* Where each item of a group stands in its array. */
static void singles_add(struct query_copy *copy, const struct copy_entry *entries,
                        const struct group *group)
{
    struct document_iter iter;

    document_iter_init(&iter, group->items);
    for (size_t i = 0; document_iter_next(&iter); i++) {
        copy->singles[copy->single_count++] = (struct single){entries[i].item, iter.value.document};
        copy->documents[entries[i].number] = iter.value.document;
    }
}

static uint64_t value_hash(const struct document_value *value, struct buf *scratch)
{
    buf_clear(scratch);
    document_key_append(DOCUMENT_ORDER_MONGO, value, scratch);
    return XXH3_64bits(scratch->data, scratch->len);
}

static int valued_compare(const void *a, const void *b)
{
    const struct valued *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void by_value_make(struct query_copy *copy, struct slice name, struct by_value *ret_by)
{
    CLEANUP(buf_done) struct buf scratch;
    struct by_value by = {
        .name = arena_copy(copy->arena, name),
        .valued = ARENA_ARRAY(copy->arena, struct valued, copy->single_count + 1),
        .loose = ARENA_ARRAY(copy->arena, size_t, copy->single_count + 1),
    };

    buf_init(&scratch, SIZE_MAX / 2);
    for (size_t i = 0; i < copy->single_count; i++) {
        struct document_value value = document_undefined();

        (void)document_find(copy->documents[i], name, &value);
        if (value.type == DOCUMENT_ARRAY || value.type == DOCUMENT_UNDEFINED)
            by.loose[by.loose_count++] = i;
        else
            by.valued[by.valued_count++] = (struct valued){value_hash(&value, &scratch), i};
    }
    if (by.valued_count)
        qsort(by.valued, by.valued_count, sizeof *by.valued, valued_compare);
    *ret_by = by;
}

static void by_values_make(struct query_copy *copy, const struct query_copy_builder *builder)
{
    if (!builder->by_value || copy->left_out)
        return;
    by_value_make(copy, builder->identity, &copy->by_value[0]);
    if (builder->path_count == 1 && builder->paths[0].count == 1 &&
        builder->paths[0].segments[0].kind == DOCUMENT_SEGMENT_PROPERTY)
        by_value_make(copy, builder->paths[0].segments[0].name, &copy->by_value[1]);
}

struct query_copy *query_copy_new(const struct query_copy_builder *builder)
{
    struct query_copy *copy = MEMORY_NEW(struct query_copy);
    size_t count = builder->count, end;

    copy->refs = 1;
    copy->arena = arena_new();
    copy->groups = ARENA_ARRAY(copy->arena, struct group, count + 1);
    copy->singles = ARENA_ARRAY(copy->arena, struct single, count + 1);
    copy->documents = ARENA_ARRAY(copy->arena, struct slice, count + 1);
    copy->left_out = builder->left_out;
    if (count)
        qsort(builder->entries, count, sizeof *builder->entries, entry_compare);
    for (size_t first = 0; first < count; first = end) {
        struct group *group = &copy->groups[copy->group_count++];

        for (end = first + 1;
             end < count && builder->entries[end].key == builder->entries[first].key;)
            end++;
        *group = (struct group){builder->entries[first].key,
                                group_items(builder->entries, first, end, copy->arena)};
        singles_add(copy, &builder->entries[first], group);
    }
    assert(copy->single_count == count);
    if (count)
        qsort(copy->singles, count, sizeof *copy->singles, single_compare);
    by_values_make(copy, builder);
    copy->bytes = sizeof *copy + arena_used(copy->arena);
    return copy;
}

struct query_copy *query_copy_ref(struct query_copy *copy)
{
    atomic_fetch_add_explicit(&copy->refs, 1, memory_order_relaxed);
    return copy;
}

void query_copy_unref(struct query_copy *copy)
{
    if (!copy || atomic_fetch_sub_explicit(&copy->refs, 1, memory_order_acq_rel) != 1)
        return;
    arena_free(copy->arena);
    memory_free(copy);
}

size_t query_copy_bytes(const struct query_copy *copy)
{
    return copy->bytes;
}

size_t query_copy_items(const struct query_copy *copy)
{
    return copy->single_count;
}

const struct slice *query_copy_documents(const struct query_copy *copy, size_t *ret_count)
{
    *ret_count = copy->left_out ? 0 : copy->single_count;
    return copy->left_out ? NULL : copy->documents;
}

/* --- Finding --------------------------------------------------------------------------------- */

static bool group_find(const struct query_copy *copy, uint64_t key, struct slice *ret_items)
{
    size_t low = 0, high = copy->group_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (copy->groups[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == copy->group_count || copy->groups[low].key != key)
        return false;
    *ret_items = copy->groups[low].items;
    return true;
}

static size_t single_find(const struct query_copy *copy, uint64_t item)
{
    size_t low = 0, high = copy->single_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (copy->singles[middle].item < item)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The items of one hash, as an array of their own. */
static bool singles_give(const struct query_copy *copy, uint64_t item,
                         struct query_context *context, struct document_value *ret_items,
                         struct error *err)
{
    size_t mark = query_build_begin(context), at = single_find(copy, item), begin;
    char text[DOCUMENT_INDEX_SIZE];

    if (at == copy->single_count || copy->singles[at].item != item)
        return true;
    begin = document_begin(&context->scratch);
    for (uint32_t i = 0; at < copy->single_count && copy->singles[at].item == item; i++, at++) {
        const struct document_value value = document_object(copy->singles[at].document);

        if (!query_build_append(context, document_index_key(i, text), &value, err))
            return query_build_drop(context, mark);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_items, err);
}

bool query_copy_find(const struct query_copy *copy, const struct document_value *keys, size_t count,
                     bool identified, struct query_context *context,
                     struct document_value *ret_items, struct error *err)
{
    struct slice items;
    uint64_t hash = 0;

    for (size_t i = 0; i < count; i++)
        hash = hash_add(hash, &keys[i]);
    *ret_items = document_undefined();
    if (identified)
        return singles_give(copy, hash, context, ret_items, err);
    if (group_find(copy, hash, &items))
        *ret_items = document_array(items);
    return true;
}

/* --- By value -------------------------------------------------------------------------------- */

/* Items that were found, each perhaps several times. */
struct narrowing {
    const struct by_value *by;
    size_t *numbers; /* owned */
    size_t count, capacity;
};

static void narrowing_add(struct narrowing *narrowing, size_t number)
{
    if (narrowing->count == narrowing->capacity) {
        narrowing->capacity = MAX(narrowing->capacity * 2, (size_t)ENTRIES_FIRST);
        narrowing->numbers = memory_realloc(
            narrowing->numbers, memory_array_size(narrowing->capacity, sizeof *narrowing->numbers));
    }
    narrowing->numbers[narrowing->count++] = number;
}

static void narrowing_find(struct narrowing *narrowing, uint64_t hash)
{
    const struct by_value *by = narrowing->by;
    size_t low = 0, high = by->valued_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (by->valued[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < by->valued_count && by->valued[low].hash == hash; low++)
        narrowing_add(narrowing, by->valued[low].number);
}

static int number_compare(const void *a, const void *b)
{
    const size_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

bool query_copy_narrow(const struct query_copy *copy, const struct query_wanted *wanted,
                       const struct slice **ret_documents, size_t *ret_count)
{
    CLEANUP(buf_done) struct buf scratch;
    struct narrowing narrowing = {0};
    struct slice *documents;
    size_t count = 0;

    buf_init(&scratch, SIZE_MAX / 2);
    for (size_t i = 0; i < ARRAY_LEN(copy->by_value); i++)
        if (copy->by_value[i].name.data && slice_equal(copy->by_value[i].name, wanted->path))
            narrowing.by = &copy->by_value[i];
    if (!narrowing.by)
        return false;
    for (size_t i = 0; i < wanted->count; i++) {
        struct document_iter iter;

        if (wanted->arrays[i]->type != DOCUMENT_ARRAY)
            continue;
        document_iter_init(&iter, wanted->arrays[i]->document);
        while (document_iter_next(&iter))
            narrowing_find(&narrowing, value_hash(&iter.value, &scratch));
    }
    for (size_t i = 0; i < narrowing.by->loose_count; i++)
        narrowing_add(&narrowing, narrowing.by->loose[i]);
    if (narrowing.count)
        qsort(narrowing.numbers, narrowing.count, sizeof *narrowing.numbers, number_compare);
    documents = ARENA_ARRAY(wanted->arena, struct slice, narrowing.count + 1);
    for (size_t i = 0; i < narrowing.count; i++)
        if (!i || narrowing.numbers[i] != narrowing.numbers[i - 1])
            documents[count++] = copy->documents[narrowing.numbers[i]];
    memory_free(narrowing.numbers);
    *ret_documents = documents;
    *ret_count = count;
    return true;
}
