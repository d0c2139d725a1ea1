#include "document/bson.h"

#include "base/memory.h"
#include "support/check.h"
#include "support/documents.h"

struct sample {
    const char *name;
    struct slice bytes;
    const char *message; /* NULL: valid */
};

/* Each is a whole document; the length byte comes first. */
static const struct sample samples[] = {
    {"empty", SLICE("\5\0\0\0\0"), NULL},
    {"no bytes", SLICE(""), "length"},
    {"four bytes", SLICE("\4\0\0\0"), "length"},
    {"length short", SLICE("\4\0\0\0\0"), "length"},
    {"length long", SLICE("\6\0\0\0\0"), "length"},
    {"length negative", SLICE("\xff\xff\xff\xff\0"), "length"},
    {"no terminator", SLICE("\5\0\0\0\1"), "zero byte"},
    {"key unended", SLICE("\7\0\0\0\x0A\x61\0"), "key at byte 5"},
    {"null", SLICE("\x8\0\0\0\x0A\x61\0\0"), NULL},
    {"empty key", SLICE("\7\0\0\0\x0A\0\0"), NULL},
    {"type unknown 00", SLICE("\x8\0\0\0\0\x61\0\0"), "type 0x00 at byte 4"},
    {"type unknown 14", SLICE("\x8\0\0\0\x14\x61\0\0"), "type 0x14"},
    {"type unknown 80", SLICE("\x8\0\0\0\x80\x61\0\0"), "type 0x80"},
    {"double", SLICE("\x10\0\0\0\1\x61\0\0\0\0\0\0\0\0\0\0"), NULL},
    {"double short", SLICE("\xF\0\0\0\1\x61\0\0\0\0\0\0\0\0\0"), "type 0x01"},
    {"string", SLICE("\xE\0\0\0\2\x61\0\2\0\0\0\x78\0\0"), NULL},
    {"string with NUL", SLICE("\xF\0\0\0\2\x61\0\3\0\0\0\0\x78\0\0"), NULL},
    {"string length 0", SLICE("\xD\0\0\0\2\x61\0\0\0\0\0\0\0"), "type 0x02"},
    {"string length over", SLICE("\xE\0\0\0\2\x61\0\3\0\0\0\x78\0\0"), "type 0x02"},
    {"string length huge", SLICE("\xE\0\0\0\2\x61\0\xff\xff\xff\x7f\x78\0\0"), "type 0x02"},
    {"string length negative", SLICE("\xE\0\0\0\2\x61\0\xff\xff\xff\xff\x78\0\0"), "type 0x02"},
    {"string unended", SLICE("\xE\0\0\0\2\x61\0\2\0\0\0\x78\x78\0"), "type 0x02"},
    {"string not UTF-8", SLICE("\xF\0\0\0\2\x61\0\3\0\0\0\x78\xff\0\0"), "byte 12"},
    {"string lone surrogate", SLICE("\x10\0\0\0\2\x61\0\4\0\0\0\xED\xA0\x80\0\0"), NULL},
    {"string pair of surrogates", SLICE("\x13\0\0\0\2\x61\0\7\0\0\0\xED\xA0\x80\xED\xB0\x80\0\0"),
     "byte 11"},
    {"string overlong", SLICE("\xF\0\0\0\2\x61\0\3\0\0\0\xC0\x80\0\0"), "byte 11"},
    {"key not UTF-8", SLICE("\x8\0\0\0\x0A\xff\0\0"), "key is not UTF-8 at byte 5"},
    {"object", SLICE("\xD\0\0\0\3\x61\0\5\0\0\0\0\0"), NULL},
    {"object length short", SLICE("\xD\0\0\0\3\x61\0\4\0\0\0\0\0"), "type 0x03"},
    {"array any key", SLICE("\x10\0\0\0\4\x61\0\x8\0\0\0\x0A\x7A\0\0\0"), NULL},
    {"binary", SLICE("\xE\0\0\0\5\x61\0\1\0\0\0\x80\7\0"), NULL},
    {"binary empty", SLICE("\xD\0\0\0\5\x61\0\0\0\0\0\0\0"), NULL},
    {"binary over", SLICE("\xE\0\0\0\5\x61\0\2\0\0\0\0\7\0"), "type 0x05"},
    {"binary negative", SLICE("\xE\0\0\0\5\x61\0\xff\xff\xff\xff\0\7\0"), "type 0x05"},
    {"undefined", SLICE("\x8\0\0\0\6\x61\0\0"), NULL},
    {"object id", SLICE("\x14\0\0\0\7\x61\0abcdefghijkl\0"), NULL},
    {"object id short", SLICE("\x13\0\0\0\7\x61\0abcdefghijk\0"), "type 0x07"},
    {"bool", SLICE("\x9\0\0\0\x8\x61\0\1\0"), NULL},
    {"bool of 2", SLICE("\x9\0\0\0\x8\x61\0\2\0"), "neither 0 nor 1"},
    {"bool missing", SLICE("\x8\0\0\0\x8\x61\0\0"), "type 0x08"},
    {"date", SLICE("\x10\0\0\0\x9\x61\0\0\0\0\0\0\0\0\0\0"), NULL},
    {"regex", SLICE("\xC\0\0\0\xB\x61\0x\0i\0\0"), NULL},
    {"regex one part", SLICE("\xA\0\0\0\xB\x61\0x\0\0"), "type 0x0b"},
    {"regex not UTF-8", SLICE("\xC\0\0\0\xB\x61\0\xfe\0i\0\0"), "pattern"},
    {"pointer", SLICE("\x1A\0\0\0\xC\x61\0\2\0\0\0x\0abcdefghijkl\0"), NULL},
    {"pointer short", SLICE("\x19\0\0\0\xC\x61\0\2\0\0\0x\0abcdefghijk\0"), "type 0x0c"},
    {"code", SLICE("\xE\0\0\0\xD\x61\0\2\0\0\0x\0\0"), NULL},
    {"symbol", SLICE("\xE\0\0\0\xE\x61\0\2\0\0\0x\0\0"), NULL},
    {"scoped", SLICE("\x17\0\0\0\xF\x61\0\xF\0\0\0\2\0\0\0x\0\5\0\0\0\0\0"), NULL},
    {"scoped wrong total", SLICE("\x17\0\0\0\xF\x61\0\xE\0\0\0\2\0\0\0x\0\5\0\0\0\0\0"),
     "type 0x0f"},
    {"scoped bad scope", SLICE("\x19\0\0\0\xF\x61\0\x11\0\0\0\2\0\0\0x\0\7\0\0\0\x1\x61\0\0"),
     "byte"},
    {"int32", SLICE("\xC\0\0\0\x10\x61\0\1\0\0\0\0"), NULL},
    {"timestamp", SLICE("\x10\0\0\0\x11\x61\0\0\0\0\0\0\0\0\0\0"), NULL},
    {"int64", SLICE("\x10\0\0\0\x12\x61\0\0\0\0\0\0\0\0\0\0"), NULL},
    {"decimal", SLICE("\x18\0\0\0\x13\x61\0abcdefghabcdefgh\0"), NULL},
    {"decimal short", SLICE("\x17\0\0\0\x13\x61\0abcdefghabcdefg\0"), "type 0x13"},
    {"min key", SLICE("\x8\0\0\0\xff\x61\0\0"), NULL},
    {"max key", SLICE("\x8\0\0\0\x7f\x61\0\0"), NULL},
    {"same key twice", SLICE("\xB\0\0\0\x0A\x61\0\x0A\x61\0\0"), NULL},
};

