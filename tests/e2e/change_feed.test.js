// The change feed, in both modes, by the client's iterators and by hand.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ChangeFeedStartFrom } from '@azure/cosmos';
import { shop } from './items.js';

const latest = { 'A-IM': 'Incremental Feed' };
const versions = { 'A-IM': 'Full-Fidelity Feed', 'x-ms-cosmos-changefeed-wire-format-version': '2021-09-15' };

test('the old iterator sees every item once, in its latest form', async (t) => {
  const { container } = await shop(t);
  for (const id of ['a', 'b', 'c']) await container.items.create({ id, tenant: 'x', n: 1 });
  await container.items.create({ id: 'z', tenant: 'y' });
  await container.items.upsert({ id: 'a', tenant: 'x', n: 2 });
  await container.item('b', 'x').delete();
  const iterator = container.items.changeFeed('x', { startFromBeginning: true });
  const { result, etag } = await iterator.fetchNext();
  assert.deepEqual(result.map((d) => [d.id, d.n]), [['c', 1], ['a', 2]]);
  assert.ok(result[0]._lsn < result[1]._lsn);
  assert.equal(etag, `"${result[1]._lsn}"`);
  const none = await iterator.fetchNext();
  assert.equal(none.statusCode, 304);
  await container.items.upsert({ id: 'c', tenant: 'x', n: 3 });
  assert.deepEqual((await iterator.fetchNext()).result.map((d) => d.n), [3]);
});

test('the pull model goes on from a continuation, page by page', async (t) => {
  const { container } = await shop(t);
  for (let i = 0; i < 5; i++) await container.items.create({ id: `i${i}`, tenant: 'x' });
  const begin = (changeFeedStartFrom) =>
    container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount: 2 });
  let iterator = begin(ChangeFeedStartFrom.Beginning('x'));
  const seen = [];
  for (let i = 0; i < 2; i++) seen.push(...(await iterator.readNext()).result.map((d) => d.id));
  const { continuationToken } = await iterator.readNext().then((r) => (seen.push(...r.result.map((d) => d.id)), r));
  assert.deepEqual(seen, ['i0', 'i1', 'i2', 'i3', 'i4']);
  iterator = begin(ChangeFeedStartFrom.Continuation(continuationToken));
  assert.equal((await iterator.readNext()).statusCode, 304);
  await container.items.create({ id: 'late', tenant: 'x' });
  assert.deepEqual((await iterator.readNext()).result.map((d) => d.id), ['late']);
  const now = begin(ChangeFeedStartFrom.Now('x'));
  assert.equal((await now.readNext()).statusCode, 304);
  await container.items.create({ id: 'later', tenant: 'x' });
  assert.deepEqual((await now.readNext()).result.map((d) => d.id), ['later']);
});

test('a feed starts after a time, once', async (t) => {
  const { container, docs, send } = await shop(t);
  await container.items.create({ id: 'before', tenant: 'x' });
  const second = Math.floor(Date.now() / 1000);
  while (Math.floor(Date.now() / 1000) < second + 2) await new Promise((r) => setTimeout(r, 20));
  await container.items.create({ id: 'after', tenant: 'x' });
  const since = new Date((second + 1) * 1000).toUTCString();
  const get = (headers) => send('GET', docs, { key: ['x'], headers: { ...latest, 'If-Modified-Since': since, ...headers } });
  const first = await get({});
  assert.deepEqual(first.json.Documents.map((d) => d.id), ['after']);
  // Clients repeat the time on later pages; the position counts.
  assert.equal((await get({ 'If-None-Match': first.headers.etag })).status, 304);
  assert.equal((await get({ 'If-Modified-Since': 'yesterday' })).status, 400);
});

