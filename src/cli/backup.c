/* `orrery backup DIR`: asks the server for pages of a moment and writes them down. */
#include "cli/backup.h"

#include "backup/moment.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"
#include "cli/asking.h"
#include "cli/table.h"
#include "document/bson.h"
#include "partition/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPTION_INCREMENTAL = 1000, OPTION_RATE };

struct backing {
    struct cli_asking asking; /* words: the directory */
    bool incremental;
    uint64_t rate; /* bytes in a second; 0: as fast as it goes */
    struct backup_secret secret;
    struct backup_archive *parent;
    struct backup_writer *writer;
    struct slice moment; /* id */
    struct cli_progress progress;
    int64_t begun_ms;
    uint64_t read, total, fetched;
};

void cli_backup_help(void)
{
    printf("Usage: orrery backup DIR [OPTION]...\n"
           "\n"
           "Copies everything the server holds, on all its nodes, as it is at one moment, while\n"
           "clients work: accounts and their keys, databases, containers, items, indexes, the\n"
           "change feed, and the certificate authority. The backup becomes a directory below DIR,\n"
           "readable by its owner alone. It is there when the command says so; cut off before,\n"
           "it is not, and earlier ones are as they were.\n"
           "\n"
           "Options:\n"
           "  --incremental        only what changed since the last backup in DIR, which it\n"
           "                       builds on\n"
           "  --rate MB            read at most so many megabytes in a second\n");
    cli_backup_secret_help();
    cli_client_help();
}

/* --- What commands about backups share ------------------------------------------------------- */

bool cli_backup_secret_take(struct backup_secret *secret, int option, const char *value)
{
    if (option == CLI_BACKUP_OPTION)
        secret->key_file = value;
    else if (option == CLI_BACKUP_OPTION + 1)
        secret->passphrase_file = value;
    return option == CLI_BACKUP_OPTION || option == CLI_BACKUP_OPTION + 1;
}

void cli_backup_secret_help(void)
{
    printf("  --key FILE           encrypt, or open, with the content of this file: at least 16\n"
           "                       bytes that nobody can guess (openssl rand -out FILE 32)\n"
           "  --passphrase FILE    the same with the first line of this file\n");
}

void cli_progress_init(struct cli_progress *progress, const char *what)
{
    *progress = (struct cli_progress){
        .what = what, .begun_ms = clock_monotonic_ms(), .shown = isatty(STDERR_FILENO)};
}

void cli_progress_tell(struct cli_progress *progress, uint64_t bytes, uint64_t total)
{
    enum { WIDTH = 30, PAUSE_MS = 200 };
    int64_t now_ms = clock_monotonic_ms();
    double share = total ? MIN((double)bytes / (double)total, 1.0) : 0;
    int filled = (int)(share * WIDTH);

    if (!progress->shown || now_ms - progress->told_ms < PAUSE_MS)
        return;
    progress->told_ms = now_ms;
    fprintf(stderr, "\r%s [%.*s%*s] %3.0f %%  %.1f MB, %.1f MB/s ", progress->what, filled,
            "##############################", WIDTH - filled, "", share * 100, (double)bytes / 1e6,
            (double)bytes / 1e3 / (double)MAX(now_ms - progress->begun_ms, INT64_C(1)));
}

void cli_progress_done(struct cli_progress *progress)
{
    if (progress->shown && progress->told_ms)
        fprintf(stderr, "\r%79s\r", "");
}

/* --- Options --------------------------------------------------------------------------------- */

static bool rate_take(struct backing *b, const char *value)
{
    uint64_t rate;

    if (!slice_to_uint64(slice_of_text(value), &rate) || rate == 0 || rate > 1000 * 1000) {
        cli_fail(CLI_USAGE, "--rate takes megabytes in a second, at least 1, not \"%s\"", value);
        return false;
    }
    b->rate = rate * 1000 * 1000;
    return true;
}

static bool option_take(void *context, int option, const char *value)
{
    struct backing *b = context;

    if (option == OPTION_INCREMENTAL)
        b->incremental = true;
    else if (option == OPTION_RATE)
        return rate_take(b, value);
    else if (!cli_backup_secret_take(&b->secret, option, value))
        return cli_client_take(&b->asking.options, option, value);
    return true;
}

