// Who may run scripts: keys, resource tokens, and what a token for one partition key is good for.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { shop } from './items.js';
import { procedure } from './scripts.js';

/* global getContext */

function greet() { getContext().getResponse().setBody('hello'); }

async function permitted(t, permissions) {
  const made = await shop(t);
  await procedure(made.container, 'greet', greet);
  await procedure(made.container, 'other', greet);
  const { user } = await made.database.users.create({ id: 'u' });
  const clients = {};
  for (const [id, { mode, resource, key }] of Object.entries(permissions)) {
    const { resource: permission } = await user.permissions.create({
      id, permissionMode: mode, resource, ...(key ? { resourcePartitionKey: [key] } : {}),
    });
    clients[id] = (script, partition) => made.send('POST', `/dbs/shop/colls/orders/sprocs/${script}`, {
      key: [partition], body: [], headers: { authorization: encodeURIComponent(permission._token) },
    });
  }
  return clients;
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
