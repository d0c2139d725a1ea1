/* Statements, traversals and steps. Recursion follows the tree, whose depth the parser bounds. */
#include "front/gremlin/language/resolve.h"

#include "front/gremlin/language/resolve_private.h"

#include <stdlib.h>

static bool traversal_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                              struct gremlin_statement *ret_statement, struct error *err);
static bool source_add(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                       const struct gremlin_link *link, struct error *err);
static bool step_add(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                     const struct gremlin_link *link, struct error *err);
static bool terminal_take(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                          const struct gremlin_link *link, bool *ret_taken, struct error *err);
static bool transaction_add(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                            const struct gremlin_node *node, size_t at, struct error *err);

#define FAMILY(family) (1u << GREMLIN_ENUM_##family)
static const struct gremlin_step_row step_rows[] = {
#define STEP_ROW(name, first, second, rest) {SLICE(#name), first, second, rest},
#include "front/gremlin/language/steps.def"
#undef STEP_ROW
};

static int step_compare(const void *key, const void *row)
{
    return slice_compare(*(const struct slice *)key, ((const struct gremlin_step_row *)row)->name);
}

const struct gremlin_step_row *gremlin_step_find(struct slice name)
{
    return bsearch(&name, step_rows, ARRAY_LEN(step_rows), sizeof step_rows[0], step_compare);
}

static bool name_among(struct slice name, const struct slice *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(names[i], name))
            return true;
    return false;
}

static bool name_is_source(struct slice name)
{
    static const struct slice names[] = {
        SLICE("with"),         SLICE("withBulk"),          SLICE("withPath"),
        SLICE("withSack"),     SLICE("withSideEffect"),    SLICE("withStrategies"),
        SLICE("withComputer"), SLICE("withoutStrategies"),
    };

    return name_among(name, names, ARRAY_LEN(names));
}

static bool name_is_spawn(struct slice name)
{
    static const struct slice names[] = {
        SLICE("V"),      SLICE("E"),      SLICE("addV"),  SLICE("addE"), SLICE("mergeV"),
        SLICE("mergeE"), SLICE("inject"), SLICE("union"), SLICE("io"),   SLICE("call"),
    };

    return name_among(name, names, ARRAY_LEN(names));
}

bool gremlin_method_missing(const struct gremlin_link *link, struct error *err)
{
    return gremlin_compile_error(err, link->line, link->column, "Unable to find any method '%.*s'",
                                 SLICE_ARG(link->name));
}

static bool is_source(const struct gremlin_resolver *resolver, struct slice name)
{
    struct slice source = resolver->request.source;

    return slice_equal(name, source.data ? source : SLICE("g"));
}

bool gremlin_resolve_statement(struct gremlin_resolver *resolver,
                               const struct gremlin_syntax_statement *syntax,
                               struct gremlin_statement *ret_statement, struct error *err)
{
    const struct gremlin_node *node = syntax->node;
    struct gremlin_statement statement = {.present = true, .name = syntax->name};

    if (syntax->name.data && is_source(resolver, syntax->name))
        return gremlin_compile_error(err, node->line, node->column,
                                     "'%.*s' is the traversal source and cannot be assigned to",
                                     SLICE_ARG(syntax->name));
    if (node->kind == GREMLIN_NODE_CHAIN && !node->truth && !node->links[0].called &&
        is_source(resolver, node->links[0].name)) {
        if (!traversal_resolve(resolver, node, &statement, err))
            return false;
    } else {
        struct gremlin_value value;

        if (!gremlin_resolve_value(resolver, node, GREMLIN_PLACE_ANY, &value, err))
            return false;
        if (value.type == GREMLIN_TRAVERSAL || value.type == GREMLIN_PREDICATE ||
            value.type == GREMLIN_STRATEGY) {
            gremlin_value_unref(value);
            return gremlin_compile_error(
                err, node->line, node->column,
                "a statement is a traversal that begins with '%.*s', or a "
                "value",
                SLICE_ARG(resolver->request.source.data ? resolver->request.source : SLICE("g")));
        }
        statement.value = value;
    }
    *ret_statement = statement;
    return true;
}

