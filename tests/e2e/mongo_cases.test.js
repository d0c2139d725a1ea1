// The cases of tests/cases/mongo through a server, five ways: a collection that is not sharded, without indexes and with
// every index that could serve; hashed over 16 partitions, without and with indexes; and ranged. What a case says holds
// every way, and what filters find besides is the same every way.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { BSON } from 'mongodb';
import { mongo } from './mongo.js';
import { root } from './server.js';

const { EJSON } = BSON;
const typed = { promoteValues: false, promoteBuffers: false, bsonRegExp: true, ignoreUndefined: false };

// Some cases cannot be sent by this driver, which has no value for BSON's undefined.
const sendable = (text) => !text.includes('$undefined');

// Canonical extended JSON, but operators of filters ({"$regex": ...}) stay what they are, and 0.0 is a double.
const wrappers = new Set(['$oid', '$numberInt', '$numberLong', '$numberDouble', '$numberDecimal', '$date', '$timestamp', '$binary', '$regularExpression',
  '$symbol', '$minKey', '$maxKey', '$code', '$dbPointer', '$uuid']);

function typedOf(value) {
  if (Array.isArray(value)) return value.map(typedOf);
  if (value === null || typeof value !== 'object') return EJSON.deserialize({ v: value }, { relaxed: false }).v;
  const keys = Object.keys(value);
  if (keys.length && keys.length <= 2 && keys.every((key) => wrappers.has(key) || key === '$scope')) return EJSON.deserialize({ v: value }, { relaxed: false }).v;
  return Object.fromEntries(keys.map((key) => [key, typedOf(value[key])]));
}

