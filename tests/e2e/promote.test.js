// A partition key with a container of its own, and back: clients that know only one of the two
// containers work on whatever happens.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { shop } from './items.js';
import { signed } from './rest.js';
import { all as entities, tableClient, tables } from './tables.js';

const path = '/_orrery/containers/shop/orders/promote';
const big = ['big'];

async function placed(t, definition = {}, { ru = 20000, args = [] } = {}) {
  const at = await shop(t, definition, {
    args: ['--set', 'migration.pause_ms=20ms', ...args],
    create: { offerThroughput: ru },
  });
  at.fill = async (items) => {
    for (let i = 0; i < items.length; i += 100) {
      const answers = await at.container.items.bulk(
        items.slice(i, i + 100).map((resourceBody) => ({ operationType: 'Create', resourceBody })));
      for (const answer of answers) assert.equal(answer.statusCode, 201);
    }
  };
  at.promote = (body = {}) => at.send('POST', path, { body: { partitionKey: big, to: 'big-own', throughput: 1000, ...body } });
  at.change = async (what, wanted = 200) => {
    const answer = await until(async () => {
      const got = await at.send('POST', `${path}/${what}`, { body: { partitionKey: big } });
      return got.status === 409 && /still under way/.test(got.json.message) ? undefined : got;
    });
    assert.equal(answer.status, wanted, JSON.stringify(answer.json));
    return answer.json;
  };
  at.state = async () => (await at.send('GET', path)).json.promotions[0];
  at.promoted = () => until(async () => { const now = await at.state(); return now?.state === 'promoted' && now; });
  at.other = (id = 'big-own') => at.database.container(id);
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
  ({ id: `o${i}`, tenant: i % 2 ? 'big' : `t${i % 7}`, n: i, filler: 'x'.repeat(40) }));
const plain = ({ id, tenant, n }) => ({ id, tenant, n });
const byId = (a, b) => (a.id < b.id ? -1 : 1);
const listed = (items) => items.map(plain).sort(byId);
const all = async (container, options) => listed((await container.items.readAll(options).fetchAll()).resources);

// The library may end a round before it came to a range that is another by now: quiet is who was so twice.
async function feedRead(iterator) {
  const seen = new Map();
  for (let quiet = 0; ; ) {
    const page = await iterator.readNext();
    if (page.statusCode === 304 && ++quiet === 2) return { seen, continuation: page.continuationToken };
    if (page.statusCode === 304) continue;
    for (const item of page.result) {
      assert.ok(!seen.has(item.id), 'nothing twice');
      seen.set(item.id, item);
    }
  }
}

test('both containers serve a promoted key: every operation on either is seen in the other', async (t) => {
  const at = await placed(t);
  const items = orders(200), mine = items.filter((item) => item.tenant === 'big');
  await at.fill(items);
  const before = (await at.container.item('o5', 'big').read()).resource;
  const begun = await at.promote();
  assert.equal(begun.status, 202, JSON.stringify(begun.json));
  const now = await at.promoted();
  assert.deepEqual([now.container, now.to, now.grace, now.items], ['orders', 'big-own', true, 100]);
  const own = at.other();
  assert.deepEqual((await own.read()).resource.indexingPolicy, (await at.container.read()).resource.indexingPolicy);
  assert.deepEqual((await at.container.item('o5', 'big').read()).resource, before, 'system properties too');
  assert.equal((await own.item('o5', 'big').read()).resource._etag, before._etag);
  assert.deepEqual(await all(own), listed(mine));
  assert.deepEqual(await all(at.container), listed(items), 'fan-outs over the origin have the key');

  await at.container.item('o5', 'big').replace({ ...items[5], n: 55 });
  await own.item('o7', 'big').patch([{ op: 'incr', path: '/n', value: 70 }]);
  assert.equal((await own.item('o5', 'big').read()).resource.n, 55);
  assert.equal((await at.container.item('o7', 'big').read()).resource.n, 77);
  await assert.rejects(own.items.create(items[5]), { code: 409 });
  const batch = await at.container.items.batch([
    { operationType: 'Create', resourceBody: { id: 'b1', tenant: 'big', n: 1 } },
    { operationType: 'Delete', id: 'o9' },
  ], 'big');
  assert.equal(batch.code, 200);
  const bulk = await own.items.bulk([
    { operationType: 'Read', id: 'b1', partitionKey: 'big' },
    { operationType: 'Upsert', partitionKey: 'big', resourceBody: { id: 'b2', tenant: 'big', n: 2 } },
  ]);
  assert.deepEqual(bulk.map((one) => one.statusCode), [200, 201]);
  for (const container of [at.container, own]) {
    const sum = await container.items.query('SELECT VALUE COUNT(1) FROM c', { partitionKey: 'big' }).fetchAll();
    assert.equal(sum.resources[0], 101);
    const sorted = await container.items.query('SELECT TOP 2 * FROM c WHERE c.tenant = "big" ORDER BY c.n DESC').fetchAll();
    assert.deepEqual(sorted.resources.map((item) => item.n), [199, 197]);
  }
  const total = await at.container.items.query('SELECT VALUE COUNT(1) FROM c').fetchAll();
  assert.equal(total.resources[0], 201);
  await assert.rejects(own.items.create({ id: 'x', tenant: 't1' }), (error) => {
    assert.equal(error.code, 403);
    assert.match(error.message, /for partition key \["big"\] of container "orders" alone/);
    return true;
  });
  const figures = await own.item('b1', 'big').read();
  assert.ok(figures.headers['x-ms-session-token'].startsWith(`${now.partition}:`), 'one partition, one token');
});

