// Who may use the MongoDB API: SCRAM, PLAIN under TLS, accounts and their keys.
import assert from 'node:assert/strict';
import test from 'node:test';
import { emulatorKey, Server } from './server.js';
import { mongoClient } from './mongo.js';
import { signed } from './rest.js';

const url = (server, user, key, options = '') =>
  server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://${encodeURIComponent(user)}:${encodeURIComponent(key)}@`) + `/?${options}`;

// A server with a secret of its own, and the keys of an account made there.
async function keyed(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args]);
  const made = await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'acme' } });
  assert.equal(made.status, 201, made.text);
  return { server, keys: made.json.keys };
}

for (const mechanism of ['SCRAM-SHA-1', 'SCRAM-SHA-256', 'DEFAULT'])
  test(`an account and its key open the server: ${mechanism}`, async (t) => {
    const { server, keys } = await keyed(t);
    const options = mechanism === 'DEFAULT' ? '' : `authMechanism=${mechanism}`;
    const client = await mongoClient(t, url(server, 'acme', keys.primary, options));
    await client.db('shop').collection('c').insertOne({ _id: 1 });
    const { authInfo } = await client.db('admin').command({ connectionStatus: 1 });
    assert.deepEqual(authInfo.authenticatedUsers, [{ user: 'acme', db: 'admin' }]);
    // another account, which sees none of it
    const other = await mongoClient(t, url(server, 'default', emulatorKey, options));
    assert.deepEqual((await other.db('admin').command({ listDatabases: 1 })).databases, []);
    await assert.rejects(mongoClient(t, url(server, 'acme', 'AAAA', options)), { code: 18, message: /Authentication failed\./ });
    await assert.rejects(mongoClient(t, url(server, 'nobody', keys.primary, options)), { code: 18 });
  });

test('read-only keys only read', async (t) => {
  const { server, keys } = await keyed(t);
  const owner = await mongoClient(t, url(server, 'acme', keys.primary));
  await owner.db('shop').collection('c').insertOne({ _id: 1 });
  const reader = await mongoClient(t, url(server, 'acme', keys['primary-readonly'] ?? keys.primaryReadonly));
  const db = reader.db('shop');
  assert.deepEqual(await db.collection('c').find().toArray(), [{ _id: 1 }]);
  for (const command of [{ insert: 'c', documents: [{}] }, { delete: 'c', deletes: [{ q: {}, limit: 0 }] }, { drop: 'c' },
    { create: 'd' }, { dropDatabase: 1 }, { update: 'c', updates: [{ q: {}, u: {} }] }])
    await assert.rejects(db.command(command), { code: 13, message: /not authorized on shop to execute command/ });
  assert.equal(await db.collection('c').estimatedDocumentCount(), 1);
});

test('without --dev nobody is let in without a key', async (t) => {
  const server = await Server.start(t, []);
  const base = server.mongo.replace(/mongodb:\/\/\S+@/, 'mongodb://');
  const client = await mongoClient(t, base);
  assert.equal((await client.db('admin').command({ ping: 1 })).ok, 1);
  await assert.rejects(client.db('shop').collection('c').findOne(), { code: 13, message: /Command find requires authentication/ });
  await assert.rejects(client.db('shop').collection('c').insertOne({}), { code: 13 });
  await assert.rejects(mongoClient(t, `mongodb://default:${encodeURIComponent(emulatorKey)}@${base.slice('mongodb://'.length)}`), { code: 18 });
});

test('a key that is replaced closes the door behind its connections', async (t) => {
  const { server, keys } = await keyed(t);
  const client = await mongoClient(t, url(server, 'acme', keys.primary), { maxPoolSize: 1 });
  await client.db('shop').collection('c').insertOne({ _id: 1 });
  const rotated = await signed(server, 'POST', '/_orrery/accounts/acme/keys/primary/rotate');
  assert.ok(rotated.status < 300, rotated.text);
  // told so (391), the driver authenticates again with the key it has, which is none any more
  await assert.rejects(client.db('shop').collection('c').findOne(), { code: 18 });
});

test('PLAIN is offered under TLS alone', async (t) => {
  const { server, keys } = await keyed(t);
  const plain = 'authMechanism=PLAIN&authSource=$external';
  await assert.rejects(mongoClient(t, url(server, 'acme', keys.primary, plain)), { code: 334 });
  const client = await mongoClient(t, url(server, 'acme', keys.primary, `${plain}&tls=true`), { tlsAllowInvalidCertificates: true });
  await client.db('shop').collection('c').insertOne({});
  await assert.rejects(mongoClient(t, url(server, 'acme', emulatorKey.replace('C', 'D'), `${plain}&tls=true`), { tlsAllowInvalidCertificates: true }), { code: 18 });
});

test('a throw-away account is made by its first write', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true']);
  const client = await mongoClient(t, url(server, 'throw-away', emulatorKey));
  assert.deepEqual(await client.db('shop').collection('c').find().toArray(), []);
  const accounts = async () => (await signed(server, 'GET', '/_orrery/accounts')).json.accounts.map(({ id }) => id).sort();
  assert.deepEqual(await accounts(), ['default']);
  await client.db('shop').collection('c').insertOne({ _id: 1 });
  assert.deepEqual(await accounts(), ['default', 'throw-away']);
  assert.equal(await client.db('shop').collection('c').estimatedDocumentCount(), 1);
  const fixed = await Server.start(t, ['--dev']);
  await assert.rejects(mongoClient(t, url(fixed, 'throw-away', emulatorKey)).then((c) => c.db('a').collection('b').findOne()));
});
