// The Gremlin API as the npm drivers of TinkerPop 3.4 to 3.8 use it: scripts and bytecode, every format.
import assert from 'node:assert/strict';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { attribute, authenticator, binary, client, container, drivers, failure, graph, source, url, v2, v3, versions } from './gremlin.js';

const cloud = (version, options = {}) => ({ authenticator: authenticator(version, options), path: '/', mimeType: v2 });

for (const version of versions) {
  test(`${version}: scripts as the service's quickstarts have them`, async (t) => {
    const server = await graph(t);
    const g = await client(t, server, version, cloud(version));
    const add = (id, name, age) => g.submit(
      "g.addV(label).property('id', id).property('name', name).property('age', age).property('pk', pk)",
      { label: 'person', id, name, age, pk: 'x' });
    await add('thomas', 'Thomas', 44);
    await add('mary', 'Mary', 39);
    await g.submit("g.V(source).addE(relationship).to(g.V(target))", { source: 'thomas', relationship: 'knows', target: 'mary' });
    const { _items: [vertex], attributes } = await g.submit("g.V('thomas')");
    assert.equal(vertex.id, 'thomas');
    assert.equal(vertex.type, 'vertex');
    assert.equal(vertex.label, 'person');
    assert.equal(vertex.properties.name[0].value, 'Thomas');
    assert.equal(vertex.properties.pk[0].value, 'x');
    if (attributes) assert.equal(attribute({ statusAttributes: attributes }, 'x-ms-status-code'), 200);
    const names = await g.submit("g.V('thomas').out('knows').values('name')");
    assert.deepEqual(names.toArray(), ['Mary']);
    assert.deepEqual((await g.submit('g.V().count()')).first(), 2);
    assert.deepEqual((await g.submit("g.V('nobody')")).toArray(), []);
    await g.submit("g.V('thomas').drop()");
    assert.deepEqual((await g.submit('g.E().count()')).first(), 0, 'its edges go with it');
  });

  for (const [name, mimeType] of Object.entries({ 'GraphSON 2': v2, 'GraphSON 3': v3, GraphBinary: binary })) {
    if (mimeType === binary && version !== '3.8' && version !== '3.7') continue; // JavaScript had none before
    test(`${version}: bytecode in ${name}`, async (t) => {
      const server = await Server.start(t, ['--dev', '--set', 'gremlin.typed=true']);
      const g = source(t, server, version, { mimeType });
      const { t: token, P } = drivers[version].process;
      await g.addV('person').property('name', 'marko').property('age', 29).as('m')
        .addV('software').property('name', 'lop').as('l').addE('created').from_('m').to('l').property('weight', 0.4).iterate();
      assert.deepEqual(await g.V().has('name', 'marko').out('created').values('name').toList(), ['lop']);
      assert.equal(Number((await g.V().hasLabel('person').count().next()).value), 1);
      const [vertex] = await g.V().has('age', P.gt(20)).toList();
      assert.equal(vertex.label, 'person');
      const map = (await g.V().hasLabel('person').valueMap(true).next()).value;
      assert.deepEqual(map instanceof Map ? map.get('name') : map.name, ['marko']);
      assert.equal(map instanceof Map ? map.get(token.label) ?? map.get('label') : map.label, 'person');
      assert.deepEqual(await g.E().values('weight').toList(), [0.4]);
      assert.deepEqual(await g.V().hasLabel('nobody').toList(), []);
      if (!g.V().fail) return; // of 3.6
      const error = await failure(g.V().fail('no further').toList());
      assert.match(error.message, /no further/);
      assert.equal(error.statusCode, 595);
    });
  }

  test(`${version}: many requests on one connection, and errors among them`, async (t) => {
    const server = await Server.start(t, ['--dev', '--set', 'gremlin.in_flight_max=50']);
    const g = await client(t, server, version);
    const asked = Array.from({ length: 200 }, (_, i) =>
      (i % 10 === 9 ? failure(g.submit(`g.fly${i}()`)) : g.submit('g.inject(x)', { x: i })));
    const answers = await Promise.all(asked);
    answers.forEach((answer, i) => {
      if (i % 10 === 9) assert.equal(answer.statusCode, 597);
      else assert.deepEqual(answer.toArray(), [i]);
    });
    const long = await g.submit('g.inject(1).repeat(union(identity(), identity())).times(10)');
    assert.equal(long.length, 1024);
  });
}

