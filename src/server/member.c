/* One thread, one session (engine/members.h) and one lock around both. The thread holds the lock
 * while it beats and claims; others borrow the session between two beats.
 *
 *     FOLLOWER --claims--> CLAIMED --a beat finds another owner--> LOST
 *
 * LOST is the end: what such a server remembers of the nodes may be wrong, so it begins again as a
 * server that knows nothing. So does one whose registration is gone.
 *
 * Between beats the thread waits at the session itself for what other servers notify, and lets go
 * of it when somebody wants to borrow it (wake_fd).
 *
 * While the owner's sessions are gone the thread looks ten times a second and asks the owner's
 * address, too. */
#include "server/member.h"

#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HURRY_MS = 100, ASK_MS = 200 };

struct member {
    const struct settings *settings;
    struct log *log;
    struct member_options options;
    struct engine_member self;
    struct thread thread;
    bool started;

    struct mutex session_lock; /* before lock */
    struct engine_members *members;
    int wake_fd; /* an eventfd: the thread is to look at lent and stopping */

    struct mutex lock; /* of what follows */
    struct condition changed;
    struct engine_membership seen;
    int64_t beat_ms; /* when the last acknowledged beat was sent */
    struct lease lease;
    enum member_role role;
    struct engine_claim claim;
    char owner[ENGINE_MEMBER_NAME_SIZE];
    bool may_claim, stopping;
    int lent; /* who has the session beside the thread, or waits for it */
    bool told_skew;
    uint64_t beats, failures, claims, losses;
};

bool member_is_wanted(const struct settings *settings)
{
    return strcmp(settings->servers_listen, "off") != 0;
}

/* --- Settings -------------------------------------------------------------------------------- */

static bool text_set(char *to, size_t size, const char *name, const char *value, struct error *err)
{
    int length = snprintf(to, size, "%s", value);

    return (length >= 0 && (size_t)length < size) ||
           error_set(err, ERROR_CONFIGURATION, "%s has more than %zu characters", name, size - 1);
}

static bool name_is_good(const char *name)
{
    size_t count = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return count > 0 && name[count] == '\0' && name[0] != '-';
}

static bool self_make(const struct settings *settings, struct engine_member *ret_self,
                      struct error *err)
{
    const char *address =
        settings->servers_advertise[0] ? settings->servers_advertise : settings->servers_listen;
    struct net_address parsed;

    if (!name_is_good(settings->servers_name))
        return error_set(
            err, ERROR_CONFIGURATION,
            "servers.name has to be set where servers.listen is: small letters, digits "
            "and hyphens, another for each server");
    if (!net_address_parse(slice_of_text(address), &parsed, err))
        return error_prefix(err, "servers.%s",
                            settings->servers_advertise[0] ? "advertise" : "listen");
    if (net_address_port(&parsed) == 0 || net_address_is_any(&parsed))
        return error_set(err, ERROR_CONFIGURATION,
                         "servers.%s: other servers cannot reach \"%s\"; say in servers.advertise "
                         "where they do",
                         settings->servers_advertise[0] ? "advertise" : "listen", address);
    return text_set(ret_self->name, sizeof ret_self->name, "servers.name", settings->servers_name,
                    err) &&
           text_set(ret_self->address, sizeof ret_self->address, "servers.advertise", address,
                    err) &&
           text_set(ret_self->endpoint, sizeof ret_self->endpoint, "servers.endpoint",
                    settings->servers_endpoint, err) &&
           text_set(ret_self->region, sizeof ret_self->region, "servers.region",
                    settings->servers_region, err) &&
           text_set(ret_self->release, sizeof ret_self->release, "release", ORRERY_VERSION, err);
}

bool member_check(const struct settings *settings, struct error *err)
{
    struct engine_member ignored;

    if (!member_is_wanted(settings))
        return true;
    if (settings->node_count == 0)
        return error_set(err, ERROR_CONFIGURATION,
                         "servers share nodes: name the root with --node NAME=postgresql://...");
    for (size_t i = 0; i < settings->node_count; i++)
        if (!engine_is_shareable(slice_of_text(settings->nodes[i].url)))
            return error_set(err, ERROR_CONFIGURATION,
                             "node \"%s\" is of one process and cannot be shared by servers "
                             "(servers.listen): only postgresql: nodes can",
                             settings->nodes[i].name);
    if (settings->servers_lease_ms < 2 * settings->servers_beat_ms)
        return error_set(err, ERROR_CONFIGURATION,
                         "servers.lease_ms has to be at least twice servers.beat_ms");
    return self_make(settings, &ignored, err);
}

/* --- The owner's address --------------------------------------------------------------------- */

