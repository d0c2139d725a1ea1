#include "front/rest/views/views.h"

#include "base/memory.h"
#include "catalogue/views.h"
#include "document/bson.h"
#include "front/rest/views/cover.h"
#include "front/rest/views/follow.h"
#include "front/rest/views/shown.h"

#include <xxhash.h>

enum {
    PAUSE_MS = 5,     /* between rounds while there are commits */
    NONE_MS = 1000,   /* the same while there are no views: who makes one wakes us */
    IDLE_MS = 15000,  /* without any */
    LOOK_MS = 1000,   /* for views that came or went */
    WRITE_MS = 1000,  /* between two notes of how far a view is */
    FAILED_MS = 1000, /* before a view that failed is tried again */
    FAILED_TELL_MS = 60 * 1000,
};

struct rest_views {
    struct rest_views_options options;
    struct sleeper sleeper;
    struct thread thread;
    int64_t look_ms; /* monotonic: when views were last looked for; 0: never */
    bool look;       /* under lock: they are to be looked for */
    bool stopping;   /* under lock */
    int64_t soon_ms; /* of a round: when there is something to do though nothing is committed */

    /* Held for a look at or a change of the list and for what reports read. The list and what is in
     * it are changed by the thread alone, which needs no lock to read them. */
    struct mutex lock;
    struct rest_view_wait *parked;
    bool waits_over; /* nobody waits any more */
    struct rest_view_state *list;
};

/* --- Which views there are ------------------------------------------------------------------- */

static struct rest_view_state *state_find(const struct rest_views *views, uint32_t number)
{
    struct rest_view_state *state = views->list;

    while (state && state->number != number)
        state = state->next;
    return state;
}

static bool state_add(struct rest_views *views, const struct container *container,
                      struct error *err)
{
    const struct definition_view *view = &definition_fields(container_definition(container))->view;
    struct rest_view_state *state = rest_view_state_new(container);

    state->source_count = view->source_count;
    for (size_t i = 0; i < view->source_count; i++)
        state->sources[i] = view->source_rids[i].owner;
    state->query_hash = XXH3_64bits(view->query.data, view->query.len);
    if (!rest_view_query_new(view, &state->query, err) ||
        !rest_view_state_read(state, views->options.services.catalogue, err)) {
        rest_view_state_free(state);
        return error_prefix(err, "view \"%.*s\"", SLICE_ARG(container_info(container)->id));
    }
    state->listed = true;
    WITH_LOCK (&views->lock) {
        state->next = views->list;
        views->list = state;
    }
    return true;
}

/* A container that is followed for views that are gone is so no more. */
static bool container_look(struct rest_views *views, const struct database *database,
                           struct container *container, struct error *err)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct rest_view_state *state = state_find(views, container_info(container)->number);

    if (fields->view.form) {
        if (!state)
            return state_add(views, container, err);
        state->listed = true;
    }
    if (!fields->followed)
        return true;
    return catalogue_views_need_followed(database, container) ||
           catalogue_view_release(views->options.services.catalogue, container, err);
}

static bool account_look(struct rest_views *views, const struct account *account, struct error *err)
{
    bool fine = true;

    for (size_t d = 0; d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t i = 0; i < database_container_count(database); i++)
            fine = container_look(views, database, database_container(database, i), err) && fine;
    }
    return fine;
}

static bool gone_forget(struct rest_views *views, struct error *err)
{
    struct rest_view_state **at = &views->list;
    bool fine = true;

    while (*at) {
        struct rest_view_state *state = *at;

        if (state->listed) {
            at = &state->next;
            continue;
        }
        fine = rest_view_state_forget(state, views->options.services.catalogue, err) && fine;
        WITH_LOCK (&views->lock)
            *at = state->next;
        rest_view_state_free(state);
    }
    return fine;
}

static bool is_look_due(struct rest_views *views)
{
    int64_t now_ms = clock_monotonic_ms();
    bool due;

    WITH_LOCK (&views->lock) {
        due = views->look;
        views->look = false;
    }
    if (!due && !views->options.by_hand && views->look_ms && now_ms - views->look_ms < LOOK_MS)
        return false;
    views->look_ms = now_ms;
    return true;
}

static bool look(struct rest_views *views, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct account **accounts;
    bool fine = true;

    if (!is_look_due(views))
        return true;
    for (struct rest_view_state *state = views->list; state; state = state->next)
        state->listed = false;
    accounts = catalogue_accounts(views->options.services.catalogue, arena, &count);
    for (size_t i = 0; i < count; i++) {
        fine = account_look(views, accounts[i], err) && fine;
        account_unref(accounts[i]);
    }
    return gone_forget(views, err) && fine;
}

