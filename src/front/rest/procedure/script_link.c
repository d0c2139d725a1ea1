/* Provisional names are found again in what a script made of them by their looks alone: an etag
 * with an lsn above all others, a _rid of this container with a number above all others. Nothing
 * stored has either. */
#include "front/rest/procedure/script_link.h"

#include "front/rest/target/session.h"
#include "item/shown.h"

enum {
    RID_ITEM_LEN = 24,
    ETAG_SAME_LEN = 19, /* of the text, the lsn with its dashes */
    RID_SAME_LEN = 10,  /* of the text, the container's part that all of its items begin with */
};

/* --- Links ----------------------------------------------------------------------------------- */

static struct slice slashes_trim(struct slice link)
{
    while (link.len && link.data[0] == '/')
        link = slice_skip(link, 1);
    while (link.len && link.data[link.len - 1] == '/')
        link = slice_first(link, link.len - 1);
    return link;
}

void rest_script_links(struct rest_call *call, const struct rest_items *items,
                       struct slice *ret_self, struct slice *ret_alt)
{
    /* "dbs/{db}/colls/{c}/docs/" without its end */
    *ret_self = slice_first(items->self, items->self.len - 5);
    *ret_alt = arena_join(call->arena,
                          (struct slice[]){SLICE("dbs/"), rest_session_database(call),
                                           SLICE("/colls/"), container_info(items->container)->id},
                          4);
}

static bool link_fault(struct slice link, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "the link \"%.*s\" leads out of the collection",
                     (int)MIN(link.len, (size_t)100), (const char *)link.data);
}

bool rest_script_link_is_collection(const struct rest_script_host *host, struct slice link,
                                    struct error *err)
{
    struct slice bare = slashes_trim(link);

    return slice_equal(bare, slashes_trim(host->self_link)) || slice_equal(bare, host->alt_link) ||
           link_fault(link, err);
}

/* What follows a collection and "/docs/" in a link. False: it is not of that collection. */
static bool link_item(struct slice link, struct slice collection, struct slice *ret_item)
{
    struct slice rest;

    if (!slice_starts_with(link, collection))
        return false;
    rest = slice_skip(link, collection.len);
    if (!slice_starts_with(rest, SLICE("/docs/")))
        return false;
    *ret_item = slice_skip(rest, 6);
    return ret_item->len > 0 && !memchr(ret_item->data, '/', ret_item->len);
}

bool rest_script_link_item(struct rest_script_host *host, struct slice link,
                           struct document_value *ret_id, bool *ret_found, struct error *err)
{
    struct slice bare = slashes_trim(link), item;
    struct rid rid;

    *ret_found = true;
    if (link_item(bare, slashes_trim(host->self_link), &item) && rid_parse(item, &rid) &&
        rid.kind == RID_ITEM && rid.owner == container_rid(host->items->container).owner)
        return transaction_find_number(host->transaction, rid.number, ret_id, ret_found, err);
    if (!link_item(bare, slashes_trim(host->self_link), &item) &&
        !link_item(bare, host->alt_link, &item))
        return link_fault(link, err);
    *ret_id = item_id_of_text(definition_names_of(host->space->definition),
                              arena_copy(host->arena, item), host->arena);
    return true;
}

/* --- Provisional names ----------------------------------------------------------------------- */

/* What all provisional etags begin with. */
static void etag_mark(char ret_mark[ITEM_ETAG_LEN])
{
    item_etag(&(struct item_header){.lsn = TRANSACTION_LSN_PROVISIONAL}, ret_mark);
}

/* The etag that stands at the beginning of text now. */
static bool etag_real(const struct rest_script_host *host, const char *mark, struct slice text,
                      char ret_etag[ITEM_ETAG_LEN])
{
    size_t writes = transaction_work(host->transaction).writes;
    struct transaction_result result;
    uint64_t number = 0;

    if (text.len < ITEM_ETAG_LEN || memcmp(text.data, mark, ETAG_SAME_LEN) != 0)
        return false;
    for (size_t i = ITEM_ETAG_LEN - 4; i < ITEM_ETAG_LEN; i++) {
        uint8_t c = text.data[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        number = number << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (number >= writes)
        return false;
    result = transaction_result(host->transaction, number);
    if (!result.item.document.data)
        return false;
    item_etag(&result.item.header, ret_etag);
    return true;
}

static bool rid_real(const struct rest_script_host *host, struct slice text,
                     char ret_rid[RID_TEXT_SIZE])
{
    struct slice container = container_info(host->items->container)->rid;
    struct rid rid;

    if (text.len < RID_ITEM_LEN ||
        memcmp(text.data, container.data, MIN(container.len, (size_t)RID_SAME_LEN)) != 0 ||
        !rid_parse(slice_first(text, RID_ITEM_LEN), &rid) || rid.kind != RID_ITEM ||
        rid.owner != container_rid(host->items->container).owner ||
        !transaction_number(host->transaction, rid.number, &rid.number))
        return false;
    (void)rid_format(rid, ret_rid);
    return true;
}

void rest_script_names(const struct rest_script_host *host, struct slice text, struct buf *out)
{
    char mark[ITEM_ETAG_LEN], etag[ITEM_ETAG_LEN], rid[RID_TEXT_SIZE];
    size_t done = 0;

    etag_mark(mark);
    for (size_t i = 0; i < text.len;) {
        struct slice rest = slice_skip(text, i);
        struct slice name = SLICE_NONE;

        if (etag_real(host, mark, rest, etag))
            name = slice_of(etag, ITEM_ETAG_LEN);
        else if (rid_real(host, rest, rid))
            name = slice_of(rid, RID_ITEM_LEN);
        if (!name.data) {
            i++;
            continue;
        }
        buf_append_slice(out, slice_of(text.data + done, i - done));
        buf_append_slice(out, name);
        i += name.len;
        done = i;
    }
    buf_append_slice(out, slice_skip(text, done));
}
