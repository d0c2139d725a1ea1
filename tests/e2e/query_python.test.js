// Queries through the vendor's Python clients, blocking and asynchronous.
import { test } from 'node:test';
import { claims, missing } from './python.js';
import { Server } from './server.js';

test('the Python clients query', { skip: missing('azure.cosmos', 'azure.cosmos.aio', 'aiohttp') }, async (t) => {
  const server = await Server.start(t, ['--dev']);
  await claims(t, server, 'queries.py');
});
