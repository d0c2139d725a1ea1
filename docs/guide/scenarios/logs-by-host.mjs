import { again, ask, dice, padding, percent } from '../model.mjs';

const synthetic = { kind: 'computedSuffix', target: '/partitionKey', base: '/host', hashed: '/request', suffixes: 40 };

// Thirty hosts that say little, and one that is in trouble and says why, over and over; now and then somebody follows a
// request of a host.
function lines(count) {
  const roll = dice(5);
  return Array.from({ length: count }, (_, i) => {
    const host = roll(10) < 7 ? 'web-13' : `web-${100 + roll(30)}`;
    const request = `r${roll(5000)}`;
    return i % 10 === 9 ? ask({ host, request }) : { create: { id: `l${i}`, host, request, line: padding(200) } };
  });
}

export default {
  title: 'Logs with the host as key',
  async tell(model) {
    await model.start();
    const load = lines(300);
    model.say(`Thirty-one hosts write a log, and the host is the key: many values, even load, and "what did this host say" asks one
      partition. Until one of them begins to fail and writes 70 % of all lines.`);

    model.chapter('The mistake');
    const byHost = await model.container('logs', '/host');
    const before = await model.rush('two seconds', byHost, load);
    const loud = before.only(({ create }) => create?.host === 'web-13');
    const others = before.only(({ create }) => create && create.host !== 'web-13');
    model.say(`Of the loud one ${percent(loud.throttledShare)} were refused, just when its lines were wanted; of the others
      ${percent(others.throttledShare)}: those who share its physical partition.`);

    model.chapter('What is seen');
    await model.stats('logs', { keys: true, lines: 6 });

    model.chapter('The advice');
    const advice = await model.adviseLog(before, '/host');
    const foretold = await model.whatIf(before, { current: '/host', key: '/host', more: ['--computed-suffix', '/request:40'] });

    model.chapter('The cure');
    model.say(`The host stays, with one of 40 numbers behind it, computed from the request id that every line has. The lines of one
      request of one host are still together; those of a host alone are gathered from 40 keys by the server.`);
    const cured = await model.container('logs2', ['/partitionKey'], { orrery: { synthetic } });
    const copied = await model.copy('logs', 'logs2');
    const after = await model.rush('the same again', cured, again(load));
    const query = "SELECT VALUE COUNT(1) FROM c WHERE c.host = 'web-13'";
    const patient = model.patient.database('guide');
    const cost = async (id) => (await patient.container(id).items.query(query).fetchAll()).requestCharge;
    const counting = { before: await cost('logs'), after: await cost('logs2') };
    const counted = await model.count('logs2', "WHERE c.host = 'web-13'");
    const written = loud.accepted + after.only(({ create }) => create?.host === 'web-13').accepted;
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}. The price: counting the
      ${counted} lines of web-13 asks 40 keys and costs ${counting.after.toFixed(1)} RU, with the host as key it was
      ${counting.before.toFixed(1)}.`);
    return {
      before: before.figures(), after: after.figures(), copied, loud: loud.throttledShare, others: others.throttledShare, advice, foretold,
      counted, written, counting,
    };
  },
};
