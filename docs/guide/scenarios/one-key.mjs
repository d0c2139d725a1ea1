import { again, ask, dice, padding, percent } from '../model.mjs';

const limit = 96 * 1024;

// New orders, and customers who look at theirs.
function orders(count) {
  const roll = dice(37);
  return Array.from({ length: count }, (_, i) => {
    const customer = `c${roll(500)}`;
    return i % 10 === 9 ? ask({ type: 'order', customer }) : { create: { id: `o${i}`, type: 'order', customer, text: padding(400) } };
  });
}

export default {
  title: 'All items under one key',
  async tell(model) {
    await model.start({ 'logical_partition.bytes_max': limit });
    const load = orders(300);
    model.say(`Every item has the type "order", and the type is the key. With a few items everything is fast, queries need not think of
      partitions, and all of it can be one transaction. Then it grows.`);

    model.chapter('The mistake');
    const small = await model.container('orders', '/type', { partitions: 2 });
    const before = await model.rush('with 400 RU/s', small, load);
    model.say('Too slow, so somebody pays four times as much:');
    const large = await model.container('orders-large', '/type');
    const paid = await model.rush('with 1600 RU/s', large, load);

    model.chapter('What is seen');
    await model.stats('orders-large');
    model.say(`One of eight physical partitions does all the work; the other seven are paid for. And it ends altogether at the limit of
      one logical partition, 20 GB in the service and 96 KB here:`);
    const more = orders(400).flatMap(({ create }) => (create ? [{ ...create, id: `m${create.id}` }] : []));
    let full;
    const patient = model.patient.database('guide').container('orders-large');
    for (let i = 0; i < more.length && !full; i += 8)
      await Promise.all(more.slice(i, i + 8).map((item) => patient.items.create(item).catch((error) => (full ??= error))));
    if (!full || full.code !== 403) throw full ?? new Error('the logical partition never filled');
    model.say(`  ${full.code}, substatus ${full.substatus}`);

    model.chapter('The advice');
    const advice = await model.adviseLog(paid, '/type');
    const foretold = await model.whatIf(paid, { current: '/type', key: '/customer' });

    model.chapter('The cure');
    const byCustomer = await model.container('orders2', '/customer');
    const copied = await model.copy('orders', 'orders2');
    const after = await model.rush('the same again', byCustomer, again(load));
    model.say(`Refused with 400 RU/s: ${percent(before.throttledShare)}. With 1600 RU/s: ${percent(paid.throttledShare)}. With 1600
      RU/s and the customer as key: ${percent(after.throttledShare)}.`);
    return {
      before: before.figures(), paid: paid.figures(), after: after.figures(), copied,
      full: { code: full.code, substatus: full.substatus }, advice, foretold,
    };
  },
};
