/* From values to keys, and what an item must say about its own. */
#include "partition/synthetic.h"

#include "document/bson.h"
#include "document/order.h"
#include "partition/former.h"

static bool values_equal(const struct document_value *a, const struct document_value *b)
{
    return document_compare(DOCUMENT_ORDER_SQL, a, b) == 0;
}

static bool mismatch(struct error *err)
{
    return error_set(err, ERROR_KEY_MISMATCH,
                     "PartitionKey extracted from document doesn't match the one specified in the "
                     "header. An item gets another key value by move-item "
                     "(/_orrery/containers/DB/COLL/move-item), a container another key by "
                     "`orrery rekey`.");
}

/* The text of a base, as it stands in open keys. */
static bool base_text(const struct partition_synthetic *synthetic,
                      const struct document_value *base, struct arena *arena,
                      struct document_value *ret_text, struct error *err)
{
    struct document_value suffixed;
    struct slice text;
    uint32_t number;

    if (!partition_synthetic_suffixed(synthetic, base, 1, arena, &suffixed, err))
        return false;
    if (suffixed.type != DOCUMENT_STRING) {
        *ret_text = suffixed;
        return true;
    }
    (void)partition_synthetic_split(synthetic, suffixed.text, &text, &number);
    *ret_text = document_string(text);
    return true;
}

/* --- What a request names -------------------------------------------------------------------- */

/* The made component as it was given: whole, or less. */
static bool target_take(const struct partition_synthetic *synthetic,
                        const struct document_value *value, enum partition_key_need need,
                        struct arena *arena, struct partition_key *key, struct error *err)
{
    struct document_value *component = &key->components[synthetic->target];
    struct slice base;
    uint32_t number;

    *component = *value;
    if (value->type == DOCUMENT_UNDEFINED) {
        key->open = need == PARTITION_KEY_WHOLE;
        return true;
    }
    if (!synthetic->suffixes || (value->type == DOCUMENT_STRING &&
                                 partition_synthetic_split(synthetic, value->text, &base, &number)))
        return true;
    key->open = true;
    return base_text(synthetic, value, arena, component, err);
}

bool partition_synthetic_take(const struct partition_definition *definition,
                              const struct document_value *values, size_t count,
                              enum partition_key_need need, struct arena *arena,
                              struct partition_key *ret_key, struct error *err)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    size_t expected = definition->path_count, spread = expected - 1 + synthetic->source_count;
    bool sources = count == spread && spread != expected;
    struct partition_key key = {.count = (uint8_t)(sources ? expected : count)};
    size_t from = 0;

    assert(synthetic->target < expected);
    if (!sources && (count > expected || (count < expected && need == PARTITION_KEY_WHOLE)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "Number of components in partition key value (%zu) does not match "
                         "definition (%zu, or %zu with the sources of the synthetic one)",
                         count, expected, spread);
    key.partial = key.count < expected;
    for (size_t i = 0; i < key.count; i++) {
        if (i != synthetic->target)
            key.components[i] = values[from++];
        else if (sources) {
            if (!partition_synthetic_compute(synthetic, &values[from], 0, arena, &key.components[i],
                                             err))
                return false;
            from += synthetic->source_count;
        } else if (!target_take(synthetic, &values[from++], need, arena, &key, err))
            return false;
    }
    *ret_key = key;
    return true;
}

bool partition_key_unnamed(const struct partition_definition *definition,
                           struct partition_key *ret_key)
{
    if (!definition->synthetic || definition->path_count != 1)
        return false;
    *ret_key = (struct partition_key){.count = 1, .open = true};
    ret_key->components[0] = document_undefined();
    return true;
}

bool partition_key_closes(const struct partition_definition *definition,
                          const struct partition_key *key, const struct partition_key *open)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    const struct document_value *made = &key->components[synthetic->target];
    const struct document_value *wanted = &open->components[synthetic->target];
    struct slice base;
    uint32_t number;

    for (size_t i = 0; i < definition->path_count; i++)
        if (i != synthetic->target && !values_equal(&key->components[i], &open->components[i]))
            return false;
    if (wanted->type == DOCUMENT_UNDEFINED)
        return true;
    return made->type == DOCUMENT_STRING &&
           partition_synthetic_split(synthetic, made->text, &base, &number) &&
           slice_equal(base, wanted->text);
}

