#include "catalogue/notes.h"

#include "catalogue/catalogue_private.h"

enum { FAMILY_NOTE = 'n' };

static struct slice note_key(struct slice key, struct arena *arena)
{
    static const uint8_t family[] = {FAMILY_NOTE};
    struct slice parts[] = {slice_of(family, sizeof family), key};

    assert(key.len > 0 && key.len <= CATALOGUE_NOTE_KEY_MAX);
    return arena_join(arena, parts, ARRAY_LEN(parts));
}

struct slice catalogue_notes_place(struct slice key, struct arena *arena, uint32_t *ret_partition)
{
    *ret_partition = CATALOGUE_PARTITION;
    return note_key(key, arena);
}

/* Requests are judged by them, also at servers that follow (catalogue_is_reserved). */
static bool is_judged_by(struct slice key)
{
    return key.data[0] == CATALOGUE_NOTES_WITHHELD ||
           (key.len > 1 && key.data[0] == CATALOGUE_NOTES_SERVER &&
            key.data[1] == CATALOGUE_NOTES_SERVER_PAUSE);
}

/* It relies on nothing and nobody relies on it, so it never meets a change of the catalogue. */
bool catalogue_notes_write(struct catalogue *catalogue, const struct engine_op *ops, size_t count,
                           struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_op *stored = ARENA_ARRAY(arena, struct engine_op, MAX(count, (size_t)1));
    struct commit_part part = {.partition = CATALOGUE_PARTITION,
                               .epoch = catalogue->epoch,
                               .ops = stored,
                               .op_count = count};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};
    bool recalls = catalogue->recall && count && is_judged_by(ops[0].key), written;

    if (count == 0)
        return true;
    if (recalls)
        catalogue->recall(catalogue->recall_context);
    for (size_t i = 0; i < count; i++)
        stored[i] = (struct engine_op){ops[i].kind, note_key(ops[i].key, arena), ops[i].value};
    written = commit_run(catalogue->commit, &batch, err);
    if (recalls)
        catalogue->recalled(catalogue->recall_context);
    return written;
}

bool catalogue_notes_get(struct catalogue *catalogue, struct slice key, struct arena *arena,
                         struct engine_value *ret_value, struct error *err)
{
    return engine_get(catalogue->engine, NULL, CATALOGUE_PARTITION, note_key(key, arena),
                      ENGINE_READ_ANY, arena, ret_value, err);
}

bool catalogue_notes_walk(struct catalogue *catalogue, struct engine_range range,
                          bool (*visit)(void *context, struct slice key, struct slice value),
                          void *context, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range stored = {note_key(range.min, arena), note_key(range.max, arena)};

    if (!engine_iterator_new(catalogue->engine, NULL, CATALOGUE_PARTITION, stored, false,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND || !visit(context, slice_skip(entry.key, 1), entry.value))
            return true;
    }
}
