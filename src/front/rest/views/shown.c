#include "front/rest/views/shown.h"

#include "catalogue/promotion.h"
#include "catalogue/views.h"

static struct container *source_open(const struct rest_view_state *state, size_t nth,
                                     struct catalogue *catalogue)
{
    struct container *source;

    catalogue_container_by_number(catalogue, state->account, state->database, state->sources[nth],
                                  &source);
    return source;
}

/* --- Whose records are heard ----------------------------------------------------------------- */

struct rest_view_hearing rest_view_hearing(const struct rest_view_state *state,
                                           struct catalogue *catalogue, struct arena *arena)
{
    struct rest_view_hearing hearing = {
        .list = ARENA_ARRAY(arena, struct rest_view_heard,
                            state->source_count * (PROMOTIONS_MAX + 1) + 1)};

    for (size_t s = 0; s < state->source_count; s++) {
        CLEANUP(container_unref) struct container *source = source_open(state, s, catalogue);
        const struct promotion_list *ties;
        struct history_origin origin;

        if (!source)
            continue;
        origin = container_history(source);
        hearing.list[hearing.count++] = (struct rest_view_heard){
            s, state->sources[s],
            history_hash(origin.account, origin.database_name, origin.container_name)};
        ties = container_promotions(source);
        for (size_t i = 0; i < ties->count; i++) {
            struct slice name; /* which it keeps as long as it is tied */
            uint32_t other = promotion_other(ties->list[i], state->sources[s], &name);

            hearing.list[hearing.count++] = (struct rest_view_heard){
                s, other, history_hash(origin.account, origin.database_name, name)};
        }
    }
    return hearing;
}

bool rest_view_hearing_same(const struct rest_view_hearing *a, const struct rest_view_hearing *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->list[i].source != b->list[i].source ||
            a->list[i].container != b->list[i].container || a->list[i].hash != b->list[i].hash)
            return false;
    return true;
}

uint64_t rest_view_hearing_noted(const struct rest_view_hearing *hearing,
                                 struct commit_clock *times)
{
    uint64_t time = 0;

    for (size_t i = 0; i < hearing->count; i++)
        time = MAX(time, commit_clock_noted(times, hearing->list[i].hash));
    return time;
}

/* --- What is shown --------------------------------------------------------------------------- */

bool rest_view_shown_is_seen(const struct rest_view_state *state, struct catalogue *catalogue)
{
    for (size_t s = 0; s < state->source_count; s++) {
        CLEANUP(container_unref) struct container *source = source_open(state, s, catalogue);

        if (source && container_shown(source) > state->shown[s])
            return false;
    }
    return true;
}

void rest_view_shown_begin(struct rest_view_state *state, struct catalogue *catalogue)
{
    for (size_t s = 0; s < state->source_count; s++) {
        CLEANUP(container_unref) struct container *source = source_open(state, s, catalogue);

        if (source)
            state->shown[s] = container_shown(source);
    }
}

static uint64_t shown_of(const struct promotion *promotion, uint32_t container)
{
    return container == promotion->origin ? promotion->origin_shown : promotion->own_shown;
}

/* The tie that was changed first of those that were since; NULL: none was. */
static const struct promotion *tie_next(const struct container *source, uint64_t seen)
{
    const struct promotion_list *ties = container_promotions(source);
    const struct promotion *next = NULL;

    for (size_t i = 0; i < ties->count; i++) {
        uint64_t shown = shown_of(ties->list[i], ties->container);

        if (shown > seen && (!next || shown < shown_of(next, ties->container)))
            next = ties->list[i];
    }
    return next;
}

static bool source_look(const struct rest_view_state *state, size_t nth,
                        struct catalogue *catalogue, struct arena *arena,
                        struct rest_view_reshown *reshown)
{
    CLEANUP(container_unref) struct container *source = source_open(state, nth, catalogue);
    uint32_t number = state->sources[nth];
    const struct promotion *tie;
    struct error gone;

    if (!source || container_shown(source) <= state->shown[nth])
        return false;
    tie = tie_next(source, state->shown[nth]);
    *reshown = (struct rest_view_reshown){.what = REST_VIEW_SHOWN_ALL, .source = nth};
    if (container_untied(source) > state->shown[nth] || !tie)
        return true;
    reshown->is_shown = promotion_shows(tie, number);
    if (reshown->is_shown)
        reshown->walked = container_ref(source);
    else if (!catalogue_promotion_other(catalogue, source, tie, &reshown->walked, &gone))
        return true;
    reshown->what = REST_VIEW_SHOWN_RANGE;
    reshown->shown = shown_of(tie, number);
    reshown->range.min = arena_copy(arena, tie->range.min);
    reshown->range.max = arena_copy(arena, tie->range.max);
    reshown->container = TAKE(source);
    return true;
}

void rest_view_shown_next(const struct rest_view_state *state, struct catalogue *catalogue,
                          struct arena *arena, struct rest_view_reshown *ret_reshown)
{
    *ret_reshown = (struct rest_view_reshown){.what = REST_VIEW_SHOWN_SEEN};
    for (size_t s = 0; s < state->source_count; s++)
        if (source_look(state, s, catalogue, arena, ret_reshown))
            return;
}

void rest_view_reshown_done(struct rest_view_reshown *reshown)
{
    container_unref(reshown->walked);
    container_unref(reshown->container);
}
