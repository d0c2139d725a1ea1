// Pipelines through the vendor's driver: stages, cursors, counting.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mongo } from './mongo.js';

const rejects = (promise, code) => assert.rejects(promise, (error) => {
  assert.equal(error.code, code, `${error.code}: ${error.message}`);
  return true;
});

test('countDocuments and estimatedDocumentCount agree', async (t) => {
  const { db } = await mongo(t);
  const items = db.collection('items');
  assert.equal(await items.countDocuments({}), 0);
  await items.insertMany(Array.from({ length: 250 }, (_, i) => ({ _id: i, even: i % 2 === 0 })));
  assert.equal(await items.countDocuments({}), 250);
  assert.equal(await items.countDocuments({ even: true }), 125);
  assert.equal(await items.countDocuments({ even: true }, { skip: 5, limit: 10 }), 10);
  assert.equal(await items.estimatedDocumentCount(), 250);
});

test('what a $lookup finds and $unwind gives comes whole, in batches of any size', async (t) => {
  const { db } = await mongo(t);
  await db.collection('few').insertMany([1, 2, 3, 4].map((_id) => ({ _id })));
  await db.collection('many').insertMany(Array.from({ length: 12 }, (_, i) => ({ _id: i, few: 1 + (i % 4) })));
  for (const stage of [{ localField: '_id', foreignField: 'few' },
    { localField: '_id', foreignField: 'few', pipeline: [{ $sort: { _id: 1 } }, { $limit: 2 }] }])
    for (const batchSize of [1, 2, 3, 5, 100]) {
      const found = await db.collection('few').aggregate([{ $lookup: { from: 'many', as: 'found', ...stage } },
        { $unwind: '$found' }], { batchSize }).toArray();
      const expected = Array.from({ length: stage.pipeline ? 8 : 12 }, (_, i) => i);
      assert.deepEqual(found.map((row) => row.found._id).sort((a, b) => a - b), expected, `batches of ${batchSize}`);
    }
});

test('a pipeline filters, groups, sorts and shapes', async (t) => {
  const { db } = await mongo(t);
  const orders = db.collection('orders');
  await orders.insertMany([
    { _id: 1, who: 'ann', sum: 5, tags: ['a', 'b'] },
    { _id: 2, who: 'bob', sum: 7, tags: [] },
    { _id: 3, who: 'ann', sum: 11, tags: ['b'] },
    { _id: 4, who: 'cyd', sum: 13 },
  ]);
  const run = (...pipeline) => orders.aggregate(pipeline).toArray();
  assert.deepEqual(await run({ $match: { sum: { $gt: 5 } } }, { $sort: { _id: -1 } }, { $project: { who: 1 } }),
    [{ _id: 4, who: 'cyd' }, { _id: 3, who: 'ann' }, { _id: 2, who: 'bob' }]);
  assert.deepEqual(await run({ $group: { _id: '$who', sum: { $sum: '$sum' }, n: { $sum: 1 } } }, { $sort: { _id: 1 } }),
    [{ _id: 'ann', sum: 16, n: 2 }, { _id: 'bob', sum: 7, n: 1 }, { _id: 'cyd', sum: 13, n: 1 }]);
  assert.deepEqual(await run({ $unwind: '$tags' }, { $sortByCount: '$tags' }),
    [{ _id: 'b', count: 2 }, { _id: 'a', count: 1 }]);
  assert.deepEqual(await run({ $unwind: { path: '$tags', includeArrayIndex: 'i', preserveNullAndEmptyArrays: true } },
    { $sort: { _id: 1, i: 1 } }, { $project: { tags: 1, i: { $cond: [{ $eq: ['$i', null] }, null, { $add: ['$i', 0] }] } } }),
  [{ _id: 1, tags: 'a', i: 0 }, { _id: 1, tags: 'b', i: 1 }, { _id: 2, i: null }, { _id: 3, tags: 'b', i: 0 }, { _id: 4, i: null }]);
  assert.deepEqual(await run({ $skip: 1 }, { $limit: 2 }, { $count: 'n' }), [{ n: 2 }]);
  assert.deepEqual(await run({ $match: { who: 'zed' } }, { $count: 'n' }), []);
  assert.deepEqual(await run({ $facet: { a: [{ $match: { who: 'ann' } }, { $count: 'n' }], b: [{ $sort: { sum: -1 } }, { $limit: 1 }] } }),
    [{ a: [{ n: 2 }], b: [{ _id: 4, who: 'cyd', sum: 13 }] }]);
  assert.deepEqual(await run({ $match: { _id: 1 } }, { $addFields: { 'x.y': { $add: ['$sum', 1] } } }, { $unset: ['tags', 'who'] }),
    [{ _id: 1, sum: 5, x: { y: 6 } }]);
  assert.deepEqual(await run({ $match: { _id: 1 } }, { $replaceWith: { a: '$sum' } }), [{ a: 5 }]);
});

