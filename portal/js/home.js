// What the account has: databases and containers, and making new ones.
import { button, field, fill, h, select, table } from './dom.js';
import { request, session } from './session.js';
import { attempt, form, notice, show } from './dialog.js';
import { address, go } from './route.js';
import { reload, tree } from './side.js';
import { number, plural } from './format.js';

const name = encodeURIComponent;

export async function createDatabase() {
  const id = h('input', { type: 'text', required: true, autocomplete: 'off' });
  const ru = h('input', { type: 'number', min: 400, step: 100, placeholder: 'none: each container has its own' });
  const made = await form('New database', [field('Name', id), field('RU/s shared by its containers', ru)], 'Create', async () => {
    await request('POST', '/dbs', { body: { id: id.value }, headers: ru.value ? { 'x-ms-offer-throughput': ru.value } : {} });
    return id.value;
  });
  if (!made) return;
  await reload();
  notice(`The database “${made}” is there.`);
  go();
  window.dispatchEvent(new Event('hashchange'));
}

export async function createContainer(preset) {
  const database = h('input', { type: 'text', list: 'databases', value: preset ?? tree.databases[0]?.id ?? '', required: true, autocomplete: 'off' });
  const names = h('datalist', { id: 'databases' }, tree.databases.map((one) => h('option', { value: one.id })));
  const id = h('input', { type: 'text', required: true, autocomplete: 'off' });
  const key = h('input', { type: 'text', value: '/id', spellcheck: 'false' });
  const api = select([['items', 'items: SQL, Gremlin, tables'], ['mongo', 'a collection of MongoDB']], { 'aria-label': 'What it holds' });
  api.addEventListener('change', () => { if (api.value === 'mongo' && key.value === '/id') key.value = ''; });
  const kind = select([['manual', 'fixed'], ['auto', 'autoscale up to'], ['none', 'none stated: nobody is held back']]);
  const ru = h('input', { type: 'number', min: 400, step: 100, value: 400, 'aria-label': 'RU/s' });
  kind.addEventListener('change', () => {
    ru.disabled = kind.value === 'none';
    if (kind.value === 'auto' && Number(ru.value) < 1000) ru.value = 1000;
  });
  const ttl = h('input', { type: 'number', min: -1, placeholder: 'items stay' });
  const made = await form('New container', [
    names,
    h('div', { class: 'row' }, field('Database', database, 'made if it is not there'), field('Container', id)),
    session.about.apis.mongo && field('What it holds', api, 'Items are known by their id, documents of a collection by their _id.'),
    field('Partition key', key, 'One path, or up to three with commas for a hierarchical key: /tenant, /user. “Keys” proposes better ones once there is traffic.'),
    h('div', { class: 'row' }, field('Throughput', kind), field('RU/s', ru)),
    field('Items expire after seconds', ttl),
  ], 'Create', async () => {
    const paths = key.value.split(',').map((path) => path.trim()).filter(Boolean);
    if (api.value === 'mongo') {
      if (paths.length > 1) throw Object.assign(new Error('a shard key of a collection is one path here; db.adminCommand({shardCollection: …}) knows others'), { title: 'The key does not fit' });
      if (ttl.value) throw Object.assign(new Error('documents of a collection expire by a TTL index: createIndex with expireAfterSeconds'), { title: 'Expiry is elsewhere' });
      const { json } = await request('POST', `/_orrery/mongo/${name(database.value)}`, { body: { customAction: 'CreateCollection', collection: id.value, ...(paths.length ? { shardKey: paths[0].replace(/^\//, '').replaceAll('/', '.') } : {}),
        ...(kind.value === 'manual' ? { offerThroughput: Number(ru.value) } : kind.value === 'auto' ? { autoScaleSettings: { maxThroughput: Number(ru.value) } } : {}) } });
      if (json.errmsg ?? json.errMsg) throw Object.assign(new Error(json.errmsg ?? json.errMsg), { title: `${json.codeName ?? 'Error'} (${json.code})` });
      return id.value;
    }
    if (!tree.databases.some((one) => one.id === database.value)) await request('POST', '/dbs', { body: { id: database.value } });
    await request('POST', `/dbs/${name(database.value)}/colls`, {
      headers: kind.value === 'manual' ? { 'x-ms-offer-throughput': ru.value } : kind.value === 'auto' ? { 'x-ms-cosmos-offer-autopilot-settings': JSON.stringify({ maxThroughput: Number(ru.value) }) } : {},
      body: {
        id: id.value,
        partitionKey: { paths, kind: paths.length > 1 ? 'MultiHash' : 'Hash', version: 2 },
        ...(ttl.value ? { defaultTtl: Number(ttl.value) } : {}),
      },
    });
    return id.value;
  });
  if (!made) return;
  await reload();
  notice(`The container “${made}” is there.`);
  go('data', database.value, made, api.value === 'mongo' ? 'mongo' : undefined);
}

async function dropDatabase(id) {
  const typed = h('input', { type: 'text', autocomplete: 'off' });
  const done = await form(`Drop the database “${id}”`, [h('p', null, 'The database, its containers and all their items are gone at once. There is no way back.'), field('Type its name to confirm', typed)], 'Drop it', async () => {
    if (typed.value !== id) throw new Error('That is not its name.');
    await request('DELETE', `/dbs/${name(id)}`);
  }, true);
  if (!done) return;
  await reload();
  window.dispatchEvent(new Event('hashchange'));
}

const throughput = (offer) => (!offer || (!offer.stated && !offer.shared) ? 'none stated'
  : offer.shared ? 'shared' : `${number(offer.ruPerSecond)} RU/s${offer.kind === 'autoscale' ? ' at most' : ''}`);

export async function view(main) {
  const place = h('div');
  const write = !session.readOnly && !session.token;
  fill(main,
    h('div', { class: 'head' }, h('h1', null, 'Databases'),
      write && h('div', { class: 'buttons' }, button('New database', createDatabase), button('New container', () => createContainer(), { class: 'main', id: 'new-container' }))),
    place);
  try {
    await reload();
  } catch (error) {
    fill(place, show(error));
    return;
  }
  if (!tree.databases.length) {
    fill(place, h('div', { class: 'panel empty' }, h('h2', null, 'Nothing here yet'),
      h('p', null, write ? 'Make a container, or let a program do it: docs/connect.md has the lines for each library.' : 'The account has no database yet.')));
    return;
  }
  // Long lists of containers are in the list at the side; here each database shows its first ones.
  const most = 50;
  fill(place, tree.databases.slice(0, 200).map((database) => h('section', { class: 'panel' },
    h('div', { class: 'head' }, h('h2', null, database.id), h('span', { class: 'dim' }, plural(database.containers.length, 'container')),
      write && h('div', { class: 'buttons' }, button('New container', () => createContainer(database.id), { class: 'quiet' }), button('Drop', () => attempt(null, () => dropDatabase(database.id)), { class: 'quiet' }))),
    database.containers.length > 0 && table(['Container', 'Physical partitions', 'Throughput'], database.containers.slice(0, most).map((one) => [
      h('a', { href: address('data', database.id, one.id) }, one.id), number(one.partitions), throughput(one.throughput),
    ]), { label: `Containers of ${database.id}` }),
    database.containers.length > most && h('p', { class: 'dim' }, `and ${number(database.containers.length - most)} more in the list at the side`))));
}

