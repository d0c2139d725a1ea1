"""The asynchronous Python client: the same operations, many at once."""
import asyncio
import uuid
from contextlib import asynccontextmanager

from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

import claims

HTTP = exceptions.CosmosHttpResponseError


@asynccontextmanager
async def container(endpoint, key=PartitionKey("/pk"), **options):
    async with CosmosClient(endpoint.url, endpoint.key) as client:
        database = await client.create_database(f"aio-{uuid.uuid4().hex[:8]}")
        yield await database.create_container("c", key, **options)
        await client.delete_database(database)


async def claim_an_item_lives_through_every_operation(endpoint):
    async with container(endpoint) as items:
        await items.create_item({"id": "1", "pk": "a", "n": 1})
        assert (await items.read_item("1", "a"))["n"] == 1
        await items.replace_item("1", {"id": "1", "pk": "a", "n": 2})
        await items.upsert_item({"id": "2", "pk": "a", "n": 5})
        await items.patch_item("1", "a", [{"op": "incr", "path": "/n", "value": 3}])
        assert (await items.read_item("1", "a"))["n"] == 5
        await items.delete_item("2", "a")
        await claims.raises_async(exceptions.CosmosResourceNotFoundError, items.read_item("2", "a"))
        await claims.raises_async(exceptions.CosmosResourceExistsError, items.create_item({"id": "1", "pk": "a"}))
        assert [item["id"] async for item in items.read_all_items()] == ["1"]


async def claim_two_hundred_writes_at_once_are_all_there(endpoint):
    async with container(endpoint, offer_throughput=30000) as items:
        await asyncio.gather(*(items.create_item({"id": str(i), "pk": f"p{i % 50}", "n": i}) for i in range(200)))
        assert [count async for count in items.query_items("SELECT VALUE COUNT(1) FROM c")] == [200]
        assert [n async for n in items.query_items("SELECT VALUE c.n FROM c ORDER BY c.n")] == list(range(200))
        found = await items.read_items([(str(i), f"p{i % 50}") for i in range(0, 200, 2)])
        assert sorted(item["n"] for item in found) == list(range(0, 200, 2))


async def claim_a_batch_is_all_or_nothing(endpoint):
    async with container(endpoint) as items:
        results = await items.execute_item_batch(
            [("create", ({"id": str(i), "pk": "a"},)) for i in range(100)], partition_key="a")
        assert {result["statusCode"] for result in results} == {201}
        error = await claims.raises_async(exceptions.CosmosBatchOperationError, items.execute_item_batch(
            [("delete", ("1",)), ("create", ({"id": "2", "pk": "a"},))], partition_key="a"))
        assert error.error_index == 1
        assert (await items.read_item("1", "a"))["id"] == "1"


async def claim_the_change_feed_goes_on_from_where_it_was_left(endpoint):
    async with container(endpoint, offer_throughput=30000) as items:
        await asyncio.gather(*(items.create_item({"id": str(i), "pk": f"p{i}"}) for i in range(40)))
        seen = [item["id"] async for item in items.query_items_change_feed(start_time="Beginning")]
        assert sorted(map(int, seen)) == list(range(40))
        position = items.client_connection.last_response_headers["etag"]
        await items.upsert_item({"id": "7", "pk": "p7", "again": True})
        assert [item["id"] async for item in items.query_items_change_feed(continuation=position)] == ["7"]


async def claim_requests_beyond_the_budget_wait_and_then_succeed(endpoint):
    async with container(endpoint, offer_throughput=400) as items:
        text = "x" * 4000
        await asyncio.gather(*(items.create_item({"id": str(i), "pk": f"p{i}", "text": text}) for i in range(60)))
        assert [count async for count in items.query_items("SELECT VALUE COUNT(1) FROM c")] == [60]


async def claim_items_are_found_while_partitions_split(endpoint):
    async with container(endpoint, offer_throughput=10000) as items:
        await asyncio.gather(*(items.create_item({"id": str(i), "pk": f"p{i}", "n": i}) for i in range(100)))
        ranges = [one async for one in items.read_feed_ranges()]
        await items.replace_throughput(30000)
        for _ in range(200):
            rows = [n async for n in items.query_items("SELECT VALUE c.n FROM c ORDER BY c.n")]
            assert rows == list(range(100))
            assert (await items.read_item("50", "p50"))["n"] == 50
            now = [one async for one in items.read_feed_ranges(force_refresh=True)]
            if len(now) > len(ranges):
                break
        assert len(now) == 3
        assert sorted([n async for n in items.query_items("SELECT VALUE c.n FROM c")]) == list(range(100))


async def claim_hierarchical_keys_are_found_by_their_fronts(endpoint):
    key = PartitionKey(["/tenant", "/user"], kind="MultiHash")
    async with container(endpoint, key) as items:
        await asyncio.gather(*(items.create_item({"id": str(i), "tenant": f"t{i % 3}", "user": f"u{i}"}) for i in range(30)))
        assert len([item async for item in items.query_items("SELECT * FROM c", partition_key=["t1"])]) == 10
        assert (await items.read_item("4", ["t1", "u4"]))["id"] == "4"
        error = await claims.raises_async(HTTP, items.read_item("4", ["t1"]))
        assert error.status_code == 400


claims.run(globals())
