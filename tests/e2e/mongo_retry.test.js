// Writes that a client numbers happen once, whatever becomes of the answer: sent again, they are answered as they were the first time.
import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import test from 'node:test';
import { Long, UUID } from 'mongodb';
import { mongo, mongoClient, portOf, Wire } from './mongo.js';
import { orrery, scratch, Server } from './server.js';

const numbered = (lsid, number, command) => ({ ...command, lsid, txnNumber: Long.fromNumber(number), $db: 'shop' });

// The same message twice: the second answer is the first, and says so.
async function twice(wire, lsid, number, command) {
  const first = await wire.ask(numbered(lsid, number, command));
  const second = await wire.ask(numbered(lsid, number, command));
  const { retriedStmtIds, ...rest } = second;
  for (const reply of [first, rest]) for (const name of ['operationTime', '$clusterTime']) delete reply[name];
  assert.deepEqual(rest, first);
  return { first, retriedStmtIds };
}

test('every kind of write that is sent again is answered as before and done once', async (t) => {
  const { server, db } = await mongo(t);
  const wire = await Wire.open(t, server);
  const lsid = { id: new UUID() };
  const c = db.collection('c');
  assert.deepEqual((await twice(wire, lsid, 1, { insert: 'c', documents: [{ _id: 1, n: 0 }, { _id: 2, n: 0 }] })).retriedStmtIds, [0, 1]);
  assert.equal((await twice(wire, lsid, 2, { update: 'c', updates: [{ q: { _id: 1 }, u: { $inc: { n: 1 } } }] })).first.nModified, 1);
  const upsert = await twice(wire, lsid, 3, { update: 'c', updates: [{ q: { name: 'x' }, u: { $inc: { n: 1 } }, upsert: true }] });
  assert.equal(upsert.first.upserted.length, 1);
  assert.equal((await twice(wire, lsid, 4, { delete: 'c', deletes: [{ q: { _id: 2 }, limit: 1 }] })).first.n, 1);
  const before = await twice(wire, lsid, 5, { findAndModify: 'c', query: { _id: 1 }, update: { $inc: { n: 10 } } });
  assert.deepEqual(before.first.value, { _id: 1, n: 1 });
  const after = await twice(wire, lsid, 6, { findAndModify: 'c', query: { _id: 1 }, update: { $inc: { n: 100 } }, new: true, fields: { n: 1, _id: 0 } });
  assert.deepEqual(after.first.value, { n: 111 });
  const made = await twice(wire, lsid, 7, { findAndModify: 'c', query: { _id: 'new' }, update: { $set: { n: 5 } }, upsert: true, new: true });
  assert.equal(made.first.lastErrorObject.upserted, 'new');
  const removed = await twice(wire, lsid, 8, { findAndModify: 'c', query: { _id: 'new' }, remove: true });
  assert.deepEqual(removed.first.value, { _id: 'new', n: 5 });
  assert.deepEqual(await c.find({ _id: 1 }).toArray(), [{ _id: 1, n: 111 }]);
  assert.deepEqual((await c.find({ name: 'x' }).toArray()).map(({ n }) => n), [1]);
  assert.equal((await wire.ask(numbered(lsid, 7, { insert: 'c', documents: [{ _id: 'late' }] }))).code, 225);
});

test('of a batch that was done in part, the rest is done', async (t) => {
  const { server, db } = await mongo(t);
  const wire = await Wire.open(t, server);
  const lsid = { id: new UUID() };
  await wire.ask(numbered(lsid, 1, { insert: 'c', documents: [{ _id: 0 }, { _id: 1 }] }));
  const reply = await wire.ask(numbered(lsid, 1, { insert: 'c', documents: [0, 1, 2, 3].map((_id) => ({ _id })) }));
  assert.equal(reply.n, 4);
  assert.equal(reply.writeErrors, undefined);
  assert.deepEqual(reply.retriedStmtIds, [0, 1]);
  assert.equal((await db.collection('c').find().toArray()).length, 4);
  const named = await wire.ask({ ...numbered(lsid, 2, { insert: 'c', documents: [{ _id: 10 }, { _id: 11 }] }), stmtIds: [7, 9] });
  assert.equal(named.n, 2);
  const again = await wire.ask({ ...numbered(lsid, 2, { insert: 'c', documents: [{ _id: 11 }] }), stmtId: 9 });
  assert.deepEqual([again.n, again.retriedStmtIds], [1, [9]]);
});

test('what cannot be repeated is refused with a number', async (t) => {
  const { server } = await mongo(t);
  const wire = await Wire.open(t, server);
  const lsid = { id: new UUID() };
  assert.equal((await wire.ask({ ...numbered(lsid, 1, { insert: 'c', documents: [{}] }), lsid: undefined })).code, 72);
  assert.equal((await wire.ask(numbered(lsid, -1, { insert: 'c', documents: [{}] }))).code, 72);
  assert.equal((await wire.ask({ ...numbered(lsid, 1, { insert: 'c', documents: [{}] }), txnNumber: 'x' })).code, 14);
  assert.equal((await wire.ask(numbered(lsid, 1, { find: 'c' }))).code, 50768);
  const multi = await wire.ask(numbered(lsid, 1, { update: 'c', updates: [{ q: {}, u: { $set: { a: 1 } }, multi: true }] }));
  assert.equal(multi.code ?? multi.writeErrors[0].code, 72);
});

