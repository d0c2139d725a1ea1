// Partition keys that the server makes, used by a client library that knows nothing of them.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { odata } from '@azure/data-tables';
import { shop } from './items.js';
import { signed } from './rest.js';
import { Server, emulatorKey, sanitized } from './server.js';
import { all, tableClient } from './tables.js';

// MurmurHash3 x86_32, seed 0: what docs/synthetic-keys.md says a computed suffix is made of.
function murmur(text) {
  const bytes = Buffer.from(text);
  const rotate = (x, n) => (x << n) | (x >>> (32 - n));
  const mix = (k) => Math.imul(rotate(Math.imul(k, 0xcc9e2d51), 15), 0x1b873593);
  let h = 0;
  let i = 0;
  for (; i + 4 <= bytes.length; i += 4) h = (Math.imul(rotate(h ^ mix(bytes.readInt32LE(i)), 13), 5) + 0xe6546b64) | 0;
  let tail = 0;
  for (let at = bytes.length - 1; at >= i; at--) tail = (tail << 8) | bytes[at];
  if (bytes.length % 4) h ^= mix(tail);
  h ^= bytes.length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

const devices = { kind: 'concatenation', target: '/partitionKey', sources: ['/deviceId', '/date'], separator: '-' };
const days = { kind: 'randomSuffix', target: '/partitionKey', base: '/date', suffixes: 400 };
const cars = { kind: 'computedSuffix', target: '/partitionKey', base: '/date', hashed: '/vin', suffixes: 400 };

// A container with a synthetic key; with throughput it has several physical partitions.
function made(t, synthetic, { throughput, args = [], ...extra } = {}) {
  return shop(
    t,
    { partitionKey: { paths: ['/partitionKey'], version: 2 }, orrery: { synthetic }, throughput, ...extra },
    { args: ['--set', 'throughput.burst_seconds=0', ...args] },
  );
}

test('a concatenation is filled in, and source values or the key itself find the item', async (t) => {
  const { container, docs, send } = await made(t, devices);
  const { resource } = await container.items.create({ id: 'a', deviceId: 'abc-123', date: 2018 });
  assert.equal(resource.partitionKey, 'abc-123-2018');
  assert.equal((await container.item('a', 'abc-123-2018').read()).resource.deviceId, 'abc-123');
  assert.equal((await container.item('a', ['abc-123', 2018]).read()).resource.deviceId, 'abc-123');
  // No header at all, and one that says the key is missing.
  assert.equal((await send('POST', docs, { body: { id: 'b', deviceId: 'x', date: null } })).json.partitionKey, 'x-null');
  assert.equal((await send('POST', docs, { key: [{}], body: { id: 'c', deviceId: 'x', date: true } })).json.partitionKey, 'x-true');
  const unknown = await send('GET', `${docs}/a`, { key: [{}] });
  assert.equal(unknown.status, 400);
  assert.match(unknown.json.message, /PartitionKey value must be supplied .* the 2 values it is made of/);
  const { resource: again } = await container.items.upsert({ id: 'a', deviceId: 'abc-123', date: 2018, v: 2 });
  assert.equal(again.v, 2);
  const replaced = await container.item('a', ['abc-123', 2018]).replace({ id: 'a', deviceId: 'abc-123', date: 2018, v: 3 });
  assert.equal(replaced.resource.partitionKey, 'abc-123-2018');
  assert.equal((await container.item('a', ['abc-123', 2018]).delete()).statusCode, 204);
});

test('what contradicts the sources, lacks one or changes one is refused', async (t) => {
  const { container, docs, send } = await made(t, devices);
  await container.items.create({ id: 'a', deviceId: 'd', date: 1 });
  const contradicting = await send('POST', docs, { body: { id: 'b', deviceId: 'd', date: 1, partitionKey: 'other' } });
  assert.equal(contradicting.status, 400);
  assert.match(contradicting.json.message, /it would be .*d-1.* but the item says .*other/);
  const lacking = await send('POST', docs, { body: { id: 'b', deviceId: 'd' } });
  assert.equal(lacking.status, 400);
  assert.match(lacking.json.message, /\/date.*missing/);
  for (const date of [{ y: 1 }, [1]])
    assert.equal((await send('POST', docs, { body: { id: 'b', deviceId: 'd', date } })).status, 400);
  const changed = await send('PUT', `${docs}/a`, { key: ['d', 1], body: { id: 'a', deviceId: 'd', date: 2 } });
  assert.equal(changed.status, 400);
  assert.equal(changed.headers['x-ms-substatus'], '1001');
  const patched = await container
    .item('a', ['d', 1])
    .patch([{ op: 'set', path: '/date', value: 5 }])
    .catch((error) => error);
  assert.equal(patched.code, 400);
  assert.match(patched.message, /partition key cannot be patched/);
  const other = await container.item('a', ['d', 1]).patch([{ op: 'set', path: '/v', value: 5 }]);
  assert.equal(other.resource.v, 5);
  assert.equal(other.resource.partitionKey, 'd-1');
});

test('a reader who knows date and VIN computes the one key', async (t) => {
  const { container, docs, send } = await made(t, cars, { throughput: 40000 });
  const vins = Array.from({ length: 50 }, (_, i) => `1HGCM82633A${String(i).padStart(6, '0')}`);
  for (const vin of vins) {
    const { resource } = await container.items.create({ id: vin, date: '2018-08-09', vin });
    assert.equal(resource.partitionKey, `2018-08-09.${(murmur(vin) % 400) + 1}`);
  }
  const { resource } = await container.item(vins[7], ['2018-08-09', vins[7]]).read();
  assert.equal(resource.vin, vins[7]);
  // Both sources: one logical partition, read by one request.
  const exact = await container.items
    .query({
      query: 'SELECT * FROM c WHERE c.date = @d AND c.vin = @v',
      parameters: [{ name: '@d', value: '2018-08-09' }, { name: '@v', value: vins[7] }],
    }, { populateQueryMetrics: true })
    .fetchAll();
  assert.deepEqual(exact.resources.map((r) => r.id), [vins[7]]);
  // Without leave to span partitions both are enough, the base is not.
  const within = (query) =>
    send('POST', docs, {
      headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json' },
      body: { query },
    });
  const one = await within(`SELECT * FROM c WHERE c.date = '2018-08-09' AND c.vin = '${vins[7]}'`);
  assert.deepEqual(one.json.Documents.map((d) => d.id), [vins[7]]);
  assert.equal((await within("SELECT * FROM c WHERE c.date = '2018-08-09'")).status, 400);
  // The base alone: all suffixes, merged in order.
  const all = await container.items.query("SELECT VALUE c.id FROM c WHERE c.date = '2018-08-09' ORDER BY c.vin DESC").fetchAll();
  assert.deepEqual(all.resources, [...vins].reverse());
  // As the partition key of a query: both, and the base.
  const keyed = await container.items.query('SELECT VALUE c.id FROM c', { partitionKey: ['2018-08-09', vins[3]] }).fetchAll();
  assert.ok(keyed.resources.includes(vins[3]));
  const based = await container.items.query('SELECT VALUE c.id FROM c ORDER BY c.vin', { partitionKey: ['2018-08-09'] }).fetchAll();
  assert.deepEqual(based.resources, vins);
  // In small pages, too.
  for (const options of [{ maxItemCount: 7 }, { maxItemCount: 7, partitionKey: ['2018-08-09'] }]) {
    const paged = await container.items.query("SELECT VALUE c.id FROM c WHERE c.date = '2018-08-09' ORDER BY c.vin", options).fetchAll();
    assert.deepEqual(paged.resources, vins);
    const unordered = await container.items.query("SELECT VALUE c.id FROM c WHERE c.date = '2018-08-09'", options).fetchAll();
    assert.deepEqual(unordered.resources.sort(), vins);
    const sum = await container.items.query("SELECT VALUE COUNT(1) FROM c WHERE c.date = '2018-08-09'", options).fetchAll();
    assert.deepEqual(sum.resources, [vins.length]);
  }
});

test('bad definitions are refused at creation, with the reason', async (t) => {
  const { database, container } = await made(t, days);
  for (const [synthetic, why] of [
    [{ ...devices, sources: ['/partitionKey', '/date'] }, /made of itself/],
    [{ ...devices, sources: ['/partitionKey/x', '/date'] }, /made of itself/],
    [{ ...devices, missing: 'perhaps' }, /missing.* must be/],
    [{ ...days, suffixes: 1001 }, /2 to 1000/],
    [{ ...cars, hashed: '/vin/*' }, /a source/],
    [{ ...devices, target: '/elsewhere' }, /not a partition key path/],
    ['concatenation', /must be an object/],
  ]) {
    const error = await database.containers
      .create({ id: 'bad', partitionKey: { paths: ['/partitionKey'], version: 2 }, orrery: { synthetic } })
      .catch((e) => e);
    assert.equal(error.code, 400, JSON.stringify(synthetic));
    assert.match(error.message, why);
  }
  // It cannot change under the items, and stays with a replace that does not know it.
  const { resource } = await container.read();
  const more = await container.replace({ ...resource, orrery: { synthetic: { ...days, suffixes: 500 } } }).catch((e) => e);
  assert.equal(more.code, 400);
  assert.match(more.message, /400 suffixes cannot become 500 .* re-key/);
  const { orrery, ...plain } = resource;
  assert.equal(orrery.synthetic.suffixes, 400);
  assert.equal((await container.replace({ ...plain, defaultTtl: 1000 })).resource.orrery.synthetic.suffixes, 400);
});

test('under a random suffix an item is found by base and id, or by id alone', async (t) => {
  const { container, docs, send } = await made(t, days, { throughput: 40000 });
  const { resource, requestCharge } = await container.items.create({ id: 'a', date: '2018-08-09' });
  assert.match(resource.partitionKey, /^2018-08-09\.([1-9]\d{0,2})$/);
  assert.ok(Number(resource.partitionKey.split('.')[1]) <= 400);
  assert.ok(requestCharge > 5);
  for (const key of [['2018-08-09'], [{}], [resource.partitionKey]]) {
    const read = await send('GET', `${docs}/a`, { key });
    assert.equal(read.json.partitionKey, resource.partitionKey);
  }
  const whole = await send('GET', `${docs}/a`, { key: [resource.partitionKey] });
  const base = await send('GET', `${docs}/a`, { key: ['2018-08-09'] });
  const none = await send('GET', `${docs}/a`);
  const ranges = (await send('GET', docs.replace(/docs$/, 'pkranges'))).json._count;
  assert.ok(ranges > 1);
  assert.equal(whole.headers['x-ms-request-charge'], '1.00');
  assert.equal(base.headers['x-ms-request-charge'], (1 + ranges / 10).toFixed(2));
  assert.equal(none.headers['x-ms-request-charge'], (1 + ranges / 10).toFixed(2));
  assert.equal((await send('GET', `${docs}/a`, { key: ['2018-08-10'] })).status, 404);

  // Neither a create nor an upsert makes a second one, whatever suffix they ask for.
  assert.equal((await send('POST', docs, { body: { id: 'a', date: '2018-08-09' } })).status, 409);
  const suffix = resource.partitionKey === '2018-08-09.5' ? '2018-08-09.6' : '2018-08-09.5';
  assert.equal((await send('POST', docs, { body: { id: 'a', date: '2018-08-09', partitionKey: suffix } })).status, 409);
  const { resource: upserted } = await container.items.upsert({ id: 'a', date: '2018-08-09', v: 2 });
  assert.equal(upserted.partitionKey, resource.partitionKey);
  const replaced = await send('PUT', `${docs}/a`, { key: [{}], body: { id: 'a', date: '2018-08-09', v: 3 } });
  assert.equal(replaced.json.partitionKey, resource.partitionKey);
  assert.equal((await container.item('a', '2018-08-09').patch([{ op: 'incr', path: '/v', value: 1 }])).resource.v, 4);

  // The id of another day is another item; then the id alone is not enough.
  await container.items.create({ id: 'a', date: '2018-08-10' });
  const several = await send('GET', `${docs}/a`, { key: [{}] });
  assert.equal(several.status, 400);
  assert.match(several.json.message, /several items have this id/);
  assert.equal((await container.item('a', '2018-08-10').delete()).statusCode, 204);
  assert.equal((await send('DELETE', `${docs}/a`)).status, 204);
  assert.equal((await send('GET', `${docs}/a`)).status, 404);
});

test('upserts that race under a random suffix never make two items', async (t) => {
  const { container } = await made(t, days, { throughput: 100000 });
  const rounds = 12;
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, client) => container.items.upsert({ id: `r${round}`, date: '2018-08-09', client })),
    );
    assert.equal(answers.filter((a) => a.statusCode === 201).length, 1);
    assert.equal(new Set(answers.map((a) => a.resource.partitionKey)).size, 1);
  }
  // Creates and deletes among them.
  await Promise.all(
    Array.from({ length: 64 }, async (_, i) => {
      if (i % 4 === 3) await container.item('x', '2018-08-09').delete().catch((e) => assert.equal(e.code, 404));
      else if (i % 4 === 2) await container.items.create({ id: 'x', date: '2018-08-09' }).catch((e) => assert.equal(e.code, 409));
      else await container.items.upsert({ id: 'x', date: '2018-08-09' });
    }),
  );
  const { resources } = await container.items.query("SELECT c.id FROM c WHERE c.date = '2018-08-09'").fetchAll();
  assert.equal(new Set(resources.map((r) => r.id)).size, resources.length);
  assert.ok(resources.length >= rounds);
});

