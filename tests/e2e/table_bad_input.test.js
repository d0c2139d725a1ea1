// What nobody should send: each with its documented code, and nothing written.
import assert from 'node:assert/strict';
import test from 'node:test';
import { all, refusal, sendTable, tables } from './tables.js';

test('entities that are none are refused by their code, and nothing is written', async (t) => {
  const { server, table } = await tables(t);
  const key = { PartitionKey: 'p', RowKey: 'r' };
  const typed = (type, value) => ({ ...key, x: value, 'x@odata.type': type });
  const properties = (count) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`n${n}`, n]));
  const cases = [
    ['', 'InvalidInput'], ['{', 'InvalidInput'], ['[]', 'InvalidInput'], ['5', 'InvalidInput'], ['\u0000', 'InvalidInput'], ['{"a":1,}', 'InvalidInput'], ['{"PartitionKey":"p","RowKey":"r"} x', 'InvalidInput'],
    [{ RowKey: 'r' }, 'PropertiesNeedValue'], [{ PartitionKey: 'p' }, 'PropertiesNeedValue'], [{ PartitionKey: null, RowKey: 'r' }, 'PropertiesNeedValue'],
    [{ PartitionKey: 5, RowKey: 'r' }, 'InvalidInput'], [{ ...key, RowKey: 'a/b' }, 'OutOfRangeInput'], [{ ...key, RowKey: 'a\\b' }, 'OutOfRangeInput'], [{ ...key, RowKey: 'a#b' }, 'OutOfRangeInput'],
    [{ ...key, PartitionKey: 'a?b' }, 'OutOfRangeInput'], [{ ...key, RowKey: 'a\tb' }, 'OutOfRangeInput'], [{ ...key, RowKey: 'a\u007fb' }, 'OutOfRangeInput'], [{ ...key, RowKey: 'a\u0085b' }, 'OutOfRangeInput'],
    [{ ...key, RowKey: 'x'.repeat(513) }, 'KeyValueTooLarge'], [{ ...key, PartitionKey: '€'.repeat(513) }, 'KeyValueTooLarge'],
    [{ ...key, 'a-b': 1 }, 'PropertyNameInvalid'], [{ ...key, '1a': 1 }, 'PropertyNameInvalid'], [{ ...key, 'a b': 1 }, 'PropertyNameInvalid'], [{ ...key, '': 1 }, 'PropertyNameInvalid'], [{ ...key, $ticks: 1 }, 'PropertyNameInvalid'],
    [{ ...key, ['x'.repeat(256)]: 1 }, 'PropertyNameTooLong'], [{ ...key, x: 'y'.repeat(32 * 1024 + 1) }, 'PropertyValueTooLarge'],
    [typed('Edm.Binary', Buffer.alloc(64 * 1024 + 1).toString('base64')), 'PropertyValueTooLarge'], [{ ...key, ...properties(253) }, 'TooManyProperties'],
    [{ ...key, ...properties(20_000) }, 'TooManyProperties'], ['{"PartitionKey":"p","RowKey":"r","a":1,"a":2}', 'DuplicatePropertiesSpecified'],
    [Object.fromEntries([...Object.entries(key), ...Array.from({ length: 40 }, (_, n) => [`t${n}`, 'x'.repeat(32 * 1024)])]), 'EntityTooLarge'],
    [{ ...key, x: {} }, 'InvalidInput'], [{ ...key, x: [1] }, 'InvalidInput'], [typed('Edm.Int32', 'x'), 'InvalidInput'], [typed('Edm.Int32', 2 ** 31), 'InvalidInput'], [typed('Edm.Int64', '9223372036854775808'), 'InvalidInput'],
    [typed('Edm.Int64', '1.5'), 'InvalidInput'], [typed('Edm.Int64', ''), 'InvalidInput'], [typed('Edm.Double', 'x'), 'InvalidInput'], [typed('Edm.Boolean', 'yes'), 'InvalidInput'], [typed('Edm.Guid', 'x'), 'InvalidInput'],
    [typed('Edm.Guid', '6ba7b810-9dad-11d1-80b4_00c04fd430c8'), 'InvalidInput'], [typed('Edm.Binary', '***'), 'InvalidInput'], [typed('Edm.Binary', 'abc'), 'InvalidInput'], [typed('Edm.DateTime', 'yesterday'), 'InvalidInput'],
    [typed('Edm.DateTime', '2024-02-30T00:00:00Z'), 'InvalidInput'], [typed('Edm.DateTime', '2024-01-01T00:00:00.12345678Z'), 'InvalidInput'], [typed('Edm.DateTime', '1600-12-31T23:59:59Z'), 'OutOfRangeInput'],
    [typed('Edm.DateTime', 5), 'InvalidInput'], [typed('Edm.Single', 5), 'InvalidInput'], [typed('Int32', 5), 'InvalidInput'], [typed(7, 5), 'InvalidInput'], [typed('Edm.String', 5), 'InvalidInput'],
    ...['String', 'Boolean', 'Int32', 'Int64', 'Double', 'DateTime', 'Guid', 'Binary'].map((type) => [typed(`Edm.${type}`, null), 'InvalidInput']),
  ];
  for (const [body, code] of cases) {
    const answer = await sendTable(server, 'POST', '/people', { headers: { 'content-type': 'application/json' }, body });
    assert.deepEqual([answer.status, answer.code], [400, code], JSON.stringify(body).slice(0, 120));
  }
  const path = "/people(PartitionKey='p',RowKey='r')";
  for (const [method, sent, body, status, code] of [
    ['PUT', path, { PartitionKey: 'q', RowKey: 'r' }, 400, 'InvalidInput'], ['MERGE', path, { RowKey: 's' }, 400, 'InvalidInput'], ['DELETE', path, undefined, 400, 'MissingRequiredHeader'],
    ['PUT', "/people(PartitionKey='p')", {}, 400, 'InvalidInput'], ['PUT', "/people(PartitionKey='p',RowKey='r", {}, 400, 'InvalidInput'], ['PUT', "/people(PartitionKey='p',PartitionKey='r')", {}, 400, 'InvalidInput'],
    ['PUT', '/people(%zz)', {}, 400, 'InvalidInput'], ['PUT', "/people(PartitionKey='%ff',RowKey='r')", {}, 400, 'InvalidInput'], ['PUT', "/people(PartitionKey='a%2Fb',RowKey='r')", {}, 400, 'OutOfRangeInput'],
    ['POST', path, {}, 405, 'UnsupportedHttpVerb'], ['PUT', '/people', {}, 405, 'UnsupportedHttpVerb'], ['BREW', path, {}, 405, 'UnsupportedHttpVerb'], ['GET', '/$metadata', undefined, 501, 'NotImplemented'],
    ['POST', '/Tables', {}, 400, 'PropertiesNeedValue'], ['POST', '/Tables', { TableName: 'a' }, 400, 'OutOfRangeInput'], ['POST', '/Tables', { TableName: 'x'.repeat(64) }, 400, 'OutOfRangeInput'],
    ['POST', '/Tables', { TableName: '1abc' }, 400, 'InvalidResourceName'], ['POST', '/Tables', { TableName: 'a-bc' }, 400, 'InvalidResourceName'], ['POST', '/Tables', { TableName: 'tables' }, 400, 'InvalidResourceName'],
    ['POST', '/Tables', 'x', 400, 'InvalidInput'], ['POST', '/nowhere', { PartitionKey: 'p', RowKey: 'r' }, 404, 'TableNotFound'],
  ]) {
    const answer = await sendTable(server, method, sent, { headers: { 'content-type': 'application/json' }, body });
    assert.deepEqual([answer.status, answer.code], [status, code], `${method} ${sent} ${JSON.stringify(body)}`);
  }
  assert.equal((await sendTable(server, 'POST', '/people', { headers: { 'content-type': 'application/atom+xml' }, body: '<entry/>' })).status, 415);
  assert.equal((await sendTable(server, 'GET', '/people()', { headers: { 'x-ms-version': 'new' } })).code, 'InvalidHeaderValue');
  assert.equal((await all(table.listEntities())).length, 0);
});

