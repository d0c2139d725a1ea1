// A real browser for tests of the portal: Debian's chromium, headless, driven by playwright-core. One for each file of tests;
// every test has a page of its own, and fails when its page logs an error nobody expected.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const program = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const skip = existsSync(program) ? false : `${program} is not installed (packaging/debian-packages, group test)`;

// A busy machine is slow, not wrong: conditions are waited for, and this only ends what hangs.
export const patience = 60_000;

let launched = null;
export function browser() {
  launched ??= chromium.launch({
    executablePath: program,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
  });
  return launched;
}

export async function closeBrowser() {
  if (launched) await (await launched).close();
  launched = null;
}

// Pictures stay where PORTAL_SHOTS says; without it they are made, so that making them is tested, and thrown away.
const shots = process.env.PORTAL_SHOTS ?? mkdtempSync(join(tmpdir(), 'orrery-shots-'));
mkdirSync(shots, { recursive: true });
if (!process.env.PORTAL_SHOTS) process.on('exit', () => rmSync(shots, { recursive: true, force: true }));
export const shot = (page, name) => page.screenshot({ path: join(shots, `${name}.png`) });

// Browsers log every refused request; anything else that is an error is a defect.
const expected = /Failed to load resource/;

export async function openPage(t, server, { options = {}, allow = [] } = {}) {
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(`${error.message}\n${error.stack}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text()) && !allow.some((one) => one.test(message.text()))) faults.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults, []);
  });
  await page.goto(`${server.url}/_orrery/portal/`);
  return page;
}

// Signed in with one click, as with --dev.
export async function openSignedIn(t, server, options) {
  const page = await openPage(t, server, options);
  await page.click('#dev');
  await page.waitForSelector('#side-count:has-text("database")');
  return page;
}

export async function signInWith(page, secret, account = 'default') {
  await page.getByLabel('Account', { exact: true }).fill(account);
  await page.getByLabel('Account key or resource token').fill(secret);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

export const go = (page, hash) => page.evaluate((to) => { location.hash = to; }, hash);

// The editor below an element: its text is read and set as the portal does.
export const editorText = (page, selector) => page.locator(selector).first().evaluate((host) => host.editor.value);
export async function editorFill(page, selector, text) {
  await page.waitForFunction((one) => document.querySelector(one)?.editor, selector);
  await page.locator(selector).first().evaluate((host, value) => { host.editor.value = value; }, text);
}

// Nothing serious or critical is found by axe-core.
let axe = null;
export async function accessible(page, what) {
  axe ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  // the page lets no script in from outside, the driver's own excepted
  const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ['violations'] }); })()`);
  const grave = found.violations.filter((one) => ['serious', 'critical'].includes(one.impact));
  assert.deepEqual(grave.map((one) => `${what}: ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.target.join(' ')).join('; ')}`), []);
}
