/* Authentication: saslStart, saslContinue, and what of it comes with hello.
 *
 * The first step of SCRAM says the same whether the account exists or not; the second, which may
 * derive keys for milliseconds, runs on a worker. An answer never says which part was wrong. */
#include "front/mongo/command/sasl.h"

#include "base/clock.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/call.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { NONCE_BYTES = 24, PLAIN_MAX = 1024, FAILURES_MAX = 5 };

static bool failed(struct error *err)
{
    return mongo_error_set(err, MONGO_AUTHENTICATION_FAILED, "Authentication failed.");
}

static void sasl_end(struct mongo_session *session)
{
    arena_free(session->sasl.arena);
    OPENSSL_cleanse(&session->sasl.keys, sizeof session->sasl.keys);
    session->sasl = (struct mongo_sasl){0};
}

static void session_forget(struct mongo_session *session)
{
    session->known = session->by_key = session->by_user = false;
    OPENSSL_cleanse(&session->key, sizeof session->key);
    arena_free(session->grants.arena);
    session->grants = (struct mongo_privileges){0};
    session->user[0] = session->user_database[0] = '\0';
}

/* --- Those who guess ------------------------------------------------------------------------- */

/* Too many failures of the address, or of the name. The answer is that of a wrong password, and the
 * connection ends: who guesses learns nothing, and spends a connection on it. */
static bool attempt_check(struct mongo_call *call, struct slice user, struct error *err)
{
    if (mongo_attempts_allow(call->mongo->attempts, &call->session->peer.address, user,
                             clock_monotonic_ms()))
        return true;
    call->close = true;
    return failed(err);
}

static void attempt_count(struct mongo_call *call, struct slice user, bool good)
{
    struct mongo_session *session = call->session;

    if (good) {
        mongo_attempts_succeeded(call->mongo->attempts, &session->peer.address, user,
                                 clock_monotonic_ms());
        return;
    }
    mongo_attempts_failed(call->mongo->attempts, &session->peer.address, user,
                          clock_monotonic_ms());
    /* who guesses has to connect anew every few times */
    call->close = call->close || ++session->failures >= FAILURES_MAX;
}

/* --- Accounts -------------------------------------------------------------------------------- */

/* With --dev the account of the emulator's connection strings is the default account, unless
 * somebody has made one of that name. */
static bool account_named(struct mongo_call *call, struct slice user,
                          struct front_account *ret_account, struct error *err)
{
    bool emulator = call->options->door.dev && slice_equal(user, SLICE(MONGO_EMULATOR_ACCOUNT));

    if (user.len == 0 || user.len >= MONGO_ACCOUNT_MAX)
        return failed(err);
    if (!front_account_find(call->services, user, call->options->door.accounts_by_use && !emulator,
                            call->arena, ret_account, err))
        return failed(err);
    if (!emulator || !ret_account->missing)
        return true;
    front_account_done(ret_account);
    return front_account_find(call->services, slice_of_text(CATALOGUE_ACCOUNT_DEFAULT), false,
                              call->arena, ret_account, err);
}

static void session_know(struct mongo_call *call, struct slice user, struct slice database,
                         const struct front_account *account, const struct front_key *key)
{
    struct mongo_session *session = call->session;

    session_forget(session);
    session->failures = 0;
    snprintf(session->account, sizeof session->account, "%.*s", SLICE_ARG(account->id));
    snprintf(session->user, sizeof session->user, "%.*s", SLICE_ARG(user));
    snprintf(session->user_database, sizeof session->user_database, "%.*s",
             (int)MIN(database.len, sizeof session->user_database - 1),
             (const char *)database.data);
    session->key = *key;
    session->known = session->by_key = true;
}

/* --- Users ----------------------------------------------------------------------------------- */

/* A user that was made: of the default account by its name alone, of another as name@account. */
struct identity {
    struct account *account; /* a reference */
    struct slice name;
    struct mongo_directory *directory; /* a reference */
    const struct mongo_principal *user;
};

