/* A spec while it is read: what the parts of spec share. */
#pragma once

#include "document/bson.h"
#include "front/mongo/index/spec.h"

/* One that is being read. */
struct mongo_index_reading {
    struct arena *arena;
    struct error *err;
    struct slice index; /* as it came */
    struct mongo_index_spec *spec;
    struct document_value key, name, version, unique, sparse, hidden, expires, filter, projection;
    struct document_value collation, clustered, prepared;
    const struct document_collator *collator; /* what it compares texts by; NULL: their bytes */
    struct document_value sphere_version, bits, min, max;
    struct document_value weights, language, override, text_version;
    size_t parts, hashed, wildcards, spheres, planes, texts;
    double low, high; /* of the box of a plane */
};

/* 67, for this reason. */
bool mongo_index_cannot(const struct mongo_index_reading *r, const char *why);
bool mongo_index_is_wildcard(struct slice field);
NODISCARD bool mongo_index_field_check(const struct mongo_index_reading *r, struct slice field);

static inline bool mongo_index_is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

static inline bool mongo_index_flag(const struct document_value *value)
{
    double number = 0;

    return value->type == DOCUMENT_BOOL ? value->boolean
                                        : document_to_double(value, &number) && number != 0;
}

/* spec_text.c: whether it can be one of text, whose key it replaces; how that is shown, and the
 * members key and text of its definition. */
NODISCARD bool mongo_index_text_check(struct mongo_index_reading *r);
void mongo_index_text_show(const struct mongo_index_reading *r, struct buf *out);
void mongo_index_text_append(const struct mongo_index_reading *r, struct buf *out);

/* spec_definition.c: what listIndexes shows, and the definition that the core keeps. */
void mongo_index_shown_make(struct mongo_index_reading *r);
NODISCARD bool mongo_index_definition_make(struct mongo_index_reading *r);
