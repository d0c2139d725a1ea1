// The unmodified NoSQL client: databases, containers and items.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';

test('an item is created, read, replaced, upserted and deleted', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'shop' });
  const { container } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  const created = await container.items.create({ id: 'a', tenant: 'x', n: 1 });
  assert.equal(created.statusCode, 201);
  const read = await container.item('a', 'x').read();
  assert.equal(read.resource.n, 1);
  assert.equal(read.resource._etag, created.resource._etag);
  const replaced = await container.item('a', 'x').replace({ ...read.resource, n: 2 });
  assert.equal(replaced.resource.n, 2);
  const upserted = await container.items.upsert({ id: 'a', tenant: 'x', n: 3 });
  assert.equal(upserted.statusCode, 200);
  await container.item('a', 'x').delete();
  assert.equal((await container.item('a', 'x').read()).statusCode, 404);
});
