// A server whose node is a PostgreSQL server.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Server, orrery } from './server.js';
import { Postgres, oldPostgres } from './postgres.js';

const quick = ['--rest', '127.0.0.1:0', '--set', 'engine.connect_ms_max=2s'];

async function refused(node, message) {
  const result = await orrery(['serve', '--node', node, ...quick]);
  assert.equal(result.code, 1, result.err);
  assert.match(result.err.trim().split('\n').at(-1), message);
  return result;
}

test('/ready follows the PostgreSQL server down and up again', async (t) => {
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--node', `far=${postgres.url}`, '--node', 'near=memory:', ...quick]);
  assert.equal((await server.get('/ready')).status, 200);
  await postgres.stop();
  await server.until(async () => (await server.get('/ready')).status === 503);
  const body = await (await server.get('/ready')).json();
  assert.equal(body.code, 'ServiceUnavailable');
  assert.match(body.message, /^node "far" does not serve/);
  assert.equal(body.nodes.find((node) => node.name === 'far').state, 'down');
  const metrics = await (await server.get('/metrics')).text();
  assert.match(metrics, /^orrery_node_up\{node="near"\} 1$/m);
  await postgres.resume();
  await server.until(async () => (await server.get('/ready')).status === 200);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test('a key without a file to be in is the same after a restart', async (t) => {
  const postgres = await Postgres.start(t);
  const keys = [];
  for (let start = 0; start < 2; start++) {
    const server = await Server.start(t, ['--node', `a=${postgres.url}`, ...quick]);
    assert.match(server.out, /kept with the data/);
    keys.push(/AccountKey=([^;]{88});/.exec(server.out)[1]);
    await server.stop();
  }
  assert.equal(keys[0], keys[1]);
});

test('a second process on the same PostgreSQL node is refused, and the first goes on', async (t) => {
  const postgres = await Postgres.start(t);
  const first = await Server.start(t, ['--node', `a=${postgres.url}`, ...quick]);
  await refused(`a=${postgres.url}`, new RegExp(`node "a": process ${first.process.pid} on host .* holds the node`));
  assert.equal((await first.get('/ready')).status, 200);
});

test('a PostgreSQL server that is not there is told with the reason', async () => {
  await refused('a=postgresql://127.0.0.1:1/x', /node "a": .*port 1.*(refused|timeout)/i);
});

test('a PostgreSQL server of an old version is refused by its version', async (t) => {
  await refused(`a=${await oldPostgres(t, '9.6.24')}`, /node "a": .*9\.6/);
});

test('a password in a node URL is never printed', async () => {
  const result = await refused('a=postgresql://u:hunter2@127.0.0.1:1/x?nonsense=1', /node "a"/);
  assert.ok(!(result.out + result.err).includes('hunter2'));
});
