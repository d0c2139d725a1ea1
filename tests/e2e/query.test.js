// Queries through the unmodified NoSQL client: every clause, in small pages.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, scratch } from './server.js';
import { shop } from './items.js';

const tenants = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

// 40 orders of 7 tenants in 5 physical partitions.
async function orders(container, count = 40) {
  const items = [];
  for (let i = 0; i < count; i++)
    items.push({
      id: `i${i}`,
      tenant: tenants[i % tenants.length],
      n: (i * 17) % count,
      kind: ['x', 'y', 'z', null][i % 4],
      tags: Array.from({ length: i % 3 }, (_, j) => `t${j}`),
    });
  await Promise.all(items.map((item) => container.items.create(item)));
  return items;
}

const many = { create: { offerThroughput: 50_000 }, args: [] };
const all = (container, query, options = { maxItemCount: 3 }) =>
  container.items.query(query, options).fetchAll().then((answer) => answer.resources);

test('rows are filtered, projected and joined, whatever the page size', async (t) => {
  const { container } = await shop(t, {}, many);
  const items = await orders(container);
  assert.deepEqual(
    (await all(container, 'SELECT VALUE c.id FROM c WHERE c.n > 30')).sort(),
    items.filter((item) => item.n > 30).map((item) => item.id).sort(),
  );
  assert.deepEqual(
    (await all(container, { query: 'SELECT c.id, t FROM c JOIN t IN c.tags WHERE c.tenant = @t', parameters: [{ name: '@t', value: 'b' }] }))
      .map((row) => row.id + row.t).sort(),
    items.filter((item) => item.tenant === 'b').flatMap((item) => item.tags.map((tag) => item.id + tag)).sort(),
  );
  assert.equal((await all(container, 'SELECT * FROM c')).length, items.length);
  assert.deepEqual(await all(container, 'SELECT VALUE 1'), [1]);
});

test('ORDER BY, TOP, OFFSET and LIMIT hold across partitions and pages', async (t) => {
  const { container } = await shop(t, {}, many);
  const items = await orders(container);
  const sorted = items.map((item) => item.n).sort((a, b) => a - b);
  assert.deepEqual(await all(container, 'SELECT VALUE c.n FROM c ORDER BY c.n'), sorted);
  assert.deepEqual(await all(container, 'SELECT VALUE c.n FROM c ORDER BY c.n DESC'), sorted.toReversed());
  assert.deepEqual(await all(container, 'SELECT TOP 7 VALUE c.n FROM c ORDER BY c.n'), sorted.slice(0, 7));
  assert.deepEqual(await all(container, 'SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 8'), sorted.slice(5, 13));
  assert.equal((await all(container, 'SELECT TOP 11 * FROM c')).length, 11);
  assert.equal((await all(container, 'SELECT * FROM c OFFSET 30 LIMIT 30')).length, 10);
});

test('DISTINCT, GROUP BY and aggregates are computed over all partitions', async (t) => {
  const { container } = await shop(t, {}, many);
  const items = await orders(container);
  assert.deepEqual((await all(container, 'SELECT DISTINCT VALUE c.tenant FROM c')).sort(), tenants);
  const groups = await all(container, 'SELECT c.kind, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.kind');
  const expected = ['x', 'y', 'z', null].map((kind) => {
    const of = items.filter((item) => item.kind === kind);
    return { kind, n: of.length, s: of.reduce((sum, item) => sum + item.n, 0) };
  });
  const byKind = (a, b) => String(a.kind).localeCompare(String(b.kind));
  assert.deepEqual(groups.sort(byKind), expected.sort(byKind));
  assert.deepEqual(await all(container, 'SELECT VALUE COUNT(1) FROM c'), [40]);
  assert.deepEqual(await all(container, 'SELECT VALUE SUM(c.n) FROM c'), [780]);
  assert.deepEqual(await all(container, 'SELECT VALUE AVG(c.n) FROM c'), [19.5]);
  assert.deepEqual(await all(container, 'SELECT MIN(c.n) AS a, MAX(c.n) AS b FROM c'), [{ a: 0, b: 39 }]);
  assert.deepEqual(await all(container, 'SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.kind FROM c)'), [4]);
  assert.deepEqual(await all(container, 'SELECT VALUE SUM(c.none) FROM c'), []);
});

test('GROUP BY with ORDER BY is merged by the server, whole and in pages', async (t) => {
  const { container } = await shop(t, {}, many);
  const items = await orders(container);
  const counts = tenants.map((tenant) => ({ tenant, n: items.filter((item) => item.tenant === tenant).length }));
  const expected = counts.sort((a, b) => b.n - a.n || (a.tenant < b.tenant ? 1 : -1));
  const query = 'SELECT c.tenant, COUNT(1) AS n FROM c GROUP BY c.tenant ORDER BY COUNT(1) DESC, c.tenant DESC';
  assert.deepEqual(await all(container, query), expected);
  assert.deepEqual(await all(container, query, { maxItemCount: 2 }), expected);
  assert.deepEqual(await all(container, `${query} OFFSET 1 LIMIT 3`, { maxItemCount: 2 }), expected.slice(1, 4));
});

