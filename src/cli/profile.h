/* Profile: what a command needs to know of a server, under a name, in a file of the user:
 *
 *     [shop]
 *     endpoint = https://db.example:8081
 *     key-file = /home/ann/shop.key
 *     account = shop
 *     ca = /home/ann/ca.pem
 *     dev = true
 *
 * $XDG_CONFIG_HOME/orrery/profiles, or ~/.config/orrery/profiles. Chosen with --profile or
 * ORRERY_PROFILE; the section [default] where neither says so. */
#pragma once

#include "base/arena.h"
#include "cli/client.h"

/* Fills in what the options leave open. Without a file, or a section [default], nothing is filled
 * in; a profile that was asked for and is not there is an error, with the nearest name. Texts are
 * in the arena. ERROR_CONFIGURATION. */
NODISCARD bool cli_profile_apply(const char *name, struct cli_client_options *options,
                                 struct arena *arena, struct error *err);
