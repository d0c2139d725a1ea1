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

    model.chapter('From the first item');
    model.say('A rule is carried out behind the first write. Where that is too late, it is resident: with a zone for these tenants, where they go is known before they come.');
    const ledger = await model.container('ledger', '/tenant', {
      orrery: {
        strategy: { kind: 'lookup', shards: 16, zones: [{ keyLike: 'eu-*', first: 8, last: 15 }] },
        placement: [{ keyLike: ['eu-*'], region: 'eu', resident: true }],
      },
    });
    await model.fill(ledger, [...tenants, 'eu-newcomer'].map((tenant) => ({ id: tenant, tenant, text: padding(100) })));
    const { node: first, id } = await placeOf({ url: model.server.url, database: 'guide', container: 'ledger' }, ['eu-newcomer']);
    const refused = await model.orrery(['partition', 'move', 'guide', 'ledger', `${id}`, 'dallas']).catch((error) => error.message);
    model.say(`To move their partition to Dallas is refused: "${/keys of container.*/.exec(refused)?.[0]}".`);
    const proof = await model.command(['verify'], { lines: 3 });
    model.say(`eu-newcomer was in ${first} from its first item on, nothing moves it away, and every item of such a key was looked at.`);
    return { before, after, first, refused: /resident/.test(refused), resident: Number(/(\d+) items of resident keys/.exec(proof)?.[1]), items: { had: tenants.length, have } };
  },
};
