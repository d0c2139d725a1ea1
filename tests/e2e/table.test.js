// Tables and single entities through @azure/data-tables.
import assert from 'node:assert/strict';
import test from 'node:test';
import { odata } from '@azure/data-tables';
import { Server, emulatorKey } from './server.js';
import { all, refusal, sendTable, serviceClient, tableClient, tables } from './tables.js';

test('tables are created, listed and deleted by both clients', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const service = serviceClient(server);
  for (const name of ['beta', 'Alpha', 'gamma']) await service.createTable(name);
  await service.createTable('ALPHA'); // exists already, in other letters; the client thinks nothing of it
  const names = async (options) => (await all(service.listTables(options))).map((one) => one.name);
  assert.deepEqual(await names(), ['Alpha', 'beta', 'gamma']);
  assert.deepEqual(await names({ queryOptions: { filter: odata`TableName ge 'beta' and TableName ne 'gamma'` } }), ['beta']);
  const pages = [];
  for await (const page of service.listTables().byPage({ maxPageSize: 2 })) pages.push(page.map((one) => one.name));
  assert.deepEqual(pages, [['Alpha', 'beta'], ['gamma']]);
  await service.deleteTable('beta');
  await tableClient(server, 'gamma').deleteTable();
  await tableClient(server, 'gamma').deleteTable(); // gone already: nothing
  assert.deepEqual(await names(), ['Alpha']);
  const again = await sendTable(server, 'POST', '/Tables', { body: { TableName: 'Alpha' } });
  assert.equal(again.status, 409);
  assert.equal(again.code, 'TableAlreadyExists');
  assert.equal(again.headers['x-ms-error-code'], 'TableAlreadyExists');
  assert.match(again.json['odata.error'].message.value, /already exists\.\nRequestId:[0-9a-f-]{36}\nTime:\d{4}-/);
  const gone = await sendTable(server, 'DELETE', "/Tables('nothere')");
  assert.deepEqual([gone.status, gone.code], [404, 'ResourceNotFound']);
  const one = await sendTable(server, 'GET', "/Tables('alpha')");
  assert.deepEqual([one.status, one.json.TableName], [200, 'Alpha']);
});

