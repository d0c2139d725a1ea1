#include "cluster/node.h"

#include "document/bson.h"

/* --- Finding --------------------------------------------------------------------------------- */

struct node_info *node_table_find(struct node_table *table, struct slice name)
{
    for (size_t i = 0; i < table->count; i++)
        if (slice_equal(slice_of_text(table->list[i].name), name))
            return &table->list[i];
    return NULL;
}

struct node_info *node_table_find_id(struct node_table *table, const char *id)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->list[i].id, id) == 0)
            return &table->list[i];
    return NULL;
}

struct node_info *node_table_find_number(struct node_table *table, uint32_t number)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->list[i].number == number)
            return &table->list[i];
    return NULL;
}

bool node_is_paused(const struct node_table *table, const struct node_info *info)
{
    for (size_t i = 0; info->region[0] && i < table->region_count; i++)
        if (strcmp(table->regions[i], info->region) == 0)
            return true;
    return info->paused;
}

bool node_has_tag(const struct node_info *info, struct slice tag)
{
    for (size_t i = 0; i < info->tag_count; i++)
        if (slice_equal(slice_of_text(info->tags[i]), tag))
            return true;
    return false;
}

/* --- Setting --------------------------------------------------------------------------------- */

bool node_name_check(struct slice name, struct error *err)
{
    bool fine = name.len > 0 && name.len < NODE_NAME_SIZE;

    for (size_t i = 0; fine && i < name.len; i++)
        fine = (name.data[i] >= 'a' && name.data[i] <= 'z') ||
               (name.data[i] >= '0' && name.data[i] <= '9') || name.data[i] == '-';
    return fine || error_set(err, ERROR_BAD_REQUEST,
                             "a node's name is one to %d small letters, digits and hyphens",
                             NODE_NAME_SIZE - 1);
}

/* Letters, digits, and what is common between them; empty: none. */
static bool word_set(struct slice value, const char *what, char ret_word[NODE_WORD_SIZE],
                     struct error *err)
{
    if (value.len >= NODE_WORD_SIZE)
        return error_set(err, ERROR_BAD_REQUEST, "the %s of a node has at most %d characters", what,
                         NODE_WORD_SIZE - 1);
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = value.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.' || c == ':' || c == '='))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the %s of a node is of letters, digits and - _ . : =", what);
    }
    memset(ret_word, 0, NODE_WORD_SIZE);
    if (value.len)
        memcpy(ret_word, value.data, value.len);
    return true;
}

static bool tags_set(struct node_info *info, struct slice value, struct error *err)
{
    struct node_info changed = {0};
    struct slice tag, rest = value;

    while (rest.len) {
        if (!slice_split(rest, ',', &tag, &rest)) {
            tag = rest;
            rest = SLICE_NONE;
        }
        tag = slice_trim(tag);
        if (!tag.len || node_has_tag(&changed, tag))
            continue;
        if (changed.tag_count == NODE_TAGS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "a node has at most %d tags", NODE_TAGS_MAX);
        if (!word_set(tag, "tag", changed.tags[changed.tag_count], err))
            return false;
        changed.tag_count++;
    }
    memcpy(info->tags, changed.tags, sizeof info->tags);
    info->tag_count = changed.tag_count;
    return true;
}

static bool capacity_set(struct node_info *info, struct slice value, struct error *err)
{
    static const struct {
        struct slice unit;
        uint64_t bytes;
    } units[] = {{SLICE("KB"), 1ULL << 10},
                 {SLICE("MB"), 1ULL << 20},
                 {SLICE("GB"), 1ULL << 30},
                 {SLICE("TB"), 1ULL << 40}};
    struct slice digits = value;
    uint64_t number, factor = 1;

    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (value.len > 2 && slice_equal(slice_skip(value, value.len - 2), units[i].unit)) {
            digits = slice_trim(slice_of(value.data, value.len - 2));
            factor = units[i].bytes;
        }
    if (!slice_to_uint64(digits, &number) || number > (uint64_t)INT64_MAX / factor)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the capacity of a node is a number of bytes, or one with KB, MB, GB or "
                         "TB; 0: what its disk has");
    info->capacity_bytes = number * factor;
    return true;
}