static void each_document_is_judged_by_itself(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        uint8_t *exact = malloc(samples[i].bytes.len + 1);
        struct error err = {0};
        bool valid;

        memcpy(exact, samples[i].bytes.data, samples[i].bytes.len);
        valid = document_validate(slice_of(exact, samples[i].bytes.len), NULL, &err);
        free(exact);
        if (valid != !samples[i].message)
            fail_msg("%s: %s", samples[i].name, valid ? "is taken for valid" : err.message);
        if (samples[i].message) {
            assert_int_equal(err.code, ERROR_BAD_BSON);
            if (!strstr(err.message, samples[i].message))
                fail_msg("%s: \"%s\" does not say \"%s\"", samples[i].name, err.message,
                         samples[i].message);
        }
    }
}

static struct slice nested(struct arena *arena, int depth, bool code)
{
    CLEANUP(buf_done) struct buf inner;
    struct slice document = SLICE("\5\0\0\0\0");

    buf_init(&inner, BUF_DEFAULT_MAX);
    for (int i = 1; i < depth; i++) {
        struct document_value value = i % 2 ? document_object(document) : document_array(document);
        size_t begin;

        if (code)
            value = (struct document_value){.type = DOCUMENT_CODE_WITH_SCOPE,
                                            .scoped = {SLICE("f"), document}};
        buf_clear(&inner);
        begin = document_begin(&inner);
        document_append(&inner, SLICE("0"), &value);
        document_end(&inner, begin);
        document = arena_copy(arena, buf_slice(&inner));
    }
    return document;
}

