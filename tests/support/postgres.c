/* The server runs as another user when we are root, which it refuses to run as. A watchdog process
 * waits on a pipe that only this program holds open: when it closes, by postgres_free or by any
 * kind of death, the watchdog ends the server and removes the directory. */
#include "support/postgres.h"

#include "base/clock.h"
#include "base/memory.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS_MAX = 30000, STOP_MS_MAX = 10000, POLL_MS = 10 };

struct postgres {
    struct scratch scratch;
    bool fsync;
    const char *const *settings; /* ended by NULL */
    uid_t user;
    gid_t group;
    pid_t server; /* 0: stopped */
    pid_t watchdog;
    int watchdog_pipe; /* write end: the pids of the servers */
    unsigned databases;
    char database[32], url[800], socket[128], answer[256];
    char followed[200]; /* the connection of a standby */
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static NORETURN void give_up(const struct postgres *postgres, const char *what)
{
    char command[160];

    fprintf(stderr, "test server: %s\n", what);
    snprintf(command, sizeof command, "tail -n 20 %s/log >&2", postgres->scratch.path);
    if (system(command) != 0)
        fprintf(stderr, "test server: no log\n");
    abort();
}

/* --- The watchdog ---------------------------------------------------------------------------- */

static void server_end(pid_t server)
{
    if (server <= 0 || kill(server, SIGQUIT) != 0)
        return;
    for (int waited = 0; waited < STOP_MS_MAX && kill(server, 0) == 0; waited += POLL_MS)
        sleep_ms(POLL_MS);
    kill(server, SIGKILL);
}

static NORETURN void watchdog_run(int pipe_end, const char *directory)
{
    pid_t server = 0, told;

    setsid();
    for (int signal_number = 1; signal_number < 32; signal_number++)
        signal(signal_number, SIG_IGN);
    /* A pipe of the test runner must not stay open for our sake. */
    for (int fd = 0; fd < 64; fd++)
        if (fd != pipe_end)
            close(fd);
    while (read(pipe_end, &told, sizeof told) == sizeof told)
        server = told;
    server_end(server);
    scratch_remove(directory);
    _exit(0);
}

static void watchdog_start(struct postgres *postgres)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        give_up(postgres, "no pipe");
    postgres->watchdog = fork();
    if (postgres->watchdog == 0) {
        close(ends[1]);
        watchdog_run(ends[0], postgres->scratch.path);
    }
    close(ends[0]);
    postgres->watchdog_pipe = ends[1];
}

static void watchdog_tell(struct postgres *postgres, pid_t server)
{
    if (write(postgres->watchdog_pipe, &server, sizeof server) != sizeof server)
        give_up(postgres, "the watchdog is gone");
}

/* --- Processes ------------------------------------------------------------------------------- */

/* Becomes the server's user and the program; its output goes to the log. */
static NORETURN void child_exec(const struct postgres *postgres, const char *const *arguments)
{
    char path[200];
    const char *whole[32] = {path}; /* the programs find each other by the path of the first */
    int log = open(scratch_path(&postgres->scratch, "log"), O_WRONLY | O_CREAT | O_APPEND, 0666);

    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (getuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(postgres->group) != 0 || setuid(postgres->user) != 0))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* the watchdog would do it too, but later */
    if (chdir(postgres->scratch.path) != 0)
        _exit(126);
    snprintf(path, sizeof path, "%s/%s", POSTGRES_BIN, arguments[0]);
    for (size_t i = 1; arguments[i]; i++) {
        assert(i + 1 < ARRAY_LEN(whole));
        whole[i] = arguments[i];
    }
    execv(path, (char *const *)whole);
    _exit(127);
}

static pid_t child_start(const struct postgres *postgres, const char *const *arguments)
{
    pid_t child = fork();

    if (child == 0)
        child_exec(postgres, arguments);
    return child;
}

static void user_find(struct postgres *postgres)
{
    static const char *const names[] = {"postgres", "nobody"};

    if (getuid() != 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct passwd *entry = getpwnam(names[i]);

        if (!entry)
            continue;
        postgres->user = entry->pw_uid;
        postgres->group = entry->pw_gid;
        if (chown(postgres->scratch.path, entry->pw_uid, entry->pw_gid) == 0)
            return;
    }
    give_up(postgres, "no user to run the server as");
}

