/* call(): services of the server, by name. There is one, "reference": the items of a reference
 * container (docs/reference.md) that have a key, as maps.
 *
 *     g.V().hasLabel('order').call('reference', [container: 'countries'])
 *         .with('key', __.values('country')).values('name')
 *
 * Parameters stand in the map, in with(), or in the map that a child gives; with() goes over the
 * child, and that over the map. A key or id that is null, or of which its child gives nothing, has
 * no items. call() and call('--list') give the names of the services. */
#include "front/gremlin/run/compile_private.h"

enum parameter { PARAMETER_CONTAINER, PARAMETER_KEY, PARAMETER_ID, PARAMETERS };

static const char *const parameter_names[PARAMETERS] = {"container", "key", "id"};

struct call {
    struct gremlin_step step;
    bool lists;                            /* the names of services */
    struct gremlin_value map;              /* of constant parameters; null: none */
    struct gremlin_part *child;            /* gives a map of others; NULL: none */
    struct gremlin_value with[PARAMETERS]; /* borrowed from the traversal */
    struct gremlin_part *parts[PARAMETERS];
    bool given[PARAMETERS]; /* by with() */
};

/* --- Running --------------------------------------------------------------------------------- */

static bool names_give(struct gremlin_run *run, struct gremlin_step *step,
                       const struct gremlin_walker *traverser, struct gremlin_walkers *out)
{
    gremlin_walkers_push(
        run, out,
        gremlin_walker_split(run, traverser, gremlin_string(run->heap, SLICE("reference")), step));
    return true;
}

static bool map_check(struct gremlin_value map, struct error *err)
{
    for (size_t i = 0; i < gremlin_table(map)->count; i++) {
        struct gremlin_value key = gremlin_table(map)->rows[i].key;
        bool known = false;

        for (size_t p = 0; p < PARAMETERS; p++)
            known |= gremlin_is_text(key, slice_of_text(parameter_names[p]));
        if (!known)
            return FAIL(err, "call('reference') takes container, key and id, and nothing else");
    }
    return true;
}

/* One reference; *ret_found false: there is none. */
static bool parameter_read(struct gremlin_run *run, const struct call *self, enum parameter which,
                           const struct gremlin_walker *traverser, struct gremlin_value map,
                           struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    struct slice name = slice_of_text(parameter_names[which]);
    const struct gremlin_value *value = NULL;

    *ret_found = true;
    if (self->parts[which])
        return gremlin_part_value(run, self->parts[which], traverser, ret_value, ret_found, err);
    if (self->given[which])
        value = &self->with[which];
    if (!value && map.type == GREMLIN_MAP)
        value = gremlin_map_get_text(map, name);
    if (!value && self->map.type == GREMLIN_MAP)
        value = gremlin_map_get_text(self->map, name);
    *ret_found = value != NULL;
    if (value)
        *ret_value = gremlin_value_ref(*value);
    return true;
}

struct parameters {
    struct gremlin_value values[PARAMETERS]; /* references */
    bool given[PARAMETERS];
    bool found[PARAMETERS];
};

static bool parameters_read(struct gremlin_run *run, const struct call *self,
                            const struct gremlin_walker *traverser, struct parameters *parameters,
                            struct error *err)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value map = GREMLIN_NOTHING;
    bool found = true;

    if (self->child) {
        if (!gremlin_part_value(run, self->child, traverser, &map, &found, err))
            return false;
        if (!found || map.type != GREMLIN_MAP)
            return FAIL(err, "the traversal of call('reference') must give a map of parameters");
        if (!map_check(map, err))
            return false;
    }
    for (enum parameter p = 0; p < PARAMETERS; p++) {
        if (!parameter_read(run, self, p, traverser, map, &parameters->values[p],
                            &parameters->found[p], err))
            return false;
        parameters->given[p] = parameters->found[p] || self->parts[p];
    }
    return true;
}

static bool items_give(struct gremlin_run *run, struct gremlin_step *step,
                       const struct gremlin_walker *traverser, const struct parameters *parameters,
                       struct gremlin_walkers *out, struct error *err)
{
    const struct gremlin_value *values = parameters->values;
    CLEANUP(gremlin_value_unref) struct gremlin_value items = GREMLIN_NOTHING;
    struct gremlin_lookup lookup;

