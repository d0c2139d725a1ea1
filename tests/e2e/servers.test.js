// Several servers on one PostgreSQL node: one owns it, the others pass on what they are asked.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { CosmosClient } from '@azure/cosmos';
import { TableClient, AzureNamedKeyCredential } from '@azure/data-tables';
import { MongoClient } from 'mongodb';
import { Server, binary, emulatorKey, environment, orrery, scratch } from './server.js';
import { fleet, fleetWith, halt, pause, probe } from './fleet.js';
import { freePort } from './port.js';
import { send, signed } from './rest.js';
import { spawn } from 'node:child_process';

const kills = Number(process.env.SERVERS_KILLS ?? 3); // more for a soak

function cosmos(t, server, options = {}) {
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey, ...options });
  t.after(() => client.dispose());
  return client;
}

async function containerOf(client, options = {}) {
  const { database } = await client.databases.createIfNotExists({ id: 'd' });
  return (await database.containers.createIfNotExists({ id: 'c', partitionKey: '/pk', ...options })).container;
}

test('what is made through one server is there through the others, by every API', async (t) => {
  const all = await fleet(t, 'a', 'b', 'c');
  const [a, b, c] = ['a', 'b', 'c'].map((name) => all.servers.get(name));
  for (const [i, server] of [a, b, c].entries()) {
    const { database } = await cosmos(t, server).databases.create({ id: `d${i}` });
    const { container } = await database.containers.create({ id: 'c', partitionKey: '/pk' });
    await container.items.create({ id: '1', pk: 'p', from: i });
    for (const other of [a, b, c]) {
      const { resource } = await cosmos(t, other).database(`d${i}`).container('c').item('1', 'p').read();
      assert.equal(resource.from, i);
    }
  }
  const large = { id: 'large', pk: 'p', text: 'x'.repeat(1_500_000) };
  await cosmos(t, b).database('d0').container('c').items.create(large);
  assert.equal((await cosmos(t, c).database('d0').container('c').item('large', 'p').read()).resource.text, large.text);

  const table = (server) => new TableClient(`http://127.0.0.1:${server.tablePort}/devstoreaccount1`, 'people',
    new AzureNamedKeyCredential('devstoreaccount1',
      'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='),
    { allowInsecureConnection: true });
  await table(b).createTable();
  await table(c).createEntity({ partitionKey: 'p', rowKey: 'r', name: 'Ada' });
  assert.equal((await table(a).getEntity('p', 'r')).name, 'Ada');

  const mongo = new MongoClient(b.mongo);
  t.after(() => mongo.close());
  await mongo.db('m').collection('k').insertOne({ _id: 1, n: 41 });
  const other = new MongoClient(c.mongo);
  t.after(() => other.close());
  assert.equal((await other.db('m').collection('k').findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } },
    { returnDocument: 'after' })).n, 42);
});

test('every server is a location of the account, the one that is asked first', async (t) => {
  const all = await fleet(t, 'a', 'b');
  for (const [name, others] of [['a', ['b']], ['b', ['a']]]) {
    const server = all.servers.get(name);
    await server.until(async () => (await signed(server, 'GET', '/')).json.writableLocations.length === 2);
    const { json } = await signed(server, 'GET', '/');
    assert.equal(json.writableLocations[0].databaseAccountEndpoint, `${server.url}/`);
    assert.deepEqual(json.writableLocations.slice(1).map((one) => one.databaseAccountEndpoint),
      others.map((other) => `${all.servers.get(other).url}/`));
    assert.deepEqual(json.readableLocations, json.writableLocations);
    assert.deepEqual(json.writableLocations.map((one) => one.name).sort(), ['here', 'here 2']);
    assert.equal(json.enableMultipleWriteLocations, true);
  }
});

