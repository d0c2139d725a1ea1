// The plan of a command of MongoDB as a picture: its stages from where documents are found to where they are given, and what
// would be cheaper.
import { h } from './dom.js';
import { number, ru } from './format.js';
import { relaxed } from './ejson.js';

const words = { COLLSCAN: 'every document', IXSCAN: 'index', FETCH: 'loads documents', SORT: 'sorts', LIMIT: 'stops early', SKIP: 'skips', PROJECTION_SIMPLE: 'keeps some fields', PROJECTION_DEFAULT: 'makes fields', PROJECTION_COVERED: 'from the index alone', IDHACK: 'one document by _id', EOF: 'nothing to read', SHARD_MERGE: 'merges shards', SHARD_FILTER: 'of its shard', COUNT: 'counts', COUNT_SCAN: 'counts in the index', OR: 'either of', UPDATE: 'updates', DELETE: 'deletes' };

// Stages from the innermost to the outermost; the first branch stands for all.
function stagesOf(plan) {
  const found = [];
  for (let at = plan; at && typeof at === 'object'; at = at.inputStage ?? at.inputStages?.[0] ?? at.shards?.[0]?.winningPlan) if (at.stage) found.unshift(at);
  return found;
}

function plannerOf(reply) {
  const first = reply.stages?.[0]?.$cursor ?? reply;
  return { planner: first.queryPlanner, statistics: first.executionStats, then: (reply.stages ?? []).slice(1).map((one) => Object.keys(one)[0]) };
}

// Fields of a filter that an index could begin with: those compared with a value first, then ranges.
export function indexFor(filter, sort) {
  const equal = [];
  const range = [];
  for (const [name, value] of Object.entries(filter ?? {})) {
    if (name.startsWith('$')) continue;
    const operator = value && typeof value === 'object' && !Array.isArray(value) ? Object.keys(value)[0] : null;
    if (!operator?.startsWith('$') || ['$eq', '$in', '$oid', '$date', '$numberLong', '$numberDecimal', '$binary'].includes(operator)) equal.push([name, 1]);
    else if (['$gt', '$gte', '$lt', '$lte'].includes(operator)) range.push([name, 1]);
  }
  const order = Object.entries(sort ?? {}).filter(([name]) => !equal.some(([other]) => other === name));
  return Object.fromEntries([...equal, ...order, ...range.filter(([name]) => !order.some(([other]) => other === name))]);
}

export function planPicture(reply, command, name) {
  const { planner, statistics, then } = plannerOf(relaxed(reply));
  if (!planner) return h('pre', { class: 'json', tabindex: '0' }, JSON.stringify(relaxed(reply), null, 2));
  const stages = stagesOf(planner.winningPlan);
  const inner = command.explain ?? command;
  const filter = inner.filter ?? inner.query ?? inner.pipeline?.[0]?.$match ?? inner.updates?.[0]?.q ?? inner.deletes?.[0]?.q;
  const wanted = indexFor(filter, inner.sort);
  const scans = stages.some((one) => one.stage === 'COLLSCAN');
  const sorts = stages.some((one) => one.stage === 'SORT');
  const advice = [];
  if (scans && Object.keys(wanted).length) advice.push(['Every document is read. An index would find them: ', `${name}.createIndex(${JSON.stringify(wanted)})`]);
  else if (sorts && Object.keys(wanted).length) advice.push(['Documents are sorted after they were found. An index in this order gives them sorted: ', `${name}.createIndex(${JSON.stringify(wanted)})`]);
  if (statistics && statistics.totalDocsExamined > 10 * Math.max(1, statistics.nReturned) && !scans) advice.push([`${number(statistics.totalDocsExamined)} documents are read for ${number(statistics.nReturned)}: the index does not begin with what tells them apart.`, null]);
  const box = (one) => h('div', { class: 'step' }, h('small', null, one.stage), h('b', null, one.indexName ?? words[one.stage] ?? one.stage.toLowerCase()),
    one.keyPattern && h('span', null, JSON.stringify(one.keyPattern)), one.sortPattern && h('span', null, JSON.stringify(one.sortPattern)), one.limitAmount !== undefined && h('span', null, number(one.limitAmount)), one.filter && h('span', null, 'with a filter'));
  return h('div', { class: 'plan' },
    h('div', { class: 'flow', role: 'img', 'aria-label': `Plan: ${stages.map((one) => one.stage).join(', then ')}` }, stages.map(box), then.map((one) => h('div', { class: 'step' }, h('small', null, 'then'), h('b', null, one))),
      statistics && h('div', { class: 'step' }, h('small', null, 'gives'), h('b', null, number(statistics.nReturned)), h('span', null, 'documents'))),
    statistics && h('div', { class: 'figures' }, h('span', null, h('b', null, number(statistics.totalKeysExamined)), ' index entries'), h('span', null, h('b', null, number(statistics.totalDocsExamined)), ' documents read'), h('span', null, h('b', null, ru(statistics.requestCharge ?? 0)))),
    h('h3', null, 'Advice'),
    advice.length ? h('ul', null, advice.map(([said, code]) => h('li', null, said, code && h('code', null, code)))) : h('p', { class: 'dim' }, 'No index would make this cheaper.'),
    h('details', null, h('summary', null, 'As JSON'), h('pre', { class: 'json', tabindex: '0' }, JSON.stringify(relaxed(reply), null, 2))));
}
