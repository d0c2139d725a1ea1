// Aggregation expressions where commands take them: $expr, computed fields, `let`.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { BSON } from 'mongodb';
import { mongo } from './mongo.js';

const { EJSON } = BSON;

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

test('CLUSTER_TIME and NOW are the server\'s', async (t) => {
  const collection = await orders(t);
  const [found] = await collection.find({ _id: 1 }, { projection: { time: '$$CLUSTER_TIME', now: '$$NOW' } }).toArray();
  assert.ok(Math.abs(found.time.getHighBitsUnsigned() * 1000 - found.now.getTime()) < 60_000);
  const [same] = await collection.aggregate([{ $match: { _id: 1 } }, { $project: { kind: { $type: '$$CLUSTER_TIME' } } }]).toArray();
  assert.equal(same.kind, 'timestamp');
  assert.equal(await collection.countDocuments({ $expr: { $lt: ['$$CLUSTER_TIME', 5] } }), 0);
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

// Each case of tests/cases/mongo/expression.json as a computed field; its document is CURRENT, since
// what is stored has an _id besides.
test('the cases give through a server what they give without one', async (t) => {
  const { client } = await mongo(t, [], { promoteValues: false });
  const collection = client.db('shop').collection('cases');
  const text = await readFile(new URL('../cases/mongo/expression.json', import.meta.url), 'utf8');
  const { cases } = EJSON.parse(text, { relaxed: false });
  const shown = (value) => EJSON.stringify(value ?? { missing: 1 }, { relaxed: false });
  await collection.insertMany(cases.map(({ doc }, i) => ({ _id: i, d: doc ?? {} })));
  const wrong = [];
  for (const [i, { e, is, code, doc }] of cases.entries()) {
    if (shown(e).includes('$$ROOT')) continue;
    const v = { $let: { vars: { CURRENT: '$d' }, in: e } };
    try {
      const [found] = await collection.find({ _id: i }, { projection: { _id: 0, v } }).toArray();
      if (code || shown(found.v) !== shown(is)) wrong.push([shown({ e, doc }), code, shown(found.v)]);
    } catch (error) {
      if (Number(error.code) !== Number(code)) wrong.push([shown({ e, doc }), code, error.message]);
    }
  }
  assert.deepEqual(wrong, []);
});

test('the ledger names the expressions and accumulators there are', async (t) => {
  const collection = await orders(t);
  const page = await readFile(new URL('../../docs/compatibility-mongo.md', import.meta.url), 'utf8');
  const [, offered, refused, accumulators] = page.split('## Expressions')[1].split('## Error codes')[0].split(':')
    .map((list) => [...list.matchAll(/`(\$\w+)`/g)].map(([, name]) => name).filter((name) => name !== '$expr'));
  assert.ok(offered.length > 150 && refused.length === 1 && accumulators.length > 20);
  const codeOf = (work) => work.then(() => 0, ({ code }) => code);
  for (const name of offered) assert.notEqual(await codeOf(collection.find({ $expr: { [name]: '$none' } }).toArray()), 168, name);
  for (const name of refused) assert.ok([31264, 40218].includes(await codeOf(collection.find({ $expr: { [name]: 'textScore' } }).toArray())), name);
  for (const name of accumulators) assert.notEqual(await codeOf(collection.aggregate([{ $group: { _id: 1, n: { [name]: {} } } }]).toArray()), 15952, name);
});
