/* The first line is an expression, the rest an item, both JSON:
 *
 *     ["UPPER", {"path": ["a", 0]}]     a built-in function over c.a[0]
 *     ["#10", 1, {"value": [2]}]        number 10 of the nodes below over two constants
 *
 * Whatever they are, evaluation ends within its limits, the value is one that may be stored, and it
 * is the same whether constants were folded or read from variables. */
#include "document/json.h"
#include "fuzz/fuzz.h"
#include "query/expression/expression.h"
#include "query/value/compare.h"

enum { SLOTS = 64, ARGUMENTS_MAX = 8, BYTES_MAX = 1 << 20, WORK_MAX = 2000000 };

struct compiler {
    struct query_build build;
    struct query_slot *slots; /* NULL: constants stay constants */
    uint32_t next_slot;
};

static const struct query_expression *compile(struct compiler *c,
                                              const struct document_value *value);

static const struct query_expression *constant(struct compiler *c, struct document_value value)
{
    if (!c->slots || c->next_slot == SLOTS)
        return query_constant(&c->build, value);
    c->slots[c->next_slot] = (struct query_slot){.value = value};
    return query_variable(&c->build, c->next_slot++);
}

static const struct query_expression *compile_path(struct compiler *c, struct slice steps)
{
    const struct query_expression *path = query_variable(&c->build, 0);
    struct document_iter iter;

    document_iter_init(&iter, steps);
    while (document_iter_next(&iter)) {
        if (iter.value.type == DOCUMENT_STRING)
            path = query_property_of(&c->build, path, iter.value.text);
        else if (iter.value.type == DOCUMENT_INT32 && iter.value.int32 >= 0)
            path = query_element_of(&c->build, path, (uint64_t)iter.value.int32);
    }
    return path;
}

static const struct query_expression *node(struct query_build *b, unsigned number,
                                           const struct query_expression **a, size_t count)
{
    if (number < 6 && count == 2)
        return query_compare(b, (enum query_comparison)number, a[0], a[1]);
    if (number >= 10 && number < 10 + QUERY_PLUS && count == 2)
        return query_binary(b, (enum query_operator)(number - 10), a[0], a[1]);
    if (number >= 30 && number < 33 && count == 1)
        return query_unary(b, (enum query_operator)(number - 30 + QUERY_PLUS), a[0]);
    if (number == 40 && count == 2)
        return query_and(b, a[0], a[1]);
    if (number == 41 && count == 2)
        return query_or(b, a[0], a[1]);
    if (number == 42 && count == 1)
        return query_not(b, a[0]);
    if (number == 43 && count >= 2)
        return query_like(b, a[0], a[1], count > 2 ? a[2] : NULL);
    if (number == 44 && count >= 1)
        return query_in(b, a[0], a + 1, count - 1);
    if (number == 45 && count == 3)
        return query_between(b, a[0], a[1], a[2]);
    if (number == 46 && count == 2)
        return query_coalesce(b, a[0], a[1]);
    if (number == 47 && count == 3)
        return query_conditional(b, a[0], a[1], a[2]);
    if (number == 48)
        return query_array(b, a, count);
    if (number == 49 && count == 2)
        return query_index(b, a[0], a[1]);
    return query_constant(b, document_undefined());
}

static const struct query_expression *compile_call(struct compiler *c, struct slice call)
{
    const struct query_expression *arguments[ARGUMENTS_MAX];
    const struct query_function *function;
    struct document_iter iter;
    struct slice name;
    uint64_t number;
    size_t count = 0;

    document_iter_init(&iter, call);
    if (!document_iter_next(&iter) || iter.value.type != DOCUMENT_STRING)
        return constant(c, document_array(call));
    name = iter.value.text;
    while (count < ARGUMENTS_MAX && document_iter_next(&iter))
        arguments[count++] = compile(c, &iter.value);
    if (name.len > 1 && name.data[0] == '#' && slice_to_uint64(slice_skip(name, 1), &number))
        return node(&c->build, (unsigned)number, arguments, count);
    function = query_function_find(name);
    return function ? query_call(&c->build, function, arguments, count)
                    : constant(c, document_undefined());
}

static const struct query_expression *compile(struct compiler *c,
                                              const struct document_value *value)
{
    struct document_value inner;

    if (value->type == DOCUMENT_ARRAY)
        return compile_call(c, value->document);
    if (value->type != DOCUMENT_OBJECT)
        return constant(c, *value);
    if (document_find(value->document, SLICE("path"), &inner) && inner.type == DOCUMENT_ARRAY)
        return compile_path(c, inner.document);
    return constant(
        c, document_find(value->document, SLICE("value"), &inner) ? inner : document_undefined());
}

static void check_storable(const struct document_value *value)
{
    const struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MAX};
    CLEANUP(buf_done) struct buf buf;
    struct error err;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append(&buf, SLICE("v"), value);
    document_end(&buf, begin);
    FUZZ_CHECK(document_validate(buf_slice(&buf), &limits, &err));
}

/* True when there is a value. */
static bool run(const struct document_value *text, struct slice item, bool folded,
                struct arena *arena, struct document_value *ret_value, bool *ret_stable)
{
    const struct query_limits limits = {.bytes_max = BYTES_MAX, .work_max = WORK_MAX};
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot *slots = ARENA_ARRAY(arena, struct query_slot, SLOTS);
    struct compiler compiler = {.build = {.arena = arena}, .next_slot = 1};
    CLEANUP(arena_free) struct arena *temporary = arena_new();
    const struct query_expression *expression;
    struct error err;
    bool good;

    query_context_init(&context, temporary, &limits, NULL);
    context.slots = slots;
    context.slot_count = SLOTS;
    slots[0] = (struct query_slot){.value = document_object(item)};
    compiler.slots = folded ? NULL : slots;
    expression = compile(&compiler, text);
    if (compiler.build.failed)
        return false;
    *ret_stable = expression->stability == QUERY_STABLE;
    good = query_evaluate(expression, &context, ret_value, &err);
    FUZZ_CHECK(context.scratch.len == 0);
    if (good) {
        check_storable(ret_value);
        query_value_hash(ret_value);
        /* outlives the temporaries */
        *ret_value = *query_constant_value(query_constant(&compiler.build, *ret_value));
    } else {
        FUZZ_CHECK(err.code == ERROR_QUERY_LIMIT || err.code == ERROR_TOO_DEEP);
    }
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf body, item;
    struct slice first, rest;
    struct document_value text, folded, read;
    bool stable;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    buf_init(&item, BUF_DEFAULT_MAX);
    if (!slice_split(slice_of(data, size), '\n', &first, &rest) ||
        !document_json_read_value(first, NULL, &body, &text, &err) ||
        !document_json_read(rest, NULL, &item, &err))
        return 0;
    if (run(&text, buf_slice(&item), true, arena, &folded, &stable) && stable &&
        run(&text, buf_slice(&item), false, arena, &read, &stable))
        FUZZ_CHECK(query_values_same(DOCUMENT_ORDER_SQL, &folded, &read));
    return 0;
}