/* --- Pages ----------------------------------------------------------------------------------- */

static void rate_keep(const struct backing *b)
{
    int64_t due_ms, now_ms;

    if (!b->rate)
        return;
    due_ms = b->begun_ms + (int64_t)(b->read * 1000 / b->rate);
    now_ms = clock_monotonic_ms();
    if (due_ms > now_ms)
        usleep((useconds_t)(due_ms - now_ms) * 1000);
}

static bool page_ask(struct backing *b, const struct backup_manifest_partition *partition,
                     struct slice after, struct arena *arena, struct slice *ret_page,
                     struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct cli_answer answer;
    uint8_t len[2];
    struct cli_request request = {
        .method = "POST",
        .type = SLICE("_orrery"),
        .link = arena_printf(arena, "moments/%.*s/pages/%u/%u", SLICE_ARG(b->moment),
                             partition->node, partition->id),
        .content_type = "application/octet-stream",
        .bytes = true,
    };

    buf_init(&body, BUF_DEFAULT_MAX);
    bytes_put_be16(len, (uint16_t)after.len);
    buf_append(&body, len, sizeof len);
    buf_append_slice(&body, after);
    if (b->parent)
        backup_writer_known(b->writer, after, BACKUP_KNOWN_MAX, &body);
    request.body = buf_slice(&body);
    if (!cli_client_send(b->asking.client, &request, arena, &answer, err))
        return false;
    if (answer.status >= 400)
        return cli_answer_refused(&answer, err);
    *ret_page = answer.text;
    return true;
}

static bool page_wrong(struct error *err)
{
    return error_set(err, ERROR_SYSTEM, "the server's answer is no page of a backup");
}

/* One frame off a page. What the server sends is compared with the digest it says. */
static bool frame_take(struct backing *b, struct slice *page, struct buf *last, struct error *err)
{
    struct backup_chunk_place chunk = {0};
    bool is_new = page->data[0] == BACKUP_FRAME_NEW;
    uint8_t digest[BACKUP_DIGEST_LEN];
    struct slice bytes = SLICE_NONE;
    size_t key;

    if (page->len < BACKUP_FRAME_HEAD || (!is_new && page->data[0] != BACKUP_FRAME_KNOWN))
        return page_wrong(err);
    chunk.length = bytes_get_be32(page->data + 1);
    memcpy(chunk.digest, page->data + 5, BACKUP_DIGEST_LEN);
    key = bytes_get_be16(page->data + 5 + BACKUP_DIGEST_LEN);
    *page = slice_skip(*page, BACKUP_FRAME_HEAD);
    if (page->len < key + (is_new ? chunk.length : 0))
        return page_wrong(err);
    chunk.last = slice_first(*page, key);
    *page = slice_skip(*page, key);
    buf_clear(last);
    buf_append_slice(last, chunk.last);
    if (is_new) {
        bytes = slice_first(*page, chunk.length);
        *page = slice_skip(*page, chunk.length);
        backup_digest(bytes, digest);
        if (memcmp(digest, chunk.digest, sizeof digest) != 0)
            return page_wrong(err);
        b->fetched += chunk.length;
    }
    b->read += chunk.length;
    return backup_writer_chunk(b->writer, &chunk, bytes, err);
}

static bool pages_take(struct backing *b, const struct backup_manifest_partition *partition,
                       struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf last;
    bool more = true;

    buf_init(&last, UINT16_MAX);
    while (more) {
        struct slice page = SLICE_NONE;

        arena_reset(arena);
        rate_keep(b);
        if (!page_ask(b, partition, buf_slice(&last), arena, &page, err))
            return false;
        while (page.len > 1)
            if (!frame_take(b, &page, &last, err))
                return false;
        if (page.len != 1 ||
            (page.data[0] != BACKUP_FRAME_MORE && page.data[0] != BACKUP_FRAME_END))
            return page_wrong(err);
        more = page.data[0] == BACKUP_FRAME_MORE;
        cli_progress_tell(&b->progress, b->read, b->total);
    }
    return true;
}

