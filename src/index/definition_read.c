/* A definition as containers keep it:
 *
 *     {"name": "x",
 *      "number": 0,                        of its entries (policy.c); whoever makes one says none
 *      "format": 2,                        of its entries
 *      "key": [{"path": "/a/b", "order": "descending", "hashed": true}, ...],
 *                                          of a part of figures: "cells": "earth", or of a plane
 *                                          "cells": {"min": -180, "max": 180}
 *      "wildcard": {"include": ["/a/" and an asterisk], "exclude": [...]},   in place of key
 *      "order": "sql" or "mongo",
 *      "collation": "simple" or {"locale": "fr", "strength": 1, ...},
 *      "collator": "153.120",              with such a collation: the version of the rules by which
 *                                          its entries are made
 *      "multikey": true, "hidden": true, "sparse": true,
 *      "arrays": "counted",                with multikey: whether items have arrays there is known
 *      "text": {"language": "en", "override": "language", "weights": [1, 10], "all": 1},
 *                                          of full text: weights of the paths of key; all: texts at
 *                                          any path have that weight, and key may be missing
 *      "placed": "/b",                     its entries lie with the partition key at this path, in
 *                                          whichever partition that is, and not with their item
 *      "source": {...},                    in the words of the language it is from; kept as it is
 *      "unique": "logicalPartition",
 *      "expireAfterSeconds": 60,
 *      "state": "ready", "building" or "failed",
 *      "failure": {"reason": "...", "conflicts": [...]},                    of one that failed
 *      "filter": [{"path": "/a", "comparison": "exists", "equal", "less", "lessOrEqual", "greater",
 *                  "greaterOrEqual" or "type", "value": 1,
 *                  "any": 1}, ...]}        those with the same number: one of them is enough
 *
 * Number, format, collator, state and failure are the server's: whoever defines an index may send
 * back what it was shown of them, and they are not looked at (index_definition_words).
 *
 * It is written in this order and without what is not so. A member that is not listed is refused:
 * a definition that is understood by half would have other entries. */
#include "document/bson.h"
#include "index/definition.h"
#include "search/analyser.h"

#include <math.h>

struct reading {
    struct arena *arena;
    struct error *err;
    struct index_parts parts;
    bool has_key, has_wildcard;
    struct document_value text; /* undefined: none */
};

static bool wrong(const struct reading *r, const char *what)
{
    return error_set(r->err, ERROR_BAD_REQUEST, "%s", what);
}

static bool flag_read(const struct reading *r, const struct document_value *value, bool *ret_flag)
{
    if (value->type != DOCUMENT_BOOL)
        return wrong(r, "a member that is true or false is something else");
    *ret_flag = value->boolean;
    return true;
}

/* One of some words, by its place. */
static bool word_read(const struct reading *r, const struct document_value *value,
                      const char *const *words, size_t count, const char *what, size_t *ret_word)
{
    for (size_t i = 0; value->type == DOCUMENT_STRING && i < count; i++)
        if (slice_equal(value->text, slice_of_text(words[i]))) {
            *ret_word = i;
            return true;
        }
    return wrong(r, what);
}

static bool path_read(const struct reading *r, const struct document_value *value,
                      enum document_path_use use, struct document_path *ret_path)
{
    if (value->type != DOCUMENT_STRING)
        return wrong(r, "a path is not a text");
    return document_path_parse(arena_copy(r->arena, value->text), use, r->arena, ret_path, r->err);
}

static bool unknown(const struct reading *r, struct slice name)
{
    return error_set(r->err, ERROR_BAD_REQUEST, "there is no member \"%.*s\"",
                     (int)MIN(name.len, (size_t)60), (const char *)name.data);
}

/* --- Members --------------------------------------------------------------------------------- */

static const char *const directions[] = {"ascending", "descending"};
static const char *const orders[] = {"sql", "mongo"};
static const char *const scopes[] = {"logicalPartition"};
static const char *const comparisons[] = {"exists",  "equal",          "less", "lessOrEqual",
                                          "greater", "greaterOrEqual", "type", "notEqual"};

/* "earth", or the box of a plane. MongoDB's rules of figures: no other language has such indexes
 * but in its policy. */
