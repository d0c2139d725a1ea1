/* The children of the catalogue differ here by a row: the path they are under, what their feed is
 * called and what an answer shows besides their body. */
#include "front/rest/children.h"

#include "document/json.h"
#include "front/rest/call.h"
#include "front/rest/token.h"
#include "throughput/cost.h"

#include <openssl/evp.h>

enum {
    PAGE_DEFAULT = 100,
    PAGE_MAX = 1000,
    PAGE_BYTES = 4 * 1024 * 1024, /* a page ends with the child that reaches this */
    CONTINUATION_MAX = 2048,
};

struct kind_row {
    enum rest_resource resource;
    enum child_kind kind;
    enum rid_kind owner;  /* RID_DATABASE, RID_CONTAINER or RID_USER */
    const char *segment;  /* of _self */
    const char *feed;     /* the array of a list */
    const char *children; /* what an answer ends with */
};

static const struct kind_row kinds[] = {
    {REST_USERS, CHILD_USER, RID_DATABASE, "users", "Users", ",\"_permissions\":\"permissions/\""},
    {REST_PERMISSIONS, CHILD_PERMISSION, RID_USER, "permissions", "Permissions", ""},
    {REST_ENCRYPTION_KEYS, CHILD_ENCRYPTION_KEY, RID_DATABASE, "clientencryptionkeys",
     "ClientEncryptionKeys", ""},
    {REST_PROCEDURES, CHILD_PROCEDURE, RID_CONTAINER, "sprocs", "StoredProcedures", ""},
    {REST_TRIGGERS, CHILD_TRIGGER, RID_CONTAINER, "triggers", "Triggers", ""},
    {REST_FUNCTIONS, CHILD_FUNCTION, RID_CONTAINER, "udfs", "UserDefinedFunctions", ""},
};

static const struct kind_row *kind_of(enum rest_resource resource)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].resource == resource)
            return &kinds[i];
    return NULL;
}

bool rest_children_place(const struct rest_call *call, const struct rest_route *route,
                         struct child_place *ret_place)
{
    const struct kind_row *row = kind_of(route->resource);

    if (!row)
        return false;
    *ret_place = (struct child_place){.kind = row->kind,
                                      .account = call->account_id,
                                      .database = route->database,
                                      .parent = route->owner};
    return true;
}

static struct child_place place_of(const struct rest_call *call)
{
    struct child_place place;
    bool found = rest_children_place(call, &call->route, &place);

    assert(found); /* operations.def sends no other resource here */
    return place;
}

/* --- Answers --------------------------------------------------------------------------------- */

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

static void child_append(struct rest_call *call, const struct rendering *rendering,
                         const struct catalogue_child *child)
{
    document_json_write(catalogue_child_body(child), &call->body);
    call->body.len--; /* the closing brace; a child has at least its id before it */
    rest_answer_system(call, catalogue_child_info(child), self_of(call, rendering->row, child));
    buf_append_text(&call->body, rendering->row->children);
    if (rendering->row->kind == CHILD_PERMISSION) {
        BUF_APPEND(&call->body, ",\"_token\":");
        document_json_write_string(rest_token_make(call, child, rendering->token_seconds),
                                   &call->body);
    }
    BUF_APPEND(&call->body, "}");
}

static void child_answer(struct rest_call *call, const struct rendering *rendering,
                         const struct catalogue_child *child, uint16_t status)
{
    child_append(call, rendering, child);
    rest_answer_etag(call, catalogue_child_info(child)->etag);
    call->status = status;
}

/* --- Lists ----------------------------------------------------------------------------------- */

static bool page_size(const struct rest_call *call, size_t *ret_size, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_MAX_ITEM_COUNT);
    uint64_t number;

    *ret_size = PAGE_DEFAULT;
    if (!text.data || slice_equal(text, SLICE("-1")))
        return true;
    if (!slice_to_uint64(text, &number) || number < 1)
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-max-item-count must be -1 or a whole number from 1 to %d", PAGE_MAX);
    *ret_size = (size_t)MIN(number, (uint64_t)PAGE_MAX);
    return true;
}

/* A continuation is "id:" and the id the page ended with, in base64: the feed is in the order of
 * ids, so it is good whatever is made and deleted meanwhile. */
static struct slice continuation_of(struct rest_call *call, struct slice id)
{
    unsigned char *text = arena_alloc(call->arena, (id.len + 2) / 3 * 4 + 1);
    int len = EVP_EncodeBlock(text, id.data, (int)id.len);

