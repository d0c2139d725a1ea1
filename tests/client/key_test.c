/* A program that knows orrery/key.h and nothing else; compiled as C and as C++. */
#include "orrery/key.h"

#include <stdio.h>
#include <string.h>

static int claims, failures;

static void claim(int holds, const char *what)
{
    printf("%s %d - %s\n", holds ? "ok" : "not ok", ++claims, what);
    failures += !holds;
}

static struct orrery_key *open_key(const char *synthetic)
{
    char text[1000];
    struct orrery_key *key = NULL;
    struct orrery_key_error error;

    snprintf(text, sizeof text,
             "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"
             "\"orrery\":{\"synthetic\":%s}}",
             synthetic);
    if (orrery_key_open(text, strlen(text), &key, &error) != ORRERY_KEY_OK)
        printf("# %s\n", error.message);
    return key;
}

static int gives(const struct orrery_key *key, const char *document, unsigned suffix,
                 const char *expected)
{
    struct orrery_key_error error;
    char out[200];
    size_t length;
    int status = orrery_key_compute(key, document, strlen(document), suffix, out, sizeof out,
                                    &length, &error);

    return status == ORRERY_KEY_OK && strcmp(out, expected) == 0 && length == strlen(expected);
}

static void concatenations(void)
{
    struct orrery_key *key = open_key("{\"kind\":\"concatenation\",\"target\":\"/pk\","
                                      "\"sources\":[\"/deviceId\",\"/date\"]}");
    const char *sources = "[\"abc-123\",2018]", *wrong = "{\"deviceId\":\"abc-123\"}";
    struct orrery_key_error error;
    char out[64];
    size_t length = 0;

    claim(gives(key, "{\"deviceId\":\"abc-123\",\"date\":2018}", 0, "[\"abc-123-2018\"]"),
          "a concatenation is the documented one");
    claim(orrery_key_of_sources(key, sources, strlen(sources), out, sizeof out, &length, &error) ==
                  ORRERY_KEY_OK &&
              strcmp(out, "[\"abc-123-2018\"]") == 0,
          "source values give the same key");
    claim(orrery_key_of_sources(key, sources, strlen(sources), out, 5, &length, &error) ==
                  ORRERY_KEY_SMALL &&
              length == 16,
          "a buffer that is too small is told how large it must be");
    claim(orrery_key_compute(key, wrong, strlen(wrong), 0, out, sizeof out, &length, &error) ==
                  ORRERY_KEY_REFUSED &&
              strstr(error.message, "/date") != NULL,
          "what is missing is named");
    claim(orrery_key_suffixes(key) == 0, "a concatenation has no suffixes");
    orrery_key_close(key);
}

static void suffixes(void)
{
    struct orrery_key *day = open_key("{\"kind\":\"randomSuffix\",\"target\":\"/pk\","
                                      "\"base\":\"/date\",\"suffixes\":400}");
    struct orrery_key *car = open_key("{\"kind\":\"computedSuffix\",\"target\":\"/pk\","
                                      "\"base\":\"/date\",\"hashed\":\"/vin\",\"suffixes\":400}");
    const char *document = "{\"date\":\"2018-08-09\"}", *base = "[\"2018-08-09\"]";
    const char *key = "[\"2018-08-09.353\"]";
    struct orrery_key_error error;
    char out[400];
    size_t length;
    unsigned partition = 99;

    claim(gives(day, document, 1, "[\"2018-08-09.1\"]") &&
              gives(day, document, 400, "[\"2018-08-09.400\"]"),
          "suffixes run from 1 to 400");
    claim(!gives(day, document, 401, "[\"2018-08-09.401\"]"), "and no further");
    claim(orrery_key_compute(day, document, strlen(document), 0, out, sizeof out, &length,
                             &error) == ORRERY_KEY_OK &&
              strncmp(out, "[\"2018-08-09.", 13) == 0,
          "without one a suffix is drawn");
    claim(gives(car, "{\"date\":\"2018-08-09\",\"vin\":\"1HGCM82633A004352\"}", 0, key),
          "a computed suffix is fixed for ever");
    claim(orrery_key_of_base(car, base, strlen(base), 7, out, sizeof out, &length, &error) ==
                  ORRERY_KEY_OK &&
              strcmp(out, "[\"2018-08-09.7\"]") == 0,
          "a reader can ask for each suffix of a base");
    claim(orrery_key_partition(car, key, strlen(key), 16, &partition, &error) == ORRERY_KEY_OK &&
              partition == 6,
          "the partition is the one the server finds");
    claim(orrery_key_explain(day, document, strlen(document), out, sizeof out, &length, &error) ==
                  ORRERY_KEY_OK &&
              strstr(out, "\"open\":true") != NULL,
          "an explanation says what is open");
    orrery_key_close(day);
    orrery_key_close(car);
}

static void bad_input(void)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"partitionKey\":1}",
        "{\"partitionKey\":{\"paths\":[]}}",
        "{\"partitionKey\":{\"paths\":[\"/a\"]},\"orrery\":{\"synthetic\":1}}",
        "{\"partitionKey\":{\"paths\":[\"/a\"]},\"orrery\":{\"strategy\":\"range\"}}",
    };
    struct orrery_key *key = NULL;
    struct orrery_key_error error;
    int refused = 1;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refused &=
            orrery_key_open(texts[i], strlen(texts[i]), &key, &error) == ORRERY_KEY_REFUSED &&
            error.message[0];
    claim(refused && key == NULL, "what is no container is refused with a reason");
}

int main(void)
{
    concatenations();
    suffixes();
    bad_input();
    printf("1..%d\n", claims);
    return failures != 0;
}
