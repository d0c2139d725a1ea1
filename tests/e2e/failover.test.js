// A node whose PostgreSQL server has a standby that takes over while clients work.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery } from './server.js';
import { Postgres, urlOf } from './postgres.js';
import { signed } from './rest.js';

const patient = ['--dev', '--set', 'nodes.failover_ms=60s'];

async function pair(t, name) {
  const primary = await Postgres.start(t);
  const standby = await Postgres.standby(t, primary, 's1');
  if (name) await primary.synchronous(name);
  return { primary, standby, url: urlOf(primary, standby) };
}

async function containerOf(t, server) {
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'd' });
  return (await database.containers.createIfNotExists({ id: 'c', partitionKey: '/pk' })).container;
}

async function node(server, name = 'a') {
  return (await signed(server, 'GET', `/_orrery/nodes/${name}`)).json;
}

// Writers that go on until they are stopped, each with items of its own that it reads back.
class Load {
  written = [];
  errors = [];

  constructor(t, container, writers) {
    t.after(() => (this.stopping = true)); // a test that fails must not write for ever
    this.writers = Array.from({ length: writers }, (_, writer) => this.#write(container, writer));
  }

  async #write(container, writer) {
    for (let i = 0; !this.stopping; i++) {
      const item = { id: `${writer}-${i}`, pk: `p${writer}`, i };
      try {
        await container.items.create(item);
        this.written.push(item);
        const { resource } = await container.item(item.id, item.pk).read();
        assert.equal(resource?.i, i);
      } catch (error) {
        this.errors.push(error);
      }
    }
  }

  async reach(more) {
    const wanted = this.written.length + more;
    while (this.written.length < wanted) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  async stop() {
    this.stopping = true;
    await Promise.all(this.writers);
  }
}

test('a primary that is killed is replaced without an error at the application, and nothing is lost', async (t) => {
  let { primary, standby, url } = await pair(t, 's1');
  const server = await Server.start(t, ['--node', `a=${url}`, ...patient]);
  const container = await containerOf(t, server);
  const load = new Load(t, container, 4);
  for (let round = 1; round <= 2; round++) {
    await load.reach(20);
    await primary.stop('SIGKILL');
    standby.promote();
    await load.reach(20);
    [primary, standby] = [standby, primary];
    await standby.follow(primary, `r${round}`);
    await primary.synchronous(`r${round}`);
  }
  await load.stop();
  assert.deepEqual(load.errors.map((error) => error.message), []);
  const { resources } = await container.items.query('SELECT VALUE c.id FROM c').fetchAll();
  const there = new Set(resources);
  assert.deepEqual(load.written.filter((item) => !there.has(item.id)), []);
  const shown = await node(server);
  assert.equal(shown.timeline, 3);
  await server.until(async () => (await node(server)).replicated);
});

test('an old primary that comes back is not used, nor at another start', async (t) => {
  const { primary, standby, url } = await pair(t, 's1');
  const server = await Server.start(t, ['--node', `a=${url}`, ...patient]);
  const container = await containerOf(t, server);
  await container.items.create({ id: '1', pk: 'p' });
  await primary.stop('SIGKILL');
  standby.promote();
  await container.items.create({ id: '2', pk: 'p' });
  await primary.resume(); // it takes writes, if nobody tells it that there is another
  await container.items.create({ id: '3', pk: 'p' });
  assert.equal((await node(server)).timeline, 2);
  await server.stop();
  const again = await Server.start(t, ['--node', `a=${url}`, ...patient]);
  const { resources } = await (await containerOf(t, again)).items.query('SELECT VALUE c.id FROM c').fetchAll();
  assert.deepEqual(resources.sort(), ['1', '2', '3']);
  assert.equal((await node(again)).timeline, 2);
});

test('what an asynchronous standby has lost is named, and the operator has to accept it', async (t) => {
  const { primary, standby, url } = await pair(t);
  const server = await Server.start(t, ['--node', 'root=memory:', '--node', `a=${url}`, '--set', 'node.root.tags=root', ...patient]);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'd' });
  await signed(server, 'POST', '/_orrery/nodes/root/drain', { body: {} });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
  const { resource: first } = await container.items.create({ id: '1', pk: 'p' });
  while (standby.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'orrery' AND tablename LIKE 'p\\_%'") === '0')
    await new Promise((resolve) => setTimeout(resolve, 10));
  while (standby.query('SELECT sequence FROM orrery.owner') !== primary.query('SELECT sequence FROM orrery.owner'))
    await new Promise((resolve) => setTimeout(resolve, 10));
  await standby.set('primary_conninfo', '');
  while (standby.query('SELECT count(*) FROM pg_stat_wal_receiver') !== '0') await new Promise((resolve) => setTimeout(resolve, 10));
  const { resource: lost, headers } = await container.items.create({ id: '2', pk: 'p' });
  await primary.stop('SIGKILL');
  standby.promote();
  const write = (id) => signed(server, 'POST', '/dbs/d/colls/c/docs', {
    headers: { 'x-ms-documentdb-partitionkey': '["p"]' }, body: { id, pk: 'p' } });
  await server.until(async () => (await node(server)).state === 'lost');
  const refused = await write('3');
  assert.equal(refused.status, 503);
  assert.match(refused.json.message, /transactions? that (was|were) acknowledged/);
  assert.ok(server.events().some((event) => /lost acknowledged writes/.test(event.event ?? event.message)), server.err);
  const listed = await orrery(['node', 'list', '--endpoint', server.url, '--dev']);
  assert.match(listed.out, /^a +lost /m);
  const accepted = await orrery(['node', 'accept-loss', 'a', '--endpoint', server.url, '--dev']);
  assert.equal(accepted.code, 0, accepted.err);
  const again = await orrery(['node', 'accept-loss', 'a', '--endpoint', server.url, '--dev']);
  assert.match(again.err, /has lost nothing/);
  const written = await write('2');
  assert.equal(written.status, 201);
  assert.notEqual(written.json._etag, lost._etag);
  assert.notEqual(written.json._rid, lost._rid, 'no number is given twice');
  assert.equal((await container.item('1', 'p').read()).resource._etag, first._etag);
  const read = await signed(server, 'GET', '/dbs/d/colls/c/docs/2', {
    headers: { 'x-ms-documentdb-partitionkey': '["p"]', 'x-ms-session-token': headers['x-ms-session-token'] } });
  assert.equal(read.status, 200, 'a session of the lost time goes on');
});

