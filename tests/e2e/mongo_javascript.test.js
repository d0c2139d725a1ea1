// JavaScript of clients of the MongoDB API: $where, $function, $accumulator and mapReduce.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Code, Decimal128, Long, ObjectId } from 'mongodb';
import { emulatorKey, Server } from './server.js';
import { mongo, mongoClient } from './mongo.js';
import { signed } from './rest.js';

/* global emit, obj, ObjectId, weight */

// A process may take its time to start where many tests run.
const on = ['--set', 'mongo.javascript=true', '--set', 'script.wait_ms=60s', '--set', 'script.time_ms=30s'];

async function filled(t, args = on, count = 300) {
  const made = await mongo(t, args);
  const items = made.db.collection('items');
  await items.insertMany(Array.from({ length: count }, (_, n) => ({ _id: n, n, kind: `k${n % 3}`, tags: ['a', `t${n % 5}`] })));
  return { ...made, items };
}

const ids = (documents) => documents.map(({ _id }) => _id).sort((a, b) => a - b);
const upTo = (count, holds) => Array.from({ length: count }, (_, n) => n).filter(holds);
const call = (body, ...args) => ({ $function: { body: body.toString(), args, lang: 'js' } });
const counter = {
  init: 'function (start) { return { n: start, sum: 0 }; }', initArgs: [0],
  accumulate: 'function (state, n) { return { n: state.n + 1, sum: state.sum + n }; }', accumulateArgs: ['$n'],
  merge: 'function (a, b) { return { n: a.n + b.n, sum: a.sum + b.sum }; }',
  finalize: 'function (state) { return state.sum / state.n; }', lang: 'js',
};

test('JavaScript is off unless the setting says otherwise, and each word is refused by its name', async (t) => {
  const { db, items } = await filled(t, [], 3);
  const off = (name) => ({ code: 238, message: new RegExp(`^\\${name} is not offered: JavaScript is off \\(setting mongo\\.javascript\\)`) });
  await assert.rejects(items.find({ $where: 'true' }).toArray(), off('$where'));
  await assert.rejects(items.countDocuments({ $expr: call('() => true') }), off('$function'));
  await assert.rejects(items.deleteMany({ $where: 'true' }), { code: 238 });
  await assert.rejects(items.updateMany({}, [{ $set: { x: call('() => 1') } }]), { code: 238 });
  await assert.rejects(items.aggregate([{ $project: { x: call('() => 1') } }]).toArray(), off('$function'));
  await assert.rejects(items.aggregate([{ $group: { _id: null, x: { $accumulator: counter } } }]).toArray(), off('$accumulator'));
  await assert.rejects(items.aggregate([{ $merge: { into: 'other', whenMatched: [{ $set: { x: call('() => 1') } }] } }]).toArray(), { code: 238 });
  await assert.rejects(db.command({ mapReduce: 'items', map: 'x', reduce: 'y', out: { inline: 1 } }),
    { code: 238, message: /^mapReduce is not offered: JavaScript is off \(setting mongo\.javascript\)/ });
  assert.equal(await items.countDocuments(), 3);
});

test('$where takes a function, an expression or statements, as text or code', async (t) => {
  const { items } = await filled(t);
  const expected = upTo(300, (n) => n % 7 === 2);
  for (const where of ['this.n % 7 === 2', 'obj.n % 7 == 2;', 'return this.n % 7 === 2;', 'function () { return this.n % 7 === 2; }',
    '() => obj.n % 7 === 2', new Code('function () { return obj.n % 7 === 2; }')])
    assert.deepEqual(ids(await items.find({ $where: where }).toArray()), expected, `${where}`);
  assert.deepEqual(ids(await items.find({ kind: 'k1', $where: 'this.n % 7 === 2' }).toArray()), expected.filter((n) => n % 3 === 1));
  assert.deepEqual(ids(await items.find({ $or: [{ $where: 'this.n === 5' }, { n: 9 }] }).toArray()), [5, 9]);
  assert.deepEqual(ids(await items.find({ $nor: [{ $where: 'this.n !== 5' }] }).toArray()), [5]);
  assert.deepEqual(ids(await items.find({ $where: 'this.n % 2 === 0' }).sort({ n: -1 }).skip(2).limit(3).batchSize(1).toArray()), [290, 292, 294]);
  assert.equal(await items.countDocuments({ n: { $lt: 10 } }), 10);
  assert.equal((await items.findOne({ $where: 'this.tags.indexOf("t4") >= 0 && this.n > 100' })).tags[1], 't4');
  assert.equal((await items.distinct('kind', { $where: 'this.n > 100' })).length, 3);
});