test('a merge cannot grow an entity beyond its limits', async (t) => {
  const { server, table } = await tables(t);
  const half = (from) => Object.fromEntries(Array.from({ length: 130 }, (_, n) => [`n${from + n}`, n]));
  await table.createEntity({ partitionKey: 'p', rowKey: 'r', ...half(0) });
  const merge = (body) => sendTable(server, 'MERGE', "/people(PartitionKey='p',RowKey='r')", { body });
  assert.equal((await merge(half(130))).code, 'TooManyProperties');
  const large = (from) => Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`t${from + n}`, 'x'.repeat(32_000)]));
  assert.equal((await merge(large(0))).status, 204);
  assert.equal((await merge(large(20))).code, 'EntityTooLarge');
  assert.equal(Object.keys(await table.getEntity('p', 'r')).filter((name) => /^[nt]\d/.test(name)).length, 150);
});

test('dates of entities and of signatures are two things', async (t) => {
  const { server } = await tables(t);
  for (const date of ['', 'now', '2024-01-01T00:00:00Z', 'Mon, 99 Jan 2024 00:00:00 GMT'])
    assert.equal((await sendTable(server, 'GET', '/people()', { date })).code, 'AuthenticationFailed');
});

test('a body of more than 4 MiB is 413, whatever it is for', async (t) => {
  const { server, table } = await tables(t);
  const path = "/people(PartitionKey='p',RowKey='r')";
  const padded = (bytes) => `{"PartitionKey":"p","RowKey":"r"${' '.repeat(bytes - 33)}}`;
  const json = { 'content-type': 'application/json' };
  for (const [method, at, headers] of [['POST', '/people', json], ['PUT', path, json], ['MERGE', path, json], ['POST', '/Tables', json], ['POST', '/$batch', { 'content-type': 'multipart/mixed; boundary=batch_1' }]])
    for (const bytes of [4 * 1024 * 1024 + 1, 20 * 1024 * 1024]) {
      const answer = await sendTable(server, method, at, { headers, body: padded(bytes) });
      assert.deepEqual([answer.status, answer.code, answer.headers['x-ms-error-code']], [413, 'RequestBodyTooLarge', 'RequestBodyTooLarge'], `${method} ${at} ${bytes}`);
    }
  assert.equal((await all(table.listEntities())).length, 0);
  assert.equal((await sendTable(server, 'POST', '/people', { headers: json, body: padded(4 * 1024 * 1024) })).status, 201, 'at the limit');
});

