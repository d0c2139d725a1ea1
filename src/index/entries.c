/* The entries of an item: one walk through document and tree together, then a sort.
 *
 * Entries are written one after the other into pieces of the arena, through a buffer that lends
 * such a piece and never grows. The rule for a value is the one of its own node, else that of the
 * deepest node above it with an asterisk, which the walk carries down; where nothing can be
 * included any more it turns back.
 *
 * Elements of large arrays often repeat. From INDEX_REPEATS_FROM entries on a hash table drops
 * repetitions as they come, so that the limit counts different entries and the arena holds no more
 * than that.
 *
 * What is asked for is bounded three times: by the number of entries, by their bytes (values at 32
 * paths beside an array stand in the entry of each of its elements) and by the steps it takes to
 * find them, for repetitions make no entries. A step is a value looked at or 16 bytes gone through.
 */
#include "document/bson.h"
#include "index/policy_private.h"

#include <xxhash.h>

enum {
    INDEX_ENTRIES_FIRST = 64,
    INDEX_REPEATS_FROM = 512,
    INDEX_REPEATS_SIZE = 65536, /* a power of two above 2 * INDEX_ENTRIES_MAX */
    INDEX_ENTRY_ROOM = INDEX_PATH_MAX + INDEX_PATH_TAIL + INDEX_VALUE_MAX + INDEX_KEY_SLACK,
    INDEX_PIECE_MAX = 64 * 1024,
    ENTRY_WORK = 4,
    BSON_EMPTY_SIZE = 5, /* of an object or array without elements */
};

static bool sorted(struct index_walk *w, struct index_entry **ret_entries, size_t *ret_count,
                   struct error *err);

static void walk_init(struct index_walk *w, struct slice item, struct arena *arena)
{
    w->definition = NULL;
    w->arena = arena;
    w->out = (struct buf){0};
    w->piece = INDEX_ENTRY_ROOM + MIN(2 * item.len, (size_t)INDEX_PIECE_MAX);
    w->capacity = INDEX_ENTRIES_FIRST;
    w->count = 0;
    w->repeats = w->seen = NULL;
    w->object = 0;
    w->bytes = w->work = 0;
    w->full = INDEX_FULL_NOT;
    w->claims = false;
    w->arrays = NULL;
    w->visitor = NULL;
    w->entries = ARENA_ARRAY(arena, struct index_entry, w->capacity);
}

static bool definition_walk(struct index_walk *w, const struct index_definition *definition,
                            struct slice item, struct error *err)
{
    w->definition = definition;
    if (UNLIKELY(definition->stale))
        return error_set(err, ERROR_STORE_VERSION,
                         "index \"%.*s\" is ordered by version %.*s of ICU's rules for its "
                         "collation, and this server has version %.*s: nothing that would change "
                         "it can be written",
                         (int)MIN(definition->name.len, (size_t)60),
                         (const char *)definition->name.data,
                         SLICE_ARG(definition->collator_version),
                         SLICE_ARG(document_collator_version(definition->collator)));
    if (UNLIKELY(definition->filter_count && !index_walk_takes(w, item)))
        return true;
    if (definition->kind->entries(definition, item, w, err))
        return true;
    return definition->name.len ? error_prefix(err, "index \"%.*s\"", SLICE_ARG(definition->name))
                                : false;
}

bool index_entries(const struct index_policy *policy, struct slice item, struct arena *arena,
                   struct index_entry **ret_entries, size_t *ret_count, struct error *err)
{
    struct index_walk w;

    walk_init(&w, item, arena);
    for (size_t i = 0; i < policy->definition_count && !w.full; i++)
        if (!definition_walk(&w, policy->definitions[i], item, err))
            return false;
    return sorted(&w, ret_entries, ret_count, err);
}

bool index_definition_entries(const struct index_definition *definition, struct slice item,
                              struct arena *arena, struct index_entry **ret_entries,
                              size_t *ret_count, struct error *err)
{
    struct index_walk w;

    walk_init(&w, item, arena);
    return definition_walk(&w, definition, item, err) && sorted(&w, ret_entries, ret_count, err);
}

bool index_definition_claims(const struct index_definition *definition, struct slice item,
                             struct arena *arena, struct index_entry **ret_claims,
                             size_t *ret_count, struct error *err)
{
    struct index_walk w;

    walk_init(&w, item, arena);
    w.claims = true;
    return definition_walk(&w, definition, item, err) && sorted(&w, ret_claims, ret_count, err);
}

bool index_definition_visit(const struct index_definition *definition, struct slice item,
                            struct arena *arena, const struct index_visitor *visitor,
                            struct error *err)
{
    struct index_entry *none;
    struct index_walk w;
    size_t count;

