/* One datagram to the socket the manager named; a manager that does not listen is no fault of
 * ours, so failures are not reported. */
#include "server/notify.h"

#include "base/attrs.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_manager(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd;

    if (len == 0 || len >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, len);
    if (address.sun_path[0] == '@')
        address.sun_path[0] = '\0'; /* the abstract namespace */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}
