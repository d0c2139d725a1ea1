// Every Edm type, there and back, and what the NoSQL API sees of it.
import assert from 'node:assert/strict';
import test from 'node:test';
import { CosmosClient } from '@azure/cosmos';
import { odata } from '@azure/data-tables';
import { emulatorKey } from './server.js';
import { all, sendTable, tables } from './tables.js';

const guid = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
const sample = {
  text: 'täxt "quoted" \\ \n',
  empty: '',
  yes: true,
  no: false,
  int: -2147483648,
  double: 0.1,
  whole: { type: 'Double', value: '2' },
  huge: 1e300,
  long: { type: 'Int64', value: '9223372036854775807' },
  least: { type: 'Int64', value: '-9223372036854775808' },
  small: { type: 'Int64', value: '5' },
  when: { type: 'DateTime', value: '2024-02-29T23:59:59.1234567Z' },
  second: { type: 'DateTime', value: '1601-01-01T00:00:00Z' },
  last: { type: 'DateTime', value: '9999-12-31T23:59:59.9999999Z' },
  guid: { type: 'Guid', value: guid },
  bytes: new Uint8Array([0, 1, 254, 255]),
  none: new Uint8Array([]),
};

const returned = {
  ...sample,
  whole: 2,
  long: 9223372036854775807n,
  least: -9223372036854775808n,
  small: 5n,
};

async function filled(t, options) {
  const made = await tables(t, options);
  await made.table.createEntity({ partitionKey: 'p', rowKey: 'r', ...sample });
  return made;
}

test('every type comes back as it was sent', async (t) => {
  const { server, table } = await filled(t);
  const got = await table.getEntity('p', 'r', { disableTypeConversion: false });
  for (const name of ['text', 'empty', 'yes', 'no', 'int', 'double', 'huge', 'whole', 'long', 'least', 'small'])
    assert.equal(got[name], returned[name], name);
  assert.deepEqual(got.guid, sample.guid);
  assert.deepEqual([...got.bytes], [...sample.bytes]);
  assert.equal(got.none.length, 0);
  const exact = await table.getEntity('p', 'r', { disableTypeConversion: true });
  for (const name of ['when', 'second', 'last', 'long', 'guid']) assert.deepEqual(exact[name], sample[name], name);
  const { json, text } = await sendTable(server, 'GET', "/people(PartitionKey='p',RowKey='r')");
  assert.match(text, /"whole":2\.0,/, 'a double shows that it is one');
  assert.equal(json['long@odata.type'], 'Edm.Int64');
  assert.equal(json['bytes@odata.type'], 'Edm.Binary');
  assert.equal(json['whole@odata.type'], undefined);
});

test('numbers that are none come back too', async (t) => {
  const { server } = await tables(t);
  const body = { PartitionKey: 'p', RowKey: 'r' };
  for (const value of ['NaN', 'Infinity', '-Infinity']) {
    body[`d${value.replace('-', '_')}`] = value;
    body[`d${value.replace('-', '_')}@odata.type`] = 'Edm.Double';
  }
  assert.equal((await sendTable(server, 'POST', '/people', { body })).status, 201);
  const { json } = await sendTable(server, 'GET', "/people(PartitionKey='p',RowKey='r')");
  assert.deepEqual([json.dNaN, json.dInfinity, json.d_Infinity], ['NaN', 'Infinity', '-Infinity']);
  assert.equal(json['dNaN@odata.type'], 'Edm.Double');
  const { json: list } = await sendTable(server, 'GET', '/people()');
  assert.equal(list.value[0].dInfinity, 'Infinity');
});

test('an annotation may stand before or behind its value; a large number without one is a double', async (t) => {
  const { server } = await tables(t);
  const body = '{"PartitionKey":"p","a@odata.type":"Edm.Int64","a":"5","RowKey":"r","b":"6","b@odata.type":"Edm.Int64","c":5000000000,"d":null,"Timestamp":"2001-01-01T00:00:00Z"}';
  assert.equal((await sendTable(server, 'POST', '/people', { body })).status, 201);
  const { json, text } = await sendTable(server, 'GET', "/people(PartitionKey='p',RowKey='r')");
  assert.deepEqual([json['a@odata.type'], json['b@odata.type'], 'd' in json], ['Edm.Int64', 'Edm.Int64', false]);
  assert.match(text, /"c":5000000000\.0/);
  assert.ok(!json.Timestamp.startsWith('2001'));
});

