// Who may do what: keys, shared access signatures, stored policies.
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, generateAccountSas, generateTableSas,
} from '@azure/data-tables';
import { createHmac } from 'node:crypto';
import { Server, emulatorKey, orrery } from './server.js';
import { signed } from './rest.js';
import { all, refusal, sendTable, serviceClient, storageAccount, storageKey, tableClient, tables } from './tables.js';

const credential = new AzureNamedKeyCredential(storageAccount, storageKey);
const later = () => new Date(Date.now() + 3600_000);
const plain = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };

function sasClient(server, sas, name = 'people') {
  return new TableClient(`http://127.0.0.1:${server.tablePort}/${storageAccount}`, name, new AzureSASCredential(sas), plain);
}

test('SharedKey and SharedKeyLite open an account, by x-ms-date or Date', async (t) => {
  const { server } = await tables(t);
  const type = { 'content-type': 'application/json' };
  for (const scheme of ['SharedKey', 'SharedKeyLite']) {
    assert.equal((await sendTable(server, 'GET', '/Tables', { scheme })).status, 200);
    assert.equal((await sendTable(server, 'POST', '/people', { scheme, headers: type, body: { PartitionKey: scheme, RowKey: 'r' } })).status, 201);
    assert.equal((await sendTable(server, 'GET', '/people?comp=acl', { scheme })).status, 200);
    assert.equal((await sendTable(server, 'GET', '/Tables', { scheme, key: emulatorKey })).status, 200);
    assert.equal((await sendTable(server, 'GET', "/people(PartitionKey='a%27%27%20b',RowKey='%C3%A4')", { scheme })).status, 404);
  }
  const date = new Date().toUTCString();
  const sig = createHmac('sha256', Buffer.from(storageKey, 'base64')).update(`${date}\n/${storageAccount}/${storageAccount}/Tables`).digest('base64');
  const dated = await sendTable(server, 'GET', '/Tables', { date: 'Thu, 01 Jan 2099 00:00:00 GMT', headers: { 'x-ms-date': date, date }, authorization: `SharedKeyLite ${storageAccount}:${sig}` });
  assert.equal(dated.status, 200);
});

test('what is not signed rightly is refused', async (t) => {
  const { server } = await tables(t);
  const refused = async (options) => {
    const { status, code } = await sendTable(server, 'GET', '/people()', options);
    assert.deepEqual([status, code], [403, 'AuthenticationFailed']);
  };
  await refused({ key: Buffer.alloc(64, 1).toString('base64') });
  await refused({ authorization: '' });
  await refused({ authorization: 'SharedKeyLite' });
  await refused({ authorization: 'SharedKeyLite nobody' });
  await refused({ authorization: `Bearer ${'x'.repeat(30)}` });
  await refused({ authorization: `SharedKeyLite ${storageAccount}:${'A'.repeat(43)}=` });
  await refused({ date: new Date(Date.now() - 3600_000).toUTCString() });
  await refused({ date: 'yesterday' });
  await refused({ account: 'nobody', key: storageKey });
});

test('without --dev the keys of the account count, and no others', async (t) => {
  const server = await Server.start(t, []);
  const key = /AccountKey=([^;<]+);TableEndpoint/.exec(server.out)[1];
  const service = serviceClient(server, { account: 'default', key });
  await service.createTable('people');
  assert.equal((await refusal(serviceClient(server).createTable('other'))).status, 403);
  assert.equal((await refusal(serviceClient(server, { account: 'default', key: storageKey }).createTable('other'))).status, 403);
  assert.equal((await refusal(serviceClient(server, { account: 'default', key: emulatorKey }).createTable('other'))).status, 403);
  const { json } = await signed(server, 'GET', '/_orrery/accounts/default/keys', { key });
  const readonly = json.keys['primary-readonly'];
  const reader = tableClient(server, 'people', { account: 'default', key: readonly });
  assert.deepEqual(await all(reader.listEntities()), []);
  assert.equal((await refusal(reader.createEntity({ partitionKey: 'a', rowKey: 'b' }))).code, 'AuthorizationPermissionMismatch');
});

test('--dev stays on loopback addresses', async () => {
  const { code, err } = await orrery(['serve', '--dev', '--node', 'local=memory:', '--rest', '127.0.0.1:0', '--table', '*:0']);
  assert.notEqual(code, 0);
  assert.match(err, /--dev accepts a key everybody knows, so --table has to be a loopback address/);
});

