#include "definition/names.h"

#include "partition/synthetic.h"

#define SYSTEM_NAMES                                                                               \
    {                                                                                              \
        [DOCUMENT_SYSTEM_RID] = SLICE("_rid"), [DOCUMENT_SYSTEM_SELF] = SLICE("_self"),            \
        [DOCUMENT_SYSTEM_ETAG] = SLICE("_etag"), [DOCUMENT_SYSTEM_TS] = SLICE("_ts"),              \
        [DOCUMENT_SYSTEM_ATTACHMENTS] = SLICE("_attachments"),                                     \
        [DOCUMENT_SYSTEM_LSN] = SLICE("_lsn"),                                                     \
    }

static const struct document_names table[DEFINITION_IDENTITIES] = {
    [DEFINITION_IDENTITY_ID] = {.identity = SLICE("id"),
                                .identity_order = DOCUMENT_ORDER_SQL,
                                .identity_is_text = true,
                                .shown = SLICE("id"),
                                .ttl = SLICE("ttl"),
                                .system = SYSTEM_NAMES},
    [DEFINITION_IDENTITY_MONGO] = {.identity = SLICE("_id"),
                                   .identity_order = DOCUMENT_ORDER_MONGO,
                                   .shown = SLICE("id"),
                                   .system = SYSTEM_NAMES},
};

const struct document_names *definition_names(enum definition_identity identity)
{
    assert(identity < DEFINITION_IDENTITIES);
    return &table[identity];
}

bool definition_identity_find(struct slice property, enum definition_identity *ret_identity)
{
    for (int i = 0; i < DEFINITION_IDENTITIES; i++) {
        if (slice_equal(table[i].identity, property)) {
            *ret_identity = (enum definition_identity)i;
            return true;
        }
    }
    return false;
}

bool definition_synthetic_check(const struct document_names *names,
                                const struct partition_definition *key, struct error *err)
{
    enum { SHOWN_MAX = 60 };
    const struct partition_synthetic *synthetic = key->synthetic;
    const struct document_path *target = &key->paths[synthetic->target];

    if (target->count == 1 && slice_equal(target->segments[0].name, names->identity))
        return error_set(err, ERROR_BAD_REQUEST,
                         "synthetic key: the %.*s of an item cannot be made",
                         SLICE_ARG(names->identity));
    for (size_t i = 0; i < synthetic->source_count; i++)
        if (document_names_system(names, synthetic->sources[i].segments[0].name) !=
            DOCUMENT_SYSTEM_COUNT)
            return error_set(
                err, ERROR_BAD_REQUEST,
                "synthetic key: the source \"%.*s\" is a system property, which is not "
                "known when an item is placed",
                (int)MIN(synthetic->texts[i].len, (size_t)SHOWN_MAX),
                (const char *)synthetic->texts[i].data);
    return true;
}