test('behind the end the origin refuses the key by name; demoted, it has what was written meanwhile', async (t) => {
  const at = await placed(t);
  const items = orders(60);
  await at.fill(items);
  const feed = (container, from) => feedRead(container.items.getChangeFeedIterator({ changeFeedStartFrom: from }));
  const first = await feed(at.container, ChangeFeedStartFrom.Beginning());
  assert.equal(first.seen.size, 60);
  assert.equal((await at.promote()).status, 202);
  const now = await at.promoted();
  const own = at.other();
  const there = await feed(own, ChangeFeedStartFrom.Beginning());
  assert.equal(there.seen.size, 30, 'the feed of the own container begins with all of the key');
  await own.item('o1', 'big').patch([{ op: 'set', path: '/n', value: 101 }]); // not read from the origin before the end
  await at.change('end');

  for (const attempt of [
    () => at.container.item('o1', 'big').read(),
    () => at.container.items.upsert({ id: 'second', tenant: 'big' }),
    () => at.container.items.query('SELECT * FROM c', { partitionKey: 'big' }).fetchAll(),
    () => at.container.items.query('SELECT * FROM c WHERE c.tenant = "big"').fetchAll(),
    () => at.container.items.readAll({ partitionKey: 'big' }).fetchAll(),
  ])
    await assert.rejects(attempt(), (error) => {
      assert.equal(error.code, 403, attempt.toString());
      assert.match(error.message, /partition key \["big"\] are in container "big-own"/);
      return true;
    });
  await assert.rejects(at.container.items.batch([{ operationType: 'Read', id: 'o1' }], 'big'), /are in container "big-own"/);
  const [bulk] = await at.container.items.bulk([{ operationType: 'Upsert', partitionKey: 'big', resourceBody: { id: 'second', tenant: 'big' } }]);
  assert.equal(bulk.statusCode ?? bulk.error?.code, 403);
  assert.deepEqual(await all(at.container), listed(items.filter((item) => item.tenant !== 'big')));
  assert.equal((await at.container.item('o2', 't2').read()).statusCode, 200, 'session tokens of before do no harm');
  const later = await at.send('GET', `${at.docs}/o2`, { key: ['t2'], headers: { 'x-ms-session-token': `${now.partition}:-1#99999` } });
  assert.equal(later.status, 200, 'nor those of requests that were under way');
  await own.item('o3', 'big').patch([{ op: 'set', path: '/n', value: 103 }]);
  const meanwhile = await feed(at.container, ChangeFeedStartFrom.Continuation(first.continuation));
  assert.equal(meanwhile.seen.size, 0);

  await at.change('demote');
  await own.item('o5', 'big').patch([{ op: 'set', path: '/n', value: 105 }]); // served until the end
  const { resources } = await at.container.items.query('SELECT VALUE c.n FROM c WHERE c.n > 100 ORDER BY c.n', { partitionKey: 'big' }).fetchAll();
  assert.deepEqual(resources, [101, 103, 105]);
  const caughtUp = await feed(at.container, ChangeFeedStartFrom.Continuation(meanwhile.continuation));
  assert.deepEqual([...caughtUp.seen.keys()].sort(), ['o1', 'o3', 'o5'], 'nothing missed, nothing twice');
  await at.change('end');
  await assert.rejects(own.item('o5', 'big').read(), { code: 403 });
  assert.equal((await own.items.create({ id: 'x', tenant: 't1' })).statusCode, 201, 'for other keys it is a container like any');
  assert.equal((await at.container.items.readAll().fetchAll()).resources.length, 60);
  await at.change('forget', 204);
  assert.equal((await at.send('GET', path)).json.promotions.length, 0);
});

