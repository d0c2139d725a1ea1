#include "front/rest/views/follow.h"

#include "base/memory.h"
#include "catalogue/container_space.h"
#include "catalogue/views.h"
#include "cluster/walk.h"
#include "definition/rekey.h"
#include "document/bson.h"
#include "front/rest/views/groups.h"
#include "front/rest/views/refresh.h"
#include "front/rest/views/shown.h"
#include "item/contribution.h"
#include "item/scan.h"

#include <xxhash.h>

enum {
    RECORDS_MAX = 8192, /* of the history, looked at in one step */
    KEPT_PARTS = 16,    /* of the longest lag: so old a place may be that is written down */
};

/* One step of one view. */
struct step {
    struct rest_view_state *state;
    const struct rest_view_terms *terms;
    struct container *view;
    const struct definition_view *definition;
    struct arena *arena;
};

static struct catalogue *catalogue_of(const struct step *step)
{
    return step->terms->services->catalogue;
}

static struct commit_clock *times_of(const struct step *step)
{
    return cluster_times(catalogue_cluster(catalogue_of(step)));
}

static struct history_place behind(uint64_t time)
{
    return (struct history_place){time, UINT32_MAX, UINT32_MAX};
}

/* The source as it is now: whoever has read of a change reads what it led to. */
static struct container *source_open(const struct step *step, size_t nth)
{
    struct container *source;

    catalogue_container_by_number(catalogue_of(step), step->state->account, step->state->database,
                                  step->definition->source_rids[nth].owner, &source);
    return source;
}

static struct item_space source_space(const struct step *step, struct container *source)
{
    return container_space(source, step->terms->services->clock, NULL);
}

/* --- Filling --------------------------------------------------------------------------------- */

/* Under another key or strategy a place among keys means something else. */
static uint64_t keys_hash(const struct definition_fields *fields)
{
    static const char *const names[] = {"strategy", "synthetic", "formerly"};
    struct document_value value, orrery;
    uint64_t hash = fields->rekeyed_lsn;

    if (document_find(fields->document, SLICE("partitionKey"), &value) &&
        value.type == DOCUMENT_OBJECT)
        hash = XXH3_64bits_withSeed(value.document.data, value.document.len, hash);
    if (document_find(fields->document, SLICE("orrery"), &orrery) && orrery.type == DOCUMENT_OBJECT)
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (document_find(orrery.document, slice_of_text(names[i]), &value) &&
                value.type == DOCUMENT_OBJECT)
                hash = XXH3_64bits_withSeed(value.document.data, value.document.len, hash + i);
    return hash;
}

/* A re-key that only places keys otherwise does not count as one for who names keys
 * (rekeyed_lsn), but leaves contributions behind as well. Its LSN tells it (definition/rekey.h):
 * two of them may lead back to the strategy that the view was made under. The strategy is counted
 * too, as versions before wrote it down. 0 for hashes, likewise. */
static uint64_t strategy_of(const struct definition_fields *fields)
{
    return fields->key.strategy == PARTITION_STRATEGY_HASH
               ? 0
               : ((uint64_t)fields->key.strategy + 1) << 48;
}

/* What rows and contributions that are there were made by. Under another partition key the rows of
 * groups are where they belong, but what was added to them was left behind (item/contribution.h).
 */
static uint64_t made_by(const struct step *step)
{
    const struct definition_fields *fields = definition_fields(container_definition(step->view));
    struct slice query = step->definition->query;
    uint64_t hash = XXH3_64bits(query.data, query.len);
    struct document_value key;

    for (size_t i = 0; i < step->definition->source_count; i++)
        hash = XXH3_64bits_withSeed(&step->definition->source_rids[i].owner,
                                    sizeof step->definition->source_rids[i].owner, hash);
    if (rest_view_query_is_grouped(step->state->query) &&
        document_find(fields->document, SLICE("partitionKey"), &key) && key.type == DOCUMENT_OBJECT)
        hash = XXH3_64bits_withSeed(key.document.data, key.document.len,
                                    hash + fields->rekeyed_lsn + definition_placed_lsn(fields) +
                                        strategy_of(fields));
    return hash ? hash : 1;
}

