#include "front/rest/script/functions.h"

#include "catalogue/child.h"
#include "front/rest/script/turn.h"
#include "query/value/value.h"

void rest_functions_init(struct rest_functions *functions, struct rest_call *call,
                         const struct rest_items *items)
{
    *functions = (struct rest_functions){.call = call, .items = items};
}

void rest_functions_done(struct rest_functions *functions)
{
    script_functions_free(functions->functions);
    functions->functions = NULL;
    while (functions->count)
        catalogue_child_unref(functions->wholes[--functions->count]);
    if (functions->place)
        rest_scripts_leave(functions->call, TAKE(functions->place));
}

/* --- Which are called ------------------------------------------------------------------------ */

static void used_grow(struct rest_functions *functions)
{
    struct arena *arena = functions->call->arena;
    size_t room = functions->room ? functions->room * 2 : 4;
    struct script_function *used = ARENA_ARRAY(arena, struct script_function, room);
    struct catalogue_child **wholes = ARENA_ARRAY(arena, struct catalogue_child *, room);

    if (functions->count) {
        memcpy(used, functions->used, functions->count * sizeof *used);
        memcpy(wholes, functions->wholes, functions->count * sizeof *wholes);
    }
    functions->used = used;
    functions->wholes = wholes;
    functions->room = room;
}

static void used_add(struct rest_functions *functions, struct catalogue_child *child)
{
    struct rest_call *call = functions->call;
    struct slice name = catalogue_child_info(child)->id;
    struct catalogue_child *whole;

    for (size_t i = 0; i < functions->count; i++)
        if (slice_equal(functions->used[i].name, name))
            return;
    if (!catalogue_child_whole(call->services->catalogue, child, &whole, &functions->failure))
        return;
    if (functions->count == functions->room)
        used_grow(functions);
    functions->wholes[functions->count] = whole;
    functions->used[functions->count++] =
        (struct script_function){.key = rest_script_key(call, whole, call->arena),
                                 .name = catalogue_child_info(whole)->id,
                                 .source = rest_script_source(whole)};
}

static bool known(void *self, struct slice name)
{
    struct rest_functions *functions = self;
    const struct catalogue_children *all =
        container_children(functions->items->container, CHILD_FUNCTION);
    struct catalogue_child *child = catalogue_children_find(all, name);

    /* A _rid finds it too, but is no name. */
    if (!child || !slice_equal(catalogue_child_info(child)->id, name))
        return false;
    used_add(functions, child);
    return true;
}

void rest_functions_offer(struct rest_functions *functions, struct sql_compile_options *options)
{
    if (!functions->call->services->scripts)
        return;
    options->udf_known = known;
    options->udf_self = functions;
}

/* --- Calling --------------------------------------------------------------------------------- */

static bool function_find(const struct rest_functions *functions, struct slice name, size_t width,
                          size_t *ret_number, struct error *err)
{
    if (width > SCRIPT_ARGUMENTS_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "user-defined function \"%.*s\" is called with more than %d arguments",
                         (int)MIN(name.len, (size_t)64), (const char *)name.data,
                         SCRIPT_ARGUMENTS_MAX);
    if (!script_functions_find(functions->functions, name, ret_number))
        return error_set(err, ERROR_BAD_REQUEST, "there is no user-defined function \"%.*s\"",
                         (int)MIN(name.len, (size_t)64), (const char *)name.data);
    return true;
}

static bool call_one(void *self, struct slice name, const struct document_value *arguments,
                     size_t count, struct query_context *context, struct document_value *ret_value,
                     struct error *err)
{
    struct rest_functions *functions = self;
    size_t number;

    if (!function_find(functions, name, count, &number, err))
        return false;
    if (script_functions_call(functions->functions, number, arguments, count, 1,
                              context->limits.deadline_ms, context->arena, ret_value, err))
        return true;
    return err->code == ERROR_BUSY ? rest_script_busy(functions->call, err) : false;
}

/* How many of the rows go into one call. */
static size_t rows_fitting(const struct document_value *arguments, size_t width, size_t rows)
{
    uint64_t bytes = 0;

    for (size_t row = 0; row < MIN(rows, (size_t)SCRIPT_ROWS_MAX); row++) {
        for (size_t i = 0; i < width; i++)
            bytes += query_value_bytes(&arguments[row * width + i]) + 16;
        if (bytes > SCRIPT_ROWS_BYTES)
            return MAX(row, (size_t)1);
    }
    return MIN(rows, (size_t)SCRIPT_ROWS_MAX);
}

static bool call_many(void *self, struct slice name, const struct document_value *arguments,
                      size_t width, size_t rows, struct query_context *context,
                      struct document_value *ret_values, bool *ret_made, struct error *err)
{
    struct rest_functions *functions = self;
    size_t number, fitting;

    *ret_made = true;
    if (!function_find(functions, name, width, &number, err))
        return false;
    for (size_t row = 0; row < rows && *ret_made; row += fitting) {
        fitting = rows_fitting(arguments + row * width, width, rows - row);
        if (!script_functions_call(functions->functions, number, arguments + row * width, width,
                                   fitting, context->limits.deadline_ms, context->arena,
                                   ret_values + row, err)) {
            if (err->code == ERROR_BUSY)
                return rest_script_busy(functions->call, err);
            /* Perhaps a row that nobody wants: each is called when it is its turn. */
            if (err->code != ERROR_SCRIPT_FAILED)
                return false;
            *ret_made = false;
        }
    }
    return true;
}

bool rest_functions_host(struct rest_functions *functions, struct query_udf_host *ret_host,
                         struct error *err)
{
    struct rest_call *call = functions->call;
    struct script_party who;

    *ret_host = (struct query_udf_host){0};
    if (functions->failure.code) {
        *err = functions->failure;
        return false;
    }
    if (!functions->count)
        return true;
    if (!functions->within && !rest_scripts_enter(call, functions->items, &functions->place, err))
        return false;
    who = rest_script_party(call, functions->items);
    who.nested = functions->within;
    functions->functions =
        script_functions_new(call->services->scripts, &who, functions->used, functions->count);
    *ret_host =
        (struct query_udf_host){.call = call_one, .self = functions, .call_many = call_many};
    return true;
}
