/* Query over HTTP: signed point queries against signed point reads of the same items. */
#pragma once

#include "base/attrs.h"

#include <sys/types.h>

/* Fills a container of the server and compares; key is that of the account. */
void query_http_run(uint16_t port, pid_t server, const char *key);
