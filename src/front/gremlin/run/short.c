/* Which traversals an event loop may try. A step that is short does for each traverser no more than
 * the bytes of what it looks at, reads the graph in batches, and makes nothing that grows faster
 * than what comes in; how many traversers there are turns out on the way, where work, heap and what
 * is read are bounded. Left out are steps that write, repeat, compute texts or are seldom worth it,
 * and regular expressions; strategies and options before the first step are for workers too. */
#include "front/gremlin/run/run.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"

#include <xxhash.h>

enum { DEPTH_MAX = 8 };

static bool name_is_short(struct slice name)
{
    static const struct slice names[] = {
        SLICE("V"),          SLICE("E"),          SLICE("out"),        SLICE("in"),
        SLICE("both"),       SLICE("outE"),       SLICE("inE"),        SLICE("bothE"),
        SLICE("outV"),       SLICE("inV"),        SLICE("bothV"),      SLICE("otherV"),
        SLICE("has"),        SLICE("hasLabel"),   SLICE("hasId"),      SLICE("hasKey"),
        SLICE("hasNot"),     SLICE("is"),         SLICE("not"),        SLICE("and"),
        SLICE("or"),         SLICE("where"),      SLICE("filter"),     SLICE("limit"),
        SLICE("range"),      SLICE("skip"),       SLICE("tail"),       SLICE("dedup"),
        SLICE("order"),      SLICE("by"),         SLICE("id"),         SLICE("label"),
        SLICE("key"),        SLICE("value"),      SLICE("identity"),   SLICE("constant"),
        SLICE("values"),     SLICE("valueMap"),   SLICE("with"),       SLICE("count"),
        SLICE("elementMap"), SLICE("properties"), SLICE("sum"),        SLICE("min"),
        SLICE("max"),        SLICE("mean"),       SLICE("fold"),       SLICE("unfold"),
        SLICE("project"),    SLICE("select"),     SLICE("as"),         SLICE("path"),
        SLICE("coalesce"),   SLICE("group"),      SLICE("groupCount"), SLICE("simplePath"),
        SLICE("none"),       SLICE("hasValue"),   SLICE("barrier"),    SLICE("inject"),
        SLICE("local"),      SLICE("choose"),     SLICE("optional"),   SLICE("union"),
        SLICE("to"),         SLICE("toV"),        SLICE("toE"),        SLICE("flatMap"),
        SLICE("map"),
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_equal(name, names[i]))
            return true;
    return false;
}

static bool steps_are_short(const struct gremlin_traversal *traversal, int depth, uint64_t *kind);

static bool argument_is_short(struct gremlin_value argument, int depth, uint64_t *kind)
{
    const struct gremlin_predicate *predicate;

    if (argument.type == GREMLIN_TRAVERSAL)
        return steps_are_short(gremlin_traversal(argument), depth + 1, kind);
    if (argument.type != GREMLIN_PREDICATE)
        return true;
    predicate = gremlin_predicate(argument);
    if (depth > DEPTH_MAX || predicate->name == GREMLIN_P_REGEX ||
        predicate->name == GREMLIN_P_NOT_REGEX)
        return false;
    for (uint32_t i = 0; i < predicate->count; i++)
        if (!argument_is_short(predicate->values[i], depth + 1, kind))
            return false;
    return true;
}

static bool steps_are_short(const struct gremlin_traversal *traversal, int depth, uint64_t *kind)
{
    if (depth > DEPTH_MAX || traversal->sources.count)
        return false;
    for (uint32_t i = 0; i < traversal->steps.count; i++) {
        const struct gremlin_instruction *step = &traversal->steps.items[i];

        if (!name_is_short(step->name))
            return false;
        *kind = XXH3_64bits_withSeed(step->name.data, step->name.len, *kind + step->count);
        for (uint32_t k = 0; k < step->count; k++)
            if (!argument_is_short(step->arguments[k], depth, kind))
                return false;
    }
    return true;
}

bool gremlin_traversal_is_short(const struct gremlin_traversal *traversal, uint64_t *ret_kind)
{
    *ret_kind = 0;
    return traversal->terminal != GREMLIN_EXPLAIN && steps_are_short(traversal, 0, ret_kind);
}
