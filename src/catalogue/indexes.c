/* The last step of a unique index. Writers note conflicts instead of refusing them while it is
 * built (item/write_set.c), so it is sound once every item is indexed and none is noted. Between
 * looking and publishing nobody may note another: writers by the present definition are refused,
 * and wait for the next one, by which the index is ready (container.c). */
#include "catalogue/indexes.h"

#include "catalogue/catalogue_private.h"
#include "catalogue/container_space.h"
#include "document/bson.h"
#include "item/unique.h"

enum { CONFLICTS_SHOWN_MAX = 20, FAILURE_BYTES = 8192 /* and one more conflict */ };

/* --- Adding and dropping --------------------------------------------------------------------- */

static bool redefine(struct catalogue_change *change, const struct catalogue_found *found,
                     struct slice body, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    bool taken[INDEX_NUMBERS];

    catalogue_index_numbers(found->container, taken);
    return definition_replaced(body, found->container->definition, taken, &definition, err) &&
           catalogue_container_redefine(change, found, definition, CONTAINER_POLICIES_ASKED_MAX,
                                        &container, err);
}

/* Would it be the same again? */
static bool is_there(const struct index_definition *is, struct slice index, struct arena *arena,
                     bool *ret_same, struct error *err)
{
    struct document_value value = document_object(index_definition_words(index, NULL, arena));
    const struct index_definition *again;
    CLEANUP(buf_done) struct buf unused;

    buf_init(&unused, BUF_DEFAULT_MAX);
    if (!index_definition_read(&value, is->number, arena, SLICE("0"), &unused, &again, err))
        return false;
    *ret_same = index_definition_same(is, again) && is->hidden == again->hidden &&
                is->expire_after_s == again->expire_after_s && is->state != INDEX_FAILED;
    return true;
}

bool catalogue_index_add(struct catalogue *catalogue, struct slice account, struct slice database,
                         struct slice id, struct slice index, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    const struct definition_fields *fields;
    const struct index_definition *is;
    struct document_value name;
    struct catalogue_found found;
    bool same;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err))
        return false;
    if (!document_find(index, SLICE("name"), &name) || name.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "an index needs a name");
    fields = definition_fields(found.container->definition);
    is = definition_index(fields, name.text);
    if (!is)
        return redefine(&change, &found, definition_with_index(fields, index, change.arena), err);
    if (!is_there(is, index, change.arena, &same, err))
        return false;
    return same || catalogue_name_taken(err, "index", name.text);
}

bool catalogue_index_drop(struct catalogue *catalogue, struct slice account, struct slice database,
                          struct slice id, struct slice name, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    const struct definition_fields *fields;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err))
        return false;
    fields = definition_fields(found.container->definition);
    if (!definition_index(fields, name))
        return catalogue_not_found(err, false, "index", name);
    return redefine(&change, &found, definition_without_index(fields, name, change.arena), err);
}

static bool is_dropped(const struct catalogue_index_change *asked, struct slice name)
{
    for (size_t i = 0; i < asked->drop_count; i++)
        if (slice_equal(asked->drop[i], name))
            return true;
    return false;
}

/* The elements of the list of indexes as it will be. */
static struct slice changed_list(const struct definition_fields *fields,
                                 const struct catalogue_index_change *asked, struct arena *arena)
{
    CLEANUP(buf_done) struct buf list;
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t count = 0;
    size_t begin;

    buf_init(&list, BUF_DEFAULT_MAX);
    begin = document_begin(&list);
    for (size_t i = 0; i < fields->index_count; i++) {
        struct slice name = fields->indexes[i]->name;
        struct document_value value = document_object(definition_index_document(fields, name));

        if (!is_dropped(asked, name))
            document_append(&list, document_index_key(count++, text), &value);
    }
    for (size_t i = 0; i < asked->add_count; i++) {
        struct document_value value = document_object(asked->add[i]);

        document_append(&list, document_index_key(count++, text), &value);
    }
    document_end(&list, begin);
    return arena_copy(arena, buf_slice(&list));
}

/* {o: {indexes: [{v, name}, ...]}} of some of them, for the history. */
static void indexes_tell(struct catalogue_change *change, enum history_kind kind,
                         const struct container *container, const struct slice *names, size_t count)
{
    CLEANUP(buf_done) struct buf payload;
    size_t whole, description, list, one;
    char text[DOCUMENT_INDEX_SIZE];

    buf_init(&payload, BUF_DEFAULT_MAX);
    if (!count)
        return;
    whole = document_begin(&payload);
    description = document_append_object_begin(&payload, SLICE("o"));
    list = document_append_array_begin(&payload, SLICE("indexes"));
    for (size_t i = 0; i < count; i++) {
        one = document_append_object_begin(&payload, document_index_key((uint32_t)i, text));
        document_append_int32(&payload, SLICE("v"), 2);
        document_append_string(&payload, SLICE("name"), names[i]);
        document_end(&payload, one);
    }
    document_end(&payload, list);
    document_end(&payload, description);
    document_end(&payload, whole);
    catalogue_change_tell(change, kind, container, buf_slice(&payload));
}

