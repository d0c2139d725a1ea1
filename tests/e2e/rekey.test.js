// Another partition key for a container in use: clients that know the old one and clients that know the
// new one work on while it changes.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery, sanitized, scratch } from './server.js';
import { shop } from './items.js';
import { Load, order } from './rekey_load.js';

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

test('a query that the library merges ends when the ranges it began with are gone by a re-key', async (t) => {
  const at = await placed(t, {}, { ru: 40000 });
  await at.fill(orders(120));
  for (const query of ['SELECT * FROM c ORDER BY c.n', 'SELECT DISTINCT VALUE c.id FROM c']) {
    const [from, to] = query.includes('ORDER') ? ['tenant', 'user'] : ['user', 'tenant'];
    const iterator = at.other().items.query(query, { maxItemCount: 5, maxDegreeOfParallelism: 1 });
    const first = await iterator.fetchNext();
    assert.ok(first.resources.length > 0, `begun under ${from}`);
    assert.equal((await at.rekey({ partitionKey: key(`/${to}`) })).status, 202);
    await at.done();
    await assert.rejects(async () => {
      while (iterator.hasMoreResults()) await iterator.fetchNext();
    }, { code: 410, substatus: 1000 });
    const { resources } = await at.other().items.query(query).fetchAll();
    assert.equal(resources.length, 120, 'asked again, it is answered whole');
    await at.send('POST', `${rekeyPath}/end-grace`);
  }
});

test('clients that know the old key work on until the grace period is ended', async (t) => {
  const at = await placed(t, {}, { ru: 40000 });
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
  for (const [text, wanted] of [
    ['SELECT c.id FROM c ORDER BY c.n DESC', (list) => list.sort((a, b) => b.n - a.n)],
    ['SELECT DISTINCT c.id FROM c ORDER BY c.id', (list) => list.sort(byId)],
    ['SELECT c.id FROM c WHERE c.n > 40 ORDER BY c.n OFFSET 2 LIMIT 3', (list) => list.filter((item) => item.n > 40).slice(2, 5)],
  ]) {
    const found = await old.items.query(text, { partitionKey: 't5', maxItemCount: 4 }).fetchAll();
    assert.deepEqual(found.resources.map((item) => item.id), wanted(items.filter((item) => item.tenant === 't5')).map((item) => item.id), text);
  }
  const listed = await old.items.readAll({ partitionKey: 't5', maxItemCount: 3 }).fetchAll();
  assert.deepEqual(listed.resources.map((item) => item.id).sort(), items.filter((item) => item.tenant === 't5').map((item) => item.id).sort());
  const bulk = await old.items.bulk([
    { operationType: 'Read', id: 'o1', partitionKey: 't1' },
    { operationType: 'Upsert', partitionKey: 't1', resourceBody: { ...items[1], n: 7 } },
    { operationType: 'Delete', id: 'o8', partitionKey: 't1' },
  ]);
  assert.deepEqual(bulk.map((one) => one.statusCode), [200, 200, 204], JSON.stringify(bulk));
  const batch = await old.items.batch([
    { operationType: 'Read', id: 'o1' },
    { operationType: 'Upsert', resourceBody: { ...items[1], n: 8 } },
  ], 't1');
  assert.equal(batch.code, 200, JSON.stringify(batch.result));
  await assert.rejects(old.items.batch([
    { operationType: 'Upsert', resourceBody: { ...items[1], n: 8 } },
    { operationType: 'Upsert', resourceBody: { ...items[15], n: 8 } },
  ], 't1'), /re-keyed: the items of this batch are in different logical partitions/);

  // All items of an old key, whatever keys they have by now, and no others.
  const count = async () => (await at.other().items.query('SELECT VALUE COUNT(1) FROM c').fetchAll()).resources[0];
  const all = await count();
  const sixth = items.filter((item) => item.tenant === 't6');
  await at.other().deleteAllItemsForPartitionKey('t6'); // which makes a client read the definition again
  assert.equal(await count(), all - sixth.length);
  assert.equal((await old.items.query('SELECT * FROM c', { partitionKey: 't6' }).fetchAll()).resources.length, 0);
  // Positions of several physical partitions are more than one number.
  const feed = at.other().items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning('t2') });
  await assert.rejects(feed.readNext(), /re-keyed: its change feed is read by the keys it has now/);

  assert.deepEqual((await at.state()).formerly, ['/tenant']);
  assert.equal((await at.rekey({ partitionKey: key('/n') })).status, 409, 'the grace period is not over');
  assert.equal((await at.send('POST', `${rekeyPath}/end-grace`)).status, 204);
  assert.equal((await at.state()).formerly, undefined);
  assert.equal((await old.item('o9', 't2').read()).statusCode, 404);
  await assert.rejects(old.items.create({ id: 'late', tenant: 't1', user: 'u1' }), { code: 400 });
  assert.equal((await at.other().item('o9', 'u9').read()).resource.n, 900);
});