test('$where chooses what is changed and deleted', async (t) => {
  const { items } = await filled(t, on, 20);
  assert.equal((await items.updateMany({ $where: 'this.n >= 15' }, { $set: { high: true } })).modifiedCount, 5);
  assert.equal((await items.deleteMany({ $where: 'this.high === true' })).deletedCount, 5);
  assert.equal((await items.findOneAndUpdate({ $where: 'this.n === 4' }, { $inc: { n: 100 } }, { returnDocument: 'after' })).n, 104);
  assert.equal((await items.updateOne({ _id: 3 }, [{ $set: { twice: call((n) => n * 2, '$n') } }])).modifiedCount, 1);
  assert.equal((await items.findOne({ _id: 3 })).twice, 6);
});

test('$where is refused where MongoDB refuses it', async (t) => {
  const { db, items } = await filled(t, on, 3);
  await assert.rejects(items.aggregate([{ $match: { $where: 'true' } }]).toArray(), { code: 2, message: /\$where is not allowed in this context/ });
  await assert.rejects(items.find({ tags: { $elemMatch: { $where: 'true' } } }).toArray(), { code: 2 });
  await assert.rejects(items.find({ $where: 5 }).toArray(), { code: 2 });
  await assert.rejects(db.createCollection('checked', { validator: { $where: 'true' } }), { code: 2 });
  await assert.rejects(db.createCollection('checked', { validator: { $expr: call('() => true') } }), { code: 224 });
});

test('$function computes in every stage, also within $map and behind $group', async (t) => {
  const { items } = await filled(t);
  const [row] = await items.aggregate([{ $match: { _id: 7 } }, { $project: {
    sum: call((n, tags) => n + tags.length, '$n', '$tags'),
    each: { $map: { input: '$tags', as: 'tag', in: call((tag, n) => `${tag}-${n}`, '$$tag', '$n') } },
    missing: call((x) => x === null, '$nowhere'),
    none: call(() => undefined),
  } }]).toArray();
  assert.deepEqual(row, { _id: 7, sum: 9, each: ['a-7', 't2-7'], missing: true, none: null });
  const filtered = await items.aggregate([{ $match: { $expr: call((n) => n > 296, '$n') } }]).toArray();
  assert.deepEqual(ids(filtered), [297, 298, 299]);
  const groups = await items.aggregate([
    { $group: { _id: call((n) => n % 2, '$n'), sum: { $sum: call((n) => n * 2, '$n') } } },
    { $set: { name: call((id) => (id ? 'odd' : 'even'), '$_id') } }, { $sort: { name: 1 } }]).toArray();
  assert.deepEqual(groups.map(({ name, sum }) => [name, sum]), [['even', 44700], ['odd', 45000]]);
});

test('$function says what is wrong with its arguments', async (t) => {
  const { items } = await filled(t, on, 1);
  const wrong = (specification) => items.aggregate([{ $project: { x: { $function: specification } } }]).toArray();
  await assert.rejects(wrong('x'), { code: 4660800 });
  await assert.rejects(wrong({ args: [], lang: 'js' }), { code: 4660800 });
  await assert.rejects(wrong({ body: '() => 1', lang: 'js' }), { code: 4660801 });
  await assert.rejects(wrong({ body: '() => 1', args: [] }), { code: 4660802 });
  await assert.rejects(wrong({ body: '() => 1', args: [], lang: 'lua' }), { code: 4660803 });
  await assert.rejects(wrong({ body: '() => 1', args: 5, lang: 'js' }), { code: 31266 });
});

