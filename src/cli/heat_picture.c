/* In hash space a row is what lies between two bounds that any partition had: so every span there
 * ever was is a number of whole rows. Rows are as high as each other, not as wide as their keys: a
 * partition for one key alone would not be seen else.
 *
 * By keys a row is one of the keys that spent the most in that time. */
#include "cli/heat_picture.h"

#include "base/clock.h"
#include "cli/client.h"
#include "document/json.h"

#include <time.h>

enum { LABEL_MAX = 28, HEX_SHOWN = 12 };

const char *const heat_shown_names[HEAT_SHOWN] = {
    [HEAT_SHOW_RU] = "ru",
    [HEAT_SHOW_THROTTLED] = "throttled",
    [HEAT_SHOW_LATENCY] = "latency",
    [HEAT_SHOW_REQUESTS] = "requests",
};

/* A picture being made. */
struct making {
    struct slice document;
    enum cli_heat_shown shown;
    struct arena *arena;
    bool keys;
    int64_t step_ms;
    struct slice *bounds; /* of all partitions, ascending, without repetition: hex */
    size_t bound_count;
    struct slice key_names[HEAT_PICTURE_KEYS_MAX];
    size_t key_count;
    struct cli_heat_cell *cells;
    size_t cell_count;
    struct cli_heat_mark *marks;
    size_t mark_count;
};

/* "2017-04-27T00:51:12.345Z"; -1: it is none. */
static int64_t time_read(struct slice text, struct arena *arena)
{
    struct tm tm = {0};
    int ms;

    if (text.len != CLOCK_ISO_SIZE - 1 ||
        sscanf(arena_text(arena, text), "%d-%d-%dT%d:%d:%d.%dZ", &tm.tm_year, &tm.tm_mon,
               &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    return (int64_t)timegm(&tm) * 1000 + ms;
}

static size_t objects_count(struct slice array)
{
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        count += iter.value.type == DOCUMENT_OBJECT;
    return count;
}

static struct slice cut(struct slice text, struct arena *arena)
{
    size_t len = LABEL_MAX;

    if (text.len <= LABEL_MAX)
        return text;
    while (len > 0 && (text.data[len] & 0xC0) == 0x80)
        len--; /* not within a character */
    return arena_printf(arena, "%.*s...", (int)len, (const char *)text.data);
}

/* --- Values ---------------------------------------------------------------------------------- */

static double value_of(const struct making *making, struct slice entry)
{
    double minutes = (double)making->step_ms / 60000;

    switch (making->shown) {
    case HEAT_SHOW_THROTTLED:
        return cli_answer_number(entry, "throttled") / minutes;
    case HEAT_SHOW_LATENCY:
        return cli_answer_number(cli_answer_inside(entry, "latencyMs"),
                                 making->keys ? "mean" : "p99");
    case HEAT_SHOW_REQUESTS:
        return cli_answer_number(entry, "requests") / minutes;
    default:
        return cli_answer_number(entry, "ru") / (minutes * 60);
    }
}

static struct slice unit_of(const struct making *making)
{
    switch (making->shown) {
    case HEAT_SHOW_THROTTLED:
        return SLICE("429s/min");
    case HEAT_SHOW_LATENCY:
        return making->keys ? SLICE("mean ms") : SLICE("p99 ms");
    case HEAT_SHOW_REQUESTS:
        return SLICE("requests/min");
    default:
        return SLICE("RU/s");
    }
}

static struct slice cell_text(const struct making *making, struct slice name, struct slice entry,
                              struct slice at)
{
    struct slice latency = cli_answer_inside(entry, "latencyMs");

    return arena_printf(making->arena,
                        "%.*s %.*s: %.2f RU, %.0f request%s, %.0f refused, %.2f ms mean, %.2f ms "
                        "longest, %.0f bytes in, %.0f bytes out",
                        SLICE_ARG(name), SLICE_ARG(at), cli_answer_number(entry, "ru"),
                        cli_answer_number(entry, "requests"),
                        PLURAL(cli_answer_number(entry, "requests")),
                        cli_answer_number(entry, "throttled"), cli_answer_number(latency, "mean"),
                        cli_answer_number(latency, "max"), cli_answer_number(entry, "bytesIn"),
                        cli_answer_number(entry, "bytesOut"));
}

/* --- Spans ----------------------------------------------------------------------------------- */

static int by_bytes(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;

    return slice_compare(*a, *b);
}

/* Hex of upper case sorts as the bytes do. */
static void bounds_read(struct making *making)
{
    struct slice partitions = cli_answer_inside(making->document, "partitions");
    size_t count = 0, kept = 0;
    struct document_iter iter;

    making->bounds = ARENA_ARRAY(making->arena, struct slice, 2 * objects_count(partitions) + 2);
    document_iter_init(&iter, partitions);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        making->bounds[count++] = cli_answer_text(iter.value.document, "minInclusive");
        making->bounds[count++] = cli_answer_text(iter.value.document, "maxExclusive");
    }
    qsort(making->bounds, count, sizeof *making->bounds, by_bytes);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !slice_equal(making->bounds[i], making->bounds[kept - 1]))
            making->bounds[kept++] = making->bounds[i];
    making->bound_count = kept;
}

