// Transactions of the MongoDB API over several nodes: one moment of all of them, all or nothing for whoever looks, whatever is killed.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { Long, UUID } from 'mongodb';
import { mongoClient, Wire } from './mongo.js';
import { scratch, Server } from './server.js';
import { Postgres } from './postgres.js';
import { signed } from './rest.js';

const places = {
  memory: async () => ['--node', 'a=memory:', '--node', 'b=memory:'],
  rocksdb: async (t) => ['--node', `a=rocksdb:${join(scratch(t), 'a')}`, '--node', `b=rocksdb:${join(scratch(t), 'b')}`],
  postgresql: async (t) => ['--node', `a=rocksdb:${join(scratch(t), 'a')}`, '--node', `b=${(await Postgres.start(t)).url}`],
};

const start = (t, nodes) => Server.start(t, ['--dev', '--set', 'throughput.burst_seconds=300', ...nodes]);
const transient = (code) => (err) => err.code === code && err.hasErrorLabel('TransientTransactionError');
const byId = (x, y) => x._id - y._id;

/** A partition on each node. */
async function spread(server, client, name) {
  await client.db('admin').command({ shardCollection: `shop.${name}`, key: { _id: 'hashed' } });
  const path = `/_orrery/containers/shop/${name}/partitions`;
  const list = async () => (await signed(server, 'GET', path)).json;
  const settled = (what) => server.until(async () => {
    const now = await list();
    return !now.migration && what(now.partitions);
  });
  if ((await list()).partitions.length === 1) {
    assert.equal((await signed(server, 'POST', `${path}/${(await list()).partitions[0].id}/split`)).status, 202);
    await settled((now) => now.length > 1);
  }
  const both = (now) => new Set(now.map(({ node }) => node)).size === 2;
  const { partitions } = await list();
  if (!both(partitions)) {
    const node = partitions[0].node === 'a' ? 'b' : 'a';
    assert.equal((await signed(server, 'POST', `${path}/${partitions[0].id}/move`, { body: { node } })).status, 202);
  }
  await settled(both);
}

/** A collection of one partition, on this node. */
async function placed(server, db, name, node) {
  await db.createCollection(name);
  const path = `/_orrery/containers/shop/${name}/partitions`;
  const list = async () => (await signed(server, 'GET', path)).json;
  const { partitions: [only] } = await list();
  if (only.node === node) return;
  assert.equal((await signed(server, 'POST', `${path}/${only.id}/move`, { body: { node } })).status, 202);
  await server.until(async () => {
    const now = await list();
    return !now.migration && now.partitions[0].node === node;
  });
}

const none = async (server) => server.until(async () => (await signed(server, 'GET', '/_orrery/transactions')).json.transactions.length === 0);

for (const [name, place] of Object.entries(places))
  test(`${name}: a transaction reads and writes on all nodes as on one`, async (t) => {
    const server = await start(t, await place(t));
    const client = await mongoClient(t, server.mongo);
    const db = client.db('shop'), c = db.collection('c');
    await spread(server, client, 'c');
    await c.createIndex({ n: 1 });
    const all = Array.from({ length: 40 }, (_, _id) => ({ _id, n: 0 }));
    await c.insertMany(all);
    const stream = c.watch([], { maxAwaitTimeMS: 200 });
    await stream.tryNext();
    const session = client.startSession();
    session.startTransaction();
    assert.equal((await c.updateMany({}, { $inc: { n: 1 } }, { session })).modifiedCount, 40);
    assert.equal((await c.deleteOne({ _id: 7 }, { session })).deletedCount, 1);
    await c.insertMany([{ _id: 50, n: 5 }, { _id: 51, n: 5 }], { session });
    const now = [...all.filter(({ _id }) => _id !== 7).map(({ _id }) => ({ _id, n: 1 })), { _id: 50, n: 5 }, { _id: 51, n: 5 }];
    assert.deepEqual((await c.find({}, { session }).toArray()).sort(byId), now);
    assert.deepEqual((await c.find({ n: { $gte: 1 } }, { session, batchSize: 5 }).sort({ n: -1, _id: 1 }).toArray()).slice(0, 3), [{ _id: 50, n: 5 }, { _id: 51, n: 5 }, { _id: 0, n: 1 }]);
    assert.equal(await c.countDocuments({}, { session }), 41);
    assert.deepEqual(await c.aggregate([{ $group: { _id: null, n: { $sum: '$n' } } }], { session }).toArray(), [{ _id: null, n: 49 }]);
    assert.deepEqual(await c.aggregate([{ $match: { _id: 50 } }, { $lookup: { from: 'c', localField: 'n', foreignField: 'n', as: 'same' } }], { session }).toArray(),
      [{ _id: 50, n: 5, same: [{ _id: 50, n: 5 }, { _id: 51, n: 5 }] }]);
    assert.deepEqual((await c.find().toArray()).sort(byId), all); // of others' eyes
    await session.commitTransaction();
    await session.commitTransaction(); // again: the same
    assert.deepEqual((await c.find().toArray()).sort(byId), now);
    const told = [];
    while (told.length < 43) told.push(await stream.next());
    const count = (kind) => told.filter(({ operationType }) => operationType === kind).length;
    assert.deepEqual([count('update'), count('delete'), count('insert')], [40, 1, 2]);
    assert.equal(await stream.tryNext(), null);
    await stream.close();

    session.startTransaction();
    await c.deleteMany({}, { session });
    assert.equal(await c.countDocuments({}, { session }), 0);
    await session.abortTransaction();
    assert.deepEqual((await c.find().toArray()).sort(byId), now);

    session.startTransaction(); // one that loses a race on either node does nothing on any
    await c.updateMany({}, { $set: { n: 100 } }, { session });
    await c.updateOne({ _id: 3 }, { $set: { n: 2 } });
    await assert.rejects(session.commitTransaction(), transient(112));
    assert.equal(await c.countDocuments({ n: 100 }), 0);
    await session.endSession();
    await none(server);
  });

