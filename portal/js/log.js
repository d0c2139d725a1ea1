// The end of the server's log.
import { fill, h, select } from './dom.js';
import { admin } from './session.js';
import { show } from './dialog.js';
import { repeat } from './live.js';
import { virtualList } from './virtual.js';
import { time } from './format.js';

export async function view(main) {
  const problem = h('div');
  const level = select([['debug', 'everything'], ['info', 'information and worse'], ['warning', 'warnings and errors'], ['error', 'errors']], { 'aria-label': 'Least level', onchange: () => draw() });
  const ranks = ['debug', 'info', 'warning', 'error'];
  const list = virtualList({ height: 26, label: 'Log', render: (one) => h('div', { class: `log-row ${one.level}` }, h('span', null, time(one.time)), h('b', null, one.level ?? ''), h('span', { title: one.rest }, one.event, ' ', h('code', null, one.rest))) });
  list.element.classList.add('tall-list');
  fill(main, problem, h('section', { class: 'panel' }, h('div', { class: 'head' }, h('h2', null, 'Log'), level), list.element));
  let lines = [];
  const parse = (line) => {
    const one = typeof line === 'string' ? JSON.parse(line) : line;
    const { time: at, level: of, event, ...rest } = one;
    return { time: at, level: of, event, rest: Object.entries(rest).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(' ') };
  };
  const draw = () => {
    const shown = lines.filter((one) => ranks.indexOf(one.level) >= ranks.indexOf(level.value));
    list.set(shown);
  };
  const stop = repeat(async () => {
    try {
      const { json } = await admin('GET', 'log?max=1000');
      lines = json.lines.map(parse).sort((a, b) => (a.time < b.time ? 1 : -1)); // the latest first
      fill(problem);
      draw();
    } catch (error) {
      fill(problem, error.status === 404 ? h('p', { class: 'dim' }, 'This server does not keep its log lines in memory: they go to its standard error.') : show(error));
    }
  }, 2000);
  return stop;
}
