import { dice, padding, percent } from '../model.mjs';

const hosts = Array.from({ length: 60 }, (_, i) => `host-${String(i).padStart(2, '0')}`);
const days = ['2026-10-05', '2026-10-20', '2026-11-03', '2026-11-16'];

// Everybody writes to today.
function lines(count, name) {
  const roll = dice(37);
  return Array.from({ length: count }, (_, i) => ({ create: { id: `${name}${i}`, day: days[3], host: hosts[roll(hosts.length)], line: padding(200) } }));
}

const old = Array.from({ length: 60 }, (_, i) => ({ id: `old${i}`, day: days[i % 3], host: hosts[i], line: padding(200) }));

export default {
  title: 'Shards: a range with a hot end',
  async tell(model) {
    await model.start();
    const october = { query: "SELECT * FROM c WHERE c.day >= '2026-10-01' AND c.day < '2026-10-15'", parameters: [] };
    model.say(`Events are kept in the order of their day, so that a question for some days asks the partitions of those days alone. Four
      physical partitions of 200 RU/s, one for each part of the autumn.`);

    model.chapter('The mistake');
    const byDay = await model.container('events', '/day', { partitions: 4, orrery: { strategy: { kind: 'range', bounds: ['2026-10-15', '2026-11-01', '2026-11-10'] } } });
    await model.fill(byDay, old);
    const asked = await model.rush('some days of October', byDay, Array.from({ length: 5 }, () => ({ query: october })), { perSecond: 5 });
    const before = await model.rush('everybody writes', byDay, lines(160, 'a'), { perSecond: 80 });

    model.chapter('What is seen');
    await model.stats('events');
    model.say('The last partition is hot, and splitting it helps until tomorrow: the end of the order moves on.');

    model.chapter('The cure');
    model.say(`What spreads comes first in the key, what is asked in order second: the host, then the day. A day of a host is still one
      place, and days of a host lie next to each other.`);
    const byHost = await model.container('events2', ['/host', '/day'], { partitions: 4, orrery: { strategy: { kind: 'range', bounds: ['host-15', 'host-30', 'host-45'] } } });
    await model.fill(byHost, old);
    const days2 = { query: "SELECT * FROM c WHERE c.host = 'host-07' AND c.day >= '2026-10-01'", parameters: [] };
    const one = await model.rush('days of one host', byHost, Array.from({ length: 5 }, () => ({ query: days2 })), { perSecond: 5 });
    const after = await model.rush('everybody writes', byHost, lines(160, 'b'), { perSecond: 80 });
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}. Some days cost ${asked.ruEach.toFixed(1)} RU of all
      hosts before, and ${one.ruEach.toFixed(1)} of one host after.`);
    return { before: before.figures(), after: after.figures(), asked: asked.ruEach, one: one.ruEach };
  },
};
