// The vendors' Python clients, as far as the interpreter finds them: on PYTHONPATH or among its own packages.
// Where a module cannot be imported its tests are skipped by name.
//
//   test('...', { skip: missing('azure.cosmos') }, async (t) => {
//     const server = await Server.start(t, ['--dev']);
//     await claims(t, server, 'queries.py');
//   });
//
// A program is python/NAME: functions called claim_* that get an `endpoint` (python/claims.py). Each becomes a test.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { emulatorKey, sanitized } from './server.js';

const debian = '/usr/bin/python3'; // the one that sees Debian's packages, whatever else is on PATH
export const python = process.env.E2E_PYTHON ?? (existsSync(debian) ? debian : 'python3');

const limitMs = sanitized ? 600_000 : 180_000; // a program that hangs fails by name instead of hanging the run

// False, or the reason to skip a test: which module cannot be imported.
export function missing(...modules) {
  for (const module of modules) {
    const { status, error } = spawnSync(python, ['-c', `import ${module}`], { stdio: 'ignore' });
    if (error) return `${python} cannot be run`;
    if (status !== 0) return `${python} cannot import ${module}`;
  }
  return false;
}

// Runs a program to its end. onLine is told each line of its output as it comes.
async function run(t, args, env, onLine) {
  const child = spawn(python, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { out: '', err: '' };
  t.after(() => child.kill('SIGKILL'));
  child.stdout.setEncoding('utf8').on('data', (part) => {
    const lines = (text.out + part).split('\n');
    text.out = lines.pop();
    lines.forEach(onLine);
  });
  child.stderr.setEncoding('utf8').on('data', (part) => (text.err += part));
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
  const [code, signal] = await once(child, 'close');
  clearTimeout(limit);
  return { code, signal, err: text.err };
}

// Runs the claims of python/NAME against the server, each as a subtest of t. What `endpoint` says besides may be given:
// whatever can be written as JSON is an attribute of it.
export async function claims(t, server, name, extra = {}) {
  const folder = fileURLToPath(new URL('python/', import.meta.url));
  const endpoint = { url: server.url, key: emulatorKey, ...extra };
  const results = [];
  const end = await run(t, ['-B', '-X', 'faulthandler', folder + name], { E2E_ENDPOINT: JSON.stringify(endpoint) }, (line) => {
    if (line.startsWith('claim ')) results.push(JSON.parse(line.slice('claim '.length)));
    else if (line) t.diagnostic(line);
  });
  for (const { claim, skipped, error } of results)
    await t.test(claim, { skip: skipped ?? false }, () => {
      if (error) throw new Error(error);
    });
  await t.test(`${name} runs to its end`, () => {
    if (end.code !== 0 || !results.length)
      throw new Error(`${end.signal ?? `exit code ${end.code}`} after ${results.length} claims\n${end.err}`);
  });
}