test('every literal finds its property and no other', async (t) => {
  const { table } = await filled(t);
  await table.createEntity({ partitionKey: 'p', rowKey: 'other' });
  const finds = async (filter) => (await all(table.listEntities({ queryOptions: { filter } }))).length;
  const yes = [
    "text ne 'x'", "empty eq ''", 'yes eq true', 'yes', 'no eq false', 'not no and yes', 'int eq -2147483648', 'int lt 0', 'int le -2147483648L',
    'double eq 0.1', 'double gt 0.09', 'huge eq 1e300', 'whole eq 2', 'whole eq 2.0', 'small eq 5', 'small eq 5L', 'small eq 5.0',
    'long eq 9223372036854775807L', 'long gt 9223372036854775806L', 'least lt 0', '5 eq small', '4 lt small', "'x' ne text",
    "when eq datetime'2024-02-29T23:59:59.1234567Z'", "when gt datetime'2024-02-29T23:59:59.1234566Z'", "when lt datetime'2024-02-29T23:59:59.1234568Z'",
    "when ge datetime'2024-02-29T23:59:59.1234567Z' and when le datetime'2024-02-29T23:59:59.1234567Z'", "when ne datetime'2024-02-29T23:59:59.123Z'",
    "second lt datetime'1700-01-01'", "last eq datetime'9999-12-31T23:59:59.9999999Z'", "when lt datetime'2024-03-01T01:00:00+01:00'",
    `guid eq guid'${guid}'`, `guid eq guid'${guid.toUpperCase()}'`, `guid ne guid'${guid.replace('6', '7')}'`, `guid ge guid'${guid}'`,
    "bytes eq X'0001feff'", "bytes eq binary'0001FEFF'", "bytes gt X'0001fe'", "none eq X''", "Timestamp gt datetime'2020-01-01T00:00:00Z' and yes",
    "RowKey eq 'r'", "PartitionKey eq 'p' and RowKey ge 'r' and RowKey lt 's'", '(yes eq true) and ((int lt 0) or (int gt 0))',
  ];
  for (const filter of yes) assert.equal(await finds(filter), 1, filter);
  const no = [
    "text eq 5", "int eq '5'", "yes eq 'true'", "yes eq 1", `guid eq '${guid}'`, `text eq guid'${guid}'`, "when eq '2024-02-29T23:59:59.1234567Z'",
    "when eq datetime'2024-02-29T23:59:59.123Z'", "when gt datetime'2024-02-29T23:59:59.1234567Z'", "when lt datetime'2024-02-29T23:59:59.1234567Z'",
    "missing ne 5", "missing eq 'x'", "text ne 5", "int ne 'x'", "guid ne 'x'", "bytes eq X'0001'", `bytes ne guid'${guid}'`, "guid ne X'00'",
    'long eq 9223372036854775806L', 'no', "Timestamp lt datetime'2020-01-01T00:00:00Z'", "Timestamp eq 'x'", "RowKey eq 5",
  ];
  for (const filter of no) assert.equal(await finds(filter), 0, filter);
  // what is false of a missing property is true when it is denied
  for (const filter of ['not (missing eq 5)', 'not (missing ne 5)', "not (when eq datetime'2000-01-01')", `not (guid eq guid'${guid.replace('6', '7')}')`])
    assert.equal(await finds(filter), 2, filter);
});

test('the NoSQL API reads the same entities, and tables those it writes', async (t) => {
  const { server, table } = await filled(t);
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const container = cosmos.database('TablesDB').container('people');
  const { resource } = await container.item('r', 'p').read();
  assert.deepEqual([resource.id, resource.PartitionKey, resource.RowKey], ['r', 'p', 'r']);
  assert.deepEqual([resource.text, resource.yes, resource.int, resource.double, resource.whole, resource.small],
    [sample.text, true, sample.int, 0.1, 2, 5]);
  assert.ok(resource.when.$date);
  assert.equal(resource.guid.$binary.subType, '04');
  const { resources } = await container.items
    .query("SELECT VALUE c.RowKey FROM c WHERE c.PartitionKey = 'p' AND c['double'] < 1 AND c.small = 5").fetchAll();
  assert.deepEqual(resources, ['r']);
  await container.items.create({ id: 'n1', PartitionKey: 'p', count: 7, tags: ['a'], nested: { b: 1 }, nothing: null, big: 2 ** 40 });
  const got = await table.getEntity('p', 'n1');
  assert.deepEqual([got.rowKey, got.count, got.tags, got.nested, 'nothing' in got, got.big], ['n1', 7, '["a"]', '{"b":1}', false, 2n ** 40n]);
  const [found] = await all(table.listEntities({ queryOptions: { filter: odata`RowKey eq 'n1' and count gt 6` } }));
  assert.equal(found.count, 7);
  // a merge keeps what only the other API can say
  await table.updateEntity({ partitionKey: 'p', rowKey: 'n1', count: 8 }, 'Merge', { etag: found.etag });
  const { resource: merged } = await container.item('n1', 'p').read();
  assert.deepEqual([merged.count, merged.tags, merged.nested], [8, ['a'], { b: 1 }]);
});

test('a container that the NoSQL API made is a table when its key is', async (t) => {
  const { server, service } = await tables(t);
  const cosmos = new CosmosClient({ endpoint: server.url, key: emulatorKey });
  t.after(() => cosmos.dispose());
  const database = cosmos.database('TablesDB');
  await database.containers.create({ id: 'orders', partitionKey: '/PartitionKey' });
  await database.containers.create({ id: 'foreign', partitionKey: '/tenant' });
  const { container } = { container: database.container('orders') };
  for (let n = 0; n < 25; n++) await container.items.create({ id: `i${24 - n}`, PartitionKey: `p${n % 3}`, n });
  await container.items.create({ id: 'odd', PartitionKey: 5 });
  assert.deepEqual((await all(service.listTables())).map((one) => one.name), ['orders', 'people']);
  const { tableClient, refusal } = await import('./tables.js');
  const orders = tableClient(server, 'orders');
  const pages = [];
  for await (const page of orders.listEntities().byPage({ maxPageSize: 4 })) pages.push(...page);
  const keys = pages.map((one) => `${one.partitionKey} ${one.rowKey}`);
  assert.equal(keys.length, 25, 'what has no text for a key is no entity');
  assert.deepEqual(keys, [...keys].sort());
  assert.equal((await refusal(tableClient(server, 'foreign').getEntity('a', 'b'))).code, 'TableNotFound');
});
