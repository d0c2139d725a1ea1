/* The thread looks every few seconds: cheap, for it reads counters in memory. What is over is
 * written once a minute, decisions are made once a minute, old records folded every ten. */
#include "heat/heat_private.h"

#include "catalogue/container_names.h"
#include "catalogue/container_usage.h"
#include "catalogue/migration.h"
#include "load/profile.h"

enum { PAUSE_DEFAULT_MS = 10000, HOT_PERCENT = 75, LARGE_PERCENT = 80 };

/* --- Containers ------------------------------------------------------------------------------ */

static size_t account_gather(const struct account *account, struct arena *arena,
                             struct heat_subject *subjects)
{
    struct slice id = arena_copy(arena, account_info(account)->id);
    size_t count = 0;

    for (size_t d = 0; d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);
        struct slice name = arena_copy(arena, database_info(database)->id);

        for (size_t c = 0; c < database_container_count(database); c++)
            subjects[count++] =
                (struct heat_subject){.container = container_ref(database_container(database, c)),
                                      .account = id,
                                      .database = name};
    }
    return count;
}

static size_t account_containers(const struct account *account)
{
    size_t count = 0;

    for (size_t d = 0; d < account_database_count(account); d++)
        count += database_container_count(account_database(account, d));
    return count;
}

/* Accounts are not held meanwhile: they hold old maps. */
struct heat_subject *heat_subjects(struct heat *heat, struct arena *arena, size_t *ret_count)
{
    size_t accounts, room = 0, count = 0;
    struct account **all = catalogue_accounts(heat->options.catalogue, arena, &accounts);
    struct heat_subject *subjects;

    for (size_t i = 0; i < accounts; i++)
        room += account_containers(all[i]);
    subjects = ARENA_ARRAY(arena, struct heat_subject, MAX(room, (size_t)1));
    for (size_t i = 0; i < accounts; i++) {
        count += account_gather(all[i], arena, subjects + count);
        account_unref(all[i]);
    }
    *ret_count = count;
    return subjects;
}

void heat_subjects_done(struct heat_subject *subjects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        container_unref(subjects[i].container);
}

bool heat_span_is_isolated(const struct partition_span *span)
{
    return span->min.len > 0 && span->max.len == span->min.len + 1 &&
           slice_starts_with(span->max, span->min) && span->max.data[span->max.len - 1] == 0xFF;
}

/* --- Decisions ------------------------------------------------------------------------------- */

static bool minute_counts(const struct heat *heat, const struct statistics_numbers *minute,
                          double rate)
{
    return rate < 0 ? heat_minute_is_refused(minute, &heat->options.limits)
                    : heat_minute_is_hot(minute, rate, &heat->options.limits);
}

/* A minute of which only a part was counted is not hot. rate below 0: only what was refused
 * counts. */
static uint32_t hot_minutes(const struct heat *heat, struct statistics *statistics, double rate,
                            int64_t now_ms)
{
    int64_t minute = now_ms / HEAT_MINUTE_MS - 1,
            since = statistics_since_ms(statistics, now_ms) / HEAT_MINUTE_MS;
    uint32_t count = 0;

    for (; minute >= since && count < STATISTICS_MINUTES - 1; minute--, count++) {
        struct statistics_numbers numbers;
        struct statistics_times times;

        if (!statistics_minute(statistics, minute, now_ms, &numbers, &times) ||
            !minute_counts(heat, &numbers, rate))
            break;
    }
    return count;
}

/* The hottest logical partition's part of what was spent in the minutes that count. */
static double key_share(struct statistics *statistics, uint32_t minutes, int64_t now_ms)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    int64_t last = now_ms / HEAT_MINUTE_MS - 1, all = 0;
    struct statistics_key_minutes *keys;
    size_t count =
        statistics_hottest_between(statistics, last - minutes + 1, last, 1, now_ms, arena, &keys);

    for (int64_t minute = last - minutes + 1; minute <= last; minute++) {
        struct statistics_numbers numbers;
        struct statistics_times times;

        if (statistics_minute(statistics, minute, now_ms, &numbers, &times))
            all += numbers.cru;
    }
    return count && all > 0 ? (double)keys[0].numbers.cru / (double)all : 0;
}