test('TLS on the same port, and messages that are long', async (t) => {
  const server = await graph(t);
  for (const version of versions) {
    const { driver } = drivers[version];
    const g = new driver.Client(`wss://127.0.0.1:${server.gremlinPort}/gremlin`, { traversalSource: 'g', mimeType: v2,
      authenticator: authenticator(version), rejectUnauthorized: false });
    t.after(() => g.close().catch(() => {}));
    const long = 'x'.repeat(300_000);
    const [first, second] = await Promise.all([g.submit('g.inject(x)', { x: long }), g.submit('g.inject(2)')]);
    assert.equal(first.first(), long);
    assert.equal(second.first(), 2);
  }
});

test('a pool of connections', async (t) => {
  const server = await graph(t);
  const pool = await Promise.all(Array.from({ length: 8 }, () => client(t, server, '3.7', cloud('3.7'))));
  await Promise.all(pool.flatMap((g, i) => Array.from({ length: 10 }, (_, j) =>
    g.submit("g.addV('n').property('id', id).property('pk', pk)", { id: `${i}-${j}`, pk: `p${j}` }))));
  assert.equal((await pool[0].submit('g.V().count()')).first(), 80);
});

test('who it is: wrong keys, missing graphs, read-only keys, tokens', async (t) => {
  const server = await graph(t);
  for (const version of versions) {
    const wrong = drivers[version].driver.Client;
    const g = new wrong(url(server, '/'), { traversalSource: 'g', mimeType: v2, authenticator: authenticator(version, { key: Buffer.alloc(64).toString('base64') }) });
    t.after(() => g.close().catch(() => {}));
    const error = await failure(g.submit('g.V()'));
    assert.equal(error.statusCode, 401, version);
    assert.match(error.message, /Unauthorized: Invalid credentials provided/);
  }
  const lost = await client(t, server, '3.7', cloud('3.7', { graph: 'nowhere' }));
  const missing = await failure(lost.submit('g.V()'));
  assert.equal(missing.statusCode, 500);
  assert.equal(attribute(missing, 'x-ms-status-code'), 404);
  assert.match(missing.message, /Owner resource does not exist/);
});

test('an account of its own: keys that write, keys that read, keys that were replaced', async (t) => {
  const { signed } = await import('./rest.js');
  const server = await Server.start(t, ['--dev']);
  const made = await signed(server, 'POST', '/_orrery/accounts', { body: { id: 'acme' } });
  const keys = made.json.keys;
  await container(server, 'graphs', 'g', { key: keys.primary, account: 'acme' });
  const open = (key) => {
    const { driver } = drivers['3.7'];
    const g = new driver.Client(url(server, '/'), { traversalSource: 'g', mimeType: v2, authenticator: authenticator('3.7', { key }),
      headers: { Host: `acme.localhost:${server.gremlinPort}` } });
    t.after(() => g.close().catch(() => {}));
    return g;
  };
  const writer = open(keys.secondary);
  await writer.submit("g.addV('a').property('pk', 'x').property('id', 'one')");
  const reader = open(keys['primary-readonly'] ?? keys.primaryReadonly);
  assert.equal((await reader.submit('g.V().count()')).first(), 1);
  for (const script of ["g.addV('b').property('pk', 'x')", "g.V('one').property('k', 1)", "g.V('one').drop()"]) {
    const error = await failure(reader.submit(script));
    assert.equal(error.statusCode, 403, script);
  }
  assert.equal((await reader.submit('g.V().count()')).first(), 1);
  const rotated = await signed(server, 'POST', '/_orrery/accounts/acme/keys/secondary/rotate');
  assert.ok(rotated.status < 300, rotated.text);
  assert.equal((await failure(writer.submit('g.V()'))).statusCode, 401);
  assert.equal((await failure(writer.submit('g.V()'))).statusCode, 401, 'it is asked again, and has the old key still');
});