test('bulk and batch know synthetic keys', async (t) => {
  const { container, docs, send } = await made(t, days, { throughput: 40000 });
  const operations = Array.from({ length: 60 }, (_, i) => ({
    operationType: 'Upsert',
    resourceBody: { id: `b${i % 40}`, date: '2018-08-09', n: i },
  }));
  // The older call takes the key from the item, which has none; the newer one wants to be told.
  const older = await container.items.bulk(operations);
  assert.deepEqual([...new Set(older.map((a) => a.statusCode))].sort(), [200, 201]);
  assert.equal(older.filter((a) => a.statusCode === 201).length, 40);
  const answers = await container.items.executeBulkOperations(operations.map((o) => ({ ...o, partitionKey: '2018-08-09' })));
  assert.deepEqual([...new Set(answers.map((a) => a.response?.statusCode))], [200]);
  const { resources } = await container.items.query("SELECT c.id, c.n FROM c WHERE c.date = '2018-08-09'").fetchAll();
  assert.equal(resources.length, 40);
  const read = await container.items.executeBulkOperations([
    { operationType: 'Read', id: 'b3', partitionKey: '2018-08-09' },
    { operationType: 'Delete', id: 'b4', partitionKey: '2018-08-09' },
  ]);
  assert.deepEqual(read.map((a) => a.response.statusCode), [200, 204]);

  // A batch stays within one logical partition, and creates nothing whose id others could have too.
  const item = (await container.item('b3', '2018-08-09').read()).resource;
  const batch = await container.items.batch([{ operationType: 'Replace', id: 'b3', resourceBody: { ...item, n: 9 } }], item.partitionKey);
  assert.equal(batch.result[0].statusCode, 200);
  const creating = await container.items.batch([{ operationType: 'Create', resourceBody: { id: 'n', date: '2018-08-09' } }], item.partitionKey);
  assert.equal(creating.result[0].statusCode, 501);
  const open = await send('POST', docs, {
    key: ['2018-08-09'],
    headers: { 'x-ms-cosmos-is-batch-request': 'true', 'x-ms-cosmos-batch-atomic': 'true' },
    body: [{ operationType: 'Read', id: 'b3' }],
  });
  assert.equal(open.status, 400);
});

