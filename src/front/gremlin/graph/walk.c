/* Which definition is ours is found by what it says, not by its name: after a re-key the partition
 * key has another path, and entries with the old one would not place the edges any more. */
#include "front/gremlin/graph/walk.h"

#include "catalogue/indexes.h"
#include "index/policy.h"

#include <stdlib.h>

enum { PARTS = 5, LABELS_MAX = 8 /* that have ranges of their own */ };

static const struct {
    const char *name;
    size_t count; /* of parts, without the partition key */
    const char *parts[PARTS];
    enum index_comparison comparison; /* of `_isEdge` with true */
    const char *word;
} walks[GREMLIN_WALK_KINDS] = {
    [GREMLIN_WALK_OUT] = {"gremlin_out",
                          PARTS,
                          {"_vertexId", "label", "_sink", "_sinkPartition", "_sinkLabel"},
                          INDEX_EQUAL,
                          "equal"},
    [GREMLIN_WALK_IN] = {"gremlin_in",
                         PARTS,
                         {"_sink", "label", "_sinkPartition", "_vertexId", "_vertexLabel"},
                         INDEX_EQUAL,
                         "equal"},
    [GREMLIN_WALK_VERTICES] = {"gremlin_vertices", 1, {"id"}, INDEX_NOT_EQUAL, "notEqual"},
    [GREMLIN_WALK_REVERSE] = {"gremlin_reverse", /* definition/graph.c makes it */
                              PARTS,
                              {"_sink", "label", "_sinkPartition", "_vertexId", "_vertexLabel"},
                              INDEX_EQUAL,
                              "equal"},
};

/* Places of values in entries. */
static const struct {
    uint8_t out_id, in_id, in_partition, other_label;
} places[2] = {{0, 2, 3, 4}, {3, 0, 2, 4}};

/* --- The definitions -------------------------------------------------------------------------- */

static bool part_is(const struct index_part *part, struct slice name)
{
    return part->path.count == 1 && part->path.segments[0].kind == DOCUMENT_SEGMENT_PROPERTY &&
           slice_equal(part->path.segments[0].name, name) && !part->descending && !part->hashed;
}

static bool is_placed_by_target(const struct index_definition *index)
{
    return index->placed && index->placed->count == 1 &&
           slice_equal(index->placed->segments[0].name, SLICE("_sinkPartition")) &&
           part_is(&index->parts[index->part_count - 1], SLICE("id"));
}

/* Is it one that we would make, for whatever partition key? */
static bool is_like_ours(const struct index_definition *index, enum gremlin_walk walk)
{
    const struct index_condition *filter = index->filter;
    size_t count = walks[walk].count, id = walk == GREMLIN_WALK_REVERSE;

    if (index->part_count < count + id || index->part_count > count + id + 1 ||
        (id ? !is_placed_by_target(index) : index->placed != NULL) || index->filter_count != 1 ||
        filter->comparison != walks[walk].comparison || filter->value.type != DOCUMENT_BOOL ||
        !filter->value.boolean || filter->path.count != 1 ||
        !slice_equal(filter->path.segments[0].name, SLICE("_isEdge")))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!part_is(&index->parts[i], slice_of_text(walks[walk].parts[i])))
            return false;
    return true;
}

static bool is_ours(const struct gremlin_graph *graph, const struct index_definition *index,
                    enum gremlin_walk walk)
{
    size_t count = walks[walk].count, id = walk == GREMLIN_WALK_REVERSE;

    return is_like_ours(index, walk) && index->part_count == count + id + graph->key_count &&
           (!graph->key_count || part_is(&index->parts[count], graph->keys[0]));
}

const struct index_definition *gremlin_walk_index(const struct gremlin_graph *graph,
                                                  enum gremlin_walk walk)
{
    size_t count;
    const struct index_definition *const *list =
        index_policy_besides(graph->space.definition->policy, &count);

    for (size_t i = 0; graph->key_count <= 1 && i < count; i++)
        if (is_ours(graph, list[i], walk) && query_entries_serve(&graph->space, list[i]))
            return list[i];
    return NULL;
}

/* One that we would make, for this partition key if there is one, else for another; NULL: none. */
static const struct index_definition *like_find(const struct gremlin_graph *graph,
                                                enum gremlin_walk walk)
{
    size_t count;
    const struct index_definition *const *list =
        index_policy_besides(graph->space.definition->policy, &count);
    const struct index_definition *like = NULL;

    for (size_t i = 0; i < count && (!like || !is_ours(graph, like, walk)); i++)
        if (is_like_ours(list[i], walk))
            like = list[i];
    return like;
}

/* Has the graph to get it? Reverse edges are chosen, and then stand in for gremlin_in: behind a
 * re-key alone they are made anew. */
static bool is_wanted(const struct gremlin_graph *graph, enum gremlin_walk walk,
                      const struct index_definition *like)
{
    if (like && is_ours(graph, like, walk))
        return false;
    return walk == GREMLIN_WALK_REVERSE
               ? like != NULL
               : walk != GREMLIN_WALK_IN || !like_find(graph, GREMLIN_WALK_REVERSE);
}

