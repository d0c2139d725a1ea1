#include "advise/what_if_plot.h"

#include <math.h>
#include <stdarg.h>

enum { WIDTH = 520, HEIGHT = 320, LEFT = 44, TOP = 72, GAP = 36, FOOT = 150, BAR = 150 };

static void text_escaped(struct slice text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++)
        switch (text.data[i]) {
        case '<':
            BUF_APPEND(out, "&lt;");
            break;
        case '>':
            BUF_APPEND(out, "&gt;");
            break;
        case '&':
            BUF_APPEND(out, "&amp;");
            break;
        default: /* control characters have no place in XML */
            buf_append_byte(out, text.data[i] < 0x20 ? ' ' : text.data[i]);
        }
}

/* From almost white to a dark blue, by the square root, so that small differences can be seen. */
static void colour(double part, struct buf *out)
{
    double p = sqrt(fmin(fmax(part, 0), 1));

    buf_printf(out, "#%02x%02x%02x", (unsigned)(244 - 230 * p), (unsigned)(247 - 190 * p),
               (unsigned)(252 - 110 * p));
}

static double cells_max(const struct what_if_panel *panels, size_t count)
{
    double max = 0;

    for (size_t i = 0; i < count; i++) {
        const struct what_if_result *result = panels[i].result;
        double per_second = 1000.0 / (double)result->window_ms / 100;

        for (size_t c = 0; c < result->windows * result->partitions; c++)
            max = fmax(max, result->cells[c].cru * per_second);
    }
    return max;
}

static void cell_plot(const struct what_if_cell *cell, double x, double y, double w, double h,
                      double ru, double max, struct buf *out)
{
    double refused = cell->requests + cell->throttled
                         ? (double)cell->throttled / (cell->requests + cell->throttled)
                         : 0;

    buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.2f\" fill=\"", x, y,
               w + 0.3, h + 0.3);
    colour(max > 0 ? ru / max : 0, out);
    buf_printf(out, "\"><title>%.1f RU/s, %u request%s, %u refused</title></rect>\n", ru,
               cell->requests, PLURAL(cell->requests), cell->throttled);
    if (refused > 0.005)
        buf_printf(out,
                   "<rect x=\"%.1f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#d62f2f\" "
                   "fill-opacity=\"0.75\"/>\n",
                   x, y + h * (1 - refused), w, h * refused);
}

static void line(struct buf *out, double x, int *y, const char *format, ...) PRINTF_LIKE(4, 5);

static void line(struct buf *out, double x, int *y, const char *format, ...)
{
    char text[160];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_printf(out, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", x, *y, text);
    *y += 18;
}

static void figures_plot(const struct what_if_result *result, double x, struct buf *out)
{
    int y = TOP + HEIGHT + 44;

    line(out, x, &y, "429s: %.1f %% of %llu attempt%s; %llu request%s given up",
         what_if_throttled_share(result) * 100, (unsigned long long)result->attempts,
         PLURAL(result->attempts), (unsigned long long)result->given_up, PLURAL(result->given_up));
    line(out, x, &y, "RU: %.0f in all; %.0f %% of them on one of %u partition%s", result->ru,
         result->busiest * 100, result->partitions, PLURAL(result->partitions));
    line(out, x, &y, "latency: %.1f ms on average, %.1f ms at the 99th percentile",
         result->latency_ms_mean, result->latency_ms_p99);
    line(out, x, &y, "of that, waiting for throughput: %.1f ms and %.0f ms", result->wait_ms_mean,
         result->wait_ms_p99);
}

static void panel_plot(const struct what_if_panel *panel, double x, double max, struct buf *out)
{
    const struct what_if_result *result = panel->result;
    double w = (double)WIDTH / (double)result->windows;
    double h = (double)HEIGHT / (double)result->partitions;
    double per_second = 1000.0 / (double)result->window_ms / 100;
    int y = TOP + HEIGHT + 20;

    buf_printf(out, "<text x=\"%.0f\" y=\"%d\" font-weight=\"bold\">%s: ", x, TOP - 32,
               panel->today ? "today" : "what if");
    text_escaped(panel->title, out);
    buf_printf(out, "</text>\n<text x=\"%.0f\" y=\"%d\">", x, TOP - 14);
    if (result->ru_per_second)
        buf_printf(out, "%llu RU/s", (unsigned long long)result->ru_per_second);
    else
        buf_append_text(out, "no limit");
    buf_printf(out, " over %u physical partition%s</text>\n", result->partitions,
               PLURAL(result->partitions));
    for (size_t t = 0; t < result->windows; t++)
        for (uint32_t p = 0; p < result->partitions; p++) {
            const struct what_if_cell *cell = &result->cells[t * result->partitions + p];

            cell_plot(cell, x + (double)t * w, TOP + p * h, w, h, cell->cru * per_second, max, out);
        }
    buf_printf(out,
               "<rect x=\"%.0f\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
               "stroke=\"#888\"/>\n",
               x, TOP, WIDTH, HEIGHT);
    line(out, x, &y, "0 s");
    buf_printf(out, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"end\">%.0f s</text>\n", x + WIDTH,
               TOP + HEIGHT + 20, (double)result->window_ms * (double)result->windows / 1000);
    buf_printf(out,
               "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 %.0f %d)\">"
               "physical partitions</text>\n",
               x - 10, TOP + HEIGHT / 2, x - 10, TOP + HEIGHT / 2);
    figures_plot(result, x, out);
}

static void legend_plot(double max, double x, struct buf *out)
{
    int y = TOP + HEIGHT + FOOT - 22;

    for (int i = 0; i < BAR; i++) {
        buf_printf(out, "<rect x=\"%.0f\" y=\"%d\" width=\"1.5\" height=\"12\" fill=\"", x + i, y);
        colour((double)i / BAR, out);
        buf_append_text(out, "\"/>\n");
    }
    buf_printf(out, "<text x=\"%.0f\" y=\"%d\">0 to %.0f RU/s of one partition</text>\n",
               x + BAR + 8, y + 11, max);
    buf_printf(out,
               "<rect x=\"%.0f\" y=\"%d\" width=\"8\" height=\"12\" fill=\"#d62f2f\"/>\n"
               "<text x=\"%.0f\" y=\"%d\">refused (429)</text>\n",
               x + BAR + 240, y, x + BAR + 254, y + 11);
}

void what_if_plot(const struct what_if_panel *panels, size_t count, struct buf *out)
{
    double max = cells_max(panels, count), step = LEFT + WIDTH + GAP;

    assert(count && count <= WHAT_IF_PANELS_MAX);
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" "
               "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
               (double)count * step, TOP + HEIGHT + FOOT);
    for (size_t i = 0; i < count; i++)
        panel_plot(&panels[i], LEFT + (double)i * step, max, out);
    legend_plot(max, LEFT, out);
    buf_append_text(out, "</svg>\n");
}