const doubles = /("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))/g;
const read = (text) => typedOf(JSON.parse(text.replace(doubles, (_, string, number) => string ?? `{"$numberDouble":"${number}"}`)));

const casesOf = (name) => readFileSync(join(root, 'tests/cases/mongo', `${name}.json`), 'utf8')
  .split('\n').map((line) => line.replace(/,$/, '')).filter((line) => line.startsWith('{"') && !/^\{"(cases|sets)"/.test(line))
  .filter(sendable).map((line) => ({ line, ...read(line) }))
  // what a part refuses for want of the others, a server does; JavaScript it refuses in words of its own
  .filter(({ code, line }) => Number(code) !== 238 && Number(code) !== 5626500 && !line.includes('"$where"'));

const shown = (value) => EJSON.stringify(value, { relaxed: false });

const paths = ['a', 'b', 'c', 'x', 'n', 'a.b', 'a.x', 'a.b.c', 'a.0', 'a.c', 'a.y'];

const ways = [
  { name: 'unsharded, no index' },
  { name: 'unsharded, every index', indexed: true },
  { name: 'hashed over 16 partitions', key: { _id: 'hashed' }, chunks: 16 },
  { name: 'hashed over 16 partitions, every index', key: { _id: 'hashed' }, chunks: 16, indexed: true },
  { name: 'ranged', key: { _id: 1 }, splits: [5, 12, 'case-050', 'case-100', 'case-150', 'm'] },
];

// Each way has a database of its own.
const databaseOf = (client, way) => client.db(`cases${ways.indexOf(way)}`);

async function collectionOf(client, way, name) {
  const db = databaseOf(client, way);
  if (way.key) {
    const whole = `${db.databaseName}.${name}`;
    await client.db('admin').command({ shardCollection: whole, key: way.key, ...(way.chunks ? { numInitialChunks: way.chunks } : {}) });
    for (const at of way.splits ?? []) await client.db('admin').command({ split: whole, middle: { _id: at } });
  } else {
    await db.createCollection(name);
  }
  const collection = db.collection(name);
  if (way.indexed) {
    await collection.createIndexes([...paths.map((path) => ({ key: { [path]: 1 }, name: path })), { key: { '$**': 1 }, name: 'all' }]);
  }
  return collection;
}

// Each way the same test; what it returns has to be the same, too.
async function everyWay(t, run) {
  const { client } = await mongo(t, [], typed);
  let first;
  for (const way of ways) {
    await t.test(way.name, async () => {
      const found = await run(way, (name) => collectionOf(client, way, name), databaseOf(client, way));
      first ??= { way, found };
      for (const [key, value] of found) assert.equal(value, first.found.get(key), `${key}: ${way.name} and ${first.way.name} differ`);
    });
  }
}

const refused = async (of, promise) => {
  const error = await promise.then(() => assert.fail(`${of.line} is not refused`), (reason) => reason);
  if (error.code === 'ERR_ASSERTION') throw error;
  assert.equal(Number(error.code), Number(of.code), `${of.line}: ${error.message}`);
  const part = of.message ?? of.text;
  if (part) assert.ok(error.message.includes(part), `${of.line}: ${error.message}`);
};

test('filters find what their cases say, whatever else the collection holds', async (t) => {
  const cases = casesOf('match');
  await everyWay(t, async (way, make) => {
    const collection = await make('match');
    const documents = cases.flatMap((of, i) => [...(of.yes ?? []).map((document) => [document, 'yes']), ...(of.no ?? []).map((document) => [document, 'no'])]
      .filter(([document]) => !('_id' in document))
      .map(([document, holds], j) => ({ _id: `case-${String(i).padStart(3, '0')}-${holds}-${j}`, ...document })));
    await collection.insertMany(documents);
    const found = new Map();
    for (const [i, of] of cases.entries()) {
      if (of.code) {
        await refused(of, collection.find(of.filter).toArray());
        continue;
      }
      if ([...(of.yes ?? []), ...(of.no ?? [])].some((document) => '_id' in document)) continue;
      if (/(min|max|additional)Properties/.test(of.line)) continue; // documents have one more here: _id
      const ids = (await collection.find(of.filter, { projection: { _id: 1 } }).toArray()).map(({ _id }) => _id).sort();
      const own = ids.filter((id) => id.startsWith(`case-${String(i).padStart(3, '0')}-`));
      assert.equal(new Set(ids).size, ids.length, `${of.line} finds a document twice`);
      assert.deepEqual(own.filter((id) => id.includes('-no-')), [], `${of.line} finds what it should not`);
      assert.equal(own.length, (of.yes ?? []).length, `${of.line} misses documents`);
      found.set(of.line, ids.join());
    }
    return found;
  });
});

test('updates make of documents what their cases say', async (t) => {
  const cases = casesOf('update').filter((of) => !of.line.includes('$currentDate'));
  await everyWay(t, async (way, make, db) => {
    const collection = await make('update');
    for (const of of cases) {
      // a sharded collection wants the key of what is to be inserted
      if (way.key && of.upsert && !('_id' in (of.query ?? {}))) continue;
      await collection.deleteMany({});
      if (of.before) await collection.insertOne(of.before);
      const statement = { q: of.query ?? {}, u: of.update, multi: of.multi ?? false, upsert: of.upsert ?? false, ...(of.filters ? { arrayFilters: of.filters } : {}) };
      const send = async () => {
        const reply = await db.command({ update: collection.collectionName, updates: [statement] }, typed);
        const [error] = reply.writeErrors ?? [];
        if (error) throw Object.assign(new Error(error.errmsg), { code: error.code });
        return reply;
      };
      if (of.code) {
        await refused(of, send());
        if (of.before) assert.equal(shown(await collection.findOne({})), shown(of.before), `${of.line} changed something`);
        continue;
      }
      const reply = await send();
      const [after] = await collection.find({}).toArray();
      if (of.same) {
        assert.equal(Number(reply.nModified), 0, of.line);
        assert.equal(shown(after), shown(of.before), of.line);
        continue;
      }
      if (of.after._id === 'new') after._id = 'new';
      assert.equal(shown(after), shown(of.after), of.line);
    }
    return new Map();
  });
});

test('projections show of documents what their cases say', async (t) => {
  const cases = casesOf('projection');
  await everyWay(t, async (way, make) => {
    const collection = await make('projection');
    for (const of of cases) {
      await collection.deleteMany({});
      await collection.insertOne(of.document);
      const found = collection.find(of.query ?? {}, { projection: of.projection }).toArray();
      if (of.code) await refused(of, found);
      else assert.equal(shown((await found)[0]), shown(of.shown), of.line);
    }
    return new Map();
  });
});

test('expressions compute what their cases say', async (t) => {
  // what looks at the whole document sees an _id here
  const cases = casesOf('expression').filter(({ line }) => !/ROOT|CURRENT|_id|\$rand|sampleRate/.test(line));
  await everyWay(t, async (way, make) => {
    const collection = await make('expression');
    await collection.insertMany(cases.map((of, i) => ({ ...of.doc, _id: i })));
    const found = new Map();
    for (const [i, of] of cases.entries()) {
      const rows = collection.aggregate([{ $match: { _id: i } }, { $replaceWith: { v: of.e } }]).toArray();
      if (of.code) {
        await refused(of, rows);
        continue;
      }
      const [row] = await rows;
      if ('is' in of) assert.equal(shown(row), shown({ v: of.is }), of.line);
      found.set(of.line, shown(row));
    }
    return found;
  });
});

const byText = (rows) => rows.map(shown).sort();

test('pipelines give what their cases say', async (t) => {
  const lines = readFileSync(join(root, 'tests/cases/mongo/pipeline.json'), 'utf8');
  const { sets } = typedOf(JSON.parse(lines));
  const cases = casesOf('pipeline').filter(({ pipeline }) => pipeline);
  await everyWay(t, async (way, make, db) => {
    for (const [name, documents] of Object.entries(sets)) {
      const collection = await make(name);
      if (documents.length) await collection.insertMany(documents);
    }
    for (const of of cases) {
      const rows = db.collection(of.from).aggregate(of.pipeline).toArray();
      if (of.error) {
        await refused({ line: of.line, code: of.error }, rows);
        continue;
      }
      // without a sort the rows of several partitions come in any order
      const sorted = !of.unordered && (!way.key || of.pipeline.some((stage) => '$sort' in stage));
      const got = await rows;
      if (sorted) assert.deepEqual(got.map(shown), of.result.map(shown), of.line);
      else assert.deepEqual(byText(got), byText(of.result), of.line);
    }
    return new Map();
  });
});
