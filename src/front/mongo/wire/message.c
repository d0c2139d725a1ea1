/* A message is read in two steps: its frame, where a fault means that we are not in step with the
 * client any more, and its documents, where it means that one command is wrong. So only the first
 * ends the connection. */
#include "front/mongo/wire/message.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "front/mongo/error.h"
#include "front/mongo/wire/compress.h"

enum {
    FLAGS_REQUIRED = 0xFFFF, /* that a server must know */
    FLAGS_KNOWN = MONGO_FLAG_CHECKSUM | MONGO_FLAG_MORE_TO_COME,
    COMPRESSED_LEN = 9,        /* before the compressed bytes */
    REPLY_AWAIT_CAPABLE = 8,   /* its only flag */
    COMPRESS_BYTES_LEAST = 64, /* shorter replies gain nothing */
    DEPTH_AROUND = 4,          /* levels of a command around a document */
    CRC32C_POLYNOMIAL = (int32_t)0x82F63B78,
};

void mongo_header_read(struct mongo_header *ret_header, const uint8_t bytes[MONGO_HEADER_LEN])
{
    ret_header->length = (int32_t)bytes_get_le32(bytes);
    ret_header->id = (int32_t)bytes_get_le32(bytes + 4);
    ret_header->response_to = (int32_t)bytes_get_le32(bytes + 8);
    ret_header->operation = (int32_t)bytes_get_le32(bytes + 12);
}

/* --- Checksums ------------------------------------------------------------------------------- */

/* Clients rarely send one: a processor's own instruction, or tables of its own for each of eight
 * bytes, would be more code than that is worth. */
uint32_t mongo_crc32c(struct slice bytes)
{
    uint32_t table[256], crc = 0xFFFFFFFF;

    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;

        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? (uint32_t)CRC32C_POLYNOMIAL : 0);
        table[i] = value;
    }
    for (size_t i = 0; i < bytes.len; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes.data[i]) & 0xFF];
    return ~crc;
}

/* --- Sections -------------------------------------------------------------------------------- */

static enum mongo_read last(struct error *err, enum mongo_code code, const char *what)
{
    mongo_error_set(err, (int)code, "%s", what);
    return MONGO_READ_LAST;
}

/* The bytes of a document at the beginning of rest. False: there is none. */
static bool document_cut(struct slice *rest, struct slice *ret_document)
{
    uint32_t len;

    if (rest->len < 5)
        return false;
    len = bytes_get_le32(rest->data);
    if (len < 5 || len > rest->len)
        return false;
    *ret_document = slice_first(*rest, len);
    *rest = slice_skip(*rest, len);
    return true;
}

static bool text_cut(struct slice *rest, struct slice *ret_text)
{
    const uint8_t *end = rest->len ? memchr(rest->data, 0, rest->len) : NULL;

    if (!end)
        return false;
    *ret_text = slice_first(*rest, (size_t)(end - rest->data));
    *rest = slice_skip(*rest, ret_text->len + 1);
    return true;
}

/* Kind 1. The documents are only counted off here. */
static bool sequence_cut(struct slice *rest, struct mongo_sequence *ret_sequence)
{
    struct slice section, document;
    uint32_t len;

    if (rest->len < 5)
        return false;
    len = bytes_get_le32(rest->data);
    if (len < 5 || len > rest->len)
        return false;
    section = slice_skip(slice_first(*rest, len), 4);
    *rest = slice_skip(*rest, len);
    if (!text_cut(&section, &ret_sequence->name))
        return false;
    ret_sequence->documents = section;
    while (section.len)
        if (!document_cut(&section, &document))
            return false;
    return true;
}

static enum mongo_read sections_read(struct slice rest, struct mongo_message *message,
                                     struct error *err)
{
    while (rest.len) {
        uint8_t kind = rest.data[0];

        rest = slice_skip(rest, 1);
        if (kind == 0) {
            if (message->body.data)
                return last(err, MONGO_BAD_VALUE, "a message has one command");
            if (!document_cut(&rest, &message->body))
                return MONGO_READ_BROKEN;
        } else if (kind == 1) {
            if (message->sequence_count == MONGO_SEQUENCES_MAX)
                return last(err, MONGO_BAD_VALUE, "a message has at most 4 document sequences");
            if (!sequence_cut(&rest, &message->sequences[message->sequence_count++]))
                return MONGO_READ_BROKEN;
        } else {
            return last(err, MONGO_BAD_VALUE, "a section is of kind 0 or 1");
        }
    }
    return message->body.data ? MONGO_READ_GOOD : MONGO_READ_BROKEN;
}