static bool reserve_set(struct node_info *info, struct slice value, struct error *err)
{
    struct slice digits = value;
    uint64_t number;

    if (value.len && value.data[value.len - 1] == '%')
        digits.len--;
    if (!slice_to_uint64(digits, &number) || number > 90)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the reserve of a node is the share it keeps free, 0%% to 90%%");
    info->reserve_percent = (uint32_t)number;
    return true;
}

bool node_set(struct node_info *info, struct slice attribute, struct slice value, struct error *err)
{
    if (slice_equal(attribute, SLICE("region")))
        return word_set(value, "region", info->region, err);
    if (slice_equal(attribute, SLICE("zone")))
        return word_set(value, "zone", info->zone, err);
    if (slice_equal(attribute, SLICE("tags")))
        return tags_set(info, value, err);
    if (slice_equal(attribute, SLICE("capacity")))
        return capacity_set(info, value, err);
    if (slice_equal(attribute, SLICE("reserve")))
        return reserve_set(info, value, err);
    return error_set(err, ERROR_BAD_REQUEST,
                     "a node has no \"%.*s\": it has region, zone, tags, capacity and reserve",
                     (int)MIN(attribute.len, (size_t)60), (const char *)attribute.data);
}

/* --- On disk --------------------------------------------------------------------------------- */

static void text_append(struct buf *buf, struct slice key, const char *text)
{
    if (text[0])
        document_append_string(buf, key, slice_of_text(text));
}

static void info_append(const struct node_info *info, struct slice key, struct buf *buf)
{
    size_t begin = document_append_object_begin(buf, key), tags;
    char index[DOCUMENT_INDEX_SIZE];

    document_append_int64(buf, SLICE("number"), info->number);
    document_append_string(buf, SLICE("id"), slice_of_text(info->id));
    document_append_string(buf, SLICE("name"), slice_of_text(info->name));
    text_append(buf, SLICE("url"), info->url);
    text_append(buf, SLICE("region"), info->region);
    text_append(buf, SLICE("zone"), info->zone);
    tags = document_append_array_begin(buf, SLICE("tags"));
    for (size_t i = 0; i < info->tag_count; i++)
        text_append(buf, document_index_key((uint32_t)i, index), info->tags[i]);
    document_end(buf, tags);
    document_append_int64(buf, SLICE("capacity"), (int64_t)info->capacity_bytes);
    document_append_int64(buf, SLICE("reserve"), info->reserve_percent);
    document_append_bool(buf, SLICE("draining"), info->draining);
    document_append_bool(buf, SLICE("paused"), info->paused);
    document_append_bool(buf, SLICE("remembered"), info->remembered);
    document_end(buf, begin);
}

void node_table_append(const struct node_table *table, struct buf *buf)
{
    size_t begin = document_begin(buf), list;
    char index[DOCUMENT_INDEX_SIZE];

    document_append_int64(buf, SLICE("format"), NODE_TABLE_FORMAT);
    list = document_append_array_begin(buf, SLICE("nodes"));
    for (size_t i = 0; i < table->count; i++)
        info_append(&table->list[i], document_index_key((uint32_t)i, index), buf);
    document_end(buf, list);
    list = document_append_array_begin(buf, SLICE("pausedRegions"));
    for (size_t i = 0; i < table->region_count; i++)
        text_append(buf, document_index_key((uint32_t)i, index), table->regions[i]);
    document_end(buf, list);
    document_append_bool(buf, SLICE("rebalancing"), table->rebalancing);
    document_end(buf, begin);
}

static bool damaged(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the table of nodes in the catalogue is damaged");
}

/* Absent is empty. */
static bool text_get(struct slice document, struct slice key, char *ret_text, size_t size)
{
    struct document_value value;

    if (!document_find(document, key, &value))
        return true;
    if (value.type != DOCUMENT_STRING || value.text.len >= size)
        return false;
    memcpy(ret_text, value.text.data, value.text.len);
    return true;
}

