#include "support/check.h"

#include "base/thread.h"
#include "front/mongo/error.h"
#include "front/mongo/session/sessions.h"

static atomic_int freed;

static void transaction_free(void *transaction UNUSED)
{
    atomic_fetch_add(&freed, 1);
}

static struct mongo_sessions *sessions_with(size_t count_max, int64_t transaction_ms,
                                            size_t transactions_max)
{
    atomic_store(&freed, 0);
    return mongo_sessions_new(
        &(struct mongo_sessions_options){.count_max = count_max,
                                         .session_ms = 60000,
                                         .transaction_ms = transaction_ms,
                                         .transactions_max = transactions_max,
                                         .transaction_free = transaction_free});
}

static struct mongo_sessions *sessions_of(size_t count_max, int64_t transaction_ms)
{
    return sessions_with(count_max, transaction_ms, 4);
}

static void name_of(const char *id, uint8_t ret_name[MONGO_SESSION_NAME_LEN])
{
    const struct mongo_session_owner owner = {SLICE("a"), SLICE("u"), SLICE("d")};

    mongo_session_name(&owner, slice_of_text(id), ret_name);
}

static struct mongo_logical *take(struct mongo_sessions *sessions, const char *id)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];
    struct mongo_logical *session;
    struct error err;

    name_of(id, name);
    assert_true(mongo_sessions_take(sessions, name, 1, clock_monotonic_ms(), &session, &err));
    return session;
}

static void users_have_sessions_of_their_own(void **state UNUSED)
{
    uint8_t one[MONGO_SESSION_NAME_LEN], other[MONGO_SESSION_NAME_LEN];
    const struct mongo_session_owner left = {SLICE("a"), SLICE("bc"), SLICE("d")};
    const struct mongo_session_owner right = {SLICE("ab"), SLICE("c"), SLICE("d")};

    mongo_session_name(&left, SLICE("x"), one);
    mongo_session_name(&right, SLICE("x"), other);
    assert_memory_not_equal(one, other, sizeof one);
}

static void a_session_is_remembered_and_taken_by_one_at_a_time(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(16, 60000);
    struct mongo_logical *session = take(sessions, "x"), *second;
    uint8_t name[MONGO_SESSION_NAME_LEN];
    struct error err;

    session->number = 7;
    name_of("x", name);
    assert_false(mongo_sessions_take(sessions, name, 1, clock_monotonic_ms(), &second, &err));
    assert_int_equal(mongo_error_code(&err), MONGO_EXCEEDED_TIME_LIMIT);
    mongo_sessions_give_back(sessions, session);
    session = take(sessions, "x");
    assert_int_equal(session->number, 7);
    mongo_sessions_give_back(sessions, session);
    mongo_sessions_free(sessions);
}

static void only_a_session_that_is_there_and_free_is_had_without_waiting(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(16, 60000);
    struct mongo_logical *session, *second;
    uint8_t name[MONGO_SESSION_NAME_LEN];

    name_of("x", name);
    assert_false(mongo_sessions_try(sessions, name, &second));
    session = take(sessions, "x");
    assert_false(mongo_sessions_try(sessions, name, &second));
    mongo_sessions_give_back(sessions, session);
    assert_true(mongo_sessions_try(sessions, name, &second));
    assert_ptr_equal(second, session);
    assert_false(mongo_sessions_try(sessions, name, &session));
    mongo_sessions_give_back(sessions, second);
    mongo_sessions_free(sessions);
}

static void sessions_are_listed_to_their_account_by_the_ids_of_clients(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(16, 60000);
    struct mongo_logical *first = take(sessions, "x"), *second = take(sessions, "y");
    struct mongo_session_shown list[2];

    mongo_sessions_note(sessions, first, SLICE("0123456789abcdef"));
    mongo_sessions_note(sessions, second, SLICE("fedcba9876543210"));
    mongo_sessions_give_back(sessions, first);
    mongo_sessions_give_back(sessions, second);
    mongo_sessions_give_back(sessions, take(sessions, "z")); /* without one */
    assert_int_equal(mongo_sessions_list(sessions, 1, list, 2), 2);
    assert_memory_equal(list[0].id, "fedcba9876543210", MONGO_SESSION_ID_LEN);
    assert_memory_equal(list[1].id, "0123456789abcdef", MONGO_SESSION_ID_LEN);
    assert_int_equal(mongo_sessions_list(sessions, 1, list, 1), 1);
    assert_int_equal(mongo_sessions_list(sessions, 2, list, 2), 0);
    mongo_sessions_free(sessions);
}

/* A moment held for an account, and given back; NULL: it was refused. */
static struct mongo_logical *moment_hold(struct mongo_sessions *sessions, uint32_t account,
                                         const char *id)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];
    struct mongo_logical *session;
    struct error err;
    bool opened;

    name_of(id, name);
    assert_true(mongo_sessions_take(sessions, name, account, clock_monotonic_ms(), &session, &err));
    session->reads_alone = true;
    opened = mongo_sessions_open(sessions, session, &freed, &err);
    mongo_sessions_give_back(sessions, session);
    return opened ? session : NULL;
}

