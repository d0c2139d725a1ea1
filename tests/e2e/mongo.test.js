// The spine of the MongoDB API through npm `mongodb`: connecting, documents, cursors, collections.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Binary, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } from 'mongodb';
import { emulatorKey, Server } from './server.js';
import { mongo, mongoClient } from './mongo.js';

test('the driver finds a mongos', async (t) => {
  const { client } = await mongo(t);
  const hello = await client.db('admin').command({ hello: 1 });
  assert.equal(hello.msg, 'isdbgrid');
  assert.equal(hello.isWritablePrimary, true);
  assert.equal(hello.maxWireVersion, 21);
  assert.equal(hello.maxBsonObjectSize, 16777216);
  assert.equal(hello.logicalSessionTimeoutMinutes, 30);
  assert.equal(hello.setName, undefined);
});

test('the connection string of the emulator finds the replica set globaldb, with TLS', async (t) => {
  const server = await Server.start(t, ['--dev', '--mongo-replica-set', '127.0.0.1:0']);
  const port = Number(/mongodb:\S+@127\.0\.0\.1:(\d+)\/\?tls=true&replicaSet=globaldb&retrywrites=false/.exec(server.out)[1]);
  const url = `mongodb://localhost:${encodeURIComponent(emulatorKey)}@127.0.0.1:${port}/?ssl=true&replicaSet=globaldb` +
    '&retrywrites=false&maxIdleTimeMS=120000&appName=@localhost@';
  const client = await mongoClient(t, url, { tlsAllowInvalidCertificates: true });
  const hello = await client.db('admin').command({ hello: 1 });
  assert.equal(hello.setName, 'globaldb');
  assert.deepEqual(hello.hosts, [`127.0.0.1:${port}`]);
  assert.equal(hello.me, hello.primary);
  const people = client.db('shop').collection('people');
  await people.insertOne({ _id: 'ann' });
  assert.deepEqual(await people.findOne({ _id: 'ann' }), { _id: 'ann' });
  const plain = await mongoClient(t, server.mongo);
  assert.deepEqual(await plain.db('shop').collection('people').findOne({ _id: 'ann' }), { _id: 'ann' });
  await assert.rejects(mongoClient(t, `mongodb://127.0.0.1:${port}/?directConnection=true`, { serverSelectionTimeoutMS: 500 }));
});

test('the port that the replica set has by itself keeps no second server from starting', async (t) => {
  const servers = [];
  for (let i = 0; i < 2; i++) servers.push(await Server.start(t, ['--dev', '--mongo-replica-set', 'auto']));
  const listening = servers.filter((server) => server.out.includes(':10255/'));
  assert.ok(listening.length <= 1); // none, where another program has it
  for (const server of servers) assert.equal((await server.get('/ready')).status, 200);
  const lacking = servers.find((server) => !listening.includes(server));
  assert.ok(lacking.events().some((event) => event.event === 'no replica set for MongoDB\'s clients' && /10255/.test(event.because)));
  const none = await Server.start(t, ['--dev', '--mongo', 'off', '--mongo-replica-set', 'auto']);
  assert.ok(!none.out.includes(':10255/') && !none.err.includes('10255'));
});

test('the advertised address is what clients of the replica set are told', async (t) => {
  const server = await Server.start(t, ['--dev', '--mongo-replica-set', '127.0.0.1:0', '--set', 'mongo.advertise=db.example:10255']);
  const port = Number(/@127\.0\.0\.1:(\d+)\/\?tls=true/.exec(server.out)[1]);
  const client = await mongoClient(t, `mongodb://127.0.0.1:${port}/?tls=true&directConnection=true`, { tlsAllowInvalidCertificates: true });
  assert.deepEqual((await client.db('admin').command({ hello: 1 })).hosts, ['db.example:10255']);
});