static bool cells_read(struct reading *r, const struct document_value *value)
{
    struct index_spatial *spatial = ARENA_NEW(r->arena, struct index_spatial);
    struct document_value min, max;
    double low, high;

    if (r->parts.spatial)
        return wrong(r, "two parts of the key have cells");
    r->parts.spatial = spatial;
    *spatial = (struct index_spatial){
        .rules = {.surface = SEARCH_EARTH, .every_type = true, .smaller = true, .round = true}};
    if (value->type == DOCUMENT_STRING && slice_equal(value->text, SLICE("earth")))
        return true;
    if (value->type != DOCUMENT_OBJECT || document_count(value->document) != 2 ||
        !document_find(value->document, SLICE("min"), &min) ||
        !document_find(value->document, SLICE("max"), &max) || !document_to_double(&min, &low) ||
        !document_to_double(&max, &high) || !isfinite(low) || !isfinite(high) || !(low < high))
        return wrong(r, "\"cells\" must be \"earth\" or the min and max of a plane");
    *spatial = (struct index_spatial){.rules = {.surface = SEARCH_PLANE, .every_type = true},
                                      .grid = {SEARCH_PLANE, low, low, high, high}};
    return true;
}

static bool part_read(struct reading *r, struct slice object, struct index_part *part)
{
    struct document_iter iter;
    size_t direction = 0;
    bool has_path = false;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("path"))) {
            has_path = true;
            if (!path_read(r, &iter.value, DOCUMENT_PATH_KEY, &part->path))
                return false;
        } else if (slice_equal(iter.key, SLICE("order"))) {
            if (!word_read(r, &iter.value, directions, ARRAY_LEN(directions),
                           "the order of a path must be ascending or descending", &direction))
                return false;
        } else if (slice_equal(iter.key, SLICE("hashed"))) {
            if (!flag_read(r, &iter.value, &part->hashed))
                return false;
        } else if (slice_equal(iter.key, SLICE("cells"))) {
            part->cells = true;
            if (!cells_read(r, &iter.value))
                return false;
        } else {
            return unknown(r, iter.key);
        }
    }
    part->descending = direction == 1;
    return has_path || wrong(r, "a part of the key has no path");
}

/* The elements of a list that are objects. */
static bool list_begin(const struct reading *r, const struct document_value *value, size_t max,
                       const char *what, size_t *ret_count, struct document_iter *ret_iter)
{
    if (value->type != DOCUMENT_ARRAY)
        return wrong(r, what);
    *ret_count = document_count(value->document);
    if (!*ret_count || *ret_count > max)
        return wrong(r, what);
    document_iter_init(ret_iter, value->document);
    return true;
}

static bool key_read(struct reading *r, const struct document_value *value)
{
    struct index_part *parts;
    struct document_iter iter;
    size_t count = 0;

    if (!list_begin(r, value, INDEX_PARTS_MAX, "\"key\" must be a list of 1 to 32 paths", &count,
                    &iter))
        return false;
    parts = ARENA_ARRAY(r->arena, struct index_part, count);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++) {
        parts[i] = (struct index_part){0};
        if (iter.value.type != DOCUMENT_OBJECT)
            return wrong(r, "a part of the key is not an object");
        if (!part_read(r, iter.value.document, &parts[i]))
            return false;
    }
    r->parts.parts = parts;
    r->parts.part_count = count;
    r->has_key = true;
    return true;
}

static bool projection_read(struct reading *r, const struct document_value *value,
                            const struct document_path **ret_paths, size_t *ret_count)
{
    struct document_path *paths;
    struct document_iter iter;
    size_t count = 0;

    if (!list_begin(r, value, INDEX_PROJECTION_MAX, "a wildcard takes lists of 1 to 64 paths",
                    &count, &iter))
        return false;
    paths = ARENA_ARRAY(r->arena, struct document_path, count);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++) {
        if (!path_read(r, &iter.value, DOCUMENT_PATH_INDEX, &paths[i]))
            return false;
        if (paths[i].end != DOCUMENT_PATH_END_ALL)
            return wrong(r, "a path of a wildcard ends in an asterisk");
    }
    *ret_paths = paths;
    *ret_count = count;
    return true;
}

static bool wildcard_read(struct reading *r, const struct document_value *value)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return wrong(r, "\"wildcard\" must be an object");
    r->has_wildcard = true;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        bool include = slice_equal(iter.key, SLICE("include"));

        if (!include && !slice_equal(iter.key, SLICE("exclude")))
            return unknown(r, iter.key);
        if (!projection_read(r, &iter.value, include ? &r->parts.include : &r->parts.exclude,
                             include ? &r->parts.include_count : &r->parts.exclude_count))
            return false;
    }
    return true;
}

