// User-defined functions in queries, through the vendor's own client.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';
import { failure, procedure } from './scripts.js';

/* global getContext */

async function filled(t, functions, { count = 60, ...options } = {}) {
  const made = await shop(t, { throughput: 30000 }, options); // three ranges
  for (const [id, body] of Object.entries(functions))
    await made.container.scripts.userDefinedFunctions.create({ id, body: body.toString() });
  const operations = Array.from({ length: count }, (_, n) => ({
    operationType: 'Create', resourceBody: { id: `i${n}`, tenant: `t${n % 12}`, n, name: `Item ${n}` },
  }));
  for (let at = 0; at < operations.length; at += 100) await made.container.items.bulk(operations.slice(at, at + 100));
  const all = async (query, feed = {}) => (await made.container.items.query(query, feed).fetchAll()).resources;
  return { ...made, all };
}

const tax = function (income) {
  if (income === undefined) throw 'no input';
  return income < 20 ? income * 0.1 : income < 40 ? income * 0.2 : income * 0.4;
};

test('a function works in WHERE and SELECT over several partitions', async (t) => {
  const { container, all } = await filled(t, { tax, even: (n) => n % 2 === 0 });
  assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, 3);
  const expected = Array.from({ length: 60 }, (_, n) => n).filter((n) => n % 2 === 0 && tax(n) > 8);
  const rows = await all('SELECT c.n, udf.tax(c.n) AS tax FROM c WHERE udf.even(c.n) AND udf.tax(c.n) > 8');
  assert.deepEqual(rows.map(({ n }) => n).sort((a, b) => a - b), expected);
  for (const row of rows) assert.equal(row.tax, tax(row.n));
  const ordered = await all('SELECT VALUE udf.tax(c.n) FROM c WHERE udf.even(c.n) ORDER BY c.n DESC');
  assert.deepEqual(ordered, Array.from({ length: 30 }, (_, i) => tax(58 - 2 * i)));
});

test('a function works under aggregates, groups, joins and in pages', async (t) => {
  const { all, container } = await filled(t, { half: (n) => n / 2, mod: (n, m) => n % m, pair: (x) => [x, x] });
  assert.deepEqual(await all('SELECT VALUE SUM(udf.half(c.n)) FROM c'), [885]);
  const groups = await all('SELECT udf.mod(c.n, 3) AS k, COUNT(1) AS n FROM c GROUP BY udf.mod(c.n, 3)');
  assert.deepEqual(groups.sort((a, b) => a.k - b.k), [{ k: 0, n: 20 }, { k: 1, n: 20 }, { k: 2, n: 20 }]);
  assert.equal((await all('SELECT VALUE udf.half(p) FROM c JOIN p IN (SELECT VALUE udf.pair(c.n))')).length, 120);
  const iterator = container.items.query('SELECT VALUE udf.half(udf.half(c.n)) FROM c WHERE udf.mod(c.n, 2) = 1', { maxItemCount: 7 });
  const paged = [];
  while (iterator.hasMoreResults()) paged.push(...((await iterator.fetchNext()).resources ?? []));
  assert.deepEqual(paged.sort((a, b) => a - b), Array.from({ length: 30 }, (_, i) => (2 * i + 1) / 4));
});

test('undefined goes in and comes out; any JSON does', async (t) => {
  const { all } = await filled(t, {
    type: (x) => typeof x, nothing: () => undefined, whole: (c) => ({ id: c.id, has: '_etag' in c, list: [c.n, null] }),
  }, { count: 1 });
  assert.deepEqual(await all('SELECT udf.type(c.none) AS t, udf.nothing() AS n FROM c'), [{ t: 'undefined' }]);
  assert.deepEqual(await all('SELECT VALUE udf.whole(c) FROM c'), [{ id: 'i0', has: true, list: [0, null] }]);
  assert.deepEqual(await all('SELECT VALUE udf.type(1)'), ['number']);
});

test('a function that is not there is named, and so is one that throws', async (t) => {
  const { all, container } = await filled(t, { tax, picky: (n) => { if (n === 7) throw new Error('not seven'); return true; } });
  const unknown = await failure(all('SELECT VALUE udf.none(c.n) FROM c'));
  assert.equal(unknown.code, 400);
  assert.match(unknown.message, /udf\.none/);
  const thrown = await failure(all('SELECT * FROM c WHERE udf.picky(c.n)'));
  assert.equal(thrown.code, 400);
  assert.match(thrown.message, /not seven/);
  // a row that never gets there does not fail
  assert.equal((await all('SELECT * FROM c WHERE c.n < 7 AND udf.picky(c.n)')).length, 7);
  assert.equal((await all('SELECT VALUE (c.n = 7 ? 0 : udf.picky(c.n)) FROM c')).length, 60);
  await container.scripts.userDefinedFunctions.create({ id: 'broken', body: 'function (' });
  assert.equal((await failure(all('SELECT VALUE udf.broken() FROM c'))).code, 400);
});

test('a replaced function counts at once', async (t) => {
  const { all, container } = await filled(t, { f: () => 1 }, { count: 3 });
  assert.deepEqual(await all('SELECT VALUE udf.f() FROM c'), [1, 1, 1]);
  await container.scripts.userDefinedFunction('f').replace({ id: 'f', body: '() => 2' });
  assert.deepEqual(await all('SELECT VALUE udf.f() FROM c'), [2, 2, 2]);
});

test('a function that loops ends its query with 408, and no other', async (t) => {
  const { all } = await filled(t, { loop: () => { for (;;); }, one: () => 1 }, { args: ['--set', 'script.time_ms=300ms'] });
  assert.equal((await failure(all('SELECT VALUE udf.loop() FROM c'))).code, 408);
  assert.equal((await all('SELECT VALUE udf.one() FROM c')).length, 60);
});

test('plans carry functions, and procedures query with them', async (t) => {
  const { container, send, docs } = await filled(t, { tax }, { count: 12 });
  const plan = await send('POST', docs, {
    body: { query: 'SELECT udf.tax(c.n) AS tax FROM c ORDER BY c.n' },
    headers: {
      'x-ms-cosmos-is-query-plan-request': 'True', 'content-type': 'application/query+json',
      'x-ms-cosmos-supported-query-features': 'Aggregate, OrderBy, MultipleOrderBy, Distinct, GroupBy, Top, OffsetAndLimit',
    },
  });
  assert.equal(plan.status, 200, plan.text);
  assert.match(plan.json.queryInfo.rewrittenQuery, /udf\.tax\(/);
  const asking = await procedure(container, 'asking', function () {
    const c = getContext().getCollection();
    c.queryDocuments(c.getSelfLink(), 'SELECT VALUE udf.tax(c.n) FROM c', (err, found) => {
      if (err) throw err;
      getContext().getResponse().setBody(found);
    });
  });
  const { resource } = await asking('t7');
  assert.equal(resource.length, 1);
  assert.equal(resource[0], tax(7));
});