test('in one physical partition the change feed is read by an old key too', async (t) => {
  const at = await placed(t, {}, { ru: 400 });
  const items = orders(40);
  await at.fill(items);
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  await at.done();
  const feed = at.container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning('t2'), maxItemCount: 3 });
  const seen = [];
  const rest = async () => {
    for (let page; (page = await feed.readNext()).statusCode !== 304;) seen.push(...page.result.map((item) => item.id));
  };
  await rest();
  assert.deepEqual(seen.splice(0).sort(), items.filter((item) => item.tenant === 't2').map((item) => item.id).sort());
  await at.container.item('o2', 't2').patch([{ op: 'incr', path: '/n', value: 1 }]);
  await at.container.item('o3', 't3').patch([{ op: 'incr', path: '/n', value: 1 }]);
  await rest();
  assert.deepEqual(seen, ['o2']);
  const versions = await at.send('GET', at.docs, { key: ['t2'], headers: { 'a-im': 'Full-Fidelity Feed', 'if-none-match': '*' } });
  assert.equal(versions.status, 501, versions.text);
});

test('a token for a value of the old key is good for nothing, until its permission is made anew', async (t) => {
  const at = await placed(t);
  await at.fill([...orders(20), { id: 'other', tenant: 't9', user: 't1' }]);
  const { user } = await at.database.users.create({ id: 'reader' });
  const permission = { id: 'own', permissionMode: 'Read', resource: 'dbs/shop/colls/orders', resourcePartitionKey: ['t1'] };
  const made = (await user.permissions.create(permission)).resource;
  const bearer = (token) => new CosmosClient({ endpoint: at.server.url, resourceTokens: { 'dbs/shop/colls/orders': token } })
    .database('shop').container('orders');
  assert.equal((await bearer(made._token).item('o1', 't1').read()).statusCode, 200);
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  await at.done();
  const stopped = (token) => Promise.all(['o1', 'other'].map((id) =>
    assert.rejects(bearer(token).item(id, 't1').read(), /before the container was re-keyed/)));
  await stopped(made._token);
  await stopped((await user.permission('own').read()).resource._token); // "t1" was said of tenants
  assert.equal((await at.send('POST', `${rekeyPath}/end-grace`)).status, 204);
  await stopped((await user.permission('own').read()).resource._token);
  const replaced = (await user.permission('own').replace(permission)).resource;
  assert.equal((await bearer(replaced._token).item('other', 't1').read()).statusCode, 200);
  const { resource } = await at.other().read();
  assert.ok(resource.orrery.rekeyed > 0);
  assert.equal((await at.other().replace(resource)).statusCode, 200);
  await assert.rejects(at.other().replace({ ...resource, orrery: { ...resource.orrery, rekeyed: 1 } }), { code: 400 });
});

