// Full text: words and phrases in any form, in the language that the policy of the container names.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { Server, emulatorKey } from './server.js';

async function started(t) {
  const server = await Server.start(t, ['--dev']);
  const client = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => client.dispose());
  return (await client.databases.createIfNotExists({ id: 'shop' })).database;
}

const all = async (container, query, parameters = []) =>
  (await container.items.query({ query, parameters }).fetchAll()).resources.sort();

for (const throughput of [400, 48_000]) {
  test(`texts are searched in the language of their path, container of ${throughput} RU/s`, async (t) => {
    const database = await started(t);
    const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk', throughput,
      fullTextPolicy: { defaultLanguage: 'en-US', fullTextPaths: [{ path: '/text' }, { path: '/de', language: 'de-DE' }] },
      indexingPolicy: { fullTextIndexes: [{ path: '/text' }] } });
    await container.items.create({ id: '1', pk: 'a', text: 'Swimming in the lake', de: 'Die Häuser am See' });
    await container.items.create({ id: '2', pk: 'b', text: 'The lake houses', de: 'Schwimmen' });
    assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @w)', [{ name: '@w', value: 'swims' }]), ['1']);
    assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "lake house")'), ['2']);
    assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, "lakes", "houses")'), ['2']);
    assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContainsAny(c.text, "swim", "house")'), ['1', '2']);
    assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.de, "haus")'), ['1']);
    assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "Häuser")'), []);
  });
}

test('what is not offered is refused by name', async (t) => {
  const database = await started(t);
  const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk',
    fullTextPolicy: { defaultLanguage: 'tlh', fullTextPaths: [{ path: '/text' }] } });
  await assert.rejects(container.items.query('SELECT * FROM c WHERE FullTextContains(c.text, "a")').fetchAll(), /language tlh is not supported/);
  await assert.rejects(container.items.query('SELECT TOP 5 * FROM c ORDER BY RANK FullTextScore(c.text, "a")').fetchAll(), /language tlh is not supported/);
});

test('long texts and phrases are bounded', async (t) => {
  const database = await started(t);
  const { container } = await database.containers.create({ id: 'texts', partitionKey: '/pk' });
  await container.items.create({ id: '1', pk: 'a', text: 'x'.repeat(1_500_000) });
  await container.items.create({ id: '2', pk: 'a', text: 'needle '.repeat(200_000) });
  assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "needle")'), ['2']);
  assert.deepEqual(await all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, "needle needle haystack")'), []);
  await assert.rejects(all(container, 'SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @long)', [{ name: '@long', value: 'word '.repeat(100) }]),
    /more than 64 words/);
});
