/* Two sessions step by step, in orders that matter. A story is a list of lines
 *
 *     who what arguments -> outcome
 *
 * where who is s1 or s2, each with a transaction of its own, or plain, which does one operation of
 * items.h. An outcome is "ok", what was read, or the name of an error; a line without one expects
 * ok. Items have a value v; p and q are logical partitions.
 *
 *     s1 begin p          s1 read a           s1 create a 1       s1 scan, s1 scan-rely
 *     s1 enter q          s1 rely a           s1 delete a         s1 commit
 *     plain read p a      plain upsert p a 1  plain delete p a    plain move p a q 1 */
#include "document/bson.h"
#include "support/check.h"
#include "support/scratch.h"
#include "support/space.h"

#include <stdio.h>

enum { SESSIONS = 2, WORDS_MAX = 8, OUTCOME_SIZE = 200 };

struct stage {
    struct test_space test;
    struct arena *arena;
    struct transaction *sessions[SESSIONS];
    char logical[SESSIONS]; /* where each session is */
};

/* The words of one line, and what came of it. */
struct line {
    char text[100];
    const char *words[WORDS_MAX];
    size_t count;
    const char *expected;
    char outcome[OUTCOME_SIZE];
};

static const char *word(const struct line *line, size_t at)
{
    if (at >= line->count)
        fail_msg("\"%s\" lacks an argument", line->words[0]);
    return line->words[at];
}

static struct partition_key key_of(struct stage *stage, char logical)
{
    char json[8];

    snprintf(json, sizeof json, "[\"%c\"]", logical);
    return test_space_key(&stage->test, json);
}

static struct slice logical_of(struct stage *stage, char logical)
{
    struct partition_key key = key_of(stage, logical);

    return item_logical(&stage->test.definition.key, &key, stage->arena);
}

static struct slice document_with(struct stage *stage, char logical, const char *id,
                                  const char *value)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), slice_of_text(id));
    document_append_string(&buf, SLICE("pk"), slice_of(&logical, 1));
    document_append_string(&buf, SLICE("v"), slice_of_text(value));
    document_end(&buf, begin);
    return arena_copy(stage->arena, buf_slice(&buf));
}

static struct slice value_in(const struct item *item)
{
    struct document_value value;

    if (!item || !document_find(item->document, SLICE("v"), &value))
        return SLICE("none");
    return value.text;
}

static void outcome_set(struct line *line, bool done, const struct error *err)
{
    snprintf(line->outcome, sizeof line->outcome, "%s", done ? "ok" : error_face(err->code)->name);
}

static bool verb_find(const char *text, enum transaction_verb *ret_verb)
{
    static const char *const names[] = {"create", "replace", "upsert", "delete"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_verb = (enum transaction_verb)i;
            return true;
        }
    return false;
}

/* --- Sessions -------------------------------------------------------------------------------- */

static void session_scan(struct stage *stage, struct transaction *transaction, struct line *line)
{
    bool rely = strcmp(line->words[1], "scan-rely") == 0;
    struct transaction_page page;
    struct error err;
    size_t len = 0;

    (void)stage;
    if (!transaction_scan(transaction, SLICE(""), 100, rely, &page, &err)) {
        outcome_set(line, false, &err);
        return;
    }
    snprintf(line->outcome, sizeof line->outcome, "none");
    for (size_t i = 0; i < page.count; i++)
        len += (size_t)snprintf(line->outcome + len, sizeof line->outcome - len, "%s%.*s",
                                i ? " " : "", SLICE_ARG(value_in(&page.items[i])));
}

static void session_read(struct transaction *transaction, struct line *line)
{
    struct document_value id = document_string(slice_of_text(word(line, 2)));
    const struct item *item;
    struct error err;

    if (!transaction_read(transaction, &id, &item, &err))
        outcome_set(line, false, &err);
    else
        snprintf(line->outcome, sizeof line->outcome, "%.*s", SLICE_ARG(value_in(item)));
}

static void session_write(struct stage *stage, size_t session, enum transaction_verb verb,
                          struct line *line)
{
    struct document_value id = document_string(slice_of_text(word(line, 2)));
    struct slice document =
        verb == TRANSACTION_DELETE
            ? SLICE_NONE
            : document_with(stage, stage->logical[session], word(line, 2), word(line, 3));
    struct error err;

    outcome_set(line, transaction_write(stage->sessions[session], &id, verb, document, NULL, &err),
                &err);
}

