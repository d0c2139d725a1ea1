/* Names of a container: the table of which property is an item's identity, which its time to live,
 * and which names the server keeps to itself. */
#pragma once

#include "document/names.h"
#include "partition/definition.h"

/* Kept in definitions as the property's name: "orrery": {"identity": "_id"}. */
enum definition_identity {
    DEFINITION_IDENTITY_ID,    /* "id": a string; items may have a "ttl" */
    DEFINITION_IDENTITY_MONGO, /* "_id": any value but an array, objects with another order of
                                  fields are others; time to live by indexes alone */
    DEFINITION_IDENTITIES
};

const struct document_names *definition_names(enum definition_identity identity);

/* The identity whose property has this name. */
bool definition_identity_find(struct slice property, enum definition_identity *ret_identity);

/* Does the synthetic part of the key neither make the identity nor take what no item has when it is
 * placed? ERROR_BAD_REQUEST. */
NODISCARD bool definition_synthetic_check(const struct document_names *names,
                                          const struct partition_definition *key,
                                          struct error *err);