static bool condition_read(const struct reading *r, struct slice object,
                           struct index_condition *condition)
{
    struct document_iter iter;
    size_t comparison = ARRAY_LEN(comparisons);
    bool has_path = false, has_value = false;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("path"))) {
            has_path = true;
            if (!path_read(r, &iter.value, DOCUMENT_PATH_KEY, &condition->path))
                return false;
        } else if (slice_equal(iter.key, SLICE("comparison"))) {
            if (!word_read(r, &iter.value, comparisons, ARRAY_LEN(comparisons),
                           "a condition has a comparison nobody knows", &comparison))
                return false;
        } else if (slice_equal(iter.key, SLICE("value"))) {
            has_value = true;
            condition->value = iter.value; /* in the arena, as the whole definition is */
        } else if (slice_equal(iter.key, SLICE("any"))) {
            int64_t number;

            if (!document_to_int64(&iter.value, &number) || number < 1 ||
                number > INDEX_CONDITIONS_MAX)
                return wrong(r, "\"any\" of a condition must be from 1 to 32");
            condition->any = (uint32_t)number;
        } else {
            return unknown(r, iter.key);
        }
    }
    if (!has_path || comparison == ARRAY_LEN(comparisons) ||
        has_value == (comparison == INDEX_EXISTS))
        return wrong(r, "a condition has a path, a comparison and, but for exists, a value");
    condition->comparison = (enum index_comparison)comparison;
    if (condition->comparison == INDEX_TYPE && condition->value.type != DOCUMENT_ARRAY)
        return wrong(r, "the value of the comparison \"type\" is a list of numbers");
    return true;
}

static bool filter_read(struct reading *r, const struct document_value *value)
{
    struct index_condition *conditions;
    struct document_iter iter;
    size_t count = 0;

    if (!list_begin(r, value, INDEX_CONDITIONS_MAX,
                    "\"filter\" must be a list of 1 to 32 conditions", &count, &iter))
        return false;
    conditions = ARENA_ARRAY(r->arena, struct index_condition, count);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++) {
        conditions[i] = (struct index_condition){.value = document_undefined()};
        if (iter.value.type != DOCUMENT_OBJECT)
            return wrong(r, "a condition is not an object");
        if (!condition_read(r, iter.value.document, &conditions[i]))
            return false;
    }
    r->parts.filter = conditions;
    r->parts.filter_count = count;
    return true;
}

static bool name_read(struct reading *r, const struct document_value *value)
{
    if (value->type != DOCUMENT_STRING)
        return wrong(r, "the name is not a text");
    r->parts.name = value->text;
    return true;
}

static bool number_read(struct reading *r, const struct document_value *value)
{
    int64_t number;

    if (!document_to_int64(value, &number) || number < 0 || number >= INDEX_NUMBERS)
        return wrong(r, "the number must be from 0 to 255");
    r->parts.number = (uint8_t)number;
    return true;
}

static bool format_read(struct reading *r, const struct document_value *value)
{
    int64_t format;

    if (!document_to_int64(value, &format) || format != INDEX_FORMAT_VERSION)
        return error_set(r->err, ERROR_NOT_SUPPORTED,
                         "its entries are of a format that this version does not know");
    return true;
}

static bool order_read(struct reading *r, const struct document_value *value)
{
    size_t order = 0;

    if (!word_read(r, value, orders, ARRAY_LEN(orders), "\"order\" must be \"sql\" or \"mongo\"",
                   &order))
        return false;
    r->parts.order = order == 1 ? DOCUMENT_ORDER_MONGO : DOCUMENT_ORDER_SQL;
    return true;
}

static bool collation_read(struct reading *r, const struct document_value *value)
{
    if (value->type == DOCUMENT_OBJECT)
        return document_collator_read(value->document, &r->parts.collator, r->err);
    return (value->type == DOCUMENT_STRING && slice_equal(value->text, SLICE("simple"))) ||
           wrong(r, "the collation is neither \"simple\" nor an object with a locale");
}

static bool collator_read(struct reading *r, const struct document_value *value)
{
    if (value->type != DOCUMENT_STRING || !r->parts.collator)
        return wrong(r, "\"collator\" is not the version of a collation");
    r->parts.collator_version = value->text;
    return true;
}

static bool multikey_read(struct reading *r, const struct document_value *value)
{
    return flag_read(r, value, &r->parts.multikey);
}