static void session_place(struct stage *stage, size_t session, struct line *line)
{
    char name = word(line, 2)[0];
    struct slice logical = logical_of(stage, name);
    struct item_scope scope = item_space_scope(&stage->test.space, logical);
    struct error err;

    stage->logical[session] = name;
    if (strcmp(line->words[1], "enter") == 0) {
        outcome_set(line, transaction_enter(stage->sessions[session], &scope, logical, &err), &err);
        return;
    }
    transaction_free(TAKE(stage->sessions[session]));
    outcome_set(line,
                transaction_begin(&scope, logical, stage->arena, &stage->sessions[session], &err),
                &err);
}

static void session_run(struct stage *stage, size_t session, struct line *line)
{
    const char *what = word(line, 1);
    struct transaction *transaction = stage->sessions[session];
    enum transaction_verb verb;
    struct error err;

    if (strcmp(what, "begin") == 0 || strcmp(what, "enter") == 0) {
        session_place(stage, session, line);
    } else if (verb_find(what, &verb)) {
        session_write(stage, session, verb, line);
    } else if (strcmp(what, "read") == 0) {
        session_read(transaction, line);
    } else if (strcmp(what, "rely") == 0) {
        struct document_value id = document_string(slice_of_text(word(line, 2)));

        session_read(transaction, line);
        transaction_rely(transaction, &id);
    } else if (strncmp(what, "scan", 4) == 0) {
        session_scan(stage, transaction, line);
    } else if (strcmp(what, "commit") == 0) {
        outcome_set(line, transaction_commit(transaction, &err), &err);
    } else {
        fail_msg("a session cannot \"%s\"", what);
    }
}

/* --- Plain operations ------------------------------------------------------------------------ */

static void plain_run(struct stage *stage, struct line *line)
{
    const char *what = word(line, 1), *id_text = word(line, 3);
    char logical = word(line, 2)[0];
    struct item_operation op = {.space = &stage->test.space,
                                .arena = stage->arena,
                                .key = key_of(stage, logical),
                                .id = document_string(slice_of_text(id_text))};
    enum transaction_verb verb;
    struct error err;

    if (verb_find(what, &verb)) {
        op.verb = item_verb_of(verb);
        if (verb != TRANSACTION_DELETE)
            op.document = document_with(stage, logical, id_text, word(line, 4));
        outcome_set(line, item_operation_run(&op, &err), &err);
    } else if (strcmp(what, "move") == 0) {
        char target = word(line, 4)[0];
        struct partition_key to = key_of(stage, target);

        op.document = document_with(stage, target, id_text, word(line, 5));
        outcome_set(line, item_operation_move(&op, &to, NULL, &err), &err);
    } else if (strcmp(what, "read") == 0) {
        op.verb = ITEM_READ;
        if (item_operation_run(&op, &err))
            snprintf(line->outcome, sizeof line->outcome, "%.*s",
                     SLICE_ARG(value_in(&op.result.item)));
        else
            outcome_set(line, false, &err);
    } else {
        fail_msg("there is no plain \"%s\"", what);
    }
}

/* --- Stories --------------------------------------------------------------------------------- */

static void line_split(struct line *line, const char *text)
{
    char *arrow, *rest, *next;

    *line = (struct line){.expected = "ok"};
    assert_true(strlen(text) < sizeof line->text);
    snprintf(line->text, sizeof line->text, "%s", text);
    arrow = strstr(line->text, " -> ");
    if (arrow) {
        *arrow = 0;
        line->expected = arrow + 4;
    }
    for (rest = line->text; (next = strsep(&rest, " ")) != NULL && line->count < WORDS_MAX;)
        if (*next)
            line->words[line->count++] = next;
}

static void line_run(struct stage *stage, const char *text)
{
    struct line line;

    line_split(&line, text);
    if (strcmp(word(&line, 0), "plain") == 0)
        plain_run(stage, &line);
    else
        session_run(stage, line.words[0][1] == '2', &line);
    if (strcmp(line.outcome, line.expected) != 0)
        fail_msg("\"%s\": got %s", text, line.outcome);
}

static void story_run_on(const char *url, const struct test_space_options *options,
                         const char *const *lines)
{
    struct stage stage = {.arena = arena_new()};
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&stage.test, engine, options);
    for (size_t i = 0; lines[i]; i++)
        line_run(&stage, lines[i]);
    for (size_t i = 0; i < SESSIONS; i++)
        transaction_free(stage.sessions[i]);
    test_space_done(&stage.test);
    arena_free(stage.arena);
}

static void story_run(const struct test_space_options *options, const char *const *lines)
{
    CLEANUP(scratch_done) struct scratch scratch;
    char url[200];

    scratch_init(&scratch);
    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&scratch, "node"));
    story_run_on("memory:", options, lines);
    story_run_on(url, options, lines);
}

#define STORY(...)                                                                                 \
    story_run(&(struct test_space_options){.partitions = 2},                                       \
              (const char *const[]){__VA_ARGS__, NULL})
