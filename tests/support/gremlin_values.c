#include "support/gremlin_values.h"

#include "front/gremlin/value/big.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/traversal.h"

#include <math.h>

struct gremlin_heap *gremlin_test_heap(void)
{
    return gremlin_heap_new(&(struct gremlin_heap_options){});
}

static struct gremlin_value text(struct gremlin_heap *heap, const char *s)
{
    return gremlin_string(heap, slice_of_text(s));
}

static const char *some_text(struct random *random)
{
    static const char *const texts[] = {
        "",
        "a",
        "b",
        "ab",
        "id",
        "\xC3\xA4",
        "\xEF\xBF\xBD",
        "\xF0\x9F\x98\x80",
        "a\"b\\\n\t\x01",
        "a rather long text that does not fit into a small piece of memory, so that it is large",
    };

    return texts[random_below(random, ARRAY_LEN(texts))];
}

static struct gremlin_value some_number(struct gremlin_heap *heap, struct random *random)
{
    static const int64_t wholes[] = {0, 1, -1, 2, 127, -128};
    static const double reals[] = {0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 2.0, 1e300, -1e-300};
    static const char *const bigs[] = {"0",
                                       "1",
                                       "-1",
                                       "127",
                                       "128",
                                       "-129",
                                       "9223372036854775808",
                                       "-123456789012345678901234567890"};
    static const char *const decimals[] = {"0",   "1",   "1.00",  "-1",
                                           "0.1", "0.5", "1E+20", "12345.678901234567890123456789"};
    struct gremlin_value value = GREMLIN_NOTHING;
    bool fine = true;

    switch (random_below(random, 9)) {
    case 0:
        return gremlin_integer(GREMLIN_BYTE, wholes[random_below(random, ARRAY_LEN(wholes))]);
    case 1:
        return gremlin_integer(GREMLIN_SHORT, random_below(random, 2)
                                                  ? wholes[random_below(random, ARRAY_LEN(wholes))]
                                                  : INT16_MIN);
    case 2:
        return gremlin_int(random_below(random, 4)
                               ? (int32_t)wholes[random_below(random, ARRAY_LEN(wholes))]
                               : INT32_MAX);
    case 3:
        return gremlin_long(random_below(random, 4)
                                ? wholes[random_below(random, ARRAY_LEN(wholes))]
                                : INT64_MAX - (int64_t)random_below(random, 3));
    case 4:
        return gremlin_float(
            (float)(random_below(random, 2) ? 0.1 : (double)random_below(random, 3)));
    case 5:
        return gremlin_double(reals[random_below(random, ARRAY_LEN(reals))]);
    case 6:
        return gremlin_double(random_below(random, 2)   ? (double)NAN
                              : random_below(random, 2) ? (double)INFINITY
                                                        : -(double)INFINITY);
    case 7:
        fine = gremlin_big_integer(heap, slice_of_text(bigs[random_below(random, ARRAY_LEN(bigs))]),
                                   &value);
        break;
    default:
        fine = gremlin_big_decimal(
            heap, slice_of_text(decimals[random_below(random, ARRAY_LEN(decimals))]), &value);
    }
    assert(fine);
    return value;
}

static struct gremlin_value some_scalar(struct gremlin_heap *heap, struct random *random)
{
    static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint32_t characters[] = {'a', 'b', 0xE4, 0xFFFD, 0x1F600};

    switch (random_below(random, 14)) {
    case 0:
        return GREMLIN_NOTHING;
    case 1:
        return gremlin_boolean(random_below(random, 2));
    case 2:
        return gremlin_integer(GREMLIN_CHAR,
                               characters[random_below(random, ARRAY_LEN(characters))]);
    case 3:
        return gremlin_date((int64_t)random_below(random, 3) - 1);
    case 4:
        return gremlin_integer(GREMLIN_TIMESTAMP, (int64_t)random_below(random, 3) - 1);
    case 5:
        return gremlin_word((enum gremlin_enum_word)random_below(random, GREMLIN_WORD_COUNT));
    case 6:
        return gremlin_bytes_new(heap, GREMLIN_UUID, slice_of(uuid, 16));
    case 7:
        return gremlin_bytes_new(heap, GREMLIN_BINARY, slice_of(uuid, random_below(random, 5)));
    case 8:
        return gremlin_date_time_new(heap, (int64_t)random_below(random, 3) - 1,
                                     (int32_t)random_below(random, 2) * 500000000,
                                     (int32_t)random_below(random, 3) * 3600 - 3600);
    case 9:
        return gremlin_duration_new(heap, (int64_t)random_below(random, 4000) - 2000,
                                    (int32_t)random_below(random, 2) * 250000000);
    case 10:
        return text(heap, some_text(random));
    default:
        return some_number(heap, random);
    }
}

