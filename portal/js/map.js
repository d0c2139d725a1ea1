// The map: the key space from left to right, each physical partition where its keys are, coloured by load, size or node; and the
// partitions as a list. Asked for again every second, so splits, merges and moves are seen as they happen.
import { button, field, fill, h, select } from './dom.js';
import { admin, session } from './session.js';
import { notice } from './dialog.js';
import { repeat } from './live.js';
import { canvas, css, heatColour, nodeColour } from './colours.js';
import { virtualList } from './virtual.js';
import { migrationPanel } from './migration.js';
import { bytes, number, percent } from './format.js';
import { tried } from './plan.js';

const stripHeight = 92;

// Where a bound lies among the keys: hashes of version 2 go from 00 to 3F.
export function bound(hex, end) {
  if (hex === '') return 0;
  if (hex === 'FF') return 1;
  const at = parseInt(hex.slice(0, 12).padEnd(12, '0'), 16) / 0x400000000000;
  return Number.isFinite(at) && at <= 1 ? at : end;
}

// Left and right of each partition, 0 to 1.
export function layout(partitions, by) {
  if (by === 'bytes') {
    const all = partitions.reduce((n, one) => n + one.bytes + 1, 0);
    let at = 0;
    return partitions.map((one) => [at / all, (at += one.bytes + 1) / all]);
  }
  const hashed = by === 'keys' && partitions.every((one) => !Number.isNaN(bound(one.minInclusive, NaN)) && !Number.isNaN(bound(one.maxExclusive, NaN)));
  return partitions.map((one, at) => (hashed ? [bound(one.minInclusive), bound(one.maxExclusive)] : [at / partitions.length, (at + 1) / partitions.length]));
}