test('a batch of a concatenation takes its key from what it brings', async (t) => {
  const { container } = await made(t, devices);
  const { result } = await container.items.batch(
    [
      { operationType: 'Create', resourceBody: { id: 'a', deviceId: 'd', date: 1 } },
      { operationType: 'Create', resourceBody: { id: 'b', deviceId: 'd', date: 1 } },
    ],
    ['d', 1],
  );
  assert.deepEqual(result.map((r) => r.statusCode), [201, 201]);
  assert.equal(result[0].resourceBody.partitionKey, 'd-1');
  const { resources } = await container.items.query('SELECT VALUE c.id FROM c', { partitionKey: 'd-1' }).fetchAll();
  assert.deepEqual(resources.sort(), ['a', 'b']);
});

test('one component of a hierarchical key can be made', async (t) => {
  const { container } = await made(t, { ...devices, target: '/place' }, {
    partitionKey: { paths: ['/tenant', '/place'], kind: 'MultiHash', version: 2 },
  });
  const { resource } = await container.items.create({ id: 'a', tenant: 't', deviceId: 'd', date: 7 });
  assert.equal(resource.place, 'd-7');
  assert.equal((await container.item('a', ['t', 'd', 7]).read()).resource.id, 'a');
  assert.equal((await container.item('a', ['t', 'd-7']).read()).resource.id, 'a');
  const { resources } = await container.items.query('SELECT * FROM c', { partitionKey: ['t'] }).fetchAll();
  assert.equal(resources.length, 1);
});

