// Keys that spend the most, and those too hot or too large for their partition, with what to do about each.
import { button, field, fill, h, select, table } from './dom.js';
import { admin, session } from './session.js';
import { attempt, confirm, form, notice } from './dialog.js';
import { repeat } from './live.js';
import { migrationPanel } from './migration.js';
import { bytes, key as keyText, number, percent, plural, ru } from './format.js';
import { typed } from './keypath.js';
import { tried } from './plan.js';

export async function isolateDialog(base, preset) {
  const key = h('input', { type: 'text', value: preset, autocomplete: 'off', id: 'isolate-key' });
  const body = () => (key.value ? { partitionKey: typed(key.value) } : null);
  const done = await tried('Isolate a key', { content: [field('Partition key value', key, 'text as it is, or JSON: ["acme", 7]'), h('p', { class: 'small dim' }, 'The key gets a physical partition for itself; its neighbours stay in what is left.')],
    inputs: [key], yes: 'Isolate it', path: `${base}/isolate`, body });
  if (done) notice(`The key ${key.value} gets a partition of its own.`);
  return done;
}

async function promoteDialog(base, preset, container) {
  const key = h('input', { type: 'text', value: preset });
  const to = h('input', { type: 'text', value: `${container}-${preset.replace(/[^\w-]+/g, '-')}` });
  const throughput = h('input', { type: 'number', min: 400, step: 100, value: 1000 });
  const body = (dryRun) => ({ partitionKey: typed(key.value), to: to.value, throughput: Number(throughput.value), dryRun });
  const planned = await form('A container of its own', [field('Partition key value', key), field('Name of the container', to), field('RU/s', throughput)], 'Try it out', async () => (await admin('POST', `${base}/promote`, { body: body(true) })).json);
  if (!planned) return;
  if (!(await confirm('What will happen', [h('p', null, `${plural(planned.keyItems, 'item')} (${bytes(planned.keyBytes)}) of the key ${key.value} go to “${to.value}”${planned.exists ? ', which exists' : ', which is made'}; ${bytes(planned.bytesToCopy)} are copied. Both containers serve the key until the grace period is ended.`)], 'Promote it'))) return;
  await attempt(null, async () => {
    await admin('POST', `${base}/promote`, { body: body(false) });
    notice(`The key ${key.value} gets the container “${to.value}”.`);
  });
}

async function reserveDialog(base, one) {
  const reserved = h('input', { type: 'number', min: 0, value: 0 });
  const cap = h('input', { type: 'number', min: 0, value: 0 });
  const done = await form(`RU/s of the key ${keyText(one.partitionKey)}`, [field('Kept for it', reserved, '0: nothing is kept'), field('At most', cap, '0: as much as there is')], 'Set', () => admin('POST', `${base}/throughput`, { body: { keys: [{ key: one.partitionKey, reserved: Number(reserved.value), cap: Number(cap.value) }] } }));
  if (done) notice('Set.');
}

// A key that has, or had, a container of its own, and the steps back.
function promotion(base, one, act) {
  const steps = [
    one.state === 'promoted' && ['Bring it back…', 'demote', 'the key goes back to its first container; both serve it until the grace period is ended.'],
    one.grace && ['End the grace period…', 'end', 'the container the key has left no longer serves it.'],
    ['Forget…', 'forget', 'the tie is cut: both containers take all keys, and what each has of this one stays there.'],
  ].filter(Boolean);
  return [h('b', null, keyText(one.partitionKey)), `${one.container} → ${one.to}`, h('span', { class: 'badge' }, one.state), one.grace ? 'both serve it' : '', `${number(one.items)} items, ${bytes(one.bytes)}`,
    !session.readOnly && h('div', { class: 'buttons' }, steps.map(([text, step, happens]) => button(text, () => act(one, step, happens), { class: 'quiet' })))];
}

const what = { isolate: 'give it a partition of its own', throughput: 'raise the container’s throughput', spread: 'spread it over several key values, or choose another key' };