static bool hidden_read(struct reading *r, const struct document_value *value)
{
    return flag_read(r, value, &r->parts.hidden);
}

static bool sparse_read(struct reading *r, const struct document_value *value)
{
    return flag_read(r, value, &r->parts.sparse);
}

static bool arrays_read(struct reading *r, const struct document_value *value)
{
    static const char *const words[] = {"counted"};
    size_t word;

    r->parts.counted = true;
    return word_read(r, value, words, ARRAY_LEN(words), "\"arrays\" must be \"counted\"", &word);
}

static bool text_member_read(struct reading *r, const struct document_value *value)
{
    r->text = *value;
    return value->type == DOCUMENT_OBJECT || wrong(r, "\"text\" must be an object");
}

static bool weights_read(const struct reading *r, const struct document_value *value,
                         double *weights)
{
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_ARRAY || document_count(value->document) != r->parts.part_count)
        return wrong(r, "\"weights\" of a text index are as many as its paths");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!document_to_double(&iter.value, &weights[count++]))
            return wrong(r, "a weight is not a number");
    return true;
}

/* Once the key is known. */
static bool text_settle(struct reading *r)
{
    struct index_text *text = ARENA_NEW(r->arena, struct index_text);
    double *weights = ARENA_ARRAY(r->arena, double, r->parts.part_count + 1);
    struct document_iter iter;
    bool weighed = false;

    if (r->text.type != DOCUMENT_OBJECT)
        return true;
    *text = (struct index_text){.weights = weights};
    document_iter_init(&iter, r->text.document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("language")) && iter.value.type == DOCUMENT_STRING) {
            text->language = search_language_code(iter.value.text);
        } else if (slice_equal(iter.key, SLICE("override")) && iter.value.type == DOCUMENT_STRING) {
            text->override = iter.value.text;
        } else if (slice_equal(iter.key, SLICE("weights"))) {
            weighed = true;
            if (!weights_read(r, &iter.value, weights))
                return false;
        } else if (slice_equal(iter.key, SLICE("all"))) {
            text->all = true;
            if (!document_to_double(&iter.value, &text->all_weight))
                return wrong(r, "a weight is not a number");
        } else {
            return unknown(r, iter.key);
        }
    }
    if (!text->language.data || !text->override.len || (r->parts.part_count && !weighed) ||
        (!r->parts.part_count && !text->all))
        return wrong(r, "a text index has a language, an override, and paths or all of them");
    r->parts.text = text;
    r->parts.kind = &index_kind_text;
    return true;
}

static bool placed_read(struct reading *r, const struct document_value *value)
{
    struct document_path *path = ARENA_NEW(r->arena, struct document_path);

    r->parts.placed = path;
    return path_read(r, value, DOCUMENT_PATH_KEY, path);
}

static bool source_read(struct reading *r, const struct document_value *value)
{
    return value->type == DOCUMENT_OBJECT || wrong(r, "\"source\" must be an object");
}

static bool unique_read(struct reading *r, const struct document_value *value)
{
    size_t scope;

    if (!word_read(r, value, scopes, ARRAY_LEN(scopes),
                   "\"unique\" must be \"logicalPartition\": values are not compared across them",
                   &scope))
        return false;
    r->parts.unique = INDEX_UNIQUE_LOGICAL;
    return true;
}

static bool expire_read(struct reading *r, const struct document_value *value)
{
    int64_t seconds;

    if (!document_to_int64(value, &seconds) || seconds < 0 || seconds > INT32_MAX)
        return wrong(r, "\"expireAfterSeconds\" must be a whole number from 0 to 2147483647");
    r->parts.expires = true;
    r->parts.expire_after_s = (int32_t)seconds;
    return true;
}

static bool state_read(struct reading *r, const struct document_value *value)
{
    static const char *const states[] = {"ready", "building", "failed"};
    size_t state = 0;

    if (!word_read(r, value, states, ARRAY_LEN(states), "\"state\" is none of an index", &state))
        return false;
    r->parts.state = (enum index_state)state;
    return true;
}

static bool failure_read(struct reading *r, const struct document_value *value)
{
    return value->type == DOCUMENT_OBJECT || wrong(r, "\"failure\" must be an object");
}

/* --- All of it ------------------------------------------------------------------------------- */

