/* Process: one worker, as the server holds it: started, spoken to with a deadline, ended.
 *
 * Belongs to one thread at a time. After any failure the worker is good for nothing but
 * process_free, which ends it. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

struct share_party;

struct process {
    pid_t pid;
    int socket;
    uint32_t hidden;           /* bits of worker/sandbox.h: how well it could be closed */
    uint64_t calls;            /* served so far */
    struct slice domain;       /* owned: the database; data NULL: nobody's yet */
    struct share_party *party; /* while it is busy: whose it is */
    bool nested;               /* while it is busy: beyond its party's share */
    struct buf frame;          /* the last one received */
    struct buf output;         /* the one that is being written */
    struct process *next;
};

/* Starts the program and waits until its sandbox is closed. ERROR_SCRIPT_UNAVAILABLE. The calling
 * thread must outlive the worker, which is told to end with it. */
NODISCARD bool process_start(const char *program, size_t memory_bytes, int64_t deadline_ms,
                             struct process **ret_process, struct error *err);

/* Ends it, whatever it is doing. */
void process_free(struct process *process);
CLEANUP_FN(struct process *, process_free)

/* Does it still wait for its next request, as far as can be seen? Workers can be killed by others
 * than us while nobody uses them. */
bool process_alive(const struct process *process);

/* Sends process->output and empties it. ERROR_SCRIPT_TIMED_OUT; ERROR_SCRIPT_CRASHED: it is gone,
 * and err says how it ended. */
NODISCARD bool process_send(struct process *process, int64_t deadline_ms, struct error *err);

/* Receives a frame, good until the next one. Errors as process_send, and ERROR_SCRIPT_CRASHED for
 * one that is larger than frames may be, or has something behind it. */
NODISCARD bool process_receive(struct process *process, int64_t deadline_ms,
                               struct slice *ret_frame, struct error *err);