const char *gremlin_graph_way_in(const struct gremlin_graph *graph)
{
    return gremlin_walk_reverse(graph) ? "reverse edges" : "every partition";
}

const struct index_definition *gremlin_walk_reverse(const struct gremlin_graph *graph)
{
    /* who is bound to one partition key does not see the edges of others */
    return graph->bound || !graph->key_count ? NULL
                                             : gremlin_walk_index(graph, GREMLIN_WALK_REVERSE);
}

bool gremlin_graph_wants_indexes(const struct gremlin_graph *graph)
{

    if (!graph->met_edges || graph->options.readonly || graph->key_count > 1 ||
        graph->space.definition->default_ttl != 0)
        return false;
    for (enum gremlin_walk walk = 0; walk < GREMLIN_WALK_KINDS; walk++)
        if (is_wanted(graph, walk, like_find(graph, walk)))
            return true;
    return false;
}

static void part_append(struct buf *out, size_t at, struct slice name)
{
    CLEANUP(buf_done) struct buf path;
    char text[DOCUMENT_INDEX_SIZE];
    size_t part = document_append_object_begin(out, document_index_key(at, text));

    /* quoted, for the partition key may have any name */
    buf_init(&path, BUF_DEFAULT_MAX);
    BUF_APPEND(&path, "/\"");
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '"' || name.data[i] == '\\')
            BUF_APPEND(&path, "\\");
        buf_append_byte(&path, name.data[i]);
    }
    BUF_APPEND(&path, "\"");
    document_append_string(out, SLICE("path"), buf_slice(&path));
    document_end(out, part);
}

/* What the definition says; key data NULL: the container has no partition key. */
static void index_say(enum gremlin_walk walk, struct slice name, struct slice key, struct buf *out)
{
    struct document_value yes = document_bool(true);
    size_t list, condition;

    document_append_string(out, SLICE("name"), name);
    list = document_append_array_begin(out, SLICE("key"));
    for (size_t i = 0; i < walks[walk].count; i++)
        part_append(out, i, slice_of_text(walks[walk].parts[i]));
    if (key.data)
        part_append(out, walks[walk].count, key);
    if (walk == GREMLIN_WALK_REVERSE)
        part_append(out, walks[walk].count + (key.data != NULL), SLICE("id"));
    document_end(out, list);
    list = document_append_array_begin(out, SLICE("filter"));
    condition = document_append_object_begin(out, SLICE("0"));
    document_append_string(out, SLICE("path"), SLICE("/_isEdge"));
    document_append_string(out, SLICE("comparison"), slice_of_text(walks[walk].word));
    document_append(out, SLICE("value"), &yes);
    document_end(out, condition);
    document_end(out, list);
    if (walk == GREMLIN_WALK_REVERSE)
        document_append_string(out, SLICE("placed"), SLICE("/_sinkPartition"));
}

void gremlin_graph_definition(struct slice id, bool indexes, struct buf *out)
{
    size_t whole = document_begin(out), orrery, list, index;
    char text[DOCUMENT_INDEX_SIZE];

    document_append_string(out, SLICE("id"), id);
    if (indexes) {
        orrery = document_append_object_begin(out, SLICE("orrery"));
        list = document_append_array_begin(out, SLICE("indexes"));
        for (enum gremlin_walk walk = 0; walk < GREMLIN_WALKS; walk++) {
            index = document_append_object_begin(out, document_index_key(walk, text));
            index_say(walk, slice_of_text(walks[walk].name), SLICE_NONE, out);
            document_end(out, index);
        }
        document_end(out, list);
        document_end(out, orrery);
    }
    document_end(out, whole);
}

/* Those that are missing; of a name that is ours, for a partition key before, in its place. Another
 * index of the name stays, and is in the way. */
bool gremlin_graph_add_indexes(const struct gremlin_graph *graph, struct slice account,
                               struct slice database, struct error *err)
{
    struct buf said[GREMLIN_WALK_KINDS];
    struct slice add[GREMLIN_WALK_KINDS], drop[GREMLIN_WALK_KINDS];
    struct catalogue_index_change change = {.add = add, .drop = drop};
    bool fine;

    for (enum gremlin_walk walk = 0; walk < GREMLIN_WALK_KINDS; walk++) {
        const struct index_definition *like = like_find(graph, walk);
        struct slice name = slice_of_text(walks[walk].name);
        size_t whole;

        buf_init(&said[walk], BUF_DEFAULT_MAX);
        if (!is_wanted(graph, walk, like))
            continue;
        if (walk == GREMLIN_WALK_REVERSE)
            name = like->name;
        if (like && slice_equal(like->name, name))
            drop[change.drop_count++] = like->name;
        whole = document_begin(&said[walk]);
        index_say(walk, name, graph->key_count ? graph->keys[0] : SLICE_NONE, &said[walk]);
        document_end(&said[walk], whole);
        add[change.add_count++] = buf_slice(&said[walk]);
    }
    fine = !change.add_count ||
           catalogue_indexes_change(graph->options.services->catalogue, account, database,
                                    container_info(graph->options.container)->id, &change, err);
    for (enum gremlin_walk walk = 0; walk < GREMLIN_WALK_KINDS; walk++)
        buf_done(&said[walk]);
    return fine;
}

