// Sharded collections through npm `mongodb`: hashed and ranged keys, routing, another key under load, chunks.
import assert from 'node:assert/strict';
import test from 'node:test';
import { join } from 'node:path';
import { Long, MaxKey, MinKey } from 'mongodb';
import { mongo, mongoClient } from './mongo.js';
import { signed } from './rest.js';
import { scratch, Server } from './server.js';

const quick = ['--set', 'migration.pause_ms=20ms'];

async function sharded(t, key, { documents = [], args = [], ...options } = {}) {
  const all = await mongo(t, [...quick, ...args]);
  const admin = all.client.db('admin');
  await admin.command({ shardCollection: 'shop.people', key, ...options });
  const people = all.db.collection('people');
  if (documents.length) await people.insertMany(documents);
  return { ...all, admin, people };
}

const numbered = (count) => Array.from({ length: count }, (_, n) => ({ _id: n, region: `r${n % 37}`, day: n % 365, n }));
const byId = (documents) => documents.sort((a, b) => a._id - b._id);

test('shardCollection answers on any database, again with the same key, and not with another', async (t) => {
  const { db, client } = await mongo(t);
  const { _t, collectionsharded, ok } = await db.command({ shardCollection: 'admin.people', key: { region: 'hashed' } });
  assert.deepEqual({ _t, collectionsharded, ok }, { _t: 'ShardCollectionResponse', collectionsharded: 'admin.people', ok: 1 });
  assert.equal((await client.db('admin').command({ enableSharding: 'shop' })).ok, 1);
  assert.equal((await db.command({ shardCollection: 'admin.people', key: { region: 'hashed' } })).ok, 1);
  await assert.rejects(db.command({ shardCollection: 'admin.people', key: { region: 1 } }), { code: 23, codeName: 'AlreadyInitialized' });
  await assert.rejects(db.command({ shardCollection: 'shop.a', key: {} }), { code: 2, message: /Shard key is empty/ });
  await assert.rejects(db.command({ shardCollection: 'shop.a', key: { a: -1 } }), { code: 2, message: /at most one 'hashed' field/ });
  await assert.rejects(db.command({ shardCollection: 'shop.a', key: { a: 'hashed', b: 'hashed' } }), { code: 2 });
  await assert.rejects(db.command({ shardCollection: 'shop.a', key: { a: 'hashed' }, unique: true }), { code: 72 });
  await assert.rejects(db.command({ shardCollection: 'shop.a', key: { a: 1, b: 'hashed' } }), { code: 238, message: /compound/ });
  await assert.rejects(db.command({ shardCollection: 'shop.a', key: { a: 1, b: 1, c: 1, d: 1 } }), { code: 238, message: /at most 3/ });
  await assert.rejects(db.command({ shardCollection: 'shop', key: { a: 1 } }), { code: 73 });
});

for (const [what, key, options] of [
  ['hashed over 16 chunks', { region: 'hashed' }, { numInitialChunks: 16 }],
  ['hashed by _id', { _id: 'hashed' }, { numInitialChunks: 4 }],
  ['ranged', { region: 1 }, {}],
  ['ranged by two fields', { region: 1, day: 1 }, {}],
  ['by a nested field', { 'at.place': 'hashed' }, { numInitialChunks: 4 }],
])
  test(`documents of a collection ${what} are found, changed and deleted`, async (t) => {
    const documents = numbered(400).map((d) => ({ ...d, at: { place: d.region } }));
    const { admin, people } = await sharded(t, key, { documents, ...options });
    if (!options.numInitialChunks) {
      await admin.command({ split: 'shop.people', middle: key.day ? { region: 'r2', day: 0 } : { region: 'r2' } });
      await admin.command({ split: 'shop.people', find: key.day ? { region: 'r3', day: 1 } : { region: 'r3' } });
    }
    assert.equal(await people.estimatedDocumentCount(), 400);
    assert.deepEqual(byId(await people.find().toArray()), documents);
    assert.deepEqual(await people.findOne({ _id: 7 }), documents[7]);
    assert.deepEqual(await people.findOne({ region: 'r7', _id: 7 }), documents[7]);
    assert.deepEqual(await people.findOne({ 'at.place': 'r7', _id: 7 }), documents[7]);
    assert.equal(await people.findOne({ region: 'r8', _id: 7 }), null);
    assert.equal((await people.find({ region: 'r5' }).toArray()).length, documents.filter((d) => d.region === 'r5').length);
    assert.equal((await people.find({ region: { $in: ['r5', 'r6'] } }).toArray()).length, documents.filter((d) => ['r5', 'r6'].includes(d.region)).length);
    assert.equal((await people.find({ region: { $gte: 'r2', $lt: 'r3' } }).toArray()).length,
      documents.filter((d) => d.region >= 'r2' && d.region < 'r3').length);
    assert.deepEqual((await people.find({}, { sort: { n: -1 }, skip: 3, limit: 4 }).toArray()).map((d) => d.n), [396, 395, 394, 393]);

    assert.equal((await people.updateOne({ _id: 9 }, { $inc: { n: 1000 } })).modifiedCount, 1);
    assert.equal((await people.updateOne({ _id: 9, region: 'r9', day: 9, 'at.place': 'r9' }, { $inc: { n: 1000 } })).modifiedCount, 1);
    assert.equal((await people.findOne({ n: 2009 }))._id, 9);
    assert.equal((await people.updateMany({ n: { $lt: 100 } }, { $set: { young: true } })).modifiedCount, 99);
    const changed = await people.findOneAndUpdate({ _id: 50 }, { $set: { seen: 1 } }, { returnDocument: 'after' });
    assert.equal(changed.seen, 1);
    assert.equal((await people.replaceOne({ _id: 51 }, { region: 'r14', day: 51, at: { place: 'r14' }, new: true })).modifiedCount, 1);
    assert.equal((await people.findOne({ _id: 51 })).new, true);
    assert.equal((await people.findOneAndDelete({ _id: 52 })).n, 52);
    assert.equal((await people.deleteOne({ n: 53 })).deletedCount, 1);
    assert.equal((await people.deleteMany({ n: { $gte: 390 } })).deletedCount, 11);
    assert.equal(await people.estimatedDocumentCount(), 387);
    await assert.rejects(people.insertOne(documents[7]), { code: 11000 });
  });

