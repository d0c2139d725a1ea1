// Partitions change under running traversals: nothing is lost, nothing comes twice.
import assert from 'node:assert/strict';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { emulatorKey } from './server.js';
import { attribute, authenticator, client, graph, v2 } from './gremlin.js';
import { signed } from './rest.js';

const count = 200;
const cloud = () => ({ authenticator: authenticator('3.7'), path: '/', mimeType: v2 });
const of = (what) => `/_orrery/containers/graphs/g/${what}`;

// A ring of vertices, as the NoSQL API writes them; `twin` is another key that places them alike.
async function ring(t, args = []) {
  const server = await graph(t, ['--set', 'migration.pause_ms=20ms', ...args], { throughput: '40000' });
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const { items } = cosmos.database('graphs').container('g');
  const place = (i) => ({ pk: `p${i % 50}`, twin: `p${i % 50}` });
  const vertices = Array.from({ length: count }, (_, i) => ({ id: `v${i}`, label: 'n', ...place(i), name: [{ id: `n${i}`, _value: i }] }));
  const edges = Array.from({ length: count }, (_, i) => ({ id: `e${i}`, label: 'next', ...place(i), _isEdge: true, _vertexId: `v${i}`, _vertexLabel: 'n',
    _sink: `v${(i + 1) % count}`, _sinkLabel: 'n', _sinkPartition: place((i + 1) % count).pk }));
  const all = [...vertices, ...edges];
  for (let i = 0; i < all.length; i += 100)
    for (const { statusCode } of await items.bulk(all.slice(i, i + 100).map((resourceBody) => ({ operationType: 'Create', resourceBody }))))
      assert.equal(statusCode, 201);
  return { server, g: await client(t, server, '3.7', cloud()) };
}

// Asks over and over until it is told to stop. Every answer must be whole; a traversal that lost against the change may
// say so, and is asked again.
function walkers(g, number) {
  const state = { running: true, answers: 0, refused: 0 };
  const walk = async () => {
    while (state.running) {
      try {
        const ids = (await g.submit("g.V().hasLabel('n').out('next').id()")).toArray();
        assert.equal(ids.length, count);
        assert.equal(new Set(ids).size, count);
        const hops = (await g.submit("g.V('v0').repeat(out('next')).times(5).values('name')")).toArray();
        assert.deepEqual(hops, [5]);
        assert.equal((await g.submit('g.E().count()')).first(), count);
        state.answers++;
      } catch (error) {
        if (error.code === 'ERR_ASSERTION' || ![410, 412, 429, 449, 503].includes(attribute(error, 'x-ms-status-code'))) throw error;
        state.refused++;
      }
    }
  };
  state.done = Promise.all(Array.from({ length: number }, walk));
  state.done.catch(() => (state.failed = true));
  state.more = async (server) => {
    const before = state.answers;
    await server.until(() => state.answers > before + number || state.failed);
  };
  return state;
}

async function settled(server, id) {
  await server.until(async () => !(await signed(server, 'GET', '/_orrery/migrations')).json.migrations.some((migration) => migration.id === id));
}

test('splits and moves', async (t) => {
  const { server, g } = await ring(t, ['--node', 'near=memory:', '--node', 'far=memory:']);
  const state = walkers(g, 3);
  await state.more(server);
  const partitions = async () => (await signed(server, 'GET', of('partitions'))).json.partitions;
  const change = async (path, body) => {
    const begun = await signed(server, 'POST', of(path), { body });
    assert.equal(begun.status, 202, begun.text);
    await settled(server, begun.json.id);
    await state.more(server);
  };
  await change(`partitions/${(await partitions())[0].id}/split`, { pieces: 2 });
  await change(`partitions/${(await partitions())[1].id}/split`, { pieces: 3 });
  await change(`partitions/${(await partitions())[2].id}/move`, { node: 'far' });
  state.running = false;
  await state.done;
  assert.ok((await partitions()).length >= 4);
});

test('a re-key', async (t) => {
  const { server, g } = await ring(t);
  const state = walkers(g, 2);
  await state.more(server);
  const begun = await signed(server, 'POST', of('rekey'), { body: { partitionKey: { paths: ['/twin'], kind: 'Hash', version: 2 } } });
  assert.equal(begun.status, 202, begun.text);
  await server.until(async () => !(await signed(server, 'GET', of('rekey'))).json.underWay);
  await state.more(server);
  state.running = false;
  await state.done;
  assert.deepEqual((await g.submit("g.V(['p1', 'v1']).values('name')")).toArray(), [1]);
});
