"""Queries of every shape with the Python clients, blocking and asynchronous, over several ranges: in pages, resumed, and
merged by the library."""
import itertools

from azure.cosmos import CosmosClient, PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient as AsyncClient

import claims

TENANTS = ["a", "b", "c", "d", "e", "f", "g"]
ITEMS = [
    {"id": f"i{i}", "tenant": TENANTS[i % 7], "n": i * 17 % 40, "kind": "xyz"[i % 3], "tags": [f"t{j}" for j in range(i % 3)]}
    for i in range(40)
]
SORTED = sorted(item["n"] for item in ITEMS)

# The text, the rows, and whether their order is part of it.
SHAPES = [
    ("SELECT VALUE c.n FROM c WHERE c.n > 30", [n for n in SORTED if n > 30], False),
    ("SELECT VALUE t FROM c JOIN t IN c.tags", [tag for item in ITEMS for tag in item["tags"]], False),
    ("SELECT VALUE c.n FROM c ORDER BY c.n", SORTED, True),
    ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", SORTED[::-1], True),
    ("SELECT VALUE c.n FROM c WHERE c.n >= 7 ORDER BY c.n", SORTED[7:], True),
    ("SELECT TOP 7 VALUE c.n FROM c ORDER BY c.n", SORTED[:7], True),
    ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 8", SORTED[5:13], True),
    ("SELECT DISTINCT VALUE c.tenant FROM c", TENANTS, False),
    ("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind", ["x", "y", "z"], True),
    ("SELECT VALUE COUNT(1) FROM c", [40], True),
    ("SELECT VALUE SUM(c.n) FROM c", [780], True),
    ("SELECT VALUE AVG(c.n) FROM c", [19.5], True),
    ("SELECT VALUE MIN(c.n) FROM c", [0], True),
    ("SELECT VALUE MAX(c.n) FROM c", [39], True),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.n < 0", [0], True),
    # What the library cannot merge stays with the server.
    ("SELECT VALUE COUNT(1) FROM c GROUP BY c.tenant", [5, 5, 6, 6, 6, 6, 6], False),
    ("SELECT COUNT(1) AS n, MAX(c.n) AS m FROM c", [{"n": 40, "m": 39}], True),
    ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.kind FROM c)", [3], True),
]
COUNTED = [("SELECT TOP 11 * FROM c", 11), ("SELECT * FROM c OFFSET 30 LIMIT 30", 10), ("SELECT * FROM c", 40)]


def same(rows, expected, ordered, query):
    rows = rows if ordered else sorted(rows)
    expected = expected if ordered else sorted(expected)
    assert rows == expected, f"{query}: {rows} instead of {expected}"


def open_container(endpoint):
    client = CosmosClient(endpoint.url, endpoint.key)
    database = client.create_database_if_not_exists("queries")
    container = database.create_container_if_not_exists("items", PartitionKey("/tenant"), offer_throughput=50_000)
    if not list(container.query_items("SELECT VALUE c.id FROM c OFFSET 0 LIMIT 1", enable_cross_partition_query=True)):
        for item in ITEMS:
            container.create_item(item)
    assert len(list(container.read_feed_ranges())) > 1
    return container


def claim_every_shape_comes_over_several_ranges(endpoint):
    container = open_container(endpoint)
    for size in (1, 3, 100):
        for query, expected, ordered in SHAPES:
            rows = list(container.query_items(query, enable_cross_partition_query=True, max_item_count=size))
            same(rows, expected, ordered, f"{query} in pages of {size}")
        for query, count in COUNTED:
            rows = list(container.query_items(query, enable_cross_partition_query=True, max_item_count=size))
            assert len(rows) == count, f"{query}: {len(rows)} rows"


def claim_parameters_reach_the_merged_query(endpoint):
    rows = open_container(endpoint).query_items(
        "SELECT VALUE c.n FROM c WHERE c.n >= @least ORDER BY c.n",
        parameters=[{"name": "@least", "value": 30}],
        enable_cross_partition_query=True,
    )
    assert list(rows) == SORTED[30:]


def claim_pages_are_full_and_none_is_empty(endpoint):
    container = open_container(endpoint)
    for query, expected, ordered in SHAPES:
        pages = [
            list(page)
            for page in container.query_items(query, enable_cross_partition_query=True, max_item_count=5).by_page()
        ]
        rows = list(itertools.chain.from_iterable(pages))
        same(rows, expected, ordered, query)
        assert not [page for page in pages[:-1] if not page], f"{query}: an empty page before the last: {pages}"


