#include "cli/heat_svg.h"

#include "base/clock.h"

enum {
    WIDTH = 1200,
    LEFT = 210, /* for labels */
    RIGHT = 120,
    TOP = 70,
    BOTTOM = 86,
    ROW_MIN = 3,
    ROW_MAX = 40,
    HEIGHT_WANTED = 480,
    LABEL_LEAST = 11, /* no label where rows are lower: they would lie on each other */
    TICKS_MAX = 10,
    LEGEND_STEPS = 5,
};

/* Where things are. */
struct layout {
    const struct cli_heat_picture *picture;
    double row, bottom, height; /* of the whole */
    double right;
    double most; /* the largest value */
};

struct cli_heat_colour cli_heat_svg_colour(double part)
{
    static const struct cli_heat_colour stops[] = {
        {255, 245, 220}, {254, 205, 130}, {251, 137, 62}, {212, 61, 41}, {110, 10, 48}};
    double at = MIN(MAX(part, 0.0), 1.0) * (ARRAY_LEN(stops) - 1);
    size_t first = MIN((size_t)at, ARRAY_LEN(stops) - 2);
    double rest = at - (double)first;

#define MIXED(colour)                                                                              \
    ((uint8_t)(stops[first].colour + (stops[first + 1].colour - stops[first].colour) * rest + 0.5))
    return (struct cli_heat_colour){MIXED(red), MIXED(green), MIXED(blue)};
#undef MIXED
}

/* Text as XML has it; what no XML may hold becomes '?'. */
static void text_append(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];

        if (c == '<')
            BUF_APPEND(out, "&lt;");
        else if (c == '>')
            BUF_APPEND(out, "&gt;");
        else if (c == '&')
            BUF_APPEND(out, "&amp;");
        else if (c == '"')
            BUF_APPEND(out, "&quot;");
        else
            buf_append_byte(out, c < 0x20 || c == 0x7F ? '?' : c);
    }
}

static void label(struct buf *out, double x, double y, const char *class, struct slice text)
{
    buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    text_append(out, text);
    BUF_APPEND(out, "</text>\n");
}

static double x_of(const struct layout *layout, int64_t at_ms)
{
    const struct cli_heat_picture *picture = layout->picture;
    double part = (double)(at_ms - picture->from_ms) /
                  (double)MAX(picture->to_ms - picture->from_ms, (int64_t)1);

    return LEFT + MIN(MAX(part, 0.0), 1.0) * (layout->right - LEFT);
}

static double y_of(const struct layout *layout, double row)
{
    return TOP + row * layout->row;
}

/* --- Parts ----------------------------------------------------------------------------------- */

static void head_append(const struct layout *layout, struct buf *out)
{
    buf_printf(out,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
               "height=\"%.0f\" role=\"img\">\n",
               WIDTH, layout->height, WIDTH, layout->height);
    BUF_APPEND(out, "<title>");
    text_append(out, layout->picture->title);
    BUF_APPEND(out, "</title>\n<style>\n"
                    "text { font-family: sans-serif; font-size: 12px; fill: #333 }\n"
                    ".title { font-size: 18px; font-weight: bold }\n"
                    ".end { text-anchor: end }\n"
                    ".middle { text-anchor: middle }\n"
                    ".key { font-family: monospace; font-size: 11px; text-anchor: end }\n"
                    ".letter { font-size: 9px; font-weight: bold; text-anchor: middle; fill: #fff "
                    "}\n"
                    "</style>\n");
    buf_printf(out, "<rect width=\"%d\" height=\"%.0f\" fill=\"#fff\"/>\n", WIDTH, layout->height);
    label(out, 20, 30, "title", layout->picture->title);
    label(out, 20, 50, "", layout->picture->subtitle);
    buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"#f2f2f2\"/>\n",
               LEFT, TOP, layout->right - LEFT, layout->bottom - TOP);
}

static void cells_append(const struct layout *layout, struct buf *out)
{
    for (size_t i = 0; i < layout->picture->cell_count; i++) {
        const struct cli_heat_cell *cell = &layout->picture->cells[i];
        double x = x_of(layout, cell->from_ms), y = y_of(layout, cell->top);
        struct cli_heat_colour colour =
            cli_heat_svg_colour(layout->most > 0 ? cell->value / layout->most : 0);

        buf_printf(out,
                   "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                   "fill=\"#%02x%02x%02x\">",
                   x, y, MAX(x_of(layout, cell->to_ms) - x, 0.5),
                   MAX(y_of(layout, cell->bottom) - y, 0.5), colour.red, colour.green, colour.blue);
        if (cell->text.len) {
            BUF_APPEND(out, "<title>");
            text_append(out, cell->text);
            BUF_APPEND(out, "</title>");
        }
        BUF_APPEND(out, "</rect>\n");
    }
}