test('the shard key of a document is missing, null, or no array; and does not change', async (t) => {
  const { people } = await sharded(t, { region: 'hashed' }, { numInitialChunks: 4 });
  await people.insertMany([{ _id: 1 }, { _id: 2, region: null }, { _id: 3, region: { a: 1 } }, { _id: 4, region: 'x' }]);
  assert.deepEqual((await people.find({ region: null }).toArray()).map((d) => d._id).sort(), [1, 2]);
  assert.deepEqual((await people.find({ region: { a: 1 } }).toArray()).map((d) => d._id), [3]);
  assert.deepEqual((await people.find({ region: { $exists: false } }).toArray()).map((d) => d._id), [1]);
  await assert.rejects(people.insertOne({ _id: 5, region: ['x'] }), { code: 61, message: /cannot contain array values/ });
  await assert.rejects(people.updateOne({ _id: 4 }, { $set: { region: 'y' } }), { code: 66 });
  await assert.rejects(people.updateOne({ _id: 4 }, { $set: { region: [1] } }), { code: 61 });
  await assert.rejects(people.replaceOne({ _id: 4 }, { a: 1 }), { code: 66 });
  assert.equal((await people.updateOne({ _id: 4 }, { $set: { region: 'x', a: 1 } })).modifiedCount, 1);
  for (const id of [1, 2, 3]) assert.equal((await people.updateOne({ _id: id }, { $set: { a: 2 } })).modifiedCount, 1);
  assert.equal((await people.deleteMany({ a: 2 })).deletedCount, 3);
});

test('an upsert names the whole shard key', async (t) => {
  const { people } = await sharded(t, { region: 1, day: 1 });
  await assert.rejects(people.updateOne({ _id: 1 }, { $set: { a: 1 } }, { upsert: true }), { code: 61, message: /could not extract exact shard key/ });
  await assert.rejects(people.updateOne({ region: 'x', day: { $gt: 1 } }, { $set: { a: 1 } }, { upsert: true }), { code: 61 });
  assert.equal((await people.updateOne({ region: 'x', day: 1 }, { $set: { a: 1 } }, { upsert: true })).upsertedCount, 1);
  assert.equal((await people.updateOne({ region: 'x', day: 1 }, { $set: { a: 2 } }, { upsert: true })).modifiedCount, 1);
  const made = await people.findOneAndReplace({ region: 'y', day: { $eq: 2 }, _id: 'k' }, { region: 'y', day: 2, b: 1 }, { upsert: true, returnDocument: 'after' });
  assert.deepEqual(made, { _id: 'k', region: 'y', day: 2, b: 1 });
  await assert.rejects(people.replaceOne({ region: 'z', day: 3 }, { region: 'other', day: 3 }, { upsert: true }), { code: 66 });
});

