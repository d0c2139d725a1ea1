// Triggers named by requests, through the vendor's own client.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';
import { countOf, failure } from './scripts.js';

/* global getContext */

async function trigger(container, id, triggerType, triggerOperation, body) {
  await container.scripts.triggers.create({ id, triggerType, triggerOperation, body: body.toString() });
}

function validate() {
  const request = getContext().getRequest();
  const item = request.getBody();
  if (item.price < 0) throw new Error('the price is negative');
  if (!('stamp' in item)) item.stamp = 'checked';
  request.setBody(item);
}

// Keeps the number of items, and their sum, in an item of its own.
function maintain() {
  const c = getContext().getCollection();
  const made = getContext().getResponse().getBody();
  c.queryDocuments(c.getSelfLink(), 'SELECT * FROM c WHERE c.id = "metadata"', (err, found) => {
    if (err) throw err;
    const metadata = found[0] ?? { id: 'metadata', tenant: made.tenant, count: 0, names: [] };
    metadata.count++;
    metadata.names.push(made.id);
    if (!c.upsertDocument(c.getSelfLink(), metadata, (err) => { if (err) throw err; }))
      throw new Error('not accepted');
  });
}

test('a pre-trigger validates and changes what is written', async (t) => {
  const { container } = await shop(t);
  await trigger(container, 'validate', 'Pre', 'All', validate);
  const { resource } = await container.items.create({ id: 'a', tenant: 'x', price: 1 }, { preTriggerInclude: ['validate'] });
  assert.equal(resource.stamp, 'checked');
  assert.equal((await container.item('a', 'x').read()).resource.stamp, 'checked');
  const refused = await failure(
    container.items.create({ id: 'b', tenant: 'x', price: -1 }, { preTriggerInclude: ['validate'] }));
  assert.equal(refused.code, 400);
  assert.match(refused.message, /the price is negative/);
  await assert.rejects(
    container.item('a', 'x').replace({ id: 'a', tenant: 'x', price: -1 }, { preTriggerInclude: ['validate'] }), { code: 400 });
  await assert.rejects(
    container.items.upsert({ id: 'a', tenant: 'x', price: -1 }, { preTriggerInclude: ['validate'] }), { code: 400 });
  assert.equal(await countOf(container, 'x'), 1);
  // unnamed triggers do not run
  assert.equal((await container.items.create({ id: 'c', tenant: 'x', price: -1 })).resource.stamp, undefined);
});

test('a post-trigger maintains a metadata item in the same transaction', async (t) => {
  const { container } = await shop(t);
  await trigger(container, 'maintain', 'Post', 'Create', maintain);
  const make = (id) => container.items.create({ id, tenant: 'x' }, { postTriggerInclude: ['maintain'] });
  const first = await make('a');
  assert.equal(first.statusCode, 201);
  assert.equal(first.resource._etag, (await container.item('a', 'x').read()).resource._etag);
  await Promise.all(['b', 'c', 'd', 'e'].map(make));
  const { resource } = await container.item('metadata', 'x').read();
  assert.equal(resource.count, 5);
  assert.deepEqual(resource.names.sort(), ['a', 'b', 'c', 'd', 'e']);
  await assert.rejects(make('a'), { code: 409 });
  assert.equal((await container.item('metadata', 'x').read()).resource.count, 5);
});

test('a post-trigger that throws takes the write back', async (t) => {
  const { container } = await shop(t);
  await trigger(container, 'no', 'Post', 'All', function () { throw new Error('on second thoughts'); });
  await container.items.create({ id: 'old', tenant: 'x', n: 1 });
  const options = { postTriggerInclude: ['no'] };
  await assert.rejects(container.items.create({ id: 'a', tenant: 'x' }, options), { code: 400 });
  await assert.rejects(container.item('old', 'x').replace({ id: 'old', tenant: 'x', n: 2 }, options), { code: 400 });
  await assert.rejects(container.item('old', 'x').delete(options), { code: 400 });
  await assert.rejects(container.item('old', 'x').patch([{ op: 'set', path: '/n', value: 3 }], options), { code: 400 });
  assert.equal((await container.item('old', 'x').read()).resource.n, 1);
  assert.equal(await countOf(container, 'x'), 1);
});

