"""Queries of the Python clients."""
from azure.cosmos import CosmosClient, PartitionKey

import claims


def claim_items_are_found(endpoint):
    client = CosmosClient(endpoint.url, endpoint.key)
    database = client.create_database_if_not_exists("queries")
    container = database.create_container_if_not_exists("items", PartitionKey("/pk"))
    container.upsert_item({"id": "1", "pk": "a"})
    assert [item["id"] for item in container.query_items("SELECT * FROM c", enable_cross_partition_query=True)] == ["1"]


claims.run(globals())
