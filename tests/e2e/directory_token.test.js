// Directory (Entra) tokens as the vendors' test credentials make them for the emulator.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import https from 'node:https';
import { CosmosClient } from '@azure/cosmos';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, emulatorKey, scratch } from './server.js';
import { send } from './rest.js';
import { sendTable, storageKey } from './tables.js';

const now = () => Math.floor(Date.now() / 1000);
const base64url = (text) => Buffer.from(text).toString('base64url');

function token({ key = emulatorKey, alg = 'RS256', claims = {} } = {}) {
  const head = { typ: 'JWT', alg, x5t: 'CosmosEmulatorPrimaryMaster', kid: 'CosmosEmulatorPrimaryMaster' };
  const body = { aud: 'https://localhost.localhost', iss: 'https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984',
    iat: now(), nbf: now(), exp: now() + 3600, appid: 'localhost', tid: 'EmulatorFederation', ver: '1.0', scp: 'user_impersonation', ...claims };
  return [JSON.stringify(head), JSON.stringify(body), key].map(base64url).join('.');
}

const ask = (server, text, method = 'GET', path = '/dbs') =>
  send(server, method, path, { headers: { authorization: encodeURIComponent(`type=aad&ver=1.0&sig=${text}`), 'x-ms-version': '2020-07-15' } });

test('code with a token credential runs unchanged with --dev', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({
    endpoint: `https://127.0.0.1:${server.port}`, // the library sends tokens over https only
    agent: new https.Agent({ rejectUnauthorized: false }), // it is our own authority's
    aadCredentials: { getToken: async () => ({ token: token(), expiresOnTimestamp: Date.now() + 3600e3 }) },
  });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  await container.items.create({ id: '1', pk: 'a' });
  assert.equal((await container.item('1', 'a').read()).resource.pk, 'a');
  const { resources } = await container.items.query('SELECT VALUE c.id FROM c').fetchAll();
  assert.deepEqual(resources, ['1']);
  const tables = await sendTable(server, 'POST', '/Tables', { authorization: `Bearer ${token({ key: storageKey })}`, body: { TableName: 'people' },
    headers: { 'content-type': 'application/json' } });
  assert.equal(tables.status, 201, tables.text);
  assert.equal((await sendTable(server, 'GET', '/Tables', { authorization: `Bearer ${token()}` })).json.value[0].TableName, 'people');
});

test('padding and the digits of plain base64, as the test credential of .NET sends them, are taken', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const padded = (part) => part + '='.repeat((4 - (part.length % 4)) % 4);
  const digits = { claims: { name: '????????>>>>>>>>' } };
  assert.match(token(digits), /_.*-/, 'it has both digits that differ');
  for (const text of [token(), token(digits)]) {
    const parts = text.split('.');
    const plain = parts.map((part) => padded(part).replaceAll('-', '+').replaceAll('_', '/'));
    assert.ok(plain[2].endsWith('=='));
    for (const sent of [parts.map(padded).join('.'), plain.join('.')]) {
      assert.equal((await ask(server, sent)).status, 200, sent);
      assert.equal((await sendTable(server, 'GET', '/Tables', { authorization: `Bearer ${sent}` })).status, 200, sent);
    }
    for (const sent of [`${parts.join('.')}=`, `${parts.join('.')}A===`, `=${text}`]) assert.equal((await ask(server, sent)).status, 401, sent);
  }
});

test('a directory token is refused by name when anything is wrong with it', async (t) => {
  const server = await Server.start(t, ['--dev']);
  for (const [text, why] of [
    [token({ alg: 'none' }), /alg .* RS256/], [token({ claims: { nbf: now() + 600 } }), /nbf/], [token({ claims: { exp: now() - 1 } }), /exp/],
    [token({ claims: { nbf: undefined } }), /needs nbf and exp/], [token({ claims: { exp: 'soon' } }), /needs nbf and exp/],
    [token({ key: Buffer.alloc(64).toString('base64') }), /not the account's key/], [token({ key: '' }), /three parts/],
    ['a.b', /three parts/], [`${token()}.x`, /three parts/], ['e30.e30.e30', /alg/], [`${base64url('[]')}.e30.e30`, /three parts/],
  ]) {
    const answer = await ask(server, text);
    assert.equal(answer.status, 401, text);
    assert.match(answer.json.message, why);
    const table = await sendTable(server, 'GET', '/Tables', { authorization: `Bearer ${text}` });
    assert.equal(table.status, 403);
    assert.match(table.text, why);
  }
});

test('without --dev a directory token is refused by name, even with a key of the account', async (t) => {
  const directory = scratch(t);
  const server = await Server.start(t, ['--node', `a=rocksdb:${directory}`]);
  const key = /^primary (\S+)/m.exec(readFileSync(join(directory, 'keys'), 'utf8'))[1];
  for (const text of [token(), token({ key })]) {
    const answer = await ask(server, text);
    assert.equal(answer.status, 401);
    assert.match(answer.json.message, /directory \(Entra\) tokens are not supported/);
    assert.equal((await sendTable(server, 'GET', '/Tables', { account: 'default', authorization: `Bearer ${text}` })).status, 403);
  }
});

test('with --dev a key of the account counts as in signatures: a read-only one reads', async (t) => {
  const directory = scratch(t);
  const server = await Server.start(t, ['--dev', '--node', `a=rocksdb:${directory}`]);
  const key = /^primary-readonly (\S+)/m.exec(readFileSync(join(directory, 'keys'), 'utf8'))[1];
  assert.equal((await ask(server, token({ key }))).status, 200);
  assert.equal((await ask(server, token({ key }), 'DELETE', '/dbs/d')).status, 403);
});