static void identity_done(struct identity *identity)
{
    mongo_directory_unref(identity->directory);
    account_unref(identity->account);
}
CLEANUP_VALUE_FN(struct identity, identity_done)

/* *ret_cold: nobody has asked for the account's users yet, and here they cannot be read. */
static bool identity_look(struct mongo_call *call, struct slice account, struct slice name,
                          struct slice database, struct identity *ret_identity, bool *ret_cold,
                          struct error *err)
{
    CLEANUP(identity_done) struct identity found = {.name = name};

    if (!catalogue_account_open(call->services->catalogue, account, &found.account, err))
        return err->code == ERROR_NOT_FOUND;
    if (!mongo_directory_open(call->mongo->directories, account_info(found.account)->number,
                              call->may_block, &found.directory, err))
        return false;
    *ret_cold = !found.directory;
    found.user = found.directory ? mongo_directory_user(found.directory, database, name) : NULL;
    if (found.user) {
        *ret_identity = found;
        found = (struct identity){0};
    }
    return true;
}

/* The user of that name, if it is one. An account of the name comes first: its keys open it. */
static bool identity_find(struct mongo_call *call, struct slice user, struct slice database,
                          struct identity *ret_identity, bool *ret_cold, struct error *err)
{
    struct account *account;
    size_t at = user.len;

    *ret_cold = false;
    if (user.len == 0 || user.len >= MONGO_USER_NAME_MAX)
        return true;
    if (catalogue_account_open(call->services->catalogue, user, &account, err)) {
        account_unref(account);
        return true;
    }
    if (!identity_look(call, slice_of_text(CATALOGUE_ACCOUNT_DEFAULT), user, database, ret_identity,
                       ret_cold, err))
        return false;
    while (at > 0 && user.data[at - 1] != '@')
        at--;
    return ret_identity->user || *ret_cold || at < 2 ||
           identity_look(call, slice_skip(user, at), slice_first(user, at - 1), database,
                         ret_identity, ret_cold, err);
}

static void session_know_user(struct mongo_session *session, struct slice account,
                              struct slice name, struct slice database,
                              const uint8_t mark[MONGO_MARK_LEN])
{
    session_forget(session);
    snprintf(session->account, sizeof session->account, "%.*s", SLICE_ARG(account));
    snprintf(session->user, sizeof session->user, "%.*s", SLICE_ARG(name));
    snprintf(session->user_database, sizeof session->user_database, "%.*s",
             (int)MIN(database.len, sizeof session->user_database - 1),
             (const char *)database.data);
    memcpy(session->user_mark, mark, MONGO_MARK_LEN);
    session->known = session->by_user = true;
    session->failures = 0;
}

/* --- Beginning ------------------------------------------------------------------------------- */

struct start {
    struct slice mechanism;
    struct document_value payload;
    struct slice options;
    struct slice db;
};

static const struct mongo_field start_fields[] = {
    {"mechanism", MONGO_FIELD_STRING, offsetof(struct start, mechanism), true},
    {"payload", MONGO_FIELD_VALUE, offsetof(struct start, payload), true},
    {"autoAuthorize", MONGO_FIELD_ANY},
    {"options", MONGO_FIELD_OBJECT, offsetof(struct start, options)},
    {"db", MONGO_FIELD_STRING, offsetof(struct start, db)},
};

/* Drivers send bytes; old shells a text. */
static bool payload_bytes(const struct document_value *payload, struct slice *ret_bytes)
{
    if (payload->type == DOCUMENT_BINARY)
        *ret_bytes = payload->binary.bytes;
    else if (payload->type == DOCUMENT_STRING)
        *ret_bytes = payload->text;
    else
        return false;
    return true;
}

static bool option_true(struct slice options, struct slice name)
{
    struct document_value value;

    return options.data && document_find(options, name, &value) && value.type == DOCUMENT_BOOL &&
           value.boolean;
}

