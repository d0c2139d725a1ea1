/* Notify: tells a service manager (systemd, Type=notify) how the server is. */
#pragma once

/* "READY=1", "STOPPING=1", "RELOADING=1". Does nothing unless NOTIFY_SOCKET names a socket. */
void notify_manager(const char *state);
