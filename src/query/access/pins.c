/* What is implied becomes a list of pins. `all` joins every pin of one side with every pin of the
 * other and drops pairs that contradict each other; `any` puts the lists together. A list that
 * grows too long is given up: any key then. */
#include "query/access/pins.h"

#include <stdlib.h>

enum {
    /* The components of the key, and behind them what a synthetic one is made of. */
    COMPONENTS = PARTITION_PATHS_MAX + PARTITION_SOURCES_MAX,
    PINS_MAX = 1000,       /* beyond, a query asks everywhere */
    PAIRS_MAX = 10 * 1000, /* that one `all` may compare */
};

struct pin {
    uint32_t known; /* a bit for each component that has a value */
    uint32_t bound; /* and for each that has bounds */
    struct document_value values[COMPONENTS];

    /* Of components without a value: bytes of values (document/order.h), min inclusive, max
     * exclusive. Used where routing keys have that order alone. */
    struct partition_range between[COMPONENTS];
};

/* No pins: it never holds. One pin that knows nothing: it may hold anywhere. A list has one holder,
 * so it may grow where it is. */
struct pins {
    struct pin *items;
    size_t count, capacity;
};

struct search {
    const struct partition_definition *definition;
    struct arena *arena;
    bool ordered;    /* routing keys have the order of the values */
    bool beside_key; /* what is looked at is a part of an `any` that speaks of the key */
    bool given_up;
};

static struct pins pins_of(struct search *search, const struct query_implied *implied);

/* --- Lists of pins ---------------------------------------------------------------------------- */

static struct pins pins_room(const struct search *search, size_t capacity)
{
    return (struct pins){ARENA_ARRAY(search->arena, struct pin, capacity + 1), 0, capacity};
}

static void pin_clear(struct pin *pin)
{
    pin->known = pin->bound = 0;
}

static struct pins pins_any(const struct search *search)
{
    struct pins pins = pins_room(search, 1);

    pin_clear(&pins.items[pins.count++]);
    return pins;
}

static bool pins_are_any(struct pins pins)
{
    return pins.count == 1 && !pins.items[0].known && !pins.items[0].bound;
}

static struct pins pins_or(struct search *search, struct pins a, struct pins b)
{
    if (pins_are_any(a) || pins_are_any(b))
        return pins_any(search);
    if (a.count + b.count > PINS_MAX) {
        search->given_up = true;
        return pins_any(search);
    }
    if (a.count + b.count > a.capacity) {
        struct pins longer = pins_room(search, MAX(a.capacity * 2, a.count + b.count));

        if (a.count)
            memcpy(longer.items, a.items, a.count * sizeof *a.items);
        longer.count = a.count;
        a = longer;
    }
    if (b.count)
        memcpy(a.items + a.count, b.items, b.count * sizeof *b.items);
    a.count += b.count;
    return a;
}

/* What both allow; false: nothing. A value and bounds for one component: the value alone is used,
 * and may be too much. */
static bool pin_join(const struct pin *a, const struct pin *b, struct pin *ret_pin)
{
    *ret_pin = *a;
    for (uint32_t rest = b->bound; rest; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctz(rest);
        struct partition_range *between = &ret_pin->between[i];

        if (!(a->bound & 1u << i)) {
            *between = b->between[i];
            continue;
        }
        if (slice_compare(b->between[i].min, between->min) > 0)
            between->min = b->between[i].min;
        if (slice_compare(b->between[i].max, between->max) < 0)
            between->max = b->between[i].max;
        if (slice_compare(between->min, between->max) >= 0)
            return false;
    }
    for (uint32_t rest = b->known; rest; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctz(rest);

        if ((a->known & 1u << i) &&
            document_compare(DOCUMENT_ORDER_SQL, &a->values[i], &b->values[i]) != 0)
            return false;
        ret_pin->values[i] = b->values[i];
    }
    ret_pin->known |= b->known;
    ret_pin->bound |= b->bound;
    return true;
}

/* Where there would be too many, either list alone is right as well, only wider. */
static struct pins pins_and(struct search *search, struct pins a, struct pins b)
{
    struct pins both;

    if (pins_are_any(a))
        return b;
    if (pins_are_any(b))
        return a;
    if (a.count * b.count <= PAIRS_MAX) {
        both = pins_room(search, MIN(a.count * b.count, (size_t)PINS_MAX));
        for (size_t i = 0; i < a.count * b.count; i++) {
            struct pin joined;

            if (!pin_join(&a.items[i / b.count], &b.items[i % b.count], &joined))
                continue;
            if (both.count == both.capacity) {
                both.capacity = 0;
                break;
            }
            both.items[both.count++] = joined;
        }
        if (both.capacity || !both.count)
            return both;
    }
    search->given_up = true;
    return a.count < b.count ? a : b;
}

