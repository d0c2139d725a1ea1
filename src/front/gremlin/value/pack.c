#include "front/gremlin/value/pack.h"

#include "front/gremlin/value/container.h"

enum { DEPTH_MAX = 64, KEPT = 0xFF };

enum element_flags {
    ELEMENT_REFERENCE = 1,
    ELEMENT_SOURCED = 2, /* its properties are its source's */
    ELEMENT_STORED = 4,  /* and it was read */
    ELEMENT_OWN = 8,     /* its properties follow */
};

void gremlin_packing_init(struct gremlin_packing *packing, struct gremlin_heap *heap,
                          const struct gremlin_source *source, void *owner)
{
    *packing = (struct gremlin_packing){.heap = heap, .source = source, .owner = owner};
}

void gremlin_packing_done(struct gremlin_packing *packing)
{
    gremlin_value_replace_take(&packing->kept, GREMLIN_NOTHING);
}

/* --- To bytes -------------------------------------------------------------------------------- */

struct packer {
    struct gremlin_packing *packing;
    struct buf *out;
    int depth;
};

static void pack(struct packer *p, struct gremlin_value value);

static void bytes_pack(struct packer *p, struct slice bytes)
{
    buf_append_le32(p->out, (uint32_t)bytes.len);
    buf_append_slice(p->out, bytes);
}

static void keep(struct packer *p, struct gremlin_value value)
{
    if (gremlin_is_null(p->packing->kept))
        p->packing->kept = gremlin_list_new(p->packing->heap, 0);
    buf_append_byte(p->out, KEPT);
    buf_append_le32(p->out, gremlin_list(p->packing->kept)->count);
    gremlin_list_add(p->packing->kept, value);
}

static void slots_pack(struct packer *p, const struct gremlin_properties *properties)
{
    buf_append_le32(p->out, properties ? properties->count : 0);
    for (size_t i = 0; properties && i < properties->count; i++) {
        const struct gremlin_slot *slot = &properties->slots[i];

        pack(p, slot->key);
        pack(p, slot->value);
        pack(p, slot->id);
        buf_append_byte(p->out, slot->meta != NULL);
        if (slot->meta)
            slots_pack(p, slot->meta);
    }
}

static void end_pack(struct packer *p, const struct gremlin_end *end)
{
    pack(p, end->id);
    pack(p, end->label);
    pack(p, end->partition);
}

static void element_pack(struct packer *p, struct gremlin_value value)
{
    const struct gremlin_element *element = gremlin_element(value);
    struct slice stored = element->source ? element->source->stored(element) : SLICE_NONE;
    uint8_t flags = 0;

    if (element->reference)
        flags |= ELEMENT_REFERENCE;
    if (element->source)
        flags |= ELEMENT_SOURCED;
    if (stored.data)
        flags |= ELEMENT_STORED;
    if (!element->source && element->properties)
        flags |= ELEMENT_OWN;
    buf_append_byte(p->out, (uint8_t)value.type);
    buf_append_byte(p->out, flags);
    pack(p, element->id);
    pack(p, element->label);
    pack(p, element->partition);
    if (value.type == GREMLIN_EDGE) {
        end_pack(p, &gremlin_edge(value)->out);
        end_pack(p, &gremlin_edge(value)->in);
    }
    if (value.type == GREMLIN_VERTEX_PROPERTY) {
        pack(p, gremlin_vertex_property(value)->value);
        pack(p, gremlin_vertex_property(value)->vertex);
    }
    if (flags & ELEMENT_STORED)
        bytes_pack(p, stored);
    if (flags & ELEMENT_OWN)
        slots_pack(p, element->properties);
}

static void path_pack(struct packer *p, const struct gremlin_path *path)
{
    const struct gremlin_path **nodes =
        gremlin_heap_alloc(p->packing->heap, (path->length + 1) * sizeof *nodes);

    gremlin_path_nodes(path, nodes);
    buf_append_le32(p->out, path->length);
    for (size_t i = 0; i < path->length; i++) {
        pack(p, nodes[i]->value);
        pack(p, nodes[i]->labels);
    }
    gremlin_heap_release(p->packing->heap, nodes, (path->length + 1) * sizeof *nodes);
}

