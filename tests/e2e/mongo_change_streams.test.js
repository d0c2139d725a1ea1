// Change streams through npm `mongodb`: what is told, in which order, and how one goes on after a break.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { MaxKey, MinKey, Timestamp } from 'mongodb';
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos';
import { emulatorKey, orrery, scratch, Server } from './server.js';
import { command, mongo, mongoClient, Wire } from './mongo.js';
import { signed } from './rest.js';

// A stream that has begun: what is written from here on is told.
async function watch(t, what, pipeline = [], options = {}) {
  const stream = what.watch(pipeline, { maxAwaitTimeMS: 500, ...options });
  t.after(() => stream.close());
  const resumes = ['resumeAfter', 'startAfter', 'startAtOperationTime'].some((name) => name in options);
  if (!resumes) await stream.tryNext();
  return stream;
}

async function take(stream, count) {
  const events = [];
  while (events.length < count) events.push(await stream.next());
  return events;
}

const kinds = (events) => events.map((event) => event.operationType);

test('inserts, updates, replacements and deletes are told as they were made', async (t) => {
  const { db } = await mongo(t);
  const orders = db.collection('orders');
  const stream = await watch(t, orders);
  await orders.insertOne({ _id: 1, a: 1, list: [1, 2, 3], gone: true });
  await orders.updateOne({ _id: 1 }, { $set: { a: 2, 'deep.b': 3 }, $unset: { gone: '' }, $pop: { list: 1 } });
  await orders.replaceOne({ _id: 1 }, { b: 1 });
  await orders.updateOne({ _id: 1 }, { $set: { b: 1 } }); // nothing changes: nothing is told
  await orders.deleteOne({ _id: 1 });
  const [insert, update, replace, remove] = await take(stream, 4);
  for (const event of [insert, update, replace, remove]) {
    assert.deepEqual(event.ns, { db: 'shop', coll: 'orders' });
    assert.deepEqual(event.documentKey, { _id: 1 });
    assert.ok(event.clusterTime instanceof Timestamp);
    assert.ok(Math.abs(event.wallTime - Date.now()) < 60_000);
    assert.match(event._id._data, /^[0-9A-F]+$/);
  }
  assert.equal(insert.operationType, 'insert');
  assert.deepEqual(insert.fullDocument, { _id: 1, a: 1, list: [1, 2, 3], gone: true });
  assert.equal(update.operationType, 'update');
  assert.equal(update.fullDocument, undefined);
  assert.deepEqual(update.updateDescription, {
    updatedFields: { a: 2, deep: { b: 3 } }, removedFields: ['gone'], truncatedArrays: [{ field: 'list', newSize: 2 }],
  });
  assert.equal(replace.operationType, 'replace');
  assert.deepEqual(replace.fullDocument, { _id: 1, b: 1 });
  assert.equal(remove.operationType, 'delete');
  assert.equal(remove.fullDocument, undefined);
  const tokens = [insert, update, replace, remove].map((event) => event._id._data);
  assert.deepEqual([...tokens].sort(), tokens);
  assert.equal(await stream.tryNext(), null);
});

test('a full document is looked up as it is by then, or is null', async (t) => {
  const { db } = await mongo(t);
  const orders = db.collection('orders');
  await orders.insertMany([{ _id: 1 }, { _id: 2 }]);
  const stream = await watch(t, orders, [], { fullDocument: 'updateLookup' });
  await orders.updateMany({}, { $set: { a: 1 } });
  await orders.updateOne({ _id: 1 }, { $set: { a: 2 } });
  await orders.deleteOne({ _id: 2 });
  const events = await take(stream, 4);
  assert.deepEqual(kinds(events), ['update', 'update', 'update', 'delete']);
  assert.deepEqual(events.slice(0, 3).map((event) => event.fullDocument), [{ _id: 1, a: 2 }, null, { _id: 1, a: 2 }]);
});

