// Capped collections: bounded, in the order of insertion; cursors that follow them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { Long, UUID } from 'mongodb';
import { join } from 'node:path';
import { command, mongo, mongoClient, Wire } from './mongo.js';
import { scratch, Server } from './server.js';
import { signed } from './rest.js';

const ids = async (cursor) => (await cursor.toArray()).map((document) => document._id);
const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
const code = (promise) => promise.then(() => 0, (error) => error.code ?? error.message);

test('the oldest documents go with the insert that brings newer ones', async (t) => {
  const { db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000, max: 5 });
  for (const i of range(0, 8)) await log.insertOne({ _id: 9 - i, i });
  assert.deepEqual(await ids(log.find()), [6, 5, 4, 3, 2]); // as they came, not by _id
  assert.deepEqual(await ids(log.find().sort({ $natural: -1 })), [2, 3, 4, 5, 6]);
  assert.deepEqual(await ids(log.find().hint({ $natural: 1 })), [6, 5, 4, 3, 2]);
  assert.deepEqual(await ids(log.find({ i: { $gte: 4 } })), [5, 4, 3, 2]);
  await log.insertMany(range(100, 120).map((_id) => ({ _id })));
  assert.deepEqual(await ids(log.find()), range(115, 120));
  await log.insertMany(range(200, 207).map((_id) => ({ _id })), { ordered: false });
  assert.deepEqual(await ids(log.find()), range(202, 207));
  assert.equal(await log.countDocuments(), 5);
  assert.equal(await log.estimatedDocumentCount(), 5);
  // what is removed is free again
  await log.insertOne({ _id: 100 });
  assert.deepEqual(await ids(log.find()), [203, 204, 205, 206, 100]);
});

test('the size counts as well, and a document that is too long for it is refused', async (t) => {
  const { db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 20_000 });
  for (const _id of range(0, 60)) {
    await log.insertOne({ _id, text: 'x'.repeat(900) });
    assert.ok((await db.command({ collStats: 'log' })).size <= 20_000);
  }
  const left = await ids(log.find());
  assert.ok(left.length >= 15 && left.length <= 22, `${left.length}`);
  assert.deepEqual(left, range(60 - left.length, 60));
  assert.equal(await code(log.insertOne({ _id: 1000, text: 'x'.repeat(20_000) })), 2);
  assert.deepEqual(await ids(log.find()), left);
  await log.insertOne({ _id: 2000, text: 'x'.repeat(15_000) });
  assert.ok((await ids(log.find())).length < 8);
  const stats = await db.command({ collStats: 'log' });
  assert.deepEqual([stats.capped, stats.maxSize], [true, 20_000]);
});

test('updates and deletes are allowed; an error in a batch leaves what came before it', async (t) => {
  const { db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000, max: 4 });
  await log.insertMany(range(0, 4).map((_id) => ({ _id })));
  await log.updateOne({ _id: 1 }, { $set: { text: 'longer than it was' } });
  assert.deepEqual(await ids(log.find()), [0, 1, 2, 3]);
  await log.deleteOne({ _id: 2 });
  await log.insertOne({ _id: 4 });
  assert.deepEqual(await ids(log.find()), [0, 1, 3, 4]);
  const failed = await log.insertMany([{ _id: 5 }, { _id: 3 }, { _id: 6 }]).catch((error) => error);
  assert.deepEqual([failed.code, failed.insertedCount], [11000, 1]);
  assert.deepEqual(await ids(log.find()), [1, 3, 4, 5]);
  const unordered = await log.insertMany([{ _id: 7 }, { _id: 5 }, { _id: 8 }], { ordered: false }).catch((error) => error);
  assert.deepEqual([unordered.code, unordered.insertedCount], [11000, 2]);
  assert.deepEqual(await ids(log.find()), [4, 5, 7, 8]);
  await log.updateOne({ _id: 9 }, { $set: { upserted: 1 } }, { upsert: true });
  assert.deepEqual(await ids(log.find()), [5, 7, 8, 9]);
});