test('_id is unique for each value of the shard key', async (t) => {
  const { people } = await sharded(t, { region: 'hashed' }, { numInitialChunks: 4 });
  await people.insertMany([{ _id: 1, region: 'a' }, { _id: 1, region: 'b' }]);
  await assert.rejects(people.insertOne({ _id: 1, region: 'a' }), { code: 11000 });
  assert.equal((await people.find({ _id: 1 }).toArray()).length, 2);
  assert.equal((await people.deleteOne({ _id: 1 })).deletedCount, 1);
});

test('the documents of a collection survive that it is sharded, and sharded otherwise, under load', async (t) => {
  const { db, client } = await mongo(t, quick);
  const admin = client.db('admin');
  const people = db.collection('people');
  await people.insertMany(numbered(3000));
  const written = new Map();
  let running = true;
  const worker = async (nth) => {
    for (let i = 0; running; i++) {
      const _id = 10_000 + nth * 100_000 + i;
      await people.insertOne({ _id, region: `r${i % 37}`, day: i % 365, n: 0 });
      written.set(_id, 0);
      if (i % 3 === 0) {
        assert.equal((await people.updateOne({ _id }, { $inc: { n: 1 } })).modifiedCount, 1);
        written.set(_id, 1);
      }
      if (i % 5 === 0) {
        assert.equal((await people.deleteOne({ _id })).deletedCount, 1);
        written.delete(_id);
      }
      const own = await people.findOneAndUpdate({ _id: nth }, { $inc: { turns: 1 } }, { returnDocument: 'after' });
      assert.equal(own.turns, i + 1);
    }
  };
  const workers = [0, 1, 2, 3].map(worker);
  try {
    await admin.command({ shardCollection: 'shop.people', key: { region: 'hashed' }, numInitialChunks: 4 });
    await admin.command({ reshardCollection: 'shop.people', key: { day: 1 } });
    await admin.command({ split: 'shop.people', middle: { day: 100 } });
    await admin.command({ refineCollectionShardKey: 'shop.people', key: { day: 1, region: 1 } });
  } finally {
    running = false;
    await Promise.all(workers);
  }
  const stored = await people.find().toArray();
  assert.equal(stored.length, 3000 + written.size);
  assert.equal(new Set(stored.map((d) => d._id)).size, stored.length);
  for (const d of stored) assert.equal(d.n, d._id < 10_000 ? d._id : written.get(d._id));
});

test('documents that have an array in the way keep a collection from being sharded', async (t) => {
  const { db } = await mongo(t, quick);
  await db.collection('people').insertMany([{ _id: 1, region: 'a' }, { _id: 2, region: [1] }]);
  await assert.rejects(db.command({ shardCollection: 'shop.people', key: { region: 1 } }), { code: 61, message: /nothing was changed/ });
  assert.equal(await db.collection('people').estimatedDocumentCount(), 2);
  await db.collection('people').deleteOne({ _id: 2 });
  assert.equal((await db.command({ shardCollection: 'shop.people', key: { region: 1 } })).ok, 1);
});

test('a unique index that does not begin with the shard key keeps a collection from being sharded', async (t) => {
  const { db } = await mongo(t, quick);
  const people = db.collection('people');
  await db.collection('others').createIndex({ mail: 1 }, { unique: true });
  await assert.rejects(db.command({ shardCollection: 'shop.others', key: { region: 1 } }), { code: 72, message: /mail_1/ });
  await people.createIndex({ region: 1, mail: 1 }, { unique: true });
  await db.command({ shardCollection: 'shop.people', key: { region: 1 } });
  await people.insertOne({ region: 'a', mail: 'x' });
  await assert.rejects(people.insertOne({ region: 'a', mail: 'x' }), { code: 11000 });
});

test('a collection that is not sharded may be so large, and its error names shardCollection', async (t) => {
  const { db } = await mongo(t, [...quick, '--set', 'container.fixed_bytes_max=65536']);
  const people = db.collection('people');
  const filler = 'x'.repeat(1000);
  const fill = async (from) => { for (let i = from; i < from + 100; i++) await people.insertOne({ _id: i, filler }); };
  await assert.rejects(fill(0), { code: 14031, message: /shardCollection/ });
  await db.command({ shardCollection: 'shop.people', key: { _id: 'hashed' } });
  await fill(1000);
});

// --- Chunks and what `config` tells of them

const bounds = (chunks) => chunks.map(({ min, max, shard }) => [min, max, shard]);

async function twoNodes(t, key, options = {}) {
  const all = await sharded(t, key, { args: ['--node', 'west=memory:', '--node', 'east=memory:'], ...options });
  const config = all.client.db('config');
  const chunks = () => config.collection('chunks').find({}, { sort: { min: 1 } }).toArray();
  return { ...all, config, chunks };
}

