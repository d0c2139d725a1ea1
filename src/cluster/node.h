/* Node table: what the operator has said about the nodes of a cluster. A plain value, kept in the
 * catalogue as one document.
 *
 *     region, zone, tags   where a node is and what it is like, for placement rules
 *     capacity             bytes it may hold; 0: what its disk has
 *     reserve              hundredths of the capacity that rebalancing and placement leave free
 *     draining             takes no new partitions, and those it has move away
 *     paused               answers nothing until it is resumed; a whole region may be, too
 *     remembered           it was added to a running server: its URL is kept and opened again */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/cluster.h"

enum {
    NODE_NAME_SIZE = 33, /* with its NUL, as all of these */
    NODE_WORD_SIZE = 65,
    NODE_URL_SIZE = 2048,
    NODE_TAGS_MAX = 16,
    NODE_REGIONS_MAX = 64,
    NODE_RESERVE_DEFAULT = 10, /* percent */
};

struct node_info {
    uint32_t number;
    char id[37]; /* engine_node_id */
    char name[NODE_NAME_SIZE];
    char url[NODE_URL_SIZE]; /* of a remembered one; a secret */
    char region[NODE_WORD_SIZE], zone[NODE_WORD_SIZE];
    char tags[NODE_TAGS_MAX][NODE_WORD_SIZE];
    size_t tag_count;
    uint64_t capacity_bytes;
    uint32_t reserve_percent;
    bool draining, paused, remembered;
};

/* The table is the first that is read of a cluster, so its format stands for all that nodes hold:
 * it is raised with every kind of entry that versions before do not know. They refuse such a
 * cluster by name instead of taking what they find for damage.
 *
 * 1  the first
 * 2  histories for change streams, records of retryable writes, counters of arrays
 * 3  promises and decisions of transactions over several nodes */
enum { NODE_TABLE_FORMAT = 3 };

struct node_table {
    uint32_t format; /* as it was read, or NODE_TABLE_FORMAT; 0: there was none */
    size_t count;
    struct node_info list[CLUSTER_NODES_MAX];
    bool rebalancing;    /* a rebalance was asked for and is not over */
    size_t region_count; /* paused ones */
    char regions[NODE_REGIONS_MAX][NODE_WORD_SIZE];
};

struct node_info *node_table_find(struct node_table *table, struct slice name); /* NULL: none */
struct node_info *node_table_find_id(struct node_table *table, const char *id);
struct node_info *node_table_find_number(struct node_table *table, uint32_t number);

/* By its own flag or its region's. */
bool node_is_paused(const struct node_table *table, const struct node_info *info);
bool node_has_tag(const struct node_info *info, struct slice tag);

/* Sets one attribute by its name: region, zone, tags (comma-separated), capacity ("10GB", a number
 * of bytes, 0), reserve ("10%" or a number of percent). ERROR_BAD_REQUEST: there is no such, or not
 * of that value. */
NODISCARD bool node_set(struct node_info *info, struct slice attribute, struct slice value,
                        struct error *err);

/* One to 32 small letters, digits and hyphens. ERROR_BAD_REQUEST. */
NODISCARD bool node_name_check(struct slice name, struct error *err);

/* {format, nodes: [{number, id, name, url, region, zone, tags, capacity, reserve, draining, paused,
 * remembered}], pausedRegions: [...], rebalancing}, and back. ERROR_STORE_CORRUPT,
 * ERROR_STORE_VERSION. */
void node_table_append(const struct node_table *table, struct buf *buf);
NODISCARD bool node_table_parse(struct slice document, struct node_table *ret_table,
                                struct error *err);
