// $near, $nearSphere, $geoNear and the indexes 2dsphere and 2d, against distances worked out here.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { mongo, mongoClient } from './mongo.js';
import { scratch, Server } from './server.js';

const radius = 6378100;
const point = (x, y) => ({ type: 'Point', coordinates: [x, y] });
const ids = (documents) => documents.map(({ _id }) => _id);

// Radians along a great circle.
function angle([ax, ay], [bx, by]) {
  const rad = (degrees) => (degrees * Math.PI) / 180;
  const half = Math.sin(rad(by - ay) / 2) ** 2 + Math.cos(rad(ay)) * Math.cos(rad(by)) * Math.sin(rad(bx - ax) / 2) ** 2;
  return 2 * Math.asin(Math.min(1, Math.sqrt(half)));
}
const metres = (a, b) => radius * angle(a, b);

// The same numbers every time.
function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

// Places: many around one city, the rest anywhere, poles and the date line among them.
function places(count, seed) {
  const next = random(seed);
  const list = [...Array(count).keys()].map((i) => {
    const at = i % 3 ? [2.35 + (next() - 0.5) * 0.4, 48.85 + (next() - 0.5) * 0.3] : [next() * 360 - 180, next() * 180 - 90];
    return { _id: i, shard: i % 50, kind: i % 5, at };
  });
  [[180, 0], [-180, 0], [0, 90], [0, -90], [179.99, 12], [-179.99, 12]].forEach((at, i) => (list[i].at = at));
  return list;
}

const nearest = (list, from, far = metres) => list.map((one) => ({ ...one, far: far(one.at, from) })).sort((a, b) => a.far - b.far);

async function fill(db, name, list, sharded) {
  if (sharded) await db.admin().command({ shardCollection: `shop.${name}`, key: { shard: 'hashed' }, numInitialChunks: 8 });
  const collection = db.collection(name);
  await collection.createIndex({ at: '2dsphere' });
  await collection.insertMany(list.map(({ at, ...rest }) => ({ ...rest, at: point(...at) })));
  return collection;
}

test('2dsphere and 2d indexes are made, listed and refused as MongoDB does', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await c.createIndex({ at: '2dsphere' });
  await c.createIndex({ kind: 1, at: '2dsphere' }, { name: 'both' });
  await c.createIndex({ flat: '2d' }, { min: -10, max: 10, bits: 20 });
  assert.deepEqual((await c.listIndexes().toArray()).slice(1), [
    { v: 2, key: { at: '2dsphere' }, name: 'at_2dsphere', '2dsphereIndexVersion': 3 },
    { v: 2, key: { kind: 1, at: '2dsphere' }, name: 'both', '2dsphereIndexVersion': 3 },
    { v: 2, key: { flat: '2d' }, name: 'flat_2d', bits: 20, min: -10, max: 10 },
  ]);
  assert.equal((await db.command({ createIndexes: 'c', indexes: [{ key: { at: '2dsphere' }, name: 'at_2dsphere', '2dsphereIndexVersion': 3 }] })).note,
    'all indexes already exist');
  const refused = (index, code) => assert.rejects(db.command({ createIndexes: 'c', indexes: [{ name: 'x', ...index }] }), { code }, JSON.stringify(index));
  await refused({ key: { a: '2dsphere' }, unique: true }, 67);
  await refused({ key: { a: '2dsphere' }, expireAfterSeconds: 3 }, 67);
  await refused({ key: { a: '2dsphere', b: '2dsphere' } }, 67);
  await refused({ key: { a: '2dsphere', b: 'hashed' } }, 67);
  await refused({ key: { a: '2dsphere' }, '2dsphereIndexVersion': 7 }, 67);
  await refused({ key: { a: '2d' }, min: 5, max: 5 }, 72);
  await refused({ key: { a: '2d' }, bits: 40 }, 72);
  await refused({ key: { b: 1, a: '2d' } }, 16801);
  await refused({ key: { a: 'geoHaystack' } }, 238);

  // what is there has to be a figure; nothing, null and no elements are
  await c.insertMany([{ _id: 1 }, { _id: 2, at: null }, { _id: 3, at: [] }, { _id: 4, at: [1, 2] }, { _id: 5, at: { lng: 1, lat: 2 } },
    { _id: 6, at: [point(1, 1), point(2, 2)] }, { _id: 7, at: { type: 'LineString', coordinates: [[0, 0], [1, 1]] } }]);
  for (const at of ['x', 5, true, { a: 1 }, [1], [200, 0], { type: 'Point', coordinates: [0, 91] }, { type: 'Polygon', coordinates: [[[0, 0], [1, 1]]] }])
    await assert.rejects(c.insertOne({ _id: 'bad', at }), { code: 16755 }, JSON.stringify(at));
  await assert.rejects(c.updateOne({ _id: 4 }, { $set: { at: 'x' } }), { code: 16755 });
  await assert.rejects(c.insertOne({ _id: 'bad', flat: [11, 0] }), { code: 13027 });
  await assert.rejects(c.insertOne({ _id: 'bad', flat: { type: 'LineString', coordinates: [[0, 0], [1, 1]] } }), { code: 16755 });
  assert.equal(await c.countDocuments(), 7);
  await db.collection('d').insertOne({ at: 'x' });
  await assert.rejects(db.collection('d').createIndex({ at: '2dsphere' }), { code: 16755 });
  await c.dropIndex('at_2dsphere');
  assert.deepEqual((await c.listIndexes().toArray()).map(({ name }) => name), ['_id_', 'both', 'flat_2d']);
});

