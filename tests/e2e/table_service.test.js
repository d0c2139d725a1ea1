// Service properties, statistics, CORS, and XML that is none.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Server, scratch } from './server.js';
import { all, sendTable, serviceClient, tables } from './tables.js';

const rule = { allowedOrigins: 'https://shop.example,https://other.example', allowedMethods: 'GET,PUT', allowedHeaders: 'x-ms-*,accept', exposedHeaders: 'x-ms-*', maxAgeInSeconds: 60 };

test('service properties are kept, over a restart too', async (t) => {
  const node = ['--dev', '--node', `local=rocksdb:${scratch(t)}/data`];
  let server = await Server.start(t, node);
  const first = await serviceClient(server).getProperties();
  assert.equal(first.logging.read, false);
  assert.equal(first.hourMetrics.enabled, false);
  await serviceClient(server).setProperties({
    cors: [rule],
    logging: { version: '1.0', delete: true, read: false, write: true, retentionPolicy: { enabled: true, days: 7 } },
  });
  await server.stop();
  server = await Server.start(t, node);
  const kept = await serviceClient(server).getProperties();
  assert.deepEqual(kept.cors, [rule]);
  assert.deepEqual(kept.logging.retentionPolicy, { enabled: true, days: 7 });
  await serviceClient(server).setProperties({ hourMetrics: { version: '1.0', enabled: true, includeAPIs: true, retentionPolicy: { enabled: false } } });
  const more = await serviceClient(server).getProperties();
  assert.deepEqual([more.hourMetrics.enabled, more.cors.length, more.logging.write], [true, 1, true], 'what was not sent stays');
});

test('statistics are told by both locations', async (t) => {
  const { server, service } = await tables(t);
  const path = '?restype=service&comp=stats';
  const primary = await sendTable(server, 'GET', `/${path}`);
  assert.deepEqual([primary.status, /<Status>(\w+)/.exec(primary.text)[1]], [200, 'live']);
  assert.equal((await service.getStatistics()).geoReplication.status, 'live');
  const secondary = await sendTable(server, 'GET', '', { whole: `/devstoreaccount1-secondary/${path}` });
  assert.equal(secondary.status, 200);
  assert.match(secondary.text, /<Status>live<\/Status><LastSyncTime>\w{3}, \d\d \w{3} \d{4}/);
  const read = await sendTable(server, 'GET', '', { whole: '/devstoreaccount1-secondary/people()' });
  assert.equal(read.status, 200);
});

