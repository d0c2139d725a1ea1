// Elements. Everything that comes from data becomes a text node: there is no way here to make markup of it, and the
// Content-Security-Policy (trusted types) lets no other way through.

const svgNames = new Set(['svg', 'g', 'rect', 'path', 'line', 'text', 'circle', 'title', 'polyline']);

// h('button', { class: 'main', onclick: f }, 'Run', ' ', h('kbd', null, 'Ctrl'))
export function h(tag, attributes, ...children) {
  const svg = svgNames.has(tag);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || (value === false && !name.startsWith('aria-'))) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(element.style, value);
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (!svg && ['value', 'checked', 'disabled', 'selected', 'hidden', 'indeterminate'].includes(name)) element[name] = value;
    else element.setAttribute(name, value === true && !name.startsWith('aria-') ? '' : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

export const $ = (selector) => document.querySelector(selector);

let ids = 0;

// A label and its field, in one column.
export function field(label, input, hint) {
  input.id ||= `field-${++ids}`;
  const under = hint ? h('small', { id: `${input.id}-hint` }, hint) : null;
  if (under) input.setAttribute('aria-describedby', under.id);
  return h('div', { class: 'field' }, h('label', { for: input.id }, label), input, under);
}

export function check(label, options = {}) {
  const input = h('input', { type: 'checkbox', id: `field-${++ids}`, ...options });
  const element = h('div', { class: 'check' }, input, h('label', { for: input.id }, label));
  return { element, input };
}

export function select(options, attributes = {}) {
  return h('select', attributes, options.map((option) => {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    return h('option', { value, selected: value === attributes.chosen }, text);
  }));
}

export function button(text, onclick, attributes = {}) {
  const element = h('button', { type: 'button', ...attributes }, text);
  // While what it does is under way it cannot be done again.
  element.addEventListener('click', async (event) => {
    const result = onclick(event);
    if (!(result instanceof Promise)) return;
    element.disabled = true;
    element.setAttribute('aria-busy', 'true');
    try {
      await result;
    } finally {
      element.disabled = false;
      element.removeAttribute('aria-busy');
    }
  });
  return element;
}

export function table(heads, rows, attributes = {}) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': attributes.label ?? heads.map(String).join(', ') },
    h('table', { class: attributes.class },
      h('thead', null, h('tr', null, heads.map((head) => h('th', { scope: 'col' }, head)))),
      h('tbody', null, rows.map((row) => (row instanceof Node ? row : h('tr', null, row.map((cell) => h('td', null, cell))))))));
}

// Tabs: names are [id, text]; show(id) is called for the one chosen.
export function tabs(names, chosen, show, label) {
  const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': label });
  const choose = (id, focus) => {
    for (const tab of bar.children) {
      const is = tab.dataset.id === id;
      tab.setAttribute('aria-selected', is);
      tab.tabIndex = is ? 0 : -1;
      if (is && focus) tab.focus();
    }
    show(id);
  };
  append(bar, names.map(([id, text]) => h('button', {
    type: 'button', role: 'tab', data: { id }, 'aria-selected': id === chosen, tabindex: id === chosen ? 0 : -1,
    onclick: () => choose(id),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = names.findIndex(([other]) => other === id);
      choose(names[(at + step + names.length) % names.length][0], true);
    },
  }, text)));
  return bar;
}
