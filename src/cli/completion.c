/* Completions of shells, from what --help prints: commands, their verbs and their options. */
#include "cli/page.h"

static void quoted(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\'')
            BUF_APPEND(out, "'\\''");
        else
            buf_append_byte(out, text.data[i]);
}

static void words_append(struct buf *out, const struct cli_page *page)
{
    for (size_t i = 0; i < page->verb_count; i++)
        buf_printf(out, "%.*s ", SLICE_ARG(page->verbs[i]));
}

static void options_append(struct buf *out, const struct cli_page *page)
{
    for (size_t i = 0; i < page->option_count; i++)
        buf_printf(out, "--%.*s ", SLICE_ARG(page->options[i].name));
}

static void bash_print(struct buf *out)
{
    BUF_APPEND(out, "# bash completion for orrery, made by `orrery help completion bash`\n"
                    "_orrery() {\n"
                    "    local current=\"${COMP_WORDS[COMP_CWORD]}\" words= options=\n"
                    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                    "        words='");
    for (const struct cli_command *command = cli_commands; command->name; command++)
        buf_printf(out, "%s ", command->name);
    BUF_APPEND(out, "'\n        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                    "        return\n"
                    "    fi\n"
                    "    case \"${COMP_WORDS[1]}\" in\n");
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        const struct cli_page *page = cli_page_new(command, arena);

        buf_printf(out, "    %s) words='", command->name);
        words_append(out, page);
        BUF_APPEND(out, "' options='");
        options_append(out, page);
        BUF_APPEND(out, "' ;;\n");
    }
    BUF_APPEND(out, "    esac\n"
                    "    case \"$current\" in\n"
                    "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
                    "    *) if [ \"$COMP_CWORD\" -eq 2 ] && [ -n \"$words\" ]; then\n"
                    "           COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                    "       else\n"
                    "           COMPREPLY=($(compgen -f -- \"$current\"))\n"
                    "       fi ;;\n"
                    "    esac\n"
                    "}\n"
                    "complete -o filenames -F _orrery orrery\n");
}

static void zsh_print(struct buf *out)
{
    BUF_APPEND(out, "#compdef orrery\n"
                    "# zsh completion for orrery, made by `orrery help completion zsh`\n"
                    "_orrery() {\n"
                    "    local -a commands words options\n"
                    "    commands=(\n");
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        buf_printf(out, "        '%s:", command->name);
        quoted(out, slice_of_text(command->summary));
        BUF_APPEND(out, "'\n");
    }
    BUF_APPEND(out, "    )\n"
                    "    if (( CURRENT == 2 )); then\n"
                    "        _describe command commands\n"
                    "        return\n"
                    "    fi\n"
                    "    case ${(Q)${(z)BUFFER}[2]} in\n");
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        const struct cli_page *page = cli_page_new(command, arena);

        buf_printf(out, "    %s) words=(", command->name);
        words_append(out, page);
        BUF_APPEND(out, ") options=(");
        options_append(out, page);
        BUF_APPEND(out, ") ;;\n");
    }
    BUF_APPEND(out, "    esac\n"
                    "    if [[ $PREFIX == -* ]]; then\n"
                    "        compadd -a options\n"
                    "    elif (( CURRENT == 3 && $#words )); then\n"
                    "        compadd -a words\n"
                    "    else\n"
                    "        _files\n"
                    "    fi\n"
                    "}\n"
                    "_orrery \"$@\"\n");
}

static void fish_command_print(const struct cli_command *command, struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct cli_page *page = cli_page_new(command, arena);

    buf_printf(out, "complete -c orrery -f -n __fish_use_subcommand -a %s -d '", command->name);
    quoted(out, slice_of_text(command->summary));
    BUF_APPEND(out, "'\n");
    for (size_t i = 0; i < page->verb_count; i++)
        buf_printf(out, "complete -c orrery -f -n '__fish_seen_subcommand_from %s' -a '%.*s'\n",
                   command->name, SLICE_ARG(page->verbs[i]));
    for (size_t i = 0; i < page->option_count; i++) {
        buf_printf(out, "complete -c orrery -n '__fish_seen_subcommand_from %s' -l %.*s%s -d '",
                   command->name, SLICE_ARG(page->options[i].name),
                   page->options[i].value.len ? " -r" : "");
        quoted(out, page->options[i].meaning);
        BUF_APPEND(out, "'\n");
    }
}

static void fish_print(struct buf *out)
{
    BUF_APPEND(out, "# fish completion for orrery, made by `orrery help completion fish`\n");
    for (const struct cli_command *command = cli_commands; command->name; command++)
        fish_command_print(command, out);
}

bool cli_completion_print(const char *shell, struct buf *out)
{
    if (strcmp(shell, "bash") == 0)
        bash_print(out);
    else if (strcmp(shell, "zsh") == 0)
        zsh_print(out);
    else if (strcmp(shell, "fish") == 0)
        fish_print(out);
    else
        return false;
    return true;
}