test('$near without an index, or where it has no place, is refused', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  const near = { at: { $near: { $geometry: point(0, 0) } } };
  assert.deepEqual(await c.find(near).toArray(), [], 'there is no such collection');
  assert.deepEqual(await c.aggregate([{ $geoNear: { near: point(0, 0), distanceField: 'd', key: 'at' } }]).toArray(), []);
  await c.insertOne({ _id: 1, at: point(0, 0), flat: [1, 1] });
  await assert.rejects(c.find(near).toArray(), { code: 291, codeName: 'NoQueryExecutionPlans', message: /unable to find index for \$geoNear query/ });
  await assert.rejects(c.updateOne(near, { $set: { a: 1 } }), { code: 291 });
  await assert.rejects(c.deleteMany(near), { code: 291 });
  await assert.rejects(c.aggregate([{ $geoNear: { near: point(0, 0), distanceField: 'd' } }]).toArray(), { code: 27 });
  await assert.rejects(c.aggregate([{ $geoNear: { near: point(0, 0), distanceField: 'd', key: 'at' } }]).toArray(), { code: 291 });
  await c.createIndex({ at: '2dsphere' });
  assert.equal((await c.find(near).toArray()).length, 1);
  await assert.rejects(c.find({ at: { $near: [0, 0] } }).toArray(), { code: 291 }, 'a pair in a plane takes a 2d index');
  await assert.rejects(c.find({ other: { $near: { $geometry: point(0, 0) } } }).toArray(), { code: 291 });
  await assert.rejects(c.countDocuments(near), { code: 5626500 });
  await assert.rejects(c.aggregate([{ $match: near }]).toArray(), { code: 5626500 });
  for (const filter of [{ $or: [near, { a: 1 }] }, { $nor: [near] }, { at: { $not: near.at } }, { a: { $elemMatch: near } }, { $and: [near, near] }])
    await assert.rejects(c.find(filter).toArray(), { code: 2 }, JSON.stringify(filter));
  for (const $near of [5, 'x', [], [1], ['a', 'b'], [0, 0, 0, 0], {}, { $geometry: 5 }, { $geometry: { type: 'LineString', coordinates: [[0, 0], [1, 1]] } },
    { $geometry: point(0, 91) }, { $geometry: point(0, 0), $maxDistance: 'x' }, { $geometry: point(0, 0), $maxDistance: -1 }, { $geometry: point(0, 0), $minDistance: -1 },
    { $geometry: point(0, 0), $far: 1 }])
    await assert.rejects(c.find({ at: { $near } }).toArray(), { code: 2 }, JSON.stringify($near));
  await assert.rejects(c.find({ at: { $near: { $geometry: point(0, 0) }, $maxDistance: 5 } }).toArray(), { code: 2 });
  await assert.rejects(c.find({ at: { $maxDistance: 5 } }).toArray(), { code: 2 });

  const stage = (terms) => c.aggregate([{ $geoNear: { near: point(0, 0), distanceField: 'd', ...terms } }]).toArray();
  await assert.rejects(c.aggregate([{ $geoNear: { distanceField: 'd' } }]).toArray(), { code: 5860400 });
  await assert.rejects(stage({ near: 5 }), { code: 5860401 });
  await assert.rejects(c.aggregate([{ $geoNear: { near: point(0, 0) } }]).toArray(), { code: 16606 });
  await assert.rejects(stage({ distanceField: 5 }), { code: 16606 });
  await assert.rejects(stage({ distanceField: '$d' }), { code: 16410 });
  await assert.rejects(stage({ includeLocs: 5 }), { code: 16607 });
  await assert.rejects(stage({ key: '' }), { code: 2 });
  await assert.rejects(stage({ key: 5 }), { code: 14 });
  await assert.rejects(stage({ limit: 5 }), { code: 50858 });
  await assert.rejects(stage({ distanceMultiplier: -1 }), { code: 2 });
  await assert.rejects(stage({ maxDistance: 'x' }), { code: 2 });
  await assert.rejects(stage({ query: { at: { $near: { $geometry: point(0, 0) } } } }), { code: 5626500 });
  await assert.rejects(stage({ nonsense: 1 }), { code: 9 });
  await assert.rejects(c.aggregate([{ $match: {} }, { $geoNear: { near: point(0, 0), distanceField: 'd' } }]).toArray(), { code: 40602 });
  await assert.rejects(c.aggregate([{ $facet: { a: [{ $geoNear: { near: point(0, 0), distanceField: 'd' } }] } }]).toArray(), { code: 40600 });
  await c.createIndex({ more: '2dsphere' });
  await assert.rejects(stage({}), { code: 27, message: /more than one 2dsphere index/ });
  assert.equal((await stage({ key: 'at' })).length, 1);
});