static void moments_of_one_account_never_end_those_of_another(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_with(64, 60000, 16); /* 4 moments, 2 of each */
    struct mongo_logical *first = moment_hold(sessions, 1, "1a");
    struct mongo_logical *second = moment_hold(sessions, 1, "1b");
    struct mongo_logical *third = moment_hold(sessions, 1, "1c");

    assert_int_equal(first->use, MONGO_NUMBER_ABORTED);
    assert_non_null(moment_hold(sessions, 2, "2a"));
    assert_non_null(moment_hold(sessions, 2, "2b"));
    assert_null(moment_hold(sessions, 3, "3a"));
    assert_non_null(moment_hold(sessions, 2, "2c"));
    assert_int_equal(second->use, MONGO_NUMBER_OPEN);
    assert_int_equal(third->use, MONGO_NUMBER_OPEN);
    assert_int_equal(atomic_load(&freed), 2); /* 1a and 2a */
    mongo_sessions_free(sessions);
}

static void of_moments_a_quarter_is_held_and_the_oldest_gives_way(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(16, 60000);
    struct mongo_logical *first = take(sessions, "x"), *second = take(sessions, "y");
    struct mongo_sessions_figures figures;
    struct error err;

    first->reads_alone = second->reads_alone = true;
    assert_true(mongo_sessions_open(sessions, first, &freed, &err));
    assert_false(mongo_sessions_open(sessions, second, &freed, &err)); /* the first is in use */
    assert_int_equal(mongo_error_code(&err), MONGO_EXCEEDED_MEMORY_LIMIT);
    mongo_sessions_give_back(sessions, first);
    assert_true(mongo_sessions_open(sessions, second, &freed, &err));
    assert_int_equal(atomic_load(&freed), 1);
    assert_int_equal(first->use, MONGO_NUMBER_ABORTED);
    mongo_sessions_figures(sessions, &figures);
    assert_int_equal(figures.open, 1);
    assert_int_equal(figures.started + figures.aborted, 0);
    mongo_sessions_give_back(sessions, second);
    mongo_sessions_free(sessions);
}

static void the_least_recently_used_one_is_forgotten(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(2, 60000);
    struct mongo_logical *session;

    for (int i = 0; i < 3; i++) {
        session = take(sessions, (const char *[]){"x", "y", "z"}[i]);
        session->number = i;
        mongo_sessions_give_back(sessions, session);
    }
    session = take(sessions, "z");
    assert_int_equal(session->number, 2);
    mongo_sessions_give_back(sessions, session);
    session = take(sessions, "x");
    assert_int_equal(session->number, -1);
    mongo_sessions_give_back(sessions, session);
    mongo_sessions_free(sessions);
}

static void ending_a_session_frees_its_transaction(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(16, 60000);
    struct mongo_logical *session = take(sessions, "x");
    uint8_t name[MONGO_SESSION_NAME_LEN];
    struct error err;

    name_of("x", name);
    assert_true(mongo_sessions_open(sessions, session, &freed, &err));
    mongo_sessions_end(sessions, name);
    assert_int_equal(atomic_load(&freed), 0); /* it is in use */
    mongo_sessions_give_back(sessions, session);
    assert_int_equal(atomic_load(&freed), 1);
    session = take(sessions, "x");
    assert_int_equal(session->number, -1);
    mongo_sessions_give_back(sessions, session);
    mongo_sessions_free(sessions);
}

static void an_account_has_half_of_all_transactions(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(16, 60000);
    struct mongo_logical *list[3];
    struct error err;

    for (int i = 0; i < 3; i++)
        list[i] = take(sessions, (const char *[]){"x", "y", "z"}[i]);
    assert_true(mongo_sessions_open(sessions, list[0], &freed, &err));
    assert_true(mongo_sessions_open(sessions, list[1], &freed, &err));
    assert_false(mongo_sessions_open(sessions, list[2], &freed, &err));
    assert_int_equal(mongo_error_code(&err), MONGO_EXCEEDED_MEMORY_LIMIT);
    for (int i = 0; i < 3; i++)
        mongo_sessions_give_back(sessions, list[i]);
    mongo_sessions_free(sessions);
    assert_int_equal(atomic_load(&freed), 2);
}

static void a_transaction_that_is_open_too_long_is_ended(void **state UNUSED)
{
    struct mongo_sessions *sessions = sessions_of(16, 0);
    struct mongo_logical *session = take(sessions, "x");
    struct error err;
    struct mongo_sessions_figures figures;

    assert_true(mongo_sessions_open(sessions, session, &freed, &err));
    mongo_sessions_give_back(sessions, session);
    do
        mongo_sessions_figures(sessions, &figures);
    while (figures.open);
    session = take(sessions, "x");
    assert_int_equal(session->use, MONGO_NUMBER_ABORTED);
    assert_true(session->expired);
    mongo_sessions_give_back(sessions, session);
    mongo_sessions_free(sessions);
    assert_int_equal(atomic_load(&freed), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_have_sessions_of_their_own),
        cmocka_unit_test(a_session_is_remembered_and_taken_by_one_at_a_time),
        cmocka_unit_test(only_a_session_that_is_there_and_free_is_had_without_waiting),
        cmocka_unit_test(sessions_are_listed_to_their_account_by_the_ids_of_clients),
        cmocka_unit_test(moments_of_one_account_never_end_those_of_another),
        cmocka_unit_test(of_moments_a_quarter_is_held_and_the_oldest_gives_way),
        cmocka_unit_test(the_least_recently_used_one_is_forgotten),
        cmocka_unit_test(ending_a_session_frees_its_transaction),
        cmocka_unit_test(an_account_has_half_of_all_transactions),
        cmocka_unit_test(a_transaction_that_is_open_too_long_is_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
