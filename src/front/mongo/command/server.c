/* Commands about the connection and the server itself. */
#include "base/clock.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/call.h"

#include <openssl/opensslv.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

/* --- The connection -------------------------------------------------------------------------- */

bool mongo_ping(struct mongo_call *call UNUSED, struct error *err UNUSED)
{
    return true;
}

bool mongo_whatsmyuri(struct mongo_call *call, struct error *err UNUSED)
{
    char text[NET_ADDRESS_TEXT_SIZE];

    net_address_text(&call->session->peer.address, text);
    document_append_string(&call->reply, SLICE("you"), slice_of_text(text));
    return true;
}

/* What a key gives, as roles of MongoDB. */
static struct slice key_roles(struct mongo_call *call)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin, entry;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    entry = document_append_object_begin(&out, SLICE("0"));
    document_append_string(&out, SLICE("role"),
                           call->session->key.readonly ? SLICE("readAnyDatabase") : SLICE("root"));
    document_append_string(&out, SLICE("db"), SLICE("admin"));
    document_end(&out, entry);
    document_end(&out, begin);
    return arena_copy(call->arena, buf_slice(&out));
}

struct status {
    bool show_privileges;
};

bool mongo_connection_status(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"showPrivileges", MONGO_FIELD_BOOL, offsetof(struct status, show_privileges)}};
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    CLEANUP(buf_done) struct buf inherited;
    const struct mongo_session *session = call->session;
    bool known = session->known && (session->by_key || session->by_user);
    struct mongo_privileges privileges = {.arena = call->arena};
    const struct mongo_principal *user;
    struct buf *out = &call->reply;
    struct slice roles = SLICE_NONE;
    struct status status = {0};
    size_t info, list, entry;

    buf_init(&inherited, BUF_DEFAULT_MAX);
    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &status, err))
        return false;
    if (known && call->account.account &&
        !mongo_directory_open(call->mongo->directories, account_info(call->account.account)->number,
                              call->may_block, &directory, err))
        return false;
    if (known && call->account.account && !directory)
        return mongo_call_blocks(call);
    if (known && session->by_key) {
        roles = key_roles(call);
    } else if (known && directory) {
        user = mongo_directory_user(directory, slice_of_text(session->user_database),
                                    slice_of_text(session->user));
        roles = user ? user->roles : SLICE_NONE;
    }
    if (directory)
        mongo_directory_resolve(directory, roles, &privileges, &inherited);
    info = document_append_object_begin(out, SLICE("authInfo"));
    list = document_append_array_begin(out, SLICE("authenticatedUsers"));
    if (known) {
        entry = document_append_object_begin(out, SLICE("0"));
        document_append_string(out, SLICE("user"), slice_of_text(session->user));
        document_append_string(out, SLICE("db"), slice_of_text(session->user_database));
        document_end(out, entry);
    }
    document_end(out, list);
    list = document_append_array_begin(out, SLICE("authenticatedUserRoles"));
    buf_append_slice(out, buf_slice(&inherited));
    document_end(out, list);
    if (status.show_privileges)
        mongo_privileges_append(&privileges, SLICE("authenticatedUserPrivileges"), out);
    document_end(out, info);
    return true;
}

bool mongo_last_statistics(struct mongo_call *call, struct error *err)
{
    const struct mongo_session *session = call->session;
    struct buf *out = &call->reply;

    if (!session->last_name[0])
        return mongo_error_set(err, MONGO_COMMAND_FAILED,
                               "no command was sent on this connection before");
    document_append_string(out, SLICE("_t"), SLICE("GetRequestStatisticsResponse"));
    document_append_string(out, SLICE("CommandName"), slice_of_text(session->last_name));
    document_append_double(out, SLICE("RequestCharge"), (double)session->last_cru / 100);
    document_append_int64(out, SLICE("RequestDurationInMilliSeconds"),
                          (int64_t)(session->last_ns / 1000000));
    return true;
}

/* --- Sessions -------------------------------------------------------------------------------- */

/* Nothing is kept of a session but what its cursors remember. */
/* --- The server ------------------------------------------------------------------------------ */

