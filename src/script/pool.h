/* Pool: which worker serves whom. For the folder itself; script.h has what others see. */
#pragma once

#include "script/message.h"
#include "script/process.h"
#include "script/script.h"

/* Options with every default filled in. */
const struct script_options *pool_options(const struct script_pool *pool);

/* A worker of the party's database for the calling thread: one that has served it before, or one
 * that has served nobody. Waits for it as long as the options say, and for its turn: those whose
 * account has fewest come first. ERROR_BUSY, ERROR_SCRIPT_UNAVAILABLE. */
NODISCARD bool pool_take(struct script_pool *pool, const struct script_party *who,
                         struct process **ret_process, struct error *err);

/* Gives it back. spent: it is ended, for it may be in any state. */
void pool_give(struct script_pool *pool, struct process *process, bool spent);

/* Counts a run that has ended: by ERROR_NONE, or how it failed. */
void pool_count(struct script_pool *pool, enum error_code code);

/* The limits of a run that begins now and must be over by deadline_ms; 0: only the options say. */
int64_t pool_limits(const struct script_pool *pool, int64_t deadline_ms,
                    struct message_run_limits *ret_limits);
