/* What only rocksdb: and memory: do: directories, damage, caps. */
#include "base/bytes.h"
#include "base/random.h"
#include "engine/engine.h"
#include "support/check.h"
#include "support/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct scratch scratch;
    char directory[200], url[220], copy[200];
    struct arena *arena;
};

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);

    scratch_init(&fixture->scratch);
    snprintf(fixture->directory, sizeof fixture->directory, "%s",
             scratch_path(&fixture->scratch, "node"));
    snprintf(fixture->url, sizeof fixture->url, "rocksdb:%s", fixture->directory);
    fixture->arena = arena_new();
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_free(fixture->arena);
    scratch_done(&fixture->scratch);
    memory_free(fixture);
    return 0;
}

static bool try_open(const char *url, struct engine **ret_engine, struct error *err)
{
    return engine_open(slice_of_text(url), &(struct engine_options){0}, ret_engine, err);
}

static struct engine *open_node(const char *url)
{
    struct engine *engine;
    struct error err;

    assert_ok(try_open(url, &engine, &err), &err);
    return engine;
}

static bool write_number(struct engine *engine, uint32_t number, size_t value_len,
                         struct error *err)
{
    CLEANUP(memory_free) uint8_t *value = memory_alloc(value_len);
    uint8_t key[4];
    struct engine_op op = {ENGINE_PUT, slice_of(key, sizeof key), slice_of(value, value_len)};
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = &op, .count = 1};
    struct random random;

    bytes_put_be32(key, number);
    random_seed(&random, number);
    for (size_t i = 0; i < value_len; i++)
        value[i] = (uint8_t)random_next(&random);
    return engine_write(engine, &section, 1, err);
}

/* A node with numbers 0 .. count-1, closed. */
static void node_make(struct fixture *fixture, uint32_t count, size_t value_len)
{
    CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);
    struct error err;

    assert_ok(engine_partition_create(engine, 1, 1, &err), &err);
    for (uint32_t i = 0; i < count; i++)
        assert_ok(write_number(engine, i, value_len, &err), &err);
}

static void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The path of the first file of the store whose name ends so; largest first. */
static const char *store_file(struct fixture *fixture, const char *ending)
{
    const char *store =
        arena_text(fixture->arena, arena_printf(fixture->arena, "%s/store", fixture->directory));
    DIR *listing = opendir(store);
    const struct dirent *entry;
    const char *found = NULL;
    off_t largest = -1;

    assert_non_null(listing);
    while ((entry = readdir(listing)) != NULL) {
        const char *path =
            arena_text(fixture->arena, arena_printf(fixture->arena, "%s/%s", store, entry->d_name));
        struct stat status;

        if (strstr(entry->d_name, ending) && stat(path, &status) == 0 && status.st_size > largest) {
            largest = status.st_size;
            found = path;
        }
    }
    closedir(listing);
    assert_non_null(found);
    return found;
}

static void bytes_spoil(const char *path, off_t at, size_t count)
{
    int fd = open(path, O_RDWR);

    assert_true(fd >= 0);
    for (size_t i = 0; i < count; i++) {
        uint8_t byte;

        assert_int_equal(pread(fd, &byte, 1, at + (off_t)i), 1);
        byte ^= 0x55;
        assert_int_equal(pwrite(fd, &byte, 1, at + (off_t)i), 1);
    }
    close(fd);
}

/* --- Directories ----------------------------------------------------------------------------- */

static void urls_that_name_no_store_are_refused(void **state UNUSED)
{
    static const char *const urls[] = {"mysql://host/db", "rocksdb", "rocksdb:", "memory:x", ""};

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct engine *engine;
        struct error err;

        assert_fails(try_open(urls[i], &engine, &err), &err, ERROR_STORE_URL);
    }
}

static void a_foreign_directory_is_refused_and_left_alone(void **state)
{
    struct fixture *fixture = *state;
    const char *file;
    struct engine *engine;
    struct error err;
    struct dirent **names;

    assert_int_equal(mkdir(fixture->directory, 0700), 0);
    file = arena_text(fixture->arena,
                      arena_printf(fixture->arena, "%s/letters.txt", fixture->directory));
    file_write(file, "dear diary");
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_FOREIGN);
    assert_contains(err.message, "letters.txt");
    assert_int_equal(scandir(fixture->directory, &names, NULL, NULL), 3);
    for (int i = 0; i < 3; i++)
        free(names[i]);
    free(names);
}