test('a root that has lost writes is opened by its name in nodes.accept_loss alone', async (t) => {
  const { primary, standby, url } = await pair(t);
  let server = await Server.start(t, ['--node', `a=${url}`, ...patient]);
  await containerOf(t, server);
  while (standby.query('SELECT sequence FROM orrery.owner') !== primary.query('SELECT sequence FROM orrery.owner'))
    await new Promise((resolve) => setTimeout(resolve, 10));
  await standby.set('primary_conninfo', '');
  while (standby.query('SELECT count(*) FROM pg_stat_wal_receiver') !== '0') await new Promise((resolve) => setTimeout(resolve, 10));
  await (await containerOf(t, server)).items.create({ id: '1', pk: 'p' });
  await primary.stop('SIGKILL');
  standby.promote();
  await server.until(async () => (await (await server.get('/ready')).text()).includes('acknowledged'));
  await server.stop();
  const refused = await orrery(['serve', '--node', `a=${url}`, '--rest', '127.0.0.1:0']);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /acknowledged .* are gone/);
  server = await Server.start(t, ['--node', `a=${url}`, '--set', 'nodes.accept_loss=a', ...patient]);
  const container = await containerOf(t, server);
  assert.deepEqual((await container.items.readAll().fetchAll()).resources, []);
  await container.items.create({ id: '1', pk: 'p' });
  await server.stop();
  server = await Server.start(t, ['--node', `a=${url}`, ...patient]); // and that was it
  assert.equal((await (await containerOf(t, server)).items.readAll().fetchAll()).resources.length, 1);
});

test('a node that requires replication takes no writes without it, and says so', async (t) => {
  const { primary, url } = await pair(t, 's1');
  const server = await Server.start(t, ['--node', `a=${url}&replicated=require`, ...patient]);
  const container = await containerOf(t, server);
  await container.items.create({ id: '1', pk: 'p' });
  await server.until(async () => /^orrery_node_replicated\{node="a"\} 1$/m.test(await (await server.get('/metrics')).text()));
  await primary.synchronous('');
  await server.until(async () => /^orrery_node_replicated\{node="a"\} 0$/m.test(await (await server.get('/metrics')).text()));
  const refused = await signed(server, 'POST', '/dbs/d/colls/c/docs', {
    headers: { 'x-ms-documentdb-partitionkey': '["p"]' }, body: { id: '2', pk: 'p' } });
  assert.equal(refused.status, 503);
  assert.match(refused.json.message, /replication is required/);
  assert.equal((await container.item('1', 'p').read()).resource.id, '1');
  await primary.synchronous('s1');
  await server.until(async () => (await signed(server, 'POST', '/dbs/d/colls/c/docs', {
    headers: { 'x-ms-documentdb-partitionkey': '["p"]', 'x-ms-documentdb-is-upsert': 'true' }, body: { id: '2', pk: 'p' } })).status < 300);
});

test('bad set-ups are refused by name', async (t) => {
  const { standby } = await pair(t);
  const refused = async (node, message) => {
    const result = await orrery(['serve', '--node', `a=${node}`, '--rest', '127.0.0.1:0']);
    assert.equal(result.code, 1, result.err);
    assert.match(result.err, message);
  };
  await refused(urlOf(standby), /the server is a standby/);
  await refused(`${urlOf(standby)}&replicated=maybe`, /replicated is .*require.* or .*prefer/);
  await refused(urlOf(...Array(9).fill(standby)), /more than 8 hosts/);
});