/* bytes: the whole message as sent, for the checksum; rest: behind its header, unpacked. */
static enum mongo_read msg_read(struct slice bytes, struct slice rest,
                                struct mongo_message *message, struct error *err)
{
    if (rest.len < 4)
        return MONGO_READ_BROKEN;
    message->flags = bytes_get_le32(rest.data);
    rest = slice_skip(rest, 4);
    if (message->flags & FLAGS_REQUIRED & ~(uint32_t)FLAGS_KNOWN)
        return last(err, MONGO_ILLEGAL_OP_MSG_FLAG,
                    "Message contains illegal flags value: a required flag is not known");
    if (message->flags & MONGO_FLAG_CHECKSUM) {
        if (rest.len < 4)
            return MONGO_READ_BROKEN;
        rest.len -= 4;
        /* what is compressed has none: the packed bytes have checks of their own */
        if (message->compressor == MONGO_COMPRESSOR_NONE &&
            bytes_get_le32(rest.data + rest.len) != mongo_crc32c(slice_first(bytes, bytes.len - 4)))
            return last(err, MONGO_CHECKSUM_MISMATCH, "OP_MSG checksum does not match contents");
    }
    return sections_read(rest, message, err);
}

static enum mongo_read query_read(struct slice rest, struct mongo_message *message)
{
    struct slice name, suffix = SLICE(".$cmd");

    if (rest.len < 4)
        return MONGO_READ_BROKEN;
    rest = slice_skip(rest, 4);
    if (!text_cut(&rest, &name) || rest.len < 8)
        return MONGO_READ_BROKEN;
    rest = slice_skip(rest, 8);
    if (!document_cut(&rest, &message->body))
        return MONGO_READ_BROKEN;
    message->database =
        name.len > suffix.len && slice_equal(slice_skip(name, name.len - suffix.len), suffix)
            ? slice_first(name, name.len - suffix.len)
            : SLICE_NONE;
    return MONGO_READ_GOOD;
}

/* --- Documents ------------------------------------------------------------------------------- */

static bool documents_validate(const struct mongo_message *message, struct error *err)
{
    const struct document_limits around = {.depth_max = DOCUMENT_DEPTH_MONGO + DEPTH_AROUND,
                                           .bytes_max = MONGO_BODY_BYTES_MAX};
    const struct document_limits within = {.depth_max = DOCUMENT_DEPTH_MONGO,
                                           .bytes_max = MONGO_BODY_BYTES_MAX};

    if (!document_validate(message->body, &around, err))
        return false;
    for (size_t i = 0; i < message->sequence_count; i++) {
        struct slice rest = message->sequences[i].documents, document;

        while (document_cut(&rest, &document))
            if (!document_validate(document, &within, err))
                return false;
    }
    return true;
}

static bool sequences_differ(const struct mongo_message *message, struct error *err)
{
    struct document_value value;

    for (size_t i = 0; i < message->sequence_count; i++) {
        struct slice name = message->sequences[i].name;
        bool twice = document_find(message->body, name, &value);

        for (size_t j = 0; j < i; j++)
            twice |= slice_equal(message->sequences[j].name, name);
        if (twice)
            return mongo_error_set(err, MONGO_IDL_DUPLICATE_FIELD,
                                   "BSON field '%.*s' is a duplicate field",
                                   (int)MIN(name.len, (size_t)64), (const char *)name.data);
    }
    return true;
}

static bool database_read(struct mongo_message *message, struct error *err)
{
    struct document_value value;

    if (message->operation == MONGO_OP_QUERY) {
        if (!message->database.data)
            return mongo_error_set(
                err, MONGO_UNSUPPORTED_OP_QUERY_COMMAND,
                "OP_QUERY is no longer supported. The client driver may require an "
                "upgrade.");
        if (document_find(message->body, SLICE("$query"), &value) && value.type == DOCUMENT_OBJECT)
            message->body = value.document;
        return true;
    }
    if (!document_find(message->body, SLICE("$db"), &value))
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "OP_MSG requests require a $db argument");
    if (value.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH, "$db must be a string");
    message->database = value.text;
    return true;
}

/* --- The whole ------------------------------------------------------------------------------- */

size_t mongo_message_unpacked_len(struct slice bytes)
{
    uint32_t len;

    if (bytes.len < MONGO_HEADER_LEN)
        return 0;
    if (bytes_get_le32(bytes.data + 12) != MONGO_OP_COMPRESSED)
        return bytes.len;
    if (bytes.len < MONGO_HEADER_LEN + COMPRESSED_LEN)
        return 0;
    len = bytes_get_le32(bytes.data + MONGO_HEADER_LEN + 4);
    return len > MONGO_MESSAGE_BYTES_MAX - MONGO_HEADER_LEN ? 0 : MONGO_HEADER_LEN + (size_t)len;
}

