// Transactions of several documents: one moment, own writes, all or nothing, and who loses a race hears of it.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { Long, UUID } from 'mongodb';
import { mongo, mongoClient, Wire } from './mongo.js';
import { orrery, scratch, Server } from './server.js';

const transient = (code) => (err) => err.code === code && err.hasErrorLabel('TransientTransactionError');

function transaction(client) {
  const session = client.startSession();
  session.startTransaction();
  return session;
}

test('what a transaction writes is seen by itself, by others after the commit, and never after an abort', async (t) => {
  const { client, db } = await mongo(t);
  const [a, b] = [db.collection('a'), db.collection('b')];
  await a.insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 2 }, { _id: 3, n: 3 }]);
  await b.insertOne({ _id: 0 });
  const session = transaction(client);
  await a.updateOne({ _id: 1 }, { $inc: { n: 10 } }, { session });
  await a.updateMany({ n: { $gte: 3 } }, { $set: { big: true } }, { session });
  await a.deleteOne({ n: 2 }, { session });
  await a.insertMany([{ _id: 4, n: 4 }, { _id: 5, n: 5 }], { session });
  await b.insertOne({ _id: 1, made: true }, { session });
  const own = [{ _id: 1, n: 11, big: true }, { _id: 3, n: 3, big: true }, { _id: 4, n: 4 }, { _id: 5, n: 5 }];
  assert.deepEqual(await a.find({}, { session }).sort({ _id: 1 }).toArray(), own);
  assert.deepEqual(await a.find({ n: { $gt: 3 } }, { session }).sort({ n: -1 }).toArray(), [own[0], own[3], own[2]]);
  assert.deepEqual(await a.findOne({ _id: 4 }, { session }), own[2]);
  assert.equal(await a.findOne({ _id: 2 }, { session }), null);
  assert.deepEqual((await a.distinct('n', {}, { session })).sort((x, y) => x - y), [3, 4, 5, 11]);
  assert.deepEqual(await a.aggregate([{ $group: { _id: null, n: { $sum: '$n' }, count: { $sum: 1 } } }], { session }).toArray(), [{ _id: null, n: 23, count: 4 }]);
  assert.equal(await a.countDocuments({}, { session }), 4);
  assert.deepEqual(await a.findOneAndUpdate({ _id: 5 }, { $inc: { n: 1 } }, { session, returnDocument: 'after' }), { _id: 5, n: 6 });
  const before = [{ _id: 1, n: 1 }, { _id: 2, n: 2 }, { _id: 3, n: 3 }];
  assert.deepEqual(await a.find().sort({ _id: 1 }).toArray(), before);
  assert.equal(await b.findOne({ _id: 1 }), null);
  await session.commitTransaction();
  own[3].n = 6;
  assert.deepEqual(await a.find().sort({ _id: 1 }).toArray(), own);
  assert.deepEqual(await b.findOne({ _id: 1 }), { _id: 1, made: true });

  session.startTransaction();
  await a.deleteMany({}, { session });
  assert.deepEqual(await a.find({}, { session }).toArray(), []);
  await session.abortTransaction();
  assert.deepEqual(await a.find().sort({ _id: 1 }).toArray(), own);
});

test('a transaction reads one moment of all collections, cursors too', async (t) => {
  const { client, db } = await mongo(t);
  const [a, b] = [db.collection('a'), db.collection('b')];
  await a.insertMany(Array.from({ length: 50 }, (_, _id) => ({ _id, v: 0 })));
  await b.insertOne({ _id: 1, v: 0 });
  const session = transaction(client);
  const cursor = a.find({}, { session, batchSize: 10 });
  assert.deepEqual(await cursor.next(), { _id: 0, v: 0 });
  await a.updateMany({}, { $set: { v: 1 } });
  await b.updateOne({ _id: 1 }, { $set: { v: 1 } });
  assert.ok((await cursor.toArray()).every(({ v }) => v === 0));
  assert.deepEqual(await b.findOne({ _id: 1 }, { session }), { _id: 1, v: 0 });
  assert.deepEqual(await a.aggregate([{ $match: { _id: 7 } }, { $lookup: { from: 'b', pipeline: [], as: 'b' } }], { session }).toArray(),
    [{ _id: 7, v: 0, b: [{ _id: 1, v: 0 }] }]);
  await session.commitTransaction();
  assert.deepEqual(await b.findOne({ _id: 1 }), { _id: 1, v: 1 });
});

