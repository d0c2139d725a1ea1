/* XML, as much of it as service properties and access policies need: a small document as a tree.
 *
 * Read by expat. Document types are refused, so there are no entities but the five; attributes and
 * namespaces are not looked at. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define XML_HEAD "<?xml version=\"1.0\" encoding=\"utf-8\"?>"

enum { XML_BYTES_MAX = 64 * 1024, XML_NODES_MAX = 1000, XML_DEPTH_MAX = 16 };

struct xml_node {
    struct slice name;
    struct slice text; /* all of it, without blanks at its ends; where there are children: empty */
    struct xml_node *first, *next;
};

/* In the arena. ERROR_TABLE_XML. */
NODISCARD bool xml_read(struct slice text, struct arena *arena, struct xml_node **ret_root,
                        struct error *err);

/* The child of that name, the first if there are several; NULL: there is none. */
const struct xml_node *xml_child(const struct xml_node *node, const char *name);

/* Appends text with what XML wants escaped. */
void xml_append_text(struct buf *out, struct slice text);