/* --- Conditions ------------------------------------------------------------------------------- */

static bool paths_equal(const struct document_path *path, const struct document_path *key)
{
    bool equal = path->count == key->count;

    for (size_t at = 0; equal && at < path->count; at++)
        equal = path->segments[at].kind == DOCUMENT_SEGMENT_PROPERTY &&
                slice_equal(path->segments[at].name, key->segments[at].name);
    return equal;
}

/* The component of the key that the condition speaks of, or the source of one. */
static bool component_of(const struct partition_definition *definition,
                         const struct query_condition *condition, size_t *ret_component)
{
    const struct partition_synthetic *synthetic = definition->synthetic;

    if (condition->elements)
        return false;
    for (size_t i = 0; i < definition->path_count; i++)
        if (paths_equal(&condition->path, &definition->paths[i])) {
            *ret_component = i;
            return true;
        }
    for (size_t i = 0; synthetic && i < synthetic->source_count; i++)
        if (paths_equal(&condition->path, &synthetic->sources[i])) {
            *ret_component = PARTITION_PATHS_MAX + i;
            return true;
        }
    return false;
}

/* Objects and arrays are no keys: items that have them there are found under undefined. */
static void pin_value(struct pin *pin, size_t component, struct document_value value)
{
    if (value.type == DOCUMENT_OBJECT || value.type == DOCUMENT_ARRAY)
        value = document_undefined();
    pin->values[component] = value;
    pin->known = 1u << component;
    pin->bound = 0;
}

static void pin_between(struct pin *pin, size_t component, const struct cursor_range *range)
{
    pin->between[component] = (struct partition_range){range->min, range->max};
    pin->bound = 1u << component;
    pin->known = 0;
}

static bool is_number_name(struct slice name)
{
    uint64_t number;

    return slice_to_uint64(name, &number);
}

/* The component of the key that is undefined for every item the condition is about, because an
 * array is in its place or on the way to it. Of what languages say that look into arrays by
 * themselves, `pk = 5 OR pk[] = 5`, the second part is about few items or none. By itself such a
 * condition asks everywhere, as clients of SQL are used to. */
static bool component_lost(const struct partition_definition *definition,
                           const struct query_condition *condition, size_t *ret_component)
{
    const struct document_path *path = &condition->path;
    size_t before = 0;

    if (!condition->elements || definition->synthetic)
        return false;
    while (before < path->count && path->segments[before].kind == DOCUMENT_SEGMENT_PROPERTY)
        before++;
    for (size_t i = 0; i < definition->path_count; i++) {
        struct document_path start = definition->paths[i], until = *path;

        if (before == 0 || start.count < before ||
            (start.count > before && is_number_name(start.segments[before].name)))
            continue;
        start.count = until.count = before;
        if (paths_equal(&until, &start)) {
            *ret_component = i;
            return true;
        }
    }
    return false;
}

static struct pins pins_of_condition(struct search *search, const struct query_condition *condition)
{
    size_t component, count = condition->points ? condition->point_count : condition->ranges.count;
    struct pins pins;

    if (search->beside_key && component_lost(search->definition, condition, &component)) {
        pins = pins_room(search, 1);
        pin_value(&pins.items[pins.count++], component, document_undefined());
        return pins;
    }
    if (!component_of(search->definition, condition, &component) || condition->region ||
        condition->words || (!condition->points && !search->ordered))
        return pins_any(search);
    if (count > PINS_MAX) {
        search->given_up = true;
        return pins_any(search);
    }
    pins = pins_room(search, count);
    for (; pins.count < count; pins.count++) {
        if (condition->points)
            pin_value(&pins.items[pins.count], component, condition->points[pins.count]);
        else
            pin_between(&pins.items[pins.count], component, &condition->ranges.list[pins.count]);
    }
    return pins;
}

static bool has_component(const struct search *search, const struct query_implied *any)
{
    size_t component;

    for (size_t i = 0; i < any->count; i++)
        if (any->parts[i]->kind == QUERY_IMPLIED_CONDITION &&
            component_of(search->definition, &any->parts[i]->condition, &component))
            return true;
    return false;
}

