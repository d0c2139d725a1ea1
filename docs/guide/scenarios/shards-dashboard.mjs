import { padding } from '../model.mjs';
import { until } from '../shards.mjs';

const regions = ['asia', 'europe', 'america', 'africa'];
const order = (n) => ({ id: `o${n}`, customer: `customer-${n % 50}`, region: regions[n % regions.length], total: (n * 37) % 500, text: padding(20) });
const question = 'SELECT c.region, COUNT(1) AS n, SUM(c.total) AS total FROM c GROUP BY c.region';
const rows = (list) => list.map(({ region, n, total }) => `${region} ${n} ${total}`).sort();

export default {
  title: 'Shards: a view for a dashboard',
  async tell(model) {
    await model.start();
    model.say('Orders by customer, and a dashboard on the wall: orders and turnover by region, every second.');
    const orders = await model.container('orders', '/customer', { partitions: 8 });
    await model.fill(orders, Array.from({ length: 1000 }, (_, n) => order(n)));
    const patient = (id) => model.patient.database('guide').container(id);
    const asked = async (container, query, options) => {
      const { resources, requestCharge } = await patient(container).items.query(query, options).fetchAll();
      return { rows: rows(resources), ru: Number(requestCharge.toFixed(2)) };
    };

    model.chapter('The mistake');
    const before = await asked('orders', question);
    model.say(`To add everything up each time. Every order is read, on every shard, for four numbers: ${before.ru} RU, and with a million orders a thousand times that.`);

    model.chapter('The cure');
    model.say('A materialised view with groups: what an order adds to its region is added when it comes, and taken back when it changes.');
    const view = await model.container('by-region', '/region', { partitions: 2, orrery: { view: { sources: ['orders'], query: question } } });
    const kept = 'SELECT c.region, c.n, c.total FROM c';
    await until(async () => (await view.read()).resource.orrery.view.status, (status) => status === 'Active');
    const filled = await asked('by-region', kept, { initialHeaders: { 'x-orrery-view-wait-ms': '5000' } });
    await model.command(['partition', 'list', 'guide', 'by-region'], { lines: 8 });
    model.say(`The dashboard reads four items: ${filled.ru} RU, however many orders there are.`);

    model.chapter('While orders come');
    await Promise.all(Array.from({ length: 40 }, (_, n) => patient('orders').items.create(order(1000 + n))));
    await patient('orders').item('o0', 'customer-0').delete();
    await patient('orders').items.upsert({ ...order(1), total: 10_000 });
    const seen = await asked('by-region', kept, { initialHeaders: { 'x-orrery-view-wait-ms': '5000' } });
    const fresh = await asked('orders', question);
    model.say(`Forty orders came, one changed and one went. The view says what adding up says: ${seen.rows.join() === fresh.rows.join() ? 'yes' : 'no'}.`);
    return { before: { ru: before.ru }, after: { ru: filled.ru }, groups: filled.rows.length, same: filled.rows.join() === before.rows.join() && seen.rows.join() === fresh.rows.join() };
  },
};
