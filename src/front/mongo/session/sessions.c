/* One lock over a hash table, a list by use and a list of those with an open transaction: each is
 * held for a few steps. Transactions are freed outside of it, for that closes snapshots. */
#include "front/mongo/session/sessions.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/thread.h"
#include "front/mongo/error.h"

#include <openssl/evp.h>

enum { BUCKETS = 16384, LOOK_MS = 500, FORGET_PER_LOOK = 1024 };

struct mongo_sessions {
    struct mongo_sessions_options options;
    struct mutex lock;
    struct condition given_back;
    struct condition stop;
    struct thread thread;
    bool stopping;
    struct mongo_logical *buckets[BUCKETS];
    struct mongo_logical *newest, *oldest;
    struct mongo_logical *open;
    size_t count, open_count;
    uint64_t started, committed, aborted;
};

/* --- Lists; all under the lock --------------------------------------------------------------- */

static struct mongo_logical **bucket_of(struct mongo_sessions *sessions, const uint8_t *name)
{
    return &sessions->buckets[bytes_get_be32(name) % BUCKETS];
}

static struct mongo_logical *find(struct mongo_sessions *sessions, const uint8_t *name)
{
    struct mongo_logical *session = *bucket_of(sessions, name);

    while (session && memcmp(session->name, name, MONGO_SESSION_NAME_LEN) != 0)
        session = session->next;
    return session;
}

static void use_unlink(struct mongo_sessions *sessions, struct mongo_logical *session)
{
    *(session->newer ? &session->newer->older : &sessions->newest) = session->older;
    *(session->older ? &session->older->newer : &sessions->oldest) = session->newer;
}

static void use_push(struct mongo_sessions *sessions, struct mongo_logical *session)
{
    session->used_ms = clock_monotonic_ms();
    session->newer = NULL;
    session->older = sessions->newest;
    *(session->older ? &session->older->newer : &sessions->oldest) = session;
    sessions->newest = session;
}

static void open_unlink(struct mongo_sessions *sessions, struct mongo_logical *session)
{
    struct mongo_logical **link = &sessions->open;

    while (*link != session)
        link = &(*link)->open_next;
    *link = session->open_next;
    sessions->open_count--;
}

/* A list of transactions that are to be freed without the lock. */
struct doomed {
    void **list;
    size_t count, capacity;
};

static void doomed_add(struct doomed *doomed, void *transaction)
{
    if (doomed->count == doomed->capacity) {
        doomed->capacity = doomed->capacity * 2 + 4;
        doomed->list =
            memory_realloc(doomed->list, memory_array_size(doomed->capacity, sizeof(void *)));
    }
    doomed->list[doomed->count++] = transaction;
}

static void doomed_free(struct mongo_sessions *sessions, struct doomed *doomed)
{
    for (size_t i = 0; i < doomed->count; i++)
        sessions->options.transaction_free(doomed->list[i]);
    memory_free(doomed->list);
}

static void transaction_abort(struct mongo_sessions *sessions, struct mongo_logical *session,
                              struct doomed *doomed)
{
    assert(session->use == MONGO_NUMBER_OPEN && !session->taken);
    open_unlink(sessions, session);
    doomed_add(doomed, session->transaction);
    session->transaction = NULL;
    session->use = MONGO_NUMBER_ABORTED;
    sessions->aborted += !session->reads_alone;
}

/* Nobody has it or waits for it. */
static void forget(struct mongo_sessions *sessions, struct mongo_logical *session,
                   struct doomed *doomed)
{
    struct mongo_logical **link = bucket_of(sessions, session->name);

    assert(!session->taken && !session->waiting);
    if (session->use == MONGO_NUMBER_OPEN)
        transaction_abort(sessions, session, doomed);
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    use_unlink(sessions, session);
    sessions->count--;
    memory_free(session->home);
    memory_free(session);
}

static bool is_free(const struct mongo_logical *session)
{
    return !session->taken && !session->waiting;
}

/* --- The thread ------------------------------------------------------------------------------ */

