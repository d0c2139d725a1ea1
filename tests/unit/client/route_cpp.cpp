// The library from C++, linked as programs link it. Speaks TAP by itself.
#include <orrery/route.h>

#include <cstdio>
#include <string>

int main()
{
    const std::string list =
        R"({"format":1,"version":2,"strategy":"hash","partitionKey":{"paths":["/pk"],"version":2},)"
        R"("shards":[{"id":"5","minInclusive":"","maxExclusive":"FF","node":"a","endpoint":"http://h/","rangeId":"5"}]})";
    const std::string key = R"(["a"])";
    orrery_problem problem{};
    orrery_shards *shards = orrery_shards_read(list.data(), list.size(), &problem);
    const orrery_shard *shard =
        shards ? orrery_route(shards, key.data(), key.size(), &problem) : nullptr;
    const bool found = shard && std::string(shard->range_id) == "5";

    std::printf("1..1\n%s 1 - a C++ program finds a shard %s\n", found ? "ok" : "not ok",
                problem.message);
    orrery_shards_free(shards);
    return found ? 0 : 1;
}
