// Containers whose keys are placed by range or by a directory, under the vendor's own client, which
// knows hashing alone.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ChangeFeedStartFrom } from '@azure/cosmos';
import { emulatorKey, orrery, sanitized } from './server.js';
import { shop } from './items.js';

const tenants = ['anna', 'bert', 'cara', 'dora', 'emil', 'fred', 'gina', 'hugo', 'ines', 'jost'];
const strategies = {
  range: { kind: 'range', bounds: ['c', 'f', 'i'] },
  lookup: {
    kind: 'lookup', shards: 16, default: 'hash',
    directory: [{ key: ['anna'], shard: 0 }, { key: ['bert'], shard: 15 }, { key: ['cara'], shard: 7 }],
  },
};
const key = { paths: ['/tenant'], kind: 'Hash', version: 2 };

async function placed(t, kind, { args = [], definition = {} } = {}) {
  const at = await shop(t, { partitionKey: key, orrery: { strategy: strategies[kind] }, ...definition }, {
    args: ['--set', 'migration.pause_ms=20ms', ...args],
    create: { offerThroughput: 40000 },
  });
  at.ranges = async () => (await at.container.readPartitionKeyRanges().fetchAll()).resources;
  at.items = [];
  at.fill = async (each = 8) => {
    for (const tenant of tenants)
      for (let i = 0; i < each; i++) at.items.push({ id: `${tenant}${i}`, tenant, n: at.items.length, filler: 'x'.repeat(50) });
    const answers = await at.container.items.bulk(
      at.items.map((resourceBody) => ({ operationType: 'Create', resourceBody })));
    for (const answer of answers) assert.equal(answer.statusCode, 201);
  };
  return at;
}