static struct pins pins_of_any(struct search *search, const struct query_implied *any)
{
    struct pins pins = {0};
    bool before = search->beside_key;

    search->beside_key |= has_component(search, any);
    for (size_t i = 0; i < any->count && !pins_are_any(pins); i++)
        pins = pins_or(search, pins, pins_of(search, any->parts[i]));
    search->beside_key = before;
    return pins;
}

static struct pins pins_of(struct search *search, const struct query_implied *implied)
{
    struct pins pins;

    if (!implied || implied->kind == QUERY_IMPLIED_ALWAYS || implied->kind == QUERY_IMPLIED_ABSENT)
        return pins_any(search);
    switch (implied->kind) {
    case QUERY_IMPLIED_CONDITION:
        if (!implied->count)
            return pins_of_condition(search, &implied->condition);
        break;
    case QUERY_IMPLIED_ALL:
        pins = pins_any(search);
        for (size_t i = 0; i < implied->count; i++)
            if (implied->parts[i])
                pins = pins_and(search, pins, pins_of(search, implied->parts[i]));
        return pins;
    case QUERY_IMPLIED_ANY:
        break;
    default:
        return (struct pins){0};
    }
    return pins_of_any(search, implied);
}

bool query_pins_settle(const struct query_implied *conjunct,
                       const struct partition_definition *definition)
{
    size_t component;

    if (!conjunct)
        return false;
    switch (conjunct->kind) {
    case QUERY_IMPLIED_ALWAYS:
        return true;
    case QUERY_IMPLIED_NEVER:
    case QUERY_IMPLIED_ABSENT:
        return false;
    case QUERY_IMPLIED_CONDITION:
        return conjunct->condition.points_exact &&
               component_of(definition, &conjunct->condition, &component) &&
               component < PARTITION_PATHS_MAX;
    default:
        for (size_t i = 0; i < conjunct->count; i++)
            if (!query_pins_settle(conjunct->parts[i], definition))
                return false;
        return true;
    }
}

/* --- Keys ------------------------------------------------------------------------------------- */

static bool knows(const struct pin *pin, size_t component)
{
    return pin->known >> component & 1;
}

/* Does the pin know of the made component nothing but the base of its suffix? */
static bool is_base_alone(const struct partition_definition *definition, const struct pin *pin)
{
    const struct partition_synthetic *synthetic = definition->synthetic;

    return synthetic && synthetic->suffixes && !knows(pin, synthetic->target) &&
           knows(pin, PARTITION_PATHS_MAX) &&
           (synthetic->kind == PARTITION_RANDOM_SUFFIX || !knows(pin, PARTITION_PATHS_MAX + 1));
}

/* The values that the made component of a pin can have, by its sources; 0: any. */
static size_t values_make(const struct partition_definition *definition, const struct pin *pin,
                          struct arena *arena, struct document_value *ret_values)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    const struct document_value *sources = &pin->values[PARTITION_PATHS_MAX];
    size_t known = 0;
    struct error ignored;

    while (known < synthetic->source_count && knows(pin, PARTITION_PATHS_MAX + known))
        known++;
    if (known == synthetic->source_count && synthetic->kind != PARTITION_RANDOM_SUFFIX)
        return partition_synthetic_compute(synthetic, sources, 0, arena, ret_values, &ignored);
    if (!is_base_alone(definition, pin))
        return 0;
    for (uint32_t i = 0; i < synthetic->suffixes; i++)
        if (!partition_synthetic_suffixed(synthetic, sources, i + 1, arena, &ret_values[i],
                                          &ignored))
            return 0;
    return synthetic->suffixes;
}

static struct query_pinned pinned_of(const struct partition_definition *definition,
                                     const struct pin *pin)
{
    struct query_pinned pinned = {0};
    size_t known = 0;

    while (known < definition->path_count && knows(pin, known))
        known++;
    pinned.key = partition_key_of(definition, pin->values, known);
    if (known < definition->path_count && (pin->bound >> known & 1))
        pinned.between = pin->between[known];
    return pinned;
}

/* Of one pin: as many keys as its made component can have values. */
static size_t pinned_add(const struct partition_definition *definition, const struct pin *pin,
                         struct arena *arena, struct query_pinned *list)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    struct document_value *values;
    struct pin one = *pin;
    size_t count = 0;

    if (synthetic && !knows(pin, synthetic->target)) {
        values = ARENA_ARRAY(arena, struct document_value, MAX(synthetic->suffixes, UINT32_C(1)));
        count = values_make(definition, pin, arena, values);
    }
    for (size_t i = 0; i < count; i++) {
        one.values[synthetic->target] = values[i];
        one.known |= 1u << synthetic->target;
        list[i] = pinned_of(definition, &one);
    }
    if (!count)
        list[count++] = pinned_of(definition, pin);
    return count;
}