static struct gremlin_value some_container(struct gremlin_heap *heap, struct random *random,
                                           unsigned kinds, int depth)
{
    static const enum gremlin_type types[] = {GREMLIN_LIST, GREMLIN_SET, GREMLIN_BULK_SET,
                                              GREMLIN_MAP, GREMLIN_TREE};
    enum gremlin_type type = types[random_below(random, ARRAY_LEN(types))];
    size_t count = random_below(random, 20) ? random_below(random, 4) : 20;
    struct gremlin_value value;

    if (type == GREMLIN_LIST)
        value = gremlin_list_new(heap, 0);
    else
        value = gremlin_table_new(heap, type, 0);
    for (size_t i = 0; i < count; i++) {
        struct gremlin_value item = gremlin_random_value(heap, random, kinds, depth - 1);

        if (type == GREMLIN_LIST)
            gremlin_list_add(value, item);
        else if (type == GREMLIN_SET)
            gremlin_set_add(value, item);
        else if (type == GREMLIN_BULK_SET)
            gremlin_bulk_set_add(value, item, 1 + (int64_t)random_below(random, 3));
        else if (type == GREMLIN_MAP)
            gremlin_map_put_take(value, item, gremlin_random_value(heap, random, kinds, depth - 1));
        else
            gremlin_tree_branch(gremlin_tree_branch(value, item), gremlin_int(1));
        gremlin_value_unref(item);
    }
    return value;
}

struct gremlin_value gremlin_test_vertex(struct gremlin_heap *heap, const char *id,
                                         const char *label)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value id_value = text(heap, id);
    CLEANUP(gremlin_value_unref) struct gremlin_value label_value = text(heap, label);

    return gremlin_vertex_new(heap, id_value, label_value, GREMLIN_NOTHING);
}

static struct gremlin_properties *some_properties(struct gremlin_heap *heap, struct random *random,
                                                  bool ids)
{
    struct gremlin_properties *properties = gremlin_properties_new(heap, 0);
    static const char *const keys[] = {"name", "age", "x"};

    for (size_t i = 0; i < random_below(random, 3) + 1; i++) {
        struct gremlin_slot slot = {.key = text(heap, keys[i]),
                                    .value = some_scalar(heap, random),
                                    .id = ids ? text(heap, keys[2 - i]) : GREMLIN_NOTHING};

        if (ids && random_below(random, 3) == 0)
            slot.meta = some_properties(heap, random, false);
        gremlin_properties_add_take(properties, slot);
    }
    return properties;
}

static struct gremlin_value some_element(struct gremlin_heap *heap, struct random *random)
{
    static const char *const ids[] = {"1", "2", "3"};
    CLEANUP(gremlin_value_unref)
    struct gremlin_value a = gremlin_test_vertex(heap, ids[random_below(random, 3)], "person");
    CLEANUP(gremlin_value_unref) struct gremlin_value b = gremlin_test_vertex(heap, "9", "thing");
    struct gremlin_end out = {gremlin_element(a)->id, gremlin_element(a)->label};
    struct gremlin_end in = {gremlin_element(b)->id, gremlin_element(b)->label};
    struct gremlin_value value;