test('documents are inserted, found, replaced and deleted', async (t) => {
  const { db } = await mongo(t);
  const orders = db.collection('orders');
  const { insertedId } = await orders.insertOne({ total: 5 });
  assert.ok(insertedId instanceof ObjectId);
  assert.deepEqual(await orders.findOne({ _id: insertedId }), { _id: insertedId, total: 5 });
  assert.deepEqual(await orders.findOne({ total: 5 }), { _id: insertedId, total: 5 });
  assert.equal(await orders.findOne({ _id: 'nobody' }), null);

  const replaced = await orders.replaceOne({ total: 5 }, { total: 6, tags: ['a', 'b'] });
  assert.deepEqual([replaced.matchedCount, replaced.modifiedCount], [1, 1]);
  const same = await orders.replaceOne({ _id: insertedId }, { total: 6, tags: ['a', 'b'] });
  assert.deepEqual([same.matchedCount, same.modifiedCount], [1, 0]);
  assert.deepEqual(await orders.findOne({ tags: 'b' }), { _id: insertedId, total: 6, tags: ['a', 'b'] });
  await assert.rejects(orders.replaceOne({ _id: insertedId }, { _id: 'other' }), { code: 66 });

  const upserted = await orders.replaceOne({ _id: 9 }, { total: 1 }, { upsert: true });
  assert.deepEqual([upserted.upsertedId, upserted.upsertedCount], [9, 1]);
  assert.deepEqual(await orders.findOne({ _id: 9 }), { _id: 9, total: 1 });
  const none = await orders.replaceOne({ _id: 10 }, { total: 1 });
  assert.deepEqual([none.matchedCount, none.modifiedCount], [0, 0]);

  assert.equal((await orders.deleteOne({ _id: 9 })).deletedCount, 1);
  assert.equal((await orders.deleteOne({ _id: 9 })).deletedCount, 0);
  assert.equal((await orders.deleteMany({})).deletedCount, 1);
  assert.equal(await orders.estimatedDocumentCount(), 0);
});

test('_id comes first, is generated where it is missing, and 1 and 1.0 are the same', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await db.command({ insert: 'c', documents: [{ a: 1, _id: 'x' }, { a: 2 }] });
  assert.deepEqual(Object.keys(await c.findOne({ _id: 'x' })), ['_id', 'a']);
  const made = await c.findOne({ a: 2 });
  assert.deepEqual(Object.keys(made), ['_id', 'a']);
  assert.ok(made._id instanceof ObjectId);
  await c.insertOne({ _id: new Int32(1) });
  await assert.rejects(c.insertOne({ _id: new Double(1) }), { code: 11000 });
  assert.deepEqual(await c.findOne({ _id: Long.fromNumber(1) }), { _id: 1 });
  for (const [id, code] of [[[1], 53], [/a/, 53], [{ $a: 1 }, 52]])
    await assert.rejects(c.insertOne({ _id: id }), { code });
  await c.insertOne({ _id: { a: 1, b: 2 } });
  assert.ok(await c.findOne({ _id: { a: 1, b: 2 } }));
  assert.equal(await c.findOne({ _id: { b: 2, a: 1 } }), null);
});

test('every BSON type comes back as it was sent', async (t) => {
  const { db } = await mongo(t, [], { promoteValues: false });
  const values = {
    _id: 'types', double: new Double(1.5), nan: new Double(NaN), string: 'ä\u0000b', object: { b: new Int32(1), a: new Int32(2) },
    array: [new Int32(1), 'x'], binary: new Binary(Buffer.from([1, 2])), uuid: new UUID('b6f5f1c0-0f2e-4c3f-9d7c-0123456789ab'),
    id: new ObjectId('507f1f77bcf86cd799439011'), yes: true, date: new Date(1600789292000), nothing: null,
    int: new Int32(-5), timestamp: new Timestamp({ t: 5, i: 7 }), long: Long.fromString('9007199254740993'),
    decimal: Decimal128.fromString('1.10'), min: new MinKey(), max: new MaxKey(),
  };
  await db.collection('types').insertOne(values);
  const found = await db.collection('types').findOne({ _id: 'types' });
  assert.equal(JSON.stringify(found, (key, value) => (typeof value === 'bigint' ? `${value}` : value)), JSON.stringify(values));
  assert.deepEqual(Object.keys(found), Object.keys(values));
});

