/* Values as GraphSON 2 and 3, with types, and the frames of all versions. */
#include "front/gremlin/format/format_private.h"

#include "document/json.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/traversal.h"

/* {"@type":"g:Int32","@value": ... */
static void type_open(struct gremlin_writer *writer, const char *type)
{
    BUF_APPEND(writer->buf, "{\"@type\":\"");
    buf_append_text(writer->buf, type);
    BUF_APPEND(writer->buf, "\",\"@value\":");
}

static void type_close(struct gremlin_writer *writer)
{
    BUF_APPEND(writer->buf, "}");
}

static bool is_third(const struct gremlin_writer *writer)
{
    return writer->format->version == 3;
}

/* --- Scalars ---------------------------------------------------------------------------------- */

static const char *scalar_type(enum gremlin_type type)
{
    switch (type) {
    case GREMLIN_BYTE:
        return "gx:Byte";
    case GREMLIN_SHORT:
        return "gx:Int16";
    case GREMLIN_INT:
        return "g:Int32";
    case GREMLIN_LONG:
        return "g:Int64";
    case GREMLIN_FLOAT:
        return "g:Float";
    case GREMLIN_DOUBLE:
        return "g:Double";
    case GREMLIN_CHAR:
        return "gx:Char";
    case GREMLIN_DATE:
        return "g:Date";
    case GREMLIN_TIMESTAMP:
        return "g:Timestamp";
    case GREMLIN_BIG_INTEGER:
        return "gx:BigInteger";
    case GREMLIN_BIG_DECIMAL:
        return "gx:BigDecimal";
    case GREMLIN_UUID:
        return "g:UUID";
    case GREMLIN_BINARY:
        return "gx:ByteBuffer";
    case GREMLIN_CLASS:
        return "g:Class";
    case GREMLIN_DATE_TIME:
        return "gx:OffsetDateTime";
    case GREMLIN_DURATION:
        return "gx:Duration";
    default:
        return NULL; /* bare */
    }
}

static bool scalar_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    const char *type = scalar_type(value.type);

    if (value.type == GREMLIN_ENUM || value.type == GREMLIN_TEMPORAL) {
        struct slice name = value.type == GREMLIN_ENUM
                                ? gremlin_family_name((enum gremlin_enum_family)value.word.family)
                                : gremlin_temporal_name(value);

        buf_append_text(writer->buf,
                        value.type == GREMLIN_ENUM ? "{\"@type\":\"g:" : "{\"@type\":\"gx:");
        buf_append_slice(writer->buf, name);
        BUF_APPEND(writer->buf, "\",\"@value\":");
        gremlin_plain_write_scalar(writer, value);
        type_close(writer);
        return true;
    }
    if (!type)
        return gremlin_plain_write_scalar(writer, value);
    type_open(writer, type);
    gremlin_plain_write_scalar(writer, value);
    type_close(writer);
    return true;
}

/* --- Containers ------------------------------------------------------------------------------- */

static bool items_write(struct gremlin_writer *writer, const struct gremlin_value *items,
                        size_t count)
{
    BUF_APPEND(writer->buf, "[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_graphson_write(writer, items[i]) || !gremlin_writer_room(writer))
            return false;
    }
    BUF_APPEND(writer->buf, "]");
    return true;
}

/* Bare in version 2. */
static bool list_write(struct gremlin_writer *writer, const struct gremlin_value *items,
                       size_t count)
{
    if (!is_third(writer))
        return items_write(writer, items, count);
    type_open(writer, "g:List");
    if (!items_write(writer, items, count))
        return false;
    type_close(writer);
    return true;
}

/* How often a row of a set is written: in version 2 bulk sets are lists. */
static int64_t times_of(const struct gremlin_table *table, const struct gremlin_row *row)
{
    return table->object.type == GREMLIN_BULK_SET ? row->value.integer : 1;
}

static bool keys_write(struct gremlin_writer *writer, const struct gremlin_table *set)
{
    bool first = true;

    BUF_APPEND(writer->buf, "[");
    for (size_t i = 0; i < set->count; i++)
        for (int64_t times = times_of(set, &set->rows[i]); times > 0; times--) {
            if (!first)
                BUF_APPEND(writer->buf, ",");
            first = false;
            if (!gremlin_graphson_write(writer, set->rows[i].key) || !gremlin_writer_room(writer))
                return false;
        }
    BUF_APPEND(writer->buf, "]");
    return true;
}