/* The inner operation and what is behind its header. */
static bool unpack(struct slice bytes, struct arena *arena, struct mongo_message *message,
                   struct slice *ret_rest)
{
    struct slice rest = slice_skip(bytes, MONGO_HEADER_LEN);
    size_t len = mongo_message_unpacked_len(bytes);
    uint8_t *to;

    message->operation = (enum mongo_operation)bytes_get_le32(bytes.data + 12);
    *ret_rest = rest;
    if (message->operation != MONGO_OP_COMPRESSED)
        return true;
    if (!len || rest.data[8] > MONGO_COMPRESSOR_ZSTD)
        return false;
    len -= MONGO_HEADER_LEN;
    message->operation = (enum mongo_operation)bytes_get_le32(rest.data);
    message->compressor = (enum mongo_compressor)rest.data[8];
    to = arena_alloc(arena, len ? len : 1);
    *ret_rest = slice_of(to, len);
    return mongo_uncompress(message->compressor, slice_skip(rest, COMPRESSED_LEN), to, len);
}

enum mongo_read mongo_message_read(struct slice bytes, bool validated, struct arena *arena,
                                   struct mongo_message *ret_message, struct error *err)
{
    struct mongo_message message = {0};
    enum mongo_read read;
    struct slice rest;

    if (bytes.len < MONGO_HEADER_LEN || bytes_get_le32(bytes.data) != bytes.len)
        return MONGO_READ_BROKEN;
    message.id = (int32_t)bytes_get_le32(bytes.data + 4);
    if (!unpack(bytes, arena, &message, &rest))
        return MONGO_READ_BROKEN;
    if (message.operation == MONGO_OP_MSG)
        read = msg_read(bytes, rest, &message, err);
    else if (message.operation == MONGO_OP_QUERY)
        read = query_read(rest, &message);
    else
        return MONGO_READ_BROKEN;
    if (read == MONGO_READ_GOOD &&
        ((!validated && !documents_validate(&message, err)) || !sequences_differ(&message, err) ||
         !database_read(&message, err)))
        read = MONGO_READ_REFUSED;
    *ret_message = message;
    return read;
}

/* --- Replies --------------------------------------------------------------------------------- */

static void reply_head(const struct mongo_message *message, const struct mongo_reply *reply,
                       uint32_t operation, struct buf *out)
{
    buf_append_le32(out, 0); /* the length, once it is known */
    buf_append_le32(out, (uint32_t)reply->id);
    buf_append_le32(out, (uint32_t)message->id);
    buf_append_le32(out, operation);
}

static void legacy_append(const struct mongo_message *message, const struct mongo_reply *reply,
                          struct buf *out)
{
    reply_head(message, reply, MONGO_OP_REPLY, out);
    buf_append_le32(out, REPLY_AWAIT_CAPABLE);
    buf_append_le64(out, 0);
    buf_append_le32(out, 0);
    buf_append_le32(out, 1);
    buf_append_slice(out, reply->body);
}

/* What follows the header of OP_MSG. */
static void sections_append(const struct mongo_reply *reply, struct buf *out)
{
    buf_append_le32(out, reply->more ? MONGO_FLAG_MORE_TO_COME : 0);
    buf_append_byte(out, 0);
    buf_append_slice(out, reply->body);
}

static bool compressed_append(const struct mongo_message *message, const struct mongo_reply *reply,
                              struct buf *out)
{
    CLEANUP(buf_done) struct buf plain;

    buf_init(&plain, MONGO_MESSAGE_BYTES_MAX);
    sections_append(reply, &plain);
    reply_head(message, reply, MONGO_OP_COMPRESSED, out);
    buf_append_le32(out, MONGO_OP_MSG);
    buf_append_le32(out, (uint32_t)plain.len);
    buf_append_byte(out, (uint8_t)message->compressor);
    return !buf_overflowed(&plain) && mongo_compress(message->compressor, buf_slice(&plain), out);
}

bool mongo_reply_append(const struct mongo_message *message, const struct mongo_reply *reply,
                        struct buf *out, struct error *err)
{
    size_t begin = out->len;
    bool fits = true;

    assert(!reply->more || message->operation == MONGO_OP_MSG);
    if (message->operation == MONGO_OP_QUERY) {
        legacy_append(message, reply, out);
    } else if (message->compressor == MONGO_COMPRESSOR_NONE ||
               reply->body.len < COMPRESS_BYTES_LEAST) {
        reply_head(message, reply, MONGO_OP_MSG, out);
        sections_append(reply, out);
    } else {
        fits = compressed_append(message, reply, out);
    }
    if (!fits || buf_overflowed(out) || out->len - begin > MONGO_MESSAGE_BYTES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "a reply has at most %d bytes",
                         MONGO_MESSAGE_BYTES_MAX);
    bytes_put_le32(out->data + begin, (uint32_t)(out->len - begin));
    return true;
}