test('documents of other collections are looked up', async (t) => {
  const { db } = await mongo(t);
  await db.collection('a').insertMany([{ _id: 1, k: 1 }, { _id: 2, k: [2, 3] }, { _id: 3 }]);
  await db.collection('b').insertMany([{ _id: 10, f: 1 }, { _id: 11, f: [1, 2] }, { _id: 12, f: null }, { _id: 13 }, { _id: 14, f: 3 }]);
  const ids = (document) => ({ _id: document._id, found: document.found.map((d) => d._id).sort() });
  const found = await db.collection('a').aggregate([
    { $lookup: { from: 'b', localField: 'k', foreignField: 'f', as: 'found' } }, { $sort: { _id: 1 } }]).toArray();
  assert.deepEqual(found.map(ids), [{ _id: 1, found: [10, 11] }, { _id: 2, found: [11, 14] }, { _id: 3, found: [12, 13] }]);
  const piped = await db.collection('a').aggregate([
    { $lookup: { from: 'b', let: { id: '$_id' }, pipeline: [
      { $match: { $expr: { $eq: ['$_id', { $add: ['$$id', 10] }] } } }, { $project: { f: 0 } }], as: 'found' } },
    { $sort: { _id: 1 } }]).toArray();
  assert.deepEqual(piped.map(ids), [{ _id: 1, found: [11] }, { _id: 2, found: [12] }, { _id: 3, found: [13] }]);
  const none = await db.collection('a').aggregate([{ $lookup: { from: 'none', localField: 'k', foreignField: 'f', as: 'found' } }]).toArray();
  assert.deepEqual(none.map((d) => d.found), [[], [], []]);
  const both = await db.collection('a').aggregate([{ $unionWith: 'b' }, { $count: 'n' }]).toArray();
  assert.deepEqual(both, [{ n: 8 }]);
  const graph = db.collection('people');
  await graph.insertMany([{ _id: 'a', boss: 'b' }, { _id: 'b', boss: 'c' }, { _id: 'c', boss: 'a' }, { _id: 'd', boss: 'a' }]);
  const [chain] = await graph.aggregate([{ $match: { _id: 'd' } }, { $graphLookup: {
    from: 'people', startWith: '$boss', connectFromField: 'boss', connectToField: '_id', as: 'up', depthField: 'depth' } }]).toArray();
  assert.deepEqual(chain.up.sort((x, y) => (x._id < y._id ? -1 : 1)).map((d) => [d._id, Number(d.depth)]), [['a', 0], ['b', 1], ['c', 2]]);
});

test('results come batch by batch, and a cursor can be killed', async (t) => {
  const { db } = await mongo(t);
  const items = db.collection('items');
  await items.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i, group: i % 300 })));
  for (const pipeline of [[], [{ $sort: { group: 1, _id: 1 } }], [{ $group: { _id: '$group', n: { $sum: 1 } } }], [{ $addFields: { x: 1 } }]]) {
    const whole = await items.aggregate(pipeline).toArray();
    const cursor = items.aggregate(pipeline, { batchSize: 7 });
    const seen = [];
    for await (const document of cursor) seen.push(document);
    assert.equal(seen.length, whole.length);
    assert.equal(new Set(seen.map((d) => d._id)).size, whole.length);
  }
  const empty = await db.command({ aggregate: 'items', pipeline: [], cursor: { batchSize: 0 } });
  assert.equal(empty.cursor.firstBatch.length, 0);
  const killed = await db.command({ killCursors: 'items', cursors: [empty.cursor.id] });
  assert.deepEqual(killed.cursorsKilled, [empty.cursor.id]);
  await rejects(db.command({ getMore: empty.cursor.id, collection: 'items' }), 43);
});

