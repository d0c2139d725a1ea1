/* Whom a pause refuses. The list is walked under its lock: there are few, and only while there are
 * any does a request come here. */
#include "base/memory.h"
#include "catalogue/node.h"
#include "document/json.h"
#include "maintain/pauses_private.h"

enum { WAIT_MS_MAX = 60000, NODES_MS = 1000 };

/* --- Keys ------------------------------------------------------------------------------------- */

void pause_keys_done(struct pause_keys *keys)
{
    definition_unref(keys->definition);
    arena_free(keys->arena);
    *keys = (struct pause_keys){0};
}

bool pause_keys_read(const struct pause *pause, const struct partition_definition *definition,
                     struct arena *arena, struct partition_range **ret_ranges, size_t *ret_count,
                     struct error *err)
{
    struct partition_range *ranges = ARENA_ARRAY(arena, struct partition_range, PAUSE_KEYS_MAX);
    CLEANUP(buf_done) struct buf bytes;
    struct document_value list;
    struct document_iter iter;
    size_t count = 0;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (!document_json_read_value(slice_of_text(pause->keys), NULL, &bytes, &list, err))
        return false;
    if (list.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "keys are an array of partition keys");
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter)) {
        CLEANUP(buf_done) struct buf text;
        struct partition_key key;

        buf_init(&text, BUF_DEFAULT_MAX);
        document_json_write_value(&iter.value, &text);
        if (count == PAUSE_KEYS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "a pause has at most %d keys", PAUSE_KEYS_MAX);
        if (!partition_key_parse(definition, buf_slice(&text), PARTITION_KEY_ANY, arena, &key, err))
            return false;
        if (!key.count || key.open)
            return error_set(err, ERROR_BAD_REQUEST,
                             "a key of a pause has its first component at least, and its suffix");
        ranges[count++] = partition_route_range(definition, &key, arena);
    }
    if (!count)
        return error_set(err, ERROR_BAD_REQUEST, "a pause of keys names one at least");
    *ret_ranges = ranges;
    *ret_count = count;
    return true;
}

/* After a re-key they may be none of the container's keys. Then it is paused as a whole: to let
 * requests through that the operator wanted to keep away would be worse. */
static void keys_make(struct pause_keys *keys, const struct pause *pause,
                      struct container *container)
{
    struct error err;

    if (keys->definition == container_definition(container))
        return;
    pause_keys_done(keys);
    keys->definition = definition_ref(container_definition(container));
    keys->arena = arena_new();
    keys->all = !pause_keys_read(pause, &definition_fields(keys->definition)->key, keys->arena,
                                 &keys->ranges, &keys->count, &err);
}

static bool range_is_met(const struct partition_range *range,
                         const struct item_hold_question *question)
{
    return question->max.data ? slice_compare(question->min, range->max) < 0 &&
                                    slice_compare(range->min, question->max) < 0
                              : slice_compare(question->min, range->min) >= 0 &&
                                    slice_compare(question->min, range->max) < 0;
}

static bool keys_are_met(struct pause_keys *keys, const struct pause *pause,
                         const struct item_hold_question *question)
{
    keys_make(keys, pause, question->nodes);
    for (size_t i = 0; i < keys->count && !keys->all; i++)
        if (range_is_met(&keys->ranges[i], question))
            return true;
    return keys->all;
}

/* --- Nodes ------------------------------------------------------------------------------------ */

static const struct node_info *node_find(struct pauses *pauses, uint32_t number)
{
    int64_t now_ms = clock_read_monotonic_ms(pauses->clock);

    if (!pauses->nodes || now_ms >= pauses->nodes_ms + NODES_MS) {
        catalogue_nodes_free(pauses->nodes);
        pauses->nodes = catalogue_nodes(pauses->catalogue);
        pauses->nodes_ms = now_ms;
    }
    return node_table_find_number(pauses->nodes, number);
}

static bool node_is_met(struct pauses *pauses, const struct pause *pause, uint32_t number)
{
    const struct node_info *node = node_find(pauses, number);

    return node && (!pause->node[0] || strcmp(node->name, pause->node) == 0) &&
           (!pause->region[0] || strcmp(node->region, pause->region) == 0);
}

/* --- Both ------------------------------------------------------------------------------------- */

static bool is_of(const struct pause *pause, const struct container *container)
{
    return (!pause->account || pause->account == container_account_number(container)) &&
           (!pause->database || pause->database == container_database_number(container)) &&
           (!pause->container || pause->container == container_info(container)->number);
}

static bool is_whole(const struct pause *pause)
{
    return !pause->node[0] && !pause->region[0] && !pause->keys[0];
}

/* What is paused besides is nobody's business: it may be other tenants' keys. */
static bool refuse(const struct pause *pause, struct error *err)
{
    char until[CLOCK_ISO_SIZE] = "";

    if (pause->until_ms)
        clock_iso(pause->until_ms, until);
    return error_set(err, pause->writes ? ERROR_WRITES_PAUSED : ERROR_PAUSED,
                     "%s is paused%s%s: %s", pause->writes ? "writing" : "service",
                     until[0] ? " until " : "", until, pause->message);
}

bool pauses_admit(struct item_holds *holds, const struct item_hold_question *question,
                  struct error *err)
{
    struct pauses *pauses = CONTAINER_OF(holds, struct pauses, holds);
    int64_t now_ms = clock_read_wall_ms(pauses->clock);
    bool goes_on = true;

    WITH_LOCK (&pauses->lock) {
        for (size_t i = 0; i < pauses->count && goes_on; i++) {
            const struct pause *pause = &pauses->list[i];

            if ((question->changes || !pause->writes) && is_of(pause, question->nodes) &&
                pause_is_in_force(pause, now_ms) &&
                ((!pause->node[0] && !pause->region[0]) ||
                 node_is_met(pauses, pause, question->node)) &&
                (!pause->keys[0] || keys_are_met(&pauses->keys[i], pause, question)))
                goes_on = refuse(pause, err);
        }
    }
    return goes_on;
}

static bool check_some(struct pauses *pauses, const struct container *container, bool changes,
                       int64_t *ret_wait_ms, struct error *err)
{
    int64_t now_ms = clock_read_wall_ms(pauses->clock);
    bool goes_on = true;

    WITH_LOCK (&pauses->lock) {
        for (size_t i = 0; i < pauses->count && goes_on; i++) {
            const struct pause *pause = &pauses->list[i];
            int64_t left = pause->until_ms ? pause->until_ms - now_ms : PAUSE_WAIT_MS;

            if (!is_whole(pause) || (!changes && pause->writes) || !is_of(pause, container) ||
                !pause_is_in_force(pause, now_ms))
                continue;
            *ret_wait_ms = MIN(MAX(left, (int64_t)1), (int64_t)WAIT_MS_MAX);
            goes_on = refuse(pause, err);
        }
    }
    return goes_on;
}

bool pauses_check(struct pauses *pauses, struct container *container, bool changes,
                  int64_t *ret_wait_ms, struct error *err)
{
    return !pauses || !atomic_load_explicit(&pauses->holds.count, memory_order_relaxed) ||
           check_some(pauses, container, changes, ret_wait_ms, err);
}

struct item_holds *pauses_holds(struct pauses *pauses)
{
    return pauses ? &pauses->holds : NULL;
}