static void a_file_in_place_of_the_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct engine *engine;
    struct error err;

    file_write(fixture->directory, "not a directory");
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_IO);
}

static void an_unwritable_place_is_refused_with_the_reason(void **state UNUSED)
{
    struct engine *engine;
    struct error err;

    assert_fails(try_open("rocksdb:/proc/orrery-node", &engine, &err), &err, ERROR_STORE_IO);
    assert_contains(err.message, "/proc/orrery-node");
}

static void a_newer_format_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct engine *engine;
    struct error err;

    node_make(fixture, 1, 10);
    file_write(arena_text(fixture->arena,
                          arena_printf(fixture->arena, "%s/orrery.node", fixture->directory)),
               "orrery node\nformat 2\nfuture yes\n");
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_VERSION);
    assert_contains(err.message, "format 2");
}

static void a_damaged_marker_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct engine *engine;
    struct error err;

    node_make(fixture, 1, 10);
    file_write(arena_text(fixture->arena,
                          arena_printf(fixture->arena, "%s/orrery.node", fixture->directory)),
               "orre");
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
}

static void a_lost_store_is_a_loss_not_a_new_node(void **state)
{
    struct fixture *fixture = *state;
    struct engine *engine;
    struct error err;

    node_make(fixture, 1, 10);
    scratch_remove(
        arena_text(fixture->arena, arena_printf(fixture->arena, "%s/store", fixture->directory)));
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
    assert_contains(err.message, "backup");
}

static void who_holds_the_directory_is_named(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(engine_close) struct engine *engine UNUSED = open_node(fixture->url);
    struct engine *second;
    char pid[40];
    struct error err;

    assert_fails(try_open(fixture->url, &second, &err), &err, ERROR_STORE_IN_USE);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    assert_contains(err.message, pid);
}

/* --- Damage ---------------------------------------------------------------------------------- */

static void a_damaged_current_or_manifest_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct engine *engine;
    struct error err;

    node_make(fixture, 10, 100);
    bytes_spoil(store_file(fixture, "MANIFEST"), 20, 8);
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
}

static void damage_in_the_middle_of_the_log_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct engine *engine;
    struct error err;

    node_make(fixture, 200, 1000);
    bytes_spoil(store_file(fixture, ".log"), 100 * 1000, 4);
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
    /* Asking twice does not change the answer. */
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
}

static uint32_t numbers_present(struct engine *engine, uint32_t count, struct arena *arena)
{
    uint32_t present = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct engine_value value;
        uint8_t key[4];
        struct error err;

        bytes_put_be32(key, i);
        assert_ok(
            engine_get(engine, NULL, 1, slice_of(key, 4), ENGINE_READ_ANY, arena, &value, &err),
            &err);
        present += value.found == ENGINE_FOUND;
    }
    return present;
}

static const char *mark_path(struct fixture *fixture)
{
    return arena_text(fixture->arena,
                      arena_printf(fixture->arena, "%s/acknowledged", fixture->directory));
}

static void mark_read(struct fixture *fixture, uint8_t ret_bytes[16])
{
    int fd = open(mark_path(fixture), O_RDONLY);

    assert_int_equal(read(fd, ret_bytes, 16), 16);
    close(fd);
}

static void mark_write(struct fixture *fixture, const uint8_t bytes[16])
{
    int fd = open(mark_path(fixture), O_WRONLY);

    assert_int_equal(write(fd, bytes, 16), 16);
    close(fd);
}

/* The last record spoilt in its last bytes is what a power cut may leave of a write that was never
 * acknowledged; the store opens without it, also after another crash. */
static void a_torn_write_at_the_end_of_the_log_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    uint8_t before[16];
    const char *log;
    struct stat status;

    {
        CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);
        struct error err;

        assert_ok(engine_partition_create(engine, 1, 1, &err), &err);
        for (uint32_t i = 0; i < 50; i++) {
            if (i == 49)
                mark_read(fixture, before);
            assert_ok(write_number(engine, i, 1000, &err), &err);
        }
    }
    mark_write(fixture, before);
    log = store_file(fixture, ".log");
    assert_int_equal(stat(log, &status), 0);
    bytes_spoil(log, status.st_size - 500, 4);
    for (int again = 0; again < 2; again++) {
        CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);

        assert_int_equal(numbers_present(engine, 50, fixture->arena), 49);
    }
}

