/* The text is parsed once, or was before; statements are trees that are resolved when the script is
 * opened, which checks them all before the first runs. One that uses a variable of a statement
 * before is resolved again when its turn comes. */
#include "front/gremlin/language/script.h"

#include "document/utf8.h"
#include "front/gremlin/language/lexer.h"
#include "front/gremlin/language/resolve.h"

struct part {
    struct gremlin_statement statement; /* its references are the script's */
    bool late;                          /* to be resolved when its turn comes */
};

struct gremlin_script {
    struct arena *arena;
    struct gremlin_script_request request;
    const struct gremlin_syntax *syntax;
    struct part *parts;
    size_t resolved; /* parts whose references are held */
    size_t at;       /* the next one */
};

static bool part_resolve(struct gremlin_script *script, size_t at, size_t *operators,
                         const struct gremlin_value *variables, struct error *err);

bool gremlin_script_parse(struct slice text, const struct gremlin_script_limits *limits,
                          struct arena *arena, const struct gremlin_syntax **ret_syntax,
                          struct error *err)
{
    struct gremlin_syntax *syntax = ARENA_NEW(arena, struct gremlin_syntax);
    size_t valid;

    if (text.len > limits->bytes_max)
        return error_set(err, ERROR_GREMLIN_SCRIPT_LIMIT,
                         "the script has %zu bytes, more than the limit of %zu", text.len,
                         limits->bytes_max);
    valid = utf8_valid_length(text);
    if (valid != text.len)
        return error_set(err, ERROR_GREMLIN_SCRIPT, "the script is not UTF-8 at byte %zu", valid);
    if (!gremlin_syntax_parse(arena_copy(arena, text), limits->depth_max, arena, syntax, err))
        return false;
    *ret_syntax = syntax;
    return true;
}

bool gremlin_script_open(const struct gremlin_script_request *request,
                         struct gremlin_script **ret_script, struct error *err)
{
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    struct arena *arena = arena_new();
    size_t operators = 0;

    script = ARENA_NEW(arena, struct gremlin_script);
    script->arena = arena;
    script->request = *request;
    script->syntax = request->syntax;
    if (!script->syntax &&
        !gremlin_script_parse(request->text, &request->limits, arena, &script->syntax, err))
        return false;
    script->parts =
        arena_alloc_zero(arena, memory_array_size(script->syntax->count, sizeof *script->parts));
    for (size_t i = 0; i < script->syntax->count; i++) {
        if (!part_resolve(script, i, &operators, NULL, err))
            return false;
        script->resolved++;
    }
    if (gremlin_heap_failed(request->heap))
        return gremlin_heap_error(request->heap, err);
    *ret_script = TAKE(script);
    return true;
}

/* variables NULL: the script is being opened, and statements before have given nothing yet. */
static bool part_resolve(struct gremlin_script *script, size_t at, size_t *operators,
                         const struct gremlin_value *variables, struct error *err)
{
    struct part *part = &script->parts[at];
    struct gremlin_resolver resolver = {.request = script->request,
                                        .variables =
                                            variables ? variables : script->request.variables,
                                        .before = script->syntax->statements,
                                        .before_count = variables ? 0 : at,
                                        .operators = *operators};

    if (!gremlin_resolve_statement(&resolver, &script->syntax->statements[at], &part->statement,
                                   err))
        return false;
    *operators = resolver.operators;
    part->late = resolver.late;
    return true;
}

static void statement_release(struct gremlin_statement *statement)
{
    if (statement->traversal)
        gremlin_object_unref((void *)statement->traversal);
    gremlin_value_unref(statement->value);
    *statement = (struct gremlin_statement){0};
}

void gremlin_script_free(struct gremlin_script *script)
{
    if (!script)
        return;
    for (size_t i = 0; i < script->resolved; i++)
        statement_release(&script->parts[i].statement);
    arena_free(script->arena);
}

bool gremlin_script_next(struct gremlin_script *script, const struct gremlin_value *variables,
                         struct gremlin_statement *ret_statement, struct error *err)
{
    size_t at = script->at, operators = 0;

    if (at == script->syntax->count) {
        *ret_statement = (struct gremlin_statement){0};
        return true;
    }
    if (script->parts[at].late) {
        struct gremlin_value none = GREMLIN_NOTHING;

        statement_release(&script->parts[at].statement);
        if (!part_resolve(script, at, &operators, variables ? variables : &none, err))
            return false;
    }
    script->at++;
    *ret_statement = script->parts[at].statement;
    return true;
}

size_t gremlin_script_count(const struct gremlin_script *script)
{
    return script->syntax->count;
}