test('conflicts are listed, keep the switch waiting, and go away when they are resolved', async (t) => {
  const at = await placed(t, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ['/mail'] }] } });
  const { container } = at;
  const all = [
    { id: 'a', tenant: 't1', user: 'u1', mail: 'one' }, { id: 'a', tenant: 't2', user: 'u1', mail: 'two' },
    { id: 'b', tenant: 't1', user: 'u2', mail: 'same' }, { id: 'c', tenant: 't2', user: 'u2', mail: 'same' },
    { id: 'd', tenant: 't1', mail: 'three' }, { id: 'e', tenant: 't1', user: 'too long'.repeat(300), mail: 'four' },
    { id: 'f', tenant: 't1', user: 'u3', mail: 'five' },
  ];
  for (const item of all) await container.items.create(item);
  const dry = await at.rekey({ partitionKey: key('/user'), dryRun: true });
  assert.equal(dry.status, 200, JSON.stringify(dry.json));
  assert.deepEqual(
    { ...dry.json.conflicts, items: dry.json.items, complete: dry.json.complete },
    { invalidKey: 1, missingKey: 1, sameKeyAndId: 1, sameUniqueKey: 1, logicalPartitionsFull: 0, comparedOneIn: 1, items: 7, complete: true });
  assert.ok(dry.json.partitions >= 1 && dry.json.bytesNeeded > 5 * 70 && dry.json.durationMs >= 0);
  assert.equal(dry.json.sampled, 5, 'those with a key were copied, to measure');
  // Of two that meet, either is the one in the way.
  const listed = dry.json.list.map(({ kind, id, to }) => [kind, kind === 'sameUniqueKey' ? ['b', 'c'].includes(id) : id, to?.[0]]).sort();
  assert.deepEqual(listed, [['invalidKey', 'e', undefined], ['missingKey', 'd', {}], ['sameKeyAndId', 'a', 'u1'], ['sameUniqueKey', true, 'u2']]);
  assert.equal((await at.state()).underWay, false, 'it was only looked at');

  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  const kinds = async () => (await at.state()).list.map((one) => one.kind).sort();
  const blocked = await until(async () => { const now = await at.state(); return now.conflicts === 4 && now; });
  assert.deepEqual(blocked.list.map((one) => one.kind).sort(), ['invalidKey', 'missingKey', 'sameKeyAndId', 'sameUniqueKey']);
  assert.deepEqual(blocked.list.find((one) => one.kind === 'missingKey').from, ['t1']);
  assert.equal(blocked.list.find((one) => one.kind === 'missingKey').id, 'd');
  // A write that makes another conflict is not refused, and one that resolves it is seen.
  await container.items.create({ id: 'f', tenant: 't2', user: 'u3', mail: 'six' });
  await until(async () => (await at.state()).conflicts === 5);
  await container.item('f', 't1').delete();
  await container.item('d', 't1').replace({ ...all[4], user: 'u9' });
  await container.item('e', 't1').replace({ ...all[5], user: 'u9' });
  await until(async () => (await kinds()).join() === 'sameKeyAndId,sameUniqueKey');
  await container.item('a', 't2').delete();
  await container.item('c', 't2').replace({ ...all[3], mail: 'other' });
  await at.done();
  const { resources } = await at.other().items.readAll().fetchAll();
  assert.deepEqual(resources.map((item) => `${item.id} ${item.user} ${item.mail}`).sort(),
    ['a u1 one', 'b u2 same', 'c u2 other', 'd u9 three', 'e u9 four', 'f u3 six']);
});

test('the dry run names logical partitions that would be too large, by one of their items', async (t) => {
  const at = await placed(t, {}, { args: ['--set', 'logical_partition.bytes_max=10000'] });
  for (let i = 0; i < 12; i++) await at.container.items.create({ id: `o${i}`, tenant: `t${i}`, user: i < 10 ? 'large' : 'small', filler: 'x'.repeat(2000) });
  const dry = await at.rekey({ partitionKey: key('/user'), dryRun: true });
  assert.equal(dry.json.conflicts.logicalPartitionsFull, 1, JSON.stringify(dry.json));
  assert.deepEqual(dry.json.list.map(({ kind, to }) => [kind, to]), [['logicalPartitionFull', ['large']]]);
});

