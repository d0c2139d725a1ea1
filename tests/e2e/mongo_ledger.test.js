// The ledger of the MongoDB API is what the server does: every command it lists is sent, and what it refuses is refused.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { MaxKey, MinKey } from 'mongodb';
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
  explain: { value: { find: 'c' } },
  getMore: { value: 5, body: { collection: 'c' }, code: 43 },
  killCursors: { value: 'c', body: { cursors: [] } },
  update: { value: 'c', body: { updates: [{ q: {}, u: { a: 1 } }] } },
  findAndModify: { value: 'c', body: { remove: true } },
  delete: { value: 'c', body: { deletes: [{ q: { a: 5 }, limit: 0 }] } },
  mapReduce: { value: 'c', body: { map: 'function () { emit(1, 1); }', reduce: 'function () { return 1; }', out: { inline: 1 } } },
  count: { value: 'c' }, distinct: { value: 'c', body: { key: 'a' } },
  create: { value: 'made' }, drop: { value: 'gone' }, listIndexes: { value: 'c', code: 26 },
  createIndexes: { value: 'made', body: { indexes: [{ key: { a: 1 } }] } }, dropIndexes: { value: 'made', body: { index: '*' } },
  convertToCapped: { value: 'missing', body: { size: 1000 }, code: 26 },
  collMod: { value: 'made' }, renameCollection: { value: 'ledger.made', body: { to: 'ledger.named' } },
  collStats: { value: 'c' }, dataSize: { value: 'ledger.c' }, validate: { value: 'named' },
  createUser: { value: 'ann', body: { pwd: 'x', roles: [] } }, updateUser: { value: 'ann', body: { pwd: 'y' } },
  grantRolesToUser: { value: 'ann', body: { roles: ['read'] } }, revokeRolesFromUser: { value: 'ann', body: { roles: ['read'] } },
  dropUser: { value: 'nobody', code: 11 },
  createRole: { value: 'some', body: { privileges: [], roles: [] } }, updateRole: { value: 'some', body: { roles: [] } },
  dropRole: { value: 'some' },
  grantPrivilegesToRole: { value: 'some', body: { privileges: [] }, code: 31 }, revokePrivilegesFromRole: { value: 'some', body: { privileges: [] }, code: 31 },
  grantRolesToRole: { value: 'some', body: { roles: [] }, code: 31 }, revokeRolesFromRole: { value: 'some', body: { roles: [] }, code: 31 },
  authenticate: { body: { mechanism: 'MONGODB-X509' }, code: 17 }, killOp: { body: { op: 1 } },
  analyzeShardKey: { value: 'ledger.none', body: { key: { a: 1 } }, code: 26 }, configureQueryAnalyzer: { value: 'ledger.none', body: { mode: 'full' }, code: 26 },
  replSetGetStatus: { code: 76 }, setFeatureCompatibilityVersion: { value: '7.0' }, profile: { value: 0 },
  getParameter: { body: { featureCompatibilityVersion: 1 } }, getLog: { value: '*' },
  enableSharding: { value: 'ledger' }, shardCollection: { value: 'ledger.sharded', body: { key: { a: 'hashed' } } },
  reshardCollection: { value: 'ledger.sharded', body: { key: { b: 1 } } }, refineCollectionShardKey: { value: 'ledger.sharded', body: { key: { b: 1, c: 1 } } },
  abortReshardCollection: { value: 'ledger.sharded', code: 339 }, split: { value: 'ledger.sharded', body: { middle: { b: 1, c: 1 } } },
  mergeChunks: { value: 'ledger.sharded', body: { bounds: [{ b: new MinKey(), c: new MinKey() }, { b: new MaxKey(), c: new MaxKey() }] } },
  moveChunk: { value: 'ledger.sharded', body: { find: { b: 1, c: 1 }, to: 'local' } },
  moveRange: { value: 'ledger.sharded', body: { min: { b: 1, c: 1 }, toShard: 'local' } },
  getShardVersion: { value: 'ledger.sharded' }, balancerCollectionStatus: { value: 'ledger.sharded' },
  addShardToZone: { value: 'local', body: { zone: 'z' } }, removeShardFromZone: { value: 'local', body: { zone: 'z' } },
  updateZoneKeyRange: { value: 'ledger.sharded', body: { min: { b: new MinKey(), c: new MinKey() }, max: { b: new MaxKey(), c: new MaxKey() }, zone: null } },
  customAction: { value: 'GetDatabase' }, checkMetadataConsistency: { value: 'c' },
  configureFailPoint: { code: 59 },
  commitTransaction: { code: 251 }, abortTransaction: { code: 251 },
  logout: { last: true },
};

test('what the ledger lists works, and what it refuses is refused by name', async (t) => {
  assert.ok(commands.length > 40);
  const { client } = await mongo(t, ['--set', 'mongo.javascript=true'], { maxPoolSize: 1 });
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
