#include "isolation/levels.h"

#include <inttypes.h>
#include <stdarg.h>

static void object(struct levels_report *report, enum levels_fault fault, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void object(struct levels_report *report, enum levels_fault fault, const char *format, ...)
{
    va_list arguments;

    report->counts[fault]++;
    if (report->faults++)
        return;
    va_start(arguments, format);
    (void)vsnprintf(report->first, sizeof report->first, format, arguments);
    va_end(arguments);
}

/* Is the write among what the read shows? */
static bool shows(const struct levels_read *read, const struct levels_write *write)
{
    return read->versions[write->item] >= write->version;
}

static bool is_written(const struct levels_history *history, uint32_t item, uint64_t version)
{
    for (size_t i = 0; i < history->write_count; i++)
        if (history->writes[i].item == item && history->writes[i].version == version)
            return true;
    return version == 0;
}

/* The first commit that the snapshot cannot have had, and the last that it has. */
static void bounds_find(const struct levels_history *history, const struct levels_read *read,
                        uint64_t *ret_last, uint64_t *ret_missed)
{
    *ret_last = 0;
    *ret_missed = UINT64_MAX;
    for (size_t i = 0; i < history->write_count; i++) {
        const struct levels_write *write = &history->writes[i];

        if (shows(read, write))
            *ret_last = MAX(*ret_last, write->lsn);
        else
            *ret_missed = MIN(*ret_missed, write->lsn);
    }
}

static uint64_t acknowledged_by(const struct levels_history *history, int64_t at_ms)
{
    uint64_t lsn = 0;

    for (size_t i = 0; i < history->write_count; i++)
        if (history->writes[i].acked_ms < at_ms)
            lsn = MAX(lsn, history->writes[i].lsn);
    return lsn;
}

/* Every write that was acknowledged before must be there. */
static void missed_check(const struct levels_history *history, const struct levels_read *read,
                         int64_t before_ms, bool own, enum levels_fault fault,
                         struct levels_report *report)
{
    for (size_t i = 0; i < history->write_count; i++) {
        const struct levels_write *write = &history->writes[i];

        if (write->acked_ms < before_ms && (!own || write->client == read->client) &&
            !shows(read, write)) {
            object(report, fault,
                   "client %u, %s: missed version %" PRIu64 " of item %u (saw %" PRIu64
                   "), acknowledged %" PRId64 " ms before the read began",
                   read->client, item_level_name(read->level), write->version, write->item,
                   read->versions[write->item], read->began_ms - write->acked_ms);
            return;
        }
    }
}

/* What the client has seen of an item at this level it goes on to see. */
static void session_check(const struct levels_history *history, size_t at,
                          struct levels_report *report)
{
    const struct levels_read *read = &history->reads[at];

    missed_check(history, read, read->began_ms, true, LEVELS_FORGOT, report);
    for (size_t i = 0; i < at; i++) {
        const struct levels_read *before = &history->reads[i];

        if (before->client != read->client || before->level != ITEM_SESSION)
            continue;
        for (uint32_t item = 0; item < LEVELS_ITEMS; item++)
            if (read->versions[item] < before->versions[item]) {
                object(report, LEVELS_FORGOT,
                       "client %u saw version %" PRIu64 " of item %u, and %" PRIu64 " before it",
                       read->client, read->versions[item], item, before->versions[item]);
                return;
            }
    }
}

static void read_check(const struct levels_history *history, size_t at,
                       struct levels_report *report)
{
    const struct levels_read *read = &history->reads[at];
    uint64_t last, missed, acknowledged;

    for (uint32_t item = 0; item < LEVELS_ITEMS; item++)
        if (!is_written(history, item, read->versions[item])) {
            object(report, LEVELS_UNWRITTEN,
                   "client %u, %s: saw version %" PRIu64 " of item %u, which is not there",
                   read->client, item_level_name(read->level), read->versions[item], item);
            return;
        }
    bounds_find(history, read, &last, &missed);
    if (missed < last)
        object(report, LEVELS_TORN,
               "client %u, %s: saw commit %" PRIu64 " and missed %" PRIu64 " before it",
               read->client, item_level_name(read->level), last, missed);
    switch (read->level) {
    case ITEM_STRONG:
        missed_check(history, read, read->began_ms, false, LEVELS_STALE, report);
        break;
    case ITEM_BOUNDED:
        missed_check(history, read, read->began_ms - history->staleness_ms, false, LEVELS_OLD,
                     report);
        acknowledged = acknowledged_by(history, read->began_ms);
        if (missed <= acknowledged && acknowledged - missed + 1 > history->staleness_lsns)
            object(report, LEVELS_BEHIND,
                   "client %u: missed commits from %" PRIu64 " on, of %" PRIu64 " acknowledged",
                   read->client, missed, acknowledged);
        break;
    case ITEM_SESSION:
        session_check(history, at, report);
        break;
    default:
        break;
    }
}

void levels_check(const struct levels_history *history, struct levels_report *ret_report)
{
    *ret_report = (struct levels_report){0};
    for (size_t i = 0; i < history->read_count; i++)
        read_check(history, i, ret_report);
}
