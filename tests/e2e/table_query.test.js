// Queries: order, pages, splits under a running pager, and what is refused.
import assert from 'node:assert/strict';
import test from 'node:test';
import { odata } from '@azure/data-tables';
import { signed } from './rest.js';
import { all, refusal, sendTable, tables } from './tables.js';

const ordinal = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const keyOf = (one) => `${one.partitionKey}\u0000${one.rowKey}`;

async function fill(table, partitions, rows, more = () => ({})) {
  for (let p = 0; p < partitions; p++)
    for (let r = 0; r < rows; r += 100)
      await table.submitTransaction(
        Array.from({ length: Math.min(100, rows - r) }, (_, n) => [
          'create', { partitionKey: `p${p}`, rowKey: `r${(r + n) * 7 % rows}`, number: r + n, ...more(r + n) },
        ]));
}

test('entities come in the order of their keys, whatever the page size', async (t) => {
  const { table } = await tables(t);
  await fill(table, 7, 20);
  const whole = await all(table.listEntities());
  assert.equal(whole.length, 140);
  const keys = whole.map(keyOf);
  assert.deepEqual(keys, [...keys].sort(ordinal));
  for (const maxPageSize of [1, 3, 50, 1000]) {
    const seen = [];
    let pages = 0;
    for await (const page of table.listEntities().byPage({ maxPageSize })) {
      assert.ok(page.length <= maxPageSize);
      seen.push(...page.map(keyOf));
      pages++;
    }
    assert.deepEqual(seen, keys, `pages of ${maxPageSize}`);
    assert.ok(pages >= 140 / maxPageSize);
  }
});

test('a continuation goes on after a restart of the pager, for its own query alone', async (t) => {
  const { server, table } = await tables(t);
  await fill(table, 2, 20);
  const filter = odata`number ge 5`;
  const first = await table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 10 }).next();
  const token = first.value.continuationToken;
  const rest = [];
  for await (const page of table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 10, continuationToken: token }))
    rest.push(...page);
  assert.equal(first.value.length + rest.length, 30);
  const { nextPartitionKey } = JSON.parse(Buffer.from(token, 'base64').toString());
  const other = await sendTable(server, 'GET', `/people()?$filter=number%20ge%206&NextPartitionKey=${nextPartitionKey}&NextRowKey=1`);
  assert.deepEqual([other.status, other.code], [400, 'InvalidInput']);
  const forged = await sendTable(server, 'GET', `/people()?NextPartitionKey=${'A'.repeat(60)}&NextRowKey=1`);
  assert.deepEqual([forged.status, forged.code], [400, 'InvalidInput']);
});

test('filters on keys, properties and both find what they say', async (t) => {
  const { table } = await tables(t);
  await fill(table, 5, 40, (n) => ({ even: n % 2 === 0, name: `name ${n % 10}` }));
  const whole = await all(table.listEntities());
  const check = async (filter, wanted) => {
    const found = await all(table.listEntities({ queryOptions: { filter } }));
    assert.deepEqual(found.map(keyOf), whole.filter(wanted).map(keyOf), filter);
  };
  await check(odata`PartitionKey eq 'p3'`, (one) => one.partitionKey === 'p3');
  await check(odata`PartitionKey eq 'p3' and RowKey eq 'r7'`, (one) => one.partitionKey === 'p3' && one.rowKey === 'r7');
  await check(odata`PartitionKey eq 'p3' and RowKey ge 'r1' and RowKey lt 'r2'`, (one) => one.partitionKey === 'p3' && one.rowKey >= 'r1' && one.rowKey < 'r2');
  await check(odata`PartitionKey gt 'p1' and PartitionKey le 'p3'`, (one) => one.partitionKey > 'p1' && one.partitionKey <= 'p3');
  await check(odata`RowKey eq 'r11'`, (one) => one.rowKey === 'r11');
  await check(odata`RowKey ge 'r3' and number lt 20`, (one) => one.rowKey >= 'r3' && one.number < 20);
  await check(odata`even and name eq 'name 4'`, (one) => one.even && one.name === 'name 4');
  await check(odata`not even or (PartitionKey eq 'p0' and number eq 2)`, (one) => !one.even || (one.partitionKey === 'p0' && one.number === 2));
  await check(odata`(PartitionKey eq 'p0' and RowKey eq 'r1') or (PartitionKey eq 'p4' and RowKey eq 'r2')`,
    (one) => (one.partitionKey === 'p0' && one.rowKey === 'r1') || (one.partitionKey === 'p4' && one.rowKey === 'r2'));
  await check(odata`PartitionKey eq 'p0' and PartitionKey eq 'p1'`, () => false);
  await check(odata`PartitionKey ne 'p0' and RowKey ne 'r0' and number gt 30`, (one) => one.partitionKey !== 'p0' && one.rowKey !== 'r0' && one.number > 30);
});

