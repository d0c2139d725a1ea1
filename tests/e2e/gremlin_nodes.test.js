// A graph over two nodes: a request that writes to both is committed node by node, and says so. While one of the nodes is
// killed, every answer is true: what was acknowledged is there, and what is said to be kept is.
import assert from 'node:assert/strict';
import test from 'node:test';
import { attribute, authenticator, client, container, failure, v2 } from './gremlin.js';
import { Postgres } from './postgres.js';
import { Server } from './server.js';

const cloud = () => ({ authenticator: authenticator('3.7'), path: '/', mimeType: v2 });

// A graph with a partition on each node, and two keys that are not on the same.
async function spread(t) {
  const postgres = await Postgres.start(t);
  const server = await Server.start(t, ['--dev', '--node', 'near=memory:', '--node', `far=${postgres.url}`]);
  await container(server, 'graphs', 'g', { throughput: '20000' });
  const g = await client(t, server, '3.7', cloud());
  for (let i = 1; ; i++) {
    const keys = ['p0', `p${i}`];
    if (atomic(await g.submit(pair(keys, `search${i}`))) === false) return { postgres, server, g, keys };
  }
}

const atomic = ({ attributes }) => attributes['x-orrery-atomic'] ?? attributes.get?.('x-orrery-atomic');
// A vertex of each key.
const pair = (keys, i) => `g${keys.map((key) => `.addV('n').property('id','v${i}').property('pk','${key}')`).join('')}.id()`;

test('a request over two nodes says that it is not one transaction, one on a node that it is', async (t) => {
  const { g, keys } = await spread(t);
  const both = await g.submit(pair(keys, 0));
  assert.deepEqual([both.toArray(), atomic(both)], [['v0'], false]);
  for (const key of keys) {
    const one = await g.submit(`g.V(['${key}','v0']).property('n', 1)`);
    assert.notEqual(atomic(one), false);
    assert.equal((await g.submit(`g.V(['${key}','v0']).values('n')`)).first(), 1);
  }
});

test('a node that is killed between two commits leaves what was said to be kept', async (t) => {
  const { postgres, server, g, keys } = await spread(t);
  const said = [];
  let running = true;
  const writer = async (lane) => {
    for (let i = 0; running; i++) {
      const id = `${lane}x${i}`;
      said.push({ id, ...(await g.submit(pair(keys, id)).then(() => ({ good: true }), (error) => ({ message: error.message,
        status: attribute(error, 'x-ms-status-code') }))) });
    }
  };
  const lanes = Promise.all([0, 1, 2, 3].map(writer));
  await server.until(() => said.filter(({ good }) => good).length > 20);
  await postgres.stop('SIGQUIT');
  await server.until(() => said.filter(({ good }) => !good).length > 20);
  running = false;
  await lanes;
  const there = async (key, id) => (await g.submit(`g.V(['${key}','v${id}']).count()`)).first();
  const served = await Promise.all(keys.map((key) => there(key, '0x0').then(() => true, () => false)));
  assert.deepEqual([...served].sort(), [false, true], 'the other node goes on');
  await postgres.resume();
  const [nearKey, farKey] = served[0] ? keys : [...keys].reverse();
  await server.until(async () => (await there(farKey, '0x0').catch(() => 0)) === 1);

  for (const { id, good, message, status } of said) {
    const near = await there(nearKey, id), far = await there(farKey, id);
    if (good) assert.deepEqual([near, far], [1, 1], `${id} was acknowledged`);
    else if (/is kept, the rest is not/.test(message)) assert.ok(near + far >= 1, `${id}: ${message}`);
    else assert.equal(near, 0, `${id} failed (${status}): ${message}`);
  }
  assert.ok(said.some(({ good }) => good) && said.some(({ good }) => !good));
  assert.equal((await failure(g.submit("g.V().fail('alive')"))).statusCode, 595);
});
