/* Stored keys. An index entry of PostgreSQL holds at most a third of a page (2,704 bytes), our keys
 * are up to ENGINE_KEY_MAX. So a long key is cut into pieces of PG_HEAD bytes and the pieces form a
 * tree, all of it in the one table and in the one order of the index:
 *
 *     00 | key                      a key of up to PG_HEAD bytes: the root of the tree
 *     00 | head | 00                a mark: keys that go on after these PG_HEAD bytes exist (or
 *                                   have existed) in the node below; no key, its value is empty
 *     01 | SHA-256 of path | piece  an entry of the node below path, the bytes so far
 *     01 | SHA-256 of path | head | 00    a mark there, for keys that are longer still
 *
 * A key of n bytes has its place (n - 1) / PG_HEAD nodes down, known from the key alone: reading
 * and writing one key never walks. Only iterating does: a mark sorts right after the key that ends
 * at its head and before whatever comes next, which is just where the node below belongs. No other
 * stored key has the length of a mark, so the length tells it.
 *
 * Marks are written along with a long key and stay when it is deleted: finding out whether it was
 * the last would cost every delete a search, and a left mark costs an iterator one empty page.
 *
 * Alternatives: an expression index on the first bytes would need a sort, of any size, for keys
 * that share them; numbering the heads would need a search before each write. */
#include "engine/pg/pg_private.h"

#include <openssl/sha.h>

enum { ROOT = 0x00, BELOW = 0x01, PREFIX_BELOW = 1 + SHA256_DIGEST_LENGTH };

static size_t prefix_len(struct slice path)
{
    return path.len ? (size_t)PREFIX_BELOW : 1;
}

static void prefix_append(struct slice path, struct buf *to)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];

    assert(path.len % PG_HEAD == 0);
    if (path.len == 0) {
        buf_append_byte(to, ROOT);
        return;
    }
    SHA256(path.data, path.len, digest);
    buf_append_byte(to, BELOW);
    buf_append(to, digest, sizeof digest);
}

/* The first stored key after all of the node's: the prefix, counted up by one. */
static void prefix_end_append(struct slice path, struct buf *to)
{
    size_t start = to->len, at;

    prefix_append(path, to);
    for (at = to->len; at > start; at--)
        if (++to->data[at - 1] != 0)
            break;
}

static void prefixed_append(struct slice path, struct slice piece, struct buf *to)
{
    prefix_append(path, to);
    buf_append_slice(to, piece);
}

size_t pg_key_marks(struct slice key)
{
    return key.len ? (key.len - 1) / PG_HEAD : 0;
}

void pg_key_store(struct slice key, struct buf *to)
{
    size_t above = pg_key_marks(key) * PG_HEAD;

    assert(key.len > 0 && key.len - above <= PG_HEAD);
    prefixed_append(slice_first(key, above), slice_skip(key, above), to);
}

void pg_key_mark(struct slice key, size_t level, struct buf *to)
{
    size_t above = level * PG_HEAD;

    assert(level < pg_key_marks(key));
    prefixed_append(slice_first(key, above), slice_first(slice_skip(key, above), PG_HEAD), to);
    buf_append_byte(to, 0x00);
}

/* A bound inside this node, of which rest is left behind path. A rest longer than a head bounds
 * inside the node below its mark, so the mark itself belongs to both sides: low bounds begin at
 * it, high bounds end after it. */
static void bound_append(struct slice path, struct slice rest, uint8_t after_head, struct buf *to)
{
    prefixed_append(path, slice_first(rest, MIN(rest.len, (size_t)PG_HEAD)), to);
    if (rest.len > PG_HEAD)
        buf_append_byte(to, after_head);
}

void pg_key_low(struct slice path, struct slice min, struct buf *to)
{
    if (min.len && slice_starts_with(min, path))
        bound_append(path, slice_skip(min, path.len), 0x00, to);
    else
        prefix_append(path, to); /* min sorts before all of the node */
}

void pg_key_high(struct slice path, struct slice max, struct buf *to)
{
    if (max.data && slice_starts_with(max, path))
        bound_append(path, slice_skip(max, path.len), 0x01, to);
    else
        prefix_end_append(path, to); /* max sorts after all of the node */
}

void pg_key_beside_mark(struct slice path, struct slice head, bool backwards, struct buf *to)
{
    assert(head.len == PG_HEAD);
    prefixed_append(path, head, to);
    buf_append_byte(to, backwards ? 0x00 : 0x01);
}

size_t pg_key_mark_len(struct slice path)
{
    return prefix_len(path) + PG_HEAD + 1;
}

bool pg_key_is_mark(struct slice path, struct slice stored)
{
    return stored.len == pg_key_mark_len(path);
}

struct slice pg_key_piece(struct slice path, struct slice stored)
{
    struct slice piece = slice_skip(stored, prefix_len(path));

    return pg_key_is_mark(path, stored) ? slice_first(piece, PG_HEAD) : piece;
}
