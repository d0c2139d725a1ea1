/* A container is given another partition key under clients that go on reading and writing: what
 * they notice of it.
 *
 * REKEY_BENCH_MB=1024 makes it that large, a million items; the default is a tenth. Half of the
 * operations are point reads, half replace an item. Migrations copy as fast as they can: throttled
 * (migration.bytes_per_second) they take longer and are noticed less. Every path is indexed. */
#include "clients.h"
#include "document/bson.h"
#include "support/scratch.h"

#include <stdio.h>

enum { CALM_MS = 3000, MB_DEFAULT = 102, PAUSE_GOAL_MS = 100 };
#define P99_GOAL 3.0

enum phase { BEFORE, REKEYING, AFTER_REKEY, PHASES };
static const char *const phase_names[PHASES] = {"before", "re-key", "after it"};

static bool begin_rekey(struct living *living, struct error *err)
{
    CLEANUP(container_unref) struct container *container = living_container(living);
    CLEANUP(buf_done) struct buf key;
    size_t document, paths;

    buf_init(&key, BUF_DEFAULT_MAX);
    document = document_begin(&key);
    paths = document_append_array_begin(&key, SLICE("paths"));
    document_append_string(&key, SLICE("0"), SLICE("/id"));
    document_end(&key, paths);
    document_append_int32(&key, SLICE("version"), 2);
    document_end(&key, document);
    return migrator_rekey(living->migrator, container,
                          &(struct definition_rekey){.partition_key = buf_slice(&key)}, false, err);
}

int main(void)
{
    static struct clients clients;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(scratch_done) struct scratch scratch;
    const char *urls[2];
    struct living living;

    scratch_init(&scratch);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        urls[i] = arena_text(arena, arena_printf(arena, "rocksdb:%s/node%zu", scratch.path, i));
    living_open(&living, &(struct living_options){.name = "rekey_bench",
                                                  .urls = urls,
                                                  .url_count = ARRAY_LEN(urls),
                                                  .ru = 10000});
    living_migrate(&living, &(struct migrator_options){.pause_ms = 10, .splits_off = true});
    living_fill(&living, living_option("REKEY_BENCH_MB", MB_DEFAULT) * LIVING_MB / 1024);
    clients_start(&clients, &living, phase_names, PHASES);
    clients_calm(&clients, BEFORE, CALM_MS);
    clients_migration(&clients, REKEYING, begin_rekey);
    clients_calm(&clients, AFTER_REKEY, CALM_MS);
    clients_stop(&clients);
    clients_print(&clients);
    clients_compare(&clients, &(struct clients_goals){.what = "a container is re-keyed",
                                                      .during = REKEYING,
                                                      .before = BEFORE,
                                                      .pause_ms = PAUSE_GOAL_MS,
                                                      .p99 = P99_GOAL});
    living_close(&living);
    return atomic_load(&living.failed) != 0;
}