static void step_append(struct buf *out, int32_t id, bool done, struct slice payload)
{
    const struct document_value bytes = {.type = DOCUMENT_BINARY, .binary = {.bytes = payload}};

    document_append_int32(out, SLICE("conversationId"), id);
    document_append_bool(out, SLICE("done"), done);
    document_append(out, SLICE("payload"), &bytes);
}

static bool scram_start(struct mongo_call *call, enum mongo_scram scram, const struct start *start,
                        struct buf *out, struct error *err)
{
    CLEANUP(identity_done) struct identity identity = {0};
    struct mongo_sasl *sasl = &call->session->sasl;
    const struct mongo_credential *credential = NULL;
    struct mongo_scram_first first;
    uint8_t random[NONCE_BYTES];
    char ours[2 * NONCE_BYTES];
    struct slice payload, database = start->db.data ? start->db : call->message.database;
    uint8_t salt[MONGO_SALT_MAX];
    int32_t id = sasl->id + 1;
    bool cold;

    if (!payload_bytes(&start->payload, &payload) ||
        !mongo_scram_first_read(payload, call->arena, &first))
        return failed(err);
    if (!attempt_check(call, first.user, err) ||
        !identity_find(call, first.user, database, &identity, &cold, err))
        return false;
    if (cold) {
        (void)mongo_call_blocks(call);
        return failed(err);
    }
    /* whoever has none for this mechanism is answered like a name that nobody has */
    if (identity.user && identity.user->credentials[scram].given)
        credential = &identity.user->credentials[scram];
    sasl_end(call->session);
    sasl->arena = arena_new();
    payload = arena_copy(sasl->arena, payload);
    if (!mongo_scram_first_read(payload, sasl->arena, &first)) {
        sasl_end(call->session);
        return failed(err);
    }
    if (credential) {
        sasl->of_user = true;
        sasl->account = arena_copy(sasl->arena, account_info(identity.account)->id);
        memcpy(sasl->mark, identity.user->mark, MONGO_MARK_LEN);
        sasl->keys = credential->keys;
    }
    random_secret(random, sizeof random);
    EVP_EncodeBlock((uint8_t *)ours, random, sizeof random);
    sasl->begun = true;
    sasl->id = id;
    sasl->scram = scram;
    sasl->skip_empty = option_true(start->options, SLICE("skipEmptyExchange"));
    sasl->user = sasl->of_user ? arena_copy(sasl->arena, identity.name) : first.user;
    sasl->first_bare = first.bare;
    sasl->nonce = arena_printf(sasl->arena, "%.*s%s", SLICE_ARG(first.nonce), ours);
    sasl->user_database = arena_copy(sasl->arena, database);
    mongo_credentials_salt(call->mongo->credentials, scram, first.user, database, salt);
    sasl->server_first = mongo_scram_challenge(
        sasl->nonce, credential ? credential->salt : slice_of(salt, mongo_salt_len(scram)),
        credential ? credential->iterations : mongo_iterations(scram), sasl->arena);
    step_append(out, id, false, sasl->server_first);
    return true;
}

static bool password_check(struct mongo_call *call, struct slice user, struct slice password,
                           struct error *err)
{
    CLEANUP(identity_done) struct identity identity = {0};
    struct front_account account = {0};
    struct front_key key;
    bool good, cold;

    /* such users are of $external; those that were made are all of admin here */
    if (!identity_find(call, user, SLICE("admin"), &identity, &cold, err))
        return false;
    if (identity.user) {
        const struct mongo_credential *credential =
            &identity.user->credentials[MONGO_SCRAM_SHA_256];
        struct mongo_scram_keys keys;

        if (!credential->given)
            return failed(err);
        mongo_scram_derive(MONGO_SCRAM_SHA_256, password, credential->salt, credential->iterations,
                           &keys);
        good = CRYPTO_memcmp(keys.stored, credential->keys.stored,
                             mongo_scram_key_len(MONGO_SCRAM_SHA_256)) == 0;
        OPENSSL_cleanse(&keys, sizeof keys);
        if (!good)
            return failed(err);
        session_know_user(call->session, account_info(identity.account)->id, identity.name,
                          SLICE("admin"), identity.user->mark);
        return true;
    }
    if (!account_named(call, user, &account, err))
        return false;
    good = front_key_find(&account, call->options->door.dev, password, &key);
    if (good)
        session_know(call, user, SLICE("$external"), &account, &key);
    front_account_done(&account);
    return good || failed(err);
}

