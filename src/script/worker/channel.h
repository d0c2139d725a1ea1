/* Channel: frames to and from the server, over the one descriptor a worker has. */
#pragma once

#include "base/buf.h"

/* Waits for the next frame and puts it into `frame` without its length, one NUL byte beyond its
 * end. False: the server has gone, or speaks another language. */
NODISCARD bool channel_read(int descriptor, struct buf *frame);

NODISCARD bool channel_write(int descriptor, struct slice bytes);
