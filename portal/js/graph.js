// The container as a graph: Gremlin run, its vertices and edges drawn; a click on a vertex brings its neighbours.
import { button, fill, h, tabs } from './dom.js';
import { admin, session } from './session.js';
import { attempt } from './dialog.js';
import { editor } from './editor.js';
import { css, isDark, nodeColour } from './colours.js';
import { duration, number, ru } from './format.js';
import { resultTable, save } from './results.js';
import { learn, namesOf, past } from './remember.js';

const steps = ['V', 'E', 'addV', 'addE', 'property', 'has', 'hasLabel', 'hasId', 'hasNot', 'out', 'in', 'both', 'outE', 'inE', 'bothE', 'outV', 'inV', 'otherV', 'values', 'valueMap', 'properties', 'id', 'label', 'path', 'simplePath', 'cyclicPath', 'repeat', 'times', 'until', 'emit', 'limit', 'range', 'tail', 'dedup', 'order', 'by', 'count', 'sum', 'max', 'min', 'mean', 'group', 'groupCount', 'fold', 'unfold', 'project', 'select', 'as', 'where', 'is', 'not', 'and', 'or', 'choose', 'coalesce', 'optional', 'union', 'local', 'constant', 'store', 'aggregate', 'cap', 'tree', 'drop', 'sample', 'from', 'to', 'executionProfile'];
const predicates = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'between', 'inside', 'outside', 'within', 'without'];
const earlier = past('orrery-gremlin');

// Steps behind a dot; else predicates, and names of labels and properties that were seen, which are texts.
function completer(id) {
  const call = (label) => ({ label, type: 'method', apply: `${label}(` });
  return (context) => {
    const word = context.matchBefore(/[\w]*/);
    const before = context.state.sliceDoc(Math.max(0, word.from - 1), word.from);
    if (before === '.') return { from: word.from, options: steps.map(call) };
    if (before === "'" || before === '"') return { from: word.from, options: namesOf(id).map((label) => ({ label, type: 'property' })) };
    if (!context.explicit && word.from === word.to) return null;
    return { from: word.from, options: [{ label: 'g', type: 'keyword' }, ...predicates.map(call), call('__')] };
  };
}

const most = 1500; // vertices and edges that are drawn

let library = null;
async function load() {
  if (!session.about?.libraries) return null;
  if (!library) {
    // It would add a style element of its own, which the page's policy refuses; style.css has what it says.
    if (!document.getElementById('__________cytoscape_stylesheet')) document.head.append(h('meta', { id: '__________cytoscape_stylesheet' }));
    library = (await import('../libraries/graph.js')).default;
  }
  return library;
}

// Vertices and edges anywhere in results: lists, maps and paths are looked through.
function elementsOf(value, found = { vertices: new Map(), edges: new Map() }, depth = 0) {
  if (!value || typeof value !== 'object' || depth > 8) return found;
  if (value.type === 'vertex' && value.id !== undefined) found.vertices.set(String(value.id), value);
  else if (value.type === 'edge' && value.id !== undefined) found.edges.set(String(value.id), value);
  else for (const inner of Array.isArray(value) ? value : Object.values(value)) elementsOf(inner, found, depth + 1);
  return found;
}

