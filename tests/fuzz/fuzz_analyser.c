/* Any bytes as a text: terms are short, and reading ends. */
#include "fuzz/fuzz.h"
#include "search/analyser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const languages[] = {"de-DE", "en-US", "es-ES", "fr-FR", "it-IT", "pt-BR"};
    CLEANUP(search_analyser_free) struct search_analyser *analyser = NULL;
    struct search_text words;
    struct slice term;
    size_t count = 0;

    if (!size)
        return 0;
    analyser = search_analyser_new(slice_of_text(languages[data[0] % ARRAY_LEN(languages)]));
    words = (struct search_text){analyser, slice_of(data + 1, size - 1)};
    while (search_text_next(&words, &term)) {
        FUZZ_CHECK(term.len <= 2 * SEARCH_TERM_MAX);
        FUZZ_CHECK(++count <= size);
    }
    FUZZ_CHECK(!words.rest.len);
    return 0;
}
