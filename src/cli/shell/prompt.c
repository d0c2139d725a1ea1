/* The prompt on libedit. Ctrl-C reaches us through a descriptor (shell.c blocks the signal), so the
 * function that waits for keys looks at both and no handler is needed. */
#include "cli/shell/complete.h"
#include "cli/shell/statement.h"
#include "cli/table.h"
#include "server/file.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_MAX = 1000, LISTED_MAX = 100 };

struct prompt {
    struct shell *shell;
    EditLine *edit;
    History *history;
    HistEvent event;
    char path[PATH_MAX]; /* of the history file; empty: it is not kept */
    char text[2 * SHELL_NAME_MAX + 16];
    struct shell_statements statements;
    bool interrupted;
};

/* --- History --------------------------------------------------------------------------------- */

/* Makes the directories of a path, for their owner only. */
static void directories_make(char *path)
{
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            (void)!mkdir(path, 0700);
            *at = '/';
        }
}

static void history_place(struct prompt *prompt)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (state && state[0] == '/')
        snprintf(prompt->path, sizeof prompt->path, "%s/orrery/history", state);
    else if (home && home[0] == '/')
        snprintf(prompt->path, sizeof prompt->path, "%s/.local/state/orrery/history", home);
}

/* Opens the file for its owner only, however it was made. */
static FILE *history_open(const struct prompt *prompt)
{
    int fd = open(prompt->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "a+") : NULL;

    if (file)
        (void)fchmod(fd, 0600);
    return file;
}

/* The file is text, a line for each entry, the newest last. *ret_lines: how many there are. */
static void history_load(struct prompt *prompt, FILE *file, size_t *ret_lines)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    *ret_lines = 0;
    rewind(file);
    while ((length = getline(&line, &size, file)) > 0) {
        line[length - (line[length - 1] == '\n')] = '\0';
        if (line[0])
            history(prompt->history, &prompt->event, H_ENTER, line);
        ++*ret_lines;
    }
    free(line);
}

/* It has grown over many sessions: only what was loaded is kept. */
static void history_shorten(struct prompt *prompt)
{
    CLEANUP(buf_done) struct buf text;
    struct error err;
    int found;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (found = history(prompt->history, &prompt->event, H_LAST); found >= 0;
         found = history(prompt->history, &prompt->event, H_PREV)) {
        buf_append_text(&text, prompt->event.str);
        BUF_APPEND(&text, "\n");
    }
    if (!buf_overflowed(&text) && !server_file_write_private(prompt->path, buf_slice(&text), &err))
        shell_say(prompt->shell, "history is not shortened: %s", err.message);
}

static void history_start(struct prompt *prompt)
{
    size_t lines;
    FILE *file;

    prompt->history = history_init();
    assert(prompt->history);
    history(prompt->history, &prompt->event, H_SETSIZE, HISTORY_MAX);
    history(prompt->history, &prompt->event, H_SETUNIQUE, 1);
    history_place(prompt);
    if (!prompt->path[0])
        return;
    directories_make(prompt->path);
    file = history_open(prompt);
    if (!file) {
        shell_say(prompt->shell, "history is not kept: file \"%s\" cannot be opened (%s)",
                  prompt->path, strerror(errno));
        prompt->path[0] = '\0';
        return;
    }
    history_load(prompt, file, &lines);
    fclose(file);
    if (lines > 2 * HISTORY_MAX)
        history_shorten(prompt);
}

/* Written at once, so that sessions side by side keep each other's. */
static void history_line(struct prompt *prompt, const char *text)
{
    FILE *file;

    history(prompt->history, &prompt->event, H_ENTER, text);
    if (!prompt->path[0] || !(file = history_open(prompt)))
        return;
    fprintf(file, "%s\n", text);
    fclose(file);
}

/* A statement becomes one line of history; one with a comment that ends with its line stays in
 * lines. */