static void table_pack(struct packer *p, const struct gremlin_table *table)
{
    buf_append_le32(p->out, table->count);
    for (size_t i = 0; i < table->count; i++) {
        pack(p, table->rows[i].key);
        pack(p, table->rows[i].value);
    }
}

static bool object_is_packed(struct packer *p, struct gremlin_value value)
{
    const struct gremlin_element *element;

    if (p->depth == DEPTH_MAX)
        return false;
    if (!gremlin_is_element(value))
        return value.type <= GREMLIN_PROPERTY || value.type == GREMLIN_PATH ||
               value.type == GREMLIN_TREE;
    element = gremlin_element(value);
    return !element->source ||
           (element->source == p->packing->source && element->owner == p->packing->owner);
}

static void object_pack(struct packer *p, struct gremlin_value value)
{
    if (gremlin_is_element(value)) {
        element_pack(p, value);
        return;
    }
    buf_append_byte(p->out, (uint8_t)value.type);
    switch (value.type) {
    case GREMLIN_DATE_TIME:
        buf_append_le64(p->out, (uint64_t)gremlin_date_time(value)->seconds);
        buf_append_le32(p->out, (uint32_t)gremlin_date_time(value)->nanoseconds);
        buf_append_le32(p->out, (uint32_t)gremlin_date_time(value)->offset);
        return;
    case GREMLIN_DURATION:
        buf_append_le64(p->out, (uint64_t)gremlin_duration(value)->seconds);
        buf_append_le32(p->out, (uint32_t)gremlin_duration(value)->nanoseconds);
        return;
    case GREMLIN_TEMPORAL:
        bytes_pack(p, gremlin_temporal_name(value));
        bytes_pack(p, gremlin_temporal_text(value));
        return;
    case GREMLIN_LIST:
        buf_append_le32(p->out, gremlin_list(value)->count);
        for (size_t i = 0; i < gremlin_list(value)->count; i++)
            pack(p, gremlin_list(value)->items[i]);
        return;
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        table_pack(p, gremlin_table(value));
        return;
    case GREMLIN_ENTRY:
        pack(p, gremlin_entry(value)->key);
        pack(p, gremlin_entry(value)->value);
        return;
    case GREMLIN_PROPERTY:
        pack(p, gremlin_property(value)->key);
        pack(p, gremlin_property(value)->value);
        pack(p, gremlin_property(value)->owner);
        return;
    case GREMLIN_PATH:
        path_pack(p, gremlin_path(value));
        return;
    default:
        bytes_pack(p, gremlin_bytes(value));
    }
}

static void pack(struct packer *p, struct gremlin_value value)
{
    if (!gremlin_is_object(value)) {
        buf_append_byte(p->out, (uint8_t)value.type);
        if (!gremlin_is_null(value))
            buf_append_le64(p->out, (uint64_t)value.integer);
    } else if (!object_is_packed(p, value)) {
        keep(p, value);
    } else {
        p->depth++;
        object_pack(p, value);
        p->depth--;
    }
}

void gremlin_pack(struct gremlin_packing *packing, struct gremlin_value value, struct buf *out)
{
    struct packer packer = {packing, out, 0};

    pack(&packer, value);
}

/* --- And back -------------------------------------------------------------------------------- */

/* After a fault everything is nothing, and the end is near. */
struct unpacker {
    struct gremlin_packing *packing;
    struct slice left;
    int depth;
    bool broken;
};

static struct gremlin_value unpack(struct unpacker *u);

static struct slice take(struct unpacker *u, size_t len)
{
    struct slice bytes = slice_of(u->left.data, len);

    if (u->broken || len > u->left.len) {
        u->broken = true;
        return SLICE_NONE;
    }
    u->left = slice_of(u->left.data + len, u->left.len - len);
    return bytes;
}

static uint64_t take_number(struct unpacker *u, size_t len)
{
    struct slice bytes = take(u, len);
    uint64_t number = 0;

    for (size_t i = bytes.len; i-- > 0;)
        number = number << 8 | bytes.data[i];
    return number;
}