test('chunks are split, moved and merged, and config shows them', async (t) => {
  const { admin, people, config, chunks } = await twoNodes(t, { day: 1 }, { documents: numbered(365) });
  assert.deepEqual((await config.collection('shards').find({}, { projection: { state: 1 }, sort: { _id: 1 } }).toArray()),
    [{ _id: 'east', state: 1 }, { _id: 'west', state: 1 }]);
  const [{ shard: home }] = await chunks();
  const away = home === 'west' ? 'east' : 'west';
  assert.deepEqual(bounds(await chunks()), [[{ day: new MinKey() }, { day: new MaxKey() }, home]]);
  await admin.command({ split: 'shop.people', middle: { day: 100 } });
  await admin.command({ split: 'shop.people', find: { day: 50 } });
  assert.equal((await chunks()).length, 3);
  await assert.rejects(admin.command({ split: 'shop.people', middle: { day: 100 } }), { code: 2, message: /boundary key/ });
  await assert.rejects(admin.command({ split: 'shop.people', find: { region: 1 } }), { code: 61 });
  await assert.rejects(admin.command({ split: 'shop.people', find: { day: 1 }, middle: { day: 5 } }), { code: 72 });
  await assert.rejects(admin.command({ split: 'shop.nobody', find: { day: 1 } }), { code: 26 });
  const middle = (await chunks())[1].min.day;
  await admin.command({ moveChunk: 'shop.people', find: { day: 364 }, to: away });
  assert.deepEqual(bounds(await chunks()), [[{ day: new MinKey() }, { day: middle }, home], [{ day: middle }, { day: 100 }, home], [{ day: 100 }, { day: new MaxKey() }, away]]);
  await assert.rejects(admin.command({ moveChunk: 'shop.people', find: { day: 1 }, to: 'north' }), { code: 70 });
  await admin.command({ moveChunk: 'shop.people', bounds: [{ day: middle }, { day: 100 }], to: away });
  await admin.command({ moveRange: 'shop.people', min: { day: 200 }, max: { day: 300 }, toShard: home });
  assert.deepEqual((await chunks()).slice(2).map((c) => [c.min.day, c.shard]), [[100, away], [200, home], [300, away]]);
  await admin.command({ mergeChunks: 'shop.people', bounds: [{ day: new MinKey() }, { day: 100 }] });
  await admin.command({ mergeChunks: 'shop.people', bounds: [{ day: 100 }, { day: new MaxKey() }] });
  assert.deepEqual(bounds(await chunks()).map(([min, max]) => [min, max]), [[{ day: new MinKey() }, { day: 100 }], [{ day: 100 }, { day: new MaxKey() }]]);
  assert.deepEqual(byId(await people.find().toArray()), numbered(365));
  assert.deepEqual((await people.find({ day: { $gte: 90, $lt: 110 } }).toArray()).length, 20);
  const [collection] = await config.collection('collections').find({ dropped: { $ne: true }, unsplittable: { $ne: true } }).toArray();
  assert.equal(collection._id, 'shop.people');
  assert.deepEqual(collection.key, { day: 1 });
  assert.ok((await chunks()).every((c) => c.uuid.equals(collection.uuid)));
  const [distribution] = await admin.aggregate([{ $shardedDataDistribution: {} }]).toArray();
  assert.equal(distribution.ns, 'shop.people');
  assert.equal(distribution.shards.reduce((sum, s) => sum + s.numOwnedDocuments, 0), 365);
  const stats = await people.aggregate([{ $collStats: { storageStats: {}, count: {} } }]).toArray();
  assert.deepEqual(stats.map((s) => s.shard).sort(), distribution.shards.map((s) => s.shardName).sort());
  assert.equal(stats.reduce((sum, s) => sum + s.count, 0), 365);
  assert.deepEqual(await config.collection('chunks').aggregate([{ $match: { uuid: collection.uuid } }, { $group: { _id: null, n: { $sum: 1 } } }]).toArray(), [{ _id: null, n: 2 }]);
  const changes = await config.collection('changelog').find({ what: 'moveChunk.from', 'details.note': 'success', ns: 'shop.people' }).toArray();
  assert.ok(changes.length >= 3);
});

