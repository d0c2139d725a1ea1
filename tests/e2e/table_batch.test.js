// Entity group transactions: all or nothing, alone and racing.
import assert from 'node:assert/strict';
import test from 'node:test';
import { TableTransaction } from '@azure/data-tables';
import { all, refusal, sendTable, tables } from './tables.js';

test('a transaction does everything at once, in order', async (t) => {
  const { table } = await tables(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'old', a: 1, b: 2 });
  await table.createEntity({ partitionKey: 'p', rowKey: 'gone' });
  const transaction = new TableTransaction();
  transaction.createEntity({ partitionKey: 'p', rowKey: "n'ew", text: '{"odd": "text"}' });
  transaction.deleteEntity('p', 'gone');
  transaction.upsertEntity({ partitionKey: 'p', rowKey: 'put', a: 1 }, 'Replace');
  transaction.upsertEntity({ partitionKey: 'p', rowKey: 'merged', a: 1 }, 'Merge');
  transaction.updateEntity({ partitionKey: 'p', rowKey: 'old', b: 3 }, 'Merge');
  const { status, subResponses, getResponseForEntity } = await table.submitTransaction(transaction.actions);
  assert.equal(status, 202);
  assert.deepEqual(subResponses.map((one) => one.status), [204, 204, 204, 204, 204]);
  assert.ok(subResponses[0].etag && subResponses[4].etag);
  assert.equal(getResponseForEntity('old').etag, (await table.getEntity('p', 'old')).etag);
  const { a, b } = await table.getEntity('p', 'old');
  assert.deepEqual([a, b], [1, 3]);
  assert.deepEqual((await all(table.listEntities())).map((one) => one.rowKey), ['merged', "n'ew", 'old', 'put']);
});

test('the first operation that fails is named and nothing is written', async (t) => {
  const { server, table } = await tables(t);
  const { etag } = await table.createEntity({ partitionKey: 'p', rowKey: 'there', n: 1 });
  await table.updateEntity({ partitionKey: 'p', rowKey: 'there', n: 2 }, 'Merge', { etag });
  const create = (rowKey) => ['create', { partitionKey: 'p', rowKey }];
  const cases = [
    [[create('a'), create('b'), ['update', { partitionKey: 'p', rowKey: 'missing' }, 'Merge']], 404, 'ResourceNotFound', 2],
    [[create('a'), create('there'), create('c')], 409, 'EntityAlreadyExists', 1],
    [[['update', { partitionKey: 'p', rowKey: 'there', n: 9 }, 'Replace', { etag }], create('a')], 412, 'UpdateConditionNotSatisfied', 0],
    [[create('a'), ['delete', { partitionKey: 'p', rowKey: 'missing' }]], 404, 'ResourceNotFound', 1],
    [[create('a'), ['create', { partitionKey: 'p', rowKey: 'b/c' }]], 400, 'OutOfRangeInput', 1],
  ];
  for (const [actions, status, code, index] of cases) {
    const refused = await refusal(table.submitTransaction(actions));
    assert.deepEqual([refused.status, refused.code], [status, code]);
    assert.ok(refused.message.includes(`${index}:`), refused.message);
    const left = await all(table.listEntities());
    assert.deepEqual(left.map((one) => [one.rowKey, one.n]), [['there', 2]]);
  }
  assert.equal((await sendTable(server, 'POST', '/$batch', { headers: { 'content-type': 'text/plain' }, body: 'x' })).code, 'InvalidInput');
});

// A batch by hand: one changeset of these requests.
function batch(requests, { eol = '\r\n', boundary = 'b_1', changeset = 'c_1' } = {}) {
  const lines = [`--${boundary}`, `Content-Type: multipart/mixed; boundary=${changeset}`, ''];
  for (const { method, url, headers = {}, body } of requests)
    lines.push(`--${changeset}`, 'Content-Type: application/http', 'Content-Transfer-Encoding: binary', '', `${method} ${url} HTTP/1.1`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body === undefined ? '' : JSON.stringify(body));
  lines.push(`--${changeset}--`, `--${boundary}--`, '');
  return { headers: { 'content-type': `multipart/mixed; boundary="${boundary}"` }, body: lines.join(eol) };
}

const insert = (rowKey, partitionKey = 'p', table = 'people') => ({ method: 'POST', url: `/devstoreaccount1/${table}`, headers: { 'Content-ID': '1', Prefer: 'return-no-content' }, body: { PartitionKey: partitionKey, RowKey: rowKey } });

