#include "definition/view.h"

#include "definition/definition_private.h"
#include "document/bson.h"

static const struct slice form_names[] = {
    [DEFINITION_VIEW_MATERIALIZED] = SLICE("materializedViewDefinition"),
    [DEFINITION_VIEW_SECONDARY] = SLICE("globalSecondaryIndexDefinition"),
    [DEFINITION_VIEW_OWN] = SLICE("orrery.view"),
};

static const struct slice statuses[DEFINITION_VIEW_STATUSES] = {
    [DEFINITION_VIEW_INITIALIZING] = SLICE("Initializing"),
    [DEFINITION_VIEW_BUILDING] = SLICE("InitialBuildAfterCreate"),
    [DEFINITION_VIEW_ACTIVE] = SLICE("Active"),
};

/* --- Reading --------------------------------------------------------------------------------- */

static bool text_read(struct slice object, struct slice form, struct slice name, size_t max,
                      struct slice *ret_text, struct error *err)
{
    struct document_value value;

    if (!document_find(object, name, &value) || value.type != DOCUMENT_STRING || !value.text.len ||
        value.text.len > max)
        return error_set(err, ERROR_BAD_REQUEST, "%.*s.%.*s must be a text of up to %zu bytes",
                         SLICE_ARG(form), SLICE_ARG(name), max);
    *ret_text = value.text;
    return true;
}

/* What the server has said of it, if it has. */
static bool status_read(struct slice object, struct definition_view *view, struct error *err)
{
    struct document_value value;

    if (!document_find(object, SLICE("status"), &value))
        return true;
    for (size_t i = 0; value.type == DOCUMENT_STRING && i < DEFINITION_VIEW_STATUSES; i++)
        if (slice_equal(value.text, statuses[i])) {
            view->status = (enum definition_view_status)i;
            return true;
        }
    return error_set(err, ERROR_BAD_REQUEST, "the status of a view is none that is known");
}

static bool rid_read(const struct document_value *value, struct rid *ret_rid, struct error *err)
{
    if (value->type != DOCUMENT_STRING || !rid_parse(value->text, ret_rid) ||
        ret_rid->kind != RID_CONTAINER)
        return error_set(err, ERROR_BAD_REQUEST, "the source of a view has no rid of a container");
    return true;
}

/* Of the two forms of the service. */
static bool service_read(struct slice object, enum definition_view_form form,
                         struct definition_view *view, struct error *err)
{
    struct document_value rid;

    *view = (struct definition_view){.form = form, .source_count = 1};
    if (!text_read(object, form_names[form], SLICE("sourceCollectionId"), UINT16_MAX,
                   &view->sources[0], err) ||
        !text_read(object, form_names[form], SLICE("definition"), DEFINITION_VIEW_QUERY_MAX,
                   &view->query, err) ||
        !status_read(object, view, err))
        return false;
    return !document_find(object, SLICE("sourceCollectionRid"), &rid) ||
           rid_read(&rid, &view->source_rids[0], err);
}

static bool sources_bad(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "orrery.view.sources must be an array of 1 to %d names of containers of the "
                     "database, each once",
                     DEFINITION_VIEW_SOURCES_MAX);
}

static bool sources_read(struct slice object, struct definition_view *view, struct error *err)
{
    struct document_value value;
    struct document_iter iter;

    if (!document_find(object, SLICE("sources"), &value) || value.type != DOCUMENT_ARRAY)
        return sources_bad(err);
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter)) {
        if (view->source_count == DEFINITION_VIEW_SOURCES_MAX ||
            iter.value.type != DOCUMENT_STRING || !iter.value.text.len)
            return sources_bad(err);
        for (size_t i = 0; i < view->source_count; i++)
            if (slice_equal(view->sources[i], iter.value.text))
                return sources_bad(err);
        view->sources[view->source_count++] = iter.value.text;
    }
    return view->source_count || sources_bad(err);
}

static bool rids_read(struct slice object, struct definition_view *view, struct error *err)
{
    struct document_value value;
    struct document_iter iter;
    size_t count = 0;

    if (!document_find(object, SLICE("rids"), &value))
        return true;
    if (value.type != DOCUMENT_ARRAY || document_count(value.document) != view->source_count)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.view.rids is not one for each source");
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter))
        if (!rid_read(&iter.value, &view->source_rids[count++], err))
            return false;
    return true;
}

static bool own_members_check(struct slice object, struct error *err)
{
    static const struct slice names[] = {SLICE("sources"), SLICE("rids"), SLICE("query"),
                                         SLICE("status")};
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            known |= slice_equal(iter.key, names[i]);
        if (!known)
            return error_set(err, ERROR_BAD_REQUEST, "orrery.view has no member \"%.*s\"",
                             (int)MIN(iter.key.len, (size_t)100), (const char *)iter.key.data);
    }
    return true;
}