test('resource tokens open the graph they are for, as far as they reach', async (t) => {
  const server = await graph(t);
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const database = cosmos.database('graphs');
  await database.containers.create({ id: 'other', partitionKey: '/pk' });
  const { user } = await database.users.create({ id: 'ann' });
  const token = async (id, permissionMode, resource, more = {}) =>
    (await user.permissions.create({ id, permissionMode, resource, ...more })).resource._token;
  const all = await client(t, server, '3.7', cloud('3.7', { key: await token('all', 'All', 'dbs/graphs/colls/g') }));
  await all.submit("g.addV('a').property('pk', 'x').property('id', 'one')");
  await all.submit("g.addV('a').property('pk', 'y').property('id', 'two')");
  const read = await client(t, server, '3.7', cloud('3.7', { key: await token('read', 'Read', 'dbs/graphs/colls/g') }));
  assert.equal((await read.submit('g.V().count()')).first(), 2);
  assert.equal((await failure(read.submit("g.V('one').drop()"))).statusCode, 403);
  const other = await client(t, server, '3.7', cloud('3.7', { graph: 'other', key: await token('g', 'All', 'dbs/graphs/colls/g') }));
  assert.equal((await failure(other.submit('g.V()'))).statusCode, 403);
  const bound = await client(t, server, '3.7', cloud('3.7', { key: await token('x', 'All', 'dbs/graphs/colls/g', { resourcePartitionKey: ['x'] }) }));
  assert.deepEqual((await bound.submit('g.V().id()')).toArray(), ['one'], 'of other keys there is nothing');
  assert.equal((await failure(bound.submit("g.addV('b').property('pk', 'y')"))).statusCode, 403);
  await user.permission('read').delete();
  assert.equal((await failure(read.submit('g.V()'))).statusCode, 403, 'what was taken back is over at once');
});

test('with --dev whoever comes over loopback names its graph by the alias', async (t) => {
  const server = await graph(t, [], { plain: true });
  const mine = await client(t, server, '3.7', { traversalSource: 'graphs.g' });
  await mine.submit("g.addV('a').property('pk', 'x')");
  assert.equal((await mine.submit('g.V().count()')).first(), 1);
  const plain = await client(t, server, '3.7');
  assert.equal((await plain.submit('g.V().count()')).first(), 0, 'the default graph is another');
  await plain.submit("g.addV('a')");
  assert.equal((await plain.submit('g.V().count()')).first(), 1);
  const none = await client(t, server, '3.7', { traversalSource: 'graphs.nowhere' });
  assert.equal(attribute(await failure(none.submit('g.V()')), 'x-ms-status-code'), 404);
});

test('where graphs were made and the default one was not, clients are asked which they mean', async (t) => {
  const server = await graph(t);
  const mine = await client(t, server, '3.7', { authenticator: authenticator('3.7') });
  await mine.submit("g.addV('a').property('pk', 'x')");
  const named = await client(t, server, '3.7', { traversalSource: 'graphs.g' });
  assert.equal((await named.submit('g.V().count()')).first(), 1, 'the graph of the credentials');
  const wrong = await client(t, server, '3.7', { authenticator: authenticator('3.7', { key: 'AAAA' }) });
  assert.equal((await failure(wrong.submit('g.V()'))).statusCode, 401);
  const none = await client(t, server, '3.7');
  assert.equal((await failure(none.submit('g.V()'))).statusCode, 407);
});

test('without --dev nobody is let in without a key', async (t) => {
  const server = await Server.start(t, []);
  const g = await client(t, server, '3.7', { traversalSource: 'graphs.g' });
  assert.equal((await failure(g.submit('g.V()'))).statusCode, 407);
});

test('the same graph through @azure/cosmos', async (t) => {
  const server = await graph(t);
  const g = await client(t, server, '3.7', cloud('3.7'));
  await g.submit("g.addV('person').property('id', 'ann').property('pk', 'x').property('name', 'Ann').property(list, 'name', 'Anna', 'since', 2)");
  await g.submit("g.addV('person').property('id', 'bob').property('pk', 'y')");
  await g.submit("g.V('ann').addE('knows').to(g.V('bob')).property('weight', 0.5).property('id', 'e1')");
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const items = cosmos.database('graphs').container('g');
  const { resource: ann } = await items.item('ann', 'x').read();
  assert.equal(ann.label, 'person');
  assert.deepEqual(ann.name.map(({ _value }) => _value), ['Ann', 'Anna']);
  assert.deepEqual(ann.name[1]._meta, { since: 2 });
  const { resource: edge } = await items.item('e1', 'x').read();
  const { _isEdge, _vertexId, _vertexLabel, _sink, _sinkLabel, _sinkPartition, weight } = edge;
  assert.deepEqual({ _isEdge, _vertexId, _vertexLabel, _sink, _sinkLabel, _sinkPartition, weight },
    { _isEdge: true, _vertexId: 'ann', _vertexLabel: 'person', _sink: 'bob', _sinkLabel: 'person', _sinkPartition: 'y', weight: 0.5 });
  await items.items.create({ id: 'cid', pk: 'x', label: 'person', name: [{ id: 'n', _value: 'Cid' }] });
  assert.deepEqual((await g.submit("g.V('cid').values('name')")).toArray(), ['Cid']);
});

