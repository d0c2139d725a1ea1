import { ask, padding, pause } from '../model.mjs';

const orders = 40;
const rows = 4;

// An order and its lines, which must be written together or not at all.
function order(n) {
  const head = { id: `o${n}`, order: `o${n}`, kind: 'order', text: padding(100) };
  const lines = Array.from({ length: rows }, (_, i) => ({ id: `o${n}-${i}`, order: `o${n}`, kind: 'line', text: padding(100) }));
  return [head, ...lines];
}

const creates = (items) => items.map((resourceBody) => ({ operationType: 'Create', resourceBody }));

async function placed(container, key) {
  let good = 0;
  for (let n = 0; n < orders; n++) {
    const items = order(n);
    const { code, result } = await container.items.batch(creates(items), key(items[0])).catch((error) => error);
    if (code === 200 && result.every((one) => one.statusCode === 201)) good++;
  }
  return good;
}

const listings = Array.from({ length: orders }, (_, n) => ask({ order: `o${n}` }));

export default {
  title: 'The id as key',
  async tell(model) {
    await model.start();
    model.say(`The id as key: every item is a logical partition of its own. Nothing is ever hot, nothing ever full, and a read by id
      costs 1 RU. For a store of keys and values there is nothing better.`);

    const values = await model.container('values', '/id', { partitions: 2 });
    const names = Array.from({ length: 20 }, (_, n) => `v${n}`);
    await model.fill(values, names.map((id) => ({ id, text: padding(100) })));
    const reads = await model.rush('reads by id', values, names.map((id) => ({ read: [id, id], where: { '/id': id } })));

    model.chapter('The mistake');
    const byId = await model.container('orders', '/id');
    const patient = model.patient.database('guide');
    const togetherBefore = await placed(patient.container('orders'), (head) => head.id);
    model.say(`An order and its lines are something else. ${orders} orders with ${rows} lines each,
      every one as a transaction: ${togetherBefore} of them were taken. A
      transaction is of one logical partition, and here each item has its own. So they are written one by one, and a crash
      between two leaves half an order.`);
    await model.fill(byId, Array.from({ length: orders }, (_, n) => order(n)).flat());
    const before = await model.rush('orders with their lines', byId, listings, { perSecond: 25 });

    model.chapter('What is seen');
    await model.stats('orders');
    model.say('All partitions are equally busy, and it looks healthy. But every listing asks all of them.');

    model.chapter('The advice');
    const advice = await model.advise('orders');

    model.chapter('The cure');
    model.say('What belongs together gets the same key: the order.');
    const byOrder = await model.container('orders2', '/order');
    const togetherAfter = await placed(patient.container('orders2'), (head) => head.order);
    await pause(1000);
    const after = await model.rush('orders with their lines', byOrder, listings, { perSecond: 25 });
    model.say(`Transactions taken before: ${togetherBefore} of ${orders}. After: ${togetherAfter}. An order with its lines costs
      ${before.ruEach.toFixed(1)} RU before and ${after.ruEach.toFixed(1)} after.`);
    return {
      before: { ...before.figures(), together: togetherBefore }, after: { ...after.figures(), together: togetherAfter },
      orders, readRu: reads.ruEach, advice,
    };
  },
};
