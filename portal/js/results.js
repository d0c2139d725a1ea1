// Rows of any shape as a table, and as files.
import { h, table } from './dom.js';

const hidden = new Set(['_rid', '_self', '_etag', '_attachments', '_ts', '_lsn']);
const columnsMax = 60;

export function columnsOf(rows) {
  const names = new Set();
  let values = false;
  for (const row of rows) {
    if (row && typeof row === 'object' && !Array.isArray(row)) Object.keys(row).forEach((name) => names.add(name));
    else values = true;
  }
  const whole = names.has('_rid') && names.has('_etag');
  const shown = [...names].filter((name) => !whole || !hidden.has(name)).slice(0, columnsMax);
  return { names: shown, values };
}

const cell = (value) => (value === undefined ? h('span', { class: 'dim' }, '–')
  : typeof value === 'string' ? value
    : typeof value === 'number' ? h('span', { class: 'num' }, String(value)) : h('code', null, JSON.stringify(value)));

export function resultTable(rows) {
  if (!rows.length) return h('p', { class: 'dim' }, 'No rows.');
  const { names, values } = columnsOf(rows);
  const heads = [...(values ? ['value'] : []), ...names];
  return table(heads, rows.map((row) => {
    const object = row && typeof row === 'object' && !Array.isArray(row);
    return [...(values ? [object ? cell(undefined) : cell(row)] : []), ...names.map((name) => cell(object ? row[name] : undefined))];
  }), { label: 'Results', class: 'results-table' });
}

// Texts that a spreadsheet would take for a formula get an apostrophe in front.
function csvCell(value) {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? (/^[=+\-@\t\r]/.test(value) ? `'${value}` : value) : JSON.stringify(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(rows) {
  const { names, values } = columnsOf(rows);
  const lines = [[...(values ? ['value'] : []), ...names]];
  for (const row of rows) {
    const object = row && typeof row === 'object' && !Array.isArray(row);
    lines.push([...(values ? [object ? undefined : row] : []), ...names.map((name) => (object ? row[name] : undefined))]);
  }
  return lines.map((line) => line.map(csvCell).join(',')).join('\r\n');
}

export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h('a', { href: url, download: name.replace(/[^\w.-]+/g, '_') });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