export async function view(main, { database, container }) {
  const path = `gremlin/${encodeURIComponent(database)}/${encodeURIComponent(container)}`;
  const run1 = (gremlin, bindings) => admin('POST', path, { body: { gremlin, bindings } });
  const host = h('div', { class: 'query-text short' });
  const problem = h('div');
  const figures = h('div', { class: 'figures', role: 'status' });
  const place = h('div', { class: 'graph-place', id: 'graph', role: 'img', 'aria-label': 'The graph' });
  const about = h('pre', { class: 'json', hidden: true, tabindex: '0', 'aria-label': 'The vertex or edge' });
  const rows = h('div', { hidden: true });
  const again = h('select', { 'aria-label': 'Scripts of before', onchange: () => { if (again.value) text.value = again.value; again.value = ''; } });
  const complete = completer(path);
  const history = () => fill(again, h('option', { value: '' }, 'History…'), earlier.all().map((one) => h('option', { value: one }, one.replace(/\s+/g, ' ').slice(0, 80))));
  const bar = tabs([['draw', 'Drawing'], ['table', 'Table'], ['json', 'JSON']], 'draw', (id) => { how = id; draw(); }, 'How results are shown');
  let how = 'draw';
  let data = [];
  let drawing = null;
  fill(main, host, h('div', { class: 'row tools' }, button('Run', run, { class: 'main', id: 'run-gremlin', title: 'Ctrl+Enter' }), button('The whole graph', whole, { id: 'whole-graph' }), button('Clear', () => { drawing?.elements().remove(); }, { class: 'quiet' }), again, button('Export JSON', () => save(`${container}.json`, JSON.stringify(data, null, 2), 'application/json'), { class: 'quiet' })), problem, figures, bar,
    h('div', { class: 'graph-beside' }, place, about), rows);
  const text = await editor(host, { language: 'javascript', label: 'Gremlin', value: earlier.all()[0] ?? 'g.V().limit(50)', run, complete });
  history();
  const cytoscape = await load().catch(() => null);
  if (cytoscape) drawing = cytoscape({ container: place, minZoom: 0.1, maxZoom: 4, style: style() });
  else fill(place, h('p', { class: 'dim' }, 'This server was built without the library that draws: see the table.'));
  const repaint = () => drawing?.style(style());
  window.addEventListener('themechange', repaint);
  drawing?.on('tap', 'node', (event) => expand(event.target));
  drawing?.on('tap', 'edge', (event) => tell(event.target.data('whole')));

  const labels = [];
  function style() {
    return [
      { selector: 'node', style: { label: 'data(name)', 'background-color': 'data(colour)', color: css('--ink'), 'font-size': 10, width: 22, height: 22, 'text-valign': 'bottom', 'text-margin-y': 3 } },
      { selector: 'edge', style: { label: 'data(name)', 'curve-style': 'bezier', 'target-arrow-shape': 'triangle', width: 1.5, 'line-color': isDark() ? '#4b5875' : '#b6bfd2', 'target-arrow-color': isDark() ? '#4b5875' : '#b6bfd2', 'font-size': 8, color: css('--dim'), 'text-rotation': 'autorotate' } },
      { selector: ':selected', style: { 'border-width': 3, 'border-color': css('--warn'), 'line-color': css('--warn') } },
    ];
  }

  function colourOf(label) {
    if (!labels.includes(label)) labels.push(label);
    return nodeColour(labels.indexOf(label));
  }

  function add(found) {
    if (!drawing) return;
    const fresh = [];
    const vertex = (id, label, whole) => {
      if (drawing.getElementById(`v${id}`).length || fresh.some((one) => one.data.id === `v${id}`) || drawing.elements().length + fresh.length >= most) return;
      fresh.push({ data: { id: `v${id}`, vertex: id, name: String(whole?.properties?.name?.[0]?.value ?? id).slice(0, 40), colour: colourOf(label), whole: whole ?? { id, label } } });
    };
    for (const [id, one] of found.vertices) vertex(id, one.label, one);
    for (const [id, one] of found.edges) {
      vertex(String(one.outV), one.outVLabel);
      vertex(String(one.inV), one.inVLabel);
      if (!drawing.getElementById(`e${id}`).length && drawing.elements().length + fresh.length < most)
        fresh.push({ data: { id: `e${id}`, source: `v${one.outV}`, target: `v${one.inV}`, name: one.label, whole: one } });
    }
    if (!fresh.length) return;
    const ids = new Set(fresh.map((one) => one.data.id));
    drawing.add(fresh.filter((one) => !one.data.source || ((ids.has(one.data.source) || drawing.getElementById(one.data.source).length) && (ids.has(one.data.target) || drawing.getElementById(one.data.target).length))));
    drawing.layout({ name: 'cose', animate: false, nodeDimensionsIncludeLabels: true, padding: 20 }).run();
    if (drawing.zoom() > 1.4) drawing.zoom(1.4); // a small graph need not fill the page
    drawing.center();
    place.setAttribute('aria-label', `The graph: ${drawing.nodes().length} vertices, ${drawing.edges().length} edges`);
  }

  function tell(whole) {
    about.hidden = false;
    fill(about, JSON.stringify(whole, null, 2));
  }

  async function expand(node) {
    tell(node.data('whole'));
    await attempt(problem, async () => {
      const { json } = await run1('g.V(x).bothE().limit(50)', { x: node.data('vertex') });
      const vertices = (await run1('g.V(x).both().limit(50)', { x: node.data('vertex') })).json;
      add(elementsOf([json.result.data, vertices.result.data]));
    });
  }

  async function run() {
    await attempt(problem, async () => {
      const begun = performance.now();
      earlier.add(text.value);
      history();
      const { json } = await run1(text.value);
      data = json.result.data ?? [];
      tell1(data);
      fill(figures, h('span', null, h('b', null, number(data.length)), ' results'), h('span', null, h('b', null, ru(json.status.attributes?.['x-ms-total-request-charge'] ?? 0))), h('span', null, duration(performance.now() - begun)));
      add(elementsOf(data));
      draw();
    });
  }

  // Labels and names of properties, for completion.
  function tell1(list) {
    const found = elementsOf(list);
    learn(path, [...found.vertices.values(), ...found.edges.values()].slice(0, 50).map((one) => ({ [one.label]: 0, ...Object.fromEntries(Object.keys(one.properties ?? {}).map((name) => [name, 0])) })));
  }

  async function whole() {
    await attempt(problem, async () => {
      const [vertices, edges] = [(await run1('g.V().limit(300)')).json, (await run1('g.E().limit(900)')).json];
      data = [...(vertices.result.data ?? []), ...(edges.result.data ?? [])];
      tell1(data);
      const charge = [vertices, edges].reduce((sum, one) => sum + (one.status.attributes?.['x-ms-total-request-charge'] ?? 0), 0);
      fill(figures, h('span', null, `${number(vertices.result.data?.length ?? 0)} vertices, ${number(edges.result.data?.length ?? 0)} edges`), h('span', null, h('b', null, ru(charge))));
      add(elementsOf(data));
      draw();
    });
  }

  function draw() {
    place.parentElement.hidden = how !== 'draw';
    rows.hidden = how === 'draw';
    if (how === 'table') fill(rows, resultTable(data));
    else if (how === 'json') fill(rows, h('pre', { class: 'json', tabindex: '0', 'aria-label': 'Results' }, JSON.stringify(data, null, 2)));
    else drawing?.resize();
  }
  return () => {
    window.removeEventListener('themechange', repaint);
    drawing?.destroy();
    text.destroy();
  };
}