export async function view(main, { base, container, tell }) {
  const write = !session.readOnly;
  const minutes = select([['5', 'last 5 minutes'], ['15', 'last 15 minutes'], ['60', 'last hour']], { 'aria-label': 'Time', onchange: () => look() });
  const trouble = h('div');
  const top = h('div');
  const promoted = h('section', { class: 'panel', hidden: true, 'aria-label': 'Containers of their own' });
  const problem = h('div');
  const migrating = migrationPanel(base, () => look());
  fill(main, problem, migrating.element, h('section', { class: 'panel' }, h('h2', null, 'Too hot or too large'), trouble),
    h('section', { class: 'panel' }, h('div', { class: 'head' }, h('h2', null, 'Keys that spend the most'), minutes), top), promoted);

  async function act(one, step, happens) {
    if (!(await confirm(`The key ${keyText(one.partitionKey)}`, h('p', null, `What will happen: ${happens}`), 'Do it', step === 'forget'))) return;
    await attempt(null, async () => {
      await admin('POST', `${base}/promote/${step}`, { body: { partitionKey: one.partitionKey } });
      await look();
    });
  }

  const value = (one) => (one.partitionKey?.length === 1 && typeof one.partitionKey[0] === 'string' ? one.partitionKey[0] : JSON.stringify(one.partitionKey));
  const buttons = (one) => write && h('div', { class: 'buttons' },
    button('Isolate…', async () => { if (await isolateDialog(base, value(one))) await look(); }, { class: 'isolate-key' }),
    button('Own container…', () => attempt(null, () => promoteDialog(base, value(one), container)), { class: 'quiet' }),
    button('RU/s…', () => attempt(null, () => reserveDialog(base, one)), { class: 'quiet' }));

  async function look() {
    if (document.querySelector('dialog')) return;
    const [keys, hot, shape, own] = await Promise.all([
      admin('GET', `${base}/keys?minutes=${minutes.value}&max=50`), admin('GET', `${base}/hot`),
      admin('GET', `${base}/partitions`), admin('GET', `${base}/promote`)]);
    promoted.hidden = !own.json.promotions.length;
    fill(promoted, h('h2', null, 'Containers of their own'), table(['Key', 'From and to', 'State', 'Grace period', 'Holds', ''], own.json.promotions.map((one) => promotion(base, one, act)), { label: 'Promotions' }));
    migrating.set(shape.json.migration);
    tell(shape.json.partitions);
    fill(trouble, hot.json.keys.length ? table(['Key', 'Trouble', 'Figures', 'What to do', ''], hot.json.keys.map((one) => [
      h('b', null, keyText(one.partitionKey)), h('span', { class: 'badge bad' }, one.trouble),
      one.trouble === 'large' ? `${bytes(one.bytes)} of ${bytes(one.bytesMax)}` : `${number(one.ruPerSecond)} RU/s, wants ${number(one.ruPerSecondWanted)}; ${percent(one.throttledShare)} refused`,
      [what[one.do] ?? one.do, one.advice && h('div', { class: 'small dim' }, one.advice)], buttons(one)]), { label: 'Keys in trouble' })
      : h('p', { class: 'dim' }, 'No key is too hot or too large for its partition.'));
    const most = Math.max(1, ...keys.json.keys.map((one) => one.ru));
    fill(top, keys.json.keys.length ? table(['Key', 'Partition', 'RU', 'Of its partition', 'Requests in the hour', '429', ''], keys.json.keys.map((one) => [
      h('b', null, keyText(one.partitionKey)), one.partition,
      h('span', { class: 'bar-cell' }, h('i', { style: { width: `${(one.ru / most) * 100}%` } }), h('b', null, ru(one.ru))),
      percent(one.shareOfPartition), number(one.hour.requests), h('span', { class: one.hour.throttled ? 'bad' : '' }, number(one.hour.throttled)), buttons(one)]), { label: 'Keys that spend the most' })
      : h('p', { class: 'dim' }, 'Nothing was asked in this time.'));
  }
  const stop = repeat(() => attempt(problem.firstChild ? problem : null, look), 3000);
  return () => stop();
}
