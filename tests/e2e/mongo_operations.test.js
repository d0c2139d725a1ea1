// Commands under way: currentOp, $currentOp, killOp; uses of indexes.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { mongo, mongoClient } from './mongo.js';
import { emulatorKey, Server } from './server.js';
import { signed } from './rest.js';

// A getMore that waits for changes until it is told otherwise; what becomes of it.
async function waiting(db, comment) {
  const { cursor } = await db.command({ aggregate: 'quiet', pipeline: [{ $changeStream: {} }], cursor: {} });
  return db.command({ getMore: cursor.id, collection: 'quiet', maxTimeMS: 600_000, comment }).then((reply) => ({ reply }), (error) => ({ error }));
}

// The operations with this comment, once there is one.
async function seen(look, comment) {
  for (;;) {
    const found = (await look()).filter((op) => op.command?.comment === comment);
    if (found.length) return found;
    await pause(10);
  }
}

test('currentOp lists what is under way, and killOp ends it', async (t) => {
  const { client, db, server } = await mongo(t, [], { appName: 'looker' });
  await db.createCollection('quiet');
  const admin = (await mongoClient(t, server.mongo)).db('admin');
  const ended = waiting(db, 'one');
  const [op] = await seen(async () => (await admin.command({ currentOp: 1 })).inprog, 'one');
  assert.equal(op.op, 'getmore');
  assert.equal(op.appName, 'looker');
  assert.equal(op.active, true);
  assert.match(op.client, /^127\.0\.0\.1:\d+$/);
  assert.equal(typeof op.opid, 'number');
  assert.ok(op.microsecs_running >= 0);
  assert.ok(op.lsid.id);
  const [again] = await seen(() => admin.aggregate([{ $currentOp: { allUsers: true } }, { $match: { op: 'getmore' } }]).toArray(), 'one');
  assert.equal(again.opid, op.opid);
  // fields besides are a filter
  assert.deepEqual((await admin.command({ currentOp: 1, op: 'insert' })).inprog, []);
  assert.equal((await admin.command({ currentOp: 1, opid: op.opid })).inprog.length, 1);
  assert.equal((await admin.command({ currentOp: 1, $ownOps: true, opid: op.opid })).inprog.length, 1);

  assert.equal((await admin.command({ killOp: 1, op: 2147483647 })).info, 'attempting to kill op');
  assert.equal((await admin.command({ killOp: 1, op: op.opid })).info, 'attempting to kill op');
  assert.equal((await ended).error?.code, 11601);
  assert.deepEqual((await admin.command({ currentOp: 1, opid: op.opid })).inprog, []);
  // the connection goes on
  assert.equal((await db.command({ ping: 1 })).ok, 1);
  await assert.rejects(admin.command({ killOp: 1, op: 'x' }), { code: 14 });
  await assert.rejects(db.command({ currentOp: 1 }), { code: 13 });
  await assert.rejects(db.aggregate([{ $currentOp: {} }]).toArray(), { code: 73 });
  await assert.rejects(admin.aggregate([{ $currentOp: { idleCursors: true } }]).toArray(), { code: 238 });
  await client.close();
});

test('a query that computes for long can be ended', async (t) => {
  const { client, db } = await mongo(t);
  const admin = client.db('admin');
  await db.collection('n').insertMany(Array.from({ length: 400 }, (_, i) => ({ _id: i })));
  const three = { $lookup: { from: 'n', pipeline: [], as: 'x' } };
  const ended = db.command({
    aggregate: 'n', comment: 'long', cursor: {},
    pipeline: [three, { $unwind: '$x' }, { ...three, $lookup: { ...three.$lookup, as: 'y' } }, { $unwind: '$y' },
      { $group: { _id: { $mod: [{ $add: ['$_id', '$x._id', '$y._id'] }, 7] }, n: { $sum: 1 } } }],
  }).then(() => null, (error) => error);
  // it may be over before it is looked for
  const op = await Promise.race([seen(async () => (await admin.command({ currentOp: 1 })).inprog, 'long').then(([op]) => op), ended.then(() => null)]);
  if (op) await admin.command({ killOp: 1, op: op.opid });
  const error = await ended;
  // it may have come to a limit of its own before
  assert.ok(error === null || [11601, 16500, 50, 146].includes(error.code), String(error));
});

