// Clients of the Gremlin API that try to keep the server for themselves. No times are asserted: whoever is served while
// an attack goes on is served before it ends, or the test never does.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Server } from './server.js';
import { Wire, evaluation, frame, opcodes } from './gremlin.js';

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
