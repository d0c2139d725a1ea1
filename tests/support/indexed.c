#include "support/indexed.h"

#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

static int64_t test_wall_ms(void *context)
{
    return ((struct indexed *)context)->wall_ms;
}

static void begin(struct indexed *indexed)
{
    struct error err;

    indexed->cluster = cluster_new(&(struct commit_options){.clock = &indexed->clock});
    assert_ok(cluster_add(indexed->cluster, "local", indexed->engine, &err), &err);
    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = indexed->cluster, .purge_by_hand = true},
                  &indexed->catalogue, &err),
              &err);
    indexed->caretaker = caretaker_new(&(struct caretaker_options){.catalogue = indexed->catalogue,
                                                                   .clock = &indexed->clock,
                                                                   .slice = indexed->slice,
                                                                   .by_hand = true});
}

static void end(struct indexed *indexed)
{
    caretaker_free(indexed->caretaker);
    catalogue_close(indexed->catalogue);
    cluster_free(indexed->cluster);
}

void indexed_init(struct indexed *indexed, const char *orrery, int64_t ru, size_t slice)
{
    struct offer_request request = {.given = true, .ru = ru};
    struct account *account;
    struct database *database;
    struct container *container;
    struct slice body;
    struct error err;

    *indexed = (struct indexed){.wall_ms = 1000000000, .slice = slice, .arena = arena_new()};
    indexed->clock = (struct clock){
        .wall_ms = test_wall_ms, .monotonic_ms = clock_system.monotonic_ms, .context = indexed};
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &indexed->engine, &err),
              &err);
    begin(indexed);
    assert_ok(catalogue_account_create(indexed->catalogue, SLICE("acme"),
                                       document_of(indexed->arena, "{}"), &account, &err),
              &err);
    account_unref(account);
    assert_ok(catalogue_database_create(indexed->catalogue, SLICE("acme"), SLICE("shop"), NULL,
                                        &database, &err),
              &err);
    database_unref(database);
    body = arena_printf(indexed->arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}%s%s}",
                        orrery ? ",\"orrery\":" : "", orrery ? orrery : "");
    assert_ok(
        catalogue_container_create(indexed->catalogue, SLICE("acme"), SLICE("shop"),
                                   document_of(indexed->arena, arena_text(indexed->arena, body)),
                                   &request, &container, &err),
        &err);
    container_unref(container);
}

void indexed_done(struct indexed *indexed)
{
    end(indexed);
    engine_close(indexed->engine);
    arena_free(indexed->arena);
}

void indexed_restart(struct indexed *indexed)
{
    end(indexed);
    begin(indexed);
}

struct container *indexed_open(struct indexed *indexed)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(indexed->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                                       &container, &err),
              &err);
    return container;
}

static bool run(struct indexed *indexed, struct container *container, struct item_operation *op,
                struct error *err)
{
    struct item_space space = container_space(container, &indexed->clock, NULL);
    bool fine;

    op->space = &space;
    fine = item_operation_run(op, err);
    item_space_release(&space);
    return fine;
}

bool indexed_put(struct indexed *indexed, struct container *container, const char *json,
                 struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice document = document_of(arena, json);
    struct document_value id;

    assert_true(document_find(document, SLICE("id"), &id));
    return run(indexed, container,
               &(struct item_operation){
                   .arena = arena,
                   .verb = ITEM_UPSERT,
                   .key = partition_key_extract(
                       &definition_fields(container_definition(container))->key, document),
                   .id = id,
                   .document = document},
               err);
}

bool indexed_delete(struct indexed *indexed, struct container *container, const char *pk,
                    const char *id, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key key = {.components = {document_string(slice_of_text(pk))}, .count = 1};

    return run(indexed, container,
               &(struct item_operation){.arena = arena,
                                        .verb = ITEM_DELETE,
                                        .key = key,
                                        .id = document_string(slice_of_text(id))},
               err);
}

bool indexed_add(struct indexed *indexed, const char *json, struct error *err)
{
    return catalogue_index_add(indexed->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                               document_of(indexed->arena, json), err);
}

bool indexed_drop(struct indexed *indexed, const char *name, struct error *err)
{
    return catalogue_index_drop(indexed->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                                slice_of_text(name), err);
}

void indexed_round(struct indexed *indexed)
{
    struct error err;
    size_t done;

    assert_ok(caretaker_round(indexed->caretaker, &done, &err), &err);
}

void indexed_settle(struct indexed *indexed)
{
    for (int i = 0; i < 1000; i++) {
        CLEANUP(container_unref) struct container *container = indexed_open(indexed);
        struct definition *const *before;

        if (container_policies_before(container, &before) == 0)
            return;
        indexed_round(indexed);
    }
    fail_msg("the index of the container is never remade");
}

const char *indexed_state(struct indexed *indexed, const char *name)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);
    const struct index_definition *index =
        definition_index(definition_fields(container_definition(container)), slice_of_text(name));

    return index ? index_state_name(index->state) : "none";
}

const char *indexed_shown(struct indexed *indexed, const char *name)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);
    struct document_value value = document_object(definition_index_document(
        definition_fields(container_definition(container)), slice_of_text(name)));
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_json_write_value(&value, &text);
    return arena_text(indexed->arena, buf_slice(&text));
}
