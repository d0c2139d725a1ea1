// The commands that ask a server: orrery account and orrery stats.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, emulatorKey, orrery, scratch } from './server.js';
import { signed } from './rest.js';

const at = (server, ...words) => [...words, '--endpoint', server.url, '--dev'];

test('an account is created, shown, listed, given a new key and dropped', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const created = await orrery(at(server, 'account', 'create', 'tenant'));
  assert.equal(created.code, 0, created.err);
  const key = /^primary +(\S{88})$/m.exec(created.out)[1];
  assert.ok(created.out.includes(`AccountEndpoint=${server.url}/tenant/;AccountKey=${key};`));
  assert.equal((await signed(server, 'POST', '/dbs', { account: 'tenant', key, body: { id: 'd' } })).status, 201);
  const shown = await orrery(at(server, 'account', 'show', 'tenant'));
  assert.match(shown.out, /keys +of its own\ndatabases +1\n/);
  const list = await orrery(at(server, 'account', 'list'));
  assert.match(list.out, /^ACCOUNT +KEYS +DATABASES +CONTAINERS\ndefault +own +0 +0\ntenant +own +1 +0\n$/);
  const keys = await orrery(at(server, 'account', 'keys', 'tenant', '--json'));
  assert.equal(JSON.parse(keys.out).keys.primary, key);
  const rotated = await orrery(at(server, 'account', 'rotate', 'tenant', 'primary'));
  assert.equal(rotated.code, 0, rotated.err);
  assert.equal((await signed(server, 'GET', '/dbs', { account: 'tenant', key })).status, 401);
  const own = await orrery(at(server, 'account', 'keys'));
  assert.ok(own.out.includes(`AccountEndpoint=${server.url}/;AccountKey=`), own.err);
  const hesitant = await orrery(at(server, 'account', 'drop', 'tenant'));
  assert.equal(hesitant.code, 2);
  assert.match(hesitant.err, /1 database with 0 containers.*--yes/);
  const dropped = await orrery(at(server, 'account', 'drop', 'tenant', '--yes'));
  assert.equal(dropped.code, 0, dropped.err);
  const gone = await orrery(at(server, 'account', 'show', 'tenant'));
  assert.equal(gone.code, 1);
  assert.match(gone.err, /^orrery: the server says: .*tenant.*\(404\)\n$/);
});

test('the key comes from a file, the environment or beside the data', async (t) => {
  const directory = scratch(t);
  const server = await Server.start(t, ['--node', `local=rocksdb:${directory}`]);
  const list = ['account', 'list', '--endpoint', server.url];
  assert.equal((await orrery([...list, '--directory', directory])).code, 0);
  assert.equal((await orrery([...list, '--key-file', join(directory, 'keys')])).code, 0);
  const keys = JSON.parse((await orrery(['account', 'keys', 'default', '--endpoint', server.url, '--directory', directory, '--json'])).out).keys;
  assert.equal((await orrery(list, { env: { ORRERY_KEY: keys.secondary } })).code, 0);
  const bare = join(scratch(t), 'key');
  writeFileSync(bare, `${keys.primary}\n`);
  assert.equal((await orrery([...list, '--key-file', bare])).code, 0);
  const without = await orrery(list, { env: { XDG_DATA_HOME: scratch(t), XDG_STATE_HOME: scratch(t) } });
  assert.equal(without.code, 1);
  assert.match(without.err, /no key is known.*--key-file FILE.*ORRERY_KEY.*--directory/);
  const reader = { env: { ORRERY_KEY: keys['primary-readonly'] } };
  assert.equal((await orrery(list, reader)).code, 0); // it sees
  const readonly = await orrery(['account', 'create', 'new', '--endpoint', server.url], reader);
  assert.match(readonly.err, /needs a read-write key/);
  const wrong = await orrery(list, { env: { ORRERY_KEY: emulatorKey } });
  assert.match(wrong.err, /\(401\)/);
  const broken = await orrery(list, { env: { ORRERY_KEY: 'short' } });
  assert.match(broken.err, /ORRERY_KEY holds no account key/);
});

