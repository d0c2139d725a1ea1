/* The children of the catalogue differ here by a row: the path they are under, what their feed is
 * called and what an answer shows besides their body. */
#include "front/rest/child_place.h"

#include "document/bson.h"
#include "front/rest/metadata/metadata.h"
#include "front/rest/permission.h"
#include "front/rest/token.h"
#include "throughput/cost.h"

struct kind_row {
    enum rest_resource resource;
    enum child_kind kind;
    enum rid_kind rid, owner; /* owner: RID_DATABASE, RID_CONTAINER or RID_USER */
    const char *segment;      /* of _self */
    const char *feed;         /* the array of a list */
};

static const struct kind_row kinds[] = {
    {REST_USERS, CHILD_USER, RID_USER, RID_DATABASE, "users", "Users"},
    {REST_PERMISSIONS, CHILD_PERMISSION, RID_PERMISSION, RID_USER, "permissions", "Permissions"},
    {REST_ENCRYPTION_KEYS, CHILD_ENCRYPTION_KEY, RID_ENCRYPTION_KEY, RID_DATABASE,
     "clientencryptionkeys", "ClientEncryptionKeys"},
    {REST_PROCEDURES, CHILD_PROCEDURE, RID_PROCEDURE, RID_CONTAINER, "sprocs", "StoredProcedures"},
    {REST_TRIGGERS, CHILD_TRIGGER, RID_TRIGGER, RID_CONTAINER, "triggers", "Triggers"},
    {REST_FUNCTIONS, CHILD_FUNCTION, RID_UDF, RID_CONTAINER, "udfs", "UserDefinedFunctions"},
};

static const struct kind_row *kind_of(enum rest_resource resource)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].resource == resource)
            return &kinds[i];
    return NULL;
}

static struct child_place place_of(const struct rest_call *call)
{
    struct child_place place;
    bool found = rest_child_place(call, &call->route, &place);

    assert(found); /* operations.def sends no other resource here */
    return place;
}

/* --- As documents ---------------------------------------------------------------------------- */

/* "dbs/{db}/users/{user}/permissions/{rid}/" and its kin. */
static struct slice self_of(struct rest_call *call, const struct kind_row *row,
                            const struct catalogue_child *child)
{
    const struct rid rid = catalogue_child_rid(child);
    const struct rid owner = {.kind = row->owner, .database = rid.database, .owner = rid.owner};
    char database_text[RID_TEXT_SIZE], owner_text[RID_TEXT_SIZE] = "";
    struct slice own = catalogue_child_info(child)->rid;

    (void)rid_format(rid_of_database(rid.database), database_text);
    if (row->owner == RID_DATABASE)
        return arena_printf(call->arena, "dbs/%s/%s/%.*s/", database_text, row->segment,
                            SLICE_ARG(own));
    (void)rid_format(owner, owner_text);
    return arena_printf(call->arena, "dbs/%s/%s/%s/%s/%.*s/", database_text,
                        row->owner == RID_USER ? "users" : "colls", owner_text, row->segment,
                        SLICE_ARG(own));
}

/* What an answer about children needs to know beforehand, so that a bad header changes nothing. */
struct rendering {
    const struct kind_row *row;
    uint32_t token_seconds;
};

static bool rendering_prepare(const struct rest_call *call, struct rendering *ret_rendering,
                              struct error *err)
{
    ret_rendering->row = kind_of(call->route.resource);
    ret_rendering->token_seconds = 0;
    return ret_rendering->row->kind != CHILD_PERMISSION ||
           rest_token_seconds(call, &ret_rendering->token_seconds, err);
}

static struct slice child_document(struct rest_call *call, const struct rendering *rendering,
                                   const struct catalogue_child *child)
{
    const struct kind_row *row = rendering->row;
    CLEANUP(buf_done) struct buf document;
    struct document_iter iter;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    begin = document_begin(&document);
    document_iter_init(&iter, catalogue_child_body(child));
    while (document_iter_next(&iter))
        buf_append(&document, iter.element, (size_t)(iter.at - iter.element));
    rest_metadata_system(&document, catalogue_child_info(child), self_of(call, row, child));
    if (row->kind == CHILD_USER)
        document_append_string(&document, SLICE("_permissions"), SLICE("permissions/"));
    if (row->kind == CHILD_PERMISSION)
        document_append_string(&document, SLICE("_token"),
                               rest_token_make(call, child, rendering->token_seconds));
    document_end(&document, begin);
    return arena_copy(call->arena, buf_slice(&document));
}

static void child_answer(struct rest_call *call, const struct rendering *rendering,
                         const struct catalogue_child *child, uint16_t status)
{
    const struct catalogue_info *info = catalogue_child_info(child);

    rest_metadata_answer(call, status, child_document(call, rendering, child), info->etag,
                         info->lsn);
}

/* --- Feeds ----------------------------------------------------------------------------------- */