test('it is aborted at any time before the switch, and then nothing has changed', async (t) => {
  const at = await placed(t);
  await at.fill(orders(50));
  await at.container.items.create({ id: 'lost', tenant: 't1' });
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  await until(async () => (await at.state()).conflicts === 1);
  assert.equal((await at.rekey({ partitionKey: key('/n') })).status, 409);
  assert.equal((await at.send('DELETE', rekeyPath)).status, 204);
  await at.done();
  assert.equal((await at.send('DELETE', rekeyPath)).status, 404);
  assert.deepEqual((await at.other().read()).resource.partitionKey.paths, ['/tenant']);
  assert.equal((await at.container.items.readAll().fetchAll()).resources.length, 51);
  assert.equal((await at.container.items.create({ id: 'after', tenant: 't1' })).statusCode, 201);
  // Allowed by name, items without a value are carried.
  assert.equal((await at.rekey({ partitionKey: key('/user'), allowMissing: true })).status, 202);
  await at.done();
  assert.equal((await at.other().items.readAll().fetchAll()).resources.length, 52);
});

test('other kinds of keys: hierarchical, synthetic, another number of suffixes, another strategy', async (t) => {
  const at = await placed(t);
  const items = orders(60);
  await at.fill(items);
  const end = () => at.send('POST', `${rekeyPath}/end-grace`);
  const check = async (what) => {
    const { resources } = await at.other().items.readAll().fetchAll();
    assert.deepEqual(resources.map(plain).sort(byId), items.map(plain).sort(byId), what);
    return resources;
  };
  const go = async (body) => {
    const begun = await at.rekey(body);
    assert.equal(begun.status, 202, JSON.stringify(begun.json));
    await at.done();
  };
  await go({ partitionKey: key('/tenant', '/user') });
  await check('hierarchical');
  assert.equal((await at.container.item('o9', 't2').read()).resource.n, 9, 'by the key it had');
  assert.equal((await at.other().item('o9', ['t2', 'u9']).read()).resource.n, 9);
  await end();
  await go({ partitionKey: key('/pk'), orrery: { synthetic: { kind: 'computedSuffix', target: '/pk', base: '/tenant', hashed: '/user', suffixes: 4 } } });
  for (const item of await check('computed')) assert.match(item.pk, /^t\d\.[1-4]$/);
  await end();
  await go({ orrery: { synthetic: { kind: 'computedSuffix', target: '/pk', base: '/tenant', hashed: '/user', suffixes: 9 } } });
  assert.ok((await check('more suffixes')).some((item) => /\.[5-9]$/.test(item.pk)));
  await end();
  await go({ orrery: { synthetic: { kind: 'randomSuffix', target: '/pk', base: '/tenant', suffixes: 5 } } });
  await check('random');
  assert.equal((await at.other().item('o9', 't2').read()).resource.n, 9, 'by its base');
  await end();
  await go({ partitionKey: key('/user') });
  await check('plain');
  await end();
  await go({ orrery: { strategy: { kind: 'range', bounds: ['u2'] } } });
  await check('range');
  assert.equal((await at.state()).formerly, undefined, 'keys are the same');
  assert.equal((await at.other().item('o9', 'u9').read()).resource.n, 9);
  for (const [body, said] of [
    [{}, /needs partitionKey, orrery or both/],
    [{ partitionKey: { paths: ['no'] } }, /path/],
    [{ partitionKey: key('/user'), orrery: { strategy: { kind: 'range', bounds: ['u2'] } } }, /nothing would change/],
    [{ orrery: { other: 1 } }, /alone/],
    [{ partitionKey: key('/x'), what: 1 }, /it has "what"/],
  ]) {
    const refused = await at.rekey(body);
    assert.equal(refused.status, 400, JSON.stringify(refused.json));
    assert.match(refused.json.message, said);
  }
});

