/* Reading a patch from its request. What can be refused without the item is refused here. */
#include "document/bson.h"
#include "item/patch.h"

struct parser {
    const struct document_names *names;
    const struct document_path *keys;
    size_t key_count;
    struct arena *arena;
    struct error *err;
};

static bool parse_operations(const struct parser *p, struct slice list, struct patch *patch);

static bool refuse(const struct parser *p, const char *what)
{
    return error_set(p->err, ERROR_BAD_REQUEST, "%s", what);
}

bool patch_parse(const struct document_value *body, const struct document_names *names,
                 const struct document_path *keys, size_t key_count, struct arena *arena,
                 const struct patch **ret_patch, struct error *err)
{
    struct parser p = {names, keys, key_count, arena, err};
    struct patch *patch = ARENA_NEW(arena, struct patch);
    struct document_value operations = *body, condition;

    if (body->type == DOCUMENT_OBJECT) {
        if (!document_find(body->document, SLICE("operations"), &operations))
            return refuse(&p, "patch has no \"operations\"");
        if (document_find(body->document, SLICE("condition"), &condition) &&
            condition.type != DOCUMENT_NULL) {
            if (condition.type != DOCUMENT_STRING)
                return refuse(&p, "condition of the patch is not a string");
            patch->condition = condition.text;
        }
    }
    if (operations.type != DOCUMENT_ARRAY)
        return refuse(&p, "operations of a patch are not an array");
    if (!parse_operations(&p, operations.document, patch))
        return false;
    *ret_patch = patch;
    return true;
}

/* --- Pointers -------------------------------------------------------------------------------- */

/* One step without its escapes: ~1 is a slash, ~0 a tilde. */
static bool step_unescape(const struct parser *p, struct slice raw, struct slice *ret_step)
{
    uint8_t *text = arena_alloc(p->arena, raw.len);
    size_t len = 0;

    for (size_t i = 0; i < raw.len; i++) {
        uint8_t c = raw.data[i];

        if (c == 0)
            return refuse(p, "path holds a NUL");
        if (c == '~') {
            if (i + 1 == raw.len || (raw.data[i + 1] != '0' && raw.data[i + 1] != '1'))
                return refuse(p, "path has a ~ that neither 0 nor 1 follows");
            c = raw.data[++i] == '0' ? '~' : '/';
        }
        text[len++] = c;
    }
    *ret_step = slice_of(text, len);
    return true;
}

static bool parse_pointer(const struct parser *p, struct slice text,
                          struct patch_pointer *ret_pointer)
{
    struct slice steps[PATCH_POINTER_STEPS_MAX], *kept, rest, step;
    size_t count = 0;
    bool more = true;

    if (text.len == 0 || text.data[0] != '/')
        return refuse(p, "path does not begin with a slash");
    for (rest = slice_skip(text, 1); more; count++) {
        step = rest;
        more = slice_split(rest, '/', &step, &rest);
        if (count == PATCH_POINTER_STEPS_MAX)
            return refuse(p, "path has too many steps");
        if (!step_unescape(p, step, &steps[count]))
            return false;
    }
    kept = ARENA_ARRAY(p->arena, struct slice, count);
    memcpy(kept, steps, count * sizeof *steps);
    *ret_pointer = (struct patch_pointer){.text = text, .steps = kept, .count = count};
    return true;
}

/* Does one lead to or through the other? */
static bool touches_key(const struct patch_pointer *pointer, const struct document_path *key)
{
    size_t common = MIN(pointer->count, key->count);

    for (size_t i = 0; i < common; i++) {
        if (!slice_equal(pointer->steps[i], key->segments[i].name))
            return false;
    }
    return true;
}

static bool check_allowed(const struct parser *p, const struct patch_pointer *pointer)
{
    struct slice first = pointer->steps[0];

    if (slice_equal(first, p->names->identity) || slice_equal(first, p->names->shown))
        return error_set(p->err, ERROR_BAD_REQUEST, "%.*s cannot be patched", SLICE_ARG(first));
    if (document_names_system(p->names, first) != DOCUMENT_SYSTEM_COUNT)
        return error_set(p->err, ERROR_BAD_REQUEST, "system property \"%.*s\" cannot be patched",
                         SLICE_ARG(first));
    for (size_t i = 0; i < p->key_count; i++) {
        if (touches_key(pointer, &p->keys[i]))
            return refuse(p, "partition key cannot be patched; move-item gives an item another");
    }
    return true;
}