/* --- Waiting --------------------------------------------------------------------------------- */

static struct commit_clock *times_of(const struct rest_views *views)
{
    return cluster_times(catalogue_cluster(views->options.services.catalogue));
}

static uint64_t noted_of(const struct rest_views *views, const struct rest_view_state *state)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct rest_view_hearing hearing =
        rest_view_hearing(state, views->options.services.catalogue, arena);

    return rest_view_hearing_noted(&hearing, times_of(views));
}

static bool has_reached(const struct rest_views *views, const struct rest_view_state *state,
                        uint64_t time)
{
    return state->phase == REST_VIEW_FOLLOW && state->walked && state->at.time >= time &&
           rest_view_shown_is_seen(state, views->options.services.catalogue);
}

static bool has_tokens(const struct rest_view_state *state, const struct rest_view_wait *wait)
{
    for (size_t i = 0; i < wait->token_count; i++)
        if (!rest_view_has_seen(state, wait->tokens[i].partition, wait->tokens[i].lsn))
            return false;
    return wait->token_count > 0;
}

/* Under lock. A view that is gone is not waited for. */
static bool is_there(const struct rest_views *views, struct rest_view_wait *wait)
{
    const struct rest_view_state *state = state_find(views, wait->number);

    if (!state || has_tokens(state, wait))
        return true;
    for (size_t i = 0; !wait->is_below_done && i < state->source_count; i++) {
        const struct rest_view_state *source = state_find(views, state->sources[i]);

        if (source && !has_reached(views, source, wait->below))
            return false;
    }
    if (!wait->is_below_done) {
        wait->is_below_done = true;
        wait->wanted = noted_of(views, state);
    }
    return has_reached(views, state, wait->wanted);
}

/* Under lock: where what it shall have stands now. */
static void wait_begin(const struct rest_views *views, struct rest_view_wait *wait)
{
    const struct rest_view_state *state = state_find(views, wait->number);
    bool is_second = false;

    for (size_t i = 0; state && i < state->source_count; i++) {
        const struct rest_view_state *source = state_find(views, state->sources[i]);

        is_second |= source != NULL;
        if (source)
            wait->below = MAX(wait->below, noted_of(views, source));
    }
    if (!is_second && state) {
        wait->is_below_done = true;
        wait->wanted = noted_of(views, state);
    }
}

static bool is_given_up(const struct rest_views *views, const struct rest_view_wait *wait)
{
    return views->waits_over || clock_monotonic_ms() >= wait->deadline_ms ||
           (wait->call->cancelled && atomic_load(wait->call->cancelled));
}

/* Those that have what they wait for, or have waited long enough, go on. Moved under the lock, so
 * that none is on its way once nobody waits any more. */
static void parked_look(struct rest_views *views)
{
    WITH_LOCK (&views->lock) {
        struct rest_view_wait **at = &views->parked;

        while (*at) {
            struct rest_view_wait *wait = *at;

            if (is_there(views, wait) || is_given_up(views, wait)) {
                *at = wait->next;
                front_call_move(wait->call); /* gone from here on */
            } else {
                views->soon_ms = MIN(views->soon_ms, wait->deadline_ms);
                at = &wait->next;
            }
        }
    }
}

/* --- A round --------------------------------------------------------------------------------- */

/* A failure is told once in a while: a node that is away is tried again and again. */
static void failure_note(struct rest_views *views, struct rest_view_state *state,
                         const struct error *err)
{
    int64_t now_ms = clock_monotonic_ms();

    if (state->wait_ms > now_ms) /* its throughput is used up */
        return;
    state->wait_ms = now_ms + FAILED_MS;
    if (state->failed_ms && now_ms - state->failed_ms < FAILED_TELL_MS)
        return;
    state->failed_ms = now_ms;
    log_error(views->options.services.log, "a view could not be brought up to date", err);
}

/* The definition may have got another query. */
static bool query_follow(struct rest_view_state *state, const struct definition_view *view,
                         struct error *err)
{
    uint64_t hash = XXH3_64bits(view->query.data, view->query.len);
    struct rest_view_query *query;

    if (state->query_hash == hash)
        return true;
    if (!rest_view_query_new(view, &query, err))
        return false;
    rest_view_query_free(state->query); /* which nobody else reads */
    state->query = query;
    state->query_hash = hash;
    return true;
}