static void figures_of_meter(const struct heat *heat, struct meter *meter, int64_t now_ms,
                             struct heat_figures *figures)
{
    struct statistics *statistics = meter_statistics(meter);
    struct statistics_numbers last;
    struct statistics_times times;
    struct budget_state state;

    if (!meter_budget(meter))
        return;
    budget_get_state(meter_budget(meter), clock_read_monotonic_ms(heat->clock), &state);
    figures->rate = (double)state.rate_cru / 100;
    if (statistics_minute(statistics, now_ms / HEAT_MINUTE_MS - 1, now_ms, &last, &times)) {
        figures->used = (double)last.cru / 100 / 60;
        figures->refused = last.throttled > 0;
    }
    figures->use = load_use_of(statistics, now_ms);
    figures->hot_minutes = hot_minutes(heat, statistics, figures->rate, now_ms);
    figures->refused_minutes = hot_minutes(heat, statistics, -1, now_ms);
    if (figures->hot_minutes && figures->hot_minutes >= heat->options.limits.split_minutes)
        figures->key_share = key_share(statistics, heat->options.limits.split_minutes, now_ms);
}

static const struct heat_calm *calm_find(const struct heat_calm *calm, size_t count, uint32_t left,
                                         uint32_t right)
{
    for (size_t i = 0; i < count; i++)
        if (calm[i].left == left && calm[i].right == right)
            return &calm[i];
    return NULL;
}

/* The pairs of one container that are calm now, and since when. */
struct calming {
    struct heat_calm *calm; /* of this look */
    size_t count;
};

static void pairs_look(const struct heat *heat, struct calming *calming,
                       const struct partition_span *spans, struct heat_figures *figures,
                       size_t count, const struct heat_bounds *bounds, int64_t now_ms)
{
    for (size_t i = 0; i + 1 < count; i++) {
        const struct heat_calm *before;
        struct heat_calm *now;

        if (!heat_pair_is_calm(&figures[i], &figures[i + 1], &heat->options.limits, bounds))
            continue;
        before = calm_find(heat->calm, heat->calm_count, spans[i].id, spans[i + 1].id);
        now = &calming->calm[calming->count++];
        *now = (struct heat_calm){spans[i].id, spans[i + 1].id, before ? before->since_ms : now_ms};
        figures[i].calm_ms = now_ms - now->since_ms;
    }
}

static bool figures_read(const struct heat *heat, const struct container *container,
                         struct arena *arena, int64_t now_ms, struct heat_figures *figures,
                         struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < count; i++) {
        struct meter *meter = meters_find(heat->options.meters, spans[i].id);
        struct container_usage usage;

        if (!container_usage_partition(container, &spans[i], arena, &usage, err))
            return false;
        figures[i] = (struct heat_figures){
            .node = spans[i].node,
            .bytes = usage.bytes,
            .kept = spans[i].cut != PARTITION_CUT_NEEDED,
            .whole = heat_span_is_isolated(&spans[i]) ||
                     partition_map_is_part(container_map(container), &spans[i]),
            .calm_ms = -1};
        if (meter)
            figures_of_meter(heat, meter, now_ms, &figures[i]);
    }
    return true;
}

static void refusal_log(const struct heat *heat, const struct container *container,
                        const char *event, const struct error *err)
{
    if (err->code != ERROR_BUSY && err->code != ERROR_PROMOTION_BOUND &&
        err->code != ERROR_BAD_REQUEST) { /* not just another time, or never */
        struct error told = *err;

        container_names_prefix(heat->options.catalogue, container, &told);
        log_error(heat->options.log, event, &told);
    } else {
        log_event(heat->options.log, LOG_DEBUG, event,
                  LOG_SLICE("container", container_info(container)->id),
                  LOG_TEXT("why", err->message));
    }
}