test('$select names what is sent', async (t) => {
  const { server, table } = await tables(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'r', a: 1, b: 2 });
  const [one] = await all(table.listEntities({ queryOptions: { select: ['a', 'none'] } }));
  assert.deepEqual(Object.keys(one).sort(), ['a', 'etag']);
  const { json } = await sendTable(server, 'GET', '/people()?$select=RowKey,Timestamp&$top=1', { headers: { accept: 'application/json;odata=nometadata' } });
  assert.deepEqual(Object.keys(json.value[0]), ['RowKey', 'Timestamp']);
  assert.deepEqual(Object.keys((await sendTable(server, 'GET', '/people?$select=*', { headers: { accept: 'application/json;odata=nometadata' } })).json.value[0]),
    ['PartitionKey', 'RowKey', 'Timestamp', 'a', 'b']);
});

test('a pager sees everything exactly once while partitions split under it', async (t) => {
  const { server, table } = await tables(t, { args: ['--set', 'partition.bytes_max=1M'] });
  const partitions = 15;
  const ranges = async () =>
    (await signed(server, 'GET', '/dbs/TablesDB/colls/people/pkranges')).json.PartitionKeyRanges.length;
  await fill(table, partitions, 100, () => ({ text: 'x'.repeat(500) }));
  const before = await ranges();
  const seen = [];
  let pages = 0;
  for await (const page of table.listEntities({ queryOptions: { filter: odata`number ge 0` } }).byPage({ maxPageSize: 37 })) {
    seen.push(...page.map(keyOf));
    // more of what is not asked for, so that partitions split between pages, once and again
    if (++pages === 3 || pages === 20) {
      const reached = await ranges();
      for (let p = 0; p < 30; p++)
        await table.submitTransaction(Array.from({ length: 50 }, (_, n) => ['create', { partitionKey: `${p % 2 ? 'a' : 'z'}${pages} ${p}`, rowKey: `${n}`, text: 'y'.repeat(900) }]));
      await server.until(async () => (await ranges()) > reached);
    }
  }
  assert.ok((await ranges()) > before + 1, 'they did split');
  assert.equal(seen.length, partitions * 100);
  assert.deepEqual(seen, [...seen].sort(ordinal));
  assert.equal(new Set(seen).size, seen.length);
});

