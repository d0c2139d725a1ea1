/* Optimal string alignment over three rows. Names are short and this runs once, just before a
 * process ends with a message, so nothing is done for speed. */
#include "base/nearest.h"

size_t nearest_distance(struct slice a, struct slice b)
{
    size_t rows[3][NEAREST_NAME_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];

    if (a.len > NEAREST_NAME_MAX || b.len > NEAREST_NAME_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *spare = before;

        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replaced = last[j - 1] + (a.data[i - 1] != b.data[j - 1]);
            size_t best = MIN(replaced, MIN(last[j], now[j - 1]) + 1);

            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                best = MIN(best, before[j - 2] + 1);
            now[j] = best;
        }
        before = last;
        last = now;
        now = spare;
    }
    return last[b.len];
}

struct nearest nearest_to(struct slice wanted)
{
    return (struct nearest){.wanted = wanted, .distance = MAX(wanted.len / 3, (size_t)1) + 1};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    size_t distance = nearest_distance(nearest->wanted, slice_of_text(name));

    if (distance < nearest->distance) {
        nearest->distance = distance;
        nearest->name = name;
    }
}