test('who writes what another one has written hears of it at once, and may try again', async (t) => {
  const { client, db } = await mongo(t);
  const c = db.collection('c');
  await c.insertMany([{ _id: 1, n: 0 }, { _id: 2, n: 0 }]);
  const [one, other] = [transaction(client), transaction(client)];
  await c.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: one });
  await c.findOne({ _id: 2 }, { session: other });
  await assert.rejects(c.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session: other }), transient(112));
  await assert.rejects(c.findOne({ _id: 1 }, { session: other }), transient(251));
  await one.commitTransaction();
  const late = transaction(client);
  await c.findOne({ _id: 1 }, { session: late });
  await c.updateOne({ _id: 2 }, { $inc: { n: 1 } }); // outside of any
  await assert.rejects(c.updateOne({ _id: 2 }, { $inc: { n: 1 } }, { session: late }), transient(112));
  const outrun = transaction(client);
  await c.updateOne({ _id: 2 }, { $inc: { n: 1 } }, { session: outrun });
  await c.updateOne({ _id: 2 }, { $inc: { n: 1 } });
  await assert.rejects(outrun.commitTransaction(), transient(112));
  assert.deepEqual(await c.find().toArray(), [{ _id: 1, n: 1 }, { _id: 2, n: 2 }]);
});

test('racing transfers keep the sum', async (t) => {
  const { client, db } = await mongo(t);
  const accounts = db.collection('accounts'), log = db.collection('log');
  await accounts.insertMany(Array.from({ length: 6 }, (_, _id) => ({ _id, balance: 100 })));
  await log.insertOne({ _id: 'begin' });
  let transfers = 0, stopped = false;
  const transfer = async (worker) => {
    for (let i = 0; i < 12; i++) {
      const [from, to] = [(worker + i) % 6, (worker * 3 + i * 5 + 1) % 6];
      if (from === to) continue;
      await client.withSession((session) => session.withTransaction(async () => {
        const { balance } = await accounts.findOne({ _id: from }, { session });
        if (balance < 5) return;
        await accounts.updateOne({ _id: from }, { $set: { balance: balance - 5 } }, { session });
        await accounts.updateOne({ _id: to }, { $inc: { balance: 5 } }, { session });
        await log.insertOne({ from, to }, { session });
      }));
      transfers++;
    }
  };
  const watch = async () => {
    while (!stopped) {
      const sum = await client.withSession((session) => session.withTransaction(async () =>
        (await accounts.find({}, { session }).toArray()).reduce((all, { balance }) => all + balance, 0)));
      assert.equal(sum, 600);
    }
  };
  const watching = watch();
  await Promise.all([0, 1, 2, 3, 4].map(transfer));
  stopped = true;
  await watching;
  assert.ok(transfers > 30);
  const all = await accounts.find().toArray();
  assert.equal(all.reduce((sum, { balance }) => sum + balance, 0), 600);
});

test('write skew is possible, as snapshot isolation allows', async (t) => {
  const { client, db } = await mongo(t);
  const doctors = db.collection('doctors');
  await doctors.insertMany([{ _id: 'ann', on: true }, { _id: 'bob', on: true }]);
  const [ann, bob] = [transaction(client), transaction(client)];
  assert.equal((await doctors.find({ on: true }, { session: ann }).toArray()).length, 2);
  assert.equal((await doctors.find({ on: true }, { session: bob }).toArray()).length, 2);
  await doctors.updateOne({ _id: 'ann' }, { $set: { on: false } }, { session: ann });
  await doctors.updateOne({ _id: 'bob' }, { $set: { on: false } }, { session: bob });
  await ann.commitTransaction();
  await bob.commitTransaction();
  assert.equal((await doctors.find({ on: true }).toArray()).length, 0);
});

