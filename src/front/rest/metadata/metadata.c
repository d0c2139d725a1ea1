/* A continuation reads as the service's do, since some tools look inside:
 *
 *     +RID:~{_rid of the last resource}#RT:{pages so far}#TRC:{resources so far}
 *
 * The catalogue keeps its resources by name, so those of a page are picked out by one walk over all
 * of them: some hundred pointers. */
#include "front/rest/metadata/metadata.h"

#include "document/bson.h"
#include "document/json.h"
#include "front/rest/metadata/metadata_query.h"

#include <inttypes.h>

/* --- One resource ---------------------------------------------------------------------------- */

void rest_metadata_system(struct buf *document, const struct catalogue_info *info,
                          struct slice self)
{
    document_append_string(document, SLICE("_rid"), info->rid);
    document_append_string(document, SLICE("_self"), self);
    document_append_string(document, SLICE("_etag"), info->etag);
    document_append_int64(document, SLICE("_ts"), info->ts_ms / 1000);
}

struct slice rest_metadata_database_self(struct rest_call *call, uint32_t database)
{
    char rid[RID_TEXT_SIZE];

    return arena_printf(call->arena, "dbs/%.*s/",
                        SLICE_ARG(rid_format(rid_of_database(database), rid)));
}

struct slice rest_metadata_container_self(struct rest_call *call, uint32_t database,
                                          uint32_t container)
{
    char database_rid[RID_TEXT_SIZE], container_rid[RID_TEXT_SIZE];

    return arena_printf(
        call->arena, "dbs/%.*s/colls/%.*s/",
        SLICE_ARG(rid_format(rid_of_database(database), database_rid)),
        SLICE_ARG(rid_format(rid_of_container(database, container), container_rid)));
}

bool rest_metadata_seen(const struct rest_call *call, struct slice etag)
{
    struct slice seen = rest_call_etag(call, REST_HEADER_IF_NONE_MATCH);

    return seen.data && (slice_equal(seen, SLICE("*")) ||
                         slice_equal(seen, slice_of(etag.data + 1, etag.len - 2)));
}

void rest_metadata_answer(struct rest_call *call, uint16_t status, struct slice document,
                          struct slice etag, uint64_t lsn)
{
    bool read = call->operation->access == REST_ACCESS_READ;

    rest_answer_etag(call, etag);
    if (lsn)
        rest_answer_header_int(call, SLICE("lsn"), (int64_t)lsn);
    if (read && rest_metadata_seen(call, etag)) {
        call->status = 304;
        return;
    }
    document_json_write(document, &call->body);
    call->status = status;
}

void rest_metadata_owner(struct rest_call *call, const struct database *database,
                         const struct container *container)
{
    struct buf *lines = &call->lines;

    rest_answer_header(call, SLICE("x-ms-content-path"),
                       container ? container_info(container)->rid : database_info(database)->rid);
    BUF_APPEND(lines, "x-ms-alt-content-path: dbs/");
    front_percent_encode(database_info(database)->id, lines);
    if (container) {
        BUF_APPEND(lines, "/colls/");
        front_percent_encode(container_info(container)->id, lines);
    }
    BUF_APPEND(lines, "\r\n");
}

/* --- Positions ------------------------------------------------------------------------------- */

/* Where a page begins, and what came before it. */
struct position {
    bool given;
    uint64_t after; /* number of the last resource told */
    uint64_t pages, told;
};

static uint64_t rid_number(struct rid rid)
{
    switch (rid.kind) {
    case RID_DATABASE:
        return rid.database;
    case RID_CONTAINER:
    case RID_USER:
    case RID_ENCRYPTION_KEY:
        return rid.owner;
    default:
        return rid.number;
    }
}

static struct rid rid_numbered(struct rid rid, uint64_t number)
{
    switch (rid.kind) {
    case RID_DATABASE:
        rid.database = (uint32_t)number;
        break;
    case RID_CONTAINER:
    case RID_USER:
    case RID_ENCRYPTION_KEY:
        rid.owner = (uint32_t)number;
        break;
    default:
        rid.number = number;
    }
    return rid;
}

static bool part_take(struct slice *text, struct slice label, struct slice *ret_part)
{
    struct slice rest;

    if (!slice_starts_with(*text, label))
        return false;
    *text = slice_skip(*text, label.len);
    if (!slice_split(*text, '#', ret_part, &rest)) {
        *ret_part = *text;
        rest = SLICE_NONE;
    }
    *text = rest;
    return true;
}

/* The token, if it is one of a feed of this kind in this owner. */
static bool position_parse(struct slice text, struct rid kind, struct position *ret_position)
{
    struct slice rid_text, pages, told;
    struct rid rid;

    if (!part_take(&text, SLICE("+RID:~"), &rid_text) || !part_take(&text, SLICE("RT:"), &pages) ||
        !part_take(&text, SLICE("TRC:"), &told) || text.data ||
        !slice_to_uint64(pages, &ret_position->pages) ||
        !slice_to_uint64(told, &ret_position->told) || !rid_parse(rid_text, &rid) ||
        rid.kind != kind.kind)
        return false;
    ret_position->given = true;
    ret_position->after = rid_number(rid);
    rid = rid_numbered(rid, 0);
    kind = rid_numbered(kind, 0);
    return rid.database == kind.database && rid.owner == kind.owner;
}

static bool position_read(const struct rest_call *call, const struct rest_feed *feed,
                          struct position *ret_position, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_CONTINUATION);

    *ret_position = (struct position){0};
    if (text.len == 0 || position_parse(text, feed->rid, ret_position))
        return true;
    return error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
}