test('each server answers for itself whether it is ready, and what it counts', async (t) => {
  const all = await fleet(t, 'a', 'b');
  const [a, b] = [all.servers.get('a'), all.servers.get('b')];
  const ready = JSON.parse((await probe(b, '/ready')).text);
  assert.deepEqual(ready, { status: 'ready', role: 'follower', owner: 'a' });
  assert.equal((await probe(a, '/ready')).status, 200);
  const figures = async (server) => (await probe(server, '/metrics')).text;
  assert.match(await figures(a), /^orrery_server_leader 1$/m);
  assert.match(await figures(b), /^orrery_server_leader 0$/m);
  assert.match(await figures(b), /^orrery_servers 2$/m);
  await signed(b, 'GET', '/dbs');
  assert.match(await figures(b), /^orrery_forwarded_requests_total [1-9]/m);
  assert.match(await figures(a), /^orrery_forwarded_requests_taken_total [1-9]/m);
  const mongo = new MongoClient(b.mongo);
  t.after(() => mongo.close());
  await mongo.db('m').command({ ping: 1 });
  assert.match(await figures(b), /^orrery_forwarded_total [1-9]/m);
  assert.match(await figures(a), /^orrery_forwarded_taken_total [1-9]/m);
  const listed = await orrery(['server', 'list', '--endpoint', b.url, '--dev']);
  assert.match(listed.out, /^a +here +\S+ +serving +all /m);
  assert.match(listed.out, /^b +here +\S+ +serving +- /m);
});

// Clients with items of their own: what was acknowledged has to be there, once; what was not may be.
class Load {
  acknowledged = [];
  unknown = new Set();

  constructor(t, container, writers) {
    t.after(() => (this.stopping = true)); // a test that fails must not write for ever
    this.writers = Array.from({ length: writers }, (_, writer) => this.#write(container, writer));
  }

  async #write(container, writer) {
    for (let i = 0; !this.stopping; i++) {
      const id = `${writer}-${i}`;
      try {
        await container.items.create({ id, pk: `p${writer}` });
        this.acknowledged.push(id);
      } catch (error) {
        // 409: an attempt before was done, and its answer lost
        if (error.code === 409) this.acknowledged.push(id);
        else this.unknown.add(id), (this.last = error);
      }
    }
  }

  async reach(more) {
    const wanted = this.acknowledged.length + more, limit = performance.now() + 120_000;
    while (this.acknowledged.length < wanted) {
      if (performance.now() > limit) throw new Error(`no write came through: ${this.last?.message}`);
      await pause(10);
    }
  }

  async stop() {
    this.stopping = true;
    await Promise.all(this.writers);
  }

  async check(container) {
    const { resources } = await container.items.query('SELECT VALUE c.id FROM c').fetchAll();
    const there = new Set(resources);
    assert.equal(there.size, resources.length, 'nothing is there twice');
    assert.deepEqual(this.acknowledged.filter((id) => !there.has(id)), [], 'nothing is lost');
    const known = new Set([...this.acknowledged, ...this.unknown]);
    assert.deepEqual(resources.filter((id) => !known.has(id)), []);
  }
}

// The server that the SDK asks owns nothing, as a balancer would not: an SDK that cannot read the account document where it
// was told to tries that for two minutes before it goes on to another location.
test('@azure/cosmos goes on while the server that owns is killed, again and again', async (t) => {
  const all = await fleet(t, 'a', 'b', 'c');
  const c = all.servers.get('c');
  assert.equal((await orrery(['server', 'drain', 'c', '--endpoint', c.url, '--dev'])).code, 0);
  let [owner, follower] = ['a', 'b'];
  const container = await containerOf(cosmos(t, c));
  const load = new Load(t, container, 3);
  const pauses = [];
  for (let round = 0; round < kills; round++) {
    await load.reach(15);
    const killed = performance.now();
    await all.servers.get(owner).stop('SIGKILL');
    await load.reach(1);
    pauses.push(Math.round(performance.now() - killed));
    await all.owned(c, follower);
    await load.reach(15);
    await all.start(owner);
    [owner, follower] = [follower, owner];
  }
  t.diagnostic(`writes again after ${pauses.join(', ')} ms; ${load.acknowledged.length} acknowledged, ${load.unknown.size} not known`);
  await load.stop();
  await load.check(container);
});

// Clients without any of an SDK's patience, each on one connection that is never made anew.
class Plain {
  answers = new Map();
  ports = new Set();