// Writers, readers, a pager and a reader of the feed, each on one container, with a journal.
class Tenant {
  constructor(container, name) {
    Object.assign(this, { container, name, journal: new Map(), done: 0, failures: [], running: true, next: 0 });
  }
  async step() {
    const known = [...this.journal.keys()];
    const id = known.length && this.done % 3 ? known[this.done % known.length] : `${this.name}-${this.next++}`;
    const n = this.done;
    switch (this.journal.has(id) ? this.done % 4 : 9) {
      case 0:
        assert.equal((await this.container.item(id, 'big').read()).resource?.n, this.journal.get(id));
        break;
      case 1:
        await this.container.item(id, 'big').delete();
        this.journal.delete(id);
        break;
      case 2:
        await this.container.item(id, 'big').patch([{ op: 'set', path: '/n', value: n }]);
        this.journal.set(id, n);
        break;
      default:
        await this.container.items.upsert({ id, tenant: 'big', n });
        this.journal.set(id, n);
    }
    this.done++;
  }
  async run() {
    while (this.running) {
      try {
        await this.step();
      } catch (error) {
        this.failures.push(error);
        this.running = false;
      }
    }
  }
}

test('clients of either container work on while a key is promoted and demoted', async (t) => {
  const at = await placed(t);
  const items = orders(2000);
  await at.fill(items);
  const apart = () => {
    const client = new CosmosClient({ endpoint: at.server.url, key: emulatorKey });
    t.after(() => client.dispose());
    return client.database('shop');
  };
  const writers = Array.from({ length: 3 }, (_, i) => new Tenant(apart().container('orders'), `a${i}`));
  const going = writers.map((writer) => writer.run());
  const watch = { running: true, pages: 0, seen: new Map(), failures: [] };
  const reader = (async () => {
    const container = apart().container('orders');
    const feed = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    while (watch.running || !watch.quiet) {
      const page = await feed.readNext();
      watch.quiet = page.statusCode === 304;
      if (!watch.quiet) for (const item of page.result) watch.seen.set(item.id, item.n);
      watch.pages++;
    }
  })().catch((error) => watch.failures.push(error));
  const pager = (async () => {
    const container = apart().container('orders');
    while (watch.running) {
      const found = [];
      const pages = container.items.query('SELECT c.id, c.n FROM c WHERE STARTSWITH(c.id, "o")', { maxItemCount: 150 });
      while (pages.hasMoreResults()) found.push(...((await pages.fetchNext()).resources ?? []));
      assert.equal(found.length, 2000, 'every item once on each walk');
      assert.equal(new Set(found.map((item) => item.id)).size, 2000);
      watch.walks = (watch.walks ?? 0) + 1;
    }
  })().catch((error) => watch.failures.push(error));
  const work = (steps) => until(() => {
    for (const writer of writers) assert.deepEqual(writer.failures, []);
    assert.deepEqual(watch.failures, []);
    return writers.every((writer) => writer.done >= (writer.mark ?? 0) + steps) && (writers.forEach((writer) => (writer.mark = writer.done)), true);
  });
  await work(5);
  assert.equal((await at.promote()).status, 202);
  await at.promoted();
  const late = new Tenant(apart().container('big-own'), 'b');
  writers.push(late);
  going.push(late.run());
  await work(8);
  await at.change('demote');
  await work(8);
  assert.equal((await at.promote({ throughput: undefined })).status, 202);
  await work(5);
  await at.change('demote');
  await work(5);
  for (const writer of writers) writer.running = false;
  await Promise.all(going);
  await until(() => (watch.walks ?? 0) > 1 || watch.failures.length);
  watch.running = false;
  await Promise.all([reader, pager]);
  for (const writer of writers) assert.deepEqual(writer.failures, [], writer.name);
  assert.deepEqual(watch.failures, []);
  const expected = new Map(items.map((item) => [item.id, item.n]));
  for (const writer of writers) for (const [id, n] of writer.journal) expected.set(id, n);
  for (const container of [at.container, at.other()]) {
    const { resources } = await container.items.query('SELECT c.id, c.n FROM c WHERE c.tenant = "big"').fetchAll();
    const mine = new Map([...expected].filter(([id]) => !/^o\d*[02468]$/.test(id)));
    assert.deepEqual(new Map(resources.map((item) => [item.id, item.n]).sort()), new Map([...mine].sort()));
  }
  for (const [id, n] of expected) assert.equal(watch.seen.get(id), n, `the feed has the last of ${id}`);
});