/* How many follow, each of at least one byte. */
static size_t take_count(struct unpacker *u)
{
    size_t count = (size_t)take_number(u, 4);

    if (count > u->left.len)
        u->broken = true;
    return u->broken ? 0 : count;
}

static struct slice take_bytes(struct unpacker *u)
{
    struct slice bytes = take(u, (size_t)take_number(u, 4));

    return u->broken ? SLICE("") : bytes;
}

static struct gremlin_properties *slots_unpack(struct unpacker *u)
{
    size_t count = take_count(u);
    struct gremlin_properties *properties = gremlin_properties_new(u->packing->heap, count);

    for (size_t i = 0; i < count && !u->broken; i++) {
        struct gremlin_slot slot = {.key = unpack(u), .value = unpack(u), .id = unpack(u)};

        if (take_number(u, 1) && u->depth < DEPTH_MAX) {
            u->depth++;
            slot.meta = slots_unpack(u);
            u->depth--;
        }
        gremlin_properties_add_take(properties, slot);
    }
    return properties;
}

static struct gremlin_end end_unpack(struct unpacker *u)
{
    struct gremlin_end end;

    end.id = unpack(u);
    end.label = unpack(u);
    end.partition = unpack(u);
    return end;
}

/* An empty element, whose parts are let go of with it. */
static struct gremlin_value element_unpack(struct unpacker *u, enum gremlin_type type)
{
    const struct gremlin_end none = {};
    const struct gremlin_slot empty = {};
    struct gremlin_heap *heap = u->packing->heap;
    struct gremlin_value value =
        type == GREMLIN_VERTEX
            ? gremlin_vertex_new(heap, GREMLIN_NOTHING, GREMLIN_NOTHING, GREMLIN_NOTHING)
        : type == GREMLIN_EDGE ? gremlin_edge_new(heap, GREMLIN_NOTHING, GREMLIN_NOTHING,
                                                  GREMLIN_NOTHING, &none, &none)
                               : gremlin_vertex_property_new(heap, &empty, GREMLIN_NOTHING);
    struct gremlin_element *element = gremlin_element(value);
    uint8_t flags = (uint8_t)take_number(u, 1);

    element->reference = flags & ELEMENT_REFERENCE;
    element->id = unpack(u);
    element->label = unpack(u);
    element->partition = unpack(u);
    if (type == GREMLIN_EDGE) {
        gremlin_edge(value)->out = end_unpack(u);
        gremlin_edge(value)->in = end_unpack(u);
    }
    if (type == GREMLIN_VERTEX_PROPERTY) {
        gremlin_vertex_property(value)->value = unpack(u);
        gremlin_vertex_property(value)->vertex = unpack(u);
    }
    if (flags & ELEMENT_SOURCED && u->packing->source) {
        struct slice stored = flags & ELEMENT_STORED ? take_bytes(u) : SLICE_NONE;

        if (!u->broken)
            u->packing->source->restore(value, u->packing->owner, stored);
        element->reference = flags & ELEMENT_REFERENCE;
    }
    if (flags & ELEMENT_OWN) {
        gremlin_properties_unref(element->properties);
        element->properties = slots_unpack(u);
    }
    return value;
}

static struct gremlin_value path_unpack(struct unpacker *u)
{
    size_t count = take_count(u);
    struct gremlin_value path = gremlin_path_empty(u->packing->heap);

    for (size_t i = 0; i < count && !u->broken; i++) {
        CLEANUP(gremlin_value_unref) struct gremlin_value value = unpack(u);
        CLEANUP(gremlin_value_unref) struct gremlin_value labels = unpack(u);

        if (!gremlin_is_null(labels) && labels.type != GREMLIN_SET) {
            u->broken = true;
            break;
        }
        gremlin_value_replace_take(
            &path, gremlin_value_of_take(
                       gremlin_path_extend(u->packing->heap, gremlin_path(path), value, labels)));
    }
    return path;
}

static struct gremlin_value table_unpack(struct unpacker *u, enum gremlin_type type)
{
    size_t count = take_count(u);
    struct gremlin_value table = gremlin_table_new(u->packing->heap, type, count);

    for (size_t i = 0; i < count && !u->broken; i++) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = unpack(u);

        gremlin_map_put_take(table, key, unpack(u));
    }
    return table;
}