/* nobody, user and password, with a NUL before each of the two */
static bool plain_start(struct mongo_call *call, const struct start *start, struct buf *out,
                        struct error *err)
{
    struct slice payload, authority, user, password;
    bool good;

    if (!payload_bytes(&start->payload, &payload) || payload.len > PLAIN_MAX ||
        !slice_split(payload, 0, &authority, &user) || !slice_split(user, 0, &user, &password) ||
        (authority.len && !slice_equal(authority, user)))
        return failed(err);
    if (!mongo_call_blocks(call) || /* it may derive keys for milliseconds */
        !attempt_check(call, user, err))
        return failed(err);
    good = password_check(call, user, password, err);
    attempt_count(call, user, good);
    if (good)
        step_append(out, 1, true, SLICE_NONE);
    return good;
}

static bool start_run(struct mongo_call *call, const struct start *start, struct buf *out,
                      struct error *err)
{
    if (slice_equal(start->mechanism, SLICE("SCRAM-SHA-256")))
        return scram_start(call, MONGO_SCRAM_SHA_256, start, out, err);
    if (slice_equal(start->mechanism, SLICE("SCRAM-SHA-1")))
        return scram_start(call, MONGO_SCRAM_SHA_1, start, out, err);
    if (slice_equal(start->mechanism, SLICE("PLAIN")) && call->session->peer.tls)
        return plain_start(call, start, out, err);
    return mongo_error_set(
        err, MONGO_MECHANISM_UNAVAILABLE, "Received authentication for mechanism %.*s which is %s",
        (int)MIN(start->mechanism.len, (size_t)32), (const char *)start->mechanism.data,
        slice_equal(start->mechanism, SLICE("PLAIN")) ? "offered under TLS alone" : "not enabled");
}

bool mongo_sasl_start(struct mongo_call *call, struct error *err)
{
    struct start start = {0};

    return mongo_arguments_read(call, start_fields, ARRAY_LEN(start_fields), &start, err) &&
           start_run(call, &start, &call->reply, err);
}

/* --- Certificates ---------------------------------------------------------------------------- */

struct authentication {
    struct slice mechanism, user;
};

/* The subject of the client's certificate, which the loop knows, as the session keeps it. */
static bool subject_take(struct mongo_call *call, struct error *err)
{
    struct mongo_session *session = call->session;
    CLEANUP(buf_done) struct buf subject;

    buf_init(&subject, MONGO_SUBJECT_MAX);
    if (session->subject[0])
        return true;
    if (call->may_block || !mongo_request_subject(call->request, &subject) ||
        subject.len >= MONGO_USER_NAME_MAX)
        return mongo_error_set(err, MONGO_AUTHENTICATION_FAILED,
                               "There is no x.509 client certificate matching the user.");
    snprintf(session->subject, sizeof session->subject, "%.*s", SLICE_ARG(buf_slice(&subject)));
    return true;
}

/* The user is the subject, or of another account than the default one subject@account. */
static bool is_of_subject(struct slice user, struct slice subject)
{
    return slice_starts_with(user, subject) &&
           (user.len == subject.len || user.data[subject.len] == '@');
}

