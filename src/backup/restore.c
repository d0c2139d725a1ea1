/* Entries come in key order and go in as they come: loaded beside the log where the engine can,
 * else written in batches. Each store is opened under its final identity, so the catalogue is told
 * the new ids before it is written. */
#include "backup/restore.h"

#include "catalogue/kept.h"
#include "engine/engine.h"
#include "partition/layout.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCH_BYTES = 8 << 20 };

/* One store being filled. */
struct target {
    const struct backup_target *given;
    uint32_t number;
    struct engine *engine;
    char directory[PATH_MAX]; /* of a rocksdb: store, in the end; empty: another */
    char url[PATH_MAX + 32];  /* while it is filled */
    bool moved;               /* it has its name */
};

struct restoring {
    struct backup_archive *archive;
    const struct backup_restore_options *options;
    struct target *targets;
    size_t count;
    uint64_t bytes, total;
};

/* --- Stores ---------------------------------------------------------------------------------- */

static const struct backup_target *target_given(const struct backup_restore_options *options,
                                                struct slice name)
{
    for (size_t i = 0; i < options->target_count; i++)
        if (slice_equal(options->targets[i].name, name))
            return &options->targets[i];
    return NULL;
}

static bool directory_is_free(const char *path, struct error *err)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return true;
    return error_set(err, ERROR_BAD_REQUEST,
                     "\"%s\" is there already: a restore makes a new directory", path);
}

/* A directory is filled under another name. */
static bool place_choose(struct target *target, struct error *err)
{
    const char *url = target->given->url;

    if (strncmp(url, "rocksdb:", 8) != 0) {
        snprintf(target->url, sizeof target->url, "%s", url);
        return strlen(url) < sizeof target->url ||
               error_set(err, ERROR_STORE_URL, "the URL of a node is too long");
    }
    if (strlen(url) >= sizeof target->directory - 16)
        return error_set(err, ERROR_STORE_URL, "the path of a node is too long");
    snprintf(target->directory, sizeof target->directory, "%s", url + 8);
    snprintf(target->url, sizeof target->url, "rocksdb:%s.restoring", url + 8);
    return directory_is_free(target->directory, err);
}

static bool store_open(struct target *target, struct arena *arena, struct error *err)
{
    const struct engine_options options = {0};
    struct engine_partition *partitions;
    size_t count;

    if (!place_choose(target, err) ||
        !engine_open(slice_of_text(target->url), &options, &target->engine, err) ||
        !engine_partition_list(target->engine, arena, &partitions, &count, err))
        return false;
    return count == 0 ||
           error_set(err, ERROR_BAD_REQUEST, "the store for node \"%.*s\" is not empty%s",
                     SLICE_ARG(target->given->name),
                     target->directory[0] ? ": remove what an earlier restore left there" : "");
}

static bool stores_open(struct restoring *r, struct arena *arena, struct error *err)
{
    const struct backup_manifest *manifest = backup_archive_manifest(r->archive);

    r->targets = ARENA_ARRAY(arena, struct target, manifest->node_count);
    for (size_t i = 0; i < manifest->node_count; i++) {
        struct target *target = &r->targets[i];

        memset(target, 0, sizeof *target);
        target->number = manifest->nodes[i].number;
        target->given = target_given(r->options, manifest->nodes[i].name);
        if (!target->given)
            return error_set(err, ERROR_BAD_REQUEST,
                             "the backup has a node \"%.*s\": say with --node where it goes",
                             SLICE_ARG(manifest->nodes[i].name));
        r->count++;
        if (!store_open(target, arena, err))
            return error_prefix(err, "node \"%.*s\"", SLICE_ARG(target->given->name));
    }
    return true;
}

/* The stores are whole: directories get their names. The catalogue's is the last. */
static bool stores_close(struct restoring *r, struct error *err)
{
    for (size_t i = r->count; i-- > 0;) {
        struct target *target = &r->targets[i];

        engine_close(TAKE(target->engine));
        if (!target->directory[0])
            continue;
        if (rename(target->url + 8, target->directory) != 0)
            return error_set(err, ERROR_SYSTEM, "\"%s\": %s", target->directory, strerror(errno));
        target->moved = true;
    }
    return true;
}

/* --- Entries --------------------------------------------------------------------------------- */

/* What is written together. */
struct batch {
    struct target *target;
    const struct backup_manifest_partition *partition;
    struct arena *arena;
    struct engine_op *ops;
    size_t count, capacity, bytes;
};

static void batch_add(struct batch *batch, struct slice key, struct slice value)
{
    if (batch->count == batch->capacity) {
        size_t capacity = batch->capacity ? batch->capacity * 2 : 1024;
        struct engine_op *ops = ARENA_ARRAY(batch->arena, struct engine_op, capacity);

        if (batch->count)
            memcpy(ops, batch->ops, batch->count * sizeof *ops);
        batch->ops = ops;
        batch->capacity = capacity;
    }
    batch->ops[batch->count++] = (struct engine_op){ENGINE_PUT, arena_copy(batch->arena, key),
                                                    arena_copy(batch->arena, value)};
    batch->bytes += key.len + value.len;
}

