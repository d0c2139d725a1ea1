// The ledger of the Table API is what the server does: every operation it lists is sent, every
// refusal provoked, and every error code occurs in a test.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { root } from './server.js';
import { sendTable, tables } from './tables.js';

const page = readFileSync(join(root, 'docs/compatibility-tables.md'), 'utf8');
const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim().replace(/^`(.*)`$/, '$1')));
const operations = rows.filter((row) => row.length === 5).map(([name, request, fate]) => ({ name, method: request.split(' ')[0], fate }));
const codes = rows.filter((row) => row.length === 3).map(([code]) => code);

const type = { 'content-type': 'application/json' };
const entity = "/people(PartitionKey='p',RowKey='r')";
const examples = {
  'TABLES.LIST': { path: '/Tables' },
  'TABLES.CREATE': { path: '/Tables', headers: type, body: { TableName: 'made' } },
  'ONE.READ': { path: "/Tables('made')" },
  'ONE.DELETE': { path: "/Tables('made')", last: true },
  'ACCESS.LIST': { path: '/people?comp=acl' },
  'ACCESS.REPLACE': { path: '/people?comp=acl', body: '<SignedIdentifiers/>' },
  'ENTITIES.LIST': { path: '/people()' },
  'ENTITIES.CREATE': { path: '/people', headers: type, body: { PartitionKey: 'p', RowKey: 'r' } },
  'ENTITY.READ': { path: entity },
  'ENTITY.REPLACE': { path: entity, headers: type, body: { n: 1 } },
  'ENTITY.MERGE': { path: entity, headers: type, body: { n: 1 } },
  'ENTITY.DELETE': { path: entity, headers: { 'if-match': '*' }, last: true },
  'BATCH.CREATE': {
    path: '/$batch', headers: { 'content-type': 'multipart/mixed; boundary=b' },
    body: '--b\r\nContent-Type: application/http\r\n\r\nGET /people() HTTP/1.1\r\n\r\n--b--\r\n',
  },
  'PROPERTIES.LIST': { path: '/?restype=service&comp=properties' },
  'PROPERTIES.REPLACE': { path: '/?restype=service&comp=properties', body: '<StorageServiceProperties><Cors/></StorageServiceProperties>' },
  'STATS.LIST': { whole: '/devstoreaccount1-secondary/?restype=service&comp=stats' },
  'METADATA.LIST': { path: '/$metadata' },
  'SERVICE.LIST': { whole: '/' },
};

test('every operation of the ledger has an example, and no example lacks its row', () => {
  assert.deepEqual(operations.map(({ name }) => name).sort(), Object.keys(examples).sort());
});

test('what the ledger lists works, and what it refuses is refused by name', async (t) => {
  const { server } = await tables(t);
  const rank = ({ name }) => (examples[name].last ? 2 : name.endsWith('.CREATE') ? 0 : 1);
  for (const { name, method, fate } of [...operations].sort((a, b) => rank(a) - rank(b))) {
    const { path, ...options } = examples[name];
    const answer = await sendTable(server, method, path, options);
    const context = `${name}: ${answer.status} ${answer.text}`;
    if (fate === 'refused') {
      assert.equal(answer.status, 501, context);
      assert.equal(answer.headers['x-ms-error-code'], 'NotImplemented', context);
    } else {
      assert.ok(answer.status >= 200 && answer.status < 300, context);
    }
  }
});

test('every error code occurs in a test', () => {
  // those of a server in trouble, which no request can ask for
  const trouble = new Set(['InternalError', 'OperationTimedOut', 'ServerBusy', 'AuthorizationFailure']);
  const folder = join(root, 'tests/e2e');
  const texts = readdirSync(folder).filter((name) => /^table.*\.js$/.test(name) && name !== 'table_ledger.test.js')
    .map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  assert.deepEqual(codes.filter((code) => !trouble.has(code) && !texts.includes(code)), []);
});
