/* The definition and the values. A separator of suffixes holds no digit, so that a key divides into
 * base and number in one way: what is behind the last separator is the number.
 *
 * A concatenation that escapes divides in one way too. No source but the first has a character of
 * the separator in it, and escapes are made of none: so the separators are the last ones of the
 * text. Escaping the first source as well would change the most common keys for nothing, and
 * escaping all but the last one, with a backslash, those of the service's own example. */
#include "partition/synthetic.h"

#include "document/json.h"
#include "document/order.h"
#include "partition/murmur.h"

#include <math.h>

static const char *const kind_names[] = {
    [PARTITION_CONCATENATION] = "concatenation",
    [PARTITION_RANDOM_SUFFIX] = "randomSuffix",
    [PARTITION_COMPUTED_SUFFIX] = "computedSuffix",
};

static const char *const missing_names[] = {
    [PARTITION_MISSING_REFUSE] = "refuse",
    [PARTITION_MISSING_UNDEFINED] = "undefined",
    [PARTITION_MISSING_EMPTY] = "empty",
};

const char *partition_synthetic_kind_name(enum partition_synthetic_kind kind)
{
    assert(kind < ARRAY_LEN(kind_names));
    return kind_names[kind];
}

/* --- Reading a definition -------------------------------------------------------------------- */

static bool bad(struct error *err, const char *why)
{
    return error_set(err, ERROR_BAD_REQUEST, "synthetic key: %s", why);
}

static const char *shown(struct arena *arena, struct slice text)
{
    return arena_text(arena, slice_first(text, MIN(text.len, (size_t)80)));
}

static bool name_find(const char *const *names, size_t count, struct slice text, int *ret_value)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(text, slice_of_text(names[i]))) {
            *ret_value = (int)i;
            return true;
        }
    return false;
}

static bool path_begins(const struct document_path *path, const struct document_path *with)
{
    if (path->count < with->count)
        return false;
    for (size_t i = 0; i < with->count; i++)
        if (!slice_equal(path->segments[i].name, with->segments[i].name))
            return false;
    return true;
}

static bool path_equal(const struct document_path *a, const struct document_path *b)
{
    return a->count == b->count && path_begins(a, b);
}

static bool path_read(const struct document_value *value, const char *what, struct arena *arena,
                      struct document_path *ret_path, struct error *err)
{
    struct error why;

    if (value->type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "synthetic key: %s must be a path", what);
    if (!document_path_parse(value->text, DOCUMENT_PATH_KEY, arena, ret_path, &why))
        return error_set(err, ERROR_BAD_REQUEST, "synthetic key: %s: %s", what, why.message);
    return true;
}

static bool target_read(struct slice object, const struct partition_definition *definition,
                        struct arena *arena, struct partition_synthetic *synthetic,
                        struct error *err)
{
    struct document_value value = document_undefined();
    struct document_path path;

    (void)document_find(object, SLICE("target"), &value);
    if (!path_read(&value, "target", arena, &path, err))
        return false;
    if (definition->system_key)
        return bad(err, "the container has no partition key that could be made");
    for (uint8_t i = 0; i < definition->path_count; i++)
        if (path_equal(&path, &definition->paths[i])) {
            synthetic->target = i;
            return true;
        }
    return error_set(
        err, ERROR_BAD_REQUEST,
        "synthetic key: the target \"%s\" is not a partition key path of the container",
        shown(arena, value.text));
}

static bool source_add(struct partition_synthetic *synthetic,
                       const struct partition_definition *definition,
                       const struct document_value *value, struct arena *arena, struct error *err)
{
    const struct document_path *target = &definition->paths[synthetic->target];
    size_t at = synthetic->source_count;
    struct document_path path;

    if (at == PARTITION_SOURCES_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "synthetic key: there are more than %d sources",
                         PARTITION_SOURCES_MAX);
    if (!path_read(value, "a source", arena, &path, err))
        return false;
    if (path_begins(target, &path) || path_begins(&path, target))
        return error_set(
            err, ERROR_BAD_REQUEST,
            "synthetic key: the source \"%s\" is, holds or is part of the target, which "
            "would be made of itself",
            shown(arena, value->text));
    for (size_t i = 0; i < at; i++)
        if (path_begins(&synthetic->sources[i], &path) ||
            path_begins(&path, &synthetic->sources[i]))
            return error_set(
                err, ERROR_BAD_REQUEST,
                "synthetic key: the source \"%s\" is given twice, or is part of another",
                shown(arena, value->text));
    synthetic->sources[at] = path;
    synthetic->texts[at] = arena_copy(arena, value->text);
    synthetic->source_count++;
    return true;
}

