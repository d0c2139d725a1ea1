/* Indexes of the values at some paths, one after the other.
 *
 * Without multikey an item has one entry: an array is a value like others. With it, as MongoDB has
 * it, all paths are walked at once. Where some of them meet an array, its elements take their turn:
 * paths that go on below it continue in the element, those that end at it have the element as their
 * value, all others wait where they are. So two paths into the same array are two properties of one
 * element in each entry, never a mixture of elements; two arrays side by side would be all
 * combinations, and are refused. An element that has no such property counts as null, an empty
 * array as undefined where the path ends at it. */
#include "document/bson.h"
#include "index/policy_private.h"

#include <xxhash.h>

/* Places of arrays that are told of one item: of every part the first few. */
enum { ARRAYS_MAX = 4 * INDEX_PARTS_MAX };

/* One path, so far. */
struct place {
    struct document_value value;
    size_t at;   /* segments that are behind it */
    bool is_end; /* value is what is indexed, be it an array */
    bool missing;
};

static void arrays_add(struct index_arrays *arrays, size_t part, size_t depth);

static const struct document_path *path_of(const struct index_definition *definition, size_t part)
{
    return &definition->parts[part].path;
}

/* --- Writing --------------------------------------------------------------------------------- */

static bool hash_refuse(struct error *err)
{
    return error_set(err, ERROR_HASHED_ARRAY, "a hashed index cannot hold the array of an item");
}

struct document_value index_value_hash(enum document_order order,
                                       const struct document_value *value)
{
    CLEANUP(buf_done) struct buf key;

    buf_init(&key, BUF_DEFAULT_MAX);
    document_key_append(order, value, &key);
    return document_int64((int64_t)XXH3_64bits(key.data, key.len));
}

static bool value_hash(struct index_walk *w, struct document_value *value, struct error *err)
{
    if (value->type == DOCUMENT_ARRAY)
        return hash_refuse(err);
    if (value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_STRING)
        index_walk_work(w, index_bytes_work(value->type == DOCUMENT_OBJECT ? value->document.len
                                                                           : value->text.len));
    *value = index_value_hash(w->definition->order, value);
    return true;
}

/* The values one after the other, none of them cut; too many bytes end in a hash of them all. */
static bool put_claim(const struct index_definition *definition, const struct place *places,
                      struct index_walk *w)
{
    CLEANUP(buf_done) struct buf values;
    size_t begin = index_walk_begin(w, INDEX_CLAIM_MAX + INDEX_HASH_SIZE);

    buf_init(&values, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < definition->part_count; i++) {
        struct document_value value = index_walk_collate(w, &places[i].value);

        document_key_append(definition->order, &value, &values);
    }
    index_walk_work(w, index_bytes_work(values.len));
    buf_append(&w->out, values.data, MIN(values.len, (size_t)INDEX_CLAIM_MAX));
    if (values.len > INDEX_CLAIM_MAX) {
        XXH128_canonical_t hash;

        XXH128_canonicalFromHash(&hash, XXH3_128bits(values.data, values.len));
        buf_append(&w->out, hash.digest, sizeof hash.digest);
    }
    index_walk_end(w, begin);
    return true;
}

/* The value of one part, the way it goes. True when it was cut. */
static bool append_part(const struct index_definition *definition, size_t part,
                        const struct document_value *value, struct buf *out)
{
    size_t at = out->len;
    bool cut = document_key_append_cut(definition->order, value, INDEX_VALUE_MAX, out);

    for (; definition->parts[part].descending && at < out->len; at++)
        out->data[at] = (uint8_t)~out->data[at];
    return cut;
}

/* What of a place is compared: of a text its comparison form; cells are no texts of anybody. */
static struct document_value form_of(const struct index_definition *definition, size_t part,
                                     const struct place *place, struct index_walk *w)
{
    return definition->parts[part].cells ? place->value : index_walk_collate(w, &place->value);
}

static bool visit_entry(const struct index_definition *definition, const struct place *places,
                        struct index_walk *w)
{
    struct document_value values[INDEX_PARTS_MAX], forms[INDEX_PARTS_MAX];

    for (size_t i = 0; i < definition->part_count; i++) {
        values[i] = places[i].value;
        forms[i] = form_of(definition, i, &places[i], w);
        index_walk_work(w, index_value_work(&values[i]));
    }
    if (!w->full)
        w->visitor->entry(w->visitor->self, values, forms);
    return true;
}

static bool put_entry(const struct index_definition *definition, const struct place *places,
                      struct index_walk *w, struct error *err)
{
    size_t count = definition->part_count, begin;
    size_t present = 0;