    if (!parameters->found[PARAMETER_CONTAINER] || !gremlin_is_string(values[PARAMETER_CONTAINER]))
        return FAIL(err, "call('reference') needs the name of a reference container: "
                         "[container: 'countries', key: 'NO']");
    if (!parameters->given[PARAMETER_KEY] && !parameters->given[PARAMETER_ID])
        return FAIL(err, "call('reference') needs the key of the items it is to find");
    for (enum parameter p = PARAMETER_KEY; p < PARAMETERS; p++)
        if (parameters->given[p] && (!parameters->found[p] || gremlin_is_null(values[p])))
            return true;
    lookup = (struct gremlin_lookup){.container = gremlin_bytes(values[PARAMETER_CONTAINER]),
                                     .key = values[PARAMETER_KEY],
                                     .id = values[PARAMETER_ID]};
    if (!query_work(&run->context, 1, err) ||
        !gremlin_graph_look_up(run->graph, &lookup, &items, err))
        return false;
    for (size_t i = 0; i < gremlin_list(items)->count; i++)
        gremlin_walkers_push(run, out,
                             gremlin_walker_split(run, traverser,
                                                  gremlin_value_ref(gremlin_list(items)->items[i]),
                                                  step));
    return !gremlin_heap_failed(run->heap) || gremlin_heap_error(run->heap, err);
}

static bool call_spread(struct gremlin_run *run, struct gremlin_step *step,
                        const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                        struct error *err)
{
    const struct call *self = (struct call *)step;
    struct parameters parameters = {0};
    bool good;

    if (self->lists)
        return names_give(run, step, traverser, out);
    good = parameters_read(run, self, traverser, &parameters, err) &&
           items_give(run, step, traverser, &parameters, out, err);
    for (size_t p = 0; p < PARAMETERS; p++)
        if (parameters.found[p])
            gremlin_value_unref(parameters.values[p]);
    return good;
}

static const struct gremlin_step_kind step_call = {.name = "call", .spread = call_spread};

/* --- Compiling ------------------------------------------------------------------------------- */

static bool with_compile(struct gremlin_compiler *compiler, struct call *call,
                         const struct gremlin_instruction *with, struct error *err)
{
    enum parameter which = 0;

    while (which < PARAMETERS &&
           (with->count != 2 ||
            !gremlin_is_text(with->arguments[0], slice_of_text(parameter_names[which]))))
        which++;
    if (which == PARAMETERS)
        return REFUSE(err, "call('reference') takes with('container'), with('key') and with('id'), "
                           "with a value or a traversal");
    call->given[which] = true;
    if (!gremlin_argument_is_traversal(with->arguments[1])) {
        call->with[which] = with->arguments[1];
        return true;
    }
    return gremlin_step_child(compiler, &call->step, with->arguments[1],
                              (struct gremlin_part_options){0}, &call->parts[which], err);
}

bool compile_call(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct call *call;
    struct slice service = SLICE("--list");

    if (raw->count && !gremlin_argument_text(raw, 0, &service, err))
        return false;
    call = STEP_ADD(compiler, raw, &step_call, struct call);
    call->step.local = true;
    call->lists = slice_equal(service, SLICE("--list"));
    if (call->lists && (raw->count > 1 || raw->with_count))
        return REFUSE(err, "call('--list') takes no parameters");
    if (!call->lists && !slice_equal(service, SLICE("reference")))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "call(): there is no service \"%.*s\", only \"reference\"",
                         (int)MIN(service.len, (size_t)64), (const char *)service.data);
    for (size_t i = 1; i < raw->count; i++) {
        struct gremlin_value argument = raw->arguments[i];

        if (argument.type == GREMLIN_MAP && i == 1) {
            call->map = argument;
            if (!map_check(argument, err))
                return false;
        } else if (gremlin_argument_is_traversal(argument) && i + 1 == raw->count) {
            if (!gremlin_step_child(compiler, &call->step, argument,
                                    (struct gremlin_part_options){0}, &call->child, err))
                return false;
        } else {
            return gremlin_argument_wrong(raw, i, "a map or, at the end, a traversal", err);
        }
    }
    for (size_t i = 0; i < raw->with_count; i++)
        if (!with_compile(compiler, call, raw->with[i], err))
            return false;
    return true;
}
