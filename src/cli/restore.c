/* `orrery restore BACKUP ...`: everything into new stores, without a server; or what restore_part.c
 * does with one. */
#include "cli/restore_part.h"

#include "backup/restore.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "catalogue/catalogue.h"
#include "cluster/cluster.h"
#include "server/file.h"

#include <limits.h>

enum {
    OPTION_NODE = 1000,
    OPTION_DRY_RUN,
    OPTION_FROM_ACCOUNT,
    OPTION_DATABASE,
    OPTION_CONTAINER,
    OPTION_PARTITION_KEY,
    OPTION_AS,
    OPTION_OVER,
    OPTION_TIME,
};

struct restoring {
    const char *words[2]; /* backup, directory */
    struct backup_secret secret;
    struct backup_target targets[CLUSTER_NODES_MAX];
    size_t target_count;
    bool dry_run;
    struct cli_restore_part part;
    struct cli_progress progress;
};

void cli_restore_help(void)
{
    printf(
        "Usage: orrery restore BACKUP DIR [OPTION]...\n"
        "       orrery restore BACKUP --node NAME=URL [--node NAME=URL]... [OPTION]...\n"
        "       orrery restore BACKUP --container DATABASE/CONTAINER [--as NAME | --over]\n"
        "       orrery restore BACKUP --container DATABASE/CONTAINER --partition-key KEY\n"
        "       orrery restore BACKUP --database DATABASE | --from-account ACCOUNT [--over]\n"
        "       orrery restore --container DATABASE/CONTAINER --partition-key KEY --time TIME\n"
        "\n"
        "Restores everything into stores that are new; no server is asked. BACKUP is a backup,\n"
        "or a directory of them: the last one. A server with one node goes into DIR, for\n"
        "`orrery serve --node local=rocksdb:DIR`. Every chunk is compared with its checksum.\n"
        "\n"
        "Parts go into a running server, as new versions of their items: beside what is there,\n"
        "under another name, or over it. One logical partition becomes what it was, in one\n"
        "commit: in the backup or, without one, at a time within the retention of the\n"
        "container's change feed of all versions.\n"
        "\n"
        "Options:\n"
        "  --container DB/NAME  this container alone\n"
        "  --database DB        all containers of this database\n"
        "  --from-account NAME  of this account instead of the default one; alone: all of it\n"
        "  --as NAME            another name for the container, or for the database\n"
        "  --over               in the place of what has the name\n"
        "  --partition-key KEY  one logical partition: a text, or a JSON array of values\n"
        "  --time TIME          2026-11-17T10:45:00Z, or milliseconds since 1970\n"
        "  --node NAME=URL      where a node of the backup goes: rocksdb:DIR or postgresql://...\n"
        "  --dry-run            read and check the whole backup, write nothing\n");
    cli_backup_secret_help();
    cli_client_help();
}

static bool container_take(struct cli_restore_part *part, const char *value)
{
    const char *slash = strchr(value, '/');

    if (!slash || slash == value || !slash[1]) {
        cli_fail(CLI_USAGE, "--container takes DATABASE/CONTAINER, not \"%s\"", value);
        return false;
    }
    part->database = arena_text(part->asking.arena, slice_of(value, (size_t)(slash - value)));
    part->container = slash + 1;
    return true;
}

static bool node_take(struct restoring *r, const char *value)
{
    const char *equals = strchr(value, '=');

    if (!equals || equals == value || !equals[1] || r->target_count == CLUSTER_NODES_MAX) {
        cli_fail(CLI_USAGE, "--node takes NAME=URL, not \"%s\"", value);
        return false;
    }
    r->targets[r->target_count++] = (struct backup_target){
        .name = slice_of(value, (size_t)(equals - value)), .url = equals + 1};
    return true;
}

static bool option_take(void *context, int option, const char *value)
{
    struct restoring *r = context;

    const char **texts[] = {&r->part.account, &r->part.database, NULL, &r->part.key, &r->part.as};

    if (option == OPTION_NODE)
        return node_take(r, value);
    if (option == OPTION_CONTAINER)
        return container_take(&r->part, value);
    if (option == OPTION_DRY_RUN)
        r->dry_run = r->part.dry_run = true;
    else if (option == OPTION_OVER)
        r->part.over = true;
    else if (option == OPTION_TIME)
        r->part.time = value;
    else if (option >= OPTION_FROM_ACCOUNT && option <= OPTION_AS)
        *texts[option - OPTION_FROM_ACCOUNT] = value;
    else
        return cli_backup_secret_take(&r->secret, option, value) ||
               cli_client_take(&r->part.asking.options, option, value);
    return true;
}

static void progress_tell(void *context, uint64_t bytes, uint64_t total)
{
    cli_progress_tell(context, bytes, total);
}

/* DIR of a backup with one node. */
static bool targets_settle(struct restoring *r, const struct backup_manifest *manifest,
                           struct arena *arena, struct error *err)
{
    if (!r->words[1])
        return r->target_count || r->dry_run ||
               error_set(err, ERROR_BAD_REQUEST, "say where it goes: DIR, or --node NAME=URL");
    if (r->target_count || manifest->node_count != 1)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the backup has %zu nodes: say with --node NAME=URL where each goes",
                         manifest->node_count);
    r->targets[r->target_count++] = (struct backup_target){
        .name = manifest->nodes[0].name,
        .url = arena_text(arena, arena_printf(arena, "rocksdb:%s", r->words[1])),
    };
    return true;
}

/* Into the directory of the first store that has one, where a server looks for them. */
static bool files_restore(const struct restoring *r, const struct backup_archive *archive,
                          struct error *err)
{
    CLEANUP(buf_done) struct buf files;
    const char *directory = NULL;
    char path[PATH_MAX];
    struct slice rest, name;