static bool source_member(struct partition_synthetic *synthetic,
                          const struct partition_definition *definition, struct slice object,
                          const char *name, struct arena *arena, struct error *err)
{
    struct document_value value;

    if (!document_find(object, slice_of_text(name), &value))
        return error_set(err, ERROR_BAD_REQUEST, "synthetic key: a %s needs \"%s\"",
                         kind_names[synthetic->kind], name);
    return source_add(synthetic, definition, &value, arena, err);
}

static bool suffixes_read(struct partition_synthetic *synthetic, struct slice object,
                          struct error *err)
{
    struct document_value value;
    int64_t number = 0;

    if (!document_find(object, SLICE("suffixes"), &value) || !document_to_int64(&value, &number) ||
        number < PARTITION_SUFFIXES_MIN || number > PARTITION_SUFFIXES_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "synthetic key: \"suffixes\" must be a whole number from %d to %d",
                         PARTITION_SUFFIXES_MIN, PARTITION_SUFFIXES_MAX);
    synthetic->suffixes = (uint32_t)number;
    return true;
}

static bool sources_read(struct partition_synthetic *synthetic,
                         const struct partition_definition *definition, struct slice object,
                         struct arena *arena, struct error *err)
{
    struct document_value value;
    struct document_iter iter;

    if (synthetic->kind != PARTITION_CONCATENATION)
        return source_member(synthetic, definition, object, "base", arena, err) &&
               (synthetic->kind == PARTITION_RANDOM_SUFFIX ||
                source_member(synthetic, definition, object, "hashed", arena, err)) &&
               suffixes_read(synthetic, object, err);
    if (!document_find(object, SLICE("sources"), &value) || value.type != DOCUMENT_ARRAY)
        return bad(err, "a concatenation needs \"sources\", an array of paths");
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter))
        if (!source_add(synthetic, definition, &iter.value, arena, err))
            return false;
    return synthetic->source_count >= 2 || bad(err, "a concatenation needs two sources or more");
}

static bool separator_read(struct partition_synthetic *synthetic, struct slice object,
                           struct arena *arena, struct error *err)
{
    bool suffix = synthetic->kind != PARTITION_CONCATENATION;
    struct document_value value = document_string(suffix ? SLICE(".") : SLICE("-"));

    (void)document_find(object, SLICE("separator"), &value);
    if (value.type != DOCUMENT_STRING || value.text.len > PARTITION_SEPARATOR_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "synthetic key: the separator must be a text of at most %d bytes",
                         PARTITION_SEPARATOR_MAX);
    for (size_t i = 0; suffix && i < value.text.len; i++)
        if (value.text.data[i] >= '0' && value.text.data[i] <= '9')
            return bad(err, "the separator before a suffix must not hold digits");
    if (suffix && value.text.len == 0)
        return bad(err, "the separator before a suffix must not be empty");
    synthetic->separator = arena_copy(arena, value.text);
    return true;
}

/* What escapes are made of: a separator of these could be one. */
static bool is_in_escapes(uint8_t c)
{
    return c == '%' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
}

static bool escape_read(struct partition_synthetic *synthetic, struct slice object, bool escapes,
                        struct error *err)
{
    struct document_value value = document_bool(escapes);

    if (synthetic->kind != PARTITION_CONCATENATION)
        return true;
    (void)document_find(object, SLICE("escape"), &value);
    if (value.type != DOCUMENT_BOOL)
        return bad(err, "\"escape\" must be true or false");
    synthetic->escapes = value.boolean;
    if (!synthetic->escapes)
        return true;
    if (synthetic->separator.len == 0)
        return bad(err, "an empty separator cannot be escaped, and different values would make one "
                        "key: choose another, or say \"escape\": false");
    for (size_t i = 0; i < synthetic->separator.len; i++)
        if (is_in_escapes(synthetic->separator.data[i]))
            return bad(err, "a separator with a percent sign, a digit or a letter from A to F "
                            "cannot be escaped: choose another, or say \"escape\": false");
    return true;
}