/* A partition nobody has written since: every commit numbers it anew. Old records of a history go
 * without one. */
static bool is_same(const struct backing *b, const struct backup_manifest_partition *partition)
{
    const struct backup_manifest_partition *before =
        b->parent ? backup_manifest_find(backup_archive_manifest(b->parent), partition->node,
                                         partition->id)
                  : NULL;

    return before && partition->numbering.len && partition->id != PARTITION_HISTORY &&
           before->epoch == partition->epoch &&
           slice_equal(before->numbering, partition->numbering);
}

static bool partition_take(struct backing *b, struct slice said, struct error *err)
{
    struct backup_manifest_partition partition = {
        .node = (uint32_t)cli_answer_number(said, "node"),
        .id = (uint32_t)cli_answer_number(said, "partition"),
        .epoch = (uint64_t)cli_answer_number(said, "epoch"),
    };

    if (!backup_hex_read(cli_answer_text(said, "numbering"), b->asking.arena,
                         &partition.numbering) ||
        !partition.id || !partition.epoch)
        return page_wrong(err);
    if (!backup_writer_begin(b->writer, &partition, err))
        return false;
    if (is_same(b, &partition)) {
        if (!backup_writer_same(b->writer, err))
            return false;
    } else if (!pages_take(b, &partition, err)) {
        return false;
    }
    return backup_writer_end(b->writer, err);
}

/* --- The whole ------------------------------------------------------------------------------- */