#define UNIQUE_STORY(...)                                                                          \
    story_run(&(struct test_space_options){.partitions = 2, .unique_paths = {"/v"}},               \
              (const char *const[]){__VA_ARGS__, NULL})

static void the_first_of_two_writers_wins(void **state UNUSED)
{
    STORY("plain create p a 0", "s1 begin p", "s2 begin p", "s1 replace a 1", "s2 replace a 2",
          "s1 commit", "s2 commit -> CONFLICT", "plain read p a -> 1");
    STORY("plain create p a 0", "s1 begin p", "s2 begin p", "s1 replace a 1", "s2 replace a 2",
          "s2 commit", "s1 commit -> CONFLICT", "plain read p a -> 2");
    STORY("plain create p a 0", "s1 begin p", "s1 replace a 1", "s1 commit", "s2 begin p",
          "s2 read a -> 1", "s2 replace a 2", "s2 commit", "plain read p a -> 2");
}

static void a_plain_write_between_wins_over_a_transaction(void **state UNUSED)
{
    STORY("plain create p a 0", "s1 begin p", "s1 read a -> 0", "plain replace p a 1",
          "s1 replace a 2", "s1 commit -> CONFLICT", "plain read p a -> 1");
}

static void a_refused_transaction_leaves_nothing_and_may_run_again(void **state UNUSED)
{
    STORY("plain create p a 0", "s1 begin p", "s1 replace a 1", "s1 create b 1",
          "plain replace p a 5", "s1 commit -> CONFLICT", "plain read p b -> ITEM_MISSING",
          "s1 begin p", "s1 replace a 6", "s1 create b 6", "s1 commit", "plain read p a -> 6",
          "plain read p b -> 6");
}

static void a_reader_sees_its_snapshot_whatever_happens(void **state UNUSED)
{
    STORY("plain create p a 0", "plain create p b 0", "s1 begin p", "s1 read a -> 0", "s2 begin p",
          "s2 replace a 1", "s2 replace b 1", "s2 create c 1", "s2 commit", "s1 read a -> 0",
          "s1 read b -> 0", "s1 read c -> none", "s1 scan -> 0 0", "s1 commit",
          "plain read p b -> 1");
    STORY("plain create p a 0", "s1 begin p", "plain delete p a", "s1 read a -> 0", "s1 commit",
          "plain read p a -> ITEM_MISSING");
}

static void nobody_sees_what_is_not_committed(void **state UNUSED)
{
    STORY("plain create p a 0", "s1 begin p", "s1 replace a 1", "s1 read a -> 1",
          "plain read p a -> 0", "s2 begin p", "s2 read a -> 0", "s1 commit", "s2 read a -> 0",
          "plain read p a -> 1");
}

static void write_skew_is_allowed_and_rely_prevents_it(void **state UNUSED)
{
    STORY("plain create p a 0", "plain create p b 0", "s1 begin p", "s2 begin p", "s1 read b -> 0",
          "s2 read a -> 0", "s1 replace a 1", "s2 replace b 1", "s1 commit", "s2 commit",
          "plain read p a -> 1", "plain read p b -> 1");
    STORY("plain create p a 0", "plain create p b 0", "s1 begin p", "s2 begin p", "s1 rely b -> 0",
          "s2 rely a -> 0", "s1 replace a 1", "s2 replace b 1", "s1 commit",
          "s2 commit -> CONFLICT", "plain read p b -> 0");
}

static void one_of_two_creators_of_an_id_wins(void **state UNUSED)
{
    STORY("s1 begin p", "s2 begin p", "s1 create a 1", "s2 create a 2", "s1 commit",
          "s2 commit -> CONFLICT", "plain read p a -> 1", "s2 begin p",
          "s2 create a 2 -> ITEM_EXISTS");
    STORY("s1 begin p", "s2 begin q", "s1 create a 1", "s2 create a 2", "s1 commit", "s2 commit",
          "plain read p a -> 1", "plain read q a -> 2");
}

static void one_of_two_owners_of_a_unique_key_wins(void **state UNUSED)
{
    UNIQUE_STORY("s1 begin p", "s2 begin p", "s1 create a 7", "s2 create b 7", "s1 commit",
                 "s2 commit -> CONFLICT", "s2 begin p", "s2 create b 7", "s2 commit -> UNIQUE_KEY",
                 "plain create p b 7 -> UNIQUE_KEY", "plain create p b 8", "plain create q b 7");
    UNIQUE_STORY("plain create p a 1", "plain create p b 2", "s1 begin p", "s2 begin p",
                 "s1 replace a 3", "s2 replace b 3", "s2 commit", "s1 commit -> CONFLICT",
                 "plain replace p a 3 -> UNIQUE_KEY", "plain read p a -> 1");
}

