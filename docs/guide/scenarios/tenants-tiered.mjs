import { ask, dice, padding, percent } from '../model.mjs';

const tenants = Array.from({ length: 30 }, (_, i) => `tenant-${i + 1}`);

// Small tenants, and one that wants twice what a physical partition can give.
function work(count, name, place) {
  const roll = dice(23);
  return Array.from({ length: count }, (_, i) => {
    const tenant = roll(10) < 6 ? 'acme' : tenants[roll(tenants.length)];
    const user = `u${roll(5000)}`;
    const operation = i % 10 === 9 ? ask({ tenant, user }) : { create: { id: `${name}${i}`, tenant, user, note: padding(200) } };
    return { ...operation, tenant, container: place(tenant) };
  });
}

const ofAcme = ({ tenant }) => tenant === 'acme';

export default {
  title: 'Tenants in tiers',
  async tell(model) {
    await model.start({ 'throughput.ru_min': 200, 'container.unlimited_ru_min': 200, 'migration.pause_ms': '20ms' });
    model.say(`Thirty small tenants share a container with the tenant as key. Acme was one of them, and has grown: it wants 400
      RU/s, and a physical partition gives 200, even if Acme has it alone.`);

    model.chapter('The mistake');
    const shared = await model.container('notes', '/tenant', { partitions: 4 });
    const before = await model.rush('two seconds', shared, work(200, 'a', () => shared), { perSecond: 100 });
    const acmeBefore = before.only(ofAcme);
    model.say(`Of Acme's requests ${percent(acmeBefore.throttledShare)} were refused, of the others'
      ${percent(before.only((operation) => !ofAcme(operation)).throttledShare)}.`);

    model.chapter('What is seen');
    await model.stats('notes', { keys: true, lines: 5 });

    model.chapter('The advice');
    model.say(`What if Acme's requests were kept by user, on a container of their own with as many RU/s?`);
    const foretold = await model.whatIf(acmeBefore, { current: '/tenant', key: '/user', partitions: 4 });
    const advice = await model.adviseLog(acmeBefore, '/tenant', { lines: 20 });

    model.chapter('The cure');
    model.say(`Acme is promoted to a container of its own. Both containers serve it while the application learns who lives where; then the
      shared one no longer does, and Acme's gets its users as key and the throughput it needs. Nobody copies anything.`);
    const had = await model.count('notes');
    const key = ['--key', '["acme"]'];
    await model.command(['promote', 'guide', 'notes', ...key, '--to', 'notes-acme', '--throughput', '200']);
    const patient = model.patient.database('guide');
    await patient.container('notes').items.create({ id: 'old-way', tenant: 'acme', user: 'u1' });
    await patient.container('notes-acme').item('old-way', 'acme').delete();
    model.say('What is written by way of one container is found in the other.');
    await model.command(['promote', 'guide', 'notes', ...key, '--end']);
    await model.retried(['promote', 'guide', 'notes', ...key, '--forget']);
    await model.throughput('notes-acme', 800);
    await model.retried(['rekey', 'guide', 'notes-acme', '--key', '/user']);
    await model.command(['rekey', 'guide', 'notes-acme', '--end-grace']);
    const acme = model.connect({ maxRetryAttemptCount: 0 }).database('guide').container('notes-acme');
    const moved = await model.count('notes-acme'), have = (await model.count('notes')) + moved;
    model.say(`${moved} items moved; of ${had} items in all there are ${have}.`);
    const place = (tenant) => (tenant === 'acme' ? acme : shared);
    const after = await model.rush('the same again', null, work(200, 'b', place), { perSecond: 100 });
    const acmeAfter = after.only(ofAcme);
    model.say(`Of Acme's refused before: ${percent(acmeBefore.throttledShare)}. After: ${percent(acmeAfter.throttledShare)}. Of all
      tenants together: ${percent(before.throttledShare)} and ${percent(after.throttledShare)}.`);
    return {
      before: before.figures(), after: after.figures(), acme: { before: acmeBefore.figures(), after: acmeAfter.figures() },
      items: { had, have, moved, left: await model.count('notes', "WHERE c.tenant = 'acme'") }, advice, foretold,
    };
  },
};