test('a duplicate is a write error: ordered stops there, unordered goes on', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  const documents = [{ _id: 1 }, { _id: 1 }, { _id: 2 }];
  const reply = await db.command({ insert: 'c', documents });
  assert.equal(reply.ok, 1);
  assert.equal(reply.n, 1);
  assert.equal(reply.writeErrors.length, 1);
  const [{ index, code, errmsg, keyPattern, keyValue }] = reply.writeErrors;
  assert.deepEqual({ index, code, keyPattern, keyValue }, { index: 1, code: 11000, keyPattern: { _id: 1 }, keyValue: { _id: 1 } });
  assert.match(errmsg, /^E11000 duplicate key error collection: shop\.c index: _id_ dup key: \{ _id: 1 \}$/);
  const more = await db.command({ insert: 'c', documents: [{ _id: 1 }, { _id: 2 }, { _id: [1] }, { _id: 3 }], ordered: false });
  assert.equal(more.n, 2);
  assert.deepEqual(more.writeErrors.map((error) => [error.index, error.code]), [[0, 11000], [2, 53]]);
  await assert.rejects(c.insertMany(documents), { code: 11000 });
  assert.equal(await c.estimatedDocumentCount(), 3);
});

test('a result comes in batches, and a cursor closes with its last one', async (t) => {
  const { server, db } = await mongo(t);
  const c = db.collection('many');
  await c.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i, third: i % 3 })));
  const counted = await mongoClient(t, server.mongo, { monitorCommands: true });
  const sizes = [];
  counted.on('commandSucceeded', ({ reply }) => reply.cursor && sizes.push((reply.cursor.firstBatch ?? reply.cursor.nextBatch).length));
  const found = await counted.db('shop').collection('many').find({ third: 0 }, { batchSize: 100 }).toArray();
  assert.equal(new Set(found.map(({ _id }) => _id)).size, 334);
  assert.deepEqual(sizes, [100, 100, 100, 34]);
  sizes.length = 0;
  assert.equal((await counted.db('shop').collection('many').find().toArray()).length, 1000);
  assert.deepEqual(sizes, [101, 899]);
  assert.equal((await c.find().skip(990).toArray()).length, 10);
  assert.equal((await c.find().limit(250).batchSize(100).toArray()).length, 250);
  assert.equal((await db.command({ find: 'many', batchSize: 0 })).cursor.firstBatch.length, 0);
  assert.equal((await db.command({ find: 'many', singleBatch: true, batchSize: 5 })).cursor.id.toString(), '0');
  assert.deepEqual((await c.distinct('third')).sort(), [0, 1, 2]);
  assert.equal((await db.command({ count: 'many', query: { third: 1 } })).n, 333);
});

test('cursors are killed, and belong to their session and collection', async (t) => {
  const { client, db } = await mongo(t);
  await db.collection('many').insertMany(Array.from({ length: 10 }, (_, i) => ({ _id: i })));
  const session = client.startSession();
  const other = client.startSession();
  t.after(() => Promise.all([session.endSession(), other.endSession()]));
  const { cursor } = await db.command({ find: 'many', batchSize: 2 }, { session });
  const getMore = Long.isLong(cursor.id) ? cursor.id : Long.fromNumber(cursor.id);
  await assert.rejects(db.command({ getMore, collection: 'many' }, { session: other }), { code: 13 });
  await assert.rejects(db.command({ getMore, collection: 'few' }, { session }), { code: 13 });
  assert.equal((await db.command({ getMore, collection: 'many', batchSize: 3 }, { session })).cursor.nextBatch.length, 3);
  const killed = await db.command({ killCursors: 'many', cursors: [getMore, Long.fromNumber(5)] }, { session });
  assert.deepEqual([killed.cursorsKilled.length, killed.cursorsNotFound.length], [1, 1]);
  await assert.rejects(db.command({ getMore, collection: 'many' }, { session }), { code: 43, codeName: 'CursorNotFound' });
  const open = await db.command({ find: 'many', batchSize: 2 }, { session });
  await db.collection('many').drop();
  await assert.rejects(db.command({ getMore: open.cursor.id, collection: 'many' }, { session }), { code: 175 });
});

