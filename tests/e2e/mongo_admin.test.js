// Commands of administrators and tools, through the driver.
import test from 'node:test';
import assert from 'node:assert/strict';
import { mongo } from './mongo.js';

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
  for (const name of ['shutdown', 'setParameter', 'logRotate', 'top', 'setDefaultRWConcern']) {
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
