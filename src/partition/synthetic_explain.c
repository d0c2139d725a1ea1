/* What the key of a document is, told in JSON: one text for the administration, the command line
 * and the client library. */
#include "partition/synthetic.h"

#include "document/json.h"
#include "partition/strategy.h"

void partition_key_show(const struct partition_definition *definition,
                        const struct partition_key *key, struct buf *json)
{
    CLEANUP(buf_done) struct buf routing;

    buf_init(&routing, BUF_DEFAULT_MAX);
    BUF_APPEND(json, "\"partitionKey\":");
    partition_key_json(definition, key, json);
    buf_append_slice(json, key->open ? SLICE(",\"open\":true") : SLICE(",\"open\":false"));
    if (key->open || key->partial)
        return;
    partition_route(definition, key, &routing);
    BUF_APPEND(json, ",\"effectivePartitionKey\":\"");
    partition_epk_hex(buf_slice(&routing), json);
    BUF_APPEND(json, "\"");
}

static void sources_show(const struct partition_synthetic *synthetic, struct slice document,
                         struct buf *json)
{
    struct document_value values[PARTITION_SOURCES_MAX];

    partition_synthetic_sources(synthetic, document, values);
    BUF_APPEND(json, ",\"sources\":[");
    for (size_t i = 0; i < synthetic->source_count; i++) {
        buf_append_slice(json, i ? SLICE(",{\"path\":") : SLICE("{\"path\":"));
        document_json_write_string(synthetic->texts[i], json);
        if (values[i].type != DOCUMENT_UNDEFINED) {
            BUF_APPEND(json, ",\"value\":");
            document_json_write_value(&values[i], json);
        }
        BUF_APPEND(json, "}");
    }
    BUF_APPEND(json, "]");
}

static void synthetic_show(const struct partition_definition *definition,
                           const struct partition_key *key, struct slice document, struct buf *json)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    const struct document_value *made = &key->components[synthetic->target];
    struct slice base;
    uint32_t number;

    buf_printf(json, ",\"synthetic\":{\"kind\":\"%s\",\"target\":",
               partition_synthetic_kind_name(synthetic->kind));
    document_json_write_string(definition->texts[synthetic->target], json);
    sources_show(synthetic, document, json);
    if (synthetic->kind == PARTITION_CONCATENATION)
        buf_append_slice(json, synthetic->escapes ? SLICE(",\"escape\":true")
                                                  : SLICE(",\"escape\":false"));
    if (!key->open && synthetic->suffixes && made->type == DOCUMENT_STRING &&
        partition_synthetic_split(synthetic, made->text, &base, &number))
        buf_printf(json, ",\"suffix\":%u", number);
    if (synthetic->suffixes)
        buf_printf(json, ",\"suffixes\":%u", synthetic->suffixes);
    BUF_APPEND(json, "}");
}

bool partition_key_explain(const struct partition_definition *definition, struct slice document,
                           struct arena *arena, struct buf *json, struct partition_key *ret_key,
                           struct error *err)
{
    const struct partition_key_limits none = {SIZE_MAX};

    if (!partition_key_derive(definition, document, NULL, arena, ret_key, err) ||
        !partition_key_check(definition, ret_key, &none, err))
        return false;
    partition_key_show(definition, ret_key, json);
    if (definition->synthetic)
        synthetic_show(definition, ret_key, document, json);
    return true;
}