bool mongo_authenticate(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"mechanism", MONGO_FIELD_STRING, offsetof(struct authentication, mechanism), true},
        {"user", MONGO_FIELD_STRING, offsetof(struct authentication, user)},
    };
    CLEANUP(identity_done) struct identity identity = {0};
    struct authentication asked = {0};
    struct slice subject;
    bool cold, good;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err))
        return false;
    if (!slice_equal(asked.mechanism, SLICE("MONGODB-X509")))
        return mongo_error_set(err, MONGO_MECHANISM_UNAVAILABLE,
                               "Unsupported mechanism %.*s: authenticate is of MONGODB-X509",
                               (int)MIN(asked.mechanism.len, (size_t)32),
                               (const char *)asked.mechanism.data);
    if (!slice_equal(call->message.database, SLICE("$external")))
        return mongo_error_set(err, MONGO_PROTOCOL_ERROR,
                               "X.509 authentication must always use the $external database.");
    if (!subject_take(call, err))
        return false;
    subject = slice_of_text(call->session->subject);
    if (!asked.user.len)
        asked.user = subject;
    if (!attempt_check(call, asked.user, err))
        return false;
    if (is_of_subject(asked.user, subject) &&
        !identity_find(call, asked.user, SLICE("$external"), &identity, &cold, err))
        return false;
    if (is_of_subject(asked.user, subject) && cold) {
        (void)mongo_call_blocks(call);
        return failed(err);
    }
    good = identity.user != NULL;
    attempt_count(call, asked.user, good);
    if (!good)
        return failed(err);
    session_know_user(call->session, account_info(identity.account)->id, identity.name,
                      SLICE("$external"), identity.user->mark);
    document_append_string(&call->reply, SLICE("dbname"), SLICE("$external"));
    document_append_string(&call->reply, SLICE("user"), asked.user);
    return true;
}

/* --- Going on -------------------------------------------------------------------------------- */

struct going_on {
    int64_t id;
    struct document_value payload;
};

static const struct mongo_field continue_fields[] = {
    {"conversationId", MONGO_FIELD_NUMBER, offsetof(struct going_on, id), true},
    {"payload", MONGO_FIELD_VALUE, offsetof(struct going_on, payload), true},
};

static bool proof_check(struct mongo_call *call, struct slice payload, struct slice *ret_answer,
                        struct error *err)
{
    struct mongo_sasl *sasl = &call->session->sasl;
    struct front_account account = {0};
    uint8_t signature[MONGO_SCRAM_KEY_MAX];
    struct mongo_scram_final final;
    struct slice signed_text;
    struct front_key key;
    bool good;

    if (!mongo_scram_final_read(payload, &final) || !slice_equal(final.nonce, sasl->nonce))
        return failed(err);
    if (sasl->of_user) {
        signed_text = arena_printf(call->arena, "%.*s,%.*s,%.*s", SLICE_ARG(sasl->first_bare),
                                   SLICE_ARG(sasl->server_first), SLICE_ARG(final.unproved));
        if (!mongo_scram_check(sasl->scram, &sasl->keys, signed_text, &final, signature))
            return failed(err);
        session_know_user(call->session, sasl->account, sasl->user, sasl->user_database,
                          sasl->mark);
        *ret_answer = mongo_scram_final_text(sasl->scram, signature, call->arena);
        return true;
    }
    if (!account_named(call, sasl->user, &account, err))
        return false;
    signed_text = arena_printf(call->arena, "%.*s,%.*s,%.*s", SLICE_ARG(sasl->first_bare),
                               SLICE_ARG(sasl->server_first), SLICE_ARG(final.unproved));
    good = mongo_credentials_prove(call->mongo->credentials,
                                   &(struct mongo_candidates){.user = sasl->user,
                                                              .database = sasl->user_database,
                                                              .account = &account,
                                                              .dev = call->options->door.dev},
                                   sasl->scram, signed_text, &final, &key, signature);
    if (good) {
        session_know(call, sasl->user, call->message.database, &account, &key);
        *ret_answer = mongo_scram_final_text(sasl->scram, signature, call->arena);
    }
    front_account_done(&account);
    return good || failed(err);
}