test('images before and after are kept where the collection says so', async (t) => {
  const { db } = await mongo(t);
  const orders = await db.createCollection('orders', { changeStreamPreAndPostImages: { enabled: true } });
  const stream = await watch(t, orders, [], { fullDocument: 'required', fullDocumentBeforeChange: 'required' });
  await orders.insertOne({ _id: 1, a: 1 });
  await orders.updateOne({ _id: 1 }, { $set: { a: 2 } });
  await orders.updateOne({ _id: 1 }, { $set: { a: 3 } });
  await orders.deleteOne({ _id: 1 });
  const [insert, first, second, remove] = await take(stream, 4);
  assert.equal(insert.fullDocumentBeforeChange, undefined);
  assert.deepEqual([first.fullDocumentBeforeChange, first.fullDocument], [{ _id: 1, a: 1 }, { _id: 1, a: 2 }]);
  assert.deepEqual([second.fullDocumentBeforeChange, second.fullDocument], [{ _id: 1, a: 2 }, { _id: 1, a: 3 }]);
  assert.deepEqual(remove.fullDocumentBeforeChange, { _id: 1, a: 3 });
  await db.command({ collMod: 'orders', changeStreamPreAndPostImages: { enabled: false } });
  const without = await watch(t, orders, [], { fullDocument: 'whenAvailable', fullDocumentBeforeChange: 'whenAvailable' });
  const strict = await watch(t, orders, [], { fullDocumentBeforeChange: 'required' });
  await orders.insertOne({ _id: 2, a: 1 });
  await orders.updateOne({ _id: 2 }, { $set: { a: 2 } });
  const [, update] = await take(without, 2);
  assert.deepEqual([update.fullDocumentBeforeChange, update.fullDocument], [null, null]);
  await assert.rejects(take(strict, 2), { code: 47 });
});

test('a database and the whole account are watched, and nothing of others is told', async (t) => {
  const { client, db } = await mongo(t);
  const all = await watch(t, client);
  const shop = await watch(t, db);
  const one = await watch(t, db.collection('a'));
  await db.collection('a').insertOne({ _id: 1 });
  await db.collection('b').insertOne({ _id: 2 });
  await client.db('other').collection('a').insertOne({ _id: 3 });
  await db.collection('a').insertOne({ _id: 4 });
  const ids = (events) => events.map((event) => `${event.ns.db}.${event.ns.coll} ${event.documentKey._id}`);
  assert.deepEqual(ids(await take(all, 4)), ['shop.a 1', 'shop.b 2', 'other.a 3', 'shop.a 4']);
  assert.deepEqual(ids(await take(shop, 3)), ['shop.a 1', 'shop.b 2', 'shop.a 4']);
  assert.deepEqual(ids(await take(one, 2)), ['shop.a 1', 'shop.a 4']);
});

