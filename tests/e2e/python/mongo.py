"""The MongoDB API through PyMongo: connecting with and without credentials, documents, cursors."""

import bson
import claims
import pymongo
import pymongo.errors


def connect(endpoint, **options):
    return pymongo.MongoClient(endpoint.mongo, serverSelectionTimeoutMS=15000, **options)


def claim_the_server_is_a_mongos(endpoint):
    with connect(endpoint) as client:
        assert client.is_mongos
        assert client.server_info()["version"].startswith("7.0.")


def claim_documents_go_in_and_come_out(endpoint):
    with connect(endpoint) as client:
        people = client.shop.people
        made = people.insert_one({"name": "Ann", "n": bson.int64.Int64(5)}).inserted_id
        assert people.find_one({"_id": made}) == {"_id": made, "name": "Ann", "n": 5}
        assert people.find_one({"name": "Ann"})["_id"] == made
        assert people.replace_one({"_id": made}, {"name": "Bob"}).modified_count == 1
        assert people.find_one({"_id": made}) == {"_id": made, "name": "Bob"}
        assert people.delete_one({"_id": made}).deleted_count == 1
        assert people.find_one({"_id": made}) is None


def claim_duplicates_are_told_by_name(endpoint):
    with connect(endpoint) as client:
        people = client.shop.twice
        people.insert_one({"_id": 1})
        error = claims.raises(pymongo.errors.DuplicateKeyError, people.insert_one, {"_id": 1})
        assert error.details["keyValue"] == {"_id": 1}
        bulk = claims.raises(pymongo.errors.BulkWriteError, people.insert_many, [{"_id": 2}, {"_id": 2}, {"_id": 3}], ordered=False)
        assert bulk.details["nInserted"] == 2


def claim_cursors_go_over_several_batches(endpoint):
    with connect(endpoint) as client:
        many = client.shop.many
        many.insert_many([{"_id": i, "text": "x" * 100} for i in range(2500)])
        assert sorted(row["_id"] for row in many.find(batch_size=300)) == list(range(2500))
        assert len(list(many.find().limit(7))) == 7
        assert many.estimated_document_count() == 2500
        assert many.delete_many({}).deleted_count == 2500


def claim_changes_are_watched_and_resumed(endpoint):
    with connect(endpoint) as client:
        watched = client.shop.watched
        with watched.watch(max_await_time_ms=500) as stream:
            assert stream.try_next() is None
            watched.insert_one({"_id": 1, "a": 1})
            watched.update_one({"_id": 1}, {"$set": {"a": 2}})
            first = stream.next()
            assert (first["operationType"], first["fullDocument"]) == ("insert", {"_id": 1, "a": 1})
        with watched.watch(resume_after=first["_id"], full_document="updateLookup", max_await_time_ms=500) as stream:
            change = stream.next()
            assert change["updateDescription"]["updatedFields"] == {"a": 2}
            assert change["fullDocument"] == {"_id": 1, "a": 2}
            watched.drop()
            assert [event["operationType"] for event in stream] == ["drop", "invalidate"]


def claim_accounts_authenticate_with_their_keys(endpoint):
    for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256"):
        with connect(endpoint, username="default", password=endpoint.key, authMechanism=mechanism) as client:
            assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": "default", "db": "admin"}]
        with connect(endpoint, username="default", password="wrong", authMechanism=mechanism) as client:
            error = claims.raises(pymongo.errors.OperationFailure, client.shop.people.find_one)
            assert error.code == 18, error


def claim_writes_without_an_answer_are_carried_out(endpoint):
    with connect(endpoint) as client:
        quiet = client.shop.get_collection("quiet", write_concern=pymongo.WriteConcern(w=0))
        assert not quiet.insert_one({"_id": 1}).acknowledged
        assert client.shop.command("ping")["ok"] == 1
        while client.shop.quiet.find_one({"_id": 1}) is None:
            pass


