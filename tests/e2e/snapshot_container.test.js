// Snapshots of one container: a copy made as a migration while clients work, and gone back to, times and etags included.
import assert from 'node:assert/strict';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery } from './server.js';
import { signed } from './rest.js';

const json = { 'content-type': 'application/json' };

async function started(t, options = {}) {
  const server = await Server.start(t, ['--dev', '--node', 'one=memory:', '--node', 'two=memory:', '--set', 'migration.pause_ms=20ms']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant', throughput: 20000, uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/mail'] }] }, ...options });
  const run = (...words) => orrery(['snapshot', '--container', 'shop/orders', ...words, '--dev'], { env: { ORRERY_ENDPOINT: server.url } });
  const good = async (...words) => {
    const result = await run(...words);
    assert.equal(result.code, 0, result.err);
    return result.out;
  };
  return { server, database, container, run, good };
}

const all = async (container) => (await container.items.query('SELECT c.id, c.tenant, c.n, c._ts, c._etag FROM c').fetchAll()).resources
  .sort((a, b) => (a.tenant + a.id).localeCompare(b.tenant + b.id));
const put = (container, i, n = i) => container.items.upsert({ id: `${i}`, tenant: `t${i % 8}`, n, mail: `m${i}` });

test('a container goes back to its snapshot, again and again, with its scripts, while the others stay', async (t) => {
  const { server, database, container, run, good } = await started(t);
  const { container: other } = await database.containers.create({ id: 'other', partitionKey: '/tenant' });
  await other.items.create({ id: '1', tenant: 'x' });
  for (let i = 0; i < 40; i++) await put(container, i);
  await container.scripts.storedProcedures.create({ id: 'hello', body: 'function () { getContext().getResponse().setBody(1); }' });
  await container.scripts.userDefinedFunctions.create({ id: 'double', body: 'function (n) { return 2 * n; }' });
  const before = await all(container);
  assert.match(await good('create', 'clean'), /snapshot "clean" of shop\/orders is made: container "orders@clean"/);
  assert.match(await good('list'), /clean +\S+ +orders@clean/);
  assert.deepEqual(await all(database.container('orders@clean')), before);

  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 20; i++) await put(container, i, 1000 + i);
    await container.item('30', 't6').delete();
    await put(container, 50 + round);
    await container.scripts.storedProcedure('hello').delete();
    await other.items.upsert({ id: `more${round}`, tenant: 'x' });
    assert.match(await good('reset', 'clean'), /shop\/orders is what snapshot "clean" was/);
    assert.deepEqual(await all(container), before);
    assert.equal((await container.scripts.storedProcedures.readAll().fetchAll()).resources[0].id, 'hello');
    assert.equal((await container.scripts.userDefinedFunctions.readAll().fetchAll()).resources[0].id, 'double');
  }
  assert.equal((await other.items.readAll().fetchAll()).resources.length, 3);
  // an etag of before the reset is the item's, a unique key is taken, and what is stored agrees with itself
  await container.item('3', 't3').replace({ id: '3', tenant: 't3', n: 7, mail: 'm3' }, { accessCondition: { type: 'IfMatch', condition: before.find((one) => one.id === '3')._etag } });
  await assert.rejects(container.items.create({ id: 'new', tenant: 't3', mail: 'm3' }), (error) => error.code === 409);
  const verified = await orrery(['verify', '--dev'], { env: { ORRERY_ENDPOINT: server.url } });
  assert.match(verified.out, / 0 findings/, verified.err);

  // also when the container itself is gone
  await container.delete();
  await good('reset', 'clean');
  assert.deepEqual(await all(container), before);
  const listed = JSON.parse(await good('list', '--format', 'json'));
  assert.deepEqual(listed.snapshots.map((one) => [one.name, one.container]), [['clean', 'orders@clean']]);
  await good('drop', 'clean');
  assert.deepEqual(JSON.parse(await good('list', '--json')), { snapshots: [] });
  assert.match((await run('drop', 'clean')).err, /orders@clean/);
});

test('a snapshot under load has every write that was acknowledged before it and none that was sent afterwards', async (t) => {
  const { database, container, good } = await started(t);
  const acknowledged = new Map();
  const state = { on: true, sent: 0 };
  const writer = (async () => {
    for (let n = 0; state.on; n++) {
      state.sent = n;
      await put(container, n % 64, n);
      acknowledged.set(`${n % 64}`, n);
    }
  })();
  while (acknowledged.size < 64) await new Promise((resolve) => setImmediate(resolve));
  const least = new Map(acknowledged);
  await good('create', 'busy');
  const most = state.sent;
  const copied = await all(database.container('orders@busy'));
  state.on = false;
  await writer;
  assert.equal(copied.length, 64);
  for (const item of copied) {
    assert.ok(item.n >= least.get(item.id), `${item.id}: ${item.n} is older than what was acknowledged`);
    assert.ok(item.n <= most, `${item.id}: ${item.n} was sent behind the snapshot`);
  }
  // one writer wrote one after the other: what is in it is a beginning of that
  const last = Math.max(...copied.map((item) => item.n));
  for (const item of copied) assert.ok(item.n > last - 64, `${item.id}: ${item.n} is missing a write before ${last}`);
});

test('what cannot be is refused, changes nothing, and is tried out first over HTTP', async (t) => {
  const { server, database, container, run } = await started(t);
  await put(container, 1);
  const copy = (body, options) => signed(server, 'POST', '/_orrery/containers/shop/orders/copy', { headers: json, body, ...options });
  const tried = await copy({ to: 'orders@x', dryRun: true });
  assert.equal(tried.status, 200, tried.text);
  assert.deepEqual([tried.json.kind, tried.json.items, tried.json.sources.length, tried.json.targets.length, tried.json.partitionsAfter], ['copy', 1, 2, 2, 2]);
  assert.equal((await copy({ to: 'orders' })).status, 409);
  assert.equal((await copy({ to: 'a/b' })).status, 400);
  assert.equal((await copy({ to: 7 })).status, 400);
  assert.equal((await copy({})).status, 400);
  assert.equal((await copy({ to: 'x', form: 1 })).status, 400);
  const keys = (await signed(server, 'GET', '/_orrery/accounts/default/keys')).json.keys;
  assert.equal((await copy({ to: 'orders@x' }, { key: keys['primary-readonly'] })).status, 403);
  const failed = async (code, text, ...words) => {
    const result = await run(...words);
    assert.deepEqual([result.code, text.test(result.err)], [code, true], `${words}: ${result.err}`);
  };
  await failed(2, /small letters/, 'create', 'Not Fine');
  await failed(2, /small letters/, 'reset', '../up');
  await failed(1, /orders@nothing/, 'reset', 'nothing');
  await failed(1, /orders@nothing/, 'drop', 'nothing');
  await failed(2, /DATABASE\/CONTAINER/, 'list', '--container', 'shop');
  await failed(1, /mistyped/, 'create', 'a', '--container', 'shop/mistyped');
  await failed(2, /--no-wait/, 'create', 'a', '--no-wait');
  assert.deepEqual((await database.containers.readAll().fetchAll()).resources.map((one) => one.id), ['orders']);
});