static double bound_row(const struct making *making, struct slice bound)
{
    size_t row = 0;

    while (row < making->bound_count && slice_compare(making->bounds[row], bound) < 0)
        row++;
    return (double)row;
}

/* The rows of a partition. False: where it was is not known. */
static bool rows_of(const struct making *making, struct slice id, double *ret_top,
                    double *ret_bottom)
{
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(making->document, "partitions"));
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT ||
            !slice_equal(cli_answer_text(iter.value.document, "id"), id))
            continue;
        *ret_top = bound_row(making, cli_answer_text(iter.value.document, "minInclusive"));
        *ret_bottom = bound_row(making, cli_answer_text(iter.value.document, "maxExclusive"));
        return true;
    }
    return false;
}

/* --- Keys ------------------------------------------------------------------------------------ */

struct key_sum {
    struct slice name;
    double sum;
};

static int most_first(const void *left, const void *right)
{
    const struct key_sum *a = left, *b = right;

    if (a->sum != b->sum)
        return a->sum > b->sum ? -1 : 1;
    return slice_compare(a->name, b->name);
}

static void key_add(struct key_sum *sums, size_t *count, struct slice name, double value)
{
    size_t i = 0;

    while (i < *count && !slice_equal(sums[i].name, name))
        i++;
    if (i == *count)
        sums[(*count)++] = (struct key_sum){.name = name};
    sums[i].sum += value;
}

static size_t entries_count(struct slice points, const char *name)
{
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, points);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            count += objects_count(cli_answer_inside(iter.value.document, name));
    return count;
}

static void keys_choose(struct making *making)
{
    struct slice points = cli_answer_inside(making->document, "points");
    struct key_sum *sums =
        ARENA_ARRAY(making->arena, struct key_sum, entries_count(points, "keys") + 1);
    struct document_iter point, entry;
    size_t count = 0;

    document_iter_init(&point, points);
    while (document_iter_next(&point)) {
        if (point.value.type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&entry, cli_answer_inside(point.value.document, "keys"));
        while (document_iter_next(&entry))
            if (entry.value.type == DOCUMENT_OBJECT)
                key_add(sums, &count, cli_answer_key(entry.value.document, making->arena),
                        value_of(making, entry.value.document));
    }
    qsort(sums, count, sizeof *sums, most_first);
    making->key_count = MIN(count, (size_t)HEAT_PICTURE_KEYS_MAX);
    for (size_t i = 0; i < making->key_count; i++)
        making->key_names[i] = sums[i].name;
}

/* --- Cells and marks ------------------------------------------------------------------------- */

static bool entry_rows(const struct making *making, struct slice entry, struct slice *ret_name,
                       double *ret_top, double *ret_bottom)
{
    if (!making->keys) {
        struct slice id = cli_answer_text(entry, "id");

        *ret_name = arena_printf(making->arena, "partition %.*s", SLICE_ARG(id));
        return rows_of(making, id, ret_top, ret_bottom);
    }
    *ret_name = cli_answer_key(entry, making->arena);
    for (size_t i = 0; i < making->key_count; i++)
        if (slice_equal(making->key_names[i], *ret_name)) {
            *ret_top = (double)i;
            *ret_bottom = (double)i + 1;
            return true;
        }
    return false;
}

