/* All of them are in memory, under a lock that is taken only where there are any: a server without
 * pauses pays one load. As notes they are
 *
 *     s | 'p' | name  ->  BSON {v: 1, writes, account, database, container, node, region, keys,
 *                               scope, message, from, until}
 *
 * where node, region and keys may be absent. */
#include "maintain/pauses_private.h"

#include "base/memory.h"
#include "catalogue/node.h"
#include "catalogue/notes.h"
#include "document/bson.h"

enum { FORMAT = 1, KEY_SIZE = 2 + PAUSE_NAME_SIZE };

/* --- As notes -------------------------------------------------------------------------------- */

static size_t key_write(uint8_t key[KEY_SIZE], const char *name)
{
    size_t len = strlen(name);

    key[0] = CATALOGUE_NOTES_SERVER;
    key[1] = CATALOGUE_NOTES_SERVER_PAUSE;
    memcpy(key + 2, name, len);
    return 2 + len;
}

static void value_write(const struct pause *pause, struct buf *out)
{
    size_t begin = document_begin(out);

    document_append_int32(out, SLICE("v"), FORMAT);
    document_append_bool(out, SLICE("writes"), pause->writes);
    document_append_int64(out, SLICE("account"), pause->account);
    document_append_int64(out, SLICE("database"), pause->database);
    document_append_int64(out, SLICE("container"), pause->container);
    if (pause->node[0])
        document_append_string(out, SLICE("node"), slice_of_text(pause->node));
    if (pause->region[0])
        document_append_string(out, SLICE("region"), slice_of_text(pause->region));
    if (pause->keys[0])
        document_append_string(out, SLICE("keys"), slice_of_text(pause->keys));
    document_append_string(out, SLICE("scope"), slice_of_text(pause->scope));
    document_append_string(out, SLICE("message"), slice_of_text(pause->message));
    document_append_int64(out, SLICE("from"), pause->from_ms);
    document_append_int64(out, SLICE("until"), pause->until_ms);
    document_end(out, begin);
}

static int64_t number_of(struct slice document, struct slice name)
{
    struct document_value value;
    double number;

    return document_find(document, name, &value) && document_to_double(&value, &number)
               ? (int64_t)number
               : 0;
}

static void text_of(struct slice document, struct slice name, char *ret_text, size_t size)
{
    struct document_value value;

    ret_text[0] = '\0';
    if (document_find(document, name, &value) && value.type == DOCUMENT_STRING)
        snprintf(ret_text, size, "%.*s", SLICE_ARG(value.text));
}

static bool note_read(void *context, struct slice key, struct slice value)
{
    struct pauses *pauses = context;
    struct pause *pause = &pauses->list[pauses->count];
    struct document_value writes;

    if (key.len < 3 || key.len - 2 >= PAUSE_NAME_SIZE || number_of(value, SLICE("v")) != FORMAT)
        return true;
    *pause = (struct pause){.writes = document_find(value, SLICE("writes"), &writes) &&
                                      writes.type == DOCUMENT_BOOL && writes.boolean,
                            .account = (uint32_t)number_of(value, SLICE("account")),
                            .database = (uint32_t)number_of(value, SLICE("database")),
                            .container = (uint32_t)number_of(value, SLICE("container")),
                            .from_ms = number_of(value, SLICE("from")),
                            .until_ms = number_of(value, SLICE("until"))};
    snprintf(pause->name, sizeof pause->name, "%.*s", SLICE_ARG(slice_skip(key, 2)));
    text_of(value, SLICE("node"), pause->node, sizeof pause->node);
    text_of(value, SLICE("region"), pause->region, sizeof pause->region);
    text_of(value, SLICE("keys"), pause->keys, sizeof pause->keys);
    text_of(value, SLICE("scope"), pause->scope, sizeof pause->scope);
    text_of(value, SLICE("message"), pause->message, sizeof pause->message);
    return ++pauses->count < PAUSES_MAX;
}

bool pauses_new(struct catalogue *catalogue, const struct clock *clock, struct pauses **ret_pauses,
                struct error *err)
{
    static const uint8_t from[] = {CATALOGUE_NOTES_SERVER, 'p'},
                         to[] = {CATALOGUE_NOTES_SERVER, 'q'};
    CLEANUP(pauses_free) struct pauses *pauses = MEMORY_NEW(struct pauses);

    pauses->catalogue = catalogue;
    pauses->clock = clock;
    pauses->holds.admits = pauses_admit;
    mutex_init(&pauses->lock);
    mutex_init(&pauses->changing);
    mutex_init(&pauses->draining);
    if (!catalogue_notes_walk(
            catalogue, (struct engine_range){slice_of(from, sizeof from), slice_of(to, sizeof to)},
            note_read, pauses, err))
        return false;
    atomic_store(&pauses->holds.count, pauses->count);
    *ret_pauses = TAKE(pauses);
    return true;
}

void pauses_free(struct pauses *pauses)
{
    if (!pauses)
        return;
    for (size_t i = 0; i < PAUSES_MAX; i++)
        pause_keys_done(&pauses->keys[i]);
    catalogue_nodes_free(pauses->nodes);
    mutex_done(&pauses->lock);
    mutex_done(&pauses->changing);
    mutex_done(&pauses->draining);
    memory_free(pauses);
}

/* --- Changing -------------------------------------------------------------------------------- */