// One bulk request of a hundred creates; gives their statuses.
async function createHundred(send, docs, items) {
  const { json } = await send('POST', docs, {
    headers: { 'x-ms-cosmos-is-batch-request': 'true', 'x-ms-cosmos-batch-continue-on-error': 'true' },
    body: items.map((resourceBody) => ({ operationType: 'Create', resourceBody })),
  });
  return json.map((answer) => answer.statusCode);
}

test('writes of one day spread as the hashes of the suffixes do', async (t) => {
  // The fewer items, the further chance may take them from their share.
  const [count, tolerance] = sanitized ? [8000, 0.25] : [40000, 0.1];
  const { docs, send } = await made(t, days, { throughput: 1600000, args: ['--set', 'partition.ru_max=100000', '--set', 'throughput.ru_max=2000000'] });
  const { json: before } = await send('GET', '/_orrery/containers/shop/orders');
  assert.equal(before.partitions.length, 16);
  const expected = new Map(before.partitions.map((p) => [p.id, 0]));
  for (let suffix = 1; suffix <= 400; suffix++) {
    const { json } = await send('POST', '/_orrery/containers/shop/orders/key', { body: { date: '2018-08-09', partitionKey: `2018-08-09.${suffix}` } });
    expected.set(json.partition.id, expected.get(json.partition.id) + 1 / 400);
  }
  let next = 0;
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (next < count) {
        const from = next;
        next += 100;
        const items = Array.from({ length: 100 }, (_, i) => ({ id: `i${from + i}`, date: '2018-08-09' }));
        for (const status of await createHundred(send, docs, items)) assert.equal(status, 201);
      }
    }),
  );
  const { json: after } = await send('GET', '/_orrery/containers/shop/orders');
  assert.equal(after.items, count);
  for (const { id, items } of after.partitions) {
    const off = items / count / expected.get(id) - 1;
    assert.ok(Math.abs(off) < tolerance, `partition ${id} has ${items}, ${(off * 100).toFixed(1)} percent off its share`);
  }
});

