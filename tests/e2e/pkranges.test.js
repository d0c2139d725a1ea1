// Partition key ranges, as a plain feed and as the change feed most client libraries loop over.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { signed } from './rest.js';

async function started(t, throughput, partitionKey = { paths: ['/pk'], version: 2 }) {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  const { container, resource } = await database.containers.create({ id: 'c', partitionKey, throughput });
  return { server, client, database, container, resource };
}

function tiles(ranges) {
  const sorted = [...ranges].sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
  assert.equal(sorted[0].minInclusive, '');
  assert.equal(sorted.at(-1).maxExclusive, 'FF');
  for (let i = 1; i < sorted.length; i++) assert.equal(sorted[i].minInclusive, sorted[i - 1].maxExclusive);
}

test('a container has one range for every 10,000 RU/s', async (t) => {
  const { container, resource } = await started(t, 30000);
  const { resources } = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(resources.length, 3);
  tiles(resources);
  for (const range of resources) {
    assert.match(range.id, /^\d+$/);
    assert.match(range.maxExclusive, /^[0-9A-F]+$/);
    assert.ok(Math.abs(range.throughputFraction - 1 / 3) < 1e-9);
    assert.equal(range.status, 'online');
    assert.deepEqual(range.parents, []);
    assert.equal(range._self, `${resource._self}pkranges/${range._rid}/`);
  }
});

test('one range covers all, whatever the kind of key', async (t) => {
  for (const key of [{ paths: ['/pk'] }, { paths: ['/pk'], version: 2 }, { paths: ['/a', '/b'], kind: 'MultiHash', version: 2 }]) {
    const { container } = await started(t, 400, key);
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(resources.length, 1);
    tiles(resources);
  }
});

test('the plain feed goes on by continuation', async (t) => {
  const { server } = await started(t, 50000);
  const path = '/dbs/d/colls/c/pkranges';
  const ranges = [];
  let continuation;
  do {
    const page = await signed(server, 'GET', path, {
      headers: { 'x-ms-max-item-count': '2', ...(continuation ? { 'x-ms-continuation': continuation } : {}) },
    });
    assert.equal(page.status, 200);
    ranges.push(...page.json.PartitionKeyRanges);
    continuation = page.headers['x-ms-continuation'];
  } while (continuation);
  assert.equal(ranges.length, 5);
  tiles(ranges);
});

// What .NET, Java, Go and Python do: read until 304. Their requests differ in these headers.
const clients = {
  '.NET': { headers: { 'A-IM': 'Incremental feed', 'x-ms-max-item-count': '-1', 'x-ms-version': '2020-07-15' }, byRid: true },
  Java: { headers: { 'A-IM': 'Incremental Feed', 'x-ms-max-item-count': '-1', 'x-ms-version': '2020-07-15' }, byRid: true },
  Go: { headers: { 'A-IM': 'Incremental Feed', 'x-ms-max-item-count': '-1', 'x-ms-version': '2020-11-05' } },
  Python: { headers: { 'A-IM': 'Incremental Feed', 'x-ms-version': '2020-07-15' } },
  'small pages': { headers: { 'A-IM': 'Incremental Feed', 'x-ms-max-item-count': '2' } },
};

for (const [name, { headers, byRid }] of Object.entries(clients))
  test(`the loop of ${name} ends`, async (t) => {
    const { server, database, resource } = await started(t, 30000);
    const databaseRid = (await database.read()).resource._rid;
    const path = byRid ? `/dbs/${databaseRid}/colls/${resource._rid}/pkranges` : '/dbs/d/colls/c/pkranges';
    const sign = byRid ? { type: 'pkranges', link: resource._rid.toLowerCase() } : undefined;
    const ranges = [];
    let etag;
    let answers = 0;
    for (;;) {
      const answer = await signed(server, 'GET', path, {
        sign, headers: { ...headers, ...(etag ? { 'If-None-Match': etag } : {}) },
      });
      assert.ok(++answers < 10);
      assert.ok(answer.headers.etag);
      etag = answer.headers.etag;
      if (answer.status === 304) break;
      assert.equal(answer.status, 200, answer.text);
      ranges.push(...answer.json.PartitionKeyRanges);
    }
    assert.equal(ranges.length, 3);
    tiles(ranges);
    // The same etag on a container made anew is not seen yet.
    await database.container('c').delete();
    await database.containers.create({ id: 'c', partitionKey: '/pk' });
    if (byRid) return;
    const anew = await signed(server, 'GET', path, { headers: { ...headers, 'If-None-Match': etag } });
    assert.equal(anew.status, 200);
    assert.equal(anew.json.PartitionKeyRanges.length, 1);
  });

test('one range is read by id, and others are not there', async (t) => {
  const { server, container } = await started(t, 400);
  const { resources } = await container.readPartitionKeyRanges().fetchAll();
  const one = await signed(server, 'GET', `/dbs/d/colls/c/pkranges/${resources[0].id}`);
  assert.deepEqual(one.json.id, resources[0].id);
  for (const id of ['4000000000', 'x', '99999999999999999999999'])
    assert.equal((await signed(server, 'GET', `/dbs/d/colls/c/pkranges/${id}`)).status, 404);
  const query = await signed(server, 'POST', '/dbs/d/colls/c/pkranges', {
    headers: { 'x-ms-documentdb-isquery': 'true' }, body: { query: 'SELECT * FROM c' },
  });
  assert.equal(query.status, 200);
  assert.deepEqual(query.json.PartitionKeyRanges.map(({ id }) => id), resources.map(({ id }) => id));
  assert.equal((await signed(server, 'POST', '/dbs/d/colls/c/pkranges', { body: {} })).status, 405);
});