static void begin(const struct step *step, bool again)
{
    struct rest_view_state *state = step->state;
    uint64_t now = made_by(step);

    state->generation += state->made_by != now;
    state->made_by = now;
    rest_view_shown_begin(state, catalogue_of(step));
    state->at = behind(commit_clock_settled(times_of(step)));
    state->at_ms = clock_read_wall_ms(step->terms->services->clock);
    state->walked = true;
    state->phase = REST_VIEW_FILL;
    state->again = again;
    state->gaps = false;
    state->source = 0;
    state->keys = 0;
    buf_clear(&state->position);
    state->changed = true;
    state->unnoted = true;
}

/* What was begun is written down before anything is done for it: a generation that only this
 * process knows of would be given to another query by the next one. */
static bool begun_note(const struct step *step, struct error *err)
{
    if (!rest_view_state_write(step->state, catalogue_of(step), err) ||
        !catalogue_view_settle(catalogue_of(step), step->view, DEFINITION_VIEW_BUILDING, err))
        return false;
    step->state->unnoted = false;
    return true;
}

/* The position of a walk over all spans is a key: that of the last item, or the bound of the span
 * before. So it goes on after any split, merge and move. */
static bool page_read(const struct step *step, const struct item_space *space,
                      struct item_scan_page *ret_page, struct slice *ret_position, bool *ret_over,
                      struct error *err)
{
    struct slice position = buf_slice(&step->state->position);
    const struct partition_span *span = partition_map_find(space->map, position), *spans;
    struct item_scope scope = item_space_span_scope(space, span);
    const struct item_scan_request request = {
        .after = position, .items_max = REST_VIEW_BATCH_MAX, .bytes_max = REST_VIEW_BATCH_BYTES};
    size_t count;

    if (!item_scan_items(&scope, &request, step->arena, ret_page, err))
        return false;
    spans = partition_map_spans(space->map, &count);
    *ret_over = !ret_page->more && span == &spans[count - 1];
    *ret_position = ret_page->more ? ret_page->position : arena_copy(step->arena, span->max);
    return true;
}

static void position_set(struct rest_view_state *state, struct slice position)
{
    buf_clear(&state->position);
    buf_append_slice(&state->position, position);
    state->changed = true;
}

/* A walk over keys that are made otherwise by now begins anew. */
static void keys_follow(struct rest_view_state *state, const struct definition_fields *fields)
{
    uint64_t keys = keys_hash(fields);

    if (state->keys == keys)
        return;
    state->keys = keys;
    position_set(state, SLICE_NONE);
}

static bool page_refresh(const struct step *step, struct container *source,
                         const struct item_scan_page *page, struct error *err)
{
    struct rest_view_touched *touched =
        ARENA_ARRAY(step->arena, struct rest_view_touched, page->count + 1);

    for (size_t i = 0; i < page->count; i++)
        touched[i] = (struct rest_view_touched){
            .source = container_rid_below(source, RID_ITEM, page->items[i].header.number),
            .document = page->items[i].document};
    return rest_view_refresh(step->state, step->terms->services, step->view, touched, page->count,
                             err);
}

static void source_next(struct rest_view_state *state)
{
    state->source++;
    state->keys = 0;
    position_set(state, SLICE_NONE);
}

static bool filled(const struct step *step, struct error *err)
{
    struct rest_view_state *state = step->state;

    state->phase = state->again ? REST_VIEW_SWEEP : REST_VIEW_FOLLOW;
    state->source = 0;
    state->keys = 0;
    position_set(state, SLICE_NONE);
    return rest_view_state_write(state, catalogue_of(step), err);
}

static bool fill(const struct step *step, struct error *err)
{
    struct rest_view_state *state = step->state;
    CLEANUP(container_unref) struct container *source = NULL;
    struct item_scan_page page;
    struct item_space space;
    struct slice position;
    bool over;

    if (state->source >= step->definition->source_count)
        return filled(step, err);
    source = source_open(step, state->source);
    if (!source) {
        source_next(state);
        return true;
    }
    space = source_space(step, source);
    keys_follow(state, space.definition);
    if (!page_read(step, &space, &page, &position, &over, err) ||
        !page_refresh(step, source, &page, err))
        return false;
    if (over)
        source_next(state);
    else
        position_set(state, position);
    return true;
}

