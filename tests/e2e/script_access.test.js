// Who may run scripts: keys, resource tokens, and what a token for one partition key is good for.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';
import { procedure } from './scripts.js';

/* global getContext */

function greet() { getContext().getResponse().setBody('hello'); }

// Leaves its argument wherever a script can: in the function itself, in the global object, in a built-in.
function gossip(value) {
  const met = [gossip.kept, globalThis.left, ' a '.trim()];
  gossip.kept = globalThis.left = value;
  String.prototype.trim = () => value;
  getContext().getResponse().setBody(met);
}

async function permitted(t, permissions, args = []) {
  const made = await shop(t, {}, { args });
  await procedure(made.container, 'greet', greet);
  await procedure(made.container, 'other', greet);
  await procedure(made.container, 'gossip', gossip);
  await made.container.scripts.userDefinedFunctions.create({ id: 'gossip', body: 'function told(value) { const met = told.kept; told.kept = value; return met ?? "nothing"; }' });
  const { user } = await made.database.users.create({ id: 'u' });
  const clients = {};
  for (const [id, { mode, resource, key }] of Object.entries(permissions)) {
    const { resource: permission } = await user.permissions.create({
      id, permissionMode: mode, resource, ...(key ? { resourcePartitionKey: [key] } : {}),
    });
    const headers = { authorization: encodeURIComponent(permission._token) };
    clients[id] = (script, partition, body = []) => made.send('POST', `/dbs/shop/colls/orders/sprocs/${script}`, { key: [partition], body, headers });
    clients[id].query = (text, partition) => made.send('POST', made.docs, {
      key: [partition], body: { query: text }, headers: { ...headers, 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true' },
    });
  }
  return { ...clients, made };
}

test('a token of the container runs procedures if it may write', async (t) => {
  const { all, read } = await permitted(t, {
    all: { mode: 'all', resource: 'dbs/shop/colls/orders' },
    read: { mode: 'read', resource: 'dbs/shop/colls/orders' },
  });
  assert.equal((await all('greet', 'x')).json, 'hello');
  assert.equal((await read('greet', 'x')).status, 403);
});

test('a token of one procedure runs no other', async (t) => {
  const { one } = await permitted(t, { one: { mode: 'all', resource: 'dbs/shop/colls/orders/sprocs/greet' } });
  assert.equal((await one('greet', 'x')).json, 'hello');
  assert.equal((await one('other', 'x')).status, 403);
});

test('a token for one partition key runs procedures on that key alone', async (t) => {
  const { bound } = await permitted(t, { bound: { mode: 'all', resource: 'dbs/shop/colls/orders', key: 'x' } });
  assert.equal((await bound('greet', 'x')).json, 'hello');
  assert.equal((await bound('greet', 'y')).status, 403);
});

test('what a run leaves behind is not met by a run of another principal', async (t) => {
  const { x, y, made } = await permitted(t, {
    x: { mode: 'all', resource: 'dbs/shop/colls/orders', key: 'x' },
    y: { mode: 'all', resource: 'dbs/shop/colls/orders', key: 'y' },
  }, ['--set', 'script.workers_max=1']);
  await made.container.items.create({ id: '1', tenant: 'x' });
  await made.container.items.create({ id: '1', tenant: 'y' });
  const owner = (value) => made.container.scripts.storedProcedure('gossip').execute('x', [value]);
  await owner('of the owner');
  assert.deepEqual((await x('gossip', 'x', ['of x'])).json, [null, null, 'a']);
  assert.deepEqual((await y('gossip', 'y', ['of y'])).json, [null, null, 'a']);
  const own = (met, value) => assert.deepEqual(met.filter((one) => ![null, 'a', value].includes(one)), [], JSON.stringify(met));
  own((await x('gossip', 'x', ['of x'])).json, 'of x');
  own((await y('gossip', 'y', ['of y'])).json, 'of y');
  own((await owner('of the owner')).resource, 'of the owner');
  const told = async (answer) => (await answer).json.Documents;
  assert.deepEqual((await made.container.items.query('SELECT VALUE udf.gossip("of the owner") FROM c', { partitionKey: 'x' }).fetchAll()).resources, ['nothing']);
  assert.deepEqual(await told(x.query('SELECT VALUE udf.gossip("of x") FROM c', 'x')), ['nothing']);
  assert.deepEqual(await told(y.query('SELECT VALUE udf.gossip("of y") FROM c', 'y')), ['nothing']);
});
