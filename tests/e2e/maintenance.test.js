// Pauses: clients of every API are refused with the operator's message, until it is over.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { MongoClient } from 'mongodb';
import { join } from 'node:path';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { client as gremlinClient, authenticator, v2 } from './gremlin.js';
import { tableClient } from './tables.js';

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
  assert.match(error.message ?? JSON.stringify(error.body), /(writing|service) is paused( until [-0-9T:.]+Z)?: we move house/);
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

test('some keys of a container are paused: others go on, and whoever asks for all of them is refused', async (t) => {
  const { client, good, run } = await started(t);
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  for (const tenant of ['a', 'b', 'c']) await container.items.create({ id: '1', tenant });
  const query = (text, options) => container.items.query(text, options).fetchAll();
  assert.match((await run('maintenance', 'pause', 'typo', 'shop', 'orders', '--key', 'aa')).err, /no item/i);
  assert.match((await run('maintenance', 'pause', 'typo', 'shop', '--key', 'a')).err, /keys are paused of one container/);
  assert.match((await run('maintenance', 'pause', 'typo', 'shop', 'orders', '--key', '["a","b"]')).err, /partition key/);
  await good('maintenance', 'pause', 'group', 'shop', 'orders', '--key', 'a', '--key', 'b', '--writes', '--message', 'we move house');
  for (const tenant of ['a', 'b']) {
    await refused(container.items.upsert({ id: '1', tenant, n: 1 }));
    await refused(container.item('1', tenant).delete());
    await refused(container.item('1', tenant).patch([{ op: 'set', path: '/n', value: 2 }]));
    await assert.rejects(container.items.batch([{ operationType: 'Create', resourceBody: { id: '2', tenant } }], tenant), /we move house/);
    assert.equal((await container.item('1', tenant).read()).statusCode, 200);
  }
  await container.items.upsert({ id: '1', tenant: 'c', n: 1 });
  assert.equal((await query('SELECT * FROM c')).resources.length, 3);
  await good('maintenance', 'pause', 'group', 'shop', 'orders', '--key', 'a', '--message', 'we move house'); // the same name: all of one key
  await refused(container.item('1', 'a').read());
  await refused(query('SELECT * FROM c'));
  await refused(query('SELECT * FROM c WHERE c.tenant IN ("a", "c")'));
  await refused(query('SELECT * FROM c', { partitionKey: 'a' }));
  await refused(container.items.readAll().fetchAll());
  assert.equal((await query('SELECT * FROM c WHERE c.tenant = "c"')).resources.length, 1);
  assert.equal((await query('SELECT * FROM c', { partitionKey: 'b' })).resources.length, 1);
  await container.items.upsert({ id: '1', tenant: 'b', n: 1 });
  assert.match(await good('maintenance', 'list'), /group +default\/shop\/orders keys \[\["a"\]\] +all /);
  await good('maintenance', 'resume', 'group');
  assert.equal((await container.item('1', 'a').read()).resource.n, undefined, 'nothing that was refused was written');
});

test('what a node or a region holds is paused, and what others hold is not', async (t) => {
  const directory = scratch(t);
  const node = (name) => ['--node', `${name}=rocksdb:${join(directory, name)}`];
  const { client, good, run } = await started(t, [...node('one'), ...node('two'), '--set', 'node.one.region=north', '--set', 'node.two.region=south']);
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant', throughput: 20000 });
  const tenants = Array.from({ length: 16 }, (_, i) => `t${i}`);
  for (const tenant of tenants) await container.items.create({ id: '1', tenant });
  const shards = JSON.parse(await good('partition', 'list', 'shop', 'orders', '--format', 'json'));
  assert.ok(new Set(JSON.stringify(shards).match(/"node":"(one|two)"/g)).size === 2, 'the container is on both nodes');
  const served = async () => {
    const found = await Promise.all(tenants.map((tenant) => container.item('1', tenant).read().then(() => tenant, (error) => (assert.equal(error.code, 503), null))));
    return found.filter(Boolean);
  };
  assert.match((await run('maintenance', 'pause', 'typo', '--region', 'west')).err, /no node is in a region/);
  assert.match((await run('maintenance', 'pause', 'typo', '--node', 'three')).err, /no node "three"/);
  await good('maintenance', 'pause', 'south', '--region', 'south', '--message', 'we move house');
  const north = await served();
  assert.ok(north.length > 0 && north.length < tenants.length, `${north.length} of ${tenants.length} keys are served`);
  await refused(container.items.query('SELECT * FROM c').fetchAll());
  await good('maintenance', 'resume', 'south');
  await good('maintenance', 'pause', 'one', 'shop', 'orders', '--node', 'one', '--writes', '--message', 'we move house');
  assert.equal((await served()).length, tenants.length);
  for (const tenant of tenants) {
    const write = container.items.upsert({ id: '1', tenant, n: 1 });
    if (north.includes(tenant)) await refused(write);
    else await write;
  }
});