    for (size_t i = 0; i < count; i++)
        present += !places[i].missing;
    if (definition->sparse && !present)
        return true;
    if (w->visitor)
        return visit_entry(definition, places, w);
    if (w->claims)
        return put_claim(definition, places, w);
    begin = index_walk_begin(w, definition->prefix.len + count * INDEX_VALUE_MAX + INDEX_KEY_SLACK);
    buf_append_slice(&w->out, definition->prefix);
    for (size_t i = 0; i < count; i++) {
        const struct index_part *part = &definition->parts[i];
        struct document_value value = form_of(definition, i, &places[i], w);

        index_walk_work(w, index_value_work(&value));
        if (part->hashed && !value_hash(w, &value, err)) {
            w->out.len = begin;
            return false;
        }
        (void)append_part(definition, i, &value, &w->out);
    }
    index_walk_end(w, begin);
    return true;
}

bool index_definition_key(const struct index_definition *definition,
                          const struct document_value *forms, bool is_bound, struct buf *out)
{
    assert(definition->kind == &index_kind_ordered || definition->spatial);
    for (size_t i = 0; i < definition->part_count; i++) {
        bool hashed = definition->parts[i].hashed;
        struct document_value hash =
            hashed ? index_value_hash(definition->order, &forms[i]) : document_undefined();

        if (append_part(definition, i, hashed ? &hash : &forms[i], out) && is_bound)
            return true;
    }
    return false;
}

/* An entry for each cell that the walk was given. */
static bool put_entries(const struct index_definition *definition, struct place *places,
                        struct index_walk *w, struct error *err)
{
    size_t part = 0;

    if (!definition->spatial)
        return put_entry(definition, places, w, err);
    while (!definition->parts[part].cells)
        part++;
    for (size_t i = 0; i < w->cell_count && !w->full; i++) {
        char text[INDEX_CELL_SIZE];

        places[part].value = index_cell_value(w->cells[i], text);
        if (!put_entry(definition, places, w, err))
            return false;
    }
    return true;
}

int index_definition_compare(const struct index_definition *definition,
                             const struct document_value *forms, const struct document_value *other)
{
    for (size_t i = 0; i < definition->part_count; i++) {
        int compared = document_compare(definition->order, &forms[i], &other[i]);

        if (compared)
            return definition->parts[i].descending ? -compared : compared;
    }
    return 0;
}

/* --- Walking --------------------------------------------------------------------------------- */

static void place_end(struct place *place, struct document_value missing)
{
    place->value = missing;
    place->missing = true;
    place->is_end = true;
}

static bool is_position(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] < '0' || name.data[i] > '9')
            return false;
    return name.len > 0;
}

/* To find a property: those before it are passed over one by one. */
static uint64_t find_work(const struct document_value *value)
{
    enum { BYTES_A_STEP = 256 };
    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;

    return nested ? 1 + value->document.len / BYTES_A_STEP : 1;
}

/* Steps down until the path ends or, with multikey, an array has to be gone through. */
static void place_step(struct index_walk *w, const struct document_path *path, struct place *place)
{
    const struct index_definition *definition = w->definition;

    while (!place->is_end) {
        struct document_value next;

        index_walk_work(w, find_work(&place->value));
        if (place->at == path->count) {
            place->is_end = !definition->multikey || place->value.type != DOCUMENT_ARRAY;
            return;
        }
        if (place->value.type == DOCUMENT_ARRAY && definition->multikey &&
            !is_position(path->segments[place->at].name))
            return;
        if ((place->value.type != DOCUMENT_OBJECT &&
             (place->value.type != DOCUMENT_ARRAY || !definition->multikey)) ||
            !document_find(place->value.document, path->segments[place->at].name, &next)) {
            place_end(place, definition->multikey ? document_null() : document_undefined());
            return;
        }
        place->value = next;
        place->at++;
    }
}

static struct slice last_name(const struct index_definition *definition, size_t part)
{
    const struct document_path *path = path_of(definition, part);
    struct slice name = path->segments[path->count - 1].name;

    return slice_first(name, MIN(name.len, (size_t)60));
}

/* The array that some of the places stand before; NULL: none. False: there are two. */
static bool array_find(const struct index_definition *definition, const struct place *places,
                       const uint8_t **ret_array, size_t *ret_first, struct error *err)
{
    *ret_array = NULL;
    for (size_t i = 0; i < definition->part_count; i++) {
        if (places[i].is_end)
            continue;
        if (definition->parts[i].hashed)
            return hash_refuse(err);
        if (*ret_array && *ret_array != places[i].value.document.data)
            return error_set(
                err, ERROR_PARALLEL_ARRAYS, "cannot index parallel arrays [%.*s] [%.*s]",
                SLICE_ARG(last_name(definition, i)), SLICE_ARG(last_name(definition, *ret_first)));
        if (!*ret_array)
            *ret_first = i;
        *ret_array = places[i].value.document.data;
    }
    return true;
}

