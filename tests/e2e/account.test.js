// The account document, which every client reads first and then obeys.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import https from 'node:https';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { master, send, signature, signed } from './rest.js';

test('the account document has what clients read of it', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const { status, json, headers } = await signed(server, 'GET', '/');
  assert.equal(status, 200);
  for (const name of ['_self', 'id', '_rid', 'media', 'addresses', '_dbs', 'writableLocations', 'readableLocations',
    'enableMultipleWriteLocations', 'continuousBackupEnabled', 'enableNRegionSynchronousCommit',
    'enablePerPartitionFailoverBehavior', 'disableCrossRegionalHedging', 'userReplicationPolicy',
    'userConsistencyPolicy', 'systemReplicationPolicy', 'readPolicy', 'queryEngineConfiguration'])
    assert.ok(name in json, name);
  assert.equal(json._etag, undefined);
  assert.equal(json.userReplicationPolicy.maxReplicasetSize, 4);
  assert.equal(json.userConsistencyPolicy.defaultConsistencyLevel, 'Session');
  assert.equal(typeof JSON.parse(json.queryEngineConfiguration).maxJoinsPerSqlQuery, 'number');
  assert.equal(json.writableLocations[0].databaseAccountEndpoint, `${server.url}/`);
  assert.ok(headers['x-ms-last-state-change-utc'].endsWith(' GMT'));
  assert.equal(headers['x-ms-max-media-storage-usage-mb'], '0');
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const account = (await client.getDatabaseAccount()).resource;
  assert.equal(account.consistencyPolicy, 'Session');
});

test('HEAD of the account has headers and no body', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const { status, text, headers } = await signed(server, 'HEAD', '/');
  assert.deepEqual([status, text], [200, '']);
  assert.ok(Number(headers['content-length']) > 1000);
});

test('the endpoint told is the one the client came by', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true', '--set', 'tls.names=h, db.example.org']);
  const told = async (options) => {
    const { json, text } = await signed(server, 'GET', '/', options);
    assert.ok(json?.readableLocations, text);
    assert.deepEqual(json.readableLocations, json.writableLocations);
    return [json.id, json.writableLocations[0].databaseAccountEndpoint];
  };
  assert.deepEqual(await told({ host: 'db.example.org:9999' }), ['default', 'http://db.example.org:9999/']);
  assert.deepEqual(await told({ host: `mine.localhost:${server.port}` }), ['mine', `http://mine.localhost:${server.port}/`]);
  assert.deepEqual(await told({ host: 'h', account: 'mine' }), ['mine', 'http://h/mine/']);
  assert.deepEqual(await told({ host: 'h', headers: { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'evil' } }),
    ['default', 'http://h/']);
});

test('over TLS the endpoint told is https', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const date = new Date().toUTCString();
  const authorization = master(signature(emulatorKey, 'GET', { type: '', link: '' }, date));
  const text = await new Promise((resolve, reject) => {
    https.get({
      host: '127.0.0.1', port: server.port, path: '/', rejectUnauthorized: false, // it is our own authority's
      headers: { 'x-ms-date': date, authorization },
    }, (response) => {
      let body = '';
      response.on('data', (part) => (body += part));
      response.on('end', () => resolve(body));
    }).on('error', reject);
  });
  assert.equal(JSON.parse(text).writableLocations[0].databaseAccountEndpoint, `https://127.0.0.1:${server.port}/`);
});

test('bounded staleness tells its bounds', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.consistency=BoundedStaleness']);
  const { json } = await signed(server, 'GET', '/');
  assert.equal(json.userConsistencyPolicy.defaultConsistencyLevel, 'BoundedStaleness');
  assert.ok(json.userConsistencyPolicy.maxStalenessPrefix > 0);
  assert.ok(json.userConsistencyPolicy.maxIntervalInSeconds > 0);
});

test('retired and direct mode resources are refused by name', async (t) => {
  const server = await Server.start(t, ['--dev']);
  for (const [method, path, name] of [
    ['GET', '/addresses/?$resolveFor=dbs%2fd%2fcolls%2fc%2fdocs&$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0', 'ADDRESSES'],
    ['GET', '/addresses', 'ADDRESSES'],
    ['GET', '/media/x', 'MEDIA'], ['POST', '/media', 'MEDIA'], ['GET', '/topology', 'TOPOLOGY'],
    ['GET', '/dbs/d/colls/c/schemas', 'SCHEMAS'],
    ['POST', '/dbs/d/colls/c/docs/i/attachments', 'ATTACHMENTS'],
    ['GET', '/dbs/d/colls/c/docs/i/attachments/a', 'ATTACHMENTS'],
  ]) {
    const answer = await send(server, method, path);
    assert.equal(answer.status, 501, path);
    assert.match(answer.json.message, new RegExp(`${name}\\.`));
  }
  assert.equal((await signed(server, 'PUT', '/dbs/d', { body: { id: 'd' } })).status, 501);
  assert.equal((await signed(server, 'PATCH', '/dbs', { body: {} })).status, 405);
  assert.equal((await signed(server, 'GET', '/dbs/', {})).status, 400);
});
