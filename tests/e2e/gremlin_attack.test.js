// Clients of the Gremlin API that try to keep the server for themselves. No times are asserted: whoever is served while
// an attack goes on is served before it ends, or the test never does.
import assert from 'node:assert/strict';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey, orrery } from './server.js';
import { signed } from './rest.js';
import { Wire, attribute, authenticator, client, evaluation, failure, frame, graph, opcodes, v2 } from './gremlin.js';

const patient = ['--set', 'gremlin.evaluation_ms=1h', '--set', 'gremlin.evaluation_ms_max=1h', '--set', 'gremlin.loops_max=1000000000'];
const host = (server, account) => ({ headers: { Host: `${account}.localhost:${server.gremlinPort}` } });
const forever = 'g.inject(0).repeat(identity()).until(constant(1).is(2))';

async function running(server) {
  const text = await (await server.get('/metrics')).text();
  return Number(/^orrery_workers_running (\d+)$/m.exec(text)[1]); // with the one that answers this
}

test('an account whose traversals never end leaves the others theirs, and loses its own with its clients', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true', ...patient]);
  const attackers = [];
  for (let i = 0; i < 6; i++) {
    const wire = await Wire.open(t, server, host(server, 'mallory'));
    for (let j = 0; j < 20; j++) wire.text(evaluation(forever));
    attackers.push(wire);
  }
  const honest = await Wire.open(t, server, host(server, 'ann'));
  for (let i = 0; i < 50; i++) {
    const [{ status, result }] = await honest.ask(evaluation(`g.addV('n').property('n', ${i}).values('n')`));
    assert.equal(status.code, 200, status.message);
    assert.deepEqual(result.data, [i]);
  }
  for (const wire of attackers) assert.equal(wire.take(), undefined, 'nothing of it has ended');
  for (const wire of attackers) wire.socket.destroy();
  await server.until(async () => (await running(server)) <= 1);
  assert.deepEqual((await honest.ask(evaluation('g.V().count()')))[0].result.data, [50]);
});

test('giant paths, groups and results end at the limit of memory', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'gremlin.memory_bytes_max=8M', '--set', 'gremlin.results_bytes_max=1M', ...patient]);
  const wire = await Wire.open(t, server);
  const double = (times) => `g.inject(1).repeat(union(identity(), identity())).times(${times})`;
  for (const script of [
    `${double(22)}.path().fold()`,
    `${double(22)}.group().by(path()).by(fold())`,
    `${double(22)}.aggregate('x').cap('x')`,
    `g.inject('x').repeat(concat(__.identity())).times(40)`,
  ]) {
    const { status } = (await wire.ask(evaluation(script))).at(-1);
    assert.ok(status.code >= 500, `${script}: ${status.code}`);
  }
  assert.deepEqual((await wire.ask(evaluation('g.inject(1)')))[0].result.data, [1]);
});

// An account of its own with a graph whose values are far larger than the memory of a request.
async function bigGraph(t, settings) {
  const server = await graph(t, ['--set', 'account.by_use=true', '--set', 'partition.ru_max=100000', '--set', 'gremlin.memory_bytes_max=8M', ...settings], { throughput: '400000' });
  const count = 4000;
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const vertices = Array.from({ length: count }, (_, i) => ({ id: `v${i}`, label: 'n', pk: `p${i % 5}`, big: [{ id: `b${i}`, _value: `${i} ${'x'.repeat(4000)}` }] }));
  for (let left = vertices; left.length; ) { // again where the throughput of a key was used up
    const part = left.slice(0, 100);
    const answers = await cosmos.database('graphs').container('g').items.bulk(part.map((resourceBody) => ({ operationType: 'Create', resourceBody })));
    for (const { statusCode } of answers) assert.ok(statusCode === 201 || statusCode === 429, `${statusCode}`);
    left = [...part.filter((_, i) => answers[i].statusCode === 429), ...left.slice(100)];
  }
  const g = await client(t, server, '3.7', { authenticator: authenticator('3.7'), path: '/' });
  return { server, g, count };
}

