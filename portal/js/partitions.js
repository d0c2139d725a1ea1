// The physical partitions of a container: the map of its key space as it is now, its heat, its keys.
import { fill, h, tabs } from './dom.js';
import { admin, adminContainer, containerPath, request } from './session.js';
import { show } from './dialog.js';
import { go } from './route.js';
import { count as sideCount } from './side.js';
import { bytes, number, plural } from './format.js';

const parts = {
  map: ['Map', () => import('./map.js')],
  heat: ['Heat', () => import('./heat.js')],
  top: ['Top keys', () => import('./top.js')],
  directory: ['Directory', () => import('./directory.js')],
};

export async function chooser(main, section) {
  const { address } = await import('./route.js');
  const { tree, reload } = await import('./side.js');
  if (!tree.loaded) await reload();
  const all = tree.databases.flatMap((database) => database.containers.map((container) => ({ database, container })));
  all.sort((a, b) => b.container.partitions - a.container.partitions);
  fill(main, h('h1', null, 'Choose a container'),
    all.length ? h('div', { class: 'cards' }, all.slice(0, 100).map(({ database, container }) => h('a', { class: 'card link', href: address(section, database.id, container.id) },
      h('small', null, database.id), h('b', null, container.id), h('small', null, plural(container.partitions, 'physical partition')))))
      : h('p', { class: 'dim' }, 'There is none yet.'));
}

export async function view(main, where) {
  if (!where.container) return chooser(main, 'partitions');
  const base = adminContainer(where.database, where.container);
  let about, definition;
  try {
    about = (await admin('GET', `${base}/partitions`)).json;
    definition = (await request('GET', containerPath(where.database, where.container))).json;
  } catch (error) {
    fill(main, show(error));
    return undefined;
  }
  const ids = Object.keys(parts).filter((id) => id !== 'directory' || definition.orrery?.strategy?.kind === 'lookup');
  const tab = ids.includes(where.tab) ? where.tab : 'map';
  const body = h('div', { class: 'tab-body', role: 'tabpanel', 'aria-label': parts[tab][0] });
  const figures = h('div', { class: 'figures', id: 'partition-figures' });
  const tell = (partitions) => {
    sideCount(where.database, where.container, partitions.length);
    fill(figures,
    h('span', null, h('b', { id: 'partition-count' }, number(partitions.length)), partitions.length === 1 ? ' physical partition' : ' physical partitions'),
    h('span', null, h('b', null, number(partitions.reduce((n, one) => n + one.items, 0))), ' items'),
    h('span', null, h('b', null, bytes(partitions.reduce((n, one) => n + one.bytes, 0)))));
  };
  tell(about.partitions);
  fill(main,
    h('div', { class: 'head' }, h('h1', null, h('span', { class: 'dim' }, where.database, ' / '), where.container), figures),
    tabs(ids.map((id) => [id, parts[id][0]]), tab, (id) => id !== tab && go('partitions', where.database, where.container, id), 'Partitions'),
    body);
  const module = await parts[tab][1]();
  return module.view(body, { ...where, base, about, tell });
}