test('limits: scripts, time, repeats, memory, and the connection goes on', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'gremlin.script_bytes_max=2000', '--set', 'gremlin.operators_max=50',
    '--set', 'gremlin.loops_max=20', '--set', 'gremlin.memory_bytes_max=4M']);
  const g = await client(t, server);
  const fails = async (script, code, status, options) => {
    const error = await failure(g.submit(script, {}, options));
    assert.equal(error.statusCode, code, `${script.slice(0, 60)}: ${error.message}`);
    assert.equal(attribute(error, 'x-ms-status-code'), status, error.message);
    return error.message;
  };
  await fails(`g.inject('${'x'.repeat(2000)}')`, 597, 1004);
  await fails(`g.inject(1)${'.identity()'.repeat(60)}`, 597, 1004);
  await fails('g.inject(1).repeat(identity()).times(21)', 500, 1000);
  await fails('g.inject(1).repeat(union(identity(), identity())).times(20).fold().count(local)', 500, 1003);
  assert.deepEqual((await g.submit('g.inject(1)')).toArray(), [1]);
});

test('what takes too long ends with 598, by the server\'s limit or by the request\'s own', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'gremlin.loops_max=1000000000', '--set', 'gremlin.evaluation_ms=200ms']);
  const g = await client(t, server);
  for (const options of [{}, { evaluationTimeout: 50 }]) {
    const error = await failure(g.submit('g.inject(0).repeat(identity()).until(constant(1).is(2))', {}, options));
    assert.equal(error.statusCode, 598, error.message);
    assert.equal(attribute(error, 'x-ms-status-code'), 1009);
  }
});

test('errors as the service tells them', async (t) => {
  const server = await graph(t, [], { throughput: '400' });
  const g = await client(t, server, '3.7', cloud('3.7'));
  await g.submit("g.addV('a').property('pk', 'x').property('id', 'one')");
  const again = await failure(g.submit("g.addV('a').property('pk', 'x').property('id', 'one')"));
  assert.equal(again.statusCode, 500);
  assert.equal(attribute(again, 'x-ms-status-code'), 409);
  assert.match(again.message, /Conflicting request to resource has been attempted/);
  const keyless = await failure(g.submit("g.addV('a')"));
  assert.match(keyless.message, /Cannot add a vertex where the partition key property has value 'null'/);
  const unknown = await failure(g.submit('g.V().fly()'));
  assert.equal(unknown.statusCode, 597);
  assert.match(unknown.message, /Unable to find any method 'fly'/);
  assert.match(unknown.message, /ActivityId : [0-9a-f-]{36}/);
  assert.match(unknown.message, /ExceptionType : GraphCompileException/);
  assert.match(unknown.message, /GraphInterOpStatusCode : ScriptEvaluationError/);
});

test('throttled requests say when to come again', async (t) => {
  const server = await graph(t, ['--set', 'throughput.burst_seconds=0'], { throughput: '400' });
  const g = await client(t, server, '3.7', cloud('3.7'));
  const many = [];
  for (let round = 0; !many.some((outcome) => outcome instanceof Error); round++) // until there is more in a second than may be
    many.push(...await Promise.all(Array.from({ length: 300 }, (_, i) =>
      g.submit("g.addV('a').property('pk', 'x').property('id', id)", { id: `v${round}-${i}` }).catch((error) => error))));
  const throttled = many.filter((outcome) => outcome instanceof Error);
  for (const error of throttled) {
    assert.equal(error.statusCode, 500, error.message);
    assert.equal(attribute(error, 'x-ms-status-code'), 429, error.message);
    assert.equal(attribute(error, 'x-ms-substatus-code'), 3200);
    assert.match(attribute(error, 'x-ms-retry-after-ms'), /^\d\d:\d\d:\d\d\.\d{7}$/);
  }
  const told = many.length - throttled.length;
  await server.until(async () => (await g.submit('g.V().count()').then((found) => found.first(), () => -1)) === told);
});