test('browsers are answered by the CORS rules', async (t) => {
  const { server, service } = await tables(t);
  const preflight = (headers) => sendTable(server, 'OPTIONS', '/people', { authorization: '', headers });
  const asks = { origin: 'https://shop.example', 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-ms-date,accept' };
  const before = await preflight(asks);
  assert.deepEqual([before.status, before.code], [403, 'CorsPreflightFailure']);
  await service.setProperties({ cors: [rule] });
  const after = await preflight(asks);
  assert.equal(after.status, 200);
  assert.equal(after.headers['access-control-allow-origin'], 'https://shop.example');
  assert.equal(after.headers['access-control-max-age'], '60');
  for (const other of [{ origin: 'https://evil.example' }, { 'access-control-request-method': 'DELETE' }, { 'access-control-request-headers': 'cookie' }])
    assert.equal((await preflight({ ...asks, ...other })).status, 403);
  assert.equal((await preflight({ origin: 'https://shop.example' })).status, 400);
  const got = await sendTable(server, 'GET', '/people()', { headers: { origin: 'https://other.example' } });
  assert.equal(got.headers['access-control-allow-origin'], 'https://other.example');
  assert.equal(got.headers['access-control-expose-headers'], 'x-ms-*');
  assert.equal((await sendTable(server, 'GET', '/people()', { headers: { origin: 'https://evil.example' } })).headers['access-control-allow-origin'], undefined);
});

test('XML that is none changes nothing', async (t) => {
  const { server, table } = await tables(t);
  await table.setAccessPolicy([{ id: 'kept', accessPolicy: { permission: 'r' } }]);
  const put = (path, body) => sendTable(server, 'PUT', path, { body });
  const wrongProperties = [
    '', '<', '<a/>', '<StorageServiceProperties>', '<!DOCTYPE a [<!ENTITY x "y">]><StorageServiceProperties/>', '<StorageServiceProperties><Loging/></StorageServiceProperties>',
    '<StorageServiceProperties><Logging><Read>maybe</Read></Logging></StorageServiceProperties>', `<StorageServiceProperties>${'<Cors>'.repeat(20)}`,
    '<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule></Cors></StorageServiceProperties>', 'x'.repeat(70_000),
  ];
  for (const body of wrongProperties) {
    const answer = await put('/?restype=service&comp=properties', body);
    assert.deepEqual([answer.status, /<Code>(\w+)/.exec(answer.text)?.[1]], [400, 'InvalidXmlDocument'], body.slice(0, 60));
  }
  const one = (id, more = '') => `<SignedIdentifier><Id>${id}</Id><AccessPolicy>${more}</AccessPolicy></SignedIdentifier>`;
  const wrongPolicies = [
    '<a/>', `<SignedIdentifiers>${one('')}</SignedIdentifiers>`, `<SignedIdentifiers>${one('x'.repeat(65))}</SignedIdentifiers>`, `<SignedIdentifiers>${one('a')}${one('a')}</SignedIdentifiers>`,
    `<SignedIdentifiers>${[1, 2, 3, 4, 5, 6].map((n) => one(n)).join('')}</SignedIdentifiers>`, `<SignedIdentifiers>${one('a', '<Permission>rx</Permission>')}</SignedIdentifiers>`,
    `<SignedIdentifiers>${one('a', '<Expiry>soon</Expiry>')}</SignedIdentifiers>`,
  ];
  for (const body of wrongPolicies) {
    const answer = await put('/people?comp=acl', body);
    assert.deepEqual([answer.status, /<Code>(\w+)/.exec(answer.text)?.[1]], [400, 'InvalidXmlDocument'], body.slice(0, 80));
  }
  assert.equal((await put('/people?comp=acl', '<SignedIdentifiers><SignedIdentifier><Id>bare</Id></SignedIdentifier></SignedIdentifiers>')).status, 204, 'a policy may say nothing');
  assert.deepEqual((await table.getAccessPolicy()).map((policy) => policy.id), ['bare']);
});

test('a policy without terms is shown by its name alone', async (t) => {
  const { server, table } = await tables(t);
  await table.setAccessPolicy([{ id: 'bare' }, { id: 'empty', accessPolicy: {} }, { id: 'some', accessPolicy: { permission: 'r' } }]);
  const { text } = await sendTable(server, 'GET', '/people?comp=acl');
  assert.match(text, /<SignedIdentifier><Id>bare<\/Id><\/SignedIdentifier><SignedIdentifier><Id>empty<\/Id><\/SignedIdentifier>/);
  assert.deepEqual((await table.getAccessPolicy()).map((policy) => [policy.id, policy.accessPolicy?.permission]), [['bare', undefined], ['empty', undefined], ['some', 'r']]);
});

test('full metadata names the account of the request', async (t) => {
  const { server, table, service } = await tables(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
  const accept = { headers: { accept: 'application/json;odata=fullmetadata' } };
  const one = await sendTable(server, 'GET', "/people(PartitionKey='p',RowKey='r')", accept);
  assert.equal(one.json['odata.type'], 'devstoreaccount1.people');
  assert.equal((await sendTable(server, 'GET', '/people()', accept)).json.value[0]['odata.type'], 'devstoreaccount1.people');
  assert.equal((await sendTable(server, 'GET', "/Tables('people')", accept)).json['odata.type'], 'devstoreaccount1.Tables');
  const other = await sendTable(server, 'GET', "/people(PartitionKey='p',RowKey='r')", { ...accept, account: 'default' });
  assert.equal(other.json['odata.type'], 'default.people');
  for (const target of ["people(PartitionKey='p',RowKey='r')", "http://any.host/devstoreaccount1/people(PartitionKey='p',RowKey='r')"]) {
    const part = `--b\r\nContent-Type: application/http\r\n\r\nGET ${target} HTTP/1.1\r\nAccept: application/json;odata=fullmetadata\r\n\r\n--b--\r\n`;
    const { text } = await sendTable(server, 'POST', '/$batch', { headers: { 'content-type': 'multipart/mixed; boundary=b' }, body: part });
    const got = JSON.parse(/^\{.*$/m.exec(text)[0]);
    assert.equal(got['odata.type'], 'devstoreaccount1.people', target);
    assert.equal(got['odata.id'], `http://127.0.0.1:${server.tablePort}/devstoreaccount1/people(PartitionKey='p',RowKey='r')`, target);
  }
  assert.equal((await all(service.listTables())).length, 1);
});
