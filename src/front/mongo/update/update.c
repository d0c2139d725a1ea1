/* Applying an update to a document, and making the document of an upsert. */
#include "front/mongo/update/update.h"

#include "front/mongo/text.h"
#include "front/mongo/update/update_private.h"

static const struct slice id_name = {(const uint8_t *)"_id", 3};

static bool find_id(struct slice document, struct document_value *ret_id)
{
    return document_find(document, id_name, ret_id);
}

static struct slice id_text(struct slice document, struct arena *arena)
{
    struct document_value id = document_null();

    (void)find_id(document, &id);
    return mongo_text_element(id_name, &id, arena);
}

/* --- Checks of what came of it ---------------------------------------------------------------- */

static bool result_check(struct slice document, struct error *err)
{
    struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MONGO,
                                     .bytes_max = (size_t)2 * MONGO_DOCUMENT_BYTES_MAX};

    if (document.len > MONGO_DOCUMENT_BYTES_MAX)
        return mongo_error_set(err, 17419, "Resulting document after update is larger than %d",
                               MONGO_DOCUMENT_BYTES_MAX);
    return document_validate(document, &limits, err);
}

static bool id_is_allowed(const struct document_value *id, struct error *err)
{
    if (id->type == DOCUMENT_ARRAY || id->type == DOCUMENT_REGEX || id->type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, MONGO_INVALID_ID_FIELD, "The '_id' value cannot be of type %s",
                               mongo_type_name(id->type));
    return true;
}

/* --- Replacements ----------------------------------------------------------------------------- */

/* The replacement with the _id first: the one it has, or else this. */
static struct slice with_id(struct slice document, const struct document_value *id,
                            struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_iter iter;
    struct document_value own;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    if (find_id(document, &own))
        document_append(&buf, id_name, &own);
    else if (id)
        document_append(&buf, id_name, id);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, id_name))
            document_append(&buf, iter.key, &iter.value);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

static bool replacement_apply(struct slice replacement, const struct mongo_update_input *input,
                              struct arena *arena, struct slice *ret_document, struct error *err)
{
    struct document_value before, after;
    bool has_id = find_id(input->document, &before);

    if (has_id && find_id(replacement, &after)) {
        if (document_compare(DOCUMENT_ORDER_MONGO, &before, &after) != 0)
            return mongo_error_set(err, MONGO_IMMUTABLE_FIELD,
                                   "After applying the update, the (immutable) field '_id' was "
                                   "found to have been altered to _id: %.*s",
                                   SLICE_ARG(mongo_text_value(&after, arena)));
    }
    *ret_document = with_id(replacement, has_id ? &before : NULL, arena);
    return true;
}

/* --- Pipelines -------------------------------------------------------------------------------- */

static bool pipeline_apply(const struct mongo_update *update,
                           const struct mongo_update_input *input, struct arena *arena,
                           struct slice *ret_document, struct error *err)
{
    struct query_slot *slot = &input->context->slots[0], around = *slot;
    struct document_value after;
    bool made;

    *slot = (struct query_slot){.value = document_object(input->document)};
    made = query_evaluate(update->pipeline, input->context, &after, err);
    *slot = around;
    if (!made)
        return false;
    assert(after.type == DOCUMENT_OBJECT); /* of shapes and roots */
    return replacement_apply(after.document, input, arena, ret_document, err);
}

/* --- Modifiers -------------------------------------------------------------------------------- */

static bool id_check(struct slice before, struct slice after, struct error *err)
{
    struct document_value old, now;

    if (!find_id(before, &old))
        return true;
    if (find_id(after, &now) && document_compare(DOCUMENT_ORDER_MONGO, &old, &now) == 0)
        return true;
    return mongo_error_set(err, MONGO_IMMUTABLE_FIELD,
                           "Performing an update on the path '_id' would modify the immutable "
                           "field '_id'");
}

