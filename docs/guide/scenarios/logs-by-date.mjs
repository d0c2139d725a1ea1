import { again, ask, dice, padding, partitionRu, percent } from '../model.mjs';

const date = '2026-11-16';
const synthetic = { kind: 'computedSuffix', target: '/partitionKey', base: '/date', hashed: '/host', suffixes: 400 };

// Lines of today from 400 hosts; now and then somebody looks at what one host said today.
function operation(roll, id) {
  const host = `web-${roll(400)}`;
  return { create: { id, date, host, level: ['info', 'warning', 'error'][roll(3)], line: padding(200) } };
}

function lines(count) {
  const roll = dice(3);
  return Array.from({ length: count }, (_, i) => {
    const { create } = operation(roll, `l${i}`);
    if (i % 10 !== 9) return { create };
    return ask({ date, host: create.host });
  });
}

export default {
  title: 'Logs with the date as key',
  async tell(model) {
    await model.start();
    const load = lines(300);
    model.say(`Lines of a log come in at 135 a second, and the container has 1600 RU/s, more than all of them need. The date is its
      partition key: what could be more natural for a log?`);

    model.chapter('The mistake');
    const byDate = await model.container('logs', '/date');
    const before = await model.rush('two seconds', byDate, load);

    model.chapter('What is seen');
    model.say(`All lines of today have one key value, so one physical partition takes them all: ${partitionRu} RU/s, an eighth of what
      is paid for. Tomorrow it will be another one. A key that stays hot is reported within seconds:`);
    const roll = dice(4);
    const hot = await model.hot('logs', (key) => key.trouble === 'hot', (second) =>
      Array.from({ length: 60 }, (_, i) => operation(roll, `m${second}-${i}`).create));
    await model.stats('logs');
    await model.command(['partition', 'heat', 'guide', 'logs', '--by', 'keys', '--out', model.file('heat.svg')]);

    model.chapter('The advice');
    const advice = await model.adviseLog(before, '/date');
    const foretold = await model.whatIf(before, { current: '/date', key: '/date', more: ['--computed-suffix', '/host:400'] });

    model.chapter('The cure');
    model.say(`The date stays, with a number from 1 to 400 behind it that the server computes from the host. Whoever knows date and
      host still asks one partition, and clients send what they always sent.`);
    const cured = await model.container('logs2', ['/partitionKey'], { orrery: { synthetic } });
    const copied = await model.copy('logs', 'logs2');
    const after = await model.rush('the same again', cured, again(load));
    await model.command(['key', 'explain', 'guide', 'logs2', JSON.stringify({ id: '1', date, host: 'web-7' })]);
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}.`);
    return { before: before.figures(), after: after.figures(), copied, hot: { key: hot.partitionKey, do: hot.do }, advice, foretold };
  },
};