test('what is removed is told by change streams, and leaves its indexes', async (t) => {
  const { db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000, max: 2 });
  await log.createIndex({ n: 1 }, { unique: true });
  const stream = log.watch();
  t.after(() => stream.close());
  assert.equal(await stream.tryNext(), null);
  for (const n of [1, 2, 3]) await log.insertOne({ _id: n, n });
  const told = [];
  while (told.length < 4) told.push(await stream.next());
  assert.deepEqual(told.map((event) => `${event.operationType} ${event.documentKey._id}`).sort(),
    ['delete 1', 'insert 1', 'insert 2', 'insert 3']);
  await log.insertOne({ _id: 4, n: 1 }); // its key went with it
  assert.equal(await log.countDocuments({ n: 2 }), 0);
  assert.deepEqual(await ids(log.find({ n: 1 })), [4]);
});

test('writers at once keep the bound', async (t) => {
  const { db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 1_000_000, max: 20 });
  await Promise.all(range(0, 8).map(async (w) => {
    for (const i of range(0, 25)) {
      await log.insertOne({ _id: `${w}-${i}` });
      assert.ok((await log.countDocuments()) <= 20);
    }
  }));
  assert.equal(await log.countDocuments(), 20);
});

test('convertToCapped and collMod bound what is there; what does not go together is refused', async (t) => {
  const { db, client } = await mongo(t);
  const c = db.collection('c');
  await c.insertMany(range(0, 2500).map((_id) => ({ _id })));
  assert.equal((await db.command({ collStats: 'c' })).capped, false);
  await db.command({ convertToCapped: 'c', size: 1_000_000, max: 10 });
  assert.deepEqual(await ids(c.find()), range(2490, 2500));
  assert.equal((await c.options()).capped, true);
  assert.equal(await c.isCapped(), true);
  await db.command({ collMod: 'c', cappedMax: 3 });
  assert.deepEqual(await ids(c.find()), range(2497, 2500));
  await db.command({ collMod: 'c', cappedSize: 200_000, cappedMax: 5 });
  await c.insertMany(range(0, 5).map((_id) => ({ _id })));
  assert.deepEqual(await ids(c.find()), range(0, 5));
  assert.equal(await code(db.command({ convertToCapped: 'nothing', size: 1000 })), 26);
  assert.equal(await code(db.command({ convertToCapped: 'c' })), 40414);
  assert.equal(await code(db.command({ create: 'x', capped: true })), 72);
  assert.equal(await code(db.command({ create: 'x', size: 1000 })), 72);
  assert.equal(await code(client.db('admin').command({ shardCollection: 'shop.c', key: { a: 1 } })), 72);
  const session = client.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  assert.equal(await code(c.insertOne({ _id: 77 }, { session })), 263);
  await session.abortTransaction();
});

test('a capped collection gets no partition key by another API either, and stays bounded', async (t) => {
  const { server, db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000, max: 3 });
  await log.insertMany(range(0, 5).map((_id) => ({ _id, n: _id })));
  const body = { partitionKey: { paths: ['/n'], kind: 'Hash', version: 2 } };
  for (const dryRun of [true, false]) {
    const { status, json } = await signed(server, 'POST', '/_orrery/containers/shop/log/rekey', { body: { ...body, dryRun } });
    assert.equal(status, 501, JSON.stringify(json));
    assert.match(json.message, /bounded/);
  }
  await log.insertOne({ _id: 5, n: 5 });
  assert.deepEqual(await ids(log.find()), [3, 4, 5]);
});

