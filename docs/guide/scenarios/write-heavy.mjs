import { again, ask, dice, padding, percent } from '../model.mjs';

const synthetic = { kind: 'randomSuffix', target: '/partitionKey', base: '/campaign', suffixes: 400 };

// Clicks on an advertisement: three campaigns run, one of them has just been on television. Now and then somebody looks at one.
function clicks(count) {
  const roll = dice(31);
  return Array.from({ length: count }, (_, i) => {
    const campaign = ['spring', 'autumn'][roll(20)] ?? 'winter';
    return i % 50 === 49 ? ask({ campaign }) : { create: { id: `k${i}`, campaign, agent: padding(150) } };
  });
}

export default {
  title: 'Write-heavy: counting clicks',
  async tell(model) {
    await model.start();
    const load = clicks(300);
    model.say(`Clicks are written and later counted by campaign, so the campaign is the key. A campaign that works is written to by
      everybody at once.`);

    model.chapter('The mistake');
    const byCampaign = await model.container('clicks', '/campaign');
    const before = await model.rush('two seconds', byCampaign, load);

    model.chapter('What is seen');
    await model.stats('clicks', { keys: true, lines: 6 });

    model.chapter('The advice');
    const advice = await model.adviseLog(before, '/campaign');
    const foretold = await model.whatIf(before, { current: '/campaign', key: '/campaign', more: ['--random-suffix', '400'] });

    model.chapter('The cure');
    model.say(`The id would do, if nobody ever asked for a campaign; then each question asks everywhere. So the campaign stays, with a
      random number from 1 to 400 behind it, drawn by the server as it writes. Each write costs 0.10 RU more for each physical
      partition, to see that the id is not there yet.`);
    const cured = await model.container('clicks2', ['/partitionKey'], { orrery: { synthetic } });
    const copied = await model.copy('clicks', 'clicks2');
    const after = await model.rush('the same again', cured, again(load));
    const ofWinter = ({ create }) => create?.campaign === 'winter';
    const counted = await model.count('clicks2', "WHERE c.campaign = 'winter'");
    const written = before.only(ofWinter).accepted + after.only(ofWinter).accepted;
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}:
      ${(after.accepted / before.accepted).toFixed(1)} times as many clicks were taken, and the ${counted} of winter are counted
      as before.`);
    return { before: before.figures(), after: after.figures(), copied, advice, foretold, counted, written };
  },
};
