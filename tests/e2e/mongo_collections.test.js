// Collections of the MongoDB API: options, validators, views, renaming, statistics; through the driver.
import test from 'node:test';
import assert from 'node:assert/strict';
import { Long } from 'mongodb';
import { mongo, mongoClient } from './mongo.js';
import { scratch, Server } from './server.js';

const code = (number, text) => (error) => {
  assert.equal(error.code, number, error.message);
  if (text) assert.match(error.message, text);
  return true;
};

const person = {
  $jsonSchema: {
    bsonType: 'object',
    title: 'Person',
    required: ['name', 'year'],
    properties: {
      name: { bsonType: 'string', description: 'a text' },
      year: { bsonType: 'int', minimum: 1900, maximum: 2100 },
    },
  },
};

test('a validator refuses what does not match, and says which rules were broken', async (t) => {
  const { db } = await mongo(t);
  const people = await db.createCollection('people', { validator: person });
  await people.insertOne({ _id: 1, name: 'Ann', year: 1990 });

  await assert.rejects(people.insertOne({ _id: 2, name: 7 }), (error) => {
    assert.equal(error.code, 121);
    assert.match(error.message, /Document failed validation/);
    const { errInfo } = error;
    assert.equal(errInfo.failingDocumentId, 2);
    assert.equal(errInfo.details.operatorName, '$jsonSchema');
    assert.equal(errInfo.details.title, 'Person');
    const [required, properties] = errInfo.details.schemaRulesNotSatisfied;
    assert.deepEqual(required, {
      operatorName: 'required', specifiedAs: { required: ['name', 'year'] }, missingProperties: ['year'],
    });
    assert.equal(properties.operatorName, 'properties');
    assert.deepEqual(properties.propertiesNotSatisfied, [{
      propertyName: 'name',
      description: 'a text',
      details: [{
        operatorName: 'bsonType', specifiedAs: { bsonType: 'string' }, reason: 'type did not match', consideredValue: 7, consideredType: 'int',
      }],
    }]);
    return true;
  });
  await assert.rejects(people.updateOne({ _id: 1 }, { $set: { year: 1800 } }), code(121));
  await assert.rejects(people.replaceOne({ _id: 9 }, { name: 'x' }, { upsert: true }), code(121));
  await assert.rejects(people.findOneAndUpdate({ _id: 1 }, { $unset: { name: 1 } }), (error) => {
    assert.equal(error.code, 121);
    assert.equal(error.errorResponse.errInfo.failingDocumentId, 1);
    return true;
  });
  assert.deepEqual(await people.find().toArray(), [{ _id: 1, name: 'Ann', year: 1990 }]);
});

test('of an unordered batch the documents that fail are write errors with errInfo each', async (t) => {
  const { db } = await mongo(t);
  const people = await db.createCollection('people', { validator: { age: { $gte: 18 } } });
  await assert.rejects(
    people.insertMany([{ _id: 1, age: 20 }, { _id: 2, age: 5 }, { _id: 3 }, { _id: 4, age: 40 }], { ordered: false }),
    (error) => {
      assert.equal(error.result.insertedCount, 2);
      assert.deepEqual(error.writeErrors.map((one) => [one.index, one.code]), [[1, 121], [2, 121]]);
      assert.deepEqual(error.writeErrors[0].err.errInfo.details, {
        operatorName: '$gte', specifiedAs: { age: { $gte: 18 } }, reason: 'comparison failed', consideredValue: 5,
      });
      assert.equal(error.writeErrors[1].err.errInfo.details.reason, 'field was missing');
      return true;
    },
  );
  assert.deepEqual((await people.find().toArray()).map((one) => one._id), [1, 4]);
});

test('a validator may be an expression over several fields', async (t) => {
  const { db } = await mongo(t);
  const spans = await db.createCollection('spans', { validator: { $expr: { $lt: ['$from', '$to'] } } });
  await spans.insertOne({ _id: 1, from: 1, to: 2 });
  await assert.rejects(spans.insertOne({ from: 3, to: 2 }), (error) => {
    assert.equal(error.code, 121);
    assert.equal(error.errInfo.details.operatorName, '$expr');
    return true;
  });
});