test('what is one value in the end, and what steps that write have read, ends at the limit of memory, and others are served', async (t) => {
  const { server, g, count } = await bigGraph(t, patient);
  const honest = await Wire.open(t, server, host(server, 'ann'));
  const big = "g.V().values('big')";
  let served = 0;
  for (const script of [`${big}.fold().count(local)`, `${big}.groupCount().count(local)`, `${big}.group().count(local)`, `${big}.aggregate('x').cap('x').count(local)`,
    `${big}.aggregate(local,'x').cap('x').count(local)`, `${big}.store('x').cap('x').count(local)`, `${big}.tree().count(local)`, `${big}.tree('x').cap('x').count(local)`,
    `${big}.groupCount('x').cap('x').count(local)`, `${big}.group('x').cap('x').count(local)`,
    `${big}.as('n').addV('w').property('pk', 'w').property('name', select('n'))`, `g.V().local(values('big').dedup()).fold().count(local)`,
    `g.V().repeat(union(values('big').as('a').V(['p0','v0']), identity()).path().as('p').V(['p0','v0'])).times(3).path()`]) {
    const attack = failure(g.submit(script));
    const [{ status, result }] = await honest.ask(evaluation(`g.addV('n').property('n', ${served}).values('n')`));
    assert.deepEqual([status.code, result.data], [200, [served++]], `another account, during ${script}: ${status.message}`);
    const error = await attack;
    assert.equal(error.statusCode, 500, `${script}: ${error.message}`);
    assert.equal(attribute(error, 'x-ms-status-code'), 1003, `${script}: ${error.message}`);
  }
  assert.equal((await g.submit("g.V().hasLabel('w').count()")).first(), 0);
  assert.deepEqual((await honest.ask(evaluation('g.V().count()')))[0].result.data, [served]);
  assert.equal((await g.submit('g.V().count()')).first(), count);
});

test('a repeat without end stops at the number of its rounds, whatever it is over', async (t) => {
  const server = await graph(t, ['--set', 'partition.ru_max=100000', '--set', 'gremlin.loops_max=50', '--set', 'gremlin.evaluation_ms=1h', '--set', 'gremlin.evaluation_ms_max=1h'], { throughput: '100000' });
  const g = await client(t, server, '3.7', { authenticator: authenticator('3.7'), path: '/' });
  await g.submit("g.addV('n').property('id','a').property('pk','p').as('a').addV('n').property('id','b').property('pk','p').as('b').addE('e').from('a').addE('e').from('b').to('a')");
  for (const script of [forever, "g.V().repeat(both()).until(hasLabel('none'))", "g.V().repeat(out()).emit().until(constant(1).is(2)).path()",
    "g.V().until(hasLabel('none')).repeat(both()).tree()", "g.V().repeat(out().aggregate('x')).until(hasLabel('none')).cap('x')",
    "g.V().repeat(local(__.repeat(out()).until(hasLabel('none')))).times(2)"]) {
    const error = await failure(g.submit(script));
    assert.equal(error.statusCode, 500, `${script}: ${error.message}`);
    assert.match(error.message, /50/, script);
  }
  assert.equal((await g.submit('g.V().repeat(both()).times(50).count()')).first() > 0, true);
});

test('what strangers send is bounded, and so are their attempts', async (t) => {
  const server = await Server.start(t, ['--set', 'gremlin.in_flight_max=10']);
  const wire = await Wire.open(t, server, { path: '/' });
  const first = evaluation('g.V()');
  wire.text(first);
  for (let i = 0; i < 4; i++) wire.text(evaluation('g.V()'));
  const challenge = await wire.answer();
  assert.deepEqual([challenge.requestId, challenge.status.code, challenge.result.data], [first.requestId, 407, null]);
  const wrong = { requestId: first.requestId, op: 'authentication', processor: 'traversal',
    args: { sasl: Buffer.from('\0/dbs/a/colls/b\0wrong').toString('base64') } };
  wire.text(wrong);
  for (let i = 0; i < 5; i++) assert.equal((await wire.answer()).status.code, 401, 'each that waited is told');
  for (let i = 0; i < 4; i++) wire.text(wrong);
  const rest = [];
  for (let found; (found = await wire.next()); ) rest.push(found);
  assert.equal(rest.at(-1).opcode, opcodes.close);
  assert.equal(rest.at(-1).payload.readUInt16BE(0), 1008);
});

test('many pings and empty frames do no harm', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  wire.send(Buffer.concat(Array.from({ length: 2000 }, (_, i) => frame(opcodes.ping, `${i}`))));
  for (let i = 0; i < 2000; i++) assert.equal((await wire.next()).payload.toString(), `${i}`);
  wire.send(Buffer.concat(Array.from({ length: 500 }, () => frame(opcodes.text, ''))));
  for (let i = 0; i < 500; i++) assert.equal((await wire.answer()).status.code, 498);
});

const within = (session, script) => evaluation(script, { session }, { processor: 'session' });