test('types cross both ways', async (t) => {
  const { db } = await mongo(t, on);
  const types = db.collection('types');
  const _id = new ObjectId();
  const document = { _id, when: new Date(86400000), text: 'ü"\u2028', yes: true, nothing: null, real: 1.5, whole: 7, list: [1, [2]], inner: { a: { b: 1 } },
    decimal: Decimal128.fromString('1.10'), nan: NaN, far: -Infinity, pattern: /a.c/i, bytes: Buffer.from('xyz'), long: Long.fromNumber(2 ** 40) };
  await types.insertOne(document);
  const shown = await types.findOne({ _id });
  const [{ copy }] = await types.aggregate([{ $project: { _id: 0, copy: call((doc) => doc, '$$ROOT') } }]).toArray();
  assert.deepEqual(copy, shown);
  const [{ seen }] = await types.aggregate([{ $project: { _id: 0, seen: call((doc) => ({
    id: doc._id.str, year: doc.when.getUTCFullYear(), test: doc.pattern.test('xAbC'), sum: doc.real + doc.whole, nan: Number.isNaN(doc.nan),
    same: doc._id.equals(ObjectId(doc._id.str)), made: ObjectId('0123456789abcdef01234567'), later: new Date(doc.when.getTime() + 1), big: 2n ** 60n,
  }), '$$ROOT') } }]).toArray();
  assert.deepEqual(seen, { id: _id.toHexString(), year: 1970, test: true, sum: 8.5, nan: true, same: true,
    made: new ObjectId('0123456789abcdef01234567'), later: new Date(86400001), big: Long.fromString('1152921504606846976') });
});

test('$accumulator runs its functions over each group', async (t) => {
  const { items } = await filled(t);
  const rows = await items.aggregate([{ $group: { _id: '$kind', mean: { $accumulator: counter } } }, { $sort: { _id: 1 } }]).toArray();
  assert.deepEqual(rows, [{ _id: 'k0', mean: 148.5 }, { _id: 'k1', mean: 149.5 }, { _id: 'k2', mean: 150.5 }]);
  const wrong = (part) => items.aggregate([{ $group: { _id: null, x: { $accumulator: { ...counter, ...part } } } }]).toArray();
  const { merge, ...unmerged } = counter;
  await assert.rejects(items.aggregate([{ $group: { _id: null, x: { $accumulator: unmerged } } }]).toArray(), { code: 4544707 });
  await assert.rejects(wrong({ merge: merge.slice(9) }), { code: 139 });
  await assert.rejects(wrong({ accumulate: 5 }), { code: 4544701 });
  await assert.rejects(wrong({ other: 1 }), { code: 4544706 });
  await assert.rejects(wrong({ accumulate: 'function () { throw new Error("no"); }' }), { code: 139, message: /Error: no/ });
});

const map = 'function () { for (var i = 0; i < this.tags.length; i++) emit(this.tags[i], this.n); }';
const reduce = 'function (key, values) { return Array.sum(values); }';
const sums = (count) => {
  const sum = {};
  for (let n = 0; n < count; n++) for (const tag of ['a', `t${n % 5}`]) sum[tag] = (sum[tag] ?? 0) + n;
  return Object.entries(sum).sort().map(([_id, value]) => ({ _id, value }));
};
const sorted = (rows) => rows.sort((a, b) => (a._id < b._id ? -1 : 1));

