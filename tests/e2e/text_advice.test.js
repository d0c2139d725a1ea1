// What a query says of full-text indexes: which one it used, and which it lacks.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';
import { signed } from './rest.js';

test('a search without an index is advised to have one, and costs more', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.enforce=never']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  const { database } = await client.databases.createIfNotExists({ id: 'shop' });
  const fullTextPolicy = { defaultLanguage: 'en-US', fullTextPaths: [{ path: '/text', language: 'en-US' }] };
  const charges = {};
  for (const [id, indexingPolicy] of [['plain', {}], ['texts', { fullTextIndexes: [{ path: '/text' }] }]]) {
    const { container } = await database.containers.create({ id, partitionKey: '/pk', fullTextPolicy, indexingPolicy });
    for (let i = 0; i < 200; i += 1) await container.items.create({ id: `${i}`, pk: 'a', text: i % 40 ? `common word${i} ${'filler '.repeat(20)}` : 'rare words' });
    const answer = await signed(server, 'POST', `/dbs/shop/colls/${id}/docs`, {
      body: { query: 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "rare")', parameters: [] },
      headers: { 'x-ms-documentdb-isquery': 'true', 'content-type': 'application/query+json',
        'x-ms-documentdb-query-enablecrosspartition': 'true', 'x-orrery-explain': 'true' } });
    assert.equal(answer.status, 200, answer.text);
    const { _explain, Documents } = answer.json;
    assert.equal(Documents.length, 5);
    charges[id] = Number(answer.headers['x-ms-request-charge']);
    const advised = _explain.advice.some(({ kind, searched }) => kind === 'fullText' && searched.startsWith('/text'));
    assert.equal(advised, id === 'plain', JSON.stringify(_explain.advice));
    assert.equal(_explain.access.kind, id === 'plain' ? 'scan' : 'index');
  }
  assert.ok(charges.texts < charges.plain, JSON.stringify(charges));
});
