import { ask, dice, padding, percent } from '../model.mjs';

const ru = 50;

function products(count) {
  const roll = dice(29);
  return Array.from({ length: count }, (_, i) => {
    const category = `c${roll(80)}`;
    return { id: `p${i}`, sku: `sku-${i}`, category, price: roll(100), text: padding(100) };
  });
}

// The shop shows categories.
function visits(count) {
  const roll = dice(30);
  return Array.from({ length: count }, () => ask({ category: `c${roll(80)}` }));
}

export default {
  title: 'Read-heavy: the pages of a shop',
  async tell(model) {
    await model.start({ 'partition.ru_max': ru });
    const items = products(120);
    const room = { partitions: 8, throughput: 8 * ru };
    model.say(`A catalogue is read all the time and hardly written. The key is the article number: as even as can be. But what the
      shop asks for is a category, and nobody who asks knows the article numbers.`);

    model.chapter('The mistake');
    const bySku = await model.container('products', '/sku', room);
    await model.fill(bySku, items);
    const before = await model.rush('two seconds', bySku, visits(90), { perSecond: 45 });
    model.say(`Each page asks all eight physical partitions. With more partitions it costs more: the container does not scale by
      growing.`);

    model.chapter('What is seen');
    await model.stats('products');

    model.chapter('The advice');
    const advice = await model.advise('products');

    model.chapter('The cure');
    model.say('The key that the questions name: the category.');
    const byCategory = await model.container('products2', '/category', room);
    const copied = await model.copy('products', 'products2');
    const after = await model.rush('the same again', byCategory, visits(90), { perSecond: 45 });
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}. A page costs
      ${before.ruEach.toFixed(1)} RU before and ${after.ruEach.toFixed(1)} after.`);
    return { before: before.figures(), after: after.figures(), copied, advice };
  },
};