/* [key,value,key,value] of version 3. */
static bool pairs_write(struct gremlin_writer *writer, const struct gremlin_table *table)
{
    BUF_APPEND(writer->buf, "[");
    for (size_t i = 0; i < table->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_graphson_write(writer, table->rows[i].key))
            return false;
        BUF_APPEND(writer->buf, ",");
        if (!gremlin_graphson_write(writer, table->rows[i].value) || !gremlin_writer_room(writer))
            return false;
    }
    BUF_APPEND(writer->buf, "]");
    return true;
}

static bool set_write(struct gremlin_writer *writer, const struct gremlin_table *set)
{
    bool bulk = set->object.type == GREMLIN_BULK_SET;

    if (!is_third(writer))
        return keys_write(writer, set);
    type_open(writer, bulk ? "g:BulkSet" : "g:Set");
    if (bulk ? !pairs_write(writer, set) : !keys_write(writer, set))
        return false;
    type_close(writer);
    return true;
}

static bool map_write(struct gremlin_writer *writer, const struct gremlin_table *map)
{
    if (is_third(writer)) {
        type_open(writer, "g:Map");
        if (!pairs_write(writer, map))
            return false;
        type_close(writer);
        return true;
    }
    BUF_APPEND(writer->buf, "{");
    for (size_t i = 0; i < map->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_plain_write_key(writer, map->rows[i].key) ||
            !gremlin_graphson_write(writer, map->rows[i].value) || !gremlin_writer_room(writer))
            return false;
    }
    BUF_APPEND(writer->buf, "}");
    return true;
}

