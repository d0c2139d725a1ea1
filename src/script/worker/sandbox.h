/* Sandbox: what a worker gives up before it sees its first script.
 *
 * Three steps, for the engine has to be born in between. sandbox_enter, first thing in main: only
 * the socket stays open, and the network leaves sight where the kernel lets us. The engine is made,
 * which reads a few files. sandbox_leave, while there is still one thread: files leave sight, and
 * privileges go. The engine runs once, so that its threads and mappings exist. sandbox_close:
 * memory is bounded, and of all system calls only those of a computing process are left; anything
 * else ends the process. Scripts run only after that. */
#pragma once

#include "base/attrs.h"

enum {
    SANDBOX_SOCKET = 3, /* the descriptor the server left us */
    SANDBOX_MEMORY = 4, /* /proc/self/statm, opened while that could be done */
};

/* How well the kernel let us hide; for the server's log. seccomp is never missing: a worker
 * without it does not start. */
enum {
    SANDBOX_NAMESPACES = 1, /* no network, no other processes' objects */
    SANDBOX_ROOT = 2,       /* an empty directory is the root */
    SANDBOX_USER = 4,       /* nobody: neither root nor the server's user */
};

/* False: the surroundings are not those the server makes; errno says why. Each adds to *hidden what
 * it could do. */
NODISCARD bool sandbox_enter(unsigned *hidden);
NODISCARD bool sandbox_leave(unsigned *hidden);
NODISCARD bool sandbox_close(uint64_t memory_bytes);

/* For a script that has computed for long: it gives way to everything else, for good. */
void sandbox_give_way(void);

/* Bytes resident now. */
uint64_t sandbox_memory_used(void);