test('a stream goes on behind any of its tokens, and begins at any time that is kept', async (t) => {
  const { client, db } = await mongo(t);
  const orders = db.collection('orders');
  const { operationTime } = await db.command({ ping: 1 });
  await orders.insertMany(Array.from({ length: 10 }, (_, i) => ({ _id: i })));
  const stream = await watch(t, orders, [], { startAtOperationTime: operationTime });
  const events = await take(stream, 10);
  assert.deepEqual(events.map((event) => event.documentKey._id), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  for (const name of ['resumeAfter', 'startAfter']) {
    const again = await watch(t, orders, [], { [name]: events[6]._id, batchSize: 1 });
    assert.deepEqual((await take(again, 3)).map((event) => event._id), events.slice(7).map((event) => event._id));
  }
  // a batch is one commit, and has one time; commands have times of their own
  for (let i = 10; i < 14; i++) await orders.insertOne({ _id: i });
  const single = await take(stream, 4);
  const time = await watch(t, orders, [], { startAtOperationTime: single[1].clusterTime });
  assert.deepEqual((await take(time, 3)).map((event) => event.documentKey._id), [11, 12, 13]);
  const aggregate = (stage) => db.command({ aggregate: 'orders', pipeline: [{ $changeStream: stage }], cursor: {} });
  await assert.rejects(aggregate({ resumeAfter: { _data: '8200' } }), { code: 260 });
  await assert.rejects(aggregate({ resumeAfter: events[0]._id, startAfter: events[0]._id }), { code: 40674 });
  await assert.rejects(aggregate({ fullDocument: 'never' }), { code: 2 });
  await assert.rejects(aggregate({ nothing: 1 }), { code: 40415 });
  await assert.rejects(aggregate({ allChangesForCluster: true }), { code: 72 });
  await assert.rejects(client.db('admin').collection('x').watch().tryNext(), { code: 73 });
});

test('an idle stream moves on without being told anything, and wakes for what is written', async (t) => {
  const { client, db } = await mongo(t);
  const session = client.startSession();
  t.after(() => session.endSession());
  const run = (command) => db.command(command, { session });
  const { cursor } = await run({ aggregate: 'orders', pipeline: [{ $changeStream: {} }], cursor: {} });
  const getMore = (maxTimeMS) => run({ getMore: cursor.id, collection: 'orders', maxTimeMS });
  const idle = await getMore(1100);
  assert.deepEqual(idle.cursor.nextBatch, []);
  assert.ok(idle.cursor.postBatchResumeToken._data > cursor.postBatchResumeToken._data);
  const waits = getMore(600_000);
  await db.collection('others').insertOne({ _id: 1 });
  await db.collection('orders').insertOne({ _id: 1 });
  const woken = await waits; // long before ten minutes are over
  assert.deepEqual(woken.cursor.nextBatch.map((event) => event.documentKey), [{ _id: 1 }]);
  const killed = getMore(600_000);
  killed.catch(() => {});
  for (let answer = {}; !answer.cursorsKilled?.length;) // once it waits the cursor can be killed
    answer = await run({ killCursors: 'orders', cursors: [cursor.id] });
  await assert.rejects(killed, (error) => [43, 237].includes(error.code));
});

test('a client that goes while it waits lets go of its stream, and a server that stops lets go of all', async (t) => {
  const { server, db } = await mongo(t);
  const wire = await Wire.open(t, server);
  const { cursor } = await wire.ask({ aggregate: 'orders', pipeline: [{ $changeStream: {} }], cursor: {}, $db: 'shop' });
  wire.send(command(2, { getMore: cursor.id, collection: 'orders', maxTimeMS: 600_000, $db: 'shop' }));
  wire.socket.destroy();
  const stream = db.collection('orders').watch([], { maxAwaitTimeMS: 600_000 });
  const next = stream.next();
  next.catch(() => {});
  await db.collection('orders').insertOne({ _id: 1 });
  await next;
  const last = stream.next();
  last.catch(() => {});
  assert.equal((await server.stop()).code, 0); // and not after ten minutes
  await stream.close();
});

test('stages behind the stream filter and shape, and keep the token', async (t) => {
  const { db } = await mongo(t);
  const orders = db.collection('orders');
  const stream = await watch(t, orders, [
    { $match: { 'fullDocument.total': { $gt: 10 } } },
    { $addFields: { double: { $multiply: ['$fullDocument.total', 2] } } },
    { $project: { documentKey: 1, double: 1 } },
  ]);
  const broken = await watch(t, orders, [{ $project: { _id: 0 } }]);
  const changed = await watch(t, orders, [{ $addFields: { _id: 1 } }]);
  await orders.insertMany([5, 15, 7, 25].map((total) => ({ _id: total, total })));
  const [first, second] = await take(stream, 2);
  assert.deepEqual([first.documentKey, first.double, second.double], [{ _id: 15 }, 30, 50]);
  assert.ok(first._id._data);
  await assert.rejects(broken.next(), (error) => error.code === 280 || /_id/.test(error.message));
  await assert.rejects(changed.next(), { code: 280 });
  const aggregate = (...stages) => db.command({ aggregate: 'orders', pipeline: stages, cursor: {} });
  await assert.rejects(aggregate({ $changeStream: {} }, { $group: { _id: 1 } }), { code: 20 });
  await assert.rejects(aggregate({ $match: {} }, { $changeStream: {} }), { code: 40602 });
  await assert.rejects(aggregate({ $changeStream: {} }, { $nothing: {} }), (error) => [20, 40324].includes(error.code));
});

test('drop, rename and dropDatabase are told and end what they are about', async (t) => {
  const { client, db } = await mongo(t);
  await db.collection('a').insertOne({ _id: 1 });
  const a = await watch(t, db.collection('a'));
  const shop = await watch(t, db);
  const all = await watch(t, client);
  await db.collection('a').insertOne({ _id: 2 });
  await db.collection('a').rename('b');
  await db.collection('b').drop();
  await db.collection('c').insertOne({ _id: 3 });
  await db.dropDatabase();
  const ofA = await take(a, 3);
  assert.deepEqual(kinds(ofA), ['insert', 'rename', 'invalidate']);
  assert.deepEqual([ofA[1].ns, ofA[1].to], [{ db: 'shop', coll: 'a' }, { db: 'shop', coll: 'b' }]);
  assert.deepEqual(ofA[0].fullDocument, { _id: 2 }); // of a collection that has gone
  await assert.rejects(a.next()); // closed by the server
  assert.deepEqual(kinds(await take(shop, 7)), ['insert', 'rename', 'drop', 'insert', 'drop', 'dropDatabase', 'invalidate']);
  assert.deepEqual(kinds(await take(all, 6)), ['insert', 'rename', 'drop', 'insert', 'drop', 'dropDatabase']);
  const behind = await watch(t, db.collection('a'), [], { resumeAfter: ofA[1]._id });
  assert.equal((await behind.next()).operationType, 'invalidate');
  const stage = (name) => db.command({ aggregate: 'a', pipeline: [{ $changeStream: { [name]: ofA[2]._id } }], cursor: {} });
  await assert.rejects(stage('resumeAfter'), { code: 260 });
  await db.collection('a').insertOne({ _id: 9 });
  const after = await stage('startAfter');
  assert.deepEqual(after.cursor.firstBatch.map((event) => event.documentKey), [{ _id: 9 }]);
});

test('expanded events tell of collections that are made and changed', async (t) => {
  const { db } = await mongo(t);
  const stream = await watch(t, db, [], { showExpandedEvents: true });
  await db.createCollection('a');
  await db.command({ collMod: 'a', validator: { b: 1 } });
  await db.collection('a').insertOne({ b: 1 });
  const events = await take(stream, 3);
  assert.deepEqual(kinds(events), ['create', 'modify', 'insert']);
  assert.equal(events[0].operationDescription.idIndex.name, '_id_');
  const [{ info }] = await db.listCollections({ name: 'a' }).toArray();
  assert.deepEqual(events[2].collectionUUID.toHexString(), info.uuid.toHexString());
});

test('what is written through @azure/cosmos is told, and both feeds agree', async (t) => {
  const { server, db } = await mongo(t);
  await db.collection('orders').insertOne({ _id: 'x', by: 'mongo' });
  const stream = await watch(t, db.collection('orders'));
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose?.());
  const container = cosmos.database('shop').container('orders');
  await container.items.create({ id: 'a', n: 1 });
  await container.items.upsert({ id: 'a', n: 2 });
  await container.item('x', undefined).delete();
  const events = await take(stream, 3);
  assert.deepEqual(kinds(events), ['insert', 'replace', 'delete']);
  assert.deepEqual(events.map((event) => event.documentKey), [{ _id: 'a' }, { _id: 'a' }, { _id: 'x' }]);
  assert.deepEqual(events[1].fullDocument, { _id: 'a', n: 2 });
  const feed = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  const page = await feed.readNext();
  assert.deepEqual(page.result.map((item) => [item.id, item.n]), [['a', 2]]);
});