test('an account SAS allows what it says', async (t) => {
  const { server, table } = await tables(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
  const sas = (options) => generateAccountSas(credential, { expiresOn: later(), services: { table: true }, ...options });
  const all3 = 'sco';
  const everything = sasClient(server, sas({ permissions: { query: true, write: true, delete: true, list: true, add: true, create: true, update: true }, resourceTypes: all3 }));
  await everything.createEntity({ partitionKey: 'p', rowKey: 's' });
  assert.equal((await all(everything.listEntities())).length, 2);
  const reads = sasClient(server, sas({ permissions: { query: true }, resourceTypes: 'o' }));
  assert.equal((await all(reads.listEntities())).length, 2);
  const code = async (promise) => (await refusal(promise)).code;
  assert.equal(await code(reads.createEntity({ partitionKey: 'p', rowKey: 'x' })), 'AuthorizationPermissionMismatch');
  assert.equal(await code(reads.deleteEntity('p', 'r')), 'AuthorizationPermissionMismatch');
  assert.equal(await code(reads.deleteTable()), 'AuthorizationResourceTypeMismatch');
  const adds = sasClient(server, sas({ permissions: { add: true }, resourceTypes: 'o' }));
  await adds.createEntity({ partitionKey: 'p', rowKey: 't' });
  assert.equal(await code(adds.upsertEntity({ partitionKey: 'p', rowKey: 't' })), 'AuthorizationPermissionMismatch');
  assert.equal(await code(adds.submitTransaction([['delete', { partitionKey: 'p', rowKey: 't' }]])), 'AuthorizationPermissionMismatch');
  const updates = sasClient(server, sas({ permissions: { update: true }, resourceTypes: 'o' }));
  await updates.updateEntity({ partitionKey: 'p', rowKey: 't', n: 1 }, 'Merge');
  assert.equal(await code(updates.upsertEntity({ partitionKey: 'p', rowKey: 't' })), 'AuthorizationPermissionMismatch');
  const lists = new TableServiceClient(`http://127.0.0.1:${server.tablePort}/${storageAccount}`, new AzureSASCredential(sas({ permissions: { list: true }, resourceTypes: 'c' })), plain);
  assert.equal((await all(lists.listTables())).length, 1);
  for (const [options, wanted] of [
    [{ expiresOn: new Date(Date.now() - 1000) }, 'AuthenticationFailed'],
    [{ startsOn: later() }, 'AuthenticationFailed'],
    [{ services: { blob: true } }, 'AuthorizationServiceMismatch'],
    [{ protocol: 'https' }, 'AuthorizationProtocolMismatch'],
    [{ ipRange: { start: '10.0.0.1', end: '10.0.0.9' } }, 'AuthorizationSourceIPMismatch'],
  ]) {
    const client = sasClient(server, sas({ permissions: { query: true }, resourceTypes: all3, ...options }));
    assert.equal(await code(all(client.listEntities())), wanted, JSON.stringify(options));
  }
  const local = sasClient(server, sas({ permissions: { query: true }, resourceTypes: all3, ipRange: { start: '127.0.0.0', end: '127.0.0.9' }, protocol: 'https,http' }));
  assert.equal((await all(local.listEntities())).length, 3);
  const forged = sas({ permissions: { query: true }, resourceTypes: all3 }).replace('sp=r', 'sp=rd');
  assert.equal(await code(all(sasClient(server, forged).listEntities())), 'AuthenticationFailed');
});

test('a table SAS opens one table, and of it a range of keys', async (t) => {
  const { server, table, service } = await tables(t);
  await service.createTable('other');
  for (const p of ['a', 'b', 'c']) for (const r of ['1', '2', '3']) await table.createEntity({ partitionKey: p, rowKey: r });
  const sas = (options) => generateTableSas('people', credential, { expiresOn: later(), permissions: { query: true, add: true, update: true, delete: true }, ...options });
  const whole = sasClient(server, sas());
  assert.equal((await all(whole.listEntities())).length, 9);
  assert.equal((await refusal(sasClient(server, sas(), 'other').getEntity('a', '1'))).status, 403);
  assert.equal((await refusal(whole.deleteTable())).status, 403);
  const some = sasClient(server, sas({ startPartitionKey: 'a', startRowKey: '2', endPartitionKey: 'b', endRowKey: '2' }));
  assert.deepEqual((await all(some.listEntities())).map((one) => one.partitionKey + one.rowKey), ['a2', 'a3', 'b1', 'b2']);
  assert.deepEqual(await all(some.listEntities({ queryOptions: { filter: "PartitionKey eq 'a' and RowKey eq '1'" } })), []);
  const code = async (promise) => (await refusal(promise)).code;
  assert.equal(await code(some.getEntity('a', '1')), 'AuthorizationPermissionMismatch');
  assert.equal(await code(some.createEntity({ partitionKey: 'b', rowKey: '4' })), 'AuthorizationPermissionMismatch');
  await some.createEntity({ partitionKey: 'b', rowKey: '11' });
});

test('a stored policy gives a signature its terms, until it is withdrawn', async (t) => {
  const { server, table } = await tables(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
  await table.setAccessPolicy([{ id: 'readers', accessPolicy: { start: new Date(Date.now() - 60_000), expiry: later(), permission: 'r' } }, { id: 'later', accessPolicy: { start: later(), expiry: later(), permission: 'raud' } }]);
  const [first, second] = await table.getAccessPolicy();
  assert.deepEqual([first.id, first.accessPolicy.permission, second.id], ['readers', 'r', 'later']);
  const reader = sasClient(server, generateTableSas('people', credential, { identifier: 'readers' }));
  assert.equal((await all(reader.listEntities())).length, 1);
  assert.equal((await refusal(reader.deleteEntity('p', 'r'))).code, 'AuthorizationPermissionMismatch');
  const early = sasClient(server, generateTableSas('people', credential, { identifier: 'later' }));
  assert.equal((await refusal(all(early.listEntities()))).code, 'AuthenticationFailed');
  await table.setAccessPolicy([]);
  assert.equal((await refusal(all(reader.listEntities()))).code, 'AuthenticationFailed');
  assert.deepEqual([...(await table.getAccessPolicy())], []);
});

test('a signature that is there twice is refused', async (t) => {
  const { server } = await tables(t);
  const sas = generateTableSas('people', credential, { expiresOn: later(), permissions: { query: true } });
  const sig = /sig=[^&]*/.exec(sas)[0];
  const get = (query) => sendTable(server, 'GET', `/people()?${query}`, { authorization: '' });
  assert.equal((await get(sas)).status, 200);
  for (const query of [`${sas}&${sig}`, `${sas}&sig=x`, `sig=x&${sas}`]) {
    const { status, code } = await get(query);
    assert.deepEqual([status, code], [403, 'AuthenticationFailed']);
  }
});

test('a signature with a policy and no table is for the table of the path', async (t) => {
  const { server, table, service } = await tables(t);
  await service.createTable('other');
  await table.createEntity({ partitionKey: 'p', rowKey: 'r' });
  await table.setAccessPolicy([{ id: 'readers', accessPolicy: { expiry: later(), permission: 'r' } }]);
  const bare = generateTableSas('people', credential, { identifier: 'readers' }).replace(/&?tn=[^&]*/, '').replace(/^&/, '');
  assert.equal((await all(sasClient(server, bare).listEntities())).length, 1);
  assert.equal((await refusal(sasClient(server, bare).deleteEntity('p', 'r'))).code, 'AuthorizationPermissionMismatch');
  assert.equal((await refusal(all(sasClient(server, bare, 'other').listEntities()))).code, 'AuthenticationFailed');
  const list = new TableServiceClient(`http://127.0.0.1:${server.tablePort}/${storageAccount}`, new AzureSASCredential(bare), plain);
  assert.equal((await refusal(all(list.listTables()))).status, 403);
});

// As programs written for the storage emulators sign: without a date, and over a path with another end.
const undated = (server, { account = storageAccount, key = storageKey, path, signs = path, scheme = 'SharedKeyLite', headers = {} }) => {
  const text = scheme === 'SharedKeyLite' ? `\n/${account}${signs}` : `GET\n\n\n\n/${account}${signs}`;
  const sig = createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
  return fetch(`http://127.0.0.1:${server.tablePort}${path}`, { headers: { accept: 'application/json', authorization: `${scheme} ${account}:${sig}`, ...headers } });
};

test('the account of the emulators may sign without a date and with a slash at the end', async (t) => {
  const { server } = await tables(t);
  const root = `/${storageAccount}`;
  for (const [path, signs] of [[`${root}/Tables`], [`${root}/Tables`, `${root}/Tables/`], [`${root}/Tables/`, `${root}/Tables`], [`${root}/Tables/`], [`${root}/people()/`, `${root}/people()`]])
    assert.equal((await undated(server, { path, signs })).status, 200, `${path} ${signs}`);
  assert.equal((await undated(server, { path: `${root}/Tables`, signs: `${root}/people()` })).status, 403);
  assert.equal((await undated(server, { path: `${root}/Tables`, scheme: 'SharedKey' })).status, 403);
  assert.equal((await undated(server, { path: `${root}/Tables`, key: Buffer.alloc(64, 1).toString('base64') })).status, 403);
  const old = new Date(Date.now() - 3600_000).toUTCString();
  assert.equal((await sendTable(server, 'GET', '/Tables', { date: old })).status, 403, 'a date that is sent counts');
  assert.equal((await undated(server, { account: 'default', path: '/default/Tables', key: emulatorKey })).status, 403, 'no other account');
  assert.equal((await undated(server, { path: '/default/Tables' })).status, 403, 'nor by signing with the name of that one');
});

test('without --dev every signature has a date', async (t) => {
  const server = await Server.start(t, []);
  const key = /AccountKey=([^;<]+);TableEndpoint/.exec(server.out)[1];
  assert.equal((await undated(server, { account: 'default', path: '/default/Tables', key })).status, 403);
  assert.equal((await undated(server, { path: `/${storageAccount}/Tables` })).status, 403);
});

test('with --dev a name that others can lead here is MisdirectedRequest, and a page of another origin AuthorizationFailure', async (t) => {
  const { server } = await tables(t);
  const rebound = await sendTable(server, 'GET', '/Tables', { headers: { host: `evil.example:${server.tablePort}` } });
  assert.deepEqual([rebound.status, rebound.code], [421, 'MisdirectedRequest']);
  const page = await sendTable(server, 'POST', '/Tables', { headers: { origin: 'https://evil.example' }, body: { TableName: 'stolen' } });
  assert.deepEqual([page.status, page.code], [403, 'AuthorizationFailure']);
});
