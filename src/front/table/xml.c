#include "front/table/xml.h"

#include <expat.h>

struct reading {
    struct arena *arena;
    XML_Parser parser;
    struct xml_node *root;
    struct xml_node *open[XML_DEPTH_MAX]; /* from the root down to where we are */
    struct xml_node *last[XML_DEPTH_MAX]; /* the last child of each */
    size_t depth, nodes;
    struct buf text; /* of the innermost */
    const char *fault;
};

static void stop(struct reading *r, const char *fault)
{
    r->fault = fault;
    XML_StopParser(r->parser, XML_FALSE);
}

static void element_begin(void *self, const XML_Char *name, const XML_Char **attributes UNUSED)
{
    struct reading *r = self;
    struct xml_node *node = ARENA_NEW(r->arena, struct xml_node);

    if (r->depth == XML_DEPTH_MAX || ++r->nodes > XML_NODES_MAX) {
        stop(r, "it has too many elements or levels");
        return;
    }
    node->name = arena_copy(r->arena, slice_of_text(name));
    node->text = SLICE("");
    if (r->depth == 0)
        r->root = node;
    else if (r->last[r->depth - 1])
        r->last[r->depth - 1]->next = node;
    else
        r->open[r->depth - 1]->first = node;
    if (r->depth)
        r->last[r->depth - 1] = node;
    r->open[r->depth] = node;
    r->last[r->depth++] = NULL;
    buf_clear(&r->text);
}

static struct slice trimmed(struct slice text)
{
    while (text.len && strchr(" \t\r\n", text.data[0]))
        text = slice_skip(text, 1);
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
        text.len--;
    return text;
}

static void element_end(void *self, const XML_Char *name UNUSED)
{
    struct reading *r = self;
    struct xml_node *node = r->open[--r->depth];

    if (!node->first)
        node->text = arena_copy(r->arena, trimmed(buf_slice(&r->text)));
    buf_clear(&r->text);
}

static void text_part(void *self, const XML_Char *text, int len)
{
    struct reading *r = self;

    buf_append(&r->text, text, (size_t)len);
}

static void doctype(void *self, const XML_Char *name UNUSED, const XML_Char *system UNUSED,
                    const XML_Char *public_id UNUSED, int has_subset UNUSED)
{
    stop(self, "a document type is not taken");
}

bool xml_read(struct slice text, struct arena *arena, struct xml_node **ret_root, struct error *err)
{
    struct reading r = {.arena = arena};
    bool fine;

    if (text.len == 0 || text.len > XML_BYTES_MAX)
        return error_set(err, ERROR_TABLE_XML, "the body is empty or over %d bytes", XML_BYTES_MAX);
    r.parser = XML_ParserCreate(NULL);
    assert(r.parser);
    buf_init(&r.text, XML_BYTES_MAX);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, element_begin, element_end);
    XML_SetCharacterDataHandler(r.parser, text_part);
    XML_SetStartDoctypeDeclHandler(r.parser, doctype);
    fine = XML_Parse(r.parser, (const char *)text.data, (int)text.len, 1) == XML_STATUS_OK;
    if (!fine)
        (void)error_set(err, ERROR_TABLE_XML, "%s, in line %lu",
                        r.fault ? r.fault : XML_ErrorString(XML_GetErrorCode(r.parser)),
                        (unsigned long)XML_GetCurrentLineNumber(r.parser));
    XML_ParserFree(r.parser);
    buf_done(&r.text);
    if (fine)
        *ret_root = r.root;
    return fine;
}

const struct xml_node *xml_child(const struct xml_node *node, const char *name)
{
    for (const struct xml_node *child = node->first; child; child = child->next)
        if (slice_equal(child->name, slice_of_text(name)))
            return child;
    return NULL;
}

void xml_append_text(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        switch (text.data[i]) {
        case '<':
            BUF_APPEND(out, "&lt;");
            break;
        case '>':
            BUF_APPEND(out, "&gt;");
            break;
        case '&':
            BUF_APPEND(out, "&amp;");
            break;
        case '"':
            BUF_APPEND(out, "&quot;");
            break;
        case '\r':
            BUF_APPEND(out, "&#13;");
            break;
        default:
            /* XML has no other control characters */
            buf_append_byte(out, text.data[i] < 0x20 && text.data[i] != '\n' && text.data[i] != '\t'
                                     ? ' '
                                     : text.data[i]);
        }
}
