#include "script/process.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "script/message.h"
#include "script/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKER_SOCKET = 3,       /* where the worker looks for its end */
    WORKER_EXIT_MEMORY = 70, /* base/memory.c: there was none left */
    RECEIVE_SLICE_MS = 50,   /* the longest a receive blocks without a look at the clock */
    BUFFER_LEAST = 16 * 1024,
    BUFFER_KEPT = 256 * 1024, /* a larger one is given back after use */
};

/* One thread, no compiler, the system's allocator; see the design note for what each is for. */
static const char *const environment[] = {
    "Malloc=1",
    "JSC_useJIT=0",
    "JSC_useConcurrentGC=0",
    "JSC_numberOfGCMarkers=1",
    "JSC_useSharedArrayBuffer=0",
    "TZ=UTC",
    "LANG=C.UTF-8",
    NULL,
};

/* --- Starting and ending --------------------------------------------------------------------- */

static bool spawn(const char *program, size_t memory_bytes, int socket, pid_t *ret_pid,
                  struct error *err)
{
    char memory[24];
    char *arguments[] = {(char *)(uintptr_t) "orrery-js", memory, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    int failed;

    snprintf(memory, sizeof memory, "%zu", memory_bytes);
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETPGROUP);
    /* A duplicate is not closed on exec; where it is 3 already, this clears that flag. */
    posix_spawn_file_actions_adddup2(&actions, socket, WORKER_SOCKET);
    for (int standard = 0; standard < WORKER_SOCKET; standard++)
        posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
    failed = posix_spawn(ret_pid, program, &actions, &attributes, arguments,
                         (char *const *)(uintptr_t)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (!failed)
        return true;
    errno = failed;
    return error_set_errno(err, ERROR_SCRIPT_UNAVAILABLE, "starting \"%s\"", program);
}

static struct process *process_make(int socket)
{
    struct process *process = MEMORY_NEW(struct process);
    struct timeval slice = {.tv_usec = RECEIVE_SLICE_MS * 1000};

