"""The asynchronous Python client: the same operations, many at once."""
import asyncio
import uuid
from contextlib import asynccontextmanager

from azure.cosmos import PartitionKey, ThroughputProperties, documents, exceptions
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


async def claim_throughput_is_read_replaced_and_refused(endpoint):
    async with container(endpoint, offer_throughput=500) as items:
        assert (await items.get_throughput()).offer_throughput == 500
        assert (await items.replace_throughput(700)).offer_throughput == 700
        assert (await claims.raises_async(HTTP, items.replace_throughput(1))).status_code == 400
    scaled = ThroughputProperties(auto_scale_max_throughput=4000, auto_scale_increment_percent=0)
    async with container(endpoint, offer_throughput=scaled) as items:
        found = await items.get_throughput()
        assert found.auto_scale_max_throughput == 4000 and found.auto_scale_increment_percent == 0


async def claim_tokens_of_users_open_what_they_were_given_for(endpoint):
    async with container(endpoint) as items:
        for key in "ab":
            await items.create_item({"id": "1", "pk": key})
        name = items.container_link.split("/")[1]
        async with CosmosClient(endpoint.url, endpoint.key) as owner:
            user = await owner.get_database_client(name).create_user({"id": "u"})
            permission = await user.create_permission({"id": "p", "permissionMode": documents.PermissionMode.Read,
                                                       "resource": items.container_link, "resourcePartitionKey": ["a"]})
            assert [entry["id"] async for entry in user.list_permissions()] == ["p"]
        async with CosmosClient(endpoint.url, {items.container_link: permission.properties["_token"]}) as client:
            limited = client.get_database_client(name).get_container_client("c")
            assert (await limited.read_item("1", "a"))["id"] == "1"
            assert [item["id"] async for item in limited.query_items("SELECT * FROM c", partition_key="a")] == ["1"]
            assert (await claims.raises_async(HTTP, limited.read_item("1", "b"))).status_code == 403
            assert (await claims.raises_async(HTTP, limited.create_item({"id": "2", "pk": "a"}))).status_code == 403


async def claim_procedures_triggers_and_functions_run(endpoint):
    async with container(endpoint) as items:
        await items.scripts.create_stored_procedure({"id": "add", "body": """function (n) {
            const context = getContext(), items = context.getCollection();
            for (let i = 0; i < n; i++)
                items.createDocument(items.getSelfLink(), { id: 'i' + i, pk: 'a', n: i }, (error) => { if (error) throw error; });
            context.getResponse().setBody({ made: n });
        }"""})
        assert await items.scripts.execute_stored_procedure("add", partition_key="a", parameters=[3]) == {"made": 3}
        await items.scripts.create_trigger({"id": "stamp", "triggerType": "Pre", "triggerOperation": "All", "body": """function () {
            const request = getContext().getRequest(), item = request.getBody();
            item.stamped = true;
            request.setBody(item);
        }"""})
        assert (await items.create_item({"id": "t", "pk": "a"}, pre_trigger_include="stamp"))["stamped"] is True
        await items.scripts.create_user_defined_function({"id": "twice", "body": "function (n) { return 2 * n; }"})
        twice = items.query_items("SELECT VALUE udf.twice(c.n) FROM c WHERE c.n > 0 ORDER BY c.n", partition_key="a")
        assert [n async for n in twice] == [2, 4]
        assert [entry["id"] async for entry in items.scripts.list_stored_procedures()] == ["add"]
        await items.scripts.delete_stored_procedure("add")


async def claim_all_versions_and_deletes_are_read_from_now_on(endpoint):
    policy = {"retentionDuration": 10}
    async with CosmosClient(endpoint.url, endpoint.key) as client:
        database = await client.create_database(f"aio-{uuid.uuid4().hex[:8]}")
        await client.client_connection.CreateContainer(database.database_link, {
            "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "changeFeedPolicy": policy})
        items = database.get_container_client("c")
        assert [change async for change in items.query_items_change_feed(mode="AllVersionsAndDeletes")] == []
        position = items.client_connection.last_response_headers["etag"]
        await items.create_item({"id": "1", "pk": "a"})
        await items.delete_item("1", "a")
        changes = items.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=position)
        assert [change["metadata"]["operationType"] async for change in changes] == ["create", "delete"]
        await client.delete_database(database)


claims.run(globals())