test('a client that merges partitions itself gets the same rows from the plan', async (t) => {
  const { container } = await shop(t, {}, many);
  const items = await orders(container);
  const planned = (query) => all(container, query, { maxItemCount: 3, forceQueryPlan: true });
  const sorted = items.map((item) => item.n).sort((a, b) => a - b);
  assert.deepEqual(await planned('SELECT VALUE c.n FROM c ORDER BY c.n'), sorted);
  assert.deepEqual(await planned('SELECT VALUE c.n FROM c WHERE c.n > 9 ORDER BY c.n DESC'), sorted.filter((n) => n > 9).reverse());
  assert.deepEqual(await planned('SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n'), sorted.slice(0, 4));
  assert.deepEqual(await planned('SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 5'), sorted.slice(3, 8));
  assert.deepEqual((await planned('SELECT DISTINCT VALUE c.tenant FROM c')).sort(), tenants);
  assert.deepEqual(await planned('SELECT VALUE COUNT(1) FROM c'), [40]);
  assert.deepEqual(await planned('SELECT VALUE AVG(c.n) FROM c'), [19.5]);
  assert.deepEqual(await planned('SELECT VALUE MAX(c.n) FROM c'), [39]);
  assert.deepEqual(
    (await planned('SELECT c.tenant, COUNT(1) AS n FROM c GROUP BY c.tenant')).sort((a, b) => a.tenant.localeCompare(b.tenant)),
    tenants.map((tenant) => ({ tenant, n: items.filter((item) => item.tenant === tenant).length })),
  );
  assert.equal((await planned('SELECT * FROM c')).length, 40);
});

// Pages are asked for as a user does, up to a bound that no right number of pages comes near.
async function paged(pages) {
  const rows = [];
  let count = 0;
  for (; pages.hasMoreResults(); count++) {
    assert.ok(count < 500, 'pages without end');
    rows.push(...((await pages.fetchNext()).resources ?? []));
  }
  return { rows, count };
}

test('every mode of the library comes to an end, with pages that are filled exactly too', async (t) => {
  const requests = { count: 0 };
  const plugins = [{ on: 'request', plugin: (context, node, next) => (requests.count++, next(context)) }];
  const { container } = await shop(t, {}, { ...many, client: { plugins } });
  const items = await orders(container);
  const sorted = items.map((item) => item.n).sort((a, b) => a - b);
  const shapes = [
    ['SELECT VALUE c.n FROM c', sorted],
    ['SELECT VALUE c.n FROM c ORDER BY c.n', sorted],
    ['SELECT VALUE c.n FROM c ORDER BY c.n DESC', sorted.toReversed()],
    ['SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n', sorted.slice(0, 10)],
    ['SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 20', sorted.slice(5, 25)],
    ['SELECT DISTINCT VALUE c.tenant FROM c', tenants],
    ['SELECT VALUE SUM(c.n) FROM c', [780]],
    ['SELECT VALUE COUNT(1) FROM c GROUP BY c.tenant', [5, 5, 6, 6, 6, 6, 6]],
    ['SELECT VALUE c.n FROM c WHERE c.n < 0', []],
  ];
  for (const [query, expected] of shapes)
    for (const mode of [{}, { forceQueryPlan: true }, { enableQueryControl: true }, { forceQueryPlan: true, enableQueryControl: true }])
      for (const maxItemCount of [1, 5, 40]) {
        const context = `${query} ${JSON.stringify({ ...mode, maxItemCount })}`;
        requests.count = 0;
        const { rows, count } = await paged(container.items.query(query, { ...mode, maxItemCount }));
        assert.deepEqual(query.includes('ORDER BY') ? rows : rows.sort((a, b) => (a > b) - (a < b)), expected, context);
        if (query === 'SELECT VALUE c.n FROM c' && !mode.forceQueryPlan) assert.equal(count, 40 / maxItemCount, context);
        assert.ok(requests.count <= 150, `${context}: ${requests.count} requests for ${count} pages`);
      }
});

test('a query of one partition key stays in it', async (t) => {
  const { container } = await shop(t, {}, many);
  const items = await orders(container);
  const rows = await all(container, 'SELECT VALUE c.id FROM c', { partitionKey: 'c', maxItemCount: 2 });
  assert.deepEqual(rows.sort(), items.filter((item) => item.tenant === 'c').map((item) => item.id).sort());
  const { resources } = await container.items.query('SELECT VALUE COUNT(1) FROM c', { partitionKey: 'none' }).fetchAll();
  assert.deepEqual(resources, [0]);
});

