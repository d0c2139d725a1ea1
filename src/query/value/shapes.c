/* A few shapes by the bytes of their values, the one that was used longest ago makes way. What
 * rows bring passes through; what a query names is used with every row and stays. */
#include "query/value/shapes.h"

#include "base/memory.h"
#include "item/view_bound.h"

enum {
    KEPT = 4,
    SHAPE_WORK = 1000, /* units for one that is no point */
    MAKE_WORK = 32,    /* and for each position: edges are sorted into cells, and tried for crossing
                       each other */
};

struct kept {
    struct search_rules rules;
    enum document_type type;
    uint8_t *bytes; /* of the value */
    size_t len;
    uint64_t used;
    struct search_shape *shape; /* NULL: it is none */
    struct search_reason reason;
};

struct query_shape_cache {
    struct kept list[KEPT];
    uint64_t used;
};

static void kept_done(struct kept *kept)
{
    search_shape_free(kept->shape);
    memory_free(kept->bytes);
    *kept = (struct kept){0};
}

void query_shape_cache_free(struct query_shape_cache *cache)
{
    for (size_t i = 0; cache && i < KEPT; i++)
        kept_done(&cache->list[i]);
    memory_free(cache);
}

static bool kept_is(const struct kept *kept, const struct document_value *value,
                    const struct search_rules *rules)
{
    return kept->used && kept->type == value->type && kept->len == value->document.len &&
           kept->rules.surface == rules->surface && kept->rules.every_type == rules->every_type &&
           kept->rules.smaller == rules->smaller && kept->rules.round == rules->round &&
           memcmp(kept->bytes, value->document.data, kept->len) == 0;
}

static struct kept *kept_find(struct query_shape_cache *cache, const struct document_value *value,
                              const struct search_rules *rules, bool *ret_found)
{
    struct kept *oldest = &cache->list[0];

    for (size_t i = 0; i < KEPT; i++) {
        *ret_found = kept_is(&cache->list[i], value, rules);
        if (*ret_found)
            return &cache->list[i];
        if (cache->list[i].used < oldest->used)
            oldest = &cache->list[i];
    }
    return oldest;
}

static bool kept_make(struct kept *kept, struct query_context *context,
                      const struct document_value *value, const struct search_rules *rules,
                      struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct search_figure figure;

    kept_done(kept);
    kept->rules = *rules;
    kept->type = value->type;
    kept->len = value->document.len;
    kept->bytes = memory_alloc(kept->len + 1);
    memcpy(kept->bytes, value->document.data, kept->len);
    if (!query_work(context, QUERY_FIGURE_WORK(kept->len), err))
        return false;
    if (!search_figure_read(value, rules, arena, &figure, &kept->reason))
        return true;
    if (figure.position_count > 1 &&
        !query_work(context, SHAPE_WORK + MAKE_WORK * figure.position_count, err))
        return false;
    kept->shape = context->limits.brief ? search_shape_new_plain(&figure)
                                        : search_shape_new(&figure, &kept->reason);
    return kept->shape || !context->limits.brief || view_bound_cold(err);
}

bool query_shape_get(struct query_context *context, const struct document_value *value,
                     const struct search_rules *rules, struct search_shape **ret_shape,
                     const struct search_reason **ret_reason, struct error *err)
{
    static const struct search_reason none = {"The input is not a GeoJSON object."};
    struct kept *kept;
    bool found;

    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY) {
        *ret_shape = NULL;
        *ret_reason = &none;
        return true;
    }
    if (!context->shapes)
        context->shapes = MEMORY_NEW(struct query_shape_cache);
    kept = kept_find(context->shapes, value, rules, &found);
    if (!found && !kept_make(kept, context, value, rules, err)) {
        kept_done(kept);
        return false;
    }
    kept->used = ++context->shapes->used;
    *ret_shape = kept->shape;
    *ret_reason = &kept->reason;
    return true;
}
