// A replace that gives an item another id: it stays the same item.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

const rich = { create: { offerThroughput: 10000 } };
const versions = { changeFeedPolicy: { retentionDuration: 10 } };

test('a replace gives an item another id, and it stays the item it was', async (t) => {
  const { container, docs, send, resource } = await shop(t, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/mail'] }] } }, rich);
  const { resource: made } = await container.items.create({ id: 'a', tenant: 'x', mail: 'm', n: 1 });
  const { resource: renamed, statusCode } = await container.item('a', 'x').replace({ ...made, id: 'b', n: 2 });
  assert.equal(statusCode, 200);
  assert.equal(renamed.id, 'b');
  assert.equal(renamed._rid, made._rid);
  assert.notEqual(renamed._etag, made._etag);
  assert.equal((await container.item('a', 'x').read()).statusCode, 404);
  assert.equal((await container.item('b', 'x').read()).resource.n, 2);
  const byRid = await send('GET', `/${resource._self}docs/${made._rid}`, { sign: { type: 'docs', link: made._rid.toLowerCase() } });
  assert.equal(byRid.json.id, 'b');
  for (const query of ["SELECT VALUE c.id FROM c WHERE c.id = 'b'", 'SELECT VALUE c.id FROM c WHERE c.n = 2', 'SELECT VALUE c.id FROM c'])
    assert.deepEqual((await container.items.query(query).fetchAll()).resources, ['b'], query);
  assert.deepEqual((await container.items.query("SELECT VALUE c.id FROM c WHERE c.id = 'a'").fetchAll()).resources, []);
  assert.deepEqual((await send('GET', docs, { key: ['x'] })).json.Documents.map((d) => d.id), ['b']);
  // Its unique key is its own still; the id it had is free.
  assert.equal((await send('POST', docs, { key: ['x'], body: { id: 'c', tenant: 'x', mail: 'm' } })).status, 409);
  const { resource: other } = await container.items.create({ id: 'a', tenant: 'x', mail: 'o' });
  assert.notEqual(other._rid, made._rid);
});

test('an id that is taken, another partition key and an etag of before are refused', async (t) => {
  const { container, docs, send } = await shop(t, {}, rich);
  const { resource: a } = await container.items.create({ id: 'a', tenant: 'x' });
  await container.items.create({ id: 'b', tenant: 'x' });
  await container.items.create({ id: 'c', tenant: 'y' });
  const put = (body, headers = {}) => send('PUT', `${docs}/a`, { key: ['x'], body, headers });
  const taken = await put({ id: 'b', tenant: 'x' });
  assert.equal(taken.status, 409);
  assert.equal(taken.json.code, 'Conflict');
  const moved = await put({ id: 'd', tenant: 'y' });
  assert.equal(moved.status, 400);
  assert.equal(moved.headers['x-ms-substatus'], '1001');
  assert.equal((await put({ id: 'd', tenant: 'x' }, { 'if-match': '"no"' })).status, 412);
  assert.equal((await put({ id: 'c', tenant: 'x' }, { 'if-match': a._etag })).status, 200);
  assert.equal((await send('PUT', `${docs}/a`, { key: ['x'], body: { id: 'e', tenant: 'x' } })).status, 404);
});

test('in batches and in bulk a replace gives another id too', async (t) => {
  const { container, docs, send } = await shop(t, {}, rich);
  for (const id of ['a', 'b', 'c']) await container.items.create({ id, tenant: 'x', was: id });
  const replace = (id, to, was) => ({ operationType: 'Replace', id, partitionKey: '["x"]', resourceBody: { id: to, tenant: 'x', was } });
  // Two exchange their ids.
  const { result } = await container.items.batch([replace('a', 't', 'a'), replace('b', 'a', 'b'), replace('t', 'b', 'a')], 'x');
  assert.deepEqual(result.map((r) => r.statusCode), [200, 200, 200]);
  assert.equal((await container.item('a', 'x').read()).resource.was, 'b');
  assert.equal((await container.item('b', 'x').read()).resource.was, 'a');
  assert.equal((await container.item('t', 'x').read()).statusCode, 404);
  const { result: refused } = await container.items.batch([replace('a', 'd', 'b'), replace('b', 'c', 'a')], 'x');
  assert.deepEqual(refused.map((r) => r.statusCode), [424, 409]);
  const headers = { 'x-ms-cosmos-is-batch-request': 'True', 'x-ms-cosmos-batch-atomic': 'False', 'x-ms-cosmos-batch-continue-on-error': 'True' };
  const bulk = await send('POST', docs, { headers, body: [replace('a', 'd', 'b'), replace('b', 'a', 'a'), replace('c', 'd', 'c')] });
  assert.deepEqual(bulk.json.map((r) => r.statusCode), [200, 200, 409]);
  const ids = (await container.items.readAll().fetchAll()).resources.map((d) => `${d.id}:${d.was}`);
  assert.deepEqual(ids.sort(), ['a:a', 'c:c', 'd:b']);
});

test('the feed shows a replace, and all versions of what a batch made and deleted', async (t) => {
  const { container, docs, send } = await shop(t, versions, rich);
  const from = (await send('GET', docs, { key: ['x'], headers: { 'a-im': 'Full-Fidelity Feed', 'x-ms-cosmos-changefeed-wire-format-version': '2021-09-15', 'if-none-match': '*' } })).headers.etag;
  const { resource: made } = await container.items.create({ id: 'a', tenant: 'x' });
  await container.item('a', 'x').replace({ id: 'b', tenant: 'x' });
  await container.items.batch([{ operationType: 'Create', resourceBody: { id: 'c', tenant: 'x', n: 1 } }, { operationType: 'Delete', id: 'c' }], 'x');
  const feed = await send('GET', docs, { key: ['x'], headers: { 'a-im': 'Full-Fidelity Feed', 'x-ms-cosmos-changefeed-wire-format-version': '2021-09-15', 'if-none-match': from } });
  const told = feed.json.Documents.map((d) => [d.metadata.operationType, d.current?.id ?? d.metadata.id ?? d.previous?.id]);
  assert.deepEqual(told.map(([kind]) => kind), ['create', 'replace', 'create', 'delete'], feed.text);
  assert.deepEqual(told.slice(0, 3).map(([, id]) => id), ['a', 'b', 'c']);
  assert.equal(feed.json.Documents[1].current._rid, made._rid);
  const latest = await send('GET', docs, { key: ['x'], headers: { 'a-im': 'Incremental feed' } });
  assert.deepEqual(latest.json.Documents.map((d) => d.id), ['b']);
});

test('a script gives another id too', async (t) => {
  const { container } = await shop(t, {}, rich);
  await container.items.create({ id: 'a', tenant: 'x' });
  const body = function (to) {
    const collection = getContext().getCollection();
    collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c WHERE c.id = 'a'", (err, found) => {
      if (err) throw err;
      found[0].id = to;
      collection.replaceDocument(found[0]._self, found[0], (error, doc) => {
        if (error) throw error;
        getContext().getResponse().setBody(doc.id);
      });
    });
  };
  await container.scripts.storedProcedures.create({ id: 'p', body });
  assert.equal((await container.scripts.storedProcedure('p').execute('x', ['b'])).resource, 'b');
  assert.equal((await container.item('b', 'x').read()).statusCode, 200);
  assert.equal((await container.item('a', 'x').read()).statusCode, 404);
});