for (const sharded of [false, true])
  test(`documents come by distance, ${sharded ? 'from eight chunks' : 'unsharded'}`, async (t) => {
    const { db } = await mongo(t);
    const list = places(900, 7);
    const c = await fill(db, 'places', list, sharded);
    for (const from of [[2.35, 48.85], [179.995, 12], [0, 90], [-70, -30]]) {
      const $geometry = point(...from);
      const order = nearest(list, from);
      const all = await c.find({ at: { $near: { $geometry } } }).toArray();
      assert.equal(all.length, list.length);
      all.forEach((one, i) => assert.ok(Math.abs(metres(one.at.coordinates, from) - order[i].far) < 1e-3, `${from}: place ${i}`));
      for (const [skip, limit] of [[0, 1], [0, 10], [5, 20], [100, 50]]) {
        const some = await c.find({ at: { $nearSphere: { $geometry } } }).skip(skip).limit(limit).toArray();
        assert.deepEqual(some.map((one) => one.at.coordinates), all.slice(skip, skip + limit).map((one) => one.at.coordinates), `${from}: ${skip}, ${limit}`);
      }
      for (const [$minDistance, $maxDistance] of [[0, 5000], [2000, 9000], [0, 0], [1e6, 5e6]]) {
        const within = order.filter(({ far }) => far >= $minDistance && far <= $maxDistance);
        const some = await c.find({ at: { $near: { $geometry, $minDistance, $maxDistance } } }).batchSize(7).toArray();
        assert.deepEqual(some.map((one) => Math.round(metres(one.at.coordinates, from))), within.map(({ far }) => Math.round(far)));
      }
      // with another condition; the kind is of a fifth of them
      const kinds = await c.find({ kind: 3, at: { $near: { $geometry } } }).limit(12).toArray();
      assert.deepEqual(kinds.map((one) => Math.round(metres(one.at.coordinates, from))),
        order.filter(({ kind }) => kind === 3).slice(0, 12).map(({ far }) => Math.round(far)));
      // radians
      const radians = await c.find({ at: { $nearSphere: from, $maxDistance: 5000 / radius } }).toArray();
      assert.equal(radians.length, order.filter(({ far }) => far <= 5000).length);
      // a sort of one's own comes before the distance
      const sorted = await c.find({ at: { $near: { $geometry, $maxDistance: 20000 } } }).sort({ _id: -1 }).toArray();
      assert.deepEqual(ids(sorted), ids(order.filter(({ far }) => far <= 20000)).sort((a, b) => b - a));
    }
    // the nearest is the one that is written
    const [first] = nearest(list, [2.35, 48.85]);
    const near = { at: { $near: { $geometry: point(2.35, 48.85) } } };
    const key = sharded ? { shard: first.shard } : {};
    assert.equal((await c.findOneAndUpdate({ ...key, ...near }, { $set: { seen: true } }, { returnDocument: 'after' }))._id, first._id);
    assert.deepEqual(ids(await c.find({ seen: true }).toArray()), [first._id]);
    assert.equal((await c.findOneAndDelete({ ...key, ...near }))._id, first._id);
    assert.equal(await c.findOne(near).then(({ _id }) => _id), nearest(list, [2.35, 48.85])[1]._id);
    assert.equal(await db.command({ count: 'places', query: { at: { $near: { $geometry: point(2.35, 48.85), $maxDistance: 5000 } } } }).then(({ n }) => n),
      list.filter(({ at }) => metres(at, [2.35, 48.85]) <= 5000).length - 1);
  });