test('mapReduce answers inline: query, sort, limit, scope, finalize', async (t) => {
  const { db } = await filled(t);
  const run = (options) => db.command({ mapReduce: 'items', map, reduce, out: { inline: 1 }, ...options });
  assert.deepEqual(sorted((await run()).results), sums(300));
  assert.deepEqual(sorted((await run({ map: new Code(map), query: { n: { $lt: 10 } } })).results), sums(10));
  assert.deepEqual(sorted((await run({ sort: { n: 1 }, limit: 10 })).results), sums(10));
  const scoped = await run({ map: 'function () { emit(null, this.n * weight); }', finalize: 'function (key, value) { return { key, value, weight }; }', scope: { weight: 2 } });
  assert.deepEqual(scoped.results, [{ _id: null, value: { key: null, value: 89700, weight: 2 } }]);
  const single = await run({ query: { n: 5 }, map: 'function () { emit({ n: this.n }, undefined); }', reduce: 'function () { return "never"; }' });
  assert.deepEqual(single.results, [{ _id: { n: 5 }, value: null }]);
  assert.deepEqual((await db.command({ mapReduce: 'nowhere', map, reduce, out: { inline: 1 } })).results, []);
});

test('mapReduce fills a collection: replace, merge, reduce', async (t) => {
  const { client, db } = await filled(t, on, 10);
  const run = (out, options) => db.command({ mapReduce: 'items', map, reduce, out, ...options });
  const made = async (name = 'made') => sorted(await db.collection(name).find().toArray());
  assert.equal((await run('made')).result, 'made');
  assert.deepEqual(await made(), sums(10));
  await run({ reduce: 'made' }, { query: { n: { $lt: 5 } } });
  const again = Object.fromEntries(sums(5).map(({ _id, value }) => [_id, value]));
  assert.deepEqual(await made(), sums(10).map(({ _id, value }) => ({ _id, value: value + again[_id] })));
  await run({ merge: 'made' }, { query: { n: 7 } });
  const merged = Object.fromEntries((await made()).map(({ _id, value }) => [_id, value]));
  assert.deepEqual([merged.a, merged.t2], [7, 7]);
  await run({ replace: 'made' }, { query: { n: 7 } });
  assert.deepEqual(await made(), [{ _id: 'a', value: 7 }, { _id: 't2', value: 7 }]);
  assert.deepEqual((await run({ replace: 'there', db: 'elsewhere' })).result, { db: 'elsewhere', collection: 'there' });
  assert.deepEqual(sorted(await client.db('elsewhere').collection('there').find().toArray()), sums(10));
  await assert.rejects(run({ replace: 'made', nonAtomic: false }), { code: 2 });
  await assert.rejects(run('made', { bypassDocumentValidation: true }), { code: 238 });
  await assert.rejects(run('made', { map: 5 }), { code: 14 });
});

test('what a function throws, and what is none, is 139 with its words', async (t) => {
  const { db, items } = await filled(t, on, 40);
  const failed = (words) => ({ code: 139, codeName: 'JSInterpreterFailure', message: words });
  await assert.rejects(items.find({ $where: 'this.a.b.c' }).toArray(), failed(/TypeError/));
  await assert.rejects(items.find({ $where: 'function () { throw new RangeError("too far"); }' }).toArray(), failed(/RangeError: too far/));
  await assert.rejects(items.find({ $where: 'function ( {' }).toArray(), failed(/SyntaxError/));
  await assert.rejects(items.aggregate([{ $project: { x: call('5') } }]).toArray(), failed(/body is not a function/));
  await assert.rejects(items.aggregate([{ $project: { x: call('async () => 1') } }]).toArray(), failed(/asynchronous/));
  await assert.rejects(items.aggregate([{ $project: { x: call('() => { const a = []; a[0] = a; return a; }') } }]).toArray(), failed(/RangeError/));
  await assert.rejects(db.command({ mapReduce: 'items', map: 'function () { emit(1, nothing); }', reduce, out: { inline: 1 } }), failed(/nothing/));
  // a row that nobody asks for does no harm
  assert.deepEqual(ids(await items.find({ n: { $lt: 2 }, $where: 'if (this.n > 5) throw 1; return true;' }).toArray()), [0, 1]);
});

