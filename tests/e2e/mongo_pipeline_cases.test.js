// The cases of tests/cases/mongo/pipeline.json over a collection that is not sharded, and over 16 partitions.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { BSON } from 'mongodb';
import { root } from './server.js';
import { mongo } from './mongo.js';

const { EJSON } = BSON;
const text = readFileSync(join(root, 'tests/cases/mongo/pipeline.json'), 'utf8');
const { sets, cases } = EJSON.parse(text, { relaxed: false });
const shown = (value) => EJSON.stringify(value, { relaxed: false });

const ways = {
  'not sharded': async () => {},
  'over 16 partitions': async (client, name) => {
    await client.db('admin').command({ shardCollection: `shop.${name}`, key: { _id: 'hashed' }, numInitialChunks: 16 });
  },
};

for (const [way, prepare] of Object.entries(ways)) {
  test(`pipelines give what MongoDB documents, ${way}`, async (t) => {
    const { client, db } = await mongo(t, [], { promoteValues: false });
    for (const [name, documents] of Object.entries(sets)) {
      await prepare(client, name);
      await db.collection(name).insertMany(documents);
    }
    const failures = [];
    for (const { from, pipeline, result, error, unordered } of cases) {
      const outcome = await db.collection(from).aggregate(pipeline).toArray().then((rows) => rows.map(shown), (thrown) => thrown);
      if (error !== undefined) {
        if (Number(outcome.code) !== Number(error)) failures.push(`${shown(pipeline)}\n  should fail with ${Number(error)}: ${outcome.code ?? ''} ${outcome.message ?? outcome}`);
        continue;
      }
      const expected = result.map(shown);
      if (outcome instanceof Error) failures.push(`${from} ${shown(pipeline)}\n  ${outcome.code} ${outcome.message}`);
      else if (unordered ? [...outcome].sort().join() !== [...expected].sort().join() : outcome.join() !== expected.join())
        failures.push(`${from} ${shown(pipeline)}\n  is        ${outcome}\n  should be ${expected}`);
    }
    assert.equal(failures.length, 0, `${failures.length} of ${cases.length} cases:\n${failures.slice(0, 40).join('\n')}`);
  });
}
