// The client's own retries when the throughput is used up.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { signed } from './rest.js';
import { shop } from './items.js';
import { tableClient } from './tables.js';

const cli = async (server, ...words) => {
  const { code, out, err } = await orrery([...words, '--endpoint', server.url, '--dev']);
  if (code !== 0) throw new Error(err);
  return out;
};
const admin = (server, path, body) => signed(server, body ? 'POST' : 'GET', `/_orrery/${path}`, { body });

test('many writes on 400 RU/s all arrive, with waits the client takes by itself', async (t) => {
  const { container } = await shop(
    t,
    {},
    {
      args: ['--set', 'throughput.burst_seconds=0'],
      create: { offerThroughput: 400 },
      client: { connectionPolicy: { retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 60 } } },
    },
  );
  const answers = await Promise.all(
    Array.from({ length: 150 }, (_, i) => container.items.create({ id: `i${i}`, tenant: 'x', v: i })),
  );
  assert.ok(answers.every((a) => a.statusCode === 201));
  const retries = answers.map((a) => Number(a.headers['x-ms-throttle-retry-count'] ?? 0));
  assert.ok(retries.some((n) => n > 0), 'the budget was never used up');
  for (const i of [0, 75, 149]) assert.equal((await container.item(`i${i}`, 'x').read()).resource.v, i);
});

test('a client that does not retry sees 429 and when to come again', async (t) => {
  const { docs, send } = await shop(t, {}, {
    args: ['--set', 'throughput.burst_seconds=0'],
    create: { offerThroughput: 400 },
  });
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      send('POST', docs, { key: ['x'], body: { id: `i${i}`, tenant: 'x', v: 'v'.repeat(3000) } }),
    ),
  );
  const throttled = answers.filter((a) => a.status === 429);
  assert.ok(throttled.length > 0);
  for (const { headers, json: body } of throttled) {
    assert.ok(Number(headers['x-ms-retry-after-ms']) >= 1);
    assert.equal(headers['x-ms-substatus'], '3200');
    assert.equal(headers['x-ms-request-charge'], '0.00');
    assert.equal(body.code, 'TooManyRequests');
    assert.match(body.message, /Request rate is large/);
  }
});

test('every page of GROUP BY with ORDER BY is charged, and waits for the budget', async (t) => {
  const { docs, send } = await shop(t, {}, {
    args: ['--set', 'throughput.burst_seconds=0'],
    create: { offerThroughput: 400 },
  });
  for (let i = 0; i < 30; i++) {
    let answer;
    do answer = await send('POST', docs, { key: ['x'], body: { id: `i${i}`, tenant: 'x', n: i } });
    while (answer.status === 429);
    assert.equal(answer.status, 201);
  }
  const page = (continuation) => send('POST', docs, {
    body: { query: 'SELECT c.n, COUNT(1) AS count FROM c GROUP BY c.n ORDER BY c.n DESC', parameters: [] },
    headers: {
      'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'True', 'x-ms-max-item-count': '10',
      'x-ms-documentdb-query-enablecrosspartition': 'True', 'x-orrery-explain': 'true',
      ...(continuation ? { 'x-ms-continuation': continuation } : {}),
    },
  });
  const patient = async (continuation) => {
    for (;;) {
      const answer = await page(continuation);
      if (answer.status !== 429) return answer;
      await new Promise((resolve) => setTimeout(resolve, Number(answer.headers['x-ms-retry-after-ms'])));
    }
  };
  const charge = (answer) => Number(answer.headers['x-ms-request-charge']);
  const pages = [await patient()];
  while (pages.at(-1).headers['x-ms-continuation']) pages.push(await patient(pages.at(-1).headers['x-ms-continuation']));
  assert.deepEqual(pages.flatMap((answer) => answer.json.Documents.map((row) => row.n)), Array.from({ length: 30 }, (_, i) => 29 - i));
  assert.equal(pages.length, 3);
  assert.ok(charge(pages[0]) > 2 && pages.slice(1).every((answer) => charge(answer) > 0 && charge(answer) < charge(pages[0])), pages.map(charge).join(' '));

  // What was pushed into the partitions, and what was done with its rows.
  const [first, second] = pages.map((answer) => answer.json._explain);
  assert.deepEqual(first.pushed.map((stage) => stage.stage), ['group', 'project']);
  assert.equal(first.kept, false);
  assert.equal(second.kept, true);
  const sort = first.stages.find((stage) => stage.stage === 'sort');
  assert.equal(sort.rowsIn, 30);
  for (const [i, explain] of [first, second].entries()) {
    assert.equal(explain.charge.total, charge(pages[i]));
    assert.equal(explain.actual.rows, 10);
  }

  // The budget is used up by others: a page that only hands out what is kept is refused as well.
  const { headers: { 'x-ms-continuation': continuation } } = await patient();
  let refused;
  for (let i = 0; !refused && i < 50; i++) {
    await Promise.all(Array.from({ length: 20 }, (_, j) => send('POST', docs, { key: ['x'], body: { id: `w${i}-${j}`, tenant: 'x', v: 'v'.repeat(3000) } })));
    const answer = await page(continuation);
    if (answer.status === 429) refused = answer;
  }
  assert.ok(refused, 'no page was refused');
  assert.ok(Number(refused.headers['x-ms-retry-after-ms']) >= 1);
  assert.equal(charge(refused), 0);
  assert.equal((await patient(continuation)).json.Documents.length, 10);
});