/* Reports read what a step works on: a copy is worked on, and put in its place. */
static bool state_step(struct rest_views *views, struct rest_view_state *state,
                       struct container *view, bool *ret_more, struct error *err)
{
    const struct rest_view_terms terms = {&views->options.services, views->options.lag_ms_max};
    struct rest_view_state copy = *state;
    bool fine;

    fine = query_follow(&copy, &definition_fields(container_definition(view))->view, err) &&
           rest_view_step(&copy, &terms, view, ret_more, err);
    if (!fine)
        failure_note(views, &copy, err);
    WITH_LOCK (&views->lock) {
        if (copy.seen_next && (!fine || copy.phase != REST_VIEW_FOLLOW)) {
            memory_free(copy.seen_next); /* it has not come so far */
            copy.seen_next = NULL;
        }
        if (copy.seen_next) {
            memory_free(copy.seen);
            copy.seen = copy.seen_next;
            copy.seen_count = copy.seen_next_count;
            copy.seen_next = NULL;
        }
        copy.next = state->next;
        *state = copy;
    }
    return fine;
}

static bool state_visit(struct rest_views *views, struct rest_view_state *state, bool *more,
                        struct error *err)
{
    CLEANUP(container_unref) struct container *view = NULL;
    int64_t now_ms = clock_monotonic_ms();
    bool left = false;

    if (state->wait_ms > now_ms && !views->options.by_hand) {
        views->soon_ms = MIN(views->soon_ms, state->wait_ms);
        return true;
    }
    catalogue_container_by_number(views->options.services.catalogue, state->account,
                                  state->database, state->number, &view);
    if (!view)
        return true;
    if (!state_step(views, state, view, &left, err)) {
        views->soon_ms = MIN(views->soon_ms, state->wait_ms);
        return false;
    }
    *more |= left;
    /* what was noted and is not settled yet rings no bell again */
    if (state->phase == REST_VIEW_FOLLOW &&
        rest_view_lag(state, views->options.services.catalogue, 0))
        views->soon_ms = MIN(views->soon_ms, now_ms + PAUSE_MS);
    if (!state->changed)
        return true;
    if (now_ms - state->written_ms >= WRITE_MS || views->options.by_hand)
        return rest_view_state_write(state, views->options.services.catalogue, err);
    views->soon_ms = MIN(views->soon_ms, state->written_ms + WRITE_MS);
    return true;
}

bool rest_views_round(struct rest_views *views, bool *ret_more, struct error *err)
{
    bool fine = look(views, err), more = false;

    views->soon_ms = clock_monotonic_ms() + IDLE_MS;
    for (struct rest_view_state *state = views->list; state; state = state->next) {
        struct error own;

        if (state_visit(views, state, &more, &own))
            continue; /* which may have left something in it */
        *err = own;
        fine = false;
    }
    parked_look(views);
    *ret_more = more;
    return fine;
}

/* --- The thread ------------------------------------------------------------------------------ */

static bool must_stop(struct rest_views *views)
{
    bool stopping = false;

    WITH_LOCK (&views->lock)
        stopping = views->stopping;
    return stopping;
}

static void views_main(void *context)
{
    struct rest_views *views = context;
    bool more = true;

    while (!must_stop(views)) {
        struct error err;

        if (!more &&
            !sleeper_sleep(&views->sleeper, views->list ? PAUSE_MS : NONE_MS, views->soon_ms))
            break;
        sleeper_listen(&views->sleeper);
        if (!rest_views_round(views, &more, &err))
            more = false;
    }
}

struct rest_views *rest_views_new(const struct rest_views_options *options)
{
    struct rest_views *views = MEMORY_NEW(struct rest_views);

    views->options = *options;
    mutex_init(&views->lock);
    sleeper_init(&views->sleeper, options->bell);
    if (!options->by_hand)
        thread_start(&views->thread, "views", views_main, views);
    return views;
}

void rest_views_free(struct rest_views *views)
{
    if (!views)
        return;
    WITH_LOCK (&views->lock)
        views->stopping = true;
    sleeper_stop(&views->sleeper);
    if (!views->options.by_hand)
        thread_join(&views->thread);
    while (views->list) {
        struct rest_view_state *state = views->list;

        views->list = state->next;
        rest_view_state_free(state);
    }
    sleeper_done(&views->sleeper);
    mutex_done(&views->lock);
    memory_free(views);
}

void rest_views_wake(struct rest_views *views)
{
    WITH_LOCK (&views->lock)
        views->look = true;
    sleeper_wake(&views->sleeper);
}

/* --- Who waits ------------------------------------------------------------------------------- */