static bool missing_read(struct partition_synthetic *synthetic, struct slice object,
                         struct error *err)
{
    struct document_value value;
    int missing = PARTITION_MISSING_REFUSE;

    if (document_find(object, SLICE("missing"), &value) &&
        (value.type != DOCUMENT_STRING ||
         !name_find(missing_names, ARRAY_LEN(missing_names), value.text, &missing)))
        return bad(err, "\"missing\" must be \"refuse\", \"undefined\" or \"empty\"");
    synthetic->missing = (enum partition_missing)missing;
    return true;
}

/* A member of another kind would be a promise nobody keeps. */
static bool members_check(struct slice object, enum partition_synthetic_kind kind,
                          struct arena *arena, struct error *err)
{
    static const struct {
        const char *name;
        unsigned kinds;
    } members[] = {
        {"kind", 7},
        {"target", 7},
        {"separator", 7},
        {"missing", 7},
        {"sources", 1U << PARTITION_CONCATENATION},
        {"escape", 1U << PARTITION_CONCATENATION},
        {"base", 1U << PARTITION_RANDOM_SUFFIX | 1U << PARTITION_COMPUTED_SUFFIX},
        {"suffixes", 1U << PARTITION_RANDOM_SUFFIX | 1U << PARTITION_COMPUTED_SUFFIX},
        {"hashed", 1U << PARTITION_COMPUTED_SUFFIX},
    };
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(members); i++)
            known |= slice_equal(iter.key, slice_of_text(members[i].name)) &&
                     members[i].kinds >> kind & 1;
        if (!known)
            return error_set(err, ERROR_BAD_REQUEST, "synthetic key: a %s has no member \"%s\"",
                             kind_names[kind], shown(arena, iter.key));
    }
    return true;
}

bool partition_synthetic_read(struct slice object, const struct partition_definition *definition,
                              bool escapes, struct arena *arena,
                              const struct partition_synthetic **ret_synthetic, struct error *err)
{
    struct partition_synthetic *synthetic = ARENA_NEW(arena, struct partition_synthetic);
    struct document_value value;
    int kind;

    if (!document_find(object, SLICE("kind"), &value) || value.type != DOCUMENT_STRING ||
        !name_find(kind_names, ARRAY_LEN(kind_names), value.text, &kind))
        return bad(err,
                   "\"kind\" must be \"concatenation\", \"randomSuffix\" or \"computedSuffix\"");
    synthetic->kind = (enum partition_synthetic_kind)kind;
    if (!members_check(object, synthetic->kind, arena, err) ||
        !target_read(object, definition, arena, synthetic, err) ||
        !sources_read(synthetic, definition, object, arena, err) ||
        !separator_read(synthetic, object, arena, err) ||
        !escape_read(synthetic, object, escapes, err) || !missing_read(synthetic, object, err))
        return false;
    *ret_synthetic = synthetic;
    return true;
}

void partition_synthetic_append(const struct partition_synthetic *synthetic,
                                const struct partition_definition *definition, struct slice key,
                                struct buf *buf)
{
    size_t object = document_append_object_begin(buf, key), array;
    char index[DOCUMENT_INDEX_SIZE];

    document_append_string(buf, SLICE("kind"), slice_of_text(kind_names[synthetic->kind]));
    document_append_string(buf, SLICE("target"), definition->texts[synthetic->target]);
    if (synthetic->kind == PARTITION_CONCATENATION) {
        array = document_append_array_begin(buf, SLICE("sources"));
        for (uint32_t i = 0; i < synthetic->source_count; i++)
            document_append_string(buf, document_index_key(i, index), synthetic->texts[i]);
        document_end(buf, array);
    } else {
        document_append_string(buf, SLICE("base"), synthetic->texts[0]);
        if (synthetic->kind == PARTITION_COMPUTED_SUFFIX)
            document_append_string(buf, SLICE("hashed"), synthetic->texts[1]);
        document_append_int32(buf, SLICE("suffixes"), (int32_t)synthetic->suffixes);
    }
    document_append_string(buf, SLICE("separator"), synthetic->separator);
    if (synthetic->kind == PARTITION_CONCATENATION)
        document_append_bool(buf, SLICE("escape"), synthetic->escapes);
    document_append_string(buf, SLICE("missing"), slice_of_text(missing_names[synthetic->missing]));
    document_end(buf, object);
}

