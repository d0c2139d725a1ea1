import { ask, dice, padding, percent } from '../model.mjs';

const tenants = Array.from({ length: 16 }, (_, i) => `tenant-${i + 1}`);

// One of seventeen tenants asks for most of it. Now and then a user looks at what is there.
function operation(roll, id) {
  const tenant = roll(10) < 6 ? 'acme' : tenants[roll(tenants.length)];
  const user = `u${roll(5000)}`;
  return { create: { id, tenant, user, note: padding(200) } };
}

const ofAcme = ({ create, where }) => (create?.tenant ?? where['/tenant']) === 'acme';

function work(count, name) {
  const roll = dice(17);
  return Array.from({ length: count }, (_, i) => {
    const { create } = operation(roll, `${name}${i}`);
    return i % 10 === 9 ? ask({ tenant: create.tenant, user: create.user }) : { create };
  });
}

export default {
  title: 'Tenants with a key each',
  async tell(model) {
    await model.start();
    model.say(`Seventeen tenants share a container, and the tenant is the key. That is right for sixteen of them. Acme is loud.`);

    model.chapter('The mistake');
    const shared = await model.container('notes', '/tenant', { partitions: 4 });
    const before = await model.rush('two seconds', shared, work(150, 'a'), { perSecond: 75 });
    const routes = await Promise.all(
      ['acme', ...tenants].map(async (tenant) => {
        const { partition } = await model.answer(['key', 'route', 'guide', 'notes', JSON.stringify([tenant])]);
        return [tenant, partition.id];
      }),
    );
    const where = new Map(routes);
    const neighbour = ({ create }) => create && create.tenant !== 'acme' && where.get(create.tenant) === where.get('acme');
    const neighboursBefore = before.only(neighbour);
    const names = tenants.filter((tenant) => where.get(tenant) === where.get('acme'));
    model.say(`The neighbours in Acme's physical partition (${names.join(', ')}) did nothing wrong, and of theirs
      ${percent(neighboursBefore.throttledShare)} were refused.`);

    model.chapter('What is seen');
    await model.stats('notes', { keys: true, lines: 6 });
    const roll = dice(18);
    const hot = await model.hot('notes', (key) => key.partitionKey[0] === 'acme', (second) =>
      Array.from({ length: 80 }, (_, i) => operation(roll, `m${second}-${i}`).create));

    model.chapter('The advice');
    const advice = await model.adviseLog(before, '/tenant');

    model.chapter('First aid');
    model.say(`Acme gets a physical partition of its own, while everybody goes on working:`);
    await model.command(['partition', 'isolate', 'guide', 'notes', '["acme"]']);
    const isolated = await model.rush('the same again', shared, work(150, 'b'), { perSecond: 75 });
    const neighboursAfter = isolated.only(neighbour);
    model.say(`Of the neighbours' requests ${percent(neighboursAfter.throttledShare)} were refused, before it were
      ${percent(neighboursBefore.throttledShare)}. Acme still has no more than one physical partition gives.`);

    model.chapter('The cure');
    model.say(`A number from 1 to 20 behind the tenant, computed from the user: Acme is spread over all partitions, and what one user
      of it does stays together. Where that is not wanted, Acme moves into its own container (docs/guide/run tenants-tiered).`);
    const synthetic = { kind: 'computedSuffix', target: '/partitionKey', base: '/tenant', hashed: '/user', suffixes: 20 };
    const spread = await model.container('notes2', ['/partitionKey'], { partitions: 4, orrery: { synthetic } });
    const copied = await model.copy('notes', 'notes2');
    const after = await model.rush('the same again', spread, work(150, 'c'), { perSecond: 75 });
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}.`);
    return {
      before: before.figures(), isolated: isolated.figures(), after: after.figures(), copied, advice,
      hot: { key: hot.partitionKey, do: hot.do },
      others: isolated.only((operation) => !ofAcme(operation)).figures(),
      neighbours: { before: neighboursBefore.figures(), isolated: neighboursAfter.figures() },
    };
  },
};
