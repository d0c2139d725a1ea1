import { dice, padding, percent } from '../model.mjs';

const hosts = 200;

function lines(count, month, seed) {
  const roll = dice(seed);
  return Array.from({ length: count }, (_, i) => ({ id: `${month}-${i}`, month, host: `web-${roll(hosts)}`, line: padding(200) }));
}

const creates = (items) => items.map((create) => ({ create }));

export default {
  title: 'Logs in a container for each month',
  async tell(model) {
    await model.start();
    const old = lines(160, '2026-10', 7);
    const fresh = lines(120, '2026-11', 8);
    model.say(`Logs are kept for a month. The key is good, the host of many, but what is old has to go, and deleting costs as
      much as writing did.`);

    model.chapter('The mistake');
    const together = await model.container('logs', '/host', { partitions: 4 });
    await model.fill(together, old);
    model.say(`There are ${old.length} lines of October. While November is written, somebody cleans up:`);
    let spent = 0;
    const deleting = Promise.all(
      old.map(async ({ id, host }) => {
        const { requestCharge } = await model.patient.database('guide').container('logs').item(id, host).delete();
        spent += requestCharge;
      }),
    );
    const before = await model.rush('November', together, creates(fresh), { perSecond: 60 });
    await deleting;
    model.say(`Deleting took ${spent.toFixed(0)} RU from the budget of those who write.`);

    model.chapter('What is seen');
    await model.stats('logs');

    model.chapter('The advice');
    const advice = await model.advise('logs', { lines: 9 });
    model.say(`The advisor finds nothing wrong with the key as it is. It is the lifetime that wants a container.`);

    model.chapter('The cure');
    const october = await model.container('logs-2026-10', '/host', { throughput: 400 });
    const november = await model.container('logs-2026-11', '/host', { partitions: 4 });
    await model.fill(october, old);
    const dropping = october.delete();
    const after = await model.rush('November', november, creates(fresh), { perSecond: 60 });
    const { requestCharge: dropped } = await dropping;
    model.say(`Dropping the container of October cost ${dropped.toFixed(0)} RU, none of them November's. Refused before:
      ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}.`);
    model.say(`The same mistake can be made within a month, though: the date as key (docs/guide/run logs-by-date).`);
    return { before: before.figures(), after: after.figures(), deletingRu: Math.round(spent), droppingRu: dropped, advice };
  },
};
