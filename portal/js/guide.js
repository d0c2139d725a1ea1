// Stories of partition keys, run against a throw-away account: what the mistake does and what the cure does, and what comes of
// either. docs/guide tells the stories at length.
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
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// --- What stories do ---

// Everything happens in one account, which is thrown away. Its containers have 1600 RU/s, on eight physical partitions unless it
// is said otherwise.
class Stage {
  constructor(as, out) {
    Object.assign(this, { as, out });
  }

  // A line of what goes on.
  say(words) {
    const line = h('p', { class: 'small dim' }, words);
    this.out.append(line);
    return (more) => fill(line, more);
  }

  async container(id, paths, { orrery, ru = 1600, partitions = 8 } = {}) {
    const { as } = this;
    await as('POST', '/dbs/guide/colls', { headers: { 'x-ms-offer-throughput': String(ru) }, body: { id, partitionKey: { paths, kind: paths.length > 1 ? 'MultiHash' : 'Hash', version: 2 }, ...(orrery ? { orrery } : {}) } });
    const shape = async () => (await as('GET', `/_orrery/containers/guide/${id}/partitions`)).json;
    let now = await shape();
    if (now.partitions.length < partitions) await as('POST', `/_orrery/containers/guide/${id}/partitions/${now.partitions[0].id}/split`, { body: { pieces: partitions } });
    for (let n = 0; n < 600 && (now.partitions.length < partitions || now.migration); n++) {
      await pause(100);
      now = await shape();
    }
    return { id, paths, orrery };
  }

  key(container, document) {
    return container.orrery ? undefined : JSON.stringify(container.paths.map((path) => document[path.slice(1)]));
  }

  write(container, document) {
    const key = this.key(container, document);
    return this.as('POST', `/dbs/guide/colls/${container.id}/docs`, { body: document, headers: key ? { 'x-ms-documentdb-partitionkey': key } : {} });
  }

  // Until it is taken, however often it is refused.
  async patiently(f) {
    for (;;) {
      try {
        return await f();
      } catch (error) {
        if (error.status !== 429) throw error;
        await pause(Math.max(20, error.retryAfterMs));
      }
    }
  }

  async fill(container, documents) {
    const rest = [...documents];
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let next = rest.shift(); next; next = rest.shift()) await this.patiently(() => this.write(container, next));
    }));
  }

  // What an answer costs; every physical partition is asked where the key is not named.
  async query(container, words, key) {
    let charge = 0;
    let continuation = null;
    const rows = [];
    do {
      const answer = await this.patiently(() => this.as('POST', `/dbs/guide/colls/${container.id}/docs`, { body: { query: words, parameters: [] }, headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true',
        ...(key ? { 'x-ms-documentdb-partitionkey': JSON.stringify(key) } : { 'x-ms-documentdb-query-enablecrosspartition': 'true' }), ...(continuation ? { 'x-ms-continuation': continuation } : {}) } }));
      charge += answer.charge;
      rows.push(...answer.json.Documents);
      continuation = answer.continuation;
    } while (continuation);
    return { charge, rows };
  }

  // All of it in so many milliseconds, whatever becomes of those before them; and how much of it is refused.
  async rush(name, list, send, ms = rushMs) {
    const result = { done: 0, refused: 0, failed: 0, of: list.length };
    const place = h('div');
    const begun = performance.now();
    const draw = () => fill(place, h('h3', null, name), bar('refused (429)', result.refused / result.of, true), h('p', { class: 'small dim' }, `${number(result.done)} done, ${number(result.refused)} refused${result.failed ? `, ${number(result.failed)} failed` : ''} of ${number(result.of)}`));
    this.out.append(place);
    await Promise.all(list.map(async (one, i) => {
      await pause(Math.max(0, (i * ms) / list.length - (performance.now() - begun)));
      try {
        await send(one);
        result.done++;
      } catch (error) {
        if (error.status === 429) result.refused++;
        else result.failed++;
      }
      draw();
    }));
    draw();
    return result.refused / result.of;
  }

  // Two figures side by side.
  beside(what, before, after) {
    this.out.append(h('div', { class: 'cards' }, h('div', { class: 'card bad' }, h('small', null, `${what}, before`), h('b', null, before)), h('div', { class: 'card good' }, h('small', null, `${what}, after`), h('b', null, after))));
  }
}