bool partition_synthetic_keys(const struct partition_definition *definition,
                              const struct partition_key *open, struct arena *arena,
                              struct partition_key **ret_keys, size_t *ret_count, struct error *err)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    const struct document_value *base = &open->components[synthetic->target];
    struct partition_key *keys = ARENA_ARRAY(arena, struct partition_key, synthetic->suffixes);

    assert(base->type == DOCUMENT_STRING && synthetic->suffixes);
    for (uint32_t i = 0; i < synthetic->suffixes; i++) {
        keys[i] = *open;
        keys[i].open = false;
        if (!partition_synthetic_suffixed(synthetic, base, i + 1, arena,
                                          &keys[i].components[synthetic->target], err))
            return false;
    }
    *ret_keys = keys;
    *ret_count = synthetic->suffixes;
    return true;
}

/* --- What an item says ------------------------------------------------------------------------ */

static struct slice quotable(const struct document_value *value)
{
    struct slice text = value->type == DOCUMENT_STRING ? value->text : SLICE("(no text)");

    return slice_first(text, MIN(text.len, (size_t)60));
}

static bool contradicted(const struct partition_definition *definition,
                         const struct document_value *made, const struct document_value *said,
                         struct error *err)
{
    struct slice target = definition->texts[definition->synthetic->target];

    return error_set(err, ERROR_BAD_REQUEST,
                     "\"%.*s\" is made by the server: it would be \"%.*s\"%s, but the item says "
                     "\"%.*s\"",
                     (int)MIN(target.len, (size_t)60), (const char *)target.data,
                     SLICE_ARG(quotable(made)),
                     definition->synthetic->kind == PARTITION_RANDOM_SUFFIX ? " or the like" : "",
                     SLICE_ARG(quotable(said)));
}

/* Sets the made component of a key from the sources; *said is what the item has there. */
static bool component_make(const struct partition_definition *definition,
                           const struct document_value *sources, const struct document_value *said,
                           struct arena *arena, struct partition_key *key, struct error *err)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    struct document_value *made = &key->components[synthetic->target], example;

    if (synthetic->kind != PARTITION_RANDOM_SUFFIX) {
        if (!partition_synthetic_compute(synthetic, sources, 0, arena, made, err))
            return false;
        return said->type == DOCUMENT_UNDEFINED || values_equal(made, said) ||
               contradicted(definition, made, said, err);
    }
    if (!base_text(synthetic, &sources[0], arena, made, err))
        return false;
    if (made->type == DOCUMENT_UNDEFINED)
        return said->type == DOCUMENT_UNDEFINED || contradicted(definition, made, said, err);
    key->open = true;
    if (said->type == DOCUMENT_UNDEFINED)
        return true;
    if (said->type == DOCUMENT_STRING) {
        struct slice base;
        uint32_t number;

        if (partition_synthetic_split(synthetic, said->text, &base, &number) &&
            slice_equal(base, made->text)) {
            *made = *said;
            key->open = false;
            return true;
        }
    }
    return partition_synthetic_suffixed(synthetic, &sources[0], 1, arena, &example, err) &&
           contradicted(definition, &example, said, err);
}

/* What the request named, against what the item is. */
static bool named_check(const struct partition_definition *definition,
                        const struct partition_key *named, struct partition_key *key,
                        struct error *err)
{
    if (!definition->synthetic || (!named->open && !key->open))
        return partition_key_equal(named, key) || mismatch(err);
    if (!named->open) { /* the request has the suffix, the item not */
        if (!partition_key_closes(definition, named, key))
            return mismatch(err);
        *key = *named;
        return true;
    }
    if (!key->open)
        return partition_key_closes(definition, key, named) || mismatch(err);
    for (size_t i = 0; i < definition->path_count; i++)
        if (!(i == definition->synthetic->target &&
              named->components[i].type == DOCUMENT_UNDEFINED) &&
            !values_equal(&named->components[i], &key->components[i]))
            return mismatch(err);
    return true;
}

bool partition_key_derive(const struct partition_definition *definition, struct slice document,
                          const struct partition_key *named, struct arena *arena,
                          struct partition_key *ret_key, struct error *err)
{
    struct partition_key key = partition_key_extract(definition, document);
    struct error why;

