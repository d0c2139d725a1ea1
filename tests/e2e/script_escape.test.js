// Hostile scripts through the front: each costs its own request and nothing else.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { shop } from './items.js';
import { Server, emulatorKey } from './server.js';
import { failure, procedure } from './scripts.js';

/* global getContext */

const hostile = {
  loop: () => { for (;;); },
  memory: () => { const all = []; for (;;) all.push(new Array(100000).fill(1)); },
  strings: () => { let text = 'x'; for (;;) text += text; },
  recursion: () => { const deeper = () => deeper() + 1; deeper(); },
  promises: () => { const again = () => Promise.resolve().then(again); again(); },
  log: () => { for (;;) console.log('x'.repeat(1000)); },
  output: () => { getContext().getResponse().setBody('x'.repeat(50000000)); },
  regex: () => /^(a+)+$/.test('a'.repeat(50) + 'b'),
  reads: () => {
    const c = getContext().getCollection();
    const again = () => c.readDocument(`${c.getAltLink()}/docs/here`, again);
    again();
  },
  throwing: () => { throw { toString() { throw new Error('gotcha'); } }; },
};

const forbidden = {
  require: () => require('fs'),
  import: () => import('fs').then((fs) => getContext().getResponse().setBody(fs.readFileSync('/etc/passwd'))),
  process: () => process.exit(0),
  fetch: () => fetch('http://127.0.0.1/'),
  socket: () => new XMLHttpRequest(),
  worker: () => new Worker('data:,'),
  timer: () => setTimeout(() => {}, 0),
  load: () => load('/etc/passwd'),
  shell: () => Function('return this')().system('true'),
};

async function ready(t) {
  const made = await shop(t, {}, { args: ['--set', 'script.time_ms=400ms', '--set', 'script.memory_bytes_max=64M'] });
  await made.container.items.create({ id: 'here', tenant: 'x', n: 1 });
  return made;
}

test('what eats time, memory, stack or output is stopped, and the next request finds all well', async (t) => {
  const { container, server } = await ready(t);
  const fine = await procedure(container, 'fine', () => getContext().getResponse().setBody('fine'));
  for (const [name, body] of Object.entries(hostile)) {
    const run = await procedure(container, name, body);
    const outcome = await run('x').catch((error) => error);
    if (outcome.statusCode !== 200) assert.ok([400, 408, 413].includes(outcome.code), `${name}: ${outcome.code} ${outcome.message}`);
    assert.equal((await fine('x')).resource, 'fine', name);
    assert.equal((await container.item('here', 'x').read()).resource.n, 1);
  }
  const metrics = await (await server.get('/metrics')).text();
  assert.ok(Number(/^orrery_script_timeouts_total (\d+)$/m.exec(metrics)[1]) > 0);
});

test('there is nothing to reach outside', async (t) => {
  const { container } = await ready(t);
  for (const [name, body] of Object.entries(forbidden)) {
    const run = await procedure(container, name, body);
    const outcome = await run('x').catch((error) => error);
    if (outcome.statusCode === 200) assert.equal(outcome.resource, '', name); // it failed unseen, in a promise
    else assert.equal(outcome.code, 400, `${name}: ${outcome.code}`);
  }
});

test('others are served while hostile scripts run', async (t) => {
  const { container } = await ready(t);
  const loop = await procedure(container, 'loop', hostile.loop);
  const loops = Array.from({ length: 30 }, () => loop('x').catch((error) => error));
  for (let i = 0; i < 50; i++) {
    assert.equal((await container.item('here', 'x').read()).statusCode, 200);
    assert.equal((await container.items.upsert({ id: `i${i}`, tenant: 'y' })).statusCode, 201);
    assert.equal((await container.items.query('SELECT * FROM c WHERE c.n = 1').fetchAll()).resources.length, 1);
  }
  for (const outcome of await Promise.all(loops)) assert.ok([408, 429].includes(outcome.code), `${outcome.code}`);
});

test('what one database leaves behind is not there for another', async (t) => {
  const { client, container } = await ready(t);
  const poison = await procedure(container, 'poison', () => {
    globalThis.secret = 'mine';
    Array.prototype.map = () => ['poisoned'];
    Object.prototype.everywhere = true;
  });
  await poison('x').catch(() => {});
  const { database } = await client.databases.create({ id: 'other' });
  const { container: second } = await database.containers.create({ id: 'orders', partitionKey: '/tenant' });
  const look = await procedure(second, 'look', () => {
    getContext().getResponse().setBody([typeof globalThis.secret, [1, 2].map((n) => n * 2), typeof {}.everywhere]);
  });
  for (let i = 0; i < 4; i++) assert.deepEqual((await look('x')).resource, ['undefined', [2, 4], 'undefined']);
});

test('a function of the user that is hostile ends its query alone', async (t) => {
  const { container } = await ready(t);
  for (const [name, body] of [['loop', hostile.loop], ['memory', hostile.memory]]) {
    await container.scripts.userDefinedFunctions.create({ id: name, body: body.toString() });
    const error = await failure(container.items.query(`SELECT VALUE udf.${name}() FROM c`).fetchAll());
    assert.ok([400, 408].includes(error.code), `${name}: ${error.code}`);
    assert.equal((await container.items.query('SELECT * FROM c').fetchAll()).resources.length, 1);
  }
});

// A container in an account of its own, made by its first use.
async function tenant(t, server, name) {
  const client = new CosmosClient({ endpoint: `${server.url}/${name}/`, key: emulatorKey, connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
  t.after(() => client.dispose());
  const { database } = await client.databases.create({ id: 'db' });
  const { container } = await database.containers.create({ id: 'c', partitionKey: '/tenant' });
  await container.items.create({ id: '1', tenant: 'x' });
  return container;
}

test('no account holds all processes: procedures of another are served', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true', '--set', 'script.wait_ms=20s', '--set', 'script.time_ms=1s']);
  const [greedy, modest] = [await tenant(t, server, 'greedy'), await tenant(t, server, 'modest')];
  const loop = await procedure(greedy, 'loop', hostile.loop);
  const greet = await procedure(modest, 'greet', () => getContext().getResponse().setBody('hello'));
  let going = true;
  const flood = Array.from({ length: 40 }, async () => {
    while (going) await loop('x').catch((error) => assert.ok([408, 429].includes(error.code), `${error.code}`));
  });
  for (let i = 0; i < 33; i++) assert.equal((await greet('x')).resource, 'hello');
  going = false;
  await Promise.all(flood);
});

test('waiting for a process in vain is charged', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'account.by_use=true', '--set', 'script.workers_max=1', '--set', 'script.wait_ms=20ms', '--set', 'script.time_ms=20s']);
  const container = await tenant(t, server, 'waiter');
  const hold = await procedure(container, 'hold', hostile.loop);
  const greet = await procedure(container, 'greet', () => getContext().getResponse().setBody('hello'));
  await container.scripts.userDefinedFunctions.create({ id: 'one', body: 'function () { return 1; }' });
  const held = hold('x').catch((error) => error);
  const refused = async (run) => {
    for (;;) {
      const outcome = await run().catch((error) => error);
      if (outcome.code !== undefined) return outcome; // the loop may not have begun
    }
  };
  for (const run of [() => greet('x'), () => container.items.query('SELECT VALUE udf.one() FROM c', { partitionKey: 'x' }).fetchAll()]) {
    const { code, substatus, headers } = await refused(run);
    assert.deepEqual([code, substatus], [429, 3084]);
    assert.ok(Number(headers['x-ms-request-charge']) >= 1, headers['x-ms-request-charge']);
  }
  await server.stop('SIGKILL');
  await held;
});
