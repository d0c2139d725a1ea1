/* Edits of a directory. An edit concerns the physical partitions that its keys are in and those
 * they are to be in, and these alone are copied: bytes of whole partitions rather than of the keys,
 * for so the pause is as short as that of a split, whatever a key holds, and readers need no eye
 * for entries that are half here and half there. Several edits at once cost one copy. The usual
 * edit places a key that nobody has used yet: then nothing is copied at all. */
#include "catalogue/migration.h"
#include "catalogue/placed.h"
#include "migration/migrator_private.h"
#include "partition/lookup.h"

/* What a change of definition means for a container. */
struct difference {
    const struct container *container;
    struct arena *arena;
    uint32_t sources[MIGRATION_SOURCES_MAX];
    size_t source_count;
    bool data;    /* a key that is placed elsewhere was used */
    bool carries; /* partitions that keys come to are sources too, not only those they leave */
};

static bool source_add(struct difference *d, uint32_t id, struct error *err)
{
    for (size_t i = 0; i < d->source_count; i++)
        if (d->sources[i] == id)
            return true;
    if (d->source_count == MIGRATION_SOURCES_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the edits concern more than %d physical partitions: make them in parts",
                         MIGRATION_SOURCES_MAX);
    d->sources[d->source_count++] = id;
    return true;
}

static bool range_add(struct difference *d, struct partition_range range, struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_overlap(container_map(d->container), range, &count);

    for (size_t i = 0; i < count; i++)
        if (!source_add(d, spans[i].id, err))
            return false;
    return true;
}

static bool data_look(struct difference *d, struct partition_range range, struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_overlap(container_map(d->container), range, &count);

    for (size_t i = 0; i < count && !d->data; i++)
        if (!mover_range_used(container_engine(d->container, spans[i].node), spans[i].id, range,
                              d->arena, &d->data, err))
            return false;
    return true;
}

static bool component_look(void *context, struct slice component, uint32_t from, uint32_t to,
                           struct error *err)
{
    struct difference *d = context;
    struct partition_range before = partition_lookup_range(from, component, d->arena);

    return data_look(d, before, err) && range_add(d, before, err) &&
           (!d->carries || range_add(d, partition_lookup_range(to, component, d->arena), err));
}

/* ret_plan: it is only tried out (migration_request), and stays NULL where nothing is concerned. */
static bool reroute_begin(struct migrator *migrator, const struct container *container,
                          struct definition *definition, bool carries, struct migration **ret_plan,
                          struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct difference d = {.container = container, .arena = arena, .carries = carries};

    /* A key that has no items may have entries of those of other keys; nothing counts them. */
    d.data = container_places(container);
    if (!partition_lookup_differences(
            definition_fields(container_definition(container))->key.lookup,
            definition_fields(definition)->key.lookup, component_look, &d, err))
        return false;
    if (d.data && !carries)
        return reroute_begin(migrator, container, definition, true, ret_plan, err);
    if (d.source_count == 0)
        return ret_plan ? catalogue_directory_notable(migrator->catalogue, container, err)
                        : catalogue_directory_note(migrator->catalogue, container, definition, err);
    return migrator_begin(migrator, container,
                          &(struct migration_request){.kind = MIGRATION_REROUTE,
                                                      .sources = d.sources,
                                                      .source_count = d.source_count,
                                                      .target_count = carries ? d.source_count : 0,
                                                      .definition = definition,
                                                      .ret_plan = ret_plan},
                          false, err);
}

static bool limits_check(const struct container *container, const struct definition *definition,
                         struct error *err)
{
    const struct definition_limits *limits = container_limits(container);
    const struct definition_fields *fields = definition_fields(definition);

    if (fields->key.lookup->line_count > limits->directory_lines_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "a directory of %zu lines is over the limit of %u",
                         fields->key.lookup->line_count, limits->directory_lines_max);
    if (fields->document.len > limits->definition_bytes_max)
        return error_set(err, ERROR_TOO_LARGE,
                         "container definition of %zu bytes is over the limit of %u",
                         fields->document.len, limits->definition_bytes_max);
    return true;
}

static bool reroute(struct migrator *migrator, const struct container *container,
                    const struct definition_directory_change *edits, size_t count,
                    struct definition **ret_definition, struct migration **ret_plan,
                    struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(definition_unref) struct definition *definition = NULL;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    /* The directory is that of the present state until this one is over. */
    if (container_migration(now) && migration_definition(container_migration(now)))
        return error_set(err, ERROR_BUSY, "keys of container \"%.*s\" are being placed elsewhere",
                         SLICE_ARG(container_info(now)->id));
    if (!definition_directory_edit(container_definition(now), edits, count, &definition, err) ||
        !limits_check(now, definition, err) ||
        !reroute_begin(migrator, now, definition, false, ret_plan, err))
        return false;
    if (ret_definition)
        *ret_definition = TAKE(definition);
    return true;
}

bool migrator_reroute(struct migrator *migrator, const struct container *container,
                      const struct definition_directory_change *edits, size_t count,
                      struct error *err)
{
    return reroute(migrator, container, edits, count, NULL, NULL, err);
}

bool migrator_reroute_plan(struct migrator *migrator, const struct container *container,
                           const struct definition_directory_change *edits, size_t count,
                           struct definition **ret_definition, struct migration **ret_plan,
                           struct error *err)
{
    *ret_plan = NULL;
    return reroute(migrator, container, edits, count, ret_definition, ret_plan, err);
}

bool migrator_supersede(struct migrator *migrator, const struct container *container,
                        struct error *err)
{
    struct migration *migration = container_migration(container);
    size_t targets;

    (void)migration_targets(migration, &targets);
    if (targets || err->code != ERROR_RANGES_BROKEN)
        return false;
    return reroute_begin(migrator, container, migration_definition(migration), true, NULL, err);
}
