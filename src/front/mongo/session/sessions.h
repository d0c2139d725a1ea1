/* Sessions: what is remembered of clients' logical sessions that number their writes: the last
 * number, what it was used for, and a transaction that is open.
 *
 * A session belongs to one call at a time; others wait for it, so that a write that is sent again
 * never runs beside itself. Their number is bounded: the one that was used least recently is
 * forgotten, which is no loss, since what was done is recorded where it was done. A transaction
 * that is open longer than it may be is ended by a thread of the table's own. Any thread. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"

enum { MONGO_SESSION_ID_LEN = 16, MONGO_SESSION_NAME_LEN = 16 };

/* What the number of a session is used for. */
enum mongo_number_use {
    MONGO_NUMBER_UNUSED,
    MONGO_NUMBER_WRITE, /* a write that may be sent again */
    MONGO_NUMBER_OPEN,  /* a transaction that is open: `transaction` */
    MONGO_NUMBER_COMMITTED,
    MONGO_NUMBER_ABORTED,
    MONGO_NUMBER_DOUBT, /* a transaction of which it is not known whether it was committed: `home`
                         */
};

/* One session, for whoever has taken it. */
struct mongo_logical {
    uint8_t name[MONGO_SESSION_NAME_LEN]; /* of account, user and id */
    uint32_t account;

    int64_t number; /* the last; -1: none */
    enum mongo_number_use use;
    bool expired;      /* of aborted: its time was over */
    void *transaction; /* of MONGO_NUMBER_OPEN; owned */
    char *home;        /* of the last MONGO_NUMBER_DOUBT: where its record would be; owned */
    bool reads_alone;  /* it is a moment that is held for reads, which is not counted */

    /* Of the table. */
    uint8_t id[MONGO_SESSION_ID_LEN]; /* as its client knows it; with has_id */
    bool has_id;
    int64_t used_ms, until_ms; /* until_ms: of the transaction */
    bool taken, ended;
    unsigned waiting;
    struct mongo_logical *next;          /* in its bucket */
    struct mongo_logical *newer, *older; /* by use */
    struct mongo_logical *open_next;     /* of those with an open transaction */
};

struct mongo_sessions; /* opaque, owned */

struct mongo_sessions_options {
    size_t count_max;                            /* remembered at a time */
    int64_t session_ms;                          /* one that is not used for so long is forgotten */
    int64_t transaction_ms;                      /* a transaction is open so long at most */
    size_t transactions_max;                     /* open at a time; of one account half as many */
    void (*transaction_free)(void *transaction); /* called without locks */
};

struct mongo_sessions *mongo_sessions_new(const struct mongo_sessions_options *options);
void mongo_sessions_free(struct mongo_sessions *sessions); /* none is taken. NULL is fine */

/* The name a session has here. */
struct mongo_session_owner {
    struct slice account, user, database;
};
void mongo_session_name(const struct mongo_session_owner *owner, struct slice id,
                        uint8_t ret_name[MONGO_SESSION_NAME_LEN]);

/* The session of that name for the caller alone, made if there is none; waits for others until the
 * deadline (of clock_monotonic_ms). MONGO_EXCEEDED_TIME_LIMIT. */
NODISCARD bool mongo_sessions_take(struct mongo_sessions *sessions, const uint8_t *name,
                                   uint32_t account, int64_t deadline_ms,
                                   struct mongo_logical **ret_session, struct error *err);
/* The same without waiting, of one that is there. False: it is not, or another call has it. */
bool mongo_sessions_try(struct mongo_sessions *sessions, const uint8_t *name,
                        struct mongo_logical **ret_session);
void mongo_sessions_give_back(struct mongo_sessions *sessions, struct mongo_logical *session);

/* Of a session that is taken and has no open transaction: it has this one from now on. Of those
 * that read alone there are a quarter of all, and of one account half of these: another one takes
 * the place of the account's own oldest.
 * MONGO_EXCEEDED_MEMORY_LIMIT: there are as many as there may be. */
NODISCARD bool mongo_sessions_open(struct mongo_sessions *sessions, struct mongo_logical *session,
                                   void *transaction, struct error *err);
/* It is no more the session's, but the caller's. */
void *mongo_sessions_close(struct mongo_sessions *sessions, struct mongo_logical *session,
                           enum mongo_number_use use);

/* Forgets the session, with its transaction; one that is taken, when it is given back. */
void mongo_sessions_end(struct mongo_sessions *sessions, const uint8_t *name);
/* The same of all of an account. */
void mongo_sessions_end_account(struct mongo_sessions *sessions, uint32_t account);
/* It goes on: as if it were used now. */
void mongo_sessions_refresh(struct mongo_sessions *sessions, const uint8_t *name);

/* Of a session that is taken: the id its client knows it by, for lists. */
void mongo_sessions_note(struct mongo_sessions *sessions, struct mongo_logical *session,
                         struct slice id);

/* A session as it is listed. */
struct mongo_session_shown {
    uint8_t name[MONGO_SESSION_NAME_LEN], id[MONGO_SESSION_ID_LEN];
    int64_t used_ms; /* of clock_monotonic_ms */
};

/* Up to max sessions of an account whose ids were noted, those used last first: how many. */
size_t mongo_sessions_list(struct mongo_sessions *sessions, uint32_t account,
                           struct mongo_session_shown *ret_list, size_t max);

struct mongo_sessions_figures {
    size_t sessions, open;
    uint64_t started, committed, aborted; /* transactions, since the start */
};
void mongo_sessions_figures(struct mongo_sessions *sessions,
                            struct mongo_sessions_figures *ret_figures);
