/* Counts the items of a container by asking every shard for its part, all at once. A shard that is
 * away, busy or has just been split is tried again; what is missing in the end is said:
 *
 *     orrery partition shards shop orders | ./fan_out 127.0.0.1 8081 shop orders
 *
 * The key is the emulator's, or that of the environment variable ORRERY_KEY. Plain HTTP, one
 * request for a connection. */
#define _GNU_SOURCE /* strcasestr */
#include <orrery/route.h>

#include <netdb.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 8, ANSWER_MAX = 65536, LINK_MAX = 512, SIGNATURE_SIZE = 45 };

static const char emulator_key[] =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbI"
    "ZnqyMsEcaGQy67XIw/Jw==";

struct place {
    const char *host, *port;
    char link[LINK_MAX]; /* dbs/DATABASE/colls/CONTAINER */
};

struct asking {
    const struct place *place;
    const struct orrery_shard *shard;
    long count; /* -1: it did not answer */
    int status; /* of the last answer; 0: there was none */
};

/* type=master&ver=1.0&sig=..., percent-encoded; room for three times as much. */
static void authorization(const struct place *place, const char *date, char *out, size_t size)
{
    const char *key = getenv("ORRERY_KEY");
    unsigned char secret[128], mac[EVP_MAX_MD_SIZE];
    char text[LINK_MAX + 128], sig[SIGNATURE_SIZE];
    unsigned int mac_len = 0;
    size_t at;

    key = key ? key : emulator_key;
    if (strlen(key) != 88 || EVP_DecodeBlock(secret, (const unsigned char *)key, 88) != 66) {
        fprintf(stderr, "fan_out: ORRERY_KEY is no key\n");
        exit(2);
    }
    at = (size_t)snprintf(text, sizeof text, "post\ndocs\n%s\n", place->link);
    for (const char *c = date; *c; c++)
        text[at++] = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    memcpy(text + at, "\n\n", 2);
    HMAC(EVP_sha256(), secret, 64, (const unsigned char *)text, at + 2, mac, &mac_len);
    EVP_EncodeBlock((unsigned char *)sig, mac, (int)mac_len);
    at = (size_t)snprintf(out, size, "type%%3Dmaster%%26ver%%3D1.0%%26sig%%3D");
    for (const char *c = sig; *c && at + 4 < size; c++) {
        if (*c == '+' || *c == '/' || *c == '=')
            at += (size_t)snprintf(out + at, size - at, "%%%02X", (unsigned char)*c);
        else
            out[at++] = *c;
    }
    out[at] = '\0';
}

static int connection_open(const struct place *place)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found, *at;
    int fd = -1;

    if (getaddrinfo(place->host, place->port, &hints, &found))
        return -1;
    for (at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Sends the request and reads all of the answer, ended by a NUL. False: nobody answers. */
static int exchange(const struct asking *asking, char *answer)
{
    static const char body[] = "{\"query\":\"SELECT VALUE COUNT(1) FROM c\",\"parameters\":[]}";
    const struct place *place = asking->place;
    char date[40], who[256], request[2048];
    time_t now = time(NULL);
    size_t len, sent = 0, have = 0;
    struct tm parts;
    ssize_t got;
    int fd;

    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts));
    authorization(place, date, who, sizeof who);
    len = (size_t)snprintf(
        request, sizeof request,
        "POST /%s/docs HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\nContent-Length: %zu\r\n"
        "Content-Type: application/query+json\r\nx-ms-documentdb-isquery: true\r\n"
        "x-ms-documentdb-query-enablecrosspartition: true\r\nx-ms-version: 2020-07-15\r\n"
        "x-ms-documentdb-partitionkeyrangeid: %s\r\nx-ms-date: %s\r\nauthorization: %s\r\n\r\n%s",
        place->link, place->host, place->port, sizeof body - 1, asking->shard->range_id, date, who,
        body);
    if (len >= sizeof request || (fd = connection_open(place)) < 0)
        return 0;
    while (sent < len && (got = write(fd, request + sent, len - sent)) > 0)
        sent += (size_t)got;
    while (have < ANSWER_MAX - 1 && (got = read(fd, answer + have, ANSWER_MAX - 1 - have)) > 0)
        have += (size_t)got;
    close(fd);
    answer[have] = '\0';
    return have > 0;
}