static bool moment_write(struct backing *b, struct slice said, struct error *err)
{
    struct document_iter iter;
    struct slice files;

    document_iter_init(&iter, cli_answer_inside(said, "nodes"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            backup_writer_node(b->writer,
                               (uint32_t)cli_answer_number(iter.value.document, "number"),
                               cli_answer_text(iter.value.document, "name"));
    backup_writer_cluster(b->writer, cli_answer_text(said, "cluster"));
    if (!backup_hex_read(cli_answer_text(said, "files"), b->asking.arena, &files))
        return page_wrong(err);
    if (!backup_writer_files(b->writer, files, err))
        return false;
    document_iter_init(&iter, cli_answer_inside(said, "partitions"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            b->total += (uint64_t)cli_answer_number(iter.value.document, "bytes");
    document_iter_init(&iter, cli_answer_inside(said, "partitions"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT && !partition_take(b, iter.value.document, err))
            return false;
    return backup_writer_finish(b->writer, err);
}

static bool seal_make(const struct backing *b, struct backup_seal *ret_seal, struct error *err)
{
    uint8_t salt[BACKUP_SALT_LEN];

    if (b->parent) {
        *ret_seal = *backup_archive_seal(b->parent);
        if (ret_seal->kind == BACKUP_SEAL_NONE && (b->secret.key_file || b->secret.passphrase_file))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the backup it would build on is not encrypted: take a full one");
        return true;
    }
    random_secret(salt, sizeof salt);
    return backup_secret_seal(&b->secret,
                              b->secret.key_file          ? BACKUP_SEAL_KEY_FILE
                              : b->secret.passphrase_file ? BACKUP_SEAL_PASSPHRASE
                                                          : BACKUP_SEAL_NONE,
                              salt, ret_seal, err);
}

/* One backup into a directory at a time; what one that was killed has left goes. */
static bool directory_lock(const char *directory, int *ret_fd, struct error *err)
{
    char path[PATH_MAX];
    DIR *open_directory;
    const struct dirent *entry;
    int length = snprintf(path, sizeof path, "%s/.lock", directory);

    if (length < 0 || (size_t)length >= sizeof path)
        return error_set(err, ERROR_CONFIGURATION, "the path of the directory is too long");
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return error_set(err, ERROR_SYSTEM, "\"%s\": %s", directory, strerror(errno));
    *ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*ret_fd < 0)
        return error_set(err, ERROR_SYSTEM, "\"%s\": %s", path, strerror(errno));
    if (flock(*ret_fd, LOCK_EX | LOCK_NB) != 0)
        return error_set(err, ERROR_BUSY, "another backup into \"%s\" is under way", directory);
    open_directory = opendir(directory);
    while (open_directory && (entry = readdir(open_directory)) != NULL) {
        length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (strncmp(entry->d_name, ".partial-", 9) == 0 && length > 0 &&
            (size_t)length < sizeof path)
            backup_partial_remove(path);
    }
    if (open_directory)
        closedir(open_directory);
    return true;
}

static int result_print(const struct backing *b)
{
    const char *kind = b->parent ? "incremental" : "full";
    double seconds = (double)MAX(clock_monotonic_ms() - b->begun_ms, INT64_C(1)) / 1000;

    if (b->asking.options.json) {
        printf("{\"id\":\"%s\",\"kind\":\"%s\",\"bytesRead\":%llu,\"bytesFetched\":%llu,"
               "\"bytesStored\":%llu,\"seconds\":%.3f}\n",
               backup_writer_id(b->writer), kind, (unsigned long long)b->read,
               (unsigned long long)b->fetched, (unsigned long long)backup_writer_stored(b->writer),
               seconds);
        return CLI_OK;
    }
    printf("backup %s (%s): %.1f MB read, %.1f MB fetched, %.1f MB stored, %.1f s\n",
           backup_writer_id(b->writer), kind, (double)b->read / 1e6, (double)b->fetched / 1e6,
           (double)backup_writer_stored(b->writer) / 1e6, seconds);
    return CLI_OK;
}

static bool backup_run(struct backing *b, struct error *err)
{
    CLEANUP(backup_seal_done) struct backup_seal seal = {0};
    struct backup_writer_options options = {
        .directory = b->asking.words[0], .parent = b->parent, .seal = &seal};
    struct cli_answer answer, ended;
    struct error ignored;
    bool good;

    if (!seal_make(b, &seal, err) || !cli_client_new(&b->asking.options, &b->asking.client, err) ||
        !cli_asking_ask(&b->asking, "POST", SLICE("moments"), SLICE("{}"), &answer, err))
        return false;
    b->moment = cli_answer_text(answer.document, "id");
    good = backup_writer_new(&options, (int64_t)cli_answer_number(answer.document, "timeMs"),
                             &b->writer, err) &&
           moment_write(b, answer.document, err);
    cli_progress_done(&b->progress);
    /* the server would let go of it by itself, later */
    (void)!cli_asking_ask(&b->asking, "DELETE",
                          arena_printf(b->asking.arena, "moments/%.*s", SLICE_ARG(b->moment)),
                          SLICE_NONE, &ended, &ignored);
    return good;
}

static int backup_and_tell(struct backing *b)
{
    struct error err;
    int lock = -1, code;
    bool good;

    cli_progress_init(&b->progress, "backup");
    b->begun_ms = clock_monotonic_ms();
    good = directory_lock(b->asking.words[0], &lock, &err) &&
           (!b->incremental ||
            backup_archive_open(b->asking.words[0], &b->secret, &b->parent, &err)) &&
           backup_run(b, &err);
    code = good ? result_print(b) : cli_asking_failed(&err);
    backup_writer_free(b->writer);
    backup_archive_free(b->parent);
    cli_client_free(b->asking.client);
    if (lock >= 0)
        close(lock);
    return code;
}

int cli_backup(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        CLI_BACKUP_SECRET_ROWS,
        {"incremental", no_argument, NULL, OPTION_INCREMENTAL},
        {"rate", required_argument, NULL, OPTION_RATE},
        {"help", no_argument, NULL, 'h'},
        {NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct backing b = {.asking.arena = arena};
    bool help;

    b.asking.word_count = cli_words_read(
        argc, argv, options, &(struct cli_words){b.asking.words, 1, option_take, &b}, &help);
    if (help) {
        cli_backup_help();
        return CLI_OK;
    }
    if (b.asking.word_count < 0)
        return CLI_USAGE;
    if (b.asking.word_count != 1)
        return cli_fail(CLI_USAGE, "it is used as `orrery backup DIR`");
    if (b.secret.key_file && b.secret.passphrase_file)
        return cli_fail(CLI_USAGE, "give --key or --passphrase, not both");
    return backup_and_tell(&b);
}
