// The advisor's candidates side by side, with reasons and pictures; and the way from one to a re-key: dry run first.
import { button, fill, h } from './dom.js';
import { admin, session } from './session.js';
import { attempt, confirm } from './dialog.js';
import { repeat } from './live.js';
import { migrationPanel } from './migration.js';
import { number, percent } from './format.js';
import { rekeyDialog } from './rekey.js';
import { address } from './route.js';

// Figures worth a bar: name, value 0 to 1, and whether much of it is bad.
const bars = (f) => [
  ['requests to one logical partition', f.oneLogicalPartition, false],
  ['largest value’s share of bytes', f.largestShareOfBytes, true],
  ['busiest value’s share of RU', f.largestShareOfRu, true],
  ['requests that ask every partition', f.asksEveryPartition, true],
];

export function bar(text, share, bad) {
  const level = bad ? (share > 0.3 ? 'bad' : share > 0.1 ? 'warn' : 'good') : share > 0.9 ? 'good' : share > 0.5 ? 'warn' : 'bad';
  return h('div', { class: 'meter-row' }, h('span', null, text), h('span', { class: `meter ${level}` }, h('i', { style: { width: `${Math.max(1, Math.min(1, share) * 100)}%` } })), h('b', null, percent(share)));
}

const paths = (key) => (Array.isArray(key) ? key : key?.paths ?? key?.partitionKey?.paths ?? []).join(', ');

function candidate(one, current, rekey, where) {
  return h('article', { class: `panel candidate${one.good ? ' good-one' : ''}`, 'aria-label': one.key },
    h('div', { class: 'head' }, h('h2', null, h('code', null, one.key)), h('span', { class: `badge ${one.good ? 'good' : 'bad'}` }, current ? 'today' : one.good ? 'good' : 'not good'), h('span', { class: 'dim small' }, one.kind)),
    h('div', { class: 'meters' }, bars(one.figures).map(([text, share, bad]) => bar(text, share, bad))),
    h('div', { class: 'figures small' },
      h('span', null, h('b', null, number(one.figures.values)), ' values'),
      h('span', null, h('b', null, number(one.figures.ruPerRequest)), ' RU a request'),
      h('span', null, 'needs ', h('b', null, number(one.figures.ruPerSecond)), ' RU/s')),
    h('p', { class: 'small' }, one.reason),
    !current && one.definition && h('div', { class: 'buttons' },
      !session.readOnly && button('Re-key: dry run…', () => rekey(one), { class: `rekey ${one.good ? 'main' : ''}`, data: { key: one.key } }),
      h('a', { class: 'small', href: address('keys', where.database, where.container, 'whatif') }, 'what if?')));
}

export async function view(main, { base, database, container }) {
  const where = { database, container };
  const problem = h('div');
  const body = h('div', { class: 'tab-body' });
  const state = h('section', { class: 'panel', hidden: true, 'aria-label': 'Re-key', id: 'rekey-state' });
  const migrating = migrationPanel(base, () => look());
  fill(main, problem, migrating.element, state, body);

  async function rekey(one) {
    await attempt(problem, async () => { if (await rekeyDialog(base, container, one.definition, one.key)) await look(); });
  }

  let underWay = false;
  async function look() {
    const { json } = await admin('GET', `${base}/rekey`);
    migrating.set(json.underWay ? json.migration : undefined);
    const former = json.formerly;
    state.hidden = !former && !json.underWay;
    if (json.underWay) fill(state, h('h2', null, 'A re-key is under way'), h('p', null, `To the key ${paths(json.next)}. Conflicts: ${number(json.migration?.conflicts ?? 0)}.`), !session.readOnly && button('Take it back', () => attempt(problem, () => admin('DELETE', `${base}/rekey`))));
    else if (former) fill(state, h('div', { class: 'head' }, h('h2', null, 'The key is ', h('code', null, paths(json.partitionKey))), h('span', { class: 'badge good' }, 're-keyed')),
      h('p', null, 'The old key is still understood, for applications that do not know the new one.'),
      !session.readOnly && button('End the grace period…', async () => {
        if (!(await confirm('End the grace period?', h('p', null, 'Requests that name the old key are refused from then on.'), 'End it', true))) return;
        await attempt(problem, async () => { await admin('POST', `${base}/rekey/end-grace`); await look(); });
      }));
    if (underWay && !json.underWay) await advise();
    underWay = json.underWay;
  }

  async function advise() {
    await attempt(problem, async () => {
      const { json } = await admin('GET', `${base}/advice`);
      fill(body, h('section', { class: 'panel' }, h('h2', null, json.summary),
        h('div', { class: 'figures' }, h('span', null, h('b', null, number(json.documents)), ' items looked at'), h('span', null, h('b', null, number(json.operations)), ' operations recorded'), h('span', null, h('b', null, number(json.ruPerSecond)), ' RU/s at the busiest, with today’s key')),
        !json.enoughToJudge && h('p', { class: 'warn' }, 'There is too little to judge by yet: use the container for a while.')),
      h('div', { class: 'candidates' }, json.current && candidate(json.current, true, rekey, where), json.proposals.slice(0, 12).map((one) => candidate(one, false, rekey, where))));
    });
  }

  await advise();
  const stop = repeat(look, 1500);
  return () => stop();
}