test('databases and collections are listed, made and dropped', async (t) => {
  const { client, db } = await mongo(t);
  await db.createCollection('made');
  await assert.rejects(db.command({ create: 'made' }), { code: 48, codeName: 'NamespaceExists' });
  await db.collection('used').insertOne({});
  assert.deepEqual((await db.listCollections().toArray()).map(({ name }) => name).sort(), ['made', 'used']);
  assert.deepEqual((await db.listCollections({ name: 'used' }, { nameOnly: true }).toArray()), [{ name: 'used', type: 'collection' }]);
  assert.deepEqual((await client.db().admin().listDatabases({ nameOnly: true })).databases, [{ name: 'shop' }]);
  assert.deepEqual((await db.collection('used').indexes()), [{ v: 2, key: { _id: 1 }, name: '_id_' }]);
  await assert.rejects(db.collection('nowhere').indexes(), { code: 26 });
  assert.deepEqual(await db.collection('nowhere').find().toArray(), []);
  assert.equal((await db.command({ drop: 'used' })).nIndexesWas, 1);
  assert.equal((await db.command({ drop: 'used' })).ok, 1);
  assert.equal(await db.dropDatabase(), true);
  assert.deepEqual(await db.listCollections().toArray(), []);
  for (const name of ['a$b', '.a', 'x'.repeat(252)])
    await assert.rejects(db.command({ create: name }), { code: 73, codeName: 'InvalidNamespace' });
  await assert.rejects(db.command({ find: 5 }), { code: 73 });
});

test('arguments are checked as MongoDB checks them', async (t) => {
  const { db } = await mongo(t);
  const refused = async (command, code, text) => {
    const error = await db.command(command).then(() => assert.fail(JSON.stringify(command)), (error) => error);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, text);
  };
  await refused({ nonsense: 1 }, 59, /no such command: 'nonsense'/);
  await refused({ Find: 'c' }, 59, /no such command/);
  await refused({ find: 'c', foo: 1 }, 40415, /BSON field 'find\.foo' is an unknown field\./);
  await refused({ insert: 'c', documents: [{}], ordered: 'yes' }, 14, /BSON field 'insert\.ordered' is the wrong type 'string', expected type 'bool'/);
  await refused({ insert: 'c' }, 40414, /BSON field 'insert\.documents' is missing but a required field/);
  await refused({ insert: 'c', documents: [] }, 16, /between 1 and 100000\. Got 0 operations\./);
  await refused({ find: 'c', limit: -1 }, 51024, /BSON field 'limit' value must be >= 0, actual value '-1'/);
  await refused({ listDatabases: 1 }, 13, /may only be run against the admin database\./);
  await refused({ aggregate: 'c', pipeline: [] }, 9, /The 'cursor' option is required/);
  await refused({ find: 'c', writeConcern: { w: 'tag' } }, 79, /No write concern mode named 'tag'/);
  assert.equal((await db.command({ find: 'c', filter: null, limit: null, comment: null })).ok, 1);
  await db.collection('c').insertOne({ _id: 1 });
  const set = { q: { _id: 1 }, u: { $set: { a: 1 } } };
  await refused({ update: 'c', updates: [set, { u: {} }] }, 40414, /'update\.updates\.q' is missing/);
  await refused({ update: 'c', updates: [set, { ...set, sort: { _id: 1 } }] }, 40415, /'update\.updates\.sort' is an unknown field/);
  await refused({ delete: 'c', deletes: [{ q: {}, limit: 1 }, { q: {}, limit: 2 }] }, 9, /must be 0 or 1/);
  assert.deepEqual(await db.collection('c').find().toArray(), [{ _id: 1 }]);
});