test('all versions: creates, replaces, deletes and expiries with what was before', async (t) => {
  const { container, docs, send } = await shop(t, {
    changeFeedPolicy: { retentionDuration: 10 },
    defaultTtl: -1,
  });
  const now = await send('GET', docs, { key: ['x'], headers: { ...versions, 'If-None-Match': '*' } });
  assert.equal(now.status, 304);
  const { resource: one } = await container.items.create({ id: 'a', tenant: 'x', n: 1 });
  const { resource: two } = await container.items.upsert({ id: 'a', tenant: 'x', n: 2 });
  await container.item('a', 'x').delete();
  const { json: body, headers } = await send('GET', docs, { key: ['x'], headers: { ...versions, 'If-None-Match': now.headers.etag } });
  const [created, replaced, deleted] = body.Documents;
  assert.equal(body.Documents.length, 3);
  assert.deepEqual(created.current, one);
  assert.equal(created.previous, undefined);
  assert.equal(created.metadata.operationType, 'create');
  assert.deepEqual(replaced.current, two);
  assert.deepEqual(replaced.previous, one);
  assert.deepEqual([replaced.metadata.operationType, replaced.metadata.previousImageLSN], ['replace', created.metadata.lsn]);
  assert.deepEqual(deleted.current, {});
  assert.deepEqual(deleted.previous, two);
  assert.deepEqual(
    [deleted.metadata.operationType, deleted.metadata.id, deleted.metadata.partitionKey, deleted.metadata.timeToLiveExpired],
    ['delete', 'a', { tenant: 'x' }, undefined],
  );
  assert.ok(Math.abs(deleted.metadata.crts - Date.now() / 1000) < 60);
  assert.equal(headers.etag, `"${deleted.metadata.lsn}"`);
  for (const extra of [{}, { 'If-Modified-Since': new Date().toUTCString() }])
    assert.equal((await send('GET', docs, { key: ['x'], headers: { ...versions, ...extra } })).status, 400);
});

test('an expired item is a delete that says so', async (t) => {
  const { container, docs, send } = await shop(
    t,
    { changeFeedPolicy: { retentionDuration: 10 }, defaultTtl: -1 },
    { args: ['--set', 'caretaker.pause_ms=10ms'] },
  );
  const { headers } = await send('GET', docs, { key: ['x'], headers: { ...versions, 'If-None-Match': '*' } });
  await container.items.create({ id: 'a', tenant: 'x', ttl: 1 });
  for (;;) {
    const answer = await send('GET', docs, { key: ['x'], headers: { ...versions, 'If-None-Match': headers.etag } });
    const expired = answer.json.Documents.at(-1).metadata;
    if (expired.operationType !== 'delete') {
      await new Promise((resolve) => setTimeout(resolve, 100));
      continue;
    }
    assert.deepEqual([expired.timeToLiveExpired, expired.id], [true, 'a']);
    break;
  }
  assert.equal((await send('GET', docs, { key: ['x'], headers: latest })).status, 304);
});

test('the client reads all versions and deletes', async (t) => {
  const { container } = await shop(t, { changeFeedPolicy: { retentionDuration: 10 } });
  const iterator = container.items.getChangeFeedIterator({
    changeFeedMode: 'Full-Fidelity Feed',
    changeFeedStartFrom: ChangeFeedStartFrom.Now('x'),
  });
  assert.equal((await iterator.readNext()).statusCode, 304);
  await container.items.create({ id: 'a', tenant: 'x' });
  await container.item('a', 'x').delete();
  const { result } = await iterator.readNext();
  assert.deepEqual(result.map((c) => c.metadata.operationType), ['create', 'delete']);
});

test('all versions of a container that does not keep them are 400', async (t) => {
  const { docs, send } = await shop(t);
  const answer = await send('GET', docs, { key: ['x'], headers: { ...versions, 'If-None-Match': '*' } });
  assert.equal(answer.status, 400);
  assert.match(answer.json.message, /changeFeedPolicy/);
});

