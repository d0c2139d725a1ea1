#include "front/rest/views/views.h"

#include "base/memory.h"
#include "catalogue/views.h"
#include "front/rest/views/follow.h"

enum {
    PAUSE_MS = 5,     /* between rounds while there are commits */
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
    struct condition stepped; /* some view has come further */
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
                           const struct container *container, struct error *err)
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
    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct definition_view *view =
            &definition_fields(container_definition(database_container(database, i)))->view;

        for (size_t s = 0; s < view->source_count; s++)
            if (view->source_rids[s].owner == container_info(container)->number)
                return true;
    }
    return catalogue_view_release(views->options.services.catalogue, container, err);
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

/* --- A round --------------------------------------------------------------------------------- */

/* Names of sources may change. */
static void hashes_set(struct rest_views *views, struct rest_view_state *state,
                       const struct definition_view *view)
{
    uint64_t hashes[DEFINITION_VIEW_SOURCES_MAX] = {0};

    for (size_t i = 0; i < view->source_count; i++) {
        CLEANUP(container_unref) struct container *source = NULL;
        struct history_origin origin;

        catalogue_container_by_number(views->options.services.catalogue, state->account,
                                      state->database, view->source_rids[i].owner, &source);
        if (!source)
            continue;
        origin = container_history(source);
        hashes[i] = history_hash(origin.account, origin.database_name, origin.container_name);
    }
    memcpy(state->hashes, hashes, sizeof hashes);
}

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

/* Reports read what a step works on: a copy is worked on, and put in its place. */
static bool state_step(struct rest_views *views, struct rest_view_state *state,
                       struct container *view, bool *ret_more, struct error *err)
{
    const struct rest_view_terms terms = {&views->options.services, views->options.lag_ms_max};
    struct rest_view_state copy = *state;
    bool fine;

    hashes_set(views, &copy, &definition_fields(container_definition(view))->view);
    fine = rest_view_step(&copy, &terms, view, ret_more, err);
    if (!fine)
        failure_note(views, &copy, err);
    WITH_LOCK (&views->lock) {
        copy.next = state->next;
        *state = copy;
        condition_broadcast(&views->stepped);
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
        rest_view_lag(state, cluster_times(catalogue_cluster(views->options.services.catalogue)),
                      0))
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
    for (struct rest_view_state *state = views->list; state; state = state->next)
        fine = state_visit(views, state, &more, err) && fine;
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

        if (!more && !sleeper_sleep(&views->sleeper, PAUSE_MS, views->soon_ms))
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
    condition_init(&views->stepped);
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
    condition_done(&views->stepped);
    mutex_done(&views->lock);
    memory_free(views);
}

void rest_views_wake(struct rest_views *views)
{
    WITH_LOCK (&views->lock)
        views->look = true;
    sleeper_wake(&views->sleeper);
}

/* --- Waiting --------------------------------------------------------------------------------- */

/* Under lock, and let go while it waits: a view may be gone by then. */
static bool number_wait(struct rest_views *views, uint32_t number, int64_t deadline_ms)
{
    struct commit_clock *times =
        cluster_times(catalogue_cluster(views->options.services.catalogue));
    const struct rest_view_state *state = state_find(views, number);
    uint64_t wanted = 0;

    if (!state)
        return true;
    for (size_t i = 0; i < state->source_count; i++) {
        if (!number_wait(views, state->sources[i], deadline_ms))
            return false;
        state = state_find(views, number);
        if (!state)
            return true;
    }
    for (size_t i = 0; i < state->source_count; i++)
        wanted = MAX(wanted, commit_clock_noted(times, state->hashes[i]));
    while (state &&
           (state->phase != REST_VIEW_FOLLOW || !state->walked || state->at.time < wanted)) {
        if (!condition_wait_until(&views->stepped, &views->lock, deadline_ms))
            return false;
        state = state_find(views, number);
    }
    return true;
}

bool rest_views_wait(struct rest_views *views, const struct container *view, int64_t wait_ms,
                     struct error *err)
{
    bool there = false;

    WITH_LOCK (&views->lock)
        there = number_wait(views, container_info(view)->number, clock_monotonic_ms() + wait_ms);
    return there || error_set(err, ERROR_TIMED_OUT,
                              "the view \"%.*s\" did not catch up with its sources in %lld ms",
                              SLICE_ARG(container_info(view)->id), (long long)wait_ms);
}

bool rest_views_report(struct rest_views *views, const struct container *view,
                       struct front_view_report *ret_report)
{
    static const char *const phases[] = {[REST_VIEW_NEW] = "new",
                                         [REST_VIEW_FILL] = "fill",
                                         [REST_VIEW_SWEEP] = "sweep",
                                         [REST_VIEW_FOLLOW] = "follow"};
    const struct front_services *services = &views->options.services;
    struct commit_clock *times = cluster_times(catalogue_cluster(services->catalogue));
    bool found = false;

    WITH_LOCK (&views->lock) {
        const struct rest_view_state *state = state_find(views, container_info(view)->number);

        if (state) {
            found = true;
            *ret_report = state->figures;
            ret_report->lag_ms = rest_view_lag(state, times, clock_read_wall_ms(services->clock));
            ret_report->phase = phases[state->phase];
        }
    }
    return found;
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
