// Parts of a backup in a running server: a container beside and over the one there is, a database, an account, one logical
// partition; and one logical partition back in time by the change feed of all versions.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { BSON, Decimal128, Long, ObjectId } from 'mongodb';
import { Server, orrery, scratch } from './server.js';
import { mongoClient } from './mongo.js';
import { signed } from './rest.js';

const command = (server, ...args) => orrery([...args, '--endpoint', server.url, '--dev']);

async function good(promise) {
  const result = await promise;
  assert.equal(result.code, 0, `${result.err}${result.out}`);
  return result;
}

const json = async (promise) => JSON.parse((await good(promise)).out);

async function made(server, database, id, more = {}) {
  await signed(server, 'POST', '/dbs', { body: { id: database } });
  const answer = await signed(server, 'POST', `/dbs/${database}/colls`, { body: { id, partitionKey: { paths: ['/pk'], kind: 'Hash' }, ...more }, headers: { 'x-ms-offer-throughput': '10000' } });
  assert.equal(answer.status, 201, answer.text);
}

const key = (pk) => ({ 'x-ms-documentdb-partitionkey': JSON.stringify([pk]) });
const put = async (server, container, item) =>
  assert.ok((await signed(server, 'POST', `/dbs/${container}/docs`, { body: item, headers: { ...key(item.pk), 'x-ms-documentdb-is-upsert': 'true' } })).status < 300);
const remove = async (server, container, { id, pk }) =>
  assert.equal((await signed(server, 'DELETE', `/dbs/${container}/docs/${id}`, { headers: key(pk) })).status, 204);