test('what is no pipeline is refused with its code', async (t) => {
  const { db } = await mongo(t);
  const run = (pipeline, rest = {}) => db.command({ aggregate: 'items', pipeline, cursor: {}, ...rest });
  await rejects(db.command({ aggregate: 'items', pipeline: [] }), 9);
  await rejects(run([{ $foo: 1 }]), 40324);
  await rejects(run([{}]), 40323);
  await rejects(run([{ $match: {}, $sort: { a: 1 } }]), 40323);
  await rejects(run(['x']), 14);
  await rejects(run(Array(1001).fill({ $match: {} })), 9);
  await rejects(run([{ $group: { n: { $sum: 1 } } }]), 15955);
  await rejects(run([{ $group: { _id: 1, n: 1 } }]), 40234);
  await rejects(run([{ $facet: { a: [{ $facet: {} }] } }]), 40600);
  await rejects(run([{ $match: {} }, { $collStats: {} }]), 40602);
  await rejects(run([{ $limit: 0 }]), 15958);
  await rejects(run([{ $project: { a: 1, b: 0 } }]), 31254);
  await rejects(db.command({ aggregate: 1, pipeline: [{ $match: {} }], cursor: {} }), 73);
  assert.deepEqual((await db.command({ aggregate: 1, pipeline: [{ $documents: [{ a: 1 }, { a: 2 }] }, { $match: { a: 2 } }], cursor: {} })).cursor.firstBatch, [{ a: 2 }]);
});

test('$out replaces a collection at once, and leaves it as it was when it fails', async (t) => {
  const { db } = await mongo(t);
  const from = db.collection('from');
  await from.insertMany(Array.from({ length: 3000 }, (_, i) => ({ _id: i, g: i % 10, v: i })));
  const out = db.collection('out');
  await from.aggregate([{ $group: { _id: '$g', s: { $sum: '$v' } } }, { $out: 'out' }]).toArray();
  assert.equal(await out.countDocuments(), 10);
  await from.aggregate([{ $match: { g: { $lt: 3 } } }, { $out: { db: 'shop', coll: 'out' } }]).toArray();
  assert.equal(await out.countDocuments(), 900);
  await rejects(from.aggregate([{ $project: { _id: '$g' } }, { $out: 'out' }]).toArray(), 11000);
  assert.equal(await out.countDocuments(), 900);
  assert.deepEqual((await db.listCollections().toArray()).map(({ name }) => name).sort(), ['from', 'out']);
  await rejects(from.aggregate([{ $out: 'out' }, { $match: {} }]).toArray(), 40601);
});

test('$merge does with each document what it was told', async (t) => {
  const { db } = await mongo(t);
  const into = db.collection('m');
  await into.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }]);
  const merge = (spec, ...documents) => db.aggregate([{ $documents: documents }, { $merge: spec }]).toArray();
  const all = () => into.find().sort({ _id: 1 }).toArray();
  await merge('m', { _id: 1, b: 9 }, { _id: 3, b: 8 });
  assert.deepEqual(await all(), [{ _id: 1, a: 1, b: 9 }, { _id: 2, a: 2 }, { _id: 3, b: 8 }]);
  await merge({ into: 'm', whenMatched: 'replace', whenNotMatched: 'discard' }, { _id: 2, z: 1 }, { _id: 7, z: 1 });
  assert.deepEqual(await all(), [{ _id: 1, a: 1, b: 9 }, { _id: 2, z: 1 }, { _id: 3, b: 8 }]);
  await merge({ into: 'm', whenMatched: 'keepExisting' }, { _id: 2, z: 5 }, { _id: 7, z: 1 });
  assert.deepEqual((await all()).slice(1), [{ _id: 2, z: 1 }, { _id: 3, b: 8 }, { _id: 7, z: 1 }]);
  await rejects(merge({ into: 'm', whenMatched: 'fail' }, { _id: 2, z: 5 }), 11000);
  await merge({ into: 'm', whenMatched: [{ $set: { n: { $add: ['$$new.z', '$z'] } } }] }, { _id: 2, z: 5 }, { _id: 8, q: 1 });
  assert.deepEqual((await all()).filter(({ _id }) => _id === 2 || _id === 8), [{ _id: 2, z: 1, n: 6 }, { _id: 8, q: 1 }]);
  await merge({ into: 'm', let: { k: '$z' }, whenMatched: [{ $set: { n: '$$k' } }] }, { _id: 2, z: 50 });
  assert.equal((await into.findOne({ _id: 2 })).n, 50);
  await rejects(merge({ into: 'm', whenNotMatched: 'fail' }, { _id: 99 }), 13113);
  await rejects(merge({ into: 'm', on: 'z' }, { _id: 99, z: 1 }), 51183);
  await rejects(merge({ into: 'm', whenMatched: 'keepExisting', whenNotMatched: 'fail' }, { _id: 1 }), 51181);
});

