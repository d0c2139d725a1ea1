/* The entries of an item: one walk through document and tree together, then a sort.
 *
 * Entries are written one after the other into pieces of the arena, through a buffer that lends
 * such a piece and never grows. The rule for a value is the one of its own node, else that of the
 * deepest node above it with an asterisk, which the walk carries down; where nothing can be
 * included any more it turns back.
 *
 * Elements of large arrays often repeat. From INDEX_REPEATS_FROM entries on a hash table drops
 * repetitions as they come, so that the limit counts different entries and the arena holds no more
 * than that. */
#include "document/bson.h"
#include "index/policy_private.h"

#include <xxhash.h>

enum {
    INDEX_ENTRIES_FIRST = 64,
    INDEX_REPEATS_FROM = 512,
    INDEX_REPEATS_SIZE = 65536, /* a power of two above 2 * INDEX_ENTRIES_MAX */
    INDEX_KEY_SLACK = 640,      /* what a cut key may take while it is written: a byte or two
                                   for each level of nesting, and one number */
    INDEX_ENTRY_ROOM = INDEX_PATH_MAX + INDEX_PATH_TAIL + INDEX_VALUE_MAX + INDEX_KEY_SLACK,
    INDEX_PIECE_MAX = 64 * 1024,
    BSON_EMPTY_SIZE = 5, /* of an object or array without elements */
};

struct walk {
    const struct index_policy *policy;
    struct arena *arena;
    struct buf out; /* lends the present piece of the arena */
    size_t piece;   /* size of the next piece */
    struct index_entry *entries;
    size_t count, capacity;
    uint32_t *repeats; /* places of entries + 1, by hash; NULL while there are few */
    uint32_t *seen;    /* for each node the last object that had it */
    uint32_t object;   /* objects are numbered as they are walked */
    bool full;
    struct index_path path;
};

static void walk_value(struct walk *w, const struct index_node *node, bool included,
                       const struct document_value *value);
static void put_composites(struct walk *w, struct slice item);
static size_t sort_unique(struct index_entry *entries, size_t count, struct arena *arena);

bool index_entries(const struct index_policy *policy, struct slice item, struct arena *arena,
                   struct index_entry **ret_entries, size_t *ret_count, struct error *err)
{
    struct walk w = {.policy = policy, .arena = arena, .capacity = INDEX_ENTRIES_FIRST};
    struct document_value root = document_object(item);

    w.piece = INDEX_ENTRY_ROOM + MIN(2 * item.len, (size_t)INDEX_PIECE_MAX);
    w.entries = ARENA_ARRAY(arena, struct index_entry, w.capacity);
    w.seen = arena_alloc_zero(arena, policy->node_count * sizeof *w.seen);
    index_path_init(&w.path);
    walk_value(&w, policy->root, false, &root);
    put_composites(&w, item);
    if (w.full)
        return error_set(err, ERROR_TOO_LARGE, "item has more than %d index entries",
                         INDEX_ENTRIES_MAX);
    *ret_count = sort_unique(w.entries, w.count, arena);
    *ret_entries = w.entries;
    return true;
}

/* --- Writing entries ------------------------------------------------------------------------- */

/* Where the next entry begins; there is room for `room` bytes. */
static size_t entry_begin(struct walk *w, size_t room)
{
    if (UNLIKELY(w->out.capacity - w->out.len < room)) {
        size_t size = MAX(w->piece, room);

        w->out = (struct buf){.data = arena_alloc(w->arena, size), .capacity = size, .max = size};
        w->piece = INDEX_PIECE_MAX;
    }
    return w->out.len;
}

static bool repeats_has(struct walk *w, struct slice bytes, size_t place)
{
    size_t at = XXH3_64bits(bytes.data, bytes.len) & (INDEX_REPEATS_SIZE - 1);

    for (; w->repeats[at]; at = (at + 1) & (INDEX_REPEATS_SIZE - 1)) {
        if (slice_equal(w->entries[w->repeats[at] - 1].bytes, bytes))
            return true;
    }
    w->repeats[at] = (uint32_t)place + 1;
    return false;
}