test('a random suffix takes at least eight times the writes of one day', async (t) => {
  const { database, send } = await made(t, days, { throughput: 1600, args: ['--set', 'partition.ru_max=100'] });
  const create = (id, definition) =>
    database.containers.create({ id, throughput: 1600, partitionKey: { paths: ['/partitionKey'], version: 2 }, ...definition });
  await create('plain', { partitionKey: { paths: ['/date'], version: 2 } });
  await create('spread', { orrery: { synthetic: days } });
  const seconds = 4;
  const accepted = {};
  for (const name of ['plain', 'spread']) {
    const docs = `/dbs/shop/colls/${name}/docs`;
    const end = performance.now() + seconds * 1000;
    accepted[name] = 0;
    let id = 0;
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        while (performance.now() < end) {
          const body = { id: `i${id++}`, date: '2018-08-09' };
          const { status, headers } = await send('POST', docs, { key: name === 'plain' ? [body.date] : [{}], body });
          assert.ok(status === 201 || status === 429, `status ${status}`);
          if (status === 201) accepted[name]++;
          else await new Promise((resolve) => setTimeout(resolve, Math.min(20, Number(headers['x-ms-retry-after-ms']))));
        }
      }),
    );
  }
  t.diagnostic(`accepted in ${seconds} s: ${accepted.plain} with the date as key, ${accepted.spread} with a suffix, x${(accepted.spread / accepted.plain).toFixed(1)}`);
  assert.ok(accepted.spread >= 8 * accepted.plain, JSON.stringify(accepted));
});

