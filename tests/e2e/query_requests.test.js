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

test('a continuation belongs to its query, its parameters and its key', async (t) => {
  const { ask } = await filled(t);
  const paged = { ...across, 'x-ms-max-item-count': '2' };
  const first = await ask('SELECT VALUE c.n FROM c ORDER BY c.n', paged);
  const next = first.headers['x-ms-continuation'];
  assert.deepEqual(first.json.Documents, [0, 1]);
  assert.ok(next.length <= 1024);
  const go = (query, headers = {}, rest = {}) => ask(query, { ...paged, 'x-ms-continuation': next, ...headers }, rest);
  assert.deepEqual((await go('SELECT VALUE c.n FROM c ORDER BY c.n')).json.Documents, [2, 3]);
  assert.equal((await go('SELECT VALUE c.n FROM c ORDER BY c.n DESC')).status, 400);
  assert.equal((await go('SELECT VALUE c.n FROM c ORDER BY c.n', { 'x-ms-continuation': `${next.slice(0, -6)}AAAAAA` })).status, 400);
  assert.equal((await go('SELECT VALUE c.n FROM c ORDER BY c.n', {}, { key: ['t1'] })).status, 400);
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