async function itemsOf(server, container) {
  const found = [];
  let continuation;
  do {
    const page = await signed(server, 'GET', `/dbs/${container}/docs`, { headers: { 'x-ms-max-item-count': '1000', ...(continuation ? { 'x-ms-continuation': continuation } : {}) } });
    assert.equal(page.status, 200, page.text);
    found.push(...page.json.Documents);
    continuation = page.headers['x-ms-continuation'];
  } while (continuation);
  return found.map(({ _rid, _self, _etag, _attachments, _ts, ...item }) => item).sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function clean(server) {
  assert.equal(JSON.parse((await command(server, 'verify', '--format', 'json')).out).found, 0);
}

test('a container is restored beside and over the one there is', async (t) => {
  const folder = scratch(t);
  const server = await Server.start(t, ['--dev']);
  await made(server, 'shop', 'orders', { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/mail'] }] } });
  await signed(server, 'POST', '/dbs/shop/colls/orders/sprocs', { body: { id: 'p', body: 'function () { getContext().getResponse().setBody(7) }' } });
  for (let i = 0; i < 400; i++) await put(server, 'shop/colls/orders', { id: `i${i}`, pk: `k${i % 50}`, mail: `m${i}`, text: 'x'.repeat(4000) }); // more than one batch
  const before = await itemsOf(server, 'shop/colls/orders');
  await good(command(server, 'backup', `${folder}/b`));
  for (let i = 0; i < 400; i++) if (i % 10 === 0) await remove(server, 'shop/colls/orders', { id: `i${i}`, pk: `k${i % 50}` });
  await put(server, 'shop/colls/orders', { id: 'later', pk: 'x', mail: 'x' });
  const now = await itemsOf(server, 'shop/colls/orders');

  const dry = await json(command(server, 'restore', `${folder}/b`, '--container', 'shop/orders', '--as', 'again', '--dry-run', '--format', 'json'));
  assert.deepEqual([dry.containers, dry.items, dry.dryRun], [1, 400, true]);
  assert.equal((await signed(server, 'GET', '/dbs/shop/colls/again')).status, 404);
  const taken = await command(server, 'restore', `${folder}/b`, '--container', 'shop/orders');
  assert.equal(taken.code, 1);
  assert.match(taken.err, /already exists/);
  await good(command(server, 'restore', `${folder}/b`, '--container', 'shop/orders', '--as', 'again'));
  assert.deepEqual(await itemsOf(server, 'shop/colls/again'), before);
  assert.match((await signed(server, 'GET', '/dbs/shop/colls/again/sprocs/p')).json.body, /setBody\(7\)/);
  assert.deepEqual(await itemsOf(server, 'shop/colls/orders'), now, 'the other is as it was');
  await good(command(server, 'restore', `${folder}/b`, '--container', 'shop/orders', '--over'));
  assert.deepEqual(await itemsOf(server, 'shop/colls/orders'), before);
  assert.equal((await signed(server, 'GET', '/dbs/shop/colls')).json._count, 2, 'nothing else is left');
  const none = await command(server, 'restore', `${folder}/b`, '--container', 'shop/nothing');
  assert.equal(none.code, 1);
  assert.match(none.err, /no such account, database or container/);
  await clean(server);
});

test('a database and an account are restored', async (t) => {
  const folder = scratch(t);
  const server = await Server.start(t, ['--dev']);
  for (const id of ['a', 'b']) {
    await made(server, 'one', id);
    for (let i = 0; i < 20; i++) await put(server, `one/colls/${id}`, { id: `${id}${i}`, pk: 'k' });
  }
  await made(server, 'two', 'c');
  await put(server, 'two/colls/c', { id: 'c', pk: 'k' });
  await good(command(server, 'backup', `${folder}/b`));
  await signed(server, 'DELETE', '/dbs/one');
  const one = await json(command(server, 'restore', `${folder}/b`, '--database', 'one', '--format', 'json'));
  assert.deepEqual([one.containers, one.items], [2, 40]);
  assert.equal((await itemsOf(server, 'one/colls/b')).length, 20);
  await good(command(server, 'restore', `${folder}/b`, '--database', 'one', '--as', 'copy'));
  assert.equal((await itemsOf(server, 'copy/colls/a')).length, 20);
  const other = await Server.start(t, ['--dev']);
  const all = await json(command(other, 'restore', `${folder}/b`, '--from-account', 'default', '--format', 'json'));
  assert.equal(all.containers, 3);
  assert.deepEqual(await itemsOf(other, 'two/colls/c'), [{ id: 'c', pk: 'k' }]);
  await clean(other);
});

test('one logical partition of a backup goes into a running container, and no other is touched', async (t) => {
  const folder = scratch(t);
  const server = await Server.start(t, ['--dev']);
  const orders = 'shop/colls/orders';
  await made(server, 'shop', 'orders');
  for (const pk of ['a', 'b']) for (let i = 0; i < 30; i++) await put(server, orders, { id: `${pk}${i}`, pk, n: i });
  const before = (await itemsOf(server, orders)).filter(({ pk }) => pk === 'a');
  await good(command(server, 'backup', `${folder}/b`));
  for (const pk of ['a', 'b']) {
    await put(server, orders, { id: `${pk}1`, pk, n: 'changed' });
    await remove(server, orders, { id: `${pk}2`, pk });
    await put(server, orders, { id: `${pk}-new`, pk });
  }
  const others = (await itemsOf(server, orders)).filter(({ pk }) => pk === 'b');
  const told = await json(command(server, 'restore', `${folder}/b`, '--container', 'shop/orders', '--partition-key', 'a', '--format', 'json'));
  assert.equal(told.items, 30);
  const now = await itemsOf(server, orders);
  assert.deepEqual(now.filter(({ pk }) => pk === 'a'), before);
  assert.deepEqual(now.filter(({ pk }) => pk === 'b'), others);
  await clean(server);
});

test('a logical partition that is too large for one commit is restored in several', async (t) => {
  const folder = scratch(t);
  const server = await Server.start(t, ['--dev', '--set', 'partition.ru_max=100000']);
  const orders = 'shop/colls/orders';
  await made(server, 'shop', 'orders');
  const file = `${folder}/items.ndjson`;
  const count = 9001;
  writeFileSync(file, Array.from({ length: count }, (_, i) => JSON.stringify({ id: `${i}`, pk: 'a', n: i })).join('\n'));
  await good(command(server, 'import', file, '--database', 'shop', '--container', 'orders'));
  await put(server, orders, { id: 'other', pk: 'b' });
  const before = await itemsOf(server, orders);
  assert.equal(before.length, count + 1);
  await good(command(server, 'backup', `${folder}/b`));
  // before the first, between and behind the bounds of commits, changed and removed
  for (const id of ['!', '00', '4999x', '5000x', '~']) await put(server, orders, { id, pk: 'a' });
  for (const id of ['0', '4000', '7777', '9000']) await put(server, orders, { id, pk: 'a', n: 'changed' });
  for (const id of ['1', '5001', '8999']) await remove(server, orders, { id, pk: 'a' });
  await put(server, orders, { id: 'other2', pk: 'b' });
  const told = await json(command(server, 'restore', `${folder}/b`, '--container', 'shop/orders', '--partition-key', 'a', '--format', 'json'));
  assert.equal(told.items, count);
  assert.equal(told.commits, 3);
  assert.deepEqual(await itemsOf(server, orders), [...before, { id: 'other2', pk: 'b' }].sort((a, b) => (a.id < b.id ? -1 : 1)));
  const frames = (...items) => Buffer.concat(items.map((item) => { const bytes = BSON.serialize(item); const length = Buffer.alloc(4); length.writeUInt32BE(bytes.length); return Buffer.concat([length, bytes]); }));
  const restore = (query, body) => signed(server, 'POST', `/_orrery/containers/shop/orders/restore?key=${encodeURIComponent('["a"]')}&${query}`, { body });
  // what is written is charged, with a key as without
  for (const query of [`?key=${encodeURIComponent('["b"]')}`, '']) {
    const charged = await signed(server, 'POST', `/_orrery/containers/shop/orders/restore${query}`, { body: frames({ id: 'other', pk: 'b' }) });
    assert.equal(charged.status, 200, charged.text);
    assert.ok(Number(charged.headers['x-ms-request-charge']) > 1, charged.headers['x-ms-request-charge']);
  }
  assert.equal((await restore('after=true', frames())).status, 400);
  assert.equal((await restore('more=true', frames({ id: '2', pk: 'a' }, { id: '1', pk: 'a' }))).status, 400);
  assert.equal((await restore('more=true', frames({ id: '2', pk: 'b' }))).status, 400);
  await clean(server);
});

test('one logical partition goes back in time by the change feed, over itself or beside', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const orders = 'shop/colls/orders';
  await made(server, 'shop', 'orders', { changeFeedPolicy: { retentionDuration: 60 } });
  await made(server, 'shop', 'beside');
  await made(server, 'shop', 'latest');
  for (const pk of ['a', 'b']) for (let i = 0; i < 20; i++) await put(server, orders, { id: `${pk}${i}`, pk, n: i });
  await remove(server, orders, { id: 'a19', pk: 'a' });
  const before = (await itemsOf(server, orders)).filter(({ pk }) => pk === 'a');
  await new Promise((resolve) => setTimeout(resolve, 5));
  const time = String(Date.now());
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (let round = 0; round < 3; round++) for (let i = 0; i < 5; i++) await put(server, orders, { id: `a${i}`, pk: 'a', n: `${round}` });
  for (let i = 5; i < 8; i++) await remove(server, orders, { id: `a${i}`, pk: 'a' });
  await remove(server, orders, { id: 'a8', pk: 'a' });
  await put(server, orders, { id: 'a8', pk: 'a', n: 'made anew' });
  await put(server, orders, { id: 'a19', pk: 'a', n: 'made anew' });
  await put(server, orders, { id: 'anew', pk: 'a' });
  await put(server, orders, { id: 'b1', pk: 'b', n: 'another' });
  const now = await itemsOf(server, orders);
  const back = (...args) => command(server, 'restore', '--container', 'shop/orders', '--partition-key', 'a', '--time', time, ...args);
  assert.deepEqual(await json(back('--dry-run', '--format', 'json')), { written: 9, removed: 2, dryRun: true });
  assert.deepEqual(await itemsOf(server, orders), now);
  await good(back('--as', 'beside'));
  assert.deepEqual(await itemsOf(server, 'shop/colls/beside'), before);
  assert.deepEqual(await itemsOf(server, orders), now);
  await good(back());
  assert.deepEqual((await itemsOf(server, orders)).filter(({ pk }) => pk === 'a'), before);
  assert.deepEqual((await itemsOf(server, orders)).filter(({ pk }) => pk === 'b'), now.filter(({ pk }) => pk === 'b'));
  const early = await command(server, 'restore', '--container', 'shop/orders', '--partition-key', 'a', '--time', '2020-01-01T00:00:00Z');
  assert.equal(early.code, 1);
  assert.match(early.err, /retention/);
  await put(server, 'shop/colls/latest', { id: 'i', pk: 'a' });
  const latest = await command(server, 'restore', '--container', 'shop/latest', '--partition-key', 'a', '--time', time);
  assert.match(latest.err, /does not keep all versions/);
  await clean(server);
});

test("a collection of MongoDB's comes back with its indexes, beside and over the one there is", async (t) => {
  const folder = scratch(t);
  const server = await Server.start(t, ['--dev']);
  const client = await mongoClient(t, server.mongo);
  const db = client.db('m');
  const orders = db.collection('orders');
  await db.command({
    createIndexes: 'orders',
    indexes: [
      { key: { a: 1, b: -1 }, name: 'ab' }, { key: { c: 1 }, name: 'c', unique: true, sparse: true }, { key: { '$**': 1 }, name: 'all', wildcardProjection: { x: 1 } },
      { key: { f: 1 }, name: 'f', partialFilterExpression: { g: { $gt: 5 } } }, { key: { word: 1 }, name: 'word', collation: { locale: 'en', strength: 2 } },
    ],
  });
  const documents = [{ _id: 1, a: 1, b: [2, 3], c: 'one', word: 'Zoo' }, { _id: new ObjectId(), a: Long.fromNumber(7), c: 'two', f: 1, g: 9, word: 'ape' }, { _id: { k: 'x' }, date: new Date(0), x: { y: Decimal128.fromString('1.5') } }];
  await orders.insertMany(documents);
  const all = (name) => db.collection(name).find({}, { sort: { a: 1, _id: 1 } }).toArray();
  const before = { documents: await all('orders'), indexes: await orders.listIndexes().toArray() };
  assert.equal(before.documents.length, 3);
  await good(command(server, 'backup', `${folder}/b`));
  await orders.deleteOne({ _id: 1 });
  await orders.dropIndex('c');
  await good(command(server, 'restore', `${folder}/b`, '--container', 'm/orders', '--as', 'beside'));
  await good(command(server, 'restore', `${folder}/b`, '--container', 'm/orders', '--over'));
  for (const name of ['beside', 'orders']) {
    assert.deepEqual(await all(name), before.documents, name);
    assert.deepEqual(await db.collection(name).listIndexes().toArray(), before.indexes, name);
    await assert.rejects(db.collection(name).insertOne({ c: 'one' }), (error) => error.code === 11000);
    assert.equal(await db.collection(name).countDocuments({ word: 'ZOO' }, { collation: { locale: 'en', strength: 2 }, hint: 'word' }), 1);
  }
  await clean(server);
});

test('an item that is larger than a request may be is named with the setting that lets it through', async (t) => {
  const folder = scratch(t);
  const first = await Server.start(t, ['--dev', '--set', 'item.bytes_max=8388608', '--set', 'net.body_bytes_max=16777216']);
  await made(first, 'shop', 'orders');
  await put(first, 'shop/colls/orders', { id: 'large', pk: 'a', text: 'x'.repeat(5_000_000) });
  await put(first, 'shop/colls/orders', { id: 'small', pk: 'a' });
  await good(command(first, 'backup', `${folder}/b`));
  const second = await Server.start(t, ['--dev', '--set', 'item.bytes_max=8388608']);
  const refused = await command(second, 'restore', `${folder}/b`, '--container', 'shop/orders');
  assert.equal(refused.code, 1);
  assert.match(refused.err, /net\.body_bytes_max/);
  assert.equal((await signed(second, 'GET', '/dbs/shop/colls')).json._count, 0); // half of it is nothing
  await good(command(first, 'restore', `${folder}/b`, '--container', 'shop/orders', '--as', 'again'));
  assert.equal((await itemsOf(first, 'shop/colls/again')).length, 2);
});