    process->socket = socket;
    (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    buf_init(&process->frame, PROTOCOL_FROM_WORKER_MAX);
    buf_init(&process->output, PROTOCOL_TO_WORKER_MAX + 64ul);
    return process;
}

bool process_start(const char *program, size_t memory_bytes, int64_t deadline_ms,
                   struct process **ret_process, struct error *err)
{
    CLEANUP(process_free) struct process *process = NULL;
    struct message_ready ready;
    struct slice frame;
    int ends[2];
    bool spawned;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return error_set_errno(err, ERROR_SCRIPT_UNAVAILABLE, "making a socket for scripts");
    process = process_make(ends[0]);
    spawned = spawn(program, memory_bytes, ends[1], &process->pid, err);
    close(ends[1]);
    if (!spawned)
        return false;
    if (!process_receive(process, deadline_ms, &frame, err)) {
        err->code = ERROR_SCRIPT_UNAVAILABLE;
        err->status = error_face(err->code)->rest_status;
        return error_prefix(err, "starting \"%s\"", program);
    }
    if (!message_get_ready(frame, &ready) || ready.version != PROTOCOL_VERSION)
        return error_set(err, ERROR_SCRIPT_UNAVAILABLE,
                         "\"%s\" is of another version than this server", program);
    process->hidden = ready.hidden;
    *ret_process = TAKE(process);
    return true;
}

void process_free(struct process *process)
{
    int status;

    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(process->socket);
    memory_free((void *)(uintptr_t)process->domain.data);
    buf_done(&process->frame);
    buf_done(&process->output);
    memory_free(process);
}

bool process_alive(const struct process *process)
{
    uint8_t byte;

    /* An idle worker has said nothing and has not hung up. */
    return recv(process->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EINTR);
}

/* The worker has closed its end: how did it end? */
static bool gone(struct process *process, struct error *err)
{
    int status = 0;

    kill(process->pid, SIGKILL); /* it may live on without its socket */
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) != WORKER_EXIT_MEMORY)
        return error_set(err, ERROR_SCRIPT_CRASHED, "the script's process ended by itself (%d)",
                         WEXITSTATUS(status));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "the script's process did what scripts may not do, and was ended");
    return error_set(err, ERROR_SCRIPT_CRASHED,
                     "the script's process crashed or used more memory than scripts may (%s %d)",
                     WIFSIGNALED(status) ? "signal" : "exit",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* --- Frames ---------------------------------------------------------------------------------- */

/* Waits until the socket is ready for `what`. */
static bool wait_ready(struct process *process, short what, int64_t deadline_ms, struct error *err)
{
    struct pollfd ready = {.fd = process->socket, .events = what};

    for (;;) {
        int64_t left = deadline_ms - clock_monotonic_ms();
        int found = left > 0 ? poll(&ready, 1, (int)MIN(left, (int64_t)60000)) : 0;

        if (found > 0)
            return true;
        if (found < 0 && errno != EINTR)
            return error_set_errno(err, ERROR_SCRIPT_CRASHED, "waiting for a script's process");
        if (clock_monotonic_ms() >= deadline_ms)
            return error_set(err, ERROR_SCRIPT_TIMED_OUT, "the script ran longer than it may");
    }
}

bool process_send(struct process *process, int64_t deadline_ms, struct error *err)
{
    struct slice rest = buf_slice(&process->output);

    while (rest.len) {
        ssize_t put = send(process->socket, rest.data, rest.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (put > 0) {
            rest = slice_skip(rest, (size_t)put);
        } else if (errno == EAGAIN || errno == EINTR) {
            if (!wait_ready(process, POLLOUT, deadline_ms, err))
                return false;
        } else {
            return gone(process, err);
        }
    }
    buf_clear(&process->output);
    if (process->output.capacity > BUFFER_KEPT)
        buf_done(&process->output);
    return true;
}

/* Receives until the frame has `len` bytes, and as many more as are there and fit. */
static bool receive_until(struct process *process, size_t len, int64_t deadline_ms,
                          struct error *err)
{
    struct buf *frame = &process->frame;

    while (frame->len < len) {
        /* Far from the deadline the socket's own timeout does well enough and saves
         * a call; near it, it is waited for to the millisecond. */
        bool far = deadline_ms - clock_monotonic_ms() > 2 * RECEIVE_SLICE_MS;
        ssize_t got;

        if (!far && !wait_ready(process, POLLIN, deadline_ms, err))
            return false;
        got = recv(process->socket, frame->data + frame->len, frame->capacity - frame->len,
                   far ? 0 : MSG_DONTWAIT);
        if (got > 0)
            frame->len += (size_t)got;
        else if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return gone(process, err);
    }
    return true;
}

bool process_receive(struct process *process, int64_t deadline_ms, struct slice *ret_frame,
                     struct error *err)
{
    struct buf *frame = &process->frame;
    size_t len;

    buf_clear(frame);
    if (frame->capacity > BUFFER_KEPT)
        buf_done(frame);
    buf_reserve(frame, BUFFER_LEAST);
    if (!receive_until(process, PROTOCOL_HEADER, deadline_ms, err))
        return false;
    len = (size_t)bytes_get_le32(frame->data) + PROTOCOL_HEADER;
    if (len > PROTOCOL_FROM_WORKER_MAX)
        return error_set(err, ERROR_SCRIPT_CRASHED,
                         "a script's process sent a message of %zu bytes", len);
    /* The memory comes with the bytes, not with what a worker says there will be. */
    while (frame->len < len) {
        size_t next = MIN(len, frame->len + BUFFER_KEPT);

        buf_reserve(frame, next - frame->len);
        if (!receive_until(process, next, deadline_ms, err))
            return false;
    }
    if (frame->len > len)
        return error_set(err, ERROR_SCRIPT_CRASHED, "a script's process spoke out of turn");
    *ret_frame = slice_skip(buf_slice(frame), PROTOCOL_HEADER);
    return true;
}
