/* Names: which properties of an item mean something to the server, whatever the item says.
 *
 * A container has one set of them (definition/names.h has the table of all sets and is the only
 * place that spells them); rooms below definition/ are handed the set they work by. */
#pragma once

#include "base/slice.h"
#include "document/order.h"

/* Properties that the server makes when it shows an item. They are in no stored item. */
enum document_system {
    DOCUMENT_SYSTEM_RID,
    DOCUMENT_SYSTEM_SELF,
    DOCUMENT_SYSTEM_ETAG,
    DOCUMENT_SYSTEM_TS,
    DOCUMENT_SYSTEM_ATTACHMENTS,
    DOCUMENT_SYSTEM_LSN, /* in feeds alone */
    DOCUMENT_SYSTEM_COUNT,
    DOCUMENT_SYSTEM_SHOWN = DOCUMENT_SYSTEM_LSN,          /* those before it are in every item */
    DOCUMENT_SYSTEM_VERSION = DOCUMENT_SYSTEM_ATTACHMENTS /* those before it tell versions apart */
};

struct document_names {
    struct slice identity;              /* the property that names an item in its partition */
    enum document_order identity_order; /* of its values in item keys: what makes two the same */
    bool identity_is_text;              /* it is a string, and always there */
    struct slice shown;                 /* what the identity is called over REST: a text there */
    struct slice ttl;                   /* an item's own time to live; len 0: items have none */
    struct slice system[DOCUMENT_SYSTEM_COUNT];
};

/* Which system property this is; DOCUMENT_SYSTEM_COUNT: none. */
static inline enum document_system document_names_system(const struct document_names *names,
                                                         struct slice name)
{
    int at = 0;

    if (name.len < 3 || name.data[0] != '_')
        return DOCUMENT_SYSTEM_COUNT;
    while (at < DOCUMENT_SYSTEM_COUNT && !slice_equal(names->system[at], name))
        at++;
    return (enum document_system)at;
}

/* Has a property of that name a meaning at all? */
static inline bool document_names_reserve(const struct document_names *names, struct slice name)
{
    return slice_equal(name, names->identity) ||
           (names->ttl.len && slice_equal(name, names->ttl)) ||
           document_names_system(names, name) != DOCUMENT_SYSTEM_COUNT;
}