test('the bound and the order hold across restarts and moves to another node', async (t) => {
  const directory = scratch(t);
  const nodes = ['a', 'b'].flatMap((name) => ['--node', `${name}=rocksdb:${join(directory, name)}`]);
  for (let life = 0; life < 2; life++) {
    const server = await Server.start(t, ['--dev', ...nodes]);
    const client = await mongoClient(t, server.mongo);
    const db = client.db('shop');
    if (life === 0) await db.createCollection('log', { capped: true, size: 100_000, max: 3 });
    const log = db.collection('log');
    for (const _id of range(0, 5)) await log.insertOne({ _id: 10 * life - _id });
    assert.deepEqual(await ids(log.find()), [10 * life - 2, 10 * life - 3, 10 * life - 4]);
    const list = '/_orrery/containers/shop/log/partitions';
    const partitions = async () => (await signed(server, 'GET', list)).json;
    const tail = log.find({}, { tailable: true, awaitData: true });
    for (let i = 0; i < 3; i++) await tail.next();
    const [moving] = (await partitions()).partitions;
    const to = moving.node === 'a' ? 'b' : 'a';
    assert.equal((await signed(server, 'POST', `${list}/${moving.id}/move`, { body: { node: to } })).status, 202);
    await server.until(async () => {
      const now = await partitions();
      return now.partitions[0].node === to && !now.migration;
    });
    await log.insertOne({ _id: 10 * life - 9 });
    assert.equal((await tail.next())._id, 10 * life - 9);
    assert.deepEqual(await ids(log.find()), [10 * life - 3, 10 * life - 4, 10 * life - 9]);
    await tail.close();
    await client.close();
    await server.stop();
  }
});

test('a tailable cursor stays open behind the last document', async (t) => {
  const { db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000, max: 10 });
  assert.deepEqual(await ids(log.find({}, { tailable: true })), []); // of nothing: it is over at once
  await log.insertMany([{ _id: 1 }, { _id: 2 }]);
  const first = await db.command({ find: 'log', tailable: true });
  assert.deepEqual(first.cursor.firstBatch.map((d) => d._id), [1, 2]);
  const id = Long.fromValue(first.cursor.id);
  assert.notEqual(id.toString(), '0');
  const more = () => db.command({ getMore: id, collection: 'log' }, { promoteLongs: false });
  const nothing = await more();
  assert.deepEqual([nothing.cursor.nextBatch, nothing.cursor.id.toString()], [[], id.toString()]);
  await log.insertMany([{ _id: 3 }, { _id: 4 }]);
  assert.deepEqual((await more()).cursor.nextBatch.map((d) => d._id), [3, 4]);
  assert.deepEqual((await more()).cursor.nextBatch, []);
  // the document it stands at goes
  await log.insertMany(range(10, 30).map((_id) => ({ _id })));
  assert.equal(await code(more()), 136);
  assert.equal(await code(more()), 43);
});

test('tailable cursors filter, and are refused where they make no sense', async (t) => {
  const { db, client } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000 });
  await log.insertMany(range(0, 6).map((_id) => ({ _id, even: _id % 2 === 0 })));
  const reply = await db.command({ find: 'log', filter: { even: true }, tailable: true, batchSize: 2 });
  assert.deepEqual(reply.cursor.firstBatch.map((d) => d._id), [0, 2]);
  const more = () => db.command({ getMore: Long.fromValue(reply.cursor.id), collection: 'log' });
  assert.deepEqual((await more()).cursor.nextBatch.map((d) => d._id), [4]);
  await log.insertMany(range(6, 9).map((_id) => ({ _id, even: _id % 2 === 0 })));
  assert.deepEqual((await more()).cursor.nextBatch.map((d) => d._id), [6, 8]);
  await db.collection('plain').insertOne({});
  const find = (options) => code(db.command({ find: 'log', ...options }));
  assert.equal(await find({ find: 'plain', tailable: true }), 2);
  assert.equal(await find({ awaitData: true }), 9);
  assert.equal(await find({ tailable: true, singleBatch: true }), 2);
  assert.equal(await find({ tailable: true, sort: { a: 1 } }), 2);
  assert.equal(await find({ tailable: true, sort: { $natural: 1 } }), 0);
  await db.command({ create: 'view', viewOn: 'log', pipeline: [] });
  assert.equal(await find({ find: 'view', tailable: true }), 167);
  assert.equal((await db.command({ find: 'nowhere', tailable: true })).cursor.id.toString(), '0');
  const session = client.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  assert.equal(await code(db.command({ find: 'log', tailable: true }, { session })), 263);
  await session.abortTransaction();
});

