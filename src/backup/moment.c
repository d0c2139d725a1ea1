/* What is copied of a partition is everything but the journal and the progress of migrations, which
 * are of no use elsewhere: a restored catalogue has no migration under way. */
#include "backup/moment.h"

#include "base/bytes.h"
#include "catalogue/agreements.h"
#include "catalogue/node.h"
#include "engine/keep.h"
#include "partition/layout.h"

#include <stdlib.h>

enum {
    PAGE_BYTES = 4 * 1024 * 1024,
    PAGE_SCANNED = 64 * 1024 * 1024,
    KEEP_AT_LEAST_MS = 30 * 1000,
};

/* --- Taking ---------------------------------------------------------------------------------- */

static bool node_take(struct backup_moment *moment, struct backup_node *node, struct error *err)
{
    node->id = arena_text(moment->arena, slice_of_text(engine_node_id(node->engine)));
    return (engine_snapshot_new(node->engine, &node->snapshot, err) &&
            engine_partition_list(node->engine, moment->arena, &node->partitions,
                                  &node->partition_count, err)) ||
           error_prefix(err, "node \"%s\"", node->name);
}

/* While the catalogue stands still. */
struct taking {
    struct backup_moment *moment;
    struct catalogue *catalogue;
};

static bool nodes_take(void *context, struct error *err)
{
    struct taking *taking = context;
    struct backup_moment *moment = taking->moment;
    const struct cluster *cluster = catalogue_cluster(taking->catalogue);

    moment->wall_ms = clock_wall_ms();
    moment->cluster_id = arena_copy(moment->arena, cluster_id(cluster));
    moment->nodes = ARENA_ARRAY(moment->arena, struct backup_node, cluster_count(cluster));
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *member = cluster_at(cluster, i);
        struct backup_node *node = &moment->nodes[moment->node_count];

        if (!cluster_node_is_member(member))
            continue;
        *node = (struct backup_node){
            .number = member->number,
            .name = arena_text(moment->arena, slice_of_text(member->name)),
            .engine = member->engine,
            .commit = member->commit,
        };
        moment->node_count++; /* before anything can fail: it is let go with the moment */
        if (!node_take(moment, node, err))
            return false;
    }
    return true;
}

static const struct engine_partition *partition_of(const struct backup_node *node, uint32_t id)
{
    for (size_t i = 0; i < node->partition_count; i++)
        if (node->partitions[i].id == id)
            return &node->partitions[i];
    return NULL;
}

static const struct backup_node *node_of(const struct backup_moment *moment, uint32_t number)
{
    for (size_t i = 0; i < moment->node_count; i++)
        if (moment->nodes[i].number == number)
            return &moment->nodes[i];
    return NULL;
}

static bool partition_add(struct backup_moment *moment, const struct backup_node *node,
                          const struct engine_partition *partition,
                          const struct catalogue_kept_container *container,
                          const struct partition_span *span, struct error *err)
{
    static const uint8_t meta[] = {PARTITION_FAMILY_META};
    struct engine_value value;

    if (!engine_get(node->engine, node->snapshot, partition->id, slice_of(meta, 1), ENGINE_READ_ANY,
                    moment->arena, &value, err))
        return error_prefix(err, "node \"%s\"", node->name);
    moment->partitions[moment->partition_count++] = (struct backup_partition){
        .node = node,
        .id = partition->id,
        .epoch = partition->epoch,
        .numbering = value.found == ENGINE_FOUND ? value.bytes : SLICE(""),
        .container = container,
        .span = span,
    };
    return true;
}

/* A partition of two containers, by a promotion, is taken once. */
static bool container_partitions_add(struct backup_moment *moment,
                                     const struct catalogue_kept_container *of, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(of->container), &count);

    for (size_t i = 0; i < count; i++) {
        const struct backup_node *node = node_of(moment, spans[i].node);
        const struct engine_partition *partition = node ? partition_of(node, spans[i].id) : NULL;

        if (partition && !backup_moment_find(moment, node->number, spans[i].id) &&
            !partition_add(moment, node, partition, of, &spans[i], err))
            return false;
    }
    return true;
}

static bool partitions_list(struct backup_moment *moment, struct error *err)
{
    size_t most = 0;

    for (size_t i = 0; i < moment->node_count; i++)
        most += moment->nodes[i].partition_count;
    moment->partitions = ARENA_ARRAY(moment->arena, struct backup_partition, most);
    for (size_t i = 0; i < moment->node_count; i++) {
        const struct backup_node *node = &moment->nodes[i];
        const struct engine_partition *catalogue = partition_of(node, CATALOGUE_KEPT_PARTITION);
        const struct engine_partition *history = partition_of(node, PARTITION_HISTORY);

        if ((i == 0 && catalogue && !partition_add(moment, node, catalogue, NULL, NULL, err)) ||
            (history && !partition_add(moment, node, history, NULL, NULL, err)))
            return false;
    }
    for (size_t i = 0; i < moment->kept.container_count; i++)
        if (!container_partitions_add(moment, &moment->kept.containers[i], err))
            return false;
    return true;
}

