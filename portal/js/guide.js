// Stories of partition keys, run against a throw-away account: the same load on the mistaken key and on the better one, and how
// much of it is refused. The container has 1600 RU/s on eight physical partitions; docs/guide tells the stories at length.
import { button, fill, h } from './dom.js';
import { admin, signed } from './session.js';
import { attempt } from './dialog.js';
import { percent, number } from './format.js';
import { bar } from './advice.js';

// Numbers that are the same in every run.
function dice(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * limit);
  };
}

const requests = 600;
const rushMs = 4000;
const text = 'x'.repeat(200);
const stories = [
  { id: 'user-profiles', title: 'User profiles', mistake: 'a property with few values', cure: 'the user', before: ['/country'], after: ['/user'],
    make: (roll, id) => ({ id, country: ['no', 'it', 'pe'][Math.min(2, roll(6))], user: `user-${roll(500)}`, text }) },
  { id: 'logs-by-date', title: 'Logs with the date as key', mistake: 'everybody writes to today', cure: 'the date and a computed number', before: ['/date'],
    after: ['/partitionKey'], orrery: { synthetic: { kind: 'computedSuffix', target: '/partitionKey', base: '/date', hashed: '/host', suffixes: 400 } },
    make: (roll, id) => ({ id, date: '2026-11-16', host: `web-${roll(400)}`, text }) },
  { id: 'logs-by-host', title: 'Logs with the host as key', mistake: 'one host is loud', cure: 'the host and a computed number', before: ['/host'],
    after: ['/partitionKey'], orrery: { synthetic: { kind: 'computedSuffix', target: '/partitionKey', base: '/host', hashed: '/line', suffixes: 100 } },
    make: (roll, id) => ({ id, host: roll(10) < 7 ? 'web-1' : `web-${roll(100)}`, line: roll(1_000_000), text }) },
  { id: 'write-heavy', title: 'Write-heavy', mistake: 'one value takes all writes', cure: 'the value and the thing it counts', before: ['/counter'],
    after: ['/partitionKey'], orrery: { synthetic: { kind: 'concatenation', target: '/partitionKey', sources: ['/counter', '/vote'] } },
    make: (roll, id) => ({ id, counter: 'votes', vote: roll(1000), text }) },
  { id: 'tenants-by-key', title: 'Tenants with a key each', mistake: 'one tenant takes from its neighbours', cure: 'a hierarchical key: tenant, user', before: ['/tenant'], after: ['/tenant', '/user'],
    make: (roll, id) => ({ id, tenant: roll(10) < 6 ? 'acme' : `tenant-${roll(40)}`, user: `user-${roll(300)}`, text }) },
  { id: 'one-key', title: 'All items under one key', mistake: 'it cannot grow', cure: 'a key with many values', before: ['/all'], after: ['/customer'],
    make: (roll, id) => ({ id, all: 'all', customer: `c${roll(500)}`, text }) },
];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A container of 1600 RU/s on eight partitions.
async function container(as, id, paths, orrery) {
  await as('POST', '/dbs/guide/colls', { headers: { 'x-ms-offer-throughput': '1600' }, body: { id, partitionKey: { paths, kind: paths.length > 1 ? 'MultiHash' : 'Hash', version: 2 }, ...(orrery ? { orrery } : {}) } });
  const shape = async () => (await as('GET', `/_orrery/containers/guide/${id}/partitions`)).json;
  let now = await shape();
  if (now.partitions.length < 8) await as('POST', `/_orrery/containers/guide/${id}/partitions/${now.partitions[0].id}/split`, { body: { pieces: 8 } });
  for (let n = 0; n < 200 && (now.partitions.length < 8 || now.migration); n++) {
    await pause(100);
    now = await shape();
  }
  return now.partitions.length;
}

// As many requests in four seconds, whatever becomes of those before them.
async function rush(as, id, paths, orrery, make, tell) {
  const roll = dice(7);
  const load = Array.from({ length: requests }, (_, i) => make(roll, `d${i}`));
  const result = { done: 0, refused: 0, failed: 0 };
  const begun = performance.now();
  await Promise.all(load.map(async (document, i) => {
    await pause(Math.max(0, (i * rushMs) / load.length - (performance.now() - begun)));
    const key = orrery ? undefined : JSON.stringify(paths.map((path) => document[path.slice(1)]));
    try {
      await as('POST', `/dbs/guide/colls/${id}/docs`, { body: document, headers: key ? { 'x-ms-documentdb-partitionkey': key } : {} });
      result.done++;
    } catch (error) {
      if (error.status === 429) result.refused++;
      else result.failed++;
    }
    tell(result);
  }));
  return result;
}

export async function view(main) {
  const out = h('div');
  const problem = h('div');
  fill(main, h('section', { class: 'panel' }, h('h2', null, 'Stories, run here'),
    h('p', null, 'Each makes an account that is thrown away at the end, sends the same 600 requests in four seconds to a container with the mistaken key and to one with the better key, and counts what is refused. Nothing of yours is touched.'),
    h('div', { class: 'cards' }, stories.map((one) => h('div', { class: 'card' }, h('b', null, one.title), h('small', null, one.mistake), button('Run', () => tell(one), { data: { story: one.id } }))))), problem, out);

  async function tell(story) {
    const account = `guide-${crypto.randomUUID().slice(0, 8)}`;
    await attempt(problem, async () => {
      const { json } = await admin('POST', 'accounts', { body: { id: account } });
      try {
        const as = await signed(account, json.keys.primary);
        const lines = [h('p', null, 'Making two containers of eight physical partitions…')];
        fill(out, h('section', { class: 'panel' }, h('h2', null, story.title), lines));
        await as('POST', '/dbs', { body: { id: 'guide' } });
        const made = Math.min(await container(as, 'before', story.before), await container(as, 'after', story.after, story.orrery));
        const shown = [h('div'), h('div')];
        fill(out, h('section', { class: 'panel' }, h('h2', null, story.title), h('p', { class: 'dim' }, `${made} partitions of ${Math.round(1600 / made)} RU/s each`), shown));
        const draw = (at, name) => (result) => fill(shown[at], h('h3', null, name), bar('refused (429)', result.refused / requests, true), h('p', { class: 'small dim' }, `${number(result.done)} done, ${number(result.refused)} refused${result.failed ? `, ${number(result.failed)} failed` : ''} of ${number(requests)}`));
        const before = await rush(as, 'before', story.before, undefined, story.make, draw(0, `The mistake: ${story.before.join(', ')}`));
        const after = await rush(as, 'after', story.after, story.orrery, story.make, draw(1, `The cure: ${story.cure}`));
        out.firstChild.append(h('p', { id: 'story-end' }, `Refused before: ${percent(before.refused / requests)}. After: ${percent(after.refused / requests)}.`));
      } finally {
        await admin('DELETE', `accounts/${account}`);
      }
    });
  }
}