test('a function that never ends, and one that eats memory, end alone', async (t) => {
  const { server, client, db, items } = await filled(t, [...on, '--set', 'script.time_ms=2s', '--set', 'script.memory_bytes_max=64M'], 5);
  await assert.rejects(items.find({ $where: 'while (true);' }).toArray(), { code: 50 });
  await assert.rejects(items.aggregate([{ $project: { x: call('() => { for (;;); }') } }]).toArray(), { code: 50 });
  await assert.rejects(db.command({ mapReduce: 'items', map: 'function () { for (;;); }', reduce, out: { inline: 1 } }), { code: 50 });
  await assert.rejects(items.find({ $where: 'let a = []; for (;;) a.push(new Array(100000).fill(7)); return true;' }).toArray(),
    ({ code }) => code === 139 || code === 50);
  assert.deepEqual(ids(await items.find({ $where: 'this.n > 2' }).toArray()), [3, 4]);
  // others while it runs
  const made = await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'acme' } });
  const url = server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://acme:${encodeURIComponent(made.json.keys.primary)}@`);
  const other = (await mongoClient(t, url)).db('shop').collection('items');
  await other.insertOne({ _id: 1, n: 1 });
  const looping = Promise.allSettled(Array.from({ length: 6 }, () => client.db('shop').collection('items').find({ $where: 'while (true);' }).toArray()));
  for (let i = 0; i < 5; i++) assert.deepEqual(ids(await other.find({ $where: 'this.n === 1' }).toArray()), [1]);
  for (const { reason } of await looping) assert.ok([50, 16500].includes(reason.code), `${reason.code}`);
});

test('maxTimeMS ends a function before its own limit does', async (t) => {
  const { db, items } = await filled(t, [...on, '--set', 'script.time_ms=60s'], 3);
  await assert.rejects(items.find({ $where: 'while (true);' }).maxTimeMS(200).toArray(), { code: 50 });
  await assert.rejects(db.command({ mapReduce: 'items', map: 'function () { for (;;); }', reduce, out: 'made', maxTimeMS: 200 }), { code: 50 });
  assert.deepEqual((await db.listCollections().toArray()).map(({ name }) => name), ['items']);
});

test('within a transaction functions see what it has written', async (t) => {
  const { client, items } = await filled(t, on, 3);
  const session = client.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  await items.insertOne({ _id: 3, n: 30 }, { session });
  assert.deepEqual(ids(await items.find({ $where: 'this.n > 1' }, { session }).toArray()), [2, 3]);
  assert.equal((await items.updateMany({ $where: 'this.n > 1' }, [{ $set: { n: call((n) => n + 1, '$n') } }], { session })).modifiedCount, 2);
  await session.commitTransaction();
  assert.deepEqual((await items.find().sort({ _id: 1 }).toArray()).map(({ n }) => n), [0, 1, 3, 31]);
});

test('documents of megabytes, and more results than fit one answer, come through', async (t) => {
  const { db } = await mongo(t, [...on, '--set', 'script.output_bytes_max=1M']);
  const large = db.collection('large');
  for (let n = 0; n < 6; n++) await large.insertOne({ _id: n, text: `${n}`.repeat(600_000) });
  assert.deepEqual(ids(await large.find({ $where: 'this.text[0] > "2"' }).toArray()), [3, 4, 5]);
  const copies = await large.aggregate([{ $project: { copy: call((text) => text, '$text') } }]).toArray();
  assert.deepEqual(copies.map(({ _id, copy }) => copy === `${_id}`.repeat(600_000)), Array(6).fill(true));
  await assert.rejects(large.aggregate([{ $project: { x: call((text) => text + text, '$text') } }]).toArray(), { code: 10334 });
});