static void repeats_begin(struct walk *w)
{
    w->repeats = arena_alloc_zero(w->arena, INDEX_REPEATS_SIZE * sizeof *w->repeats);
    for (size_t i = 0; i < w->count; i++)
        (void)repeats_has(w, w->entries[i].bytes, i);
}

static void entries_grow(struct walk *w)
{
    struct index_entry *old = w->entries;

    w->capacity *= 2;
    w->entries = ARENA_ARRAY(w->arena, struct index_entry, w->capacity);
    memcpy(w->entries, old, w->count * sizeof *old);
}

static void entry_end(struct walk *w, size_t begin)
{
    struct slice bytes = slice_of(w->out.data + begin, w->out.len - begin);

    assert(!w->out.overflowed);
    if (UNLIKELY(w->count == INDEX_REPEATS_FROM && !w->repeats))
        repeats_begin(w);
    if (UNLIKELY(w->full || (w->repeats && repeats_has(w, bytes, w->count)))) {
        w->out.len = begin;
        return;
    }
    if (UNLIKELY(w->count == INDEX_ENTRIES_MAX)) {
        w->full = true;
        return;
    }
    if (UNLIKELY(w->count == w->capacity))
        entries_grow(w);
    w->entries[w->count++].bytes = bytes;
}

static void put_leaf(struct walk *w, const struct document_value *value)
{
    size_t begin = entry_begin(w, INDEX_ENTRY_ROOM);

    index_path_write(&w->path, &w->out);
    document_key_append_cut(DOCUMENT_ORDER_SQL, value, INDEX_VALUE_MAX, &w->out);
    entry_end(w, begin);
}

/* The value at a path of properties below value; undefined if it leads nowhere. */
static struct document_value value_below(struct document_value value,
                                         const struct document_path *path)
{
    for (size_t i = 0; i < path->count; i++) {
        if (value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, path->segments[i].name, &value))
            return document_undefined();
    }
    return value;
}

static void put_together(struct walk *w, struct slice prefix, const struct document_value *from,
                         const struct document_path *paths, const bool *descending, size_t count)
{
    size_t begin = entry_begin(w, prefix.len + count * INDEX_VALUE_MAX + INDEX_KEY_SLACK);

    buf_append_slice(&w->out, prefix);
    for (size_t i = 0; i < count; i++) {
        struct document_value value = value_below(*from, &paths[i]);
        size_t at = w->out.len;

        document_key_append_cut(DOCUMENT_ORDER_SQL, &value, INDEX_VALUE_MAX, &w->out);
        for (; descending && descending[i] && at < w->out.len; at++)
            w->out.data[at] = (uint8_t)~w->out.data[at];
    }
    entry_end(w, begin);
}

static void put_tuples(struct walk *w, const struct index_node *node,
                       const struct document_value *value)
{
    for (const struct index_tuple *tuple = node->tuples; tuple && !w->full; tuple = tuple->next)
        put_together(w, tuple->prefix, value, tuple->segment->members, NULL,
                     tuple->segment->member_count);
}

static void put_composites(struct walk *w, struct slice item)
{
    struct document_value root = document_object(item);

    for (size_t i = 0; i < w->policy->composite_count && !w->full; i++) {
        const struct index_composite *composite = &w->policy->composites[i];

        put_together(w, composite->prefix, &root, composite->paths, composite->descending,
                     composite->count);
    }
}

/* --- Walking --------------------------------------------------------------------------------- */

static void walk_missing_children(struct walk *w, const struct index_node *node, uint32_t object);

/* There is no value at node: what is included by name at it and below has undefined there. */
static void walk_missing(struct walk *w, const struct index_node *node)
{
    struct document_value undefined = document_undefined();

    if (node->named)
        put_leaf(w, &undefined);
    put_tuples(w, node, &undefined);
    walk_missing_children(w, node, 0);
}

/* Of the children those that this object did not have; all of them for 0, which stands for
 * anything that has no properties. */
