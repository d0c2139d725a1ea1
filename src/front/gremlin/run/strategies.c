/* What stands between g and the first step: side effects, sacks, options and strategies. Strategies
 * that only make a traversal faster are taken and change nothing; those that change what it sees
 * are carried out; others are refused by name. */
#include "front/gremlin/run/write_private.h"

/* What SubgraphStrategy and PartitionStrategy let through. */
struct gremlin_filters {
    struct gremlin_part *vertices, *edges, *properties; /* NULL: all */
    bool adjacent;                                      /* an edge needs both its vertices */
    struct slice partition_key;                         /* data NULL: no PartitionStrategy */
    struct gremlin_value read;  /* a predicate: within the partitions read */
    struct gremlin_value write; /* null: none */
    bool busy; /* a criterion is being asked: what it reads is not filtered again */
};

/* --- Filtering ------------------------------------------------------------------------------- */

struct strategy_filter {
    struct gremlin_step step;
    enum gremlin_element_kind kind;
};

static bool part_passes(struct gremlin_run *run, struct gremlin_part *part,
                        struct gremlin_value value, const struct gremlin_walker *traverser,
                        bool *ret_yes, struct error *err)
{
    bool good, busy = run->filters->busy;

    *ret_yes = true;
    if (!part)
        return true;
    run->filters->busy = true;
    gremlin_part_begin_value(run, part, traverser, value);
    struct gremlin_walker first = {0};

    good = gremlin_part_next(run, part, &first, ret_yes, err);
    gremlin_walker_done(&first);
    run->filters->busy = busy;
    return good;
}

static bool partition_passes(struct gremlin_run *run, struct gremlin_value element, bool *ret_yes,
                             struct error *err)
{
    const struct gremlin_filters *filters = run->filters;
    struct gremlin_value list;

    *ret_yes = true;
    if (!filters->partition_key.data)
        return true;
    if (!gremlin_element_list(run, element, &filters->partition_key, 1, true, &list, err))
        return false;
    *ret_yes = false;
    for (size_t i = 0; i < gremlin_list(list)->count && !*ret_yes; i++)
        *ret_yes = gremlin_operand_test(run, filters->read, gremlin_list(list)->items[i]);
    gremlin_value_unref(list);
    return true;
}

static bool edge_passes(struct gremlin_run *run, struct gremlin_value edge,
                        const struct gremlin_walker *traverser, bool *ret_yes, struct error *err)
{
    struct gremlin_filters *filters = run->filters;
    struct gremlin_value ends[2] = {GREMLIN_NOTHING, GREMLIN_NOTHING};
    bool good;

    if (!part_passes(run, filters->edges, edge, traverser, ret_yes, err))
        return false;
    if (!*ret_yes || !filters->adjacent || !filters->vertices)
        return true;
    if (!gremlin_graph_ends(run->graph, &edge, 1, GREMLIN_REACH_BOTH, false, ends, err))
        return false;
    good = true;
    for (size_t i = 0; i < 2; i++) {
        if (good && *ret_yes)
            good = gremlin_is_null(ends[i])
                       ? (*ret_yes = false, true)
                       : part_passes(run, filters->vertices, ends[i], traverser, ret_yes, err);
        gremlin_value_unref(ends[i]);
    }
    return good;
}

static bool strategy_filter_one(struct gremlin_run *run, struct gremlin_step *step UNUSED,
                                struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    struct gremlin_value element = traverser->value;

    if (!partition_passes(run, element, ret_keep, err))
        return false;
    if (!*ret_keep)
        return true;
    if (element.type == GREMLIN_EDGE)
        return edge_passes(run, element, traverser, ret_keep, err);
    if (element.type == GREMLIN_VERTEX)
        return part_passes(run, run->filters->vertices, element, traverser, ret_keep, err);
    return true;
}

/* The element got its label before: this step only drops it. */
static const struct gremlin_step_kind step_strategy_filter = {
    .name = "strategyFilter", .flags = STEP_FILTERS, .one = strategy_filter_one};

bool gremlin_add_strategy_filter(struct gremlin_compiler *compiler, enum gremlin_element_kind kind,
                                 struct error *err UNUSED)
{
    struct strategy_filter *filter;

