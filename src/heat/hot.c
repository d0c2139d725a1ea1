/* Who is in trouble. A key is hot in two looks in a row before it is reported, and cool for two
 * minutes before the report ends: a burst is no trouble, nor is a pause its end. */
#include "catalogue/container_usage.h"
#include "heat/heat_private.h"
#include "item/metering.h"
#include "load/profile.h"

enum {
    LOOKS_BEFORE = 2,
    COOL_MS = 120000,
    KEYS_LOOKED_AT = 8, /* of a partition: no more can each want most of it */
    LARGEST_MAX = 16,
    ITEMS_PER_MS = 1, /* sizes of a partition of a million items are looked at every 1,000 s */
};

const char *heat_trouble_name(enum heat_trouble trouble)
{
    static const char *const names[HEAT_TROUBLES] = {[HEAT_HOT] = "hot", [HEAT_LARGE] = "large"};

    return names[trouble];
}

const char *heat_advice_name(enum heat_advice advice)
{
    static const char *const names[] = {
        [HEAT_ISOLATE] = "isolate", [HEAT_THROUGHPUT] = "throughput", [HEAT_SPREAD] = "spread"};

    return names[advice];
}

const char *heat_advice_text(enum heat_advice advice)
{
    static const char *const texts[] = {
        [HEAT_ISOLATE] = "give it a physical partition of its own: orrery partition isolate",
        [HEAT_THROUGHPUT] =
            "nothing but the container's throughput holds it back: raise the throughput",
        [HEAT_SPREAD] = ("no physical partition can take more of it: spread it over several key "
                         "values, as a synthetic partition key with a suffix does, or choose "
                         "another key: orrery advise"),
    };

    return texts[advice];
}

/* Is this a key too hot for its partition? Pure. was: it is reported already. */
struct judgement {
    double wanted, rate; /* RU/s */
    uint32_t percent;
    bool was;
};

static bool is_hot(const struct judgement *judgement)
{
    double mark = judgement->rate * judgement->percent / 100;

    return judgement->rate > 0 && judgement->wanted >= (judgement->was ? mark * 2 / 3 : mark);
}

/* --- Cases ----------------------------------------------------------------------------------- */

static struct heat_case *case_find(const struct heat *heat, enum heat_trouble trouble,
                                   uint32_t container, struct slice key)
{
    for (size_t i = 0; i < heat->case_count; i++) {
        const struct heat_report *report = &heat->cases[i].report;

        if (report->trouble == trouble && report->container == container &&
            slice_equal(report->key, key))
            return &heat->cases[i];
    }
    return NULL;
}

static struct slice text_move(uint8_t **at, struct slice text)
{
    struct slice moved = slice_of(*at, text.len);

    if (text.len)
        memcpy(*at, text.data, text.len);
    *at += text.len;
    return moved;
}

/* The slices of a report, in memory of its own. */
static uint8_t *report_own(struct heat_report *report)
{
    size_t size = report->account.len + report->database.len + report->id.len + report->key.len;
    uint8_t *texts = memory_alloc(MAX(size, (size_t)1)), *at = texts;

    report->account = text_move(&at, report->account);
    report->database = text_move(&at, report->database);
    report->id = text_move(&at, report->id);
    report->key = text_move(&at, report->key);
    return texts;
}

static struct slice key_text(const struct container *container, struct slice bytes,
                             struct arena *arena)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    CLEANUP(buf_done) struct buf text;
    struct partition_key key;
    struct error ignored;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!partition_key_read(definition, &bytes, arena, &key, &ignored))
        return SLICE("(too long to be shown)");
    partition_key_json(definition, &key, &text);
    return arena_copy(arena, buf_slice(&text));
}

static void begin_log(const struct heat *heat, const struct container *container,
                      const struct heat_report *report)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice key = key_text(container, report->key, arena);

    if (report->trouble == HEAT_HOT)
        log_event(heat->options.log, LOG_WARNING, "logical partition too hot",
                  LOG_SLICE("account", report->account), LOG_SLICE("database", report->database),
                  LOG_SLICE("container", report->id), LOG_SLICE("key", key),
                  LOG_INT("partition", report->partition), LOG_INT("ru", (int64_t)report->used),
                  LOG_INT("ru_wanted", (int64_t)report->wanted),
                  LOG_INT("ru_of_partition", (int64_t)report->rate),
                  LOG_TEXT("do", heat_advice_text(report->advice)));
    else
        log_event(heat->options.log, LOG_WARNING, "logical partition too large",
                  LOG_SLICE("account", report->account), LOG_SLICE("database", report->database),
                  LOG_SLICE("container", report->id), LOG_SLICE("key", key),
                  LOG_INT("partition", report->partition), LOG_INT("bytes", (int64_t)report->bytes),
                  LOG_INT("bytes_max", (int64_t)report->bytes_max),
                  LOG_TEXT("do", heat_advice_text(report->advice)));
}