test('operations of another account are neither seen nor ended', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const made = await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'acme' } });
  const url = (user, key) => server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://${user}:${encodeURIComponent(key)}@`);
  const own = await mongoClient(t, url('default', emulatorKey));
  const other = await mongoClient(t, url('acme', made.json.keys.primary));
  await own.db('shop').createCollection('quiet');
  await other.db('shop').collection('c').insertOne({});
  const ended = waiting(own.db('shop'), 'mine');
  const [op] = await seen(async () => (await own.db('admin').command({ currentOp: 1 })).inprog, 'mine');
  assert.ok((await other.db('admin').command({ currentOp: 1 })).inprog.every((one) => one.command?.comment !== 'mine'));
  assert.ok((await other.db('admin').aggregate([{ $currentOp: { allUsers: true } }]).toArray()).every((one) => one.command?.comment !== 'mine'));
  await other.db('admin').command({ killOp: 1, op: op.opid });
  assert.equal((await own.db('admin').command({ currentOp: 1, opid: op.opid })).inprog.length, 1);
  await own.db('admin').command({ killOp: 1, op: op.opid });
  assert.equal((await ended).error?.code, 11601);
});

test('a user without the right sees and ends its own operations alone', async (t) => {
  const { client, db, server } = await mongo(t);
  await db.createCollection('quiet');
  await db.command({ createUser: 'ann', pwd: 'secret', roles: ['readWrite'] });
  await client.db('admin').command({ createUser: 'boss', pwd: 'secret', roles: ['clusterAdmin'] });
  const as = (user, source) => mongoClient(t, server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://${user}:secret@`) + `/?authSource=${source}`);
  const ann = (await as('ann', 'shop')).db('admin');
  const boss = (await as('boss', 'admin')).db('admin');
  const ended = waiting(db, 'theirs');
  const [op] = await seen(async () => (await boss.command({ currentOp: 1 })).inprog, 'theirs');
  await assert.rejects(ann.command({ currentOp: 1 }), { code: 13 });
  await assert.rejects(ann.aggregate([{ $currentOp: { allUsers: true } }]).toArray(), { code: 13 });
  assert.ok((await ann.command({ currentOp: 1, $ownOps: true })).inprog.every((one) => one.opid !== op.opid));
  await ann.command({ killOp: 1, op: op.opid });
  assert.equal((await boss.command({ currentOp: 1, opid: op.opid })).inprog.length, 1);
  await boss.command({ killOp: 1, op: op.opid });
  assert.equal((await ended).error?.code, 11601);
});

test('$indexStats counts how often an index was used', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await c.insertMany([{ a: 1, b: 1 }, { a: 2, b: 2 }]);
  await c.createIndex({ a: 1 });
  await c.createIndex({ b: 1 });
  for (let i = 0; i < 3; i++) await c.find({ a: 1 }).toArray();
  await c.find({ b: 2 }, { hint: 'b_1' }).toArray();
  await c.find({ c: 2 }).toArray();
  const stats = Object.fromEntries((await c.aggregate([{ $indexStats: {} }]).toArray()).map((one) => [one.name, one]));
  assert.deepEqual(Object.keys(stats).sort(), ['_id_', 'a_1', 'b_1']);
  assert.equal(Number(stats.a_1.accesses.ops), 3);
  assert.equal(Number(stats.b_1.accesses.ops), 1);
  assert.deepEqual(stats.a_1.key, { a: 1 });
  assert.deepEqual(stats.a_1.spec, { v: 2, key: { a: 1 }, name: 'a_1' });
  assert.ok(stats.a_1.accesses.since instanceof Date);
  await assert.rejects(c.aggregate([{ $indexStats: { a: 1 } }]).toArray(), { code: 28803 });
  assert.deepEqual(await db.collection('none').aggregate([{ $indexStats: {} }]).toArray(), []);
});