test('items whose time is over are told as deletes', async (t) => {
  const { server, db } = await mongo(t, ['--set', 'caretaker.pause_ms=100ms']);
  await db.createCollection('sessions');
  const { json } = await signed(server, 'GET', '/dbs/shop/colls/sessions');
  assert.equal((await signed(server, 'PUT', '/dbs/shop/colls/sessions', { body: { ...json, defaultTtl: 1 } })).status, 200);
  const stream = await watch(t, db.collection('sessions'));
  await db.collection('sessions').insertOne({ _id: 'short' });
  const events = await take(stream, 2);
  assert.deepEqual(kinds(events), ['insert', 'delete']);
  assert.deepEqual(events[1].documentKey, { _id: 'short' });
});

test('who comes for changes that are not kept any more is told so', async (t) => {
  const { db } = await mongo(t, ['--set', 'mongo.change_stream_retention=1s', '--set', 'caretaker.pause_ms=100ms']);
  const orders = db.collection('orders');
  const stream = await watch(t, orders);
  await orders.insertOne({ _id: 1 });
  const { _id: token } = await stream.next();
  let lost;
  for (let i = 2; !lost; i++) {
    await orders.insertOne({ _id: i });
    try {
      const { cursor } = await db.command({ aggregate: 'orders', pipeline: [{ $changeStream: { resumeAfter: token } }], cursor: {} });
      await db.command({ killCursors: 'orders', cursors: [cursor.id] });
    } catch (error) {
      lost = error;
    }
  }
  assert.equal(lost.code, 286);
  assert.ok(lost.hasErrorLabel('NonResumableChangeStreamError'));
});

test('no more streams are open than may be, and without changes kept there are none', async (t) => {
  const { db } = await mongo(t, ['--set', 'mongo.change_streams_max=2']);
  const open = () => db.command({ aggregate: 'a', pipeline: [{ $changeStream: {} }], cursor: {} });
  const { cursor } = await open();
  await open();
  await assert.rejects(open());
  await db.command({ killCursors: 'a', cursors: [cursor.id] });
  await open();
  const off = await mongo(t, ['--set', 'mongo.change_stream_retention=0']);
  await assert.rejects(off.db.command({ aggregate: 'a', pipeline: [{ $changeStream: {} }], cursor: {} }), { code: 40573 });
});

