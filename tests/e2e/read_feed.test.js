// Reading all items of a container, a key or a range, page by page.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';
import { Server, scratch } from './server.js';
import { signed } from './rest.js';

async function pages(send, docs, options = {}, size = 100) {
  const found = [];
  let continuation;
  do {
    const headers = { ...options.headers, 'x-ms-max-item-count': String(size) };
    if (continuation) headers['x-ms-continuation'] = continuation;
    const answer = await send('GET', docs, { ...options, headers });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json._count, answer.json.Documents.length);
    assert.equal(answer.headers['x-ms-item-count'], String(answer.json._count));
    continuation = answer.headers['x-ms-continuation'];
    assert.ok(continuation === undefined || (continuation.length > 0 && continuation.length < 1024));
    found.push(answer.json.Documents.map((d) => d.id));
  } while (continuation);
  return found;
}

test('a page filled exactly is followed by another', async (t) => {
  const { container, docs, send } = await shop(t);
  for (const id of ['d', 'c', 'b']) await container.items.create({ id, tenant: id });
  assert.deepEqual(await pages(send, docs, {}, 2), [['d', 'c'], ['b']]);
  await container.items.create({ id: 'a', tenant: 'x' });
  assert.deepEqual(await pages(send, docs, {}, 2), [['d', 'c'], ['b', 'a'], []]);
  assert.deepEqual(await pages(send, docs, {}, -1), [['d', 'c', 'b', 'a']]);
});

test('the feed of a key has its items in the order of their making', async (t) => {
  const { container, docs, send } = await shop(t, {}, { create: { offerThroughput: 20000 } });
  const ids = Array.from({ length: 25 }, (_, i) => `i${(i * 7) % 25}`);
  for (const id of ids) {
    await container.items.create({ id, tenant: 'x' });
    await container.items.create({ id, tenant: 'y' });
  }
  assert.deepEqual((await pages(send, docs, { key: ['x'] }, 10)).flat(), ids);
  assert.deepEqual((await pages(send, docs, { key: ['none'] })).flat(), []);
});

test('the feed of all, of each range and of bounds has every item once', async (t) => {
  const partitionKey = { paths: ['/tenant'], kind: 'Hash', version: 2 };
  const { container, docs, send } = await shop(t, { partitionKey }, { create: { offerThroughput: 40000 } });
  const byRange = new Map();
  const all = [];
  for (let i = 0; i < 120; i++) {
    const { headers } = await container.items.create({ id: `i${i}`, tenant: `t${i}` });
    const range = headers['x-ms-documentdb-partitionkeyrangeid'];
    byRange.set(range, [...(byRange.get(range) ?? []), `i${i}`]);
    all.push(`i${i}`);
  }
  assert.equal(byRange.size, 4);
  const found = (await pages(send, docs, {}, 7)).flat();
  assert.equal(found.length, 120);
  assert.deepEqual([...found].sort(), [...all].sort());
  for (const [range, ids] of byRange)
    assert.deepEqual((await pages(send, docs, { headers: { 'x-ms-documentdb-partitionkeyrangeid': range } }, 10)).flat(), ids);
  const bounded = (min, max) =>
    pages(send, docs, { headers: { 'x-ms-start-epk': min, 'x-ms-end-epk': max, 'x-ms-read-key-type': 'EffectivePartitionKeyRange' } }, 10);
  const parts = [['', '05'], ['05', '1234'], ['1234', '33'], ['33', 'FF']];
  const cut = [];
  for (const [min, max] of parts) cut.push(...(await bounded(min, max)).flat());
  assert.deepEqual(cut.sort(), [...all].sort());
});

test('what names no part of the container is refused', async (t) => {
  const { docs, send } = await shop(t);
  const get = (headers) => send('GET', docs, { headers });
  const gone = await get({ 'x-ms-documentdb-partitionkeyrangeid': '4711' });
  assert.deepEqual([gone.status, gone.headers['x-ms-substatus']], [410, '1002']);
  for (const headers of [
    { 'x-ms-documentdb-partitionkeyrangeid': 'x' },
    { 'x-ms-start-epk': 'XX' },
    { 'x-ms-start-epk': '22', 'x-ms-end-epk': '11' },
    { 'x-ms-start-epk': '11', 'x-ms-end-epk': '22', 'x-ms-read-key-type': 'ResourceId' },
    { 'x-ms-max-item-count': '0' },
    { 'x-ms-max-item-count': '-2' },
    { 'x-ms-max-item-count': 'many' },
    { 'x-ms-documentdb-responsecontinuationtokenlimitinkb': '0' },
    { 'x-ms-documentdb-partitionkey': '["a","b"]' },
  ])
    assert.equal((await get(headers)).status, 400, JSON.stringify(headers));
});