/* What was prepared of the log stays behind its end when the process is killed. */
static void a_log_with_zeros_behind_its_end_is_whole_torn_or_damaged_as_others_are(void **state)
{
    struct fixture *fixture = *state;
    struct engine *refused;
    uint8_t before[16];
    const char *log;
    struct stat status;
    struct error err;

    {
        CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);

        assert_ok(engine_partition_create(engine, 1, 1, &err), &err);
        for (uint32_t i = 0; i < 50; i++) {
            if (i == 49)
                mark_read(fixture, before);
            assert_ok(write_number(engine, i, 1000, &err), &err);
        }
        log = store_file(fixture, ".log");
        assert_int_equal(stat(log, &status), 0);
        assert_true(status.st_size > 200 * 1000); /* while it is open */
    }
    assert_int_equal(stat(log, &status), 0);
    assert_true(status.st_size < 70 * 1000);
    assert_int_equal(truncate(log, status.st_size + 300 * 1000), 0);
    bytes_spoil(log, 20 * 1000, 4);
    assert_fails(try_open(fixture->url, &refused, &err), &err, ERROR_STORE_CORRUPT);
    bytes_spoil(log, 20 * 1000, 4); /* and right again */
    {
        CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);

        assert_int_equal(numbers_present(engine, 50, fixture->arena), 50);
    }
    mark_write(fixture, before);
    bytes_spoil(log, status.st_size - 500, 4);
    for (int again = 0; again < 2; again++) {
        CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);

        assert_int_equal(numbers_present(engine, 50, fixture->arena), 49);
    }
}

static void a_log_that_is_cut_short_or_gone_is_missed(void **state)
{
    struct fixture *fixture = *state;
    const char *log, *away;
    struct engine *engine;
    struct stat status;
    struct error err;

    node_make(fixture, 50, 1000);
    log = store_file(fixture, ".log");
    away = arena_text(fixture->arena, arena_printf(fixture->arena, "%s.away", log));
    assert_int_equal(rename(log, away), 0);
    for (int again = 0; again < 2; again++) {
        assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
        assert_contains(err.message, "acknowledged writes are missing");
        assert_contains(err.message, mark_path(fixture));
    }
    assert_int_equal(rename(away, log), 0); /* nothing has happened to the store meanwhile */
    {
        CLEANUP(engine_close) struct engine *whole = open_node(fixture->url);

        assert_int_equal(numbers_present(whole, 50, fixture->arena), 50);
        assert_ok(write_number(whole, 50, 1000, &err), &err);
    }
    log = store_file(fixture, ".log"); /* the older one of two: the other has a single write */
    assert_int_equal(rename(log, away), 0);
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
    assert_int_equal(rename(away, log), 0);
    assert_int_equal(stat(log, &status), 0);
    for (off_t size = status.st_size - 1; size >= 0; size -= 400) { /* anywhere */
        assert_int_equal(truncate(log, size), 0);
        assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
    }
    assert_int_equal(truncate(log, 0), 0);
    assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
    assert_int_equal(unlink(mark_path(fixture)), 0); /* the operator goes on without them */
    {
        CLEANUP(engine_close) struct engine *rest = open_node(fixture->url);

        assert_ok(engine_partition_create(rest, 2, 1, &err), &err);
    }
    engine_close(open_node(fixture->url));
}

static void the_end_of_the_newest_log_is_missed(void **state)
{
    struct fixture *fixture = *state;
    struct engine *engine;
    struct stat status;
    struct error err;
    const char *log;

    node_make(fixture, 5, 1000);
    log = store_file(fixture, ".log");
    assert_int_equal(stat(log, &status), 0);
    for (off_t size = status.st_size - 1; size >= 0; size -= 300) {
        assert_int_equal(truncate(log, size), 0);
        assert_fails(try_open(fixture->url, &engine, &err), &err, ERROR_STORE_CORRUPT);
        assert_contains(err.message, "acknowledged writes are missing");
    }
}