test('ids stay unique under a random suffix when items get others', async (t) => {
  const synthetic = { kind: 'randomSuffix', target: '/spread', base: '/tenant', suffixes: 8 };
  const { docs, send } = await shop(t, { partitionKey: '/spread', orrery: { synthetic } }, rich);
  const made = await send('POST', docs, { body: { id: 'a', tenant: 'x' } });
  assert.equal(made.status, 201, made.text);
  const key = [made.json.spread];
  const put = (id, to, name = key) => send('PUT', `${docs}/${id}`, { key: name, body: { ...made.json, id: to } });
  assert.equal((await send('POST', docs, { body: { id: 'b', tenant: 'x' } })).status, 201);
  assert.equal((await put('a', 'b')).status, 409);
  const renamed = await put('a', 'c');
  assert.equal(renamed.status, 200, renamed.text);
  assert.equal(renamed.json._rid, made.json._rid);
  assert.equal((await send('POST', docs, { body: { id: 'c', tenant: 'x' } })).status, 409);
  assert.equal((await send('POST', docs, { body: { id: 'a', tenant: 'x' } })).status, 201);
  assert.equal((await put('c', 'd', ['x'])).status, 200, 'with the base alone');
  assert.equal((await send('GET', `${docs}/d`, { key })).status, 200);
});
