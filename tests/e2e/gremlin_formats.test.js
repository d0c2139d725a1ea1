// Every format with every driver: what is sent arrives, and what comes back is what the driver makes of such a value.
import { createRequire } from 'node:module';
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { binary, client, drivers, failure, source, v2, v3, versions } from './gremlin.js';
import { Server } from './server.js';

const require = createRequire(import.meta.url);
const packages = { 3.4: 'gremlin34', 3.5: 'gremlin35', 3.6: 'gremlin36', 3.7: 'gremlin', 3.8: 'gremlin38' };
const mimes = { 'GraphSON 2': v2, 'GraphSON 3': v3, GraphBinary: binary };
const cases = versions.flatMap((version) => Object.entries(mimes)
  .filter(([name]) => name !== 'GraphBinary' || ['3.7', '3.8'].includes(version)) // JavaScript had none before
  .map(([name, mimeType]) => ({ version, name, mimeType })));

// Longs come as numbers, as bigints or as objects, by driver and format.
const plain = (value) => (typeof value === 'bigint' ? Number(value) : value);
const entries = (map) => (map instanceof Map ? [...map].map(([key, value]) => [String(key?.elementName ?? key), plain(value)])
  : Object.entries(map).map(([key, value]) => [key, plain(value)]));

async function filled(g) {
  await g.addV('person').property('name', 'marko').property('age', 29).as('m')
    .addV('person').property('name', 'vadas').property('age', 27).as('v')
    .addV('software').property('name', 'lop').as('l')
    .addE('created').from_('m').to('l').property('weight', 0.4)
    .addE('knows').from_('m').to('v').property('weight', 0.5)
    .iterate();
}