test('a getMore with awaitData waits for the next document, until its time is up or the collection goes', async (t) => {
  const { db, client } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000 });
  await log.insertOne({ _id: 0 });
  const cursor = log.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 60_000 });
  t.after(() => cursor.close());
  assert.equal((await cursor.next())._id, 0);
  for (const _id of range(1, 20)) {
    const next = cursor.next();
    await log.insertOne({ _id });
    assert.equal((await next)._id, _id);
  }
  const reply = await db.command({ find: 'log', tailable: true, awaitData: true });
  const id = Long.fromValue(reply.cursor.id);
  assert.deepEqual((await db.command({ getMore: id, collection: 'log', maxTimeMS: 50 })).cursor.nextBatch, []);
  const next = code(cursor.next());
  await client.db('shop').dropCollection('log');
  assert.equal(await next, 175);
});

// Whichever of the two is served first, and wherever the other finds it: 43 if the cursor was gone when the getMore began, 237 if it
// went meanwhile, and never a batch, nor another error, nor a wait until the time is up (which would be the test's end).
test('a getMore that waits ends with its cursor, in whatever order both come', async (t) => {
  const { server, db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000, max: 1000 });
  await log.insertOne({ _id: 0 });
  const [reader, killer] = await Promise.all([Wire.open(t, server), Wire.open(t, server)]);
  const sources = {
    tailable: { find: 'log', tailable: true, awaitData: true, $db: 'shop' },
    stream: { aggregate: 'log', pipeline: [{ $changeStream: {} }], cursor: {}, $db: 'shop' },
  };
  const session = () => ({ id: new UUID() });
  for (const [name, source] of Object.entries(sources)) {
    const seen = new Map();
    for (let i = 0; i < 120; i++) {
      const lsid = session();
      const { cursor } = await reader.ask({ ...source, lsid });
      const id = Long.fromValue(cursor.id);
      reader.send(command(7, { getMore: id, collection: 'log', maxTimeMS: 3_600_000, lsid, $db: 'shop' }));
      for (let n = 0; n < i % 40; n++) await killer.ask({ ping: 1, $db: 'admin' }); // later and later
      const kill = [
        { killCursors: 'log', cursors: [id], $db: 'shop' },
        { killSessions: [lsid], $db: 'admin' },
        { killAllSessions: [], $db: 'admin' },
      ][i % 3];
      assert.equal((await killer.ask(kill)).ok, 1);
      const { document } = await reader.reply();
      seen.set(document.code, (seen.get(document.code) ?? 0) + 1);
      assert.equal([43, 237].includes(document.code), true, `${name}: ${JSON.stringify(document)}`);
      assert.equal((await reader.ask({ getMore: id, collection: 'log', lsid, $db: 'shop' })).code, 43);
    }
  }
});

test('a cursor whose collection is dropped while it reads says so', async (t) => {
  const { server, db } = await mongo(t);
  const reader = await Wire.open(t, server);
  for (let i = 0; i < 30; i++) {
    const log = await db.createCollection('log', { capped: true, size: 100_000, max: 1000 });
    await log.insertMany(range(0, 50).map((_id) => ({ _id })));
    const { cursor } = await reader.ask({ find: 'log', tailable: true, awaitData: true, batchSize: 1, $db: 'shop' });
    const id = Long.fromValue(cursor.id);
    const dropped = db.dropCollection('log');
    let reply;
    do reply = await reader.ask({ getMore: id, collection: 'log', batchSize: 1, maxTimeMS: 3_600_000, $db: 'shop' });
    while (reply.ok);
    assert.equal(reply.code, 175, JSON.stringify(reply));
    await dropped;
  }
});

const exhaust = 1 << 16;

test('a client that allows it gets the batches of a cursor one behind the other', async (t) => {
  const { server, db } = await mongo(t);
  await db.collection('c').insertMany(range(0, 1000).map((_id) => ({ _id })));
  const wire = await Wire.open(t, server);
  const first = await wire.ask({ find: 'c', sort: { _id: 1 }, batchSize: 10, $db: 'shop' });
  const seen = first.cursor.firstBatch.map((d) => d._id);
  wire.send(command(77, { getMore: Long.fromValue(first.cursor.id), collection: 'c', batchSize: 90, $db: 'shop' }, exhaust));
  let before = 77;
  for (let replies = 1; ; replies++) {
    const reply = await wire.reply();
    assert.equal(reply.responseTo, before); // each answers the one before it
    before = reply.id;
    seen.push(...reply.document.cursor.nextBatch.map((d) => d._id));
    const over = reply.document.cursor.id.toString() === '0';
    assert.equal((reply.flags & 2) !== 0, !over);
    if (!over) continue;
    assert.ok(replies >= 11);
    break;
  }
  assert.deepEqual(seen, range(0, 1000));
  assert.equal((await wire.ask({ ping: 1, $db: 'admin' })).ok, 1);
});

