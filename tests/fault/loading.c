#include "fault/loading.h"

#include "base/thread.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct client {
    const struct loading *loading;
    uint32_t number, first;
};

static void say(const char *line)
{
    size_t len = strlen(line);

    if (write(STDOUT_FILENO, line, len) != (ssize_t)len)
        _exit(1);
}

static void client_run(void *context)
{
    struct client *client = context;

    for (uint32_t n = client->first;; n++) {
        struct error err;
        char line[64];

        if (!client->loading->commit(client->number, n, &err)) {
            snprintf(line, sizeof line, "error %s\n", error_face(err.code)->name);
            say(line);
            _exit(3);
        }
        snprintf(line, sizeof line, "%u %u\n", client->number, n);
        say(line);
    }
}

static uint32_t number_of(const char *text)
{
    uint64_t number = 0;

    if (!slice_to_uint64(slice_of_text(text), &number))
        _exit(2);
    return (uint32_t)number;
}

int loading_main(int argc, char **argv, const struct loading *loading)
{
    const struct engine_options options = {.write_buffer_bytes = 1 << 20};
    struct client clients[LOADING_CLIENTS_MAX];
    struct thread threads[LOADING_CLIENTS_MAX];
    struct engine *engine;
    struct error err;
    uint32_t count;

    if (argc != 4 || (count = number_of(argv[2])) > LOADING_CLIENTS_MAX)
        return 2;
    if (!engine_open(slice_of_text(argv[1]), &options, &engine, &err) ||
        !loading->open(engine, &err)) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return 4;
    }
    for (uint32_t i = 0; i < count; i++) {
        clients[i] = (struct client){loading, i, number_of(argv[3])};
        thread_start(&threads[i], "client", client_run, &clients[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        thread_join(&threads[i]);
    return 0;
}