static const struct member {
    struct slice name;
    bool (*read)(struct reading *r, const struct document_value *value);
} members[] = {
    {SLICE("name"), name_read},           {SLICE("number"), number_read},
    {SLICE("format"), format_read},       {SLICE("key"), key_read},
    {SLICE("wildcard"), wildcard_read},   {SLICE("order"), order_read},
    {SLICE("collation"), collation_read}, {SLICE("multikey"), multikey_read},
    {SLICE("hidden"), hidden_read},       {SLICE("sparse"), sparse_read},
    {SLICE("unique"), unique_read},       {SLICE("expireAfterSeconds"), expire_read},
    {SLICE("filter"), filter_read},       {SLICE("state"), state_read},
    {SLICE("failure"), failure_read},     {SLICE("arrays"), arrays_read},
    {SLICE("text"), text_member_read},    {SLICE("source"), source_read},
    {SLICE("collator"), collator_read},   {SLICE("placed"), placed_read},
};

static const struct slice server_members[] = {SLICE("number"), SLICE("format"), SLICE("state"),
                                              SLICE("failure"), SLICE("collator")};

static bool names_check(const struct reading *r, struct slice object)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        size_t known = 0;

        while (known < ARRAY_LEN(members) && !slice_equal(iter.key, members[known].name))
            known++;
        if (known == ARRAY_LEN(members))
            return unknown(r, iter.key);
    }
    return true;
}

/* Members as they were given, numbers and format filled in. */
static void definition_show(struct slice object, const struct index_parts *parts, struct slice key,
                            struct buf *out)
{
    size_t begin = document_append_object_begin(out, key);

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        struct document_value value;

        if (slice_equal(members[i].name, SLICE("number")))
            document_append_int32(out, members[i].name, parts->number);
        else if (slice_equal(members[i].name, SLICE("format")))
            document_append_int32(out, members[i].name, INDEX_FORMAT_VERSION);
        else if (slice_equal(members[i].name, SLICE("state")))
            document_append_string(out, members[i].name,
                                   slice_of_text(index_state_name(parts->state)));
        else if (slice_equal(members[i].name, SLICE("collator"))) {
            if (parts->collator)
                document_append_string(out, members[i].name,
                                       parts->collator_version.len
                                           ? parts->collator_version
                                           : document_collator_version(parts->collator));
        } else if (document_find(object, members[i].name, &value))
            document_append(out, members[i].name, &value);
    }
    document_end(out, begin);
}

static bool parts_read(struct reading *r, struct slice object)
{
    if (!names_check(r, object))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        struct document_value value;

        if (document_find(object, members[i].name, &value) && !members[i].read(r, &value))
            return false;
    }
    if (r->text.type == DOCUMENT_OBJECT)
        return (!r->has_wildcard || wrong(r, "a text index has no \"wildcard\"")) && text_settle(r);
    return r->has_key != r->has_wildcard ||
           wrong(r, "an index has either a \"key\" or a \"wildcard\"");
}

bool index_definition_read(const struct document_value *value, uint8_t number, struct arena *arena,
                           struct slice key, struct buf *out,
                           const struct index_definition **ret_definition, struct error *err)
{
    struct reading r = {.arena = arena, .err = err, .parts = {.number = number}};
    struct slice object;

    if (value->type != DOCUMENT_OBJECT)
        return wrong(&r, "an index is not an object");
    object = arena_copy(arena, value->document);
    if (!parts_read(&r, object))
        return r.parts.name.len ? error_prefix(err, "index \"%.*s\"", SLICE_ARG(r.parts.name))
                                : false;
    if (!index_definition_build(&r.parts, arena, ret_definition, err))
        return false;
    definition_show(object, &r.parts, key, out);
    return true;
}

struct slice index_definition_words(struct slice object, const struct index_words *words,
                                    struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value collator;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        size_t known = 0;

        while (known < ARRAY_LEN(server_members) && !slice_equal(iter.key, server_members[known]))
            known++;
        if (known == ARRAY_LEN(server_members))
            document_append(&out, iter.key, &iter.value);
    }
    if (words) {
        document_append_int32(&out, SLICE("number"), words->number);
        document_append_string(&out, SLICE("state"), slice_of_text(index_state_name(words->state)));
        if (words->failure.data) {
            struct document_value failure = document_object(words->failure);

            document_append(&out, SLICE("failure"), &failure);
        }
        if (words->collator.data)
            document_append_string(&out, SLICE("collator"), words->collator);
        else if (document_find(object, SLICE("collator"), &collator))
            document_append(&out, SLICE("collator"), &collator);
    }
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}