/* --- Sweeping -------------------------------------------------------------------------------- */

static size_t source_find(const struct step *step, uint32_t number)
{
    size_t nth = 0;

    while (nth < step->definition->source_count &&
           step->definition->source_rids[nth].owner != number)
        nth++;
    return nth;
}

/* The item of a source as it is now. *ret_document data NULL: it is gone. */
static bool item_read(const struct step *step, const struct item_space *space, uint64_t number,
                      struct slice *ret_document, struct error *err)
{
    struct item item;

    *ret_document = SLICE_NONE;
    if (!items_read_number(space, number, step->arena, &item, err))
        return err->code == ERROR_ITEM_MISSING;
    *ret_document = item.document;
    return true;
}

static bool touched_read(const struct step *step, struct rid item,
                         struct rest_view_touched *ret_touched, struct error *err)
{
    CLEANUP(container_unref) struct container *source = NULL;
    size_t nth = source_find(step, item.owner);
    struct item_space space;

    *ret_touched = (struct rest_view_touched){.source = item};
    if (nth < step->definition->source_count)
        source = source_open(step, nth);
    if (!source)
        return true;
    space = source_space(step, source);
    return item_read(step, &space, item.number, &ret_touched->document, err);
}

/* What is kept of items that are gone is taken back; what is of another generation goes. */
static bool sweep_contributions(const struct step *step, const struct item_space *space,
                                struct slice *ret_position, bool *ret_over, struct error *err)
{
    struct slice position = buf_slice(&step->state->position);
    const struct partition_span *span = partition_map_find(space->map, position), *spans;
    struct item_scope scope = item_space_span_scope(space, span);
    struct rest_view_touched *touched;
    struct contribution_page page;
    size_t count;

    if (!contributions_page(&scope, step->state->generation, position, REST_VIEW_BATCH_MAX,
                            step->arena, &page, err))
        return false;
    touched = ARENA_ARRAY(step->arena, struct rest_view_touched, page.count + 1);
    for (size_t i = 0; i < page.count; i++)
        if (!touched_read(step,
                          rid_below_container(RID_ITEM, step->state->database, page.items[i].source,
                                              page.items[i].number),
                          &touched[i], err))
            return false;
    spans = partition_map_spans(space->map, &count);
    *ret_over = !page.more && span == &spans[count - 1];
    *ret_position = page.more ? page.position : arena_copy(step->arena, span->max);
    return rest_view_refresh(step->state, step->terms->services, step->view, touched, page.count,
                             err);
}

static bool rows_check(const struct step *step, const struct item_scan_page *page,
                       struct error *err)
{
    struct rest_view_touched *touched =
        ARENA_ARRAY(step->arena, struct rest_view_touched, page->count + 1);
    size_t count = 0;

    if (rest_view_query_is_grouped(step->state->query))
        return rest_view_groups_prune(step->state, step->terms->services, step->view, page->items,
                                      page->count, err);
    for (size_t i = 0; i < page->count; i++) {
        struct document_value id;
        struct rid item;

        if (!document_find(page->items[i].document, SLICE("id"), &id) ||
            id.type != DOCUMENT_STRING || !rid_parse(id.text, &item) || item.kind != RID_ITEM) {
            /* the group of a query before */
            if (!rest_view_groups_prune(step->state, step->terms->services, step->view,
                                        &page->items[i], 1, err))
                return false;
            continue;
        }
        if (!touched_read(step, item, &touched[count], err))
            return false;
        count++;
    }
    return rest_view_refresh(step->state, step->terms->services, step->view, touched, count, err);
}

static bool sweep_rows(const struct step *step, const struct item_space *space,
                       struct slice *ret_position, bool *ret_over, struct error *err)
{
    struct item_scan_page page;

    return page_read(step, space, &page, ret_position, ret_over, err) &&
           rows_check(step, &page, err);
}