static bool batch_write(struct batch *batch, bool load, struct error *err)
{
    struct engine_section section = {.partition = batch->partition->id,
                                     .epoch = batch->partition->epoch,
                                     .ops = batch->ops,
                                     .count = batch->count};

    if (batch->count && !(load ? engine_load(batch->target->engine, &section, 1, err)
                               : engine_write(batch->target->engine, &section, 1, err)))
        return error_prefix(err, "node \"%.*s\"", SLICE_ARG(batch->target->given->name));
    batch->ops = NULL;
    batch->count = batch->capacity = batch->bytes = 0;
    arena_reset(batch->arena);
    return true;
}

static void progress_tell(struct restoring *r)
{
    if (r->options->progress)
        r->options->progress(r->options->context, r->bytes, r->total);
}

static struct target *target_of(struct restoring *r, uint32_t number)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->targets[i].number == number)
            return &r->targets[i];
    return NULL;
}

static bool partition_restore(struct restoring *r,
                              const struct backup_manifest_partition *partition, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(backup_walk_free) struct backup_walk *walk = NULL;
    struct batch batch = {
        .target = target_of(r, partition->node), .partition = partition, .arena = arena};
    bool load, found = true;

    if (!batch.target)
        return error_set(err, ERROR_STORE_CORRUPT, "partition %u is on node %u, which is not known",
                         partition->id, partition->node);
    load = engine_can_load(batch.target->engine);
    if (!engine_partition_create(batch.target->engine, partition->id, partition->epoch, err) ||
        !backup_walk_new(r->archive, partition, &walk, err))
        return false;
    while (found) {
        struct slice key, value;

        if (!backup_walk_next(walk, &key, &value, &found, err))
            return false;
        if (found)
            batch_add(&batch, key, value);
        if (batch.bytes < BATCH_BYTES && found)
            continue;
        r->bytes += batch.bytes;
        if (!batch_write(&batch, load, err))
            return false;
        progress_tell(r);
    }
    return true;
}

/* In one write: before it there is no catalogue. */
static bool catalogue_restore(struct restoring *r,
                              const struct backup_manifest_partition *partition, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new(), *scratch = arena_new();
    CLEANUP(backup_walk_free) struct backup_walk *walk = NULL;
    struct catalogue_kept_node *nodes = ARENA_ARRAY(scratch, struct catalogue_kept_node, r->count);
    struct batch batch = {
        .target = target_of(r, partition->node), .partition = partition, .arena = arena};
    bool found = true;

    for (size_t i = 0; i < r->count; i++)
        nodes[i] = (struct catalogue_kept_node){
            r->targets[i].number, engine_node_id(r->targets[i].engine), r->targets[i].given->url};
    if (!backup_walk_new(r->archive, partition, &walk, err))
        return false;
    while (found) {
        struct slice key, value, moved;

        if (!backup_walk_next(walk, &key, &value, &found, err))
            return false;
        if (!found)
            break;
        if (!catalogue_kept_moved(key, value, nodes, r->count, scratch, &moved, err))
            return false;
        batch_add(&batch, key, moved);
    }
    return engine_partition_create(batch.target->engine, partition->id, partition->epoch, err) &&
           batch_write(&batch, false, err);
}

static bool all_restore(struct restoring *r, struct error *err)
{
    const struct backup_manifest *manifest = backup_archive_manifest(r->archive);
    const struct backup_manifest_partition *catalogue = NULL;

    for (size_t i = 0; i < manifest->partition_count; i++)
        r->total += manifest->partitions[i].bytes;
    for (size_t i = 0; i < manifest->partition_count; i++) {
        if (manifest->partitions[i].id == CATALOGUE_KEPT_PARTITION)
            catalogue = &manifest->partitions[i];
        else if (!partition_restore(r, &manifest->partitions[i], err))
            return false;
    }
    return catalogue ? catalogue_restore(r, catalogue, err)
                     : error_set(err, ERROR_STORE_CORRUPT, "the backup has no catalogue");
}

bool backup_restore(struct backup_archive *archive, const struct backup_restore_options *options,
                    struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct restoring restoring = {.archive = archive, .options = options};
    bool good = stores_open(&restoring, arena, err) && all_restore(&restoring, err) &&
                stores_close(&restoring, err);

    for (size_t i = 0; i < restoring.count; i++)
        engine_close(restoring.targets[i].engine);
    return good;
}

/* --- Only looking ---------------------------------------------------------------------------- */

bool backup_check(struct backup_archive *archive, const struct backup_restore_options *options,
                  struct error *err)
{
    const struct backup_manifest *manifest = backup_archive_manifest(archive);
    struct restoring r = {.archive = archive, .options = options};

    for (size_t i = 0; i < manifest->partition_count; i++)
        r.total += manifest->partitions[i].bytes;
    for (size_t i = 0; i < manifest->partition_count; i++) {
        CLEANUP(backup_walk_free) struct backup_walk *walk = NULL;
        bool found = true;

        if (!backup_walk_new(archive, &manifest->partitions[i], &walk, err))
            return false;
        while (found) {
            struct slice key, value;

            if (!backup_walk_next(walk, &key, &value, &found, err))
                return false;
        }
        r.bytes += manifest->partitions[i].bytes;
        progress_tell(&r);
    }
    return true;
}