test('documents are updated by pipelines', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await c.insertMany([{ _id: 1, a: 1, b: { c: 2 } }, { _id: 2, a: 5 }]);
  const { modifiedCount } = await c.updateMany({}, [{ $set: { s: { $add: ['$a', 1] }, 'b.d': '$a' } }, { $unset: 'a' }]);
  assert.equal(modifiedCount, 2);
  assert.deepEqual(await c.find().sort({ _id: 1 }).toArray(), [{ _id: 1, b: { c: 2, d: 1 }, s: 2 }, { _id: 2, s: 6, b: { d: 5 } }]);
  await c.updateOne({ _id: 1 }, [{ $replaceWith: { x: '$s' } }]);
  assert.deepEqual(await c.findOne({ _id: 1 }), { _id: 1, x: 2 });
  await c.updateOne({ _id: 9 }, [{ $set: { n: 1 } }], { upsert: true });
  assert.deepEqual(await c.findOne({ _id: 9 }), { _id: 9, n: 1 });
  const found = await c.findOneAndUpdate({ _id: 2 }, [{ $set: { s: { $multiply: ['$s', '$$k'] } } }], { returnDocument: 'after', let: { k: 10 } });
  assert.deepEqual(found, { _id: 2, s: 60, b: { d: 5 } });
  await rejects(c.updateOne({ _id: 1 }, [{ $match: {} }]), 72);
  await rejects(c.updateOne({ _id: 1 }, [{ $set: { _id: 5 } }]), 66);
});

test('count and distinct read a view through its pipeline', async (t) => {
  const { db } = await mongo(t);
  await db.collection('base').insertMany(Array.from({ length: 20 }, (_, _id) => ({ _id, even: _id % 2 === 0, tags: [_id % 3, 'x'] })));
  await db.createCollection('evens', { viewOn: 'base', pipeline: [{ $match: { even: true } }, { $project: { even: 0 } }] });
  const count = async (more) => (await db.command({ count: 'evens', ...more })).n;
  assert.equal(await count({}), 10);
  assert.equal(await count({ query: { _id: { $gte: 10 } } }), 5);
  assert.equal(await count({ query: { even: true } }), 0);
  assert.equal(await count({ skip: 8 }), 2);
  assert.equal(await count({ skip: 3, limit: 4 }), 4);
  assert.equal(await count({ limit: -3 }), 3);
  assert.deepEqual((await db.collection('evens').distinct('tags', { _id: { $lt: 3 } })).sort(), [0, 2, 'x']);
  assert.deepEqual(await db.collection('evens').distinct('even'), []);
  await db.createCollection('nothing', { viewOn: 'absent', pipeline: [] });
  assert.equal((await db.command({ count: 'nothing' })).n, 0);
  assert.deepEqual(await db.collection('nothing').distinct('a'), []);
});

test('find and aggregate read a view through its pipeline', async (t) => {
  const { db } = await mongo(t);
  await db.collection('base').insertMany([{ _id: 1, a: 1, b: 1 }, { _id: 2, a: 2, b: 1 }, { _id: 3, a: 3, b: 2 }, { _id: 4, a: 4, b: 1 }]);
  await db.createCollection('seen', { viewOn: 'base', pipeline: [{ $match: { b: 1 } }, { $project: { b: 0 } }] });
  const seen = db.collection('seen');
  assert.deepEqual(await seen.find().sort({ _id: 1 }).toArray(), [{ _id: 1, a: 1 }, { _id: 2, a: 2 }, { _id: 4, a: 4 }]);
  assert.deepEqual(await seen.find({ a: { $gt: 1 } }, { projection: { _id: 0 } }).sort({ a: -1 }).limit(1).toArray(), [{ a: 4 }]);
  assert.deepEqual(await seen.findOne({ _id: 2 }), { _id: 2, a: 2 });
  assert.equal(await seen.countDocuments({ a: { $lt: 4 } }), 2);
  assert.deepEqual(await seen.find({}, { batchSize: 1 }).sort({ _id: 1 }).map(({ _id }) => _id).toArray(), [1, 2, 4]);
  assert.deepEqual(await db.collection('base').aggregate([{ $match: { _id: 1 } }, { $lookup: { from: 'seen', localField: 'a', foreignField: 'a', as: 'r' } }, { $project: { r: 1 } }]).toArray(),
    [{ _id: 1, r: [{ _id: 1, a: 1 }] }]);
  await rejects(seen.insertOne({ _id: 9 }), 166);
});