test('batches of other clients: relative addresses, line feeds, content, a single query', async (t) => {
  const { server, table } = await tables(t);
  const sent = (requests, options) => sendTable(server, 'POST', '/$batch', batch(requests, options));
  const plain = await sent([insert('1'), { ...insert('2'), url: 'people', headers: {} }, { ...insert('3'), url: 'http://any.host:1/devstoreaccount1/people' }], { eol: '\n' });
  assert.equal(plain.status, 202);
  assert.match(plain.headers['content-type'], /^multipart\/mixed; boundary=batchresponse_/);
  assert.deepEqual([...plain.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((one) => one[1]), ['204', '201', '204']);
  assert.match(plain.text, /\r\nETag: W\/"datetime'/);
  assert.match(plain.text, /"RowKey":"2"/);
  assert.equal((await all(table.listEntities())).length, 3);
  const query = await sendTable(server, 'POST', '/$batch', {
    headers: { 'content-type': 'multipart/mixed; boundary=b' },
    body: "--b\r\nContent-Type: application/http\r\n\r\nGET http://h/devstoreaccount1/people()?$filter=RowKey%20eq%20'2' HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n--b--\r\n",
  });
  assert.equal(query.status, 202);
  assert.match(query.text, /HTTP\/1\.1 200 OK[^]*\{"value":\[\{"PartitionKey":"p","RowKey":"2"/);
  const none = await sendTable(server, 'POST', '/$batch', {
    headers: { 'content-type': 'multipart/mixed; boundary=b' },
    body: "--b\r\nContent-Type: application/http\r\n\r\nGET http://h/devstoreaccount1/people(PartitionKey='p',RowKey='none') HTTP/1.1\r\n\r\n--b--\r\n",
  });
  assert.equal(none.status, 202);
  assert.match(none.text, /HTTP\/1\.1 404 Not Found[^]*"code":"ResourceNotFound"[^]*"value":"0:The specified resource does not exist\.\\nRequestId:/);
});

test('a batch that is none is refused whole', async (t) => {
  const { server, table } = await tables(t);
  const sent = (requests, options) => sendTable(server, 'POST', '/$batch', batch(requests, options));
  const many = Array.from({ length: 101 }, (_, n) => insert(`${n}`));
  const tooMany = await sent(many);
  assert.deepEqual([tooMany.status, tooMany.code], [400, 'InvalidInput']);
  assert.match(tooMany.json['odata.error'].message.value, /exceeds the maximum 100 changes per change set/);
  assert.equal((await sent([insert('1'), insert('2', 'q')])).code, 'CommandsInBatchActOnDifferentPartitions');
  assert.equal((await sent([insert('1'), insert('2', 'p', 'other')])).code, 'CommandsInBatchActOnDifferentPartitions');
  const twice = await sent([insert('1'), insert('1')]);
  assert.deepEqual([twice.status, twice.code], [400, 'InvalidDuplicateRow']);
  const large = await sent([{ ...insert('1'), body: { PartitionKey: 'p', RowKey: '1', text: 'x'.repeat(4 * 1024 * 1024) } }]);
  assert.deepEqual([large.status, large.code], [413, 'RequestBodyTooLarge']);
  const type = { 'content-type': 'multipart/mixed; boundary=b' };
  const part = (body) => sendTable(server, 'POST', '/$batch', { headers: type, body });
  const broken = [
    '', 'nothing', '--b', '--b\r\n', '--b--\r\n', '--b\r\nContent-Type: multipart/mixed\r\n\r\n--b--', '--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n--b--',
    '--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--b--', '--b\r\nContent-Type: application/http\r\n\r\nGET\r\n--b--',
    '--b\r\nContent-Type: application/http\r\n\r\nGET /people() HTTP/2\r\n\r\n--b--', '--b\r\nContent-Type: application/http\r\n\r\nPOST /people HTTP/1.1\r\n\r\n{}\r\n--b--',
    '--b\r\nContent-Type: application/http\r\n\r\nGET /Tables HTTP/1.1\r\n\r\n--b--', '--b\r\nbroken\r\n\r\n--b--',
    `--b\r\nContent-Type: application/http\r\n\r\nGET /people() HTTP/1.1\r\n${'a: b\r\n'.repeat(40)}\r\n--b--`,
  ];
  for (const body of broken) {
    const answer = await part(body);
    assert.deepEqual([answer.status, answer.code], [400, 'InvalidInput'], JSON.stringify(body));
  }
  assert.equal((await sendTable(server, 'POST', '/$batch', { headers: { 'content-type': 'multipart/mixed' }, body: 'x' })).status, 400);
  assert.equal((await all(table.listEntities())).length, 0);
});

test('racing transactions each happen whole or not at all', async (t) => {
  const { table } = await tables(t);
  const rows = ['a', 'b', 'c', 'd'];
  await table.submitTransaction(rows.map((rowKey) => ['create', { partitionKey: 'p', rowKey, writer: -1 }]));
  let stop = false;
  const reader = (async () => {
    let looks = 0;
    while (!stop) {
      const found = await all(table.listEntities());
      assert.equal(new Set(found.map((one) => one.writer)).size, 1, 'one moment shows one writer');
      looks++;
    }
    return looks;
  })();
  let won = 0;
  await Promise.all(Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; n < 12; n++) {
      const found = await all(table.listEntities());
      const result = await table
        .submitTransaction(found.map(({ rowKey, etag }) => ['update', { partitionKey: 'p', rowKey, writer: writer * 100 + n }, 'Replace', { etag }]))
        .then(() => 'won', (error) => error.statusCode);
      assert.ok(result === 'won' || result === 412, String(result));
      if (result === 'won') won++;
    }
  }));
  stop = true;
  assert.ok(won > 0 && (await reader) > 0);
});

test('concurrent merges of one entity lose nothing', async (t) => {
  const { table } = await tables(t);
  await Promise.all(Array.from({ length: 40 }, (_, n) => table.upsertEntity({ partitionKey: 'p', rowKey: 'r', [`n${n}`]: n }, 'Merge')));
  const got = await table.getEntity('p', 'r');
  for (let n = 0; n < 40; n++) assert.equal(got[`n${n}`], n);
});
