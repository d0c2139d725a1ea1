// Partitions that split under the vendor's own client.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { join } from 'node:path';
import { Server, emulatorKey, sanitized, scratch } from './server.js';
import { signed } from './rest.js';

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  return { server, client, database };
}

async function ranges(container) {
  const { resources } = await container.readPartitionKeyRanges().fetchAll();
  return resources;
}

async function until(what, limitMs = 30_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, 'waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('more throughput than the partitions may give splits them, and nothing is lost', async (t) => {
  const { client, database } = await started(t);
  const { container, resource } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 400 });
  const written = new Map();
  for (let i = 0; i < 100; i++) {
    const answer = await container.items.create({ id: `${i}`, pk: `p${i % 20}`, n: i });
    written.set(`${i}`, answer.resource);
  }
  const parent = (await ranges(container))[0].id;
  const { resources } = await client.offers.readAll().fetchAll();
  const offer = resources.find((found) => found.resource === resource._self);
  offer.content.offerThroughput = 35000;
  const replaced = await client.offer(offer.id).replace(offer);
  assert.equal(replaced.headers['x-ms-offer-replace-pending'], 'true');
  const children = await until(async () => {
    const now = await ranges(container);
    return now.length === 4 && now;
  });
  const settled = await client.offer(offer.id).read();
  assert.equal(settled.headers['x-ms-offer-replace-pending'], 'false');
  for (const child of children) assert.ok(child.parents.includes(parent));
  assert.equal(children[0].minInclusive, '');
  assert.equal(children[3].maxExclusive, 'FF');
  for (const [id, item] of written) {
    const read = await container.item(id, item.pk).read();
    assert.deepEqual(read.resource, item); // etag, time and rid as they were
    const replaced = await container.item(id, item.pk).replace({ ...item, n: -1 }, {
      accessCondition: { type: 'IfMatch', condition: item._etag },
    });
    assert.equal(replaced.resource._rid, item._rid);
  }
});

test('queries that the JavaScript client merges go on over splits, and end', async (t) => {
  const { server, database } = await started(t);
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  for (let i = 0; i < 120; i++) await container.items.create({ id: `${i}`, pk: `p${i % 40}`, n: i % 7 });
  const list = '/_orrery/containers/d/c/partitions';
  const split = async () => {
    const [first, ...others] = (await signed(server, 'GET', list)).json.partitions;
    assert.equal((await signed(server, 'POST', `${list}/${first.id}/split`)).status, 202);
    await until(async () => (await ranges(container)).length === others.length + 2);
    await until(async () => !(await signed(server, 'GET', list)).json.migration);
  };
  await split();
  const parent = (await ranges(container))[0].id;
  let requests = 0;
  const plugin = (context, node, next) => {
    if (++requests > 1000) throw new Error('it asks for ever');
    return next(context);
  };
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey, plugins: [{ on: 'request', plugin }] });
  t.after(() => client.dispose());
  const { items } = client.database('d').container('c');
  for (const query of ['SELECT VALUE c.id FROM c ORDER BY c.n', 'SELECT VALUE c.id FROM c ORDER BY c.n DESC', 'SELECT DISTINCT VALUE c.id FROM c', 'SELECT TOP 120 VALUE c.id FROM c']) {
    const iterator = items.query(query, { maxItemCount: 10 });
    const rows = [];
    for (let page = 0; iterator.hasMoreResults(); page++) {
      rows.push(...((await iterator.fetchNext()).resources ?? []));
      if (page < 2) await split(); // twice, so that pieces split again
    }
    assert.equal(rows.length, 120, query);
    assert.equal(new Set(rows).size, 120, query);
  }
  // Everybody else reads the ranges again.
  const headers = { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json', 'x-ms-documentdb-partitionkeyrangeid': parent };
  const gone = await signed(server, 'POST', '/dbs/d/colls/c/docs', { headers, body: { query: 'SELECT * FROM c' } });
  assert.deepEqual([gone.status, gone.headers['x-ms-substatus']], [410, '1002']);
});

