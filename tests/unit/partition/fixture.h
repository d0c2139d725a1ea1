/* Definitions and keys for the tests of this folder, from JSON text. */
#pragma once

#include "partition/key.h"
#include "support/check.h"
#include "support/documents.h"

static inline struct partition_definition definition_of(struct arena *arena, const char *json)
{
    struct partition_definition definition;
    struct error err;

    assert_ok(partition_definition_read(document_of(arena, json), arena, &definition, &err), &err);
    return definition;
}

#define V1 "{\"paths\":[\"/pk\"]}"
#define V2 "{\"paths\":[\"/pk\"],\"version\":2}"
#define MULTI "{\"paths\":[\"/a\",\"/b\",\"/c\"],\"kind\":\"MultiHash\",\"version\":2}"
#define SYSTEM "{\"paths\":[\"/_partitionKey\"],\"systemKey\":true}"

/* A key from the text of the header; partial if it is short. */
static inline struct partition_key
key_of(struct arena *arena, const struct partition_definition *definition, const char *text)
{
    struct partition_key key;
    struct error err;

    assert_ok(
        partition_key_parse(definition, slice_of_text(text), PARTITION_KEY_ANY, arena, &key, &err),
        &err);
    return key;
}
