import { ask, dice, padding, percent } from '../model.mjs';

const countries = ['in', 'in', 'in', 'in', 'in', 'in', 'in', 'us', 'br', 'de'];

// A profile and settings of each.
function users(count) {
  const roll = dice(11);
  return Array.from({ length: count }, (_, i) => {
    const one = { user: `u${i}`, country: countries[roll(10)], about: padding(300) };
    return [{ ...one, id: `u${i}-profile` }, { ...one, id: `u${i}-settings` }];
  }).flat();
}

// Half look at a user, half change something.
function visits(count, profiles, key) {
  const roll = dice(12);
  return Array.from({ length: count }, () => {
    const profile = profiles[roll(profiles.length)];
    return roll(2) ? ask({ [key]: profile[key], user: profile.user }) : { upsert: { ...profile, seen: roll(1e6) } };
  });
}

export default {
  title: 'User profiles',
  async tell(model) {
    await model.start();
    const profiles = users(60);
    model.say(`Users have a profile and settings, which are looked at together and changed one by one, always by who it
      is. Somebody chose the country as
      key, because a report wants it, and seven of ten users live in one country.`);

    model.chapter('The mistake');
    const byCountry = await model.container('profiles', '/country');
    await model.fill(byCountry, profiles);
    const before = await model.rush('two seconds', byCountry, visits(300, profiles, 'country'));

    model.chapter('What is seen');
    await model.stats('profiles', { keys: true, lines: 6 });

    model.chapter('The advice');
    const advice = await model.advise('profiles');
    const foretold = await model.whatIf(before, { current: '/country', key: '/user' });

    model.chapter('The cure');
    model.say(`A key that every request knows and that has many values: the user. It cannot change, which a country can.`);
    const byUser = await model.container('profiles2', '/user');
    const copied = await model.copy('profiles', 'profiles2');
    const after = await model.rush('the same again', byUser, visits(300, profiles, 'user'));
    model.say(`Refused before: ${percent(before.throttledShare)}. After: ${percent(after.throttledShare)}.`);
    return { before: before.figures(), after: after.figures(), copied, advice, foretold };
  },
};