    assert(definition->kind == &index_kind_ordered);
    walk_init(&w, item, arena);
    w.visitor = visitor;
    return definition_walk(&w, definition, item, err) && sorted(&w, &none, &count, err);
}

/* --- Writing entries ------------------------------------------------------------------------- */

size_t index_walk_begin(struct index_walk *w, size_t room)
{
    if (UNLIKELY(w->out.capacity - w->out.len < room)) {
        size_t size = MAX(w->piece, room);

        w->out = (struct buf){.data = arena_alloc(w->arena, size), .capacity = size, .max = size};
        w->piece = INDEX_PIECE_MAX;
    }
    return w->out.len;
}

static bool repeats_has(struct index_walk *w, struct slice bytes, size_t place)
{
    size_t at = XXH3_64bits(bytes.data, bytes.len) & (INDEX_REPEATS_SIZE - 1);

    for (; w->repeats[at]; at = (at + 1) & (INDEX_REPEATS_SIZE - 1)) {
        if (slice_equal(w->entries[w->repeats[at] - 1].bytes, bytes))
            return true;
    }
    w->repeats[at] = (uint32_t)place + 1;
    return false;
}

static void repeats_begin(struct index_walk *w)
{
    w->repeats = arena_alloc_zero(w->arena, INDEX_REPEATS_SIZE * sizeof *w->repeats);
    for (size_t i = 0; i < w->count; i++)
        (void)repeats_has(w, w->entries[i].bytes, i);
}

static void entries_grow(struct index_walk *w)
{
    struct index_entry *old = w->entries;

    w->capacity *= 2;
    w->entries = ARENA_ARRAY(w->arena, struct index_entry, w->capacity);
    memcpy(w->entries, old, w->count * sizeof *old);
}

void index_walk_end(struct index_walk *w, size_t begin)
{
    struct slice bytes = slice_of(w->out.data + begin, w->out.len - begin);

    assert(!w->out.overflowed);
    if (UNLIKELY(w->count == INDEX_REPEATS_FROM && !w->repeats))
        repeats_begin(w);
    index_walk_work(w, ENTRY_WORK + index_bytes_work(bytes.len));
    if (UNLIKELY(w->full || (w->repeats && repeats_has(w, bytes, w->count)))) {
        w->out.len = begin;
        return;
    }
    w->bytes += bytes.len;
    if (UNLIKELY(w->count == INDEX_ENTRIES_MAX || w->bytes > INDEX_BYTES_MAX)) {
        w->full = w->count == INDEX_ENTRIES_MAX ? INDEX_FULL_ENTRIES : INDEX_FULL_BYTES;
        return;
    }
    if (UNLIKELY(w->count == w->capacity))
        entries_grow(w);
    w->entries[w->count++] = (struct index_entry){.bytes = bytes};
}

struct document_value index_walk_collate(struct index_walk *w, const struct document_value *value)
{
    enum { STEPS_A_BYTE_WORK = 4 };
    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;
    size_t bytes;

    if (LIKELY(!w->definition->collator) || !document_collate_matters(value))
        return *value;
    bytes = nested ? value->document.len : value->text.len;
    index_walk_work(w, STEPS_A_BYTE_WORK * index_bytes_work(bytes));
    if (bytes > DOCUMENT_COLLATE_MAX && !w->full)
        w->full = INDEX_FULL_TEXT;
    return w->full ? document_null() : document_collate(w->definition->collator, value, w->arena);
}