test('a reader of the change feed sees everything again, and misses nothing', async (t) => {
  const at = await placed(t);
  const items = orders(40);
  await at.fill(items);
  const read = async (iterator) => {
    const seen = new Map();
    for (;;) {
      const page = await iterator.readNext();
      if (page.statusCode === 304) return { seen, continuation: page.continuationToken };
      for (const item of page.result) seen.set(item.id, item);
    }
  };
  const first = await read(at.container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() }));
  assert.equal(first.seen.size, 40);
  await at.container.item('o1', 't1').replace({ ...items[1], n: 111 });
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  await at.done();
  await at.container.item('o2', 't2').replace({ ...items[2], n: 222 });
  const later = await read(at.other().items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Continuation(first.continuation) }));
  assert.equal(later.seen.get('o1').n, 111);
  assert.equal(later.seen.get('o2').n, 222);
  assert.equal(later.seen.size, 40, 'all of them once more');
  const refused = await at.send('GET', at.docs, { key: ['t1'], headers: { 'a-im': 'Incremental feed' } });
  assert.equal(refused.status, 501, JSON.stringify(refused.json));
});

test('what is paged through at the switch has to begin anew, and is told so', async (t) => {
  const at = await placed(t);
  await at.fill(orders(40));
  const query = at.container.items.query('SELECT * FROM c', { maxItemCount: 5 });
  const { continuationToken } = await query.fetchNext();
  const feed = await at.send('GET', at.docs, { headers: { 'x-ms-max-item-count': '5' } });
  const continuation = feed.headers['x-ms-continuation'];
  assert.ok(continuation);
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  await at.done();
  const next = await at.send('GET', at.docs, { headers: { 'x-ms-max-item-count': '5', 'x-ms-continuation': continuation } });
  assert.equal(next.status, 400, JSON.stringify(next.json));
  assert.match(next.json.message, /[Cc]ontinuation/);
  if (continuationToken)
    await assert.rejects(at.other().items.query('SELECT * FROM c', { maxItemCount: 5, continuationToken }).fetchNext());
});