/* How long the server asks to wait; 0: it does not say. */
static long retry_after_ms(const char *answer)
{
    static const char name[] = "\r\nx-ms-retry-after-ms:";
    const char *found = strcasestr(answer, name);

    return found ? strtol(found + sizeof name - 1, NULL, 10) : 0;
}

static int is_worth_another_try(int status)
{
    return status == 0 || status == 408 || status == 410 || status == 429 || status == 449 ||
           status == 503;
}

static void *shard_ask(void *argument)
{
    struct asking *asking = argument;
    char *answer = malloc(ANSWER_MAX);

    asking->count = -1;
    for (int tries = 0; answer && tries < TRIES; tries++) {
        long wait_ms = 20L << tries;
        const char *rows;

        asking->status = 0;
        if (exchange(asking, answer)) {
            long told = retry_after_ms(answer);

            asking->status = atoi(answer + strlen("HTTP/1.1 "));
            wait_ms = told > 0 ? told : wait_ms;
            rows = strstr(answer, "\"Documents\":[");
            if (asking->status == 200 && rows) {
                asking->count = strtol(rows + strlen("\"Documents\":["), NULL, 10);
                break;
            }
        }
        if (!is_worth_another_try(asking->status))
            break;
        nanosleep(&(struct timespec){wait_ms / 1000, wait_ms % 1000 * 1000000}, NULL);
    }
    free(answer);
    return NULL;
}

static char *input_read(size_t *ret_len)
{
    char *text = NULL;
    size_t len = 0, got;

    do {
        text = realloc(text, len + 65536);
        if (!text)
            exit(1);
        got = fread(text + len, 1, 65536, stdin);
        len += got;
    } while (got > 0);
    *ret_len = len;
    return text;
}

static int ask_all(const struct place *place, const struct orrery_shards *shards)
{
    size_t count = orrery_shards_count(shards);
    struct asking *askings = calloc(count, sizeof *askings);
    pthread_t *threads = calloc(count, sizeof *threads);
    size_t begun = 0, missing = 0;
    long all = 0;

    for (; askings && threads && begun < count; begun++) {
        askings[begun] =
            (struct asking){.place = place, .shard = orrery_shards_at(shards, begun), .count = -1};
        if (pthread_create(&threads[begun], NULL, shard_ask, &askings[begun]))
            break;
    }
    for (size_t i = 0; i < begun; i++) {
        pthread_join(threads[i], NULL);
        if (askings[i].count < 0) {
            printf("shard %s on %s: missing (%d)\n", askings[i].shard->range_id,
                   askings[i].shard->node, askings[i].status);
            missing++;
            continue;
        }
        printf("shard %s on %s: %ld\n", askings[i].shard->range_id, askings[i].shard->node,
               askings[i].count);
        all += askings[i].count;
    }
    missing += count - begun;
    free(askings);
    free(threads);
    printf("%ld items in %zu of %zu shards\n", all, count - missing, count);
    return missing ? 3 : 0;
}

int main(int argc, char **argv)
{
    struct orrery_problem problem;
    struct orrery_shards *shards;
    struct place place;
    size_t len;
    char *list;
    int code;

    if (argc != 5) {
        fprintf(stderr, "usage: fan_out HOST PORT DATABASE CONTAINER < shards.json\n");
        return 2;
    }
    place = (struct place){.host = argv[1], .port = argv[2]};
    if (snprintf(place.link, sizeof place.link, "dbs/%s/colls/%s", argv[3], argv[4]) >=
        (int)sizeof place.link) {
        fprintf(stderr, "fan_out: the names are too long\n");
        return 2;
    }
    list = input_read(&len);
    shards = orrery_shards_read(list, len, &problem);
    free(list);
    if (!shards) {
        fprintf(stderr, "fan_out: %s\n", problem.message);
        return 1;
    }
    code = ask_all(&place, shards);
    orrery_shards_free(shards);
    return code;
}