test('triggers see the operation, and what it is about', async (t) => {
  const { container } = await shop(t);
  const body = function () {
    const c = getContext().getCollection();
    const request = getContext().getRequest();
    const item = { tenant: 'x', type: 'log', operation: request.getOperationType() };
    c.createDocument(c.getSelfLink(), item, (err) => { if (err) throw err; });
  };
  await trigger(container, 'note', 'Pre', 'All', body);
  const options = { preTriggerInclude: ['note'] };
  await container.items.create({ id: 'a', tenant: 'x' }, options);
  await container.item('a', 'x').replace({ id: 'a', tenant: 'x', n: 1 }, options);
  await container.items.upsert({ id: 'a', tenant: 'x', n: 2 }, options);
  await container.item('a', 'x').patch([{ op: 'set', path: '/n', value: 3 }], options);
  assert.equal((await container.item('a', 'x').read()).resource.n, 3);
  await container.item('a', 'x').delete(options);
  const { resources } = await container.items
    .query("SELECT VALUE c.operation FROM c WHERE c.type = 'log'", { partitionKey: 'x' }).fetchAll();
  assert.deepEqual(resources.sort(), ['Create', 'Delete', 'Patch', 'Replace', 'Upsert']);
});

test('a trigger that does not fit is refused, and nothing is written', async (t) => {
  const { container, send, docs } = await shop(t);
  await trigger(container, 'onDelete', 'Pre', 'Delete', function () {});
  await trigger(container, 'after', 'Post', 'All', function () {});
  const create = (headers) => send('POST', docs, { key: ['x'], body: { id: 'a', tenant: 'x' }, headers });
  const pre = 'x-ms-documentdb-pre-trigger-include', post = 'x-ms-documentdb-post-trigger-include';
  for (const headers of [{ [pre]: 'onDelete' }, { [pre]: 'after' }, { [pre]: 'none' }, { [post]: 'onDelete' }, { [post]: 'after,none' }]) {
    const answer = await create(headers);
    assert.equal(answer.status, 400, answer.text);
  }
  assert.equal(await countOf(container, 'x'), 0);
  assert.equal((await create({ [post]: 'after' })).status, 201);
  const batch = await send('POST', docs, {
    key: ['x'], body: [{ operationType: 'Delete', id: 'a' }],
    headers: { [pre]: 'onDelete', 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'True' },
  });
  assert.equal(batch.status, 501);
});

test('a pre-trigger cannot move an item to another partition key', async (t) => {
  const { container } = await shop(t);
  await trigger(container, 'move', 'Pre', 'All', function () {
    const request = getContext().getRequest();
    const item = request.getBody();
    item.tenant = 'y';
    request.setBody(item);
  });
  await assert.rejects(container.items.create({ id: 'a', tenant: 'x' }, { preTriggerInclude: ['move'] }), { code: 400 });
  assert.equal(await countOf(container, 'x'), 0);
  assert.equal(await countOf(container, 'y'), 0);
});

test('etags and minimal answers hold with triggers too', async (t) => {
  const { container, send, docs } = await shop(t);
  await trigger(container, 'validate', 'Pre', 'All', validate);
  const { resource } = await container.items.create({ id: 'a', tenant: 'x', price: 1 });
  const pre = { 'x-ms-documentdb-pre-trigger-include': 'validate' };
  const stale = await send('PUT', `${docs}/a`, { key: ['x'], body: { id: 'a', tenant: 'x', price: 2 }, headers: { ...pre, 'if-match': '"0"' } });
  assert.equal(stale.status, 412);
  const fresh = await send('PUT', `${docs}/a`, {
    key: ['x'], body: { id: 'a', tenant: 'x', price: 2 }, headers: { ...pre, 'if-match': resource._etag, prefer: 'return=minimal' },
  });
  assert.equal(fresh.status, 200);
  assert.equal(fresh.text, '');
  assert.equal(fresh.headers.etag, (await container.item('a', 'x').read()).resource._etag);
});