test('what clients ask when they connect has true answers', async (t) => {
  const { client, db } = await mongo(t);
  const admin = client.db('admin');
  assert.match((await admin.command({ buildInfo: 1 })).version, /^7\.0\./);
  assert.deepEqual((await admin.command({ getParameter: 1, featureCompatibilityVersion: 1 })).featureCompatibilityVersion, { version: '7.0' });
  await assert.rejects(admin.command({ getParameter: 'foo' }), { code: 72, message: /no option found to get/ });
  await assert.rejects(admin.command({ atlasVersion: 1 }), { code: 59 });
  assert.deepEqual((await admin.command({ getLog: 'startupWarnings' })).log, []);
  assert.match((await admin.command({ whatsmyuri: 1 })).you, /^127\.0\.0\.1:\d+$/);
  assert.ok((await admin.command({ hostInfo: 1 })).system.memSizeMB > 0);
  assert.deepEqual((await admin.command({ connectionStatus: 1 })).authInfo, { authenticatedUsers: [], authenticatedUserRoles: [] });
  const before = await admin.command({ serverStatus: 1 });
  await db.collection('c').insertOne({});
  const status = await admin.command({ serverStatus: 1 });
  assert.equal(status.opcounters.insert, before.opcounters.insert + 1);
  assert.ok(Number.isInteger(status.uptime));
  assert.ok(status.connections.current >= 1);
  assert.ok('find' in (await admin.command({ listCommands: 1 })).commands);
  const { id } = await admin.command({ startSession: 1 });
  assert.equal(id.id.sub_type, 4);
});

test('commands are charged by the same cost model, and throttled ones say when to come again', async (t) => {
  const { db } = await mongo(t, ['--set', 'throughput.enforce=always'], { maxPoolSize: 1 });
  await db.collection('c').insertOne({ _id: 1 });
  const insert = await db.command({ getLastRequestStatistics: 1 });
  assert.equal(insert.CommandName, 'insert');
  assert.ok(insert.RequestCharge > 1, `${insert.RequestCharge}`);
  await db.collection('c').findOne({ _id: 1 });
  assert.equal((await db.command({ getLastRequestStatistics: 1 })).RequestCharge, 1);
  let error;
  for (let i = 0; i < 400 && !error; i++)
    error = await db.collection('c').insertMany(Array.from({ length: 100 }, () => ({}))).then(() => undefined, (error) => error);
  assert.equal(error?.code, 16500, `${error}`);
  assert.match(error.message, /RetryAfterMs=\d+/);
});

// snappy and zstd, which the driver takes from packages of their own, are unit tests
test('messages may be compressed', async (t) => {
  const { client, db } = await mongo(t, [], { compressors: ['zlib'] });
  const text = 'x'.repeat(100_000);
  await db.collection('c').insertMany([{ _id: 1, text }, { _id: 2, text: 'short' }]);
  assert.equal((await db.collection('c').findOne({ _id: 1 })).text, text);
  assert.equal((await db.collection('c').find().toArray()).length, 2);
  await client.close(); // while the server is there: with compression the driver would wait for ever
});