/* Logs whose writes are in files are taken away by RocksDB itself. */
static void a_log_that_is_not_needed_is_not_missed(void **state)
{
    struct fixture *fixture = *state;
    const struct engine_options small = {.write_buffer_bytes = 65536};

    node_make(fixture, 20, 1000);
    for (uint32_t round = 0; round < 4; round++) {
        CLEANUP(engine_close) struct engine *engine = NULL;
        struct error err;

        assert_ok(engine_open(slice_of_text(fixture->url), &small, &engine, &err), &err);
        for (uint32_t i = 0; i < 400; i++)
            assert_ok(write_number(engine, i, 1000, &err), &err);
        assert_int_equal(numbers_present(engine, 400, fixture->arena), 400);
    }
    engine_close(open_node(fixture->url));
}

/* A mark that is behind, as a power cut may leave it, or that makes no sense, is in nobody's way.
 */
static void a_mark_that_is_behind_or_broken_says_nothing(void **state)
{
    static const uint8_t broken[16] = {1, 2, 3};
    struct fixture *fixture = *state;
    uint8_t early[16];

    node_make(fixture, 10, 1000);
    mark_read(fixture, early);
    {
        CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);
        struct error err;

        assert_ok(write_number(engine, 11, 1000, &err), &err);
    }
    mark_write(fixture, early);
    engine_close(open_node(fixture->url));
    mark_write(fixture, broken);
    engine_close(open_node(fixture->url));
}

/* The length of the file was kept by a power cut, what was written there was not. */
static void zeros_in_the_list_of_logs_say_nothing(void **state)
{
    struct fixture *fixture = *state;

    node_make(fixture, 10, 1000);
    assert_int_equal(truncate(mark_path(fixture), 16), 0);
    assert_int_equal(truncate(mark_path(fixture), 16 + 2 * 16), 0);
    {
        CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);

        assert_int_equal(numbers_present(engine, 10, fixture->arena), 10);
    }
}

static void damage_in_a_data_file_is_seen_when_it_is_read(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(engine_close) struct engine *engine = NULL;
    struct engine_value value;
    const char *path;
    struct error err;
    bool seen = false;

    /* A small write buffer makes the data leave the log for files. */
    {
        CLEANUP(engine_close) struct engine *small = NULL;
        struct engine_options options = {.write_buffer_bytes = 256 * 1024};

        assert_ok(engine_open(slice_of_text(fixture->url), &options, &small, &err), &err);
        assert_ok(engine_partition_create(small, 1, 1, &err), &err);
        for (uint32_t i = 0; i < 1000; i++)
            assert_ok(write_number(small, i, 1000, &err), &err);
    }
    path = store_file(fixture, ".sst");
    bytes_spoil(path, 20000, 64);
    if (!try_open(fixture->url, &engine, &err)) {
        assert_int_equal(err.code, ERROR_STORE_CORRUPT);
        return;
    }
    for (uint32_t i = 0; i < 1000 && !seen; i++) {
        uint8_t key[4];

        bytes_put_be32(key, i);
        if (!engine_get(engine, NULL, 1, slice_of(key, 4), ENGINE_READ_ANY, fixture->arena, &value,
                        &err)) {
            assert_int_equal(err.code, ERROR_STORE_CORRUPT);
            seen = true;
        }
    }
    assert_true(seen);
}

/* --- Memory ---------------------------------------------------------------------------------- */