struct slice partition_synthetic_fresh(struct slice object, struct arena *arena)
{
    CLEANUP(buf_done) struct buf fresh;
    struct document_value kind, said;
    struct document_iter iter;
    size_t begin;

    buf_init(&fresh, BUF_DEFAULT_MAX);
    if (!document_find(object, SLICE("kind"), &kind) || kind.type != DOCUMENT_STRING ||
        !slice_equal(kind.text, slice_of_text(kind_names[PARTITION_CONCATENATION])) ||
        document_find(object, SLICE("escape"), &said))
        return object;
    begin = document_begin(&fresh);
    document_iter_init(&iter, object);
    while (document_iter_next(&iter))
        buf_append(&fresh, iter.element, (size_t)(iter.at - iter.element));
    document_append_bool(&fresh, SLICE("escape"), true);
    document_end(&fresh, begin);
    return arena_copy(arena, buf_slice(&fresh));
}

/* It is not if the separator is in it as often as it was put there. */
bool partition_synthetic_is_ambiguous(const struct partition_synthetic *synthetic,
                                      struct slice text)
{
    struct slice separator = synthetic->separator;
    size_t count = 0;

    if (synthetic->kind != PARTITION_CONCATENATION || synthetic->escapes)
        return false;
    if (separator.len == 0)
        return true;
    for (size_t i = 0; i + separator.len <= text.len; i++)
        count += memcmp(text.data + i, separator.data, separator.len) == 0;
    return count + 1 != synthetic->source_count;
}

bool partition_synthetic_equal(const struct partition_synthetic *a,
                               const struct partition_synthetic *b)
{
    if (a->kind != b->kind || a->missing != b->missing || a->target != b->target ||
        a->source_count != b->source_count || a->suffixes != b->suffixes ||
        a->escapes != b->escapes || !slice_equal(a->separator, b->separator))
        return false;
    for (size_t i = 0; i < a->source_count; i++)
        if (!path_equal(&a->sources[i], &b->sources[i]))
            return false;
    return true;
}

/* --- Values ---------------------------------------------------------------------------------- */

void partition_synthetic_sources(const struct partition_synthetic *synthetic, struct slice document,
                                 struct document_value ret_values[PARTITION_SOURCES_MAX])
{
    for (size_t i = 0; i < synthetic->source_count; i++)
        if (!document_path_find(&synthetic->sources[i], document, &ret_values[i]))
            ret_values[i] = document_undefined();
}

/* Whole numbers of all types in one form, so that what compares equal is one text. */
static bool number_append(const struct document_value *value, struct buf *text)
{
    int64_t whole;

    if (document_to_int64(value, &whole)) {
        buf_printf(text, "%lld", (long long)whole);
        return true;
    }
    if (value->type != DOCUMENT_DOUBLE || !isfinite(value->number))
        return false; /* a decimal fraction has no equal double */
    document_json_write_value(value, text);
    return true;
}

static bool scalar_append(const struct document_value *value, struct buf *text)
{
    switch (value->type) {
    case DOCUMENT_STRING:
        buf_append_slice(text, value->text);
        return true;
    case DOCUMENT_BOOL:
        buf_append_slice(text, value->boolean ? SLICE("true") : SLICE("false"));
        return true;
    case DOCUMENT_NULL:
        BUF_APPEND(text, "null");
        return true;
    default:
        return document_is_number(value) && number_append(value, text);
    }
}

/* *missing: it is, and the key is therefore undefined. */
static bool source_append(const struct partition_synthetic *synthetic, size_t source,
                          const struct document_value *value, struct buf *text, bool *missing,
                          struct error *err)
{
    struct slice name = synthetic->texts[source];

    assert(source < synthetic->source_count);
    if (value->type == DOCUMENT_UNDEFINED) {
        if (synthetic->missing == PARTITION_MISSING_REFUSE)
            return error_set(err, ERROR_BAD_REQUEST,
                             "the partition key is made of \"%.*s\", which is missing",
                             (int)MIN(name.len, (size_t)80), (const char *)name.data);
        *missing = *missing || synthetic->missing == PARTITION_MISSING_UNDEFINED;
        return true;
    }
    return scalar_append(value, text) ||
           error_set(err, ERROR_BAD_REQUEST,
                     "the partition key is made of \"%.*s\", which must be a string, a number, a "
                     "boolean or null",
                     (int)MIN(name.len, (size_t)80), (const char *)name.data);
}