test('levels and actions: off, moderate, warn, and bypassDocumentValidation', async (t) => {
  const { db } = await mongo(t);
  const things = db.collection('things');
  await things.insertMany([{ _id: 'old', n: 'text' }, { _id: 'good', n: 1 }]);
  const mod = (options) => db.command({ collMod: 'things', ...options });
  await mod({ validator: { n: { $type: 'int' } } });
  await assert.rejects(things.updateOne({ _id: 'old' }, { $set: { x: 1 } }), code(121));
  await things.insertOne({ _id: 'passed', n: 'x' }, { bypassDocumentValidation: true });
  await things.updateOne({ _id: 'passed' }, { $set: { y: 1 } }, { bypassDocumentValidation: true });
  await mod({ validationLevel: 'moderate' });
  await things.updateOne({ _id: 'old' }, { $set: { x: 1 } });
  await assert.rejects(things.updateOne({ _id: 'good' }, { $set: { n: 'no more' } }), code(121));
  await assert.rejects(things.insertOne({ n: 'x' }), code(121));
  await mod({ validationAction: 'warn' });
  await things.insertOne({ _id: 'warned', n: 'x' });
  await mod({ validationAction: 'error', validationLevel: 'off' });
  await things.insertOne({ _id: 'off', n: 'x' });
  await mod({ validationLevel: 'strict', validator: {} });
  await things.insertOne({ _id: 'none', n: 'x' });
  assert.equal(await things.estimatedDocumentCount(), 6);
});

test('validate counts the documents that its validator would refuse', async (t) => {
  const { db } = await mongo(t);
  await db.collection('things').insertMany([{ _id: 1, n: 1 }, { _id: 2 }, { _id: 3 }]);
  await db.command({ collMod: 'things', validator: { n: { $exists: true } } });
  const said = await db.command({ validate: 'things', full: true });
  assert.deepEqual(
    [said.valid, said.nrecords, said.nInvalidDocuments, said.nNonCompliantDocuments, said.keysPerIndex, said.nIndexes],
    [true, 3, 0, 2, { _id_: 3 }, 1],
  );
  assert.equal(said.warnings.length, 1);
  await assert.rejects(db.command({ validate: 'nothing' }), code(26));
  await assert.rejects(db.command({ validate: 'things', repair: true }), code(238));
});

test('options that are wrong or not offered are refused by name', async (t) => {
  const { db } = await mongo(t);
  const refused = [
    [{ timeseries: { timeField: 't' } }, 238, /time-series/],
    [{ clusteredIndex: { key: { _id: 1 }, unique: true } }, 238, /clusteredIndex/],
    [{ expireAfterSeconds: 5 }, 72, /expireAfterSeconds/],
    [{ validator: 'x' }, 14],
    [{ validator: { $foo: 1 } }, 2, /unknown top level operator/],
    [{ validationLevel: 'some' }, 2],
    [{ validationAction: 'cry' }, 2],
    [{ capped: true }, 72, /size/],
    [{ capped: true, size: 4096 }, 238, /capped/],
    [{ collation: { locale: 'xx' } }, 2, /locale/],
    [{ size: 4096 }, 72],
    [{ pipeline: [] }, 72, /viewOn/],
    [{ viewOn: 'a', pipeline: [{ $out: 'x' }] }, 182],
    [{ viewOn: 'a', pipeline: [1] }, 14],
    [{ viewOn: 'a', capped: true, size: 10 }, 72],
    [{ collation: {} }, 40414],
    [{ storageEngine: { wiredTiger: {} } }, 72],
    [{ foo: 1 }, 40415],
  ];
  for (const [options, number, text] of refused) {
    await assert.rejects(db.command({ create: 'x', ...options }), code(number, text), JSON.stringify(options));
  }
  assert.deepEqual(await db.listCollections().toArray(), []);
  await assert.rejects(db.command({ create: 'system.x' }), code(73));
});

