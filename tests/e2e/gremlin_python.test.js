// The Gremlin API as gremlin_python uses it.
import test from 'node:test';
import { claims, missing } from './python.js';
import { graph } from './gremlin.js';

test('gremlin_python', { skip: missing('aiohttp', 'gremlin_python') }, async (t) => {
  const server = await graph(t, ['--set', 'gremlin.typed=true'], { plain: true });
  await claims(t, server, 'gremlin.py', { gremlin: `ws://127.0.0.1:${server.gremlinPort}` });
});
