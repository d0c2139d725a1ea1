// Commands of administrators and tools, through the driver.
import test from 'node:test';
import assert from 'node:assert/strict';
import { cpSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Long } from 'mongodb';
import { mongo, mongoClient } from './mongo.js';
import { signed } from './rest.js';
import { scratch, Server } from './server.js';

const code = (number, text) => (error) => {
  assert.equal(error.code, number, error.message);
  if (text) assert.match(error.message, text);
  return true;
};

test('what Compass and mongosh ask at the start is answered, and Atlas is denied', async (t) => {
  const { client } = await mongo(t);
  const admin = client.db('admin');
  await assert.rejects(admin.command({ atlasVersion: 1 }), code(59));
  await assert.rejects(admin.command({ getParameter: 'foo' }), code(72));
  assert.equal((await admin.command({ getParameter: 1, featureCompatibilityVersion: 1 })).featureCompatibilityVersion.version, '7.0');
  assert.deepEqual((await admin.command({ getLog: 'startupWarnings' })).log, []);
  const status = await admin.command({ connectionStatus: 1, showPrivileges: true });
  assert.deepEqual(status.authInfo, { authenticatedUsers: [], authenticatedUserRoles: [], authenticatedUserPrivileges: [] });
  assert.ok(Number.isInteger((await admin.command({ serverStatus: 1 })).uptime));
  assert.equal((await admin.command({ hostInfo: 1 })).system.cpuAddrSize, 64);
});

test('settings of a server are told as they are, and cannot be made others', async (t) => {
  const { client, db } = await mongo(t);
  const admin = client.db('admin');
  assert.deepEqual((await admin.command({ getDefaultRWConcern: 1 })).defaultWriteConcern, { w: 'majority', wtimeout: 0 });
  await admin.command({ setFeatureCompatibilityVersion: '7.0' });
  await assert.rejects(admin.command({ setFeatureCompatibilityVersion: '6.0' }), code(2));
  assert.deepEqual(await db.command({ profile: -1 }).then(({ was, slowms }) => [was, slowms]), [0, 100]);
  await assert.rejects(db.command({ profile: 2 }), code(238));
  await assert.rejects(db.command({ profile: 7 }), code(2));
  await assert.rejects(admin.command({ replSetGetStatus: 1 }), code(76));
  for (const name of ['shutdown', 'setParameter', 'logRotate', 'setDefaultRWConcern']) {
    await assert.rejects(admin.command({ [name]: 1 }), code(238), name);
  }
});

test('indexes have a size, and validate counts the keys of each', async (t) => {
  const { client, db } = await mongo(t);
  const c = db.collection('sized');
  await c.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, a: i, tags: ['x', `t${i}`, 'y'], some: i % 2 ? i : undefined })), { ignoreUndefined: true });
  await c.createIndexes([{ key: { a: 1 }, name: 'a' }, { key: { tags: 1 }, name: 'tags' }, { key: { some: 1 }, name: 'some', sparse: true }]);
  const all = await db.command({ validate: 'sized' });
  assert.deepEqual(all.keysPerIndex, { _id_: 300, a: 300, tags: 900, some: 150 });
  assert.deepEqual([all.valid, all.warnings, all.nIndexes], [true, [], 4]);
  assert.deepEqual((await db.command({ validate: 'sized', metadata: true })).keysPerIndex, { _id_: 0 });
  const stats = await db.command({ collStats: 'sized' });
  assert.deepEqual(Object.keys(stats.indexSizes).sort(), ['_id_', 'a', 'some', 'tags']);
  assert.ok(stats.indexSizes.tags > stats.indexSizes.a && stats.indexSizes.a > 0, JSON.stringify(stats.indexSizes));
  assert.equal(stats.totalIndexSize, Object.values(stats.indexSizes).reduce((sum, size) => sum + size));
  const whole = await db.command({ dbStats: 1 });
  assert.equal(whole.indexSize, stats.totalIndexSize);
  assert.equal(whole.totalSize, whole.storageSize + whole.indexSize);
  assert.equal((await db.command({ dbStats: 1, scale: 1024 })).indexSize, whole.indexSize / 1024);
  const [{ storageStats }] = await c.aggregate([{ $collStats: { storageStats: {} } }]).toArray();
  assert.equal(storageStats.totalIndexSize, stats.totalIndexSize);
  await client.db('shop').dropCollection('sized');
});

test('find takes allowDiskUse as aggregate does', async (t) => {
  const { db } = await mongo(t, ['--set', 'query.memory_bytes_max=65536']);
  const c = db.collection('long');
  await c.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i, n: (i * 7919) % 1000, text: 'x'.repeat(500) })));
  await db.createCollection('seen', { viewOn: 'long', pipeline: [{ $set: { m: '$n' } }] });
  for (const allowDiskUse of [true, false, undefined]) { // without the disk it takes several passes
    const found = await c.find({}, { allowDiskUse }).sort({ n: 1 }).toArray();
    assert.deepEqual(found.map(({ n }) => n), Array.from({ length: 1000 }, (_, i) => i));
  }
  await assert.rejects(db.collection('seen').find({}, { allowDiskUse: false }).sort({ m: 1 }).toArray(), { code: 292 });
  assert.equal((await db.collection('seen').find({}).sort({ m: 1 }).toArray()).length, 1000);
  await assert.rejects(db.command({ find: 'long', allowDiskUse: 1 }), { code: 14 });
});

