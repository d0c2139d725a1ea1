// The heat map: time from left to right, the key space from top to bottom, colour for what was asked. A click shows a cell and the
// hottest keys of its minute; dragging chooses a stretch of time.
import { button, fill, h, select, table } from './dom.js';
import { admin } from './session.js';
import { attempt } from './dialog.js';
import { repeat } from './live.js';
import { canvas, css, heatColour } from './colours.js';
import { layout } from './map.js';
import { bytes, duration, key as keyText, moment, number, ru, time } from './format.js';

const measures = {
  ru: ['RU', (cell) => cell.ru, (n) => ru(n)],
  requests: ['requests', (cell) => cell.requests, number],
  throttled: ['429s', (cell) => cell.throttled, number],
  latency: ['latency, p99 or longest', (cell) => cell.latencyMs?.p99 ?? cell.latencyMs?.max ?? 0, duration],
  bytes: ['bytes in and out', (cell) => cell.bytesIn + cell.bytesOut, bytes],
};
const rangesMinutes = [['15', 'last 15 minutes'], ['60', 'last hour'], ['360', 'last 6 hours'], ['1440', 'last day'], ['10080', 'last week']];
const left = 84;
const bottom = 22;

export async function view(main, { base }) {
  const state = { answer: null, rows: [], cells: [], span: null, drag: null };
  const element = h('canvas', { class: 'heat', tabindex: '0', role: 'img', id: 'heat', 'aria-label': 'The heat map, being read' });
  const tip = h('div', { class: 'tip', hidden: true });
  const by = select([['span', 'by physical partition'], ['keys', 'by the hottest keys']], { 'aria-label': 'Rows', id: 'heat-by', onchange: () => look() });
  const measure = select(Object.entries(measures).map(([id, [text]]) => [id, text]), { 'aria-label': 'What is shown', id: 'heat-measure', onchange: () => draw() });
  const range = select(rangesMinutes, { 'aria-label': 'Time', chosen: '60', onchange: () => { state.span = null; look(); } });
  const back = button('Whole time', () => { state.span = null; return look(); }, { hidden: true, class: 'quiet' });
  const legend = h('span', { class: 'legend small dim' });
  const detail = h('div', { 'aria-live': 'polite' });
  const problem = h('div');
  fill(main, problem, h('section', { class: 'panel' },
    h('div', { class: 'row tools' }, measure, by, range, back, legend),
    h('div', { class: 'map-place' }, element, tip),
    h('p', { class: 'small dim' }, 'Lines mark splits ', h('span', { class: 'mark split-mark' }, '▏'), ', merges, moves and isolations. Click a cell for its figures and the hottest keys of that time; drag to zoom into a stretch.')),
  h('section', { class: 'panel', 'aria-label': 'Figures' }, detail));

  const paint = canvas(element, () => Math.max(260, Math.min(620, 60 + state.rows.length * (by.value === 'keys' ? 24 : 18))), (context, wide, tall) => {
    context.clearRect(0, 0, wide, tall);
    const { answer } = state;
    if (!answer) return;
    const [, value, text] = measures[measure.value];
    const from = Date.parse(answer.from);
    const step = answer.minutes * 60_000;
    const to = Date.parse(answer.to) + step;
    const x = (at) => left + ((at - from) / (to - from)) * (wide - left - 4);
    const high = tall - bottom;
    let most = 1e-9;
    for (const cell of state.cells) most = Math.max(most, value(cell.data));
    context.fillStyle = heatColour(0);
    context.fillRect(left, 0, wide - left - 4, high);
    for (const cell of state.cells) {
      const amount = value(cell.data);
      if (!amount) continue;
      const a = x(cell.at);
      Object.assign(cell, { x0: a, x1: x(cell.at + step), y0: cell.top * high, y1: cell.bottom * high });
      context.fillStyle = heatColour(0.12 + 0.88 * (amount / most));
      context.fillRect(cell.x0, cell.y0, Math.max(1, cell.x1 - cell.x0 - 0.5), Math.max(1, cell.y1 - cell.y0 - 0.5));
    }
    context.font = '11px system-ui';
    context.fillStyle = css('--dim');
    context.textAlign = 'right';
    state.rows.forEach((row) => {
      if ((row.bottom - row.top) * high < 11) return;
      context.fillText(row.name.length > 13 ? `${row.name.slice(0, 12)}…` : row.name, left - 6, ((row.top + row.bottom) / 2) * high + 4);
    });
    context.textAlign = 'center';
    for (let n = 0; n <= 6; n++) {
      const at = from + ((to - from) * n) / 6;
      context.fillText(time(at).slice(0, 5), Math.max(left + 14, Math.min(wide - 20, x(at))), tall - 6);
    }
    for (const event of answer.events) {
      const at = x(Date.parse(event.at));
      context.strokeStyle = css(event.kind === 'split' ? '--teal' : event.kind === 'merge' ? '--accent' : '--warn');
      context.setLineDash(event.kind === 'split' ? [] : [4, 3]);
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, high);
      context.stroke();
    }
    context.setLineDash([]);
    if (state.drag) {
      context.fillStyle = 'rgba(99, 102, 241, 0.25)';
      context.fillRect(Math.min(state.drag.from, state.drag.to), 0, Math.abs(state.drag.to - state.drag.from), high);
    }
    state.scale = { from, to, step, wide };
    const hottest = state.cells.reduce((best, cell) => (!best || value(cell.data) > value(best.data) ? cell : best), null);
    element.setAttribute('aria-label', hottest && value(hottest.data) ? `Heat by ${measures[measure.value][0]}: the most is ${text(value(hottest.data))} in ${hottest.name} at ${time(hottest.at)}` : 'Heat: nothing was asked in this time');
    fill(legend, h('span', null, '0'), h('i', { class: 'ramp', style: { background: `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(heatColour).join(',')})` } }), h('span', null, most > 1e-9 ? `${text(most)} in ${answer.minutes === 1 ? 'a minute' : `${answer.minutes} minutes`}` : 'nothing'));
  });

  function shape() {
    const { answer } = state;
    if (by.value === 'keys') {
      const totals = new Map();
      for (const point of answer.points)
        for (const one of point.keys) totals.set(JSON.stringify(one.partitionKey), (totals.get(JSON.stringify(one.partitionKey)) ?? 0) + one.ru);
      const names = [...totals].sort((a, b) => b[1] - a[1]).slice(0, 40).map(([name]) => name);
      state.rows = names.map((name, at) => ({ name: keyText(JSON.parse(name)), top: at / names.length, bottom: (at + 1) / names.length }));
      const places = new Map(names.map((name, at) => [name, at]));
      state.cells = answer.points.flatMap((point) => point.keys.filter((one) => places.has(JSON.stringify(one.partitionKey))).map((one) => {
        const row = state.rows[places.get(JSON.stringify(one.partitionKey))];
        return { at: Date.parse(point.at), data: one, name: `key ${row.name}`, top: row.top, bottom: row.bottom };
      }));
      return;
    }
    const places = layout(answer.partitions, 'keys');
    const known = new Map(answer.partitions.map((one, at) => [one.id, { name: one.id, node: one.node, top: places[at][0], bottom: places[at][1], until: one.until }]));
    state.rows = [...known.values()].filter((one) => !one.until);
    state.cells = answer.points.flatMap((point) => point.spans.filter((one) => known.has(one.id)).map((one) => {
      const row = known.get(one.id);
      return { at: Date.parse(point.at), data: one, name: `partition ${one.id}`, top: row.top, bottom: row.bottom };
    }));
  }

  // Has all that was asked in the hour been asked in its last minutes? Then the rest of it would be an empty picture.
  function isYoung() {
    const last = Date.parse(state.answer?.points?.at(-1)?.at ?? '');
    const asked = (state.cells ?? []).filter((cell) => cell.data.requests > 0).map((cell) => cell.at);
    return !state.span && range.value === '60' && asked.length > 0 && Math.min(...asked) > last - 13 * 60_000;
  }

  async function look() {
    const span = state.span ? `from=${state.span[0]}&to=${state.span[1]}` : `minutes=${range.value}`;
    await attempt(problem, async () => {
      state.answer = (await admin('GET', `${base}/heat?by=${by.value}&${span}&points=240`)).json;
      shape();
    });
    if (!state.looked && isYoung()) {
      state.looked = true;
      range.value = '15';
      await look();
      return;
    }
    state.looked = true;
    back.hidden = !state.span;
    draw();
    if (!detail.firstChild) summary();
  }

  const draw = () => paint.redraw();

  function figures(data) {
    return [ru(data.ru), number(data.requests), number(data.throttled), bytes(data.bytesIn), bytes(data.bytesOut), duration(data.latencyMs?.mean), duration(data.latencyMs?.p99 ?? data.latencyMs?.max)];
  }
  const heads = ['RU', 'Requests', '429', 'In', 'Out', 'Mean', 'p99 or max'];

  // The hottest cells as a table: also what a screen reader reads of the map.
  function summary() {
    const best = [...state.cells].sort((a, b) => b.data.ru - a.data.ru).slice(0, 8);
    fill(detail, h('h2', null, 'Hottest'), best.length ? table(['When', 'Where', ...heads], best.map((cell) => [time(cell.at), cell.name, ...figures(cell.data)]), { label: 'Hottest cells' }) : h('p', { class: 'dim' }, 'Nothing was asked in this time.'));
  }

  async function open(cell) {
    const at = cell.at / 1000;
    fill(detail, h('h2', null, `${cell.name}, ${moment(cell.at)}`), table(heads, [figures(cell.data)], { label: 'The cell' }));
    await attempt(null, async () => {
      const keys = (await admin('GET', `${base}/heat?by=keys&from=${at}&to=${at + Math.max(0, state.answer.minutes * 60 - 60)}&points=1`)).json;
      const rows = keys.points.flatMap((point) => point.keys).filter((one) => !cell.data.id || one.partition === cell.data.id).slice(0, 16);
      detail.append(h('h3', null, 'Hottest keys there then'), rows.length ? table(['Key', 'Partition', ...heads], rows.map((one) => [keyText(one.partitionKey), one.partition, ...figures(one)]), { label: 'Hottest keys' }) : h('p', { class: 'dim' }, 'No single key stands out.'));
    });
  }

  function cellAt(event) {
    const box = element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return state.cells.findLast((cell) => x >= cell.x0 && x < cell.x1 && y >= cell.y0 && y < cell.y1);
  }
  element.addEventListener('mousemove', (event) => {
    if (state.drag) {
      state.drag.to = event.offsetX;
      return draw();
    }
    const cell = cellAt(event);
    tip.hidden = !cell;
    if (!cell) return undefined;
    fill(tip, h('b', null, cell.name), h('br'), time(cell.at), h('br'), `${ru(cell.data.ru)}, ${number(cell.data.requests)} requests, ${number(cell.data.throttled)} × 429`);
    tip.style.left = `${Math.min(event.offsetX + 12, element.clientWidth - 220)}px`;
    tip.style.top = `${event.offsetY + 12}px`;
    return undefined;
  });
  element.addEventListener('mouseleave', () => (tip.hidden = true));
  element.addEventListener('mousedown', (event) => (state.drag = { from: event.offsetX, to: event.offsetX }));
  element.addEventListener('mouseup', (event) => {
    const drag = state.drag;
    state.drag = null;
    if (!drag || !state.scale) return undefined;
    if (Math.abs(drag.to - drag.from) < 8) {
      const cell = cellAt(event);
      return cell && open(cell);
    }
    const { from, to, step, wide } = state.scale;
    const when = (x) => Math.floor((from + (Math.max(0, x - left) / (wide - left - 4)) * (to - from)) / step) * (step / 1000);
    state.span = [when(Math.min(drag.from, drag.to)), when(Math.max(drag.from, drag.to))];
    return look();
  });
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !state.cells.length) return;
    open([...state.cells].sort((a, b) => b.data.ru - a.data.ru)[0]);
  });

  const stop = repeat(async () => { if (!state.span) await look(); }, 5000);
  return () => {
    stop();
    paint.stop();
  };
}