export async function view(main, { base, about, tell, database, container }) {
  const state = { partitions: about.partitions, load: new Map(), minutes: 1, chosen: null, nodes: [], migration: about.migration };
  const write = !session.readOnly;
  const element = h('canvas', { class: 'map', tabindex: '0', role: 'img', id: 'map', 'aria-label': 'The map of partitions, being read' });
  const tip = h('div', { class: 'tip', hidden: true });
  const width = select([['keys', 'as wide as their keys'], ['bytes', 'as wide as their bytes'], ['even', 'all alike']], { 'aria-label': 'Width', onchange: () => draw() });
  const colour = select([['load', 'coloured by load'], ['throttled', 'coloured by 429s'], ['bytes', 'coloured by size'], ['node', 'coloured by node']], { 'aria-label': 'Colour', onchange: () => draw() });
  const legend = h('div', { class: 'legend small dim' });
  const migrating = migrationPanel(base, () => look());
  const actions = h('section', { class: 'panel', 'aria-label': 'The chosen partition', hidden: true });
  const list = virtualList({ height: 34, label: 'Physical partitions', render: row });
  list.element.classList.add('partition-list');

  fill(main, migrating.element,
    h('section', { class: 'panel' }, h('div', { class: 'row tools' }, width, colour, write && button('Isolate a key…', isolate, { id: 'isolate' }), legend),
      h('div', { class: 'map-place' }, element, tip),
      h('div', { class: 'row between small dim' }, h('span', null, 'first key'), h('span', null, 'last key'))),
    actions,
    h('section', { class: 'panel' }, h('div', { class: 'partition-row partition-head', 'aria-hidden': 'true' }, ['Partition', 'Node', 'Size', 'Items', 'Share', 'RU/s, last minute', '429', ''].map((text) => h('span', null, text))), list.element));

  const paint = canvas(element, stripHeight, (context, wide, tall) => {
    const places = layout(state.partitions, width.value);
    const value = values();
    const most = Math.max(1e-9, ...value);
    const names = [...new Set(state.partitions.map((one) => one.node))].sort();
    context.clearRect(0, 0, wide, tall);
    state.places = places;
    state.partitions.forEach((one, at) => {
      const left = places[at][0] * wide;
      const right = places[at][1] * wide;
      const w = Math.max(0.4, right - left - (right - left > 4 ? 1.5 : 0));
      context.fillStyle = colour.value === 'node' ? nodeColour(names.indexOf(one.node)) : heatColour(value[at] / most);
      context.fillRect(left, 8, w, tall - 28);
      if (one.underWay) {
        context.fillStyle = css('--warn');
        context.fillRect(left, 2, w, 5);
      }
      if (one.id === state.chosen) {
        context.strokeStyle = css('--ink');
        context.lineWidth = 2;
        context.strokeRect(left + 1, 9, Math.max(1, w - 2), tall - 30);
      }
      if (right - left > 34) {
        context.fillStyle = css('--dim');
        context.font = '11px system-ui';
        context.textAlign = 'center';
        context.fillText(one.id, (left + right) / 2, tall - 5);
      }
    });
    element.setAttribute('aria-label', `${state.partitions.length} physical partitions; the busiest is ${busiest()?.id ?? 'none'}`);
    fill(legend, colour.value === 'node' ? names.slice(0, 8).map((name, at) => h('span', null, h('i', { style: { background: nodeColour(at) } }), name))
      : [h('span', null, '0'), h('i', { class: 'ramp', style: { background: `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(heatColour).join(',')})` } }), h('span', null, colour.value === 'bytes' ? bytes(most) : colour.value === 'load' ? `${number(most)} RU/s` : `${number(most)} a minute`)]);
  });

  function values() {
    return state.partitions.map((one) => (colour.value === 'bytes' ? one.bytes : colour.value === 'throttled' ? state.load.get(one.id)?.throttled ?? 0 : (state.load.get(one.id)?.ru ?? 0) / 60));
  }
  const busiest = () => state.partitions.reduce((best, one) => ((state.load.get(one.id)?.ru ?? 0) > (state.load.get(best?.id)?.ru ?? 0) ? one : best), state.partitions[0]);

  function at(event) {
    const box = element.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const index = (state.places ?? []).findIndex(([left, right]) => x >= left && x < right);
    return state.partitions[index];
  }
  element.addEventListener('mousemove', (event) => {
    const one = at(event);
    tip.hidden = !one;
    if (!one) return;
    const load = state.load.get(one.id);
    fill(tip, h('b', null, `Partition ${one.id}`), h('br'), `${bytes(one.bytes)}, ${number(one.items)} items on ${one.node}`, h('br'), `${number((load?.ru ?? 0) / 60)} RU/s, ${number(load?.throttled ?? 0)} refused in the last minute`);
    tip.style.left = `${Math.min(event.offsetX + 12, element.clientWidth - 220)}px`;
  });
  element.addEventListener('mouseleave', () => (tip.hidden = true));
  element.addEventListener('click', (event) => choose(at(event)?.id));
  element.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const now = state.partitions.findIndex((one) => one.id === state.chosen);
    choose(state.partitions[Math.max(0, Math.min(state.partitions.length - 1, now + step))].id);
    event.preventDefault();
  });

  function row(one) {
    const load = state.load.get(one.id);
    const most = Math.max(1, ...[...state.load.values()].map((other) => other.ru));
    return h('div', { class: `partition-row${one.id === state.chosen ? ' current' : ''}` },
      h('button', { type: 'button', class: 'quiet', data: { row: one.id }, onclick: () => choose(one.id), 'aria-label': `Partition ${one.id}` }, one.id),
      h('span', null, one.node), h('span', null, bytes(one.bytes)), h('span', null, number(one.items)), h('span', null, percent(one.share)),
      h('span', { class: 'bar-cell' }, h('i', { style: { width: `${((load?.ru ?? 0) / most) * 100}%`, background: heatColour(0.25 + ((load?.ru ?? 0) / most) * 0.75) } }), h('b', null, number((load?.ru ?? 0) / 60))),
      h('span', { class: load?.throttled ? 'bad' : '' }, number(load?.throttled ?? 0)),
      h('span', null, one.underWay ? h('span', { class: 'badge warn' }, one.underWay) : one.cut ? h('span', { class: 'badge' }, one.cut) : ''));
  }

  function choose(id) {
    state.chosen = id ?? null;
    const one = state.partitions.find((other) => other.id === id);
    const index = state.partitions.indexOf(one);
    const next = state.partitions[index + 1];
    actions.hidden = !one;
    if (one) fill(actions, h('div', { class: 'head' }, h('h2', null, `Partition ${one.id}`), h('span', { class: 'dim small' }, h('code', null, one.minInclusive || 'the first key'), ' to ', h('code', null, one.maxExclusive)),
      write && h('div', { class: 'buttons' },
        button('Split…', () => split(one), { id: 'split' }),
        next && button(`Merge with ${next.id}…`, () => merge(one, next), { id: 'merge' }),
        session.owner && button('Move…', () => move(one), { id: 'move' }))),
    h('p', { class: 'small dim' }, one.parents?.length ? `Made from ${one.parents.join(', ')}. ` : '', `Epoch ${one.epoch}. Share of the throughput ${percent(one.share)}.`));
    draw();
    list.reveal(index);
  }

  const begun = (what) => { notice(what); return look(); };

  async function change(title, fields, yes, path, body, said) {
    if (await tried(title.text, { content: title.fields, inputs: fields, yes, path, body })) await begun(said());
  }

  async function split(one) {
    const pieces = h('input', { type: 'number', min: 2, max: 64, value: 2 });
    await change({ text: `Split partition ${one.id}`, fields: field('Into', pieces, 'partitions of about as many bytes each') }, [pieces], 'Split it', `${base}/partitions/${encodeURIComponent(one.id)}/split`,
      () => ({ pieces: Number(pieces.value) }), () => `Partition ${one.id} is being split.`);
  }

  async function merge(one, next) {
    await change({ text: `Merge ${one.id} and ${next.id}` }, [], 'Merge them', `${base}/partitions/merge`, () => ({ partitions: [one.id, next.id] }), () => `Partitions ${one.id} and ${next.id} are being merged.`);
  }

  async function move(one) {
    const { nodes } = (await admin('GET', 'nodes')).json;
    const others = nodes.filter((node) => node.name !== one.node);
    if (!others.length) return notice('There is no other node. `orrery node add` adds one.', 'bad');
    const to = select(others.map((node) => [node.name, `${node.name}: ${node.state}, ${number(node.partitions)} partitions, ${bytes(node.bytesFree)} free`]));
    return change({ text: `Move partition ${one.id}`, fields: field('To the node', to) }, [to], 'Move it', `${base}/partitions/${encodeURIComponent(one.id)}/move`, () => ({ node: to.value }), () => `Partition ${one.id} moves to ${to.value}.`);
  }

  async function isolate() {
    const { isolateDialog } = await import('./top.js');
    if (await isolateDialog(base, '')) await look();
  }

  async function look() {
    const [shape, heat] = await Promise.all([admin('GET', `${base}/partitions`), admin('GET', `${base}/heat?minutes=2&points=2`)]);
    state.partitions = shape.json.partitions;
    state.load = new Map();
    // The last whole minute, and the one that has begun where it is busier by now.
    for (const point of heat.json.points)
      for (const span of point.spans) {
        const known = state.load.get(span.id);
        if (!known || span.ru >= known.ru) state.load.set(span.id, span);
      }
    migrating.set(shape.json.migration);
    if (state.chosen && !state.partitions.some((one) => one.id === state.chosen)) choose(null);
    tell(state.partitions);
    draw();
  }

  function draw() {
    paint.redraw();
    list.set(state.partitions);
  }

  const stop = repeat(look, () => (state.partitions.length > 2000 ? 5000 : 1000));
  return () => {
    stop();
    paint.stop();
    migrating.stop();
  };
}