test('chunks of a hashed key have bounds of 64 bits that tile them all', async (t) => {
  const { admin, people, chunks } = await twoNodes(t, { region: 'hashed' }, { documents: numbered(500), numInitialChunks: 4 });
  const four = await chunks();
  assert.equal(four.length, 4);
  assert.deepEqual([four[0].min, four[3].max], [{ region: new MinKey() }, { region: new MaxKey() }]);
  for (let i = 1; i < 4; i++) assert.deepEqual(four[i].min, four[i - 1].max);
  await admin.command({ split: 'shop.people', middle: { region: Long.fromString('1234567890123456788') } });
  assert.ok((await chunks()).some((c) => String(c.min.region) === '1234567890123456788'));
  await admin.command({ split: 'shop.people', bounds: [four[0].min, four[0].max] });
  assert.equal((await chunks()).length, 6);
  assert.deepEqual(byId(await people.find().toArray()), numbered(500));
});

test('config is read by filters, sorts and cursors, and not written', async (t) => {
  const { client, config, admin } = await twoNodes(t, { day: 1 });
  const version = await config.collection('version').findOne({}, { projection: { minCompatibleVersion: 0, excluding: 0 } });
  assert.equal(version._id, 1);
  assert.ok(version.clusterId);
  assert.equal((await config.collection('mongos').find({}, { sort: { ping: -1 } }).limit(1).toArray()).length, 1);
  assert.equal(await config.collection('settings').findOne({ _id: 'nothing' }), null);
  assert.equal((await config.collection('settings').findOne({ _id: 'autosplit' })).enabled, true);
  assert.equal(await config.collection('shards').estimatedDocumentCount(), 2);
  assert.deepEqual((await config.collection('shards').distinct('_id')).sort(), ['east', 'west']);
  assert.deepEqual((await config.collection('databases').find().toArray()).map((d) => d._id), ['shop']);
  for (let day = 1; day <= 20; day++) await admin.command({ split: 'shop.people', middle: { day } });
  const some = await config.collection('chunks').find({ shard: { $in: ['east', 'west'] } }, { batchSize: 3, sort: { min: 1 } }).toArray();
  assert.equal(some.length, 21);
  assert.equal(new Set(some.map((c) => String(c._id))).size, 21);
  await assert.rejects(config.collection('shards').insertOne({ _id: 'x' }), { code: 13 });
  await assert.rejects(config.collection('chunks').deleteMany({}), { code: 13 });
  await assert.rejects(config.collection('settings').updateOne({ _id: 'balancer' }, { $set: { stopped: true } }, { upsert: true }), { code: 13 });
  const { shards } = await admin.command({ listShards: 1 });
  assert.deepEqual(shards.map((s) => s._id).sort(), ['east', 'west']);
  assert.equal((await admin.command({ balancerStatus: 1 })).inBalancerRound, false);
  const { balancerCompliant, chunkSize } = await admin.command({ balancerCollectionStatus: 'shop.people' });
  assert.ok(balancerCompliant && chunkSize > 0);
  assert.equal((await admin.command({ flushRouterConfig: 1 })).flushed, true);
  assert.deepEqual(Object.keys((await admin.command({ getShardMap: 1 })).map).sort(), ['east', 'west']);
  await assert.rejects(client.db('shop').command({ listShards: 1 }), { code: 13 });
  await assert.rejects(admin.command({ addShard: 'rs/host:1' }), { code: 238 });
});

test('zones keep values of a ranged key on the shards that have them', async (t) => {
  const documents = Array.from({ length: 60 }, (_, n) => ({ _id: n, region: ['eu', 'us', 'asia'][n % 3], day: n }));
  const { server, admin, people, config, chunks } = await twoNodes(t, { region: 1, day: 1 }, { documents });
  const [{ shard: home }] = await chunks();
  const away = home === 'west' ? 'east' : 'west';
  await admin.command({ addShardToZone: away, zone: 'europe' });
  assert.deepEqual((await config.collection('shards').findOne({ _id: away })).tags, ['europe']);
  const eu = { min: { region: 'eu', day: new MinKey() }, max: { region: 'eu', day: new MaxKey() } };
  await admin.command({ updateZoneKeyRange: 'shop.people', ...eu, zone: 'europe' });
  const [tag] = await config.collection('tags').find({ ns: 'shop.people' }).toArray();
  assert.deepEqual([tag.tag, tag.min, tag.max], ['europe', eu.min, eu.max]);
  await server.until(async () => (await chunks()).some((c) => c.shard === away && c.min.region === 'eu'));
  assert.deepEqual(byId(await people.find().toArray()), documents);
  await assert.rejects(admin.command({ updateZoneKeyRange: 'shop.people', min: { region: 'a', day: 1 }, max: { region: 'b', day: 1 }, zone: 'europe' }), { code: 238 });
  await assert.rejects(admin.command({ addShardToZone: 'north', zone: 'europe' }), { code: 70 });
  await admin.command({ updateZoneKeyRange: 'shop.people', ...eu, zone: null });
  assert.equal(await config.collection('tags').countDocuments({}), 0);
  await admin.command({ removeShardFromZone: away, zone: 'europe' });
  assert.equal((await config.collection('shards').findOne({ _id: away })).tags, undefined);
});