test('splits, moves between nodes and restarts under writers lose nothing, tell nothing twice and keep the order', async (t) => {
  const directory = scratch(t);
  const nodes = ['a', 'b'].flatMap((name) => ['--node', `${name}=rocksdb:${join(directory, name)}`]);
  const args = ['--dev', ...nodes, '--set', 'migration.pause_ms=20ms'];
  const written = [], told = [];
  let token, serial = 0;
  for (let life = 0; life < 3; life++) {
    const server = await Server.start(t, args);
    const client = await mongoClient(t, server.mongo);
    const orders = client.db('shop').collection('orders');
    if (life === 0) {
      await client.db('admin').command({ shardCollection: 'shop.orders', key: { tenant: 'hashed' } });
      token = (await client.db('shop').command({ aggregate: 'orders', pipeline: [{ $changeStream: {} }], cursor: {} })).cursor.postBatchResumeToken;
    }
    let writing = true;
    const writers = Array.from({ length: 4 }, async () => {
      while (writing) {
        const _id = serial++;
        const tenant = `t${_id % 16}`;
        await orders.insertOne({ _id, tenant });
        await orders.updateOne({ _id, tenant }, { $set: { n: _id } });
        written.push(_id);
      }
    });
    const list = '/_orrery/containers/shop/orders/partitions';
    const partitions = async () => (await signed(server, 'GET', list)).json;
    const [first, ...others] = (await partitions()).partitions;
    assert.equal((await signed(server, 'POST', `${list}/${first.id}/split`)).status, 202);
    await server.until(async () => {
      const now = await partitions();
      return now.partitions.length === others.length + 2 && !now.migration;
    });
    const moving = (await partitions()).partitions.at(-1);
    const to = moving.node === 'a' ? 'b' : 'a';
    assert.equal((await signed(server, 'POST', `${list}/${moving.id}/move`, { body: { node: to } })).status, 202);
    await server.until(async () => {
      const now = await partitions();
      return now.partitions.some((one) => one.node === to) && !now.migration;
    });
    const enough = written.length + 50;
    await server.until(() => written.length >= enough);
    const stream = orders.watch([], { resumeAfter: token, maxAwaitTimeMS: 200 });
    for (let i = 0; i < 40; i++) told.push(await stream.next()); // some now, the rest after the restart
    token = stream.resumeToken;
    await stream.close();
    writing = false;
    await Promise.all(writers);
    if (life === 2) {
      const rest = orders.watch([], { resumeAfter: token, maxAwaitTimeMS: 200 });
      while (told.length < 2 * written.length) told.push(await rest.next());
      assert.equal(await rest.tryNext(), null);
      await rest.close();
    }
    await client.close();
    await server.stop();
  }
  const ids = (kind) => told.filter((event) => event.operationType === kind).map((event) => event.documentKey._id).sort((x, y) => x - y);
  const all = [...written].sort((x, y) => x - y);
  assert.deepEqual(ids('insert'), all);
  assert.deepEqual(ids('update'), all);
  assert.deepEqual(told[0].documentKey, { tenant: told[0].fullDocument.tenant, _id: told[0].fullDocument._id });
  const times = told.map((event) => event.clusterTime.toBigInt());
  for (let i = 1; i < times.length; i++) assert.ok(times[i] > times[i - 1]);
  const inserted = new Set();
  for (const event of told) {
    if (event.operationType === 'insert') inserted.add(event.documentKey._id);
    else assert.ok(inserted.has(event.documentKey._id)); // never before it was there
  }
});

test('what is kept for streams is shown by orrery stats', async (t) => {
  const { server, db } = await mongo(t);
  const changes = async () => (await signed(server, 'GET', '/_orrery/databases')).json.changes;
  const before = await changes();
  await db.collection('orders').insertOne({ _id: 1, text: 'x'.repeat(1000) });
  const inserted = await changes();
  assert.equal(inserted.records - before.records, 2); // create and insert
  assert.ok(inserted.bytes - before.bytes > 1000);
  await db.collection('orders').updateOne({ _id: 1 }, { $set: { n: 1 } });
  const updated = await changes();
  assert.equal(updated.records - inserted.records, 1);
  assert.ok(updated.bytes - inserted.bytes < 250); // what changed, not the document
  const { code, out } = await orrery(['stats', '--endpoint', server.url, '--dev']);
  assert.equal(code, 0);
  assert.match(out, /Changes kept for change streams: \d+, /);
});