test('listCollections shows options, and they outlive a restart', async (t) => {
  const args = ['--dev', '--node', `local=rocksdb:${scratch(t)}`];
  const server = await Server.start(t, args);
  let client = await mongoClient(t, server.mongo);
  let db = client.db('shop');
  await db.createCollection('people', { validator: person, validationLevel: 'moderate', changeStreamPreAndPostImages: { enabled: true } });
  await db.createCollection('grown', { viewOn: 'people', pipeline: [{ $match: { year: { $lt: 2000 } } }] });
  const look = async () => {
    const list = await db.listCollections().toArray();
    const by = Object.fromEntries(list.map((one) => [one.name, one]));
    assert.deepEqual(by.people.options, {
      validator: person, validationLevel: 'moderate', changeStreamPreAndPostImages: { enabled: true },
    });
    assert.equal(by.grown.type, 'view');
    assert.deepEqual(by.grown.options, { viewOn: 'people', pipeline: [{ $match: { year: { $lt: 2000 } } }] });
    assert.deepEqual(by.grown.info, { readOnly: true });
    assert.equal(by.grown.idIndex, undefined);
    assert.deepEqual(by.people.idIndex, { v: 2, key: { _id: 1 }, name: '_id_' });
    assert.deepEqual((await db.listCollections({ type: 'view' }).toArray()).map((one) => one.name), ['grown']);
    return by.people.info.uuid.toString();
  };
  const uuid = await look();
  await client.close();
  await server.stop();
  client = await mongoClient(t, (await Server.start(t, args)).mongo);
  db = client.db('shop');
  assert.equal(await look(), uuid);
  await assert.rejects(db.collection('people').insertOne({}), code(121));
});

test('a view is not written, and is followed through twenty others', async (t) => {
  const { db } = await mongo(t);
  await db.createCollection('v0', { viewOn: 'base', pipeline: [] });
  await assert.rejects(db.collection('v0').insertOne({}), code(166));
  await assert.rejects(db.collection('v0').updateOne({}, { $set: { a: 1 } }), code(166));
  await assert.rejects(db.collection('v0').deleteOne({}), code(166));
  await assert.rejects(db.command({ collStats: 'v0' }), code(166));
  for (let i = 1; i < 20; i++) await db.createCollection(`v${i}`, { viewOn: `v${i - 1}`, pipeline: [] });
  await assert.rejects(db.createCollection('v20', { viewOn: 'v19', pipeline: [] }), code(165));
  await assert.rejects(db.command({ collMod: 'v0', viewOn: 'v5', pipeline: [] }), code(5));
  await assert.rejects(db.command({ collMod: 'v0', validator: {} }), code(72, /not supported on a view/));
  await assert.rejects(db.command({ collMod: 'v0', viewOn: 'other' }), code(72));
  await db.command({ collMod: 'v0', viewOn: 'other', pipeline: [{ $limit: 1 }] });
  const [view] = await db.listCollections({ name: 'v0' }).toArray();
  assert.deepEqual(view.options, { viewOn: 'other', pipeline: [{ $limit: 1 }] });
  await assert.rejects(db.command({ collMod: 'nothing', validator: {} }), code(26));
  assert.equal(await db.dropCollection('v0'), true);
});

test('renameCollection keeps documents and uuid, and drops a target only if told', async (t) => {
  const { db, client } = await mongo(t);
  const infos = async (name) => (await db.listCollections({ name }).toArray())[0]?.info.uuid.toString();
  await db.collection('old').insertMany([{ _id: 1 }, { _id: 2 }]);
  await db.collection('target').insertOne({ _id: 'gone' });
  const uuid = await infos('old');
  await assert.rejects(db.renameCollection('old', 'target'), code(48));
  // the driver takes code 20 for something else and wraps it
  await assert.rejects(client.db('admin').command({ renameCollection: 'shop.old', to: 'shop.old' }), (error) => (error.originalError ?? error).code === 20);
  await assert.rejects(db.renameCollection('missing', 'x'), code(26, /Source collection shop.missing does not exist/));
  await assert.rejects(client.db('admin').command({ renameCollection: 'shop.old', to: 'other.old' }), code(238));
  await assert.rejects(db.command({ renameCollection: 'shop.old', to: 'shop.x' }), code(13, /admin database/));
  const renamed = await db.renameCollection('old', 'target', { dropTarget: true });
  assert.deepEqual((await renamed.find().toArray()).map((one) => one._id), [1, 2]);
  assert.deepEqual((await db.listCollections().toArray()).map((one) => one.name), ['target']);
  assert.equal(await infos('target'), uuid);
  await renamed.insertOne({ _id: 3 });
  await db.renameCollection('target', 'new');
  assert.equal(await db.collection('new').estimatedDocumentCount(), 3);
});