test('what does not fit the memory is spilled, or refused where that is not allowed', async (t) => {
  const { db } = await mongo(t, ['--set', 'query.memory_bytes_max=65536']);
  const items = db.collection('items');
  for (let part = 0; part < 4; part++)
    await items.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: part * 1000 + i, n: (i * 7919) % 1000, text: 'x'.repeat(200) })));
  const sorted = [{ $addFields: { m: { $add: ['$n', 1] } } }, { $sort: { m: 1, _id: 1 } }];
  const all = await items.aggregate(sorted).toArray();
  assert.equal(all.length, 4000);
  for (let i = 1; i < all.length; i++) assert.ok(all[i - 1].m < all[i].m || (all[i - 1].m === all[i].m && all[i - 1]._id < all[i]._id));
  const groups = await items.aggregate([{ $addFields: { k: { $concat: ['$text', 'y'] } } }, { $group: { _id: '$_id', k: { $first: '$k' } } }, { $count: 'n' }]).toArray();
  assert.deepEqual(groups, [{ n: 4000 }]);
  await rejects(items.aggregate(sorted, { allowDiskUse: false }).toArray(), 292);
  await rejects(items.aggregate([{ $group: { _id: null, all: { $push: '$$ROOT' } } }, { $unwind: '$all' }, { $lookup: { from: 'items', pipeline: [], as: 'r' } }, { $count: 'n' }], { maxTimeMS: 50 }).toArray(), 50);
});

test('runaway pipelines end with an error, and the server goes on', async (t) => {
  const { db, client } = await mongo(t);
  const items = db.collection('items');
  await items.insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, to: Array.from({ length: 10 }, (_, k) => (i + k) % 300), text: 'x'.repeat(5000) })));
  let deep = { a: 1 };
  for (let i = 0; i < 150; i++) deep = { $not: [deep] };
  const outcomes = [
    [{ $match: { $expr: deep } }],
    [{ $project: { x: { $range: [0, 1e9] } } }],
    [{ $facet: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, []])) }],
    [{ $group: { _id: null, all: { $push: '$$ROOT' } } }, { $project: { a: '$all', b: '$all', c: '$all', d: '$all', e: '$all', f: '$all', g: '$all', h: '$all', i: '$all', j: '$all', k: '$all', l: '$all' } }],
    Array.from({ length: 30 }, () => ({ $unwind: '$to' })).concat(Array.from({ length: 300 }, () => ({ $addFields: { x: 1 } }))),
    [{ $graphLookup: { from: 'items', startWith: '$to', connectFromField: 'to', connectToField: '_id', as: 'r' } }, { $group: { _id: null, all: { $push: '$r' } } }],
    [{ $match: { $or: Array.from({ length: 20000 }, (_, i) => ({ a: i })) } }],
    Array.from({ length: 1000 }, () => ({ $lookup: { from: 'items', pipeline: [], as: 'r' } })),
  ];
  for (const pipeline of outcomes)
    await items.aggregate(pipeline, { maxTimeMS: 2000 }).toArray().then(() => {}, (error) => assert.equal(typeof error.code, 'number', error.message));
  let nested = [];
  for (let i = 0; i < 30; i++) nested = [{ $lookup: { from: 'items', pipeline: nested, as: 'r' } }];
  await rejects(items.aggregate(nested).toArray(), 232);
  assert.equal((await client.db('admin').command({ ping: 1 })).ok, 1);
});

test('$merge asks validators, unless it is told not to; $out loses no options', async (t) => {
  const { db } = await mongo(t);
  await db.createCollection('strict', { validator: { a: { $type: 'number' } } });
  const merge = (options) => db.aggregate([{ $documents: [{ _id: 1, a: 'x' }] }, { $merge: 'strict' }], options).toArray();
  await rejects(merge({}), 121);
  assert.equal(await db.collection('strict').countDocuments(), 0);
  await merge({ bypassDocumentValidation: true });
  assert.deepEqual(await db.collection('strict').find().toArray(), [{ _id: 1, a: 'x' }]);
  await rejects(db.aggregate([{ $documents: [{ _id: 2 }] }, { $out: 'strict' }]).toArray(), 238);
});