static bool own_read(const struct document_value *value, struct definition_view *view,
                     struct error *err)
{
    *view = (struct definition_view){.form = DEFINITION_VIEW_OWN};
    if (value->type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.view must be an object");
    return own_members_check(value->document, err) && sources_read(value->document, view, err) &&
           rids_read(value->document, view, err) && status_read(value->document, view, err) &&
           text_read(value->document, form_names[DEFINITION_VIEW_OWN], SLICE("query"),
                     DEFINITION_VIEW_QUERY_MAX, &view->query, err);
}

/* --- Writing --------------------------------------------------------------------------------- */

static void service_write(const struct definition_view *view, struct buf *out)
{
    size_t object = document_append_object_begin(out, form_names[view->form]);
    char text[RID_TEXT_SIZE];

    document_append_string(out, SLICE("sourceCollectionId"), view->sources[0]);
    if (view->source_rids[0].owner)
        document_append_string(out, SLICE("sourceCollectionRid"),
                               rid_format(view->source_rids[0], text));
    document_append_string(out, SLICE("definition"), view->query);
    document_append_string(out, SLICE("status"), statuses[view->status]);
    document_end(out, object);
}

static void own_write(const struct definition_view *view, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("view")), array;
    char index[DOCUMENT_INDEX_SIZE], text[RID_TEXT_SIZE];

    array = document_append_array_begin(out, SLICE("sources"));
    for (uint32_t i = 0; i < view->source_count; i++)
        document_append_string(out, document_index_key(i, index), view->sources[i]);
    document_end(out, array);
    if (view->source_rids[0].owner) {
        array = document_append_array_begin(out, SLICE("rids"));
        for (uint32_t i = 0; i < view->source_count; i++)
            document_append_string(out, document_index_key(i, index),
                                   rid_format(view->source_rids[i], text));
        document_end(out, array);
    }
    document_append_string(out, SLICE("query"), view->query);
    document_append_string(out, SLICE("status"), statuses[view->status]);
    document_end(out, object);
}

/* --- Parts of a definition ------------------------------------------------------------------- */

/* What was read of a replace against what there is. The query of orrery.view may be another. */
static bool fits(const struct definition_view *given, const struct definition_view *before,
                 struct error *err)
{
    bool same = (given->form == DEFINITION_VIEW_OWN) == (before->form == DEFINITION_VIEW_OWN) &&
                before->form && given->source_count == before->source_count &&
                (given->form == DEFINITION_VIEW_OWN || slice_equal(given->query, before->query));

    for (size_t i = 0; same && i < given->source_count; i++)
        same = slice_equal(given->sources[i], before->sources[i]);
    if (!before->form)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a container does not become a view by being replaced");
    return same || error_set(err, ERROR_BAD_REQUEST,
                             "the sources of a view cannot be changed, nor its query but in "
                             "orrery.view: make another and drop this one");
}

/* Bytes of a body that goes are kept where the definition lives. */
static void settle(struct definition_fields *fields, const struct definition_view *view,
                   struct arena *arena)
{
    fields->view = *view;
    for (size_t i = 0; i < view->source_count; i++)
        fields->view.sources[i] = arena_copy(arena, view->sources[i]);
    fields->view.query = arena_copy(arena, view->query);
}

bool definition_view_read(struct definition_fields *fields, struct slice body,
                          const struct definition_fields *before, struct arena *arena,
                          struct buf *out, struct error *err)
{
    struct definition_view view = {0};

    for (enum definition_view_form form = DEFINITION_VIEW_MATERIALIZED;
         form <= DEFINITION_VIEW_SECONDARY; form++) {
        struct document_value value;

        if (!document_find(body, form_names[form], &value) || value.type == DOCUMENT_NULL)
            continue;
        if (value.type != DOCUMENT_OBJECT)
            return error_set(err, ERROR_BAD_REQUEST, "%.*s is not an object",
                             SLICE_ARG(form_names[form]));
        if (view.form)
            return error_set(err, ERROR_BAD_REQUEST, "a container is defined as a view twice");
        if (!service_read(value.document, form, &view, err) ||
            (before && !fits(&view, &before->view, err)))
            return false;
    }
    if (before && before->view.form && before->view.form != DEFINITION_VIEW_OWN)
        view = before->view;
    if (!view.form)
        return true;
    settle(fields, &view, arena);
    service_write(&fields->view, out);
    return true;
}

bool definition_view_own_read(struct definition_fields *fields, const struct document_value *value,
                              const struct definition_fields *before, struct arena *arena,
                              struct buf *out, struct error *err)
{
    struct definition_view view = {0};