static void a_full_memory_node_says_so_and_still_takes_deletes(void **state UNUSED)
{
    CLEANUP(engine_close) struct engine *engine = NULL;
    struct engine_options options = {.memory_bytes_max = 8 * 1024 * 1024,
                                     .write_buffer_bytes = 1024 * 1024};
    struct engine_op op = {ENGINE_DELETE, SLICE("\0\0\0\0"), SLICE_NONE};
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = &op, .count = 1};
    struct engine_statistics statistics;
    struct error err;
    uint32_t written = 0;

    assert_ok(engine_open(SLICE("memory:"), &options, &engine, &err), &err);
    assert_ok(engine_partition_create(engine, 1, 1, &err), &err);
    while (written < 10000 && write_number(engine, written, 10000, &err))
        written++;
    assert_int_equal(err.code, ERROR_STORE_FULL);
    assert_contains(err.message, "engine.memory_bytes_max");
    assert_in_range(written, 100, 1000);
    assert_ok(engine_write(engine, &section, 1, &err), &err);
    assert_ok(engine_statistics(engine, &statistics, &err), &err);
    assert_false(statistics.durable);
    assert_false(statistics.poisoned);
    /* Space comes back when a partition goes. */
    assert_ok(engine_partition_drop(engine, 1, &err), &err);
    assert_ok(engine_partition_create(engine, 1, 1, &err), &err);
    for (int wait = 0; wait < 500 && !write_number(engine, 0, 10000, &err); wait++)
        usleep(10000);
    assert_ok(write_number(engine, 1, 10000, &err), &err);
}

/* --- Going back to a copy ----------------------------------------------------------------------
 */

static bool has_number(struct fixture *fixture, uint32_t number)
{
    CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);
    struct engine_value value;
    struct error err;
    uint8_t key[4];

    bytes_put_be32(key, number);
    assert_ok(engine_get(engine, NULL, 1, slice_of(key, sizeof key), ENGINE_READ_ANY,
                         fixture->arena, &value, &err),
              &err);
    return value.found == ENGINE_FOUND;
}

/* A node with ten numbers, of which a copy is made, and one more. Closed. */
static const char *copy_make(struct fixture *fixture)
{
    const char *copy = fixture->copy;
    struct engine *engine;
    struct error err;

    snprintf(fixture->copy, sizeof fixture->copy, "%s", scratch_path(&fixture->scratch, "copy"));
    node_make(fixture, 10, 1000);
    engine = open_node(fixture->url);
    assert_ok(engine_backup(engine, slice_of_text(copy), &err), &err);
    assert_ok(write_number(engine, 10, 1000, &err), &err);
    engine_close(engine);
    assert_true(has_number(fixture, 10));
    return copy;
}

static void assert_reset(struct fixture *fixture, const char *copy)
{
    struct error err;

    assert_ok(engine_reset(slice_of_text(fixture->url), slice_of_text(copy), &err), &err);
    assert_true(has_number(fixture, 9));
    assert_false(has_number(fixture, 10));
}

static void more_write(struct fixture *fixture)
{
    CLEANUP(engine_close) struct engine *engine = open_node(fixture->url);
    struct error err;

    assert_ok(write_number(engine, 10, 1000, &err), &err);
}

static void a_closed_node_becomes_its_copy_again_and_again(void **state)
{
    struct fixture *fixture = *state;
    const char *copy = copy_make(fixture);
    struct engine *engine;
    struct error err;

    assert_reset(fixture, copy);
    more_write(fixture);
    assert_reset(fixture, copy);
    engine = open_node(fixture->url);
    assert_fails(engine_reset(slice_of_text(fixture->url), slice_of_text(copy), &err), &err,
                 ERROR_STORE_IN_USE);
    engine_close(engine);
    assert_fails(engine_reset(slice_of_text(fixture->url),
                              slice_of_text(scratch_path(&fixture->scratch, "none")), &err),
                 &err, ERROR_NOT_FOUND);
    assert_fails(engine_reset(SLICE("memory:"), slice_of_text(copy), &err), &err,
                 ERROR_NOT_SUPPORTED);
    assert_true(has_number(fixture, 9));
}

/* As a crash leaves it: before the stores are exchanged, between the two renames, behind them. */
static void a_reset_that_was_cut_off_is_completed_by_another(void **state)
{
    struct fixture *fixture = *state;
    const char *copy = copy_make(fixture);
    char store[300], fresh[300], past[300], junk[320];

    snprintf(store, sizeof store, "%s/store", fixture->directory);
    snprintf(fresh, sizeof fresh, "%s/store.fresh", fixture->directory);
    snprintf(past, sizeof past, "%s/store.past", fixture->directory);
    snprintf(junk, sizeof junk, "%s/000001.sst", fresh);
    assert_int_equal(mkdir(fresh, 0700), 0);
    file_write(junk, "half of a table");
    assert_reset(fixture, copy);
    more_write(fixture);
    assert_int_equal(rename(store, fresh), 0); /* what would have been the fresh one */
    assert_int_equal(mkdir(past, 0700), 0);
    assert_ok(engine_reset(slice_of_text(fixture->url), slice_of_text(copy), &(struct error){0}),
              &(struct error){0});
    assert_true(has_number(fixture, 10)); /* it was taken for complete, and not made anew */
    assert_int_equal(mkdir(past, 0700), 0);
    assert_reset(fixture, copy);
    assert_int_equal(access(past, F_OK), -1);
    assert_int_equal(access(fresh, F_OK), -1);
}