static void child_finish(const struct postgres *postgres, const char *const *arguments)
{
    pid_t child = child_start(postgres, arguments);
    int status;

    if (waitpid(child, &status, 0) != child || status != 0)
        give_up(postgres, arguments[0]);
}

static void cluster_make(const struct postgres *postgres)
{
    const char *arguments[] = {"initdb", "-D",         "data",      "-U",
                               "orrery", "-A",         "trust",     "-E",
                               "UTF8",   "--locale=C", "--no-sync", "--no-instructions",
                               NULL};

    child_finish(postgres, arguments);
}

static void cluster_copy(const struct postgres *postgres)
{
    const char *arguments[] = {"pg_basebackup",    "-D", "data", "-d",
                               postgres->followed, "-R", "-c",   "fast",
                               "--no-sync",        NULL};

    child_finish(postgres, arguments);
}

/* --- Starting and stopping ------------------------------------------------------------------- */

static bool server_answers(const struct postgres *postgres)
{
    const char *names[] = {"host", "user", "dbname", NULL};
    const char *values[] = {postgres->scratch.path, "orrery", "postgres", NULL};

    return PQpingParams(names, values, 0) == PQPING_OK;
}

static bool server_has_exited(struct postgres *postgres)
{
    if (waitpid(postgres->server, NULL, WNOHANG) != postgres->server)
        return false;
    postgres->server = 0;
    return true;
}

/* After a kill -9 the remaining processes of the old server keep the new one from starting for a
 * moment: then it is tried again. */
void postgres_restart(struct postgres *postgres)
{
    char sockets[160];
    const char *arguments[32] = {"postgres",
                                 "-D",
                                 "data",
                                 "-c",
                                 "listen_addresses=",
                                 "-c",
                                 sockets,
                                 "-c",
                                 postgres->fsync ? "fsync=on" : "fsync=off",
                                 "-c",
                                 postgres->fsync ? "shared_buffers=128MB" : "shared_buffers=32MB",
                                 "-c",
                                 "max_connections=300",
                                 "-c",
                                 "log_min_messages=error"};
    int64_t deadline_ms = clock_monotonic_ms() + START_MS_MAX;
    size_t count = 0;

    assert(postgres->server == 0);
    while (arguments[count])
        count++;
    for (const char *const *setting = postgres->settings; *setting; setting++) {
        assert(count + 2 < ARRAY_LEN(arguments));
        arguments[count++] = "-c"; /* the last of several counts */
        arguments[count++] = *setting;
    }
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", postgres->scratch.path);
    while (!postgres->server || !server_answers(postgres)) {
        if (clock_monotonic_ms() > deadline_ms)
            give_up(postgres, "it does not start");
        if (!postgres->server || server_has_exited(postgres)) {
            postgres->server = child_start(postgres, arguments);
            watchdog_tell(postgres, postgres->server);
        }
        sleep_ms(POLL_MS);
    }
}

struct postgres *postgres_start(bool fsync)
{
    static const char *const none[] = {NULL};

    return postgres_start_with(fsync, none);
}

static struct postgres *postgres_new(bool fsync, const char *const *settings)
{
    struct postgres *postgres = MEMORY_NEW(struct postgres);

    postgres->fsync = fsync;
    postgres->settings = settings;
    scratch_init(&postgres->scratch);
    snprintf(postgres->socket, sizeof postgres->socket, "%s/.s.PGSQL.5432", postgres->scratch.path);
    watchdog_start(postgres);
    user_find(postgres);
    return postgres;
}

struct postgres *postgres_start_with(bool fsync, const char *const *settings)
{
    struct postgres *postgres = postgres_new(fsync, settings);

    cluster_make(postgres);
    postgres_restart(postgres);
    return postgres;
}

void postgres_restart_standby(struct postgres *postgres, struct postgres *of, const char *name)
{
    assert(postgres->server == 0);
    scratch_remove(scratch_path(&postgres->scratch, "data"));
    memcpy(postgres->database, of->database, sizeof postgres->database);
    snprintf(postgres->followed, sizeof postgres->followed,
             "host=%s user=orrery application_name=%s", of->scratch.path, name);
    cluster_copy(postgres);
    postgres_restart(postgres);
}

struct postgres *postgres_start_standby(struct postgres *of, const char *name)
{
    struct postgres *postgres = postgres_new(of->fsync, of->settings);

    postgres_restart_standby(postgres, of, name);
    return postgres;
}