static bool modifiers_apply(const struct mongo_update *update,
                            const struct mongo_update_input *input, struct arena *arena,
                            struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf buf = {0};
    struct update_run run = {input, update->collator, arena, err, id_text(input->document, arena)};
    struct update_node *root = update_node_new(arena, SLICE(""), document_object(input->document));

    if (!update_modifiers_apply(&run, update, root))
        return false;
    buf_init(&buf, (size_t)2 * MONGO_DOCUMENT_BYTES_MAX);
    update_node_write(root, &buf);
    if (buf_overflowed(&buf))
        return mongo_error_set(err, 17419, "Resulting document after update is larger than %d",
                               MONGO_DOCUMENT_BYTES_MAX);
    *ret_document = arena_copy(arena, buf_slice(&buf));
    return id_check(input->document, *ret_document, err);
}

static bool apply(const struct mongo_update *update, const struct mongo_update_input *input,
                  struct arena *arena, struct slice *ret_document, struct error *err)
{
    if (update->pipeline)
        return pipeline_apply(update, input, arena, ret_document, err);
    return update->replacement
               ? replacement_apply(update->document, input, arena, ret_document, err)
               : modifiers_apply(update, input, arena, ret_document, err);
}

bool mongo_update_apply(const struct mongo_update *update, const struct mongo_update_input *input,
                        struct arena *arena, struct mongo_update_result *ret_result,
                        struct error *err)
{
    struct mongo_update_result result = {0};

    if (!apply(update, input, arena, &result.document, err))
        return false;
    result.changed = !slice_equal(result.document, input->document);
    if (!result.changed) {
        result.document = input->document;
    } else {
        if (!result_check(result.document, err))
            return false;
        if (!update->replacement)
            update_describe(input->document, result.document, arena, &result);
    }
    *ret_result = result;
    return true;
}

/* --- Upserts ---------------------------------------------------------------------------------- */

/* Sets what the filter says documents equal, as $set would; a replacement takes the _id alone. */
static bool equalities_set(const struct mongo_match *match, bool id_alone, struct update_run *run,
                           struct update_node *root)
{
    struct mongo_equality *equalities;
    size_t count;

    if (!mongo_match_equalities(match, run->arena, &equalities, &count, run->err))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct update_modifier modifier = {.op = UPDATE_SET, .value = equalities[i].value};
        struct mongo_update one = {.modifiers = &modifier, .count = 1};

        if (id_alone && !slice_equal(equalities[i].path, id_name))
            continue;
        if (!update_path_parse(equalities[i].path, NULL, 0, run->arena, &modifier.path, run->err))
            return false;
        if (!update_modifiers_apply(run, &one, root)) {
            if (mongo_error_code(run->err) == MONGO_CONFLICTING_UPDATE_OPERATORS)
                return mongo_error_set(run->err, MONGO_NOT_SINGLE_VALUE_FIELD,
                                       "cannot infer query fields to set, path '%.*s' is matched "
                                       "twice",
                                       SLICE_ARG(equalities[i].path));
            return false;
        }
    }
    return true;
}

static bool base_make(const struct mongo_match *match, bool id_alone,
                      const struct mongo_update_input *input, struct arena *arena,
                      struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf buf = {0};
    struct update_run run = {input, NULL, arena, err, SLICE("{}")};
    struct update_node *root =
        update_node_new(arena, SLICE(""), document_value_of_type(DOCUMENT_OBJECT));

    update_node_expand(root, arena);
    if (!equalities_set(match, id_alone, &run, root))
        return false;
    buf_init(&buf, BUF_DEFAULT_MAX);
    update_node_write(root, &buf);
    *ret_document = with_id(buf_slice(&buf), NULL, arena);
    return true;
}

bool mongo_update_upsert(const struct mongo_update *update, const struct mongo_match *match,
                         const struct mongo_update_input *input,
                         const struct document_value *new_id, struct arena *arena,
                         struct slice *ret_document, struct error *err)
{
    struct mongo_update_input from = *input;
    struct document_value id;
    struct slice document;

    from.inserting = true;
    from.position = -1;
    if (!base_make(match, update->replacement, &from, arena, &from.document, err) ||
        !apply(update, &from, arena, &document, err))
        return false;
    document = with_id(document, new_id, arena);
    if (!find_id(document, &id) || !id_is_allowed(&id, err) || !result_check(document, err))
        return false;
    *ret_document = document;
    return true;
}