    if (!compiler->run->filters || compiler->plain)
        return true;
    filter = STEP_ADD(compiler, NULL, &step_strategy_filter, struct strategy_filter);
    filter->kind = kind;
    return true;
}

bool gremlin_property_passes(struct gremlin_run *run, struct gremlin_value owner,
                             const struct gremlin_slot *slot)
{
    struct gremlin_walker traverser = {.bulk = 1};
    bool yes = true;

    if (!run->filters || run->filters->busy || !run->filters->properties ||
        owner.type != GREMLIN_VERTEX)
        return true;
    traverser.value = gremlin_vertex_property_new(run->heap, slot, owner);
    if (!run->faulted &&
        !part_passes(run, run->filters->properties, traverser.value, &traverser, &yes, &run->fault))
        run->faulted = true;
    gremlin_walker_done(&traverser);
    return yes;
}

bool gremlin_add_strategy_settings(struct gremlin_compiler *compiler,
                                   struct gremlin_settings *settings, struct error *err UNUSED)
{
    struct gremlin_filters *filters = compiler->run->filters;
    struct gremlin_setting *setting;

    if (!filters || gremlin_is_null(filters->write))
        return true;
    for (size_t i = 0; i < settings->count; i++)
        if (slice_equal(settings->items[i].key, filters->partition_key))
            return true;
    setting = gremlin_settings_add(compiler, settings);
    setting->key = filters->partition_key;
    setting->value = filters->write;
    return true;
}

void gremlin_strategy_write(struct gremlin_run *run, struct gremlin_resolved *resolved)
{
    const struct gremlin_filters *filters = run->filters;

    if (filters && !gremlin_is_null(filters->write))
        gremlin_assignment_add(run, resolved, 0, filters->partition_key, filters->write);
}

bool gremlin_strategy_conditions(struct gremlin_compiler *compiler,
                                 struct gremlin_conditions *conditions)
{
    const struct gremlin_filters *filters = compiler->run->filters;
    struct gremlin_condition condition;

    if (!filters || compiler->plain || !filters->partition_key.data)
        return true;
    condition = (struct gremlin_condition){.kind = GREMLIN_CONDITION_PROPERTY,
                                           .key = filters->partition_key,
                                           .operand = filters->read};
    if (gremlin_condition_is_stored(&condition))
        gremlin_conditions_add(compiler, conditions, condition);
    return true;
}

/* --- Strategies ------------------------------------------------------------------------------ */

static struct gremlin_filters *filters_get(struct gremlin_run *run)
{
    if (!run->filters)
        run->filters = ARENA_NEW(run->arena, struct gremlin_filters);
    return run->filters;
}

static bool criterion(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                      struct slice name, struct gremlin_part **ret_part, struct error *err)
{
    const struct gremlin_value *given =
        configuration.type == GREMLIN_MAP ? gremlin_map_get_text(configuration, name) : NULL;

    if (!given || gremlin_is_null(*given))
        return true;
    if (!gremlin_argument_is_traversal(*given))
        return REFUSE(err, "SubgraphStrategy: %.*s must be a traversal", SLICE_ARG(name));
    return gremlin_compile_argument(compiler, *given,
                                    (struct gremlin_part_options){.test = true, .plain = true},
                                    ret_part, err);
}

static bool subgraph(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                     struct error *err)
{
    struct gremlin_filters *filters = filters_get(compiler->run);
    const struct gremlin_value *adjacent =
        gremlin_map_get_text(configuration, SLICE("checkAdjacentVertices"));

    filters->adjacent = !adjacent || adjacent->type != GREMLIN_BOOLEAN || adjacent->boolean;
    return criterion(compiler, configuration, SLICE("vertices"), &filters->vertices, err) &&
           criterion(compiler, configuration, SLICE("edges"), &filters->edges, err) &&
           criterion(compiler, configuration, SLICE("vertexProperties"), &filters->properties, err);
}

