#include "base/memory.h"
#include "script/pool.h"

struct script_functions {
    struct script_pool *pool;
    struct script_party who; /* borrowed */
    struct process *process; /* NULL: none taken */
    size_t count, room;
    struct script_function *functions; /* owned */
};

struct script_functions *script_functions_new(struct script_pool *pool,
                                              const struct script_party *who,
                                              const struct script_function *functions, size_t count)
{
    struct script_functions *made = MEMORY_NEW(struct script_functions);

    made->pool = pool;
    made->who = *who;
    for (size_t i = 0; i < count; i++)
        script_functions_add(made, &functions[i]);
    return made;
}

size_t script_functions_add(struct script_functions *functions,
                            const struct script_function *function)
{
    if (functions->count == functions->room) {
        functions->room = functions->room ? functions->room * 2 : 4;
        functions->functions =
            memory_realloc(functions->functions,
                           memory_array_size(functions->room, sizeof functions->functions[0]));
    }
    functions->functions[functions->count] = *function;
    return functions->count++;
}

void script_functions_free(struct script_functions *functions)
{
    if (!functions)
        return;
    script_functions_rest(functions);
    memory_free(functions->functions);
    memory_free(functions);
}

void script_functions_rest(struct script_functions *functions)
{
    if (functions->process)
        pool_give(functions->pool, TAKE(functions->process), false);
}

bool script_functions_find(const struct script_functions *functions, struct slice name,
                           size_t *ret_number)
{
    for (size_t i = 0; i < functions->count; i++) {
        if (slice_equal(functions->functions[i].name, name)) {
            *ret_number = i;
            return true;
        }
    }
    return false;
}

static bool done_judge(const struct script_function *function, const struct message_done *done,
                       const struct script_options *options, struct error *err)
{
    int name_len = (int)MIN(function->name.len, (size_t)60);
    const char *name = (const char *)function->name.data;

    switch (done->outcome) {
    case PROTOCOL_FINE:
        if (done->body.data)
            return true;
        break;
    case PROTOCOL_THREW:
        return error_set(err, ERROR_SCRIPT_FAILED, "user-defined function \"%.*s\" failed: %.*s",
                         name_len, name, (int)MIN(done->message.len, (size_t)140),
                         (const char *)done->message.data);
    case PROTOCOL_TIMED_OUT:
        return error_set(err, ERROR_SCRIPT_TIMED_OUT,
                         "user-defined function \"%.*s\" ran longer than it may", name_len, name);
    case PROTOCOL_OUTPUT_LIMIT:
        return error_set(err, ERROR_SCRIPT_LIMIT,
                         "user-defined function \"%.*s\" returned more than %zu bytes", name_len,
                         name, options->output_bytes);
    case PROTOCOL_MEMORY_LIMIT:
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "user-defined function \"%.*s\" used more memory than %zu bytes", name_len,
                         name, options->memory_bytes);
    case PROTOCOL_OUTCOME_COUNT:
        break;
    }
    return error_set(err, ERROR_SCRIPT_CRASHED, "a script's process sent what is not a message");
}

/* Sends the rows and waits for theirs. *ret_reusable: the worker waits for more. */
static bool call(struct script_functions *functions, const struct script_function *function,
                 const struct document_value *values, size_t width, size_t rows,
                 int64_t deadline_ms, struct arena *arena, struct document_value *ret_values,
                 bool *ret_reusable, struct error *err)
{
    const struct script_options *options = pool_options(functions->pool);
    struct process *process = functions->process;
    struct message_run_limits limits;
    struct message_done done;
    struct slice frame;
    int64_t end_ms = pool_limits(functions->pool, deadline_ms, &limits);

    if (!message_put_calls(&process->output, function, values, width, rows, &limits))
        return error_set(err, ERROR_SCRIPT_LIMIT,
                         "the arguments of a user-defined function are over the limit of %d bytes",
                         PROTOCOL_TO_WORKER_MAX);
    if (!process_send(process, end_ms, err) || !process_receive(process, end_ms, &frame, err))
        return false;
    if (!message_get_done(frame, &done))
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "a script's process sent what is not a message");
    *ret_reusable =
        !done.retire && done.outcome != PROTOCOL_TIMED_OUT && done.outcome != PROTOCOL_MEMORY_LIMIT;
    return done_judge(function, &done, options, err) &&
           message_get_rows(done.body, rows, arena, ret_values, err);
}

bool script_functions_call(struct script_functions *functions, size_t number,
                           const struct document_value *values, size_t width, size_t rows,
                           int64_t deadline_ms, struct arena *arena,
                           struct document_value *ret_values, struct error *err)
{
    bool fine, reusable = false;

    assert(number < functions->count && rows <= SCRIPT_ROWS_MAX);
    if (width > SCRIPT_ARGUMENTS_MAX)
        return error_set(err, ERROR_SCRIPT_LIMIT,
                         "a user-defined function is given %zu arguments; %d is the most", width,
                         SCRIPT_ARGUMENTS_MAX);
    if (!rows)
        return true;
    if (!functions->process &&
        !pool_take(functions->pool, &functions->who, &functions->process, err))
        return false;
    fine = call(functions, &functions->functions[number], values, width, rows, deadline_ms, arena,
                ret_values, &reusable, err);
    if (!reusable)
        pool_give(functions->pool, TAKE(functions->process), true);
    pool_count(functions->pool, fine ? ERROR_NONE : err->code);
    return fine;
}
