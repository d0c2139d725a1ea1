#include "front/rest/views/state.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "catalogue/notes.h"

enum {
    FORMAT_FIRST = 1,   /* without generation and hash */
    FORMAT_BEFORE = 2,  /* does not know of gaps */
    FORMAT_UNSHOWN = 3, /* without counts of what sources show */
    FORMAT = 4,
    FLAG_AGAIN = 1,
    FLAG_GAPS = 2,
    KEY_LEN = 13,
    FIXED_LEN_FIRST = 3 + 16 + 8 + 4 + 8,
    FIXED_LEN = FIXED_LEN_FIRST + 4 + 8,
    POSITION_MAX = 64 * 1024
};

struct rest_view_state *rest_view_state_new(const struct container *view)
{
    struct rest_view_state *state = MEMORY_NEW(struct rest_view_state);

    state->account = container_account_number(view);
    state->database = container_database_number(view);
    state->number = container_info(view)->number;
    buf_init(&state->position, POSITION_MAX);
    return state;
}

void rest_view_state_free(struct rest_view_state *state)
{
    if (!state)
        return;
    rest_view_query_free(state->query);
    memory_free(state->seen);
    memory_free(state->seen_next);
    buf_done(&state->position);
    memory_free(state);
}

static void key_write(const struct rest_view_state *state, uint8_t ret_key[KEY_LEN])
{
    ret_key[0] = CATALOGUE_NOTES_VIEWS;
    bytes_put_be32(ret_key + 1, state->account);
    bytes_put_be32(ret_key + 5, state->database);
    bytes_put_be32(ret_key + 9, state->number);
}

/* Cluster time goes on where this process began, or behind the last record that it has found; that
 * may be before a time that was reached, if nothing was written with it, or its node is away, or
 * the wall clock was set back. All changes that this process makes are behind its beginning: from
 * there they are looked at, some of before once more. */
static void place_follow(struct rest_view_state *state, const struct commit_clock *times)
{
    uint64_t started = commit_clock_started(times);

    if (state->at.time > started)
        state->at = (struct history_place){started, UINT32_MAX, UINT32_MAX};
}

/* The rest of a note behind the counts. False: it ends before them. */
static bool shown_read(struct rest_view_state *state, struct slice *rest)
{
    size_t count;

    if (!rest->len || rest->data[0] > DEFINITION_VIEW_SOURCES_MAX ||
        rest->len < 1 + (size_t)rest->data[0] * 8)
        return false;
    count = rest->data[0];
    for (size_t i = 0; i < count; i++)
        state->shown[i] = bytes_get_be64(rest->data + 1 + 8 * i);
    *rest = slice_skip(*rest, 1 + 8 * count);
    return true;
}

static bool unreadable(const struct rest_view_state *state, struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the note of view %u cannot be read", state->number);
}

bool rest_view_state_read(struct rest_view_state *state, struct catalogue *catalogue,
                          struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;
    const uint8_t *from;
    uint8_t key[KEY_LEN];
    struct slice rest;
    size_t fixed;

    key_write(state, key);
    if (!catalogue_notes_get(catalogue, slice_of(key, sizeof key), arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    from = value.bytes.data;
    fixed = value.bytes.len && from[0] == FORMAT_FIRST ? FIXED_LEN_FIRST : FIXED_LEN;
    if (value.bytes.len < fixed || from[0] < FORMAT_FIRST || from[0] > FORMAT ||
        from[1] > REST_VIEW_FOLLOW)
        return unreadable(state, err);
    state->phase = (enum rest_view_phase)from[1];
    state->again = from[2] & FLAG_AGAIN;
    state->gaps = from[0] <= FORMAT_BEFORE || (from[2] & FLAG_GAPS);
    state->at = (struct history_place){.time = bytes_get_be64(from + 3),
                                       .origin = bytes_get_be32(from + 11),
                                       .ordinal = bytes_get_be32(from + 15)};
    state->at_ms = (int64_t)bytes_get_be64(from + 19);
    state->kept_ms = state->at_ms;
    state->source = bytes_get_be32(from + 27);
    state->keys = bytes_get_be64(from + 31);
    if (from[0] != FORMAT_FIRST) {
        state->generation = bytes_get_be32(from + 39);
        state->made_by = bytes_get_be64(from + 43);
    }
    rest = slice_skip(value.bytes, fixed);
    if (from[0] > FORMAT_UNSHOWN && !shown_read(state, &rest))
        return unreadable(state, err);
    buf_clear(&state->position);
    buf_append_slice(&state->position, rest);
    place_follow(state, cluster_times(catalogue_cluster(catalogue)));
    return true;
}

bool rest_view_state_write(struct rest_view_state *state, struct catalogue *catalogue,
                           struct error *err)
{
    CLEANUP(buf_done) struct buf value;
    uint8_t key[KEY_LEN], fixed[FIXED_LEN] = {FORMAT, (uint8_t)state->phase,
                                              (uint8_t)((state->again ? FLAG_AGAIN : 0) |
                                                        (state->gaps ? FLAG_GAPS : 0))};

    uint8_t shown[1 + 8 * DEFINITION_VIEW_SOURCES_MAX] = {(uint8_t)state->source_count};

    buf_init(&value, FIXED_LEN + sizeof shown + POSITION_MAX);
    bytes_put_be64(fixed + 3, state->at.time);
    bytes_put_be32(fixed + 11, state->at.origin);
    bytes_put_be32(fixed + 15, state->at.ordinal);
    bytes_put_be64(fixed + 19, (uint64_t)state->at_ms);
    bytes_put_be32(fixed + 27, state->source);
    bytes_put_be64(fixed + 31, state->keys);
    bytes_put_be32(fixed + 39, state->generation);
    bytes_put_be64(fixed + 43, state->made_by);
    key_write(state, key);
    buf_append(&value, fixed, sizeof fixed);
    for (size_t i = 0; i < state->source_count; i++)
        bytes_put_be64(shown + 1 + 8 * i, state->shown[i]);
    buf_append(&value, shown, 1 + 8 * state->source_count);
    buf_append_slice(&value, buf_slice(&state->position));
    if (!catalogue_notes_write(
            catalogue,
            &(struct engine_op){ENGINE_PUT, slice_of(key, sizeof key), buf_slice(&value)}, 1, err))
        return false;
    state->changed = false;
    state->kept_ms = state->at_ms;
    state->written_ms = clock_monotonic_ms();
    return true;
}

bool rest_view_state_forget(const struct rest_view_state *state, struct catalogue *catalogue,
                            struct error *err)
{
    uint8_t key[KEY_LEN];

    key_write(state, key);
    return catalogue_notes_write(
        catalogue, &(struct engine_op){ENGINE_DELETE, slice_of(key, sizeof key), SLICE_NONE}, 1,
        err);
}