test('find filters, sorts and projects', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('people');
  await c.insertMany([
    { _id: 1, name: 'Ann', age: 40, tags: ['x', 'y'], at: { city: 'Oslo' } },
    { _id: 2, name: 'Bob', age: 30, tags: [], at: { city: 'Bonn' } },
    { _id: 3, name: 'Cid', tags: ['z'] },
    { _id: 4, name: 'Dot', age: 35.5, tags: ['a', 'y'] },
  ]);
  const ids = async (filter, sort = { _id: 1 }) => (await c.find(filter).sort(sort).toArray()).map(({ _id }) => _id);
  assert.deepEqual(await ids({ age: { $gt: 30 } }), [1, 4]);
  assert.deepEqual(await ids({ tags: { $in: ['y', 'z'] } }), [1, 3, 4]);
  assert.deepEqual(await ids({ 'at.city': /^O/ }), [1]);
  assert.deepEqual(await ids({ $or: [{ age: null }, { name: 'Bob' }] }), [2, 3]);
  assert.deepEqual(await ids({}, { age: 1 }), [3, 2, 4, 1]);
  assert.deepEqual(await ids({}, { age: -1 }), [1, 4, 2, 3]);
  assert.deepEqual(await ids({}, { tags: 1 }), [2, 4, 1, 3], 'by the least element; none come first');
  assert.deepEqual(await ids({}, { tags: -1 }), [3, 1, 4, 2], 'by the greatest');
  assert.deepEqual(await ids({}, { 'at.city': 1, _id: -1 }), [4, 3, 2, 1]);
  assert.deepEqual(await c.find({ _id: 1 }).project({ name: 1, _id: 0 }).toArray(), [{ name: 'Ann' }]);
  assert.deepEqual(await c.find({ tags: 'y' }).project({ 'tags.$': 1 }).sort({ _id: 1 }).toArray(), [{ _id: 1, tags: ['y'] }, { _id: 4, tags: ['y'] }]);
  assert.deepEqual(await c.find().sort({ name: -1 }).skip(1).limit(2).project({ name: 1 }).toArray(), [{ _id: 3, name: 'Cid' }, { _id: 2, name: 'Bob' }]);
  await assert.rejects(c.find({ a: { $foo: 1 } }).toArray(), { code: 2, message: /unknown operator: \$foo/ });
  await assert.rejects(c.find().sort({ a: 1 }).project({ a: 1, b: 0 }).toArray(), { code: 31254 });
  assert.deepEqual((await db.listCollections({ name: { $regex: '^peo' } }).toArray()).length, 1);
  assert.equal((await db.command({ count: 'people', query: { age: { $exists: true } } })).n, 3);
});

test('sorted results come in batches too', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('many');
  await c.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i, v: (i * 7919) % 1000 })));
  const found = await c.find({ v: { $lt: 500 } }).sort({ v: -1 }).batchSize(70).toArray();
  assert.deepEqual(found.map(({ v }) => v), Array.from({ length: 500 }, (_, i) => 499 - i));
});

test('documents are updated by operators, one or all, inserted where none is', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('counters');
  await c.insertMany([{ _id: 'a', n: 1, tags: ['x'] }, { _id: 'b', n: 1 }, { _id: 'c', n: 5 }]);
  const one = await c.updateOne({ _id: 'a' }, { $inc: { n: 2 }, $push: { tags: 'y' } });
  assert.deepEqual([one.matchedCount, one.modifiedCount], [1, 1]);
  assert.deepEqual(await c.findOne({ _id: 'a' }), { _id: 'a', n: 3, tags: ['x', 'y'] });
  await c.updateOne({ tags: 'y' }, { $set: { 'tags.$': 'z' } });
  assert.deepEqual((await c.findOne({ _id: 'a' })).tags, ['x', 'z']);
  const all = await c.updateMany({ n: { $lt: 5 } }, { $set: { small: true }, $inc: { n: 10 } });
  assert.deepEqual([all.matchedCount, all.modifiedCount], [2, 2]);
  const again = await c.updateMany({ small: true }, { $set: { small: true } });
  assert.deepEqual([again.matchedCount, again.modifiedCount], [2, 0]);
  const made = await c.updateOne({ _id: 'd', kind: 'new' }, { $inc: { n: 1 }, $setOnInsert: { first: 1 } }, { upsert: true });
  assert.equal(made.upsertedId, 'd');
  assert.deepEqual(await c.findOne({ _id: 'd' }), { _id: 'd', kind: 'new', n: 1, first: 1 });
  await assert.rejects(c.updateOne({ _id: 'a' }, { $inc: { tags: 1 } }), { code: 14 });
  await assert.rejects(c.updateOne({ _id: 'a' }, { $set: { _id: 'q' } }), { code: 66 });
  await assert.rejects(c.updateOne({ _id: 'a', n: 0 }, { $set: { x: 1 } }, { upsert: true }), { code: 11000 });
  await assert.rejects(db.command({ update: 'counters', updates: [{ q: {}, u: { a: 1 }, multi: true }] }).then((reply) => {
    throw Object.assign(new Error(), reply.writeErrors[0]);
  }), { code: 9 });
});

