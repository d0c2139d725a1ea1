#include "support/extended.h"

#include "document/extended.h"
#include "document/json.h"
#include "support/check.h"

#include <stdio.h>

struct slice extended_document(struct arena *arena, struct slice json)
{
    CLEANUP(buf_done) struct buf plain;
    struct document_value given, meant;
    struct error err;

    buf_init(&plain, BUF_DEFAULT_MAX);
    assert_ok(document_json_read(json, NULL, &plain, &err), &err);
    given = document_object(arena_copy(arena, buf_slice(&plain)));
    assert_ok(document_extended_read(&given, arena, &meant, &err), &err);
    return meant.document;
}

struct slice extended_file(struct arena *arena, const char *path)
{
    CLEANUP(buf_done) struct buf text;
    char whole[4096], block[4096];
    size_t count;
    FILE *file;

    buf_init(&text, BUF_DEFAULT_MAX);
    snprintf(whole, sizeof whole, "%s/%s", TESTS_DIRECTORY, path);
    file = fopen(whole, "r");
    if (!file)
        fail_msg("%s cannot be read", whole);
    while ((count = fread(block, 1, sizeof block, file)) > 0)
        buf_append(&text, block, count);
    fclose(file);
    return extended_document(arena, buf_slice(&text));
}
