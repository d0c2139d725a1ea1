/* The text of --help is written by a function of each command to standard output; here that is a
 * stream in memory for the time of the call. Its shape is the same for all: "Usage:" and its lines,
 * an empty line, text, "Options:" and lines of two blanks, the option, two blanks or more, and what
 * it means, which goes on in deeper lines. */
#include "cli/page.h"

#include <stdlib.h>

static struct slice help_text(const struct cli_command *command, struct arena *arena)
{
    FILE *terminal = stdout;
    struct slice text;
    char *bytes = NULL;
    size_t len = 0;

    fflush(stdout);
    stdout = open_memstream(&bytes, &len);
    if (!stdout) {
        stdout = terminal;
        return SLICE_NONE;
    }
    command->help();
    (void)fclose(stdout);
    stdout = terminal;
    text = arena_copy(arena, slice_of(bytes, len));
    free(bytes);
    return text;
}

static bool line_next(struct slice *rest, struct slice *ret_line)
{
    if (!rest->len)
        return false;
    if (!slice_split(*rest, '\n', ret_line, rest)) {
        *ret_line = *rest;
        *rest = SLICE_NONE;
    }
    return true;
}

static void usage_add(struct cli_page *page, struct slice line)
{
    if (page->usage_count < CLI_PAGE_USAGES_MAX)
        page->usages[page->usage_count++] = slice_trim(line);
}

/* --- Options --------------------------------------------------------------------------------- */

/* "  --endpoint URL       where the server is" */
static bool option_read(struct slice line, struct cli_page_option *ret_option)
{
    struct slice rest = slice_trim(line), head = rest, meaning = SLICE_NONE, value = SLICE_NONE;

    if (!slice_starts_with(line, SLICE("  -")))
        return false;
    for (size_t i = 0; i + 1 < rest.len; i++)
        if (rest.data[i] == ' ' && rest.data[i + 1] == ' ') {
            head = slice_first(rest, i);
            meaning = slice_trim(slice_skip(rest, i));
            break;
        }
    if (slice_starts_with(head, SLICE("-h, ")))
        head = slice_skip(head, 4);
    while (head.len && head.data[0] == '-')
        head = slice_skip(head, 1);
    (void)slice_split(head, ' ', &head, &value);
    if (head.len && head.data[head.len - 1] == ',')
        head.len--; /* "--dev, --no-dev": the other name is its value for now */
    *ret_option =
        (struct cli_page_option){.name = head, .value = slice_trim(value), .meaning = meaning};
    return head.len;
}

/* "--dev, --no-dev" are two. */
static void other_name_add(struct cli_page *page)
{
    struct cli_page_option *option = &page->options[page->option_count - 1];

    if (!slice_starts_with(option->value, SLICE("--")) ||
        page->option_count == CLI_PAGE_OPTIONS_MAX)
        return;
    page->options[page->option_count] = *option;
    page->options[page->option_count].name = slice_skip(option->value, 2);
    page->options[page->option_count++].value = SLICE_NONE;
    option->value = SLICE_NONE;
}

static void option_continue(struct cli_page *page, struct slice line, struct arena *arena)
{
    struct cli_page_option *option = &page->options[page->option_count - 1];

    option->meaning = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(option->meaning),
                                   option->meaning.len ? " " : "", SLICE_ARG(slice_trim(line)));
}

/* --- Verbs ----------------------------------------------------------------------------------- */

static bool is_verb(struct slice word)
{
    for (size_t i = 0; i < word.len; i++)
        if (!((word.data[i] >= 'a' && word.data[i] <= 'z') || word.data[i] == '-'))
            return false;
    return word.len && word.data[0] != '-';
}

/* "orrery item get ..." says that get is one. */
static void verbs_find(struct cli_page *page)
{
    for (size_t i = 0; i < page->usage_count; i++) {
        struct slice rest = page->usages[i], word;
        bool known = false;

        if (!slice_split(rest, ' ', &word, &rest) || !slice_split(rest, ' ', &word, &rest))
            continue;
        if (!slice_split(rest, ' ', &word, &rest))
            word = rest;
        for (size_t j = 0; j < page->verb_count; j++)
            known = known || slice_equal(page->verbs[j], word);
        if (!known && is_verb(word))
            page->verbs[page->verb_count++] = word;
    }
}

struct cli_page *cli_page_new(const struct cli_command *command, struct arena *arena)
{
    struct cli_page *page = ARENA_NEW(arena, struct cli_page);
    struct slice rest = help_text(command, arena), line;
    const uint8_t *text_begin = NULL;
    enum { USAGE, TEXT, OPTIONS } part = USAGE;

    page->command = command;
    while (line_next(&rest, &line)) {
        if (part == USAGE && slice_starts_with(line, SLICE("Usage:"))) {
            usage_add(page, slice_skip(line, 6));
        } else if (part == USAGE && slice_starts_with(slice_trim(line), SLICE("orrery "))) {
            usage_add(page, line);
        } else if (part != OPTIONS && slice_equal(line, SLICE("Options:"))) {
            part = OPTIONS;
        } else if (part == OPTIONS && page->option_count < CLI_PAGE_OPTIONS_MAX &&
                   option_read(line, &page->options[page->option_count])) {
            page->option_count++;
            other_name_add(page);
        } else if (part == OPTIONS && page->option_count &&
                   slice_starts_with(line, SLICE("    "))) {
            option_continue(page, line, arena);
        } else {
            part = part == OPTIONS ? OPTIONS : TEXT;
            if (part == TEXT) {
                if (!text_begin)
                    text_begin = line.data;
                page->text = slice_of(text_begin, (size_t)(line.data + line.len - text_begin));
            }
        }
    }
    verbs_find(page);
    return page;
}