static void look_after(struct mongo_sessions *sessions, struct doomed *doomed)
{
    int64_t now_ms = clock_monotonic_ms();

    for (struct mongo_logical *session = sessions->open, *next; session; session = next) {
        next = session->open_next;
        if (now_ms >= session->until_ms && !session->taken) {
            transaction_abort(sessions, session, doomed);
            session->expired = true;
        }
    }
    for (int i = 0; i < FORGET_PER_LOOK && sessions->oldest; i++) {
        struct mongo_logical *session = sessions->oldest;

        if (now_ms - session->used_ms < sessions->options.session_ms || !is_free(session))
            break;
        forget(sessions, session, doomed);
    }
}

static void run(void *context)
{
    struct mongo_sessions *sessions = context;
    bool on = true;

    while (on) {
        struct doomed doomed = {0};

        WITH_LOCK (&sessions->lock) {
            /* The first one wakes it. */
            if (!sessions->stopping && !sessions->count)
                condition_wait(&sessions->stop, &sessions->lock);
            else if (!sessions->stopping)
                (void)condition_wait_until(&sessions->stop, &sessions->lock,
                                           clock_monotonic_ms() + LOOK_MS);
            on = !sessions->stopping;
            look_after(sessions, &doomed);
        }
        doomed_free(sessions, &doomed);
    }
}

struct mongo_sessions *mongo_sessions_new(const struct mongo_sessions_options *options)
{
    struct mongo_sessions *sessions = MEMORY_NEW(struct mongo_sessions);

    sessions->options = *options;
    mutex_init(&sessions->lock);
    condition_init(&sessions->given_back);
    condition_init(&sessions->stop);
    thread_start(&sessions->thread, "mongo-sessions", run, sessions);
    return sessions;
}

void mongo_sessions_free(struct mongo_sessions *sessions)
{
    struct doomed doomed = {0};

    if (!sessions)
        return;
    WITH_LOCK (&sessions->lock) {
        sessions->stopping = true;
        condition_signal(&sessions->stop);
    }
    thread_join(&sessions->thread);
    WITH_LOCK (&sessions->lock)
        while (sessions->oldest)
            forget(sessions, sessions->oldest, &doomed);
    doomed_free(sessions, &doomed);
    condition_done(&sessions->given_back);
    condition_done(&sessions->stop);
    mutex_done(&sessions->lock);
    memory_free(sessions);
}

/* --- Names ----------------------------------------------------------------------------------- */

void mongo_session_name(const struct mongo_session_owner *owner, struct slice id,
                        uint8_t ret_name[MONGO_SESSION_NAME_LEN])
{
    const struct slice parts[] = {owner->account, owner->user, owner->database, id};
    uint8_t digest[EVP_MAX_MD_SIZE], length[4];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL);

    for (size_t i = 0; fine && i < ARRAY_LEN(parts); i++) {
        bytes_put_be32(length, (uint32_t)parts[i].len);
        fine = EVP_DigestUpdate(context, length, sizeof length) &&
               EVP_DigestUpdate(context, parts[i].data, parts[i].len);
    }
    fine = fine && EVP_DigestFinal_ex(context, digest, NULL);
    assert(fine);
    EVP_MD_CTX_free(context);
    memcpy(ret_name, digest, MONGO_SESSION_NAME_LEN);
}

/* --- Taking ---------------------------------------------------------------------------------- */

/* The least recently used one without a transaction goes; if the oldest few are all in use, the
 * table grows by one. */
static void room_make(struct mongo_sessions *sessions, struct doomed *doomed)
{
    struct mongo_logical *session = sessions->oldest;

    for (int i = 0; i < 64 && session && sessions->count >= sessions->options.count_max; i++) {
        struct mongo_logical *newer = session->newer;

        if (is_free(session) && session->use != MONGO_NUMBER_OPEN)
            forget(sessions, session, doomed);
        session = newer;
    }
}

