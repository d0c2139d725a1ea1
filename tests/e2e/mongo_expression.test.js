// Aggregation expressions where commands take them: $expr, computed fields, `let`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mongo } from './mongo.js';

async function orders(t) {
  const { client } = await mongo(t);
  const collection = client.db('shop').collection('orders');
  await collection.insertMany([
    { _id: 1, price: 10, paid: 10, tags: ['a'] },
    { _id: 2, price: 20, paid: 5, tags: ['a', 'b'] },
    { _id: 3, price: 30, paid: 30 },
  ]);
  return collection;
}

const ids = async (cursor) => (await cursor.sort({ _id: 1 }).toArray()).map(({ _id }) => _id);

test('$expr compares fields with each other and with variables of let', async (t) => {
  const collection = await orders(t);
  assert.deepEqual(await ids(collection.find({ $expr: { $lt: ['$paid', '$price'] } })), [2]);
  assert.deepEqual(await ids(collection.find({ $expr: { $gt: ['$price', '$$least'] } }, { let: { least: { $add: [5, 10] } } })), [2, 3]);
  assert.deepEqual(await ids(collection.find({ $expr: { $eq: ['$price', 30] } })), [3]);
  await assert.rejects(collection.find({ $expr: { $foo: 1 } }).toArray(), { code: 168, message: "Unrecognized expression '$foo'" });
  await assert.rejects(collection.find({ $expr: '$$x' }).toArray(), { code: 17276 });
  await assert.rejects(collection.find({}, { let: { x: '$price' } }).toArray(), { code: 4890500 });
});

test('a projection computes fields', async (t) => {
  const collection = await orders(t);
  const [first] = await collection.find({ _id: 2 }, { projection: { owed: { $subtract: ['$price', '$paid'] }, twice: { $multiply: ['$price', '$$n'] } }, let: { n: 2 } }).toArray();
  assert.deepEqual(first, { _id: 2, owed: 15, twice: 40 });
});

test('writes take let', async (t) => {
  const collection = await orders(t);
  const below = { $expr: { $lt: ['$paid', '$$wanted'] } };
  const { modifiedCount } = await collection.updateMany(below, { $set: { late: true } }, { let: { wanted: 20 } });
  assert.equal(modifiedCount, 2);
  const shown = await collection.findOneAndUpdate(below, { $set: { late: false } }, { let: { wanted: 6 }, projection: { rest: { $subtract: ['$price', '$$wanted'] } } });
  assert.deepEqual(shown, { _id: 2, rest: 14 });
  const { deletedCount } = await collection.deleteMany(below, { let: { wanted: 20 } });
  assert.equal(deletedCount, 2);
});