    if (value) {
        if (fields->view.form)
            return error_set(err, ERROR_BAD_REQUEST, "a container is defined as a view twice");
        if (!own_read(value, &view, err) || (before && !fits(&view, &before->view, err)))
            return false;
    }
    if (before && before->view.form == DEFINITION_VIEW_OWN) {
        struct slice query = value ? view.query : before->view.query;

        view = before->view;
        if (!slice_equal(query, view.query))
            view.status = DEFINITION_VIEW_INITIALIZING;
        view.query = query;
    }
    if (!view.form)
        return true;
    settle(fields, &view, arena);
    own_write(&fields->view, out);
    return true;
}

static bool has_entries(struct slice document)
{
    struct document_value policy, mode;

    return !document_find(document, SLICE("indexingPolicy"), &policy) ||
           policy.type != DOCUMENT_OBJECT ||
           !document_find(policy.document, SLICE("indexingMode"), &mode) ||
           mode.type != DOCUMENT_STRING || !slice_equal_nocase(mode.text, SLICE("none"));
}

bool definition_view_check(const struct definition_fields *fields, struct slice body,
                           struct error *err)
{
    const char *wrong = NULL;

    if (!fields->view.form)
        return true;
    if (fields->identity != DEFINITION_IDENTITY_ID)
        wrong = "is for items that are known by \"id\"";
    else if (fields->default_ttl != DEFINITION_TTL_OFF)
        wrong = "has no defaultTtl: its items go with those they come from";
    else if (definition_is_unique(fields))
        wrong = "has no unique keys or indexes";
    else if (!has_entries(body))
        wrong = "has an index: its items are found by it";
    else if (fields->key.synthetic)
        wrong = "has no synthetic partition key";
    return !wrong || error_set(err, ERROR_BAD_REQUEST, "a view %s", wrong);
}

/* --- Other documents ------------------------------------------------------------------------- */

static struct slice written(const struct definition_view *view, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value value;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    if (view->form == DEFINITION_VIEW_OWN)
        own_write(view, &out);
    else
        service_write(view, &out);
    document_end(&out, begin);
    if (!document_find(buf_slice(&out),
                       view->form == DEFINITION_VIEW_OWN ? SLICE("view") : form_names[view->form],
                       &value))
        return SLICE_NONE;
    return arena_copy(arena, value.document);
}

static struct slice orrery_with(struct slice document, struct slice name,
                                const struct document_value *value, struct arena *arena)
{
    static const struct slice nothing = SLICE("\5\0\0\0\0");
    struct document_value orrery;

    if (!document_find(document, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT)
        orrery = document_object(nothing);
    orrery = document_object(definition_member_set(orrery.document, name, value, arena));
    if (slice_equal(orrery.document, nothing))
        orrery = document_undefined();
    return definition_member_set(document, SLICE("orrery"), &orrery, arena);
}

struct slice definition_with_view(const struct definition_fields *fields, const struct rid *rids,
                                  enum definition_view_status status, struct arena *arena)
{
    struct definition_view view = fields->view;
    struct document_value value;

    assert(view.form);
    for (size_t i = 0; i < view.source_count; i++)
        view.source_rids[i] = rids[i];
    view.status = status;
    value = document_object(written(&view, arena));
    if (view.form == DEFINITION_VIEW_OWN)
        return orrery_with(fields->document, SLICE("view"), &value, arena);
    return definition_member_set(fields->document, form_names[view.form], &value, arena);
}

/* Members that a client cannot say go from an object. */
static struct slice without_said(struct slice object, struct arena *arena)
{
    static const struct slice said[] = {SLICE("sourceCollectionRid"), SLICE("rids"),
                                        SLICE("status")};
    const struct document_value nothing = document_undefined();
    struct document_value value;

    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        if (document_find(object, said[i], &value))
            object = definition_member_set(object, said[i], &nothing, arena);
    return object;
}

struct slice definition_view_fresh(struct slice body, struct arena *arena)
{
    const struct document_value nothing = document_undefined();
    struct document_value value, orrery;

    for (enum definition_view_form form = DEFINITION_VIEW_MATERIALIZED;
         form <= DEFINITION_VIEW_SECONDARY; form++)
        if (document_find(body, form_names[form], &value) && value.type == DOCUMENT_OBJECT) {
            value = document_object(without_said(value.document, arena));
            body = definition_member_set(body, form_names[form], &value, arena);
        }
    if (!document_find(body, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT)
        return body;
    if (document_find(orrery.document, SLICE("view"), &value) && value.type == DOCUMENT_OBJECT) {
        value = document_object(without_said(value.document, arena));
        body = orrery_with(body, SLICE("view"), &value, arena);
    }
    if (document_find(orrery.document, SLICE("followed"), &value))
        body = orrery_with(body, SLICE("followed"), &nothing, arena);
    return body;
}

struct slice definition_with_followed(const struct definition_fields *fields, bool followed,
                                      struct arena *arena)
{
    const struct document_value value = followed ? document_bool(true) : document_undefined();

    return orrery_with(fields->document, SLICE("followed"), &value, arena);
}
