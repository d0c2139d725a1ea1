// Queries nobody should send: each ends soon, with the right error, and the server goes on.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Server } from './server.js';
import { signed } from './rest.js';

async function started(t) {
  const server = await Server.start(t, ['--dev']);
  await signed(server, 'POST', '/dbs', { body: { id: 'd' } });
  await signed(server, 'POST', '/dbs/d/colls', { body: { id: 'c', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 } } });
  for (let n = 0; n < 5; n++)
    await signed(server, 'POST', '/dbs/d/colls/c/docs', { body: { id: `${n}`, pk: 'x', text: `${'a'.repeat(40)}!` } });
  const ask = (body, headers = {}) => signed(server, 'POST', '/dbs/d/colls/c/docs', {
    headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true',
      'x-ms-documentdb-query-enablecrosspartition': 'true', ...headers },
    body: typeof body === 'string' ? { query: body } : body,
  });
  return { server, ask };
}

function refused(answer, pattern, status = 400) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.json.code, 'BadRequest');
  assert.match(answer.json.message, pattern);
}

test('nesting without end is refused, brackets, objects and subqueries alike', async (t) => {
  const { server, ask } = await started(t);
  const deep = 20_000;
  for (const text of [`SELECT VALUE ${'('.repeat(deep)}1${')'.repeat(deep)}`, `SELECT VALUE ${'['.repeat(deep)}`,
    `SELECT VALUE ${'NOT '.repeat(deep)}true`, `SELECT VALUE ${'{a:'.repeat(deep)}1`, `SELECT VALUE ${'(SELECT VALUE '.repeat(2000)}1`])
    refused(await ask(text), /./);
  assert.equal((await server.get('/ready')).status, 200);
});

test('a list of IN may be long, but not without limit', async (t) => {
  const { ask } = await started(t);
  const list = (count) => Array.from({ length: count }, (_, n) => n).join(',');
  const long = await ask(`SELECT VALUE c.id FROM c WHERE c.n IN (${list(16_000)})`);
  assert.deepEqual(long.json.Documents, []);
  refused(await ask(`SELECT VALUE c.id FROM c WHERE c.n IN (${list(16_001)})`), /IN/);
});

test('a regular expression that explodes meets a limit', async (t) => {
  const { server, ask } = await started(t);
  refused(await ask("SELECT VALUE c.id FROM c WHERE RegexMatch(c.text, '^(a+)+$')"), /regular expression|limit/i);
  assert.deepEqual((await ask("SELECT VALUE c.id FROM c WHERE RegexMatch(c.text, '^a+!$') AND c.id = '1'")).json.Documents, ['1']);
  assert.equal((await server.get('/ready')).status, 200);
});

test('a continuation that was changed, or is of another query, is refused', async (t) => {
  const { ask } = await started(t);
  const first = await ask('SELECT * FROM c', { 'x-ms-max-item-count': '2' });
  const continuation = first.headers['x-ms-continuation'];
  assert.ok(continuation);
  assert.equal((await ask('SELECT * FROM c', { 'x-ms-continuation': continuation })).json._count, 3);
  const middle = continuation.length >> 1;
  const changed = continuation.slice(0, middle) + (continuation[middle] === 'A' ? 'B' : 'A') + continuation.slice(middle + 1);
  for (const wrong of [changed, continuation.slice(0, -4), 'nonsense', 'A'.repeat(1000)])
    refused(await ask('SELECT * FROM c', { 'x-ms-continuation': wrong }), /continuation/i);
  refused(await ask('SELECT c.id FROM c', { 'x-ms-continuation': continuation }), /continuation/i);
});

test('bodies that hold no query are told what is missing', async (t) => {
  const { ask } = await started(t);
  for (const body of [{}, { query: 5 }, { query: '' }, { query: 'SELECT @p' }, { query: 'SELECT 1', parameters: 5 },
    { query: 'SELECT 1', parameters: [{ name: 'p', value: 1 }] }])
    refused(await ask(body), /./);
  refused(await ask(`SELECT ${"'x',".repeat(140_000)}1`), /./);
});
