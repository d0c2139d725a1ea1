#include "cli/shell/progress.h"

#include <unistd.h>

enum { BAR_CELLS = 24, DRAW_MS = 100 };

const char *shell_count(uint64_t number, char text[SHELL_COUNT_SIZE])
{
    char *at = text + SHELL_COUNT_SIZE - 1;

    *at = '\0';
    for (unsigned digits = 0; digits == 0 || number; digits++) {
        if (digits && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + number % 10);
        number /= 10;
    }
    return at;
}

void shell_progress_begin(struct shell_progress *progress, const char *doing, const char *done,
                          bool quiet, int64_t now_ms)
{
    *progress = (struct shell_progress){.doing = doing,
                                        .done = done,
                                        .quiet = quiet,
                                        .terminal = !quiet && isatty(STDERR_FILENO),
                                        .begun_ms = now_ms,
                                        .share = -1};
}

static uint64_t per_second(const struct shell_progress *progress, int64_t now_ms)
{
    int64_t spent = now_ms - progress->begun_ms;

    return spent > 0 ? progress->items * 1000 / (uint64_t)spent : progress->items;
}

void shell_progress_show(struct shell_progress *progress, int64_t now_ms)
{
    char items[SHELL_COUNT_SIZE], rate[SHELL_COUNT_SIZE];
    double share = progress->share > 1 ? 1 : progress->share;

    if (!progress->terminal || now_ms - progress->drawn_ms < DRAW_MS)
        return;
    progress->drawn_ms = now_ms;
    fprintf(stderr, "\r%s ", progress->doing);
    if (share >= 0) {
        fputc('[', stderr);
        for (int i = 0; i < BAR_CELLS; i++)
            fputc(i < share * BAR_CELLS ? '#' : '-', stderr);
        fprintf(stderr, "] %3.0f%% ", share * 100);
    }
    fprintf(stderr, " %s items  %s/s  %.2f RU", shell_count(progress->items, items),
            shell_count(per_second(progress, now_ms), rate), progress->charge);
    if (progress->throttled)
        fprintf(stderr, "  %llu x 429", (unsigned long long)progress->throttled);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void shell_progress_clear(const struct shell_progress *progress)
{
    if (progress->terminal)
        fputs("\r\033[K", stderr);
}

void shell_progress_end(struct shell_progress *progress, int64_t now_ms)
{
    char items[SHELL_COUNT_SIZE], rate[SHELL_COUNT_SIZE];

    shell_progress_clear(progress);
    if (progress->json)
        fprintf(progress->json,
                "{\"items\":%llu,\"failed\":%llu,\"throttled\":%llu,\"ru\":%.2f,"
                "\"elapsedMs\":%lld}\n",
                (unsigned long long)progress->items, (unsigned long long)progress->failed,
                (unsigned long long)progress->throttled, progress->charge,
                (long long)(now_ms - progress->begun_ms));
    if (progress->quiet || progress->json)
        return;
    fprintf(stderr, "%s %s item%s in %.1f s (%s/s), %.2f RU", progress->done,
            shell_count(progress->items, items), PLURAL(progress->items),
            (double)(now_ms - progress->begun_ms) / 1000,
            shell_count(per_second(progress, now_ms), rate), progress->charge);
    if (progress->throttled)
        fprintf(stderr, ", waited %llu time%s for throughput",
                (unsigned long long)progress->throttled, PLURAL(progress->throttled));
    if (progress->failed)
        fprintf(stderr, ", %llu failed", (unsigned long long)progress->failed);
    fputc('\n', stderr);
}
