#include "backup/archive.h"

#include "base/memory.h"
#include "support/check.h"
#include "support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 256 };

static const struct backup_secret no_secret = {0};

static void path_make(void *scratch, const char *name, char ret_path[PATH_SIZE])
{
    snprintf(ret_path, PATH_SIZE, "%s", scratch_path(scratch, name));
}

static struct backup_seal seal_of(enum backup_seal_kind kind, const char *secret)
{
    static const uint8_t salt[BACKUP_SALT_LEN] = {1, 2, 3};
    struct backup_seal seal;
    struct error err;

    assert_ok(backup_seal_init(&seal, kind, salt, slice_of_text(secret), &err), &err);
    return seal;
}

/* Chunks of one partition: each a text, those before `known` as the parent has them. */
static void backup_make(const char *directory, const struct backup_archive *parent,
                        const struct backup_seal *seal, const char *const *chunks, int64_t time_ms)
{
    CLEANUP(backup_writer_free) struct backup_writer *writer = NULL;
    struct backup_manifest_partition partition = {
        .node = 0, .id = 7, .epoch = 3, .numbering = SLICE("n")};
    struct error err;

    assert_ok(backup_writer_new(&(struct backup_writer_options){directory, parent, seal}, time_ms,
                                &writer, &err),
              &err);
    backup_writer_node(writer, 0, SLICE("local"));
    backup_writer_cluster(writer, SLICE("c"));
    assert_ok(backup_writer_files(writer, SLICE("f"), &err), &err);
    assert_ok(backup_writer_begin(writer, &partition, &err), &err);
    for (size_t i = 0; chunks[i]; i++) {
        CLEANUP(backup_chunk_done) struct backup_chunk chunk;
        CLEANUP(buf_done) struct buf known;
        struct backup_chunk_place place = {0};
        bool is_known;

        backup_chunk_init(&chunk);
        buf_init(&known, BUF_DEFAULT_MAX);
        backup_chunk_add(&chunk, slice_of_text(chunks[i]), slice_of_text(chunks[i]));
        backup_digest(buf_slice(&chunk.bytes), place.digest);
        place.length = (uint32_t)chunk.bytes.len;
        place.last = slice_of_text(chunks[i]);
        backup_writer_known(writer, SLICE(""), 100, &known);
        is_known = known.len && memmem(known.data, known.len, place.digest, sizeof place.digest);
        assert_ok(backup_writer_chunk(writer, &place,
                                      is_known ? SLICE_NONE : buf_slice(&chunk.bytes), &err),
                  &err);
    }
    assert_ok(backup_writer_end(writer, &err), &err);
    assert_ok(backup_writer_finish(writer, &err), &err);
}

static void backup_expect(const char *path, const struct backup_secret *secret,
                          const char *const *chunks)
{
    CLEANUP(backup_archive_free) struct backup_archive *archive = NULL;
    CLEANUP(backup_walk_free) struct backup_walk *walk = NULL;
    struct slice key, value;
    struct error err;
    bool found;

    assert_ok(backup_archive_open(path, secret, &archive, &err), &err);
    assert_ok(
        backup_walk_new(archive, &backup_archive_manifest(archive)->partitions[0], &walk, &err),
        &err);
    for (size_t i = 0; chunks[i]; i++) {
        assert_ok(backup_walk_next(walk, &key, &value, &found, &err), &err);
        assert_true(found);
        assert_slice_equal(key, slice_of_text(chunks[i]));
        assert_slice_equal(value, slice_of_text(chunks[i]));
    }
    assert_ok(backup_walk_next(walk, &key, &value, &found, &err), &err);
    assert_false(found);
}

static const char *const first[] = {"a", "b", "c", NULL};
static const char *const second[] = {"a", "c", "d", NULL};
static const char *const third[] = {"a", "b", "d", "e", NULL};

static void chain_make(const char *directory)
{
    struct backup_seal seal = seal_of(BACKUP_SEAL_NONE, "");
    struct backup_archive *parent;
    struct error err;

    backup_make(directory, NULL, &seal, first, 1000);
    assert_ok(backup_archive_open(directory, &no_secret, &parent, &err), &err);
    backup_make(directory, parent, &seal, second, 2000);
    backup_archive_free(parent);
    assert_ok(backup_archive_open(directory, &no_secret, &parent, &err), &err);
    assert_int_equal(backup_archive_manifest(parent)->chain_count, 1);
    backup_make(directory, parent, &seal, third, 3000);
    backup_archive_free(parent);
}

static void a_chain_gives_what_the_last_backup_had(void **state)
{
    char directory[PATH_SIZE];

    path_make(*state, "backups", directory);
    chain_make(directory);
    backup_expect(directory, &no_secret, third);
}

static void path_of_first(const char *directory, char *path, size_t size)
{
    struct backup_archive *last;
    struct error err;

    assert_ok(backup_archive_open(directory, &no_secret, &last, &err), &err);
    snprintf(path, size, "%s/%s", directory, backup_archive_manifest(last)->chain[0].id);
    backup_archive_free(last);
}

