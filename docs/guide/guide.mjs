// docs/guide/run: tells one scenario of the guide, or all.
import { readdirSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { binary } from '../../tests/e2e/server.js';
import { Model } from './model.mjs';

const usage = `Usage: docs/guide/run NAME...     tells these scenarios of the guide
       docs/guide/run all
       docs/guide/run             lists them

Each starts a scale model of its own, in memory, and takes some seconds.

Options:
  --json    the figures to standard output, a line for each scenario; the story to standard error
  --out DIR keep the logs and pictures there that the commands read and draw
  --keep    leave the model of the last one running until Ctrl-C, to look around in it
`;

const names = readdirSync(new URL('scenarios', import.meta.url)).map((name) => name.replace(/\.mjs$/, '')).sort();
const load = async (name) => (await import(`./scenarios/${name}.mjs`)).default;

async function tell(name, { json, keep, out }) {
  const scenario = await load(name);
  const model = new Model({ write: json ? (text) => process.stderr.write(text) : undefined, directory: out && join(out, name) });
  const stop = () => model.end().then(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
  try {
    model.write(`${scenario.title}\n${'='.repeat(scenario.title.length)}\n\n`);
    const figures = await scenario.tell(model);
    if (json) process.stdout.write(`${JSON.stringify({ name, ...figures })}\n`);
    model.write(`\nThe page of it is docs/guide/${name}.md.\n\n`);
    if (keep) {
      process.off('SIGINT', stop);
      const { url } = model.server;
      const look = `  export ORRERY_ENDPOINT=${url}\n  ${binary} stats guide --dev\n`;
      process.stdout.write(`The model is at ${url}: try\n\n${look}\nCtrl-C ends it.\n`);
      await once(process, 'SIGINT');
    }
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, stop);
    await model.end();
  }
}

function fail(message) {
  process.stderr.write(`docs/guide/run: ${message}\n\n${usage}`);
  process.exit(2);
}

function read(args) {
  const spec = { json: { type: 'boolean' }, keep: { type: 'boolean' }, out: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
  try {
    return parseArgs({ args, options: spec, allowPositionals: true });
  } catch (error) {
    return fail(error.message);
  }
}

const { values: options, positionals: wanted } = read(process.argv.slice(2));
const unknown = wanted.find((name) => name !== 'all' && !names.includes(name));
if (unknown) fail(`there is no scenario "${unknown}"`);
if (options.help || wanted.length === 0) {
  process.stdout.write(`${usage}\nScenarios:\n`);
  for (const name of names) process.stdout.write(`  ${name.padEnd(22)}${(await load(name)).title}\n`);
} else {
  const told = wanted.includes('all') ? names : wanted;
  for (const [i, name] of told.entries()) await tell(name, { ...options, keep: options.keep && i === told.length - 1 });
}