static void park(struct front_call *call)
{
    struct rest_view_wait *wait = call->parked;
    struct rest_views *views = wait->views;

    WITH_LOCK (&views->lock) {
        if (views->waits_over) {
            front_call_move(call);
        } else {
            wait->next = views->parked;
            views->parked = wait;
        }
    }
    sleeper_wake(&views->sleeper);
}

/* What no source has had is not waited for: the token is of a state that is not known here. */
static bool tokens_check(const struct rest_views *views, const struct container *view,
                         const struct rest_view_wait *wait, struct error *err)
{
    const struct definition_view *definition = &definition_fields(container_definition(view))->view;

    for (size_t s = 0; wait->token_count && s < definition->source_count; s++) {
        CLEANUP(container_unref) struct container *source = NULL;

        catalogue_container_by_number(
            views->options.services.catalogue, container_account_number(view),
            container_database_number(view), definition->source_rids[s].owner, &source);
        for (size_t i = 0; source && i < wait->token_count; i++) {
            const struct item_token *token = &wait->tokens[i];
            const struct partition_span *span =
                partition_map_find_id(container_map(source), (uint32_t)token->partition);
            struct error away;
            uint64_t now;

            if (span &&
                commit_partition_lsn(container_commit(source, span->node), span->id, &now, &away) &&
                now < token->lsn)
                return error_set(err, ERROR_SESSION_AHEAD,
                                 "the session token names write %llu of range %u of \"%.*s\", "
                                 "which stands at %llu",
                                 (unsigned long long)token->lsn, span->id,
                                 SLICE_ARG(container_info(source)->id), (unsigned long long)now);
        }
    }
    return true;
}

bool rest_views_wait(struct rest_views *views, const struct container *view, int64_t wait_ms,
                     struct rest_view_wait *wait, struct front_call *call, struct error *err)
{
    bool there = false, given_up = false;

    if (!wait->deadline_ms && !tokens_check(views, view, wait, err))
        return false;
    wait->views = views;
    wait->call = call;
    wait->number = container_info(view)->number;
    WITH_LOCK (&views->lock) {
        if (!wait->deadline_ms) {
            wait->deadline_ms = clock_monotonic_ms() + wait_ms;
            wait_begin(views, wait);
        }
        there = is_there(views, wait);
        given_up = is_given_up(views, wait);
    }
    if (there)
        return true;
    if (given_up)
        return error_set(err, ERROR_TIMED_OUT,
                         "the view \"%.*s\" did not catch up with its sources in %lld ms",
                         SLICE_ARG(container_info(view)->id), (long long)wait_ms);
    call->parked = wait;
    call->park = park;
    err->code = ERROR_NONE; /* nothing has failed */
    return false;
}

void rest_views_let_go(struct rest_views *views)
{
    if (!views)
        return;
    WITH_LOCK (&views->lock) {
        views->waits_over = true;
        while (views->parked) {
            struct rest_view_wait *wait = views->parked;

            views->parked = wait->next;
            front_call_move(wait->call);
        }
    }
}

/* What the partitions of its sources have had since it last had everything. One that came since is
 * not counted before the next time. */
static uint64_t lag_lsn(const struct rest_views *views, const struct rest_view_state *state)
{
    uint64_t sum = 0;

    for (size_t s = 0; s < state->source_count; s++) {
        CLEANUP(container_unref) struct container *source = NULL;
        const struct partition_span *spans;
        size_t count;

        catalogue_container_by_number(views->options.services.catalogue, state->account,
                                      state->database, state->sources[s], &source);
        if (!source)
            continue;
        spans = partition_map_spans(container_map(source), &count);
        for (size_t i = 0; i < count; i++) {
            uint64_t now, was = 0;
            bool known = !state->seen_count;
            struct error away;

            for (size_t n = 0; n < state->seen_count; n++)
                if (state->seen[n].partition == spans[i].id) {
                    was = state->seen[n].lsn;
                    known = true;
                }
            if (known && commit_partition_lsn(container_commit(source, spans[i].node), spans[i].id,
                                              &now, &away))
                sum += now > was ? now - was : 0;
        }
    }
    return sum;
}

bool rest_views_report(struct rest_views *views, const struct container *view,
                       struct front_view_report *ret_report)
{
    static const char *const phases[] = {[REST_VIEW_NEW] = "new",
                                         [REST_VIEW_FILL] = "fill",
                                         [REST_VIEW_SWEEP] = "sweep",
                                         [REST_VIEW_FOLLOW] = "follow"};
    const struct front_services *services = &views->options.services;
    bool found = false;