/* Adds one seen just now, or renews it. */
static void case_note(struct heat *heat, const struct container *container,
                      const struct heat_report *report, unsigned looks_before, int64_t now_ms)
{
    struct heat_case *known;
    bool begins = false;

    WITH_LOCK (&heat->report_lock) {
        known = case_find(heat, report->trouble, report->container, report->key);
        if (known) {
            struct heat_report kept = known->report;

            known->report = *report;
            known->report.account = kept.account;
            known->report.database = kept.database;
            known->report.id = kept.id;
            known->report.key = kept.key;
            known->report.since_ms = kept.since_ms;
        } else if (heat->case_count < HEAT_REPORTS_MAX) {
            if (!heat->cases)
                heat->cases = memory_alloc_zero(HEAT_REPORTS_MAX * sizeof *heat->cases);
            known = &heat->cases[heat->case_count++];
            *known = (struct heat_case){.report = *report};
            known->report.since_ms = now_ms;
            known->texts = report_own(&known->report);
        }
        if (known) {
            known->looks += !known->fresh;
            known->fresh = true;
            known->last_ms = now_ms;
            begins = !known->reported && known->looks >= looks_before;
            known->reported |= begins;
        }
    }
    if (begins)
        begin_log(heat, container, report);
}

static void end_log(const struct heat *heat, const struct heat_report *report, int64_t now_ms)
{
    log_event(heat->options.log, LOG_INFO,
              report->trouble == HEAT_HOT ? "logical partition no longer too hot"
                                          : "logical partition no longer too large",
              LOG_SLICE("account", report->account), LOG_SLICE("database", report->database),
              LOG_SLICE("container", report->id), LOG_INT("partition", report->partition),
              LOG_INT("minutes", (now_ms - report->since_ms) / HEAT_MINUTE_MS));
}

static bool is_over(const struct heat_case *known, int64_t now_ms)
{
    if (known->fresh)
        return false;
    return known->report.trouble == HEAT_LARGE || !known->reported ||
           now_ms - known->last_ms >= COOL_MS || now_ms < known->last_ms;
}

static void cases_sweep(struct heat *heat, int64_t now_ms)
{
    WITH_LOCK (&heat->report_lock) {
        size_t kept = 0;

        for (size_t i = 0; i < heat->case_count; i++) {
            struct heat_case *known = &heat->cases[i];

            if (is_over(known, now_ms)) {
                if (known->reported)
                    end_log(heat, &known->report, now_ms);
                memory_free(known->texts);
                continue;
            }
            known->fresh = false;
            if (kept != i)
                heat->cases[kept] = *known;
            kept++;
        }
        heat->case_count = kept;
    }
}

void heat_cases_free(struct heat *heat)
{
    for (size_t i = 0; i < heat->case_count; i++)
        memory_free(heat->cases[i].texts);
    memory_free(heat->cases);
}

/* --- Hot keys -------------------------------------------------------------------------------- */

/* A span at this look. */
struct span_look {
    const struct heat_subject *subject;
    const struct partition_span *span;
    size_t span_count;
    int64_t now_ms;
    int64_t minute; /* to judge by */
    double seconds; /* of it */
};

/* A partition of its own gives a key what its neighbours spend: if they spend this little, a cut
 * does not help it. */
#define NEIGHBOURS_LEAST 0.05

/* share: of what the partition spends, by the key. */
static enum heat_advice hot_advice(const struct span_look *look, double rate, double share)
{
    double most = (double)container_limits(look->subject->container)->partition_ru_max;
    bool more = rate < most * 0.99;

    if (heat_span_is_isolated(look->span) || share > 1 - NEIGHBOURS_LEAST)
        return more ? HEAT_THROUGHPUT : HEAT_SPREAD;
    return more && look->span_count == 1 ? HEAT_THROUGHPUT : HEAT_ISOLATE;
}

static struct heat_report report_of(const struct span_look *look, enum heat_trouble trouble,
                                    struct slice key)
{
    const struct container *container = look->subject->container;

    return (struct heat_report){.trouble = trouble,
                                .container = container_info(container)->number,
                                .account = look->subject->account,
                                .database = look->subject->database,
                                .id = container_info(container)->id,
                                .partition = look->span->id,
                                .key = key,
                                .alone = heat_span_is_isolated(look->span)};
}

