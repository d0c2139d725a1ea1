#include "item/contribution.h"

#include "base/bytes.h"
#include "partition/layout.h"

enum {
    GROUP_TAIL = 4 + CONTRIBUTION_DIGEST_LEN, /* generation and digest */
    ITEM_LEN = 4 + 8,
    VALUES_TAG = 0,
    ORDERED_TAG = 1, /* of the first aggregate */
    LOOKS_PER_ITEM = 16,
};

/* --- Keys ------------------------------------------------------------------------------------ */

static void group_append(const struct contribution_group *group, struct buf *out)
{
    uint8_t generation[4];

    bytes_put_be32(generation, group->generation);
    buf_append_slice(out, group->logical);
    buf_append(out, generation, sizeof generation);
    buf_append(out, group->digest, sizeof group->digest);
}

static void item_append(struct contribution_item item, struct buf *out)
{
    uint8_t bytes[ITEM_LEN];

    bytes_put_be32(bytes, item.source);
    bytes_put_be64(bytes + 4, item.number);
    buf_append(out, bytes, sizeof bytes);
}

static struct contribution_item item_get(const uint8_t *bytes)
{
    return (struct contribution_item){bytes_get_be32(bytes), bytes_get_be64(bytes + 4)};
}

static struct slice copied(struct buf *bytes, struct arena *arena)
{
    struct slice copy = arena_copy(arena, buf_slice(bytes));

    buf_done(bytes);
    return copy;
}

static void key_begin(uint8_t family, struct buf *out)
{
    buf_init(out, ENGINE_KEY_MAX);
    buf_append_byte(out, family);
}

struct slice contribution_state_key(const struct contribution_group *group, struct arena *arena)
{
    struct buf key;

    key_begin(PARTITION_FAMILY_GROUP, &key);
    group_append(group, &key);
    return copied(&key, arena);
}

struct slice contribution_values_key(const struct contribution_group *group,
                                     struct contribution_item item, struct arena *arena)
{
    struct buf key;

    key_begin(PARTITION_FAMILY_GROUP, &key);
    group_append(group, &key);
    buf_append_byte(&key, VALUES_TAG);
    item_append(item, &key);
    return copied(&key, arena);
}

struct slice contribution_ordered_key(const struct contribution_group *group, uint8_t nth,
                                      const struct document_value *value,
                                      struct contribution_item item, struct arena *arena)
{
    struct buf key;

    assert(nth < CONTRIBUTION_VALUES_MAX);
    key_begin(PARTITION_FAMILY_GROUP, &key);
    group_append(group, &key);
    buf_append_byte(&key, (uint8_t)(ORDERED_TAG + nth));
    (void)document_key_append_cut(DOCUMENT_ORDER_SQL, value, CONTRIBUTION_KEY_MAX, &key);
    item_append(item, &key);
    return copied(&key, arena);
}

struct slice contribution_place_key(const struct contribution_group *group,
                                    struct contribution_item item, struct arena *arena)
{
    struct buf key;

    key_begin(PARTITION_FAMILY_PLACE, &key);
    item_append(item, &key);
    group_append(group, &key);
    return copied(&key, arena);
}

struct slice contribution_value(enum contribution_kind kind, uint32_t generation,
                                struct slice bytes, struct arena *arena)
{
    uint8_t *value = arena_alloc(arena, CONTRIBUTION_HEAD_LEN + bytes.len);

    value[0] = (uint8_t)kind;
    bytes_put_be32(value + 1, generation);
    if (bytes.len)
        memcpy(value + CONTRIBUTION_HEAD_LEN, bytes.data, bytes.len);
    return slice_of(value, CONTRIBUTION_HEAD_LEN + bytes.len);
}

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a contribution to a view cannot be read");
}

/* --- Reading --------------------------------------------------------------------------------- */

bool contribution_read(const struct item_scope *scope, struct engine_snapshot *snapshot,
                       struct slice key, struct arena *arena, struct slice *ret_bytes,
                       struct error *err)
{
    struct engine_value value;