test('a server killed while it promotes takes it up again; killed later it knows', async (t) => {
  const node = ['--node', `local=rocksdb:${scratch(t)}/node`];
  const at = await placed(t, {}, { args: [...node, '--set', 'migration.bytes_per_second=100K'] });
  const items = orders(1200), mine = items.filter((item) => item.tenant === 'big');
  await at.fill(items);
  assert.equal((await at.promote()).status, 202);
  await until(async () => (await at.state()).migration?.items > 100);
  await at.container.item('o3', 'big').patch([{ op: 'set', path: '/n', value: 3 }]);
  at.server.process.kill('SIGKILL');
  await at.server.ended;
  for (const expected of [['orders', 'big-own'], ['orders', 'big-own']]) {
    const server = await Server.start(t, ['--dev', ...node, '--set', 'migration.pause_ms=20ms']);
    const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
    const database = client.database('shop');
    await until(async () => (await database.container('big-own').items.query('SELECT VALUE COUNT(1) FROM c', { partitionKey: 'big' }).fetchAll().catch(() => ({ resources: [] }))).resources[0] === 600);
    for (const id of expected)
      assert.deepEqual(await all(database.container(id), { partitionKey: 'big' }), listed(mine));
    await database.container('orders').items.upsert(items[1]);
    server.process.kill('SIGKILL');
    await server.ended;
    client.dispose();
  }
});

test('what does not fit is refused by name and changes nothing', async (t) => {
  const at = await placed(t);
  const { partitionKey } = (await at.container.read()).resource;
  await at.fill(orders(20));
  await at.database.containers.create({ id: 'used', partitionKey });
  await at.other('used').items.create({ id: '1', tenant: 'x' });
  await at.database.containers.create({ id: 'unlike', partitionKey: '/user' });
  await at.database.containers.create({ id: 'wide', partitionKey }, { offerThroughput: 20000 });
  for (const [status, body, said] of [
    [400, { partitionKey: [] }, /needs a partition key value/],
    [400, { partitionKey: 'big' }, /the body is/],
    [400, { partitionKey: ['a', 'b'] }, /./],
    [400, { partitionKey: undefined }, /no member "partitionKey"/],
    [400, { to: undefined }, /no member "to"/],
    [400, { to: 'a/b' }, /./],
    [400, { throughput: -5 }, /RU/],
    [400, { throughput: 401 }, /./],
    [400, { what: 1 }, /it has "what"/],
    [409, { throughput: 50000 }, /more than one physical partition/],
    [409, { to: 'orders', throughput: undefined }, /another container of its database/],
    [409, { to: 'used', throughput: undefined }, /was used/],
    [409, { to: 'unlike', throughput: undefined }, /differ in their property "partitionKey"/],
    [409, { to: 'wide', throughput: undefined }, /more than one physical partition/],
    [400, { to: 'used' }, /is there already/],
  ]) {
    const refused = await at.promote(body);
    assert.equal(refused.status, status, `${JSON.stringify(body)}: ${JSON.stringify(refused.json)}`);
    assert.match(refused.json.message, said);
  }
  for (const what of ['demote', 'end', 'forget'])
    assert.equal((await at.send('POST', `${path}/${what}`, { body: { partitionKey: big } })).status, 404);
  const { resources } = await at.database.containers.readAll().fetchAll();
  assert.deepEqual(resources.map((one) => one.id).sort(), ['orders', 'unlike', 'used', 'wide'], 'none was made');

  assert.equal((await at.promote()).status, 202);
  await at.promoted();
  await assert.rejects(at.other().delete(), { code: 409 });
  await assert.rejects(at.container.replace({ ...(await at.container.read()).resource, defaultTtl: 100 }), { code: 409 });
  assert.equal((await at.send('POST', '/_orrery/containers/shop/orders/rekey', { body: { partitionKey: { paths: ['/n'], version: 2 } } })).status, 409);
  await at.change('end');
  await at.other().delete();
  await assert.rejects(at.container.item('o1', 'big').read(), { code: 403 });
  await at.change('forget', 204);
  assert.equal((await at.container.item('o1', 'big').read()).statusCode, 404, 'its items went with their container');
  assert.equal((await at.container.items.create({ id: 'o1', tenant: 'big' })).statusCode, 201);
});