/* First contributions, then rows. */
static bool sweep(const struct step *step, struct error *err)
{
    struct rest_view_state *state = step->state;
    struct item_space space = source_space(step, step->view);
    struct slice position;
    bool over;

    space.read_only = false;
    keys_follow(state, space.definition);
    if (state->source ? !sweep_rows(step, &space, &position, &over, err)
                      : !sweep_contributions(step, &space, &position, &over, err))
        return false;
    position_set(state, over ? SLICE_NONE : position);
    if (!over)
        return true;
    if (!state->source) {
        state->source = 1;
        return true;
    }
    state->phase = REST_VIEW_FOLLOW;
    return rest_view_state_write(state, catalogue_of(step), err);
}

/* --- Keys that a source shows or shows no more ----------------------------------------------- */

/* Items of a key that is not shown are gone as far as the view goes. */
static bool range_page(const struct step *step, const struct rest_view_reshown *reshown,
                       struct slice *ret_position, bool *ret_over, struct error *err)
{
    struct item_space space = source_space(step, reshown->walked);
    struct rest_view_touched *touched;
    struct item_scan_page page;

    if (!page_read(step, &space, &page, ret_position, ret_over, err))
        return false;
    *ret_over |= slice_compare(*ret_position, reshown->range.max) >= 0;
    touched = ARENA_ARRAY(step->arena, struct rest_view_touched, page.count + 1);
    for (size_t i = 0; i < page.count; i++)
        touched[i] = (struct rest_view_touched){
            .source =
                container_rid_below(reshown->container, RID_ITEM, page.items[i].header.number),
            .document = reshown->is_shown ? page.items[i].document : SLICE_NONE};
    return rest_view_refresh(step->state, step->terms->services, step->view, touched, page.count,
                             err);
}

/* One page of the items of a key. What is done with them meanwhile is in the histories, under
 * either name; if the key goes or comes again, the count is another and the walk begins anew. */
static bool range_walk(const struct step *step, const struct rest_view_reshown *reshown,
                       struct error *err)
{
    struct rest_view_state *state = step->state;
    struct slice position;
    bool over;

    if (state->source != reshown->source || state->keys != reshown->shown) {
        state->source = (uint32_t)reshown->source;
        state->keys = reshown->shown;
        position_set(state, reshown->range.min);
    }
    if (!range_page(step, reshown, &position, &over, err))
        return false;
    if (!over) {
        position_set(state, position);
        return true;
    }
    state->shown[reshown->source] = reshown->shown;
    state->source = 0;
    state->keys = 0;
    position_set(state, SLICE_NONE);
    return true;
}

/* --- Following ------------------------------------------------------------------------------- */

/* What a walk over the histories has found. */
struct found {
    struct rid items[REST_VIEW_BATCH_MAX];
    size_t count;
    int64_t first_ms; /* wall clock of the first change of a source */
    struct history_place last;
    int64_t last_ms;
    bool all; /* up to what is settled */
};

static bool is_found(const struct found *found, struct rid item)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].owner == item.owner && found->items[i].number == item.number)
            return true;
    return false;
}

/* Where two sources of the view show the same items, each has rows of its own. */
static void record_find(const struct step *step, const struct rest_view_hearing *hearing,
                        const struct history_record *record, uint64_t number, struct found *found)
{
    for (size_t i = 0; i < hearing->count; i++) {
        struct rid item;

        if (hearing->list[i].container != record->origin.container)
            continue;
        item = rid_below_container(RID_ITEM, step->state->database,
                                   step->definition->source_rids[hearing->list[i].source].owner,
                                   number);
        if (!found->count)
            found->first_ms = record->wall_ms;
        if (!is_found(found, item))
            found->items[found->count++] = item;
    }
}

static bool is_heard(const struct rest_view_hearing *hearing, uint32_t container)
{
    for (size_t i = 0; i < hearing->count; i++)
        if (hearing->list[i].container == container)
            return true;
    return false;
}