test('sessions are of their connection: nobody else reads their variables or ends them', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true']);
  const ann = await Wire.open(t, server, host(server, 'ann'));
  assert.equal((await ann.ask(within('s', "secret = 'of ann'"))).at(-1).status.code, 200);
  for (const account of ['mallory', 'ann']) {
    const other = await Wire.open(t, server, host(server, account));
    const { status } = (await other.ask(within('s', 'secret'))).at(-1);
    assert.equal(status.code, 597, `${account}: ${status.message}`);
    assert.doesNotMatch(status.message, /of ann/);
    await other.ask({ ...within('s', ''), op: 'close', args: { session: 's' } });
    other.socket.destroy();
  }
  assert.deepEqual((await ann.ask(within('s', 'secret')))[0].result.data, ['of ann']);
});

test('an alias leads to graphs of the own account alone, and with credentials to the one they are for', async (t) => {
  const server = await graph(t, ['--set', 'account.by_use=true']);
  const owner = await client(t, server, '3.7', { authenticator: authenticator('3.7'), path: '/', mimeType: v2 });
  await owner.submit("g.addV('n').property('pk', 'x').property('id', 'secret')");
  const mallory = await Wire.open(t, server, host(server, 'mallory'));
  for (const alias of ['graphs.g', '../graphs.g', '/dbs/graphs/colls/g', 'localhost.graphs.g', 'graphs', '']) {
    const answers = await mallory.ask(evaluation('g.V()', { aliases: { g: alias } }));
    assert.ok(answers.at(-1).status.code >= 400 || !answers.at(-1).result.data?.length, JSON.stringify(answers));
    assert.doesNotMatch(JSON.stringify(answers), /secret/);
  }
  await signedOther(server);
  for (const alias of ['graphs.other', 'other'])
    assert.equal((await failure(owner.submit('g.V()', {}, { aliases: { g: alias } }))).statusCode, 499, alias);
});

async function signedOther(server) {
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  await cosmos.database('graphs').containers.create({ id: 'other', partitionKey: '/pk' });
  cosmos.dispose();
}

test('a token for one key reaches nothing else by edges, ids or drops', async (t) => {
  const server = await graph(t, [], { throughput: '40000' });
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const { user } = await cosmos.database('graphs').users.create({ id: 'mallory' });
  const { resource } = await user.permissions.create({ id: 'x', permissionMode: 'All', resource: 'dbs/graphs/colls/g', resourcePartitionKey: ['mine'] });
  const connect = (key) => client(t, server, '3.7', { authenticator: authenticator('3.7', { key }), path: '/', mimeType: v2 });
  const owner = await connect(emulatorKey), bound = await connect(resource._token);
  await owner.submit(`g.addV('n').property('pk', 'mine').property('id', 'a').as('a')
    .addV('n').property('pk', 'theirs').property('id', 'b').property('name', 'secret').as('b')
    .addE('e').from('a').to('b').property('id', 'ab').addE('e').from('b').to('a').property('id', 'ba')`.replace(/\s*\n\s*/g, ''));
  const values = async (script) => (await bound.submit(script)).toArray();
  assert.deepEqual(await values('g.V().id()'), ['a']);
  for (const script of ["g.V('b')", "g.V(['theirs', 'b'])", "g.V('a').out()", "g.V('a').in()", "g.V('a').both().values('name')", "g.V('a').inE()", "g.E('ba')",
    "g.V('a').outE().inV().values('name')", "g.V().has('pk', 'theirs')", "g.V().has('name', 'secret')", "g.V('a').repeat(both()).emit().times(3).values('name')"])
    assert.deepEqual(await values(script), [], script);
  for (const script of ["g.addV('n').property('pk', 'theirs')", "g.addE('e').from(g.V('a')).to(g.V(['theirs', 'b']))"])
    assert.ok((await failure(bound.submit(script))).statusCode >= 400, script);
  await values("g.V(['theirs', 'b']).drop()");
  await values("g.E('ba').drop()");
  assert.equal((await owner.submit("g.V('b').inE().count()")).first() + (await owner.submit("g.V('b').outE().count()")).first(), 2);
});

test('what sessions keep is bounded for each and for the account', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true', '--set', 'gremlin.sessions_max=40']);
  const mallory = await Wire.open(t, server, host(server, 'mallory'));
  let refused = 0;
  for (let i = 0; i < 60; i++) {
    const big = `x = '${'x'.repeat(60000)}'; ${'x = [x, x]; '.repeat(12)} 1`;
    const { status } = (await mallory.ask(within(`s${i}`, big))).at(-1);
    refused += status.code >= 400;
  }
  assert.ok(refused >= 20, 'not every session is opened, or keeps what it likes');
  const ann = await Wire.open(t, server, host(server, 'ann'));
  const { status, result } = (await ann.ask(evaluation('g.inject(1)'))).at(-1);
  assert.deepEqual([status.code, result.data], [200, [1]]);
});

