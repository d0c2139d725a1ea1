// What an operator sees of requests: figures, slow requests, the access log, the audit, traces, `orrery top`.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { CosmosClient } from '@azure/cosmos';
import { MongoClient } from 'mongodb';
import { Server, emulatorKey, orrery, root, scratch } from './server.js';
import { signed } from './rest.js';
import { Terminal } from './terminal.js';
import { client as gremlinClient, authenticator, v2 } from './gremlin.js';
import { tableClient, all } from './tables.js';

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
  const run = (...words) => orrery([...words, '--endpoint', server.url, '--dev']);
  const json = async (...words) => {
    const result = await run(...words, '--format', 'json');
    assert.equal(result.code, 0, result.err);
    return JSON.parse(result.out);
  };
  return { server, client, run, json };
}

async function orders(client, ru) {
  const { database } = await client.databases.createIfNotExists({ id: 'shop' });
  const { container } = await database.containers.createIfNotExists({ id: 'orders', partitionKey: '/tenant', throughput: ru });
  return container;
}

// The lines of a family, as {labels, value}.
function family(text, name) {
  return text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `)).map((line) => {
    const labels = Object.fromEntries([...line.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key, value]));
    return { labels, value: Number(line.slice(line.lastIndexOf(' ') + 1)) };
  });
}

async function metrics(server) {
  return (await server.get('/metrics')).text();
}

test('figures of a container are those of the requests it got, by operation and status', async (t) => {
  const { server, client } = await started(t);
  const container = await orders(client);
  for (let i = 0; i < 5; i++) await container.items.create({ id: `${i}`, tenant: 'a' });
  for (let i = 0; i < 3; i++) await container.item('1', 'a').read();
  assert.equal((await container.item('none', 'a').read()).statusCode, 404);
  await container.items.query('SELECT * FROM c').fetchAll();
  const text = await metrics(server);
  const count = (operation, status) => family(text, 'orrery_container_requests_total')
    .filter(({ labels }) => labels.container === 'orders' && labels.operation === operation && labels.status === status)
    .reduce((sum, { value }) => sum + value, 0);
  assert.equal(count('create', '201'), 5);
  assert.equal(count('read', '200'), 3);
  assert.equal(count('read', '404'), 1);
  assert.ok(count('query', '200') >= 1);
  const of = (name) => family(text, name).find(({ labels }) => labels.container === 'orders').value;
  assert.equal(of('orrery_container_items'), 5);
  assert.ok(of('orrery_container_request_units_total') > 5 * 5);
  assert.ok(of('orrery_container_bytes') > 0);
  assert.equal(family(text, 'orrery_partition_items').find(({ labels }) => labels.container === 'orders').value, 5);
  const buckets = family(text, 'orrery_container_request_seconds_bucket').filter(({ labels }) => labels.container === 'orders');
  assert.equal(buckets.at(-1).value, of('orrery_container_request_seconds_count'));
  assert.ok(buckets.every(({ value }, i) => i === 0 || value >= buckets[i - 1].value));
});

test('429 is counted apart, with the request units that were refused, and survives a split of the container', async (t) => {
  const { server, client, run } = await started(t);
  const container = await orders(client, 400);
  let refused = 0;
  // each costs more than a second gives: all at once, some must be refused
  await Promise.all(Array.from({ length: 30 }, (_, i) =>
    container.items.create({ id: `${i}`, tenant: `t${i}`, text: Array.from({ length: 2000 }, (__, n) => `${n}`) })
      .catch(({ code }) => (refused += code === 429))));
  assert.ok(refused);
  const sum = (text) => family(text, 'orrery_container_requests_total').filter(({ labels }) => labels.container === 'orders')
    .reduce((all, { value }) => all + value, 0);
  const text = await metrics(server);
  assert.ok(family(text, 'orrery_container_requests_total').some(({ labels, value }) => labels.status === '429' && value === refused));
  assert.ok(family(text, 'orrery_partition_request_units_refused_total').some(({ value }) => value > 0));
  const id = family(text, 'orrery_partition_items').find(({ labels }) => labels.container === 'orders').labels.partition;
  const before = sum(text);
  assert.equal((await run('partition', 'split', 'shop', 'orders', id)).code, 0);
  const after = await metrics(server);
  assert.ok(sum(after) >= before);
  assert.ok(family(after, 'orrery_partition_items').filter(({ labels }) => labels.container === 'orders').length >= 2);
  assert.ok(family(after, 'orrery_migrations_total').some(({ labels, value }) => labels.kind === 'split' && value === 1));
});

test('how many containers and partitions have lines of their own is bounded', async (t) => {
  const { server, client } = await started(t, ['--set', 'metrics.containers_max=2', '--set', 'metrics.partitions_max=1']);
  const { database } = await client.databases.create({ id: 'many' });
  for (let i = 0; i < 5; i++) {
    const { container } = await database.containers.create({ id: `c${i}`, partitionKey: '/p' });
    await container.items.create({ id: '1', p: 'a' });
  }
  const text = await metrics(server);
  const items = family(text, 'orrery_container_items');
  assert.equal(items.filter(({ labels }) => labels.container).length, 2);
  assert.equal(items.reduce((sum, { value }) => sum + value, 0), 5);
  assert.equal(family(text, 'orrery_partition_items').length, 1);
});

test('every metric that the dashboard and the alerts name exists', async (t) => {
  const { server, client } = await started(t);
  const container = await orders(client);
  await container.items.create({ id: '1', tenant: 'a' });
  const text = await metrics(server);
  const known = new Set([...text.matchAll(/^# TYPE (\w+) (\w+)/gm)].flatMap(([, name, type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]));
  for (const file of ['grafana-dashboard.json', 'prometheus-alerts.yml']) {
    const named = new Set(readFileSync(join(root, 'packaging', file), 'utf8').match(/\b(?:orrery|process)_\w+/g));
    assert.ok(named.size > 10);
    for (const name of named) assert.ok(known.has(name), `${file} names ${name}`);
  }
  JSON.parse(readFileSync(join(root, 'packaging', 'grafana-dashboard.json'), 'utf8'));
});

test('the access log has a line of JSON for every request, and goes on after it was renamed', async (t) => {
  const file = join(scratch(t), 'access.log');
  const { server, client } = await started(t, ['--set', `log.access=${file}`]);
  const container = await orders(client);
  await container.items.create({ id: '1', tenant: 'a' });
  const { activityId } = await container.item('1', 'a').read();
  const lines = () => readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  await server.until(() => lines().some(({ id }) => id === activityId));
  const line = lines().find(({ id }) => id === activityId);
  assert.equal(line.api, 'rest');
  assert.equal(line.operation, 'read');
  assert.equal(line.name, 'ITEMS.READ');
  assert.equal(line.database, 'shop');
  assert.equal(line.container, 'orders');
  assert.equal(line.status, 200);
  assert.equal(line.who, 'read-write key');
  assert.equal(line.from, '127.0.0.1');
  assert.ok(line.charge >= 1 && line.partition);
  assert.ok(!readFileSync(file, 'utf8').includes(emulatorKey.slice(0, 20)));
  renameSync(file, `${file}.old`);
  server.process.kill('SIGHUP');
  await server.until(async () => {
    await container.item('1', 'a').read();
    try { return lines().length > 0; } catch { return false; }
  });
});

test('how queries were carried out is told in every API', async (t) => {
  const file = join(scratch(t), 'access.log');
  const { server, client } = await started(t, ['--set', `log.access=${file}`]);
  const container = await orders(client);
  for (let i = 0; i < 3; i++) await container.items.create({ id: `${i}`, tenant: 'a', n: i });
  await container.items.query('SELECT * FROM c WHERE c.n = 1').fetchAll();
  const mongo = await new MongoClient(server.mongo, { directConnection: true }).connect();
  t.after(() => mongo.close());
  await mongo.db('shop').collection('made').insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 2 }]);
  await mongo.db('shop').collection('made').find({ n: 2 }).toArray();
  const table = tableClient(server, 'people');
  await table.createTable();
  await table.createEntity({ partitionKey: 'p', rowKey: '1', n: 1 });
  await all(table.listEntities({ queryOptions: { filter: 'n eq 1' } }));
  await client.databases.create({ id: 'graphs' });
  await client.database('graphs').containers.create({ id: 'g', partitionKey: '/pk' });
  const g = await gremlinClient(t, server, '3.7', { authenticator: authenticator('3.7'), path: '/', mimeType: v2 });
  await g.submit("g.addV('person').property('id', 'ann').property('pk', 'x')");
  await g.submit("g.V().has('pk', 'x').values('id')");
  const plans = () => readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)).filter(({ plan }) => plan);
  await server.until(() => ['rest', 'mongo', 'table', 'gremlin'].every((api) => plans().some((line) => line.api === api)));
  for (const api of ['rest', 'mongo', 'table', 'gremlin'])
    assert.match(plans().find((line) => line.api === api).plan, /^(index|scan): \d+ items read, \d+ index entries, \d+ lookups, [1-9]\d* partitions, \d+ rows, [1-9]\d* queries$/, api);
  const read = await container.item('1', 'a').read();
  await server.until(() => readFileSync(file, 'utf8').includes(read.activityId));
  assert.ok(!plans().some(({ id }) => id === read.activityId), 'a point read has no plan');
});

test('slow requests are logged and kept, with charge and partition', async (t) => {
  const { server, client, json } = await started(t, ['--set', 'log.slow_ms=1ms']);
  const container = await orders(client);
  for (let i = 0; i < 20; i++) await container.items.create({ id: `${i}`, tenant: 'a', n: i });
  // Half a million rows take longer than a millisecond on any machine.
  const list = Array.from({ length: 160 }, (_, i) => i);
  const slow = { query: 'SELECT VALUE COUNT(1) FROM c JOIN x IN @list JOIN y IN @list', parameters: [{ name: '@list', value: list }] };
  assert.deepEqual((await container.items.query(slow, { partitionKey: 'a' }).fetchAll()).resources, [20 * 160 * 160]);
  const text = await metrics(server);
  assert.ok(family(text, 'orrery_slow_requests_total')[0].value > 0);
  assert.ok(server.events().some(({ event, api, ms }) => event === 'slow request' && api === 'rest' && ms >= 1));
  const { requests } = (await signed(server, 'GET', '/_orrery/slow?max=100')).json;
  assert.ok(requests.length && requests.every(({ ms, id, charge }) => ms >= 1 && id && charge !== undefined));
  const query = requests.find(({ operation, plan }) => operation === 'query' && plan);
  assert.match(query.plan, /^(index|scan): \d+ items read/);
  const { containers } = await json('top', '--once');
  assert.ok(containers.find(({ container: id }) => id === 'orders').requests > 20);
});

test('the audit tells who did what, refused or not, over all APIs, and is whole', async (t) => {
  const { server, client, json, run } = await started(t, ['--set', 'audit.containers=shop/orders']);
  const container = await orders(client);
  await container.items.create({ id: '1', tenant: 'a', secret: 'open sesame' });
  await container.item('1', 'a').read();
  const stranger = new CosmosClient({ endpoint: server.url, key: Buffer.from('wrong'.repeat(10)).toString('base64') });
  await assert.rejects(stranger.databases.readAll().fetchAll());
  const mongo = await new MongoClient(server.mongo, { directConnection: true }).connect();
  t.after(() => mongo.close());
  await mongo.db('other').createCollection('made');
  const { records } = await json('audit', 'list');
  const find = (wanted) => records.find((record) => Object.entries(wanted).every(([key, value]) => record[key] === value));
  assert.ok(find({ api: 'rest', name: 'CONTAINERS.CREATE', status: 201, who: 'read-write key', from: '127.0.0.1' }));
  assert.ok(find({ api: 'rest', name: 'ITEMS.CREATE', container: 'orders', status: 201 }));
  assert.ok(!find({ name: 'ITEMS.READ' }));
  assert.ok(find({ status: 401 }));
  assert.ok(find({ api: 'mongo', name: 'create', database: 'other' }));
  assert.ok(!JSON.stringify(records).includes('sesame'));
  assert.ok(records.every(({ n }, i) => i === 0 || records[i - 1].n === n + 1));
  assert.deepEqual((await json('audit', 'list', '--operation', 'create', '--since', '1h')).records.map(({ name }) => name), ['ITEMS.CREATE']);
  assert.ok((await json('audit', 'list', '--failed')).records.every(({ status }) => status >= 400));
  const verdict = await json('audit', 'verify');
  assert.equal(verdict.whole, true);
  assert.match((await run('audit', 'verify', '--number', `${verdict.last}`, '--hash', verdict.hash)).out, /^the chain is whole/);
  const other = await run('audit', 'verify', '--number', `${verdict.last}`, '--hash', '00'.repeat(32));
  assert.equal(other.code, 1);
  assert.match(other.err, /not the one whose hash was expected/);
  assert.match((await run('audit', 'list', '--since', 'yesterday')).err, /is no time/);
});

test('the audit outlives kill -9, and what was acknowledged is in it', async (t) => {
  const data = join(scratch(t), 'data');
  const first = await started(t, ['--node', `local=rocksdb:${data}`]);
  for (let i = 0; i < 10; i++) await first.client.databases.create({ id: `db${i}` });
  await first.server.stop('SIGKILL');
  const second = await started(t, ['--node', `local=rocksdb:${data}`]);
  const { records } = await second.json('audit', 'list', '--operation', 'change');
  assert.equal(records.filter(({ name }) => name === 'DATABASES.CREATE').length, 10);
  assert.equal((await second.json('audit', 'verify')).whole, true);
});

test('the last lines of the log can be read from afar, by the default account alone', async (t) => {
  const { server } = await started(t);
  const { lines } = (await signed(server, 'GET', '/_orrery/log?max=5')).json;
  assert.ok(lines.length <= 5 && lines.some(({ event }) => event === 'listening'));
  assert.equal((await server.get('/_orrery/log')).status, 401);
});

test('traces reach a collector as OTLP, with the client\'s parent; one that is away costs nothing', async (t) => {
  const spans = [];
  const collector = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes) => (body += bytes));
    request.on('end', () => {
      assert.equal(request.url, '/v1/traces');
      assert.equal(request.headers['content-type'], 'application/json');
      spans.push(...JSON.parse(body).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
      response.end('{}');
    });
  });
  await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve));
  t.after(() => collector.close());
  const { server, client } = await started(t, ['--set', `trace.endpoint=http://127.0.0.1:${collector.address().port}/v1/traces`,
    '--set', 'trace.per_million=1000000', '--set', 'trace.pause_ms=20ms']);
  const container = await orders(client);
  await container.items.create({ id: '1', tenant: 'a' });
  const trace = '0af7651916cd43dd8448eb211c80319c';
  await container.item('1', 'a').read({ initialHeaders: { traceparent: `00-${trace}-b7ad6b7169203331-01` } });
  await container.item('1', 'a').read({ initialHeaders: { traceparent: `00-${'1'.repeat(32)}-b7ad6b7169203331-00` } });
  await server.until(() => spans.some(({ traceId }) => traceId === trace));
  const span = spans.find(({ traceId }) => traceId === trace);
  assert.equal(span.parentSpanId, 'b7ad6b7169203331');
  assert.equal(span.name, 'ITEMS.READ');
  const attribute = (name) => span.attributes.find(({ key }) => key === name)?.value;
  assert.equal(attribute('db.collection.name').stringValue, 'orders');
  assert.equal(attribute('http.response.status_code').intValue, '200');
  assert.ok(attribute('orrery.request_charge').doubleValue >= 1);
  assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
  await server.until(() => spans.some(({ name }) => name === 'ITEMS.CREATE'));
  assert.ok(!spans.some(({ traceId }) => traceId === '1'.repeat(32)));
  collector.close();
  collector.closeAllConnections();
  await server.until(async () => {
    await container.item('1', 'a').read();
    return family(await metrics(server), 'orrery_trace_spans_lost_total')[0].value > 0;
  });
});

test('orrery top shows containers, partitions and keys, sorts them, and leaves the terminal as it was', async (t) => {
  const { server, client } = await started(t);
  const container = await orders(client);
  let stopped = false;
  const load = (async () => {
    while (!stopped) await container.items.upsert({ id: '1', tenant: 'acme' });
  })().catch(() => {}); // the server goes before it ends
  t.after(() => (stopped = true));
  const terminal = Terminal.start(t, ['top', '--seconds', '1', '--endpoint', server.url, '--dev']);
  await terminal.until('\x1b[?1049h');
  await terminal.until('orrery top:');
  await terminal.until('shop/orders');
  await terminal.until('HOT KEY');
  await terminal.until('["acme"]');
  terminal.type('s');
  await terminal.until('by requests');
  terminal.type('q');
  await terminal.until('\x1b[?1049l');
  assert.equal(await terminal.ended, 0);
  const once = await orrery(['top', '--once', '--seconds', '1', '--endpoint', server.url, '--dev']);
  assert.equal(once.code, 0);
  assert.match(once.out, /CONTAINER +RU\/S/);
  assert.match(once.out, /shop\/orders +[1-9]/);
  stopped = true;
  await load;
});