test('custom actions of the hosted service make, change and show databases and collections', async (t) => {
  const { client } = await mongo(t, quick);
  const own = client.db('own');
  const shared = client.db('shared');
  const plain = ({ ok, operationTime, $clusterTime, ...rest }) => rest;
  await own.command({ customAction: 'CreateDatabase' });
  assert.deepEqual(plain(await own.command({ customAction: 'GetDatabase' })), { database: 'own' });
  await assert.rejects(own.command({ customAction: 'CreateDatabase' }), { code: 48 });
  await own.command({ customAction: 'CreateCollection', collection: 'a', offerThroughput: 1000, shardKey: 'at.place' });
  assert.deepEqual(plain(await own.command({ customAction: 'GetCollection', collection: 'a' })),
    { database: 'own', collection: 'a', shardKeyDefinition: { 'at.place': 'hashed' }, provisionedThroughput: 1000 });
  await own.command({ customAction: 'UpdateCollection', collection: 'a', offerThroughput: 2000 });
  assert.equal((await own.command({ customAction: 'GetCollection', collection: 'a' })).provisionedThroughput, 2000);
  await own.command({ customAction: 'CreateCollection', collection: 'b', autoScaleSettings: { maxThroughput: 4000 }, indexes: [{ key: { _id: 1 }, name: '_id_1' }] });
  assert.deepEqual(plain(await own.command({ customAction: 'GetCollection', collection: 'b' })),
    { database: 'own', collection: 'b', provisionedThroughput: 400, autoScaleSettings: { maxThroughput: 4000 } });
  await assert.rejects(own.command({ customAction: 'UpdateCollection', collection: 'b', offerThroughput: 500 }), { code: 2 });
  await assert.rejects(own.command({ customAction: 'CreateCollection', collection: 'c', offerThroughput: 20000 }), (err) => err.code === 2 && err.errorResponse.errMsg === err.message);
  await assert.rejects(own.command({ customAction: 'CreateCollection', collection: 'c', indexes: [{ key: { a: 1 }, name: 'a' }] }), { code: 2 });
  await assert.rejects(own.command({ customAction: 'GetCollection', collection: 'nothing' }), { code: 26 });
  await assert.rejects(own.command({ customAction: 'Dance' }), { code: 2 });
  await shared.command({ customAction: 'CreateDatabase', offerThroughput: 600 });
  await shared.command({ customAction: 'CreateCollection', collection: 'c', shardKey: 'k' });
  assert.deepEqual(plain(await shared.command({ customAction: 'GetCollection', collection: 'c' })), { database: 'shared', collection: 'c', shardKeyDefinition: { k: 'hashed' } });
  await shared.command({ customAction: 'UpdateDatabase', offerThroughput: 800 });
  assert.deepEqual(plain(await shared.command({ customAction: 'GetDatabase' })), { database: 'shared', provisionedThroughput: 800 });
});

test('a throttled write says when to come again, and the charge of a command is told', async (t) => {
  const { db } = await mongo(t, quick, { retryWrites: false, maxPoolSize: 1 });
  await db.command({ customAction: 'CreateCollection', collection: 'slow', offerThroughput: 400, shardKey: 'k' });
  const slow = db.collection('slow');
  await slow.insertOne({ _id: 1, k: 1 });
  const told = await db.command({ getLastRequestStatistics: 1 });
  assert.equal(told.CommandName, 'insert');
  assert.ok(told.RequestCharge > 0);
  const filler = 'x'.repeat(20_000);
  let throttled;
  for (let i = 0; i < 400 && !throttled; i++)
    await slow.insertMany(Array.from({ length: 20 }, (_, n) => ({ k: n, filler }))).catch((err) => (throttled = err));
  assert.equal(throttled.code, 16500);
  assert.match(throttled.message, /RetryAfterMs=\d+/);
});