test('merges of partitions under writers lose nothing and tell nothing twice', async (t) => {
  const { client, db } = await mongo(t, ['--set', 'migration.pause_ms=20ms']);
  const admin = client.db('admin');
  await admin.command({ shardCollection: 'shop.merged', key: { k: 1 } });
  const merged = db.collection('merged');
  await merged.insertMany(Array.from({ length: 40 }, (_, i) => ({ _id: `first-${i}`, k: i })));
  await admin.command({ split: 'shop.merged', middle: { k: 10 } });
  await admin.command({ split: 'shop.merged', middle: { k: 20 } });
  const stream = await watch(t, merged);
  let stop = false;
  const written = [];
  const writer = (async () => {
    for (let i = 0; !stop || i < 60; i++) {
      await merged.insertOne({ _id: i, k: i % 40 });
      written.push(i);
    }
  })();
  for (let round = 0; round < 2; round++) {
    await admin.command({ mergeChunks: 'shop.merged', bounds: [{ k: new MinKey() }, { k: 20 }] });
    await admin.command({ split: 'shop.merged', middle: { k: 10 } });
  }
  await admin.command({ mergeChunks: 'shop.merged', bounds: [{ k: new MinKey() }, { k: new MaxKey() }] });
  stop = true;
  await writer;
  const events = await take(stream, written.length);
  assert.deepEqual(events.map((event) => event.documentKey._id), written);
  assert.equal(await stream.tryNext(), null);
  // a token from before the merges is good behind them
  const again = await watch(t, merged, [], { resumeAfter: events[9]._id });
  assert.deepEqual((await take(again, written.length - 10)).map((event) => event.documentKey._id), written.slice(10));
});

test('what a transaction has written is told together, in its order, when it commits, and of an abort nothing', async (t) => {
  const { client, db } = await mongo(t);
  await client.db('admin').command({ shardCollection: 'shop.a', key: { _id: 'hashed' }, numInitialChunks: 4 });
  const [a, b] = [db.collection('a'), db.collection('b')];
  await a.insertOne({ _id: 0 });
  await b.insertOne({ _id: 0 });
  const stream = await watch(t, db);
  const session = client.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  for (let i = 1; i <= 8; i++) await (i % 2 ? a : b).insertOne({ _id: i }, { session });
  await a.updateOne({ _id: 0 }, { $set: { seen: true } }, { session });
  await b.insertOne({ _id: 'beside' }); // committed before the transaction
  await session.commitTransaction();
  session.startTransaction();
  await a.insertOne({ _id: 'never' }, { session });
  await session.abortTransaction();
  await b.insertOne({ _id: 'last' });
  const events = await take(stream, 11);
  const keys = events.map((event) => event.documentKey._id);
  assert.equal(keys[0], 'beside');
  assert.equal(keys[10], 'last');
  assert.deepEqual(keys.slice(1, 10).map(String).sort(), ['0', '1', '2', '3', '4', '5', '6', '7', '8']);
  assert.equal(new Set(events.slice(1, 10).map((event) => event.clusterTime.toString())).size, 1);
  assert.equal(new Set(events.map((event) => event._id._data)).size, 11);
  // a stream that begins again in the middle of it goes on there
  const again = await watch(t, db, [], { resumeAfter: events[4]._id });
  assert.deepEqual((await take(again, 6)).map((event) => event.documentKey._id), keys.slice(5));
});

test('after kill -9 the changes that are told are those that are there, of transactions over partitions too', async (t) => {
  const args = ['--dev', '--node', `local=rocksdb:${join(scratch(t), 'node')}`];
  let server = await Server.start(t, args);
  const client = await mongoClient(t, server.mongo, { serverSelectionTimeoutMS: 2000 });
  await client.db('admin').command({ shardCollection: 'shop.a', key: { _id: 'hashed' }, numInitialChunks: 4 });
  const db = client.db('shop');
  const [a, b] = [db.collection('a'), db.collection('b')];
  await b.insertOne({ _id: 'first' });
  const stream = await watch(t, db);
  const start = stream.resumeToken;
  await stream.close();
  let done = 0, dead = false;
  const work = async (worker) => {
    for (let i = 0; !dead; i++) {
      const session = client.startSession();
      try {
        session.startTransaction();
        await a.insertOne({ _id: `${worker}-${i}-x` }, { session });
        await a.insertOne({ _id: `${worker}-${i}-y` }, { session });
        await b.insertOne({ _id: `${worker}-${i}` }, { session });
        await session.commitTransaction();
        done++;
      } catch {
        if (dead) return;
      }
    }
  };
  const workers = [0, 1, 2].map(work);
  await server.until(() => done >= 30);
  dead = true;
  await server.stop('SIGKILL');
  await Promise.all(workers);
  await client.close(true);
  server = await Server.start(t, args);
  const after = (await mongoClient(t, server.mongo)).db('shop');
  const ids = async (name) => (await after.collection(name).find().toArray()).map(({ _id }) => _id).filter((id) => id !== 'first');
  const pairs = await ids('b');
  assert.ok(pairs.length >= 30);
  assert.deepEqual((await ids('a')).sort(), pairs.flatMap((id) => [`${id}-x`, `${id}-y`]).sort());
  const told = await take(await watch(t, after, [], { resumeAfter: start }), 3 * pairs.length);
  assert.deepEqual(told.map((event) => String(event.documentKey._id)).sort(), pairs.flatMap((id) => [id, `${id}-x`, `${id}-y`]).sort());
  const times = new Map();
  for (const { documentKey, clusterTime } of told) {
    const pair = documentKey._id.split('-').slice(0, 2).join('-');
    times.set(pair, (times.get(pair) ?? new Set()).add(clusterTime.toString()));
  }
  assert.ok([...times.values()].every((set) => set.size === 1), 'a transaction has one time');
});

