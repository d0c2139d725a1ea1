/* Writing: addV, addE, property, drop. property() steps right behind addV() or addE() belong to the
 * new element: partition key and id must be there when it is stored. */
#include "front/gremlin/run/compile.h"

/* --- Assignments ----------------------------------------------------------------------------- */

/* A key and its value, both of which may be computed for each traverser. */
struct setting {
    enum gremlin_cardinality cardinality;
    enum { SETS_PROPERTY, SETS_ID, SETS_LABEL } what;
    struct slice key;
    struct part *key_part; /* NULL: the key above */
    struct gremlin_value value;
    struct part *value_part; /* NULL: the value above */
    struct gremlin_value map; /* property(map): its entries; null: none */
    const struct gremlin_value *meta; /* key, value, key, value */
    struct part **meta_parts;         /* of the values; NULL: constant */
    size_t meta_count;                /* pairs */
};

struct settings {
    struct setting *items;
    size_t count, capacity;
};

static struct setting *settings_add(struct compiler *compiler, struct settings *settings)
{
    if (settings->count == settings->capacity) {
        size_t capacity = settings->capacity ? settings->capacity * 2 : 8;
        struct setting *grown = ARENA_ARRAY(compiler->run->arena, struct setting, capacity);

        if (settings->count)
            memcpy(grown, settings->items, settings->count * sizeof *grown);
        settings->items = grown;
        settings->capacity = capacity;
    }
    settings->items[settings->count] = (struct setting){0};
    return &settings->items[settings->count++];
}

static bool cardinality_of(enum gremlin_enum_word word, enum gremlin_cardinality *ret_cardinality)
{
    switch (word) {
    case GREMLIN_CARDINALITY_SINGLE_WORD:
        *ret_cardinality = GREMLIN_CARDINALITY_SINGLE;
        return true;
    case GREMLIN_CARDINALITY_LIST_WORD:
        *ret_cardinality = GREMLIN_CARDINALITY_LIST;
        return true;
    case GREMLIN_CARDINALITY_SET_WORD:
        *ret_cardinality = GREMLIN_CARDINALITY_SET;
        return true;
    default:
        return false;
    }
}