test('what a query cannot be is refused by its code', async (t) => {
  const { server } = await tables(t);
  const filters = [
    'a', "a eq", "eq 5", "a eq 'open", "a eq 5 and", "a eq 5 or or b eq 6", "(a eq 5", "a eq 5)", "a EQ 5", "a eq b", "a = 5", "a eq 5x", "a eq 12345678901234567890123L",
    "a eq datetime'yesterday'", "a eq datetime'2024-13-01'", "a eq guid'12'", "a eq X'1'", "a eq X'zz'", "a eq time'1'", "'text'", '5', '-', "a eq 'x' 'y'", "not", '()',
    '('.repeat(100) + 'a eq 5' + ')'.repeat(100), Array(300).fill('a eq 5').join(' or '), `startswith(a,'x')`, 'a add 1 eq 2', '\u0000', "a eq 'x\u0001", '5 eq',
  ];
  for (const filter of filters.filter((one) => one !== 'a')) {
    const { status, code } = await sendTable(server, 'GET', `/people()?$filter=${encodeURIComponent(filter)}`);
    assert.deepEqual([status, code], [400, 'InvalidInput'], filter);
  }
  for (const [query, status, code] of [
    ['$top=1001', 400, 'InvalidQueryParameterValue'], ['$top=x', 400, 'InvalidQueryParameterValue'], ['$top=-1', 400, 'InvalidQueryParameterValue'],
    ['$orderby=a', 501, 'NotImplemented'], ['$skip=1', 501, 'NotImplemented'], ['$count=true', 501, 'NotImplemented'], ['$select=a,,b', 400, 'InvalidQueryParameterValue'],
    ['$filter=%zz', 400, 'InvalidInput'], ['$filter=%ff', 400, 'InvalidInput'], ['comp=wrong', 400, 'InvalidQueryParameterValue'],
  ]) {
    const answer = await sendTable(server, 'GET', `/people()?${query}`);
    assert.deepEqual([answer.status, answer.code ?? /<Code>(\w+)/.exec(answer.text)?.[1]], [status, code], query);
  }
  assert.equal((await sendTable(server, 'GET', '/nowhere()')).code, 'TableNotFound');
  assert.equal((await sendTable(server, 'GET', '/people()', { headers: { accept: 'application/atom+xml' } })).code, 'AtomFormatNotSupported');
});

test('Timestamp is a property to ask for', async (t) => {
  const { table } = await tables(t);
  for (let n = 0; n < 5; n++) await table.createEntity({ partitionKey: 'p', rowKey: `${n}` });
  const whole = await all(table.listEntities());
  const third = whole[2].timestamp;
  for (const [operator, holds] of [['ge', (a) => a >= third], ['gt', (a) => a > third], ['lt', (a) => a < third], ['le', (a) => a <= third], ['eq', (a) => a === third], ['ne', (a) => a !== third]]) {
    const found = await all(table.listEntities({ queryOptions: { filter: `Timestamp ${operator} datetime'${third}'` } }));
    assert.deepEqual(found.map((one) => one.rowKey), whole.filter((one) => holds(one.timestamp)).map((one) => one.rowKey), operator);
  }
  assert.equal((await refusal(table.getEntity('p', '9'))).status, 404);
});

test('$top=0 is an empty list, and the last page', async (t) => {
  const { server, table, service } = await tables(t);
  await fill(table, 1, 10);
  for (const path of ['/people()?$top=0', "/people()?$filter=PartitionKey%20eq%20'p0'&$top=0", '/Tables?$top=0']) {
    const { status, json, headers } = await sendTable(server, 'GET', path);
    assert.deepEqual([status, json.value], [200, []], path);
    assert.deepEqual(Object.keys(headers).filter((name) => name.startsWith('x-ms-continuation')), [], path);
  }
  const { value: page } = await table.listEntities().byPage({ maxPageSize: 0 }).next();
  assert.ok(page.length === 0 || page.length === 10, 'a client that leaves a 0 out asks for all');
  assert.equal((await all(service.listTables())).length, 1);
});

test('true and false have no letter case in filters', async (t) => {
  const { table } = await tables(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'yes', on: true });
  await table.createEntity({ partitionKey: 'p', rowKey: 'no', on: false });
  for (const [filter, wanted] of [['on eq True', 'yes'], ['on eq FALSE', 'no'], ['on ne tRuE', 'no'], ['False eq on', 'no']])
    assert.deepEqual((await all(table.listEntities({ queryOptions: { filter } }))).map((one) => one.rowKey), [wanted], filter);
});