test('an entity comes back as it was inserted', async (t) => {
  const { table } = await tables(t);
  const inserted = await table.createEntity({ partitionKey: 'a', rowKey: '1', name: 'Ann', age: 5 });
  assert.match(inserted.etag, /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d\.\d{7}Z'"$/);
  const got = await table.getEntity('a', '1');
  assert.deepEqual([got.partitionKey, got.rowKey, got.name, got.age], ['a', '1', 'Ann', 5]);
  assert.equal(got.etag, inserted.etag);
  assert.equal(decodeURIComponent(/'(.*)'/.exec(got.etag)[1]), got.timestamp);
  const taken = await refusal(table.createEntity({ partitionKey: 'a', rowKey: '1' }));
  assert.deepEqual([taken.status, taken.code], [409, 'EntityAlreadyExists']);
  const missing = await refusal(table.getEntity('a', '2'));
  assert.deepEqual([missing.status, missing.code], [404, 'ResourceNotFound']);
  assert.deepEqual(Object.keys(await table.getEntity('a', '1', { queryOptions: { select: ['name'] } })).sort(), ['etag', 'name', 'odata.metadata']);
});

test('replace drops what merge keeps, and both insert what is not there', async (t) => {
  const { table } = await tables(t);
  const read = async () => {
    const { a, b, c } = await table.getEntity('p', 'r');
    return { a, b, c };
  };
  await table.upsertEntity({ partitionKey: 'p', rowKey: 'r', a: 1, b: 'x' }, 'Merge');
  assert.deepEqual(await read(), { a: 1, b: 'x', c: undefined });
  await table.upsertEntity({ partitionKey: 'p', rowKey: 'r', b: 'y', c: true }, 'Merge');
  assert.deepEqual(await read(), { a: 1, b: 'y', c: true });
  await table.upsertEntity({ partitionKey: 'p', rowKey: 'r', c: false }, 'Replace');
  assert.deepEqual(await read(), { a: undefined, b: undefined, c: false });
  await table.updateEntity({ partitionKey: 'p', rowKey: 'r', a: 2, c: null }, 'Merge');
  assert.deepEqual(await read(), { a: 2, b: undefined, c: false }, 'null says nothing');
  await table.updateEntity({ partitionKey: 'p', rowKey: 'r', a: 3 }, 'Replace');
  assert.deepEqual(await read(), { a: 3, b: undefined, c: undefined });
  for (const mode of ['Merge', 'Replace']) {
    const missing = await refusal(table.updateEntity({ partitionKey: 'p', rowKey: 'none', a: 2 }, mode));
    assert.deepEqual([missing.status, missing.code], [404, 'ResourceNotFound']);
  }
  await table.upsertEntity({ partitionKey: 'p', rowKey: 'new', a: 1 }, 'Replace');
  assert.equal((await table.getEntity('p', 'new')).a, 1);
});

test('an ETag is good for one version', async (t) => {
  const { table } = await tables(t);
  const seen = new Set();
  let { etag } = await table.createEntity({ partitionKey: 'p', rowKey: 'r', n: 0 });
  for (let n = 1; n <= 20; n++) {
    assert.ok(!seen.has(etag), 'each write gives another');
    seen.add(etag);
    const mode = n % 2 ? 'Merge' : 'Replace';
    const next = await table.updateEntity({ partitionKey: 'p', rowKey: 'r', n }, mode, { etag });
    const stale = await refusal(table.updateEntity({ partitionKey: 'p', rowKey: 'r', n: -1 }, mode, { etag }));
    assert.deepEqual([stale.status, stale.code], [412, 'UpdateConditionNotSatisfied']);
    etag = next.etag;
  }
  assert.equal((await table.getEntity('p', 'r')).n, 20);
  assert.equal((await refusal(table.deleteEntity('p', 'r', { etag: [...seen][0] }))).status, 412);
  await table.deleteEntity('p', 'r', { etag });
  assert.equal((await refusal(table.deleteEntity('p', 'r'))).status, 404);
});

test('keys may be empty, long, and hold what only escapes can carry', async (t) => {
  const { table } = await tables(t);
  const keys = ['', "it's", "',RowKey='x", 'a,b=(c)', '100% +&;', 'ä€😀', 'x'.repeat(512), '€'.repeat(512), '😀'.repeat(256)];
  for (const [index, key] of keys.entries()) {
    await table.createEntity({ partitionKey: key, rowKey: key, index });
    assert.equal((await table.getEntity(key, key)).index, index);
    await table.updateEntity({ partitionKey: key, rowKey: key, seen: true }, 'Merge');
    await table.upsertEntity({ partitionKey: 'other', rowKey: key, index }, 'Replace');
  }
  const found = await all(table.listEntities({ queryOptions: { filter: odata`PartitionKey eq 'other'` } }));
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  assert.deepEqual(found.map((one) => one.rowKey), [...keys].sort(order));
  for (const key of keys) {
    const [one] = await all(table.listEntities({ queryOptions: { filter: odata`PartitionKey eq ${key} and RowKey eq ${key}` } }));
    assert.equal(one.rowKey, key);
    assert.equal(one.seen, true);
    await table.deleteEntity(key, key);
  }
  assert.equal((await refusal(table.getEntity('', ''))).status, 404);
});

test('properties may be called what the store calls its own', async (t) => {
  const { table } = await tables(t);
  const own = { id: 'mine', ttl: 'never', _ts: 5, _etag: 'x', _rid: true, _self: 'y', _attachments: 'z' };
  await table.createEntity({ partitionKey: 'p', rowKey: 'r', ...own });
  const got = await table.getEntity('p', 'r');
  for (const [name, value] of Object.entries(own)) assert.equal(got[name], value, name);
  const found = await all(table.listEntities({ queryOptions: { filter: odata`id eq 'mine' and _ts eq 5`, select: ['id', 'ttl'] } }));
  assert.deepEqual(found.map(({ id, ttl, _ts }) => [id, ttl, _ts]), [['mine', 'never', undefined]]);
});

test('the three spellings of merge are one', async (t) => {
  const { server, table } = await tables(t);
  const path = "/people(PartitionKey='p',RowKey='r')";
  const body = (n) => ({ headers: { 'content-type': 'application/json' }, body: { [`n${n}`]: n } });
  assert.equal((await sendTable(server, 'MERGE', path, body(1))).status, 204);
  assert.equal((await sendTable(server, 'PATCH', path, body(2))).status, 204);
  const posted = await sendTable(server, 'POST', path, { ...body(3), headers: { 'x-http-method': 'MERGE', 'if-match': '*', 'content-type': 'application/json' } });
  assert.equal(posted.status, 204);
  const { n1, n2, n3 } = await table.getEntity('p', 'r');
  assert.deepEqual([n1, n2, n3], [1, 2, 3]);
  const wrong = await sendTable(server, 'PUT', path, { ...body(3), headers: { 'x-http-method': 'MERGE' } });
  assert.equal(wrong.code, 'XMethodNotUsingPost');
  assert.equal((await sendTable(server, 'POST', path, { headers: { 'x-http-method': 'GET' } })).code, 'XMethodIncorrectValue');
});

test('Prefer decides what an insert sends back, and metadata has three levels', async (t) => {
  const { server } = await tables(t);
  const insert = (rowKey, headers) =>
    sendTable(server, 'POST', '/people', { headers: { 'content-type': 'application/json', ...headers }, body: { PartitionKey: "o'p", RowKey: rowKey, big: '5', 'big@odata.type': 'Edm.Int64', half: 0.5 } });
  const silent = await insert('1', { prefer: 'return-no-content' });
  assert.deepEqual([silent.status, silent.text, silent.headers['preference-applied']], [204, '', 'return-no-content']);
  assert.ok(silent.headers.location.endsWith("/devstoreaccount1/people(PartitionKey='o''p',RowKey='1')"), silent.headers.location);
  const echoed = await insert('2', { prefer: 'return-content', accept: 'application/json;odata=nometadata' });
  assert.deepEqual([echoed.status, echoed.headers['preference-applied']], [201, 'return-content']);
  assert.deepEqual(Object.keys(echoed.json), ['PartitionKey', 'RowKey', 'Timestamp', 'big', 'half']);
  assert.match(echoed.headers['content-type'], /^application\/json;odata=nometadata;/);
  const minimal = await insert('3');
  assert.deepEqual(Object.keys(minimal.json), ['odata.metadata', 'odata.etag', 'PartitionKey', 'RowKey', 'Timestamp', 'big', 'big@odata.type', 'half']);
  assert.equal(minimal.json['odata.metadata'], `http://127.0.0.1:${server.tablePort}/devstoreaccount1/$metadata#people/@Element`);
  assert.equal(minimal.json['odata.etag'], minimal.headers.etag);
  const full = await sendTable(server, 'GET', "/people(RowKey='3',PartitionKey='o''p')", { headers: { accept: 'application/json;odata=fullmetadata' } });
  assert.equal(full.json['odata.type'], 'devstoreaccount1.people');
  assert.equal(full.json['odata.editLink'], "people(PartitionKey='o''p',RowKey='3')");
  assert.ok(full.json['odata.id'].endsWith(full.json['odata.editLink']));
  assert.equal(full.json['Timestamp@odata.type'], 'Edm.DateTime');
  assert.equal(full.json['half@odata.type'], 'Edm.Double');
  const formatted = await sendTable(server, 'GET', '/people()?$format=application/json;odata=nometadata&$top=1');
  assert.deepEqual(Object.keys(formatted.json), ['value']);
});

test('a Cosmos-style connection string names the account by its host, or by who signs', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true']);
  // at the root of the host: the account is the one that signs
  const plain = tableClient(server, 'people', { account: 'contoso', key: emulatorKey, path: '' });
  await plain.createTable();
  await plain.createEntity({ partitionKey: 'p', rowKey: 'r', n: 1 });
  await plain.upsertEntity({ partitionKey: 'p', rowKey: 'r', m: 2 }, 'Merge');
  const { n, m } = await plain.getEntity('p', 'r');
  assert.deepEqual([n, m], [1, 2]);
  // and another is another
  const other = await refusal(tableClient(server, 'people', { account: 'fabrikam', key: emulatorKey, path: '' }).getEntity('p', 'r'));
  assert.deepEqual([other.status, other.code], [404, 'TableNotFound']);
  // localhost makes the client think that it speaks to Cosmos DB: it merges with POST
  const { TableClient } = await import('@azure/data-tables');
  const named = TableClient.fromConnectionString(
    `DefaultEndpointsProtocol=http;AccountName=contoso;AccountKey=${emulatorKey};TableEndpoint=http://localhost:${server.tablePort}/contoso;`,
    'people', { allowInsecureConnection: true });
  await named.updateEntity({ partitionKey: 'p', rowKey: 'r', o: 3 }, 'Merge');
  assert.equal((await plain.getEntity('p', 'r')).o, 3);
  const host = await sendTable(server, 'GET', "/people(PartitionKey='p',RowKey='r')", {
    account: 'contoso', whole: "/people(PartitionKey='p',RowKey='r')", headers: { host: `contoso.localhost:${server.tablePort}` }, key: emulatorKey });
  assert.equal(host.json.n, 1);
});

test('throughput is bought with a table, and used up', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.burst_seconds=0']);
  const created = await sendTable(server, 'POST', '/Tables', { headers: { 'x-ms-offer-throughput': '400' }, body: { TableName: 'small' } });
  assert.equal(created.status, 201);
  const wrong = await sendTable(server, 'POST', '/Tables', { headers: { 'x-ms-offer-throughput': 'many' }, body: { TableName: 'other' } });
  assert.deepEqual([wrong.status, wrong.code], [400, 'InvalidInput']);
  const table = tableClient(server, 'small');
  const writes = await Promise.allSettled(
    Array.from({ length: 200 }, (_, n) => table.createEntity({ partitionKey: 'p', rowKey: String(n), text: 'x'.repeat(2000) })));
  const refused = writes.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  assert.ok(refused.length > 0, 'a second has 400 RU');
  for (const one of refused) {
    assert.equal(one.statusCode, 429);
    assert.equal(one.details.odataError.code, 'TooManyRequests');
    assert.ok(Number(one.response.headers.get('x-ms-retry-after-ms')) > 0);
  }
  const patient = tableClient(server, 'small', { client: { retryOptions: { maxRetries: 10 } } });
  await patient.upsertEntity({ partitionKey: 'p', rowKey: 'last' });
});