static bool records_read(const struct step *step, const struct rest_view_hearing *hearing,
                         uint64_t settled, struct found *found, struct error *err)
{
    CLEANUP(cluster_walk_free) struct cluster_walk *walk = NULL;
    struct rest_view_state *state = step->state;

    if (!cluster_walk_new(catalogue_cluster(catalogue_of(step)), state->at, settled, &walk, err))
        return false;
    for (size_t i = 0;
         i < RECORDS_MAX && found->count + step->definition->source_count <= REST_VIEW_BATCH_MAX;
         i++) {
        struct history_record record;
        uint64_t number;
        bool there;

        if (!cluster_walk_next(walk, &record, &there, err))
            return false;
        if (!there) {
            found->all = true;
            return true;
        }
        found->last = record.place;
        found->last_ms = record.wall_ms;
        if (record.kind != HISTORY_TOUCHED || record.origin.account != state->account ||
            !is_heard(hearing, record.origin.container))
            continue;
        if (!history_touched_number(&record, &number, err))
            return false;
        record_find(step, hearing, &record, number, found);
    }
    return true;
}

/* In parts that fit the memory. */
static bool found_refresh(const struct step *step, const struct found *found, struct error *err)
{
    struct rest_view_touched touched[REST_VIEW_BATCH_MAX];
    size_t count = 0, bytes = 0;

    for (size_t i = 0; i < found->count; i++) {
        if (!touched_read(step, found->items[i], &touched[count], err))
            return false;
        bytes += touched[count++].document.len;
        if (bytes < REST_VIEW_BATCH_BYTES && i + 1 < found->count)
            continue;
        if (!rest_view_refresh(step->state, step->terms->services, step->view, touched, count, err))
            return false;
        arena_reset(step->arena);
        count = bytes = 0;
    }
    return true;
}

static bool rebuild(const struct step *step, const char *why, struct error *err)
{
    log_event(step->terms->services->log, LOG_WARNING, "a view is built again",
              LOG_SLICE("view", container_info(step->view)->id), LOG_TEXT("reason", why));
    step->state->figures.rebuilds++;
    begin(step, true);
    return begun_note(step, err);
}

/* Was nothing of a source noted since it was last looked at? What was before this process began is
 * not known. */
static bool is_quiet(const struct rest_view_state *state, uint64_t noted)
{
    return state->walked && noted <= state->at.time;
}

/* Where the partitions of the sources are now. A node that is away has them where they were. */
static void seen_take(const struct step *step)
{
    struct rest_view_state *state = step->state;

    memory_free(state->seen_next);
    state->seen_next = NULL;
    state->seen_next_count = 0;
    for (size_t s = 0; s < step->definition->source_count; s++) {
        CLEANUP(container_unref) struct container *source = source_open(step, s);
        const struct partition_span *spans;
        size_t count;

        if (!source)
            continue;
        spans = partition_map_spans(container_map(source), &count);
        state->seen_next =
            memory_realloc(state->seen_next, memory_array_size(state->seen_next_count + count,
                                                               sizeof *state->seen_next));
        for (size_t i = 0; i < count; i++) {
            struct rest_view_seen *seen = &state->seen_next[state->seen_next_count];
            struct error away;

            seen->partition = spans[i].id;
            state->seen_next_count += commit_partition_lsn(container_commit(source, spans[i].node),
                                                           spans[i].id, &seen->lsn, &away);
        }
    }
}