test('nothing is left behind for another user, nor in the global object for oneself', async (t) => {
  const server = await Server.start(t, ['--dev', ...on]);
  const { keys } = (await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'acme' } })).json;
  const url = (user, key) => server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://${user}:${encodeURIComponent(key)}@`);
  const owner = (await mongoClient(t, url('acme', keys.primary))).db('shop');
  const reader = (await mongoClient(t, url('acme', keys['primary-readonly'] ?? keys.primaryReadonly))).db('shop');
  const stranger = (await mongoClient(t, url('default', emulatorKey))).db('shop');
  for (const db of [owner, stranger]) await db.collection('c').insertOne({ _id: 1 });
  const kept = (db, body) => db.collection('c').aggregate([{ $project: { x: call(body) } }]).next().then(({ x }) => x);
  const counts = '(() => { let runs = 0; return () => ++runs; })()';
  assert.equal(await kept(owner, counts), 1);
  assert.equal(await kept(reader, counts), 1);
  assert.equal(await kept(stranger, counts), 1);
  const leaves = '() => { const before = typeof leftover; globalThis.leftover = 1; return before; }';
  for (const db of [owner, owner, reader, stranger]) assert.equal(await kept(db, leaves), 'undefined');
  assert.equal(await kept(owner, '() => typeof leftover'), 'undefined');
});

test('a user who may only read writes nothing by mapReduce', async (t) => {
  const { server, client, db } = await filled(t, on, 10);
  await db.command({ createUser: 'reader', pwd: 'pencil', roles: [{ role: 'read', db: 'shop' }] });
  await db.command({ createUser: 'writer', pwd: 'pencil', roles: [{ role: 'readWrite', db: 'shop' }] });
  const as = async (user) => (await mongoClient(t, `${server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://${user}:pencil@`)}/shop`)).db('shop');
  const run = (by, out) => by.command({ mapReduce: 'items', map, reduce, out });
  const reader = await as('reader'), writer = await as('writer');
  assert.deepEqual(sorted((await run(reader, { inline: 1 })).results), sums(10));
  for (const out of ['made', { merge: 'made' }, { reduce: 'made' }]) await assert.rejects(run(reader, out), { code: 13 });
  await assert.rejects(run(writer, { replace: 'made', db: 'elsewhere' }), { code: 13 });
  assert.equal((await run(writer, 'made')).result, 'made');
  assert.deepEqual((await client.db('elsewhere').listCollections().toArray()), []);
});

test('a view may compute by JavaScript, a change stream may not', async (t) => {
  const { db, items } = await filled(t, on, 4);
  await db.createCollection('doubled', { viewOn: 'items', pipeline: [{ $project: { twice: call((n) => n * 2, '$n') } }] });
  assert.deepEqual((await db.collection('doubled').find({ twice: { $gt: 2 } }).sort({ _id: 1 }).toArray()).map(({ twice }) => twice), [4, 6]);
  const stream = items.watch([{ $match: { $expr: call('() => true') } }]);
  await assert.rejects(stream.tryNext(), { code: 224 });
  await stream.close();
});

test('a sharded collection is asked in all its chunks', async (t) => {
  const { client, db } = await mongo(t, on);
  await client.db('admin').command({ shardCollection: 'shop.wide', key: { tenant: 'hashed' }, numInitialChunks: 4 });
  const wide = db.collection('wide');
  await wide.insertMany(Array.from({ length: 400 }, (_, n) => ({ _id: n, tenant: `t${n % 40}`, n, tags: ['a', `t${n % 5}`] })));
  assert.deepEqual(ids(await wide.find({ $where: 'this.n % 3 === 0' }).batchSize(50).toArray()), upTo(400, (n) => n % 3 === 0));
  const { results } = await db.command({ mapReduce: 'wide', map, reduce, out: { inline: 1 } });
  assert.deepEqual(sorted(results), sums(400));
  const [{ mean }] = await wide.aggregate([{ $group: { _id: null, mean: { $accumulator: counter } } }]).toArray();
  assert.equal(mean, 199.5);
});