const expanded = { showExpandedEvents: true };

test('a collection that a transaction makes is told when it commits, before what is in it, and never if it does not', async (t) => {
  const { client, db } = await mongo(t);
  await db.createCollection('there');
  const stream = await watch(t, db, [], expanded);
  const session = client.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  await db.collection('lost').insertOne({ _id: 1 }, { session });
  await session.abortTransaction();
  session.startTransaction();
  await db.collection('made').insertOne({ _id: 1 }, { session });
  await db.collection('there').insertOne({ _id: 'within' }, { session });
  await db.collection('other').createIndex({ a: 1 }, { session });
  await db.collection('there').insertOne({ _id: 'before' }); // told before: it commits first
  await session.commitTransaction();
  session.startTransaction();
  await db.createCollection('empty', { session });
  await session.commitTransaction();
  await db.collection('there').insertOne({ _id: 'last' });
  const events = [];
  do events.push(await stream.next()); while (events.at(-1).documentKey?._id !== 'last');
  const told = events.map(({ operationType, ns, documentKey }) => [operationType, ns.coll, documentKey?._id].join(' ').trim());
  const [before, ...rest] = told;
  assert.equal(before, 'insert there before');
  assert.deepEqual(rest.slice(0, 3), ['create made', 'create other', 'createIndexes other']);
  assert.deepEqual(rest.slice(3, 5).sort(), ['insert made 1', 'insert there within']);
  assert.deepEqual(rest.slice(5), ['create empty', 'insert there last']);
  assert.equal(new Set(events.slice(1, 6).map(({ clusterTime }) => clusterTime.toString())).size, 1);
  // and whoever resumes in the middle of it goes on there
  const again = await watch(t, db, [], { ...expanded, resumeAfter: events[2]._id });
  assert.deepEqual((await take(again, 3)).map(({ operationType }) => operationType).sort(), ['createIndexes', 'insert', 'insert']);
});

test('a collection of a transaction that a crash has ended is told neither made nor dropped', async (t) => {
  const args = ['--dev', '--node', `local=rocksdb:${join(scratch(t), 'node')}`];
  const first = await Server.start(t, args);
  const client = await mongoClient(t, first.mongo);
  await client.db('shop').createCollection('there');
  const stream = await watch(t, client.db('shop'), [], expanded);
  const token = stream.resumeToken;
  await stream.close();
  const session = client.startSession();
  session.startTransaction();
  await client.db('shop').collection('lost').insertOne({ _id: 1 }, { session });
  await first.stop('SIGKILL');
  await client.close(true);
  const second = await Server.start(t, args);
  const db = (await mongoClient(t, second.mongo)).db('shop');
  await db.collection('there').insertOne({ _id: 'last' });
  const [event] = await take(await watch(t, db, [], { ...expanded, resumeAfter: token }), 1);
  assert.deepEqual([event.operationType, event.documentKey], ['insert', { _id: 'last' }]);
});