test('a container fed past the size of a partition splits under its writers', async (t) => {
  const { database } = await started(t, ['--set', 'partition.bytes_max=128K']);
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 10000 });
  const writers = 8;
  const each = sanitized ? 60 : 200;
  const journal = new Map();
  // What was there before everything and is never written again is in every answer exactly once.
  const still = Array.from({ length: 60 }, (_, i) => ({ id: `still${i}`, pk: `q${i}`, still: true }));
  await container.items.bulk(still.map((resourceBody) => ({ operationType: 'Create', resourceBody })));
  let writing = true;
  const pager = (async () => {
    let queries = 0;
    for (; writing || queries === 0; queries++) {
      const { resources } = await container.items
        .query('SELECT VALUE c.id FROM c WHERE c.still = true', { maxItemCount: 7 }).fetchAll();
      assert.deepEqual([...resources].sort(), still.map((item) => item.id).sort());
    }
  })();
  await Promise.all(Array.from({ length: writers }, async (_, writer) => {
    for (let i = 0; i < each; i++) {
      const id = `${writer}-${i}`;
      const item = { id, pk: `p${writer}.${i % 25}`, n: i, filler: 'x'.repeat(1000) };
      await container.items.upsert(item);
      journal.set(id, item);
      if (i % 5 === 4) {
        const old = journal.get(`${writer}-${i - 2}`);
        old.n = 1000 + i;
        await container.item(old.id, old.pk).replace(old);
      }
      if (i % 7 === 6) {
        await container.item(`${writer}-${i - 3}`, journal.get(`${writer}-${i - 3}`).pk).delete();
        journal.delete(`${writer}-${i - 3}`);
      }
      const seen = await container.item(id, item.pk).read();
      assert.equal(seen.resource?.n, item.n);
    }
  }));
  writing = false;
  await pager;
  const now = await until(async () => {
    const found = await ranges(container);
    return found.length >= (sanitized ? 3 : 6) && found;
  });
  const bounds = now.map((range) => [range.minInclusive, range.maxExclusive]).sort();
  assert.equal(bounds[0][0], '');
  for (let i = 1; i < bounds.length; i++) assert.equal(bounds[i][0], bounds[i - 1][1]);
  assert.equal(bounds.at(-1)[1], 'FF');
  for (const item of journal.values()) {
    const { resource } = await container.item(item.id, item.pk).read();
    assert.equal(resource?.n, item.n, item.id);
  }
});

// Each life ends with kill -9 at any moment of writing and splitting; the next goes on with both.
test('splits cut off by kill -9 are taken up again, and no acknowledged write is lost', async (t) => {
  const directory = scratch(t);
  const args = ['--dev', '--node', `a=rocksdb:${join(directory, 'a')}`, '--node', `b=rocksdb:${join(directory, 'b')}`,
    '--set', 'migration.pause_ms=20ms', '--set', 'partition.bytes_max=64K', '--set', 'migration.bytes_per_second=2M'];
  const journal = new Map();
  const lives = 6;
  let serial = 0;
  for (let life = 0; life <= lives; life++) {
    const server = await Server.start(t, args);
    // One attempt each: what was in flight when the server was killed is not asked again.
    const client = new CosmosClient({
      endpoint: server.url, key: emulatorKey, connectionPolicy: { requestTimeout: 5000, retryOptions: { maxRetryAttemptCount: 0 } },
    });
    const { database } = await client.databases.createIfNotExists({ id: 'd' });
    const { container } = await database.containers.createIfNotExists({ id: 'c', partitionKey: '/pk', throughput: 10000 });
    if (life === lives) {
      const wanted = Math.ceil(journal.size * 2000 / 65536); // no partition is fuller than it may be
      assert.ok(wanted > 1);
      const found = await until(async () => {
        const now = await ranges(container);
        return now.length >= wanted && now;
      });
      const bounds = found.map((range) => [range.minInclusive, range.maxExclusive]).sort();
      for (let i = 1; i < bounds.length; i++) assert.equal(bounds[i][0], bounds[i - 1][1]);
      for (const [id, { pk, values }] of journal) {
        const { resource } = await container.item(id, pk).read();
        assert.ok(values.includes(resource?.n), `${id}: ${resource?.n}, not one of ${values}`);
      }
      client.dispose();
      await server.stop();
      break;
    }
    let killed = false;
    const writers = Array.from({ length: 4 }, async () => {
      while (!killed) {
        const n = ++serial;
        const id = `${n % 150}`;
        const item = { id, pk: `p${n % 30}`, n, filler: 'x'.repeat(2000) };
        const known = journal.get(id) ?? { pk: item.pk, values: [undefined] };
        try {
          await container.items.upsert(item);
          journal.set(id, { pk: item.pk, values: [n] });
        } catch {
          journal.set(id, { pk: item.pk, values: [...known.values, n] });
          return;
        }
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 500));
    killed = true;
    server.process.kill('SIGKILL');
    await Promise.all(writers);
    await server.ended;
    client.dispose();
  }
});