test('the first values of a hierarchical key are promoted together', async (t) => {
  const at = await placed(t, { partitionKey: { paths: ['/tenant', '/n'], kind: 'MultiHash', version: 2 } });
  const items = orders(60);
  for (const item of items) await at.container.items.create(item);
  assert.equal((await at.promote()).status, 202);
  await at.promoted();
  assert.deepEqual(await all(at.other()), listed(items.filter((item) => item.tenant === 'big')));
  await at.other().items.create({ id: 'new', tenant: 'big', n: 1000 });
  assert.equal((await at.container.item('new', ['big', 1000]).read()).statusCode, 200);
  await at.change('end');
  await assert.rejects(at.container.item('new', ['big', 1000]).read(), { code: 403 });
});

test('a partition of a table is promoted to a table of its own', async (t) => {
  const { server, table } = await tables(t, { args: ['--set', 'migration.pause_ms=20ms'] });
  for (const partitionKey of ['big', 'small'])
    for (let i = 0; i < 5; i++) await table.createEntity({ partitionKey, rowKey: `r${i}`, n: i });
  const send = async (rest, body) => {
    return signed(server, body ? 'POST' : 'GET', `/_orrery/containers/TablesDB/people/promote${rest}`, { body });
  };
  const begun = await send('', { partitionKey: big, to: 'bigpeople', throughput: 400 });
  assert.equal(begun.status, 202, JSON.stringify(begun.json));
  await until(async () => (await send('')).json.promotions[0].state === 'promoted');
  const own = tableClient(server, 'bigpeople');
  await own.upsertEntity({ partitionKey: 'big', rowKey: 'r0', n: 10 });
  assert.equal((await table.getEntity('big', 'r0')).n, 10);
  assert.equal((await entities(table.listEntities())).length, 10);
  assert.equal((await entities(own.listEntities())).length, 5);
  assert.equal((await send('/end', { partitionKey: big })).status, 200);
  await assert.rejects(table.getEntity('big', 'r0'), { statusCode: 403 });
  await assert.rejects(entities(table.listEntities({ queryOptions: { filter: "PartitionKey eq 'big'" } })), { statusCode: 403 });
  assert.equal((await entities(table.listEntities())).length, 5);
});

test('the command line tries it out, does it, shows it and takes it back', async (t) => {
  const at = await placed(t);
  await at.fill(orders(40));
  const run = (...args) => orrery(['promote', 'shop', 'orders', '--endpoint', at.server.url, '--dev', ...args]);
  const key = ['--key', 'big'];
  const dry = await run(...key, '--to', 'big-own', '--dry-run');
  assert.equal(dry.code, 0, dry.err);
  assert.match(dry.out, /container big-own would be made\nthe key would be isolated from partition \d+ of \d+ items/);
  assert.match((await run('--status')).out, /no key of the container is promoted/);
  const done = await run(...key, '--to', 'big-own', '--throughput', '1000');
  assert.equal(done.code, 0, done.err);
  assert.match(done.out, /^(isolate.*\n)*\["big"\] of orders: promoted to big-own, served by both/);
  assert.match((await run('--status')).out, /\["big"\] +orders +big-own +promoted +both +20/);
  assert.match((await run(...key, '--end')).out, /grace period over/);
  assert.match((await run(...key, '--demote')).out, /demoted from big-own, served by both/);
  const early = await run(...key, '--forget');
  assert.equal(early.code, 1);
  assert.match(early.err, /served by two containers/);
  assert.equal((await run(...key, '--end')).code, 0);
  await at.change('forget', 204);
  assert.equal((await run()).code, 2);
  assert.equal((await run('--end', '--demote', ...key)).code, 2);
  assert.equal((await run(...key)).code, 2);
});
