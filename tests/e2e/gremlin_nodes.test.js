// A graph over two nodes: a request that writes to both is one transaction. While one of the nodes is killed, every answer is true:
// what was acknowledged is there, what was refused is not, and nobody finds a half.
import assert from 'node:assert/strict';
import test from 'node:test';
import { authenticator, client, container, failure, v2 } from './gremlin.js';
import { Postgres } from './postgres.js';
import { signed } from './rest.js';
import { Server } from './server.js';

const cloud = () => ({ authenticator: authenticator('3.7'), path: '/', mimeType: v2 });

// A graph with a partition on each node, and a key of each: of the memory first, then of PostgreSQL.
async function spread(t) {
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--dev', '--node', 'near=memory:', '--node', `far=${postgres.url}`]);
  await container(server, 'graphs', 'g', { throughput: '20000' });
  const g = await client(t, server, '3.7', cloud());
  const keys = {};
  for (let i = 0; !keys.near || !keys.far; i++) {
    const { json } = await signed(server, 'POST', '/_orrery/containers/graphs/g/key', { body: [`p${i}`] });
    keys[json.partition.node] ??= `p${i}`;
  }
  return { postgres, server, g, keys: [keys.near, keys.far] };
}

// A vertex of each key.
const pair = (keys, i) => `g${keys.map((key) => `.addV('n').property('id','v${i}').property('pk','${key}')`).join('')}.id()`;
const open = async (server) => (await signed(server, 'GET', '/_orrery/transactions')).json.transactions.length;

test('a request over two nodes is one transaction', async (t) => {
  const { g, keys, server } = await spread(t);
  assert.deepEqual((await g.submit(pair(keys, 0))).toArray(), ['v0']);
  for (const key of keys) assert.equal((await g.submit(`g.V(['${key}','v0']).count()`)).first(), 1);
  for (const taken of keys) { // what fails on either node is done on neither
    await failure(g.submit(pair([taken, taken], 1)));
    await failure(g.submit(`${pair(keys, 1).replace('.id()', '')}.addV('n').property('id','v0').property('pk','${taken}')`));
  }
  assert.equal((await g.submit("g.V().has('id','v1').count()")).first(), 0);
  await g.submit(`g.V(['${keys[0]}','v0']).addE('to').to(g.V(['${keys[1]}','v0'])).V().property('n', 1)`);
  assert.deepEqual((await g.submit("g.V().values('n')")).toArray(), [1, 1]);
  await server.until(async () => (await open(server)) === 0);
});

test('nobody finds a half of a request over two nodes', async (t) => {
  const { g, keys, server } = await spread(t);
  await g.submit(pair(keys, 0));
  await g.submit("g.V().property('n', 0)");
  let running = true, looks = 0;
  const look = async (first) => {
    for (let seen = 0, i = first; running; i++, looks++) {
      const n = (await g.submit(`g.V(['${keys[i % 2]}','v0']).values('n')`)).first();
      assert.ok(n >= seen, `${n} was found behind ${seen}`);
      seen = n;
    }
  };
  const lookers = [look(0), look(1)];
  try {
    for (let n = 1; n < 40 || looks < 60; n++) await g.submit(`g.V().property('n', ${n})`);
  } finally {
    running = false;
  }
  await Promise.all(lookers);
  await server.until(async () => (await open(server)) === 0);
});

test('a node that is killed under load leaves whole requests', async (t) => {
  const { postgres, server, g, keys } = await spread(t);
  const said = [];
  let running = true;
  const writer = async (lane) => {
    for (let i = 0; running; i++) {
      const id = `${lane}x${i}`;
      said.push({ id, ...(await g.submit(pair(keys, id)).then(() => ({ good: true }), (error) => ({ message: error.message }))) });
    }
  };
  const lanes = Promise.all([0, 1, 2, 3].map(writer));
  await server.until(() => said.filter(({ good }) => good).length > 20);
  await postgres.stop('SIGQUIT');
  await server.until(() => said.filter(({ good }) => !good).length > 20);
  running = false;
  await lanes;
  const there = async (key, id) => (await g.submit(`g.V(['${key}','v${id}']).count()`)).first();
  assert.equal(await there(keys[0], 'none'), 0, 'the other node goes on');
  await failure(g.submit(`g.V(['${keys[1]}','v0x0']).count()`));
  await postgres.resume();
  await server.until(async () => (await there(keys[1], '0x0').catch(() => 0)) === 1);
  await server.until(async () => (await open(server)) === 0);

  for (const { id, good, message } of said) {
    const [near, far] = [await there(keys[0], id), await there(keys[1], id)];
    assert.equal(near, far, `${id} (${message})`);
    if (good) assert.equal(near, 1, `${id} was acknowledged`);
  }
  assert.ok(said.some(({ good }) => good) && said.some(({ good }) => !good));
  assert.equal((await failure(g.submit("g.V().fail('alive')"))).statusCode, 595);
});