test('who does not read keeps its workers no longer than writing may stall', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true', '--set', 'net.write_stall_ms_max=1s', ...patient]);
  const slow = [];
  for (let i = 0; i < 4; i++) {
    const wire = await Wire.open(t, server, host(server, 'mallory'));
    wire.socket.pause();
    for (let j = 0; j < 4; j++) wire.text(evaluation(`g.inject('${'x'.repeat(1000)}').repeat(union(identity(), identity())).times(18)`));
    slow.push(wire);
  }
  const honest = await Wire.open(t, server, host(server, 'ann'));
  for (let i = 0; i < 20; i++) assert.deepEqual((await honest.ask(evaluation(`g.inject(${i})`)))[0].result.data, [i]);
  await server.until(async () => (await running(server)) <= 1);
  for (const wire of slow) wire.socket.destroy();
});

test('a traversal may say how long its request takes, in a script too, and no longer than the server allows', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'gremlin.evaluation_ms=1h', '--set', 'gremlin.evaluation_ms_max=1h', '--set', 'gremlin.loops_max=1000000000']);
  const wire = await Wire.open(t, server);
  for (const script of [forever.replace('g.', "g.with('evaluationTimeout', 50)."), `g.inject(1); ${forever.replace('g.', "g.with('evaluationTimeout', 50L).")}`]) {
    const { status } = (await wire.ask(evaluation(script))).at(-1);
    assert.equal(status.code, 598, status.message);
  }
  assert.equal((await wire.ask(evaluation("g.with('evaluationTimeout', 'soon').inject(1)"))).at(-1).status.code, 597);
  assert.deepEqual((await wire.ask(evaluation("g.with('evaluationTimeout', 0).inject(1)")))[0].result.data, [1]);
});

// A graph that keeps reverse edges ("r"), beside one that does not ("g").
async function reversed(t, settings = []) {
  const server = await graph(t, ['--set', 'partition.ru_max=100000', ...settings]);
  const made = await signed(server, 'POST', '/dbs/graphs/colls', { headers: { 'x-ms-offer-throughput': '400000' },
    body: { id: 'r', partitionKey: { paths: ['/pk'], kind: 'Hash', version: 2 }, orrery: { graph: { reverse: true } } } });
  assert.equal(made.status, 201, made.text);
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const connect = (key, name = 'r') => client(t, server, '3.7', { authenticator: authenticator('3.7', { key, graph: name }), path: '/', mimeType: v2 });
  const { user } = await cosmos.database('graphs').users.create({ id: 'mallory' });
  const token = async (id, more) => (await user.permissions.create({ id, permissionMode: 'All', resource: 'dbs/graphs/colls/r', ...more })).resource._token;
  return { server, cosmos, connect, token, owner: await connect(emulatorKey) };
}

const pair = `g.addV('n').property('pk', 'mine').property('id', 'a').as('a')
  .addV('n').property('pk', 'theirs').property('id', 'b').property('name', 'secret').as('b')
  .addE('e').from('a').to('b').property('id', 'ab').addE('e').from('b').to('a').property('id', 'ba')`.replace(/\s*\n\s*/g, '');
const edge = (id, to, more = {}) => ({ id, label: 'e', pk: 'mine', _isEdge: true, _vertexId: 'a', _vertexLabel: 'n', _sink: to, _sinkLabel: 'n', _sinkPartition: 'theirs', ...more });

async function sound(server) {
  const { out } = await orrery(['verify', '--format', 'json', '--endpoint', server.url, '--dev']);
  assert.equal(JSON.parse(out).findings.length, 0, out);
}

test('reverse edges lie with their targets, and tell a token for that key nothing of whom they come from', async (t) => {
  const { server, connect, token, owner } = await reversed(t);
  await owner.submit(pair);
  assert.deepEqual((await owner.submit("g.V(['mine','a']).in().values('name')")).toArray(), ['secret']);
  const bound = await connect(await token('x', { resourcePartitionKey: ['mine'] }));
  for (const script of ["g.V('a').in()", "g.V(['mine','a']).in()", "g.V('a').inE()", "g.V('a').inE().id()", "g.V('a').inE('e').outV().id()", "g.V('a').both()", "g.V('a').bothE().inV().in()",
    "g.V().in().values('name')", "g.V('a').where(inE())", "g.V('a').repeat(in()).emit().times(2).id()", "g.E('ba')"])
    assert.deepEqual((await bound.submit(script)).toArray(), [], script);
  assert.equal((await bound.submit("g.V('a').inE().count()")).first(), 0);
  // it drops its own vertex and what comes from it, and not the edge of another key that leads there
  await bound.submit("g.V('a').drop()");
  assert.deepEqual((await owner.submit('g.E().id()')).toArray(), ['ba']);
  assert.deepEqual((await owner.submit('g.V().id()')).toArray(), ['b']);
  await sound(server);
});