static struct document_value text_value(struct buf *text, bool missing, struct arena *arena)
{
    return missing ? document_undefined() : document_string(arena_copy(arena, buf_slice(text)));
}

bool partition_synthetic_suffixed(const struct partition_synthetic *synthetic,
                                  const struct document_value *base, uint32_t number,
                                  struct arena *arena, struct document_value *ret_value,
                                  struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    bool missing = false;

    assert(number >= 1 && number <= synthetic->suffixes);
    buf_init(&text, BUF_DEFAULT_MAX);
    if (!source_append(synthetic, 0, base, &text, &missing, err))
        return false;
    buf_append_slice(&text, synthetic->separator);
    buf_append_uint64(&text, number);
    *ret_value = text_value(&text, missing, arena);
    return true;
}

bool partition_synthetic_number(const struct partition_synthetic *synthetic,
                                const struct document_value *hashed, uint32_t *ret_number,
                                struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    bool missing = false;

    assert(synthetic->kind == PARTITION_COMPUTED_SUFFIX && synthetic->suffixes > 0);
    buf_init(&text, BUF_DEFAULT_MAX);
    if (!source_append(synthetic, 1, hashed, &text, &missing, err))
        return false;
    *ret_number = murmur_32(buf_slice(&text), 0) % synthetic->suffixes + 1;
    return true;
}

static size_t character_length(struct slice text)
{
    size_t length = 1;

    while (length < text.len && (text.data[length] & 0xC0) == 0x80)
        length++;
    return length;
}

static void escaped_append(struct slice separator, struct slice text, struct buf *out)
{
    while (text.len) {
        struct slice character = slice_first(text, character_length(text));

        if (character.data[0] == '%' ||
            memmem(separator.data, separator.len, character.data, character.len))
            for (size_t i = 0; i < character.len; i++)
                buf_printf(out, "%%%02X", character.data[i]);
        else
            buf_append_slice(out, character);
        text = slice_skip(text, character.len);
    }
}

static bool concatenate(const struct partition_synthetic *synthetic,
                        const struct document_value *values, struct arena *arena,
                        struct document_value *ret_value, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    CLEANUP(buf_done) struct buf source;
    bool missing = false;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&source, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < synthetic->source_count; i++) {
        if (i)
            buf_append_slice(&text, synthetic->separator);
        if (!i || !synthetic->escapes) {
            if (!source_append(synthetic, i, &values[i], &text, &missing, err))
                return false;
            continue;
        }
        buf_clear(&source);
        if (!source_append(synthetic, i, &values[i], &source, &missing, err))
            return false;
        escaped_append(synthetic->separator, buf_slice(&source), &text);
    }
    *ret_value = text_value(&text, missing, arena);
    return true;
}

bool partition_synthetic_compute(const struct partition_synthetic *synthetic,
                                 const struct document_value *values, uint32_t number,
                                 struct arena *arena, struct document_value *ret_value,
                                 struct error *err)
{
    if (synthetic->kind == PARTITION_CONCATENATION)
        return concatenate(synthetic, values, arena, ret_value, err);
    if (synthetic->kind == PARTITION_COMPUTED_SUFFIX) {
        if (!partition_synthetic_number(synthetic, &values[1], &number, err))
            return false;
        if (values[1].type == DOCUMENT_UNDEFINED &&
            synthetic->missing == PARTITION_MISSING_UNDEFINED) {
            *ret_value = document_undefined();
            return true;
        }
    }
    return partition_synthetic_suffixed(synthetic, &values[0], number, arena, ret_value, err);
}

bool partition_synthetic_split(const struct partition_synthetic *synthetic, struct slice text,
                               struct slice *ret_base, uint32_t *ret_number)
{
    struct slice separator = synthetic->separator;
    size_t digits = 0, at;
    uint64_t number;

    while (digits < text.len && text.data[text.len - 1 - digits] >= '0' &&
           text.data[text.len - 1 - digits] <= '9')
        digits++;
    at = text.len - digits;
    if (digits == 0 || digits > 4 || text.data[at] == '0' || at < separator.len ||
        !slice_equal(slice_of(text.data + at - separator.len, separator.len), separator) ||
        !slice_to_uint64(slice_skip(text, at), &number) || number > synthetic->suffixes)
        return false;
    *ret_base = slice_first(text, at - separator.len);
    *ret_number = (uint32_t)number;
    return true;
}
