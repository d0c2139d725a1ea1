#include "query/expression/item.h"

#include "document/bson.h"
#include "item/shown.h"

enum { SELF_SIZE = 4 + RID_TEXT_SIZE + 6 + RID_TEXT_SIZE + 6 + RID_TEXT_SIZE + 2 };

struct item_texts {
    char rid[RID_TEXT_SIZE];
    char self[SELF_SIZE];
    char etag[ITEM_ETAG_LEN + 2]; /* quotes are part of it */
};

static struct rid rid_of(const struct query_item *self)
{
    return rid_below_container(RID_ITEM, self->container.database, self->container.owner,
                               self->item->header.number);
}

static struct slice rid_text(const struct query_item *self, struct item_texts *texts)
{
    return rid_format(rid_of(self), texts->rid);
}

static void put(char **to, struct slice text)
{
    memcpy(*to, text.data, text.len);
    *to += text.len;
}

/* dbs/{rid}/colls/{rid}/docs/{rid}/ */
static struct slice self_text(const struct query_item *self, struct item_texts *texts)
{
    char part[RID_TEXT_SIZE], *to = texts->self;

    put(&to, SLICE("dbs/"));
    put(&to, rid_format(rid_of_database(self->container.database), part));
    put(&to, SLICE("/colls/"));
    put(&to, rid_format(self->container, part));
    put(&to, SLICE("/docs/"));
    put(&to, rid_format(rid_of(self), part));
    put(&to, SLICE("/"));
    return slice_of(texts->self, (size_t)(to - texts->self));
}

static struct slice etag_text(const struct query_item *self, struct item_texts *texts)
{
    texts->etag[0] = '"';
    item_etag(&self->item->header, texts->etag + 1);
    texts->etag[ITEM_ETAG_LEN + 1] = '"';
    return slice_of(texts->etag, sizeof texts->etag);
}

static struct document_value ts_value(const struct query_item *self)
{
    int64_t seconds = self->item->header.wall_ms / 1000;

    return seconds <= INT32_MAX ? document_int32((int32_t)seconds) : document_int64(seconds);
}

static const struct slice attachments = {(const uint8_t *)"attachments/", 12};

static bool item_property(void *context_self, struct slice name, struct query_context *context,
                          struct document_value *ret_value)
{
    const struct query_item *self = context_self;
    struct item_texts texts;
    struct slice text;

    if (LIKELY(name.len == 0 || name.data[0] != '_'))
        return false;
    switch (document_names_system(self->names, name)) {
    case DOCUMENT_SYSTEM_TS:
        *ret_value = ts_value(self);
        return true;
    case DOCUMENT_SYSTEM_RID:
        text = rid_text(self, &texts);
        break;
    case DOCUMENT_SYSTEM_SELF:
        text = self_text(self, &texts);
        break;
    case DOCUMENT_SYSTEM_ETAG:
        text = etag_text(self, &texts);
        break;
    case DOCUMENT_SYSTEM_ATTACHMENTS:
        text = attachments;
        break;
    default:
        return false;
    }
    *ret_value = document_string(arena_copy(context->arena, text)); /* some dozens of bytes */
    return true;
}

static bool item_whole(void *context_self, struct query_context *context,
                       struct document_value *ret_value, struct error *err)
{
    struct query_item *self = context_self;
    struct slice document, bytes;
    struct buf *scratch = &context->scratch;
    size_t mark = query_build_begin(context), begin;
    const struct slice *names = self->names->system;
    struct document_value ts = ts_value(self);
    struct item_texts texts;

    if (self->whole.type != DOCUMENT_UNDEFINED) {
        *ret_value = self->whole;
        return true;
    }
    document = item_shown(self->names, self->item->document, context->arena);
    if (!query_work(context, document.len >> 4, err))
        return false;
    begin = document_begin(scratch);
    if (document.len > 5) /* the elements, without length and final NUL */
        buf_append(scratch, document.data + 4, document.len - 5);
    document_append_string(scratch, names[DOCUMENT_SYSTEM_RID], rid_text(self, &texts));
    document_append_string(scratch, names[DOCUMENT_SYSTEM_SELF], self_text(self, &texts));
    document_append_string(scratch, names[DOCUMENT_SYSTEM_ETAG], etag_text(self, &texts));
    document_append_string(scratch, names[DOCUMENT_SYSTEM_ATTACHMENTS], attachments);
    document_append(scratch, names[DOCUMENT_SYSTEM_TS], &ts);
    document_end(scratch, begin);
    if (!query_build_end(context, mark, &bytes, err))
        return false;
    *ret_value = self->whole = document_object(bytes);
    return true;
}

static const struct query_virtual item_hidden = {item_property, item_whole};

void query_item_bind(struct query_item *self, const struct item *item,
                     const struct document_names *names, struct rid container,
                     struct query_slot *slot)
{
    *self = (struct query_item){
        .item = item, .names = names, .container = container, .whole = document_undefined()};
    *slot = (struct query_slot){
        .value = document_object(item->document), .hidden = &item_hidden, .hidden_self = self};
}
