#include "cli/shell/complete.h"

#include "front/rest/sql/functions.h"

#include <dirent.h>
#include <stdlib.h>
#include <strings.h>

static const char *const keywords[] = {
    "AND",    "ARRAY",     "AS",     "ASC",   "BETWEEN", "BY",   "DESC", "DISTINCT",
    "EXISTS", "FALSE",     "FROM",   "GROUP", "IN",      "JOIN", "LIKE", "LIMIT",
    "NOT",    "NULL",      "OFFSET", "OR",    "ORDER",   "RANK", "TOP",  "TRUE",
    "UDF",    "UNDEFINED", "SELECT", "VALUE", "WHERE",
};

struct completing {
    struct shell *shell;
    struct arena *arena;
    struct slice typed;
    bool folded;        /* what was typed is in lower case: so are keywords and functions */
    const char *before; /* put before names that come from the server */
    struct shell_candidates *to;
};

static void offer(struct completing *completing, struct slice name)
{
    struct shell_candidates *to = completing->to;

    if (to->count == SHELL_CANDIDATES_MAX || name.len < completing->typed.len ||
        !slice_equal_nocase(slice_first(name, completing->typed.len), completing->typed))
        return;
    to->list[to->count++] = arena_copy(completing->arena, name);
}

static void offer_text(struct completing *completing, const char *text)
{
    offer(completing, slice_of_text(text));
}

/* A keyword or function, in the letters the word was begun with. */
static void offer_word(struct completing *completing, const char *word, const char *behind)
{
    struct slice name = arena_printf(completing->arena, "%s%s", word, behind);
    uint8_t *letters = (uint8_t *)(uintptr_t)name.data;

    for (size_t i = 0; completing->folded && i < name.len; i++)
        if (letters[i] >= 'A' && letters[i] <= 'Z')
            letters[i] |= 0x20;
    offer(completing, name);
}

static void offer_words(struct completing *completing, const struct shell_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        offer_text(completing, words->names[i]);
}

/* --- From the server ------------------------------------------------------------------------- */

static void resource_offer(void *context, struct slice resource)
{
    struct completing *completing = context;

    offer(completing, arena_printf(completing->arena, "%s%.*s", completing->before,
                                   SLICE_ARG(cli_answer_text(resource, "id"))));
}

/* DATABASE, and behind a slash CONTAINER. */
static void place_offer(struct completing *completing)
{
    struct slice database, rest;
    struct error ignored;

    completing->before = "";
    completing->to->open = true;
    if (!slice_split(completing->typed, '/', &database, &rest)) {
        (void)!shell_feed(&completing->shell->server, "dbs", SLICE(""), "Databases",
                          completing->arena, resource_offer, completing, &ignored);
        return;
    }
    completing->before =
        arena_text(completing->arena, slice_first(completing->typed, database.len + 1));
    (void)!shell_feed(&completing->shell->server, "colls",
                      arena_printf(completing->arena, "dbs/%.*s", SLICE_ARG(database)),
                      "DocumentCollections", completing->arena, resource_offer, completing,
                      &ignored);
}

/* --- Files ----------------------------------------------------------------------------------- */

static void files_offer(struct completing *completing)
{
    struct slice path = completing->typed;
    size_t folder = path.len;
    const char *open;
    struct dirent *entry;
    DIR *directory;

    while (folder > 0 && path.data[folder - 1] != '/')
        folder--;
    open = folder ? arena_text(completing->arena, slice_first(path, folder)) : ".";
    directory = opendir(open);
    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.')
            offer(completing, arena_printf(completing->arena, "%s%s%s", folder ? open : "",
                                           entry->d_name, entry->d_type == DT_DIR ? "/" : ""));
    if (directory)
        closedir(directory);
}

/* --- Which of them --------------------------------------------------------------------------- */

static void command_offer(struct completing *completing, struct slice line)
{
    struct slice command, rest;

    if (!slice_split(line, ' ', &command, &rest)) {
        for (size_t i = 0; shell_command_name(i); i++)
            offer_text(completing, shell_command_name(i));
    } else if (slice_equal(command, SLICE(".use")) || slice_equal(command, SLICE(".containers"))) {
        place_offer(completing);
    } else if (slice_equal(command, SLICE(".explain"))) {
        offer_text(completing, "on");
        offer_text(completing, "off");
    } else if (slice_equal(command, SLICE(".format"))) {
        for (size_t i = 0; i < ARRAY_LEN(shell_format_names); i++)
            offer_text(completing, shell_format_names[i]);
    } else if (slice_equal(command, SLICE(".set"))) {
        offer_words(completing, &completing->shell->parameters);
    } else if (completing->typed.len && completing->typed.data[0] == '-') {
        offer_text(completing, "--upsert");
        offer_text(completing, "--text");
    } else {
        files_offer(completing);
    }
}

static void query_offer(struct completing *completing, bool behind_dot)
{
    if (completing->typed.len && completing->typed.data[0] == '@') {
        offer_words(completing, &completing->shell->parameters);
        return;
    }
    offer_words(completing, &completing->shell->properties);
    completing->to->open = behind_dot;
    if (behind_dot)
        return;
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
        offer_word(completing, keywords[i], "");
    for (int i = 0; i < SQL_FUNCTION_COUNT_ALL; i++)
        if (sql_function((enum sql_function_id)i)->kind != SQL_FUNCTION_KIND_REFUSED)
            offer_word(completing, sql_function((enum sql_function_id)i)->name, "(");
}

static int order(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '@' || c == '$' || c >= 0x80;
}

void shell_complete(struct shell *shell, struct slice line, struct arena *arena,
                    struct shell_candidates *ret_candidates)
{
    struct completing completing = {.shell = shell, .arena = arena, .to = ret_candidates};
    bool command = line.len && line.data[0] == '.';
    size_t begin = line.len, kept = 0;

    *ret_candidates = (struct shell_candidates){0};
    while (begin > 0 && (command ? line.data[begin - 1] != ' ' : is_word(line.data[begin - 1])))
        begin--;
    completing.typed = slice_skip(line, begin);
    ret_candidates->typed = completing.typed.len;
    completing.folded = completing.typed.len > 0;
    for (size_t i = 0; i < completing.typed.len; i++)
        completing.folded = completing.folded &&
                            !(completing.typed.data[i] >= 'A' && completing.typed.data[i] <= 'Z');
    if (command)
        command_offer(&completing, line);
    else
        query_offer(&completing, begin > 0 && line.data[begin - 1] == '.');
    qsort(ret_candidates->list, ret_candidates->count, sizeof(struct slice), order);
    for (size_t i = 0; i < ret_candidates->count; i++)
        if (i == 0 || !slice_equal(ret_candidates->list[i], ret_candidates->list[i - 1]))
            ret_candidates->list[kept++] = ret_candidates->list[i];
    ret_candidates->count = kept;
}

struct slice shell_candidates_common(const struct shell_candidates *candidates)
{
    struct slice common = candidates->count ? candidates->list[0] : SLICE("");

    for (size_t i = 1; i < candidates->count; i++) {
        struct slice other = candidates->list[i];

        common.len = MIN(common.len, other.len);
        while (common.len && !slice_equal_nocase(common, slice_first(other, common.len)))
            common.len--;
    }
    return common;
}
