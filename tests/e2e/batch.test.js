// Transactional batches, and bulk requests in which every operation stands alone.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

const atomic = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'True', 'x-ms-cosmos-batch-ordered': 'True' };
const bulk = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'False', 'x-ms-cosmos-batch-continue-on-error': 'True' };
const rich = { create: { offerThroughput: 10000 } };

test('a batch does all of its operations, and reads see what it wrote', async (t) => {
  const { container } = await shop(t, {}, rich);
  await container.items.create({ id: 'old', tenant: 'x', n: 1 });
  await container.items.create({ id: 'gone', tenant: 'x' });
  const { result, code, headers } = await container.items.batch(
    [
      { operationType: 'Create', resourceBody: { id: 'new', tenant: 'x', n: 1 } },
      { operationType: 'Read', id: 'new' },
      { operationType: 'Upsert', resourceBody: { id: 'new', tenant: 'x', n: 2 } },
      { operationType: 'Upsert', resourceBody: { id: 'up', tenant: 'x' } },
      { operationType: 'Replace', id: 'old', resourceBody: { id: 'old', tenant: 'x', n: 2 } },
      { operationType: 'Patch', id: 'old', resourceBody: { operations: [{ op: 'incr', path: '/n', value: 5 }] } },
      { operationType: 'Delete', id: 'gone' },
      { operationType: 'Read', id: 'old' },
    ],
    'x',
  );
  assert.equal(code, 200);
  assert.deepEqual(result.map((r) => r.statusCode), [201, 200, 200, 201, 200, 200, 204, 200]);
  assert.equal(result[1].resourceBody.n, 1);
  assert.equal(result[7].resourceBody.n, 7);
  const stored = await container.item('old', 'x').read();
  assert.equal(stored.resource.n, 7);
  // Every result shows the item as its operation left it.
  for (const i of [5, 7]) assert.equal(result[i].eTag, stored.resource._etag);
  assert.notEqual(result[4].eTag, stored.resource._etag);
  assert.equal(result[4].resourceBody.n, 2);
  const made = await container.item('new', 'x').read();
  assert.equal(result[0].eTag, result[1].eTag);
  assert.equal(result[0].resourceBody.n, 1);
  assert.equal(result[0].resourceBody._etag, result[0].eTag);
  assert.equal(result[0].resourceBody._rid, made.resource._rid);
  assert.notEqual(result[0].eTag, made.resource._etag);
  assert.equal(result[2].eTag, made.resource._etag);
  assert.equal(made.resource.n, 2);
  for (const i of [0, 2, 4, 5, 6]) assert.ok(result[i].requestCharge > 5, `${i}: ${result[i].requestCharge}`);
  assert.equal(result[6].resourceBody, undefined);
  const sum = result.reduce((total, r) => total + r.requestCharge, 0);
  assert.equal(sum.toFixed(2), headers['x-ms-request-charge']);
  assert.match(headers['x-ms-session-token'], /^\d+:-1#\d+$/);
});

test('a failing operation undoes the batch and is the only one with its own status', async (t) => {
  const { container, docs, send } = await shop(t, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/email'] }] } }, rich);
  const { resource } = await container.items.create({ id: 'there', tenant: 'x', email: 'e' });
  const create = (id, extra) => ({ operationType: 'Create', resourceBody: { id, tenant: 'x', email: id, ...extra } });
  const cases = [
    [create('there'), 409],
    [create('b', { email: 'e' }), 409],
    [{ operationType: 'Read', id: 'none' }, 404],
    [{ operationType: 'Delete', id: 'none' }, 404],
    [{ operationType: 'Replace', id: 'none', resourceBody: { id: 'none', tenant: 'x' } }, 404],
    [{ operationType: 'Replace', id: 'there', resourceBody: { id: 'first', tenant: 'x' } }, 409],
    [{ operationType: 'Delete', id: 'there', ifMatch: '"other"' }, 412],
    [{ operationType: 'Patch', id: 'there', resourceBody: { operations: [{ op: 'remove', path: '/none' }] } }, 400],
    [{ operationType: 'Create', resourceBody: { id: 'b', tenant: 'y' } }, 400],
    [{ operationType: 'Create', resourceBody: { tenant: 'x' } }, 400],
    [{ operationType: 'Create' }, 400],
    [{ operationType: 'Read' }, 400],
  ];
  for (const [operation, status] of cases) {
    const answer = await send('POST', docs, { key: ['x'], headers: atomic, body: [create('first'), operation, create('last')] });
    assert.equal(answer.status, 207, answer.text);
    assert.deepEqual(answer.json.map((r) => r.statusCode), [424, status, 424], JSON.stringify(operation));
    assert.equal((await container.item('first', 'x').read()).statusCode, 404);
  }
  assert.deepEqual((await container.item('there', 'x').read()).resource, resource);
});

test('etags inside a batch', async (t) => {
  const { container, docs, send } = await shop(t, {}, rich);
  const { resource } = await container.items.create({ id: 'a', tenant: 'x' });
  const run = async (body) => (await send('POST', docs, { key: ['x'], headers: atomic, body })).json.map((r) => r.statusCode);
  assert.deepEqual(await run([{ operationType: 'Read', id: 'a', ifNoneMatch: resource._etag }]), [304]);
  const replace = { operationType: 'Replace', id: 'a', resourceBody: { id: 'a', tenant: 'x' }, ifMatch: resource._etag };
  // What the batch has written has another etag, which nobody can know.
  assert.deepEqual(await run([replace, replace]), [424, 412]);
  assert.deepEqual(await run([replace]), [200]);
});

test('an item made and deleted in one batch is reported twice and leaves nothing', async (t) => {
  const { container } = await shop(t, {}, rich);
  const { result } = await container.items.batch(
    [{ operationType: 'Create', resourceBody: { id: 'a', tenant: 'x' } }, { operationType: 'Delete', id: 'a' }],
    'x',
  );
  assert.deepEqual(result.map((r) => r.statusCode), [201, 204]);
  assert.equal(result[0].resourceBody.id, 'a');
  assert.ok(result[0].resourceBody._rid && result[0].eTag === result[0].resourceBody._etag);
  assert.ok(result.every((r) => r.requestCharge > 4));
  assert.equal((await container.item('a', 'x').read()).statusCode, 404);
});

test('batches that are none are refused whole', async (t) => {
  const { docs, send } = await shop(t, {}, rich);
  const read = { operationType: 'Read', id: 'a' };
  const refusals = [
    [[], /Batch request has no operations\./],
    [Array(101).fill(read), /Batch request has more operations than what is supported\./],
    [[{ ...read, partitionKey: '["y"]' }], /One or more operations within the batch request have a different partition key value than the request\./],
    [[{ operationType: 'Jump', id: 'a' }], /operationType/],
    [[{ operationType: 'Read', id: 7 }], /no text/],
    [[7], /no object/],
    [{}, /array/],
    ['[', /invalid/],
  ];
  for (const [body, message] of refusals) {
    const answer = await send('POST', docs, { key: ['x'], headers: atomic, body });
    assert.equal(answer.status, 400, JSON.stringify(body).slice(0, 80));
    assert.match(answer.json.message, message);
  }
  const keyless = await send('POST', docs, { headers: atomic, body: [read] });
  assert.equal(keyless.status, 400);
  const item = { operationType: 'Create', resourceBody: { id: 'a', tenant: 'x', v: 'v'.repeat(2_400_000) } };
  assert.equal((await send('POST', docs, { key: ['x'], headers: atomic, body: [item] })).status, 413);
});

test('an answer over 4 MB is refused before anything is written', async (t) => {
  const { container, docs, send } = await shop(t, {}, { create: { offerThroughput: 100000 } });
  for (const id of ['a', 'b', 'c']) await container.items.create({ id, tenant: 'x', v: 'v'.repeat(1_500_000) });
  const read = (id) => ({ operationType: 'Read', id });
  const body = [{ operationType: 'Create', resourceBody: { id: 'n', tenant: 'x' } }, read('a'), read('b'), read('c')];
  const answer = await send('POST', docs, { key: ['x'], headers: atomic, body });
  assert.equal(answer.status, 413);
  assert.equal(answer.headers['x-ms-substatus'], '3402');
  assert.equal((await container.item('n', 'x').read()).statusCode, 404);
  const alone = await send('POST', docs, { key: ['x'], headers: bulk, body: body.map((o) => ({ ...o, partitionKey: '["x"]' })) });
  assert.deepEqual(alone.json.map((r) => r.statusCode), [201, 200, 200, 413]);
  assert.equal(alone.json[3].subStatusCode, 3402);
});

test('a minimal batch shows only what was read', async (t) => {
  const { docs, send } = await shop(t, {}, rich);
  const body = [{ operationType: 'Create', resourceBody: { id: 'a', tenant: 'x' } }, { operationType: 'Read', id: 'a' }];
  const answer = await send('POST', docs, { key: ['x'], headers: { ...atomic, prefer: 'return=minimal' }, body });
  assert.equal(answer.json[0].resourceBody, undefined);
  assert.ok(answer.json[0].eTag);
  assert.equal(answer.json[1].resourceBody.id, 'a');
});

test('two batches at once on the same items leave the work of one after the other', async (t) => {
  const { container } = await shop(t, {}, { create: { offerThroughput: 100000 } });
  await container.items.create({ id: 'a', tenant: 'x', n: 0 });
  await container.items.create({ id: 'b', tenant: 'x', n: 0 });
  const incr = (id, value) => ({ operationType: 'Patch', id, resourceBody: { operations: [{ op: 'incr', path: '/n', value }] } });
  const rounds = 40;
  const results = await Promise.all(
    Array.from({ length: rounds }, () => container.items.batch([incr('a', 1), incr('b', -1)], 'x')),
  );
  assert.ok(results.every((r) => r.code === 200));
  assert.equal((await container.item('a', 'x').read()).resource.n, rounds);
  assert.equal((await container.item('b', 'x').read()).resource.n, -rounds);
});

test('in bulk every operation stands alone', async (t) => {
  const { container, docs, send } = await shop(t, {}, rich);
  await container.items.create({ id: 'there', tenant: 'x' });
  const body = [
    { operationType: 'Create', partitionKey: '["x"]', resourceBody: { id: 'a', tenant: 'x', n: 1 } },
    { operationType: 'Create', partitionKey: '["x"]', resourceBody: { id: 'there', tenant: 'x' } },
    { operationType: 'Create', partitionKey: '["y"]', resourceBody: { id: 'a', tenant: 'y' } },
    { operationType: 'Read', partitionKey: '["x"]', id: 'a' },
    { operationType: 'Patch', partitionKey: '["x"]', id: 'a', resourceBody: [{ op: 'incr', path: '/n', value: 1 }] },
    { operationType: 'Patch', partitionKey: '["x"]', id: 'a', resourceBody: [{ op: 'incr', path: '/n', value: 1 }] },
    { operationType: 'Delete', partitionKey: '["z"]', id: 'a' },
    { operationType: 'Create', partitionKey: '["y"]', resourceBody: { id: 'b', tenant: 'x' } },
    { operationType: 'Read', id: 'a' },
    { operationType: 'Create', partitionKey: '[', resourceBody: { id: 'c', tenant: 'x' } },
  ];
  const answer = await send('POST', docs, { headers: bulk, body });
  assert.equal(answer.status, 207);
  assert.deepEqual(answer.json.map((r) => r.statusCode), [201, 409, 201, 200, 200, 200, 404, 400, 400, 400]);
  assert.equal(answer.json[5].resourceBody.n, 3, 'operations on one item keep their order');
  assert.equal(answer.json[7].subStatusCode, 1001);
  const sum = answer.json.reduce((total, r) => total + r.requestCharge, 0);
  assert.equal(sum.toFixed(2), answer.headers['x-ms-request-charge']);
});

test('without continue-on-error everything behind a failure is 424', async (t) => {
  const { container, docs, send } = await shop(t, {}, rich);
  const create = (id) => ({ operationType: 'Create', partitionKey: '["x"]', resourceBody: { id, tenant: 'x' } });
  const answer = await send('POST', docs, {
    headers: { ...bulk, 'x-ms-cosmos-batch-continue-on-error': 'False' },
    body: [create('a'), create('a'), create('b')],
  });
  assert.deepEqual(answer.json.map((r) => r.statusCode), [201, 409, 424]);
  assert.equal((await container.item('b', 'x').read()).statusCode, 404);
});

test('a bulk operation goes where its key belongs, whatever range the client names', async (t) => {
  const { container, docs, send } = await shop(t, {}, { create: { offerThroughput: 20000 } });
  const range = async (tenant) =>
    (await container.items.create({ id: 'probe', tenant })).headers['x-ms-documentdb-partitionkeyrangeid'];
  const here = await range('t0');
  let n = 1;
  while ((await range(`t${n}`)) === here) n++;
  const create = (tenant) => ({ operationType: 'Create', partitionKey: JSON.stringify([tenant]), resourceBody: { id: 'a', tenant } });
  const body = [create('t0'), create(`t${n}`)];
  const answer = await send('POST', docs, { headers: { ...bulk, 'x-ms-documentdb-partitionkeyrangeid': here }, body });
  assert.deepEqual(answer.json.map((r) => r.statusCode), [201, 201]);
  const gone = await send('POST', docs, { headers: { ...bulk, 'x-ms-documentdb-partitionkeyrangeid': '99999' }, body });
  assert.deepEqual(gone.json.map((r) => r.statusCode), [409, 409]);
});

// 100 creates are more than a second's budget, so whatever follows at once is refused.
const tight = { create: { offerThroughput: 400 }, args: ['--set', 'throughput.burst_seconds=0'] };
const creates = (count, prefix) =>
  Array.from({ length: count }, (_, i) => ({
    operationType: 'Create',
    partitionKey: '["x"]',
    resourceBody: { id: `${prefix}${i}`, tenant: 'x', v: 'v'.repeat(1000) },
  }));

test('bulk is let in whole and then runs to its end, or is refused whole with one wait', async (t) => {
  const { container, docs, send } = await shop(t, {}, tight);
  const first = await send('POST', docs, { headers: bulk, body: creates(100, 'a') });
  assert.equal(first.status, 200);
  assert.ok(first.json.every((r) => r.statusCode === 201));

  const wrong = { operationType: 'Delete', partitionKey: '["x"]' };
  const second = await send('POST', docs, { headers: bulk, body: [wrong, ...creates(20, 'b')] });
  assert.equal(second.status, 207);
  assert.equal(second.headers['x-ms-request-charge'], '0.00');
  assert.ok(second.json.every((r) => r.statusCode === 429 && r.subStatusCode === 3200 && r.requestCharge === 0));
  assert.ok(second.json[0].retryAfterMilliseconds > 0);
  assert.ok(second.json.slice(1).every((r) => r.retryAfterMilliseconds === undefined));
  await new Promise((resolve) => setTimeout(resolve, second.json[0].retryAfterMilliseconds));
  assert.equal((await container.item('b0', 'x').read()).statusCode, 404);
});

test('of two ranges that a bulk request meets, one without budget refuses all of it', async (t) => {
  const { container, docs, send } = await shop(t, {}, { ...tight, create: { offerThroughput: 400 }, args: [...tight.args, '--set', 'partition.ru_max=200'] });
  const range = async (tenant) => (await send('GET', `${docs}/none`, { key: [tenant] })).headers['x-ms-documentdb-partitionkeyrangeid'];
  const here = await range('x');
  let n = 0;
  while ((await range(`t${n}`)) === here) n++;
  const body = creates(100, 'a');
  assert.equal((await send('POST', docs, { headers: bulk, body })).status, 200);
  const there = { operationType: 'Create', partitionKey: JSON.stringify([`t${n}`]), resourceBody: { id: 'b', tenant: `t${n}` } };
  const refused = await send('POST', docs, { headers: bulk, body: [there, ...creates(1, 'b')] });
  assert.deepEqual(refused.json.map((r) => r.statusCode), [429, 429]);
  assert.equal((await container.item('b', `t${n}`).read()).statusCode, 404);
  assert.equal((await send('POST', docs, { headers: bulk, body: [there] })).json[0].statusCode, 201);
});

test('the JavaScript client sends bulk over all ranges', async (t) => {
  const partitionKey = { paths: ['/tenant'], kind: 'Hash', version: 2 };
  const { container, docs, send } = await shop(t, { partitionKey }, { create: { offerThroughput: 40000 } });
  const operations = Array.from({ length: 160 }, (_, i) => ({
    operationType: 'Create',
    resourceBody: { id: `i${i}`, tenant: `t${i % 37}`, n: i },
  }));
  const created = await container.items.bulk(operations);
  assert.ok(created.every((r) => r.statusCode === 201));
  assert.equal(created[150].resourceBody.n, 150);
  const mixed = await container.items.bulk([
    { operationType: 'Read', id: 'i0', partitionKey: 't0' },
    { operationType: 'Create', resourceBody: { id: 'i1', tenant: 't1' } },
    { operationType: 'Upsert', resourceBody: { id: 'i2', tenant: 't2', n: -2 } },
    { operationType: 'Replace', id: 'i3', partitionKey: 't3', resourceBody: { id: 'i3', tenant: 't3', n: -3 } },
    { operationType: 'Patch', id: 'i4', partitionKey: 't4', resourceBody: { operations: [{ op: 'incr', path: '/n', value: 1 }] } },
    { operationType: 'Delete', id: 'i5', partitionKey: 't5' },
    { operationType: 'Delete', id: 'i5', partitionKey: 't6' },
  ]);
  assert.deepEqual(mixed.map((r) => r.statusCode), [200, 409, 200, 200, 200, 204, 404]);
  assert.equal(mixed[4].resourceBody.n, 5);
  assert.equal((await send('GET', docs, { key: ['t5'] })).json._count, 4);
});

test('the newer bulk of the JavaScript client, which waits for throughput by itself', async (t) => {
  const { container } = await shop(t, {}, tight);
  const operations = Array.from({ length: 150 }, (_, i) => ({
    operationType: 'Upsert',
    partitionKey: `t${i % 7}`,
    resourceBody: { id: `i${i}`, tenant: `t${i % 7}` },
  }));
  const began = Date.now();
  const results = await container.items.executeBulkOperations(operations);
  t.diagnostic(`150 upserts at 400 RU/s: ${Date.now() - began} ms`);
  assert.ok(results.every((r) => r.response?.statusCode === 201));
});

test('5,000 items in bulk at 15,000 RU/s are let in batch by batch', async (t) => {
  const { container } = await shop(t, {}, { ...tight, create: { offerThroughput: 15000 } });
  const operations = Array.from({ length: 5000 }, (_, i) => ({
    operationType: 'Upsert',
    partitionKey: `t${i % 50}`,
    resourceBody: { id: `i${i}`, tenant: `t${i % 50}`, v: i },
  }));
  const began = Date.now();
  const results = await container.items.executeBulkOperations(operations);
  const charge = results.reduce((sum, r) => sum + r.response.requestCharge, 0);
  t.diagnostic(`5,000 upserts, ${Math.round(charge)} RU: ${Date.now() - began} ms`);
  assert.ok(results.every((r) => r.response?.statusCode === 201));
});