    if (definition->synthetic) {
        const struct document_path *target = &definition->paths[definition->synthetic->target];
        struct document_value sources[PARTITION_SOURCES_MAX], said = document_undefined();

        (void)document_path_find(target, document, &said);
        partition_synthetic_sources(definition->synthetic, document, sources);
        if (!component_make(definition, sources, &said, arena, &key, err))
            return false;
    }
    if (named && (named->former_only || !named_check(definition, named, &key, &why))) {
        /* By somebody who knows the definition before? */
        if (!named->former ||
            !partition_former_fits(definition->formerly, document, named->former, arena))
            return mismatch(err);
        key.former = named->former;
    }
    *ret_key = key;
    return true;
}

/* --- Filling in ------------------------------------------------------------------------------ */

static bool sources_check(const struct partition_synthetic *synthetic, struct slice before,
                          struct slice document, struct error *err)
{
    struct document_value old[PARTITION_SOURCES_MAX], new[PARTITION_SOURCES_MAX];

    partition_synthetic_sources(synthetic, before, old);
    partition_synthetic_sources(synthetic, document, new);
    for (size_t i = 0; i < synthetic->source_count; i++)
        if (!values_equal(&old[i], &new[i]))
            return error_set(
                err, ERROR_KEY_MISMATCH,
                "\"%.*s\" is part of the partition key and cannot be changed by writing "
                "the item; move-item (/_orrery/containers/DB/COLL/move-item) does",
                (int)MIN(synthetic->texts[i].len, (size_t)80),
                (const char *)synthetic->texts[i].data);
    return true;
}

/* The value and the objects around it. */
static void value_append(const struct document_path *path, size_t step,
                         const struct document_value *value, struct buf *out)
{
    struct slice name = path->segments[step].name;
    size_t object;

    assert(step < path->count);
    if (step + 1 == path->count) {
        document_append(out, name, value);
        return;
    }
    object = document_append_object_begin(out, name);
    value_append(path, step + 1, value, out);
    document_end(out, object);
}

/* Copies a document, with the value at the path, where there is none. False: what is on the way is
 * no object. */
static bool value_put(struct slice document, const struct document_path *path, size_t step,
                      const struct document_value *value, struct buf *out)
{
    struct slice name = path->segments[step].name;
    struct document_iter iter;
    bool met = false;

    assert(step < path->count);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        size_t object;

        if (step + 1 == path->count || !slice_equal(iter.key, name)) {
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
            continue;
        }
        if (iter.value.type != DOCUMENT_OBJECT)
            return false;
        met = true;
        object = document_append_object_begin(out, name);
        if (!value_put(iter.value.document, path, step + 1, value, out))
            return false;
        document_end(out, object);
    }
    if (!met)
        value_append(path, step, value, out);
    return true;
}

bool partition_synthetic_fill(const struct partition_definition *definition,
                              const struct partition_key *key, struct slice before,
                              struct slice document, struct arena *arena,
                              struct slice *ret_document, struct error *err)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    const struct document_path *target = &definition->paths[synthetic->target];
    const struct document_value *made = &key->components[synthetic->target];
    CLEANUP(buf_done) struct buf filled;
    struct document_value said;
    struct partition_key own;
    size_t begin;

    buf_init(&filled, BUF_DEFAULT_MAX);
    if ((before.data && !sources_check(synthetic, before, document, err)) ||
        !partition_key_derive(definition, document, key, arena, &own, err))
        return false;
    *ret_document = document;
    if (made->type == DOCUMENT_UNDEFINED || document_path_find(target, document, &said))
        return true;
    begin = document_begin(&filled);
    if (!value_put(document, target, 0, made, &filled))
        return error_set(err, ERROR_BAD_REQUEST,
                         "there is no room for the partition key \"%.*s\": what is to hold it is "
                         "no object",
                         (int)MIN(definition->texts[synthetic->target].len, (size_t)80),
                         (const char *)definition->texts[synthetic->target].data);
    document_end(&filled, begin);
    if (buf_overflowed(&filled))
        return error_set(err, ERROR_TOO_LARGE, "the item is too large to be given its key");
    *ret_document = arena_copy(arena, buf_slice(&filled));
    return true;
}