void postgres_stop(struct postgres *postgres, enum postgres_stop how)
{
    static const int signals[] = {[POSTGRES_STOP_FAST] = SIGINT,
                                  [POSTGRES_STOP_IMMEDIATE] = SIGQUIT,
                                  [POSTGRES_STOP_KILL] = SIGKILL};

    if (!postgres->server)
        return;
    kill(postgres->server, signals[how]);
    waitpid(postgres->server, NULL, 0);
    postgres->server = 0;
    watchdog_tell(postgres, 0);
}

void postgres_free(struct postgres *postgres)
{
    if (!postgres)
        return;
    postgres_stop(postgres, POSTGRES_STOP_IMMEDIATE);
    close(postgres->watchdog_pipe);
    waitpid(postgres->watchdog, NULL, 0);
    memory_free(postgres);
}

/* --- Databases ------------------------------------------------------------------------------- */

static void query_run(struct postgres *postgres, const char *database, const char *sql)
{
    const char *names[] = {"host", "user", "dbname", NULL};
    const char *values[] = {postgres->scratch.path, "orrery", database, NULL};
    PGconn *connection = PQconnectdbParams(names, values, 0);
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fprintf(stderr, "%s: %s", sql, PQerrorMessage(connection));
        give_up(postgres, "a query of the test failed");
    }
    snprintf(postgres->answer, sizeof postgres->answer, "%s",
             PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(connection);
}

const char *postgres_query(struct postgres *postgres, const char *sql)
{
    query_run(postgres, postgres->database, sql);
    return postgres->answer;
}

void postgres_promote(struct postgres *postgres)
{
    query_run(postgres, "postgres", "SELECT pg_promote(true, 60)");
    if (strcmp(postgres->answer, "t") != 0)
        give_up(postgres, "it was not promoted");
}

/* Says it and waits until the server has read it. */
static void setting_set(struct postgres *postgres, const char *name, const char *value)
{
    char sql[320], look[320];

    snprintf(sql, sizeof sql, "ALTER SYSTEM SET %s = '%s'", name, value);
    query_run(postgres, "postgres", sql);
    query_run(postgres, "postgres", "SELECT pg_reload_conf()");
    snprintf(look, sizeof look, "SELECT current_setting('%s') = '%s'", name, value);
    do {
        sleep_ms(POLL_MS);
        query_run(postgres, "postgres", look);
    } while (strcmp(postgres->answer, "t") != 0);
}

void postgres_follow(struct postgres *postgres, bool on)
{
    setting_set(postgres, "primary_conninfo", on ? postgres->followed : "");
    do {
        sleep_ms(POLL_MS);
        query_run(postgres, "postgres", "SELECT count(*) > 0 FROM pg_stat_wal_receiver");
    } while (strcmp(postgres->answer, on ? "t" : "f") != 0);
}

void postgres_synchronous(struct postgres *postgres, const char *names)
{
    setting_set(postgres, "synchronous_standby_names", names);
    /* A standby that is named counts when its next message comes. */
    while (*names) {
        query_run(postgres, "postgres",
                  "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state <> 'async'");
        if (strcmp(postgres->answer, "t") == 0)
            return;
        sleep_ms(POLL_MS);
    }
}

const char *postgres_url_of(struct postgres *const *servers, size_t count)
{
    struct postgres *first = servers[0];
    size_t len = (size_t)snprintf(first->url, sizeof first->url,
                                  "postgresql://orrery:secret@/%s?host=", first->database);

    for (size_t i = 0; i < count && len < sizeof first->url; i++)
        len += (size_t)snprintf(first->url + len, sizeof first->url - len, "%s%s", i ? "," : "",
                                servers[i]->scratch.path);
    return first->url;
}

const char *postgres_fresh_url(struct postgres *postgres)
{
    char sql[64];

    snprintf(postgres->database, sizeof postgres->database, "t%u", ++postgres->databases);
    snprintf(sql, sizeof sql, "CREATE DATABASE %s", postgres->database);
    query_run(postgres, "postgres", sql);
    snprintf(postgres->url, sizeof postgres->url, "postgresql://orrery:secret@/%s?host=%s",
             postgres->database, postgres->scratch.path);
    return postgres->url;
}

const char *postgres_database(const struct postgres *postgres)
{
    return postgres->database;
}

const char *postgres_socket(const struct postgres *postgres)
{
    return postgres->socket;
}

pid_t postgres_process(const struct postgres *postgres)
{
    return postgres->server;
}