static bool partition(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                      struct error *err)
{
    struct gremlin_run *run = compiler->run;
    struct gremlin_filters *filters = filters_get(run);
    const struct gremlin_value *key = gremlin_map_get_text(configuration, SLICE("partitionKey"));
    const struct gremlin_value *read = gremlin_map_get_text(configuration, SLICE("readPartitions"));
    const struct gremlin_value *write =
        gremlin_map_get_text(configuration, SLICE("writePartition"));
    const struct gremlin_value *meta =
        gremlin_map_get_text(configuration, SLICE("includeMetaProperties"));
    struct gremlin_value items;
    bool good;

    if (!key || !gremlin_is_string(*key))
        return REFUSE(err, "PartitionStrategy needs a partitionKey");
    if (meta && meta->type == GREMLIN_BOOLEAN && meta->boolean)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "PartitionStrategy: includeMetaProperties is not offered");
    filters->partition_key = slice_keep(compiler, gremlin_bytes(*key));
    if (write && !gremlin_is_null(*write))
        filters->write = *write;
    items = read ? gremlin_value_listed(run, *read) : gremlin_list_new(run->heap, 0);
    good = gremlin_predicate_new(run->heap, SLICE("within"), gremlin_list(items)->items,
                                 gremlin_list(items)->count, &filters->read, err);
    gremlin_value_unref(items);
    return good;
}

static bool seed(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                 struct error *err)
{
    const struct gremlin_value *given = gremlin_map_get_text(configuration, SLICE("seed"));
    int64_t number;

    if (!given || !gremlin_is_number(*given) || !gremlin_number_long(*given, &number))
        return REFUSE(err, "SeedStrategy needs a seed");
    gremlin_run_seed(compiler->run, (uint64_t)number);
    return true;
}

static bool throws(struct gremlin_value configuration)
{
    const struct gremlin_value *given =
        gremlin_map_get_text(configuration, SLICE("throwException"));

    return given && given->type == GREMLIN_BOOLEAN && given->boolean;
}

static bool edge_labels(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                        struct error *err UNUSED)
{
    compiler->run->verify_labels = throws(configuration);
    return true;
}

static bool reserved_keys(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                          struct error *err UNUSED)
{
    const struct gremlin_value *keys = gremlin_map_get_text(configuration, SLICE("keys"));

    compiler->run->verify_keys = throws(configuration);
    if (keys && gremlin_value_iterates(*keys))
        compiler->run->reserved = gremlin_value_listed(compiler->run, *keys);
    return true;
}

static bool read_only(struct gremlin_compiler *compiler, struct gremlin_value configuration UNUSED,
                      struct error *err UNUSED)
{
    compiler->run->strategy_read_only = true;
    return true;
}

static bool productive(struct gremlin_compiler *compiler, struct gremlin_value configuration UNUSED,
                       struct error *err UNUSED)
{
    compiler->run->productive = true;
    return true;
}

/* ProjectionStrategy of the hosted service: system properties that elements show. */
static bool projection(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                       struct error *err)
{
    static const struct slice names[] = {{(const uint8_t *)"IncludeSystemProperties", 23},
                                         {(const uint8_t *)"includeSystemProperties", 23}};
    struct gremlin_value items;
    struct slice *texts;
    const struct gremlin_value *given = NULL;
    size_t count;

    for (size_t i = 0; i < 2 && !given; i++)
        given = gremlin_map_get_text(configuration, names[i]);
    if (!given)
        return true;
    items = gremlin_value_listed(compiler->run, *given);
    count = gremlin_list(items)->count;
    texts = ARENA_ARRAY(compiler->run->arena, struct slice, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (!gremlin_is_string(gremlin_list(items)->items[i]))
            return REFUSE(err, "ProjectionStrategy: names of properties are strings");
        texts[i] = slice_keep(compiler, gremlin_bytes(gremlin_list(items)->items[i]));
    }
    gremlin_value_unref(items);
    return gremlin_graph_show_system(compiler->run->graph, texts, count, err);
}

static const struct {
    const char *name;
    bool (*apply)(struct gremlin_compiler *compiler, struct gremlin_value configuration,
                  struct error *err);
} strategies[] = {
    {"SubgraphStrategy", subgraph},
    {"PartitionStrategy", partition},
    {"SeedStrategy", seed},
    {"ReadOnlyStrategy", read_only},
    {"ProductiveByStrategy", productive},
    {"EdgeLabelVerificationStrategy", edge_labels},
    {"ReservedKeysVerificationStrategy", reserved_keys},
    {"ProjectionStrategy", projection},
};

