/* Heat: who asks how much of what, over time. One thread that looks at the statistics of all
 * physical partitions every few seconds and
 *
 *   - writes down each minute that is over, for a week (heat_store.h);
 *   - reports logical partitions that are too hot or too large for the physical one they are in:
 *     who, how much, since when, and what to do;
 *   - asks the migrator to split spans that stay hot and to merge those that stay calm.
 *
 * A process that is killed loses the minute it was in. */
#pragma once

#include "catalogue/catalogue.h"
#include "heat/decide.h"
#include "heat/store.h"
#include "item/meters.h"
#include "migration/migrator.h"

struct heat; /* opaque, owned */

struct heat_options {
    struct catalogue *catalogue; /* borrowed; outlives it, as all below */
    struct meters *meters;
    struct migrator *migrator; /* NULL: nothing is decided; heat_set_migrator */
    const struct clock *clock; /* NULL: the system's */
    struct log *log;           /* NULL: silent */
    int64_t pause_ms;          /* between looks; 0: 10,000 */
    struct heat_limits limits; /* all 0: nothing is decided */
    uint32_t hot_percent;      /* of what its partition gives, wanted by one key: hot; 0: 75 */
    uint32_t large_percent;    /* of logical_partition.bytes_max: large; 0: 80 */
    bool by_hand;              /* no thread: the test calls heat_round */
};

struct heat *heat_new(const struct heat_options *options);
/* Writes what has been counted of this minute. */
void heat_free(struct heat *heat); /* NULL is fine */
CLEANUP_FN(struct heat *, heat_free)

/* Whom it asks for splits and merges; made behind it, for it tells heat what it published. */
void heat_set_migrator(struct heat *heat, struct migrator *migrator);

/* Looks no more, and asks the migrator for nothing: before that one is freed. */
void heat_stop(struct heat *heat);

/* One look. For tests; the thread calls nothing else. */
NODISCARD bool heat_round(struct heat *heat, struct error *err);

/* A container has another map, by the migration that is still in its state: notes what became of
 * which, and what was counted of the sources. What cannot be written is logged. */
void heat_published(struct heat *heat, const struct container *container);

/* The sources of that migration go: notes what was counted of them since, by requests that had
 * begun before. */
void heat_leaving(struct heat *heat, const struct container *container);

/* --- The record ------------------------------------------------------------------------------ */

enum { HEAT_POINTS_MAX = 2000 };

struct heat_query {
    int64_t from_minute, to_minute; /* both inclusive; minutes of the wall clock */
    size_t points_max;              /* 1 to HEAT_POINTS_MAX: minutes are put together to that end */
};

struct heat_point {
    int64_t minute;
    struct heat_record record; /* its keys are trimmed */
};

/* What is known of that time, the present minute included. In the arena. */
struct heat_series {
    uint32_t step;             /* minutes of a point; points begin at multiples of it */
    struct heat_point *points; /* ascending; none where nobody asked anything */
    size_t point_count;
    struct heat_place *places; /* by partition: all that there are, or were in the last week */
    size_t place_count;
    struct heat_event *events; /* of that time */
    size_t event_count;
};

NODISCARD bool heat_read(struct heat *heat, const struct container *container,
                         const struct heat_query *query, struct arena *arena,
                         struct heat_series *ret_series, struct error *err);

/* --- The report ------------------------------------------------------------------------------ */

enum heat_trouble { HEAT_HOT, HEAT_LARGE };
enum { HEAT_TROUBLES = 2, HEAT_REPORTS_MAX = 1024 };
const char *heat_trouble_name(enum heat_trouble trouble);

/* What can be done about it. */
enum heat_advice {
    HEAT_ISOLATE,    /* a partition of its own */
    HEAT_THROUGHPUT, /* it has one, or as good as, which may give more: raise the container's
                        throughput */
    HEAT_SPREAD, /* no partition can give or hold that: several key values, as a synthetic key */
};
const char *heat_advice_name(enum heat_advice advice);
const char *heat_advice_text(enum heat_advice advice);

/* A logical partition in trouble. */
struct heat_report {
    enum heat_trouble trouble;
    uint32_t container; /* number */
    struct slice account, database, id;
    uint32_t partition;
    struct slice key; /* encoded partition key value; one beyond STATISTICS_KEY_LEN_MAX is cut */
    bool alone;       /* it has the partition for itself */
    enum heat_advice advice;
    int64_t since_ms;
    double used, wanted, rate, rate_max; /* RU/s: hot */
    double throttled;                    /* of its requests, from 0 to 1 */
    double share;                        /* of the partition's RU, likewise */
    uint64_t bytes, bytes_max;           /* large */
};

/* Those of one container (by number), or of all of an account, or (account data NULL, container 0)
 * of all; longest in trouble first. In the arena. */
size_t heat_reports(struct heat *heat, struct slice account, uint32_t container,
                    struct arena *arena, struct heat_report **ret_reports);

/* How many there are of each kind. */
void heat_count(struct heat *heat, size_t ret_counts[HEAT_TROUBLES]);