test('the advisor is told what collections are asked, and metrics count the front', async (t) => {
  const { server, people } = await sharded(t, { day: 1 }, { args: ['--set', 'advise.per_second_max=10000'] });
  for (let i = 0; i < 300; i++) {
    await people.insertOne({ _id: i, day: i % 3, owner: `o${i % 97}` });
    if (i % 4 === 0) await people.find({ owner: `o${i % 97}` }).toArray();
    if (i % 10 === 0) await people.updateOne({ _id: i, day: i % 3 }, { $set: { seen: true } });
  }
  const traffic = await signed(server, 'GET', '/_orrery/containers/shop/people/traffic');
  assert.equal(traffic.status, 200);
  const kinds = new Set(traffic.json.operations.map((op) => op.op));
  for (const kind of ['create', 'query', 'patch']) assert.ok(kinds.has(kind), kind);
  assert.deepEqual(Object.keys(traffic.json.operations.find((op) => op.op === 'query').where), ['/owner']);
  const advice = await signed(server, 'GET', '/_orrery/containers/shop/people/advice');
  assert.equal(advice.json.current.key, '/day');
  assert.ok(advice.json.proposals.some((proposal) => /\/owner/.test(proposal.key)));
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.ok(Number(/orrery_mongo_commands_total\{kind="insert"\} (\d+)/.exec(metrics)[1]) >= 300);
  assert.match(metrics, /orrery_connections\{front="mongo"\} [1-9]/);
});

test('analyzeShardKey tells what a key would be like', async (t) => {
  const { client, db } = await mongo(t);
  const admin = client.db('admin');
  const orders = db.collection('orders');
  await orders.insertMany(Array.from({ length: 600 }, (_, i) => ({ _id: i, tenant: `t${i % 3}`, n: i, deep: { city: i % 60 } })));
  for (let i = 0; i < 20; i++) await orders.find({ tenant: 't1', n: i }).toArray();
  for (let i = 0; i < 60; i++) await orders.find({ 'deep.city': i }).toArray();
  const analyze = (key, options = {}) => admin.command({ analyzeShardKey: 'shop.orders', key, ...options });
  const { keyCharacteristics: tenant, readDistribution: reads } = await analyze({ tenant: 1 });
  assert.equal(Number(tenant.numDocsTotal), 600);
  assert.equal(Number(tenant.numDocsSampled), 600);
  assert.equal(Number(tenant.numDistinctValues), 3);
  assert.equal(tenant.isUnique, false);
  assert.deepEqual(tenant.mostCommonValues.map((one) => [one.value.tenant, Number(one.frequency)]), [['t0', 200], ['t1', 200], ['t2', 200]]);
  assert.equal(tenant.monotonicity.type, 'not monotonic');
  assert.ok(Number(reads.sampleSize.total) >= 80);
  assert.ok(reads.percentageOfScatterGatherReads > 50, JSON.stringify(reads));
  const city = await analyze({ 'deep.city': 'hashed' });
  assert.ok(city.readDistribution.percentageOfSingleShardReads > 50, JSON.stringify(city.readDistribution));
  const { keyCharacteristics: grows, readDistribution } = await analyze({ n: 1 }, { readWriteDistribution: false });
  assert.equal(grows.monotonicity.type, 'monotonic');
  assert.equal(readDistribution, undefined);
  assert.equal((await analyze({ _id: 1 })).keyCharacteristics.isUnique, true);
  const few = (await analyze({ n: 1 }, { sampleSize: 50 })).keyCharacteristics;
  assert.ok(Number(few.numDocsSampled) > 5 && Number(few.numDocsSampled) < 200, String(few.numDocsSampled));
  await assert.rejects(analyze({ n: 1 }, { sampleSize: 5, sampleRate: 1 }), { code: 72 });
  await assert.rejects(analyze({}), { code: 2 });
  await assert.rejects(admin.command({ analyzeShardKey: 'shop.none', key: { a: 1 } }), { code: 26 });
});

test('samplesPerSecond bounds what is recorded, and outlives a restart', async (t) => {
  const node = `local=rocksdb:${join(scratch(t), 'node')}`;
  const started = async () => {
    const server = await Server.start(t, ['--dev', '--node', node]);
    const client = await mongoClient(t, server.mongo);
    return { server, orders: client.db('shop').collection('orders'), admin: client.db('admin') };
  };
  const { server, orders, admin } = await started();
  const recorded = async (from) => {
    const { readDistribution } = await from.command({ analyzeShardKey: 'shop.orders', key: { n: 1 }, keyCharacteristics: false });
    return Number(readDistribution.sampleSize.total);
  };
  const configure = (from, body) => from.command({ configureQueryAnalyzer: 'shop.orders', ...body });
  await orders.insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: i, n: i })));
  await assert.rejects(configure(admin, { mode: 'full' }), { code: 72 });
  await assert.rejects(configure(admin, { mode: 'full', samplesPerSecond: 0 }), { code: 72 });
  await assert.rejects(configure(admin, { mode: 'off', samplesPerSecond: 1 }), { code: 72 });
  await assert.rejects(configure(admin, { mode: 'half' }), { code: 2 });
  for (let i = 0; i < 20; i++) await orders.find({ n: i }).toArray();
  const before = await recorded(admin);
  assert.ok(before >= 20, `${before}`);
  const off = await configure(admin, { mode: 'off' });
  assert.deepEqual([off.oldConfiguration, off.newConfiguration], [{ mode: 'full' }, { mode: 'off' }]);
  for (let i = 0; i < 20; i++) await orders.find({ n: i }).toArray();
  assert.equal(await recorded(admin), before);
  // one in a thousand seconds: the first
  const rare = await configure(admin, { mode: 'full', samplesPerSecond: 0.001 });
  assert.deepEqual([rare.oldConfiguration, rare.newConfiguration], [{ mode: 'off' }, { mode: 'full', samplesPerSecond: 0.001 }]);
  for (let i = 0; i < 20; i++) await orders.find({ n: i }).toArray();
  assert.equal(await recorded(admin), before + 1);
  server.process.kill('SIGKILL');
  await server.ended;
  const again = await started();
  assert.deepEqual((await configure(again.admin, { mode: 'off' })).oldConfiguration, { mode: 'full', samplesPerSecond: 0.001 });
});

