#include "cases/script.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINES_MAX = 4096 };

struct reader {
    const char *path;
    struct slice rest;
    unsigned line; /* of the block being read */
    unsigned next; /* line number of rest */
    struct arena *arena;
    struct script script;
    size_t room;
    const struct script_world *world;
};

static void broken(const struct reader *reader, const char *what)
{
    fprintf(stderr, "%s:%u: %s\n", reader->path, reader->line, what);
    exit(2);
}

static bool line_take(struct reader *reader, struct slice *ret_line)
{
    if (!reader->rest.len)
        return false;
    if (!slice_split(reader->rest, '\n', ret_line, &reader->rest)) {
        *ret_line = reader->rest;
        reader->rest = SLICE_NONE;
    }
    reader->next++;
    return true;
}

static bool is_comment(struct slice line)
{
    return slice_starts_with(line, SLICE("#"));
}

/* The lines up to the next blank one, without comments. */
static size_t block_take(struct reader *reader, struct slice lines[LINES_MAX])
{
    struct slice line;
    size_t count = 0;

    while (line_take(reader, &line)) {
        if (is_comment(line))
            continue;
        if (!slice_trim(line).len) {
            if (count)
                break;
            continue;
        }
        if (!count)
            reader->line = reader->next - 1;
        if (count == LINES_MAX)
            broken(reader, "a block of too many lines");
        lines[count++] = line;
    }
    return count;
}

static struct script_case *case_add(struct reader *reader)
{
    struct script *script = &reader->script;
    struct script_case *added;

    if (script->count == reader->room) {
        struct script_case *grown;

        reader->room = reader->room ? reader->room * 2 : 64;
        grown = ARENA_ARRAY(reader->arena, struct script_case, reader->room);
        if (script->count)
            memcpy(grown, script->cases, script->count * sizeof *grown);
        script->cases = grown;
    }
    added = &script->cases[script->count++];
    *added = (struct script_case){.world = reader->world, .line = reader->line};
    return added;
}

static struct slice *lines_copy(struct reader *reader, const struct slice *lines, size_t count)
{
    struct slice *copy = ARENA_ARRAY(reader->arena, struct slice, count + 1);

    if (count)
        memcpy(copy, lines, count * sizeof *copy);
    return copy;
}

static void world_read(struct reader *reader, const struct slice *lines, size_t count)
{
    struct script_world *world = ARENA_NEW(reader->arena, struct script_world);
    struct slice kind = slice_trim(lines[0]);

    if (slice_equal(kind, SLICE("documents"))) {
        world->documents = lines_copy(reader, lines + 1, count - 1);
        world->document_count = count - 1;
    } else {
        if (count != 2)
            broken(reader, "computed, policy and vectors have one line of JSON");
        *world = *reader->world;
        if (slice_equal(kind, SLICE("computed")))
            world->computed = lines[1];
        else if (slice_equal(kind, SLICE("vectors")))
            world->vectors = lines[1];
        else
            world->policy = lines[1];
    }
    reader->world = world;
}

static bool expect_error(struct slice text, struct script_case *to)
{
    if (!slice_starts_with(text, SLICE("error")))
        return false;
    to->expect = SCRIPT_ERROR;
    to->error = slice_trim(slice_skip(text, 5));
    return true;
}

/* The last place of mark in the line: an expression may hold one too, in a text. */
static bool split_last(struct slice line, struct slice mark, struct slice *ret_head,
                       struct slice *ret_tail)
{
    for (size_t at = line.len; at-- > 0;) {
        if (slice_starts_with(slice_skip(line, at), mark)) {
            *ret_head = slice_first(line, at);
            *ret_tail = slice_skip(line, at + mark.len);
            return true;
        }
    }
    return false;
}

static bool expression_read(struct reader *reader, struct slice line)
{
    struct slice head, tail;
    struct script_case *made;
    bool near = split_last(line, SLICE(" ~> "), &head, &tail);

    if (!near && !split_last(line, SLICE(" => "), &head, &tail))
        return false;
    made = case_add(reader);
    made->query = arena_printf(reader->arena, "SELECT VALUE %.*s", SLICE_ARG(head));
    tail = slice_trim(tail);
    if (expect_error(tail, made))
        return true;
    made->expect = near ? SCRIPT_NEAR : SCRIPT_ROWS;
    made->row_count = slice_equal(tail, SLICE("undefined")) ? 0 : 1;
    made->rows = lines_copy(reader, &tail, 1);
    return true;
}

