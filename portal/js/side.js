// The list of databases and containers beside every view.
import { $, button, fill, h } from './dom.js';
import { admin, session } from './session.js';
import { virtualList } from './virtual.js';
import { address } from './route.js';
import { plural } from './format.js';

export const tree = { databases: [], loaded: false };

let list = null;
let filter = '';
let where = {};
const closed = new Set();

export async function reload() {
  if (session.scope) tree.databases = [{ id: session.scope.database, containers: [{ id: session.scope.container }] }];
  else tree.databases = (await admin('GET', 'databases')).json.databases;
  tree.loaded = true;
  draw();
}

export const containerOf = (database, container) =>
  tree.databases.find((one) => one.id === database)?.containers.find((one) => one.id === container);

// A container has another number of partitions.
export function count(database, container, partitions) {
  const known = containerOf(database, container);
  if (!known || known.partitions === partitions) return;
  known.partitions = partitions;
  draw();
}

function rows() {
  const wanted = filter.toLowerCase();
  return tree.databases.flatMap((database) => {
    const whole = database.id.toLowerCase().includes(wanted);
    const containers = database.containers.filter((one) => whole || one.id.toLowerCase().includes(wanted));
    if (!whole && !containers.length) return [];
    return [{ database }, ...(closed.has(database.id) && !wanted ? [] : containers.map((container) => ({ database, container })))];
  });
}

function row({ database, container }) {
  if (!container)
    return h('div', { class: 'side-database' },
      h('button', { type: 'button', class: 'quiet', data: { row: database.id }, 'aria-expanded': !closed.has(database.id), 'aria-label': `${database.id}: show or hide containers`, onclick: () => {
        if (!closed.delete(database.id)) closed.add(database.id);
        draw();
      } }, closed.has(database.id) ? '▸' : '▾', ' ', h('span', null, database.id)),
      h('small', null, database.containers.length));
  const section = ['data', 'partitions', 'keys'].includes(where.section) ? where.section : 'data';
  const is = where.database === database.id && where.container === container.id;
  return h('div', { class: `side-container${is ? ' current' : ''}` },
    h('a', { href: address(section, database.id, container.id), data: { row: `${database.id}/${container.id}` }, 'aria-current': is ? 'true' : undefined }, container.id),
    container.partitions > 1 && h('small', { title: plural(container.partitions, 'physical partition') }, `${container.partitions}p`));
}

function draw() {
  if (!list) return;
  const all = rows();
  list.set(all);
  fill($('#side-count'), `${plural(tree.databases.length, 'database')}, ${plural(tree.databases.reduce((n, one) => n + one.containers.length, 0), 'container')}`);
}

export function side(place) {
  where = place;
  const aside = $('#side');
  aside.hidden = false;
  if (!list || !aside.firstChild) {
    list = virtualList({ height: 30, render: row, label: 'Databases and containers' });
    const input = h('input', { type: 'search', placeholder: 'Filter…', 'aria-label': 'Filter databases and containers', oninput: () => {
      filter = input.value;
      draw();
    } });
    fill(aside, h('div', { class: 'side-head' }, input, button('↻', () => reload(), { class: 'quiet', 'aria-label': 'Load the list again', title: 'Load again' })),
      list.element, h('div', { id: 'side-count', class: 'dim small' }));
  }
  if (!tree.loaded || tree.account !== session.account || tree.key !== session.key) {
    Object.assign(tree, { databases: [], account: session.account, key: session.key });
    reload().catch(() => {});
  } else draw();
  list.reveal(rows().findIndex((one) => one.database.id === where.database && one.container?.id === where.container));
}