def claim_a_key_has_every_shape_too(endpoint):
    container = open_container(endpoint)
    mine = sorted(item["n"] for item in ITEMS if item["tenant"] == "b")
    shapes = [
        ("SELECT VALUE c.n FROM c ORDER BY c.n", mine),
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", mine[::-1]),
        ("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n", mine[:2]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 3", mine[1:4]),
        ("SELECT VALUE SUM(c.n) FROM c", [sum(mine)]),
        ("SELECT DISTINCT VALUE c.tenant FROM c", ["b"]),
        ("SELECT VALUE COUNT(1) FROM c GROUP BY c.tenant", [len(mine)]),
    ]
    for query, expected in shapes:
        for size in (1, 2, 100):
            assert list(container.query_items(query, partition_key="b", max_item_count=size)) == expected, query


def resumed(container, query, **scope):
    """Page by page, each by an iterator of its own that knows nothing but the token."""
    rows, token, pages = [], None, 0
    while pages == 0 or token:
        iterator = container.query_items(query, max_item_count=4, **scope).by_page(token)
        rows.extend(next(iterator))
        token = iterator.continuation_token
        pages += 1
    return rows, pages


def claim_queries_are_resumed_by_their_token(endpoint):
    container = open_container(endpoint)
    everywhere = {"enable_cross_partition_query": True}
    for query, expected, scope, ordered in [
        ("SELECT VALUE c.n FROM c", SORTED, everywhere, False),
        ("SELECT VALUE t FROM c JOIN t IN c.tags", [tag for item in ITEMS for tag in item["tags"]], everywhere, False),
        ("SELECT VALUE COUNT(1) FROM c GROUP BY c.n", [1] * 40, everywhere, False),
        ("SELECT VALUE c.n FROM c ORDER BY c.n", sorted(i["n"] for i in ITEMS if i["tenant"] == "a"), {"partition_key": "a"}, True),
    ]:
        rows, pages = resumed(container, query, **scope)
        same(rows, expected, ordered, query)
        assert pages == -(-len(expected) // 4), f"{query}: {pages} pages of {len(expected)} rows"


def claim_feed_ranges_are_queried_and_resumed(endpoint):
    container = open_container(endpoint)
    rows = []
    for feed_range in container.read_feed_ranges():
        mine, _ = resumed(container, "SELECT VALUE c.n FROM c ORDER BY c.n", feed_range=feed_range)
        assert mine == sorted(mine)
        rows.extend(mine)
    assert sorted(rows) == SORTED


def claim_a_function_that_is_not_there_is_a_bad_request(endpoint):
    container = open_container(endpoint)
    for query in ("SELECT VALUE NO_SUCH_FUNCTION(c.n) FROM c",):
        try:
            list(container.query_items(query, enable_cross_partition_query=True))
            raise AssertionError(f"{query} was answered")
        except exceptions.CosmosHttpResponseError as error:
            assert error.status_code == 400, f"{query}: {error.status_code}"


async def claim_every_shape_comes_asynchronously(endpoint):
    open_container(endpoint)
    async with AsyncClient(endpoint.url, endpoint.key) as client:
        container = client.get_database_client("queries").get_container_client("items")
        for size in (3, 100):
            for query, expected, ordered in SHAPES:
                same([row async for row in container.query_items(query, max_item_count=size)], expected, ordered, query)
            for query, count in COUNTED:
                assert len([row async for row in container.query_items(query, max_item_count=size)]) == count, query


async def claim_queries_are_resumed_asynchronously(endpoint):
    open_container(endpoint)
    async with AsyncClient(endpoint.url, endpoint.key) as client:
        container = client.get_database_client("queries").get_container_client("items")
        for query, scope in [("SELECT VALUE c.n FROM c", {}), ("SELECT VALUE c.n FROM c ORDER BY c.n", {"partition_key": "c"})]:
            rows, token, pages = [], None, 0
            while pages == 0 or token:
                iterator = container.query_items(query, max_item_count=2, **scope).by_page(token)
                rows.extend([row async for row in await iterator.__anext__()])
                token = iterator.continuation_token
                pages += 1
            expected = [item["n"] for item in ITEMS if item["tenant"] == "c" or not scope]
            same(rows, sorted(expected), bool(scope), query)


claims.run(globals())
