// Partition keys: what the advisor proposes and why, what another key would have done, what key a document gets, and stories of
// keys that went wrong.
import { fill, h, tabs } from './dom.js';
import { adminContainer, containerPath, request, session } from './session.js';
import { show } from './dialog.js';
import { go } from './route.js';
import { chooser } from './partitions.js';

const parts = {
  advice: ['Advice', () => import('./advice.js')],
  whatif: ['What if', () => import('./whatif.js')],
  try: ['Try a document', () => import('./trykey.js')],
  guide: ['Guide', () => import('./guide.js')],
};

export async function view(main, where) {
  if (!where.container) return chooser(main, 'keys');
  let definition;
  try {
    definition = (await request('GET', containerPath(where.database, where.container))).json;
  } catch (error) {
    fill(main, show(error));
    return undefined;
  }
  const ids = Object.keys(parts).filter((id) => id !== 'guide' || (session.owner && !session.readOnly));
  const tab = ids.includes(where.tab) ? where.tab : 'advice';
  const body = h('div', { class: 'tab-body', role: 'tabpanel', 'aria-label': parts[tab][0] });
  fill(main, h('div', { class: 'head' }, h('h1', null, h('span', { class: 'dim' }, where.database, ' / '), where.container),
    h('span', { class: 'pill' }, 'key ', definition.partitionKey?.paths.join(', ') ?? 'none')),
  tabs(ids.map((id) => [id, parts[id][0]]), tab, (id) => id !== tab && go('keys', where.database, where.container, id), 'Keys'), body);
  const module = await parts[tab][1]();
  return module.view(body, { ...where, definition, base: adminContainer(where.database, where.container) });
}