    return arena_printf(call->arena, "id:%.*s", len, (char *)text);
}

static bool continuation_read(struct rest_call *call, struct slice *ret_id, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_CONTINUATION), encoded = SLICE_NONE;
    unsigned char *id;
    int len = -1;

    *ret_id = SLICE_NONE;
    if (!text.data || text.len == 0)
        return true;
    id = arena_alloc(call->arena, text.len);
    if (text.len <= CONTINUATION_MAX && slice_starts_with(text, SLICE("id:"))) {
        encoded = slice_skip(text, 3);
        len = EVP_DecodeBlock(id, encoded.data, (int)encoded.len);
    }
    for (size_t i = encoded.len; len > 0 && i > 0 && encoded.data[i - 1] == '='; i--)
        len--;
    if (len <= 0 || !slice_equal(continuation_of(call, slice_of(id, (size_t)len)), text))
        return error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
    *ret_id = slice_of(id, (size_t)len);
    return true;
}

static bool owner_rid(struct rest_call *call, struct buf *body, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(catalogue_child_unref) struct catalogue_child *user = NULL;
    const struct kind_row *row = kind_of(call->route.resource);
    struct child_place place = place_of(call);
    struct slice rid;

    place.kind = CHILD_USER;
    switch (row->owner) {
    case RID_CONTAINER:
        if (!rest_call_container(call, &container, err))
            return false;
        rid = container_info(container)->rid;
        break;
    case RID_USER:
        if (!catalogue_child_open(call->services->catalogue, &place, call->route.owner, &user, err))
            return false;
        rid = catalogue_child_info(user)->rid;
        break;
    default:
        if (!catalogue_database_open(call->services->catalogue, call->account_id,
                                     call->route.database, &database, err))
            return false;
        rid = database_info(database)->rid;
    }
    document_json_write_string(rid, body);
    return true;
}

static size_t page_append(struct rest_call *call, const struct rendering *rendering,
                          const struct catalogue_children *children, size_t begin, size_t size)
{
    size_t end = MIN(catalogue_children_count(children), begin + size), i = begin;

    for (; i < end && (i == begin || call->body.len < PAGE_BYTES); i++) {
        if (i > begin)
            buf_append_byte(&call->body, ',');
        child_append(call, rendering, catalogue_children_at(children, i));
    }
    return i - begin;
}

bool rest_children_list(struct rest_call *call, struct error *err)
{
    CLEANUP(catalogue_children_unref) struct catalogue_children *children = NULL;
    struct child_place place = place_of(call);
    struct rendering rendering;
    size_t size, begin, count;
    struct slice after;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!rendering_prepare(call, &rendering, err) || !page_size(call, &size, err) ||
        !continuation_read(call, &after, err) ||
        !catalogue_children_open(call->services->catalogue, &place, &children, err))
        return false;
    begin = after.data ? catalogue_children_behind(children, after) : 0;
    BUF_APPEND(&call->body, "{\"_rid\":");
    if (!owner_rid(call, &call->body, err))
        return false;
    buf_printf(&call->body, ",\"%s\":[", rendering.row->feed);
    count = page_append(call, &rendering, children, begin, size);
    buf_printf(&call->body, "],\"_count\":%zu}", count);
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)count);
    if (count && begin + count < catalogue_children_count(children))
        rest_answer_header(
            call, SLICE("x-ms-continuation"),
            continuation_of(
                call,
                catalogue_child_info(catalogue_children_at(children, begin + count - 1))->id));
    call->status = 200;
    return true;
}

/* --- One ------------------------------------------------------------------------------------- */

bool rest_children_read(struct rest_call *call, struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *child = NULL;
    struct slice known = rest_call_header(call, REST_HEADER_IF_NONE_MATCH);
    struct child_place place = place_of(call);
    struct rendering rendering;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!rendering_prepare(call, &rendering, err) ||
        !catalogue_child_open(call->services->catalogue, &place, call->route.id, &child, err))
        return false;
    if (known.data && slice_equal(known, catalogue_child_info(child)->etag)) {
        rest_answer_etag(call, known);
        call->status = 304;
        return true;
    }
    child_answer(call, &rendering, child, 200);
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
    if (!rendering_prepare(call, &rendering, err) || !rest_call_body(call, &body, err))
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
    if (!rendering_prepare(call, &rendering, err) || !rest_call_body(call, &body, err) ||
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