static void decision_log(const struct heat *heat, const struct container *container,
                         const char *event, uint32_t partition)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct container_names names = container_names(heat->options.catalogue, container, arena);

    log_event(heat->options.log, LOG_INFO, event, LOG_SLICE("account", names.account),
              LOG_SLICE("database", names.database),
              LOG_SLICE("container", container_info(container)->id),
              LOG_INT("partition", partition));
}

static void decide(struct heat *heat, struct migrator *migrator, const struct container *container,
                   const struct heat_figures *figures, const struct heat_bounds *bounds,
                   int64_t now_ms, double *shares)
{
    size_t count, chosen;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct error err;

    chosen = heat_decide_split(figures, count, &heat->options.limits, bounds);
    if (chosen < count) {
        if (migrator_split_heat(migrator, container, spans[chosen].id, &err))
            decision_log(heat, container, "partition hot for long is split", spans[chosen].id);
        else
            refusal_log(heat, container, "a hot partition is not split", &err);
        return;
    }
    chosen = heat_decide_merge(figures, count, &heat->options.limits, bounds);
    if (chosen < count) {
        uint32_t pair[] = {spans[chosen].id, spans[chosen + 1].id};

        if (migrator_merge(migrator, container, pair, 2, &err))
            decision_log(heat, container, "partitions calm for long are merged", pair[0]);
        else
            refusal_log(heat, container, "calm partitions are not merged", &err);
        return;
    }
    if (heat_follow(heat, container, figures, now_ms, shares)) {
        if (migrator_share(migrator, container, shares, count, &err))
            decision_log(heat, container, "shares follow the load", spans[0].id);
        else
            refusal_log(heat, container, "shares do not follow the load", &err);
    }
}

static bool container_decide(struct heat *heat, struct migrator *migrator,
                             const struct container *container, struct calming *calming,
                             int64_t now_ms, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct definition_limits *limits = container_limits(container);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct heat_figures *figures = ARENA_ARRAY(arena, struct heat_figures, count);
    struct heat_bounds bounds = {
        .bytes_max = limits->partition_bytes_max,
        .ru_max = (double)limits->partition_ru_max,
        .count_needed = offer_partitions_needed(limits, container_offer(container)),
        .count_max = limits->container_partitions_max,
    };

    if (container_is_fixed(container) || container_migration(container) ||
        container_offer(container)->shared || !container_is_enforced(container))
        return true;
    if (!figures_read(heat, container, arena, now_ms, figures, err))
        return false;
    if (heat->options.limits.merge_ms)
        pairs_look(heat, calming, spans, figures, count, &bounds, now_ms);
    decide(heat, migrator, container, figures, &bounds, now_ms, ARENA_ARRAY(arena, double, count));
    return true;
}

/* Calm is counted anew for pairs that are not calm, or not there, in this look. */
static bool look_decide(struct heat *heat, struct migrator *migrator,
                        const struct heat_subject *subjects, size_t count, int64_t now_ms,
                        struct error *err)
{
    struct calming calming = {0};
    size_t room = 1, spans;
    bool fine = true;

    for (size_t i = 0; i < count; i++) {
        (void)partition_map_spans(container_map(subjects[i].container), &spans);
        room += spans;
    }
    calming.calm = memory_alloc_zero(memory_array_size(room, sizeof *calming.calm));
    for (size_t i = 0; i < count; i++)
        fine =
            container_decide(heat, migrator, subjects[i].container, &calming, now_ms, err) && fine;
    memory_free(heat->calm);
    heat->calm = calming.calm;
    heat->calm_count = calming.count;
    return fine;
}

/* --- Rounds ---------------------------------------------------------------------------------- */

static struct migrator *migrator_of(struct heat *heat)
{
    struct migrator *migrator = NULL;

