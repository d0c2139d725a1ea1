// How a query was run, as a picture: where it looked, what it read, what is left, what that cost, and what would be cheaper.
import { h } from './dom.js';
import { number, ru } from './format.js';

const box = (title, big, ...lines) => h('div', { class: 'step' }, h('small', null, title), h('b', null, big), lines.filter(Boolean).map((line) => h('span', null, line)));

function access(plan) {
  const { kind, index } = plan.access ?? {};
  if (kind === 'index' && index) return box(index.composite ? 'composite index' : 'index', index.path ?? (index.paths ?? []).join(', '), `${number(index.ranges)} range${index.ranges === 1 ? '' : 's'}`, index.estimatedEntries !== undefined && `about ${number(index.estimatedEntries)} entries expected`);
  return box('access', { point: 'one item by key and id', scan: 'every item', nothing: 'nothing to read' }[kind] ?? kind ?? '?', kind === 'scan' && 'no index helps');
}

export function explained(plan) {
  if (!plan) return h('p', { class: 'dim' }, 'Run the query with “Explain”.');
  const actual = plan.actual ?? {};
  const parts = Object.entries(plan.charge ?? {}).filter(([name, value]) => name !== 'total' && value > 0);
  const total = plan.charge?.total || 1;
  const stages = (plan.pushed ?? []).map((one) => one.stage);
  return h('div', { class: 'plan' },
    h('div', { class: 'flow', role: 'img', 'aria-label': `Plan: ${plan.access?.kind}, ${plan.partitions?.read} of ${plan.partitions?.all} partitions, ${actual.itemsLoaded} items loaded, ${actual.itemsMatched} match` },
      box('asks', `${number(plan.partitions?.read)} of ${number(plan.partitions?.all)}`, 'physical partitions', plan.partitions?.all > 1 && plan.partitions.read === plan.partitions.all && 'no key in the filter'),
      access(plan),
      actual.indexEntries > 0 && box('reads', number(actual.indexEntries), 'index entries'),
      box('loads', number(actual.itemsLoaded), 'items'),
      box('keeps', number(actual.itemsMatched), 'that match', actual.itemsLoaded > 2 * actual.itemsMatched && `${number(actual.itemsLoaded - actual.itemsMatched)} in vain`),
      plan.operator && box('then', plan.operator, stages.length ? stages.join(' → ') : null, actual.spilledBytes > 0 && `${number(actual.spilledBytes)} bytes on disk`),
      box('gives', number(actual.rows), 'rows')),
    h('h3', null, 'What it cost: ', ru(plan.charge?.total)),
    h('div', { class: 'cost-bar' }, parts.map(([name, value], at) => h('div', { class: `cost part-${at % 6}`, style: { flexGrow: String(value / total) }, title: `${name} ${ru(value)}` }, `${name} ${number(value)}`))),
    h('h3', null, 'Advice'),
    (plan.advice ?? []).length ? h('ul', null, plan.advice.map((one) => h('li', null, one.text))) : h('p', { class: 'dim' }, 'No index would make this cheaper.'),
    (plan.access?.weighed ?? []).length > 1 && h('details', null, h('summary', null, `${plan.access.weighed.length} ways were weighed`),
      h('ul', null, plan.access.weighed.map((one) => h('li', null, `${one.path ?? (one.paths ?? []).join(', ')}: about ${number(one.estimatedEntries)} entries`)))),
    h('details', null, h('summary', null, 'As JSON'), h('pre', { class: 'json', tabindex: '0' }, JSON.stringify(plan, null, 2))));
}