/* What children are in: its rid, and the rid of any child of it. */
static bool owner_find(struct rest_call *call, const struct kind_row *row, struct rest_feed *feed,
                       struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(catalogue_child_unref) struct catalogue_child *user = NULL;
    struct child_place users = place_of(call);

    users.kind = CHILD_USER;
    feed->rid.kind = row->rid;
    switch (row->owner) {
    case RID_CONTAINER:
        if (!rest_call_container(call, &container, err))
            return false;
        feed->owner = arena_copy(call->arena, container_info(container)->rid);
        feed->rid.database = container_database_number(container);
        feed->rid.owner = container_info(container)->number;
        return true;
    case RID_USER:
        if (!catalogue_child_open(call->services->catalogue, &users, call->route.owner, &user, err))
            return false;
        feed->owner = arena_copy(call->arena, catalogue_child_info(user)->rid);
        feed->rid.database = catalogue_child_rid(user).database;
        feed->rid.owner = catalogue_child_info(user)->number;
        return true;
    default:
        if (!rest_call_database(call, &database, err))
            return false;
        feed->owner = arena_copy(call->arena, database_info(database)->rid);
        feed->rid.database = database_info(database)->number;
        return true;
    }
}

struct feed_context {
    struct rendering rendering;
    struct catalogue_children *children; /* a reference */
    struct error *failure;               /* code 0: every body could be read so far */
};

static uint64_t feed_number(const void *context, size_t index)
{
    const struct feed_context *feed = context;

    return catalogue_child_info(catalogue_children_at(feed->children, index))->number;
}

static struct slice feed_document(struct rest_call *call, const void *context, size_t index)
{
    const struct feed_context *feed = context;
    CLEANUP(catalogue_child_unref) struct catalogue_child *whole = NULL;
    struct error err;

    if (catalogue_child_whole(call->services->catalogue,
                              catalogue_children_at(feed->children, index), &whole, &err))
        return child_document(call, &feed->rendering, whole);
    if (err.code != ERROR_NOT_FOUND) /* else it was dropped meanwhile */
        *feed->failure = err;
    return SLICE_NONE;
}

static bool feed_answer(struct rest_call *call,
                        bool (*answer)(struct rest_call *call, const struct rest_feed *feed,
                                       struct error *err),
                        struct error *err)
{
    struct child_place place = place_of(call);
    struct error failure = {0};
    struct feed_context context = {.failure = &failure};
    struct rest_feed feed = {.context = &context, .number = feed_number, .document = feed_document};
    bool fine;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!rendering_prepare(call, &context.rendering, err) ||
        !owner_find(call, context.rendering.row, &feed, err) ||
        !catalogue_children_open(call->services->catalogue, &place, &context.children, err))
        return false;
    feed.name = slice_of_text(context.rendering.row->feed);
    feed.count = catalogue_children_count(context.children);
    fine = answer(call, &feed, err);
    catalogue_children_unref(context.children);
    if (failure.code)
        *err = failure;
    return fine && !failure.code;
}

bool rest_children_list(struct rest_call *call, struct error *err)
{
    return feed_answer(call, rest_feed_list, err);
}

bool rest_children_query(struct rest_call *call, struct error *err)
{
    return feed_answer(call, rest_feed_query, err);
}

/* --- One ------------------------------------------------------------------------------------- */

bool rest_children_read(struct rest_call *call, struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL, *whole = NULL;
    struct catalogue *catalogue = call->services->catalogue;
    struct child_place place = place_of(call);
    struct rendering rendering;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!rendering_prepare(call, &rendering, err) ||
        !catalogue_child_open(catalogue, &place, call->route.id, &child, err) ||
        !catalogue_child_whole(catalogue, child, &whole, err))
        return false;
    child_answer(call, &rendering, whole, 200);
    return true;
}

static bool body_read(struct rest_call *call, struct slice *ret_body, struct error *err)
{
    struct slice body;

    if (!rest_call_body(call, &body, err))
        return false;
    if (call->route.resource == REST_PERMISSIONS)
        return rest_permission_bind(call, body, ret_body, err);
    *ret_body = body;
    return true;
}

static bool child_post(struct rest_call *call, bool upsert, struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;
    struct slice if_match = rest_call_header(call, REST_HEADER_IF_MATCH), body;
    struct child_place place = place_of(call);
    struct rendering rendering;
    bool created = true;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!rendering_prepare(call, &rendering, err) || !body_read(call, &body, err))
        return false;
    if (upsert ? !catalogue_child_upsert(call->services->catalogue, &place, body, if_match, &child,
                                         &created, err)
               : !catalogue_child_create(call->services->catalogue, &place, body, &child, err))
        return false;
    child_answer(call, &rendering, child, created ? 201 : 200);
    return true;
}

bool rest_children_create(struct rest_call *call, struct error *err)
{
    return child_post(call, false, err);
}

bool rest_children_upsert(struct rest_call *call, struct error *err)
{
    return child_post(call, true, err);
}

bool rest_children_replace(struct rest_call *call, struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;
    struct child_place place = place_of(call);
    struct rendering rendering;
    struct slice body;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!rendering_prepare(call, &rendering, err) || !body_read(call, &body, err) ||
        !catalogue_child_replace(call->services->catalogue, &place, call->route.id, body,
                                 rest_call_header(call, REST_HEADER_IF_MATCH), &child, err))
        return false;
    child_answer(call, &rendering, child, 200);
    return true;
}

bool rest_children_delete(struct rest_call *call, struct error *err)
{
    struct child_place place = place_of(call);

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!catalogue_child_drop(call->services->catalogue, &place, call->route.id,
                              rest_call_header(call, REST_HEADER_IF_MATCH), err))
        return false;
    call->status = 204;
    return true;
}
