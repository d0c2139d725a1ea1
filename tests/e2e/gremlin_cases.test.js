// The cases of tests/cases/gremlin through a server, as scripts and as bytecode, over a graph without a partition key and over one of
// eight partitions. What a case says holds every way.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { casesClient, makeGraph, sendable, valuesOf } from './gremlin_client.js';
import { parseValues, sameBag, sameList, show } from './gremlin_notation.js';
import { signed } from './rest.js';
import { root, Server } from './server.js';

const directory = join(root, 'tests/cases/gremlin');
const linesOf = (name) => readFileSync(join(directory, name), 'utf8').split('\n');

// ---- the files ----

// script => results, script ==> results in this order, script => none, script => error [code] ['part of the message'], script
function caseOf(line, at) {
  const found = / (=?=>) (?!.* =?=> )(.*)$/.exec(line);
  if (!found) return { line, at, script: line };
  const script = line.slice(0, found.index);
  const wanted = found[2].trim();
  const error = /^error(?: (\d+))?(?: (.*))?$/.exec(wanted);
  if (error) return { line, at, script, error: { code: error[1] && Number(error[1]), part: error[2] && parseValues(error[2])[0].v } };
  return { line, at, script, ordered: found[1] === '==>', results: wanted === 'none' ? [] : parseValues(wanted) };
}

// Blocks: cases over a graph, in any order, and stories, each over a graph that is empty at its beginning.
function blocksOf(name) {
  const blocks = [];
  let block;
  for (const [i, line] of linesOf(name).entries()) {
    const at = `${name}:${i + 1}`;
    if (line.startsWith('#')) continue;
    if (line.startsWith('graph ')) blocks.push((block = { graph: line.slice(6), cases: [] }));
    else if (line.startsWith('story ')) blocks.push((block = { graph: 'empty', story: line.slice(6), cases: [] }));
    else if (line.trim()) block.cases.push(caseOf(line, at));
    else if (block?.story) block = undefined;
  }
  return blocks;
}

const files = readdirSync(directory).filter((name) => name.endsWith('.cases'));
const graphs = ['modern', 'crew', 'empty'];

// ---- the ways ----

const ways = [
  { name: 'one partition', database: 'one' },
  { name: 'eight partitions', database: 'eight', key: '/name', throughput: 800000 },
];

const modes = [
  { name: 'script', message: (script) => script },
  { name: 'bytecode', message: (script) => { try { return sendable(script); } catch { return null; } } },
];

// What is wrong with a case; undefined: nothing.
async function fault(client, mode, of) {
  const message = mode.message(of.script);
  if (message === null) return undefined; // bytecode has no such thing
  let found;
  try {
    found = valuesOf(await client.submit(message));
  } catch (error) {
    if (!of.error) return `${of.at} ${of.line}\n    fails: ${error.message}`;
    if (mode.name === 'script' && of.error.code && error.statusCode !== of.error.code) return `${of.at} ${of.line}\n    fails with ${error.statusCode}: ${error.message}`;
    if (mode.name === 'script' && of.error.part && !error.message.includes(of.error.part)) return `${of.at} ${of.line}\n    fails otherwise: ${error.message}`;
    return undefined;
  }
  if (of.error) return `${of.at} ${of.line}\n    gives ${found.map(show).join(', ')}`;
  if (!of.results) return undefined;
  const same = of.ordered ? sameList(of.results, found) : sameBag(of.results, found);
  return same ? undefined : `${of.at} ${of.line}\n    gives ${found.map(show).join(', ') || 'nothing'}`;
}

async function faultsOf(client, mode, block) {
  const faults = [];
  if (block.story) {
    await client.submit('g.V().drop()');
    for (const of of block.cases) faults.push(await fault(client, mode, of));
    return faults;
  }
  const left = [...block.cases];
  await Promise.all(Array.from({ length: 8 }, async () => {
    while (left.length) faults.push(await fault(client, mode, left.shift()));
  }));
  return faults;
}

test('there are a thousand cases, and nearly all can be sent as bytecode too', () => {
  const all = files.flatMap(blocksOf).flatMap(({ cases }) => cases);
  const both = all.filter(({ script }) => modes[1].message(script) !== null);
  assert.ok(all.length > 1200, `${all.length} cases`);
  assert.ok(both.length > all.length - 80, `${both.length} of ${all.length} cases`);
});

test('cases hold as scripts and as bytecode, over one partition and over eight', async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'partition.ru_max=100000']);
  for (const way of ways) {
    await signed(server, 'POST', '/dbs', { body: { id: way.database } });
    const clients = {};
    for (const graph of graphs) {
      await makeGraph(server, way, graph);
      clients[graph] = casesClient(t, server, way, graph);
      if (graph === 'empty') continue;
      for (const line of linesOf(`${graph}.graph`)) if (line.startsWith('g.')) await clients[graph].submit(line);
    }
    for (const mode of modes) {
      for (const file of files) {
        await t.test(`${file} as ${mode.name} over ${way.name}`, async () => {
          const faults = [];
          for (const block of blocksOf(file)) faults.push(...await faultsOf(clients[block.graph], mode, block));
          const wrong = faults.filter(Boolean);
          assert.equal(wrong.length, 0, `${wrong.length} cases fail:\n${wrong.join('\n')}`);
        });
      }
    }
  }
});
