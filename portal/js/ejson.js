// Values of MongoDB as its extended JSON has them, for people: numbers as numbers where JavaScript holds them exactly, dates as
// text; and one line for a cell.

const exact = (text) => Number.isSafeInteger(Number(text));

function dateText(inner) {
  const ms = Number(typeof inner === 'object' && inner ? inner.$numberLong : inner);
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

const only = (value) => {
  const names = Object.keys(value);
  return names.length === 1 ? names[0] : null;
};

// As relaxed extended JSON: what the editor takes back.
export function relaxed(value) {
  if (Array.isArray(value)) return value.map(relaxed);
  if (!value || typeof value !== 'object') return value;
  const name = only(value);
  if (name === '$numberLong' || name === '$numberInt') return exact(value[name]) ? Number(value[name]) : value;
  if (name === '$numberDouble') return Number.isFinite(Number(value.$numberDouble)) ? Number(value.$numberDouble) : value;
  if (name === '$date') {
    const text = dateText(value.$date);
    return text ? { $date: text } : value;
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, relaxed(inner)]));
}

// One value in the shell's words; null: it is of JSON's own types.
export function shown(value) {
  if (!value || typeof value !== 'object') return null;
  const name = only(value);
  switch (name) {
    case '$oid': return `ObjectId("${value.$oid}")`;
    case '$date': return `ISODate("${typeof value.$date === 'string' ? value.$date : dateText(value.$date) ?? JSON.stringify(value.$date)}")`;
    case '$numberLong': return `NumberLong("${value.$numberLong}")`;
    case '$numberDecimal': return `NumberDecimal("${value.$numberDecimal}")`;
    case '$numberDouble': return String(value.$numberDouble);
    case '$regularExpression': return `/${value.$regularExpression.pattern}/${value.$regularExpression.options}`;
    case '$timestamp': return `Timestamp(${value.$timestamp.t}, ${value.$timestamp.i})`;
    case '$binary': return value.$binary.subType === '04' ? `UUID("${uuid(value.$binary.base64)}")` : `BinData(${parseInt(value.$binary.subType, 16)}, "${value.$binary.base64}")`;
    case '$minKey': return 'MinKey()';
    case '$maxKey': return 'MaxKey()';
    default: return null;
  }
}

export function uuid(base64) {
  const hex = [...atob(base64)].map((c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

// The rows of a table: each cell text, number or JSON.
export const rowOf = (document) => Object.fromEntries(Object.entries(relaxed(document)).map(([name, value]) => [name, shown(value) ?? value]));