def claim_indexes_are_made_used_and_dropped(endpoint):
    with connect(endpoint) as client:
        books = client.shop.books
        books.insert_many([{"_id": i, "year": 1900 + i % 50, "tags": ["a", "b"] if i % 2 else "c"} for i in range(500)])
        assert books.create_index([("year", pymongo.DESCENDING), ("_id", 1)]) == "year_-1__id_1"
        assert books.create_index("tags", name="by tag") == "by tag"
        assert sorted(books.index_information()) == ["_id_", "by tag", "year_-1__id_1"]
        assert books.index_information()["year_-1__id_1"]["key"] == [("year", -1), ("_id", 1)]
        assert [row["year"] for row in books.find({"year": {"$gte": 1948}}).sort("year", -1)] == [1949] * 10 + [1948] * 10
        assert books.count_documents({"tags": "b"}) == 250
        plan = books.find({"year": 1910}).explain()["queryPlanner"]["winningPlan"]
        assert plan["inputStage"]["indexName"] == "year_-1__id_1", plan
        books.create_index("isbn", unique=True, sparse=True)
        books.insert_one({"isbn": 7})
        error = claims.raises(pymongo.errors.DuplicateKeyError, lambda: books.insert_one({"isbn": 7}))
        assert error.details["keyPattern"] == {"isbn": 1} and error.details["keyValue"] == {"isbn": 7}, error.details
        books.drop_indexes()
        assert list(books.index_information()) == ["_id_"]


def claim_what_is_not_there_is_empty_and_nothing_more(endpoint):
    with connect(endpoint) as client:
        database, none = client.nowhere, client.nowhere.none
        assert list(none.find({"a": 1}).sort("a")) == [] and none.find_one_and_update({"a": 1}, {"$set": {"a": 2}}) is None
        assert list(none.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}])) == []
        assert none.count_documents({}) == none.estimated_document_count() == 0
        assert none.distinct("a") == [] and list(none.list_indexes()) == []
        assert none.update_many({}, {"$set": {"a": 1}}).matched_count == none.delete_many({}).deleted_count == 0
        assert none.find({"a": 1}).explain()["queryPlanner"]["winningPlan"]["stage"] == "EOF"
        assert claims.raises(pymongo.errors.OperationFailure, none.rename, "some").code == 26
        assert claims.raises(pymongo.errors.OperationFailure, database.validate_collection, "none").code == 26
        assert "nowhere" not in client.list_database_names()


def claim_collections_are_read_as_tools_do(endpoint):
    with connect(endpoint) as client:
        database = client.dumped
        database.create_collection("empty")
        database.many.insert_many([{"_id": i, "bytes": b"x" * i} for i in range(300)])
        database.many.create_index([("at", pymongo.GEOSPHERE)])
        assert database.validate_collection("many")["valid"] and database.validate_collection("empty", full=True)["valid"]
        assert sorted(row["name"] for row in database.list_collections()) == ["empty", "many"]
        assert len(list(database.many.find({}, no_cursor_timeout=True, batch_size=10).hint([("$natural", 1)]))) == 300
        assert [row["_id"] for row in database.many.find(batch_size=64).sort("_id", 1)] == list(range(300))
        assert database.many.index_information()["at_2dsphere"] == {"v": 2, "key": [("at", "2dsphere")], "2dsphereIndexVersion": 3}
        near = {"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}
        assert list(database.many.find(near)) == []
        database.many.update_many({"_id": {"$lt": 5}}, [{"$set": {"at": ["$_id", 0]}}])
        assert [row["_id"] for row in database.many.find(near).limit(3)] == [0, 1, 2]
        with client.start_session() as session, session.start_transaction():
            database.many.update_one({"_id": 4}, {"$set": {"at": [0.5, 0]}}, session=session)
            assert [row["_id"] for row in database.many.find(near, session=session).limit(3)] == [0, 4, 1]
            assert [row["_id"] for row in database.many.find(near).limit(3)] == [0, 1, 2]
            session.abort_transaction()
        assert list(database.empty.aggregate([{"$facet": {"a": [{"$count": "n"}], "b": []}}])) == [{"a": [], "b": []}]


def claim_a_database_is_dropped(endpoint):
    with connect(endpoint) as client:
        client.away.c.insert_one({})
        assert "away" in client.list_database_names()
        assert client.away.list_collection_names() == ["c"]
        client.drop_database("away")
        assert "away" not in client.list_database_names()


def claim_transactions_are_committed_and_aborted(endpoint):
    with connect(endpoint) as client:
        accounts = client.shop.accounts
        accounts.insert_many([{"_id": "a", "n": 10}, {"_id": "b", "n": 0}])

        def transfer(session):
            accounts.update_one({"_id": "a"}, {"$inc": {"n": -3}}, session=session)
            accounts.update_one({"_id": "b"}, {"$inc": {"n": 3}}, session=session)
            assert accounts.find_one({"_id": "b"}, session=session)["n"] == 3

        with client.start_session() as session:
            session.with_transaction(transfer)
            assert [row["n"] for row in accounts.find(sort=[("_id", 1)])] == [7, 3]
            with session.start_transaction():
                accounts.delete_many({}, session=session)
                session.abort_transaction()
            assert accounts.count_documents({}) == 2


claims.run(globals())