static void history_add(struct prompt *prompt, struct slice statement)
{
    CLEANUP(memory_free) char *text = slice_to_text(statement);
    bool command = text[0] == '.';
    char *line = text, *end;

    if (!strstr(text, "--") || command) {
        size_t length = strlen(text);
        CLEANUP(memory_free) char *whole = memory_alloc(length + 2);

        for (size_t i = 0; i < length; i++)
            whole[i] = text[i] == '\n' ? ' ' : text[i];
        whole[length] = command ? '\0' : ';';
        whole[length + 1] = '\0';
        history_line(prompt, whole);
        return;
    }
    while ((end = strchr(line, '\n'))) {
        *end = '\0';
        if (line[0])
            history_line(prompt, line);
        line = end + 1;
    }
    history_line(prompt, line);
}

/* --- Keys ------------------------------------------------------------------------------------ */

static struct prompt *prompt_of(EditLine *edit)
{
    struct prompt *prompt = NULL;

    el_get(edit, EL_CLIENTDATA, &prompt);
    return prompt;
}

static char *prompt_text(EditLine *edit)
{
    struct prompt *prompt = prompt_of(edit);
    const struct shell *shell = prompt->shell;
    size_t width;

    snprintf(prompt->text, sizeof prompt->text, "%s%s%s> ",
             shell->database[0] ? shell->database : "orrery", shell->container[0] ? "/" : "",
             shell->container);
    if (shell_statements_open(&prompt->statements)) {
        width = cli_table_width(slice_of_text(prompt->text));
        snprintf(prompt->text, sizeof prompt->text, "%*s", (int)MIN(width, (size_t)200), "...> ");
    }
    return prompt->text;
}

/* One character, from however many bytes. 0: the end; -1: Ctrl-C, or it cannot be read. */
static int key_next(EditLine *edit, wchar_t *ret_key)
{
    struct prompt *prompt = prompt_of(edit);
    struct pollfd wait[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = prompt->shell->server.cancel, .events = POLLIN}};
    mbstate_t state = {0};

    for (int bytes = 0; bytes < (int)MB_CUR_MAX; bytes++) {
        size_t result;
        char c;

        if (poll(wait, ARRAY_LEN(wait), -1) < 0 && errno != EINTR)
            return -1;
        if (wait[1].revents) {
            prompt->interrupted = true;
            return -1;
        }
        if (read(STDIN_FILENO, &c, 1) != 1)
            return 0;
        result = mbrtowc(ret_key, &c, 1, &state);
        if (result <= 1)
            return 1;
        if (result == (size_t)-1) {
            *ret_key = L'?';
            return 1;
        }
    }
    return 0;
}

static void candidates_list(const struct shell_candidates *candidates)
{
    size_t width = 1, columns;

    for (size_t i = 0; i < candidates->count; i++)
        width = MAX(width, cli_table_width(candidates->list[i]) + 2);
    columns = MAX(shell_screen_width() / width, (size_t)1);
    putchar('\n');
    for (size_t i = 0; i < MIN(candidates->count, (size_t)LISTED_MAX); i++) {
        struct slice name = candidates->list[i];

        printf("%.*s%*s", SLICE_ARG(name), (int)(width - cli_table_width(name)), "");
        if ((i + 1) % columns == 0)
            putchar('\n');
    }
    if (candidates->count > LISTED_MAX)
        printf("and %zu more", candidates->count - LISTED_MAX);
    putchar('\n');
    fflush(stdout);
}

static int characters_of(struct slice text)
{
    int count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += (text.data[i] & 0xC0) != 0x80;
    return count;
}

