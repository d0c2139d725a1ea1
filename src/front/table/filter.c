#include "front/table/filter.h"

#include "document/json_number.h"
#include "front/table/route.h"
#include "query/function/date.h"

struct parser {
    struct slice text;
    size_t at;
    struct arena *arena;
    size_t depth, comparisons;
    struct error *err;
};

static const struct table_filter *expression_parse(struct parser *p);

/* --- Words ----------------------------------------------------------------------------------- */

static const struct table_filter *fail(struct parser *p, const char *what)
{
    (void)error_set(p->err, ERROR_BAD_QUERY, "syntax error in $filter at byte %zu: %s", p->at,
                    what);
    return NULL;
}

static void blanks_skip(struct parser *p)
{
    while (p->at < p->text.len && (p->text.data[p->at] == ' ' || p->text.data[p->at] == '\t'))
        p->at++;
}

static bool is_word(uint8_t c)
{
    uint8_t small = c | 0x20;

    return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

/* The word that begins here, empty if none does; blanks before it are skipped. */
static struct slice word_look(struct parser *p)
{
    size_t end;

    blanks_skip(p);
    end = p->at;
    while (end < p->text.len && is_word(p->text.data[end]))
        end++;
    return slice_of(p->text.data + p->at, end - p->at);
}

static bool word_take(struct parser *p, const char *word)
{
    if (!slice_equal(word_look(p), slice_of_text(word)))
        return false;
    p->at += strlen(word);
    return true;
}

static bool byte_take(struct parser *p, uint8_t byte)
{
    blanks_skip(p);
    if (p->at == p->text.len || p->text.data[p->at] != byte)
        return false;
    p->at++;
    return true;
}

/* --- Literals -------------------------------------------------------------------------------- */

/* 'text' with two quotes for one. */
static bool quoted_parse(struct parser *p, struct slice *ret_text)
{
    uint8_t *bytes = arena_alloc(p->arena, p->text.len - p->at + 1);
    size_t len = 0;

    if (p->at == p->text.len || p->text.data[p->at] != '\'')
        return fail(p, "a quote is missing") != NULL;
    for (p->at++;; p->at++) {
        if (p->at == p->text.len)
            return fail(p, "a text is not closed") != NULL;
        if (p->text.data[p->at] == '\'') {
            if (p->at + 1 == p->text.len || p->text.data[p->at + 1] != '\'')
                break;
            p->at++;
        }
        bytes[len++] = p->text.data[p->at];
    }
    p->at++;
    *ret_text = slice_of(bytes, len);
    return true;
}

static bool date_literal(struct parser *p, struct slice text, struct table_operand *ret)
{
    int64_t ticks;

    if (!edm_date_parse(text, &ticks))
        return fail(p, "there is no such moment") != NULL;
    *ret = (struct table_operand){.type = EDM_DATETIME, .value = document_int64(ticks)};
    return true;
}

static bool guid_literal(struct parser *p, struct slice text, struct table_operand *ret)
{
    uint8_t *guid = arena_alloc(p->arena, EDM_GUID_BYTES);

    if (!edm_guid_parse(text, guid))
        return fail(p, "it is no guid") != NULL;
    *ret = (struct table_operand){
        .type = EDM_GUID,
        .value = {.type = DOCUMENT_BINARY,
                  .binary = {slice_of(guid, EDM_GUID_BYTES), EDM_GUID_SUBTYPE}}};
    return true;
}

static bool binary_literal(struct parser *p, struct slice text, struct table_operand *ret)
{
    struct slice bytes;

    if (!edm_hex_parse(text, p->arena, &bytes))
        return fail(p, "it is not made of pairs of hexadecimal digits") != NULL;
    *ret = (struct table_operand){.type = EDM_BINARY,
                                  .value = {.type = DOCUMENT_BINARY, .binary = {bytes, 0}}};
    return true;
}

/* datetime'...', guid'...', X'...', binary'...'. */
static bool typed_literal(struct parser *p, struct slice word, struct table_operand *ret)
{
    struct slice text;

    p->at += word.len;
    if (!quoted_parse(p, &text))
        return false;
    if (slice_equal(word, SLICE("datetime")))
        return date_literal(p, text, ret);
    if (slice_equal(word, SLICE("guid")))
        return guid_literal(p, text, ret);
    if (slice_equal(word, SLICE("X")) || slice_equal(word, SLICE("binary")))
        return binary_literal(p, text, ret);
    return fail(p, "literals are datetime'...', guid'...', X'...' and binary'...'") != NULL;
}

static bool number_literal(struct parser *p, struct table_operand *ret)
{
    const uint8_t *begin = p->text.data + p->at, *end = p->text.data + p->text.len, *behind;
    struct json_number number;
    struct json_fault fault;
    bool is_long;

    behind = json_number_read(begin, end, &number, &fault);
    if (!behind)
        return fail(p, "it is no number") != NULL;
    is_long = behind < end && (*behind == 'L' || *behind == 'l');
    if (is_long && number.type == DOCUMENT_DOUBLE)
        return fail(p, "it is beyond 64 bits, or no whole number") != NULL;
    p->at += (size_t)(behind - begin) + is_long;
    if (p->at < p->text.len && is_word(p->text.data[p->at]))
        return fail(p, "it is no number") != NULL;
    if (number.type == DOCUMENT_DOUBLE)
        *ret = (struct table_operand){.type = EDM_DOUBLE, .value = document_double(number.real)};
    else
        *ret = (struct table_operand){.type = is_long || number.type == DOCUMENT_INT64 ? EDM_INT64
                                                                                       : EDM_INT32,
                                      .value = document_int64(number.integer)};
    return true;
}

static bool operand_parse(struct parser *p, struct table_operand *ret)
{
    struct slice word = word_look(p), text;
    uint8_t next = p->at < p->text.len ? p->text.data[p->at] : 0;

    if (next == '\'') {
        if (!quoted_parse(p, &text))
            return false;
        *ret = (struct table_operand){.type = EDM_STRING, .value = document_string(text)};
        return true;
    }
    if (next == '-' || (next >= '0' && next <= '9'))
        return number_literal(p, ret);
    if (word.len == 0 || slice_equal(word, SLICE("and")) || slice_equal(word, SLICE("or")))
        return fail(p, "a property or a literal is missing") != NULL;
    if (p->at + word.len < p->text.len && p->text.data[p->at + word.len] == '\'')
        return typed_literal(p, word, ret);
    p->at += word.len;
    if (slice_equal_nocase(word, SLICE("true")) || slice_equal_nocase(word, SLICE("false")))
        *ret = (struct table_operand){.type = EDM_BOOLEAN,
                                      .value = document_bool((word.data[0] | 0x20) == 't')};
    else
        *ret = (struct table_operand){.property = word};
    return true;
}

/* --- Expressions ----------------------------------------------------------------------------- */

static bool comparison_take(struct parser *p, enum query_comparison *ret_comparison)
{
    static const struct {
        const char *word;
        enum query_comparison comparison;
    } words[] = {
        {"eq", QUERY_EQUAL},         {"ne", QUERY_NOT_EQUAL}, {"gt", QUERY_GREATER},
        {"ge", QUERY_GREATER_EQUAL}, {"lt", QUERY_LESS},      {"le", QUERY_LESS_EQUAL},
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (word_take(p, words[i].word)) {
            *ret_comparison = words[i].comparison;
            return true;
        }
    return false;
}

static const struct table_filter *comparison_parse(struct parser *p)
{
    struct table_filter *node = ARENA_NEW(p->arena, struct table_filter);

    node->kind = TABLE_FILTER_COMPARE;
    if (++p->comparisons > TABLE_FILTER_COMPARISONS_MAX)
        return fail(p, "it has too many comparisons");
    if (!operand_parse(p, &node->a))
        return NULL;
    if (!comparison_take(p, &node->comparison)) {
        /* a boolean alone */
        if (!node->a.property.data && node->a.type != EDM_BOOLEAN)
            return fail(p, "an operator is missing: eq, ne, gt, ge, lt or le");
        node->comparison = QUERY_EQUAL;
        node->b = (struct table_operand){.type = EDM_BOOLEAN, .value = document_bool(true)};
        return node;
    }
    if (!operand_parse(p, &node->b))
        return NULL;
    if (node->a.property.data && node->b.property.data)
        return fail(p, "one side of a comparison must be a literal");
    return node;
}

static const struct table_filter *unary_parse(struct parser *p)
{
    const struct table_filter *inner;

    if (++p->depth > TABLE_FILTER_DEPTH_MAX)
        return fail(p, "it is nested too deep");
    if (word_take(p, "not")) {
        struct table_filter *node = ARENA_NEW(p->arena, struct table_filter);

        node->kind = TABLE_FILTER_NOT;
        node->left = inner = unary_parse(p);
        p->depth--;
        return inner ? node : NULL;
    }
    if (byte_take(p, '(')) {
        inner = expression_parse(p);
        if (inner && !byte_take(p, ')'))
            inner = fail(p, "a parenthesis is not closed");
    } else {
        inner = comparison_parse(p);
    }
    p->depth--;
    return inner;
}

static const struct table_filter *chain_parse(struct parser *p, const char *word,
                                              enum table_filter_kind kind,
                                              const struct table_filter *(*part)(struct parser *p))
{
    const struct table_filter *left = part(p);

    while (left && word_take(p, word)) {
        struct table_filter *node = ARENA_NEW(p->arena, struct table_filter);

        node->kind = kind;
        node->left = left;
        node->right = part(p);
        left = node->right ? node : NULL;
    }
    return left;
}

static const struct table_filter *and_parse(struct parser *p)
{
    return chain_parse(p, "and", TABLE_FILTER_AND, unary_parse);
}

static const struct table_filter *expression_parse(struct parser *p)
{
    return chain_parse(p, "or", TABLE_FILTER_OR, and_parse);
}

bool table_filter_parse(struct slice text, struct arena *arena,
                        const struct table_filter **ret_filter, struct error *err)
{
    struct parser p = {.text = text, .arena = arena, .err = err};
    const struct table_filter *filter;

    if (text.len > TABLE_FILTER_BYTES_MAX)
        return error_set(err, ERROR_BAD_QUERY, "$filter has more than %d bytes",
                         TABLE_FILTER_BYTES_MAX);
    filter = expression_parse(&p);
    if (!filter)
        return false;
    blanks_skip(&p);
    if (p.at < text.len)
        return fail(&p, "nothing was expected here") != NULL;
    *ret_filter = filter;
    return true;
}

/* --- Points ---------------------------------------------------------------------------------- */

static bool point_part(const struct table_filter *filter, struct table_keys *keys)
{
    struct slice *key;

    if (filter->kind == TABLE_FILTER_AND)
        return point_part(filter->left, keys) && point_part(filter->right, keys);
    if (filter->kind != TABLE_FILTER_COMPARE || filter->comparison != QUERY_EQUAL ||
        filter->b.property.data || filter->b.type != EDM_STRING)
        return false;
    if (slice_equal(filter->a.property, SLICE("PartitionKey")))
        key = &keys->partition;
    else if (slice_equal(filter->a.property, SLICE("RowKey")))
        key = &keys->row;
    else
        return false;
    if (key->data)
        return false;
    *key = filter->b.value.text;
    return true;
}

bool table_filter_is_point(const struct table_filter *filter, struct table_keys *ret_keys)
{
    struct table_keys keys = {0};

    if (!point_part(filter, &keys) || !keys.partition.data || !keys.row.data)
        return false;
    *ret_keys = keys;
    return true;
}