test('a document is changed and answered in one step', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('jobs');
  await c.insertMany([{ _id: 1, at: 3 }, { _id: 2, at: 1 }, { _id: 3, at: 2 }]);
  assert.deepEqual(await c.findOneAndUpdate({ done: null }, { $set: { done: true } }, { sort: { at: 1 } }), { _id: 2, at: 1 });
  assert.deepEqual(await c.findOneAndUpdate({ _id: 3 }, { $inc: { at: 5 } }, { returnDocument: 'after', projection: { at: 1, _id: 0 } }), { at: 7 });
  assert.deepEqual(await c.findOneAndReplace({ _id: 3 }, { x: 1 }, { returnDocument: 'after' }), { _id: 3, x: 1 });
  assert.deepEqual(await c.findOneAndDelete({ _id: 3 }), { _id: 3, x: 1 });
  assert.equal(await c.findOneAndDelete({ _id: 3 }), null);
  const { value, lastErrorObject } = await c.findOneAndUpdate({ _id: 9 }, { $set: { a: 1 } }, { upsert: true, returnDocument: 'after', includeResultMetadata: true });
  assert.deepEqual(value, { _id: 9, a: 1 });
  assert.deepEqual(lastErrorObject, { n: 1, updatedExisting: false, upserted: 9 });
  await assert.rejects(db.command({ findAndModify: 'jobs', remove: true, new: true }), { code: 9 });
  await assert.rejects(c.findOneAndUpdate({ _id: 9, a: 2 }, { $set: { a: 3 } }, { upsert: true }), { code: 11000, message: /E11000/ });
});

test('concurrent increments are all counted', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await c.insertOne({ _id: 1, n: 0 });
  await Promise.all(Array.from({ length: 200 }, () => c.updateOne({ _id: 1 }, { $inc: { n: 1 } })));
  assert.deepEqual(await c.findOne({ _id: 1 }), { _id: 1, n: 200 });
});

test('a cursor that nobody comes back for is closed', async (t) => {
  const { client, db } = await mongo(t, ['--set', 'mongo.cursor_ms_max=1s']);
  await db.collection('c').insertMany(Array.from({ length: 10 }, (_, i) => ({ _id: i })));
  const session = client.startSession();
  t.after(() => session.endSession());
  const { cursor } = await db.command({ find: 'c', batchSize: 2 }, { session });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await assert.rejects(db.command({ getMore: cursor.id, collection: 'c' }, { session }), { code: 43 });
});

test('maxTimeMS ends a command', async (t) => {
  const { db } = await mongo(t);
  await db.collection('c').insertMany(Array.from({ length: 20_000 }, (_, i) => ({ _id: i, text: 'abc'.repeat(50) })));
  const slow = { $nor: Array.from({ length: 200 }, (_, i) => ({ text: { $regex: `x.*${i}` } })) };
  await assert.rejects(db.collection('c').find(slow).maxTimeMS(1).toArray(), { code: 50 });
});