test('https is taken where the certificate is trusted', async (t) => {
  const directory = scratch(t);
  const server = await Server.start(t, ['--dev', '--node', `local=rocksdb:${directory}`]);
  const list = ['account', 'list', '--dev', '--endpoint', `https://localhost:${server.port}`];
  const known = await orrery([...list, '--directory', directory]);
  assert.equal(known.code, 0, known.err);
  const strange = await orrery([...list, '--directory', scratch(t)]);
  assert.equal(strange.code, 1);
  assert.match(strange.err, /certificate is not trusted.*--ca FILE/);
});

test('figures are shown of the account, a database, a container and its keys', async (t) => {
  const server = await Server.start(t, ['--dev']);
  await signed(server, 'POST', '/dbs', { body: { id: 'shop' } });
  await signed(server, 'POST', '/dbs', { body: { id: 'bare' } });
  await signed(server, 'POST', '/dbs/shop/colls', {
    headers: { 'x-ms-offer-throughput': '400' }, body: { id: 'my orders', partitionKey: { paths: ['/tenant'] } },
  });
  for (let i = 0; i < 3; i++)
    await signed(server, 'POST', '/dbs/shop/colls/my%20orders/docs', {
      headers: { 'x-ms-documentdb-partitionkey': '["x"]' }, body: { id: `${i}`, tenant: 'x' },
    });
  const account = await orrery(at(server, 'stats'));
  assert.match(account.out, /^DATABASE +CONTAINER +PARTITIONS +RU\/S +THROUGHPUT\nbare +- +- +- +-\nshop +my orders +1 +400 +manual\n$/);
  const database = await orrery(at(server, 'stats', 'shop'));
  assert.match(database.out, /\nmy orders +1 +3 +\d+ B +400 +\d+\.\d\d +3 +0\n$/);
  const container = await orrery(at(server, 'stats', 'shop', 'my orders'));
  assert.match(container.out, /\n\d+ +\w+ +local +3 +\d+ B +100\.0 +400 +\d+\.\d\d +3 +0\nthroughput: 400 RU\/s, manual\n$/);
  const keys = await orrery(at(server, 'stats', 'shop', 'my orders', '--keys', '--minutes', '60'));
  assert.match(keys.out, /\n\["x"\] +\d+ +\d+\.\d\d +100\.0 +3 +0\n$/);
  const json = await orrery(at(server, 'stats', 'shop', 'my orders', '--json'));
  assert.equal(JSON.parse(json.out).items, 3);
  const none = await orrery(at(server, 'stats', 'nothing'));
  assert.match(none.err, /there is no database "nothing": `orrery stats` lists them/);
});

test('a wrong call says what would be right', async (t) => {
  for (const [words, message] of [
    [['account'], /needs to be told what to do/], [['account', 'lst'], /did you mean "list"\?/],
    [['account', 'create'], /orrery account create NAME/], [['account', 'list', 'a', 'b', 'c'], /it is used as/],
    [['stats', '--keys'], /of one container/], [['stats', 'a', 'b', '--keys', '--minutes', '61'], /from 1 to 60/],
    [['stats', '--endpont', 'x'], /did you mean "--endpoint"\?/],
  ]) {
    const answer = await orrery(words);
    assert.equal(answer.code, 2, words.join(' '));
    assert.match(answer.err, message);
  }
  const nobody = await orrery(['account', 'list', '--dev', '--endpoint', 'http://127.0.0.1:1']);
  assert.equal(nobody.code, 1);
  assert.match(nobody.err, /no server answers at 127\.0\.0\.1 port 1 .*orrery serve/);
  for (const endpoint of ['ftp://x', 'http://', 'http://h:0', 'http://h:99999', 'http://[::1', 'h:1'])
    assert.match((await orrery(['account', 'list', '--dev', '--endpoint', endpoint])).err, /is no endpoint/, endpoint);
  for (const command of ['account', 'stats']) assert.match((await orrery([command, '--help'])).out, /^Usage: orrery /);
});