static struct gremlin_value list_unpack(struct unpacker *u)
{
    size_t count = take_count(u);
    struct gremlin_value list = gremlin_list_new(u->packing->heap, count);

    for (size_t i = 0; i < count && !u->broken; i++)
        gremlin_list_add_take(list, unpack(u));
    return list;
}

static struct gremlin_value kept_unpack(struct unpacker *u)
{
    size_t at = (size_t)take_number(u, 4);

    if (!gremlin_is_null(u->packing->kept) && at < gremlin_list(u->packing->kept)->count)
        return gremlin_value_ref(gremlin_list(u->packing->kept)->items[at]);
    u->broken = true;
    return GREMLIN_NOTHING;
}

static struct gremlin_value entry_unpack(struct unpacker *u)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value key = unpack(u);
    CLEANUP(gremlin_value_unref) struct gremlin_value value = unpack(u);

    return gremlin_entry_new(u->packing->heap, key, value);
}

static struct gremlin_value property_unpack(struct unpacker *u)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value key = unpack(u);
    CLEANUP(gremlin_value_unref) struct gremlin_value value = unpack(u);
    CLEANUP(gremlin_value_unref) struct gremlin_value owner = unpack(u);

    return gremlin_property_new(u->packing->heap, key, value, owner);
}

static struct gremlin_value time_unpack(struct unpacker *u, enum gremlin_type type)
{
    struct gremlin_heap *heap = u->packing->heap;
    int64_t seconds;
    int32_t nanoseconds;
    struct slice name;

    if (type == GREMLIN_TEMPORAL) {
        name = take_bytes(u);
        return gremlin_temporal_new(heap, name, take_bytes(u));
    }
    seconds = (int64_t)take_number(u, 8);
    nanoseconds = (int32_t)take_number(u, 4);
    if (type == GREMLIN_DURATION)
        return gremlin_duration_new(heap, seconds, nanoseconds);
    return gremlin_date_time_new(heap, seconds, nanoseconds, (int32_t)take_number(u, 4));
}

static struct gremlin_value object_unpack(struct unpacker *u, enum gremlin_type type)
{
    switch (type) {
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
    case GREMLIN_VERTEX_PROPERTY:
        return element_unpack(u, type);
    case GREMLIN_DATE_TIME:
    case GREMLIN_DURATION:
    case GREMLIN_TEMPORAL:
        return time_unpack(u, type);
    case GREMLIN_LIST:
        return list_unpack(u);
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        return table_unpack(u, type);
    case GREMLIN_ENTRY:
        return entry_unpack(u);
    case GREMLIN_PROPERTY:
        return property_unpack(u);
    case GREMLIN_PATH:
        return path_unpack(u);
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
    case GREMLIN_STRING:
    case GREMLIN_UUID:
    case GREMLIN_BINARY:
    case GREMLIN_CLASS:
        return gremlin_bytes_new(u->packing->heap, type, take_bytes(u));
    default:
        u->broken = true;
        return GREMLIN_NOTHING;
    }
}

static struct gremlin_value unpack(struct unpacker *u)
{
    enum gremlin_type type = (enum gremlin_type)take_number(u, 1);
    struct gremlin_value value = GREMLIN_NOTHING;

    if (u->broken || type == GREMLIN_NULL)
        return value;
    if ((int)type == KEPT)
        return kept_unpack(u);
    if (type < GREMLIN_FIRST_OBJECT)
        return gremlin_integer(type, (int64_t)take_number(u, 8));
    if (u->depth == DEPTH_MAX) {
        u->broken = true;
        return value;
    }
    u->depth++;
    value = object_unpack(u, type);
    u->depth--;
    return value;
}

bool gremlin_unpack(struct gremlin_packing *packing, struct slice *bytes,
                    struct gremlin_value *ret_value, struct error *err)
{
    struct unpacker u = {.packing = packing, .left = *bytes};
    struct gremlin_value value = unpack(&u);

    if (u.broken) {
        gremlin_value_unref(value);
        return error_set(err, ERROR_SPILL, "what a traversal had put aside on disk has changed");
    }
    *bytes = u.left;
    *ret_value = value;
    return true;
}
