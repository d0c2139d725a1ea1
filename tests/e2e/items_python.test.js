// Items and all around them through the vendor's Python clients, blocking and asynchronous. Queries: query_python.test.js.
import { test } from 'node:test';
import { claims, missing } from './python.js';
import { Server } from './server.js';

test('the Python client works with items', { skip: missing('azure.cosmos') }, async (t) => {
  await claims(t, await Server.start(t, ['--dev']), 'items.py');
});

test('the asynchronous Python client works with items', { skip: missing('azure.cosmos.aio', 'aiohttp') }, async (t) => {
  await claims(t, await Server.start(t, ['--dev', '--set', 'migration.pause_ms=20ms']), 'asynchronous.py');
});