/* A key that was in two partitions within one point has two entries there, and one cell. */
static struct cli_heat_cell *cell_same(struct making *making, size_t first, double top)
{
    for (size_t i = first; making->keys && i < making->cell_count; i++)
        if (making->cells[i].top == top)
            return &making->cells[i];
    return NULL;
}

static void point_read(struct making *making, struct slice point)
{
    struct slice at = cli_answer_text(point, "at");
    int64_t from_ms = time_read(at, making->arena);
    size_t first = making->cell_count;
    struct document_iter entry;

    document_iter_init(&entry, cli_answer_inside(point, making->keys ? "keys" : "spans"));
    while (from_ms >= 0 && document_iter_next(&entry)) {
        struct cli_heat_cell cell = {.from_ms = from_ms, .to_ms = from_ms + making->step_ms}, *same;
        struct slice name;

        if (entry.value.type != DOCUMENT_OBJECT ||
            !entry_rows(making, entry.value.document, &name, &cell.top, &cell.bottom))
            continue;
        cell.value = value_of(making, entry.value.document);
        cell.text = cell_text(making, name, entry.value.document, at);
        same = cell_same(making, first, cell.top);
        if (same)
            same->value += cell.value;
        else
            making->cells[making->cell_count++] = cell;
    }
}

static void cells_read(struct making *making)
{
    struct slice points = cli_answer_inside(making->document, "points");
    struct document_iter iter;

    making->cells = ARENA_ARRAY(making->arena, struct cli_heat_cell,
                                entries_count(points, making->keys ? "keys" : "spans") + 1);
    document_iter_init(&iter, points);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            point_read(making, iter.value.document);
}

/* The rows of all partitions of a list; by keys all rows. */
static void rows_widen(const struct making *making, struct slice ids, struct cli_heat_mark *mark)
{
    struct document_iter iter;
    double top, bottom;

    document_iter_init(&iter, ids);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING && rows_of(making, iter.value.text, &top, &bottom)) {
            mark->top = MIN(mark->top, top);
            mark->bottom = MAX(mark->bottom, bottom);
        }
}

static struct slice ids_text(const struct making *making, struct slice ids)
{
    CLEANUP(buf_done) struct buf text;
    struct document_iter iter;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_iter_init(&iter, ids);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING)
            buf_printf(&text, "%s%.*s", text.len ? ", " : "", SLICE_ARG(iter.value.text));
    return arena_copy(making->arena, buf_slice(&text));
}

/* Two kinds that begin alike take another letter. */
static char letter_of(struct slice kind)
{
    if (slice_equal(kind, SLICE("move")))
        return 'V';
    if (slice_equal(kind, SLICE("rekey")))
        return 'K';
    return kind.len ? (char)(kind.data[0] - 'a' + 'A') : '?';
}

static void mark_read(struct making *making, struct slice event, double rows)
{
    struct slice at = cli_answer_text(event, "at"), kind = cli_answer_text(event, "kind");
    struct slice from = cli_answer_inside(event, "from"), to = cli_answer_inside(event, "to");
    struct cli_heat_mark mark = {
        .at_ms = time_read(at, making->arena), .top = rows, .letter = letter_of(kind)};

    if (making->keys) {
        mark.top = 0;
        mark.bottom = rows;
    } else {
        rows_widen(making, from, &mark);
        rows_widen(making, to, &mark);
    }
    mark.text =
        arena_printf(making->arena, "%.*s of partition%s %.*s into %.*s at %.*s", SLICE_ARG(kind),
                     PLURAL(document_count(from)), SLICE_ARG(ids_text(making, from)),
                     SLICE_ARG(ids_text(making, to)), SLICE_ARG(at));
    if (mark.at_ms >= 0 && mark.bottom > mark.top)
        making->marks[making->mark_count++] = mark;
}

static void marks_read(struct making *making, double rows)
{
    struct slice events = cli_answer_inside(making->document, "events");
    struct document_iter iter;

    making->marks = ARENA_ARRAY(making->arena, struct cli_heat_mark, objects_count(events) + 1);
    document_iter_init(&iter, events);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            mark_read(making, iter.value.document, rows);
}

