/* `orrery.graph`: what the owner of a graph chooses, as other members of a definition say it. It is
 * not kept by itself:
 *
 *     {"reverse": true}   there is an index of edges that lies with the partitions of their targets
 *                         (`gremlin_reverse` in orrery.indexes, which has its state)
 *     {"reverse": false}  there is none
 *
 * The index is one like any other, so that it is built, dropped, shown and carried like any other;
 * this is the short way to say it. front/gremlin/graph/walk.h reads by it. */
#include "definition/definition_private.h"

#include "document/bson.h"

static const struct slice index_name = SLICE("gremlin_reverse");

static void part_append(struct buf *out, size_t at, struct slice path)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t part = document_append_object_begin(out, document_index_key((uint32_t)at, text));

    document_append_string(out, SLICE("path"), path);
    document_end(out, part);
}

static void index_append(struct buf *out, struct slice key, struct slice partition_key)
{
    static const struct slice paths[] = {SLICE("/_sink"), SLICE("/label"), SLICE("/_sinkPartition"),
                                         SLICE("/_vertexId"), SLICE("/_vertexLabel")};
    struct document_value yes = document_bool(true);
    size_t index = document_append_object_begin(out, key), list, condition;

    document_append_string(out, SLICE("name"), index_name);
    list = document_append_array_begin(out, SLICE("key"));
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        part_append(out, i, paths[i]);
    part_append(out, ARRAY_LEN(paths), partition_key);
    part_append(out, ARRAY_LEN(paths) + 1, SLICE("/id"));
    document_end(out, list);
    list = document_append_array_begin(out, SLICE("filter"));
    condition = document_append_object_begin(out, SLICE("0"));
    document_append_string(out, SLICE("path"), SLICE("/_isEdge"));
    document_append_string(out, SLICE("comparison"), SLICE("equal"));
    document_append(out, SLICE("value"), &yes);
    document_end(out, condition);
    document_end(out, list);
    document_append_string(out, SLICE("placed"), SLICE("/_sinkPartition"));
    document_end(out, index);
}

static bool is_reverse(const struct document_value *index)
{
    struct document_value name;

    return index->type == DOCUMENT_OBJECT && document_find(index->document, SLICE("name"), &name) &&
           name.type == DOCUMENT_STRING && slice_equal(name.text, index_name);
}

/* The list with the index, as it is if it is there, or without it. */
static struct slice list_make(struct slice indexes, bool reverse, struct slice partition_key,
                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t count = 0;
    bool found = false;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    if (indexes.data) {
        document_iter_init(&iter, indexes);
        while (document_iter_next(&iter)) {
            bool is = is_reverse(&iter.value);

            found |= is;
            if (!is || reverse)
                document_append(&out, document_index_key(count++, text), &iter.value);
        }
    }
    if (reverse && !found)
        index_append(&out, document_index_key(count, text), partition_key);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

bool definition_graph_settle(const struct definition_fields *fields,
                             const struct definition_fields *before, struct arena *arena,
                             struct slice *object, struct error *err)
{
    const struct partition_definition *key = &fields->key;
    struct document_value graph, reverse, indexes = document_undefined(), nothing;
    struct slice list = SLICE_NONE;

    if (!object->data || !document_find(*object, SLICE("graph"), &graph))
        return true;
    if (graph.type != DOCUMENT_OBJECT || document_count(graph.document) != 1 ||
        !document_find(graph.document, SLICE("reverse"), &reverse) || reverse.type != DOCUMENT_BOOL)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.graph must be an object with \"reverse\", true or false");
    if (reverse.boolean && (key->path_count != 1 || key->paths[0].count != 1 || key->system_key))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "orrery.graph: reverse edges take a partition key of one path, which is "
                         "one property");
    if (document_find(*object, SLICE("indexes"), &indexes)) {
        if (indexes.type != DOCUMENT_ARRAY)
            return error_set(err, ERROR_BAD_REQUEST, "orrery.indexes must be an array of indexes");
        list = indexes.document;
    } else if (before) {
        list = definition_indexes_array(before);
    }
    indexes = document_array(list_make(list, reverse.boolean, key->texts[0], arena));
    nothing = document_undefined();
    *object = definition_member_set(definition_member_set(*object, SLICE("graph"), &nothing, arena),
                                    SLICE("indexes"), &indexes, arena);
    return true;
}