test('$geoNear shows distances and places, and other stages follow', async (t) => {
  const { db } = await mongo(t);
  const list = places(400, 21);
  const c = await fill(db, 'places', list, false);
  const from = [2.3, 48.8];
  const order = nearest(list, from);
  const stage = { near: point(...from), distanceField: 'far.away', spherical: true };
  const all = await c.aggregate([{ $geoNear: stage }]).toArray();
  assert.equal(all.length, 400);
  all.forEach((one, i) => assert.ok(Math.abs(one.far.away - order[i].far) < 1e-3 + order[i].far * 1e-9));
  const some = await c.aggregate([{ $geoNear: { ...stage, includeLocs: 'far.place', distanceMultiplier: 0.001, query: { kind: { $lt: 2 } }, minDistance: 1000, maxDistance: 9000 } },
    { $limit: 8 }]).toArray();
  const wanted = order.filter(({ kind, far }) => kind < 2 && far >= 1000 && far <= 9000).slice(0, 8);
  assert.deepEqual(ids(some), ids(wanted));
  some.forEach((one, i) => {
    assert.ok(Math.abs(one.far.away - wanted[i].far / 1000) < 1e-6);
    assert.deepEqual(one.far.place, one.at);
  });
  const groups = await c.aggregate([{ $geoNear: { ...stage, maxDistance: 9000 } }, { $group: { _id: '$kind', n: { $sum: 1 }, least: { $min: '$far.away' } } }, { $sort: { _id: 1 } }]).toArray();
  for (const { _id, n, least } of groups) {
    const of = order.filter(({ kind, far }) => kind === _id && far <= 9000);
    assert.equal(n, of.length);
    assert.ok(Math.abs(least - of[0].far) < 1e-3);
  }
  // a pair of numbers is in radians with spherical; within other pipelines it stands first
  const [radians] = await c.aggregate([{ $geoNear: { near: from, distanceField: 'd', spherical: true } }, { $limit: 1 }]).toArray();
  assert.ok(Math.abs(radians.d - order[0].far / radius) < 1e-12);
  const cities = db.collection('cities');
  await cities.insertOne({ _id: 'x' });
  const looked = await cities.aggregate([{ $lookup: { from: 'places', as: 'near', pipeline: [{ $geoNear: stage }, { $limit: 3 }, { $project: { _id: 1 } }] } }]).toArray();
  assert.deepEqual(ids(looked[0].near), ids(order.slice(0, 3)));
  const united = await cities.aggregate([{ $unionWith: { coll: 'places', pipeline: [{ $geoNear: stage }, { $limit: 2 }] } }]).toArray();
  assert.deepEqual(ids(united), ['x', ...ids(order.slice(0, 2))]);
  const batches = await c.aggregate([{ $geoNear: stage }], { batchSize: 30 }).toArray();
  assert.deepEqual(ids(batches), ids(all));
});