/* Does somebody listen there? Only a refusal counts: silence may be the network's. */
static bool address_refuses(const char *text)
{
    struct net_address address;
    struct error ignored;
    struct pollfd wait;
    int fd, reason = 0;
    socklen_t size = sizeof reason;

    if (!net_address_parse(slice_of_text(text), &address, &ignored))
        return false;
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (connect(fd, &address.any, address.len) != 0) {
        reason = errno;
        wait = (struct pollfd){.fd = fd, .events = POLLOUT};
        if (reason == EINPROGRESS && (poll(&wait, 1, ASK_MS) != 1 ||
                                      getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) != 0))
            reason = 0;
    }
    close(fd);
    return reason == ECONNREFUSED;
}

/* --- The thread ------------------------------------------------------------------------------ */

static struct lease_rules rules_of(const struct member *member)
{
    return (struct lease_rules){member->settings->servers_beat_ms,
                                member->settings->servers_lease_ms};
}

static void role_turn(struct member *member, enum member_role role)
{
    bool turned = false;

    WITH_LOCK (&member->lock) {
        turned = member->role != role && member->role != MEMBER_LOST;
        if (turned)
            member->role = role;
        condition_broadcast(&member->changed);
    }
    if (turned)
        member->options.turned(member->options.context, role);
}

static void claimed(struct member *member, const struct engine_claim *claim)
{
    WITH_LOCK (&member->lock) {
        member->claim = *claim;
        member->claims++;
        member->seen.owner = claim->member; /* as the next beat will find it */
        member->seen.term = claim->term;
        snprintf(member->owner, sizeof member->owner, "%s", member->self.name);
    }
    log_event(member->log, LOG_WARNING, "this server owns the nodes",
              LOG_TEXT("server", member->self.name), LOG_INT("term", (int64_t)claim->term));
    role_turn(member, MEMBER_CLAIMED);
}

static void claim_try(struct member *member, const struct engine_membership *seen,
                      enum lease_verdict verdict)
{
    const struct engine_member *before = engine_membership_find(seen, seen->owner);
    struct engine_claim claim;
    bool won = false;
    struct error err;
    const char *why;

    if (!lease_may_claim(seen, engine_members_incarnation(member->members),
                         member->settings->servers_skew_ms_max, &why))
        return;
    WITH_LOCK (&member->session_lock)
        won = engine_members_claim(member->members, seen, &claim, &err);
    if (won) {
        if (verdict == LEASE_ENDED && before)
            log_event(member->log, LOG_WARNING, "the lease of another server has ended",
                      LOG_TEXT("server", before->name));
        claimed(member, &claim);
    } else {
        log_event(member->log, LOG_INFO, "the root was not claimed",
                  LOG_TEXT("because", err.message));
    }
}

/* The owner, for who asks; and that it is another, for the log. */
static void owner_note(struct member *member, const struct engine_membership *seen)
{
    const struct engine_member *owner = engine_membership_find(seen, seen->owner);
    bool other = false;

    WITH_LOCK (&member->lock) {
        other = owner && strcmp(member->owner, owner->name) != 0;
        if (owner)
            snprintf(member->owner, sizeof member->owner, "%s", owner->name);
    }
    if (other)
        log_event(member->log, LOG_INFO, "another server owns the nodes",
                  LOG_TEXT("server", owner->name), LOG_TEXT("address", owner->address));
}

static void skew_tell(struct member *member, const struct engine_membership *seen)
{
    int64_t skew_ms = lease_skew_ms(seen);
    bool off = skew_ms > member->settings->servers_skew_ms_max;

    if (off && !member->told_skew)
        log_event(member->log, LOG_WARNING,
                  "the clock of this machine is off: this server claims nothing",
                  LOG_INT("ms", skew_ms));
    member->told_skew = off;
}

static void beat_judge(struct member *member, const struct engine_membership *seen)
{
    struct lease_rules rules = rules_of(member);
    uint64_t self = engine_members_incarnation(member->members);
    int64_t now_ms = clock_monotonic_ms();
    enum lease_verdict verdict;
    enum member_role role;
    bool may_claim;

    WITH_LOCK (&member->lock) {
        lease_look(&member->lease, seen, now_ms);
        role = member->role;
        may_claim = member->may_claim;
    }
    skew_tell(member, seen);
    if (member->lease.probing) {
        const struct engine_member *owner = engine_membership_find(seen, seen->owner);

        lease_asked(&member->lease, address_refuses(owner->address), clock_monotonic_ms());
    }
    verdict = lease_judge(&member->lease, &rules, seen, self, clock_monotonic_ms());
    if (role == MEMBER_CLAIMED && verdict != LEASE_OURS) {
        WITH_LOCK (&member->lock)
            member->losses++;
        log_event(member->log, LOG_ERROR, "this server owns the nodes no more",
                  LOG_TEXT("server", member->self.name));
        role_turn(member, MEMBER_LOST);
        return;
    }
    if (role == MEMBER_FOLLOWER)
        owner_note(member, seen);
    if (role != MEMBER_FOLLOWER || !may_claim)
        return;
    /* A claim whose answer was lost is found here. */
    if (verdict == LEASE_OURS)
        claimed(member, &(struct engine_claim){self, seen->term});
    else if (verdict == LEASE_FREE || verdict == LEASE_ENDED)
        claim_try(member, seen, verdict);
}