test('$listSampledQueries shows what was sampled, to its own account', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const client = await mongoClient(t, server.mongo);
  const shop = client.db('shop'), admin = client.db('admin');
  const sampled = async (options = {}) => (await admin.aggregate([{ $listSampledQueries: options }]).toArray());
  await shop.collection('orders').insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 2 }]);
  await shop.collection('others').insertOne({ _id: 1 });
  await shop.collection('orders').findOne({ n: 1 });
  assert.deepEqual(await sampled(), [], 'nobody asked for samples');
  await admin.command({ configureQueryAnalyzer: 'shop.orders', mode: 'full', samplesPerSecond: 1000 });
  const orders = shop.collection('orders');
  await orders.find({ n: { $gt: 1 } }, { collation: { locale: 'fr' } }).toArray();
  await orders.findOne({ _id: 1 });
  await orders.aggregate([{ $match: { n: 2 } }, { $group: { _id: null } }]).toArray();
  await orders.updateMany({ n: 1 }, { $set: { seen: true } });
  await orders.updateOne({ _id: 2 }, { $set: { seen: true } });
  await orders.deleteOne({ n: 7 });
  await orders.distinct('n', { n: 2 });
  await orders.insertOne({ _id: 3 });
  await shop.collection('others').findOne({ n: 1 });
  const list = await sampled({ namespace: 'shop.orders' });
  const [{ info }] = await shop.listCollections({ name: 'orders' }).toArray();
  for (const { _id, ns, collectionUuid, expireAt } of list) {
    assert.equal(_id.sub_type, 4);
    assert.equal(ns, 'shop.orders');
    assert.deepEqual(collectionUuid, info.uuid);
    assert.ok(expireAt > new Date());
  }
  assert.deepEqual(list.map(({ cmdName, cmd: { filter } }) => [cmdName, filter]), [['find', { n: { $gt: 1 } }], ['find', { _id: 1 }], ['aggregate', { n: 2 }],
    ['update', { n: 1 }], ['update', { _id: 2 }], ['delete', { n: 7 }], ['distinct', { n: 2 }]]);
  assert.deepEqual(list[0].cmd.collation, { locale: 'fr' });
  assert.equal((await sampled()).length, list.length);
  assert.deepEqual(await sampled({ namespace: 'shop.others' }), []);
  await admin.command({ configureQueryAnalyzer: 'shop.orders', mode: 'off' });
  await orders.findOne({ n: 1 });
  assert.equal((await sampled()).length, list.length);
  await assert.rejects(shop.aggregate([{ $listSampledQueries: {} }]).toArray(), { code: 73 });
  await assert.rejects(orders.aggregate([{ $listSampledQueries: {} }]).toArray(), { code: 73 });
  await assert.rejects(sampled({ nonsense: 1 }), { code: 40415 });
  await assert.rejects(admin.aggregate([{ $listSampledQueries: 5 }]).toArray(), { code: 6876000 });
  // a ring: the oldest make room
  await admin.command({ configureQueryAnalyzer: 'shop.orders', mode: 'full', samplesPerSecond: 100000 });
  for (let i = 0; i < 21; i++) await Promise.all(Array.from({ length: 50 }, (_, n) => orders.findOne({ n: 50 * i + n })));
  assert.equal((await sampled()).length, 1000);
  await orders.findOne({ n: 'x'.repeat(5000) });
  assert.equal((await sampled()).length, 1000, 'what is too long is not kept');
});
