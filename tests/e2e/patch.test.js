// Partial changes of items.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

test('the JavaScript client patches with every operation', async (t) => {
  const { container } = await shop(t, {}, { create: { offerThroughput: 4000 } });
  await container.items.create({ id: 'a', tenant: 'x', n: 1, list: [1, 2], deep: { v: 'v' }, old: true });
  const { resource, statusCode, requestCharge } = await container.item('a', 'x').patch([
    { op: 'add', path: '/list/0', value: 0 },
    { op: 'add', path: '/list/-', value: 3 },
    { op: 'set', path: '/deep/w', value: { k: null } },
    { op: 'replace', path: '/deep/v', value: 'V' },
    { op: 'remove', path: '/old' },
    { op: 'incr', path: '/n', value: -3.5 },
    { op: 'incr', path: '/made', value: 2 },
    { op: 'move', from: '/deep/w', path: '/w' },
  ]);
  assert.equal(statusCode, 200);
  assert.ok(requestCharge > 5);
  const { list, deep, n, made, w, old } = resource;
  assert.deepEqual({ list, deep, n, made, w, old }, { list: [0, 1, 2, 3], deep: { v: 'V' }, n: -2.5, made: 2, w: { k: null }, old: undefined });
  assert.deepEqual((await container.item('a', 'x').read()).resource, resource);
});

test('a patch that does not fit changes nothing', async (t) => {
  const { container, docs, send } = await shop(t, { defaultTtl: -1 });
  const { resource } = await container.items.create({ id: 'a', tenant: 'x', n: 'text', list: [1] });
  const patch = (operations, headers) => send('PATCH', `${docs}/a`, { key: ['x'], headers, body: operations });
  const bad = [
    [{ op: 'replace', path: '/none', value: 1 }],
    [{ op: 'remove', path: '/none' }],
    [{ op: 'incr', path: '/n', value: 1 }],
    [{ op: 'add', path: '/list/3', value: 1 }],
    [{ op: 'set', path: '/none/below', value: 1 }],
    [{ op: 'set', path: '/id', value: 'b' }],
    [{ op: 'set', path: '/tenant', value: 'y' }],
    [{ op: 'set', path: '/_ts', value: 1 }],
    [{ op: 'set', path: '/ttl', value: 0 }],
    [{ op: 'move', from: '/list', path: '/list/0' }],
    [{ op: 'set', path: '/m', value: 1 }, { op: 'remove', path: '/none' }],
    [{ op: 'jump', path: '/m' }],
    [{ op: 'set', path: 'm', value: 1 }],
    [],
    Array.from({ length: 11 }, (_, i) => ({ op: 'set', path: `/p${i}`, value: i })),
    {},
    'text',
  ];
  for (const operations of bad) assert.equal((await patch(operations)).status, 400, JSON.stringify(operations));
  assert.equal((await patch('')).status, 400);
  assert.deepEqual((await container.item('a', 'x').read()).resource, resource);
  assert.equal((await patch([{ op: 'set', path: '/m', value: 1 }], { 'if-match': '"other"' })).status, 412);
  assert.equal((await patch({ operations: [{ op: 'set', path: '/m', value: 1 }] }, { 'if-match': resource._etag })).status, 200);
  const missing = await send('PATCH', `${docs}/none`, { key: ['x'], body: [{ op: 'set', path: '/m', value: 1 }] });
  assert.equal(missing.status, 404);
});

test('a patched ttl counts', async (t) => {
  const { container } = await shop(t, { defaultTtl: -1 });
  await container.items.create({ id: 'a', tenant: 'x' });
  await container.item('a', 'x').patch([{ op: 'set', path: '/ttl', value: 1 }]);
  const patched = await container.item('a', 'x').read();
  assert.ok(patched.statusCode === 404 || patched.resource.ttl === 1);
  const until = Date.now() + 30000;
  let status = 200;
  while (status === 200 && Date.now() < until) {
    await new Promise((r) => setTimeout(r, 50));
    status = (await container.item('a', 'x').read()).statusCode;
  }
  assert.equal(status, 404);
  const { resources } = await container.items.readAll().fetchAll();
  assert.deepEqual(resources, []);
});