test('of a document with several figures the nearest counts, and it comes once', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await c.createIndex({ 'stops.at': '2dsphere' });
  await c.insertMany([
    { _id: 'two', stops: [{ at: point(0, 0) }, { at: point(3, 0) }] },
    { _id: 'one', stops: { at: point(1, 0) } },
    { _id: 'pairs', stops: [{ at: [2, 0] }, { name: 'nowhere' }, { at: [[40, 40], [1.5, 0]] }] },
    { _id: 'line', stops: { at: { type: 'LineString', coordinates: [[2.2, -5], [2.2, 5]] } } },
    { _id: 'area', stops: { at: { type: 'Polygon', coordinates: [[[5, -1], [8, -1], [8, 1], [5, 1], [5, -1]]] } } },
    { _id: 'none', stops: [] },
  ]);
  const order = async (from, terms = {}) => ids(await c.find({ 'stops.at': { $near: { $geometry: point(...from), ...terms } } }).toArray());
  assert.deepEqual(await order([0, 0]), ['two', 'one', 'pairs', 'line', 'area']);
  assert.deepEqual(await order([2.9, 0]), ['two', 'line', 'pairs', 'one', 'area']);
  assert.deepEqual(await order([6, 0], { $maxDistance: 1 }), ['area']);
  assert.deepEqual(await order([0, 0], { $minDistance: 1 }), ['one', 'pairs', 'line', 'area'], 'the nearest of two is nearer');
  assert.deepEqual(ids(await c.find({ 'stops.at': { $near: { $geometry: point(0, 0) } } }).limit(2).toArray()), ['two', 'one']);
  assert.deepEqual(ids(await c.find({ 'stops.at': { $geoWithin: { $centerSphere: [[0, 0], 0.03] } } }).sort({ _id: 1 }).toArray()), ['one', 'pairs', 'two']);
});

test('a 2d index is of a plane', async (t) => {
  const { db } = await mongo(t);
  const c = db.collection('c');
  await c.createIndex({ at: '2d', kind: 1 });
  const next = random(3);
  const list = [...Array(500).keys()].map((i) => ({ _id: i, kind: i % 4, at: [next() * 100 - 50, next() * 100 - 50] }));
  await c.insertMany(list);
  const flat = ([ax, ay], [bx, by]) => Math.hypot(ax - bx, ay - by);
  const order = nearest(list, [10, -5], flat);
  assert.deepEqual(ids(await c.find({ at: { $near: [10, -5] } }).toArray()), ids(order));
  assert.deepEqual(ids(await c.find({ at: { $near: [10, -5] } }).limit(9).toArray()), ids(order.slice(0, 9)));
  assert.deepEqual(ids(await c.find({ kind: 1, at: { $near: { x: 10, y: -5 }, $maxDistance: 20, $minDistance: 4 } }).toArray()),
    ids(order.filter(({ kind, far }) => kind === 1 && far >= 4 && far <= 20)));
  assert.deepEqual(ids(await c.find({ at: { $near: [10, -5, 6] } }).toArray()), ids(order.filter(({ far }) => far <= 6)));
  assert.deepEqual(ids(await c.find({ at: { $geoWithin: { $center: [[10, -5], 12] } } }).sort({ _id: 1 }).toArray()),
    ids(order.filter(({ far }) => far <= 12)).sort((a, b) => a - b));
  const [first] = await c.aggregate([{ $geoNear: { near: [10, -5], distanceField: 'd' } }, { $limit: 1 }]).toArray();
  assert.equal(first.d, order[0].far);
  // on the Earth, with the same index
  const sphere = nearest(list, [10, -5]);
  assert.deepEqual(ids(await c.find({ at: { $nearSphere: [10, -5] } }).limit(20).toArray()), ids(sphere.slice(0, 20)));
  await assert.rejects(c.find({ at: { $near: { $geometry: point(10, -5) } } }).toArray(), { code: 291 });
});