test('numbers of another user\'s session are others', async (t) => {
  const { server, db } = await mongo(t);
  const lsid = { id: new UUID() };
  const [one, other] = [await Wire.open(t, server), await Wire.open(t, server)];
  await one.ask(numbered(lsid, 5, { insert: 'c', documents: [{ _id: 1 }] }));
  const reply = await other.ask(numbered({ id: new UUID() }, 1, { insert: 'c', documents: [{ _id: 2 }] }));
  assert.equal(reply.n, 1);
  assert.equal((await db.collection('c').find().toArray()).length, 2);
});

test('a write that was answered before the server was killed is not done again', async (t) => {
  const node = `local=rocksdb:${join(scratch(t), 'node')}`;
  const lsid = { id: new UUID() };
  const update = { update: 'c', updates: [{ q: { _id: 1 }, u: { $inc: { n: 1 } } }] };
  let server = await Server.start(t, ['--dev', '--node', node]);
  let wire = await Wire.open(t, server);
  assert.equal((await wire.ask({ insert: 'c', documents: [{ _id: 1, n: 0 }], $db: 'shop' })).n, 1);
  assert.equal((await wire.ask(numbered(lsid, 3, update))).nModified, 1);
  await server.stop('SIGKILL');
  server = await Server.start(t, ['--dev', '--node', node]);
  wire = await Wire.open(t, server);
  const again = await wire.ask(numbered(lsid, 3, update));
  assert.deepEqual([again.nModified, again.retriedStmtIds], [1, [0]]);
  assert.deepEqual((await wire.ask({ find: 'c', $db: 'shop' })).cursor.firstBatch, [{ _id: 1, n: 1 }]);
  assert.equal((await wire.ask(numbered(lsid, 4, update))).nModified, 1);
  assert.equal((await wire.ask(numbered(lsid, 3, update))).code, 225);
});

// Between client and server: passes everything on, until it is told to keep the answer to a command and cut the connection.
class Proxy {
  static async start(t, port) {
    const proxy = new Proxy();
    proxy.cuts = 0;
    proxy.server = createServer((client) => {
      const server = connect(port, '127.0.0.1');
      let cutting = false;
      client.on('data', (bytes) => {
        cutting ||= proxy.wanted && bytes.includes(proxy.wanted);
        server.write(bytes);
      });
      server.on('data', (bytes) => {
        if (cutting && proxy.wanted) {
          proxy.wanted = undefined;
          proxy.cuts++;
          client.destroy();
          server.destroy();
        } else client.write(bytes);
      });
      for (const [from, to] of [[client, server], [server, client]]) {
        from.on('error', () => {});
        from.on('close', () => to.destroy());
      }
    });
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    t.after(() => proxy.server.close());
    proxy.port = proxy.server.address().port;
    return proxy;
  }
}

test('a connection that is cut between commit and answer: the driver sends again, and it happens once', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const proxy = await Proxy.start(t, portOf(server));
  const client = await mongoClient(t, `mongodb://127.0.0.1:${proxy.port}/`);
  const c = client.db('shop').collection('c');
  await c.insertOne({ _id: 1, n: 0 });
  const writes = [
    () => c.updateOne({ _id: 1 }, { $inc: { n: 1 }, $set: { mark: 'cut here' } }),
    () => c.insertOne({ _id: 2, mark: 'cut here' }),
    () => c.findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 }, $set: { mark: 'cut here' } }),
    () => c.deleteOne({ _id: 2, mark: 'cut here' }),
  ];
  const results = [];
  for (const write of writes) {
    proxy.wanted = 'cut here';
    results.push(await write());
  }
  assert.equal(proxy.cuts, writes.length);
  assert.equal(results[0].modifiedCount, 1);
  assert.equal(results[2].n, 1);
  assert.equal(results[3].deletedCount, 1);
  assert.deepEqual(await c.find().toArray(), [{ _id: 1, n: 2, mark: 'cut here' }]);
});

test('records go along when their partition is split and moved', async (t) => {
  const server = await Server.start(t, ['--dev', '--node', 'near=memory:', '--node', 'far=memory:']);
  const client = await mongoClient(t, server.mongo);
  await client.db('admin').command({ shardCollection: 'shop.c', key: { _id: 'hashed' } });
  const wire = await Wire.open(t, server);
  const lsid = { id: new UUID() };
  const insert = { insert: 'c', documents: Array.from({ length: 40 }, (_, _id) => ({ _id, n: 0 })) };
  const update = { update: 'c', updates: Array.from({ length: 40 }, (_, _id) => ({ q: { _id }, u: { $inc: { n: 1 } } })) };
  assert.equal((await wire.ask(numbered(lsid, 1, insert))).n, 40);
  assert.equal((await wire.ask(numbered(lsid, 2, update))).nModified, 40);
  const partition = (...words) => orrery(['partition', ...words, '--endpoint', server.url, '--dev']);
  const list = async () => JSON.parse((await partition('list', 'shop', 'c', '--format', 'json')).out).partitions;
  const [first] = await list();
  const split = await partition('split', 'shop', 'c', String(first.id), '--pieces', '2');
  assert.equal(split.code, 0, split.err);
  const [moved] = await list();
  const move = await partition('move', 'shop', 'c', String(moved.id), moved.node === 'far' ? 'near' : 'far');
  assert.equal(move.code, 0, move.err);
  const again = await wire.ask(numbered(lsid, 2, update));
  assert.deepEqual([again.nModified, again.retriedStmtIds?.length], [40, 40]);
  assert.ok((await client.db('shop').collection('c').find().toArray()).every(({ n }) => n === 1));
});