test('what is not allowed in a transaction is refused by name', async (t) => {
  const { server, db } = await mongo(t);
  await db.collection('c').insertOne({ _id: 1 });
  const wire = await Wire.open(t, server);
  const lsid = { id: new UUID() };
  let number = 0;
  const ask = (command, extra = {}) =>
    wire.ask({ ...command, lsid, txnNumber: Long.fromNumber(number), autocommit: false, $db: 'shop', ...extra });
  const begin = (command, extra) => (number++, ask(command, { startTransaction: true, ...extra }));
  for (const command of [{ count: 'c' }, { drop: 'c' }, { listCollections: 1 }, { ping: 1 }])
    assert.equal((await begin(command)).code, 263, Object.keys(command)[0]);
  assert.equal((await begin({ find: 'c' }, { $db: 'config' })).code, 263);
  assert.equal((await begin({ aggregate: 'c', pipeline: [{ $out: 'd' }], cursor: {} })).code, 263);
  assert.equal((await begin({ find: 'c' }, { readConcern: { level: 'linearizable' } })).code, 72);
  assert.equal((await begin({ insert: 'c', documents: [{}], writeConcern: { w: 1 } })).code, 72);
  assert.equal((await begin({ find: 'c' }, { readConcern: { level: 'snapshot' } })).ok, 1);
  assert.equal((await ask({ find: 'c', readConcern: { level: 'snapshot' } })).code, 72);
  assert.equal((await ask({ find: 'c' })).ok, 1);
  assert.equal((await ask({ find: 'c' }, { startTransaction: true })).code, 117);
  assert.equal((await ask({ commitTransaction: 1 }, { $db: 'admin' })).ok, 1);
  assert.equal((await ask({ commitTransaction: 1 }, { $db: 'admin' })).ok, 1); // again is well
  assert.equal((await ask({ find: 'c' })).code, 256);
  assert.equal((await ask({ abortTransaction: 1 }, { $db: 'admin' })).code, 256);
  number += 5;
  assert.equal((await ask({ find: 'c' })).code, 251);
  assert.equal((await ask({ find: 'c' }, { autocommit: true })).code, 72);
  number = 1;
  assert.equal((await ask({ find: 'c' })).code, 225);
  const { txnNumber, ...loose } = { txnNumber: 0, commitTransaction: 1, lsid, $db: 'admin' };
  assert.equal((await wire.ask(loose)).code, 72);
});

test('a duplicate ends the transaction, and nothing of it stays', async (t) => {
  const { client, db } = await mongo(t);
  const c = db.collection('c');
  await c.insertOne({ _id: 1 });
  const session = transaction(client);
  await c.insertOne({ _id: 2 }, { session });
  await assert.rejects(c.insertOne({ _id: 1 }, { session }), { code: 11000 });
  await assert.rejects(c.insertOne({ _id: 3 }, { session }), { code: 251 });
  await session.abortTransaction();
  assert.deepEqual(await c.find().toArray(), [{ _id: 1 }]);
});

test('transactions are bounded in size and number', async (t) => {
  const { client, db } = await mongo(t, ['--set', 'mongo.transaction_ms_max=1h', '--set', 'mongo.transactions_max=2', '--set', 'mongo.transaction_bytes_max=1M']);
  const c = db.collection('c');
  await c.insertOne({ _id: 1 });
  const large = transaction(client);
  await assert.rejects(c.insertMany(Array.from({ length: 40 }, () => ({ text: 'x'.repeat(50_000) })), { session: large }), { code: 257 });
  await large.abortTransaction();
  const session = transaction(client);
  await c.insertOne({ _id: 2 }, { session });
  await assert.rejects(c.findOne({}, { session: transaction(client) }), { code: 146 });
  await session.abortTransaction();
  assert.deepEqual(await c.find().toArray(), [{ _id: 1 }]);
});

test('transactions are bounded in time, however much they are used', async (t) => {
  const { client, db, server } = await mongo(t, ['--set', 'mongo.transaction_ms_max=1s']);
  const c = db.collection('c');
  await c.insertOne({ _id: 1 });
  const session = transaction(client);
  await c.insertOne({ _id: 2 }, { session });
  const codes = new Set();
  await server.until(async () => {
    const code = await c.findOne({ _id: 2 }, { session }).then((found) => assert.deepEqual(found, { _id: 2 }), (err) => err.code);
    codes.add(code);
    return code !== undefined;
  });
  codes.delete(undefined);
  assert.deepEqual([...codes], [251]);
  await session.abortTransaction();
  assert.deepEqual(await c.find().toArray(), [{ _id: 1 }]);
});

