// Queries as clients other than the JavaScript one send them, by hand.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';

const queryHeaders = { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json' };
const across = { ...queryHeaders, 'x-ms-documentdb-query-enablecrosspartition': 'true' };

async function filled(t) {
  const at = await shop(t, {}, { create: { offerThroughput: 50_000 } });
  for (let i = 0; i < 12; i++) await at.container.items.create({ id: `i${i}`, tenant: `t${i % 4}`, n: i });
  const ask = (query, headers = across, rest = {}) =>
    at.send('POST', at.docs, { headers, body: typeof query === 'string' ? { query } : query, ...rest });
  return { ...at, ask };
}

test('a query across partitions needs leave, a key or a filter that names one', async (t) => {
  const { ask } = await filled(t);
  const refused = await ask('SELECT * FROM c', queryHeaders);
  assert.equal(refused.status, 400);
  assert.match(refused.json.message, /Cross partition query is required but disabled/);
  assert.equal((await ask('SELECT * FROM c', across)).json._count, 12);
  assert.equal((await ask('SELECT * FROM c', queryHeaders, { key: ['t1'] })).json._count, 3);
  assert.equal((await ask("SELECT * FROM c WHERE c.tenant = 't1'", queryHeaders)).json._count, 3);
});

test('a query of one range gives what lies in it, and an unknown range is gone', async (t) => {
  const { ask, server, send } = await filled(t);
  const ranges = await send('GET', '/dbs/shop/colls/orders/pkranges');
  let count = 0;
  for (const range of ranges.json.PartitionKeyRanges) {
    const { json, headers } = await ask('SELECT VALUE c.n FROM c', { ...queryHeaders, 'x-ms-documentdb-partitionkeyrangeid': range.id });
    assert.equal(Number(headers['x-ms-item-count']), json._count);
    count += json._count;
  }
  assert.ok(ranges.json.PartitionKeyRanges.length > 1 && server);
  assert.equal(count, 12);
  const gone = await ask('SELECT * FROM c', { ...queryHeaders, 'x-ms-documentdb-partitionkeyrangeid': '999' });
  assert.equal(gone.status, 410);
  assert.equal(gone.headers['x-ms-substatus'], '1002');
});

const ridNumber = (rid) => Buffer.from(rid.replaceAll('-', '/'), 'base64').readBigUInt64LE(8) & ((1n << 60n) - 1n);
const paged = { ...across, 'x-ms-max-item-count': '2' };

test('a continuation belongs to its query, its parameters and its key', async (t) => {
  const { ask } = await filled(t);
  for (const query of ['SELECT VALUE c.n FROM c', 'SELECT DISTINCT VALUE c.n FROM c', 'SELECT VALUE MAX(c.n) FROM c GROUP BY c.n']) {
    const where = (at) => ({ query: query.replace('FROM c', 'FROM c WHERE c.n >= @n'), parameters: [{ name: '@n', value: at }] });
    const first = await ask(where(0), paged);
    const go = (body, headers = {}, rest = {}) =>
      ask(body, { ...paged, 'x-ms-continuation': first.headers['x-ms-continuation'], ...headers }, rest);
    assert.equal((await go(where(0))).json._count, 2, query);
    assert.equal((await go(where(1))).status, 400, query);
    assert.equal((await go(query)).status, 400, query);
    assert.equal((await go(where(0), {}, { key: ['t1'] })).status, 400, query);
  }
});

test('a continuation of an order belongs to FROM, SELECT and ORDER BY', async (t) => {
  const { ask, send, docs } = await filled(t);
  const ordered = 'SELECT VALUE c.n FROM c ORDER BY c.n';
  const first = await ask(ordered, paged);
  const next = first.headers['x-ms-continuation'];
  assert.deepEqual(first.json.Documents, [0, 1]);
  const [{ token, range }, ...others] = JSON.parse(next);
  assert.deepEqual([range, others], [{ min: '', max: 'FF' }, []]);
  assert.ok(next.length <= 1024);
  const go = (query, headers = {}, rest = {}) => ask(query, { ...paged, 'x-ms-continuation': next, ...headers }, rest);
  const rows = async (...args) => (await go(...args)).json.Documents;
  assert.deepEqual(await rows(ordered), [2, 3]);
  assert.deepEqual(await rows(ordered, { 'x-ms-continuation': token }), [2, 3]);
  assert.deepEqual(await rows('SELECT VALUE c.n FROM c WHERE ((c.n >= 4)) ORDER BY c.n'), [4, 5]);
  assert.deepEqual(await rows({ query: 'SELECT VALUE c.n FROM c WHERE c.n > @n ORDER BY c.n', parameters: [{ name: '@n', value: 0 }] }), [2, 3]);
  assert.deepEqual(await rows(ordered, {}, { key: ['t1'] }), [5, 9]);
  for (const other of [
    'SELECT VALUE c.n FROM c ORDER BY c.n DESC',
    'SELECT VALUE c.id FROM c ORDER BY c.n',
    'SELECT VALUE c.n FROM c ORDER BY c.id',
    'SELECT VALUE c.n FROM c JOIN t IN c.tags ORDER BY c.n',
    'SELECT VALUE c.n FROM c',
  ])
    assert.equal((await go(other)).status, 400, other);
  const forged = [`${token.slice(0, -6)}AAAAAA`, '[]', '[{"token":1,"range":{}}]', '[{', `[${next.slice(1, -1)},${next.slice(1, -1)}]`];
  for (const text of forged)
    assert.equal((await go(ordered, { 'x-ms-continuation': text })).status, 400, text);
  await send('POST', '/dbs/shop/colls', { body: { id: 'others', partitionKey: { paths: ['/tenant'], kind: 'Hash' } } });
  const elsewhere = await send('POST', docs.replace('orders', 'others'), { headers: { ...paged, 'x-ms-continuation': next }, body: { query: ordered } });
  assert.equal(elsewhere.status, 400);
});

test('a continuation got with bounds of keys goes on with the key, and the other way round', async (t) => {
  const { ask, send } = await filled(t);
  for (let i = 12; i < 30; i++) await send('POST', '/dbs/shop/colls/orders/docs', { key: ['t1'], body: { id: `i${i}`, tenant: 't1', n: 5 } });
  const ordered = 'SELECT VALUE c.id FROM c ORDER BY c.n';
  const plan = await ask("SELECT * FROM c WHERE c.tenant = 't1'", { ...queryHeaders, 'x-ms-cosmos-is-query-plan-request': 'True' });
  const { min } = plan.json.queryRanges[0];
  const bounds = { ...paged, 'x-ms-start-epk': min, 'x-ms-end-epk': `${min}FF`, 'x-ms-read-key-type': 'EffectivePartitionKeyRange' };
  const expected = (await ask(ordered, across, { key: ['t1'] })).json.Documents;
  assert.equal(expected.length, 21);
  for (const byKey of [0, 1]) {
    const rows = [];
    let next;
    for (let page = 0; page === 0 || next; page++) {
      const headers = next ? { 'x-ms-continuation': next } : {};
      const { json, headers: answer } = page % 2 === byKey
        ? await ask(ordered, { ...bounds, ...headers })
        : await ask(ordered, { ...paged, ...headers }, { key: ['t1'] });
      rows.push(...json.Documents);
      next = answer['x-ms-continuation'];
    }
    assert.deepEqual(rows, expected);
  }
});

test('a full page has a continuation only where there is more', async (t) => {
  const { ask, send } = await filled(t);
  const ranges = (await send('GET', '/dbs/shop/colls/orders/pkranges')).json.PartitionKeyRanges.map(({ id }) => id);
  const targets = [[across, {}], [across, { key: ['t1'] }], ...ranges.map((id) => [{ ...queryHeaders, 'x-ms-documentdb-partitionkeyrangeid': id }, {}])];
  const queries = [
    'SELECT VALUE c.n FROM c', 'SELECT VALUE c.n FROM c WHERE c.n < 7', 'SELECT VALUE c.n FROM c ORDER BY c.n', 'SELECT VALUE c.n FROM c ORDER BY c.n DESC',
    'SELECT TOP 4 VALUE c.n FROM c', 'SELECT TOP 4 VALUE c.n FROM c ORDER BY c.n', 'SELECT VALUE c.n FROM c OFFSET 1 LIMIT 3',
    'SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 20', 'SELECT DISTINCT VALUE c.tenant FROM c', 'SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n',
    'SELECT VALUE COUNT(1) FROM c GROUP BY c.n', 'SELECT VALUE MAX(c.n > 5 ? c.n : undefined) FROM c GROUP BY c.n', 'SELECT VALUE MAX(c.n) FROM c', 'SELECT VALUE x FROM c JOIN x IN (SELECT VALUE [1, 2, 3])',
    'SELECT VALUE c.none FROM c', 'SELECT VALUE 1',
  ];
  for (const query of queries)
    for (const [headers, rest] of targets) {
      const { status, json } = await ask(query, { ...headers, 'x-ms-max-item-count': '1000' }, rest);
      assert.equal(status, 200, `${query}: ${json.message}`);
      const whole = json.Documents;
      for (const size of [1, 2, 3, Math.max(whole.length, 1)]) {
        const rows = [];
        let next, pages = 0;
        do {
          const answer = await ask(query, { ...headers, 'x-ms-max-item-count': String(size), ...(next ? { 'x-ms-continuation': next } : {}) }, rest);
          rows.push(...answer.json.Documents);
          next = answer.headers['x-ms-continuation'];
          pages++;
        } while (next);
        assert.deepEqual(rows, whole, query);
        assert.equal(pages, Math.max(Math.ceil(whole.length / size), 1), `${query}: pages of ${size} of ${whole.length}`);
      }
    }
});

async function pagesOf(ask, query, headers, size, first) {
  const pages = [];
  let next = first;
  do {
    const answer = await ask(query, { ...headers, 'x-ms-max-item-count': String(size), ...(next ? { 'x-ms-continuation': next } : {}) });
    assert.equal(answer.status, 200, `${query}: ${answer.text}`);
    pages.push(answer.json.Documents);
    next = answer.headers['x-ms-continuation'];
  } while (next);
  return pages;
}

test('values that an index has cut make no page short or empty', async (t) => {
  const { ask, send, docs } = await filled(t);
  for (let i = 0; i < 24; i++)
    await send('POST', docs, { key: [`u${i % 5}`], body: { id: `u${i}`, tenant: `u${i % 5}`, v: i < 6 ? `s${i}` : `${'x'.repeat(300)}${i % 7}` } });
  for (const filter of ['', 'WHERE LENGTH(c.v) < 5', 'WHERE LENGTH(c.v) > 5', 'WHERE c.v = "none"'])
    for (const order of ['c.v', 'c.v DESC']) {
      const query = `SELECT c.id, c.v FROM c ${filter} ORDER BY ${order}`;
      const [whole, ...none] = await pagesOf(ask, query, across, 100);
      assert.equal(none.length, 0, query);
      const by = (a, b) => (a.v < b.v ? -1 : a.v > b.v) * (order === 'c.v' ? 1 : -1);
      assert.deepEqual(whole.map((row) => row.v), whole.toSorted(by).map((row) => row.v));
      for (const size of [1, 5, 6, 7, whole.length || 1]) {
        const pages = await pagesOf(ask, query, across, size);
        assert.deepEqual(pages.flat(), whole, query);
        assert.equal(pages.length, Math.max(Math.ceil(whole.length / size), 1), `${query}: pages of ${size}`);
      }
    }
});

test('a continuation goes on in both halves of a range that has split, each with its own rows', async (t) => {
  const { container, send, docs } = await shop(t, { indexingPolicy: { includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/raw/*' }] } });
  const ask = (query, headers) => send('POST', docs, { headers: { ...headers, 'x-ms-documentdb-query-enable-scan': 'true' }, body: { query } });
  for (let i = 0; i < 60; i++) await container.items.create({ id: `i${i}`, tenant: `t${i % 20}`, n: i % 7, raw: i % 4 });
  const ranges = async () => (await send('GET', '/dbs/shop/colls/orders/pkranges')).json.PartitionKeyRanges.map(({ id }) => id);
  const of = (id) => ({ ...queryHeaders, 'x-ms-documentdb-partitionkeyrangeid': id });
  const queries = [
    'SELECT VALUE c.id FROM c', 'SELECT VALUE c.id FROM c WHERE CONTAINS(c.id, "i")', 'SELECT VALUE c.id FROM c ORDER BY c.n', 'SELECT VALUE c.id FROM c ORDER BY c.raw',
    'SELECT DISTINCT VALUE c.id FROM c', 'SELECT VALUE MAX(c.id) FROM c GROUP BY c.id',
  ];
  const [whole] = await ranges();
  const begun = new Map();
  for (const query of queries) begun.set(query, await ask(query, { ...of(whole), 'x-ms-max-item-count': '10' }));
  assert.equal((await send('POST', `/_orrery/containers/shop/orders/partitions/${whole}/split`)).status, 202);
  let halves;
  do halves = await ranges();
  while (halves.length < 2);
  for (const query of queries) {
    const rows = [...begun.get(query).json.Documents];
    for (const id of halves) rows.push(...(await pagesOf(ask, query, of(id), 10, begun.get(query).headers['x-ms-continuation'])).flat());
    assert.equal(rows.length, 60, query);
    assert.equal(new Set(rows).size, 60, query);
  }
  // Python would begin the range again: the halves answer for what it has begun, and for nothing else.
  const python = { ...of(whole), 'user-agent': 'azsdk-python-cosmos/4.16.4 Python/3.11.2 (Linux)', 'x-ms-documentdb-query-enablecrosspartition': 'true' };
  assert.equal((await ask(queries[2], python)).status, 410);
  for (const query of queries) {
    const { json, headers } = begun.get(query);
    const rows = [...json.Documents, ...(await pagesOf(ask, query, python, 10, headers['x-ms-continuation'])).flat()];
    assert.deepEqual([rows.length, new Set(rows).size], [60, 60], query);
  }
});

test('equal values of an order come by _rid, upwards and downwards', async (t) => {
  const { ask, send, docs } = await filled(t);
  for (let i = 0; i < 40; i++) await send('POST', docs, { key: [`u${i % 9}`], body: { id: `u${i}`, tenant: `u${i % 9}`, n: i % 2 } });
  for (const { id } of (await send('GET', '/dbs/shop/colls/orders/pkranges')).json.PartitionKeyRanges)
    for (const direction of ['ASC', 'DESC']) {
      const rows = [];
      let next;
      do {
        const { json, headers } = await ask(`SELECT c.n, c._rid FROM c ORDER BY c.n ${direction}`, {
          ...queryHeaders, 'x-ms-documentdb-partitionkeyrangeid': id, 'x-ms-max-item-count': '3', ...(next ? { 'x-ms-continuation': next } : {}),
        });
        rows.push(...json.Documents);
        next = headers['x-ms-continuation'];
      } while (next);
      const sorted = rows.toSorted((a, b) => (direction === 'ASC' ? a.n - b.n : b.n - a.n) || (ridNumber(a._rid) < ridNumber(b._rid) ? -1 : 1));
      assert.deepEqual(rows, sorted);
    }
});

test('lists are collected in the order of _rid', async (t) => {
  const { ask, send, docs } = await filled(t);
  for (let i = 0; i < 30; i++) await send('POST', docs, { key: [`u${i % 11}`], body: { id: `u${i}`, tenant: `u${i % 11}`, n: i % 2 } });
  for (const { id } of (await send('GET', '/dbs/shop/colls/orders/pkranges')).json.PartitionKeyRanges)
    for (const filter of ['', ' WHERE c.n < 2']) {
      const range = { ...queryHeaders, 'x-ms-documentdb-partitionkeyrangeid': id, 'x-ms-max-item-count': '1000' };
      const [list] = (await ask(`SELECT VALUE MAKELIST(c._rid) FROM c${filter}`, range)).json.Documents;
      assert.deepEqual(list, list.toSorted((a, b) => (ridNumber(a) < ridNumber(b) ? -1 : 1)));
    }
});

test('libraries that merge are told to, everybody else gets rows', async (t) => {
  const { ask, send } = await filled(t);
  const { id } = (await send('GET', '/dbs/shop/colls/orders/pkranges')).json.PartitionKeyRanges[0];
  const merged = ['SELECT * FROM c ORDER BY c.n', 'SELECT TOP 3 * FROM c', 'SELECT * FROM c OFFSET 1 LIMIT 2', 'SELECT DISTINCT c.n FROM c', 'SELECT VALUE COUNT(1) FROM c'];
  const groups = ['SELECT c.tenant, COUNT(1) AS n FROM c GROUP BY c.tenant', 'SELECT COUNT(1) AS n, MAX(c.n) AS m FROM c'];
  const left = async (query, agent, headers = {}, rest = {}) => {
    const answer = await ask(query, { ...across, 'user-agent': agent, ...headers }, rest);
    if (answer.status === 200) return false;
    assert.deepEqual([answer.status, answer.headers['x-ms-substatus']], [400, '1004'], query);
    assert.ok(JSON.parse(answer.json.additionalErrorInfo).queryInfo);
    return true;
  };
  const js = 'Node.js/20.0.0 (linux; x64) azure-cosmos-js/4.4.1 suffix';
  const python = 'azsdk-python-cosmos/4.16.4 Python/3.11.2 (Linux)', aio = 'azsdk-python-cosmos-async/4.16.4 Python/3.11.2 (Linux)';
  for (const query of merged) {
    for (const agent of [js, python, aio]) assert.ok(await left(query, agent), `${query} of ${agent}`);
    for (const agent of ['azsdk-go-azcosmos/v1.0.0', 'curl/8', 'my-azure-cosmos-js/4']) assert.ok(!(await left(query, agent)), `${query} of ${agent}`);
    assert.ok(await left(query, 'Mozilla/5.0', { 'x-ms-useragent': js }));
    assert.ok(!(await left(query, js, {}, { key: ['t1'] })));
    assert.ok(!(await left(query.replace(/ FROM c/, "$& WHERE c.tenant = 't1'"), js)));
    assert.ok(!(await left(query, js, { 'x-ms-documentdb-partitionkeyrangeid': id })));
  }
  for (const query of groups) {
    assert.ok(await left(query, js));
    assert.ok(!(await left(query, python)));
  }
  // JavaScript lists it, but would show the count of one range.
  assert.ok(!(await left('SELECT VALUE COUNTIF(c.n > 3) FROM c', js)));
  assert.ok(await left('SELECT VALUE COUNTIF(c.n > 3) FROM c', python));
  for (const query of ['SELECT * FROM c', 'SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n > 3', 'SELECT VALUE 1', 'SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.n FROM c)'])
    assert.ok(!(await left(query, js)), query);
});

test('query.merge says for all who merges', async (t) => {
  for (const [merge, agent, status] of [['server', 'azure-cosmos-js/4.4.1', 200], ['client', 'curl/8', 400]]) {
    const { send, docs } = await shop(t, {}, { create: { offerThroughput: 50_000 }, args: ['--set', `query.merge=${merge}`] });
    const answer = await send('POST', docs, { headers: { ...across, 'user-agent': agent }, body: { query: 'SELECT * FROM c ORDER BY c.n' } });
    assert.equal(answer.status, status);
  }
});

test('an order by a path without an index is refused unless that is allowed', async (t) => {
  const definition = { indexingPolicy: { includedPaths: [{ path: '/*' }], excludedPaths: [{ path: '/secret/*' }] } };
  const ordered = { query: 'SELECT VALUE c.secret FROM c ORDER BY c.secret' };
  const scan = { 'x-ms-documentdb-query-enable-scan': 'true' };
  for (const [args, headers, status] of [[[], {}, 400], [[], scan, 200], [[], { 'x-ms-documentdb-force-query-scan': 'true' }, 200], [['--set', 'query.order_unindexed=true'], {}, 200]]) {
    const { send, docs } = await shop(t, definition, { args });
    for (const n of [3, 1, 2]) await send('POST', docs, { key: ['a'], body: { id: String(n), tenant: 'a', secret: n } });
    const answer = await send('POST', docs, { headers: { ...across, ...headers }, body: ordered });
    assert.equal(answer.status, status);
    if (status === 400) assert.match(answer.json.message, /The index path corresponding to the specified order-by item is excluded/);
    else assert.deepEqual(answer.json.Documents, [1, 2, 3]);
  }
});

test('system properties have the order of the service: all but _etag, which every policy excludes', async (t) => {
  const some = { includedPaths: [{ path: '/n/?' }], excludedPaths: [{ path: '/*' }] };
  for (const [indexingPolicy, allowed, refused] of [
    [undefined, ['_ts', '_rid', '_self', 'id'], ['_etag']],
    [some, ['_ts', 'id', 'n'], ['_rid', '_self', '_etag', 'm']],
    [{ indexingMode: 'none', automatic: false }, ['_ts', 'id'], ['_rid', 'n']],
  ]) {
    const { send, docs } = await shop(t, indexingPolicy ? { indexingPolicy } : {});
    for (const n of [3, 1, 2]) await send('POST', docs, { key: ['a'], body: { id: String(n), tenant: 'a', n, m: n } });
    const order = async (path, way) =>
      send('POST', docs, { headers: across, body: { query: `SELECT c.id, c.${path} AS v FROM c ORDER BY c.${path}${way}` } });
    for (const path of allowed)
      for (const way of ['', ' DESC']) {
        const { status, json } = await order(path, way);
        assert.equal(status, 200, path + way);
        const values = json.Documents.map(({ v }) => v);
        const sorted = values.toSorted((a, b) => (a < b ? -1 : Number(a > b)));
        assert.deepEqual(values, way ? sorted.reverse() : sorted);
        assert.equal(values.length, 3);
      }
    for (const path of refused) assert.equal((await order(path, '')).status, 400, path);
  }
});

test('a plan says how to merge, and its rewritten query runs', async (t) => {
  const { ask } = await filled(t);
  const planning = { ...queryHeaders, 'x-ms-cosmos-is-query-plan-request': 'True',
    'x-ms-cosmos-supported-query-features': 'Aggregate, Distinct, OrderBy, MultipleOrderBy, OffsetAndLimit, Top, GroupBy, NonValueAggregate, CompositeAggregate, MultipleAggregates' };
  const plan = await ask('SELECT * FROM c ORDER BY c.n', planning);
  assert.equal(plan.status, 200);
  const info = plan.json.queryInfo;
  assert.deepEqual(info.orderBy, ['Ascending']);
  const rewritten = info.rewrittenQuery.replace('{documentdb-formattableorderbyquery-filter}', 'true');
  const rows = (await ask(rewritten)).json.Documents;
  assert.deepEqual(rows.map((row) => row.orderByItems[0].item), [...Array(12).keys()]);
  assert.equal(rows[0].payload.id, 'i0');
  assert.ok(rows[0]._rid);
  const refused = await ask('SELECT VALUE COUNT(1) FROM c', { ...planning, 'x-ms-cosmos-supported-query-features': 'OrderBy' });
  assert.equal(refused.status, 400);
  assert.match(refused.json.message, /does not support/);
});

test('bodies that are no queries are refused', async (t) => {
  const { ask } = await filled(t);
  for (const body of [{}, { query: 5 }, { query: 'SELECT 1', parameters: 1 }, { query: 'SELECT @p', parameters: [{ name: 'p', value: 1 }] }]) {
    const answer = await ask(body);
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.equal(answer.json.code, 'BadRequest');
  }
  const udf = await ask('SELECT VALUE udf.f(c) FROM c');
  assert.equal(udf.status, 400);
  assert.match(udf.json.message, /'udf.f'/);
  assert.equal((await ask('SELECT * FROM c', { ...across, 'x-ms-max-item-count': '0' })).status, 400);
});

test('metrics have no empty part, and both forms of index metrics are given', async (t) => {
  const { ask } = await filled(t);
  const plain = await ask('SELECT * FROM c WHERE c.n = 1');
  assert.equal(plain.headers['x-ms-documentdb-query-metrics'], undefined);
  assert.equal(plain.headers['x-ms-cosmos-index-utilization'], undefined);
  const { headers } = await ask('SELECT * FROM c WHERE c.n = 1', { ...across, 'x-ms-documentdb-populatequerymetrics': 'true', 'x-ms-cosmos-populateindexmetrics': 'true' });
  for (const part of headers['x-ms-documentdb-query-metrics'].split(';')) assert.match(part, /^\w+=[\d.]+$/);
  assert.match(headers['x-ms-documentdb-query-metrics'], /outputDocumentCount=1;/);
  const old = JSON.parse(Buffer.from(headers['x-ms-cosmos-index-utilization'], 'base64').toString());
  assert.equal(old.UtilizedSingleIndexes[0].IndexSpec, '/n/?');
  const second = await ask('SELECT * FROM c WHERE c.n = 1', { ...across, 'x-ms-cosmos-populateindexmetrics-v2': 'true' });
  const v2 = JSON.parse(decodeURIComponent(second.headers['x-ms-cosmos-index-utilization']));
  assert.deepEqual(v2.Utilized.SingleIndexes, [{ IndexSpec: '/n/?' }]);
  assert.deepEqual(v2.Potential, { SingleIndexes: [], CompositeIndexes: [] });
});

test('index metrics tell composite indexes that are used', async (t) => {
  const indexingPolicy = { compositeIndexes: [[{ path: '/a', order: 'ascending' }, { path: '/b', order: 'descending' }]] };
  const { container, docs, send } = await shop(t, { indexingPolicy });
  for (let i = 0; i < 30; i++) await container.items.create({ id: `i${i}`, tenant: 'x', a: i % 3, b: i % 7 });
  const indexes = async (query) => {
    const { headers } = await send('POST', docs, { headers: { ...across, 'x-ms-cosmos-populateindexmetrics-v2': 'true' }, body: { query } });
    return JSON.parse(decodeURIComponent(headers['x-ms-cosmos-index-utilization']));
  };
  assert.deepEqual((await indexes('SELECT * FROM c ORDER BY c.a, c.b DESC')).Utilized.CompositeIndexes, [{ IndexSpecs: ['/a ASC', '/b DESC'] }]);
});

test('a patch is applied only if its condition holds', async (t) => {
  const { docs, send, container } = await filled(t);
  const patch = (condition) =>
    send('PATCH', `${docs}/i5`, { key: ['t1'], body: { operations: [{ op: 'incr', path: '/n', value: 1 }], condition } });
  assert.equal((await patch('from c where c.n = 5 and STARTSWITH(c.tenant, "t")')).status, 200);
  const refused = await patch('from c where c.n = 5');
  assert.equal(refused.status, 412);
  assert.equal(refused.headers['x-ms-substatus'], '1110');
  const bad = await patch('where c.n = 5');
  assert.equal(bad.status, 400);
  assert.match(bad.json.message, /SC1001/);
  assert.equal((await container.item('i5', 't1').read()).resource.n, 6);
});

test('databases, containers and offers are queried like items', async (t) => {
  const { client, database } = await filled(t);
  await client.databases.create({ id: 'other' });
  await database.containers.create({ id: 'second', partitionKey: '/x' });
  const ids = async (iterator) => (await iterator.fetchAll()).resources;
  assert.deepEqual(await ids(client.databases.query("SELECT VALUE d.id FROM d WHERE d.id = 'other'")), ['other']);
  assert.deepEqual(
    await ids(database.containers.query({ query: 'SELECT VALUE r.id FROM root r WHERE STARTSWITH(r.id, @p)', parameters: [{ name: '@p', value: 'sec' }] })),
    ['second'],
  );
  const offers = await ids(client.offers.query('SELECT * FROM o WHERE o.content.offerThroughput = 50000'));
  assert.equal(offers.length, 1);
  await assert.rejects(ids(client.databases.query('SELECT WHERE')), /SC1001/);
});
