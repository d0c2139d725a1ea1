/* What the rest of net/ keeps in a loop: its event base, and memory that is needed only while an
 * event is handled and so is shared by all connections of the loop. */
#pragma once

#include "net/loop.h"
#include "net/output.h"

#include <event2/event.h>
#include <event2/event_struct.h>

enum { NET_SCRATCH_SIZE = 64 * 1024 };

struct event_base *net_loop_base(struct net_loop *loop);
struct net_chunk_pool *net_loop_chunks(struct net_loop *loop);

/* NET_SCRATCH_SIZE bytes to read into, free for use within one callback. */
uint8_t *net_loop_scratch(struct net_loop *loop);

/* Before each bit of work: a loop that has become busy stops coming before everything else, and one
 * that is no longer comes first again (net_loops_hasten). */
void net_loop_mind_others(struct net_loop *loop);

/* How many connections the loop has, or will have when its tasks are done. From any thread. */
size_t net_loop_load(const struct net_loop *loop);
void net_loop_load_change(struct net_loop *loop, int by);