async function until(what, limitMs = 60_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert.ok(Date.now() < end, 'waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const ids = (list) => list.map((item) => item.id ?? item).sort();
const where = (at, wanted) => ids(at.items.filter(wanted));

// Every change since the beginning, by whatever pages there are.
async function changes(container, options) {
  const found = new Map();
  const iterator = container.items.getChangeFeedIterator({ maxItemCount: 7, ...options });
  for (;;) {
    const page = await iterator.readNext();
    if (page.statusCode === 304) return found;
    for (const item of page.result) found.set(item.id, item);
  }
}

for (const kind of Object.keys(strategies)) {
  test(`${kind}: the container looks hashed, its ranges are the real ones, and it says its strategy`, async (t) => {
    const { container, resource, ranges, send } = await placed(t, kind);
    assert.equal(resource.partitionKey.kind, 'Hash');
    assert.equal(resource.orrery.strategy.kind, kind);
    assert.equal(resource.orrery.strategy.directory, undefined);
    const found = (await ranges()).sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
    assert.equal(found.length, 4);
    assert.equal(found[0].minInclusive, '');
    assert.equal(found[3].maxExclusive, 'FF');
    for (let i = 1; i < 4; i++) assert.equal(found[i].minInclusive, found[i - 1].maxExclusive);
    assert.match(found[1].minInclusive, /^[0-9A-F]+$/);
    // A library that knows nothing of it replaces the container; one that does may not change it.
    const { orrery, ...plain } = resource;
    const replaced = await container.replace({ ...plain, defaultTtl: -1 });
    assert.deepEqual(replaced.resource.orrery, orrery);
    const other = await send('PUT', '/dbs/shop/colls/orders', { body: { ...resource, orrery: { strategy: 'hash' } } });
    assert.equal(other.status, 400);
    assert.match(other.json.message, /orrery.strategy cannot be changed/);
    const shown = await send('GET', '/_orrery/containers/shop/orders');
    assert.equal(shown.json.strategy.kind, kind);
  });

  test(`${kind}: items are created, read, changed and deleted wherever their key is`, async (t) => {
    const at = await placed(t, kind);
    await at.fill();
    for (const item of at.items) {
      const read = await at.container.item(item.id, item.tenant).read();
      assert.equal(read.resource.n, item.n);
    }
    const [first, second, third] = at.items;
    await at.container.item(first.id, first.tenant).replace({ ...first, n: -1 });
    await at.container.item(second.id, second.tenant).patch([{ op: 'incr', path: '/n', value: 100 }]);
    await at.container.item(third.id, third.tenant).delete();
    await at.container.items.upsert({ ...third, n: 7 });
    assert.equal((await at.container.item(first.id, first.tenant).read()).resource.n, -1);
    assert.equal((await at.container.item(second.id, second.tenant).read()).resource.n, second.n + 100);
    assert.equal((await at.container.item(third.id, third.tenant).read()).resource.n, 7);
    assert.equal((await at.container.item(first.id, second.tenant === first.tenant ? 'zoe' : second.tenant).read()).statusCode, 404);
    const batch = await at.container.items.batch([
      { operationType: 'Create', resourceBody: { id: 'b1', tenant: 'dora' } },
      { operationType: 'Read', id: 'dora0' },
    ], 'dora');
    assert.deepEqual(batch.result.map((one) => one.statusCode), [201, 200]);
    const values = [null, true, false, 5, -0.5, 'ü€😀', 'x'.repeat(1000), ''];
    for (const [i, tenant] of values.entries()) await at.container.items.create({ id: `v${i}`, tenant });
    for (const [i, tenant] of values.entries()) {
      assert.equal((await at.container.item(`v${i}`, tenant).read()).resource?.id, `v${i}`);
      const { resources } = await at.container.items.query('SELECT VALUE c.id FROM c', { partitionKey: tenant }).fetchAll();
      assert.deepEqual(resources, [`v${i}`]);
    }
  });

  test(`${kind}: queries find everything, with and without a key, ordered and summed up`, async (t) => {
    const at = await placed(t, kind);
    await at.fill();
    const query = async (text, options) => (await at.container.items.query(text, options).fetchAll()).resources;
    assert.deepEqual(ids(await query('SELECT * FROM c')), ids(at.items));
    assert.deepEqual(ids(await query('SELECT * FROM c', { maxItemCount: 3 })), ids(at.items));
    for (const tenant of tenants) {
      assert.deepEqual(ids(await query('SELECT * FROM c', { partitionKey: tenant })), where(at, (item) => item.tenant === tenant));
      assert.deepEqual(ids(await query({ query: 'SELECT * FROM c WHERE c.tenant = @t', parameters: [{ name: '@t', value: tenant }] })),
        where(at, (item) => item.tenant === tenant));
    }
    assert.deepEqual(ids(await query("SELECT * FROM c WHERE c.tenant IN ('anna', 'hugo', 'cara')")),
      where(at, (item) => ['anna', 'hugo', 'cara'].includes(item.tenant)));
    assert.deepEqual(ids(await query("SELECT * FROM c WHERE c.tenant >= 'b' AND c.tenant < 'f'")),
      where(at, (item) => item.tenant >= 'b' && item.tenant < 'f'));
    assert.deepEqual(ids(await query("SELECT * FROM c WHERE c.tenant BETWEEN 'dora' AND 'gina' OR c.tenant = 'jost'")),
      where(at, (item) => (item.tenant >= 'dora' && item.tenant <= 'gina') || item.tenant === 'jost'));
    assert.deepEqual(ids(await query("SELECT * FROM c WHERE STARTSWITH(c.tenant, 'h') OR c.tenant LIKE 'i%'")),
      where(at, (item) => /^[hi]/.test(item.tenant)));
    const byNumber = await query('SELECT VALUE c.n FROM c ORDER BY c.n DESC', { maxItemCount: 5 });
    assert.deepEqual(byNumber, at.items.map((item) => item.n).reverse());
    assert.deepEqual(await query('SELECT VALUE c.tenant FROM c ORDER BY c.tenant', { maxItemCount: 9 }),
      at.items.map((item) => item.tenant).sort());
    assert.deepEqual(await query('SELECT VALUE COUNT(1) FROM c'), [at.items.length]);
    assert.deepEqual(await query("SELECT VALUE SUM(c.n) FROM c WHERE c.tenant > 'c'"),
      [at.items.filter((item) => item.tenant > 'c').reduce((sum, item) => sum + item.n, 0)]);
    assert.deepEqual((await query('SELECT DISTINCT VALUE c.tenant FROM c')).sort(), tenants);
    const groups = await query('SELECT c.tenant, COUNT(1) AS count FROM c GROUP BY c.tenant');
    assert.equal(groups.length, tenants.length);
    for (const group of groups) assert.equal(group.count, 8);
    assert.deepEqual(ids((await at.container.items.readAll().fetchAll()).resources), ids(at.items));
  });

  test(`${kind}: the change feed is complete by range and by key`, async (t) => {
    const at = await placed(t, kind);
    await at.fill();
    const all = await changes(at.container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    assert.deepEqual([...all.keys()].sort(), ids(at.items));
    const byRange = new Map();
    for (const range of await at.container.getFeedRanges())
      for (const id of (await changes(at.container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(range) })).keys()) {
        assert.ok(!byRange.has(id));
        byRange.set(id, true);
      }
    assert.deepEqual([...byRange.keys()].sort(), ids(at.items));
    for (const tenant of tenants) {
      const own = await changes(at.container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(tenant) });
      assert.deepEqual([...own.keys()].sort(), where(at, (item) => item.tenant === tenant));
    }
  });

  test(`${kind}: partitions split under load, and readers go on`, async (t) => {
    const at = await placed(t, kind, { args: ['--set', `partition.bytes_max=${sanitized ? '128K' : '1M'}`] });
    await at.fill(2);
    const before = (await at.ranges()).length;
    const still = where(at, () => true);
    const feed = at.container.items.getChangeFeedIterator({ maxItemCount: 5, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
    const seen = new Map();
    let writing = true;
    const follow = async () => {
      const page = await feed.readNext();
      if (page.statusCode !== 304) for (const item of page.result) seen.set(item.id, item.n);
      return page.statusCode !== 304;
    };
    const reader = (async () => {
      while (writing) await follow();
    })();
    const pager = (async () => {
      while (writing) {
        const { resources } = await at.container.items
          .query('SELECT VALUE c.id FROM c WHERE c.n < 20 AND IS_DEFINED(c.filler)', { maxItemCount: 3 }).fetchAll();
        assert.deepEqual([...resources].sort(), still);
      }
    })();
    const each = sanitized ? 20 : 60;
    await Promise.all(Array.from({ length: 6 }, async (_, writer) => {
      for (let i = 0; i < each; i++) {
        const answers = await at.container.items.bulk(Array.from({ length: 10 }, (_, j) => ({
          operationType: 'Upsert',
          resourceBody: { id: `${writer}-${i}-${j}`, tenant: `${tenants[(i + j) % 10]}.${writer}`, n: 1000 + i, filler: 'y'.repeat(sanitized ? 400 : 1500) },
        })));
        for (const answer of answers) assert.ok(answer.statusCode < 300, `${answer.statusCode}`);
      }
    }));
    await until(async () => (await at.ranges()).length > before + 1);
    writing = false;
    await Promise.all([reader, pager]);
    for (let idle = 0; idle < 40;) idle = (await follow()) ? 0 : idle + 1;
    assert.equal(seen.size, 20 + 6 * each * 10);
    const { resources } = await at.container.items.query('SELECT VALUE COUNT(1) FROM c').fetchAll();
    assert.deepEqual(resources, [20 + 6 * each * 10]);
  });
}

test('range: a query between two keys meets only the partitions between them', async (t) => {
  const at = await placed(t, 'range');
  await at.fill();
  const explained = async (query) => {
    const answer = await at.send('POST', at.docs, {
      headers: {
        'x-ms-documentdb-isquery': 'True', 'content-type': 'application/query+json',
        'x-ms-documentdb-query-enablecrosspartition': 'True', 'x-orrery-explain': 'True',
      },
      body: { query },
    });
    assert.equal(answer.status, 200, answer.text);
    return answer.json._explain.partitions;
  };
  assert.deepEqual(await explained('SELECT * FROM c'), { read: 4, all: 4 });
  assert.deepEqual(await explained("SELECT * FROM c WHERE c.tenant >= 'd' AND c.tenant < 'f'"), { read: 1, all: 4 });
  assert.deepEqual(await explained("SELECT * FROM c WHERE c.tenant > 'd' AND c.tenant < 'h' ORDER BY c.tenant"), { read: 2, all: 4 });
  assert.deepEqual(await explained('SELECT TOP 3 * FROM c ORDER BY c.tenant'), { read: 1, all: 4 });
  assert.deepEqual(await explained('SELECT TOP 10 * FROM c ORDER BY c.tenant DESC'), { read: 1, all: 4 });
  assert.deepEqual(await explained('SELECT TOP 20 * FROM c ORDER BY c.tenant'), { read: 2, all: 4 });
  assert.deepEqual(await explained("SELECT * FROM c WHERE STARTSWITH(c.tenant, 'a')"), { read: 1, all: 4 });
  assert.deepEqual(await explained('SELECT * FROM c WHERE c.tenant < 5'), { read: 1, all: 4 });
  const plan = await at.send('POST', at.docs, {
    headers: {
      'x-ms-cosmos-is-query-plan-request': 'True', 'content-type': 'application/query+json',
      'x-ms-cosmos-supported-query-features': 'NonValueAggregate, Aggregate, Distinct, MultipleOrderBy, OffsetAndLimit, OrderBy, Top, CompositeAggregate, GroupBy, MultipleAggregates',
      'x-ms-documentdb-query-enablecrosspartition': 'True',
    },
    body: { query: "SELECT * FROM c WHERE c.tenant >= 'd' AND c.tenant < 'f' ORDER BY c.n" },
  });
  const { queryRanges } = plan.json;
  assert.deepEqual(queryRanges, [{ min: '186400', max: '186600', isMinInclusive: true, isMaxInclusive: false }]);
});

test('range: hierarchical keys are found by prefix and in between', async (t) => {
  const at = await placed(t, 'range', {
    definition: {
      partitionKey: { paths: ['/tenant', '/user'], kind: 'MultiHash', version: 2 },
      orrery: { strategy: { kind: 'range', bounds: ['c', ['c', 'm'], 'd'] } },
    },
  });
  for (const tenant of ['b', 'c', 'd'])
    for (const user of ['anna', 'kurt', 'zoe']) at.items.push({ id: user, tenant, user, n: at.items.length });
  for (const item of at.items) await at.container.items.create(item);
  assert.equal((await at.ranges()).length, 4);
  const query = async (text, options) => (await at.container.items.query(text, options).fetchAll()).resources.sort();
  assert.equal((await at.container.item('zoe', ['c', 'zoe']).read()).resource.n, 5);
  assert.deepEqual(await query('SELECT VALUE c.n FROM c', { partitionKey: ['c'] }), [3, 4, 5]);
  assert.deepEqual(await query("SELECT VALUE c.n FROM c WHERE c.tenant = 'c' AND c.user > 'b'"), [4, 5]);
  assert.deepEqual(await query("SELECT VALUE c.n FROM c WHERE c.tenant >= 'c' AND c.user > 'm'"), [5, 8]);
  // The library would have to hash the prefix by itself: refused rather than answered with nothing.
  await assert.rejects(changes(at.container, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(['c']) }), /no bounds of this container/);
});

test('lookup: lines of the directory are edited while clients work', async (t) => {
  const at = await placed(t, 'lookup');
  await at.fill();
  const path = '/_orrery/containers/shop/orders/directory';
  const shown = await at.send('GET', path);
  assert.equal(shown.json.shards, 16);
  assert.deepEqual(shown.json.directory, [
    { key: ['anna'], shard: 0 }, { key: ['bert'], shard: 15 }, { key: ['cara'], shard: 7 }]);
  const find = async (key) => (await at.send('GET', `${path}?key=${encodeURIComponent(JSON.stringify([key]))}`)).json;
  const edit = async (edits) => {
    const answer = await at.send('POST', path, { body: { edits } });
    assert.equal(answer.status, 202, answer.text);
    await until(async () => (await at.send('GET', '/_orrery/containers/shop/orders/migration')).status === 404);
  };
  const before = new Map();
  for (const item of at.items) before.set(item.id, (await at.container.item(item.id, item.tenant).read()).resource);
  const feed = at.container.items.getChangeFeedIterator({ maxItemCount: 9, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  const seen = new Map();
  const follow = async () => {
    for (let idle = 0; idle < 8;) {
      const page = await feed.readNext();
      if (page.statusCode === 304) idle++;
      else for (const item of page.result) seen.set(item.id, item.n);
    }
  };
  await follow();
  assert.equal(seen.size, at.items.length);
  let working = true;
  let writes = 0;
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (; working; writes++) {
      const item = at.items[8 + writer]; // bert's
      const { resource } = await at.container.item(item.id, item.tenant).patch([{ op: 'incr', path: '/n', value: 1 }]);
      item.n = resource.n;
      const read = await at.container.item(item.id, item.tenant).read();
      assert.equal(read.resource.n, item.n);
      const { resources } = await at.container.items
        .query('SELECT VALUE c.id FROM c', { partitionKey: item.tenant }).fetchAll();
      assert.equal(resources.length, 8);
    }
  });
  assert.equal((await find('anna')).shard, 0);
  await edit([{ key: ['anna'], shard: 12 }, { key: ['bert'], shard: 1 }]);
  assert.deepEqual([(await find('anna')).shard, (await find('anna')).listed], [12, true]);
  await edit([{ key: ['bert'], shard: null }, { key: ['new'], shard: 3 }, { key: ['emil'], shard: 5 }]);
  assert.equal((await find('bert')).listed, false);
  assert.equal((await find('new')).shard, 3);
  for (const shard of [2, 9, 14]) await edit([{ key: ['bert'], shard }]);
  working = false;
  await Promise.all(writers);
  assert.ok(writes > 0);
  // A key that is paged through goes on where it is then, each item once.
  for (const query of ['SELECT VALUE c.id FROM c', 'SELECT VALUE c.id FROM c ORDER BY c.n']) {
    let pages = at.container.items.query(query, { partitionKey: 'gina', maxItemCount: 2 });
    const found = [];
    for (let shard = 0; ; shard += 5) {
      const { resources, continuationToken } = await pages.fetchNext();
      found.push(...(resources ?? []));
      if (!continuationToken) break;
      await edit([{ key: ['gina'], shard: shard % 16 }]);
      pages = at.container.items.query(query, { partitionKey: 'gina', maxItemCount: 2, continuationToken });
    }
    assert.deepEqual(found.sort(), where(at, (item) => item.tenant === 'gina'), query);
  }
  for (const item of at.items) {
    const { resource } = await at.container.item(item.id, item.tenant).read();
    if (item.tenant === 'bert') assert.equal(resource.n, item.n);
    else assert.deepEqual(resource, before.get(item.id)); // etag, time and rid as they were
  }
  await follow();
  for (const item of at.items) assert.equal(seen.get(item.id), item.n, item.id);
  const all = await at.container.items.query('SELECT VALUE c.id FROM c ORDER BY c.id').fetchAll();
  assert.deepEqual(all.resources, ids(at.items));
  for (const [body, words] of [
    [{}, /no member "edits"/], [{ edits: [] }, /1 to 1000/], [{ edits: [{ key: ['a', 'b'], shard: 1 }] }, /first component/],
    [{ edits: [{ key: 'a', shard: 16 }] }, /shard 16/], [{ edits: [{ key: 'a', shard: 1 }, { key: ['a'], shard: 2 }] }, /twice/],
  ]) {
    const answer = await at.send('POST', path, { body });
    assert.equal(answer.status, 400);
    assert.match(answer.json.message, words);
  }
});

test('lookup: the command line shows and edits the directory', async (t) => {
  const at = await placed(t, 'lookup');
  await at.fill(1);
  const run = async (...args) => {
    const [verb, ...rest] = args;
    const answer = await orrery(['directory', verb, 'shop', 'orders', ...rest, '--endpoint', at.server.url], { env: { ORRERY_KEY: emulatorKey } });
    return answer;
  };
  const list = await run('list');
  assert.equal(list.code, 0, list.err);
  assert.match(list.out, /\["bert"\] +15/);
  const set = await run('set', 'bert', '2', '["new"]', '4');
  assert.equal(set.code, 0, set.err + set.out);
  assert.match((await run('find', 'bert')).out, /^shard 2\n/);
  const removed = await run('remove', 'new');
  assert.equal(removed.code, 0, removed.err + removed.out);
  assert.match((await run('find', 'new')).out, /by the rule/);
  assert.equal((await run('set', 'bert')).code, 2);
  assert.equal((await run('set', 'bert', '99')).code, 1);
});
