// Figures as people read them.

export function bytes(n) {
  if (n === undefined || n === null) return '–';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let at = 0;
  for (; n >= 1000 && at < units.length - 1; at++) n /= 1000;
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

export function number(n) {
  if (n === undefined || n === null || Number.isNaN(n)) return '–';
  if (Number.isInteger(n)) return n.toLocaleString('en');
  return n.toLocaleString('en', { maximumFractionDigits: Math.abs(n) >= 100 ? 0 : 2 });
}

export const ru = (n) => `${number(n)} RU`;

export function percent(n) {
  return n === undefined || n === null ? '–' : `${(n * 100).toFixed(n < 0.1 && n > 0 ? 1 : 0)} %`;
}

export function duration(ms) {
  if (ms === undefined || ms === null) return '–';
  if (ms === 0) return '0 ms';
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(2) : Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export function time(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toLocaleTimeString('en-GB');
}

export function moment(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : `${date.toISOString().slice(0, 10)} ${date.toLocaleTimeString('en-GB')}`;
}

// A partition key value on one line: a single text without its brackets.
export function key(value) {
  if (value === null || value === undefined) return '(not readable)';
  if (Array.isArray(value) && value.length === 1 && typeof value[0] === 'string') return value[0];
  return JSON.stringify(value);
}

// Where a hexadecimal effective partition key lies between the first and the last: 0 to 1.
export function place(hex, first = 0) {
  if (hex === 'FF' || hex === undefined) return 1;
  if (!hex) return first;
  // hashes of version 2 begin with 00 to 3F
  const digits = hex.slice(0, 12).padEnd(12, '0');
  return parseInt(digits, 16) / 0x1000000000000;
}

export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