static struct mongo_logical *add(struct mongo_sessions *sessions, const uint8_t *name,
                                 uint32_t account)
{
    struct mongo_logical *session = MEMORY_NEW(struct mongo_logical);
    struct mongo_logical **bucket = bucket_of(sessions, name);

    memcpy(session->name, name, MONGO_SESSION_NAME_LEN);
    session->account = account;
    session->number = -1;
    session->next = *bucket;
    *bucket = session;
    use_push(sessions, session);
    if (sessions->count++ == 0)
        condition_signal(&sessions->stop);
    return session;
}

bool mongo_sessions_take(struct mongo_sessions *sessions, const uint8_t *name, uint32_t account,
                         int64_t deadline_ms, struct mongo_logical **ret_session, struct error *err)
{
    struct doomed doomed = {0};
    struct mongo_logical *session = NULL;
    bool taken = false;

    WITH_LOCK (&sessions->lock) {
        session = find(sessions, name);
        if (!session) {
            room_make(sessions, &doomed);
            session = add(sessions, name, account);
        }
        session->waiting++;
        taken = true;
        while (session->taken && taken)
            taken = condition_wait_until(&sessions->given_back, &sessions->lock, deadline_ms);
        session->waiting--;
        taken = !session->taken;
        if (taken) {
            session->taken = true;
            use_unlink(sessions, session);
            use_push(sessions, session);
        }
    }
    doomed_free(sessions, &doomed);
    if (!taken)
        return mongo_error_set(err, MONGO_EXCEEDED_TIME_LIMIT,
                               "another command of the session is still under way");
    *ret_session = session;
    return true;
}

bool mongo_sessions_try(struct mongo_sessions *sessions, const uint8_t *name,
                        struct mongo_logical **ret_session)
{
    struct mongo_logical *session = NULL;

    WITH_LOCK (&sessions->lock) {
        session = find(sessions, name);
        if (!session || !is_free(session))
            return false;
        session->taken = true;
        use_unlink(sessions, session);
        use_push(sessions, session);
    }
    *ret_session = session;
    return true;
}

void mongo_sessions_give_back(struct mongo_sessions *sessions, struct mongo_logical *session)
{
    struct doomed doomed = {0};

    WITH_LOCK (&sessions->lock) {
        assert(session->taken);
        session->taken = false;
        if (session->ended) {
            session->ended = false;
            if (session->use == MONGO_NUMBER_OPEN)
                transaction_abort(sessions, session, &doomed);
            if (!session->waiting)
                forget(sessions, session, &doomed);
        }
        condition_broadcast(&sessions->given_back);
    }
    doomed_free(sessions, &doomed);
}

/* --- Transactions ---------------------------------------------------------------------------- */

/* An account that has all it may have gives up its oldest, never another's. Those that were opened
 * last come first. */
static bool moment_make_room(struct mongo_sessions *sessions, uint32_t account,
                             struct doomed *doomed)
{
    size_t count_max = (sessions->options.transactions_max + 3) / 4, own_max = (count_max + 1) / 2;
    struct mongo_logical *oldest = NULL;
    size_t count = 0, own = 0;

    for (struct mongo_logical *other = sessions->open; other; other = other->open_next) {
        count += other->reads_alone;
        if (!other->reads_alone || other->account != account)
            continue;
        own++;
        if (is_free(other))
            oldest = other;
    }
    if (count < count_max && own < own_max)
        return true;
    if (oldest)
        transaction_abort(sessions, oldest, doomed);
    return oldest;
}

bool mongo_sessions_open(struct mongo_sessions *sessions, struct mongo_logical *session,
                         void *transaction, struct error *err)
{
    struct doomed doomed = {0};
    size_t of_account = 0;
    bool full = false;

    assert(session->taken && session->use != MONGO_NUMBER_OPEN);
    WITH_LOCK (&sessions->lock) {
        full = session->reads_alone && !moment_make_room(sessions, session->account, &doomed);
        for (const struct mongo_logical *other = sessions->open; other; other = other->open_next)
            of_account += other->account == session->account;
        full = full || sessions->open_count >= sessions->options.transactions_max ||
               of_account >= (sessions->options.transactions_max + 1) / 2;
        if (!full) {
            session->transaction = transaction;
            session->use = MONGO_NUMBER_OPEN;
            session->expired = false;
            session->until_ms = clock_monotonic_ms() + sessions->options.transaction_ms;
            session->open_next = sessions->open;
            sessions->open = session;
            sessions->open_count++;
            sessions->started += !session->reads_alone;
        }
    }
    doomed_free(sessions, &doomed);
    return !full || mongo_error_set(err, MONGO_EXCEEDED_MEMORY_LIMIT,
                                    "there are %zu transactions open, which is as many as there "
                                    "may be (mongo.transactions_max)",
                                    of_account);
}