static void walk_missing_children(struct walk *w, const struct index_node *node, uint32_t object)
{
    for (size_t i = 0; i < node->child_count && !w->full; i++) {
        const struct index_node *child = node->children[i];
        struct index_path_mark mark = w->path.mark;

        if (!child->may_miss || (object && w->seen[child->number] == object))
            continue;
        index_path_push_name(&w->path, child->name);
        walk_missing(w, child);
        w->path.mark = mark;
    }
}

static void walk_object(struct walk *w, const struct index_node *node, bool included,
                        struct slice document)
{
    struct index_path_mark mark = w->path.mark;
    uint32_t object = ++w->object;
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (!w->full && document_iter_next(&iter)) {
        const struct index_node *child = node ? index_node_child(node, iter.key) : NULL;

        if (child)
            w->seen[child->number] = object;
        else if (!included)
            continue;
        index_path_push_name(&w->path, iter.key);
        walk_value(w, child, included, &iter.value);
        w->path.mark = mark;
    }
    if (node && node->may_miss)
        walk_missing_children(w, node, object);
}

static void walk_array(struct walk *w, const struct index_node *node, bool included,
                       struct slice document)
{
    const struct index_node *elements = node ? node->elements : NULL;
    struct index_path_mark mark = w->path.mark;
    struct document_iter iter;

    if (!included && !elements)
        return;
    index_path_push_elements(&w->path);
    document_iter_init(&iter, document);
    while (!w->full && document_iter_next(&iter))
        walk_value(w, elements, included, &iter.value);
    w->path.mark = mark;
}

static void walk_value(struct walk *w, const struct index_node *node, bool included,
                       const struct document_value *value)
{
    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;

    if (node) {
        if (node->all != INDEX_RULE_NONE)
            included = node->all == INDEX_RULE_INCLUDE;
        if (!included && !node->may_include)
            return;
        put_tuples(w, node, value);
        if (node->may_miss && value->type != DOCUMENT_OBJECT)
            walk_missing_children(w, node, 0);
    }
    if (!nested) {
        if (node && node->scalar != INDEX_RULE_NONE ? node->scalar == INDEX_RULE_INCLUDE : included)
            put_leaf(w, value);
        return;
    }
    if (included && node != w->policy->root && value->document.len == BSON_EMPTY_SIZE)
        put_leaf(w, value);
    if (value->type == DOCUMENT_OBJECT)
        walk_object(w, node, included, value->document);
    else
        walk_array(w, node, included, value->document);
}

/* --- Sorting --------------------------------------------------------------------------------- */

static void sort_few(struct index_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct index_entry entry = entries[i];
        size_t at = i;

        for (; at && slice_compare(entries[at - 1].bytes, entry.bytes) > 0; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

static void merge(const struct index_entry *left, const struct index_entry *middle,
                  const struct index_entry *end, struct index_entry *to)
{
    const struct index_entry *right = middle;

    while (left < middle && right < end)
        *to++ = slice_compare(left->bytes, right->bytes) <= 0 ? *left++ : *right++;
    memcpy(to, left, (size_t)(middle - left) * sizeof *to);
    to += middle - left;
    memcpy(to, right, (size_t)(end - right) * sizeof *to);
}

/* A merge sort from runs of a few: qsort would take memory from the heap. */
static size_t sort_unique(struct index_entry *entries, size_t count, struct arena *arena)
{
    enum { RUN = 8 };
    struct index_entry *from = entries, *to;
    size_t kept = 0;

    for (size_t i = 0; i < count; i += RUN)
        sort_few(entries + i, MIN((size_t)RUN, count - i));
    to = count > RUN ? ARENA_ARRAY(arena, struct index_entry, count) : NULL;
    for (size_t run = RUN; run < count; run *= 2) {
        struct index_entry *sorted = to;

        for (size_t i = 0; i < count; i += 2 * run)
            merge(from + i, from + MIN(i + run, count), from + MIN(i + 2 * run, count), to + i);
        to = from;
        from = sorted;
    }
    for (size_t i = 0; i < count; i++) {
        if (!kept || !slice_equal(entries[kept - 1].bytes, from[i].bytes))
            entries[kept++] = from[i];
    }
    return kept;
}