static void nesting_is_taken_to_the_limit_and_not_beyond(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_limits mongo = {.depth_max = DOCUMENT_DEPTH_MONGO};
    struct error err;

    assert_ok(document_validate(nested(arena, 128, false), NULL, &err), &err);
    assert_fails(document_validate(nested(arena, 129, false), NULL, &err), &err, ERROR_TOO_DEEP);
    assert_fails(document_validate(nested(arena, 129, true), NULL, &err), &err, ERROR_TOO_DEEP);
    assert_ok(document_validate(nested(arena, 180, false), &mongo, &err), &err);
    assert_fails(document_validate(nested(arena, 181, false), &mongo, &err), &err, ERROR_TOO_DEEP);
    assert_fails(document_validate(nested(arena, 2000, false), NULL, &err), &err, ERROR_TOO_DEEP);
}

static void size_is_taken_to_the_limit_and_not_beyond(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice document = document_of(arena, "{\"a\":\"some text\"}");
    struct document_limits limits = {.bytes_max = document.len};
    struct error err;

    assert_ok(document_validate(document, &limits, &err), &err);
    limits.bytes_max--;
    assert_fails(document_validate(document, &limits, &err), &err, ERROR_TOO_LARGE);
}

static void duplicates_are_refused_when_asked(void **state UNUSED)
{
    struct document_limits limits = {.refuse_duplicates = true};
    struct slice twice = SLICE("\xB\0\0\0\x0A\x61\0\x0A\x61\0\0");
    struct slice apart = SLICE("\xB\0\0\0\x0A\x61\0\x0A\x62\0\0");
    struct slice in_array = SLICE("\x13\0\0\0\4\x61\0\xB\0\0\0\x0A\x61\0\x0A\x61\0\0\0");
    struct slice in_object = SLICE("\x13\0\0\0\3\x61\0\xB\0\0\0\x0A\x61\0\x0A\x61\0\0\0");
    struct error err;

    assert_fails(document_validate(twice, &limits, &err), &err, ERROR_DUPLICATE_PROPERTY);
    assert_contains(err.message, "\"a\"");
    assert_ok(document_validate(apart, &limits, &err), &err);
    assert_ok(document_validate(in_array, &limits, &err), &err);
    assert_fails(document_validate(in_object, &limits, &err), &err, ERROR_DUPLICATE_PROPERTY);
}

/* Every single byte of a valid document changed: the answer may be yes or no, but nothing may be
 * read outside, and what is said to be valid can be walked. */
static void walk(struct slice document)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        if (iter.value.type == DOCUMENT_OBJECT || iter.value.type == DOCUMENT_ARRAY)
            walk(iter.value.document);
    }
    assert_false(iter.broken);
}

static void a_changed_byte_never_leads_outside(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct random random;

    random_seed(&random, 11);
    for (int round = 0; round < 20; round++) {
        struct document_value value = value_random(&random, arena, 3);
        CLEANUP(buf_done) struct buf buf;
        size_t begin;

        buf_init(&buf, BUF_DEFAULT_MAX);
        begin = document_begin(&buf);
        document_append(&buf, SLICE("value"), &value);
        document_end(&buf, begin);
        for (size_t i = 0; i < buf.len; i++) {
            uint8_t kept = buf.data[i];

            for (int change = 0; change < 4; change++) {
                CLEANUP(memory_free) uint8_t *exact = memory_alloc(buf.len);
                struct document_iter iter;
                struct error err;

                buf.data[i] = (uint8_t)random_next(&random);
                memcpy(exact, buf.data, buf.len);
                if (document_validate(slice_of(exact, buf.len), NULL, &err))
                    walk(slice_of(exact, buf.len));
                document_iter_init(&iter, slice_of(exact, buf.len));
                while (document_iter_next(&iter))
                    continue;
            }
            buf.data[i] = kept;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_document_is_judged_by_itself),
        cmocka_unit_test(nesting_is_taken_to_the_limit_and_not_beyond),
        cmocka_unit_test(size_is_taken_to_the_limit_and_not_beyond),
        cmocka_unit_test(duplicates_are_refused_when_asked),
        cmocka_unit_test(a_changed_byte_never_leads_outside),
    };
    return cmocka_run_group_tests_name("document/validate", tests, NULL, NULL);
}
