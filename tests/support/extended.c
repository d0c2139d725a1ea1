#include "support/extended.h"

#include "document/json.h"
#include "support/check.h"

#include <bson/bson.h>
#include <stdio.h>
#include <stdlib.h>

static void append_converted(struct buf *buf, struct slice key, const struct document_value *value,
                             struct arena *arena);

static bool base64_read(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t *bytes = arena_alloc(arena, text.len + 3);
    uint32_t bits = 0;
    size_t len = 0, have = 0;

    for (size_t i = 0; i < text.len && text.data[i] != '='; i++) {
        const char *digit = memchr(digits, text.data[i], 64);

        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        have += 6;
        if (have >= 8) {
            have -= 8;
            bytes[len++] = (uint8_t)(bits >> have);
        }
    }
    *ret_bytes = slice_of(bytes, len);
    return true;
}

static struct document_value member(struct slice object, const char *name)
{
    struct document_value value;

    assert_true(document_find(object, slice_of_text(name), &value));
    return value;
}

static int64_t number_of(const struct document_value *value)
{
    struct document_value inner;
    char text[32];
    int64_t number;

    if (value->type == DOCUMENT_OBJECT) {
        inner = member(value->document, "$numberLong");
        return number_of(&inner);
    }
    if (value->type == DOCUMENT_STRING) {
        snprintf(text, sizeof text, "%.*s", SLICE_ARG(value->text));
        return strtoll(text, NULL, 10);
    }
    assert_true(document_to_int64(value, &number));
    return number;
}

static const uint8_t *id_of(struct slice text, struct arena *arena)
{
    uint8_t *id = arena_alloc(arena, DOCUMENT_OBJECT_ID_SIZE);

    for (size_t i = 0; i < DOCUMENT_OBJECT_ID_SIZE; i++)
        id[i] = (uint8_t)strtoul((char[]){(char)text.data[2 * i], (char)text.data[2 * i + 1], 0},
                                 NULL, 16);
    return id;
}

#define IS(literal) slice_equal(name, SLICE(literal))

/* An object of one name that stands for a value of another type? */
static bool special_read(struct slice name, const struct document_value *inner, struct arena *arena,
                         struct document_value *ret)
{
    struct document_value part, other;
    bson_decimal128_t decimal;
    char *text;

    if (IS("$numberLong")) {
        *ret = document_int64(number_of(inner));
    } else if (IS("$numberInt")) {
        *ret = document_int32((int32_t)number_of(inner));
    } else if (IS("$numberDouble")) {
        text = arena_text(arena, inner->text);
        *ret = document_double(strtod(text, NULL));
    } else if (IS("$numberDecimal")) {
        assert_true(bson_decimal128_from_string(arena_text(arena, inner->text), &decimal));
        *ret = (struct document_value){.type = DOCUMENT_DECIMAL128,
                                       .decimal = {decimal.low, decimal.high}};
    } else if (IS("$oid")) {
        *ret = (struct document_value){.type = DOCUMENT_OBJECT_ID, .id = id_of(inner->text, arena)};
    } else if (IS("$date")) {
        *ret = document_date(number_of(inner));
    } else if (IS("$timestamp")) {
        part = member(inner->document, "t");
        other = member(inner->document, "i");
        *ret = (struct document_value){.type = DOCUMENT_TIMESTAMP,
                                       .timestamp = (uint64_t)number_of(&part) << 32 |
                                                    (uint64_t)number_of(&other)};
    } else if (IS("$binary")) {
        *ret = document_value_of_type(DOCUMENT_BINARY);
        part = member(inner->document, "base64");
        other = member(inner->document, "subType");
        assert_true(base64_read(part.text, arena, &ret->binary.bytes));
        ret->binary.subtype = (uint8_t)strtoul(arena_text(arena, other.text), NULL, 16);
    } else if (IS("$regularExpression")) {
        *ret = document_value_of_type(DOCUMENT_REGEX);
        ret->regex.pattern = member(inner->document, "pattern").text;
        ret->regex.options = member(inner->document, "options").text;
    } else if (IS("$symbol")) {
        *ret = (struct document_value){.type = DOCUMENT_SYMBOL, .text = inner->text};
    } else if (IS("$undefined")) {
        *ret = document_undefined();
    } else if (IS("$minKey")) {
        *ret = document_value_of_type(DOCUMENT_MIN_KEY);
    } else if (IS("$maxKey")) {
        *ret = document_value_of_type(DOCUMENT_MAX_KEY);
    } else {
        return false;
    }
    return true;
}

static bool is_special(const struct document_value *value, struct arena *arena,
                       struct document_value *ret)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT || document_count(value->document) != 1)
        return false;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && special_read(iter.key, &iter.value, arena, ret);
}

static void elements_convert(struct buf *buf, struct slice document, struct arena *arena)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        append_converted(buf, iter.key, &iter.value, arena);
}

static void append_converted(struct buf *buf, struct slice key, const struct document_value *value,
                             struct arena *arena)
{
    struct document_value special;
    size_t begin;

    if (is_special(value, arena, &special)) {
        document_append(buf, key, &special);
    } else if (value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY) {
        begin = value->type == DOCUMENT_OBJECT ? document_append_object_begin(buf, key)
                                               : document_append_array_begin(buf, key);
        elements_convert(buf, value->document, arena);
        document_end(buf, begin);
    } else {
        document_append(buf, key, value);
    }
}

struct slice extended_document(struct arena *arena, struct slice json)
{
    CLEANUP(buf_done) struct buf plain;
    CLEANUP(buf_done) struct buf made;
    struct error err;
    size_t begin;

    buf_init(&plain, BUF_DEFAULT_MAX);
    buf_init(&made, BUF_DEFAULT_MAX);
    if (!document_json_read(json, NULL, &plain, &err))
        fail_msg("%s", err.message);
    begin = document_begin(&made);
    elements_convert(&made, buf_slice(&plain), arena);
    document_end(&made, begin);
    return arena_copy(arena, buf_slice(&made));
}

struct slice extended_file(struct arena *arena, const char *path)
{
    CLEANUP(buf_done) struct buf text;
    char whole[4096], block[4096];
    size_t count;
    FILE *file;

    buf_init(&text, BUF_DEFAULT_MAX);
    snprintf(whole, sizeof whole, "%s/%s", TESTS_DIRECTORY, path);
    file = fopen(whole, "r");
    if (!file)
        fail_msg("%s cannot be read", whole);
    while ((count = fread(block, 1, sizeof block, file)) > 0)
        buf_append(&text, block, count);
    fclose(file);
    return extended_document(arena, buf_slice(&text));
}
