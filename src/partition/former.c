/* Keys in the terms of the definition before a re-key. */
#include "partition/former.h"

#include "document/order.h"
#include "partition/synthetic.h"

static bool values_equal(const struct document_value *a, const struct document_value *b)
{
    return document_compare(DOCUMENT_ORDER_SQL, a, b) == 0;
}

bool partition_key_parse_either(const struct partition_definition *definition, struct slice text,
                                enum partition_key_need need, struct arena *arena,
                                struct partition_key *ret_key, struct error *err)
{
    const struct partition_definition *formerly = definition->formerly;
    struct partition_key *former;
    struct error why, ignored;
    bool now = partition_key_parse(definition, text, need, arena, ret_key, &why), before = false;

    if (formerly) {
        former = ARENA_NEW(arena, struct partition_key);
        /* What the request leaves open only the new definition finds out. */
        before =
            partition_key_parse(formerly, text, need, arena, former, &ignored) && !former->open;
    }
    if (!now && !before) {
        *err = why;
        return false;
    }
    if (!now)
        *ret_key = (struct partition_key){.former_only = true};
    if (before)
        ret_key->former = former;
    return true;
}

/* The suffix an item had by chance is not known any more; its base is. */
static bool component_fits(const struct partition_synthetic *synthetic, struct slice document,
                           const struct document_value *wanted, struct arena *arena)
{
    struct document_value sources[PARTITION_SOURCES_MAX], made;
    struct slice base, base_wanted;
    struct error ignored;
    uint32_t number;

    partition_synthetic_sources(synthetic, document, sources);
    if (!partition_synthetic_compute(synthetic, sources, 1, arena, &made, &ignored))
        return false;
    if (synthetic->kind != PARTITION_RANDOM_SUFFIX || made.type != DOCUMENT_STRING)
        return values_equal(&made, wanted);
    return wanted->type == DOCUMENT_STRING &&
           partition_synthetic_split(synthetic, made.text, &base, &number) &&
           partition_synthetic_split(synthetic, wanted->text, &base_wanted, &number) &&
           slice_equal(base, base_wanted);
}

bool partition_former_fits(const struct partition_definition *formerly, struct slice document,
                           const struct partition_key *former, struct arena *arena)
{
    struct partition_key key = partition_key_extract(formerly, document);

    for (size_t i = 0; i < former->count; i++) {
        bool made = formerly->synthetic && formerly->synthetic->target == i;

        if (!(made ? component_fits(formerly->synthetic, document, &former->components[i], arena)
                   : values_equal(&key.components[i], &former->components[i])))
            return false;
    }
    return true;
}