    switch (random_below(random, 5)) {
    case 0:
        if (random_below(random, 2))
            gremlin_element_set_take(a, some_properties(heap, random, true));
        return gremlin_value_ref(a);
    case 1:
        value = gremlin_edge_new(heap, gremlin_element(a)->id, gremlin_element(b)->label,
                                 GREMLIN_NOTHING, &out, &in);
        if (random_below(random, 2))
            gremlin_element_set_take(value, some_properties(heap, random, false));
        return value;
    case 2: {
        CLEANUP(gremlin_properties_unref)
        struct gremlin_properties *all = some_properties(heap, random, true);

        return gremlin_vertex_property_new(heap, &all->slots[0], GREMLIN_NOTHING);
    }
    case 3: {
        CLEANUP(gremlin_value_unref) struct gremlin_value number = some_scalar(heap, random);

        return gremlin_property_new(heap, gremlin_element(a)->id, number, GREMLIN_NOTHING);
    }
    default: {
        CLEANUP(gremlin_value_unref) struct gremlin_value labels = gremlin_set_new(heap);
        CLEANUP(gremlin_path_unref)
        struct gremlin_path *first = gremlin_path_extend(heap, NULL, a, GREMLIN_NOTHING);

        gremlin_set_add(labels, gremlin_element(a)->label);
        return gremlin_value_of_take(
            gremlin_path_extend(heap, first, random_below(random, 2) ? a : b, labels));
    }
    }
}

static struct gremlin_value some_predicate(struct gremlin_heap *heap, struct random *random,
                                           int depth)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value a = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value b = GREMLIN_NOTHING;
    struct gremlin_value both[2], value = GREMLIN_NOTHING;
    struct error err = {};
    bool fine;

    if (depth > 0 && random_below(random, 3) == 0) {
        static const char *const names[] = {"and", "or", "not"};
        size_t which = random_below(random, 3);

        both[0] = a = some_predicate(heap, random, depth - 1);
        both[1] = b = some_predicate(heap, random, depth - 1);
        fine = gremlin_predicate_new(heap, slice_of_text(names[which]), both, which == 2 ? 1 : 2,
                                     &value, &err);
    } else {
        static const struct {
            const char *name;
            size_t count;
            bool texts;
        } rows[] = {{"eq", 1},         {"neq", 1},     {"lt", 1},
                    {"gte", 1},        {"between", 2}, {"within", 2},
                    {"without", 2},    {"inside", 2},  {"startingWith", 1, true},
                    {"regex", 1, true}};
        size_t which = random_below(random, ARRAY_LEN(rows));

        both[0] = a = rows[which].texts ? text(heap, some_text(random)) : some_scalar(heap, random);
        both[1] = b = some_scalar(heap, random);
        fine = gremlin_predicate_new(heap, slice_of_text(rows[which].name), both, rows[which].count,
                                     &value, &err);
    }
    assert(fine);
    return value;
}

static struct gremlin_value some_argument(struct gremlin_heap *heap, struct random *random,
                                          int depth)
{
    struct gremlin_value value;

    switch (random_below(random, 3)) {
    case 0:
        return some_predicate(heap, random, depth);
    case 1: {
        CLEANUP(gremlin_value_unref) struct gremlin_value map = gremlin_map_new(heap);
        CLEANUP(gremlin_value_unref) struct gremlin_value key = text(heap, "vertices");

        gremlin_map_put(map, key, gremlin_int(1));
        return gremlin_strategy_new(heap, SLICE("SubgraphStrategy"), map);
    }
    default:
        value = gremlin_traversal_new(heap, false);
        for (size_t i = 0; i < 1 + random_below(random, 3); i++) {
            struct gremlin_instruction *step = gremlin_traversal_add(
                gremlin_traversal(value), &gremlin_traversal(value)->steps, SLICE("out"));

            for (size_t j = 0; j < random_below(random, 3); j++)
                gremlin_instruction_add_take(
                    gremlin_traversal(value), step,
                    gremlin_random_value(heap, random, GREMLIN_RANDOM_ALL, depth - 1));
        }
        return value;
    }
}

struct gremlin_value gremlin_random_value(struct gremlin_heap *heap, struct random *random,
                                          unsigned kinds, int depth)
{
    uint64_t die = random_below(random, 10);

    if (depth > 0 && kinds & GREMLIN_RANDOM_CONTAINERS && die < 3)
        return some_container(heap, random, kinds, depth);
    if (kinds & GREMLIN_RANDOM_ELEMENTS && die < 5)
        return some_element(heap, random);
    if (depth > 0 && kinds & GREMLIN_RANDOM_ARGUMENTS && die < 7)
        return some_argument(heap, random, depth);
    return some_scalar(heap, random);
}