/* An owner that is to drain hands over by beginning again. */
static bool drains(const struct member *member, const struct engine_membership *seen)
{
    const struct engine_member *self =
        engine_membership_find(seen, engine_members_incarnation(member->members));

    return self && self->draining;
}

/* False: the registration is gone. */
static bool beat_once(struct member *member, struct error *err)
{
    CLEANUP(memory_free) struct engine_membership *seen = MEMORY_NEW(struct engine_membership);
    int64_t sent_ms = clock_monotonic_ms();
    enum member_role role;
    bool done = false;

    WITH_LOCK (&member->session_lock)
        done = engine_members_beat(member->members, seen, err);
    WITH_LOCK (&member->lock) {
        if (done) {
            member->seen = *seen;
            member->beat_ms = sent_ms;
            member->beats++;
        } else {
            member->failures++;
        }
        role = member->role;
        condition_broadcast(&member->changed);
    }
    if (!done) {
        member->options.seen(member->options.context, NULL);
        return err->code != ERROR_STORE_IN_USE;
    }
    beat_judge(member, seen);
    member->options.seen(member->options.context, seen);
    if (role == MEMBER_CLAIMED && drains(member, seen)) {
        log_event(member->log, LOG_WARNING, "this server drains",
                  LOG_TEXT("server", member->self.name));
        role_turn(member, MEMBER_LOST);
    }
    return true;
}

static void member_wake(struct member *member)
{
    (void)!eventfd_write(member->wake_fd, 1);
}

static void session_borrow(struct member *member)
{
    WITH_LOCK (&member->lock)
        member->lent++;
    member_wake(member);
    mutex_lock(&member->session_lock);
}

static void session_return(struct member *member)
{
    mutex_unlock(&member->session_lock);
    WITH_LOCK (&member->lock) {
        member->lent--;
        condition_broadcast(&member->changed);
    }
}

/* Until it is time, or others notify something. False: the server stops. */
static bool beat_await(struct member *member, int64_t due_ms)
{
    eventfd_t ignored;
    bool told = false, stopping;

    do {
        (void)!eventfd_read(member->wake_fd, &ignored);
        WITH_LOCK (&member->lock) {
            while (member->lent > 0 && !member->stopping)
                condition_wait(&member->changed, &member->lock);
            stopping = member->stopping;
        }
        if (!stopping)
            WITH_LOCK (&member->session_lock)
                told = engine_members_wait(member->members, member->wake_fd,
                                           MAX(due_ms - clock_monotonic_ms(), (int64_t)0));
    } while (!stopping && !told && clock_monotonic_ms() < due_ms);
    return !stopping;
}

static void stop_await(struct member *member)
{
    WITH_LOCK (&member->lock)
        while (!member->stopping)
            condition_wait(&member->changed, &member->lock);
}

static void member_run(void *context)
{
    struct member *member = context;
    bool known = true;
    int64_t due_ms;

    do {
        struct error err;

        due_ms = clock_monotonic_ms();
        known = beat_once(member, &err);

        if (!known) {
            log_error(member->log, "this server begins again", &err);
            WITH_LOCK (&member->lock)
                member->losses++;
            role_turn(member, MEMBER_LOST);
        }
        WITH_LOCK (&member->lock)
            due_ms += member->lease.probing && member->role == MEMBER_FOLLOWER
                          ? MIN((int64_t)HURRY_MS, member->settings->servers_beat_ms)
                          : member->settings->servers_beat_ms;
    } while (known && beat_await(member, due_ms));
    if (!known)
        stop_await(member);
}

/* --- Beginning and ending -------------------------------------------------------------------- */

static bool clock_check(const struct member *member, struct error *err)
{
    int64_t skew_ms = lease_skew_ms(&member->seen);

    return skew_ms <= member->settings->servers_skew_ms_max ||
           error_set(err, ERROR_CONFIGURATION,
                     "the clock of this machine is %lld ms %s that of node \"%s\" "
                     "(servers.skew_ms_max = %lld): set it right first",
                     (long long)skew_ms, member->seen.offset_ms > 0 ? "ahead of" : "behind",
                     member->settings->nodes[0].name,
                     (long long)member->settings->servers_skew_ms_max);
}