static void key_judge(struct heat *heat, const struct span_look *look,
                      const struct statistics_key_minutes *key, double rate, double all)
{
    struct load_use use = load_use_in(&key->numbers, look->seconds);
    struct heat_report report = report_of(look, HEAT_HOT, key->key);
    bool was;

    WITH_LOCK (&heat->report_lock)
        was = case_find(heat, HEAT_HOT, report.container, key->key);
    if (!is_hot(&(struct judgement){
            .wanted = use.wanted, .rate = rate, .percent = heat->options.hot_percent, .was = was}))
        return;
    report.used = use.used;
    report.wanted = use.wanted;
    report.rate = rate;
    report.rate_max = (double)container_limits(look->subject->container)->partition_ru_max;
    report.throttled = (double)key->numbers.throttled / (double)key->numbers.requests;
    report.share = all > 0 ? (double)key->numbers.cru / all : 0;
    report.advice = hot_advice(look, rate, report.share);
    case_note(heat, look->subject->container, &report, LOOKS_BEFORE, look->now_ms);
}

/* The present minute, as soon as enough of it is over; else the one before. */
static bool span_look_time(struct span_look *look, struct statistics *statistics)
{
    look->minute = look->now_ms / HEAT_MINUTE_MS;
    look->seconds = load_seconds_in(statistics, look->minute, look->now_ms);
    if (look->seconds <= 0)
        look->seconds = load_seconds_in(statistics, --look->minute, look->now_ms);
    return look->seconds > 0;
}

static void span_look_hot(struct heat *heat, struct span_look *look, struct meter *meter)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct statistics *statistics = meter_statistics(meter);
    struct statistics_key_minutes *keys;
    struct statistics_numbers numbers;
    struct statistics_times times;
    struct budget_state state;
    size_t count;
    double rate;

    if (!meter_budget(meter) || !span_look_time(look, statistics) ||
        !statistics_minute(statistics, look->minute, look->now_ms, &numbers, &times) ||
        numbers.requests == 0)
        return;
    budget_get_state(meter_budget(meter), clock_read_monotonic_ms(heat->clock), &state);
    rate = (double)state.rate_cru / 100;
    /* where all keys together are not hot none is */
    if (!is_hot(&(struct judgement){.wanted = load_use_in(&numbers, look->seconds).wanted,
                                    .rate = rate,
                                    .percent = heat->options.hot_percent,
                                    .was = true}))
        return;
    arena = arena_new();
    count = statistics_hottest_between(statistics, look->minute, look->minute, KEYS_LOOKED_AT,
                                       look->now_ms, arena, &keys);
    for (size_t i = 0; i < count; i++)
        key_judge(heat, look, &keys[i], rate, (double)numbers.cru);
}

/* --- Large keys ------------------------------------------------------------------------------ */

