import { dice, padding, percent } from '../model.mjs';

const busy = ['acme', 'globex', 'initech'];

// Three tenants that want 100 RU/s each, and many small ones.
function work(count, name) {
  const roll = dice(31);
  return Array.from({ length: count }, (_, i) => {
    const tenant = roll(10) < 8 ? busy[roll(busy.length)] : `tenant-${roll(200)}`;
    return { create: { id: `${name}${i}`, tenant, note: padding(200) } };
  });
}

export default {
  title: 'Shards: a directory of virtual shards',
  async tell(model) {
    await model.start({ 'migration.pause_ms': '20ms' });
    model.say(`Tenants are placed by a directory: a line says which of 16 virtual shards a tenant is in, and who has no line follows a
      hash. Virtual shards are dealt to eight physical partitions, two each.`);

    model.chapter('The mistake');
    model.say('Three tenants that work together were put next to each other, into shard 3. All three have grown.');
    const tenants = await model.container('tenants', '/tenant', {
      orrery: { strategy: { kind: 'lookup', shards: 16, default: 'hash', directory: busy.map((key) => ({ key: [key], shard: 3 })) } },
    });
    const before = await model.rush('two seconds', tenants, work(160, 'a'), { perSecond: 80 });

    model.chapter('What is seen');
    await model.command(['stats', 'guide', 'tenants', '--keys'], { lines: 5 });
    await model.command(['directory', 'list', 'guide', 'tenants'], { lines: 6 });

    model.chapter('The cure');
    model.say('Lines of the directory are changed while clients work, all at once; what the tenants hold is carried over.');
    const had = await model.count('tenants');
    await model.command(['directory', 'set', 'guide', 'tenants', 'globex', '8', 'initech', '12']);
    const { partitions: of } = await model.answer(['directory', 'find', 'guide', 'tenants', 'globex']);
    const have = await model.count('tenants');
    const after = await model.rush('the same again', tenants, work(160, 'b'), { perSecond: 80 });
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}. Of ${had} items there are ${have}.`);
    return { before: before.figures(), after: after.figures(), items: { had, have }, globex: of.length };
  },
};