    if (!engine_get(scope->engine, snapshot, scope->partition, key, ENGINE_READ_ANY, arena, &value,
                    err))
        return false;
    if (value.found == ENGINE_FOUND && value.bytes.len < CONTRIBUTION_HEAD_LEN)
        return broken(err);
    *ret_bytes =
        value.found == ENGINE_FOUND ? slice_skip(value.bytes, CONTRIBUTION_HEAD_LEN) : SLICE_NONE;
    return true;
}

/* All entries of a group below one tag. Whose each is stands at the end of its key. */
static bool tag_walk(const struct item_scope *scope, struct engine_snapshot *snapshot,
                     const struct contribution_group *group, uint8_t tag, bool backwards,
                     const struct contribution_walk *walk, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(buf_done) struct buf min, max;

    key_begin(PARTITION_FAMILY_GROUP, &min);
    group_append(group, &min);
    buf_init(&max, ENGINE_KEY_MAX);
    buf_append_slice(&max, buf_slice(&min));
    buf_append_byte(&min, tag);
    buf_append_byte(&max, (uint8_t)(tag + 1));
    if (!engine_iterator_new(scope->engine, snapshot, scope->partition,
                             (struct engine_range){buf_slice(&min), buf_slice(&max)}, backwards,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (entry.key.len < min.len + ITEM_LEN || entry.value.len < CONTRIBUTION_HEAD_LEN)
            return broken(err);
        err->code = ERROR_NONE;
        if (!walk->see(walk->self, item_get(entry.key.data + entry.key.len - ITEM_LEN),
                       slice_skip(entry.value, CONTRIBUTION_HEAD_LEN), err))
            return err->code == ERROR_NONE;
    }
}

bool contributions_each(const struct item_scope *scope, struct engine_snapshot *snapshot,
                        const struct contribution_group *group,
                        const struct contribution_walk *walk, struct error *err)
{
    return tag_walk(scope, snapshot, group, VALUES_TAG, false, walk, err);
}

bool contributions_in_order(const struct item_scope *scope, struct engine_snapshot *snapshot,
                            const struct contribution_group *group, uint8_t nth, bool backwards,
                            const struct contribution_walk *walk, struct error *err)
{
    return tag_walk(scope, snapshot, group, (uint8_t)(ORDERED_TAG + nth), backwards, walk, err);
}

/* --- Finding --------------------------------------------------------------------------------- */

static bool partition_find(const struct item_scope *scope, uint32_t generation, struct slice prefix,
                           struct arena *arena, struct contribution_group *groups, size_t max,
                           size_t *count, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(buf_done) struct buf end;

    buf_init(&end, ENGINE_KEY_MAX);
    buf_append_slice(&end, prefix);
    buf_append_byte(&end, 0xFF); /* which no routing key begins with */
    if (!engine_iterator_new(scope->engine, NULL, scope->partition,
                             (struct engine_range){prefix, buf_slice(&end)}, false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    while (*count < max) {
        struct engine_entry entry;
        const uint8_t *tail;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (entry.key.len <= prefix.len + GROUP_TAIL)
            return broken(err);
        tail = entry.key.data + entry.key.len - GROUP_TAIL;
        if (bytes_get_be32(tail) != generation)
            continue;
        groups[*count] = (struct contribution_group){
            .logical = arena_copy(arena, slice_of(entry.key.data + prefix.len,
                                                  entry.key.len - prefix.len - GROUP_TAIL)),
            .generation = generation};
        memcpy(groups[(*count)++].digest, tail + 4, CONTRIBUTION_DIGEST_LEN);
    }
    return true;
}

bool contributions_find(const struct item_space *space, uint32_t generation,
                        struct contribution_item item, struct arena *arena,
                        struct contribution_group *ret_groups, size_t max, size_t *ret_count,
                        struct error *err)
{
    CLEANUP(buf_done) struct buf prefix;
    size_t spans_count;
    const struct partition_span *spans = partition_map_spans(space->map, &spans_count);

    key_begin(PARTITION_FAMILY_PLACE, &prefix);
    item_append(item, &prefix);
    assert(prefix.len == CONTRIBUTION_PLACE_PREFIX_LEN);
    *ret_count = 0;
    for (size_t i = 0; i < spans_count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);

        if (!partition_find(&scope, generation, buf_slice(&prefix), arena, ret_groups, max,
                            ret_count, err))
            return false;
    }
    return true;
}

/* --- Pages ----------------------------------------------------------------------------------- */

bool contributions_commit(const struct item_scope *scope, const struct engine_op *ops, size_t count,
                          struct error *err)
{
    struct commit_part part = {.partition = scope->partition,
                               .epoch = scope->epoch,
                               .ops = (struct engine_op *)ops,
                               .op_count = count};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    return !count || commit_run(scope->commit, &batch, err);
}

struct paging {
    struct contribution_page *page;
    struct arena *arena;
    uint32_t generation;
    struct engine_op *ops;
};

/* Of one of another generation its place goes too. */
static bool entry_take(struct paging *paging, const struct engine_entry *entry, struct error *err)
{
    struct slice key = slice_skip(entry->key, 1);
    const uint8_t *tail = key.data + key.len - ITEM_LEN;
    bool is_values = entry->value.data[0] == CONTRIBUTION_VALUES;
    CLEANUP(buf_done) struct buf place;

    key_begin(PARTITION_FAMILY_PLACE, &place);
    if (key.len <= GROUP_TAIL + (is_values ? ITEM_LEN + 1 : 0))
        return broken(err);
    if (bytes_get_be32(entry->value.data + 1) == paging->generation) {
        if (is_values)
            paging->page->items[paging->page->count++] = item_get(tail);
        return true;
    }
    paging->ops[paging->page->removed++] =
        (struct engine_op){ENGINE_DELETE, arena_copy(paging->arena, entry->key), SLICE_NONE};
    if (!is_values)
        return true;
    buf_append(&place, tail, ITEM_LEN);
    buf_append(&place, key.data, key.len - ITEM_LEN - 1);
    paging->ops[paging->page->removed++] =
        (struct engine_op){ENGINE_DELETE, arena_copy(paging->arena, buf_slice(&place)), SLICE_NONE};
    return true;
}

bool contributions_page(const struct item_scope *scope, uint32_t generation, struct slice after,
                        size_t max, struct arena *arena, struct contribution_page *ret_page,
                        struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(buf_done) struct buf min;
    static const uint8_t last[] = {PARTITION_FAMILY_GROUP + 1};
    struct contribution_page page = {.items = ARENA_ARRAY(arena, struct contribution_item, max + 1),
                                     .position = after};
    struct paging paging = {&page, arena, generation,
                            ARENA_ARRAY(arena, struct engine_op, 2 * (max + 1))};

    key_begin(PARTITION_FAMILY_GROUP, &min);
    buf_append_slice(&min, after);
    if (after.len)
        buf_append_byte(&min, 0);
    if (!engine_iterator_new(scope->engine, NULL, scope->partition,
                             (struct engine_range){buf_slice(&min), slice_of(last, 1)}, false,
                             ENGINE_READ_ONCE, &iterator, err))
        return false;
    for (size_t looks = 0;; looks++) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (page.count == max || page.removed >= 2 * max || looks == max * LOOKS_PER_ITEM) {
            page.more = true;
            break;
        }
        if (entry.value.len < CONTRIBUTION_HEAD_LEN)
            return broken(err);
        if (!entry_take(&paging, &entry, err))
            return false;
        page.position = arena_copy(arena, slice_skip(entry.key, 1));
    }
    engine_iterator_free(TAKE(iterator));
    if (!contributions_commit(scope, paging.ops, page.removed, err))
        return false;
    *ret_page = page;
    return true;
}
