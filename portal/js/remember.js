// What the page remembers while it is open: queries of before, of this tab alone, and names of properties it has seen, for
// completion.

export function past(key) {
  const all = () => JSON.parse(sessionStorage.getItem(key) ?? '[]');
  return { all, add: (text) => sessionStorage.setItem(key, JSON.stringify([text, ...all().filter((one) => one !== text)].slice(0, 50))) };
}

const seen = new Map();
const most = 500;

export function learn(id, rows) {
  const names = seen.get(id) ?? new Set();
  const walk = (value, depth) => {
    if (Array.isArray(value)) value.slice(0, 5).forEach((one) => walk(one, depth + 1));
    else if (value && typeof value === 'object' && depth < 6)
      for (const [name, inner] of Object.entries(value)) {
        if (names.size < most && !(depth && name.startsWith('$'))) names.add(name);
        walk(inner, depth + 1);
      }
  };
  rows.slice(0, 50).forEach((row) => walk(row, 0));
  seen.set(id, names);
}

export const namesOf = (id) => [...(seen.get(id) ?? [])];