test('a stream that stands before what a removed node took along is told so', async (t) => {
  const { server, client, db } = await mongo(t, ['--node', 'a=memory:', '--node', 'b=memory:']);
  const admin = client.db('admin');
  await admin.command({ shardCollection: 'shop.c', key: { n: 1 } });
  const config = client.db('config');
  const [{ shard }] = await config.collection('chunks').find().toArray();
  if (shard === 'a') await admin.command({ moveChunk: 'shop.c', find: { n: 1 }, to: 'b' }); // the root, a, stays
  const c = db.collection('c');
  const stream = await watch(t, c);
  const old = stream.resumeToken;
  await c.insertOne({ _id: 1, n: 1 });
  await c.insertOne({ _id: 2, n: 1 });
  const [first, second] = await take(stream, 2);
  await stream.close();
  await admin.command({ moveChunk: 'shop.c', find: { n: 1 }, to: 'a' });
  const idle = await watch(t, c); // behind all of it
  const drained = await orrery(['node', 'drain', 'b', '--endpoint', server.url, '--dev', '--wait']);
  await server.until(async () => (await orrery(['node', 'remove', 'b', '--endpoint', server.url, '--dev'])).code === 0);
  assert.ok(drained);
  for (const token of [old, first._id, second._id])
    await assert.rejects(c.watch([], { resumeAfter: token }).next(), { code: 286 });
  await c.insertOne({ _id: 3, n: 1 });
  assert.equal((await idle.next()).documentKey._id, 3);
  const fresh = await watch(t, c);
  await c.insertOne({ _id: 4, n: 1 });
  assert.equal((await fresh.next()).documentKey._id, 4);
});

test('$changeStreamSplitLargeEvent tells an event above 16 MiB in fragments, and goes on behind any of them', async (t) => {
  const { db } = await mongo(t);
  const c = await db.createCollection('c', { changeStreamPreAndPostImages: { enabled: true } });
  const options = { fullDocument: 'required', fullDocumentBeforeChange: 'required' };
  const split = [{ $changeStreamSplitLargeEvent: {} }];
  const stream = await watch(t, c, split, options);
  const plain = await watch(t, c, [], options);
  const shaped = await watch(t, c, [{ $match: { operationType: 'update' } }, { $project: { fullDocument: 0 } }, ...split], options);
  const text = (letter) => letter.repeat(15 * 1024 * 1024);
  await c.insertOne({ _id: 1, text: text('a') });
  await c.updateOne({ _id: 1 }, { $set: { text: text('b') } });
  await c.updateOne({ _id: 1 }, { $set: { text: 'short' } });
  const events = await take(stream, 5);
  assert.deepEqual(events.map(({ operationType, splitEvent }) => [operationType, splitEvent?.fragment, splitEvent?.of]),
    [['insert', undefined, undefined], ['update', 1, 3], [undefined, 2, 3], [undefined, 3, 3], ['update', undefined, undefined]]);
  const [, one, two, three, last] = events;
  const whole = Object.assign({}, one, two, three);
  assert.equal(whole.fullDocumentBeforeChange.text, text('a'));
  assert.equal(whole.fullDocument.text, text('b'));
  assert.equal(whole.updateDescription.updatedFields.text, text('b'));
  assert.deepEqual([whole.ns, whole.documentKey], [{ db: 'shop', coll: 'c' }, { _id: 1 }]);
  const tokens = events.map(({ _id }) => _id._data);
  assert.deepEqual([...tokens].sort(), tokens);
  // a stream begins again behind each fragment
  for (const [i, rest] of [[1, 3], [2, 2], [3, 1]]) {
    const again = await watch(t, c, split, { ...options, resumeAfter: events[i]._id });
    const followed = await take(again, rest);
    assert.deepEqual(followed.map(({ _id }) => _id._data), tokens.slice(i + 1), `${i}`);
    await again.close();
  }
  // what a projection leaves is not too large for one of them, nor are others split
  const small = await take(shaped, 3);
  assert.deepEqual(small.map(({ splitEvent }) => splitEvent?.of), [2, 2, undefined]);
  assert.ok(last.fullDocumentBeforeChange.text.length > 1000);
  // without the stage it is an error, as is a place or a specification that is wrong
  assert.equal((await plain.next()).operationType, 'insert');
  await assert.rejects(plain.next(), { code: 10334 });
  const aggregate = (...stages) => db.command({ aggregate: 'c', pipeline: stages, cursor: {} });
  await assert.rejects(aggregate({ $changeStream: {} }, { $changeStreamSplitLargeEvent: {} }, { $match: {} }), { code: 7182802 });
  await assert.rejects(aggregate({ $changeStream: {} }, { $changeStreamSplitLargeEvent: { a: 1 } }), { code: 7182800 });
  await assert.rejects(aggregate({ $changeStream: { resumeAfter: one._id } }), { code: 7182801 });
  await assert.rejects(aggregate({ $changeStreamSplitLargeEvent: {} }), { code: 20 });
  for (const bad of [one._id._data.slice(0, -2), `${one._id._data}00`, `${tokens[0]}00000001`, `${one._id._data.slice(0, -8)}00000000`])
    await assert.rejects(aggregate({ $changeStream: { resumeAfter: { _data: bad } } }, { $changeStreamSplitLargeEvent: {} }), { code: 260 });
});