bool catalogue_indexes_change(struct catalogue *catalogue, struct slice account,
                              struct slice database, struct slice id,
                              const struct catalogue_index_change *asked, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    const struct definition_fields *fields;
    struct catalogue_found found;
    struct slice *names, *dropped;
    size_t dropped_count = 0;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err))
        return false;
    fields = definition_fields(found.container->definition);
    names = ARENA_ARRAY(change.arena, struct slice, asked->add_count);
    for (size_t i = 0; i < asked->add_count; i++) {
        struct document_value name;

        if (!document_find(asked->add[i], SLICE("name"), &name) || name.type != DOCUMENT_STRING)
            return error_set(err, ERROR_BAD_REQUEST, "an index needs a name");
        if (definition_index(fields, name.text) && !is_dropped(asked, name.text))
            return catalogue_name_taken(err, "index", name.text);
        names[i] = name.text;
    }
    dropped = ARENA_ARRAY(change.arena, struct slice, asked->drop_count);
    for (size_t i = 0; i < asked->drop_count; i++)
        if (definition_index(fields, asked->drop[i])) /* else there is nothing to tell */
            dropped[dropped_count++] = asked->drop[i];
    indexes_tell(&change, HISTORY_DROP_INDEXES, found.container, dropped, dropped_count);
    indexes_tell(&change, HISTORY_CREATE_INDEXES, found.container, names, asked->add_count);
    return redefine(
        &change, &found,
        definition_with_indexes(fields, changed_list(fields, asked, change.arena), change.arena),
        err);
}

struct catalogue_index *catalogue_indexes(struct container *container, struct caretaker *caretaker,
                                          struct arena *arena, size_t *ret_count)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct catalogue_index *list = ARENA_ARRAY(arena, struct catalogue_index, fields->index_count);
    unsigned progress = caretaker ? caretaker_progress(caretaker, container) : 0;

    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];

        list[i] = (struct catalogue_index){
            .definition = index,
            .document = definition_index_document(fields, index->name),
            .progress = index->state == INDEX_READY      ? 100
                        : index->state == INDEX_BUILDING ? MIN(progress, 99u)
                                                         : 0,
        };
    }
    *ret_count = fields->index_count;
    return list;
}

/* --- Becoming ready -------------------------------------------------------------------------- */

/* The definition with all that is building ready; NULL: nothing is. */
static bool definition_settled(const struct container *container, struct arena *arena,
                               struct definition **ret_definition, bool *ret_unique,
                               struct error *err)
{
    const struct definition_fields *fields = definition_fields(container->definition);
    struct index_words words[INDEX_DEFINITIONS_MAX];
    bool changed[INDEX_DEFINITIONS_MAX], any = false;

    *ret_unique = false;
    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];

        changed[i] = index->state == INDEX_BUILDING;
        words[i] = (struct index_words){.number = index->number, .state = INDEX_READY};
        any = any || changed[i];
        *ret_unique |= changed[i] && index->unique != INDEX_UNIQUE_NOT;
    }
    return !any || definition_new(definition_with_states(fields, words, changed, arena), NULL,
                                  ret_definition, err);
}

/* index NULL: of any that is being built. */
static bool conflicts_any(struct container *container, const struct index_definition *index,
                          bool *ret_any, struct error *err)
{
    struct item_space space = container_space(container, &clock_system, NULL);
    size_t count;
    const struct partition_span *spans = partition_map_spans(space.map, &count);

    *ret_any = false;
    for (size_t i = 0; i < count && !*ret_any; i++) {
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);

        if (!unique_conflicts_any(&scope, index, ret_any, err))
            return false;
    }
    return true;
}

static bool without_conflicts(struct container *container, struct error *err)
{
    bool any;

    if (!conflicts_any(container, NULL, &any, err))
        return false;
    return !any || error_set(err, ERROR_UNIQUE_KEY, "items are in the way of a unique index");
}

bool catalogue_indexes_settle(struct catalogue *catalogue, struct slice account,
                              struct slice database, struct slice id, uint32_t policy_version,
                              bool *ret_conflicts, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    CLEANUP(definition_unref) struct definition *definition = NULL;
    struct container *container;
    struct catalogue_found found;
    bool unique;

    *ret_conflicts = false;
    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err))
        return false;
    container = found.container;
    if (container->policy_version != policy_version || !container->before_count)
        return true;
    /* Copies that a re-key has made may still have entries by policies before, and a definition
     * that a migration brings would undo what is said here. */
    if (container->migration && migration_definition(container->migration))
        return true;
    if (!definition_settled(container, change.arena, &definition, &unique, err))
        return false;
    if (catalogue_container_settle(&change, &found, definition, unique ? without_conflicts : NULL,
                                   err))
        return true;
    *ret_conflicts = err->code == ERROR_UNIQUE_KEY;
    return *ret_conflicts;
}

