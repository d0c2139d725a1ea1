// One container's data, in tabs.
import { fill, h, tabs } from './dom.js';
import { containerPath, request, session } from './session.js';
import { show } from './dialog.js';
import { go } from './route.js';
import { view as home } from './home.js';

const parts = {
  items: ['Items', () => import('./items.js')],
  query: ['Query', () => import('./query.js')],
  mongo: ['MongoDB', () => import('./mongo.js')],
  graph: ['Graph', () => import('./graph.js')],
  scripts: ['Scripts', () => import('./scripts.js')],
  feed: ['Change feed', () => import('./feed.js')],
  settings: ['Settings', () => import('./definition.js')],
};

// Which tabs there are for a container: what a token cannot ask is not offered, nor APIs that are off.
function offered(definition) {
  const collection = definition.orrery?.identity === '_id'; // of MongoDB; others know items by their id
  const fits = { mongo: collection && session.about.apis.mongo, graph: !collection && session.about.apis.gremlin };
  return Object.keys(parts).filter((id) => (fits[id] ?? true) && (!session.token || ['items', 'query', 'feed'].includes(id)));
}

export async function view(main, where) {
  if (!where.container) return home(main);
  let definition;
  try {
    definition = (await request('GET', containerPath(where.database, where.container))).json;
  } catch (error) {
    fill(main, show(error));
    return undefined;
  }
  const ids = offered(definition);
  const tab = ids.includes(where.tab) ? where.tab : 'items';
  const body = h('div', { class: 'tab-body', role: 'tabpanel', 'aria-label': parts[tab][0] });
  fill(main,
    h('div', { class: 'head' },
      h('h1', null, h('span', { class: 'dim' }, where.database, ' / '), where.container),
      h('span', { class: 'pill', title: 'partition key' }, 'key ', definition.partitionKey?.systemKey ? '_id' : definition.partitionKey?.paths.join(', ') ?? 'none')),
    tabs(ids.map((id) => [id, parts[id][0]]), tab, (id) => id !== tab && go('data', where.database, where.container, id), 'What to do with the container'),
    body);
  const module = await parts[tab][1]();
  return module.view(body, { ...where, definition, path: containerPath(where.database, where.container) });
}