/* A store that is opened has more files than are opened with it. */
static void a_cached_read_of_a_file_that_is_not_open_says_cold(void **state)
{
    enum { FILES = 40 };
    struct fixture *fixture = *state;
    struct engine *engine = open_node(fixture->url);
    struct engine_value value;
    char keys[FILES][8];
    size_t cold = 0;
    struct error err;

    assert_ok(engine_partition_create(engine, 1, 1, &err), &err);
    for (size_t i = 0; i < FILES; i++) {
        struct engine_op op = {.kind = ENGINE_PUT, .value = SLICE("value")};
        struct engine_section section = {.partition = 1, .epoch = 1, .ops = &op, .count = 1};

        snprintf(keys[i], sizeof keys[i], "d%zu", 100 + i);
        op.key = slice_of_text(keys[i]);
        assert_ok(engine_load(engine, &section, 1, &err), &err);
    }
    engine_close(engine);
    engine = open_node(fixture->url);
    for (size_t i = 0; i < FILES; i++) {
        assert_ok(engine_get(engine, NULL, 1, slice_of_text(keys[i]), ENGINE_READ_CACHED,
                             fixture->arena, &value, &err),
                  &err);
        cold += value.found == ENGINE_COLD;
        if (value.found != ENGINE_COLD)
            assert_slice_equal(value.bytes, SLICE("value"));
        assert_ok(engine_get(engine, NULL, 1, slice_of_text(keys[i]), ENGINE_READ_ANY,
                             fixture->arena, &value, &err),
                  &err);
        assert_slice_equal(value.bytes, SLICE("value"));
    }
    assert_true(cold > 0);
    engine_close(engine);
}

#define ROCKS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROCKS_TEST(urls_that_name_no_store_are_refused),
        ROCKS_TEST(a_foreign_directory_is_refused_and_left_alone),
        ROCKS_TEST(a_file_in_place_of_the_directory_is_refused),
        ROCKS_TEST(an_unwritable_place_is_refused_with_the_reason),
        ROCKS_TEST(a_newer_format_is_refused),
        ROCKS_TEST(a_damaged_marker_is_refused),
        ROCKS_TEST(a_lost_store_is_a_loss_not_a_new_node),
        ROCKS_TEST(who_holds_the_directory_is_named),
        ROCKS_TEST(a_damaged_current_or_manifest_is_refused),
        ROCKS_TEST(damage_in_the_middle_of_the_log_is_refused),
        ROCKS_TEST(a_torn_write_at_the_end_of_the_log_is_dropped),
        ROCKS_TEST(a_log_with_zeros_behind_its_end_is_whole_torn_or_damaged_as_others_are),
        ROCKS_TEST(a_log_that_is_cut_short_or_gone_is_missed),
        ROCKS_TEST(the_end_of_the_newest_log_is_missed),
        ROCKS_TEST(a_log_that_is_not_needed_is_not_missed),
        ROCKS_TEST(a_mark_that_is_behind_or_broken_says_nothing),
        ROCKS_TEST(zeros_in_the_list_of_logs_say_nothing),
        ROCKS_TEST(damage_in_a_data_file_is_seen_when_it_is_read),
        ROCKS_TEST(a_cached_read_of_a_file_that_is_not_open_says_cold),
        ROCKS_TEST(a_full_memory_node_says_so_and_still_takes_deletes),
        ROCKS_TEST(a_closed_node_becomes_its_copy_again_and_again),
        ROCKS_TEST(a_reset_that_was_cut_off_is_completed_by_another),
    };
    return cmocka_run_group_tests_name("engine/rocks", tests, NULL, NULL);
}