/* --- Failing --------------------------------------------------------------------------------- */

static void conflict_write(const struct unique_conflict *conflict, struct slice key,
                           struct buf *out)
{
    size_t begin = document_append_object_begin(out, key), items;
    struct document_value values = document_array(conflict->value);
    struct document_value partition_key = document_array(conflict->partition_key);

    document_append(out, SLICE("values"), &values);
    document_append(out, SLICE("partitionKey"), &partition_key);
    items = document_append_array_begin(out, SLICE("items"));
    document_append(out, SLICE("0"), &conflict->items[0]);
    if (conflict->items[1].type != DOCUMENT_UNDEFINED)
        document_append(out, SLICE("1"), &conflict->items[1]);
    document_end(out, items);
    document_end(out, begin);
}

static struct slice failure_write(const char *reason, const struct unique_conflict *conflicts,
                                  size_t count, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin, list;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("reason"), slice_of_text(reason));
    if (count) {
        list = document_append_array_begin(&out, SLICE("conflicts"));
        for (size_t i = 0; i < count && out.len < FAILURE_BYTES; i++)
            conflict_write(&conflicts[i], document_index_key((uint32_t)i, text), &out);
        document_end(&out, list);
    }
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static bool failure_of(struct container *container, const struct index_definition *index,
                       struct arena *arena, struct slice *ret_failure, bool *ret_failed,
                       struct error *err)
{
    struct item_space space = container_space(container, &clock_system, NULL);
    struct unique_conflict conflicts[CONFLICTS_SHOWN_MAX];
    size_t count, total = 0;
    const struct partition_span *spans = partition_map_spans(space.map, &count);

    for (size_t i = 0; i < count && total < CONFLICTS_SHOWN_MAX; i++) {
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);
        size_t found;

        if (!unique_conflicts_read(&scope, index, CONFLICTS_SHOWN_MAX - total, arena,
                                   conflicts + total, &found, err))
            return false;
        total += found;
    }
    *ret_failed = true;
    *ret_failure = failure_write(
        total ? "items of one logical partition have the same values"
              : "items of one logical partition had the same values while the index was built",
        conflicts, total, arena);
    return true;
}

/* The definition with some of its indexes failed. */
static bool fail(struct catalogue_change *change, const struct catalogue_found *found,
                 const struct index_words *words, const bool *failed, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct definition_fields *fields = definition_fields(found->container->definition);

    return definition_new(definition_with_states(fields, words, failed, change->arena), NULL,
                          &definition, err) &&
           catalogue_container_redefine(change, found, definition, CONTAINER_POLICIES_MAX,
                                        &container, err);
}

/* Has the index any conflict? It may be that none of its items is left. */
static bool has_conflicts(struct container *container, const struct index_definition *index,
                          bool *ret_any, struct error *err)
{
    *ret_any = false;
    if (index->state != INDEX_BUILDING || index->unique == INDEX_UNIQUE_NOT)
        return true;
    return conflicts_any(container, index, ret_any, err);
}

bool catalogue_indexes_give_up(struct catalogue *catalogue, struct slice account,
                               struct slice database, struct slice id, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct index_words words[INDEX_DEFINITIONS_MAX];
    bool failed[INDEX_DEFINITIONS_MAX], any = false;
    const struct definition_fields *fields;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err))
        return false;
    fields = definition_fields(found.container->definition);
    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];
        bool has;

        failed[i] = false;
        words[i] = (struct index_words){.number = index->number, .state = INDEX_FAILED};
        if (!has_conflicts(found.container, index, &has, err) ||
            (has &&
             !failure_of(found.container, index, change.arena, &words[i].failure, &failed[i], err)))
            return false;
        any = any || failed[i];
    }
    return !any || fail(&change, &found, words, failed, err);
}

bool catalogue_index_fail(struct catalogue *catalogue, struct slice account, struct slice database,
                          struct slice id, struct slice name, const char *reason, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct index_words words[INDEX_DEFINITIONS_MAX];
    bool failed[INDEX_DEFINITIONS_MAX] = {false}, any = false;
    const struct definition_fields *fields;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_container(change.root, account, database, id, false, &found, err))
        return false;
    fields = definition_fields(found.container->definition);
    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];

        failed[i] = index->state == INDEX_BUILDING && slice_equal(index->name, name);
        words[i] = (struct index_words){.number = index->number,
                                        .state = INDEX_FAILED,
                                        .failure = failure_write(reason, NULL, 0, change.arena)};
        any = any || failed[i];
    }
    return !any || fail(&change, &found, words, failed, err);
}