struct query_pinning query_pins_find(const struct query_implied *implied,
                                     const struct partition_definition *definition,
                                     struct arena *arena)
{
    struct search search = {
        .definition = definition,
        .arena = arena,
        .ordered = partition_route_is_ordered(definition),
    };
    struct pins pins = pins_of(&search, implied);
    struct query_pinning pinning;
    size_t total = 0;

    for (size_t i = 0; i < pins.count; i++)
        total += is_base_alone(definition, &pins.items[i]) ? definition->synthetic->suffixes : 1;
    if (total > PINS_MAX) {
        pins = pins_any(&search);
        total = 1;
    }
    pinning = (struct query_pinning){.list = ARENA_ARRAY(arena, struct query_pinned, total + 1),
                                     .sure = !search.given_up};
    for (size_t i = 0; i < pins.count; i++)
        pinning.count +=
            pinned_add(definition, &pins.items[i], arena, &pinning.list[pinning.count]);
    pinning.anywhere = pins_are_any(pins);
    return pinning;
}

/* --- Ranges ----------------------------------------------------------------------------------- */

static struct query_key_range range_of(const struct partition_definition *definition,
                                       const struct query_pinned *pinned, struct arena *arena)
{
    struct partition_range range;

    if (pinned->between.max.data) {
        range = partition_route_between(definition, &pinned->key, pinned->between.min,
                                        pinned->between.max, arena);
        return (struct query_key_range){range.min, range.max, false};
    }
    range = partition_route_range(definition, &pinned->key, arena);
    if (!pinned->key.partial)
        return (struct query_key_range){range.min, range.min, true};
    return (struct query_key_range){range.min, range.max, false};
}

/* The wider of two that begin alike comes first. */
static int range_compare(const void *a, const void *b)
{
    const struct query_key_range *x = a, *y = b;
    int order = slice_compare(x->min, y->min);

    return order ? order : slice_compare(y->max, x->max);
}

/* Takes in one that begins where the range has not ended; false: it lies behind. */
static bool range_take(struct query_key_range *range, const struct query_key_range *other)
{
    if (range->point)
        return other->point && slice_equal(range->min, other->min);
    if (slice_compare(other->min, range->max) >= 0)
        return false;
    if (slice_compare(other->max, range->max) > 0)
        range->max = other->max;
    return true;
}

static size_t ranges_settle(struct query_key_range *ranges, size_t count)
{
    size_t kept = 0;

    qsort(ranges, count, sizeof *ranges, range_compare);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !range_take(&ranges[kept - 1], &ranges[i]))
            ranges[kept++] = ranges[i];
    return kept;
}

void query_key_ranges(const struct query_plan *plan, const struct partition_definition *definition,
                      struct arena *arena, const struct query_key_range **ret_ranges,
                      size_t *ret_count)
{
    struct query_conditions conditions = query_conditions_find(plan, DOCUMENT_ORDER_SQL, arena);
    struct query_pinning pinning = query_pins_find(conditions.implied, definition, arena);
    struct query_key_range *ranges = ARENA_ARRAY(arena, struct query_key_range, pinning.count + 1);

    *ret_ranges = ranges;
    *ret_count = 0;
    if (plan->constant)
        return;
    for (size_t i = 0; i < pinning.count; i++)
        ranges[i] = range_of(definition, &pinning.list[i], arena);
    *ret_count = ranges_settle(ranges, pinning.count);
}

const struct query_key_range *query_key_ranges_widen(const struct query_key_range *ranges,
                                                     size_t count, const struct partition_map *map,
                                                     struct arena *arena)
{
    struct query_key_range *wide;

    if (!partition_map_is_spread(map))
        return ranges;
    wide = ARENA_ARRAY(arena, struct query_key_range, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct slice max;
        size_t spans;

        wide[i] = ranges[i];
        if (!ranges[i].point)
            continue;
        max = arena_join(arena, (const struct slice[]){ranges[i].min, SLICE("\xFF")}, 2);
        (void)partition_map_overlap(map, (struct partition_range){ranges[i].min, max}, &spans);
        if (spans > 1)
            wide[i] = (struct query_key_range){.min = ranges[i].min, .max = max};
    }
    return wide;
}
