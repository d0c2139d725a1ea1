import { padding } from '../model.mjs';
import { placeOf, until } from '../shards.mjs';

const tenants = ['eu-acme', 'eu-globex', 'us-initech', 'us-hooli'];

export default {
  title: 'Shards: regions',
  async tell(model) {
    await model.start({ 'migration.pause_ms': '20ms', 'node.oslo.region': 'eu', 'node.dallas.region': 'us' }, ['--node', 'oslo=memory:', '--node', 'dallas=memory:']);
    model.say('Two nodes, one in Europe and one in America. Tenants of Europe shall be stored in Europe, all others anywhere.');
    const orders = await model.container('orders', '/tenant', { partitions: 2 });
    await model.fill(orders, tenants.map((tenant) => ({ id: tenant, tenant, text: padding(100) })));
    const places = async () => {
      const found = {};
      for (const tenant of tenants) found[tenant] = (await placeOf({ url: model.server.url, database: 'guide', container: 'orders' }, [tenant])).node;
      return found;
    };

    model.chapter('The mistake');
    const before = await places();
    model.say(`By a hash they lie where it happens: ${Object.entries(before).map(([tenant, node]) => `${tenant} in ${node}`).join(', ')}.`);

    model.chapter('The cure');
    model.say('A placement rule by pattern; rules are carried out while clients work.');
    const { resource } = await orders.read();
    await orders.replace({ ...resource, orrery: { ...resource.orrery, placement: [{ keyLike: ['eu-*'], region: 'eu', isolate: true }] } });
    const after = await until(places, (found) => tenants.every((tenant) => !tenant.startsWith('eu-') || found[tenant] === 'oslo'));
    await model.command(['partition', 'list', 'guide', 'orders'], { lines: 12 });
    await model.command(['node', 'list'], { lines: 6 });
    const have = await model.count('orders');
    model.say(`Now: ${Object.entries(after).map(([tenant, node]) => `${tenant} in ${node}`).join(', ')}. All ${have} items are there.`);
    return { before, after, items: { had: tenants.length, have } };
  },
};