static void a_missing_or_changed_link_is_refused(void **state)
{
    char directory[PATH_SIZE], link[2 * PATH_SIZE], file[3 * PATH_SIZE], elsewhere[3 * PATH_SIZE];
    struct backup_archive *archive;
    struct error err;
    FILE *stream;

    path_make(*state, "broken", directory);
    chain_make(directory);
    path_of_first(directory, link, sizeof link);
    snprintf(file, sizeof file, "%s/manifest.json", link);
    snprintf(elsewhere, sizeof elsewhere, "%s/manifest.was", link);
    assert_int_equal(rename(file, elsewhere), 0);
    assert_fails(backup_archive_open(directory, &no_secret, &archive, &err), &err,
                 ERROR_STORE_CORRUPT);
    assert_contains(err.message, "chain is broken");
    assert_int_equal(rename(elsewhere, file), 0);
    stream = fopen(file, "a");
    assert_non_null(stream);
    fputs(" ", stream);
    fclose(stream);
    assert_fails(backup_archive_open(directory, &no_secret, &archive, &err), &err,
                 ERROR_STORE_CORRUPT);
}

static void byte_change(const char *path, long at)
{
    FILE *stream = fopen(path, "r+");
    int byte;

    assert_non_null(stream);
    fseek(stream, at, at < 0 ? SEEK_END : SEEK_SET);
    byte = fgetc(stream);
    fseek(stream, -1, SEEK_CUR);
    fputc(byte ^ 4, stream);
    fclose(stream);
}

static void damage_of_any_file_is_noticed(void **state)
{
    static const char *const names[] = {"manifest.json", "0-7.index", "0-7.data", "files"};
    struct backup_seal seal = seal_of(BACKUP_SEAL_NONE, "");

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char directory[PATH_SIZE], path[2 * PATH_SIZE];
        CLEANUP(backup_archive_free) struct backup_archive *archive = NULL;
        CLEANUP(backup_walk_free) struct backup_walk *walk = NULL;
        CLEANUP(buf_done) struct buf files;
        struct slice key, value;
        struct error err;
        bool found = true, good;

        buf_init(&files, 1024);
        path_make(*state, names[i], directory);
        backup_make(directory, NULL, &seal, first, 1000);
        assert_ok(backup_archive_open(directory, &no_secret, &archive, &err), &err);
        snprintf(path, sizeof path, "%s/%s", backup_archive_path(archive), names[i]);
        backup_archive_free(TAKE(archive));
        byte_change(path, -1);
        good =
            backup_archive_open(directory, &no_secret, &archive, &err) &&
            backup_archive_files(archive, &files, &err) &&
            backup_walk_new(archive, &backup_archive_manifest(archive)->partitions[0], &walk, &err);
        while (good && found)
            good = backup_walk_next(walk, &key, &value, &found, &err);
        assert_false(good);
        assert_int_equal(err.code, ERROR_STORE_CORRUPT);
    }
}

static void file_write(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");

    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static void an_encrypted_backup_is_opened_by_its_key_alone(void **state)
{
    char directory[PATH_SIZE], key[PATH_SIZE], other[PATH_SIZE], command[3 * PATH_SIZE];
    struct backup_seal seal = seal_of(BACKUP_SEAL_KEY_FILE, "sixteen bytes or more");
    struct backup_archive *archive;
    struct error err;
    struct stat found;

    path_make(*state, "sealed", directory);
    path_make(*state, "key", key);
    path_make(*state, "other", other);
    file_write(key, "sixteen bytes or more");
    file_write(other, "sixteen bytes or less");
    backup_make(directory, NULL, &seal, (const char *const[]){"secret-word", NULL}, 1000);
    backup_expect(directory, &(struct backup_secret){.key_file = key},
                  (const char *const[]){"secret-word", NULL});
    assert_fails(backup_archive_open(directory, &no_secret, &archive, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(
        backup_archive_open(directory, &(struct backup_secret){.key_file = other}, &archive, &err),
        &err, ERROR_BAD_REQUEST);
    snprintf(command, sizeof command, "! grep -rq secret-word %s", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(stat(directory, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0700);
}

static void what_was_not_finished_is_no_backup_and_leaves_nothing(void **state)
{
    char directory[PATH_SIZE];
    struct backup_seal seal = seal_of(BACKUP_SEAL_NONE, "");
    struct backup_writer *writer;
    struct backup_archive *archive;
    struct error err;

    path_make(*state, "unfinished", directory);
    assert_ok(backup_writer_new(&(struct backup_writer_options){directory, NULL, &seal}, 1, &writer,
                                &err),
              &err);
    assert_ok(backup_writer_files(writer, SLICE("f"), &err), &err);
    assert_fails(backup_archive_open(directory, &no_secret, &archive, &err), &err, ERROR_NOT_FOUND);
    backup_writer_free(writer);
    assert_int_equal(rmdir(directory), 0);
}

static int setup(void **state)
{
    struct scratch *scratch = MEMORY_NEW(struct scratch);

    scratch_init(scratch);
    *state = scratch;
    return 0;
}

static int teardown(void **state)
{
    scratch_done(*state);
    memory_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_gives_what_the_last_backup_had),
        cmocka_unit_test(a_missing_or_changed_link_is_refused),
        cmocka_unit_test(damage_of_any_file_is_noticed),
        cmocka_unit_test(an_encrypted_backup_is_opened_by_its_key_alone),
        cmocka_unit_test(what_was_not_finished_is_no_backup_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