static bool parse_path(const struct parser *p, struct slice operation, struct slice name,
                       struct patch_pointer *ret_pointer)
{
    struct document_value text;

    if (!document_find(operation, name, &text) || text.type != DOCUMENT_STRING)
        return error_set(p->err, ERROR_BAD_REQUEST, "\"%.*s\" is missing or not a string",
                         SLICE_ARG(name));
    return parse_pointer(p, text.text, ret_pointer) && check_allowed(p, ret_pointer);
}

static bool is_below(const struct patch_pointer *pointer, const struct patch_pointer *above)
{
    if (pointer->count <= above->count)
        return false;
    for (size_t i = 0; i < above->count; i++) {
        if (!slice_equal(pointer->steps[i], above->steps[i]))
            return false;
    }
    return true;
}

/* --- Operations ------------------------------------------------------------------------------ */

static bool parse_kind(const struct parser *p, struct slice operation, enum patch_kind *ret_kind)
{
    static const char *const names[] = {
        [PATCH_ADD] = "add",       [PATCH_SET] = "set",   [PATCH_REPLACE] = "replace",
        [PATCH_REMOVE] = "remove", [PATCH_INCR] = "incr", [PATCH_MOVE] = "move",
    };
    struct document_value op;

    if (!document_find(operation, SLICE("op"), &op) || op.type != DOCUMENT_STRING)
        return refuse(p, "\"op\" is missing or not a string");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (slice_equal(op.text, slice_of_text(names[i]))) {
            *ret_kind = (enum patch_kind)i;
            return true;
        }
    }
    return error_set(p->err, ERROR_BAD_REQUEST, "\"op\" is \"%.*s\"",
                     (int)MIN(op.text.len, (size_t)40), (const char *)op.text.data);
}

static bool parse_value(const struct parser *p, struct slice operation,
                        struct patch_operation *parsed)
{
    if (parsed->kind == PATCH_REMOVE || parsed->kind == PATCH_MOVE)
        return true;
    if (!document_find(operation, SLICE("value"), &parsed->value))
        return refuse(p, "\"value\" is missing");
    if (parsed->kind == PATCH_INCR &&
        (!document_is_number(&parsed->value) || parsed->value.type == DOCUMENT_DECIMAL128))
        return refuse(p, "\"value\" to add is not a number");
    return true;
}

static bool parse_operation(const struct parser *p, const struct document_value *value,
                            struct patch_operation *ret_operation)
{
    struct patch_operation parsed = {0};

    if (value->type != DOCUMENT_OBJECT)
        return refuse(p, "it is not an object");
    if (!parse_kind(p, value->document, &parsed.kind) ||
        !parse_path(p, value->document, SLICE("path"), &parsed.path) ||
        !parse_value(p, value->document, &parsed))
        return false;
    if (parsed.kind == PATCH_MOVE) {
        if (!parse_path(p, value->document, SLICE("from"), &parsed.from))
            return false;
        if (is_below(&parsed.path, &parsed.from))
            return refuse(p, "\"path\" is below \"from\"");
    }
    *ret_operation = parsed;
    return true;
}

static bool parse_operations(const struct parser *p, struct slice list, struct patch *patch)
{
    size_t count = document_count(list), at = 0;
    struct patch_operation *operations;
    struct document_iter iter;

    if (count < 1 || count > PATCH_OPERATIONS_MAX)
        return error_set(p->err, ERROR_BAD_REQUEST, "patch has %zu operations, not 1 to %d", count,
                         PATCH_OPERATIONS_MAX);
    operations = ARENA_ARRAY(p->arena, struct patch_operation, count);
    document_iter_init(&iter, list);
    for (; at < count && document_iter_next(&iter); at++) {
        if (!parse_operation(p, &iter.value, &operations[at]))
            return error_prefix(p->err, "patch operation %zu", at + 1);
    }
    patch->operations = operations;
    patch->count = at;
    return true;
}