test('collections on other nodes are read at the moment of the first, or the transaction is run again', async (t) => {
  const server = await start(t, await places.rocksdb(t));
  const client = await mongoClient(t, server.mongo);
  const db = client.db('shop'), [here, there] = [db.collection('here'), db.collection('there')];
  await placed(server, db, 'here', 'a');
  await placed(server, db, 'there', 'b');
  await here.insertOne({ _id: 1, n: 0 });
  await there.insertOne({ _id: 1, n: 0 });
  const session = client.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  assert.equal((await here.findOne({ _id: 1 }, { session })).n, 0);
  assert.equal((await there.findOne({ _id: 1 }, { session })).n, 0); // nothing has changed
  await here.updateOne({ _id: 1 }, { $set: { n: 1 } }, { session });
  await there.updateOne({ _id: 1 }, { $set: { n: 1 } }, { session });
  await db.collection('made').insertOne({ _id: 1 }, { session }); // wherever that is
  await session.commitTransaction();
  assert.deepEqual([await here.findOne(), await there.findOne(), await db.collection('made').findOne()], [{ _id: 1, n: 1 }, { _id: 1, n: 1 }, { _id: 1 }]);
  session.startTransaction(); // by now it is known which nodes they come to
  assert.equal((await here.findOne({ _id: 1 }, { session })).n, 1);
  await here.updateOne({ _id: 1 }, { $set: { n: 2 } });
  await there.updateOne({ _id: 1 }, { $set: { n: 2 } });
  assert.equal((await there.findOne({ _id: 1 }, { session })).n, 1);
  assert.deepEqual(await here.aggregate([{ $lookup: { from: 'there', localField: '_id', foreignField: '_id', as: 'there' } }], { session }).toArray(),
    [{ _id: 1, n: 1, there: [{ _id: 1, n: 1 }] }]);
  await session.commitTransaction();
  await none(server);
});

test('a node that is away keeps no transaction from the others', async (t) => {
  const postgres = await Postgres.start(t);
  const server = await start(t, ['--node', `a=rocksdb:${join(scratch(t), 'a')}`, '--node', `b=${postgres.url}`]);
  const client = await mongoClient(t, server.mongo);
  const c = client.db('shop').collection('c');
  await spread(server, client, 'c');
  const ids = { a: [], b: [] };
  for (let i = 0; Math.min(ids.a.length, ids.b.length) < 2; i++) {
    const { json } = await signed(server, 'POST', '/_orrery/containers/shop/c/key', { body: [`k${i}`] });
    ids[json.partition.node].push(`k${i}`);
  }
  await c.insertMany([...ids.a, ...ids.b].map((_id) => ({ _id, n: 0 })));
  const add = ([first, second]) => client.withSession(async (session) => {
    session.startTransaction();
    for (const _id of [first, second]) await c.updateOne({ _id }, { $inc: { n: 1 } }, { session });
    await session.commitTransaction();
  });
  await postgres.stop('SIGQUIT');
  await server.until(() => c.findOne({ _id: ids.b[0] }).then(() => false, () => true));
  await server.until(() => add(ids.a).then(() => true, () => false)); // once the node is marked down
  await add(ids.a);
  await assert.rejects(add([ids.a[0], ids.b[0]]));
  await assert.rejects(add(ids.b));
  await postgres.resume();
  await server.until(() => add([ids.a[0], ids.b[0]]).then(() => true, () => false));
  assert.equal((await c.findOne({ _id: ids.a[0] })).n - (await c.findOne({ _id: ids.a[1] })).n, (await c.findOne({ _id: ids.b[0] })).n);
  await none(server);
});

test('a moment outside of transactions is one of all nodes', async (t) => {
  const server = await start(t, await places.rocksdb(t));
  const client = await mongoClient(t, server.mongo);
  const c = client.db('shop').collection('c');
  await spread(server, client, 'c');
  await c.insertMany(Array.from({ length: 20 }, (_, _id) => ({ _id, n: 0 })));
  const session = client.startSession({ snapshot: true });
  t.after(() => session.endSession());
  const first = await c.find({}, { session }).toArray();
  await c.updateMany({}, { $inc: { n: 1 } });
  assert.deepEqual((await c.find({}, { session }).toArray()).sort(byId), first.sort(byId));
});

