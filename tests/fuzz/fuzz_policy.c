/* An indexing policy that is taken is shown as one that is taken too, and shown the same. */
#include "definition/names.h"
#include "document/bson.h"
#include "document/json.h"
#include "fuzz/fuzz.h"
#include "index/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf bson, first, second;
    const struct document_names *names = definition_names(DEFINITION_IDENTITY_ID);
    const struct index_policy *policy;
    struct document_value embeddings;
    struct index_entry *entries;
    struct error err;
    size_t count;

    buf_init(&bson, BUF_DEFAULT_MAX);
    buf_init(&first, BUF_DEFAULT_MAX);
    buf_init(&second, BUF_DEFAULT_MAX);
    if (!document_json_read(slice_of(data, size), NULL, &bson, &err) ||
        !index_policy_parse(buf_slice(&bson), names, arena, &first, &policy, &err))
        return 0;
    policy = index_policy_with_cells(policy, arena);
    if (document_find(buf_slice(&bson), SLICE("vectorEmbeddings"), &embeddings) &&
        embeddings.type == DOCUMENT_ARRAY)
        policy = index_policy_with_vectors(policy, embeddings.document, arena);
    /* its own text does for an item */
    if (index_entries(policy, buf_slice(&bson), arena, &entries, &count, &err))
        for (size_t i = 0; i < count; i++) {
            struct slice rest = entries[i].bytes;

            FUZZ_CHECK(index_entry_skip(&rest, &err) && !rest.len);
        }
    FUZZ_CHECK(index_policy_parse(buf_slice(&first), names, arena, &second, &policy, &err));
    FUZZ_CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
    return 0;
}