test('a server that is killed while it re-keys takes it up again', async (t) => {
  const node = ['--node', `local=rocksdb:${scratch(t)}/node`];
  const at = await placed(t, {}, { args: [...node, '--set', 'migration.bytes_per_second=100K'] });
  const items = orders(1500);
  await at.fill(items);
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  await until(async () => (await at.state()).migration?.items > 100);
  await at.container.item('o3', 't3').replace({ ...items[3], n: 333 });
  await at.container.item('o1499', 't1').delete();
  at.server.process.kill('SIGKILL');
  await at.server.ended;
  const server = await Server.start(t, ['--dev', ...node, '--set', 'migration.pause_ms=20ms']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const container = client.database('shop').container('orders');
  await until(async () => (await container.read()).resource.partitionKey.paths[0] === '/user');
  const expected = items.slice(0, 1499).map((item) => plain(item.id === 'o3' ? { ...item, n: 333 } : item));
  const { resources } = await container.items.readAll().fetchAll();
  assert.deepEqual(resources.map(plain).sort(byId), expected.sort(byId));
});

test('one item is moved to another key value in one go, and a meeting one keeps it where it is', async (t) => {
  const at = await placed(t);
  const move = (body) => at.send('POST', '/_orrery/containers/shop/orders/move-item', { body });
  await at.container.items.create({ id: 'a', tenant: 't1', n: 1 });
  await at.container.items.create({ id: 'a', tenant: 't3', n: 3 });
  const moved = await move({ id: 'a', partitionKey: ['t1'], document: { id: 'a', tenant: 't2', n: 2 } });
  assert.equal(moved.status, 200, JSON.stringify(moved.json));
  assert.deepEqual([moved.json.from, moved.json.to], [['t1'], ['t2']]);
  assert.equal((await at.container.item('a', 't1').read()).statusCode, 404);
  const { resource } = await at.container.item('a', 't2').read();
  assert.equal(resource.n, 2);
  assert.equal(resource._etag, `"${moved.json.etag}"`);
  const refusals = [
    [409, { id: 'a', partitionKey: ['t2'], document: { id: 'a', tenant: 't3' } }],
    [404, { id: 'b', partitionKey: ['t2'], document: { id: 'b', tenant: 't3' } }],
    [400, { id: 'a', partitionKey: ['t2'], document: { id: 'a', tenant: 't2' } }],
    [400, { id: 'a', partitionKey: ['t2'], document: { id: 'c', tenant: 't3' } }],
    [400, { id: 'a', partitionKey: ['t2'] }],
    [412, { id: 'a', partitionKey: ['t2'], document: { id: 'a', tenant: 't9' }, ifMatch: 'other' }],
  ];
  for (const [status, body] of refusals) {
    const answer = await move(body);
    assert.equal(answer.status, status, JSON.stringify(answer.json));
  }
  assert.equal((await at.container.items.readAll().fetchAll()).resources.length, 2);
});

test('the command line tries it out, does it, lists conflicts and ends the grace period', async (t) => {
  const at = await placed(t);
  await at.fill(orders(30));
  const run = (...args) => orrery(['rekey', 'shop', 'orders', '--endpoint', at.server.url, '--dev', ...args]);
  const dry = await run('--key', '/user', '--dry-run');
  assert.equal(dry.code, 0, dry.err);
  assert.match(dry.out, /30 of 30 items looked at\n(1 physical partition|\d+ physical partitions), .*\nno conflicts/);
  const done = await run('--key', '/user');
  assert.equal(done.code, 0, done.err);
  assert.match(done.out, /rekey done after .*, writers waited \d+ ms/);
  assert.match((await run('--status')).out, /partition key: \/user\nstill understood: \/tenant\n/);
  assert.match((await run('--end-grace')).out, /understood no longer/);
  assert.match((await run('--status')).out, /^partition key: \/user\n$/);
  const mistyped = await run('--key', '/none', '--no-wait');
  assert.equal(mistyped.code, 1);
  assert.match(mistyped.err, /none of 30 items looked at has a value for this key, and nothing was changed/);
  assert.match((await run('--status')).out, /^partition key: \/user\n$/);
  await at.other().items.upsert({ id: 'o31', tenant: 't1', user: 'u31', seldom: 'x' });
  assert.equal((await run('--key', '/seldom', '--no-wait')).code, 0);
  const status = await until(async () => { const { out } = await run('--status'); return /30 conflicts/.test(out) && out; });
  assert.match(status, /missingKey +"o1" +\["u1"\] +\[\{\}\]/);
  assert.match((await run('--abort')).out, /taken back/);
  await at.done();
  assert.equal((await run('--abort')).code, 1);
  assert.equal((await run()).code, 2);
  assert.equal((await run('--status', '--abort')).code, 2);
  const failed = await run('--key', '/user', '--strategy', 'sideways');
  assert.equal(failed.code, 1);
  assert.match(failed.err, /orrery.strategy must be/);
});

test('a re-key of 20,000 items under load of old and new clients: nothing is lost, doubled or refused', async (t) => {
  const at = await placed(t, {}, { ru: 1_000_000, args: ['--set', 'partition.ru_max=1000000'] });
  const load = new Load({ filled: sanitized ? 4000 : 20_000, touchedMax: 200 });
  await at.fill(Array.from({ length: load.filled }, (_, n) => order(n)));
  load.start([at.container, at.container, at.other(), at.other()], (item) => item.tenant);
  await until(() => load.steps() > 400);
  assert.equal((await at.rekey({ partitionKey: key('/user') })).status, 202);
  const during = load.steps();
  await at.done();
  assert.ok(load.steps() > during, 'they worked on meanwhile');
  load.start([at.other(), at.other()], (item) => item.user);
  const later = load.steps();
  await until(() => load.steps() > later + 500 && load.workers.every((worker) => worker.done > 50 || worker.failures.length));
  await load.stop();
  assert.deepEqual(load.failures(), []);

  const found = await load.check(at.other());
  assert.deepEqual({ lost: found.lost, doubled: found.doubled, wrong: found.wrong }, { lost: 0, doubled: 0, wrong: [] });
  const counted = await at.other().items.query('SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.user)').fetchAll();
  assert.equal(counted.resources[0], found.items, 'the index agrees');
  const outcome = (await at.send('GET', '/_orrery/migrations')).json.recent.find((one) => one.kind === 'rekey');
  t.diagnostic(`figure: re-key under load: pause ${outcome.pauseMs} ms, ${outcome.items} items, ${outcome.bytes} bytes in ${outcome.elapsedMs} ms, ` +
    `${during} operations before and ${load.steps() - during} behind`);
});