test('a token bound to a day reaches its suffixes and no other day', async (t) => {
  const { server, database, container } = await made(t, days);
  await container.items.create({ id: 'a', date: '2018-08-09' });
  await container.items.create({ id: 'b', date: '2018-08-10' });
  const { user } = await database.users.create({ id: 'ann' });
  const { resource: permission } = await user.permissions.create({
    id: 'p', permissionMode: 'All', resource: 'dbs/shop/colls/orders', resourcePartitionKey: ['2018-08-09'],
  });
  const send = (method, path, key, body) =>
    signed(server, method, path, {
      authorization: encodeURIComponent(permission._token),
      headers: key === undefined ? {} : { 'x-ms-documentdb-partitionkey': JSON.stringify(key) },
      body,
    });
  const docs = '/dbs/shop/colls/orders/docs';
  const own = await send('GET', `${docs}/a`, ['2018-08-09']);
  assert.equal(own.status, 200);
  assert.equal((await send('GET', `${docs}/a`, [own.json.partitionKey])).status, 200);
  // Neither another day, nor leaving open which.
  for (const key of [['2018-08-10'], ['2018-08-10.1'], [{}], undefined])
    assert.equal((await send('GET', `${docs}/b`, key)).status, 403, JSON.stringify(key));
  assert.equal((await send('POST', docs, ['2018-08-09'], { id: 'c', date: '2018-08-09' })).status, 201);
  assert.equal((await send('POST', docs, ['2018-08-09'], { id: 'c', date: '2018-08-10' })).status, 400);
  assert.equal((await send('POST', docs, [{}], { id: 'c', date: '2018-08-10' })).status, 403);
});

test('partitions that split meanwhile make no second item either', async (t) => {
  const { client, container, resource } = await made(t, days, { throughput: 10000, args: ['--set', 'migration.pause_ms=20ms'] });
  const { resources } = await client.offers.readAll().fetchAll();
  const offer = resources.find((found) => found.resource === resource._self);
  const ranges = async () => (await container.readPartitionKeyRanges().fetchAll()).resources.length;
  const before = await ranges();
  let running = true;
  let round = 0;
  const writers = Array.from({ length: 8 }, async () => {
    while (running) {
      const { resource: item } = await container.items.upsert({ id: `r${round % 50}`, date: '2018-08-09', n: round++ });
      const { resource: read } = await container.item(item.id, '2018-08-09').read();
      assert.equal(read.partitionKey, item.partitionKey);
    }
  });
  offer.content.offerThroughput = 60000;
  await client.offer(offer.id).replace(offer);
  while ((await ranges()) < 6) await new Promise((resolve) => setTimeout(resolve, 20));
  running = false;
  await Promise.all(writers);
  assert.ok(before < 6);
  const { resources: items } = await container.items.query("SELECT c.id FROM c WHERE c.date = '2018-08-09'").fetchAll();
  assert.equal(new Set(items.map((i) => i.id)).size, items.length);
  assert.equal(items.length, Math.min(round, 50));
});

