// The server: figures of the last hour, nodes, jobs, slow requests, connections, settings, log, accounts.
import { fill, h, tabs } from './dom.js';
import { session } from './session.js';
import { go } from './route.js';

const parts = {
  overview: ['Overview', () => import('./overview.js')],
  nodes: ['Nodes', () => import('./nodes.js')],
  jobs: ['Jobs', () => import('./jobs.js')],
  slow: ['Slow requests', () => import('./slow.js')],
  connections: ['Connections', () => import('./connections.js')],
  settings: ['Settings', () => import('./settings.js')],
  log: ['Log', () => import('./log.js')],
  audit: ['Audit', () => import('./audit.js')],
  accounts: ['Accounts and keys', () => import('./accounts.js')],
};

const ofTheServer = new Set(['nodes', 'connections', 'settings', 'log']);

export async function view(main, where) {
  const ids = Object.keys(parts).filter((id) => session.owner || !ofTheServer.has(id));
  const tab = ids.includes(where.tab) ? where.tab : 'overview';
  const body = h('div', { class: 'tab-body', role: 'tabpanel', 'aria-label': parts[tab][0] });
  fill(main, h('div', { class: 'head' }, h('h1', null, 'Operations')), tabs(ids.map((id) => [id, parts[id][0]]), tab, (id) => id !== tab && go('operations', id), 'Operations'), body);
  const module = await parts[tab][1]();
  return module.view(body, where);
}