  constructor(t, server, count, ask) {
    t.after(() => (this.stopping = true));
    this.running = Array.from({ length: count }, async (_, number) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      agent.on('free', (socket) => this.ports.add(socket.localPort));
      for (let i = 0; !this.stopping; i++) {
        const status = await ask(agent, `${number}-${i}`).then((answer) => answer.status, (error) => error.code ?? error.message);
        this.answers.set(status, (this.answers.get(status) ?? 0) + 1);
        await pause(2);
      }
      agent.destroy();
    });
  }

  async reach(more) {
    const sum = () => [...this.answers.values()].reduce((a, b) => a + b, 0);
    const wanted = sum() + more, limit = performance.now() + 120_000;
    while (sum() < wanted) {
      assert.ok(performance.now() < limit, `answers come: ${JSON.stringify([...this.answers])}`);
      await pause(5);
    }
  }

  async stop() {
    this.stopping = true;
    await Promise.all(this.running);
    return Object.fromEntries(this.answers);
  }
}

const itemOf = (id) => ({ headers: { 'x-ms-documentdb-partitionkey': '["p"]' }, body: { id, pk: 'p' } });

test('while the owner drains or stops, clients of another server see no error and keep their connections', async (t) => {
  // nobody is held dead here, however busy the machine is
  const all = await fleetWith(t, ['a', 'b', 'c'], ['--set', 'servers.lease_ms=60s', '--set', 'server.drain_ms=60s']);
  const [a, b, c] = ['a', 'b', 'c'].map((name) => all.servers.get(name));
  assert.equal((await orrery(['server', 'drain', 'c', '--endpoint', c.url, '--dev'])).code, 0);
  const container = await containerOf(cosmos(t, c), { throughput: 10_000 }); // nobody is told 429
  const writers = new Plain(t, c, 3, (agent, id) => signed(c, 'POST', '/dbs/d/colls/c/docs', { agent, ...itemOf(id) }));
  await writers.reach(20);
  assert.equal((await orrery(['server', 'drain', 'a', '--endpoint', c.url, '--dev'])).code, 0);
  await all.owned(c, 'b');
  await writers.reach(20);
  assert.equal((await orrery(['server', 'resume', 'a', '--endpoint', c.url, '--dev'])).code, 0);
  await a.until(async () => (await all.list(c)).find((one) => one.name === 'a').state === 'serving');
  assert.equal((await b.stop()).code, 0, b.err);
  await all.owned(c, 'a');
  await writers.reach(20);
  const answers = await writers.stop();
  assert.deepEqual(Object.keys(answers), ['201'], JSON.stringify(answers));
  assert.equal(writers.ports.size, 3, 'one connection each');
  const { resources } = await container.items.query('SELECT VALUE COUNT(1) FROM c').fetchAll();
  assert.equal(resources[0], answers[201], 'each is there once');
});