/* A map of one. */
static bool entry_write(struct gremlin_writer *writer, const struct gremlin_entry *entry)
{
    if (is_third(writer)) {
        BUF_APPEND(writer->buf, "{\"@type\":\"g:Map\",\"@value\":[");
        if (!gremlin_graphson_write(writer, entry->key))
            return false;
        BUF_APPEND(writer->buf, ",");
        if (!gremlin_graphson_write(writer, entry->value))
            return false;
        BUF_APPEND(writer->buf, "]}");
        return true;
    }
    BUF_APPEND(writer->buf, "{");
    if (!gremlin_plain_write_key(writer, entry->key) ||
        !gremlin_graphson_write(writer, entry->value))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool tree_write(struct gremlin_writer *writer, const struct gremlin_table *tree)
{
    BUF_APPEND(writer->buf, "{\"@type\":\"g:Tree\",\"@value\":[");
    for (size_t i = 0; i < tree->count; i++) {
        buf_append_text(writer->buf, i ? ",{\"key\":" : "{\"key\":");
        if (!gremlin_graphson_write(writer, tree->rows[i].key))
            return false;
        BUF_APPEND(writer->buf, ",\"value\":");
        if (!gremlin_graphson_write(writer, tree->rows[i].value) || !gremlin_writer_room(writer))
            return false;
        BUF_APPEND(writer->buf, "}");
    }
    BUF_APPEND(writer->buf, "]}");
    return true;
}

/* --- Elements --------------------------------------------------------------------------------- */

/* "properties":{"since":V} */
static bool meta_write(struct gremlin_writer *writer, const struct gremlin_properties *meta)
{
    if (!meta || !meta->count)
        return true;
    BUF_APPEND(writer->buf, ",\"properties\":{");
    for (size_t i = 0; i < meta->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        document_json_write_string(gremlin_bytes(meta->slots[i].key), writer->buf);
        BUF_APPEND(writer->buf, ":");
        if (!gremlin_graphson_write(writer, meta->slots[i].value))
            return false;
    }
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool slot_write(struct gremlin_writer *writer, const struct gremlin_slot *slot)
{
    BUF_APPEND(writer->buf, "{\"@type\":\"g:VertexProperty\",\"@value\":{\"id\":");
    if (!gremlin_graphson_write(writer, slot->id))
        return false;
    BUF_APPEND(writer->buf, ",\"value\":");
    if (!gremlin_graphson_write(writer, slot->value))
        return false;
    BUF_APPEND(writer->buf, ",\"label\":");
    if (!gremlin_graphson_write(writer, slot->key) || !meta_write(writer, slot->meta))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool property_parts(struct gremlin_writer *writer, struct gremlin_value key,
                           struct gremlin_value value)
{
    BUF_APPEND(writer->buf, "{\"@type\":\"g:Property\",\"@value\":{\"key\":");
    if (!gremlin_graphson_write(writer, key))
        return false;
    BUF_APPEND(writer->buf, ",\"value\":");
    if (!gremlin_graphson_write(writer, value))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool edge_properties(struct gremlin_writer *writer,
                            const struct gremlin_properties *properties)
{
    for (size_t i = 0; i < properties->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        document_json_write_string(gremlin_bytes(properties->slots[i].key), writer->buf);
        BUF_APPEND(writer->buf, ":");
        if (!property_parts(writer, properties->slots[i].key, properties->slots[i].value))
            return false;
    }
    return true;
}

/* Left out where there are none, and of references. */
static bool properties_write(struct gremlin_writer *writer, struct gremlin_value element)
{
    struct gremlin_properties *properties;
    bool fine = true;

    if (!gremlin_writer_properties(writer, element, &properties))
        return false;
    if (properties && properties->count) {
        BUF_APPEND(writer->buf, ",\"properties\":{");
        fine = element.type == GREMLIN_VERTEX
                   ? gremlin_plain_write_grouped(writer, properties, slot_write)
                   : edge_properties(writer, properties);
        BUF_APPEND(writer->buf, "}");
    }
    gremlin_writer_release(writer, properties);
    return fine;
}

static bool named_write(struct gremlin_writer *writer, const char *name, struct gremlin_value value)
{
    buf_append_text(writer->buf, name);
    return gremlin_graphson_write(writer, value);
}

static bool vertex_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    const struct gremlin_element *element = gremlin_element(value);

    type_open(writer, "g:Vertex");
    if (!named_write(writer, "{\"id\":", element->id) ||
        !named_write(writer, ",\"label\":", element->label) || !properties_write(writer, value))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool edge_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    const struct gremlin_edge *edge = gremlin_edge(value);

    type_open(writer, "g:Edge");
    if (!named_write(writer, "{\"id\":", edge->element.id) ||
        !named_write(writer, ",\"label\":", edge->element.label) ||
        !named_write(writer, ",\"inVLabel\":", edge->in.label) ||
        !named_write(writer, ",\"outVLabel\":", edge->out.label) ||
        !named_write(writer, ",\"inV\":", edge->in.id) ||
        !named_write(writer, ",\"outV\":", edge->out.id) || !properties_write(writer, value))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool vertex_property_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    const struct gremlin_vertex_property *property = gremlin_vertex_property(value);
    struct gremlin_properties *meta;
    bool fine;

    type_open(writer, "g:VertexProperty");
    if (!named_write(writer, "{\"id\":", property->element.id) ||
        !named_write(writer, ",\"value\":", property->value) ||
        !named_write(writer, ",\"label\":", property->element.label) ||
        !gremlin_writer_properties(writer, value, &meta))
        return false;
    fine = meta_write(writer, meta);
    gremlin_writer_release(writer, meta);
    BUF_APPEND(writer->buf, "}}");
    return fine;
}

static bool path_write(struct gremlin_writer *writer, const struct gremlin_path *path)
{
    CLEANUP(memory_free)
    const struct gremlin_path **nodes =
        memory_alloc(memory_array_size(path->length + 1, sizeof *nodes));
    const char *open = is_third(writer) ? "{\"@type\":\"g:List\",\"@value\":[" : "[";
    const char *close = is_third(writer) ? "]}" : "]";
    const char *empty = is_third(writer) ? "{\"@type\":\"g:Set\",\"@value\":[]}" : "[]";

    gremlin_path_nodes(path, nodes);
    type_open(writer, "g:Path");
    BUF_APPEND(writer->buf, "{\"labels\":");
    buf_append_text(writer->buf, open);
    for (size_t i = 0; i < path->length; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (gremlin_is_null(nodes[i]->labels))
            buf_append_text(writer->buf, empty);
        else if (!gremlin_graphson_write(writer, nodes[i]->labels))
            return false;
    }
    buf_append_text(writer->buf, close);
    BUF_APPEND(writer->buf, ",\"objects\":");
    buf_append_text(writer->buf, open);
    for (size_t i = 0; i < path->length; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_graphson_write(writer, nodes[i]->value) || !gremlin_writer_room(writer))
            return false;
    }
    buf_append_text(writer->buf, close);
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool subgraph_write(struct gremlin_writer *writer, const struct gremlin_subgraph *graph)
{
    type_open(writer, "tinker:graph");
    BUF_APPEND(writer->buf, "{\"vertices\":");
    if (!keys_write(writer, gremlin_table(graph->vertices)))
        return false;
    BUF_APPEND(writer->buf, ",\"edges\":");
    if (!keys_write(writer, gremlin_table(graph->edges)))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

/* --- Arguments, and results of bytecode ------------------------------------------------------- */

static bool traverser_write(struct gremlin_writer *writer, struct gremlin_value value, int64_t bulk)
{
    type_open(writer, "g:Traverser");
    if (!named_write(writer, "{\"bulk\":", gremlin_long(bulk)) ||
        !named_write(writer, ",\"value\":", value))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool predicate_write(struct gremlin_writer *writer,
                            const struct gremlin_predicate *predicate)
{
    bool listed = predicate->count != 1 || predicate->name == GREMLIN_P_WITHIN ||
                  predicate->name == GREMLIN_P_WITHOUT || predicate->name == GREMLIN_P_AND ||
                  predicate->name == GREMLIN_P_OR;

    type_open(writer, gremlin_predicate_of_text(predicate->name) ? "g:TextP" : "g:P");
    BUF_APPEND(writer->buf, "{\"predicate\":\"");
    buf_append_slice(writer->buf, gremlin_predicate_text(predicate->name));
    BUF_APPEND(writer->buf, "\",\"value\":");
    if (listed ? !list_write(writer, predicate->values, predicate->count)
               : !gremlin_graphson_write(writer, predicate->values[0]))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool instructions_write(struct gremlin_writer *writer, const char *name,
                               const struct gremlin_instructions *instructions)
{
    buf_append_text(writer->buf, name);
    BUF_APPEND(writer->buf, "[");
    for (size_t i = 0; i < instructions->count; i++) {
        const struct gremlin_instruction *instruction = &instructions->items[i];

        buf_append_text(writer->buf, i ? ",[" : "[");
        document_json_write_string(instruction->name, writer->buf);
        for (size_t j = 0; j < instruction->count; j++)
            if (!named_write(writer, ",", instruction->arguments[j]))
                return false;
        BUF_APPEND(writer->buf, "]");
    }
    BUF_APPEND(writer->buf, "]");
    return true;
}

static bool bytecode_write(struct gremlin_writer *writer, const struct gremlin_traversal *traversal)
{
    type_open(writer, "g:Bytecode");
    BUF_APPEND(writer->buf, "{");
    if (traversal->sources.count) {
        if (!instructions_write(writer, "\"source\":", &traversal->sources))
            return false;
        BUF_APPEND(writer->buf, ",");
    }
    if (!instructions_write(writer, "\"step\":", &traversal->steps))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}

static bool cardinal_write(struct gremlin_writer *writer, const struct gremlin_cardinal *cardinal)
{
    type_open(writer, "g:Bytecode");
    BUF_APPEND(writer->buf, "{\"source\":[[\"CardinalityValueTraversal\",");
    if (!gremlin_graphson_write(writer, gremlin_word(cardinal->cardinality)) ||
        !named_write(writer, ",", cardinal->value))
        return false;
    BUF_APPEND(writer->buf, "]],\"step\":[]}}");
    return true;
}

static bool strategy_write(struct gremlin_writer *writer, const struct gremlin_strategy *strategy)
{
    const struct gremlin_table *configuration = gremlin_table(strategy->configuration);
    CLEANUP(buf_done) struct buf type;

    buf_init(&type, writer->buf->max);
    BUF_APPEND(&type, "g:");
    buf_append_slice(&type, gremlin_bytes(strategy->name));
    BUF_APPEND(writer->buf, "{\"@type\":");
    document_json_write_string(buf_slice(&type), writer->buf);
    BUF_APPEND(writer->buf, ",\"@value\":{\"fqcn\":");
    document_json_write_string(gremlin_bytes(strategy->name), writer->buf);
    BUF_APPEND(writer->buf, ",\"conf\":{");
    for (size_t i = 0; i < configuration->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_plain_write_key(writer, configuration->rows[i].key) ||
            !gremlin_graphson_write(writer, configuration->rows[i].value))
            return false;
    }
    BUF_APPEND(writer->buf, "}}}");
    return true;
}

static bool lambda_write(struct gremlin_writer *writer, const struct gremlin_lambda *lambda)
{
    type_open(writer, "g:Lambda");
    if (!named_write(writer, "{\"script\":", lambda->script) ||
        !named_write(writer, ",\"language\":", lambda->language))
        return false;
    buf_printf(writer->buf, ",\"arguments\":%d}}", lambda->arguments);
    return true;
}

static bool report_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    type_open(writer,
              value.type == GREMLIN_METRICS ? "g:TraversalMetrics" : "g:TraversalExplanation");
    if (!gremlin_graphson_write(writer, gremlin_report(value)->map))
        return false;
    type_close(writer);
    return true;
}

/* --- All -------------------------------------------------------------------------------------- */

static bool object_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    switch (value.type) {
    case GREMLIN_LIST:
        return list_write(writer, gremlin_list(value)->items, gremlin_list(value)->count);
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
        return set_write(writer, gremlin_table(value));
    case GREMLIN_MAP:
        return map_write(writer, gremlin_table(value));
    case GREMLIN_TREE:
        return tree_write(writer, gremlin_table(value));
    case GREMLIN_ENTRY:
        return entry_write(writer, gremlin_entry(value));
    case GREMLIN_VERTEX:
        return vertex_write(writer, value);
    case GREMLIN_EDGE:
        return edge_write(writer, value);
    case GREMLIN_VERTEX_PROPERTY:
        return vertex_property_write(writer, value);
    case GREMLIN_PROPERTY:
        return property_parts(writer, gremlin_property(value)->key, gremlin_property(value)->value);
    case GREMLIN_PATH:
        return path_write(writer, gremlin_path(value));
    case GREMLIN_GRAPH:
        return subgraph_write(writer, gremlin_subgraph(value));
    case GREMLIN_TRAVERSER:
        return traverser_write(writer, gremlin_traverser(value)->value,
                               gremlin_traverser(value)->bulk);
    case GREMLIN_PREDICATE:
        return predicate_write(writer, gremlin_predicate(value));
    case GREMLIN_TRAVERSAL:
        return bytecode_write(writer, gremlin_traversal(value));
    case GREMLIN_STRATEGY:
        return strategy_write(writer, gremlin_strategy(value));
    case GREMLIN_CARDINAL:
        return cardinal_write(writer, gremlin_cardinal(value));
    case GREMLIN_LAMBDA:
        return lambda_write(writer, gremlin_lambda(value));
    default:
        return report_write(writer, value);
    }
}

bool gremlin_graphson_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    bool fine;

    if (value.type < GREMLIN_LIST)
        return scalar_write(writer, value);
    if (!gremlin_writer_enter(writer))
        return false;
    fine = object_write(writer, value);
    gremlin_writer_leave(writer);
    return fine;
}

/* A traverser always has its type: who sends bytecode reads what TinkerPop answers, which is why
 * results of bytecode are typed where those of scripts are not. */
bool gremlin_graphson_write_item(struct gremlin_writer *writer, struct gremlin_value value,
                                 int64_t bulk, bool first)
{
    if (!first)
        BUF_APPEND(writer->buf, ",");
    if (bulk)
        return traverser_write(writer, value, bulk);
    return writer->format->write_value(writer, value);
}

/* --- Frames ----------------------------------------------------------------------------------- */

static bool attributes_write(struct gremlin_writer *writer, struct gremlin_value attributes)
{
    if (!gremlin_is_null(attributes))
        return writer->format->write_value(writer, attributes);
    buf_append_text(writer->buf, writer->format->typed && is_third(writer)
                                     ? "{\"@type\":\"g:Map\",\"@value\":[]}"
                                     : "{}");
    return true;
}

bool gremlin_graphson_write_answer(struct gremlin_writer *writer,
                                   const struct gremlin_answer *answer)
{
    bool third = writer->format->typed && is_third(writer);

    BUF_APPEND(writer->buf, "{\"requestId\":");
    if (answer->id.data)
        document_json_write_string(answer->id, writer->buf);
    else
        BUF_APPEND(writer->buf, "null");
    buf_printf(writer->buf, ",\"status\":{\"code\":%u,\"message\":", answer->code);
    document_json_write_string(answer->message, writer->buf);
    BUF_APPEND(writer->buf, ",\"attributes\":");
    if (!attributes_write(writer, answer->attributes))
        return false;
    BUF_APPEND(writer->buf, "},\"result\":{\"data\":");
    if (!answer->batch) {
        BUF_APPEND(writer->buf, "null");
    } else {
        buf_append_text(writer->buf, third ? "{\"@type\":\"g:List\",\"@value\":[" : "[");
        buf_append_slice(writer->buf, buf_slice(&answer->batch->items));
        buf_append_text(writer->buf, third ? "]}" : "]");
    }
    BUF_APPEND(writer->buf, ",\"meta\":");
    if (!attributes_write(writer, GREMLIN_NOTHING))
        return false;
    BUF_APPEND(writer->buf, "}}");
    return true;
}
