/* Directory: of the machine's files. */
#pragma once

#include "base/error.h"

/* Removes what is at a path, with all that is below it; links are not followed. Nothing there is
 * fine. The error has the caller's code. */
NODISCARD bool directory_remove(const char *path, enum error_code code, struct error *err);