test('a continuation goes with one container and one question, and cannot be changed', async (t) => {
  const { database, container, docs, send } = await shop(t);
  await database.containers.create({ id: 'other', partitionKey: '/tenant' });
  for (const id of ['a', 'b', 'c']) await container.items.create({ id, tenant: 'x' });
  const first = await send('GET', docs, { headers: { 'x-ms-max-item-count': '1' } });
  const token = first.headers['x-ms-continuation'];
  const again = (path, continuation, options = {}) =>
    send('GET', path, { ...options, headers: { 'x-ms-continuation': continuation, ...options.headers } });
  assert.deepEqual((await again(docs, token)).json.Documents.map((d) => d.id), ['b', 'c']);
  const changed = (token[0] === 'A' ? 'B' : 'A') + token.slice(1);
  for (const [path, continuation, options] of [
    [docs, changed],
    [docs, token.slice(4)],
    [docs, `${token}AAAA`],
    [docs, 'nonsense'],
    [docs, 'x'.repeat(3000)],
    [docs, token, { key: ['x'] }],
    [docs.replace('orders', 'other'), token],
  ]) {
    const answer = await again(path, continuation, options);
    assert.equal(answer.status, 400, continuation);
    assert.match(answer.json.message, /Invalid Continuation Token/);
  }
});

test('a continuation is good after a restart', async (t) => {
  const directory = scratch(t);
  const node = ['--node', `local=rocksdb:${directory}/node`, '--dev'];
  const one = await Server.start(t, node);
  const docs = '/dbs/d/colls/c/docs';
  await signed(one, 'POST', '/dbs', { body: { id: 'd' } });
  await signed(one, 'POST', '/dbs/d/colls', { body: { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } } });
  for (const id of ['a', 'b']) await signed(one, 'POST', docs, { body: { id, pk: id } });
  const first = await signed(one, 'GET', docs, { headers: { 'x-ms-max-item-count': '1' } });
  await one.stop();
  const two = await Server.start(t, node);
  const second = await signed(two, 'GET', docs, { headers: { 'x-ms-continuation': first.headers['x-ms-continuation'] } });
  assert.deepEqual(second.json.Documents.map((d) => d.id), ['b']);
});

test('a page ends at 4 MB', async (t) => {
  const { container, docs, send } = await shop(t, {}, { create: { offerThroughput: 100000 } });
  for (let i = 0; i < 6; i++) await container.items.create({ id: `i${i}`, tenant: 'x', v: 'v'.repeat(1_000_000) });
  const found = await pages(send, docs, { key: ['x'] });
  assert.deepEqual(found.flat(), ['i0', 'i1', 'i2', 'i3', 'i4', 'i5']);
  assert.ok(found.length > 1 && found[0].length >= 4 && found[0].length < 6);
});

test('pages are charged, and refused when the budget is used up', async (t) => {
  const { container, docs, send } = await shop(t, {}, {
    args: ['--set', 'throughput.burst_seconds=0'],
    create: { offerThroughput: 400 },
  });
  await container.items.create({ id: 'a', tenant: 'x', v: 'v'.repeat(1000) });
  const read = await send('GET', docs);
  assert.ok(Number(read.headers['x-ms-request-charge']) >= 2.3);
  const again = await send('GET', docs);
  assert.equal(again.headers['x-ms-request-charge'], read.headers['x-ms-request-charge']);
  const answers = await Promise.all(Array.from({ length: 400 }, () => send('GET', docs)));
  const throttled = answers.filter((a) => a.status === 429);
  assert.ok(throttled.length > 0);
  assert.ok(throttled.every((a) => Number(a.headers['x-ms-retry-after-ms']) > 0 && a.headers['x-ms-substatus'] === '3200'));
});