// One page in a process of its own, which knows nothing but the continuation.
async function pageElsewhere(server, query, continuationToken) {
  const program = `
    import { CosmosClient } from '@azure/cosmos';
    const [endpoint, key, query, continuationToken] = process.argv.slice(1);
    const client = new CosmosClient({ endpoint, key });
    const iterator = client.database('shop').container('orders').items
      .query(query, { maxItemCount: 4, continuationToken: continuationToken || undefined });
    const page = await iterator.fetchNext();
    console.log(JSON.stringify({ rows: page.resources, next: page.continuationToken }));
    client.dispose();`;
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', program, server.url, emulatorKey, query, continuationToken ?? ''],
    { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let out = '';
  child.stdout.on('data', (bytes) => (out += bytes));
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  return JSON.parse(out);
}

test('a continuation goes on in another process, and after a restart of the server', async (t) => {
  const data = scratch(t);
  // What the library merges itself has no continuation: docs/queries.md says which those are.
  const args = ['--dev', '--node', `local=rocksdb:${data}`, '--set', 'query.merge=server'];
  let server = await Server.start(t, args);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' }, { offerThroughput: 50_000 });
  const items = await orders(container, 18);
  const sorted = items.map((item) => item.n).sort((a, b) => a - b);
  const queries = {
    'SELECT VALUE c.n FROM c ORDER BY c.n': sorted,
    'SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 9': sorted.toReversed().slice(2, 11),
    'SELECT DISTINCT VALUE c.tenant FROM c': tenants,
    'SELECT VALUE COUNT(1) FROM c GROUP BY c.tenant': [2, 2, 2, 3, 3, 3, 3],
    'SELECT VALUE t FROM c JOIN t IN c.tags': items.flatMap((item) => item.tags).sort(),
  };
  const pages = {};
  for (const query of Object.keys(queries)) pages[query] = await pageElsewhere(server, query);
  server.process.kill('SIGTERM');
  await server.ended;
  server = await Server.start(t, args);
  for (const [query, expected] of Object.entries(queries)) {
    const rows = [...pages[query].rows];
    for (let { next } = pages[query]; next; ) {
      const page = await pageElsewhere(server, query, next);
      rows.push(...(page.rows ?? []));
      next = page.next;
    }
    assert.deepEqual(query.includes('ORDER BY') ? rows : rows.sort(), expected, query);
  }
});

test('a fault comes in the words of the service', async (t) => {
  const { container } = await shop(t);
  const fails = async (query, ...parts) => {
    await assert.rejects(all(container, query), (err) => {
      assert.equal(err.code, 400);
      for (const part of parts) assert.ok(err.message.includes(part), `${err.message} has no ${part}`);
      return true;
    });
  };
  await fails('SELECT VALUE BADFUNC(c.a) FROM c', 'SC2005', "'BADFUNC' is not a recognized built-in function name.");
  await fails('SELECT FROM c', 'SC1001');
  await fails('SELECT * FROM c WHERE d.x = 1', 'SC2001', "Identifier 'd' could not be resolved.");
  await fails('SELECT * FROM c ORDER BY c.a, c.b', 'The order by query does not have a corresponding composite index that it can be served from.');
});

test('figures of a query are given where they are asked for', async (t) => {
  const { container } = await shop(t, {}, many);
  await orders(container);
  const page = await container.items
    .query('SELECT * FROM c WHERE c.n < 5', { populateQueryMetrics: true, populateIndexMetrics: true, maxItemCount: 100 })
    .fetchAll();
  assert.equal(page.resources.length, 5);
  assert.ok(page.requestCharge > 0);
  const metrics = page.queryMetrics ?? '';
  assert.ok(JSON.stringify(metrics).includes('outputDocumentCount') || metrics.includes('outputDocumentCount=5'), JSON.stringify(metrics));
  assert.ok(JSON.stringify(page.indexMetrics).includes('/n/?'), JSON.stringify(page.indexMetrics));
});

test('computed properties are used by name', async (t) => {
  const { container, database } = await shop(t, { computedProperties: [{ name: 'cp_twice', query: 'SELECT VALUE c.n * 2 FROM c' }] }, many);
  await orders(container);
  assert.deepEqual((await all(container, 'SELECT VALUE c.cp_twice FROM c WHERE c.cp_twice > 74')).sort(), [76, 78]);
  const [item] = await all(container, 'SELECT * FROM c WHERE c.n = 1');
  assert.equal(item.cp_twice, undefined);
  const bad = [{ name: 'cp_bad', query: 'SELECT VALUE COUNT(1) FROM c' }];
  await assert.rejects(database.containers.create({ id: 'bad', partitionKey: '/x', computedProperties: bad }), { code: 400 });
});