bool mongo_sasl_continue(struct mongo_call *call, struct error *err)
{
    struct mongo_session *session = call->session;
    struct mongo_sasl *sasl = &session->sasl;
    struct slice payload, answer = SLICE_NONE;
    struct going_on going_on = {0};
    bool done = true, good = true;

    if (!mongo_arguments_read(call, continue_fields, ARRAY_LEN(continue_fields), &going_on, err))
        return false;
    if (!sasl->begun || going_on.id != sasl->id)
        return mongo_error_set(err, MONGO_PROTOCOL_ERROR, "No SASL session state found");
    if (!payload_bytes(&going_on.payload, &payload)) {
        good = failed(err);
    } else if (!sasl->proved) {
        good = proof_check(call, payload, &answer, err);
        attempt_count(call, sasl->user, good);
        done = sasl->skip_empty;
        sasl->proved = good;
    } else if (payload.len) {
        good = mongo_error_set(err, MONGO_PROTOCOL_ERROR, "the exchange is over");
    }
    if (good)
        step_append(&call->reply, sasl->id, done, answer);
    else
        session_forget(session);
    if (done || !good) {
        int32_t id = sasl->id;

        sasl_end(session);
        sasl->id = id; /* the next conversation has another */
    }
    return good;
}

bool mongo_logout(struct mongo_call *call, struct error *err UNUSED)
{
    session_forget(call->session);
    sasl_end(call->session);
    return true;
}

/* --- With hello ------------------------------------------------------------------------------ */

static void mechanisms_append(struct mongo_call *call)
{
    struct document_value value;
    size_t list;

    if (!document_find(call->message.body, SLICE("saslSupportedMechs"), &value) ||
        value.type != DOCUMENT_STRING)
        return;
    /* the same for every user: who has none is not told */
    list = document_append_array_begin(&call->reply, SLICE("saslSupportedMechs"));
    document_append_string(&call->reply, SLICE("0"), SLICE("SCRAM-SHA-256"));
    document_append_string(&call->reply, SLICE("1"), SLICE("SCRAM-SHA-1"));
    document_end(&call->reply, list);
}

static const struct mongo_field speculative_fields[] = {
    {"saslStart", MONGO_FIELD_ANY},
    {"mechanism", MONGO_FIELD_STRING, offsetof(struct start, mechanism), true},
    {"payload", MONGO_FIELD_VALUE, offsetof(struct start, payload), true},
    {"autoAuthorize", MONGO_FIELD_ANY},
    {"options", MONGO_FIELD_OBJECT, offsetof(struct start, options)},
    {"db", MONGO_FIELD_STRING, offsetof(struct start, db)},
};

/* What fails here is left out, and the client begins anew by itself. */
static void speculative_append(struct mongo_call *call)
{
    CLEANUP(buf_done) struct buf step;
    struct document_value value;
    struct start start = {0};
    struct error unused;
    size_t begin;

    buf_init(&step, BUF_DEFAULT_MAX);
    if (!document_find(call->message.body, SLICE("speculativeAuthenticate"), &value) ||
        value.type != DOCUMENT_OBJECT ||
        !document_find(value.document, SLICE("saslStart"), &(struct document_value){0}) ||
        !mongo_fields_read(value.document, "speculativeAuthenticate", speculative_fields,
                           ARRAY_LEN(speculative_fields), &start, &unused) ||
        !slice_starts_with(start.mechanism, SLICE("SCRAM-")))
        return;
    begin = document_begin(&step);
    if (!start_run(call, &start, &step, &unused)) {
        call->close = false; /* hello itself is fine */
        return;
    }
    document_end(&step, begin);
    value = document_object(buf_slice(&step));
    document_append(&call->reply, SLICE("speculativeAuthenticate"), &value);
}

void mongo_sasl_hello(struct mongo_call *call)
{
    mechanisms_append(call);
    speculative_append(call);
}