test('each API tells a pause in its own way: writes are refused, reads go on', async (t) => {
  const { server, client, good } = await started(t);
  const { database } = await client.databases.create({ id: 'graphs' });
  await database.containers.create({ id: 'g', partitionKey: '/pk' });
  const mongo = await new MongoClient(server.mongo, { directConnection: true, retryWrites: false }).connect();
  t.after(() => mongo.close());
  const made = mongo.db('shop').collection('made');
  await made.insertOne({ _id: 1 });
  const table = tableClient(server, 'people');
  await table.createTable();
  await table.createEntity({ partitionKey: 'p', rowKey: '1' });
  const g = await gremlinClient(t, server, '3.7', { authenticator: authenticator('3.7'), path: '/', mimeType: v2 });
  await g.submit("g.addV('person').property('id', 'ann').property('pk', 'x')");
  await g.submit("g.addV('person').property('id', 'bob').property('pk', 'y')");
  await g.submit("g.V('ann').addE('knows').to(g.V('bob'))");

  const session = mongo.startSession();
  t.after(() => session.endSession());
  session.startTransaction();
  await made.insertOne({ _id: 7 }, { session });
  await good('maintenance', 'pause', 'all-of-it', '--writes', '--message', 'we move house');

  await assert.rejects(session.commitTransaction(), /we move house/, 'what was planned before is not written after');
  await assert.rejects(made.insertOne({ _id: 2 }), (error) => error.code === 371 && error.codeName === 'UserWritesBlocked' && /we move house/.test(error.message));
  await assert.rejects(made.aggregate([{ $out: 'other' }]).toArray(), /we move house/);
  await assert.rejects(table.createEntity({ partitionKey: 'p', rowKey: '2' }), (error) => error.statusCode === 503 && /we move house/.test(error.message) && /ServerBusy/.test(JSON.stringify(error)));
  await assert.rejects(g.submit("g.addV('person').property('id', 'cid').property('pk', 'x')"), (error) => error.statusCode === 596 && /we move house/.test(error.statusMessage));
  assert.deepEqual(await made.find().toArray(), [{ _id: 1 }]);
  assert.equal((await table.getEntity('p', '1')).rowKey, '1');
  assert.deepEqual((await g.submit("g.V('ann').out('knows').id()")).toArray(), ['bob']);

  await good('maintenance', 'resume', 'all-of-it');
  await good('maintenance', 'pause', 'bob', 'graphs', 'g', '--key', 'y', '--message', 'we move house');
  assert.deepEqual((await g.submit("g.V(['x', 'ann']).id()")).toArray(), ['ann']);
  await assert.rejects(g.submit("g.V(['y', 'bob']).id()"), /we move house/);
  await assert.rejects(g.submit("g.V(['x', 'ann']).out('knows').values('id')"), /we move house/);
  await assert.rejects(g.submit('g.V().count()'), /we move house/);
});

test('a pause waits until nothing is under way that began before it', async (t) => {
  const { server, client, good, run } = await started(t);
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  await container.items.create({ id: '1', tenant: 'a' });
  assert.match((await run('maintenance', 'pause', 'night', 'shop', '--from', '2100-01-01', '--wait', '1')).err, /nothing to wait for/);
  assert.match((await run('maintenance', 'pause', 'night', 'shop', '--wait', '61')).err, /from 1 to 60/);
  // A stored procedure that runs until it is told to end: the pause has to wait for it.
  await container.scripts.storedProcedures.create({ id: 'long', body: `function () {
    const end = Date.now() + 3000;
    while (Date.now() < end) ;
    getContext().getResponse().setBody('ended');
  }` });
  let ended = false;
  const running = container.scripts.storedProcedure('long').execute('a').finally(() => { ended = true; });
  const atWork = async () => /^orrery_script_processes_busy [1-9]/m.test(await (await fetch(`${server.url}/metrics`)).text());
  while (!ended && !(await atWork())) ; // until the server has it
  const paused = JSON.parse(await good('maintenance', 'pause', 'all', 'shop', '--wait', '60', '--message', 'we move house', '--format', 'json'));
  assert.equal(paused.drained, true);
  assert.equal(paused.underWay, 0);
  assert.equal(await atWork(), false, 'the script has ended before the pause was told to be drained');
  assert.equal((await running).resource, 'ended', 'what had begun is finished');
  await refused(container.item('1', 'a').read());
});
