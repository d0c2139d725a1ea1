/* Manual pages, from what --help prints. */
#include "cli/page.h"

/* Roff takes a hyphen for a dash, a backslash for itself, and a dot or quote at the beginning of a
 * line for an order. */
static void roff(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];

        if (i == 0 && (c == '.' || c == '\''))
            BUF_APPEND(out, "\\&");
        if (c == '-')
            BUF_APPEND(out, "\\-");
        else if (c == '\\')
            BUF_APPEND(out, "\\e");
        else
            buf_append_byte(out, c);
    }
}

static void heading(struct buf *out, const char *name, struct slice summary)
{
    CLEANUP(buf_done) struct buf upper;

    buf_init(&upper, 256);
    for (const char *at = name; *at; at++)
        buf_append_byte(&upper, (uint8_t)(*at >= 'a' && *at <= 'z' ? *at - 32 : *at));
    BUF_APPEND(out, ".TH \"");
    roff(out, buf_slice(&upper));
    BUF_APPEND(out, "\" 1 \"\" \"Orrery " ORRERY_VERSION "\" \"Orrery\"\n.SH NAME\n");
    roff(out, slice_of_text(name));
    BUF_APPEND(out, " \\- ");
    roff(out, summary);
    BUF_APPEND(out, "\n");
}

static void options_print(const struct cli_page *page, struct buf *out)
{
    if (!page->option_count)
        return;
    BUF_APPEND(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < page->option_count; i++) {
        const struct cli_page_option *option = &page->options[i];

        BUF_APPEND(out, ".TP\n.B \\-\\-");
        roff(out, option->name);
        if (option->value.len) {
            BUF_APPEND(out, " ");
            roff(out, option->value);
        }
        BUF_APPEND(out, "\n");
        roff(out, option->meaning);
        BUF_APPEND(out, "\n");
    }
}

static void text_print(struct slice text, struct buf *out)
{
    struct slice rest = text, line;

    BUF_APPEND(out, ".SH DESCRIPTION\n.nf\n");
    while (rest.len) {
        if (!slice_split(rest, '\n', &line, &rest)) {
            line = rest;
            rest = SLICE_NONE;
        }
        roff(out, line);
        BUF_APPEND(out, "\n");
    }
    BUF_APPEND(out, ".fi\n");
}

static void command_print(const struct cli_command *command, struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct cli_page *page = cli_page_new(command, arena);
    struct slice name = arena_printf(arena, "orrery-%s", command->name);

    heading(out, arena_text(arena, name), slice_of_text(command->summary));
    BUF_APPEND(out, ".SH SYNOPSIS\n.nf\n");
    for (size_t i = 0; i < page->usage_count; i++) {
        roff(out, page->usages[i]);
        BUF_APPEND(out, "\n");
    }
    BUF_APPEND(out, ".fi\n");
    text_print(page->text, out);
    options_print(page, out);
    BUF_APPEND(out, ".SH \"EXIT STATUS\"\n0: done; 1: it failed; 2: it was called wrongly.\n"
                    ".SH \"SEE ALSO\"\n.BR orrery (1)\n");
}

static void overview_print(struct buf *out)
{
    heading(out, "orrery", SLICE("a partitioned, multi-model database server"));
    BUF_APPEND(out, ".SH SYNOPSIS\n.B orrery\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n"
                    "Orrery is a database server that clients of Azure Cosmos DB speak to, and the "
                    "command that starts and administers it.\n.SH COMMANDS\n");
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        buf_printf(out, ".TP\n.BR orrery\\-");
        roff(out, slice_of_text(command->name));
        BUF_APPEND(out, " (1)\n");
        roff(out, slice_of_text(command->summary));
        BUF_APPEND(out, "\n");
    }
    BUF_APPEND(out,
               ".SH ENVIRONMENT\n.TP\n.B ORRERY_ENDPOINT\nwhere the server is\n.TP\n"
               ".B ORRERY_KEY\na read\\-write key of the account\n.TP\n.B ORRERY_DEV\ntrue: the "
               "public emulator key\n.TP\n.B ORRERY_PROFILE\na section of the file of profiles\n"
               ".TP\n.B ORRERY_SECTION_NAME\na setting of the server: "
               ".BR \"orrery help settings\"\n"
               ".SH FILES\n.TP\n.I ~/.config/orrery/profiles\nservers by name\n.TP\n"
               ".I /etc/orrery/orrery.conf\nsettings of the packaged service\n");
}

void cli_man_print(const struct cli_command *command, struct buf *out)
{
    if (command)
        command_print(command, out);
    else
        overview_print(out);
}
