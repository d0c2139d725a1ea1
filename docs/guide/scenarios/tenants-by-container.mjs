import { dice, padding, percent } from '../model.mjs';

const tenants = Array.from({ length: 40 }, (_, i) => `tenant-${i + 1}`);
const resources = 30;

function work(count, container) {
  const roll = dice(19);
  return Array.from({ length: count }, (_, i) => {
    const tenant = tenants[roll(tenants.length)];
    return { create: { id: `n${i}`, tenant, note: padding(200) }, container: container(tenant) };
  });
}

export default {
  title: 'Tenants with a container each',
  async tell(model) {
    await model.start({ 'account.resources_max': resources });
    model.say(`Every tenant gets a container: nobody can disturb anybody, and one that leaves is dropped at once. But a container
      has at least 400 RU/s, and an account has a limited number of them: 500 in the service, ${resources} in this model.`);

    model.chapter('The mistake');
    const own = new Map();
    let refusal;
    for (const tenant of tenants) {
      try {
        const definition = { id: tenant, partitionKey: '/tenant', throughput: 400 };
        own.set(tenant, (await model.database.containers.create(definition)).container);
      } catch (error) {
        if (error.code !== 403) throw error;
        refusal ??= error;
      }
    }
    const provisioned = own.size * 400;
    model.say(`${own.size} of ${tenants.length} tenants have a container, then the account is full (${refusal.code}, substatus
      ${refusal.substatus}). Together they have ${provisioned} RU/s.`);
    const all = work(80, (tenant) => own.get(tenant));
    const before = await model.rush('two seconds', null, all.filter((operation) => operation.container), { perSecond: 40 });
    const used = before.ru / before.seconds;
    model.say(`They used ${used.toFixed(0)} RU/s: ${percent(used / provisioned)} of what they have.
      ${all.length - before.offered} requests of the other tenants could not even be sent.`);

    model.chapter('What is seen');
    await model.command(['stats', 'guide'], { lines: 6 });

    model.chapter('The advice');
    model.say(`Advice is about the key of one container; about all of them, the figures above say it. What would one container for
      all of this need? By the application's log:`);
    const advice = await model.adviseLog(before, '/tenant', { lines: 12 });

    model.chapter('The cure');
    for (const container of own.values()) await container.delete();
    const shared = await model.container('notes', '/tenant', { partitions: 4 });
    const after = await model.rush('everybody', shared, work(80, () => shared), { perSecond: 40 });
    model.say(`Provisioned before: ${provisioned} RU/s for ${own.size} tenants. After: 800 RU/s for ${tenants.length}, of whose requests
      ${percent(after.throttledShare)} were refused. A large tenant can have its own container still: docs/guide/run tenants-tiered.`);
    return {
      before: { ...before.figures(), tenants: own.size, provisioned, unserved: all.length - before.offered },
      after: { ...after.figures(), tenants: tenants.length, provisioned: 800 },
      refusal: { code: refusal.code, substatus: refusal.substatus }, advice,
    };
  },
};