    WITH_LOCK (&views->lock) {
        const struct rest_view_state *state = state_find(views, container_info(view)->number);

        if (state) {
            found = true;
            *ret_report = state->figures;
            ret_report->lag_ms =
                rest_view_lag(state, services->catalogue, clock_read_wall_ms(services->clock));
            ret_report->lag_lsn = ret_report->lag_ms ? lag_lsn(views, state) : 0;
            ret_report->phase = phases[state->phase];
        }
    }
    return found;
}

/* A definition with another query is published before the view is built again by it: until the
 * state has taken it over, its rows are not what the definition says. */
static const char *why_unfit(const struct rest_view_state *state, struct slice query)
{
    if (state->phase != REST_VIEW_FOLLOW || state->query_hash != XXH3_64bits(query.data, query.len))
        return "it is being built";
    if (state->gaps)
        return "items that could not be stored are left out of it";
    return NULL;
}

void rest_views_standing(struct rest_views *views, const struct container *view,
                         const struct item_token *tokens, size_t token_count,
                         struct rest_view_standing *ret_standing)
{
    const struct definition_view *definition = &definition_fields(container_definition(view))->view;
    const struct front_services *services = &views->options.services;
    const struct rest_view_wait wait = {.tokens = tokens, .token_count = token_count};
    struct rest_view_standing standing = {.unfit = "it is being built"};

    WITH_LOCK (&views->lock) {
        const struct rest_view_state *state = state_find(views, container_info(view)->number);

        if (state) {
            standing.unfit = why_unfit(state, definition->query);
            standing.has_all = rest_view_has_all(state, services->catalogue);
            standing.has_tokens = standing.has_all || has_tokens(state, &wait);
            standing.lag_ms =
                rest_view_lag(state, services->catalogue, clock_read_wall_ms(services->clock));
            standing.lag_lsn = standing.lag_ms ? lag_lsn(views, state) : 0;
        }
    }
    *ret_standing = standing;
}

bool rest_views_check(struct slice body, struct error *err)
{
    CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();

    if (!definition_new(definition_fresh(body, arena), NULL, &definition, err))
        return false;
    return !definition_fields(definition)->view.form ||
           (rest_view_query_new(&definition_fields(definition)->view, &query, err) &&
            rest_view_query_key_check(query, &definition_fields(definition)->key, err));
}

bool rest_views_index_path(const struct container *view, struct arena *arena,
                           struct slice *ret_path)
{
    const struct definition_fields *fields = definition_fields(container_definition(view));

    return fields->view.form && rest_view_cover_path(&fields->view, &fields->key, arena, ret_path);
}

bool rest_views_replace_check(const struct container *container, struct slice body,
                              struct error *err)
{
    CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct definition_view view = {.form = DEFINITION_VIEW_OWN};
    struct document_value orrery, own, text;

    if (fields->view.form != DEFINITION_VIEW_OWN ||
        !document_find(body, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT ||
        !document_find(orrery.document, SLICE("view"), &own) || own.type != DOCUMENT_OBJECT ||
        !document_find(own.document, SLICE("query"), &text) || text.type != DOCUMENT_STRING ||
        text.text.len > DEFINITION_VIEW_QUERY_MAX)
        return true; /* the definition says what is wrong with it */
    view.query = text.text;
    return rest_view_query_new(&view, &query, err) &&
           rest_view_query_key_check(query, &fields->key, err);
}

/* What rows of groups have follows from the query. A re-key to something else would wait for values
 * that never come; a look at rows does not tell while there are none. */
static bool path_check(const struct container *container, const struct rest_view_query *query,
                       struct slice path, bool may_lack, struct error *err)
{
    if (!rest_view_query_path_check(query, path, err))
        return false;
    return may_lack || rest_view_query_has_path(query, path) ||
           error_set(err, ERROR_VIEW_UNFIT,
                     "the rows of view \"%.*s\" have no \"%.*s\", and nothing was changed: for a "
                     "query that is to come say allowMissing (--allow-missing)",
                     SLICE_ARG(container_info(container)->id), (int)MIN(path.len, (size_t)100),
                     (const char *)path.data);
}

bool rest_views_key_check(const struct container *container, struct slice partition_key,
                          bool may_lack, struct error *err)
{
    CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
    const struct definition_view *view = &definition_fields(container_definition(container))->view;
    struct document_value paths;
    struct document_iter iter;

    if (!view->form || !partition_key.data ||
        !document_find(partition_key, SLICE("paths"), &paths) || paths.type != DOCUMENT_ARRAY)
        return true;
    if (!rest_view_query_new(view, &query, err))
        return false;
    document_iter_init(&iter, paths.document);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING &&
            !path_check(container, query, iter.value.text, may_lack, err))
            return false;
    return true;
}