// So many writes at once that the default offer would refuse most of them.
const crowd = (count, one) => Promise.all(Array.from({ length: count }, (_, i) => one(i)));

test('what nobody bought is not limited, until somebody states a throughput', async (t) => {
  const { server, client, container, docs, resource, send } = await shop(t, {}, {
    args: ['--set', 'throughput.burst_seconds=0'],
  });
  const write = (prefix) => (i) =>
    send('POST', docs, { key: ['x'], body: { id: `${prefix}${i}`, tenant: 'x', v: 'v'.repeat(3000) } });
  assert.ok((await crowd(200, write('a'))).every((a) => a.status === 201 && Number(a.headers['x-ms-request-charge']) > 5));
  const { resources } = await client.offers.readAll().fetchAll();
  const offer = resources.find((o) => o.resource === resource._self);
  assert.equal(offer.content.offerThroughput, 400);
  assert.match(await cli(server, 'stats'), /orders +1 +400 +manual, not enforced/);
  assert.match(await cli(server, 'stats', 'shop', 'orders'), /throughput: 400 RU\/s, manual, not enforced/);
  await client.offer(offer.id).replace(offer); // the same number, but stated
  const answers = await crowd(200, write('b'));
  assert.ok(answers.some((a) => a.status === 429));
  assert.match(await cli(server, 'stats'), /orders +1 +400 +manual *\n/);
  assert.ok((await container.item('a7', 'x').read()).resource.v);
});

test('a table made without throughput is not limited', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.burst_seconds=0']);
  const table = tableClient(server, 'things');
  await table.createTable();
  const statuses = [];
  const onResponse = ({ status }) => statuses.push(status);
  await crowd(150, (i) => table.createEntity({ partitionKey: 'p', rowKey: `r${i}`, v: 'v'.repeat(2000) }, { onResponse }));
  assert.equal(statuses.length, 150);
  assert.ok(statuses.every((status) => status !== 429)); // the client would try again by itself
  assert.equal((await table.getEntity('p', 'r149')).v.length, 2000);
});

test('throughput.enforce = always limits the default too, never limits nothing', async (t) => {
  for (const [enforce, create, refuses] of [
    ['always', {}, true],
    ['never', { offerThroughput: 400 }, false],
  ]) {
    const { docs, send } = await shop(t, {}, {
      args: ['--set', 'throughput.burst_seconds=0', '--set', `throughput.enforce=${enforce}`],
      create,
    });
    const answers = await crowd(200, (i) =>
      send('POST', docs, { key: ['x'], body: { id: `i${i}`, tenant: 'x', v: 'v'.repeat(3000) } }),
    );
    assert.equal(answers.some((a) => a.status === 429), refuses, enforce);
  }
});

test('partition.ru_initial decides how many partitions a container is made with', async (t) => {
  const counts = async (args) => {
    const server = await Server.start(t, ['--dev', ...args]);
    const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
    t.after(() => client.dispose());
    const { database } = await client.databases.create({ id: 'd' });
    const found = [];
    for (const throughput of [6000, 10000, 12000, 21000, 30000]) {
      const { container } = await database.containers.create({ id: `c${throughput}`, partitionKey: '/k', throughput });
      found.push((await container.readPartitionKeyRanges().fetchAll()).resources.length);
    }
    const { container } = await database.containers.create({ id: 'auto', partitionKey: '/k', maxThroughput: 21000 });
    found.push((await container.readPartitionKeyRanges().fetchAll()).resources.length);
    return found;
  };
  assert.deepEqual(await counts([]), [1, 1, 2, 3, 3, 3]);
  assert.deepEqual(await counts(['--set', 'partition.ru_initial=6000']), [1, 1, 2, 4, 5, 3]);
});