for (const { version, name, mimeType } of cases) {
  const { process: steps, structure } = drivers[version];
  const { P, TextP, order, scope, t: token, statics: __, cardinality } = steps;
  const opened = async (t) => {
    const server = await Server.start(t, ['--dev', '--set', 'gremlin.typed=true']);
    return { server, g: source(t, server, version, { mimeType }) };
  };

  test(`${version}, ${name}: values go there and back`, async (t) => {
    const { g } = await opened(t);
    const values = [1, -5, 2147483647, 5000000000, 1.5, -0.25, 1e-300, 'ä😀"\\\n', '', true, false, null, [1, 'a', [2.5]], []];
    for (const value of values) {
      const [back] = await g.inject(value).toList();
      assert.deepEqual(plain(back), value, `${value}`);
    }
    if (mimeType !== v2) {
      const [map] = await g.inject(new Map([['a', 1], [2, 'b']])).toList();
      assert.deepEqual([...map], [['a', 1], [2, 'b']]);
    }
    const date = new Date(1700000000123);
    const [when] = await g.inject(date).toList();
    assert.equal(when.getTime(), date.getTime());
  });

  test(`${version}, ${name}: elements, paths and maps`, async (t) => {
    const { g } = await opened(t);
    await filled(g);
    const [vertex] = await g.V().has('name', 'marko').toList();
    assert.ok(vertex instanceof structure.Vertex);
    assert.equal(vertex.label, 'person');
    const [edge] = await g.V(vertex).outE('created').toList();
    assert.ok(edge instanceof structure.Edge);
    assert.equal(edge.outV.id, vertex.id);
    assert.equal(edge.label, 'created');
    const [property] = await g.V(vertex).properties('name').toList();
    assert.equal(property.value, 'marko');
    assert.equal(property.label, 'name');
    const [weight] = await g.E(edge.id).properties('weight').toList();
    assert.equal(weight.key, 'weight');
    assert.equal(weight.value, 0.4);
    const [path] = await g.V(vertex).as('a').out('knows').as('b').path().toList();
    assert.ok(path instanceof structure.Path);
    assert.deepEqual(path.labels.map((labels) => [...labels]), [['a'], ['b']]);
    assert.equal(path.objects[0].id, vertex.id);
    const [counts] = await g.V().groupCount().by(token.label).toList();
    assert.deepEqual(entries(counts).sort(), [['person', 2], ['software', 1]]);
    const [elements] = await g.V(vertex).elementMap('name').toList();
    assert.deepEqual(entries(elements), [['id', vertex.id], ['label', 'person'], ['name', 'marko']]);
    const [values] = await g.V(vertex).valueMap('name').toList();
    assert.deepEqual(entries(values), [['name', ['marko']]]);
    const [names] = await g.V().hasLabel('person').values('name').order().fold().toList();
    assert.deepEqual(names, ['marko', 'vadas']);
    const [bulk] = await g.V().label().aggregate('x').cap('x').toList();
    assert.deepEqual([...bulk].sort(), ['person', 'person', 'software']);
  });

  test(`${version}, ${name}: arguments of every kind`, async (t) => {
    const { g } = await opened(t);
    await filled(g);
    const names = async (traversal) => (await traversal.values('name').toList()).sort();
    assert.deepEqual(await names(g.V().has('age', P.gt(28).and(P.lt(30)))), ['marko']);
    assert.deepEqual(await names(g.V().has('age', P.lt(28).or(P.gt(28)))), ['marko', 'vadas']);
    assert.deepEqual(await names(g.V().has('name', P.within('marko', 'lop'))), ['lop', 'marko']);
    assert.deepEqual(await names(g.V().has('name', P.within(['vadas']))), ['vadas']);
    assert.deepEqual(await names(g.V().has('age', P.between(27, 29))), ['vadas']);
    assert.deepEqual(await names(g.V().has('name', P.not(P.within('marko', 'vadas')))), ['lop']);
    assert.deepEqual(await names(g.V().has('name', TextP.startingWith('va'))), ['vadas']);
    assert.deepEqual(await names(g.V().where(__.out('created'))), ['marko']);
    assert.deepEqual(await names(g.V().has(token.label, 'software')), ['lop']);
    assert.deepEqual(await g.V().hasLabel('person').order().by('age', order.desc).values('name').toList(), ['marko', 'vadas']);
    assert.deepEqual((await g.inject([1, 2, 3]).limit(scope.local, 2).toList())[0], [1, 2]);
    assert.deepEqual(await names(g.V().repeat(__.out()).times(1).hasLabel('software')), ['lop']);
    await g.V().has('name', 'lop').property(cardinality.list, 'tag', 'a').property(cardinality.list, 'tag', 'b').iterate();
    assert.deepEqual((await g.V().has('name', 'lop').values('tag').toList()).sort(), ['a', 'b']);
    if (steps.merge && mimeType !== v2) { // maps have keys of their own type in the others alone
      const search = new Map([[token.label, 'person'], ['name', 'josh']]);
      for (const age of [32, 33])
        await g.mergeV(search).option(steps.merge.onCreate, new Map([...search, ['age', age]]))
          .option(steps.merge.onMatch, new Map([['age', age]])).iterate();
      assert.deepEqual(await g.V().has('name', 'josh').values('age').toList(), [33]);
    }
    if (steps.dt)
      assert.equal((await g.inject(new Date(0)).dateAdd(steps.dt.day, 1).toList())[0].getTime(), 86400000);
    const error = await failure(g.V().map(() => ['it.get()', 'gremlin-groovy']).toList());
    assert.match(error.message, /[Ll]ambda/);
  });

  test(`${version}, ${name}: scripts with bindings, side effects and strategies`, async (t) => {
    const { server, g } = await opened(t);
    await filled(g);
    const scripts = await client(t, server, version, { mimeType });
    const found = await scripts.submit("g.V().has('age', n).values('name')", { n: 29 });
    assert.deepEqual(found.toArray(), ['marko']);
    const [first, second] = (await scripts.submit('g.inject(a, b)', { a: 'x', b: [1, 2] })).toArray();
    assert.deepEqual([first, second], ['x', [1, 2]]);
    const attributes = found.attributes;
    const code = attributes instanceof Map ? attributes.get('x-ms-status-code') : attributes['x-ms-status-code'];
    assert.equal(code, 200);
    const { SubgraphStrategy, ReadOnlyStrategy } = require(`${packages[version]}/lib/process/traversal-strategy.js`);
    const people = g.withStrategies(new SubgraphStrategy({ vertices: __.hasLabel('person') }));
    assert.equal(plain((await people.V().count().next()).value), 2);
    const refused = await failure(g.withStrategies(new ReadOnlyStrategy()).addV('x').toList());
    assert.equal(refused.statusCode >= 400, true);
    assert.deepEqual(await g.withSideEffect('x', 'y').inject(1).select('x').toList(), ['y']);
    assert.deepEqual(await g.withSack(1).inject(5).sack().toList(), [1]);
  });
}

test('GraphSON 2 without types, as the service answers it', async (t) => {
  const server = await Server.start(t, ['--dev']);
  for (const version of versions) {
    const g = await client(t, server, version, { mimeType: v2 });
    await g.submit("g.addV('person').property('id', id).property('name', 'x').property('n', 1.5)", { id: `p${version}` });
    const [vertex] = (await g.submit('g.V(id)', { id: `p${version}` })).toArray();
    assert.deepEqual([vertex.id, vertex.label, vertex.type], [`p${version}`, 'person', 'vertex']);
    assert.equal(vertex.properties.name[0].value, 'x');
    assert.equal(vertex.properties.n[0].value, 1.5);
    assert.deepEqual((await g.submit('g.inject(1, 2.5, true, [a: 1])')).toArray(), [1, 2.5, true, { a: 1 }]);
    const [map] = (await g.submit('g.V(id).valueMap(true)', { id: `p${version}` })).toArray();
    assert.deepEqual([map.id, map.label, map.name], [`p${version}`, 'person', ['x']]);
  }
});