test('items with an undefined source share the undefined key where the definition says so', async (t) => {
  const { container, docs, send } = await made(t, { ...devices, missing: 'undefined' });
  const { resource } = await container.items.create({ id: 'a', deviceId: 'd' });
  assert.equal('partitionKey' in resource, false);
  assert.equal((await send('GET', `${docs}/a`, { key: [{}] })).status, 200);
  assert.equal((await container.items.create({ id: 'a', deviceId: 'd', date: 1 })).resource.partitionKey, 'd-1');
});

test('tables have keys made by the server too: filled in, checked, and asked for by the sources', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'TablesDB' });
  const define = (id, synthetic) =>
    database.containers.create({ id, partitionKey: { paths: ['/PartitionKey'], version: 2 }, orrery: { synthetic: { target: '/PartitionKey', ...synthetic } } });
  const { container } = await define('readings', { kind: 'concatenation', sources: ['/deviceId', '/year'] });
  await define('drawn', { kind: 'randomSuffix', base: '/deviceId', suffixes: 4 });
  const table = tableClient(server, 'readings');

  await table.createEntity({ partitionKey: '', rowKey: '1', deviceId: 'abc-123', year: 2018, value: 1 });
  await table.createEntity({ partitionKey: 'abc-123-2018', rowKey: '2', deviceId: 'abc-123', year: 2018 });
  assert.equal((await table.getEntity('abc-123-2018', '1')).value, 1);
  assert.equal((await container.item('1', ['abc-123', 2018]).read()).resource.PartitionKey, 'abc-123-2018');
  const found = await all(table.listEntities({ queryOptions: { filter: odata`deviceId eq 'abc-123' and year eq 2018` } }));
  assert.deepEqual(found.map((one) => one.rowKey), ['1', '2']);

  const refused = async (work, code) => {
    await assert.rejects(work, (error) => error.statusCode === 400 && error.details.odataError.code === code);
  };
  await refused(table.createEntity({ partitionKey: 'abc-123-2019', rowKey: '3', deviceId: 'abc-123', year: 2018 }), 'InvalidInput');
  await refused(table.createEntity({ partitionKey: '', rowKey: '3', deviceId: 'abc-123' }), 'InvalidInput');
  await refused(table.updateEntity({ partitionKey: 'abc-123-2018', rowKey: '1', year: 2019 }, 'Merge'), 'PropertiesNeedValue');
  await table.updateEntity({ partitionKey: 'abc-123-2018', rowKey: '1', value: 2 }, 'Merge');
  assert.equal((await table.getEntity('abc-123-2018', '1')).value, 2);

  const entity = (rowKey, year) => ['create', { partitionKey: '', rowKey, deviceId: 'abc-123', year }];
  await table.submitTransaction([entity('4', 2018), entity('5', 2018)]);
  assert.equal((await table.getEntity('abc-123-2018', '5')).year, 2018);
  await assert.rejects(table.submitTransaction([entity('6', 2018), entity('7', 2019)]), (error) => error.statusCode === 400);
  await table.deleteEntity('abc-123-2018', '4');

  // A random number nobody could name: such a container is no table.
  await assert.rejects(tableClient(server, 'drawn').createEntity({ partitionKey: '', rowKey: '1', deviceId: 'a' }), { statusCode: 404 });
});
