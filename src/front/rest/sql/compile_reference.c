/* REFERENCE: joining items of another container by their key.
 *
 * The key is what the WHERE of the same query says with AND: an equality for each path of the
 * partition key of that container (of one without a partition key, for the id), of which the other
 * side knows nothing but what stands before the source in FROM. An equality for the id besides
 * leads to the single item. The equalities stay in WHERE, so what is found by them may be too much
 * but never too little. */
#include "front/rest/sql/compile_private.h"

#include "definition/definition.h"

/* Is it the property of the source at these segments? */
static bool is_at(const struct sql_expr *expr, const struct sql_source *source,
                  const struct document_segment *segments, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        if (expr->kind != SQL_EXPR_MEMBER || segments[i - 1].kind != DOCUMENT_SEGMENT_PROPERTY ||
            !slice_equal(expr->member.name, segments[i - 1].name))
            return false;
        expr = expr->member.object;
    }
    return expr->kind == SQL_EXPR_NAME && expr->name.source == source;
}

/* Is it known before the rows of the source are? */
static bool is_known_before(struct sql_expr *expr, void *context)
{
    const struct sql_source *source = context;

    switch (expr->kind) {
    case SQL_EXPR_NAME:
        return expr->name.source && expr->name.source->slot < source->slot;
    case SQL_EXPR_SUBQUERY:
    case SQL_EXPR_UDF:
        return false;
    default:
        return sql_expr_each(expr, is_known_before, context);
    }
}

/* What the property is to be equal to by this part of WHERE; NULL: it says nothing of it. */
static const struct sql_expr *equal_of(const struct sql_expr *part, const struct sql_source *source,
                                       const struct document_segment *segments, size_t count)
{
    struct sql_expr *sides[2];

    if (part->kind != SQL_EXPR_BINARY || part->binary.op != SQL_BINARY_EQUAL)
        return NULL;
    sides[0] = part->binary.left;
    sides[1] = part->binary.right;
    for (size_t i = 0; i < 2; i++)
        if (is_at(sides[i], source, segments, count) &&
            is_known_before(sides[1 - i], (void *)source))
            return sides[1 - i];
    return NULL;
}

static const struct sql_expr *equal_find(const struct sql_expr *where,
                                         const struct sql_source *source,
                                         const struct document_segment *segments, size_t count)
{
    const struct sql_expr *found = NULL;

    if (!where)
        return NULL;
    if (where->kind != SQL_EXPR_AND)
        return equal_of(where, source, segments, count);
    for (uint32_t i = 0; i < where->items.count && !found; i++)
        found = equal_of(where->items.items[i], source, segments, count);
    return found;
}

/* The key of one source in the making. */
struct keyed {
    struct sql_compiler *compiler;
    struct sql_level *level;
    const struct sql_source *source;
    struct query_reference *reference;
    struct slice *paths;
    const struct query_expression *values[QUERY_REFERENCE_KEYS_MAX];
};

static bool key_add(struct keyed *keyed, const struct document_segment *segments, size_t count,
                    struct slice text)
{
    const struct sql_expr *value =
        equal_find(keyed->level->query->where, keyed->source, segments, count);

    if (!value)
        return false;
    keyed->paths[keyed->reference->path_count] = arena_copy(keyed->compiler->build.arena, text);
    keyed->values[keyed->reference->path_count++] =
        sql_compile_expr(keyed->compiler, keyed->level, value);
    return true;
}

static bool is_path_of_key(const struct partition_definition *key, struct slice identity)
{
    for (size_t i = 0; i < key->path_count && !key->system_key; i++)
        if (key->paths[i].count == 1 && slice_equal(key->paths[i].segments[0].name, identity))
            return true;
    return false;
}

/* False: a part of the key is not said; *ret_missing is its path. */
static bool key_find(struct keyed *keyed, const struct definition_fields *fields,
                     struct slice *ret_missing)
{
    const struct partition_definition *key = &fields->key;
    struct slice identity = definition_names_of(fields)->identity;
    const struct document_segment own = {.kind = DOCUMENT_SEGMENT_PROPERTY, .name = identity};
    struct slice text = arena_printf(keyed->compiler->build.arena, "/%.*s", SLICE_ARG(identity));

    for (size_t i = 0; i < key->path_count && !key->system_key; i++) {
        *ret_missing = key->texts[i];
        if (!key_add(keyed, key->paths[i].segments, key->paths[i].count, key->texts[i]))
            return false;
    }
    *ret_missing = text;
    if (!is_path_of_key(key, identity))
        keyed->reference->identified = key_add(keyed, &own, 1, text);
    return !key->system_key || keyed->reference->identified;
}

static struct query_reference *reference_new(struct sql_compiler *compiler,
                                             const struct sql_source *source)
{
    struct arena *arena = compiler->build.arena;
    struct query_reference *reference;

    if (!compiler->references)
        compiler->references = ARENA_ARRAY(arena, struct query_reference, QUERY_REFERENCES_MAX);
    if (compiler->reference_count == QUERY_REFERENCES_MAX)
        return NULL;
    reference = &compiler->references[compiler->reference_count++];
    *reference = (struct query_reference){.container = arena_copy(arena, source->reference)};
    if (source->reference_database.data)
        reference->database = arena_copy(arena, source->reference_database);
    return reference;
}

const struct query_expression *sql_compile_reference(struct sql_compiler *compiler,
                                                     struct sql_level *level,
                                                     const struct sql_source *source)
{
    const struct sql_compile_options *options = compiler->options;
    struct query_build *build = &compiler->build;
    struct keyed keyed = {compiler, level, source, NULL, NULL, {NULL}};
    const struct definition_fields *fields;
    struct slice missing;
    struct error err;

    if (!options->reference)
        return sql_compile_refuse(compiler, source->span, "REFERENCE is not supported here.");
    if (!options->reference(options->reference_self, source->reference_database, source->reference,
                            &fields, &err))
        return query_build_fail(build, err.code, "%s", err.message);
    keyed.reference = reference_new(compiler, source);
    if (!keyed.reference)
        return sql_compile_refuse(compiler, source->span,
                                  "More than %d REFERENCE in a query are not supported.",
                                  QUERY_REFERENCES_MAX);
    keyed.paths = ARENA_ARRAY(build->arena, struct slice, QUERY_REFERENCE_KEYS_MAX);
    keyed.reference->paths = keyed.paths;
    if (fields && !key_find(&keyed, fields, &missing))
        return sql_compile_refuse(compiler, source->span,
                                  "REFERENCE(\"%.*s\") needs an equality of %.*s%.*s in WHERE, "
                                  "joined by AND, with a value "
                                  "that is known before it.",
                                  SLICE_ARG(sql_excerpt(source->reference)),
                                  SLICE_ARG(sql_excerpt(source->alias)),
                                  SLICE_ARG(sql_excerpt(missing)));
    return query_reference_new(build, compiler->reference_count - 1, keyed.values,
                               keyed.reference->path_count);
}