/* --- The whole ------------------------------------------------------------------------------- */

/* What people call the lower bound of a partition: the key that has it for itself, the value that a
 * range begins with, else the beginning of its bytes. */
static struct slice bound_text(const struct making *making, struct slice partition)
{
    static const char *const members[] = {"key", "minKey"};
    struct slice hex = cli_answer_text(partition, "minInclusive");
    CLEANUP(buf_done) struct buf text;
    struct document_value value;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(members) && !text.len; i++)
        if (document_find(partition, slice_of_text(members[i]), &value))
            document_json_write_value(&value, &text);
    if (text.len)
        return arena_copy(making->arena, buf_slice(&text));
    if (!hex.len)
        return SLICE("first key");
    return hex.len <= HEX_SHOWN
               ? hex
               : arena_printf(making->arena, "%.*s...", HEX_SHOWN, (const char *)hex.data);
}

/* "3: 1FFF...": the partition that begins with the row, if it is still there, and where. */
static struct slice bound_label(const struct making *making, struct slice bound)
{
    struct slice label = SLICE("");
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(making->document, "partitions"));
    while (document_iter_next(&iter)) {
        struct slice partition = iter.value.document;
        struct document_value until;

        if (iter.value.type != DOCUMENT_OBJECT ||
            !slice_equal(cli_answer_text(partition, "minInclusive"), bound))
            continue;
        if (!document_find(partition, SLICE("until"), &until))
            return arena_printf(making->arena, "%.*s: %.*s",
                                SLICE_ARG(cli_answer_text(partition, "id")),
                                SLICE_ARG(bound_text(making, partition)));
        label = bound_text(making, partition);
    }
    return label;
}

static void rows_label(const struct making *making, struct cli_heat_picture *picture)
{
    size_t count = making->keys ? making->key_count
                                : MAX(making->bound_count, (size_t)1) - 1; /* between bounds */

    picture->row_count = count;
    picture->between = !making->keys;
    picture->rows = ARENA_ARRAY(making->arena, struct slice, count + 1);
    for (size_t i = 0; i < count; i++)
        picture->rows[i] =
            cut(making->keys ? making->key_names[i] : bound_label(making, making->bounds[i]),
                making->arena);
}

bool cli_heat_picture_read(struct slice document, enum cli_heat_shown shown, struct arena *arena,
                           struct cli_heat_picture *ret_picture, struct error *err)
{
    struct making making = {.document = document, .shown = shown, .arena = arena};
    struct slice from = cli_answer_text(document, "from"), to = cli_answer_text(document, "to");
    double minutes = cli_answer_number(document, "minutes");
    struct cli_heat_picture picture = {.from_ms = time_read(from, arena),
                                       .to_ms = time_read(to, arena)};

    if (picture.from_ms < 0 || picture.to_ms <= picture.from_ms || !(minutes >= 1) ||
        minutes > 10080)
        return error_set(err, ERROR_BAD_REQUEST, "the server's answer holds no heat");
    making.step_ms = (int64_t)minutes * 60000;
    making.keys = slice_equal(cli_answer_text(document, "by"), SLICE("keys"));
    if (making.keys)
        keys_choose(&making);
    else
        bounds_read(&making);
    cells_read(&making);
    rows_label(&making, &picture);
    marks_read(&making, (double)picture.row_count);
    picture.title =
        arena_printf(arena, "%.*s / %.*s", SLICE_ARG(cli_answer_text(document, "database")),
                     SLICE_ARG(cli_answer_text(document, "container")));
    picture.subtitle = arena_printf(
        arena, "%s by %s, %.*s to %.*s, %.0f min a column", heat_shown_names[shown],
        making.keys ? "hottest partition keys" : "physical partition, in the order of routing keys",
        SLICE_ARG(slice_first(from, 16)), SLICE_ARG(slice_first(to, 16)), minutes);
    picture.unit = unit_of(&making);
    picture.cells = making.cells;
    picture.cell_count = making.cell_count;
    picture.marks = making.marks;
    picture.mark_count = making.mark_count;
    *ret_picture = picture;
    return true;
}
