/* Node paths: which files of this machine a node may be made of that is added over the network.
 *
 * A URL of a node names a directory (rocksdb:), or files and a socket (postgresql:). Whoever may
 * add nodes would otherwise make directories anywhere the server can write, and have files read
 * that are not theirs. What the configuration and the command line name is the operator's own word
 * and is not asked. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

/* Whether every path in the URL is below one of the directories, which are separated by commas.
 * ERROR_FORBIDDEN names the setting. */
NODISCARD bool server_node_paths_check(struct slice url, struct slice directories,
                                       struct error *err);