const many = (count, make) => {
  const roll = dice(7);
  return Array.from({ length: count }, (_, i) => make(roll, i));
};

// The same load on the mistaken key and on the better one.
const keyStory = ({ before, after, orrery, make, ...rest }) => ({ ...rest, async tell(stage) {
  stage.say('Making two containers of eight physical partitions, 200 RU/s each.');
  const wrong = await stage.container('before', before);
  const right = await stage.container('after', after, { orrery });
  const load = many(requests, (roll, i) => make(roll, `d${i}`));
  const first = await stage.rush(`The mistake: ${before.join(', ')}`, load, (one) => stage.write(wrong, one));
  const second = await stage.rush(`The cure: ${rest.cure}`, load, (one) => stage.write(right, one));
  return `Refused before: ${percent(first)}. After: ${percent(second)}.`;
} });

const stories = [
  keyStory({ id: 'user-profiles', title: 'User profiles', mistake: 'a property with few values', cure: 'the user', before: ['/country'], after: ['/user'],
    make: (roll, id) => ({ id, country: ['no', 'it', 'pe'][Math.min(2, roll(6))], user: `user-${roll(500)}`, text }) }),
  { id: 'iot-devices', title: 'IoT devices', mistake: 'a key that fills up', cure: 'a hierarchical key: device, day', async tell(stage) {
    stage.say('20 devices send readings over six days. All readings of a device are one logical partition, for all time, and one holds 20 GB at most.');
    const room = { ru: 4000, partitions: 2 };
    const byDevice = await stage.container('readings', ['/device'], room);
    const byDay = await stage.container('readings2', ['/device', '/day'], room);
    const readings = many(360, (roll, i) => ({ id: `r${i}`, device: `device-${roll(20)}`, day: `2026-11-${10 + Math.floor(i / 60)}`, value: 'x'.repeat(900) }));
    await Promise.all([stage.fill(byDevice, readings), stage.fill(byDay, readings)]);
    const largest = async (container, names) => Math.max(...(await stage.query(container, `SELECT COUNT(1) AS n FROM c GROUP BY ${names}`)).rows.map((row) => row.n));
    const before = await largest(byDevice, 'c.device');
    const after = await largest(byDay, 'c.device, c.day');
    const one = (await stage.query(byDay, "SELECT * FROM c WHERE c.device = 'device-7'", ['device-7'])).rows.length;
    stage.beside('readings in the largest logical partition', number(before), number(after));
    stage.say(`At 1 KB a second a device is full after eight months (403, and waiting does not help); a device’s day never is: it holds 86 MB. A question for a device alone still works: device-7 has ${one} readings.`);
    return `Largest logical partition before: ${before} readings, and it grows. After: ${after}, and a day ends.`;
  } },
  keyStory({ id: 'logs-by-date', title: 'Logs with the date as key', mistake: 'everybody writes to today', cure: 'the date and a computed number', before: ['/date'],
    after: ['/partitionKey'], orrery: { synthetic: { kind: 'computedSuffix', target: '/partitionKey', base: '/date', hashed: '/host', suffixes: 400 } },
    make: (roll, id) => ({ id, date: '2026-11-16', host: `web-${roll(400)}`, text }) }),
  keyStory({ id: 'logs-by-host', title: 'Logs with the host as key', mistake: 'one host is loud', cure: 'the host and a computed number', before: ['/host'],
    after: ['/partitionKey'], orrery: { synthetic: { kind: 'computedSuffix', target: '/partitionKey', base: '/host', hashed: '/line', suffixes: 100 } },
    make: (roll, id) => ({ id, host: roll(10) < 7 ? 'web-1' : `web-${roll(100)}`, line: roll(1_000_000), text }) }),
  { id: 'logs-by-month', title: 'Logs in a container for each month', mistake: 'deleting costs as much as writing', cure: 'drop the month', async tell(stage) {
    stage.say('160 lines of October are there. While November is written, October has to go.');
    const lines = (month, count) => many(count, (roll, i) => ({ id: `${month}-${i}`, month, host: `web-${roll(200)}`, text }));
    const room = { ru: 800, partitions: 4 };
    const together = await stage.container('logs', ['/host'], room);
    const october = await stage.container('logs-2026-10', ['/host'], { ru: 400, partitions: 1 });
    const november = await stage.container('logs-2026-11', ['/host'], room);
    const old = lines('2026-10', 160);
    await Promise.all([stage.fill(together, old), stage.fill(october, old)]);
    let spent = 0;
    const deleting = Promise.all(old.map((one) => stage.patiently(async () => {
      spent += (await stage.as('DELETE', `/dbs/guide/colls/logs/docs/${one.id}`, { headers: { 'x-ms-documentdb-partitionkey': JSON.stringify([one.host]) } })).charge;
    })));
    const before = await stage.rush('The mistake: November is written while October is deleted', lines('2026-11', 240), (one) => stage.write(together, one));
    await deleting;
    const dropped = await stage.as('DELETE', '/dbs/guide/colls/logs-2026-10');
    const after = await stage.rush('The cure: the container of October is dropped', lines('2026-11', 240), (one) => stage.write(november, one));
    stage.beside('to be rid of October', `${number(spent)} RU`, `${number(dropped.charge)} RU`);
    return `Refused before: ${percent(before)}. After: ${percent(after)}.`;
  } },
  keyStory({ id: 'tenants-by-key', title: 'Tenants with a key each', mistake: 'one tenant takes from its neighbours', cure: 'a hierarchical key: tenant, user', before: ['/tenant'], after: ['/tenant', '/user'],
    make: (roll, id) => ({ id, tenant: roll(10) < 6 ? 'acme' : `tenant-${roll(40)}`, user: `user-${roll(300)}`, text }) }),
  { id: 'tenants-by-container', title: 'Tenants with a container each', mistake: 'idle throughput, and no room for all', cure: 'one container', async tell(stage) {
    const tenants = Array.from({ length: 20 }, (_, i) => `tenant-${i + 1}`);
    const told = stage.say('20 tenants get a container each, of the least throughput there is: 400 RU/s.');
    const own = new Map();
    for (const tenant of tenants) {
      own.set(tenant, await stage.container(tenant, ['/tenant'], { ru: 400, partitions: 1 }));
      told(`${own.size} of 20 tenants have a container of 400 RU/s. An account has at most 500 databases and containers.`);
    }
    const work = many(160, (roll, i) => ({ id: `n${i}`, tenant: tenants[roll(tenants.length)], text }));
    let used = 0;
    const before = await stage.rush('The mistake: a container each', work, async (one) => { used += (await stage.write(own.get(one.tenant), one)).charge; });
    const shared = await stage.container('notes', ['/tenant'], { ru: 800, partitions: 4 });
    const after = await stage.rush('The cure: one container, the tenant as key', work, (one) => stage.write(shared, one));
    stage.beside('RU/s that are paid for', number(20 * 400), number(800));
    stage.say(`The twenty used ${number(used / (rushMs / 1000))} RU/s: ${percent(used / (rushMs / 1000) / 8000)} of what they have. Refused before: ${percent(before)}, after: ${percent(after)}.`);
    return 'RU/s before: 8,000. After: 800.';
  } },
  { id: 'tenants-tiered', title: 'Tenants in tiers', mistake: 'one tenant has outgrown a partition', cure: 'its own container', async tell(stage) {
    const shared = await stage.container('notes', ['/tenant']);
    const work = (name) => many(400, (roll, i) => ({ id: `${name}${i}`, tenant: roll(10) < 6 ? 'acme' : `tenant-${roll(30)}`, user: `u${roll(5000)}`, text }));
    stage.say('Thirty small tenants share a container of eight physical partitions, 200 RU/s each. Acme was one of them, and has grown.');
    const before = await stage.rush('The mistake: to wait', work('a'), (one) => stage.write(shared, one));
    const told = stage.say('Acme is promoted: it gets a container of its own while it works. Nobody copies anything.');
    const promote = '/_orrery/containers/guide/notes/promote';
    const key = { partitionKey: ['acme'] };
    await stage.as('POST', promote, { body: { ...key, to: 'notes-acme', throughput: 1600 } });
    const state = async () => (await stage.as('GET', promote)).json.promotions.find((one) => one.partitionKey[0] === 'acme')?.state;
    let now = await state();
    for (let n = 0; n < 600 && now !== 'promoted'; n++) {
      await pause(100);
      now = await state();
    }
    if (now !== 'promoted') throw new Error(`The promotion is still ${now}.`);
    await stage.as('POST', `${promote}/end`, { body: key });
    told('Acme has its own container, with 1600 RU/s. The application keeps a list of who lives where.');
    const acme = { id: 'notes-acme', paths: shared.paths };
    const after = await stage.rush('The cure: a container for Acme', work('b'), (one) => stage.write(one.tenant === 'acme' ? acme : shared, one));
    return `Refused before: ${percent(before)}. After: ${percent(after)}.`;
  } },
  { id: 'read-heavy', title: 'Read-heavy', mistake: 'questions that do not name the key', cure: 'the key that they name', async tell(stage) {
    stage.say('A shop shows categories. The article number as key is perfectly even, but each page asks every physical partition.');
    const products = many(160, (roll, i) => ({ id: `p${i}`, sku: `sku-${i}`, category: `c${roll(80)}`, text }));
    const bySku = await stage.container('products', ['/sku'], { ru: 400 });
    const byCategory = await stage.container('products2', ['/category'], { ru: 400 });
    await Promise.all([stage.fill(bySku, products), stage.fill(byCategory, products)]);
    await pause(1000); // what filling has spent is over
    const visits = many(180, (roll) => `c${roll(80)}`);
    const costs = [0, 0];
    const page = (at, container, key) => async (category) => {
      const headers = { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true', ...(key ? { 'x-ms-documentdb-partitionkey': JSON.stringify([category]) } : { 'x-ms-documentdb-query-enablecrosspartition': 'true' }) };
      costs[at] += (await stage.as('POST', `/dbs/guide/colls/${container.id}/docs`, { body: { query: 'SELECT * FROM c WHERE c.category = @c', parameters: [{ name: '@c', value: category }] }, headers })).charge;
    };
    const each = async (at, name, container, key) => {
      const refused = await stage.rush(name, visits, page(at, container, key));
      return [refused, costs[at] / Math.max(1, visits.length * (1 - refused))];
    };
    const [before, dear] = await each(0, 'The mistake: /sku', bySku, false);
    const [after, cheap] = await each(1, 'The cure: /category', byCategory, true);
    stage.beside('a page costs', `${number(dear)} RU`, `${number(cheap)} RU`);
    return `Refused before: ${percent(before)}. After: ${percent(after)}.`;
  } },
  keyStory({ id: 'write-heavy', title: 'Write-heavy', mistake: 'one value takes all writes', cure: 'the value and the thing it counts', before: ['/counter'],
    after: ['/partitionKey'], orrery: { synthetic: { kind: 'concatenation', target: '/partitionKey', sources: ['/counter', '/vote'] } },
    make: (roll, id) => ({ id, counter: 'votes', vote: roll(1000), text }) }),
  { id: 'id-as-key', title: 'The id as key', mistake: 'what belongs together is apart', cure: 'a key for what belongs together', async tell(stage) {
    stage.say('20 orders with four lines each: written together or not at all, and shown as a whole.');
    const orders = Array.from({ length: 20 }, (_, n) => [{ id: `o${n}`, order: `o${n}`, kind: 'order', text }, ...Array.from({ length: 4 }, (_, i) => ({ id: `o${n}-${i}`, order: `o${n}`, kind: 'line', text }))]);
    const byId = await stage.container('orders', ['/id']);
    const byOrder = await stage.container('orders2', ['/order']);
    const placed = async (container, keyOf) => {
      let good = 0;
      for (const order of orders) {
        const answer = await stage.patiently(() => stage.as('POST', `/dbs/guide/colls/${container.id}/docs`, { body: order.map((resourceBody) => ({ operationType: 'Create', resourceBody })), headers: { 'x-ms-cosmos-is-batch-request': 'true', 'x-ms-cosmos-batch-atomic': 'true', 'x-ms-documentdb-partitionkey': JSON.stringify([keyOf(order[0])]) } })).catch((error) => { if (error.status !== 400) throw error; });
        if (answer?.status === 200 && answer.json.every((one) => one.statusCode === 201)) good++;
      }
      return good;
    };
    const before = await placed(byId, (head) => head.id);
    await stage.fill(byId, orders.flat());
    const after = await placed(byOrder, (head) => head.order);
    const shown = async (container, named) => {
      let charge = 0;
      for (const [head] of orders) charge += (await stage.query(container, `SELECT * FROM c WHERE c["order"] = "${head.order}"`, named ? [head.order] : undefined)).charge;
      return charge / orders.length;
    };
    const dear = await shown(byId, false);
    const cheap = await shown(byOrder, true);
    stage.beside('orders written as a transaction', `${before} of 20`, `${after} of 20`);
    stage.beside('an order with its lines costs', `${number(dear)} RU`, `${number(cheap)} RU`);
    return `Transactions before: ${before} of 20. After: ${after} of 20.`;
  } },
  keyStory({ id: 'one-key', title: 'All items under one key', mistake: 'it cannot grow', cure: 'a key with many values', before: ['/all'], after: ['/customer'],
    make: (roll, id) => ({ id, all: 'all', customer: `c${roll(500)}`, text }) }),
];

export async function view(main) {
  const out = h('div');
  const problem = h('div');
  const buttons = stories.map((one) => button('Run', () => tell(one), { 'aria-label': `Run: ${one.title}`, data: { story: one.id } }));
  fill(main, h('section', { class: 'panel' }, h('h2', null, 'Stories, run here'),
    h('p', null, 'The twelve stories of the guide. Each makes an account that is thrown away at the end, does what the mistake does and what the cure does, and shows what came of either. Nothing of yours is touched.'),
    h('div', { class: 'cards stories' }, stories.map((one, at) => h('div', { class: 'card' }, h('b', null, one.title), h('small', null, `${one.mistake} → ${one.cure}`), buttons[at])))), problem, out);

  async function tell(story) {
    const account = `guide-${crypto.randomUUID().slice(0, 8)}`;
    for (const one of buttons) one.disabled = true;
    await attempt(problem, async () => {
      const { json } = await admin('POST', 'accounts', { body: { id: account } });
      try {
        const as = await signed(account, json.keys.primary);
        const panel = h('section', { class: 'panel', 'aria-label': story.title }, h('h2', null, story.title));
        fill(out, panel);
        panel.scrollIntoView({ block: 'start' });
        await as('POST', '/dbs', { body: { id: 'guide' } });
        panel.append(h('p', { id: 'story-end', role: 'status' }, await story.tell(new Stage(as, panel))));
      } finally {
        await admin('DELETE', `accounts/${account}`);
      }
    });
    for (const one of buttons) one.disabled = false;
  }
}