/* g.sources.spawn.steps.terminal */
static bool traversal_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                              struct gremlin_statement *ret_statement, struct error *err)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value = gremlin_traversal_new(resolver->request.heap, true);
    struct gremlin_traversal *traversal = gremlin_traversal(value);
    bool spawned = false;

    if (node->link_count == 1)
        return gremlin_compile_error(err, node->line, node->column,
                                     "the traversal has no step: expected '.V()' or another one "
                                     "that begins it");
    for (size_t i = 1; i < node->link_count; i++) {
        const struct gremlin_link *link = &node->links[i];

        if (!link->called)
            return gremlin_syntax_error(err, link->line, link->column,
                                        "expected '(' after the name of the step '%.*s'",
                                        SLICE_ARG(link->name));
        if (!spawned && name_is_source(link->name)) {
            if (!source_add(resolver, traversal, link, err))
                return false;
            continue;
        }
        if (!spawned && slice_equal(link->name, SLICE("tx"))) {
            if (!transaction_add(resolver, traversal, node, i, err))
                return false;
            ret_statement->terminated = true;
            break;
        }
        if (!spawned && !name_is_spawn(link->name)) {
            if (!gremlin_step_find(link->name))
                return gremlin_method_missing(link, err);
            return gremlin_compile_error(err, link->line, link->column,
                                         "the step '%.*s' cannot begin a traversal",
                                         SLICE_ARG(link->name));
        }
        spawned = true;
        if (i + 1 == node->link_count) {
            if (!terminal_take(resolver, traversal, link, &ret_statement->terminated, err))
                return false;
            if (ret_statement->terminated)
                break;
        }
        if (!step_add(resolver, traversal, link, err))
            return false;
    }
    if (!spawned && !ret_statement->terminated)
        return gremlin_compile_error(err, node->line, node->column,
                                     "the traversal has no step: expected '.V()' or another one "
                                     "that begins it");
    ret_statement->traversal = traversal;
    (void)gremlin_value_take(&value);
    return true;
}

bool gremlin_resolve_nested(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                            size_t from, struct gremlin_value *ret_value, struct error *err)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value = gremlin_traversal_new(resolver->request.heap, false);
    struct gremlin_traversal *traversal = gremlin_traversal(value);

    if (from == node->link_count)
        return gremlin_compile_error(err, node->line, node->column,
                                     "the traversal has no step behind '%.*s'",
                                     SLICE_ARG(node->links[from - 1].name));
    for (size_t i = from; i < node->link_count; i++) {
        const struct gremlin_link *link = &node->links[i];

        if (!link->called)
            return gremlin_syntax_error(err, link->line, link->column,
                                        "expected '(' after the name of the step '%.*s'",
                                        SLICE_ARG(link->name));
        if (i == from && !link->count && slice_equal(link->name, SLICE("start")))
            continue; /* Groovy's name for a traversal that has no step yet */
        if (!step_add(resolver, traversal, link, err))
            return false;
    }
    *ret_value = gremlin_value_take(&value);
    return true;
}

static bool operator_count(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                           struct error *err)
{
    size_t max = resolver->request.limits.operators_max;

    if (++resolver->operators <= max)
        return true;
    return error_set(err, ERROR_GREMLIN_SCRIPT_LIMIT,
                     "Gremlin Query Compilation Error: the script has more than the limit of %zu "
                     "operators @ line %u, column %u.",
                     max, link->line, link->column);
}

static struct gremlin_place place_of(const struct gremlin_step_row *row,
                                     const struct gremlin_instruction *instruction, size_t at)
{
    struct gremlin_place place = {at == 0 ? row->first : at == 1 ? row->second : row->rest, false};

    place.merge = slice_equal(row->name, SLICE("mergeV")) ||
                  slice_equal(row->name, SLICE("mergeE")) ||
                  slice_equal(row->name, SLICE("option"));
    /* property(single, id, ...): the cardinality moves the key to the second place. */
    if (at == 1 && slice_equal(row->name, SLICE("property")) &&
        instruction->arguments[0].type == GREMLIN_ENUM &&
        instruction->arguments[0].word.family == GREMLIN_ENUM_CARDINALITY)
        place.families = FAMILY(T);
    return place;
}

static bool step_add(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                     const struct gremlin_link *link, struct error *err)
{
    const struct gremlin_step_row *row = gremlin_step_find(link->name);
    struct gremlin_instruction *instruction;

    if (!row)
        return gremlin_method_missing(link, err);
    if (!operator_count(resolver, link, err))
        return false;
    instruction = gremlin_traversal_add(traversal, &traversal->steps, link->name);
    instruction->line = link->line;
    instruction->column = link->column;
    for (size_t i = 0; i < link->count; i++) {
        struct gremlin_value argument;

        if (!gremlin_resolve_value(resolver, link->arguments[i], place_of(row, instruction, i),
                                   &argument, err))
            return false;
        gremlin_instruction_add_take(traversal, instruction, argument);
    }
    return true;
}

/* with('key', value) is a strategy in bytecode, so it is one here. */
static bool options_add(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                        struct gremlin_instruction *instruction, const struct gremlin_link *link,
                        struct gremlin_value arguments, struct error *err)
{
    const struct gremlin_list *list = gremlin_list(arguments);
    CLEANUP(gremlin_value_unref)
    struct gremlin_value map = gremlin_map_new(resolver->request.heap);