/* --- Ranges ----------------------------------------------------------------------------------- */

static int by_min(const void *left, const void *right)
{
    return slice_compare(((const struct cursor_range *)left)->min,
                         ((const struct cursor_range *)right)->min);
}

const struct cursor_range *gremlin_walk_ranges(const struct slice *ids, size_t id_count,
                                               const struct slice *labels, size_t label_count,
                                               struct arena *arena, size_t *ret_count)
{
    size_t each = label_count && label_count <= LABELS_MAX ? label_count : 1, count = 0, kept = 0;
    struct cursor_range *ranges = ARENA_ARRAY(arena, struct cursor_range, id_count * each + 1);
    CLEANUP(buf_done) struct buf key;

    buf_init(&key, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < id_count * each; i++) {
        struct document_value id = document_string(ids[i / each]), label;

        buf_clear(&key);
        document_key_append_cut(DOCUMENT_ORDER_SQL, &id, INDEX_VALUE_MAX, &key);
        if (label_count && label_count <= LABELS_MAX) {
            label = document_string(labels[i % each]);
            document_key_append_cut(DOCUMENT_ORDER_SQL, &label, INDEX_VALUE_MAX, &key);
        }
        ranges[count].min = arena_copy(arena, buf_slice(&key));
        ranges[count].max = cursor_prefix_end(arena, ranges[count].min);
        count++;
    }
    qsort(ranges, count, sizeof *ranges, by_min);
    for (size_t i = 0; i < count; i++)
        if (!kept || !slice_equal(ranges[kept - 1].min, ranges[i].min))
            ranges[kept++] = ranges[i];
    *ret_count = kept;
    return ranges;
}

/* --- Entries ---------------------------------------------------------------------------------- */

static struct slice text_of(const struct document_value *value)
{
    return value->type == DOCUMENT_STRING ? value->text : SLICE_NONE;
}

bool gremlin_walk_row(const struct gremlin_graph *graph, enum gremlin_walk walk,
                      const struct query_entry *entry, struct gremlin_edge_row *ret_row,
                      struct slice *ret_label)
{
    bool in = walk != GREMLIN_WALK_OUT;
    const struct document_value *values = entry->values;
    const struct partition_definition *definition = &graph->space.definition->key;
    struct gremlin_head *head = &ret_row->head;

    *ret_row = (struct gremlin_edge_row){.head = {.edge = true}, .in = in};
    if (entry->document.data) {
        if (!gremlin_head_read(entry->document, head) || !head->edge)
            return false;
        *ret_label = head->label;
        ret_row->key = partition_key_extract(definition, entry->document);
        return true;
    }
    *ret_label = text_of(&values[1]);
    head->out_id = text_of(&values[places[in].out_id]);
    head->in_id = text_of(&values[places[in].in_id]);
    head->in_partition = values[places[in].in_partition];
    /* of what no key can be, entries have the type alone: such an edge says nothing */
    if (head->in_partition.type == DOCUMENT_ARRAY || head->in_partition.type == DOCUMENT_OBJECT)
        head->in_partition = document_undefined();
    *(in ? &head->out_label : &head->in_label) = text_of(&values[places[in].other_label]);
    if (graph->key_count)
        ret_row->key = partition_key_of(definition, &values[PARTS], 1);
    else
        (void)gremlin_partition_key_stored(graph, &head->in_partition, &ret_row->key);
    if (walk == GREMLIN_WALK_REVERSE)
        head->id = text_of(&values[PARTS + graph->key_count]);
    return head->out_id.data && head->in_id.data;
}

bool gremlin_walk_vertex(const struct gremlin_graph *graph, const struct query_entry *entry,
                         struct slice *ret_id, struct partition_key *ret_key)
{
    const struct document_value none = document_undefined();

    *ret_id = text_of(&entry->values[0]);
    if (graph->key_count)
        *ret_key = partition_key_of(&graph->space.definition->key, &entry->values[1], 1);
    else
        (void)gremlin_partition_key_stored(graph, &none, ret_key);
    return ret_id->data != NULL;
}

static void value_keep(struct document_value *value, struct arena *arena)
{
    if (value->type == DOCUMENT_STRING)
        value->text = arena_copy(arena, value->text);
}

const struct gremlin_edge_row *gremlin_walk_keep(const struct gremlin_edge_row *row, bool copies,
                                                 struct arena *arena)
{
    struct gremlin_edge_row *kept = ARENA_NEW(arena, struct gremlin_edge_row);
    struct slice *texts[] = {&kept->head.out_id, &kept->head.in_id, &kept->head.out_label,
                             &kept->head.in_label, &kept->head.id};

    *kept = *row;
    kept->head.label = SLICE_NONE;
    if (!copies)
        return kept;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i]->data)
            *texts[i] = arena_copy(arena, *texts[i]);
    value_keep(&kept->head.in_partition, arena);
    for (size_t i = 0; i < kept->key.count; i++)
        value_keep(&kept->key.components[i], arena);
    return kept;
}