test('top tells how often a collection was asked for what, by every API', async (t) => {
  const { server, client, db } = await mongo(t);
  const c = db.collection('c');
  await c.insertOne({ _id: 1 });
  await c.insertMany([{ _id: 2 }, { _id: 3 }]);
  await c.updateOne({ _id: 1 }, { $set: { a: 1 } });
  await c.deleteOne({ _id: 3 });
  await c.find({}, { batchSize: 1 }).toArray(); // 2 documents: a find and a getMore or two
  await c.findOne({ _id: 2 });
  const top = async () => (await client.db('admin').command({ top: 1 })).totals;
  const counts = ({ queries, insert, update, remove }) => [queries, insert, update, remove].map(({ count }) => Number(count));
  const first = (await top())['shop.c'];
  assert.deepEqual(counts(first), [2, 2, 1, 1]);
  assert.ok(Number(first.getmore.count) >= 1);
  assert.ok(Number(first.insert.time) > 0 && Number(first.total.time) >= Number(first.insert.time));
  assert.equal(Number(first.total.count), Number(first.readLock.count) + Number(first.writeLock.count));
  assert.equal(Number(first.writeLock.count), 4);
  const read = await signed(server, 'GET', '/dbs/shop/colls/c/docs/1', { headers: { 'x-ms-documentdb-partitionkey': '[{}]' } });
  assert.equal(read.status, 200, read.text);
  const second = await top();
  assert.deepEqual(counts(second['shop.c']), [3, 2, 1, 1]);
  assert.equal(second.note, 'all times in microseconds');
  await assert.rejects(db.command({ top: 1 }), code(13));
  await assert.rejects(client.db('admin').command({ top: 1, more: 1 }), code(40415));
});

test('checkMetadataConsistency holds the catalogue against the nodes', async (t) => {
  const { client, db } = await mongo(t, ['--node', 'west=memory:', '--node', 'east=memory:']);
  const admin = client.db('admin');
  await db.collection('plain').insertOne({ _id: 1 });
  await admin.command({ shardCollection: 'shop.sharded', key: { _id: 'hashed' }, numInitialChunks: 6 });
  for (const [on, value] of [[admin, 1], [db, 1], [db, 'sharded'], [db, 'missing'], [client.db('nowhere'), 1]]) {
    const { cursor } = await on.command({ checkMetadataConsistency: value });
    assert.deepEqual([cursor.firstBatch, cursor.id.toString()], [[], '0'], `${value}`);
  }
  assert.equal((await db.command({ checkMetadataConsistency: 1, cursor: { batchSize: 2 } })).ok, 1);
  await assert.rejects(db.command({ checkMetadataConsistency: 2 }), code(9));
  await assert.rejects(db.command({ checkMetadataConsistency: 1, checkIndexes: true }), code(238));
  await assert.rejects(db.command({ checkMetadataConsistency: 1, nothing: true }), code(40415));
});

test('a partition that its node has lost is told by checkMetadataConsistency', async (t) => {
  const directory = scratch(t);
  const nodes = ['a', 'b'].flatMap((name) => ['--node', `${name}=rocksdb:${join(directory, name)}`]);
  const life = async (deed) => {
    const server = await Server.start(t, ['--dev', ...nodes]);
    const client = await mongoClient(t, server.mongo);
    const outcome = await deed(client.db('admin'), client);
    await client.close();
    await server.stop();
    return outcome;
  };
  await life(async (admin, client) => {
    await admin.command({ shardCollection: 'shop.c', key: { n: 1 } });
    const [{ shard }] = await client.db('config').collection('chunks').find().toArray();
    if (shard === 'b') await admin.command({ moveChunk: 'shop.c', find: { n: 1 }, to: 'a' });
  });
  cpSync(join(directory, 'b'), join(directory, 'saved'), { recursive: true });
  await life((admin) => admin.command({ moveChunk: 'shop.c', find: { n: 1 }, to: 'b' }));
  // the node comes back as it was before
  rmSync(join(directory, 'b'), { recursive: true });
  renameSync(join(directory, 'saved'), join(directory, 'b'));
  const told = await life(async (admin) => {
    const first = await admin.command({ checkMetadataConsistency: 1, cursor: { batchSize: 0 } });
    const rest = await admin.command({ getMore: Long.fromValue(first.cursor.id), collection: first.cursor.ns.split('.').slice(1).join('.') });
    return [...first.cursor.firstBatch, ...rest.cursor.nextBatch];
  });
  assert.deepEqual(told.map(({ type, details }) => [type, details.namespace, details.shard]), [['MissingLocalCollection', 'shop.c', 'b']]);
});
