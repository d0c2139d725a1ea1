// Partitions change under running traversals: nothing is lost, nothing comes twice.
import assert from 'node:assert/strict';
import test from 'node:test';
import { attribute, client, graph, authenticator, v2 } from './gremlin.js';
import { signed } from './rest.js';

const cloud = () => ({ authenticator: authenticator('3.7'), path: '/', mimeType: v2 });
const of = (what) => `/_orrery/containers/graphs/g/${what}`;

async function filled(t, args = []) {
  const server = await graph(t, ['--set', 'migration.pause_ms=20ms', ...args], { throughput: '40000' });
  const g = await client(t, server, '3.7', cloud());
  for (let i = 0; i < 200; i += 20)
    await Promise.all(Array.from({ length: 20 }, (_, j) =>
      g.submit("g.addV('n').property('id', id).property('pk', pk).property('other', other)", { id: `v${i + j}`, pk: `p${i + j}`, other: `o${(i + j) % 17}` })));
  for (let i = 0; i < 200; i += 20)
    await Promise.all(Array.from({ length: 20 }, (_, j) =>
      g.submit('g.V([p, v]).addE(l).to(g.V([q, w]))', { p: `p${i + j}`, v: `v${i + j}`, l: 'next', q: `p${(i + j + 1) % 200}`, w: `v${(i + j + 1) % 200}` })));
  return { server, g };
}

// Asks over and over until it is told to stop; every answer must be whole. A traversal that lost against the change says so.
function walkers(g, count) {
  const state = { running: true, answers: 0, retried: 0 };
  const walk = async () => {
    while (state.running) {
      try {
        const ids = (await g.submit("g.V().out('next').id()")).toArray();
        assert.equal(ids.length, 200);
        assert.equal(new Set(ids).size, 200);
        assert.equal((await g.submit("g.V().hasLabel('n').count()")).first(), 200);
        state.answers++;
      } catch (error) {
        if (error.code === 'ERR_ASSERTION' || ![410, 412, 429, 449, 503].includes(attribute(error, 'x-ms-status-code'))) throw error;
        state.retried++;
      }
    }
  };
  state.done = Promise.all(Array.from({ length: count }, walk));
  return state;
}

async function settled(server, path) {
  await server.until(async () => {
    const { json } = await signed(server, 'GET', path);
    return json.outcome || json.underWay === false || json.state === 'done' || json.underWay === undefined && json.outcome !== undefined;
  });
}

test('splits', async (t) => {
  const { server, g } = await filled(t);
  const state = walkers(g, 3);
  for (let round = 0; round < 2; round++) {
    const { json } = await signed(server, 'GET', of('partitions'));
    const list = json.partitions ?? json.Partitions ?? json;
    const split = await signed(server, 'POST', of(`partitions/${list[0].id}/split`), { body: { pieces: 2 } });
    assert.equal(split.status, 202, split.text);
    await settled(server, of(`migrations/${split.json.id}`));
    const before = state.answers;
    await server.until(() => state.answers > before);
  }
  state.running = false;
  await state.done;
  assert.ok(state.answers > 1);
});

test('a re-key', async (t) => {
  const { server, g } = await filled(t);
  const state = walkers(g, 2);
  await server.until(() => state.answers > 0);
  const begun = await signed(server, 'POST', of('rekey'), { body: { partitionKey: { paths: ['/other'], kind: 'Hash', version: 2 } } });
  assert.ok([202, 409].includes(begun.status), begun.text);
  await server.until(async () => !(await signed(server, 'GET', of('rekey'))).json.underWay);
  state.running = false;
  await state.done;
});