test('throughput raised by half is shared by all partitions alike', async (t) => {
  const { server, client, container, resource } = await shop(t, {}, {
    args: ['--set', 'partition.ru_max=200', '--set', 'throughput.burst_seconds=0', '--set', 'migration.pause_ms=20ms'],
    create: { offerThroughput: 400 },
  });
  const { resources } = await client.offers.readAll().fetchAll();
  const offer = resources.find((o) => o.resource === resource._self);
  offer.content.offerThroughput = 600;
  await client.offer(offer.id).replace(offer);
  let partitions;
  for (;;) {
    const shown = (await admin(server, 'containers/shop/orders')).json;
    partitions = shown.partitions;
    if (partitions.length === 3) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(partitions.map((p) => p.ruPerSecond), [200, 200, 200]);
  const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
  for (const range of ranges) assert.ok(Math.abs(range.throughputFraction - 1 / 3) < 1e-6);
});

test('buckets and key values with throughput of their own, over splits and restarts', async (t) => {
  const settings = ['--dev', '--set', 'throughput.burst_seconds=0', '--node', `a=rocksdb:${join(scratch(t), 'a')}`];
  let server = await Server.start(t, settings);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  await database.containers.create({ id: 'orders', partitionKey: '/tenant', throughput: 1000 });
  const docs = '/dbs/shop/colls/orders/docs';
  const load = async (key, count, headers = {}) =>
    (
      await crowd(count, (i) =>
        signed(server, 'POST', docs, {
          headers: {
            'x-ms-documentdb-partitionkey': JSON.stringify([key]),
            'x-ms-documentdb-is-upsert': 'true',
            ...headers,
          },
          body: { id: `i${i}`, tenant: key, v: 'v'.repeat(2000) },
        }),
      )
    ).filter((a) => a.status === 429);
  // Not asked for yet, a bucket may take everything.
  await cli(server, 'throughput', 'bucket', 'shop', 'orders', '2', '10');
  await cli(server, 'throughput', 'cap', 'shop', 'orders', 'greedy', '50');
  await cli(server, 'throughput', 'reserve', 'shop', 'orders', '["gold"]', '300');
  await assert.rejects(cli(server, 'throughput', 'reserve', 'shop', 'orders', 'other', '800'), /1100 RU\/s would be reserved/);
  const bucketed = await load('any', 30, { 'x-ms-cosmos-throughput-bucket': '2' });
  assert.ok(bucketed.length > 0 && bucketed.every((a) => a.headers['x-ms-substatus'] === '3212'));
  const greedy = await load('greedy', 30);
  assert.ok(greedy.length > 0 && greedy.some((a) => a.headers['x-ms-substatus'] === '3214'));
  // Whatever the crowd spends, the key with a reservation is served.
  const busy = load('crowd', 300);
  const gold = await load('gold', 8);
  assert.equal(gold.length, 0);
  assert.ok((await busy).length > 0);
  const shown = (await admin(server, 'containers/shop/orders')).json;
  assert.equal(shown.buckets[0].maxThroughputPercentage, 10);
  assert.ok(shown.buckets[0].throttled > 0 && shown.buckets[0].ru > 0);
  const of = (key) => shown.reservations.find((r) => r.partitionKey[0] === key);
  assert.deepEqual([of('gold').reserved, of('gold').cap, of('greedy').cap], [300, 0, 50]);
  assert.ok(of('greedy').throttled > 0 && of('gold').ru > 0);
  const text = await cli(server, 'stats', 'shop', 'orders');
  assert.match(text, /BUCKET +AT MOST %/);
  assert.match(text, /gold.* 300 /);

  // The partition of an isolated key gives what was reserved for it, and the cap goes where its key goes.
  await cli(server, 'partition', 'isolate', 'shop', 'orders', 'gold');
  const parts = (await admin(server, 'containers/shop/orders')).json;
  const home = parts.partitions.find((p) => p.id === parts.reservations.find((r) => r.partitionKey[0] === 'gold').partition);
  assert.ok(home.ruPerSecond >= 300);
  assert.ok(Math.abs(parts.partitions.reduce((sum, p) => sum + p.ruPerSecond, 0) - 1000) < 0.5);
  assert.ok((await load('greedy', 30)).some((a) => a.headers['x-ms-substatus'] === '3214'));
  assert.ok(parts.statistics.hour.requests >= 360);

  await server.stop();
  server = await Server.start(t, [...settings, '--rest', `127.0.0.1:${server.port}`]);
  const after = (await admin(server, 'containers/shop/orders')).json;
  assert.equal(after.reservations.length, 2);
  assert.ok(after.statistics.hour.requests >= 360, 'the hour is kept');
  assert.ok((await load('greedy', 30)).some((a) => a.headers['x-ms-substatus'] === '3214'));
  assert.ok((await load('any', 30, { 'x-ms-cosmos-throughput-bucket': '2' })).some((a) => a.headers['x-ms-substatus'] === '3212'));
  // The definition has it too, as any client may write it.
  const { resource } = await client.database('shop').container('orders').read();
  assert.equal(resource.orrery.throughput.keys.length, 2);
  resource.orrery.throughput = { buckets: [] };
  await client.database('shop').container('orders').replace(resource);
  assert.equal((await load('any', 30, { 'x-ms-cosmos-throughput-bucket': '2' })).filter((a) => a.headers['x-ms-substatus'] === '3212').length, 0);
});

test('throughput of its own is not divided where none was stated', async (t) => {
  const { server } = await shop(t);
  const refused = await admin(server, 'containers/shop/orders/throughput', { buckets: [{ id: 1, maxThroughputPercentage: 50 }] });
  assert.equal(refused.status, 400);
  assert.match(refused.json.message, /state some for it first/);
});