static bool walk_places(const struct index_definition *definition, struct place *places,
                        struct index_walk *w, struct error *err);

static void arrays_note(const struct index_definition *definition, const struct place *places,
                        struct index_walk *w)
{
    for (size_t i = 0; i < definition->part_count; i++)
        if (!places[i].is_end && places[i].at < 128)
            arrays_add(w->arrays, i, places[i].at);
}

/* element NULL: the array is empty. */
static bool walk_element(const struct index_definition *definition, const struct place *before,
                         const struct document_value *element, struct index_walk *w,
                         struct error *err)
{
    struct place places[INDEX_PARTS_MAX];

    memcpy(places, before, definition->part_count * sizeof *places);
    for (size_t i = 0; i < definition->part_count; i++) {
        if (places[i].is_end)
            continue;
        if (places[i].at == path_of(definition, i)->count) {
            places[i].value = element ? *element : document_undefined();
            places[i].is_end = true;
        } else if (element && element->type == DOCUMENT_OBJECT) {
            places[i].value = *element;
        } else {
            place_end(&places[i], document_null());
        }
    }
    return walk_places(definition, places, w, err);
}

/* As deep as arrays lie within each other on one path. */
static bool walk_places(const struct index_definition *definition, struct place *places,
                        struct index_walk *w, struct error *err)
{
    struct document_iter iter;
    const uint8_t *array;
    size_t first = 0;
    bool any = false;

    for (size_t i = 0; i < definition->part_count; i++)
        place_step(w, path_of(definition, i), &places[i]);
    if (!array_find(definition, places, &array, &first, err))
        return false;
    if (array && w->arrays)
        arrays_note(definition, places, w);
    if (!array)
        return w->arrays || put_entries(definition, places, w, err);
    document_iter_init(&iter, places[first].value.document);
    while (!w->full && document_iter_next(&iter)) {
        any = true;
        if (!walk_element(definition, places, &iter.value, w, err))
            return false;
    }
    return any || walk_element(definition, places, NULL, w, err);
}

/* A part of cells has them by its own walk (spatial.c). */
bool index_ordered_entries(const struct index_definition *definition, struct slice item,
                           struct index_walk *w, struct error *err)
{
    struct place places[INDEX_PARTS_MAX];

    for (size_t i = 0; i < definition->part_count; i++)
        places[i] =
            (struct place){.value = document_object(item), .is_end = definition->parts[i].cells};
    return walk_places(definition, places, w, err);
}

static bool ordered_check(const struct index_definition *definition, struct error *err)
{
    size_t hashed = 0;

    for (size_t i = 0; i < definition->part_count; i++)
        hashed += definition->parts[i].hashed;
    if (hashed > 1)
        return error_set(err, ERROR_BAD_REQUEST, "an index has at most one hashed path");
    if (hashed && definition->unique != INDEX_UNIQUE_NOT)
        return error_set(err, ERROR_BAD_REQUEST, "a hashed index cannot be unique");
    if (definition->expire_after_s != INDEX_EXPIRES_NEVER &&
        (definition->part_count != 1 || hashed))
        return error_set(err, ERROR_BAD_REQUEST,
                         "items expire by an index of one path, which is not hashed");
    return true;
}

/* --- Arrays that are counted ------------------------------------------------------------------ */

static void arrays_add(struct index_arrays *arrays, size_t part, size_t depth)
{
    uint8_t name[] = {(uint8_t)part, (uint8_t)depth};

    for (size_t i = 0; i < arrays->count; i++)
        if (memcmp(arrays->sums[i].name.data, name, sizeof name) == 0)
            return;
    if (!arrays->sums)
        arrays->sums = ARENA_ARRAY(arrays->arena, struct index_sum, ARRAYS_MAX);
    if (arrays->count == ARRAYS_MAX)
        return;
    arrays->sums[arrays->count++] = (struct index_sum){
        .name = arena_copy(arrays->arena, slice_of(name, sizeof name)), .amounts = {1}};
}

/* An item that cannot be in the index adds nothing: it is refused where its entries are made. */
static bool ordered_sums(const struct index_definition *definition, struct slice item,
                         struct arena *arena, struct index_sum **ret_sums, size_t *ret_count,
                         struct error *err)
{
    struct index_arrays arrays = {.arena = arena};
    struct index_walk walk = {.definition = definition, .arena = arena, .arrays = &arrays};

    *ret_count = 0;
    *ret_sums = NULL;
    if (!definition->counted || !index_walk_takes(&walk, item))
        return true;
    if (!index_ordered_entries(definition, item, &walk, err))
        return false;
    *ret_sums = arrays.sums;
    *ret_count = arrays.count;
    return true;
}

