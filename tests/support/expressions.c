#include "support/expressions.h"

#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

#include <ctype.h>
#include <math.h>

enum { ARGUMENTS_MAX = 64, FIRST_FREE_SLOT = 4 };

struct parser {
    struct query_build *build;
    const char *at;
    struct query_slot *slots;
    uint32_t next_slot;
};

static const struct query_expression *parse(struct parser *p);

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(struct parser *p, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(p->at, word, len) != 0 || isalnum((unsigned char)p->at[len]))
        return false;
    p->at += len;
    return true;
}

static const struct query_expression *constant(struct parser *p, struct document_value value)
{
    if (!p->slots)
        return query_constant(p->build, value);
    assert_true(p->next_slot < EXPRESSION_SLOTS);
    p->slots[p->next_slot] = (struct query_slot){.value = value};
    return query_variable(p->build, p->next_slot++);
}

/* The end of a JSON value in single quotes. */
static const char *json_end(const char *at)
{
    int depth = 0;
    bool quoted = false;

    for (; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '\'')
            quoted = !quoted;
        else if (!quoted && (*at == '[' || *at == '{'))
            depth++;
        else if (!quoted && depth == 0 && (*at == ',' || *at == ')' || *at == ']'))
            break;
        else if (!quoted && (*at == ']' || *at == '}'))
            depth--;
    }
    return at;
}

static struct document_value json_value(struct arena *arena, const char *text, size_t len)
{
    char *json = arena_text(arena, slice_of(text, len));

    for (char *at = json; *at; at++) {
        if (*at == '\'')
            *at = '"';
    }
    return value_of(arena, json);
}

static const struct query_expression *parse_literal(struct parser *p)
{
    const char *end = json_end(p->at);
    struct document_value value = json_value(p->build->arena, p->at, (size_t)(end - p->at));

    p->at = end;
    return constant(p, value);
}

static const struct query_expression *parse_path(struct parser *p,
                                                 const struct query_expression *expression)
{
    for (;;) {
        if (*p->at == '.') {
            const char *start = ++p->at;

            while (isalnum((unsigned char)*p->at) || *p->at == '_')
                p->at++;
            expression =
                query_property_of(p->build, expression, slice_of(start, (size_t)(p->at - start)));
        } else if (*p->at == '[') {
            p->at++;
            expression = query_index(p->build, expression, parse(p));
            assert_true(take(p, ']'));
        } else {
            return expression;
        }
    }
}

static const struct query_expression *
make_object(struct query_build *build, const struct query_expression **arguments, size_t count)
{
    const struct query_expression *values[ARGUMENTS_MAX];
    struct slice names[ARGUMENTS_MAX];

    for (size_t i = 0; i + 1 < count; i += 2) {
        names[i / 2] = query_constant_value(arguments[i])->text;
        values[i / 2] = arguments[i + 1];
    }
    return query_object(build, names, values, count / 2);
}

