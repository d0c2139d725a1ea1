/* hnswlib, called bare: puts the vectors of a file into a graph, on all processors, and searches it
 * for those of another, on one thread, with a list that grows until as many of the best are found as
 * ours has found.
 *
 *     vector_bench_theirs DIMENSIONS DIRECTORY RECALL    prints recall, seconds of a search, seconds
 *                                                        that the graph took, and its bytes
 *
 * The files are those of vector_bench_make. */
#include <hnswlib/hnswlib.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

enum { BEST = 10, LINKS = 16, BUILD_LIST = 200, LIST_FIRST = 16, LIST_MAX = 4096, TURNS = 20 };

template <typename number>
static std::vector<number> file_read(const std::string &directory, const char *name)
{
    std::ifstream file(directory + "/" + name, std::ios::binary);
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

static void graph_fill(hnswlib::HierarchicalNSW<float> &graph, const std::vector<float> &vectors,
                       size_t dimensions)
{
    size_t count = vectors.size() / dimensions;
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> all;

    for (unsigned thread = 0; thread < threads; thread++)
        all.emplace_back([&, thread] {
            for (size_t i = thread; i < count; i += threads)
                graph.addPoint(&vectors[i * dimensions], i);
        });
    for (auto &thread : all)
        thread.join();
}

static double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    size_t dimensions = std::strtoul(argv[1], nullptr, 10);
    std::vector<float> vectors = file_read<float>(argv[2], "vectors"),
                       asked = file_read<float>(argv[2], "asked");
    std::vector<int> exact = file_read<int>(argv[2], "exact");
    double wanted = std::strtod(argv[3], nullptr);
    size_t count = vectors.size() / dimensions, searches = asked.size() / dimensions;

    normalize(vectors, dimensions);
    normalize(asked, dimensions);
    hnswlib::InnerProductSpace space(dimensions);
    hnswlib::HierarchicalNSW<float> graph(&space, count, LINKS, BUILD_LIST);
    auto built = std::chrono::steady_clock::now();
    graph_fill(graph, vectors, dimensions);
    double build_s = seconds_since(built);
    for (size_t list = LIST_FIRST;; list += list / 2) {
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
        double search_s = seconds_since(begin) / (TURNS * double(searches));
        double recall = double(found) / double(searches * BEST);
        if (recall >= wanted || list >= LIST_MAX) {
            std::printf("%.4f %.9f %.1f %zu\n", recall, search_s, build_s,
                        count * graph.size_data_per_element_);
            return 0;
        }
    }
}