static bool number_get(struct slice document, struct slice key, int64_t max, int64_t *ret_number)
{
    struct document_value value;

    *ret_number = 0;
    if (!document_find(document, key, &value))
        return true;
    return document_to_int64(&value, ret_number) && *ret_number >= 0 && *ret_number <= max;
}

static bool flag_get(struct slice document, struct slice key)
{
    struct document_value value;

    return document_find(document, key, &value) && value.type == DOCUMENT_BOOL && value.boolean;
}

static bool tags_parse(struct slice document, struct node_info *info)
{
    struct document_value tags;
    struct document_iter iter;

    if (!document_find(document, SLICE("tags"), &tags))
        return true;
    if (tags.type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, tags.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING || iter.value.text.len >= NODE_WORD_SIZE ||
            info->tag_count == NODE_TAGS_MAX)
            return false;
        memcpy(info->tags[info->tag_count++], iter.value.text.data, iter.value.text.len);
    }
    return true;
}

static bool info_parse(struct slice document, struct node_info *info)
{
    int64_t number, capacity, reserve;

    if (!number_get(document, SLICE("number"), CLUSTER_NODES_MAX - 1, &number) ||
        !number_get(document, SLICE("capacity"), INT64_MAX, &capacity) ||
        !number_get(document, SLICE("reserve"), 90, &reserve) ||
        !text_get(document, SLICE("id"), info->id, sizeof info->id) ||
        !text_get(document, SLICE("name"), info->name, sizeof info->name) ||
        !text_get(document, SLICE("url"), info->url, sizeof info->url) ||
        !text_get(document, SLICE("region"), info->region, sizeof info->region) ||
        !text_get(document, SLICE("zone"), info->zone, sizeof info->zone) ||
        !tags_parse(document, info))
        return false;
    info->number = (uint32_t)number;
    info->capacity_bytes = (uint64_t)capacity;
    info->reserve_percent = (uint32_t)reserve;
    info->draining = flag_get(document, SLICE("draining"));
    info->paused = flag_get(document, SLICE("paused"));
    info->remembered = flag_get(document, SLICE("remembered"));
    return info->name[0] && strlen(info->id) == sizeof info->id - 1;
}

static bool regions_parse(struct slice document, struct node_table *table)
{
    struct document_value regions;
    struct document_iter iter;

    if (!document_find(document, SLICE("pausedRegions"), &regions))
        return true;
    if (regions.type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, regions.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING || iter.value.text.len >= NODE_WORD_SIZE ||
            table->region_count == NODE_REGIONS_MAX)
            return false;
        memcpy(table->regions[table->region_count++], iter.value.text.data, iter.value.text.len);
    }
    return true;
}

bool node_table_parse(struct slice document, struct node_table *ret_table, struct error *err)
{
    struct document_value nodes;
    struct document_iter iter;
    int64_t format;

    memset(ret_table, 0, sizeof *ret_table);
    if (!document_validate(document, NULL, err) ||
        !number_get(document, SLICE("format"), INT32_MAX, &format))
        return damaged(err);
    if (format > NODE_TABLE_FORMAT)
        return error_set(err, ERROR_STORE_VERSION,
                         "a table of nodes of format %lld is newer than %d", (long long)format,
                         NODE_TABLE_FORMAT);
    ret_table->format = (uint32_t)format;
    if (!document_find(document, SLICE("nodes"), &nodes) || nodes.type != DOCUMENT_ARRAY)
        return damaged(err);
    document_iter_init(&iter, nodes.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT || ret_table->count == CLUSTER_NODES_MAX ||
            !info_parse(iter.value.document, &ret_table->list[ret_table->count]))
            return damaged(err);
        ret_table->count++;
    }
    ret_table->rebalancing = flag_get(document, SLICE("rebalancing"));
    return regions_parse(document, ret_table) || damaged(err);
}
