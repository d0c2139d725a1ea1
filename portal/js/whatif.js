// What another key would have done with the traffic of before: sliders, and its heat and 429s beside today's.
import { field, fill, h, select } from './dom.js';
import { admin } from './session.js';
import { attempt } from './dialog.js';
import { canvas, heatColour } from './colours.js';
import { duration, number, percent, ru } from './format.js';

// A number on a scale of factors: 0 to 400 between least and most.
function slider(label, least, most, value, format, changed) {
  const input = h('input', { type: 'range', min: 0, max: 400, value: Math.round((Math.log(value / least) / Math.log(most / least)) * 400) });
  let moved = false; // until then it is just what it was
  const shown = h('output', null, format(value));
  const read = () => (moved ? Math.round(least * (most / least) ** (Number(input.value) / 400)) : value);
  input.addEventListener('input', () => {
    moved = true;
    fill(shown, format(read()));
  });
  input.addEventListener('change', changed);
  return { element: field([label, ' ', shown], input), read };
}

function panel(title, result, other) {
  const element = h('canvas', { role: 'img', 'aria-label': `${title}: ${percent(result.throttledShare)} refused, the busiest partition has ${percent(result.busiestShare)}` });
  const better = (mine, theirs) => (theirs === undefined ? '' : mine < theirs ? 'good' : mine > theirs ? 'bad' : '');
  const place = h('section', { class: 'panel', 'aria-label': title }, h('h2', null, title),
    h('div', { class: 'cards' },
      h('div', { class: `card ${better(result.throttledShare, other?.throttledShare)}` }, h('small', null, 'refused (429)'), h('b', null, percent(result.throttledShare))),
      h('div', { class: `card ${better(result.busiestShare, other?.busiestShare)}` }, h('small', null, 'busiest partition'), h('b', null, percent(result.busiestShare))),
      h('div', { class: `card ${better(result.latencyMsP99, other?.latencyMsP99)}` }, h('small', null, 'latency, p99'), h('b', null, duration(result.latencyMsP99))),
      h('div', { class: `card ${better(result.ru, other?.ru)}` }, h('small', null, 'spent'), h('b', null, ru(result.ru)))),
    h('div', { class: 'map-place' }, element),
    h('p', { class: 'small dim' }, `${number(result.partitions)} partitions from top to bottom, windows of ${duration(result.windowMs)} from left to right; red edges: refused. ${number(result.requests)} requests, ${number(result.ruPerSecond)} RU/s.`));
  requestAnimationFrame(() => canvas(element, Math.max(90, Math.min(320, result.partitions * 16)), (context, wide, tall) => {
    const most = Math.max(1e-9, ...result.heat.flat().map(([spent]) => spent));
    const w = wide / result.heat.length;
    result.heat.forEach((window, x) => window.forEach(([spent, , refused], y) => {
      const hh = tall / window.length;
      context.fillStyle = heatColour(spent ? 0.1 + 0.65 * (spent / most) : 0);
      context.fillRect(x * w, y * hh, Math.ceil(w), Math.ceil(hh));
      if (refused) {
        context.fillStyle = '#dc2626';
        context.fillRect(x * w, y * hh, Math.ceil(w), Math.max(2, Math.min(hh, hh * 0.35)));
      }
    }));
  }).redraw());
  return place;
}

export async function view(main, { base, definition }) {
  const problem = h('div');
  const out = h('div', { class: 'beside', id: 'whatif' });
  const today = (await admin('GET', base)).json;
  const key = h('input', { type: 'text', value: definition.partitionKey?.paths.join(',') ?? '/id', spellcheck: 'false', onchange: ask });
  const strategy = select([['hash', 'hashed'], ['range', 'in order (range)']], { onchange: ask });
  const suffix = select([['', 'no suffix'], ['random', 'and a random number'], ['computed', 'and a number computed from']], { onchange: ask });
  const hashed = h('input', { type: 'text', value: '/id', 'aria-label': 'Path the number is computed from', onchange: ask });
  const suffixes = slider('Suffixes', 2, 1000, 20, number, ask);
  const partitions = slider('Physical partitions', 1, 256, Math.max(1, today.partitions.length), number, ask);
  const throughput = slider('Throughput', 400, 1_000_000, Math.max(400, today.throughput?.ruPerSecond || 4000), (n) => `${number(n)} RU/s`, ask);
  const speed = slider('Load', 1, 100, 1, (n) => `${n} × as fast`, ask);
  fill(main, h('section', { class: 'panel' },
    h('div', { class: 'row' }, field('Key', key, '/a, or /a,/b for a hierarchical one'), field('Strategy', strategy), field('Suffix', suffix), field('computed from', hashed)),
    h('div', { class: 'row' }, partitions.element, throughput.element, speed.element, suffixes.element)), problem, out);

  let turn = 0;
  async function ask() {
    const mine = ++turn;
    hashed.disabled = suffix.value !== 'computed';
    const query = new URLSearchParams({ key: key.value.replaceAll(' ', ''), strategy: strategy.value, partitions: partitions.read(), throughput: throughput.read(), speed: speed.read() });
    if (suffix.value === 'random') query.set('random', suffixes.read());
    if (suffix.value === 'computed') query.set('computed', `${hashed.value}:${suffixes.read()}`);
    if (!out.firstChild) fill(out, h('p', { class: 'dim', role: 'status' }, 'The recorded requests are played again…'));
    await attempt(problem, async () => {
      const { json } = await admin('GET', `${base}/what-if?${query}`).catch((error) => { fill(out); throw error; });
      if (mine !== turn) return;
      fill(out, json.today && panel(`Today: ${json.currentKey}`, json.today), panel(`What if: ${json.key}`, json.whatIf, json.today));
    });
  }
  await ask();
}