static void rows_append(const struct layout *layout, struct buf *out)
{
    const struct cli_heat_picture *picture = layout->picture;
    size_t every = 1;

    while (layout->row * (double)every < LABEL_LEAST)
        every++;
    for (size_t i = 0; i < picture->row_count; i += every) {
        double y = y_of(layout, (double)i);

        label(out, LEFT - 8, picture->between ? y + 4 : y + layout->row / 2 + 4, "key",
              picture->rows[i]);
        if (picture->between && i)
            buf_printf(out,
                       "<line x1=\"%d\" y1=\"%.2f\" x2=\"%.1f\" y2=\"%.2f\" stroke=\"#fff\" "
                       "stroke-width=\"0.5\"/>\n",
                       LEFT - 5, y, layout->right, y);
    }
}

static int64_t tick_of(int64_t minutes)
{
    static const int64_t steps[] = {1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440};

    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (minutes / steps[i] <= TICKS_MAX)
            return steps[i];
    return 1440;
}

static void times_append(const struct layout *layout, struct buf *out)
{
    const struct cli_heat_picture *picture = layout->picture;
    int64_t step_ms = tick_of((picture->to_ms - picture->from_ms) / 60000) * 60000;
    int64_t at_ms = (picture->from_ms + step_ms - 1) / step_ms * step_ms;
    char day[CLOCK_ISO_SIZE] = "", text[CLOCK_ISO_SIZE];

    for (; at_ms <= picture->to_ms; at_ms += step_ms) {
        double x = x_of(layout, at_ms);

        clock_iso(at_ms, text);
        buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#888\"/>\n",
                   x, layout->bottom, x, layout->bottom + 5);
        label(out, x, layout->bottom + 18, "middle", slice_of(text + 11, 5));
        if (memcmp(day, text, 10) != 0)
            label(out, x, layout->bottom + 33, "middle", slice_of(text, 10));
        memcpy(day, text, sizeof day);
    }
    label(out, layout->right, layout->bottom + 33, "end", SLICE("UTC"));
}

static void marks_append(const struct layout *layout, struct buf *out)
{
    for (size_t i = 0; i < layout->picture->mark_count; i++) {
        const struct cli_heat_mark *mark = &layout->picture->marks[i];
        double x = x_of(layout, mark->at_ms), top = y_of(layout, mark->top);
        double bottom = MAX(y_of(layout, mark->bottom), top + 1);

        buf_printf(out,
                   "<g class=\"mark\"><line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
                   "stroke=\"#14508c\" stroke-width=\"1.5\"/><circle cx=\"%.2f\" cy=\"%.2f\" "
                   "r=\"6\" fill=\"#14508c\"/><text x=\"%.2f\" y=\"%.2f\" "
                   "class=\"letter\">%c</text><title>",
                   x, top, x, bottom, x, top, x, top + 3.2, mark->letter);
        text_append(out, mark->text);
        BUF_APPEND(out, "</title></g>\n");
    }
}

static void value_text(double value, char text[32])
{
    if (value >= 1000)
        snprintf(text, 32, "%.0f", value);
    else
        snprintf(text, 32, value >= 10 ? "%.1f" : "%.2f", value);
}

static void legend_append(const struct layout *layout, struct buf *out)
{
    double x = layout->right + 20;

    label(out, x, TOP + 8, "", layout->picture->unit);
    for (int i = 0; i <= LEGEND_STEPS; i++) {
        double part = (double)(LEGEND_STEPS - i) / LEGEND_STEPS;
        struct cli_heat_colour colour = cli_heat_svg_colour(part);
        char text[32];

        value_text(layout->most * part, text);
        buf_printf(out,
                   "<rect x=\"%.1f\" y=\"%d\" width=\"16\" height=\"18\" "
                   "fill=\"#%02x%02x%02x\"/>\n",
                   x, TOP + 16 + 18 * i, colour.red, colour.green, colour.blue);
        label(out, x + 22, TOP + 29 + 18 * i, "", slice_of_text(text));
    }
    label(out, LEFT, layout->bottom + 60, "",
          SLICE("Marks: S split, M merge, V move to another node, I isolation of a key, R edit of "
                "a directory, K re-key. Rows: partition and where it begins. Grey: nobody asked."));
}

void cli_heat_svg(const struct cli_heat_picture *picture, struct buf *out)
{
    size_t rows = MAX(picture->row_count, (size_t)1);
    struct layout layout = {.picture = picture, .right = WIDTH - RIGHT};

    layout.row = MIN(MAX((double)HEIGHT_WANTED / (double)rows, (double)ROW_MIN), (double)ROW_MAX);
    layout.bottom = TOP + MAX(layout.row * (double)rows, 140.0);
    layout.height = layout.bottom + BOTTOM;
    for (size_t i = 0; i < picture->cell_count; i++)
        layout.most = MAX(layout.most, picture->cells[i].value);
    head_append(&layout, out);
    cells_append(&layout, out);
    rows_append(&layout, out);
    times_append(&layout, out);
    marks_append(&layout, out);
    legend_append(&layout, out);
    BUF_APPEND(out, "</svg>\n");
}
