// Heat: the record as data and as a picture, and the report of keys too hot or too large.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, emulatorKey, orrery, sanitized, scratch } from './server.js';
import { signed } from './rest.js';

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', '--set', 'heat.pause_ms=500ms', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  return { server, client };
}

async function until(what, limitMs = 60_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, 'waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function admin(server, path) {
  const answer = await signed(server, 'GET', `/_orrery/${path}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

function upsert(server, path, item) {
  return signed(server, 'POST', `${path}/docs`, {
    headers: {
      'x-ms-documentdb-is-upsert': 'true',
      'x-ms-documentdb-partitionkey': JSON.stringify([item.pk]),
      'content-type': 'application/json',
    },
    body: item,
  });
}

// One element, closed, everything inside closed in order, nothing unescaped.
function assertWellFormed(xml) {
  const open = [];
  const rest = xml.replace(/^<\?xml[^>]*\?>\s*/, '');
  let roots = 0;
  for (const [, text, close, name, attributes, empty] of rest.matchAll(
    /([^<]*)(?:<(\/?)([a-zA-Z]+)((?:\s+[a-zA-Z0-9-]+="[^"<]*")*)\s*(\/?)>|$)/g,
  )) {
    assert.doesNotMatch(text, /&(?!lt;|gt;|amp;|quot;)/);
    if (!name) continue;
    if (close) assert.equal(open.pop(), name);
    else if (!empty) {
      if (open.length === 0) roots++;
      open.push(name);
    }
    assert.doesNotMatch(attributes, /&(?!lt;|gt;|amp;|quot;)/);
  }
  assert.deepEqual(open, []);
  assert.equal(roots, 1);
  assert.equal(xml.match(/</g).length, rest.match(/<\/?[a-zA-Z]+(?:\s+[a-zA-Z0-9-]+="[^"<]*")*\s*\/?>/g).length + 1);
}

test('what was asked is served as data and drawn, with splits marked, and outlives the server', async (t) => {
  const directory = scratch(t);
  const node = ['--node', `local=rocksdb:${join(directory, 'data')}`];
  const limits = ['--set', 'partition.bytes_max=100000', '--set', 'migration.pause_ms=20ms'];
  const { server, client } = await started(t, [...node, ...limits]);
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk', throughput: 4000 });
  const filler = 'x'.repeat(1000);
  for (let i = 0; i < 200; i++) await container.items.create({ id: `${i}`, pk: `<p&${i % 20}>`, filler });
  await until(async () => (await admin(server, 'containers/d/c/heat')).events.length > 0);

  const sum = (points, list, what) => points.flatMap((point) => point[list]).reduce((all, one) => all + one[what], 0);
  let spans;
  await until(async () => { // what was asked last is counted a moment later
    spans = await admin(server, 'containers/d/c/heat?minutes=30&by=span');
    return sum(spans.points, 'spans', 'requests') >= 200;
  });
  assert.ok(spans.minutes === 1 || spans.minutes === 2); // one may have ended meanwhile
  assert.equal(spans.events[0].kind, 'split');
  assert.equal(spans.events[0].from.length, 1);
  assert.ok(sum(spans.points, 'spans', 'ru') > 1000);
  for (const point of spans.points)
    for (const span of point.spans) {
      assert.ok(spans.partitions.some((partition) => partition.id === span.id));
      assert.ok(span.latencyMs.p99 > 0 && span.latencyMs.p99 <= span.latencyMs.max);
      assert.ok(span.latencyMs.mean <= span.latencyMs.max);
    }
  const keys = await admin(server, 'containers/d/c/heat?by=keys');
  assert.match(keys.points[0].keys[0].partitionKey[0], /^<p&\d+>$/);

  const key = { env: { ORRERY_ENDPOINT: server.url } };
  const file = join(directory, 'heat.svg');
  const drawn = await orrery(['partition', 'heat', 'd', 'c', '--dev', '--last', '30m', '--out', file], key);
  assert.equal(drawn.code, 0, drawn.err);
  const svg = readFileSync(file, 'utf8');
  assertWellFormed(svg);
  assert.match(svg, /class="mark".*split of partition/);
  assert.match(svg, /RU\/s/);
  assert.doesNotMatch(svg.replace('xmlns="http://www.w3.org/2000/svg"', ''), /https?:|href|<script|@import|url\(/);
  for (const args of [['--by', 'keys'], ['--by', 'keys', '--show', 'latency'], ['--show', 'throttled']]) {
    const other = await orrery(['partition', 'heat', 'd', 'c', '--dev', ...args], key);
    assert.equal(other.code, 0, other.err);
    assertWellFormed(other.out);
    if (args.includes('ru')) assert.match(other.out, /&lt;p&amp;/);
  }
  const before = sum(spans.points, 'spans', 'requests');
  assert.equal((await server.stop()).code, 0);

  const again = await Server.start(t, ['--dev', ...node, ...limits]);
  const after = await admin(again, 'containers/d/c/heat?minutes=30');
  assert.ok(sum(after.points, 'spans', 'requests') >= before);
  assert.deepEqual(after.events[0], spans.events[0]);
});

test('questions about heat that make no sense are refused by name', async (t) => {
  const { server, client } = await started(t);
  const { database } = await client.databases.create({ id: 'd' });
  await database.containers.create({ id: 'c', partitionKey: '/pk' });
  for (const [query, status, words] of [
    ['minutes=0', 400, /minutes/],
    ['minutes=10081', 400, /minutes/],
    ['points=0', 400, /points/],
    ['by=colour', 400, /span or keys/],
    ['from=2000&to=1000', 400, /behind/],
    ['from=0&to=4000000000', 400, /week/],
    ['from=yesterday', 400, /from/],
  ]) {
    const answer = await signed(server, 'GET', `/_orrery/containers/d/c/heat?${query}`);
    assert.equal(answer.status, status, query);
    assert.match(answer.text, words);
  }
  assert.equal((await signed(server, 'GET', '/_orrery/containers/d/none/heat')).status, 404);
  for (const args of [['heat', 'd'], ['heat', 'd', 'c', '--last', '8d'], ['heat', 'd', 'c', '--by', 'x'], ['hot', 'd']])
    assert.equal((await orrery(['partition', ...args, '--dev'], { env: { ORRERY_ENDPOINT: server.url } })).code, 2);
});

// Asks as fast as the server answers, whatever it says, until told to stop.
function asking(server, path, item) {
  const load = { accepted: 0, refused: 0, ru: 0, going: true };
  const loop = async () => {
    while (load.going) {
      const answer = await upsert(server, path, typeof item === 'function' ? item() : item);
      if (answer.status === 429) {
        load.refused++;
        await new Promise((resolve) => setTimeout(resolve, 5));
      } else {
        assert.ok(answer.status === 200 || answer.status === 201, answer.text);
        load.accepted++;
        load.ru += Number(answer.headers['x-ms-request-charge']);
      }
    }
  };
  load.done = Promise.all([loop(), loop(), loop(), loop()]);
  load.stop = async () => {
    load.going = false;
    await load.done;
  };
  return load;
}

test('a key too hot for its partition is named within a minute, in the report, the log and the metrics', async (t) => {
  const { server, client } = await started(t, [
    '--set', 'partition.ru_max=200', '--set', 'throughput.burst_seconds=0',
  ]);
  const { database } = await client.databases.create({ id: 'd' });
  await database.containers.create({ id: 'c', partitionKey: '/pk' }, { offerThroughput: 800 });
  const begun = Date.now();
  const load = asking(server, '/dbs/d/colls/c', { id: '1', pk: 'hot' });
  t.after(() => load.stop());
  const { keys } = await until(async () => {
    const report = await admin(server, 'hot');
    return report.keys.length > 0 && report;
  });
  assert.ok(Date.now() - begun < 60_000);
  assert.equal(keys.length, 1);
  assert.deepEqual(keys[0].partitionKey, ['hot']);
  assert.equal(keys[0].trouble, 'hot');
  assert.equal(keys[0].do, 'spread'); // nobody else uses its partition: a cut would not help it
  assert.equal(keys[0].ruPerSecondOfPartition, 200);
  assert.ok(keys[0].ruPerSecondWanted >= 150);
  assert.deepEqual((await admin(server, 'containers/d/c/hot')).keys.map((key) => key.partitionKey), [['hot']]);
  assert.match(await (await server.get('/metrics')).text(), /orrery_logical_partitions_in_trouble\{trouble="hot"\} 1/);
  const event = server.events().find((line) => line.event === 'logical partition too hot');
  assert.equal(event.key, '["hot"]');
  const listed = await orrery(['partition', 'hot', '--dev'], { env: { ORRERY_ENDPOINT: server.url } });
  assert.match(listed.out, /\["hot"\].*synthetic partition key.*orrery advise/);

  // Isolated it gets what a partition may give, and goes on being reported: nothing more can be done here.
  const isolated = await signed(server, 'POST', '/_orrery/containers/d/c/isolate', { body: { partitionKey: ['hot'] } });
  assert.equal(isolated.status, 202, isolated.text);
  const alone = await until(async () => (await admin(server, 'hot')).keys.find((key) => key.alone));
  assert.equal(alone.do, 'spread');
  assert.equal(alone.ruPerSecondOfPartition, 200);
  await load.stop(); // before the server goes
});

// Minutes are the clock's, so this takes two: with E2E_SANITIZED=1, as make check-all runs it.
test('a partition that refuses gets throughput from those that do not need theirs, and keeps it', {
  skip: sanitized ? false : 'takes two minutes',
}, async (t) => {
  const node = ['--node', `a=rocksdb:${join(scratch(t), 'a')}`];
  const settings = [...node, '--set', 'partition.ru_max=400', '--set', 'throughput.burst_seconds=0', '--set', 'heat.share_minutes=1'];
  const { server, client } = await started(t, settings);
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' }, { offerThroughput: 800 });
  const partitions = async (of) => (await admin(of, 'containers/d/c/partitions')).partitions;
  for (const { id } of await partitions(server)) {
    assert.equal((await signed(server, 'POST', `/_orrery/containers/d/c/partitions/${id}/split`, { body: { pieces: 2 } })).status, 202);
    await until(async () => (await partitions(server)).every((one) => one.id !== id && !one.underWay));
  }
  const before = await partitions(server);
  assert.deepEqual(before.map((one) => one.share), [0.25, 0.25, 0.25, 0.25]);
  const { version } = await admin(server, 'containers/d/c/partitions');
  const load = asking(server, '/dbs/d/colls/c', { id: '1', pk: 'hot' });
  t.after(() => load.stop());
  const after = await until(async () => {
    const now = await partitions(server);
    return now.some((one) => one.share > 0.3) && now;
  }, 180_000);
  await load.stop();
  assert.equal(after.filter((one) => one.share > 0.3).length, 1);
  assert.ok(Math.abs(after.reduce((sum, one) => sum + one.share, 0) - 1) < 1e-4);
  for (const one of after) assert.ok(one.share >= 0.125 - 1e-6);
  // Nothing has moved and nobody has to route anew; clients that look see the fractions of now.
  assert.deepEqual(after.map((one) => one.id), before.map((one) => one.id));
  assert.equal((await admin(server, 'containers/d/c/partitions')).version, version);
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  for (const range of ranges)
    assert.ok(Math.abs(range.throughputFraction - after.find((one) => one.id === range.id).share) < 1e-4);
  await server.stop();
  const again = await Server.start(t, ['--dev', ...settings]);
  assert.deepEqual((await partitions(again)).map((one) => one.share), after.map((one) => one.share));
});

test('a key too large for its partition is named', async (t) => {
  const { server, client } = await started(t, ['--set', 'logical_partition.bytes_max=50000']);
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  for (let i = 0; i < 42; i++) await container.items.create({ id: `${i}`, pk: 'large', filler: 'x'.repeat(1000) });
  await container.items.create({ id: '1', pk: 'small' });
  const { keys } = await until(async () => {
    const report = await admin(server, 'containers/d/c/hot');
    return report.keys.length > 0 && report;
  });
  assert.deepEqual(keys.map((key) => [key.trouble, key.partitionKey, key.do]), [['large', ['large'], 'spread']]);
  assert.ok(keys[0].bytes > 40000 && keys[0].bytes < 50000);
  assert.equal(keys[0].bytesMax, 50000);
  for (let i = 0; i < 20; i++) await container.item(`${i}`, 'large').delete();
  await container.items.create({ id: '2', pk: 'small' });
  await until(async () => (await admin(server, 'containers/d/c/hot')).keys.length === 0);
});