static void position_answer(struct rest_call *call, const struct rest_feed *feed,
                            const struct position *position)
{
    char rid[RID_TEXT_SIZE];

    (void)rid_format(rid_numbered(feed->rid, position->after), rid);
    rest_answer_header(call, SLICE("x-ms-continuation"),
                       arena_printf(call->arena, "+RID:~%s#RT:%" PRIu64 "#TRC:%" PRIu64, rid,
                                    position->pages, position->told));
}

bool rest_page_size(const struct rest_call *call, size_t *ret_size, bool *ret_asked,
                    struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_MAX_ITEM_COUNT);
    struct slice limit = rest_call_header(call, REST_HEADER_CONTINUATION_LIMIT_KB);
    uint64_t size = REST_PAGE_DEFAULT, limit_kb = 1;

    if (limit.len && (!slice_to_uint64(limit, &limit_kb) || limit_kb < 1))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-documentdb-responsecontinuationtokenlimitinkb must be 1 or more");
    *ret_asked = !slice_equal(text, SLICE("-1"));
    if (!*ret_asked)
        size = REST_PAGE_MAX;
    else if (text.len && (!slice_to_uint64(text, &size) || size == 0))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-max-item-count must be a whole number from 1, or -1");
    *ret_size = (size_t)MIN(size, (uint64_t)REST_PAGE_MAX);
    return true;
}

/* --- Feeds ----------------------------------------------------------------------------------- */

struct row {
    uint64_t number;
    size_t index; /* in the feed */
};

static size_t row_place(const struct row *rows, size_t count, uint64_t number)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (rows[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first `max` of those behind the position, by number; rows has room for one more. */
static size_t rows_pick(const struct rest_feed *feed, const struct position *position, size_t max,
                        struct row *rows)
{
    size_t count = 0;

    for (size_t i = 0; i < feed->count; i++) {
        uint64_t number = feed->number(feed->context, i);
        size_t place;

        if ((position->given && number <= position->after) ||
            (count == max && number > rows[count - 1].number))
            continue;
        place = row_place(rows, count, number);
        memmove(&rows[place + 1], &rows[place], (count - place) * sizeof *rows);
        rows[place] = (struct row){.number = number, .index = i};
        count = MIN(count + 1, max);
    }
    return count;
}

static size_t rows_append(struct rest_call *call, const struct rest_feed *feed,
                          const struct row *rows, size_t count)
{
    size_t told = 0, shown = 0;

    BUF_APPEND(&call->body, "{\"_rid\":");
    document_json_write_string(feed->owner, &call->body);
    BUF_APPEND(&call->body, ",\"");
    buf_append_slice(&call->body, feed->name);
    BUF_APPEND(&call->body, "\":[");
    for (; told < count && call->body.len < REST_PAGE_BYTES_MAX; told++) {
        struct slice document = feed->document(call, feed->context, rows[told].index);

        if (!document.data)
            continue;
        if (shown++)
            buf_append_byte(&call->body, ',');
        document_json_write(document, &call->body);
        rest_call_breathe(call);
    }
    buf_printf(&call->body, "],\"_count\":%zu}", shown);
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)shown);
    return told;
}

bool rest_feed_list(struct rest_call *call, const struct rest_feed *feed, struct error *err)
{
    struct position position;
    struct row *rows;
    size_t size, found, told;
    bool asked;

    if (!rest_page_size(call, &size, &asked, err) || !position_read(call, feed, &position, err))
        return false;
    rows = ARENA_ARRAY(call->arena, struct row, size + 2);
    found = rows_pick(feed, &position, size + 1, rows); /* one more, to know whether more follow */
    told = rows_append(call, feed, rows, MIN(found, size));
    /* A page filled as asked for may have others behind it, whether it has or not. */
    if (told && (told < found || (asked && told == size))) {
        position.after = rows[told - 1].number;
        position.pages++;
        position.told += told;
        position_answer(call, feed, &position);
    }
    call->status = 200;
    return true;
}

/* All resources of a feed as documents. */
struct gathered {
    struct slice *documents;
    size_t count, bytes;
};

static bool gather(struct rest_call *call, const struct rest_feed *feed, struct gathered *all,
                   struct error *err)
{
    struct row *rows = ARENA_ARRAY(call->arena, struct row, feed->count + 1);
    size_t found = rows_pick(feed, &(struct position){0}, feed->count, rows);

    all->documents = ARENA_ARRAY(call->arena, struct slice, feed->count + 1);
    for (size_t i = 0; i < found; i++) {
        struct slice document = feed->document(call, feed->context, rows[i].index);

        if (!document.data)
            continue;
        if (all->bytes + document.len > REST_METADATA_QUERY_BYTES_MAX)
            return error_set(err, ERROR_TOO_LARGE,
                             "the resources to be searched are larger than %d bytes together",
                             REST_METADATA_QUERY_BYTES_MAX);
        if (!rest_call_hold(call, document.len, err))
            return false;
        all->bytes += document.len;
        all->documents[all->count++] = document;
        rest_call_breathe(call);
    }
    return true;
}

bool rest_feed_query(struct rest_call *call, const struct rest_feed *feed, struct error *err)
{
    struct gathered all = {0};

    return gather(call, feed, &all, err) &&
           rest_metadata_query(call, all.documents, all.count, feed->owner, feed->name, err);
}
