#include "cli/shell/words.h"

#include "base/memory.h"

void shell_words_done(struct shell_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        memory_free(words->names[i]);
        memory_free(words->values[i]);
    }
    memory_free(words->names);
    memory_free(words->values);
    *words = (struct shell_words){0};
}

static size_t place_of(const struct shell_words *words, struct slice name)
{
    size_t i = 0;

    while (i < words->count && !slice_equal(slice_of_text(words->names[i]), name))
        i++;
    return i;
}

bool shell_words_put(struct shell_words *words, struct slice name, struct slice value)
{
    size_t place = place_of(words, name);

    if (place == SHELL_WORDS_MAX || name.len + value.len > SHELL_WORD_BYTES_MAX ||
        (name.len && memchr(name.data, '\0', name.len)))
        return false;
    if (!words->names) {
        words->names = memory_alloc(SHELL_WORDS_MAX * sizeof(char *));
        words->values = memory_alloc(SHELL_WORDS_MAX * sizeof(char *));
    }
    if (place == words->count) {
        words->names[words->count] = slice_to_text(name);
        words->values[words->count++] = NULL;
    }
    memory_free(words->values[place]);
    words->values[place] = value.data ? slice_to_text(value) : NULL;
    return true;
}

bool shell_words_remove(struct shell_words *words, struct slice name)
{
    size_t place = place_of(words, name);

    if (place == words->count)
        return false;
    memory_free(words->names[place]);
    memory_free(words->values[place]);
    words->count--;
    for (size_t i = place; i < words->count; i++) {
        words->names[i] = words->names[i + 1];
        words->values[i] = words->values[i + 1];
    }
    return true;
}
