import { padding } from '../model.mjs';
import { fanOut, shardList } from '../shards.mjs';

export default {
  title: 'Shards: one fails, and a client that asks all',
  async tell(model) {
    await model.start({}, ['--node', 'one=memory:', '--node', 'two=memory:', '--node', 'three=memory:']);
    model.say('Six physical partitions on three nodes. A dashboard asks all of them; then a node is away.');
    const orders = await model.container('orders', '/tenant', { partitions: 6 });
    await model.fill(orders, Array.from({ length: 60 }, (_, i) => ({ id: `o${i}`, tenant: `t${i}`, text: padding(100) })));
    const place = { url: model.server.url, database: 'guide', container: 'orders' };
    const whole = await fanOut(place, 'SELECT * FROM c');
    model.say(`A client of its own asks each shard of the shard list: ${whole.rows.length} items of ${whole.shards} shards.`);

    model.chapter('The mistake');
    await model.command(['node', 'pause', 'two']);
    const refused = await orders.items.query('SELECT * FROM c').fetchAll().then(() => 200, (error) => error.code);
    model.say(`All or nothing: a query over all keys is refused with ${refused}, though two thirds of the shards are there.`);

    model.chapter('The cure');
    const partial = await fanOut(place, 'SELECT * FROM c', { retries: 1 });
    model.say(`Asked shard by shard, ${partial.rows.length} items come, and it is known what is missing: ${partial.missing.length} shards of
      node "two". The header x-orrery-allow-partial asks the server for the same.`);
    const { missing: byHeader, rows: shown } = await fanOut.partial(place, 'SELECT * FROM c');
    // the node comes back while the client tries again
    const trying = fanOut(place, 'SELECT * FROM c', { retries: 200 });
    await model.command(['node', 'resume', 'two']);
    const after = await trying;
    model.say(`With retries, the missing shards answer as soon as the node is back: ${after.rows.length} items.`);
    const list = await shardList(place);
    return { whole: whole.rows.length, refused, partial: partial.rows.length, missing: partial.missing.length, byHeader: byHeader.length, shown: shown.length, after: after.rows.length, shards: list.shards.length };
  },
};