    buf_init(&files, 1 << 20);
    for (size_t i = 0; i < r->target_count && !directory; i++)
        if (strncmp(r->targets[i].url, "rocksdb:", 8) == 0)
            directory = r->targets[i].url + 8;
    if (!backup_archive_files(archive, &files, err))
        return false;
    rest = buf_slice(&files);
    if (!directory || !rest.len)
        return true;
    snprintf(path, sizeof path, "%s/tls", directory);
    if (!server_file_make_directory(path, err))
        return false;
    while (slice_split(rest, '\0', &name, &rest)) {
        size_t len = rest.len >= 4 ? bytes_get_be32(rest.data) : SIZE_MAX;

        if (len > rest.len - 4 || !slice_starts_with(name, SLICE("tls/")) ||
            memchr(name.data + 4, '/', name.len - 4))
            return error_set(err, ERROR_STORE_CORRUPT, "the backup holds a file of no known name");
        snprintf(path, sizeof path, "%s/%.*s", directory, SLICE_ARG(name));
        if (!server_file_write_private(path, slice_first(slice_skip(rest, 4), len), err))
            return false;
        rest = slice_skip(rest, 4 + len);
    }
    return true;
}

static void result_print(const struct restoring *r, const struct backup_manifest *manifest,
                         int64_t begun_ms)
{
    double seconds = (double)MAX(clock_monotonic_ms() - begun_ms, INT64_C(1)) / 1000;
    uint64_t bytes = 0;

    for (size_t i = 0; i < manifest->partition_count; i++)
        bytes += manifest->partitions[i].bytes;
    if (r->part.asking.options.json)
        printf("{\"id\":\"%s\",\"dryRun\":%s,\"timeMs\":%lld,\"partitions\":%zu,\"bytes\":%llu,"
               "\"chain\":%zu,\"seconds\":%.3f}\n",
               manifest->id, r->dry_run ? "true" : "false", (long long)manifest->time_ms,
               manifest->partition_count, (unsigned long long)bytes, manifest->chain_count + 1,
               seconds);
    else
        printf("backup %s %s: %zu partitions, %.1f MB, %.1f s\n", manifest->id,
               r->dry_run ? "is whole, nothing was written" : "restored", manifest->partition_count,
               (double)bytes / 1e6, seconds);
}

/* Is it about a part? */
static bool is_part(const struct restoring *r)
{
    return r->part.account || r->part.database;
}

static int part_run(struct restoring *r)
{
    CLEANUP(backup_archive_free) struct backup_archive *archive = NULL;
    struct cli_restore_part *part = &r->part;
    struct error err;

    if (r->words[1] || r->target_count)
        return cli_fail(CLI_USAGE, "a part goes into a running server: leave DIR and --node out");
    if (part->key && (!part->container || part->over))
        return cli_fail(CLI_USAGE, "--partition-key goes with --container, and without --over");
    if (part->as && (!part->database || part->over))
        return cli_fail(CLI_USAGE, "--as goes with --container or --database, without --over");
    if (part->time && (!part->key || r->words[0]))
        return cli_fail(CLI_USAGE,
                        "--time goes with --container and --partition-key, and without a backup");
    if (!part->account)
        part->account = CATALOGUE_ACCOUNT_DEFAULT;
    part->progress = &r->progress;
    cli_progress_init(&r->progress, "restore");
    if (part->time)
        return cli_restore_rewind_run(part);
    if (!r->words[0])
        return cli_fail(CLI_USAGE, "name the backup, or a --time");
    if (!backup_archive_open(r->words[0], &r->secret, &archive, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    return cli_restore_part_run(part, archive);
}

static int restore_run(struct restoring *r)
{
    CLEANUP(backup_archive_free) struct backup_archive *archive = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct backup_restore_options options = {
        .targets = r->targets, .progress = progress_tell, .context = &r->progress};
    int64_t begun_ms = clock_monotonic_ms();
    struct error err;
    bool good;

    cli_progress_init(&r->progress, r->dry_run ? "check" : "restore");
    if (!backup_archive_open(r->words[0], &r->secret, &archive, &err) ||
        !targets_settle(r, backup_archive_manifest(archive), arena, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    options.target_count = r->target_count;
    good = r->dry_run ? backup_check(archive, &options, &err)
                      : backup_restore(archive, &options, &err) && files_restore(r, archive, &err);
    cli_progress_done(&r->progress);
    if (!good)
        return cli_fail(CLI_FAILED, "%s", err.message);
    result_print(r, backup_archive_manifest(archive), begun_ms);
    return CLI_OK;
}

int cli_restore(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        CLI_BACKUP_SECRET_ROWS,
        {"node", required_argument, NULL, OPTION_NODE},
        {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
        {"from-account", required_argument, NULL, OPTION_FROM_ACCOUNT},
        {"database", required_argument, NULL, OPTION_DATABASE},
        {"container", required_argument, NULL, OPTION_CONTAINER},
        {"partition-key", required_argument, NULL, OPTION_PARTITION_KEY},
        {"as", required_argument, NULL, OPTION_AS},
        {"over", no_argument, NULL, OPTION_OVER},
        {"time", required_argument, NULL, OPTION_TIME},
        {"help", no_argument, NULL, 'h'},
        {NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct restoring r = {.part.asking.arena = arena};
    bool help;
    int count = cli_words_read(argc, argv, options,
                               &(struct cli_words){r.words, 2, option_take, &r}, &help);

    if (help) {
        cli_restore_help();
        return CLI_OK;
    }
    if (count < 0)
        return CLI_USAGE;
    if (is_part(&r))
        return part_run(&r);
    if (count < 1)
        return cli_fail(CLI_USAGE, "it is used as `orrery restore BACKUP DIR`");
    return restore_run(&r);
}