test('reads through another server go on over an owner that is killed, writes are told what is not known', async (t) => {
  const all = await fleet(t, 'a', 'b', 'c');
  const [a, c] = [all.servers.get('a'), all.servers.get('c')];
  assert.equal((await orrery(['server', 'drain', 'c', '--endpoint', c.url, '--dev'])).code, 0);
  const container = await containerOf(cosmos(t, c), { throughput: 10_000 });
  await container.items.create({ id: 'x', pk: 'p' });
  const one = { headers: { 'x-ms-documentdb-partitionkey': '["p"]' } };
  const readers = new Plain(t, c, 2, (agent) => signed(c, 'GET', '/dbs/d/colls/c/docs/x', { agent, ...one }));
  const queries = new Plain(t, c, 2, (agent) => signed(c, 'POST', '/dbs/d/colls/c/docs', { agent,
    headers: { ...one.headers, 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json' },
    body: { query: "SELECT * FROM c WHERE c.id = 'x'" } }));
  const writers = new Plain(t, c, 2, (agent, id) => signed(c, 'POST', '/dbs/d/colls/c/docs', { agent, ...itemOf(id) }));
  for (const load of [readers, queries, writers]) await load.reach(20);
  await a.stop('SIGKILL');
  await all.owned(c, 'b');
  for (const load of [readers, queries, writers]) await load.reach(20);
  assert.deepEqual(Object.keys(await readers.stop()), ['200']);
  assert.deepEqual(Object.keys(await queries.stop()), ['200']);
  const written = await writers.stop();
  assert.deepEqual(Object.keys(written).filter((status) => status !== '201' && status !== '408'), [], JSON.stringify(written));
  assert.equal(readers.ports.size + queries.ports.size + writers.ports.size, 6, 'one connection each');
});

test('the connections of a server stay when it begins to own', async (t) => {
  const all = await fleetWith(t, ['a', 'b'], ['--set', 'servers.lease_ms=60s']);
  const b = all.servers.get('b');
  await containerOf(cosmos(t, b));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ports = new Set();
  agent.on('free', (socket) => ports.add(socket.localPort));
  const create = (id) => signed(b, 'POST', '/dbs/d/colls/c/docs', { agent, ...itemOf(id) });
  assert.equal((await create('1')).status, 201);
  assert.equal((await orrery(['server', 'drain', 'a', '--endpoint', b.url, '--dev'])).code, 0);
  await all.owned(b, 'b');
  assert.equal((await create('2')).status, 201);
  assert.equal((await send(b, 'GET', '/ready', { agent })).status, 200);
  assert.equal(ports.size, 1);
});

test('a server that was stopped past its lease and goes on can write nothing, and follows', async (t) => {
  const all = await fleet(t, 'a', 'b');
  const [a, b] = [all.servers.get('a'), all.servers.get('b')];
  const container = await containerOf(cosmos(t, a, { connectionPolicy: { enableEndpointDiscovery: false } }));
  await container.items.create({ id: '0', pk: 'p' });
  const create = (id, agent) => signed(a, 'POST', '/dbs/d/colls/c/docs', {
    agent, headers: { 'x-ms-documentdb-partitionkey': '["p"]' }, body: { id, pk: 'p' } });
  // a connection that has gone in while it owned is never passed on
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  assert.equal((await create('open', agent)).status, 201);
  await halt(a);
  // while it is stopped two writes wait, to be read by a server that owns no more
  const late = create('late', agent).catch((error) => error);
  const passed = create('passed').catch((error) => error);
  await all.owned(b, 'b');
  const there = await containerOf(cosmos(t, b));
  await there.items.create({ id: '1', pk: 'p' });
  a.process.kill('SIGCONT');
  assert.notEqual((await late).status, 201, 'it is fenced, or cut off');
  const answer = await passed; // on a new connection: fenced, cut off, or passed on and done by the one that owns
  await a.until(() => a.events().some((event) => event.event === 'this server owns the nodes no more' || event.event === 'this server begins again'));
  await a.until(async () => {
    try {
      return JSON.parse((await probe(a, '/ready')).text).role === 'follower';
    } catch {
      return false;
    }
  });
  await there.items.create({ id: '2', pk: 'p' });
  const { resources } = await cosmos(t, a).database('d').container('c').items.query('SELECT VALUE c.id FROM c').fetchAll();
  const made = new Set(resources);
  if (answer.status === 201) assert.ok(made.has('passed'), 'nothing is lost');
  made.delete('passed'); // where it was cut off we do not know
  assert.deepEqual([...made].sort(), ['0', '1', '2', 'open']);
});

test('a server that stops or drains hands over at once, and no acknowledged write is lost', async (t) => {
  const all = await fleet(t, 'a', 'b', 'c');
  const [a, b, c] = ['a', 'b', 'c'].map((name) => all.servers.get(name));
  const container = await containerOf(cosmos(t, c));
  const load = new Load(t, container, 2);
  await load.reach(10);
  const drained = await orrery(['server', 'drain', 'a', '--endpoint', c.url, '--dev']);
  assert.equal(drained.code, 0, drained.err);
  await c.until(async () => {
    try {
      const list = await all.list(c);
      return list.some((one) => one.owns && one.name !== 'a') && list.find((one) => one.name === 'a').state === 'draining';
    } catch {
      return false;
    }
  });
  await load.reach(10);
  await a.until(async () => (await probe(a, '/ready').catch(() => ({}))).text?.includes('drains'));
  const resumed = await orrery(['server', 'resume', 'a', '--endpoint', b.url, '--dev']);
  assert.equal(resumed.code, 0, resumed.err);
  const owner = (await all.list(c)).find((one) => one.owns).name;
  if (owner === 'b') {
    const ended = await b.stop();
    assert.equal(ended.code, 0, b.err);
    await load.reach(10);
    assert.equal((await all.list(c)).some((one) => one.name === 'b'), false, 'it took its registration back');
  }
  await load.stop();
  await load.check(await containerOf(cosmos(t, c)));
});

test('one that is gone is forgotten, one that runs is not', async (t) => {
  const all = await fleet(t, 'a', 'b');
  const a = all.servers.get('a');
  const refused = await orrery(['server', 'forget', 'b', '--endpoint', a.url, '--dev']);
  assert.notEqual(refused.code, 0);
  assert.match(refused.err, /is not gone/);
  await all.servers.get('b').stop('SIGKILL');
  await a.until(async () => (await all.list(a)).find((one) => one.name === 'b').state === 'gone');
  const alone = await orrery(['server', 'drain', 'a', '--endpoint', a.url, '--dev']);
  assert.match(alone.err, /no other server/);
  const forgotten = await orrery(['server', 'forget', 'b', '--endpoint', a.url, '--dev']);
  assert.equal(forgotten.code, 0, forgotten.err);
  await a.until(async () => (await all.list(a)).length === 1);
  assert.match((await orrery(['server', 'drain', 'x', '--endpoint', a.url, '--dev'])).err, /no other server|no server "x"/);
});

// A server that is not to start: what it says.
async function refusal(args) {
  const { code, err } = await orrery(['serve', '--dev', '--rest', '127.0.0.1:0', '--table', 'off', '--mongo', 'off', '--gremlin', 'off',
    '--mongo-replica-set', 'off', ...args]);
  assert.notEqual(code, 0);
  return err;
}

test('bad set-ups are refused by name', async (t) => {
  const all = await fleet(t, 'a');
  const port = await freePort();
  const listen = ['--set', `servers.listen=127.0.0.1:${port}`];
  const root = ['--node', `root=${all.url}`];
  assert.match(await refusal([...root, ...listen]), /servers\.name has to be set/);
  assert.match(await refusal([...root, ...listen, '--set', 'servers.name=a']), /a server called "a" runs already/);
  assert.match(await refusal([...root]), /server "a" shares the node with others|holds the node/);
  assert.match(await refusal(['--node', `root=rocksdb:${scratch(t)}`, ...listen, '--set', 'servers.name=b']), /cannot be shared by servers/);
  assert.match(await refusal([...root, '--node', `x=rocksdb:${scratch(t)}`, ...listen, '--set', 'servers.name=b']),
    /node "x" is of one process/);
  assert.match(await refusal([...root, '--set', `servers.listen=0.0.0.0:${port}`, '--set', 'servers.name=b']), /servers\.advertise/);
  assert.match(await refusal([...root, ...listen, '--set', 'servers.name=b', '--set', 'servers.beat_ms=2s', '--set', 'servers.lease_ms=3s']),
    /at least twice/);
  // who has no certificate of the servers' authority gets nowhere
  const socket = net.connect(all.servers.get('a').ports.peers, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('ORRP\x01\x00\x00\x01\x00\x00\x00\x00GET / HTTP/1.1\r\n\r\n');
  let got = '';
  socket.on('data', (bytes) => (got += bytes));
  socket.on('error', () => {});
  await new Promise((resolve) => socket.on('close', resolve));
  assert.equal(got, '');
});

test('a node of several servers is refused by a server of one, and by a release that knows format 1', async (t) => {
  const all = await fleet(t, 'a');
  assert.equal(all.postgres.query('SELECT format FROM orrery.node'), '2');
  await all.servers.get('a').stop();
  // the last of them is gone: one alone may go on, and then they may again
  const alone = await Server.start(t, ['--node', `root=${all.url}`, '--dev']);
  const port = await freePort();
  assert.match(await (async () => {
    const child = spawn(binary, ['serve', '--dev', '--node', `root=${all.url}`, '--rest', '127.0.0.1:0', '--table', 'off', '--mongo', 'off',
      '--gremlin', 'off', '--mongo-replica-set', 'off', '--set', `servers.listen=127.0.0.1:${port}`, '--set', 'servers.name=b'],
    { env: environment({}), stdio: ['ignore', 'ignore', 'pipe'] });
    let err = '';
    child.stderr.on('data', (bytes) => (err += bytes));
    while (!/waiting for a server|owns the nodes|listening/.test(err) && child.exitCode === null) await pause(10);
    child.kill('SIGKILL');
    await once(child, 'close');
    return err;
  })(), /waiting for a server that owns the nodes|listening/);
  await alone.stop();
  const again = await all.start('a');
  await all.owned(again, 'a');
});