test('kill -9 in the middle leaves all or nothing, and a commit whose answer was lost is found', async (t) => {
  const node = `local=rocksdb:${join(scratch(t), 'node')}`;
  let server = await Server.start(t, ['--dev', '--node', node]);
  let wire = await Wire.open(t, server);
  const lsid = { id: new UUID() };
  const ask = (number, command, extra = {}) =>
    wire.ask({ ...command, lsid, txnNumber: Long.fromNumber(number), autocommit: false, $db: 'shop', ...extra });
  for (const collection of ['a', 'b']) await wire.ask({ insert: collection, documents: [{ _id: 0 }], $db: 'shop' });
  await ask(1, { insert: 'a', documents: [{ _id: 1 }] }, { startTransaction: true });
  const { recoveryToken } = await ask(1, { insert: 'b', documents: [{ _id: 1 }] });
  assert.equal((await ask(1, { commitTransaction: 1 }, { $db: 'admin' })).ok, 1);
  await ask(2, { insert: 'a', documents: [{ _id: 2 }] }, { startTransaction: true });
  const second = await ask(2, { insert: 'b', documents: [{ _id: 2 }] });
  await server.stop('SIGKILL');
  server = await Server.start(t, ['--dev', '--node', node]);
  wire = await Wire.open(t, server);
  for (const collection of ['a', 'b'])
    assert.deepEqual((await wire.ask({ find: collection, $db: 'shop' })).cursor.firstBatch, [{ _id: 0 }, { _id: 1 }]);
  assert.equal((await ask(1, { commitTransaction: 1, recoveryToken }, { $db: 'admin' })).ok, 1);
  assert.equal((await ask(2, { commitTransaction: 1, recoveryToken: second.recoveryToken }, { $db: 'admin' })).code, 251);
});