test('exhaust ends with an error, and with the connection', async (t) => {
  const { server, db } = await mongo(t);
  const log = await db.createCollection('log', { capped: true, size: 100_000 });
  await log.insertOne({ _id: 0 });
  const wire = await Wire.open(t, server);
  const first = await wire.ask({ find: 'log', tailable: true, awaitData: true, $db: 'shop' });
  const id = Long.fromValue(first.cursor.id);
  wire.send(command(5, { getMore: id, collection: 'log', maxTimeMS: 60_000, $db: 'shop' }, exhaust));
  for (const _id of range(1, 6)) {
    await log.insertOne({ _id });
    const reply = await wire.reply();
    assert.deepEqual([reply.document.cursor.nextBatch[0]._id, reply.flags & 2], [_id, 2]);
  }
  await db.command({ killCursors: 'log', cursors: [id] });
  const last = await wire.reply();
  assert.deepEqual([last.document.ok, last.flags & 2], [0, 0]);
  assert.equal((await wire.ask({ ping: 1, $db: 'admin' })).ok, 1);
  wire.send(command(6, { getMore: Long.fromValue(1), collection: 'log', $db: 'shop' }, exhaust));
  assert.equal((await wire.reply()).document.code, 43);
  const again = await wire.ask({ find: 'log', tailable: true, awaitData: true, $db: 'shop' });
  wire.send(command(7, { getMore: Long.fromValue(again.cursor.id), collection: 'log', maxTimeMS: 60_000, $db: 'shop' }, exhaust));
  wire.socket.destroy();
  await wire.closed;
  assert.equal((await db.command({ ping: 1 })).ok, 1);
});

test('hello waits for another topology, and tells of it without being asked again', async (t) => {
  const { server, client } = await mongo(t, [], { heartbeatFrequencyMS: 500 });
  const wire = await Wire.open(t, server);
  const { topologyVersion } = await wire.ask({ hello: 1, $db: 'admin' });
  assert.equal(topologyVersion.counter.toString(), '0');
  const hello = (more) => ({ hello: 1, $db: 'admin', ...more });
  assert.equal((await wire.ask(hello({ topologyVersion, maxAwaitTimeMS: 30 }))).ok, 1);
  wire.send(command(9, hello({ topologyVersion, maxAwaitTimeMS: 20 }), exhaust));
  let before = 9;
  for (let i = 0; i < 3; i++) {
    const reply = await wire.reply();
    assert.deepEqual([reply.responseTo, reply.flags & 2, reply.document.isWritablePrimary], [before, 2, true]);
    before = reply.id;
  }
  wire.socket.destroy();
  const other = await Wire.open(t, server);
  const processId = '0123456789abcdef01234567';
  const stranger = { processId: new topologyVersion.processId.constructor(processId), counter: Long.fromValue(5) };
  assert.equal((await other.ask(hello({ topologyVersion: stranger, maxAwaitTimeMS: 600_000 }))).ok, 1); // at once
  const ahead = { ...topologyVersion, counter: Long.fromValue(7) };
  assert.equal((await other.ask(hello({ topologyVersion: ahead, maxAwaitTimeMS: 5 }))).code, 31372);
  assert.equal((await other.ask(hello({ topologyVersion, maxAwaitTimeMS: -1 }))).code, 31373);
  assert.equal((await other.ask(hello({ topologyVersion: 1, maxAwaitTimeMS: 1 }))).code, 14);
  assert.equal((await other.ask(hello({ maxAwaitTimeMS: 1 }))).code, 31368);
  const [event] = await once(client, 'serverHeartbeatSucceeded');
  assert.equal(event.awaited, true); // the driver's own monitor streams
});
