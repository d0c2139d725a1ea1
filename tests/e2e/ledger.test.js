// The compatibility ledger is what the server does: every operation it lists is sent, every refusal
// provoked, and every header that is obeyed or refused occurs in a test.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Server, root } from './server.js';
import { signed } from './rest.js';

const page = readFileSync(join(root, 'docs/compatibility.md'), 'utf8');
const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()));
const operations = rows.filter((row) => row.length === 4)
  .map(([name, request, fate]) => ({ name: name.replaceAll('`', ''), request, fate }));
const headers = rows.filter((row) => row.length === 3)
  .map(([name, fate]) => ({ name: name.replaceAll('`', ''), fate }));

const key = { 'x-ms-documentdb-partitionkey': '["x"]' };
const upsert = { 'x-ms-documentdb-is-upsert': 'true' };
const query = { 'x-ms-documentdb-isquery': 'true', 'x-ms-documentdb-query-enablecrosspartition': 'true',
  'content-type': 'application/query+json' };
const incremental = { 'a-im': 'Incremental Feed' };
const all = { query: 'SELECT * FROM c' };
const c = '/dbs/d/colls/c';
const wrapped = { encryptionAlgorithm: 'AEAD_AES_256_CBC_HMAC_SHA256', wrappedDataEncryptionKey: 'YQ==',
  keyWrapMetadata: { type: 't', name: 'n', value: 'v', algorithm: 'RSA_OAEP' } };
const permission = { permissionMode: 'Read', resource: 'dbs/d/colls/c' };
const script = { body: 'function () {}' };
const trigger = { ...script, triggerType: 'Pre', triggerOperation: 'All' };

// The usual eight on a resource that is made of a name and a body.
function crud(kind, feed, body) {
  return {
    [`${kind}.LIST`]: { path: feed },
    [`${kind}.QUERY`]: { path: feed, headers: query, body: all },
    [`${kind}.CREATE`]: { path: feed, body: { id: 'made', ...body } },
    [`${kind}.UPSERT`]: { path: feed, headers: upsert, body: { id: 'made', ...body } },
    [`${kind}.READ`]: { path: `${feed}/made` },
    [`${kind}.REPLACE`]: { path: `${feed}/made`, body: { id: 'made', ...body } },
    [`${kind}.DELETE`]: { path: `${feed}/made`, last: true },
  };
}

const examples = {
  'ACCOUNT.READ': { path: '/' },
  'DATABASES.LIST': { path: '/dbs' },
  'DATABASES.QUERY': { path: '/dbs', headers: query, body: all },
  'DATABASES.CREATE': { path: '/dbs', body: { id: 'made' } },
  'DATABASES.READ': { path: '/dbs/made' },
  'DATABASES.REPLACE': { path: '/dbs/made', body: { id: 'made' } },
  'DATABASES.DELETE': { path: '/dbs/made', last: true },
  'CONTAINERS.LIST': { path: '/dbs/d/colls' },
  'CONTAINERS.QUERY': { path: '/dbs/d/colls', headers: query, body: all },
  'CONTAINERS.CREATE': { path: '/dbs/d/colls', body: { id: 'made', partitionKey: { paths: ['/pk'], kind: 'Hash' } } },
  'CONTAINERS.READ': { path: '/dbs/d/colls/made' },
  'CONTAINERS.REPLACE': { path: '/dbs/d/colls/made', body: { id: 'made', partitionKey: { paths: ['/pk'], kind: 'Hash' } } },
  'CONTAINERS.DELETE': { path: '/dbs/d/colls/made', last: true },
  'ITEMS.CREATE': { path: `${c}/docs`, body: { id: 'made', pk: 'x' } },
  'ITEMS.UPSERT': { path: `${c}/docs`, headers: { ...key, ...upsert }, body: { id: 'made', pk: 'x' } },
  'ITEMS.READ': { path: `${c}/docs/made`, headers: key },
  'ITEMS.REPLACE': { path: `${c}/docs/made`, headers: key, body: { id: 'made', pk: 'x', n: 1 } },
  'ITEMS.PATCH': { path: `${c}/docs/made`, headers: key, body: [{ op: 'incr', path: '/n', value: 1 }] },
  'ITEMS.LIST': { path: `${c}/docs` },
  'ITEMS.CHANGES': { path: `${c}/docs`, headers: { ...key, ...incremental } },
  'ITEMS.QUERY': { path: `${c}/docs`, headers: query, body: all },
  'ITEMS.PLAN': { path: `${c}/docs`, body: all, headers: { ...query, 'x-ms-cosmos-is-query-plan-request': 'True',
    'x-ms-cosmos-supported-query-features': 'Aggregate, Distinct, OrderBy' } },
  'ITEMS.BATCH': { path: `${c}/docs`, headers: { ...key, 'x-ms-cosmos-is-batch-request': 'True',
    'x-ms-cosmos-batch-atomic': 'True' }, body: [{ operationType: 'Read', id: 'made' }] },
  'ITEMS.DELETE': { path: `${c}/docs/made`, headers: key, last: true },
  'PKRANGES.LIST': { path: `${c}/pkranges` },
  'PKRANGES.CHANGES': { path: `${c}/pkranges`, headers: incremental },
  'PKRANGES.QUERY': { path: `${c}/pkranges`, headers: query, body: all },
  'PKRANGES.READ': { path: (made) => `${c}/pkranges/${made.range}` },
  ...crud('USERS', '/dbs/d/users', {}),
  ...crud('PERMISSIONS', '/dbs/d/users/u/permissions', permission),
  ...crud('ENCRYPTION_KEYS', '/dbs/d/clientencryptionkeys', wrapped),
  ...crud('PROCEDURES', `${c}/sprocs`, script),
  ...crud('TRIGGERS', `${c}/triggers`, trigger),
  ...crud('FUNCTIONS', `${c}/udfs`, script),
  'PROCEDURES.EXECUTE': { path: `${c}/sprocs/made`, headers: key, body: [] },
  'CONFLICTS.LIST': { path: `${c}/conflicts` },
  'CONFLICTS.QUERY': { path: `${c}/conflicts`, headers: query, body: all },
  'CONFLICTS.READ': { path: `${c}/conflicts/none`, status: 404 }, // there never is one
  'CONFLICTS.DELETE': { path: `${c}/conflicts/none`, headers: key, status: 404 },
  'PARTITION_DELETE.EXECUTE': { path: `${c}/operations/partitionkeydelete`, headers: key, last: true },
  'OFFERS.LIST': { path: '/offers' },
  'OFFERS.QUERY': { path: '/offers', headers: query, body: all },
  'OFFERS.READ': { path: (made) => `/offers/${made.offer.id}` },
  'OFFERS.REPLACE': { path: (made) => `/offers/${made.offer.id}`, body: (made) => made.offer },
};

