// Another partition key for a container in use: clients that know the old one and clients that know the
// new one work on while it changes.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos';
import { emulatorKey, sanitized } from './server.js';
import { shop } from './items.js';

const key = (...paths) => ({ paths, kind: paths.length > 1 ? 'MultiHash' : 'Hash', version: 2 });
const rekeyPath = '/_orrery/containers/shop/orders/rekey';

async function placed(t, definition = {}, { ru = 20000, args = [] } = {}) {
  const at = await shop(t, { partitionKey: key('/tenant'), ...definition }, {
    args: ['--set', 'migration.pause_ms=20ms', ...args],
    create: { offerThroughput: ru },
  });
  if (process.env.REKEY_DEBUG) t.after(() => console.error(at.server.err.slice(-6000)));
  at.fill = async (items) => {
    for (let i = 0; i < items.length; i += 100) {
      const answers = await at.container.items.bulk(
        items.slice(i, i + 100).map((resourceBody) => ({ operationType: 'Create', resourceBody })));
      for (const answer of answers) assert.equal(answer.statusCode, 201);
    }
  };
  at.rekey = (body) => at.send('POST', rekeyPath, { body });
  at.state = async () => (await at.send('GET', rekeyPath)).json;
  at.done = () => until(async () => !(await at.state()).underWay);
  at.other = () => new CosmosClient({ endpoint: at.server.url, key: emulatorKey }).database('shop').container('orders');
  return at;
}

async function until(what, limitMs = 120_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, 'waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const orders = (count) => Array.from({ length: count }, (_, i) =>
  ({ id: `o${i}`, tenant: `t${i % 7}`, user: `u${i % 31}`, n: i, filler: 'x'.repeat(40) }));
const byId = (a, b) => (a.id < b.id ? -1 : 1);
const plain = ({ id, tenant, user, n }) => ({ id, tenant, user, n });

test('every item is under the new key, as it was, and the container shows the new definition', async (t) => {
  const at = await placed(t);
  const items = orders(300);
  await at.fill(items);
  const before = (await at.container.item('o5', 't5').read()).resource;
  const begun = await at.rekey({ partitionKey: key('/user') });
  assert.equal(begun.status, 202, JSON.stringify(begun.json));
  await at.done();
  const fresh = at.other();
  const { resource } = await fresh.read();
  assert.deepEqual(resource.partitionKey.paths, ['/user']);
  const after = (await fresh.item('o5', 'u5').read()).resource;
  assert.deepEqual(after, before, 'system properties too');
  const { resources } = await fresh.items.readAll().fetchAll();
  assert.deepEqual(resources.map(plain).sort(byId), items.map(plain).sort(byId));
  const one = await fresh.items.query('SELECT * FROM c', { partitionKey: 'u5' }).fetchAll();
  assert.deepEqual(one.resources.map(plain).sort(byId), items.filter((item) => item.user === 'u5').map(plain).sort(byId));
  const indexed = await fresh.items.query('SELECT VALUE COUNT(1) FROM c WHERE c.n >= 100 AND c.tenant = "t1"').fetchAll();
  assert.equal(indexed.resources[0], items.filter((item) => item.n >= 100 && item.tenant === 't1').length);
});

test('clients that know the old key work on until the grace period is ended', async (t) => {
  const at = await placed(t);
  const items = orders(120);
  await at.fill(items);
  const old = at.container;
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  await at.done();

  assert.equal((await old.item('o9', 't2').read()).resource.user, 'u9');
  assert.equal((await old.item('o9', 't3').read()).statusCode, 404);
  const replaced = await old.item('o9', 't2').replace({ ...items[9], n: 900 });
  assert.equal(replaced.resource.n, 900);
  const patched = await old.item('o10', 't3').patch([{ op: 'incr', path: '/n', value: 1 }]);
  assert.equal(patched.resource.n, 11);
  assert.equal((await old.item('o11', 't4').delete()).statusCode, 204);
  assert.equal((await old.items.create({ id: 'new', tenant: 't1', user: 'u1' })).statusCode, 201);
  await assert.rejects(old.items.create({ id: 'new', tenant: 't1', user: 'u2' }), { code: 409 });
  assert.equal((await old.items.upsert({ id: 'new', tenant: 't1', user: 'u1', n: 2 })).statusCode, 200);
  await assert.rejects(old.items.upsert({ id: 'new', tenant: 't1', user: 'u2' }), (error) => {
    assert.equal(error.code, 400);
    assert.match(error.message, /re-keyed/);
    return true;
  });
  await assert.rejects(
    at.send('POST', '/dbs/shop/colls/orders/docs', { headers: { 'x-ms-documentdb-partitionkey': '["wrong"]' }, body: { id: 'x', tenant: 't1', user: 'u1' } })
      .then((answer) => { if (answer.status >= 400) throw Object.assign(new Error(answer.json.message), { code: answer.status }); }), { code: 400 });
  const mine = await old.items.query('SELECT * FROM c', { partitionKey: 't2' }).fetchAll();
  assert.deepEqual(mine.resources.map((item) => item.id).sort(),
    items.filter((item) => item.tenant === 't2').map((item) => item.id).sort());
  const sums = await old.items.query('SELECT VALUE COUNT(1) FROM c WHERE c.n > 20', { partitionKey: 't3' }).fetchAll();
  assert.equal(sums.resources[0], items.filter((item) => item.tenant === 't3' && item.n > 20).length);
  const bulk = await old.items.bulk([
    { operationType: 'Read', id: 'o1', partitionKey: 't1' },
    { operationType: 'Upsert', partitionKey: 't1', resourceBody: { ...items[1], n: 7 } },
    { operationType: 'Delete', id: 'o8', partitionKey: 't1' },
  ]);
  assert.deepEqual(bulk.map((one) => one.statusCode), [200, 200, 204]);
  const batch = await old.items.batch([
    { operationType: 'Read', id: 'o1' },
    { operationType: 'Upsert', resourceBody: { ...items[1], n: 8 } },
  ], 't1');
  assert.equal(batch.code, 200, JSON.stringify(batch.result));
  await assert.rejects(old.items.batch([
    { operationType: 'Upsert', resourceBody: { ...items[1], n: 8 } },
    { operationType: 'Upsert', resourceBody: { ...items[15], n: 8 } },
  ], 't1'), { code: 501 });

  assert.deepEqual((await at.state()).formerly, ['/tenant']);
  assert.equal((await at.rekey({ partitionKey: key('/n') })).status, 409, 'the grace period is not over');
  assert.equal((await at.send('POST', `${rekeyPath}/end-grace`)).status, 204);
  assert.equal((await at.state()).formerly, undefined);
  assert.equal((await old.item('o9', 't2').read()).statusCode, 404);
  await assert.rejects(old.items.create({ id: 'late', tenant: 't1', user: 'u1' }), { code: 400 });
  assert.equal((await at.other().item('o9', 'u9').read()).resource.n, 900);
});
