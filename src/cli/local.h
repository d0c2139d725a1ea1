/* Local: what a command can know of a server on its own machine without being told.
 *
 * In this order: what the command line says, what the environment says as for `orrery serve`, what
 * running servers of the same user have left word of (server/presence.h), the defaults. */
#pragma once

#include "server/settings.h"

struct cli_local {
    const char *endpoint;  /* "http://127.0.0.1:8081" */
    const char *directory; /* with keys and certificates; "": none is known */
    bool dev;              /* the server takes the public key, and is on this machine */
};

/* endpoint and directory are those of the command line, NULL where it says none. Texts live in the
 * settings, which are read from the environment, or are those given.
 * ERROR_CONFIGURATION: the environment is wrong, or several servers might be meant. */
NODISCARD bool cli_local_find(const char *endpoint, const char *directory,
                              struct settings *settings, struct cli_local *ret_local,
                              struct error *err);