static const struct index_state_functions ordered_state = {.sums = ordered_sums};

const struct index_kind index_kind_ordered = {.name = "ordered",
                                              .check = ordered_check,
                                              .entries = index_ordered_entries,
                                              .state = &ordered_state};

/* --- Filters --------------------------------------------------------------------------------- */

static bool type_is_listed(enum document_type type, struct slice list)
{
    struct document_iter iter;
    int64_t number;

    document_iter_init(&iter, list);
    while (document_iter_next(&iter))
        if (document_to_int64(&iter.value, &number) && number == (int64_t)type)
            return true;
    return false;
}

static bool value_meets(struct index_walk *w, const struct index_condition *condition,
                        const struct document_value *found)
{
    enum document_order order = w->definition->order;
    struct document_value form, *value = &form;
    CLEANUP(buf_done) struct buf key;
    uint8_t rank;
    int compared;

    buf_init(&key, BUF_DEFAULT_MAX);
    if (condition->comparison == INDEX_EXISTS)
        return true;
    if (condition->comparison == INDEX_TYPE)
        return type_is_listed(found->type, condition->value.document);
    form = index_walk_collate(w, found);
    /* The first byte of a key is the place of its type in the order. */
    document_key_append_cut(order, value, 1, &key);
    rank = key.data[0];
    buf_clear(&key);
    document_key_append_cut(order, &condition->value, 1, &key);
    if (rank != key.data[0])
        return false;
    compared = document_compare(order, value, &condition->value);
    switch (condition->comparison) {
    case INDEX_EQUAL:
        return compared == 0;
    case INDEX_LESS:
        return compared < 0;
    case INDEX_LESS_EQUAL:
        return compared <= 0;
    case INDEX_GREATER:
        return compared > 0;
    case INDEX_GREATER_EQUAL:
        return compared >= 0;
    default:
        return false;
    }
}

/* What it takes to compare a value with that of a condition. */
static uint64_t compare_work(const struct index_condition *condition,
                             const struct document_value *value)
{
    return index_value_work(value) + index_value_work(&condition->value);
}

static bool any_meets(struct index_walk *w, const struct index_condition *condition,
                      struct document_value value, size_t at)
{
    struct document_iter iter;

    for (; at < condition->path.count; at++) {
        index_walk_work(w, find_work(&value));
        if (value.type == DOCUMENT_ARRAY && !is_position(condition->path.segments[at].name))
            break;
        if ((value.type != DOCUMENT_OBJECT && value.type != DOCUMENT_ARRAY) ||
            !document_find(value.document, condition->path.segments[at].name, &value))
            return false;
    }
    index_walk_work(w, compare_work(condition, &value));
    if (w->full || (at == condition->path.count && value_meets(w, condition, &value)))
        return true;
    if (value.type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, value.document);
    while (!w->full && document_iter_next(&iter)) {
        index_walk_work(w, compare_work(condition, &iter.value));
        if (at == condition->path.count
                ? value_meets(w, condition, &iter.value)
                : iter.value.type == DOCUMENT_OBJECT && any_meets(w, condition, iter.value, at))
            return true;
    }
    return false;
}

/* Is the value at the path the condition's own? Paths lead through objects alone. */
static bool value_is_there(struct index_walk *w, const struct index_condition *condition,
                           struct slice item)
{
    struct document_value value = document_object(item);
    struct index_condition equal = *condition;

    equal.comparison = INDEX_EQUAL;
    for (size_t i = 0; i < condition->path.count; i++) {
        index_walk_work(w, find_work(&value));
        if (value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, condition->path.segments[i].name, &value))
            return false;
    }
    index_walk_work(w, compare_work(condition, &value));
    return value_meets(w, &equal, &value);
}

static bool is_met(struct index_walk *w, const struct index_condition *condition, struct slice item)
{
    if (condition->comparison == INDEX_NOT_EQUAL)
        return !value_is_there(w, condition, item);
    return any_meets(w, condition, document_object(item), 0);
}

/* Alternatives are looked at where the first of them stands. */
static bool condition_is_met(struct index_walk *w, size_t at, struct slice item)
{
    const struct index_definition *definition = w->definition;
    const struct index_condition *condition = &definition->filter[at];

    if (!condition->any)
        return is_met(w, condition, item);
    for (size_t i = 0; i < definition->filter_count; i++) {
        if (definition->filter[i].any != condition->any)
            continue;
        if (i < at)
            return true;
        if (is_met(w, &definition->filter[i], item))
            return true;
    }
    return false;
}

bool index_walk_takes(struct index_walk *w, struct slice item)
{
    const struct index_definition *definition = w->definition;

    for (size_t i = 0; i < definition->filter_count; i++)
        if (!condition_is_met(w, i, item))
            return false;
    return true;
}