for (const [name, place] of Object.entries(places))
  test(`${name}: nobody sees a half, by a transaction or by reads one after the other`, async (t) => {
    const server = await start(t, await place(t));
    const client = await mongoClient(t, server.mongo);
    const c = client.db('shop').collection('c');
    await spread(server, client, 'c');
    const ids = Array.from({ length: 12 }, (_, i) => i);
    await c.insertMany(ids.map((_id) => ({ _id, n: 1, balance: 100 })));
    const state = { stop: false, looks: 0, transfers: 0 };
    const atOnce = () => client.withSession(async (session) => {
      for (; !state.stop; state.looks++) {
        const seen = await session.withTransaction(() => c.find({}, { session }).toArray());
        assert.equal(new Set(seen.map(({ n }) => n)).size, 1, JSON.stringify(seen));
        assert.equal(seen.reduce((sum, { balance }) => sum + balance, 0), 1200);
      }
    });
    const oneByOne = async (first) => {
      for (let seen = 1, i = first; !state.stop; i++, state.looks++) {
        const { n } = await c.findOne({ _id: ids[(i * 5) % ids.length] });
        assert.ok(n >= seen, `${n} was found behind ${seen}`);
        seen = Math.max(seen, n);
      }
    };
    const transfer = (worker) => client.withSession(async (session) => {
      for (let i = worker; !state.stop; i += 3) {
        const [from, to] = [i % ids.length, (i * 7 + 1) % ids.length];
        if (from === to) continue;
        await session.withTransaction(async () => {
          const { balance } = await c.findOne({ _id: from }, { session });
          await c.updateOne({ _id: from }, { $set: { balance: balance - 1 } }, { session });
          await c.updateOne({ _id: to }, { $inc: { balance: 1 } }, { session });
        });
        state.transfers++;
      }
    });
    const beside = [atOnce(), atOnce(), oneByOne(0), oneByOne(3), transfer(1)];
    let n = 2;
    try {
      await client.withSession(async (session) => {
        for (; n < 40 || state.looks < 100; n++)
          await session.withTransaction(() => c.updateMany({}, { $set: { n } }, { session }));
      });
    } finally {
      state.stop = true;
    }
    await Promise.all(beside);
    assert.equal((await c.find().toArray()).reduce((sum, { balance }) => sum + balance, 0), 1200);
    await none(server);
    t.diagnostic(`figure: ${n} and ${state.transfers} transactions over two nodes, ${state.looks} looks beside them`);
  });

for (const name of ['rocksdb', 'postgresql'])
  test(`${name}: a server that is killed under load leaves whole transactions, and a commit that is sent again tells which`, async (t) => {
    const nodes = await places[name](t);
    let server = await start(t, nodes);
    const first = await mongoClient(t, server.mongo);
    await spread(server, first, 'c');
    await first.close();
    for (let round = 0; round < 3; round++) {
      const unanswered = [];
      let dead = false, done = 0;
      const work = async (worker) => {
        const wire = await Wire.open(t, server), lsid = { id: new UUID() };
        for (let number = 1; ; number++) {
          const ask = (command, extra) => wire.ask({ ...command, lsid, txnNumber: Long.fromNumber(number), autocommit: false, $db: 'shop', ...extra });
          const ids = Array.from({ length: 4 }, (_, i) => `${round}-${worker}-${number}-${i}`);
          const written = await ask({ insert: 'c', documents: ids.map((_id) => ({ _id })) }, { startTransaction: true });
          if (!written) return assert.ok(dead);
          assert.equal(written.n, 4, JSON.stringify(written));
          const commit = { commitTransaction: 1, recoveryToken: written.recoveryToken };
          const answer = await ask(commit, { $db: 'admin' });
          if (!answer) {
            unanswered.push({ ids, command: { ...commit, lsid, txnNumber: Long.fromNumber(number), autocommit: false, $db: 'admin' } });
            return assert.ok(dead);
          }
          assert.equal(answer.ok, 1, JSON.stringify(answer));
          done++;
        }
      };
      const workers = Array.from({ length: 6 }, (_, w) => work(w));
      await Promise.race([server.until(() => done >= 40), Promise.all(workers)]);
      dead = true;
      await server.stop('SIGKILL');
      await Promise.all(workers);
      server = await start(t, nodes);
      const client = await mongoClient(t, server.mongo), c = client.db('shop').collection('c');
      const groups = new Map();
      for (const { _id } of await c.find({ _id: { $regex: `^${round}-` } }).toArray()) {
        const group = _id.slice(0, _id.lastIndexOf('-'));
        groups.set(group, (groups.get(group) ?? 0) + 1);
      }
      assert.ok(groups.size >= done);
      for (const [group, count] of groups) assert.equal(count, 4, group);
      const wire = await Wire.open(t, server);
      for (const { ids, command } of unanswered) {
        const there = await c.countDocuments({ _id: { $in: ids } });
        const again = await wire.ask(command);
        assert.equal(again.ok === 1, there === 4, JSON.stringify(again));
        if (!again.ok) assert.equal(again.code, 251);
      }
      await none(server);
      await client.close();
    }
  });
