// A client that asks every shard by itself: the shard list tells which there are, each is asked for its part, one that is away is
// tried again, and what is still missing then is told. docs/guide/shards-failing.md explains it.
import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { emulatorKey } from '../../tests/e2e/server.js';

const later = new Set([408, 410, 429, 449, 503]); // worth trying again

async function ask({ url, key = emulatorKey }, method, path, [type, link], { headers = {}, body } = {}) {
  const date = new Date().toUTCString();
  const text = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  const sig = createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
  const answer = await fetch(url + path, {
    method, body: body && JSON.stringify(body),
    headers: { authorization: encodeURIComponent(`type=master&ver=1.0&sig=${sig}`), 'x-ms-date': date, 'x-ms-version': '2020-07-15', ...headers },
  });
  return { status: answer.status, headers: answer.headers, json: await answer.json() };
}

export async function shardList(place) {
  const link = `containers/${place.database}/${place.container}/shards`;
  return (await ask(place, 'GET', `/_orrery/${link}`, ['_orrery', link])).json;
}

// The physical partition of a key, with its node.
export async function placeOf(place, key) {
  const link = `containers/${place.database}/${place.container}/key`;
  return (await ask(place, 'POST', `/_orrery/${link}`, ['_orrery', link], { body: key })).json.partition;
}

function query(place, text, headers) {
  const link = `dbs/${place.database}/colls/${place.container}`;
  return ask(place, 'POST', `/${link}/docs`, ['docs', link], {
    headers: { 'content-type': 'application/query+json', 'x-ms-documentdb-isquery': 'true', 'x-ms-documentdb-query-enablecrosspartition': 'true', ...headers },
    body: { query: text, parameters: [] },
  });
}

// All pages of one shard; null: it did not answer so often.
async function ofShard(place, text, shard, retries) {
  const rows = [];
  let continuation;
  for (let tries = 0; ; ) {
    const answer = await query(place, text, { 'x-ms-documentdb-partitionkeyrangeid': shard.rangeId, ...(continuation ? { 'x-ms-continuation': continuation } : {}) });
    if (answer.status === 200) {
      rows.push(...answer.json.Documents);
      continuation = answer.headers.get('x-ms-continuation');
      if (!continuation) return rows;
    } else if (!later.has(answer.status)) throw Object.assign(new Error(answer.json.message), { code: answer.status });
    else if (++tries > retries) return null;
    else await pause(Number(answer.headers.get('x-ms-retry-after-ms')) || Math.min(1000, 20 * 2 ** Math.min(tries, 5)));
  }
}

export async function fanOut(place, text, { retries = 5 } = {}) {
  const { shards } = await shardList(place);
  const parts = await Promise.all(shards.map((shard) => ofShard(place, text, shard, retries)));
  return { shards: shards.length, rows: parts.flatMap((rows) => rows ?? []), missing: shards.filter((_, at) => !parts[at]) };
}

// The same by the server: what is there, and the numbers of partitions that are not.
fanOut.partial = async (place, text) => {
  const rows = [];
  const missing = new Set();
  let continuation;
  do {
    const answer = await query(place, text, { 'x-orrery-allow-partial': 'true', ...(continuation ? { 'x-ms-continuation': continuation } : {}) });
    if (answer.status !== 200) throw Object.assign(new Error(answer.json.message), { code: answer.status });
    rows.push(...answer.json.Documents);
    for (const id of (answer.headers.get('x-orrery-missing-partitions') ?? '').split(',').filter(Boolean)) missing.add(id);
    continuation = answer.headers.get('x-ms-continuation');
  } while (continuation);
  return { rows, missing: [...missing] };
};

// Looks again until it is so.
export async function until(look, good) {
  for (let n = 0; n < 600; n++) {
    const seen = await look();
    if (good(seen)) return seen;
    await pause(100);
  }
  throw new Error('it has not come to that within a minute');
}
