/* From the answer of GET containers/DATABASE/CONTAINER/heat to a picture. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "cli/heat_svg.h"

enum cli_heat_shown { HEAT_SHOW_RU, HEAT_SHOW_THROTTLED, HEAT_SHOW_LATENCY, HEAT_SHOW_REQUESTS };
enum { HEAT_SHOWN = 4, HEAT_PICTURE_KEYS_MAX = 40 };
extern const char *const heat_shown_names[HEAT_SHOWN]; /* as --show takes them */

/* Everything is in the arena. ERROR_BAD_REQUEST: it is no such answer. */
NODISCARD bool cli_heat_picture_read(struct slice document, enum cli_heat_shown shown,
                                     struct arena *arena, struct cli_heat_picture *ret_picture,
                                     struct error *err);
