// The ledger of the MongoDB API is what the server does: every command it lists is sent, and what it refuses is refused.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { root } from './server.js';
import { mongo } from './mongo.js';

const page = readFileSync(join(root, 'docs/compatibility-mongo.md'), 'utf8');
const commands = page.split('## Stages of pipelines')[0].split('\n').filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim().replace(/^`(.*)`$/, '$1')))
  .map(([name, fate, needs, what]) => ({ name, fate, needs, admin: what.endsWith('; on admin') }));

// What is sent besides the name; an error that says the command was understood.
const examples = {
  saslStart: { body: { mechanism: 'SCRAM-SHA-256', payload: Buffer.from('n,,n=u,r=x') } },
  saslContinue: { body: { conversationId: 9, payload: Buffer.from('') }, code: 17 },
  endSessions: { value: [] }, killAllSessions: { value: [] }, killAllSessionsByPattern: { value: [] }, refreshSessions: { value: [] }, killSessions: { value: [] },
  insert: { value: 'c', body: { documents: [{ _id: 1 }] } },
  find: { value: 'c' }, aggregate: { value: 'c', body: { pipeline: [], cursor: {} } },
  getMore: { value: 5, body: { collection: 'c' }, code: 43 },
  killCursors: { value: 'c', body: { cursors: [] } },
  update: { value: 'c', body: { updates: [{ q: {}, u: { a: 1 } }] } },
  findAndModify: { value: 'c', body: { remove: true } },
  delete: { value: 'c', body: { deletes: [{ q: { a: 5 }, limit: 0 }] } },
  count: { value: 'c' }, distinct: { value: 'c', body: { key: 'a' } },
  create: { value: 'made' }, drop: { value: 'gone' }, listIndexes: { value: 'c', code: 26 },
  createIndexes: { value: 'made', body: { indexes: [{ key: { a: 1 } }] } }, dropIndexes: { value: 'made', body: { index: '*' } },
  collMod: { value: 'made' }, renameCollection: { value: 'ledger.made', body: { to: 'ledger.named' } },
  collStats: { value: 'c' }, dataSize: { value: 'ledger.c' }, validate: { value: 'named' },
  getParameter: { body: { featureCompatibilityVersion: 1 } }, getLog: { value: '*' },
  logout: { last: true },
};

test('what the ledger lists works, and what it refuses is refused by name', async (t) => {
  assert.ok(commands.length > 40);
  const { client } = await mongo(t, [], { maxPoolSize: 1 });
  const rank = ({ name }) => (examples[name]?.last ? 1 : 0);
  for (const { name, fate, admin } of [...commands].sort((a, b) => rank(a) - rank(b))) {
    const { value = 1, body = {}, code } = examples[name] ?? {};
    const outcome = await client.db(admin ? 'admin' : 'ledger').command({ [name]: value, ...body }).then(() => undefined, (error) => error);
    if (fate === 'refused') {
      assert.equal(outcome?.code, 238, name);
      assert.match(outcome.message, new RegExp(`^${name}: `));
    } else if (outcome) {
      assert.equal(outcome.code, code, `${name}: ${outcome}`);
    }
  }
});

test('commands that need nothing are answered before authentication, others are not', async (t) => {
  const { client } = await mongo(t, [], { maxPoolSize: 1 });
  await client.db('admin').command({ logout: 1 });
  for (const { name, needs, fate, admin } of commands) {
    if (fate === 'refused' || name === 'logout') continue;
    const { value = 1, body = {} } = examples[name] ?? {};
    const outcome = await client.db(admin ? 'admin' : 'ledger').command({ [name]: value, ...body }).then(() => undefined, (error) => error);
    assert.equal(outcome?.code === 13, needs !== 'nothing', `${name}: ${outcome}`);
  }
});