static bool moment_finish(struct backup_moment *moment, struct error *err)
{
    moment->has_catalogue =
        moment->node_count && partition_of(&moment->nodes[0], CATALOGUE_KEPT_PARTITION);
    return (!moment->has_catalogue ||
            catalogue_kept_read_store(moment->nodes[0].engine, moment->nodes[0].snapshot,
                                      moment->arena, &moment->kept, err)) &&
           partitions_list(moment, err);
}

static struct backup_moment *moment_new(void)
{
    struct backup_moment *moment = MEMORY_NEW(struct backup_moment);

    moment->arena = arena_new();
    return moment;
}

bool backup_moment_take(struct catalogue *catalogue, struct backup_moment **ret_moment,
                        struct error *err)
{
    CLEANUP(backup_moment_free) struct backup_moment *moment = moment_new();
    struct agreements *agreements = catalogue_agreements(catalogue);
    struct taking taking = {moment, catalogue};
    bool taken;

    /* Snapshots of nodes are of different moments: a transaction over several is in all or none. */
    if (!agreements_pause(agreements, err))
        return false;
    taken = catalogue_hold_new(catalogue, nodes_take, &taking, &moment->hold, err);
    agreements_resume(agreements);
    if (!taken || !moment_finish(moment, err))
        return false;
    *ret_moment = TAKE(moment);
    return true;
}

/* The one with the catalogue, whatever its place. */
static size_t root_find(struct engine *const *engines, size_t count, struct node_table *table)
{
    struct error ignored;

    for (size_t i = 0; i < count; i++)
        if (catalogue_nodes_peek(engines[i], table, &ignored) && table->count)
            return i;
    return 0;
}

bool backup_moment_of(struct engine *const *engines, const char *const *names, size_t count,
                      struct backup_moment **ret_moment, struct error *err)
{
    CLEANUP(backup_moment_free) struct backup_moment *moment = moment_new();
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);
    size_t root = root_find(engines, count, table);

    moment->wall_ms = clock_wall_ms();
    moment->nodes = ARENA_ARRAY(moment->arena, struct backup_node, count);
    if (!engine_cluster_id(engines[root], moment->arena, &moment->cluster_id, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t place = (root + i) % count;
        const struct node_info *info = node_table_find_id(table, engine_node_id(engines[place]));
        struct backup_node *node = &moment->nodes[i];

        if (table->count && !info)
            return error_set(err, ERROR_STORE_FOREIGN,
                             "\"%s\" is no node of the catalogue on \"%s\"", names[place],
                             names[root]);
        *node = (struct backup_node){.number = info ? info->number : (uint32_t)i,
                                     .name = arena_text(moment->arena, slice_of_text(names[place])),
                                     .engine = engines[place]};
        moment->node_count++;
        if (!node_take(moment, node, err))
            return false;
    }
    if (!moment_finish(moment, err))
        return false;
    *ret_moment = TAKE(moment);
    return true;
}

void backup_moment_free(struct backup_moment *moment)
{
    if (!moment)
        return;
    catalogue_kept_done(&moment->kept);
    for (size_t i = 0; i < moment->node_count; i++)
        engine_snapshot_free(moment->nodes[i].snapshot);
    catalogue_hold_free(moment->hold);
    arena_free(moment->arena);
    memory_free(moment);
}

/* Not with every page: a node may be another machine. */
bool backup_moment_keep(struct backup_moment *moment, int64_t ms, struct error *err)
{
    int64_t now_ms = clock_monotonic_ms();

    if (moment->kept_until_ms - now_ms > ms - KEEP_AT_LEAST_MS)
        return true;
    for (size_t i = 0; i < moment->node_count; i++)
        if (!engine_snapshot_keep(moment->nodes[i].snapshot, ms + KEEP_AT_LEAST_MS, err))
            return error_prefix(err, "node \"%s\"", moment->nodes[i].name);
    moment->kept_until_ms = now_ms + ms;
    return true;
}

const struct backup_partition *backup_moment_find(const struct backup_moment *moment, uint32_t node,
                                                  uint32_t partition)
{
    for (size_t i = 0; i < moment->partition_count; i++)
        if (moment->partitions[i].id == partition && moment->partitions[i].node->number == node)
            return &moment->partitions[i];
    return NULL;
}

