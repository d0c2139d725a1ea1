import { padding } from '../model.mjs';
import { until } from '../shards.mjs';

const count = 160, questions = 10;
const email = (n) => `person-${n}@example.com`;

// What some questions for one address each cost, and how many items they found.
async function asked(container, options = () => ({})) {
  let charge = 0, found = 0;
  for (let i = 0; i < questions; i++) {
    const query = { query: 'SELECT c.pages FROM c WHERE c.email = @email', parameters: [{ name: '@email', value: email(i * 7) }] };
    const { resources, requestCharge } = await container.items.query(query, options(email(i * 7))).fetchAll();
    charge += requestCharge;
    found += resources.length;
  }
  return { found, ruEach: Number((charge / questions).toFixed(2)) };
}

export default {
  title: 'Shards: an index table against fan-out',
  async tell(model) {
    await model.start();
    model.say('Visits of people, stored by tenant. The support desk knows an address and no tenant.');
    const visits = await model.container('visits', '/tenant', { partitions: 8 });
    await model.fill(visits, Array.from({ length: count }, (_, n) => ({ id: `v${n}`, tenant: `tenant-${n % 40}`, email: email(n), pages: n % 9, text: padding(200) })));
    const patient = (id) => model.patient.database('guide').container(id);

    model.chapter('The mistake');
    const before = await asked(patient('visits'));
    model.say(`A question that does not name the key asks all 8 physical partitions, whatever it finds: ${before.ruEach} RU each, and with ten times the data ten times as many partitions.`);

    model.chapter('The cure');
    model.say('An index table: the same items under the address, fewer of their properties. The server keeps it from the change of every item, and says how far it is.');
    await model.container('visits-by-email', '/email', {
      partitions: 2, materializedViewDefinition: { sourceCollectionId: 'visits', definition: 'SELECT c.id, c.email, c.pages FROM c' },
    });
    await until(() => model.count('visits-by-email'), (have) => have === count);
    await model.command(['partition', 'list', 'guide', 'visits-by-email'], { lines: 8 });
    const table = patient('visits-by-email');
    const after = await asked(table, (partitionKey) => ({ partitionKey }));
    model.say(`One partition answers: ${after.ruEach} RU each. A write to the source costs what it did; the table is paid from its own throughput.`);

    model.chapter('Reading what was just written');
    await patient('visits').items.create({ id: 'new', tenant: 'tenant-1', email: 'new@example.com', pages: 1 });
    const { resources } = await table.items.query('SELECT c._id FROM c',
      { partitionKey: 'new@example.com', initialHeaders: { 'x-orrery-view-wait-ms': '5000' } }).fetchAll();
    model.say(`The table is some milliseconds behind. Who cannot have that says x-orrery-view-wait-ms, and finds the new visit: ${resources.length}.`);
    return { before, after, own: resources.length };
  },
};
