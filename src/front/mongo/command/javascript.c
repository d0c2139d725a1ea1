#include "front/mongo/command/javascript.h"

#include "document/extended.h"
#include "query/value/value.h"
#include "script/script.h"

#include <openssl/sha.h>

enum { BUSY_WAIT_MS = 200, FUNCTIONS_MAX = 256 };

/* Of one call. */
struct mongo_javascript {
    struct script_place *place;
    struct script_functions *functions;
    size_t count;
    struct slice sources[FUNCTIONS_MAX]; /* by the number of the function */
};

bool mongo_javascript_check(const struct mongo_call *call, const char *script, struct error *err)
{
    if (!script)
        return true;
    if (!call->options->javascript)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "%s is not offered: JavaScript is off (setting mongo.javascript)",
                               script);
    if (!call->services->scripts)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "%s is not offered: this server runs no scripts", script);
    return true;
}

/* --- Whose it is ----------------------------------------------------------------------------- */

/* Databases of other accounts may have the same name. */
static struct script_party party_of(const struct mongo_call *call)
{
    return (struct script_party){.account = call->account.id,
                                 .database = arena_printf(call->arena, "mongo %.*s %.*s",
                                                          SLICE_ARG(call->account.id),
                                                          SLICE_ARG(call->message.database))};
}

/* The text and the principal: what one user's function keeps in its variables no other one meets.
 */
static struct slice key_of(const struct mongo_call *call, struct slice source)
{
    const struct mongo_session *session = call->session;
    uint8_t *digest = ARENA_ARRAY(call->arena, uint8_t, SHA256_DIGEST_LENGTH);
    struct slice who = arena_printf(call->arena, " %d%d %s %s", session->by_key,
                                    session->by_key && session->key.readonly,
                                    session->user_database, session->user);

    SHA256(source.data, source.len, digest);
    return arena_join(call->arena, (struct slice[]){slice_of(digest, SHA256_DIGEST_LENGTH), who},
                      2);
}

static bool busy(struct mongo_call *call, struct error *err)
{
    call->wait_ms = MAX(call->wait_ms, (int64_t)BUSY_WAIT_MS);
    return error_set(err, ERROR_SCRIPT_BUSY, "as many scripts run as may at one time");
}

static bool javascript_enter(struct mongo_call *call, struct error *err)
{
    struct script_party *who;
    struct mongo_javascript *javascript;

    if (call->javascript)
        return true;
    who = ARENA_NEW(call->arena, struct script_party);
    *who = party_of(call);
    javascript = ARENA_NEW(call->arena, struct mongo_javascript);
    if (!script_place_take(call->services->scripts, who, &javascript->place, err))
        return busy(call, err);
    javascript->functions = script_functions_new(call->services->scripts, who, NULL, 0);
    call->javascript = javascript;
    return true;
}

void mongo_javascript_done(struct mongo_call *call)
{
    struct mongo_javascript *javascript = call->javascript;

    if (!javascript)
        return;
    call->javascript = NULL;
    script_functions_free(javascript->functions);
    script_place_give(call->services->scripts, javascript->place);
}

/* The number of a function, by its whole text. */
static bool function_find(struct mongo_call *call, struct slice source, size_t *ret_number,
                          struct error *err)
{
    struct mongo_javascript *javascript;
    struct script_function function;

    if (!javascript_enter(call, err))
        return false;
    javascript = call->javascript;
    for (size_t i = 0; i < javascript->count; i++) {
        if (slice_equal(javascript->sources[i], source)) {
            *ret_number = i;
            return true;
        }
    }
    if (javascript->count == FUNCTIONS_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "a command calls more than %d functions",
                               FUNCTIONS_MAX);
    /* the text of a cursor's plan may go before the call does */
    function = (struct script_function){.key = key_of(call, source),
                                        .name = SLICE("JavaScript"),
                                        .source = arena_copy(call->arena, source)};
    javascript->sources[javascript->count++] = function.source;
    *ret_number = script_functions_add(javascript->functions, &function);
    return true;
}

/* --- Calling --------------------------------------------------------------------------------- */

/* Types that JSON lacks come back as extended JSON. */
static bool results_read(struct document_value *values, size_t count, struct arena *arena,
                         struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!document_extended_read(&values[i], arena, &values[i], err))
            return error_prefix(err, "what a function returned");
    return true;
}

static bool rows_call(struct mongo_call *call, size_t number,
                      const struct document_value *arguments, size_t width, size_t rows,
                      struct query_context *context, struct document_value *ret_values,
                      struct error *err)
{
    if (script_functions_call(call->javascript->functions, number, arguments, width, rows,
                              context->limits.deadline_ms, context->arena, ret_values, err))
        return results_read(ret_values, rows, context->arena, err);
    return err->code == ERROR_BUSY ? busy(call, err) : false;
}

static bool call_one(void *self, struct slice name, const struct document_value *arguments,
                     size_t count, struct query_context *context, struct document_value *ret_value,
                     struct error *err)
{
    struct mongo_call *call = self;
    size_t number = 0;

    return function_find(call, name, &number, err) &&
           rows_call(call, number, arguments, count, 1, context, ret_value, err);
}

/* How many of the rows go into one call. */
static size_t rows_fitting(const struct document_value *arguments, size_t width, size_t rows)
{
    uint64_t bytes = 0;

    for (size_t row = 0; row < MIN(rows, (size_t)SCRIPT_ROWS_MAX); row++) {
        bytes += query_udf_bytes(arguments + row * width, width) + 16 * width;
        if (bytes > SCRIPT_ROWS_BYTES)
            return MAX(row, (size_t)1);
    }
    return MIN(rows, (size_t)SCRIPT_ROWS_MAX);
}

static bool call_many(void *self, struct slice name, const struct document_value *arguments,
                      size_t width, size_t rows, struct query_context *context,
                      struct document_value *ret_values, bool *ret_made, struct error *err)
{
    struct mongo_call *call = self;
    size_t number = 0, fitting;

    *ret_made = true;
    if (!function_find(call, name, &number, err))
        return false;
    for (size_t row = 0; row < rows && *ret_made; row += fitting) {
        fitting = rows_fitting(arguments + row * width, width, rows - row);
        if (!rows_call(call, number, arguments + row * width, width, fitting, context,
                       ret_values + row, err)) {
            /* A row that nobody wants, or too much for one answer: each when it is its turn. */
            if (err->code != ERROR_SCRIPT_FAILED && err->code != ERROR_SCRIPT_LIMIT)
                return false;
            *ret_made = false;
        }
    }
    return true;
}

struct query_udf_host mongo_javascript_host(struct mongo_call *call)
{
    return (struct query_udf_host){.call = call_one, .self = call, .call_many = call_many};
}