test('a rename outlives a restart', async (t) => {
  const args = ['--dev', '--node', `local=rocksdb:${scratch(t)}`];
  const server = await Server.start(t, args);
  const first = await mongoClient(t, server.mongo);
  await first.db('shop').collection('old').insertOne({ _id: 1 });
  await first.db('shop').collection('target').insertOne({ _id: 2 });
  await first.db('shop').renameCollection('old', 'target', { dropTarget: true });
  await first.close();
  await server.stop();
  const db = (await mongoClient(t, (await Server.start(t, args)).mongo)).db('shop');
  assert.deepEqual((await db.listCollections().toArray()).map((one) => one.name), ['target']);
  assert.deepEqual(await db.collection('target').find().toArray(), [{ _id: 1 }]);
});

test('collStats, dbStats and dataSize tell what is stored', async (t) => {
  const { db } = await mongo(t);
  await db.collection('a').insertMany(Array.from({ length: 50 }, (_, i) => ({ _id: i, pad: 'x'.repeat(1000) })));
  await db.createCollection('b');
  await db.createCollection('v', { viewOn: 'a', pipeline: [] });
  const stats = await db.command({ collStats: 'a' });
  assert.equal(stats.ns, 'shop.a');
  assert.equal(stats.count, 50);
  assert.ok(stats.size > 50_000 && stats.size < 70_000, String(stats.size));
  assert.ok(stats.avgObjSize > 1000 && stats.avgObjSize < 1400);
  assert.deepEqual([stats.nindexes, stats.sharded, stats.capped], [1, false, false]);
  const scaled = await db.command({ collStats: 'a', scale: 1024 });
  assert.equal(scaled.size, Math.floor(stats.size / 1024));
  await assert.rejects(db.command({ collStats: 'a', scale: 0 }), code(51024));
  assert.equal((await db.command({ collStats: 'missing' })).count, 0);
  const all = await db.stats();
  assert.deepEqual([all.db, all.collections, all.views, all.objects, all.indexes], ['shop', 2, 1, 50, 2]);
  assert.equal(all.dataSize, stats.size);
  const size = await db.command({ dataSize: 'shop.a' }, { promoteValues: false });
  assert.ok(size.size instanceof Long);
  assert.equal(Number(size.size), stats.size);
  assert.equal((await db.command({ dbStats: 1, scale: undefined })).objects, 50);
});

test('fsync is answered, what a cluster does not offer is refused by name', async (t) => {
  const { client, db } = await mongo(t);
  assert.equal((await client.db('admin').command({ fsync: 1 })).ok, 1);
  await assert.rejects(client.db('admin').command({ fsync: 1, lock: true }), code(238));
  for (const name of ['compact', 'reIndex', 'dbHash', 'cloneCollectionAsCapped', 'filemd5']) {
    await assert.rejects(db.command({ [name]: 'x' }), code(238), name);
  }
});

test('distinct looks along paths and into arrays, and not for ever', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await c.insertMany([
    { a: { b: 1 } }, { a: [{ b: 2 }, { b: [3, 4] }, 5] }, { a: { b: 1 } }, { a: 7 }, { a: { b: null } }, { x: 1 }, { a: [[{ b: 9 }]] },
  ]);
  const sorted = async (key) => (await c.distinct(key)).sort((x, y) => x - y);
  assert.deepEqual(await sorted('a.b'), [null, 1, 2, 3, 4]);
  assert.deepEqual(await sorted('a.0.b'), [2, 9]);
  assert.deepEqual(await sorted('a.1.b'), [3, 4]);
  assert.deepEqual(await c.distinct('a.b.c'), []);
  let deep = { 0: 1 };
  for (let i = 0; i < 60; i++) deep = { 0: [deep] };
  await c.insertOne(deep);
  await assert.rejects(c.distinct(Array(90).fill('0').join('.')), code(146));
});