test('by range and by bounds; a range that is gone is 410', async (t) => {
  const partitionKey = { paths: ['/tenant'], kind: 'Hash', version: 2 };
  const { container, docs, send } = await shop(t, { partitionKey }, { create: { offerThroughput: 20000 } });
  const ranges = new Map();
  for (let i = 0; i < 40; i++) {
    const { headers } = await container.items.create({ id: `i${i}`, tenant: `t${i}` });
    const range = headers['x-ms-documentdb-partitionkeyrangeid'];
    ranges.set(range, [...(ranges.get(range) ?? []), `i${i}`]);
  }
  const get = (headers) => send('GET', docs, { headers: { ...latest, ...headers } });
  for (const [range, ids] of ranges)
    assert.deepEqual((await get({ 'x-ms-documentdb-partitionkeyrangeid': range })).json.Documents.map((d) => d.id), ids);
  const cut = [];
  for (const [min, max] of [['', '0A'], ['0A', '1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF']]) {
    const bounds = { 'x-ms-start-epk': min, 'x-ms-end-epk': max, 'x-ms-read-key-type': 'EffectivePartitionKeyRange' };
    const answer = await get(bounds);
    assert.ok([200, 304].includes(answer.status), answer.text);
    cut.push(...(answer.json?.Documents ?? []).map((d) => d.id));
  }
  const whole = [...ranges.values()].find((ids) => ids.includes(cut[0]));
  assert.deepEqual(cut.sort(), [...whole].sort());
  assert.ok(cut.length < 40);
  const gone = await get({ 'x-ms-documentdb-partitionkeyrangeid': '4711' });
  assert.deepEqual([gone.status, gone.headers['x-ms-substatus']], [410, '1002']);
  const both = await get({ 'x-ms-start-epk': '', 'x-ms-end-epk': 'FF' });
  assert.deepEqual([both.status, both.headers['x-ms-substatus']], [410, '1002']);
  assert.equal((await get({})).status, 400);
});

test('a transaction is never cut, and its items share their _lsn', async (t) => {
  const { container, docs, send } = await shop(t, {}, { create: { offerThroughput: 10000 } });
  const create = (id) => ({ operationType: 'Create', resourceBody: { id, tenant: 'x' } });
  await container.items.batch(['a', 'b', 'c'].map(create), 'x');
  const { json: body } = await send('GET', docs, { key: ['x'], headers: { ...latest, 'x-ms-max-item-count': '1' } });
  assert.deepEqual(body.Documents.map((d) => d.id), ['a', 'b', 'c']);
  assert.equal(new Set(body.Documents.map((d) => d._lsn)).size, 1);
});

test('positions and modes that are none are refused', async (t) => {
  const { docs, send } = await shop(t);
  const get = (headers) => send('GET', docs, { key: ['x'], headers: { ...latest, ...headers } });
  assert.equal((await get({ 'A-IM': 'Whatever Feed' })).status, 400);
  assert.equal((await get({ 'If-None-Match': '"abc"' })).status, 400);
  assert.equal((await get({ 'A-IM': 'Incremental feed', 'If-None-Match': '5' })).status, 304);
  const empty = await get({});
  assert.deepEqual([empty.status, empty.text, empty.headers.etag], [304, '', '"0"']);
  assert.ok(Number(empty.headers['x-ms-request-charge']) > 0);
});

test('the pull model reads all ranges, and goes on where it was', async (t) => {
  const partitionKey = { paths: ['/tenant'], kind: 'Hash', version: 2 };
  const { container } = await shop(t, { partitionKey }, { create: { offerThroughput: 30000 } });
  const all = Array.from({ length: 60 }, (_, i) => `i${i}`);
  for (const id of all) await container.items.create({ id, tenant: id });
  const read = async (changeFeedStartFrom) => {
    const iterator = container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount: 7 });
    const seen = [];
    let continuation;
    for (let quiet = 0; quiet < 6; ) {
      const { result, statusCode, continuationToken } = await iterator.readNext();
      quiet = statusCode === 304 ? quiet + 1 : 0;
      if (statusCode === 200) seen.push(...result.map((d) => d.id));
      continuation = continuationToken;
    }
    return { seen, continuation };
  };
  const { seen, continuation } = await read(ChangeFeedStartFrom.Beginning());
  assert.deepEqual(seen.sort(), [...all].sort());
  await container.items.upsert({ id: 'i7', tenant: 'i7', n: 2 });
  assert.deepEqual((await read(ChangeFeedStartFrom.Continuation(continuation))).seen, ['i7']);
});