test('If-Match is a star or one weak ETag', async (t) => {
  const { server, table } = await tables(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'r', n: 1 });
  const { etag } = await table.getEntity('p', 'r');
  const path = "/people(PartitionKey='p',RowKey='r')";
  for (const method of ['PUT', 'MERGE', 'DELETE'])
    for (const match of ['', 'x', '"x"', '**', 'W/x', 'W/"', 'W/"x', etag.slice(2), `${etag}, ${etag}`]) {
      const answer = await sendTable(server, method, path, { headers: { 'if-match': match, 'content-type': 'application/json' }, body: method === 'DELETE' ? undefined : {} });
      assert.deepEqual([answer.status, answer.code], [400, 'InvalidInput'], `${method} ${match}`);
    }
  const batch = await refusal(table.submitTransaction([['update', { partitionKey: 'p', rowKey: 'r', n: 2 }, 'Merge', { etag: 'abc' }]]));
  assert.deepEqual([batch.status, batch.code], [400, 'InvalidInput']);
  assert.match(batch.message, /etag/);
  assert.equal((await table.getEntity('p', 'r')).n, 1);
  assert.equal((await refusal(table.updateEntity({ partitionKey: 'p', rowKey: 'r', n: 2 }, 'Merge', { etag: 'W/"x"' }))).status, 412);
  await table.updateEntity({ partitionKey: 'p', rowKey: 'r', n: 2 }, 'Merge', { etag });
  await table.deleteEntity('p', 'r', { etag: '*' });
});
