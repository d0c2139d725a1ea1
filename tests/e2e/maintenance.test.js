// Pauses: clients of every API are refused with the operator's message, until it is over.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { MongoClient } from 'mongodb';
import { join } from 'node:path';
import { Server, emulatorKey, orrery, scratch } from './server.js';

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', ...args]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
  const run = (...words) => orrery([...words, '--endpoint', server.url, '--dev']);
  const good = async (...words) => {
    const result = await run(...words);
    assert.equal(result.code, 0, result.err);
    return result.out;
  };
  const ask = (method, id, body) => client.database('shop').container('orders').item(id, 'a')[method](body);
  return { server, client, run, good, ask };
}

async function refused(promise) {
  const error = await promise.then(() => assert.fail('it was not refused'), (fault) => fault);
  assert.equal(error.code, 503);
  assert.match(error.message ?? JSON.stringify(error.body), /we move house/);
  return error;
}

test('writes of a container are paused and resumed; reads go on, other containers too', async (t) => {
  const { client, good, run, ask } = await started(t);
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  const { container: users } = await database.containers.create({ id: 'users', partitionKey: '/tenant' });
  await container.items.create({ id: '1', tenant: 'a' });
  assert.match(await good('maintenance', 'pause', 'move', 'shop', 'orders', '--writes', '--message', 'we move house'),
    /writing of default\/shop\/orders is paused/);
  await refused(container.items.create({ id: '2', tenant: 'a' }));
  assert.equal((await ask('read', '1')).statusCode, 200);
  await users.items.create({ id: '1', tenant: 'a' });
  assert.match(await good('maintenance', 'list'), /move +default\/shop\/orders +writes .*in force +we move house/);
  assert.match((await run('maintenance', 'pause', 'typo', 'shop', 'ordres')).err, /does not exist/);
  await good('maintenance', 'resume', 'move');
  await container.items.create({ id: '2', tenant: 'a' });
  assert.equal((await run('maintenance', 'resume', 'move')).code, 1);
});

test('all service of a database is paused for every API, across a restart, and says when to come again', async (t) => {
  const data = join(scratch(t), 'data');
  const first = await started(t, ['--node', `local=rocksdb:${data}`]);
  const mongo = await new MongoClient(first.server.mongo, { directConnection: true }).connect();
  await mongo.db('shop').collection('made').insertOne({ _id: 1 });
  await mongo.close();
  const { database } = await first.client.databases.createIfNotExists({ id: 'shop' });
  await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  await first.good('maintenance', 'pause', 'all-of-it', 'shop', '--message', 'we move house', '--until', '1h');
  await first.server.stop();
  const second = await started(t, ['--node', `local=rocksdb:${data}`]);
  const fault = await refused(second.client.database('shop').container('orders').item('1', 'a').read());
  assert.ok(Number(fault.headers?.['x-ms-retry-after-ms'] ?? fault.retryAfterInMs ?? 60000) >= 1);
  const again = await new MongoClient(second.server.mongo, { directConnection: true, retryReads: false, retryWrites: false }).connect();
  t.after(() => again.close());
  await assert.rejects(again.db('shop').collection('made').findOne({ _id: 1 }), /we move house/);
  await assert.rejects(again.db('shop').collection('made').insertOne({ _id: 2 }), /we move house/);
  await second.good('maintenance', 'resume', 'all-of-it');
  assert.deepEqual(await again.db('shop').collection('made').findOne({ _id: 1 }), { _id: 1 });
});

test('a planned window is listed, and refuses nobody before it begins', async (t) => {
  const { client, good, run } = await started(t);
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  await good('maintenance', 'pause', 'night', 'shop', 'orders', '--from', '2100-01-01T02:00', '--until', '2100-01-01T03:00');
  await container.items.create({ id: '1', tenant: 'a' });
  assert.match(await good('maintenance', 'list'), /2100-01-01T02:00:00\.000Z +2100-01-01T03:00:00\.000Z +- /);
  assert.match((await run('maintenance', 'pause', 'gone', 'shop', '--until', '2001-01-01')).err, /end before it begins/);
});