/* They make a traversal faster, check what is checked anyway, or say what requests say too. */
static const char *const harmless[] = {
    "OptionsStrategy",
    "AdjacentToIncidentStrategy",
    "ByModulatorOptimizationStrategy",
    "ConnectiveStrategy",
    "CountStrategy",
    "EarlyLimitStrategy",
    "FilterRankingStrategy",
    "GraphFilterStrategy",
    "HaltedTraverserStrategy",
    "IdentityRemovalStrategy",
    "IncidentToAdjacentStrategy",
    "InlineFilterStrategy",
    "LambdaRestrictionStrategy",
    "LazyBarrierStrategy",
    "MatchAlgorithmStrategy",
    "MatchPredicateStrategy",
    "MessagePassingReductionStrategy",
    "OrderLimitStrategy",
    "PathProcessorStrategy",
    "PathRetractionStrategy",
    "ProfileStrategy",
    "ReferenceElementStrategy",
    "RepeatUnrollStrategy",
    "RequirementsStrategy",
    "SackStrategy",
    "SideEffectStrategy",
    "StandardVerificationStrategy",
    "TinkerGraphCountStrategy",
    "TinkerGraphStepStrategy",
    "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy",
};

static bool is_harmless(struct slice name)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (slice_equal(name, slice_of_text(harmless[i])))
            return true;
    return false;
}

static bool strategy_apply(struct gremlin_compiler *compiler, struct gremlin_value given,
                           struct error *err)
{
    struct slice name;
    struct gremlin_value configuration;

    if (given.type == GREMLIN_STRATEGY) {
        name = gremlin_bytes(gremlin_strategy(given)->name);
        configuration = gremlin_strategy(given)->configuration;
    } else if (given.type == GREMLIN_CLASS || gremlin_is_string(given)) {
        name = gremlin_bytes(given);
        configuration = GREMLIN_NOTHING;
    } else {
        return REFUSE(err, "withStrategies() takes strategies, not a %s",
                      gremlin_type_name(given.type));
    }
    for (size_t i = name.len; i > 0; i--)
        if (name.data[i - 1] == '.') {
            name = slice_skip(name, i);
            break;
        }
    if (configuration.type != GREMLIN_MAP)
        configuration = gremlin_map_new(compiler->run->heap);
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        if (slice_equal(name, slice_of_text(strategies[i].name)))
            return strategies[i].apply(compiler, configuration, err);
    if (is_harmless(name))
        return true;
    return error_set(err, ERROR_NOT_SUPPORTED, "%.*s is not offered", SLICE_ARG(name));
}

/* What was said to be without: a strategy that was added before is not carried out. */
static bool is_without(const struct gremlin_instructions *sources, size_t at,
                       struct gremlin_value given)
{
    struct slice name =
        given.type == GREMLIN_STRATEGY ? gremlin_bytes(gremlin_strategy(given)->name) : SLICE("");

    for (size_t i = at + 1; i < sources->count; i++) {
        const struct gremlin_instruction *in = &sources->items[i];

        if (!slice_equal(in->name, SLICE("withoutStrategies")))
            continue;
        for (size_t j = 0; j < in->count; j++) {
            struct slice other =
                in->arguments[j].type == GREMLIN_CLASS || gremlin_is_string(in->arguments[j])
                    ? gremlin_bytes(in->arguments[j])
                : in->arguments[j].type == GREMLIN_STRATEGY
                    ? gremlin_bytes(gremlin_strategy(in->arguments[j])->name)
                    : SLICE("");

            if (name.len && other.len >= name.len &&
                slice_equal(slice_skip(other, other.len - name.len), name))
                return true;
        }
    }
    return false;
}

/* --- Sources --------------------------------------------------------------------------------- */

struct gremlin_side_effect *gremlin_side_effect_get(struct gremlin_run *run, struct slice name)
{
    struct gremlin_side_effect *effect = run->side_effects;