    WITH_LOCK (&heat->lock)
        migrator = heat->migrator;
    return migrator;
}

bool heat_round(struct heat *heat, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    int64_t now_ms = clock_read_wall_ms(heat->clock), minute = now_ms / HEAT_MINUTE_MS;
    struct migrator *migrator = migrator_of(heat);
    size_t count;
    struct heat_subject *subjects = heat_subjects(heat, arena, &count);
    bool fine = heat_harvest(heat, subjects, count, now_ms, false, err);

    fine = heat_look_hot(heat, subjects, count, now_ms, err) && fine;
    if (migrator && minute != heat->decided) {
        heat->decided = minute;
        fine = look_decide(heat, migrator, subjects, count, now_ms, err) && fine;
    }
    heat_subjects_done(subjects, count);
    if (minute < heat->folded + HEAT_FOLD_MINUTES && minute >= heat->folded)
        return fine;
    heat->folded = minute;
    return heat_tidy(heat, now_ms, err) && fine;
}

/* False: stop. */
static bool heat_pause(struct heat *heat)
{
    int64_t until = clock_monotonic_ms() + heat->options.pause_ms;
    bool go_on = false;

    WITH_LOCK (&heat->lock) {
        while (!heat->stopping && condition_wait_until(&heat->wake, &heat->lock, until))
            ;
        go_on = !heat->stopping;
    }
    return go_on;
}

static void heat_main(void *context)
{
    struct heat *heat = context;

    while (heat_pause(heat)) {
        struct error err;

        if (!heat_round(heat, &err))
            log_error(heat->options.log, "a look at heat failed", &err);
    }
}

struct heat *heat_new(const struct heat_options *options)
{
    struct heat *heat = MEMORY_NEW(struct heat);

    heat->options = *options;
    heat->clock = options->clock ? options->clock : &clock_system;
    heat->migrator = options->migrator;
    if (!heat->options.pause_ms)
        heat->options.pause_ms = PAUSE_DEFAULT_MS;
    if (!heat->options.hot_percent)
        heat->options.hot_percent = HOT_PERCENT;
    if (!heat->options.large_percent)
        heat->options.large_percent = LARGE_PERCENT;
    heat->harvested = clock_read_wall_ms(heat->clock) / HEAT_MINUTE_MS - 1;
    heat->decided = heat->harvested + 1;
    mutex_init(&heat->record_lock);
    mutex_init(&heat->report_lock);
    mutex_init(&heat->lock);
    condition_init(&heat->wake);
    if (!options->by_hand)
        thread_start(&heat->thread, "heat", heat_main, heat);
    return heat;
}

static void heat_write_last(struct heat *heat)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct heat_subject *subjects = heat_subjects(heat, arena, &count);
    struct error err;

    if (!heat_harvest(heat, subjects, count, clock_read_wall_ms(heat->clock), true, &err))
        log_error(heat->options.log, "heat of the last minute not written down", &err);
    heat_subjects_done(subjects, count);
}

void heat_stop(struct heat *heat)
{
    bool stopped = false;

    WITH_LOCK (&heat->lock) {
        stopped = heat->stopping;
        heat->stopping = true;
        heat->migrator = NULL;
        condition_signal(&heat->wake);
    }
    if (!stopped && !heat->options.by_hand)
        thread_join(&heat->thread);
}

void heat_free(struct heat *heat)
{
    if (!heat)
        return;
    heat_stop(heat);
    heat_write_last(heat);
    heat_cases_free(heat);
    condition_done(&heat->wake);
    mutex_done(&heat->lock);
    mutex_done(&heat->report_lock);
    mutex_done(&heat->record_lock);
    memory_free(heat->known);
    memory_free(heat->calm);
    memory_free(heat->followed);
    memory_free(heat->sized);
    memory_free(heat);
}

void heat_set_migrator(struct heat *heat, struct migrator *migrator)
{
    WITH_LOCK (&heat->lock)
        heat->migrator = migrator;
}
