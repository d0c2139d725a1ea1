#include "migration/migrator.h"

#include <math.h>

enum { PIECES_MAX = 16 };

/* Pieces are to be at most this full, so that they have room to grow. */
#define FULL_AFTERWARDS 0.75

static size_t fullest(const struct migrator_figures *figures, size_t count, uint64_t bytes_max)
{
    size_t best = count;

    for (size_t i = 0; i < count; i++)
        if (!figures[i].whole && figures[i].bytes > bytes_max &&
            (best == count || figures[i].bytes > figures[best].bytes))
            best = i;
    return best;
}

/* The part of all load that is expected of a span. After a split for throughput all shares are
 * alike, whatever comes to the spans: by shares alone the first would be cut again and again, and
 * the last keep half of all keys. */
static double load_of(const struct migrator_figures *figures)
{
    return MAX(figures->share, figures->reach);
}

static size_t busiest(const struct migrator_figures *figures, size_t count)
{
    size_t best = count;

    for (size_t i = 0; i < count; i++)
        if (!figures[i].whole && (best == count || load_of(&figures[i]) > load_of(&figures[best])))
            best = i;
    return best;
}

/* As many as the span needs, so that it does not have to be copied twice. */
static size_t pieces_of(double needed, size_t room)
{
    size_t pieces = needed > PIECES_MAX ? PIECES_MAX : (size_t)needed;

    pieces += (double)pieces < needed && pieces < PIECES_MAX;
    return MIN(MAX(pieces, (size_t)2), room + 1);
}

struct migrator_choice migrator_decide(const struct migrator_figures *figures, size_t count,
                                       uint64_t bytes_max, size_t count_wanted, size_t count_max)
{
    struct migrator_choice choice = {0};
    size_t room = count_max > count ? count_max - count : 0;

    if (room == 0)
        return choice;
    choice.span = fullest(figures, count, bytes_max);
    if (choice.span < count) {
        choice.wanted = choice.by_bytes = true;
        choice.pieces = pieces_of(
            (double)figures[choice.span].bytes / ((double)bytes_max * FULL_AFTERWARDS), room);
        return choice;
    }
    if (count >= count_wanted)
        return choice;
    choice.span = busiest(figures, count);
    choice.wanted = choice.span < count;
    /* Not more than its part of all there are to be: what one takes too much others miss. */
    if (choice.wanted)
        choice.pieces = pieces_of(floor(load_of(&figures[choice.span]) * (double)count_wanted),
                                  MIN(room, count_wanted - count));
    return choice;
}

int64_t migrator_throttle_ms(uint64_t bytes, uint64_t bytes_per_second)
{
    if (!bytes_per_second)
        return 0;
    return (int64_t)MIN((double)bytes * 1000 / (double)bytes_per_second, 60000.0);
}