static void put_leaf(struct index_walk *w, const struct document_value *leaf)
{
    struct document_value form = index_walk_collate(w, leaf), *value = &form;
    size_t begin = index_walk_begin(w, INDEX_ENTRY_ROOM);

    if (w->definition->prefix.len)
        buf_append_slice(&w->out, w->definition->prefix);
    index_path_write(&w->path, &w->out);
    document_key_append_cut(w->definition->order, value, INDEX_VALUE_MAX, &w->out);
    index_walk_end(w, begin);
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

static void put_tuple(struct index_walk *w, const struct index_tuple *tuple,
                      const struct document_value *from)
{
    const struct document_segment *segment = tuple->segment;
    size_t begin = index_walk_begin(w, tuple->prefix.len + segment->member_count * INDEX_VALUE_MAX +
                                           INDEX_KEY_SLACK);

    buf_append_slice(&w->out, tuple->prefix);
    for (size_t i = 0; i < segment->member_count; i++) {
        struct document_value value = value_below(*from, &segment->members[i]);

        index_walk_work(w, index_value_work(&value));
        document_key_append_cut(w->definition->order, &value, INDEX_VALUE_MAX, &w->out);
    }
    index_walk_end(w, begin);
}

static void put_tuples(struct index_walk *w, const struct index_node *node,
                       const struct document_value *value)
{
    for (const struct index_tuple *tuple = node->tuples; tuple && !w->full; tuple = tuple->next)
        put_tuple(w, tuple, value);
}

/* --- Walking --------------------------------------------------------------------------------- */

static void walk_value(struct index_walk *w, const struct index_node *node, bool included,
                       const struct document_value *value);
static void walk_missing_children(struct index_walk *w, const struct index_node *node,
                                  uint32_t object);

/* There is no value at node: what is included by name at it and below has undefined there. */
static void walk_missing(struct index_walk *w, const struct index_node *node)
{
    struct document_value undefined = document_undefined();

    if (node->named)
        put_leaf(w, &undefined);
    put_tuples(w, node, &undefined);
    walk_missing_children(w, node, 0);
}

/* Of the children those that this object did not have; all of them for 0, which stands for
 * anything that has no properties. */
static void walk_missing_children(struct index_walk *w, const struct index_node *node,
                                  uint32_t object)
{
    for (size_t i = 0; i < node->child_count && !w->full; i++) {
        const struct index_node *child = node->children[i];
        struct index_path_mark mark = w->path.mark;

        index_walk_work(w, 1);
        if (!child->may_miss || (object && w->seen[child->number] == object))
            continue;
        index_path_push_name(&w->path, child->name);
        walk_missing(w, child);
        w->path.mark = mark;
    }
}

static void walk_object(struct index_walk *w, const struct index_node *node, bool included,
                        struct slice document)
{
    struct index_path_mark mark = w->path.mark;
    uint32_t object = ++w->object;
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (!w->full && document_iter_next(&iter)) {
        const struct index_node *child = node ? index_node_child(node, iter.key) : NULL;

        index_walk_work(w, 1);
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

static void walk_array(struct index_walk *w, const struct index_node *node, bool included,
                       struct slice document)
{
    const struct index_node *elements = node ? node->elements : NULL;
    struct index_path_mark mark = w->path.mark;
    struct document_iter iter;

    if (!included && !elements)
        return;
    if (!w->definition->tree->elements_hidden)
        index_path_push_elements(&w->path);
    else if (!elements)
        elements = node; /* what is said of an array holds for its elements */
    document_iter_init(&iter, document);
    while (!w->full && document_iter_next(&iter))
        walk_value(w, elements, included, &iter.value);
    w->path.mark = mark;
}

static void walk_value(struct index_walk *w, const struct index_node *node, bool included,
                       const struct document_value *value)
{
    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;

    index_walk_work(w, 1);
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
    if (included && node != w->definition->tree->root && value->document.len == BSON_EMPTY_SIZE)
        put_leaf(w, value);
    if (value->type == DOCUMENT_OBJECT)
        walk_object(w, node, included, value->document);
    else
        walk_array(w, node, included, value->document);
}

static bool wildcard_entries(const struct index_definition *definition, struct slice item,
                             struct index_walk *w, struct error *err UNUSED)
{
    struct document_value root = document_object(item);

    w->seen = arena_alloc_zero(w->arena, definition->tree->node_count * sizeof *w->seen);
    w->object = 0;
    index_path_init(&w->path);
    walk_value(w, definition->tree->root, false, &root);
    return true;
}

static bool wildcard_check(const struct index_definition *definition, struct error *err)
{
    if (definition->unique != INDEX_UNIQUE_NOT)
        return error_set(err, ERROR_BAD_REQUEST, "a wildcard index cannot be unique");
    if (definition->expire_after_s != INDEX_EXPIRES_NEVER)
        return error_set(err, ERROR_BAD_REQUEST, "items cannot expire by a wildcard index");
    return true;
}

const struct index_kind index_kind_wildcard = {
    .name = "wildcard", .check = wildcard_check, .entries = wildcard_entries};

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

static bool sorted(struct index_walk *w, struct index_entry **ret_entries, size_t *ret_count,
                   struct error *err)
{
    if (w->full == INDEX_FULL_WORK)
        return error_set(err, ERROR_TOO_LARGE,
                         "item takes more than %d steps to find its index entries", INDEX_WORK_MAX);
    if (w->full == INDEX_FULL_TEXT)
        return error_set(err, ERROR_TOO_LARGE,
                         "item has a value of more than %d bytes in an index with a collation",
                         DOCUMENT_COLLATE_MAX);
    if (w->full == INDEX_FULL_BYTES)
        return error_set(err, ERROR_TOO_LARGE, "item has index entries of more than %d bytes",
                         INDEX_BYTES_MAX);
    if (w->full)
        return error_set(err, ERROR_TOO_LARGE, "item has more than %d index entries",
                         INDEX_ENTRIES_MAX);
    *ret_count = sort_unique(w->entries, w->count, w->arena);
    *ret_entries = w->entries;
    return true;
}