static const struct query_expression *make_special(struct query_build *b, const char *name,
                                                   const struct query_expression **a, size_t count)
{
    static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const char *const operators[] = {"add",  "sub", "mul",  "div", "mod",
                                            "band", "bor", "bxor", "shl", "shr",
                                            "ushr", "cat", "plus", "neg", "bnot"};

    for (size_t i = 0; i < ARRAY_LEN(comparisons); i++) {
        if (strcmp(name, comparisons[i]) == 0)
            return query_compare(b, (enum query_comparison)i, a[0], a[1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        if (strcmp(name, operators[i]) == 0)
            return i >= QUERY_PLUS ? query_unary(b, (enum query_operator)i, a[0])
                                   : query_binary(b, (enum query_operator)i, a[0], a[1]);
    }
    if (strcmp(name, "and") == 0 || strcmp(name, "or") == 0) {
        const struct query_expression *chain = a[0];

        for (size_t i = 1; i < count; i++)
            chain = *name == 'a' ? query_and(b, chain, a[i]) : query_or(b, chain, a[i]);
        return chain;
    }
    if (strcmp(name, "not") == 0)
        return query_not(b, a[0]);
    if (strcmp(name, "if") == 0)
        return query_conditional(b, a[0], a[1], a[2]);
    if (strcmp(name, "coalesce") == 0)
        return query_coalesce(b, a[0], a[1]);
    if (strcmp(name, "between") == 0)
        return query_between(b, a[0], a[1], a[2]);
    if (strcmp(name, "in") == 0)
        return query_in(b, a[0], a + 1, count - 1);
    if (strcmp(name, "like") == 0)
        return query_like(b, a[0], a[1], count > 2 ? a[2] : NULL);
    if (strcmp(name, "index") == 0)
        return query_index(b, a[0], a[1]);
    if (strcmp(name, "array") == 0)
        return query_array(b, a, count);
    if (strcmp(name, "object") == 0)
        return make_object(b, a, count);
    return NULL;
}

static const struct query_expression *parse_call(struct parser *p, struct slice name)
{
    const struct query_expression *arguments[ARGUMENTS_MAX], *special;
    char *text = arena_text(p->build->arena, name);
    struct query_slot *slots = p->slots;
    size_t count = 0;

    while (!take(p, ')')) {
        assert_true(count < ARGUMENTS_MAX);
        if (strcmp(text, "object") == 0) /* names are constant */
            p->slots = count % 2 ? slots : NULL;
        arguments[count++] = parse(p);
        take(p, ',');
    }
    p->slots = slots;
    special = make_special(p->build, text, arguments, count);
    if (special)
        return special;
    if (strncmp(text, "udf_", 4) == 0)
        return query_udf_call(p->build, slice_of_text(text + 4), arguments, count);
    if (!query_function_find(name))
        fail_msg("there is no function %s", text);
    return query_call(p->build, query_function_find(name), arguments, count);
}

static const struct query_expression *parse(struct parser *p)
{
    static const char slots[] = "cxyz";
    const char *start;

    skip_blanks(p);
    if (take_word(p, "undefined"))
        return constant(p, document_undefined());
    if (take_word(p, "NaN"))
        return constant(p, document_double(NAN));
    if (take_word(p, "Infinity"))
        return constant(p, document_double(INFINITY));
    if (take_word(p, "-Infinity"))
        return constant(p, document_double(-INFINITY));
    start = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_')
        p->at++;
    if (p->at > start && *p->at == '(') {
        p->at++;
        return parse_path(p, parse_call(p, slice_of(start, (size_t)(p->at - 1 - start))));
    }
    if (p->at - start == 1 && strchr(slots, *start))
        return parse_path(p, query_variable(p->build, (uint32_t)(strchr(slots, *start) - slots)));
    p->at = start;
    return parse_literal(p);
}

const struct query_expression *expression_of(struct query_build *build, const char *text,
                                             struct query_slot *slots)
{
    struct parser p = {build, text, slots, FIRST_FREE_SLOT};
    const struct query_expression *expression = parse(&p);

    skip_blanks(&p);
    if (*p.at)
        fail_msg("\"%s\" is left over of \"%s\"", p.at, text);
    return expression;
}

const char *expression_print(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    char *text;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (value->type == DOCUMENT_UNDEFINED)
        return "undefined";
    if (value->type == DOCUMENT_DOUBLE && !isfinite(value->number))
        return isnan(value->number) ? "NaN" : value->number > 0 ? "Infinity" : "-Infinity";
    document_json_write_value(value, &buf);
    text = arena_text(arena, buf_slice(&buf));
    for (char *at = text; *at; at++) {
        if (*at == '"')
            *at = '\'';
    }
    return text;
}

const char *expression_result(const char *text, const char *item, bool folded, struct arena *arena)
{
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slots[EXPRESSION_SLOTS] = {0};
    struct query_build build = {.arena = arena};
    const struct query_expression *expression;
    struct document_value value;
    struct error err = {0};

    for (size_t i = 0; i < EXPRESSION_SLOTS; i++)
        slots[i].value = document_undefined();
    query_context_init(&context, arena, NULL, NULL);
    context.slots = slots;
    context.slot_count = EXPRESSION_SLOTS;
    expression = expression_of(&build, text, folded ? NULL : slots);
    slots[0].value = item ? json_value(arena, item, strlen(item)) : value_of(arena, "{}");
    if (build.failed)
        return error_face(build.error.code)->name;
    if (!query_evaluate(expression, &context, &value, &err))
        return error_face(err.code)->name;
    assert_int_equal(context.scratch.len, 0);
    return expression_print(&value, arena);
}

void expression_cases(const struct expression_case *cases, size_t count, const char *item)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++) {
        for (int folded = 0; folded < 2; folded++) {
            const char *got = expression_result(cases[i].text, item, folded, arena);

            if (strcmp(got, cases[i].expected) != 0) {
                print_error("%s%s is %s, not %s\n", cases[i].text, folded ? " (folded)" : "", got,
                            cases[i].expected);
                wrong++;
            }
        }
    }
    if (wrong)
        fail_msg("%zu results are wrong", wrong);
}
