// Manual pages, completions and profiles: what the command says of itself is true.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Server, orrery, root, scratch } from './server.js';

async function commands() {
  const { out } = await orrery(['help']);
  const list = out.slice(out.indexOf('Commands:'));
  return [...list.slice(0, list.indexOf('\n\n')).matchAll(/^ {2}([a-z-]+) +\S/gm)].map(([, name]) => name);
}

test('every command has a manual page with its usage and options', async () => {
  const names = await commands();
  assert.ok(names.length > 20);
  for (const name of names) {
    const { out, code } = await orrery(['help', 'man', name]);
    assert.equal(code, 0);
    assert.ok(out.startsWith(`.TH "ORRERY\\-${name.toUpperCase().replaceAll('-', '\\-')}" 1`), name);
    for (const part of ['NAME', 'SYNOPSIS', 'DESCRIPTION']) assert.ok(out.includes(`.SH ${part}\n`), `${name} ${part}`);
  }
  const overview = (await orrery(['help', 'man'])).out;
  for (const name of names) assert.ok(overview.includes(`.BR orrery\\-${name.replaceAll('-', '\\-')} (1)`));
  assert.equal((await orrery(['help', 'man', 'nothing'])).code, 2);
});

test('every option that completions offer is one that the command takes', async () => {
  const { out } = await orrery(['help', 'completion', 'bash']);
  const rows = [...out.matchAll(/^ {4}([a-z-]+)\) words='([^']*)' options='([^']*)' ;;$/gm)];
  assert.deepEqual(rows.map(([, name]) => name), await commands());
  for (const [, name, , options] of rows)
    for (const option of options.split(' ').filter(Boolean)) {
      const { err } = await orrery([name, option]);
      assert.doesNotMatch(err, /there is no option/, `${name} ${option}: ${err}`);
    }
});

test('verbs that completions offer are verbs', async () => {
  const { out } = await orrery(['help', 'completion', 'bash']);
  for (const [, name, verbs] of out.matchAll(/^ {4}([a-z-]+)\) words='([^']*)' options/gm))
    for (const verb of verbs.split(' ').filter(Boolean)) {
      const { err } = await orrery([name, verb, '--help']);
      assert.doesNotMatch(err, /knows no/, `${name} ${verb}`);
    }
});

test('bash takes its completions', async () => {
  const { out } = await orrery(['help', 'completion', 'bash']);
  const completed = execFileSync('bash', ['-c', `${out}\nCOMP_WORDS=(orrery cont) COMP_CWORD=1; _orrery; echo "\${COMPREPLY[*]}"\n` +
    'COMP_WORDS=(orrery container cr) COMP_CWORD=2; _orrery; echo "${COMPREPLY[*]}"\n' +
    'COMP_WORDS=(orrery container create --endp) COMP_CWORD=3; _orrery; echo "${COMPREPLY[*]}"'], { encoding: 'utf8' });
  assert.deepEqual(completed.trim().split('\n'), ['container', 'create', '--endpoint']);
  assert.match((await orrery(['help', 'completion', 'zsh'])).out, /^#compdef orrery\n/);
  assert.match((await orrery(['help', 'completion', 'fish'])).out, /complete -c orrery .*-l endpoint -r/);
  assert.equal((await orrery(['help', 'completion', 'tcsh'])).code, 2);
});

test('a profile says where a server is; options and a mistyped name', async (t) => {
  const server = await Server.start(t, ['--dev']);
  const home = scratch(t);
  mkdirSync(join(home, 'orrery'));
  writeFileSync(join(home, 'orrery', 'profiles'), `[shop]\nendpoint = ${server.url}\ndev = true\n\n[broken]\nendpont = x\n`);
  const env = { XDG_CONFIG_HOME: home };
  assert.equal((await orrery(['node', 'list', '--profile', 'shop'], { env })).code, 0);
  assert.equal((await orrery(['node', 'list'], { env: { ...env, ORRERY_PROFILE: 'shop' } })).code, 0);
  assert.match((await orrery(['node', 'list', '--profile', 'shpo'], { env })).err, /did you mean "shop"/);
  assert.match((await orrery(['node', 'list', '--profile', 'broken'], { env })).err, /did you mean "endpoint"/);
  assert.match((await orrery(['node', 'list', '--profile', 'shop', '--endpoint', 'http://127.0.0.1:1'], { env })).err, /no server answers at 127\.0\.0\.1 port 1 /);
  assert.equal((await orrery(['node', 'list'], { env: { ORRERY_ENDPOINT: server.url, ORRERY_DEV: 'true' } })).code, 0);
  assert.match((await orrery(['node', 'list'], { env: { ORRERY_ENDPOINT: server.url, ORRERY_DEV: 'yes' } })).err, /true or false/);
});

test('the image and its composition agree with the server: ports, health check, directory', () => {
  const docker = readFileSync(join(root, 'packaging', 'Dockerfile'), 'utf8');
  const compose = readFileSync(join(root, 'packaging', 'compose.yaml'), 'utf8');
  const exposed = /^EXPOSE (.*)$/m.exec(docker)[1].split(' ');
  const command = JSON.parse(/^CMD (\[.*\])$/m.exec(docker)[1]);
  for (const port of exposed) {
    assert.ok(command.some((word) => word.endsWith(`:${port}`)), port);
    assert.ok(compose.includes(`"127.0.0.1:${port}:${port}"`), port);
  }
  assert.match(docker, /^HEALTHCHECK .* CMD \["orrery", "node", "list"\]$/m);
  assert.ok(command.includes('server.directory=/var/lib/orrery'));
  assert.match(compose, /data:\/var\/lib\/orrery/);
});
