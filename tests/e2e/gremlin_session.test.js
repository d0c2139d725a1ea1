// Sessions of the Gremlin API: variables, order, transactions, and their ends.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import test from 'node:test';
import { Server } from './server.js';
import { Wire, client, drivers, evaluation, failure, source, url, v3, versions } from './gremlin.js';

const within = (session, script, args = {}) => ({ ...evaluation(script, { session, ...args }), processor: 'session' });

test('variables live as long as their session', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  const ask = async (...args) => (await wire.ask(within(...args))).at(-1);
  assert.deepEqual((await ask('s', 'x = 5')).result.data, [5]);
  assert.deepEqual((await ask('s', "v = g.addV('a').property('name', 'ann').next(); g.inject(x)")).result.data, [5]);
  assert.deepEqual((await ask('s', "g.V(v).values('name')")).result.data, ['ann']);
  assert.equal((await ask('other', 'g.inject(x)')).status.code, 597, 'another has none of them');
  assert.equal((await wire.ask(evaluation('g.inject(x)')))[0].status.code, 597);
  const [closed] = await wire.ask({ requestId: randomUUID(), op: 'close', processor: 'session', args: { session: 's' } });
  assert.deepEqual([closed.status.code, closed.result.data], [204, null]);
  assert.equal((await ask('s', 'g.inject(x)')).status.code, 597);
});

test('requests of a session run in order, however many are on their way', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  wire.text(within('s', 'x = 0'));
  for (let i = 0; i < 100; i++) wire.text(within('s', `y = ${i}; g.inject(y)`));
  await wire.answer();
  for (let i = 0; i < 100; i++) assert.deepEqual((await wire.answer()).result.data, [i]);
});

for (const version of versions)
  test(`${version}: a session of the driver`, async (t) => {
    const server = await Server.start(t, ['--dev']);
    const { driver } = drivers[version];
    const g = new driver.Client(url(server), { traversalSource: 'g', mimeType: v3, session: randomUUID(), processor: 'session' });
    await g.open();
    await g.submit('x = 7');
    assert.deepEqual((await g.submit('g.inject(x)')).toArray(), [7]);
    await g.close();
    await server.until(async () => /^orrery_gremlin_sessions 0$/m.test(await (await server.get('/metrics')).text()));
  });

test('sessions die with their connection, and are no more than there may be', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'gremlin.sessions_max=3']);
  const wire = await Wire.open(t, server);
  for (const id of ['a', 'b', 'c']) assert.equal((await wire.ask(within(id, 'x = 1'))).at(-1).status.code, 200);
  const [full] = await wire.ask(within('d', 'x = 1'));
  assert.equal(full.status.code, 500);
  assert.match(full.status.message, /gremlin\.sessions_max/);
  wire.socket.destroy();
  const other = await Wire.open(t, server);
  await server.until(async () => (await other.ask(within('d', 'x = 1'))).at(-1).status.code === 200);
});

test('a session that is not used is over, and its transaction rolled back', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'gremlin.session_ms_max=1s']);
  const wire = await Wire.open(t, server);
  await wire.ask(evaluation("g.addV('first')"));
  await wire.ask(within('s', "g.addV('lost')", { manageTransaction: false }));
  await server.until(async () => /^orrery_gremlin_sessions 0$/m.test(await (await server.get('/metrics')).text()));
  assert.deepEqual((await wire.ask(evaluation('g.V().label()')))[0].result.data, ['first']);
});

for (const version of ['3.5', '3.6', '3.7', '3.8'])
  test(`${version}: transactions of the driver commit and roll back`, async (t) => {
    const server = await Server.start(t, ['--dev']);
    const g = source(t, server, version, { mimeType: v3 });
    await g.addV('before').iterate();
    const tx = g.tx();
    const gtx = tx.begin();
    await gtx.addV('within').property('name', 'a').iterate();
    await gtx.addV('within').property('name', 'b').iterate();
    assert.equal((await gtx.V().hasLabel('within').toList()).length, 2, 'it sees its own writes');
    assert.equal((await g.V().hasLabel('within').toList()).length, 0, 'others do not');
    await tx.commit();
    assert.equal((await g.V().hasLabel('within').toList()).length, 2);
    const again = g.tx();
    const gone = again.begin();
    await gone.V().drop().iterate();
    assert.equal((await gone.V().toList()).length, 0);
    await again.rollback();
    assert.equal((await g.V().toList()).length, 3);
  });

test('transactions by scripts', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  const ask = async (...args) => (await wire.ask(within(...args))).at(-1).status.code;
  const count = async () => (await wire.ask(evaluation('g.V().count()')))[0].result.data[0];
  assert.equal(await ask('s', "g.addV('a')"), 200);
  assert.equal(await count(), 1, 'each commits by itself');
  assert.equal(await ask('s', 'g.tx().begin()'), 204);
  assert.equal(await ask('s', "g.addV('b')"), 200);
  assert.equal(await count(), 1);
  assert.equal(await ask('s', 'g.tx().commit()'), 204);
  assert.equal(await count(), 2);
  assert.equal(await ask('s', "g.addV('c')", { manageTransaction: false }), 200);
  assert.equal(await count(), 2);
  assert.equal(await ask('s', 'g.tx().rollback()'), 204);
  assert.equal(await count(), 2);
  assert.equal((await wire.ask(evaluation('g.tx().commit()')))[0].status.code, 499, 'without a session there is none');
});

test('two transactions on the same vertex: one of them wins', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  const ask = async (...args) => (await wire.ask(within(...args))).at(-1).status;
  await wire.ask(evaluation("g.addV('a').property(id, 'one').property('n', 0)"));
  for (const session of ['a', 'b']) {
    assert.equal((await ask(session, "g.V('one').values('n')", { manageTransaction: false })).code, 200);
    assert.equal((await ask(session, `g.V('one').property('n', '${session}')`)).code, 200);
  }
  assert.equal((await ask('a', 'g.tx().commit()')).code, 204);
  const lost = await ask('b', 'g.tx().commit()');
  assert.equal(lost.code, 500);
  assert.equal(lost.attributes['x-ms-status-code'], 412);
  assert.deepEqual((await wire.ask(evaluation("g.V('one').values('n')")))[0].result.data, ['a']);
});

test('a server that stops with sessions, transactions and requests of clients that have gone ends cleanly', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const wire = await Wire.open(t, server);
  for (const script of ["g.addV('a').property('n', 1)", 'g.V().fly()', 'x = 1', 'g.V().group().by(label)', "g.V().fail('x')", 'g.V().path().tree()',
    "g.addV('b').as('x').addE('e').to('x')"])
    await wire.ask(evaluation(script));
  for (const script of ["v = g.addV('a').next()", 'g.V(v)', 'v = 5', 'g.V().repeat(both()).times(3).path()']) await wire.ask(within('s', script));
  await wire.ask(within('t', "g.addV('c')", { manageTransaction: false }));
  await wire.ask(within('t', "g.V().values('n')"));
  await fetch(`http://127.0.0.1:${server.gremlinPort}/`, { method: 'POST', body: '{"gremlin": 5}' });
  const gone = await Wire.open(t, server);
  for (let i = 0; i < 30; i++) gone.text(evaluation('g.inject(0).repeat(identity()).times(900)')).text(within('u', 'g.inject(0).repeat(identity()).times(900)'));
  gone.socket.destroy();
  assert.equal((await wire.ask(evaluation('g.V().count()')))[0].status.code, 200);
  const { code } = await server.stop();
  assert.equal(code, 0, server.err.slice(-4000)); // a sanitizer's report is another
});