static size_t parameters_read(struct reader *reader, const struct slice *lines, size_t count,
                              struct slice *ret_json)
{
    struct slice json = SLICE("["), head, tail;
    size_t taken = 0;

    for (; taken < count && slice_starts_with(lines[taken], SLICE("@")); taken++) {
        if (!slice_split(lines[taken], '=', &head, &tail))
            broken(reader, "a parameter is written @name = value");
        head = slice_trim(head);
        json = arena_printf(reader->arena, "%.*s%s{\"name\":\"%.*s\",\"value\":%.*s}",
                            SLICE_ARG(json), taken ? "," : "", SLICE_ARG(head), SLICE_ARG(tail));
    }
    *ret_json = arena_printf(reader->arena, "%.*s]", SLICE_ARG(json));
    return taken;
}

static void mark_read(struct reader *reader, struct slice mark, struct script_case *to)
{
    struct slice word = slice_trim(slice_skip(mark, 4));
    uint64_t number;

    if (slice_starts_with(word, SLICE("count ")) &&
        slice_to_uint64(slice_trim(slice_skip(word, 6)), &number)) {
        to->expect = SCRIPT_COUNT;
        to->count = (size_t)number;
    } else if (slice_equal(word, SLICE("set"))) {
        to->sets = true;
    } else if (slice_equal(word, SLICE("documents"))) {
        to->documents_only = true;
    } else if (slice_equal(word, SLICE("containers"))) {
        to->containers_only = true;
    } else if (word.len) {
        broken(reader, "what is behind ---- is not known");
    }
}

static void query_read(struct reader *reader, const struct slice *lines, size_t count)
{
    struct script_case *made = case_add(reader);
    size_t at = parameters_read(reader, lines, count, &made->parameters);

    for (; at < count && !slice_starts_with(lines[at], SLICE("----")); at++)
        made->query = made->query.len ? arena_printf(reader->arena, "%.*s\n%.*s",
                                                     SLICE_ARG(made->query), SLICE_ARG(lines[at]))
                                      : lines[at];
    if (at == count)
        broken(reader, "a query without ---- behind it");
    mark_read(reader, lines[at++], made);
    if (at < count && expect_error(slice_trim(lines[at]), made))
        return;
    made->rows = lines_copy(reader, lines + at, count - at);
    made->row_count = count - at;
}

static bool is_expressions(const struct slice *lines, size_t count)
{
    struct slice head, tail;

    for (size_t i = 0; i < count; i++)
        if (slice_starts_with(lines[i], SLICE("----")))
            return false;
    return split_last(lines[0], SLICE(" => "), &head, &tail) ||
           split_last(lines[0], SLICE(" ~> "), &head, &tail);
}

static void block_read(struct reader *reader, const struct slice *lines, size_t count)
{
    struct slice first = slice_trim(lines[0]);

    if (slice_equal(first, SLICE("documents")) || slice_equal(first, SLICE("computed")) ||
        slice_equal(first, SLICE("policy")) || slice_equal(first, SLICE("vectors"))) {
        world_read(reader, lines, count);
        return;
    }
    if (!is_expressions(lines, count)) {
        query_read(reader, lines, count);
        return;
    }
    for (size_t i = 0; i < count; i++, reader->line++)
        if (!expression_read(reader, lines[i]))
            broken(reader, "an expression is written expression => value");
}

struct script script_read(const char *path, struct slice text, struct arena *arena)
{
    struct reader reader = {.path = path, .rest = text, .next = 1, .arena = arena};
    struct slice *lines = ARENA_ARRAY(arena, struct slice, LINES_MAX);
    size_t count;

    reader.world = ARENA_NEW(arena, struct script_world);
    while ((count = block_take(&reader, lines)) > 0)
        block_read(&reader, lines, count);
    return reader.script;
}
