/* Reads a shard list from standard input and prints, for each partition key given as an argument,
 * the shard it is in:
 *
 *     orrery partition shards shop orders | ./route '["tenant-7"]' '["tenant-8"]' */
#include <orrery/route.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
    struct orrery_problem problem;
    size_t len;
    char *list = input_read(&len);
    struct orrery_shards *shards = orrery_shards_read(list, len, &problem);

    free(list);
    if (!shards) {
        fprintf(stderr, "route: %s\n", problem.message);
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        const struct orrery_shard *shard = orrery_route(shards, argv[i], strlen(argv[i]), &problem);

        if (!shard) {
            fprintf(stderr, "route: %s\n", problem.message);
            orrery_shards_free(shards);
            return 1;
        }
        printf("%s %s %s\n", argv[i], shard->range_id, shard->node);
    }
    orrery_shards_free(shards);
    return 0;
}