/* Tab: the one candidate, or what all have in common, or the list of them. */
static unsigned char word_complete(EditLine *edit, int key UNUSED)
{
    struct prompt *prompt = prompt_of(edit);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shell_candidates *candidates = ARENA_NEW(arena, struct shell_candidates);
    const LineInfo *line = el_line(edit);
    struct slice before = slice_of(line->buffer, (size_t)(line->cursor - line->buffer)), common;
    struct slice open = buf_slice(&prompt->statements.text), typed;
    uint8_t last;

    /* A dot that begins a line within a query begins no command. */
    if (shell_statements_open(&prompt->statements))
        before = arena_printf(arena, "%.*s%.*s", SLICE_ARG(open), SLICE_ARG(before));
    shell_complete(prompt->shell, before, arena, candidates);
    if (candidates->count == 0)
        return CC_REFRESH_BEEP;
    common = shell_candidates_common(candidates);
    typed = slice_skip(before, before.len - candidates->typed);
    if (candidates->count > 1 && common.len <= candidates->typed) {
        candidates_list(candidates);
        return CC_REDISPLAY;
    }
    last = common.data[common.len - 1];
    el_deletestr(edit, characters_of(typed));
    el_insertstr(edit, arena_text(arena, common));
    if (candidates->count == 1 && !candidates->open && last != '(' && last != '/')
        el_insertstr(edit, " ");
    return CC_REFRESH;
}

/* --- The loop -------------------------------------------------------------------------------- */

static void statements_run(struct prompt *prompt, struct slice line)
{
    struct slice statement;

    shell_statements_feed(&prompt->statements, line);
    while (!prompt->shell->ended && shell_statement_next(&prompt->statements, &statement)) {
        if (buf_overflowed(&prompt->statements.text)) {
            shell_say(prompt->shell, "a query may have %d bytes at most", SHELL_STATEMENT_MAX);
            shell_statements_forget(&prompt->statements);
            return;
        }
        history_add(prompt, statement);
        (void)shell_statement_run(prompt->shell, statement);
        shell_cancel_clear(prompt->shell);
    }
}

/* False: the end of input. */
static bool line_take(struct prompt *prompt)
{
    int count = 0;
    const char *line;

    prompt->interrupted = false;
    el_resize(prompt->edit);
    line = el_gets(prompt->edit, &count);
    if (prompt->interrupted) {
        shell_cancel_clear(prompt->shell);
        shell_statements_forget(&prompt->statements);
        el_reset(prompt->edit);
        printf("^C\n");
        return true;
    }
    if (!line || count <= 0)
        return false;
    if (line[count - 1] == '\n')
        count--;
    statements_run(prompt, slice_of(line, (size_t)count));
    return true;
}

static void edit_start(struct prompt *prompt)
{
    prompt->edit = el_init("orrery", stdin, stdout, stderr);
    assert(prompt->edit);
    el_set(prompt->edit, EL_CLIENTDATA, prompt);
    el_set(prompt->edit, EL_PROMPT, prompt_text);
    el_set(prompt->edit, EL_EDITOR, "emacs");
    el_set(prompt->edit, EL_SIGNAL, 0);
    el_set(prompt->edit, EL_HIST, history, prompt->history);
    /* The wide form, since the other one keeps copies that nobody frees. */
    el_wset(prompt->edit, EL_ADDFN, L"orrery-complete", L"complete the word", word_complete);
    el_set(prompt->edit, EL_BIND, "^I", "orrery-complete", NULL);
    el_set(prompt->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(prompt->edit, NULL);
    el_set(prompt->edit, EL_GETCFN, key_next);
}

bool shell_prompt_run(struct shell *shell)
{
    struct prompt prompt = {.shell = shell};

    shell_statements_init(&prompt.statements, true);
    history_start(&prompt);
    edit_start(&prompt);
    printf("Orrery %s. .help lists commands, Ctrl-D leaves.\n", ORRERY_VERSION);
    while (!shell->ended && line_take(&prompt))
        ;
    if (!shell->ended)
        putchar('\n');
    el_end(prompt.edit);
    history_end(prompt.history);
    shell_statements_done(&prompt.statements);
    return true;
}