static void a_unique_key_let_go_meanwhile_is_free_for_the_next(void **state UNUSED)
{
    UNIQUE_STORY("plain create p a 7", "s1 begin p", "plain delete p a", "s1 create b 7",
                 "s1 commit -> UNIQUE_KEY", "s1 begin p", "s1 create b 7", "s1 commit",
                 "plain read p b -> 7");
    UNIQUE_STORY("plain create p a 7", "s1 begin p", "s1 replace a 8", "s1 create b 7", "s1 commit",
                 "plain read p a -> 8", "plain read p b -> 7", "plain create p c 8 -> UNIQUE_KEY");
}

static void delete_and_replace_of_one_item_exclude_each_other(void **state UNUSED)
{
    STORY("plain create p a 0", "s1 begin p", "s2 begin p", "s1 delete a", "s2 replace a 2",
          "s1 commit", "s2 commit -> CONFLICT", "plain read p a -> ITEM_MISSING", "s2 begin p",
          "s2 replace a 2 -> ITEM_MISSING");
    STORY("plain create p a 0", "s1 begin p", "s2 begin p", "s1 delete a", "s2 replace a 2",
          "s2 commit", "s1 commit -> CONFLICT", "plain read p a -> 2");
    STORY("plain create p a 0", "s1 begin p", "s2 begin p", "s1 delete a", "s2 delete a",
          "s1 commit", "s2 commit -> CONFLICT", "plain read p a -> ITEM_MISSING");
    STORY("plain create p a 0", "s1 begin p", "plain delete p a", "plain create p a 5",
          "s1 replace a 1", "s1 commit -> CONFLICT", "plain read p a -> 5");
}

static void a_move_and_a_replace_exclude_each_other(void **state UNUSED)
{
    STORY("plain create p a 0", "s1 begin p", "s1 replace a 1", "plain move p a q 9",
          "s1 commit -> CONFLICT", "plain read p a -> ITEM_MISSING", "plain read q a -> 9");
    STORY("plain create p a 0", "s1 begin p", "s1 delete a", "s1 enter q", "s1 create a 9",
          "plain replace p a 1", "s1 commit -> CONFLICT", "plain read p a -> 1",
          "plain read q a -> ITEM_MISSING");
    STORY("plain create p a 0", "s1 begin p", "s1 delete a", "s1 enter q", "s1 create a 9",
          "plain create q a 5", "s1 commit -> CONFLICT", "plain read p a -> 0",
          "plain read q a -> 5", "plain move p a q 9 -> ITEM_EXISTS");
    STORY("plain create p a 0", "s1 begin p", "s1 delete a", "s1 enter q", "s1 create a 9",
          "s2 begin p", "s2 read a -> 0", "s2 enter q", "s2 read a -> none", "s1 commit",
          "plain read p a -> ITEM_MISSING", "plain read q a -> 9");
}

static void a_scanned_range_conflicts_only_when_relied_on(void **state UNUSED)
{
    STORY("plain create p a 0", "plain create p c 0", "s1 begin p", "s1 scan -> 0 0",
          "plain create p b 5", "s1 create z 1", "s1 commit", "plain read p z -> 1");
    STORY("plain create p a 0", "plain create p c 0", "s1 begin p", "s1 scan-rely -> 0 0",
          "plain create p b 5", "s1 create z 1", "s1 commit -> CONFLICT",
          "plain read p z -> ITEM_MISSING");
    STORY("plain create p a 0", "s1 begin p", "s1 scan-rely -> 0", "plain delete p a",
          "s1 create z 1", "s1 commit -> CONFLICT");
    STORY("s1 begin p", "s1 scan-rely -> none", "plain create q b 5", "s1 create z 1", "s1 commit",
          "plain read p z -> 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_two_writers_wins),
        cmocka_unit_test(a_plain_write_between_wins_over_a_transaction),
        cmocka_unit_test(a_refused_transaction_leaves_nothing_and_may_run_again),
        cmocka_unit_test(a_reader_sees_its_snapshot_whatever_happens),
        cmocka_unit_test(nobody_sees_what_is_not_committed),
        cmocka_unit_test(write_skew_is_allowed_and_rely_prevents_it),
        cmocka_unit_test(one_of_two_creators_of_an_id_wins),
        cmocka_unit_test(one_of_two_owners_of_a_unique_key_wins),
        cmocka_unit_test(a_unique_key_let_go_meanwhile_is_free_for_the_next),
        cmocka_unit_test(delete_and_replace_of_one_item_exclude_each_other),
        cmocka_unit_test(a_move_and_a_replace_exclude_each_other),
        cmocka_unit_test(a_scanned_range_conflicts_only_when_relied_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