static bool follow(const struct step *step, bool *ret_more, struct error *err)
{
    struct rest_view_state *state = step->state;
    int64_t now_ms = clock_read_wall_ms(step->terms->services->clock);
    struct rest_view_hearing hearing = rest_view_hearing(state, catalogue_of(step), step->arena);
    struct rest_view_hearing later;
    struct found found = {0};
    uint64_t last, settled;
    bool lost;

    /* What is durable was noted: once all that was noted by then is settled, the walk meets it. */
    if (!is_quiet(state, rest_view_hearing_noted(&hearing, times_of(step))))
        seen_take(step);
    last = rest_view_hearing_noted(&hearing, times_of(step));
    settled = commit_clock_settled(times_of(step));
    later = rest_view_hearing(state, catalogue_of(step), step->arena);
    *ret_more = true;
    if (!rest_view_hearing_same(&hearing, &later)) {
        /* what was written by a new tie may be settled already, and is not to be passed */
        memory_free(state->seen_next);
        state->seen_next = NULL;
        return true;
    }
    *ret_more = false;
    if (is_quiet(state, rest_view_hearing_noted(&hearing, times_of(step)))) {
        found.all = true;
    } else {
        if (!records_read(step, &hearing, settled, &found, err) ||
            !cluster_walk_lost(catalogue_cluster(catalogue_of(step)), state->at.time, &lost, err))
            return false;
        *ret_more = lost || (found.count && now_ms - found.first_ms > step->terms->lag_ms_max);
        if (*ret_more)
            return rebuild(step,
                           lost ? "changes it had not seen were removed from the history"
                                : "it is further behind than view.lag_max",
                           err);
        if (!found_refresh(step, &found, err))
            return false;
        state->changed |= found.count || !found.all;
    }
    *ret_more = !found.all;
    if (!found.all || last > settled) {
        memory_free(state->seen_next);
        state->seen_next = NULL;
    }
    if (found.all) {
        /* what was committed while it was walked may be behind it, so the time is that of before */
        state->at = behind(MAX(settled, state->at.time));
        state->at_ms = now_ms;
        state->walked = true;
        state->changed |= now_ms - state->kept_ms > step->terms->lag_ms_max / KEPT_PARTS;
    } else {
        state->at = found.last;
        state->at_ms = MAX(state->at_ms, found.last_ms);
    }
    if (found.all && step->definition->status != DEFINITION_VIEW_ACTIVE)
        return rest_view_state_write(state, catalogue_of(step), err) &&
               catalogue_view_settle(catalogue_of(step), step->view, DEFINITION_VIEW_ACTIVE, err);
    return true;
}

bool rest_view_has_all(const struct rest_view_state *state, struct catalogue *catalogue)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct rest_view_hearing hearing;

    if (state->phase != REST_VIEW_FOLLOW || !rest_view_shown_is_seen(state, catalogue))
        return false;
    arena = arena_new();
    hearing = rest_view_hearing(state, catalogue, arena);
    return is_quiet(state,
                    rest_view_hearing_noted(&hearing, cluster_times(catalogue_cluster(catalogue))));
}

bool rest_view_has_seen(const struct rest_view_state *state, uint64_t partition, uint64_t lsn)
{
    if (state->phase != REST_VIEW_FOLLOW)
        return false;
    for (size_t i = 0; i < state->seen_count; i++) /* of partitions that were shown then */
        if (state->seen[i].partition == partition)
            return state->seen[i].lsn >= lsn;
    return false;
}

int64_t rest_view_lag(const struct rest_view_state *state, struct catalogue *catalogue,
                      int64_t now_ms)
{
    if (rest_view_has_all(state, catalogue))
        return 0;
    return MAX(now_ms - state->at_ms, (int64_t)1);
}

/* --- Steps ----------------------------------------------------------------------------------- */

static bool follow_shown(const struct step *step, bool *ret_more, struct error *err)
{
    CLEANUP(rest_view_reshown_done) struct rest_view_reshown reshown;

    rest_view_shown_next(step->state, catalogue_of(step), step->arena, &reshown);
    switch (reshown.what) {
    case REST_VIEW_SHOWN_SEEN:
        return follow(step, ret_more, err);
    case REST_VIEW_SHOWN_RANGE:
        return range_walk(step, &reshown, err);
    case REST_VIEW_SHOWN_ALL:
        return rebuild(step, "a promotion of a source was forgotten, or its container dropped",
                       err);
    }
    assert(!"nothing else is shown");
    return false;
}

bool rest_view_step(struct rest_view_state *state, const struct rest_view_terms *terms,
                    struct container *view, bool *ret_more, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct step step = {state, terms, view,
                              &definition_fields(container_definition(view))->view, arena};

    *ret_more = true;
    if (!state->made_by)
        state->made_by = made_by(&step);
    else if (state->phase != REST_VIEW_NEW && state->made_by != made_by(&step))
        return rebuild(&step, "its query or its partition key is another", err);
    if (state->unnoted)
        return begun_note(&step, err);
    switch (state->phase) {
    case REST_VIEW_NEW:
        begin(&step, false);
        return begun_note(&step, err);
    case REST_VIEW_FILL:
        return fill(&step, err);
    case REST_VIEW_SWEEP:
        return sweep(&step, err);
    case REST_VIEW_FOLLOW:
        return follow_shown(&step, ret_more, err);
    }
    assert(!"no phase");
    return false;
}