/* Where the name stands, or would stand. */
static size_t place_find(const struct pauses *pauses, struct slice name, bool *ret_found)
{
    size_t at = 0;
    int order = 1;

    while (at < pauses->count &&
           (order = slice_compare(slice_of_text(pauses->list[at].name), name)) < 0)
        at++;
    *ret_found = at < pauses->count && order == 0;
    return at;
}

static bool name_check(const char *name, struct error *err)
{
    for (const char *at = name; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || *at == '-'))
            return error_set(err, ERROR_BAD_REQUEST,
                             "a pause has a name of small letters, digits and hyphens");
    return name[0] || error_set(err, ERROR_BAD_REQUEST, "a pause needs a name");
}

static bool write_note(struct pauses *pauses, const char *name, const struct pause *pause,
                       struct error *err)
{
    CLEANUP(buf_done) struct buf value;
    uint8_t key[KEY_SIZE];
    struct engine_op op = {.kind = pause ? ENGINE_PUT : ENGINE_DELETE};

    buf_init(&value, BUF_DEFAULT_MAX);
    op.key = slice_of(key, key_write(key, name));
    if (pause) {
        value_write(pause, &value);
        op.value = buf_slice(&value);
    }
    return catalogue_notes_write(pauses->catalogue, &op, 1, err);
}

/* Places have changed: they are made again when somebody asks. */
static void keys_forget(struct pauses *pauses)
{
    for (size_t i = 0; i < PAUSES_MAX; i++)
        pause_keys_done(&pauses->keys[i]);
}

/* A name that was mistyped would pause nothing. */
static bool nodes_check(struct pauses *pauses, const struct pause *pause, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(pauses->catalogue);
    bool is_there = !pause->region[0];

    if (pause->node[0] && !node_table_find(table, slice_of_text(pause->node)))
        return error_set(err, ERROR_BAD_REQUEST, "there is no node \"%s\"", pause->node);
    for (size_t i = 0; i < table->count; i++)
        is_there = is_there || strcmp(table->list[i].region, pause->region) == 0;
    return is_there ||
           error_set(err, ERROR_BAD_REQUEST, "no node is in a region \"%s\"", pause->region);
}

static bool set_changing(struct pauses *pauses, const struct pause *pause, struct error *err)
{
    bool found;
    size_t at = place_find(pauses, slice_of_text(pause->name), &found);

    if (!found && pauses->count == PAUSES_MAX)
        return error_set(err, ERROR_LIMIT_REACHED, "there are %d pauses, as many as may be",
                         PAUSES_MAX);
    if (!write_note(pauses, pause->name, pause, err))
        return false;
    WITH_LOCK (&pauses->lock) {
        if (!found) {
            memmove(&pauses->list[at + 1], &pauses->list[at],
                    (pauses->count++ - at) * sizeof *pauses->list);
            keys_forget(pauses);
        }
        pause_keys_done(&pauses->keys[at]);
        pauses->list[at] = *pause;
        atomic_store(&pauses->holds.count, pauses->count);
    }
    return true;
}

bool pauses_set(struct pauses *pauses, const struct pause *pause, struct error *err)
{
    bool done = false;

    if (!name_check(pause->name, err) || !nodes_check(pauses, pause, err))
        return false;
    if (pause->keys[0] && !pause->container)
        return error_set(err, ERROR_BAD_REQUEST, "keys are paused of one container");
    if (pause->until_ms &&
        pause->until_ms <= MAX(pause->from_ms, clock_read_wall_ms(pauses->clock)))
        return error_set(err, ERROR_BAD_REQUEST, "the pause would end before it begins");
    WITH_LOCK (&pauses->changing)
        done = set_changing(pauses, pause, err);
    return done;
}

static bool end_changing(struct pauses *pauses, struct slice name, struct error *err)
{
    bool found;
    size_t at = place_find(pauses, name, &found);

    if (!found)
        return error_set(err, ERROR_NOT_FOUND, "there is no pause \"%.*s\"",
                         (int)MIN(name.len, (size_t)PAUSE_NAME_SIZE), (const char *)name.data);
    if (!write_note(pauses, pauses->list[at].name, NULL, err))
        return false;
    WITH_LOCK (&pauses->lock) {
        pauses->count--;
        memmove(&pauses->list[at], &pauses->list[at + 1],
                (pauses->count - at) * sizeof *pauses->list);
        keys_forget(pauses);
        atomic_store(&pauses->holds.count, pauses->count);
    }
    return true;
}

bool pauses_end(struct pauses *pauses, struct slice name, struct error *err)
{
    bool done = false;

    WITH_LOCK (&pauses->changing)
        done = end_changing(pauses, name, err);
    return done;
}

/* --- Looking --------------------------------------------------------------------------------- */

bool pause_is_in_force(const struct pause *pause, int64_t now_ms)
{
    return now_ms >= pause->from_ms && (!pause->until_ms || now_ms < pause->until_ms);
}

struct pause *pauses_list(struct pauses *pauses, struct arena *arena, size_t *ret_count)
{
    struct pause *list = ARENA_ARRAY(arena, struct pause, PAUSES_MAX);

    WITH_LOCK (&pauses->lock) {
        memcpy(list, pauses->list, pauses->count * sizeof *list);
        *ret_count = pauses->count;
    }
    return list;
}