static void version_array_append(struct buf *out)
{
    static const int32_t parts[] = {7, 0, 16, 0};
    size_t list = document_append_array_begin(out, SLICE("versionArray"));
    char text[DOCUMENT_INDEX_SIZE];

    for (uint32_t i = 0; i < ARRAY_LEN(parts); i++)
        document_append_int32(out, document_index_key(i, text), parts[i]);
    document_end(out, list);
}

bool mongo_build_info(struct mongo_call *call, struct error *err UNUSED)
{
    struct buf *out = &call->reply;
    size_t part;

    document_append_string(out, SLICE("version"), SLICE(MONGO_VERSION));
    document_append_string(out, SLICE("gitVersion"), SLICE("orrery " ORRERY_VERSION));
    document_end(out, document_append_array_begin(out, SLICE("modules")));
    document_append_string(out, SLICE("allocator"), SLICE("system"));
    document_append_string(out, SLICE("javascriptEngine"), SLICE("none"));
    document_append_string(out, SLICE("sysInfo"), SLICE("deprecated"));
    version_array_append(out);
    part = document_append_object_begin(out, SLICE("openssl"));
    document_append_string(out, SLICE("running"), SLICE(OPENSSL_VERSION_TEXT));
    document_end(out, part);
    document_end(out, document_append_object_begin(out, SLICE("buildEnvironment")));
    document_append_int32(out, SLICE("bits"), 64);
    document_append_bool(out, SLICE("debug"), false);
    document_append_int32(out, SLICE("maxBsonObjectSize"), MONGO_BSON_BYTES_MAX);
    part = document_append_array_begin(out, SLICE("storageEngines"));
    document_append_string(out, SLICE("0"), SLICE("orrery"));
    document_end(out, part);
    return true;
}

bool mongo_host_info(struct mongo_call *call, struct error *err UNUSED)
{
    struct buf *out = &call->reply;
    struct utsname names = {0};
    struct sysinfo machine = {0};
    size_t part;

    (void)uname(&names);
    (void)sysinfo(&machine);
    part = document_append_object_begin(out, SLICE("system"));
    document_append_date(out, SLICE("currentTime"), clock_read_wall_ms(call->services->clock));
    document_append_string(out, SLICE("hostname"), slice_of_text(names.nodename));
    document_append_int32(out, SLICE("cpuAddrSize"), 64);
    document_append_int64(out, SLICE("memSizeMB"),
                          (int64_t)((uint64_t)machine.totalram * machine.mem_unit / MIB));
    document_append_int32(out, SLICE("numCores"), (int32_t)sysconf(_SC_NPROCESSORS_ONLN));
    document_append_string(out, SLICE("cpuArch"), slice_of_text(names.machine));
    document_append_bool(out, SLICE("numaEnabled"), false);
    document_end(out, part);
    part = document_append_object_begin(out, SLICE("os"));
    document_append_string(out, SLICE("type"), slice_of_text(names.sysname));
    document_append_string(out, SLICE("name"), slice_of_text(names.sysname));
    document_append_string(out, SLICE("version"), slice_of_text(names.release));
    document_end(out, part);
    document_end(out, document_append_object_begin(out, SLICE("extra")));
    return true;
}

static void tallies_append(struct mongo_call *call)
{
    static const char *const names[MONGO_TALLIES] = {
        [MONGO_TALLY_INSERT] = "insert",   [MONGO_TALLY_QUERY] = "query",
        [MONGO_TALLY_UPDATE] = "update",   [MONGO_TALLY_DELETE] = "delete",
        [MONGO_TALLY_GETMORE] = "getmore", [MONGO_TALLY_COMMAND] = "command"};
    size_t part = document_append_object_begin(&call->reply, SLICE("opcounters"));

    for (int i = 0; i < MONGO_TALLIES; i++)
        document_append_int64(&call->reply, slice_of_text(names[i]),
                              (int64_t)atomic_load(&call->mongo->tallies[i]));
    document_end(&call->reply, part);
}

