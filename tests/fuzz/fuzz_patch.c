/* The first line is a patch, the rest an item, both JSON. Whatever they are, the result is a valid
 * document or an error that leaves the buffer alone. The entries of what comes out can be read. */
#include "definition/names.h"
#include "document/json.h"
#include "fuzz/fuzz.h"
#include "index/policy.h"
#include "item/patch.h"

enum { RESULT_MAX = 1024 * 1024 };

static void check_entries(struct slice item, struct arena *arena)
{
    CLEANUP(buf_done) struct buf completed, text;
    const struct index_policy *policy;
    struct index_entry *entries;
    size_t count;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    buf_init(&text, BUF_DEFAULT_MAX);
    FUZZ_CHECK(index_policy_parse(SLICE_NONE, definition_names(DEFINITION_IDENTITY_ID), arena,
                                  &completed, &policy, &err));
    if (!index_entries(policy, item, arena, &entries, &count, &err))
        return;
    for (size_t i = 0; i < count; i++) {
        struct slice bytes = entries[i].bytes;

        FUZZ_CHECK(index_entry_print(&bytes, &text, &err));
        FUZZ_CHECK(bytes.len == 0);
        FUZZ_CHECK(i == 0 || slice_compare(entries[i - 1].bytes, entries[i].bytes) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf body, item, result;
    struct slice first, rest;
    struct document_value operations;
    const struct patch *patch;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    buf_init(&item, BUF_DEFAULT_MAX);
    buf_init(&result, RESULT_MAX);
    if (!slice_split(slice_of(data, size), '\n', &first, &rest) ||
        !document_json_read_value(first, NULL, &body, &operations, &err) ||
        !document_json_read(rest, NULL, &item, &err) ||
        !patch_parse(&operations, definition_names(DEFINITION_IDENTITY_ID), NULL, 0, arena, &patch,
                     &err))
        return 0;
    if (!patch_apply(patch, buf_slice(&item), &result, &err)) {
        FUZZ_CHECK(result.len == 0 && !buf_overflowed(&result));
        return 0;
    }
    FUZZ_CHECK(document_validate(buf_slice(&result),
                                 &(struct document_limits){.refuse_duplicates = true}, &err));
    check_entries(buf_slice(&result), arena);
    return 0;
}