    if (list->count < 1 || list->count > 2 || !gremlin_is_string(list->items[0]))
        return gremlin_compile_error(err, link->line, link->column,
                                     "with() of a traversal source takes a name and a value");
    gremlin_map_put_take(map, list->items[0],
                         list->count == 2 ? gremlin_value_ref(list->items[1])
                                          : gremlin_boolean(true));
    gremlin_instruction_add_take(
        traversal, instruction,
        gremlin_strategy_new(resolver->request.heap, SLICE("OptionsStrategy"), map));
    return true;
}

static bool source_add(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                       const struct gremlin_link *link, struct error *err)
{
    bool options = slice_equal(link->name, SLICE("with"));
    bool without = slice_equal(link->name, SLICE("withoutStrategies"));
    struct gremlin_place place = {FAMILY(OPERATOR), false};
    struct gremlin_instruction *instruction;
    CLEANUP(gremlin_value_unref) struct gremlin_value arguments = GREMLIN_NOTHING;

    if (!operator_count(resolver, link, err) ||
        !gremlin_resolve_arguments(resolver, link, options ? GREMLIN_PLACE_ANY : place, &arguments,
                                   err))
        return false;
    instruction = gremlin_traversal_add(traversal, &traversal->sources,
                                        options ? SLICE("withStrategies") : link->name);
    instruction->line = link->line;
    instruction->column = link->column;
    if (options)
        return options_add(resolver, traversal, instruction, link, arguments, err);
    for (size_t i = 0; i < gremlin_list(arguments)->count; i++) {
        struct gremlin_value argument = gremlin_list(arguments)->items[i];

        if (without && argument.type == GREMLIN_STRATEGY)
            gremlin_instruction_add_take(
                traversal, instruction,
                gremlin_bytes_new(resolver->request.heap, GREMLIN_CLASS,
                                  gremlin_bytes(gremlin_strategy(argument)->name)));
        else
            gremlin_instruction_add_take(traversal, instruction, gremlin_value_ref(argument));
    }
    return true;
}

/* g.tx().commit(): in bytecode the source instruction tx with its verb. */
static bool transaction_add(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                            const struct gremlin_node *node, size_t at, struct error *err)
{
    static const struct slice verbs[] = {SLICE("begin"), SLICE("open"), SLICE("commit"),
                                         SLICE("rollback"), SLICE("close")};
    const struct gremlin_link *link = &node->links[at], *verb = &node->links[at + 1];
    struct gremlin_instruction *instruction;

    if (at + 2 != node->link_count || link->count)
        return gremlin_compile_error(err, link->line, link->column,
                                     "tx() is followed by begin(), commit() or rollback() alone");
    if (!name_among(verb->name, verbs, ARRAY_LEN(verbs)))
        return gremlin_method_missing(verb, err);
    if (!verb->called || verb->count)
        return gremlin_syntax_error(err, verb->line, verb->column, "expected '()' after '%.*s'",
                                    SLICE_ARG(verb->name));
    instruction = gremlin_traversal_add(traversal, &traversal->sources, link->name);
    instruction->line = link->line;
    instruction->column = link->column;
    gremlin_instruction_add_take(traversal, instruction,
                                 gremlin_string(resolver->request.heap, verb->name));
    return true;
}

static bool terminal_take(struct gremlin_resolver *resolver, struct gremlin_traversal *traversal,
                          const struct gremlin_link *link, bool *ret_taken, struct error *err)
{
    static const struct {
        struct slice name;
        enum gremlin_terminal terminal;
    } rows[] = {
        {SLICE("next"), GREMLIN_NEXT},        {SLICE("toList"), GREMLIN_TO_LIST},
        {SLICE("toSet"), GREMLIN_TO_SET},     {SLICE("toBulkSet"), GREMLIN_TO_BULK_SET},
        {SLICE("iterate"), GREMLIN_ITERATE},  {SLICE("hasNext"), GREMLIN_HAS_NEXT},
        {SLICE("tryNext"), GREMLIN_TRY_NEXT}, {SLICE("explain"), GREMLIN_EXPLAIN},
    };
    struct gremlin_value amount;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!slice_equal(rows[i].name, link->name))
            continue;
        traversal->terminal = rows[i].terminal;
        traversal->amount = 1;
        *ret_taken = true;
        if (!link->count)
            return true;
        if (rows[i].terminal != GREMLIN_NEXT || link->count > 1)
            return gremlin_compile_error(err, link->line, link->column,
                                         "'%.*s' does not take these arguments",
                                         SLICE_ARG(link->name));
        if (!gremlin_resolve_value(resolver, link->arguments[0], GREMLIN_PLACE_ANY, &amount, err))
            return false;
        if (!gremlin_is_whole(amount) || amount.integer < 0) {
            gremlin_value_unref(amount);
            return gremlin_compile_error(err, link->line, link->column,
                                         "next() takes how many results are wanted");
        }
        traversal->amount = (uint64_t)amount.integer;
        return true;
    }
    return true;
}