static void connections_append(struct mongo_call *call)
{
    struct mongo_wire_metrics sum = {0};
    struct buf *out = &call->reply;
    size_t part;

    for (int i = 0; i < MONGO_FACES; i++) {
        struct mongo_wire_metrics one;

        mongo_wire_metrics(call->mongo->wires[i], &one);
        sum.open += one.open;
        sum.opened += one.opened;
        sum.requests += one.requests;
        sum.bytes_in += one.bytes_in;
        sum.bytes_out += one.bytes_out;
    }
    part = document_append_object_begin(out, SLICE("connections"));
    document_append_int32(out, SLICE("current"), (int32_t)sum.open);
    document_append_int32(out, SLICE("available"),
                          (int32_t)(call->options->connections_max -
                                    MIN(sum.open, (uint64_t)call->options->connections_max)));
    document_append_int64(out, SLICE("totalCreated"), (int64_t)sum.opened);
    document_end(out, part);
    part = document_append_object_begin(out, SLICE("network"));
    document_append_int64(out, SLICE("bytesIn"), (int64_t)sum.bytes_in);
    document_append_int64(out, SLICE("bytesOut"), (int64_t)sum.bytes_out);
    document_append_int64(out, SLICE("numRequests"), (int64_t)sum.requests);
    document_end(out, part);
}

bool mongo_server_status(struct mongo_call *call, struct error *err UNUSED)
{
    int64_t up_ms = clock_read_monotonic_ms(call->services->clock) - call->mongo->started_ms;
    struct buf *out = &call->reply;
    struct utsname names = {0};
    struct rusage used = {0};
    size_t part, inner;

    (void)uname(&names);
    (void)getrusage(RUSAGE_SELF, &used);
    document_append_string(out, SLICE("host"), slice_of_text(names.nodename));
    document_append_string(out, SLICE("version"), SLICE(MONGO_VERSION));
    document_append_string(out, SLICE("process"),
                           call->session->face == MONGO_FACE_MONGOS ? SLICE("mongos")
                                                                    : SLICE("mongod"));
    document_append_int64(out, SLICE("pid"), getpid());
    document_append_int64(out, SLICE("uptime"), up_ms / 1000);
    document_append_int64(out, SLICE("uptimeMillis"), up_ms);
    document_append_int64(out, SLICE("uptimeEstimate"), up_ms / 1000);
    document_append_date(out, SLICE("localTime"), clock_read_wall_ms(call->services->clock));
    part = document_append_object_begin(out, SLICE("asserts"));
    document_append_int32(out, SLICE("regular"), 0);
    document_append_int32(out, SLICE("warning"), 0);
    document_append_int32(out, SLICE("msg"), 0);
    document_append_int32(out, SLICE("user"), 0);
    document_append_int32(out, SLICE("rollovers"), 0);
    document_end(out, part);
    connections_append(call);
    tallies_append(call);
    part = document_append_object_begin(out, SLICE("mem"));
    document_append_int32(out, SLICE("bits"), 64);
    document_append_int32(out, SLICE("resident"), (int32_t)(used.ru_maxrss / KIB));
    document_append_bool(out, SLICE("supported"), true);
    document_end(out, part);
    part = document_append_object_begin(out, SLICE("metrics"));
    inner = document_append_object_begin(out, SLICE("cursor"));
    document_append_int64(out, SLICE("open"), (int64_t)front_cursors_count(call->mongo->cursors));
    document_end(out, inner);
    document_end(out, part);
    return true;
}

/* --- Parameters ------------------------------------------------------------------------------ */

static void compatibility_append(struct buf *out)
{
    size_t part = document_append_object_begin(out, SLICE("featureCompatibilityVersion"));

    document_append_string(out, SLICE("version"), SLICE("7.0"));
    document_end(out, part);
}

static void mechanisms_append(struct buf *out)
{
    size_t list = document_append_array_begin(out, SLICE("authenticationMechanisms"));

    document_append_string(out, SLICE("0"), SLICE("SCRAM-SHA-1"));
    document_append_string(out, SLICE("1"), SLICE("SCRAM-SHA-256"));
    document_append_string(out, SLICE("2"), SLICE("PLAIN"));
    document_append_string(out, SLICE("3"), SLICE("MONGODB-X509"));
    document_end(out, list);
}

