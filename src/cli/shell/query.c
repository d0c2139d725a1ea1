/* One query of the shell: its pages are shown as they come, then what they cost. */
#include "base/clock.h"
#include "cli/shell/explain.h"
#include "cli/shell/pages.h"
#include "cli/shell/progress.h"
#include "cli/shell/rows.h"

enum { PAGE_ROWS_SHOWN = 100, PAGE_ROWS_PIPED = 1000 };

struct shown {
    uint64_t pages;
    double charge;
    int64_t ms;   /* waited for the server */
    bool stopped; /* nobody wanted to see the rest */
    struct shell_explained explained;
};

static void charge_say(const struct shell *shell, const struct shell_rows *rows,
                       const struct shown *shown)
{
    char count[SHELL_COUNT_SIZE];

    if (shell->quiet)
        return;
    fprintf(shell_messages(shell), "(%s%s row%s, %.2f RU, %lld ms",
            shown->stopped ? "stopped after reading " : "", shell_count(rows->count, count),
            PLURAL(rows->count), shown->charge, (long long)shown->ms);
    if (shown->pages > 1)
        fprintf(shell_messages(shell), ", %llu pages", (unsigned long long)shown->pages);
    fputs(")\n", shell_messages(shell));
}

bool shell_fault_say(const struct shell *shell, const struct shell_fault *fault, struct slice query,
                     const struct error *err)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!fault->message.len)
        return shell_say(shell, "%s", err->message);
    shell_fault_show(fault, query, &text);
    if (fault->code.len)
        shell_say(shell, "%.*s (%.*s)", SLICE_ARG(fault->message), SLICE_ARG(fault->code));
    else
        shell_say(shell, "%.*s", SLICE_ARG(fault->message));
    fwrite(text.data, 1, text.len, stderr);
    return false;
}

static bool pages_show(struct shell_pages *pages, struct shell_rows *rows, struct shown *shown,
                       struct arena *kept)
{
    CLEANUP(arena_free) struct arena *odd = arena_new();
    CLEANUP(arena_free) struct arena *even = arena_new();

    while (!pages->ended && !shown->stopped) {
        struct arena *arena = shown->pages % 2 ? odd : even;
        struct shell_fault fault;
        struct shell_page page;
        int64_t begun = clock_monotonic_ms();
        struct error err;

        arena_reset(arena);
        if (!shell_pages_next(pages, arena, &page, &fault, &err))
            return shell_fault_say(rows->shell, &fault, pages->text, &err);
        shown->ms += clock_monotonic_ms() - begun;
        shown->pages++;
        shown->charge += page.charge;
        if (pages->explain)
            shell_explained_add(&shown->explained, page.explain, kept);
        shown->stopped = !shell_rows_show(rows, page.rows);
    }
    return true;
}

bool shell_query_run(struct shell *shell, struct slice text)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shell_rows rows = {.shell = shell};
    struct shell_pages pages = {.server = &shell->server,
                                .database = slice_of_text(shell->database),
                                .container = slice_of_text(shell->container),
                                .text = text,
                                .parameters = shell_parameters_json(shell, arena),
                                .rows_max =
                                    shell->screen.terminal ? PAGE_ROWS_SHOWN : PAGE_ROWS_PIPED,
                                .explain = shell->explain};
    struct shown shown = {0};
    struct error err;
    bool good;

    if (!shell_need_container(shell, &err))
        return shell_say(shell, "%s", err.message);
    shell_screen_begin(&shell->screen);
    good = pages_show(&pages, &rows, &shown, arena);
    if (good || shown.pages) {
        shell_rows_end(&rows);
        fflush(stdout);
        charge_say(shell, &rows, &shown);
    }
    if (good && shell->explain)
        shell_explained_print(&shown.explained, shell_messages(shell));
    return good;
}
