// Who may use the MongoDB API: SCRAM, PLAIN under TLS, accounts and their keys.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Binary } from 'mongodb';
import { emulatorKey, scratch, Server } from './server.js';
import { mongoClient, Wire } from './mongo.js';
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

// The first message of the server to whoever says it is this user.
async function challenge(client, user, mechanism, database = 'admin') {
  const payload = new Binary(Buffer.from(`n,,n=${user},r=abcdefghijklmnopqrstuvwx`));
  const { payload: answer } = await client.db(database).command({ saslStart: 1, mechanism, payload });
  const [, salt, iterations] = /s=([^,]+),i=(\d+)/.exec(Buffer.from(answer.buffer).toString());
  return { salt, bytes: Buffer.from(salt, 'base64').length, iterations: Number(iterations) };
}

test('the first message of SCRAM does not tell who exists', async (t) => {
  const { server } = await keyed(t);
  const client = await mongoClient(t, server.mongo, { maxPoolSize: 1 });
  await client.db('admin').command({ createUser: 'made', pwd: 'secret', roles: [] });
  await client.db('admin').command({ createUser: 'half', pwd: 'secret', roles: [], mechanisms: ['SCRAM-SHA-256'] });
  for (const [mechanism, bytes, iterations] of [['SCRAM-SHA-1', 16, 10_000], ['SCRAM-SHA-256', 28, 15_000]]) {
    const salts = new Set();
    for (const user of ['made', 'half', 'acme', 'nobody', 'nobody-else']) {
      const first = await challenge(client, user, mechanism);
      assert.deepEqual([first.bytes, first.iterations], [bytes, iterations], `${user} by ${mechanism}`);
      assert.equal((await challenge(client, user, mechanism)).salt, first.salt, 'a salt stays');
      salts.add(first.salt);
      // nor does it matter where somebody is looked for
      assert.notEqual((await challenge(client, user, mechanism, 'elsewhere')).salt, first.salt);
    }
    assert.equal(salts.size, 5);
  }
});

// The code of a login by a proof of nothing. It takes the client no time: failures are forgotten with time.
async function guess(t, server, user) {
  const wire = await Wire.open(t, server);
  const nonce = 'abcdefghijklmnopqrstuvwx';
  const payload = (text) => new Binary(Buffer.from(text));
  const first = await wire.ask({ saslStart: 1, mechanism: 'SCRAM-SHA-256', payload: payload(`n,,n=${user},r=${nonce}`), $db: 'admin' });
  if (!first.ok) return first.code;
  const [, both] = /r=([^,]+),/.exec(Buffer.from(first.payload.buffer).toString());
  const proof = Buffer.alloc(32, 7).toString('base64');
  const second = await wire.ask({ saslContinue: 1, conversationId: first.conversationId, payload: payload(`c=biws,r=${both},p=${proof}`), $db: 'admin' });
  wire.socket.destroy();
  return second.code;
}

test('who guesses is slowed down over all its connections, and its account is not locked', async (t) => {
  const { server, keys } = await keyed(t);
  const good = url(server, 'acme', keys.primary);
  const bad = url(server, 'acme', 'AAAA');
  const beside = url(server, 'default', emulatorKey);
  await (await mongoClient(t, beside)).close(); // known at this address
  const open = await mongoClient(t, good, { maxPoolSize: 1, minPoolSize: 1 });
  await open.db('shop').command({ ping: 1 });
  await assert.rejects(mongoClient(t, bad), { code: 18 });
  for (let i = 0; i < 60; i++) assert.equal(await guess(t, server, 'acme'), 18);
  // the address has used up its failures: not even the right key is looked at
  await assert.rejects(mongoClient(t, good), { code: 18 });
  // who is known there, as many behind one address are, is not kept out by the others
  await (await mongoClient(t, beside)).close();
  await assert.rejects(mongoClient(t, url(server, 'nobody', 'AAAA')), { code: 18 });
  // who is in stays in
  assert.equal((await open.db('shop').command({ listCollections: 1 })).ok, 1);
});

test('a certificate that an authority of clients has signed logs its user in', async (t) => {
  const directory = scratch(t);
  const file = (name) => join(directory, name);
  const openssl = (...args) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
  for (const authority of ['ca', 'stranger'])
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', `${authority}.key`,
      '-out', `${authority}.pem`, '-subj', `/CN=${authority}`);
  for (const [name, authority] of [['ann', 'ca'], ['bob', 'ca'], ['eve', 'stranger']]) {
    openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`,
      '-subj', `/O=Acme, Inc./OU=clients/CN=${name}`);
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial', '-days', '2', '-out', `${name}.crt`);
    writeFileSync(file(`${name}.pem`), readFileSync(file(`${name}.key`), 'utf8') + readFileSync(file(`${name}.crt`), 'utf8'));
  }
  const server = await Server.start(t, ['--dev', '--set', `tls.client_authority=${file('ca.pem')}`]);
  const owner = await mongoClient(t, server.mongo);
  const user = 'CN=ann,OU=clients,O=Acme\\, Inc.';
  await owner.db('$external').command({ createUser: user, roles: [{ role: 'readWrite', db: 'shop' }] });
  await assert.rejects(owner.db('$external').command({ createUser: 'x', pwd: 'y', roles: [] }), { code: 2 });
  const as = (name, called = '') => mongoClient(t, server.mongo.replace(/mongodb:\/\/(\S+@)?/, `mongodb://${called}`) + '/?tls=true&authMechanism=MONGODB-X509', {
    tlsAllowInvalidCertificates: true, ...(name ? { tlsCertificateKeyFile: file(`${name}.pem`) } : {}), serverSelectionTimeoutMS: 3_000 });
  const ann = await as('ann');
  await ann.db('shop').collection('c').insertOne({ _id: 1 });
  assert.deepEqual((await ann.db('admin').command({ connectionStatus: 1 })).authInfo.authenticatedUsers, [{ user, db: '$external' }]);
  await assert.rejects(ann.db('other').collection('c').insertOne({}), { code: 13 });
  await assert.rejects(as('bob'), { code: 18 }); // signed, but no user
  await assert.rejects(as('eve')); // not signed by the authority
  await assert.rejects(as(null), { code: 18 }); // no certificate
  await assert.rejects(as('bob', `${encodeURIComponent(user)}@`), { code: 18 }); // somebody else's name
  await owner.db('$external').command({ dropUser: user });
  await assert.rejects(ann.db('shop').collection('c').findOne());
  // plain connections and REST are as ever
  assert.equal((await owner.db('shop').collection('c').findOne())._id, 1);
});