test('an index leads there: little is read, and explain says how', async (t) => {
  const { db } = await mongo(t);
  const list = places(3000, 5);
  const c = await fill(db, 'places', list, false);
  await c.createIndex({ kind: 1, at: '2dsphere' }, { name: 'both' });
  const stages = (plan) => [plan.stage, ...(plan.inputStage ? stages(plan.inputStage) : [])];
  const explain = (filter, limit = 0) => c.find(filter).limit(limit).explain('executionStats');
  const near = { at: { $near: { $geometry: point(100, 10) } } };
  const plain = await explain(near, 5);
  assert.deepEqual(stages(plain.queryPlanner.winningPlan), ['LIMIT', 'GEO_NEAR_2DSPHERE', 'FETCH', 'IXSCAN']);
  assert.equal(plain.queryPlanner.winningPlan.inputStage.inputStage.inputStage.indexName, 'at_2dsphere');
  assert.ok(plain.executionStats.totalDocsExamined < 300, `${plain.executionStats.totalDocsExamined} documents`);
  assert.equal(plain.executionStats.nReturned, 5);
  const kinds = await explain({ kind: 2, ...near }, 5);
  assert.equal(kinds.queryPlanner.winningPlan.inputStage.inputStage.inputStage.indexName, 'both');
  const max = await explain({ at: { $near: { $geometry: point(2.35, 48.85), $maxDistance: 500 } } });
  assert.ok(max.executionStats.totalDocsExamined < 100, `${max.executionStats.totalDocsExamined} documents`);
  const square = [[[2.3, 48.8], [2.31, 48.8], [2.31, 48.81], [2.3, 48.81], [2.3, 48.8]]];
  for (const filter of [{ at: { $geoWithin: { $geometry: { type: 'Polygon', coordinates: square } } } },
    { at: { $geoIntersects: { $geometry: { type: 'Polygon', coordinates: square } } } },
    { at: { $geoWithin: { $centerSphere: [[2.3, 48.8], 700 / radius] } } }]) {
    const told = await explain(filter);
    assert.deepEqual(stages(told.queryPlanner.winningPlan), ['FETCH', 'IXSCAN'], JSON.stringify(filter));
    assert.ok(told.executionStats.totalDocsExamined < 150, `${told.executionStats.totalDocsExamined} documents`);
    const found = ids(await c.find(filter).sort({ _id: 1 }).toArray());
    assert.deepEqual(found, ids(await c.find(filter).hint({ $natural: 1 }).sort({ _id: 1 }).toArray()));
  }
  const pipeline = await c.aggregate([{ $geoNear: { near: point(100, 10), distanceField: 'd', key: 'at' } }, { $limit: 3 }]).explain('executionStats');
  const told = pipeline.stages ? pipeline.stages[0].$cursor : pipeline;
  assert.ok(stages(told.queryPlanner.winningPlan).includes('GEO_NEAR_2DSPHERE'), JSON.stringify(told.queryPlanner.winningPlan));
  assert.ok(told.executionStats.totalDocsExamined < 300, `${told.executionStats.totalDocsExamined} documents`);
});

test('an index is built online, survives a restart, and follows its documents', async (t) => {
  const args = ['--dev', '--node', `local=rocksdb:${join(scratch(t), 'node')}`];
  const list = places(300, 11);
  let server = await Server.start(t, args);
  let c = (await mongoClient(t, server.mongo)).db('shop').collection('places');
  await c.insertMany(list.map(({ at, ...rest }) => ({ ...rest, at })));
  await c.createIndex({ at: '2dsphere' }, { partialFilterExpression: { kind: { $lt: 4 } } });
  await c.createIndex({ at: '2dsphere' }, { name: 'whole' });
  const order = nearest(list, [10, 50]);
  const near = { at: { $near: { $geometry: point(10, 50) } } };
  assert.deepEqual(ids(await c.find(near).limit(15).toArray()), ids(order.slice(0, 15)));
  await c.updateOne({ _id: order[0]._id }, { $set: { at: point(-100, -50) } });
  await c.deleteOne({ _id: order[1]._id });
  await c.updateOne({ _id: order[2]._id }, { $unset: { at: 1 } });
  assert.deepEqual(ids(await c.find(near).limit(5).toArray()), ids(order.slice(3, 8)));
  await server.stop();
  server = await Server.start(t, args);
  c = (await mongoClient(t, server.mongo)).db('shop').collection('places');
  assert.deepEqual(ids(await c.find(near).limit(5).toArray()), ids(order.slice(3, 8)));
  const far = await c.find(near).toArray();
  assert.equal(far.length, 298);
  assert.equal(far.filter(({ _id }) => _id === order[0]._id).length, 1);
  assert.deepEqual(ids(await c.find({ kind: { $lt: 2 }, ...near }).limit(5).toArray()), ids(order.slice(3).filter(({ kind }) => kind < 2).slice(0, 5)));
});