void *mongo_sessions_close(struct mongo_sessions *sessions, struct mongo_logical *session,
                           enum mongo_number_use use)
{
    void *transaction = session->transaction;

    assert(session->taken && session->use == MONGO_NUMBER_OPEN);
    WITH_LOCK (&sessions->lock) {
        open_unlink(sessions, session);
        session->transaction = NULL;
        session->use = use;
        *(use == MONGO_NUMBER_COMMITTED ? &sessions->committed : &sessions->aborted) +=
            !session->reads_alone;
    }
    return transaction;
}

/* --- Ending ---------------------------------------------------------------------------------- */

static void end(struct mongo_sessions *sessions, struct mongo_logical *session,
                struct doomed *doomed)
{
    if (is_free(session))
        forget(sessions, session, doomed);
    else
        session->ended = true;
}

void mongo_sessions_end(struct mongo_sessions *sessions, const uint8_t *name)
{
    struct doomed doomed = {0};

    WITH_LOCK (&sessions->lock) {
        struct mongo_logical *session = find(sessions, name);

        if (session)
            end(sessions, session, &doomed);
    }
    doomed_free(sessions, &doomed);
}

void mongo_sessions_end_account(struct mongo_sessions *sessions, uint32_t account)
{
    struct doomed doomed = {0};

    WITH_LOCK (&sessions->lock)
        for (struct mongo_logical *session = sessions->newest, *older; session; session = older) {
            older = session->older;
            if (session->account == account)
                end(sessions, session, &doomed);
        }
    doomed_free(sessions, &doomed);
}

void mongo_sessions_refresh(struct mongo_sessions *sessions, const uint8_t *name)
{
    WITH_LOCK (&sessions->lock) {
        struct mongo_logical *session = find(sessions, name);

        if (session) {
            use_unlink(sessions, session);
            use_push(sessions, session);
        }
    }
}

void mongo_sessions_note(struct mongo_sessions *sessions, struct mongo_logical *session,
                         struct slice id)
{
    assert(session->taken && id.len == MONGO_SESSION_ID_LEN);
    if (session->has_id)
        return; /* the name follows from it: it is always the same */
    WITH_LOCK (&sessions->lock) {
        memcpy(session->id, id.data, MONGO_SESSION_ID_LEN);
        session->has_id = true;
    }
}

size_t mongo_sessions_list(struct mongo_sessions *sessions, uint32_t account,
                           struct mongo_session_shown *ret_list, size_t max)
{
    size_t count = 0;

    WITH_LOCK (&sessions->lock)
        for (const struct mongo_logical *session = sessions->newest; session && count < max;
             session = session->older) {
            if (session->account != account || !session->has_id)
                continue;
            memcpy(ret_list[count].name, session->name, MONGO_SESSION_NAME_LEN);
            memcpy(ret_list[count].id, session->id, MONGO_SESSION_ID_LEN);
            ret_list[count++].used_ms = session->used_ms;
        }
    return count;
}

void mongo_sessions_figures(struct mongo_sessions *sessions,
                            struct mongo_sessions_figures *ret_figures)
{
    WITH_LOCK (&sessions->lock)
        *ret_figures = (struct mongo_sessions_figures){.sessions = sessions->count,
                                                       .open = sessions->open_count,
                                                       .started = sessions->started,
                                                       .committed = sessions->committed,
                                                       .aborted = sessions->aborted};
}
