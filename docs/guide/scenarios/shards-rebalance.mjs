import { dice, padding } from '../model.mjs';
import { until } from '../shards.mjs';

export default {
  title: 'Shards: rebalancing under load',
  async tell(model) {
    await model.start({ 'migration.pause_ms': '20ms' }, ['--node', 'one=memory:', '--node', 'two=memory:']);
    model.say('Eight physical partitions on two nodes, in use. A third node is added.');
    const orders = await model.container('orders', '/tenant');
    await model.fill(orders, Array.from({ length: 80 }, (_, i) => ({ id: `o${i}`, tenant: `t${i}`, text: padding(200) })));
    const spread = async () => {
      const { partitions } = await model.answer(['partition', 'list', 'guide', 'orders']);
      const counts = {};
      for (const { node } of partitions) counts[node] = (counts[node] ?? 0) + 1;
      return counts;
    };

    model.chapter('The mistake');
    const before = await spread();
    model.say(`To add a node and wait: new partitions go there, those that are there stay. ${JSON.stringify(before)}`);
    await model.command(['node', 'add', 'three', 'memory:']);

    model.chapter('The cure');
    await model.command(['node', 'rebalance', '--plan'], { lines: 8 });
    const roll = dice(41);
    const patient = model.patient.database('guide').container('orders');
    const answers = { done: 0, failed: 0 };
    let going = true;
    const clients = Promise.all(Array.from({ length: 4 }, async () => {
      while (going) {
        const n = roll(80);
        await patient.items.upsert({ id: `o${n}`, tenant: `t${n}`, text: padding(200) }).then(() => answers.done++, () => answers.failed++);
      }
    }));
    await model.command(['node', 'rebalance', '--no-wait']);
    const after = await until(spread, (counts) => (counts.three ?? 0) >= 2);
    going = false;
    await clients;
    const have = await model.count('orders');
    model.say(`${JSON.stringify(after)}. Clients wrote ${answers.done} times meanwhile, and ${answers.failed} of it failed. All ${have} items are there.`);
    return { before, after, answers, items: { had: 80, have } };
  },
};
