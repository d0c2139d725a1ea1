/* hnswlib, called bare: puts the vectors of a file into a graph and searches it for those of another,
 * on one thread, with a list that grows until 0.95 of the best are found.
 *
 *     vector_bench_theirs DIMENSIONS VECTORS ASKED EXACT    prints recall and seconds of a search
 *
 * Files are rows of floats, EXACT rows of ten numbers of vectors. */
#include <hnswlib/hnswlib.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

enum { BEST = 10, LINKS = 16, BUILD_LIST = 200, LIST_FIRST = 16, LIST_MAX = 4096, TURNS = 20 };

template <typename number> static std::vector<number> file_read(const char *path)
{
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const number *begin = reinterpret_cast<const number *>(bytes.data());

    return std::vector<number>(begin, begin + bytes.size() / sizeof(number));
}

/* Cosines are products of vectors of length 1. */
static void normalize(std::vector<float> &vectors, size_t dimensions)
{
    for (size_t row = 0; row + dimensions <= vectors.size(); row += dimensions) {
        double sum = 0;

        for (size_t i = 0; i < dimensions; i++)
            sum += double(vectors[row + i]) * vectors[row + i];
        for (size_t i = 0; sum > 0 && i < dimensions; i++)
            vectors[row + i] = float(vectors[row + i] / std::sqrt(sum));
    }
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    size_t dimensions = std::strtoul(argv[1], nullptr, 10);
    std::vector<float> vectors = file_read<float>(argv[2]), asked = file_read<float>(argv[3]);
    std::vector<int> exact = file_read<int>(argv[4]);
    size_t count = vectors.size() / dimensions, searches = asked.size() / dimensions;

    normalize(vectors, dimensions);
    normalize(asked, dimensions);
    hnswlib::InnerProductSpace space(dimensions);
    hnswlib::HierarchicalNSW<float> graph(&space, count, LINKS, BUILD_LIST);
    for (size_t i = 0; i < count; i++)
        graph.addPoint(&vectors[i * dimensions], i);
    for (size_t list = LIST_FIRST;; list *= 2) {
        size_t found = 0;

        graph.setEf(list);
        auto begin = std::chrono::steady_clock::now();
        for (int turn = 0; turn < TURNS; turn++) {
            found = 0;
            for (size_t i = 0; i < searches; i++) {
                auto best = graph.searchKnn(&asked[i * dimensions], BEST);

                for (; !best.empty(); best.pop())
                    for (int j = 0; j < BEST; j++)
                        found += size_t(exact[i * BEST + j]) == best.top().second;
            }
        }
        std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        double recall = double(found) / double(searches * BEST);
        if (recall >= 0.95 || list >= LIST_MAX) {
            std::printf("%.4f %.9f\n", recall, seconds.count() / (TURNS * double(searches)));
            return 0;
        }
    }
}