/* Where a partition is, or would be: they are sorted. */
static size_t sized_place(const struct heat *heat, uint32_t partition)
{
    size_t low = 0, high = heat->sized_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (heat->sized[middle].partition < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct heat_sized *sized_find(const struct heat *heat, uint32_t partition)
{
    size_t place = sized_place(heat, partition);

    if (place == heat->sized_count || heat->sized[place].partition != partition)
        return NULL;
    return &heat->sized[place];
}

static struct heat_sized *sized_get(struct heat *heat, uint32_t partition)
{
    struct heat_sized *sized = sized_find(heat, partition);
    size_t place = sized_place(heat, partition);

    if (sized)
        return sized;
    if (heat->sized_count == heat->sized_capacity) {
        heat->sized_capacity = heat->sized_capacity * 2 + 64;
        heat->sized = memory_realloc(heat->sized,
                                     memory_array_size(heat->sized_capacity, sizeof *heat->sized));
    }
    memmove(&heat->sized[place + 1], &heat->sized[place],
            (heat->sized_count - place) * sizeof *heat->sized);
    heat->sized[place] = (struct heat_sized){.partition = partition};
    heat->sized_count++;
    return &heat->sized[place];
}

static bool was_asked(struct meter *meter, const struct span_look *look)
{
    int64_t minute = look->now_ms / HEAT_MINUTE_MS;

    for (int64_t m = minute - 1; m <= minute; m++) {
        struct statistics_numbers numbers;
        struct statistics_times times;

        if (statistics_minute(meter_statistics(meter), m, look->now_ms, &numbers, &times) &&
            numbers.bytes_in > 0)
            return true;
    }
    return false;
}

static bool keys_look_large(struct heat *heat, const struct span_look *look, double mark,
                            uint64_t bytes_max, struct arena *arena, struct error *err)
{
    struct container_usage_key *keys;
    size_t count, seen;

    if (!container_usage_largest(look->subject->container, look->span, LARGEST_MAX, SIZE_MAX, arena,
                                 &keys, &count, &seen, err))
        return false;
    for (size_t i = 0; i < count && (double)keys[i].usage.bytes >= mark; i++) {
        struct heat_report report = report_of(look, HEAT_LARGE, metering_pk(&keys[i].key, arena));

        report.bytes = keys[i].usage.bytes;
        report.bytes_max = bytes_max;
        report.advice = HEAT_SPREAD;
        case_note(heat, look->subject->container, &report, 1, look->now_ms);
    }
    return true;
}

/* Sizes grow by writing: a partition nobody writes to is looked at once. */
static bool span_look_large(struct heat *heat, const struct span_look *look, struct meter *meter,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    const struct definition_limits *limits = container_limits(look->subject->container);
    uint64_t bytes_max = MIN(limits->logical_partition_bytes_max, limits->partition_bytes_max);
    double mark = (double)bytes_max * heat->options.large_percent / 100;
    struct heat_sized *sized = sized_get(heat, look->span->id);
    struct container_usage usage;

    sized->there = true;
    if (sized->again_ms > look->now_ms || (sized->again_ms && (!meter || !was_asked(meter, look))))
        return true;
    arena = arena_new();
    if (!container_usage_partition(look->subject->container, look->span, arena, &usage, err))
        return false;
    sized->looked = true;
    sized->again_ms = look->now_ms + 1;
    if ((double)usage.bytes < mark)
        return true;
    sized->again_ms += (int64_t)MIN(usage.items / ITEMS_PER_MS, (uint64_t)INT32_MAX);
    return keys_look_large(heat, look, mark, bytes_max, arena, err);
}

/* What was not looked at stays as it was, as long as its partition is there. */
static void large_keep(struct heat *heat)
{
    size_t kept = 0;

    WITH_LOCK (&heat->report_lock)
        for (size_t i = 0; i < heat->case_count; i++) {
            const struct heat_report *report = &heat->cases[i].report;
            const struct heat_sized *sized = sized_find(heat, report->partition);

            if (report->trouble == HEAT_LARGE && sized && sized->there && !sized->looked)
                heat->cases[i].fresh = true;
        }
    for (size_t i = 0; i < heat->sized_count; i++) {
        if (!heat->sized[i].there)
            continue;
        heat->sized[kept] = heat->sized[i];
        heat->sized[kept].there = heat->sized[kept].looked = false;
        kept++;
    }
    heat->sized_count = kept;
}

/* --- All ------------------------------------------------------------------------------------- */

static bool container_look(struct heat *heat, const struct heat_subject *subject, int64_t now_ms,
                           struct error *err)
{
    struct span_look look = {.subject = subject, .now_ms = now_ms};
    bool fine = true;
    const struct partition_span *spans =
        partition_map_spans(container_map(subject->container), &look.span_count);

    for (size_t i = 0; i < look.span_count; i++) {
        struct meter *meter = meters_find(heat->options.meters, spans[i].id);

        look.span = &spans[i];
        if (meter)
            span_look_hot(heat, &look, meter);
        fine = span_look_large(heat, &look, meter, err) && fine;
    }
    return fine;
}

bool heat_look_hot(struct heat *heat, const struct heat_subject *subjects, size_t count,
                   int64_t now_ms, struct error *err)
{
    bool fine = true;

    for (size_t i = 0; i < count; i++)
        fine = container_look(heat, &subjects[i], now_ms, err) && fine;
    large_keep(heat);
    cases_sweep(heat, now_ms);
    return fine;
}

/* --- Reports --------------------------------------------------------------------------------- */

static int longest_first(const void *left, const void *right)
{
    const struct heat_report *a = left, *b = right;

    return (a->since_ms > b->since_ms) - (a->since_ms < b->since_ms);
}

static bool is_asked_for(const struct heat_report *report, struct slice account, uint32_t container)
{
    return (!account.data || slice_equal(report->account, account)) &&
           (!container || report->container == container);
}

size_t heat_reports(struct heat *heat, struct slice account, uint32_t container,
                    struct arena *arena, struct heat_report **ret_reports)
{
    struct heat_report *reports = NULL;
    size_t count = 0;

    WITH_LOCK (&heat->report_lock) {
        reports = ARENA_ARRAY(arena, struct heat_report, heat->case_count + 1);
        for (size_t i = 0; i < heat->case_count; i++) {
            struct heat_report report = heat->cases[i].report;

            if (!heat->cases[i].reported || !is_asked_for(&report, account, container))
                continue;
            report.account = arena_copy(arena, report.account);
            report.database = arena_copy(arena, report.database);
            report.id = arena_copy(arena, report.id);
            report.key = arena_copy(arena, report.key);
            reports[count++] = report;
        }
    }
    qsort(reports, count, sizeof *reports, longest_first);
    *ret_reports = reports;
    return count;
}

void heat_count(struct heat *heat, size_t ret_counts[HEAT_TROUBLES])
{
    memset(ret_counts, 0, HEAT_TROUBLES * sizeof *ret_counts);
    WITH_LOCK (&heat->report_lock)
        for (size_t i = 0; i < heat->case_count; i++)
            ret_counts[heat->cases[i].report.trouble] += heat->cases[i].reported;
}
