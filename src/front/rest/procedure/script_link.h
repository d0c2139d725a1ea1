/* Links of scripts: how a script names its collection and the items in it.
 *
 *     dbs/{db}/colls/{c}/               the collection, both by name or both by _rid
 *     dbs/{db}/colls/{c}/docs/{item}/   an item: by id, or by _rid where the path is made of those
 *
 * Slashes at both ends do not count. Names stand as they are, without escapes. */
#pragma once

#include "front/rest/procedure/script_host.h"

/* The collection's links as scripts are told them: by _rid and by name; in the call's arena. */
void rest_script_links(struct rest_call *call, const struct rest_items *items,
                       struct slice *ret_self, struct slice *ret_alt);

/* ERROR_BAD_REQUEST: it is another collection's, or no link at all. */
NODISCARD bool rest_script_link_is_collection(const struct rest_script_host *host,
                                              struct slice link, struct error *err);

/* The id of the item a link names. *ret_found false: no item of the script's partition key has that
 * _rid. ERROR_BAD_REQUEST as above. */
NODISCARD bool rest_script_link_item(struct rest_script_host *host, struct slice link,
                                     struct document_value *ret_id, bool *ret_found,
                                     struct error *err);

/* Puts the names that items have got with the commit in the place of provisional ones, wherever
 * those stand in the text; appended to out. */
void rest_script_names(const struct rest_script_host *host, struct slice text, struct buf *out);
