// call('reference') of Gremlin: items of reference containers by key, from the copy that the server has.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { CosmosClient } from '@azure/cosmos';
import { attribute, authenticator, client, drivers, failure, graph, source, v3 } from './gremlin.js';
import { emulatorKey } from './server.js';

const as = () => ({ path: '/', mimeType: v3, authenticator: authenticator('3.7') });
const plain = (value) => (value instanceof Map ? Object.fromEntries([...value].map(([k, v]) => [k, plain(v)])) : value);

// People of countries, with countries by id, cities by country, and streets by country and city beside them.
async function world(t) {
  const server = await graph(t);
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  const database = cosmos.database('graphs');
  const make = async (id, partitionKey, items) => {
    const { container } = await database.containers.create({ id, partitionKey, orrery: { reference: true } });
    for (const item of items) await container.items.create(item);
    return container;
  };
  const countries = await make('countries', '/id', [{ id: 'NO', name: 'Norway' }, { id: 'IT', name: 'Italy', tags: ['a', { b: 1 }] }]);
  await make('cities', '/country', [{ id: 'oslo', country: 'NO' }, { id: 'bergen', country: 'NO' }, { id: 'rome', country: 'IT' }]);
  await make('streets', { paths: ['/country', '/city'], kind: 'MultiHash', version: 2 }, [{ id: 's', country: 'NO', city: 'oslo' }, { id: 't', country: 'NO', city: 'bergen' }]);
  const g = await client(t, server, '3.7', as());
  for (const [id, country] of [['ann', 'NO'], ['bob', 'IT'], ['cid', 'XX'], ['dan', null]])
    await g.submit(`g.addV('person').property('id', '${id}').property('pk', 'p')${country ? `.property('country', '${country}')` : ''}`);
  return { server, g, countries, database };
}

test('items are found by key, as maps', async (t) => {
  const { g, countries } = await world(t);
  const ask = async (script) => (await g.submit(script)).toArray().map(plain);
  const [norway] = await ask("g.call('reference', [container: 'countries', key: 'NO'])");
  assert.equal(norway.name, 'Norway');
  assert.equal(norway.id, 'NO');
  assert.deepEqual(await ask("g.call('reference', [container: 'countries', id: 'IT']).select('tags').unfold().limit(1)"), ['a']);
  assert.deepEqual(await ask("g.call('reference', [container: 'countries', key: 'XX'])"), []);
  // for each traverser, by what it has; who has none, or one that is not there, gives nothing
  assert.deepEqual(await ask("g.V().hasLabel('person').order().by(T.id).as('p').call('reference', [container: 'countries']).with('key', __.values('country')).as('c').select('p', 'c').by(T.id).by(select('name'))"),
    [{ p: 'ann', c: 'Norway' }, { p: 'bob', c: 'Italy' }]);
  // several of one key, one of them, by a key of two parts, by a map that a traversal gives
  assert.deepEqual((await ask("g.call('reference').with('container', 'cities').with('key', 'NO').select('id')")).sort(), ['bergen', 'oslo']);
  assert.deepEqual(await ask("g.call('reference', [container: 'cities', key: 'NO', id: 'oslo']).select('id')"), ['oslo']);
  assert.deepEqual(await ask("g.call('reference', [container: 'streets', key: ['NO', 'bergen']]).select('id')"), ['t']);
  assert.deepEqual(await ask("g.V('ann').call('reference', [container: 'countries'], __.project('key').by('country')).select('name')"), ['Norway']);
  assert.deepEqual(await ask("g.V().hasLabel('person').where(__.call('reference', [container: 'countries']).with('key', __.values('country'))).count()"), [2]);
  // what was written before is seen
  await countries.items.upsert({ id: 'XX', name: 'nowhere' });
  assert.deepEqual(await ask("g.V('cid').call('reference', [container: 'countries']).with('key', __.values('country')).select('name')"), ['nowhere']);
  await countries.item('XX', 'XX').delete();
  assert.deepEqual(await ask("g.call('reference', [container: 'countries', key: 'XX'])"), []);
  assert.deepEqual(await ask('g.call()'), ['reference']);
  assert.deepEqual(await ask("g.call('--list')"), ['reference']);
});

test('the step of the driver does the same as bytecode', async (t) => {
  const { server } = await world(t);
  const __ = drivers['3.7'].process.statics;
  const g = source(t, server, '3.7', as());
  assert.deepEqual(await g.call('reference', new Map([['container', 'countries'], ['key', 'NO']])).select('name').toList(), ['Norway']);
  assert.deepEqual(await g.V('bob').call('reference', new Map([['container', 'countries']])).with_('key', __.values('country')).select('name').toList(), ['Italy']);
});

test('it is charged for, and the age of a copy that is not exact would be told', async (t) => {
  const { g } = await world(t);
  const charge = async (script) => (await g.submit(script)).attributes.get('x-ms-total-request-charge');
  const one = "g.call('reference', [container: 'countries', key: 'NO'])";
  await g.submit(one); // which fills the copy
  const found = await charge(one);
  assert.ok(found > 0);
  assert.equal(await charge(one), found);
  const many = await charge("g.inject(1).repeat(__.identity()).times(1).union(" + Array.from({ length: 40 }, () => "__.call('reference', [container: 'cities', key: 'NO'])").join(', ') + ')');
  assert.ok(many > found, `${many} for 80 items, ${found} for one`);
  assert.equal((await g.submit(one)).attributes.get('x-orrery-reference-lag-ms'), undefined);
});

test('what cannot be is refused by name', async (t) => {
  const { server, g, database } = await world(t);
  const refused = async (script, code, pattern) => {
    const error = await failure(g.submit(script));
    assert.match(error.message, pattern, script);
    assert.equal(error.statusCode, code, `${script}: ${error.message}`);
  };
  await refused("g.call('tinker.search')", 597, /no service "tinker.search"/);
  await refused("g.call('reference', [container: 'g', key: 1])", 500, /no reference container/);
  await refused("g.call('reference', [container: 'nothing', key: 1])", 500, /does not exist/);
  await refused("g.call('reference', [container: 'countries'])", 500, /needs the key/);
  await refused("g.call('reference', [key: 'NO'])", 500, /name of a reference container/);
  await refused("g.call('reference', [container: 'cities', id: 'oslo'])", 500, /has 1 value, and 0 are given/);
  await refused("g.call('reference', [container: 'streets', key: 'NO'])", 500, /has 2 values, and 1 is given/);
  await refused("g.call('reference', [container: 'countries', key: 'NO', all: true])", 500, /nothing else/);
  await refused("g.call('reference').with('limit', 3)", 597, /takes with\('container'\)/);
  await refused("g.call('reference', 'countries')", 597, /a map/);
  await refused("g.call('--list', [a: 1])", 597, /no parameters/);
  // a token is for its graph alone
  const { user } = await database.users.create({ id: 'u' });
  const path = (await database.container('g').read()).resource._self;
  for (const key of [undefined, 'p']) {
    const { resource } = await user.permissions.create({ id: `p${key}`, permissionMode: 'Read', resource: path, ...(key ? { resourcePartitionKey: [key] } : {}) });
    const bound = await client(t, server, '3.7', { ...as(), authenticator: authenticator('3.7', { key: resource._token }) });
    assert.equal((await bound.submit('g.V().count()')).first(), 4);
    for (const name of ['countries', 'nothing']) {
      const error = await failure(bound.submit(`g.call('reference', [container: '${name}', key: 'NO'])`));
      assert.equal(attribute(error, 'x-ms-status-code'), 403, error.message);
    }
  }
});
