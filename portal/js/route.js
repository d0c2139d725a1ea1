// The address of the page says which view is shown:
//
//   #/                         what the account has
//   #/data/DB/COLL/TAB         items, queries, scripts, settings, change feed, graph
//   #/partitions/DB/COLL/TAB   map, heat, keys
//   #/keys/DB/COLL/TAB         advice, what-if, trying a key
//   #/operations/TAB           the server

export function place() {
  const [section = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  if (section === 'operations') return { section, tab: rest[0] };
  return { section: section || 'home', database: rest[0], container: rest[1], tab: rest[2] };
}

export function address(section, ...parts) {
  return `#/${[section, ...parts].filter((part) => part !== undefined && part !== '').map(encodeURIComponent).join('/')}`;
}

export function go(...parts) {
  location.hash = address(...parts);
}
