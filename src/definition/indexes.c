/* `orrery.indexes`: the indexes of a container besides its policy, each in the words of
 * index/definition_read.c.
 *
 * Number, state and failure of an index are the server's to say. At a create they are taken out
 * first (definition_fresh): the container is empty, so every index is ready. At a replace an index
 * of the same name and the same entries keeps what the definition before says of it, and any other
 * is new: it gets a number that no stored entry has, and is built. A definition that was stored
 * says them by itself. */
#include "definition/definition_private.h"

#include "document/bson.h"

struct reading {
    struct definition_fields *fields;
    const struct definition_fields *before;
    struct arena *arena;
    bool taken[INDEX_NUMBERS];
    const struct index_definition **indexes;
    size_t count;
};

static bool indexes_find(struct slice document, struct slice *ret_array)
{
    struct document_value orrery, value;

    if (!document_find(document, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT ||
        !document_find(orrery.document, SLICE("indexes"), &value) || value.type != DOCUMENT_ARRAY)
        return false;
    *ret_array = value.document;
    return true;
}

struct slice definition_indexes_array(const struct definition_fields *fields)
{
    struct slice array = SLICE_NONE;

    (void)indexes_find(fields->document, &array);
    return array;
}

const struct index_definition *definition_index(const struct definition_fields *fields,
                                                struct slice name)
{
    for (size_t i = 0; i < fields->index_count; i++)
        if (slice_equal(fields->indexes[i]->name, name))
            return fields->indexes[i];
    return NULL;
}

struct slice definition_index_document(const struct definition_fields *fields, struct slice name)
{
    struct document_value found;
    struct document_iter iter;
    struct slice array;

    if (!indexes_find(fields->document, &array))
        return SLICE_NONE;
    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (document_find(iter.value.document, SLICE("name"), &found) &&
            slice_equal(found.text, name))
            return iter.value.document;
    return SLICE_NONE;
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool number_free(const struct reading *r, uint8_t *ret_number, struct error *err)
{
    for (size_t i = 0; i < INDEX_NUMBERS; i++)
        if (!r->taken[i]) {
            *ret_number = (uint8_t)i;
            return true;
        }
    return error_set(err, ERROR_BUSY,
                     "entries of %d indexes are still being removed: try again later",
                     INDEX_NUMBERS);
}

static bool one_read(const struct document_value *value, struct arena *arena,
                     const struct index_definition **ret_definition, struct buf *out,
                     struct slice key, uint8_t number, struct error *err)
{
    return index_definition_read(value, number, arena, key, out, ret_definition, err) ||
           error_prefix(err, "orrery.indexes");
}

/* The words of the definition before, if it has the same index. */
static bool words_kept(const struct reading *r, struct slice object, struct index_words *ret_words,
                       bool *ret_kept, struct error *err)
{
    CLEANUP(buf_done) struct buf unused;
    const struct index_definition *was, *now;
    struct document_value name, value, failure;

    buf_init(&unused, BUF_DEFAULT_MAX);
    *ret_kept = false;
    if (!document_find(object, SLICE("name"), &name) || name.type != DOCUMENT_STRING)
        return true;
    was = definition_index(r->before, name.text);
    if (!was)
        return true;
    value = document_object(object);
    if (!one_read(&value, r->arena, &now, &unused, SLICE("0"), was->number, err))
        return false;
    *ret_kept = index_definition_same(was, now);
    *ret_words = (struct index_words){
        .number = was->number, .state = was->state, .collator = was->collator_version};
    if (document_find(definition_index_document(r->before, name.text), SLICE("failure"), &failure))
        ret_words->failure = failure.document;
    return true;
}

/* The document of an index with the server's words. */
static bool words_add(const struct reading *r, struct document_value *value, struct error *err)
{
    struct slice object = index_definition_words(value->document, NULL, r->arena);
    struct index_words words = {.state = INDEX_BUILDING};
    bool kept;

    if (!words_kept(r, object, &words, &kept, err))
        return false;
    if (!kept) {
        words = (struct index_words){.state = INDEX_BUILDING};
        if (!number_free(r, &words.number, err))
            return false;
    }
    *value = document_object(index_definition_words(object, &words, r->arena));
    return true;
}

/* System properties are not in items as they are indexed. */
static bool path_check(const struct reading *r, const struct index_definition *index,
                       const struct document_path *path, struct error *err)
{
    const struct document_names *names = definition_names_of(r->fields);

    if (path->count &&
        document_names_system(names, path->segments[0].name) < DOCUMENT_SYSTEM_VERSION)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.indexes: index \"%.*s\" names the system property \"%.*s\"",
                         SLICE_ARG(index->name), SLICE_ARG(path->segments[0].name));
    return true;
}

static bool paths_check(const struct reading *r, const struct index_definition *index,
                        struct error *err)
{
    for (size_t i = 0; i < index->part_count; i++)
        if (!path_check(r, index, &index->parts[i].path, err))
            return false;
    for (size_t i = 0; i < index->filter_count; i++)
        if (!path_check(r, index, &index->filter[i].path, err))
            return false;
    return true;
}

static bool index_add(struct reading *r, struct document_value value, struct slice key,
                      struct buf *out, struct error *err)
{
    const struct index_definition *index;
    uint8_t number = 0;

    if (value.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.indexes: an index is not an object");
    if (!number_free(r, &number, err) || (r->before && !words_add(r, &value, err)) ||
        !one_read(&value, r->arena, &index, out, key, number, err) || !paths_check(r, index, err))
        return false;
    for (size_t i = 0; i < r->count; i++) {
        if (slice_equal(r->indexes[i]->name, index->name))
            return error_set(err, ERROR_BAD_REQUEST, "orrery.indexes: two are named \"%.*s\"",
                             SLICE_ARG(index->name));
        if (r->indexes[i]->number == index->number)
            return error_set(err, ERROR_BAD_REQUEST, "orrery.indexes: two have the number %u",
                             index->number);
    }
    r->taken[index->number] = true;
    r->indexes[r->count++] = index;
    return true;
}

static void policy_add(struct definition_fields *fields, struct arena *arena)
{
    const struct index_definition **kept =
        ARENA_ARRAY(arena, const struct index_definition *, fields->index_count);
    size_t count = 0;

    for (size_t i = 0; i < fields->index_count; i++)
        if (fields->indexes[i]->state != INDEX_FAILED) {
            kept[count++] = fields->indexes[i];
            fields->has_unique_index |= fields->indexes[i]->unique != INDEX_UNIQUE_NOT;
        }
    if (count)
        fields->policy = index_policy_with(fields->policy, kept, count, arena);
}

bool definition_indexes_read(struct definition_fields *fields, const struct document_value *value,
                             const struct definition_fields *before, const bool *taken,
                             struct arena *arena, struct buf *out, struct error *err)
{
    struct reading r = {.fields = fields, .before = before, .arena = arena};
    struct document_iter iter;
    struct slice array;
    size_t begin, count;

    if (value && value->type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.indexes must be an array of indexes");
    if (!value && !indexes_find(before->document, &array))
        return true;
    if (value)
        array = value->document;
    count = document_count(array);
    if (count > INDEX_DEFINITIONS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.indexes has more than %d indexes",
                         INDEX_DEFINITIONS_MAX);
    if (taken)
        memcpy(r.taken, taken, sizeof r.taken);
    for (size_t i = 0; before && i < before->index_count; i++)
        r.taken[before->indexes[i]->number] = true;
    r.indexes = ARENA_ARRAY(arena, const struct index_definition *, count);
    begin = document_append_array_begin(out, SLICE("indexes"));
    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (!index_add(&r, iter.value, iter.key, out, err))
            return false;
    document_end(out, begin);
    fields->indexes = r.indexes;
    fields->index_count = r.count;
    policy_add(fields, arena);
    return true;
}

bool definition_placed_check(const struct definition_fields *fields, struct error *err)
{
    const struct partition_definition *key = &fields->key;
    const char *wrong = NULL;

    if (!index_policy_places(fields->policy))
        return true;
    if (key->path_count != 1 || key->system_key)
        wrong = "a partition key of one path";
    else if (key->synthetic)
        wrong = "a partition key that clients make";
    else if (fields->default_ttl != DEFINITION_TTL_OFF)
        wrong = "items that do not expire: its entries do not tell";
    else if (fields->view.form)
        wrong = "a container that is no view";
    return !wrong || error_set(err, ERROR_NOT_SUPPORTED,
                               "orrery.indexes: an index with \"placed\" takes %s", wrong);
}

struct slice definition_indexes_fresh(struct slice array, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        struct document_value value = iter.value;

        if (value.type == DOCUMENT_OBJECT)
            value = document_object(index_definition_words(value.document, NULL, arena));
        document_append(&out, iter.key, &value);
    }
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* --- Comparing ------------------------------------------------------------------------------- */

bool definition_indexes_same(const struct definition_fields *a, const struct definition_fields *b)
{
    size_t count, other;
    const struct index_definition *const *these = index_policy_besides(a->policy, &count);
    const struct index_definition *const *those = index_policy_besides(b->policy, &other);

    if (count != other)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;

        while (at < count && !index_definition_same(these[i], those[at]))
            at++;
        if (at == count)
            return false;
    }
    return true;
}

/* --- Documents that say something else ------------------------------------------------------- */

/* The document of a definition, with these elements as its indexes. */
struct slice definition_with_indexes(const struct definition_fields *fields, struct slice array,
                                     struct arena *arena)
{
    const struct document_value value = document_array(array);
    struct document_value orrery = document_undefined();
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin, object;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, fields->document);
    while (document_iter_next(&iter))
        if (slice_equal(iter.key, SLICE("orrery")))
            orrery = iter.value;
        else
            document_append(&out, iter.key, &iter.value);
    object = document_append_object_begin(&out, SLICE("orrery"));
    if (orrery.type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, orrery.document);
        while (document_iter_next(&iter))
            if (!slice_equal(iter.key, SLICE("indexes")))
                document_append(&out, iter.key, &iter.value);
    }
    document_append(&out, SLICE("indexes"), &value);
    document_end(&out, object);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* The indexes but for one of this name, and another (SLICE_NONE: none) behind them. */
static struct slice edited(const struct definition_fields *fields, struct slice without,
                           struct slice index, struct arena *arena)
{
    CLEANUP(buf_done) struct buf array;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;
    uint32_t count = 0;

    buf_init(&array, BUF_DEFAULT_MAX);
    begin = document_begin(&array);
    for (size_t i = 0; i < fields->index_count; i++) {
        struct slice name = fields->indexes[i]->name;
        struct document_value value = document_object(definition_index_document(fields, name));

        if (!slice_equal(name, without))
            document_append(&array, document_index_key(count++, text), &value);
    }
    if (index.data) {
        struct document_value value = document_object(index);

        document_append(&array, document_index_key(count, text), &value);
    }
    document_end(&array, begin);
    return definition_with_indexes(fields, buf_slice(&array), arena);
}

struct slice definition_with_index(const struct definition_fields *fields, struct slice index,
                                   struct arena *arena)
{
    return edited(fields, SLICE_NONE, index, arena);
}

struct slice definition_without_index(const struct definition_fields *fields, struct slice name,
                                      struct arena *arena)
{
    return edited(fields, name, SLICE_NONE, arena);
}

struct slice definition_with_states(const struct definition_fields *fields,
                                    const struct index_words *words, const bool *changed,
                                    struct arena *arena)
{
    CLEANUP(buf_done) struct buf array;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&array, BUF_DEFAULT_MAX);
    begin = document_begin(&array);
    for (size_t i = 0; i < fields->index_count; i++) {
        struct slice document = definition_index_document(fields, fields->indexes[i]->name);
        struct document_value value = document_object(
            changed[i] ? index_definition_words(document, &words[i], arena) : document);

        document_append(&array, document_index_key((uint32_t)i, text), &value);
    }
    document_end(&array, begin);
    return definition_with_indexes(fields, buf_slice(&array), arena);
}