test('transactions that are killed while they race leave whole pairs', async (t) => {
  const node = `local=rocksdb:${join(scratch(t), 'node')}`;
  let server = await Server.start(t, ['--dev', '--node', node]);
  const client = await mongoClient(t, server.mongo, { serverSelectionTimeoutMS: 2000 });
  const db = client.db('shop');
  for (const name of ['a', 'b']) await db.collection(name).insertOne({ _id: 'first' });
  let done = 0, dead = false;
  const work = async (worker) => {
    for (let i = 0; !dead; i++) {
      const session = client.startSession();
      try {
        session.startTransaction();
        await db.collection('a').insertOne({ _id: `${worker}-${i}` }, { session });
        await db.collection('b').insertOne({ _id: `${worker}-${i}` }, { session });
        await session.commitTransaction();
        done++;
      } catch {
        if (dead) return;
      }
    }
  };
  const workers = [0, 1, 2, 3].map(work);
  await server.until(() => done >= 40);
  dead = true;
  await server.stop('SIGKILL');
  await Promise.all(workers);
  await client.close(true);
  server = await Server.start(t, ['--dev', '--node', node]);
  const after = await mongoClient(t, server.mongo);
  const ids = async (name) => (await after.db('shop').collection(name).find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
  const [a, b] = [await ids('a'), await ids('b')];
  assert.deepEqual(a, b);
  assert.ok(a.length > 40);
});

test('a transaction may insert into collections that it makes', async (t) => {
  const { client, db } = await mongo(t);
  const session = transaction(client);
  await db.collection('made').insertOne({ _id: 1 }, { session });
  await db.createCollection('empty', { session });
  assert.deepEqual(await db.collection('made').find({}, { session }).toArray(), [{ _id: 1 }]);
  assert.deepEqual(await db.collection('made').find().toArray(), []);
  await session.commitTransaction();
  assert.deepEqual(await db.collection('made').find().toArray(), [{ _id: 1 }]);
});

test('partitions of one node, and those of several, commit together', async (t) => {
  const server = await Server.start(t, ['--dev', '--node', 'near=memory:', '--node', 'far=memory:']);
  const client = await mongoClient(t, server.mongo);
  const c = client.db('shop').collection('c');
  await client.db('admin').command({ shardCollection: 'shop.c', key: { _id: 'hashed' } });
  await c.insertMany(Array.from({ length: 40 }, (_, _id) => ({ _id, n: 0 })));
  const partition = (...words) => orrery(['partition', ...words, '--endpoint', server.url, '--dev']);
  const list = async () => JSON.parse((await partition('list', 'shop', 'c', '--format', 'json')).out).partitions;
  for (const { id, node } of await list()) {
    if (node === 'far') assert.equal((await partition('move', 'shop', 'c', String(id), 'near')).code, 0);
  }
  if ((await list()).length === 1) assert.equal((await partition('split', 'shop', 'c', String((await list())[0].id), '--pieces', '3')).code, 0);
  assert.ok((await list()).length > 1);
  const session = client.startSession();
  await session.withTransaction(async () => {
    await c.updateMany({}, { $inc: { n: 1 } }, { session });
    await c.deleteOne({ _id: 7 }, { session });
    assert.equal((await c.find({ n: 1 }, { session }).toArray()).length, 39);
  });
  assert.deepEqual((await c.find().sort({ _id: 1 }).toArray()).map(({ n }) => n), Array(39).fill(1));
  session.startTransaction();
  await c.findOne({ _id: 1 }, { session });
  // it is over once nobody holds the map before it, as the transaction does
  assert.equal((await partition('move', 'shop', 'c', String((await list())[0].id), 'far', '--no-wait')).code, 0);
  await server.until(async () => (await list()).some(({ node }) => node === 'far'));
  await assert.rejects(c.updateMany({}, { $inc: { n: 1 } }, { session }), (err) => err.hasErrorLabel('TransientTransactionError'));
  await session.abortTransaction();
  await session.withTransaction(async () => {
    await c.updateMany({}, { $inc: { n: 1 } }, { session });
    assert.equal((await c.find({ n: 2 }, { session }).toArray()).length, 39);
  });
  assert.ok((await c.find().toArray()).every(({ n }) => n === 2));
});

test('collections and indexes that a transaction makes are others\' when it commits, and nobody\'s when it aborts', async (t) => {
  const { client, db } = await mongo(t);
  const session = client.startSession();
  t.after(() => session.endSession());
  const names = async () => (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name).sort();
  const failing = (promise) => promise.then(() => 0, (error) => error.code);
  await db.createCollection('old');
  for (const commits of [false, true]) {
    session.startTransaction();
    await db.createCollection('made', { session });
    await db.collection('made').createIndex({ n: 1 }, { session, name: 'by_n' });
    await db.collection('made').insertOne({ _id: 1, n: 1 }, { session });
    await db.collection('implied').insertOne({ _id: 1 }, { session });
    assert.deepEqual(await db.collection('made').find({ n: 1 }, { session }).toArray(), [{ _id: 1, n: 1 }]);
    assert.deepEqual(await names(), ['old']); // for others
    assert.equal(await db.collection('made').countDocuments(), 0);
    assert.equal(await failing(db.collection('made').indexes()), 26);
    assert.equal(await failing(db.collection('made').insertOne({ _id: 2 })), 112);
    assert.equal(await failing(db.createCollection('made')), 112);
    if (!commits) {
      assert.equal(await failing(db.collection('made').createIndex({ m: 1 }, { session })), 263); // it has documents
      await session.abortTransaction();
      assert.deepEqual(await names(), ['old']);
      continue;
    }
    await session.commitTransaction();
  }
  assert.deepEqual(await names(), ['implied', 'made', 'old']);
  assert.deepEqual((await db.collection('made').indexes()).map(({ name }) => name), ['_id_', 'by_n']);
  assert.deepEqual(await db.collection('made').find().toArray(), [{ _id: 1, n: 1 }]);
  // what is there already, and what is no transaction's business
  const within = async (command) => {
    session.startTransaction();
    const code = await failing(db.command(command, { session }));
    if (session.inTransaction()) await session.abortTransaction();
    return code;
  };
  assert.equal(await within({ createIndexes: 'made', indexes: [{ key: { n: 1 }, name: 'by_n' }] }), 0);
  assert.equal(await within({ createIndexes: 'made', indexes: [{ key: { m: 1 }, name: 'by_m' }] }), 263);
  assert.equal(await within({ create: 'made' }), 48);
  for (const command of [{ drop: 'made' }, { dropIndexes: 'made', index: 'by_n' }, { collMod: 'made' }, { dropDatabase: 1 }, { listCollections: 1 }])
    assert.equal(await within(command), 263, JSON.stringify(command));
  assert.deepEqual(await names(), ['implied', 'made', 'old']);
});