static void iterations_append(struct buf *out)
{
    document_append_int32(out, SLICE("scramIterationCount"),
                          (int32_t)mongo_iterations(MONGO_SCRAM_SHA_1));
    document_append_int32(out, SLICE("scramSHA256IterationCount"),
                          (int32_t)mongo_iterations(MONGO_SCRAM_SHA_256));
}

static const struct {
    const char *name;
    void (*append)(struct buf *out);
} parameters[] = {
    {"featureCompatibilityVersion", compatibility_append},
    {"authenticationMechanisms", mechanisms_append},
    {"scramIterationCount", iterations_append},
};

/* The parameters are named by the fields of the command. */
bool mongo_get_parameter(struct mongo_call *call, struct error *err)
{
    bool all = call->target.type == DOCUMENT_STRING && slice_equal(call->target.text, SLICE("*"));
    struct document_value value;
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
        if (!all && !document_find(call->message.body, slice_of_text(parameters[i].name), &value))
            continue;
        parameters[i].append(&call->reply);
        count++;
    }
    return count || mongo_error_set(err, MONGO_INVALID_OPTIONS, "no option found to get");
}

bool mongo_get_cmd_line_opts(struct mongo_call *call, struct error *err UNUSED)
{
    document_end(&call->reply, document_append_array_begin(&call->reply, SLICE("argv")));
    document_end(&call->reply, document_append_object_begin(&call->reply, SLICE("parsed")));
    return true;
}

bool mongo_get_log(struct mongo_call *call, struct error *err)
{
    struct buf *out = &call->reply;
    size_t list;

    if (call->target.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "Argument to getLog must be of type String; found %s",
                               mongo_type_name(call->target.type));
    if (slice_equal(call->target.text, SLICE("*"))) {
        list = document_append_array_begin(out, SLICE("names"));
        document_append_string(out, SLICE("0"), SLICE("global"));
        document_append_string(out, SLICE("1"), SLICE("startupWarnings"));
        document_end(out, list);
        return true;
    }
    if (!slice_equal(call->target.text, SLICE("global")) &&
        !slice_equal(call->target.text, SLICE("startupWarnings")))
        return mongo_error_set(err, MONGO_OPERATION_FAILED, "No log named '%.*s'",
                               (int)MIN(call->target.text.len, (size_t)64),
                               (const char *)call->target.text.data);
    document_append_int32(out, SLICE("totalLinesWritten"), 0);
    document_end(out, document_append_array_begin(out, SLICE("log")));
    return true;
}

bool mongo_list_commands(struct mongo_call *call, struct error *err UNUSED)
{
    size_t count, part, one;
    const struct mongo_command *commands = mongo_commands(&count);
    struct buf *out = &call->reply;

    part = document_append_object_begin(out, SLICE("commands"));
    for (size_t i = 0; i < count; i++) {
        if (!commands[i].run)
            continue;
        one = document_append_object_begin(out, slice_of_text(commands[i].name));
        document_append_string(out, SLICE("help"), slice_of_text(commands[i].meaning));
        document_append_bool(out, SLICE("requiresAuth"), commands[i].need != MONGO_NEED_NOTHING);
        document_append_bool(out, SLICE("secondaryOk"), commands[i].need != MONGO_NEED_WRITE);
        document_append_bool(out, SLICE("adminOnly"), commands[i].admin);
        document_end(out, document_append_array_begin(out, SLICE("apiVersions")));
        document_end(out, document_append_array_begin(out, SLICE("deprecatedApiVersions")));
        document_end(out, one);
    }
    document_end(out, part);
    return true;
}

bool mongo_isdbgrid(struct mongo_call *call, struct error *err)
{
    struct utsname names = {0};

    if (call->session->face != MONGO_FACE_MONGOS)
        return mongo_error_set(err, MONGO_COMMAND_NOT_FOUND, "no such command: 'isdbgrid'");
    (void)uname(&names);
    document_append_int32(&call->reply, SLICE("isdbgrid"), 1);
    document_append_string(&call->reply, SLICE("hostname"), slice_of_text(names.nodename));
    return true;
}
