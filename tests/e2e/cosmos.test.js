// The unmodified NoSQL client against a server that does not serve its API yet.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server } from './server.js';

test('@azure/cosmos gets a clean, named error', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const line = server.out.split('\n').find((text) => text.includes('AccountEndpoint='));
  const client = new CosmosClient(line.slice(line.indexOf('AccountEndpoint=')));
  await assert.rejects(client.databases.readAll().fetchAll(), (error) => {
    assert.equal(error.code, 501);
    assert.match(error.message, /does not serve the NoSQL API yet/);
    return true;
  });
  client.dispose();
  assert.equal((await server.get('/ready')).status, 200);
});