size_t backup_moment_missing(const struct backup_moment *moment,
                             void (*tell)(void *context, const struct catalogue_kept_container *of,
                                          const struct partition_span *span),
                             void *context)
{
    size_t missing = 0;

    for (size_t i = 0; i < moment->kept.container_count; i++) {
        const struct catalogue_kept_container *of = &moment->kept.containers[i];
        size_t count;
        const struct partition_span *spans =
            partition_map_spans(container_map(of->container), &count);

        for (size_t s = 0; s < count; s++) {
            const struct backup_node *node = node_of(moment, spans[s].node);

            if (node && partition_of(node, spans[s].id))
                continue;
            missing++;
            if (tell)
                tell(context, of, &spans[s]);
        }
    }
    return missing;
}

/* --- Pages ----------------------------------------------------------------------------------- */

/* A page being written. */
struct page {
    struct backup_chunk *chunk;
    struct slice known; /* digests that have not come yet */
    struct buf *out;
    size_t scanned;
};

/* They are expected in order: what was passed over is not asked for again. */
static bool digest_is_known(struct page *page, const uint8_t *digest)
{
    for (size_t at = 0; at + BACKUP_DIGEST_LEN <= page->known.len; at += BACKUP_DIGEST_LEN)
        if (memcmp(page->known.data + at, digest, BACKUP_DIGEST_LEN) == 0) {
            page->known = slice_skip(page->known, at + BACKUP_DIGEST_LEN);
            return true;
        }
    return false;
}

static void frame_write(struct page *page)
{
    struct slice bytes = buf_slice(&page->chunk->bytes), last = buf_slice(&page->chunk->last);
    uint8_t digest[BACKUP_DIGEST_LEN], len[2];
    bool known;

    backup_digest(bytes, digest);
    known = digest_is_known(page, digest);
    buf_append_byte(page->out, known ? BACKUP_FRAME_KNOWN : BACKUP_FRAME_NEW);
    buf_append_be32(page->out, (uint32_t)bytes.len);
    buf_append(page->out, digest, sizeof digest);
    bytes_put_be16(len, (uint16_t)last.len);
    buf_append(page->out, len, sizeof len);
    buf_append_slice(page->out, last);
    if (!known)
        buf_append_slice(page->out, bytes);
    page->scanned += bytes.len;
    backup_chunk_clear(page->chunk);
}

/* The journal and progress of migrations are passed over in one go. */
static bool entry_is_wanted(struct engine_iterator *iterator, struct slice key, bool *ret_wanted,
                            struct error *err)
{
    uint8_t behind = (uint8_t)(key.data[0] + 1);

    *ret_wanted =
        key.data[0] != PARTITION_FAMILY_JOURNAL && key.data[0] != PARTITION_FAMILY_PROGRESS;
    return *ret_wanted || engine_iterator_seek(iterator, slice_of(&behind, 1), err);
}

static bool page_fill(struct page *page, struct engine_iterator *iterator, bool *ret_more,
                      struct error *err)
{
    *ret_more = false;
    for (;;) {
        struct engine_entry entry;
        bool wanted;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            if (page->chunk->bytes.len)
                frame_write(page);
            return true;
        }
        if (!entry_is_wanted(iterator, entry.key, &wanted, err))
            return false;
        if (!wanted || !backup_chunk_add(page->chunk, entry.key, entry.value))
            continue;
        frame_write(page);
        *ret_more = page->out->len >= PAGE_BYTES || page->scanned >= PAGE_SCANNED;
        if (*ret_more)
            return true;
    }
}

bool backup_page(const struct backup_partition *partition, struct slice after, struct slice known,
                 struct buf *out, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(backup_chunk_done) struct backup_chunk chunk;
    struct page page = {.chunk = &chunk, .known = known, .out = out};
    struct engine_range range = {0};
    bool more;

    backup_chunk_init(&chunk);
    if (after.len)
        range.min = arena_join(arena, (struct slice[]){after, slice_of("", 1)}, 2);
    if (!engine_iterator_new(partition->node->engine, partition->node->snapshot, partition->id,
                             range, false, ENGINE_READ_ONCE, &iterator, err))
        return false;
    if (!page_fill(&page, iterator, &more, err))
        return error_prefix(err, "node \"%s\"", partition->node->name);
    buf_append_byte(out, more ? BACKUP_FRAME_MORE : BACKUP_FRAME_END);
    return !buf_overflowed(out) ||
           error_set(err, ERROR_TOO_LARGE, "an entry is larger than a page of a backup can be");
}
