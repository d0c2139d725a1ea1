// Requests that were slow, as far as the server keeps them; and records of any shape as a table.
import { fill, h, table } from './dom.js';
import { admin } from './session.js';
import { show } from './dialog.js';
import { repeat } from './live.js';
import { columnsOf } from './results.js';
import { moment } from './format.js';

export function recordTable(rows, label) {
  const { names } = columnsOf(rows);
  return table(names, rows.map((one) => names.map((name) => {
    const value = one[name];
    if (name === 'time' && value) return moment(value);
    return value === undefined ? '' : typeof value === 'object' ? h('code', null, JSON.stringify(value)) : String(value);
  })), { label });
}

export async function view(main) {
  const problem = h('div');
  const place = h('section', { class: 'panel' });
  fill(main, problem, place);
  return repeat(async () => {
    try {
      const { requests } = (await admin('GET', 'slow?max=200')).json;
      fill(problem);
      fill(place, h('h2', null, 'Slow requests'), requests.length ? recordTable(requests, 'Slow requests') : h('p', { class: 'dim' }, 'None since the start.'));
    } catch (error) {
      fill(place, h('h2', null, 'Slow requests'));
      fill(problem, error.status === 404 ? h('p', { class: 'dim' }, 'This server does not keep slow requests.') : show(error));
    }
  }, 3000);
}