// What only direct mode or the old service had needs no more than its path.
function example(name, request) {
  if (examples[name]) return examples[name];
  if (!/^(ADDRESSES|MEDIA|ATTACHMENTS|SCHEMAS|TOPOLOGY)\./.test(name)) return undefined;
  const path = /`(.*)`/.exec(request)[1].replaceAll(/\{\w+\}/g, 'c');
  return { path, headers: name.endsWith('.QUERY') ? query : name.endsWith('.UPSERT') ? upsert : {}, body: /^P/.test(request) ? {} : undefined };
}

async function send(server, made, { name, request }) {
  const method = request.split(' ')[0];
  const { path, headers: extra = {}, body } = example(name, request);
  return signed(server, method, typeof path === 'function' ? path(made) : path,
    { headers: extra, body: typeof body === 'function' ? body(made) : body });
}

test('every operation of the ledger has an example, and no example lacks its row', () => {
  assert.ok(operations.length > 80, String(operations.length));
  assert.deepEqual(operations.filter(({ name, request }) => !example(name, request)).map(({ name }) => name), []);
  const listed = new Set(operations.map(({ name }) => name));
  assert.deepEqual(Object.keys(examples).filter((name) => !listed.has(name)), []);
});

test('what the ledger lists works, and what it refuses is refused by name', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const post = async (path, body) => assert.equal((await signed(server, 'POST', path, { body })).status, 201, path);
  await post('/dbs', { id: 'd' });
  await post('/dbs/d/colls', { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } });
  await post('/dbs/d/users', { id: 'u' });
  const made = {
    offer: (await signed(server, 'GET', '/offers')).json.Offers[0],
    range: (await signed(server, 'GET', `${c}/pkranges`)).json.PartitionKeyRanges[0].id,
  };
  // creates first and deletes last, so that each finds what it works on
  const rank = ({ name }) => (examples[name]?.last ? 2 : name.endsWith('.CREATE') ? 0 : 1);
  for (const operation of [...operations].sort((a, b) => rank(a) - rank(b))) {
    const answer = await send(server, made, operation);
    const context = `${operation.name}: ${answer.status} ${answer.text}`;
    if (operation.fate === 'refused') {
      assert.equal(answer.status, 501, context);
      assert.equal(answer.json.code, 'NotImplemented', context);
    } else {
      const expected = example(operation.name, operation.request).status;
      assert.ok(expected ? answer.status === expected : answer.status >= 200 && answer.status < 300, context);
    }
  }
});

test('every header that is obeyed or refused occurs in a test', () => {
  const folder = join(root, 'tests/e2e');
  const texts = readdirSync(folder).filter((name) => name.endsWith('.js') && name !== 'ledger.test.js')
    .map((name) => readFileSync(join(folder, name), 'utf8').toLowerCase()).join('\n');
  assert.deepEqual(headers.filter(({ name, fate }) => fate !== 'hint' && !texts.includes(name)).map(({ name }) => name), []);
});