bool member_new(const struct member_options *options, struct member **ret_member, struct error *err)
{
    CLEANUP(member_free) struct member *member = MEMORY_NEW(struct member);
    const struct settings *settings = options->settings;

    member->settings = settings;
    member->log = options->log;
    member->options = *options;
    mutex_init(&member->session_lock);
    mutex_init(&member->lock);
    condition_init(&member->changed);
    member->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (member->wake_fd < 0)
        return error_set_errno(err, ERROR_SYSTEM, "cannot make an eventfd");
    if (!self_make(settings, &member->self, err) ||
        !engine_members_open(
            slice_of_text(settings->nodes[0].url),
            &(struct engine_members_options){.log = options->log,
                                             .connect_ms_max = settings->engine_connect_ms_max,
                                             .self = &member->self},
            &member->members, err))
        return error_prefix(err, "node \"%s\"", settings->nodes[0].name);
    if (!engine_members_beat(member->members, &member->seen, err) || !clock_check(member, err))
        return false;
    member->beat_ms = clock_monotonic_ms();
    member->beats = 1;
    *ret_member = TAKE(member);
    return true;
}

void member_begin(struct member *member)
{
    WITH_LOCK (&member->lock)
        member->may_claim = true;
    if (member->started)
        return;
    member->started = true;
    thread_start(&member->thread, "member", member_run, member);
}

void member_free(struct member *member)
{
    struct error err;

    if (!member)
        return;
    WITH_LOCK (&member->lock) {
        member->stopping = true;
        condition_broadcast(&member->changed);
    }
    member_wake(member);
    if (member->started)
        thread_join(&member->thread);
    if (member->members && member->claims && !engine_members_release(member->members, &err))
        log_error(member->log, "others wait for the lease of this server to end", &err);
    engine_members_close(member->members);
    if (member->wake_fd >= 0)
        close(member->wake_fd);
    condition_done(&member->changed);
    mutex_done(&member->lock);
    mutex_done(&member->session_lock);
    memory_free(member);
}

/* --- Asking ---------------------------------------------------------------------------------- */

struct engine_claim member_claim(struct member *member)
{
    struct engine_claim claim;

    WITH_LOCK (&member->lock)
        claim = member->claim;
    return claim;
}

bool member_is_fenced(struct member *member)
{
    bool fenced = false;

    WITH_LOCK (&member->lock)
        fenced = member->losses > 0;
    return fenced;
}

uint64_t member_incarnation(const struct member *member)
{
    return engine_members_incarnation(member->members);
}

int64_t member_membership(struct member *member, struct engine_membership *ret_membership)
{
    int64_t age_ms = 0;

    WITH_LOCK (&member->lock) {
        *ret_membership = member->seen;
        age_ms = clock_monotonic_ms() - member->beat_ms;
    }
    return age_ms;
}

int64_t member_beat_ms(struct member *member)
{
    int64_t beat_ms = 0;

    WITH_LOCK (&member->lock)
        beat_ms = member->beat_ms;
    return beat_ms;
}

void member_owner_name(struct member *member, char ret_name[ENGINE_MEMBER_NAME_SIZE])
{
    WITH_LOCK (&member->lock)
        memcpy(ret_name, member->owner, ENGINE_MEMBER_NAME_SIZE);
}

bool member_get(struct member *member, uint32_t partition, struct slice key, struct arena *arena,
                struct engine_value *ret_value, struct error *err)
{
    bool got = false;

    session_borrow(member);
    got = engine_members_get(member->members, partition, key, arena, ret_value, err);
    session_return(member);
    return got;
}

/* Somebody has to be there to take over. */
static bool others_serve(struct member *member, struct slice name, struct error *err)
{
    bool others = false;

    WITH_LOCK (&member->lock)
        for (size_t i = 0; i < member->seen.count; i++) {
            const struct engine_member *other = &member->seen.list[i];

            others |= other->present && !other->draining &&
                      !slice_equal(slice_of_text(other->name), name);
        }
    return others || error_set(err, ERROR_BAD_REQUEST,
                               "there is no other server that could take over from \"%.*s\"",
                               SLICE_ARG(name));
}

bool member_drain(struct member *member, struct slice name, bool on, struct error *err)
{
    bool said = false;

    if (on && !others_serve(member, name, err))
        return false;
    session_borrow(member);
    said = engine_members_drain(member->members, name, on, err);
    session_return(member);
    return said;
}

bool member_forget(struct member *member, struct slice name, struct error *err)
{
    bool forgotten = false;

    session_borrow(member);
    forgotten = engine_members_forget(member->members, name, err);
    session_return(member);
    return forgotten;
}

void member_metrics(struct member *member, struct member_metrics *ret_metrics)
{
    WITH_LOCK (&member->lock)
        *ret_metrics = (struct member_metrics){
            .beats = member->beats,
            .failures = member->failures,
            .claims = member->claims,
            .losses = member->losses,
            .beat_age_ms = clock_monotonic_ms() - member->beat_ms,
            .skew_ms = lease_skew_ms(&member->seen),
        };
}