    while (effect && !slice_equal(effect->name, name))
        effect = effect->next;
    if (effect)
        return effect;
    effect = ARENA_NEW(run->arena, struct gremlin_side_effect);
    effect->name = arena_copy(run->arena, name);
    effect->next = run->side_effects;
    run->side_effects = effect;
    return effect;
}

struct gremlin_side_effect *gremlin_side_effect_find(struct gremlin_run *run, struct slice name)
{
    for (struct gremlin_side_effect *effect = run->side_effects; effect; effect = effect->next)
        if (slice_equal(effect->name, name))
            return effect;
    return NULL;
}

static bool operator_of(const struct gremlin_instruction *in, size_t at, struct gremlin_enum *ret,
                        bool *ret_given, struct error *err)
{
    *ret_given = in->count > at;
    if (!*ret_given)
        return true;
    if (!gremlin_argument_is_family(in->arguments[at], GREMLIN_ENUM_OPERATOR))
        return REFUSE(err, "%.*s(): the operator must be one of Operator", SLICE_ARG(in->name));
    *ret = in->arguments[at].word;
    return true;
}

static bool with_side_effect(struct gremlin_compiler *compiler,
                             const struct gremlin_instruction *in, struct error *err)
{
    struct gremlin_side_effect *effect;

    if (in->count < 2 || in->count > 3 || !gremlin_is_string(in->arguments[0]))
        return REFUSE(err, "withSideEffect() takes a key and a value");
    effect = gremlin_side_effect_get(compiler->run, gremlin_bytes(in->arguments[0]));
    effect->value = gremlin_value_ref(in->arguments[1]);
    effect->seeded = true;
    return operator_of(in, 2, &effect->operator, & effect->has_operator, err);
}

static bool with_sack(struct gremlin_compiler *compiler, const struct gremlin_instruction *in,
                      struct error *err)
{
    struct gremlin_run *run = compiler->run;

    if (!in->count || in->count > 2)
        return REFUSE(err, "withSack() takes a value and an operator");
    run->sacks = true;
    run->sack_seed = gremlin_value_ref(in->arguments[0]);
    return operator_of(in, 1, &run->sack_merge, &run->sack_merges, err);
}

static bool source_apply(struct gremlin_compiler *compiler,
                         const struct gremlin_instructions *sources, size_t at, struct error *err)
{
    const struct gremlin_instruction *in = &sources->items[at];
    struct gremlin_run *run = compiler->run;

    if (slice_equal(in->name, SLICE("withSideEffect")))
        return with_side_effect(compiler, in, err);
    if (slice_equal(in->name, SLICE("withSack")))
        return with_sack(compiler, in, err);
    if (slice_equal(in->name, SLICE("withBulk"))) {
        run->one_bulk =
            in->count == 1 && in->arguments[0].type == GREMLIN_BOOLEAN && !in->arguments[0].boolean;
        run->bulks = run->bulks && !run->one_bulk;
        return true;
    }
    if (slice_equal(in->name, SLICE("withPath"))) {
        run->trail_mode = TRAIL_FULL;
        return true;
    }
    if (slice_equal(in->name, SLICE("with")) || slice_equal(in->name, SLICE("withoutStrategies")))
        return true; /* options of the request, which whoever runs it has read; see is_without */
    if (slice_equal(in->name, SLICE("withStrategies"))) {
        for (size_t i = 0; i < in->count; i++)
            if (!is_without(sources, at, in->arguments[i]) &&
                !strategy_apply(compiler, in->arguments[i], err))
                return false;
        return true;
    }
    if (slice_equal(in->name, SLICE("withComputer")))
        return error_set(err, ERROR_NOT_SUPPORTED, "withComputer() is not offered");
    return REFUSE(err, "Gremlin Query Compilation Error: Unable to find any method '%.*s'",
                  SLICE_ARG(in->name));
}

bool gremlin_compile_sources(struct gremlin_compiler *compiler,
                             const struct gremlin_traversal *traversal, struct error *err)
{
    for (size_t i = 0; i < traversal->sources.count; i++)
        if (!source_apply(compiler, &traversal->sources, i, err))
            return false;
    return true;
}
