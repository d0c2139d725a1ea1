/* Definitions with other lines in their directory. */
#include "definition/definition_private.h"
#include "definition/strategy.h"

#include "document/bson.h"
#include "document/order.h"

/* The line an edit of the same key replaces is not written. */
static bool is_edited(const struct document_value *line,
                      const struct definition_directory_change *edits, size_t count)
{
    struct document_value key = document_undefined(), value = document_undefined();

    (void)document_find(line->document, SLICE("key"), &key);
    (void)document_find_index(key.document, 0, &value);
    if (value.type == DOCUMENT_OBJECT)
        value = document_undefined();
    for (size_t i = 0; i < count; i++)
        if (document_compare(DOCUMENT_ORDER_SQL, &value, &edits[i].value) == 0)
            return true;
    return false;
}

static void edited_write(struct slice directory, const struct definition_directory_change *edits,
                         size_t count, struct buf *out)
{
    size_t array = document_append_array_begin(out, SLICE("directory"));
    char index[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t at = 0;

    document_iter_init(&iter, directory);
    while (document_iter_next(&iter))
        if (!is_edited(&iter.value, edits, count))
            document_append(out, document_index_key(at++, index), &iter.value);
    for (size_t i = 0; i < count; i++) {
        size_t object, key;

        if (edits[i].removes)
            continue;
        object = document_append_object_begin(out, document_index_key(at++, index));
        key = document_append_array_begin(out, SLICE("key"));
        definition_component_write(out, SLICE("0"), &edits[i].value);
        document_end(out, key);
        document_append_int64(out, SLICE("shard"), edits[i].shard);
        document_end(out, object);
    }
    document_end(out, array);
}

static void strategy_edit(struct slice strategy, const struct definition_directory_change *edits,
                          size_t count, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("strategy"));
    struct document_iter iter;

    document_iter_init(&iter, strategy);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("directory")))
            edited_write(iter.value.document, edits, count, out);
        else
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
    }
    document_end(out, object);
}

/* What becomes of the strategy of a definition. */
struct rewriting {
    const struct definition_directory_change *edits;
    size_t count;
};

static void orrery_rewrite(struct slice orrery, const struct rewriting *rewriting, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("orrery"));
    struct document_iter iter;

    document_iter_init(&iter, orrery);
    while (document_iter_next(&iter)) {
        if (!slice_equal(iter.key, SLICE("strategy")))
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
        else
            strategy_edit(iter.value.document, rewriting->edits, rewriting->count, out);
    }
    document_end(out, object);
}

static bool definition_rewrite(const struct definition *before, const struct rewriting *rewriting,
                               struct definition **ret_definition, struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct document_iter iter;
    size_t begin;

    buf_init(&body, BUF_DEFAULT_MAX);
    begin = document_begin(&body);
    document_iter_init(&iter, definition_fields(before)->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("orrery")))
            orrery_rewrite(iter.value.document, rewriting, &body);
        else
            buf_append(&body, iter.element, (size_t)(iter.at - iter.element));
    }
    document_end(&body, begin);
    return definition_new(buf_slice(&body), NULL, ret_definition, err);
}

bool definition_directory_edit(const struct definition *before,
                               const struct definition_directory_change *edits, size_t count,
                               struct definition **ret_definition, struct error *err)
{
    const struct definition_fields *fields = definition_fields(before);

    if (fields->key.strategy != PARTITION_STRATEGY_LOOKUP)
        return error_set(err, ERROR_BAD_REQUEST,
                         "container \"%.*s\" has no directory: its strategy is not lookup",
                         SLICE_ARG(fields->id));
    return definition_rewrite(before, &(struct rewriting){.edits = edits, .count = count},
                              ret_definition, err);
}
