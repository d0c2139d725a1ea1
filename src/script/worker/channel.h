/* Channel: frames to and from the server, over the one descriptor a worker has. */
#pragma once

#include "base/buf.h"

/* Waits for the next frame and puts it into `frame`, its length included; there is room for one NUL
 * byte beyond its end. `alone`: no other follows before we have spoken, so that it can be read at
 * one go. False: the server has gone, or speaks another language. */
NODISCARD bool channel_read(int descriptor, bool alone, struct buf *frame);

/* The frame without its length. */
struct slice channel_frame(const struct buf *frame);

NODISCARD bool channel_write(int descriptor, struct slice bytes);
