/* Snapshots that live long: for whoever reads a whole node and comes back for more. */
#pragma once

#include "engine/engine.h"

/* Lets a snapshot live for so long from now on, where the engine would let go of it earlier
 * (engine_options.snapshot_ms_max). What was deleted since stays on the disk meanwhile. */
NODISCARD bool engine_snapshot_keep(struct engine_snapshot *snapshot, int64_t ms,
                                    struct error *err);
