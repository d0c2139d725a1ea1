// Partition keys of documents, as the header of a request has them.

export function valueAt(document, path) {
  let at = document;
  for (const step of path.split('/').slice(1)) {
    const name = step.replace(/^"(.*)"$/, '$1');
    if (at === null || typeof at !== 'object' || !(name in at)) return undefined;
    at = at[name];
  }
  return at;
}

// A value the document lacks is {} in the header.
export function keyOf(document, definition) {
  return (definition.partitionKey?.paths ?? []).map((path) => valueAt(document, path) ?? (valueAt(document, path) === null ? null : {}));
}

// JSON in ASCII, as headers want it.
export function header(value) {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// What a person typed for a key: JSON if it is an array, else text; several with commas for a hierarchical key.
export function typed(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith('[')) return JSON.parse(trimmed);
  return [text];
}