test('who may only read, or is for another graph, writes no reverse edges and follows none', async (t) => {
  const { server, cosmos, connect, token, owner } = await reversed(t);
  await owner.submit(pair);
  const reader = await connect(await token('read', { permissionMode: 'Read' }));
  assert.deepEqual((await reader.submit("g.V(['mine','a']).in().id()")).toArray(), ['b']);
  for (const script of ["g.V(['mine','a']).addE('e').to(g.V(['theirs','b']))", "g.E('ba').drop()", "g.V(['mine','a']).inE().drop()", "g.V(['theirs','b']).drop()", "g.V(['mine','a']).inE().property('w', 1)"]) {
    const error = await failure(reader.submit(script));
    assert.ok(attribute(error, 'x-ms-status-code') === 403 || error.statusCode === 403, `${script}: ${error.message}`);
  }
  assert.equal((await owner.submit('g.E().count()')).first(), 2);
  for (const alias of ['graphs.g', 'graphs.other', 'other'])
    assert.equal((await failure(reader.submit('g.V().in()', {}, { aliases: { g: alias } }))).statusCode, 499, alias);
  const foreign = (await cosmos.database('graphs').user('mallory').permissions.create({ id: 'g', permissionMode: 'All', resource: 'dbs/graphs/colls/g' })).resource._token;
  assert.ok((await failure(connect(foreign).then((g) => g.submit('g.V().in()')))) instanceof Error);
  await sound(server);
});

test('whoever has a key of its own leads as many edges as it likes into others, who lose nothing by it', async (t) => {
  const { server, cosmos, connect, token, owner } = await reversed(t, ['--set', 'account.by_use=true', '--set', 'gremlin.memory_bytes_max=8M', ...patient]);
  await owner.submit(pair);
  const mine = await token('x', { resourcePartitionKey: ['mine'] });
  const mallory = new CosmosClient({ endpoint: server.url, resourceTokens: { 'dbs/graphs/colls/r': mine } });
  t.after(() => mallory.dispose());
  const count = 2000, { items } = mallory.database('graphs').container('r');
  for (let left = Array.from({ length: count }, (_, i) => edge(`m${i}`, 'b', { big: 'x'.repeat(5000) })); left.length; ) { // again where the throughput of its key was used up
    const part = left.slice(0, 100);
    const answers = await cosmos.database('graphs').container('r').items.bulk(part.map((resourceBody) => ({ operationType: 'Create', resourceBody })));
    for (const { statusCode } of answers) assert.ok(statusCode === 201 || statusCode === 429, `${statusCode}`);
    left = [...part.filter((_, i) => answers[i].statusCode === 429), ...left.slice(100)];
  }
  await items.create(edge('own', 'b')); // as it is written with the token
  assert.ok((await failure(items.create({ ...edge('not', 'b'), pk: 'theirs' }))).code >= 400, 'an edge of another key');
  assert.equal((await owner.submit("g.V(['theirs','b']).in().count()")).first(), count + 2);
  assert.equal((await owner.submit("g.V(['theirs','b']).inE().limit(3).count()")).first(), 3);
  // all of them at once are too much, for the one who asks
  const honest = await Wire.open(t, server, host(server, 'ann'));
  const attack = failure(owner.submit("g.V(['theirs','b']).inE().fold()"));
  assert.deepEqual((await honest.ask(evaluation("g.addV('n').property('n', 1).values('n')")))[0].result.data, [1]);
  assert.equal(attribute(await attack, 'x-ms-status-code'), 1003);
  // the one they lead to is dropped by whoever has its key alone, and the edges of others stay
  const theirs = await connect(await token('y', { resourcePartitionKey: ['theirs'] }));
  assert.deepEqual((await theirs.submit("g.V('b').in()")).toArray(), []);
  await theirs.submit("g.V('b').drop()");
  assert.equal((await owner.submit("g.E().hasLabel('e').count()")).first(), count + 2);
  assert.equal((await owner.submit('g.V().count()')).first(), 1);
  await sound(server);
});
