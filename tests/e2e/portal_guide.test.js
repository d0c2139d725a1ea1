// The stories of the guide, run from the page against an account that is thrown away. How much is refused depends on how fast this
// machine is just now, so what is looked at is what does not: each story is told to its end, shows what it promises, and leaves
// nothing behind. guide.test.js has the figures.
import { after, test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Server, root } from './server.js';
import { signed } from './rest.js';
import { closeBrowser, go, openSignedIn, shot, skip } from './browser.js';

after(closeBrowser);
const json = { 'content-type': 'application/json' };

const promises = {
  'iot-devices': /Largest logical partition before: \d+ readings, and it grows\. After: \d+/,
  'id-as-key': /Transactions before: 0 of 20\. After: 20 of 20\./,
  'tenants-by-container': /RU\/s before: 8,000\. After: 800\./,
};
const otherwise = /Refused before: [\d.]+ %\. After: [\d.]+ %\./;

test('all stories of the guide run from the page, and leave nothing behind', { skip }, async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'throughput.burst_seconds=0', '--set', 'migration.pause_ms=20ms']);
  await signed(server, 'POST', '/dbs', { headers: json, body: { id: 'shop' } });
  await signed(server, 'POST', '/dbs/shop/colls', { headers: json, body: { id: 'orders', partitionKey: { paths: ['/tenant'], kind: 'Hash', version: 2 } } });
  const page = await openSignedIn(t, server);
  await go(page, '#/keys/shop/orders/guide');
  await page.waitForSelector('[data-story]');
  const stories = await page.locator('[data-story]').evaluateAll((list) => list.map((one) => one.dataset.story));
  assert.deepEqual([...stories].sort(), readdirSync(join(root, 'docs/guide/scenarios')).map((name) => name.replace(/\.mjs$/, '')).filter((name) => stories.includes(name)).sort());
  assert.equal(stories.length, 12);
  for (const story of stories) {
    await page.click(`[data-story="${story}"]:not([disabled])`);
    await page.waitForFunction((one) => document.querySelector('#story-end') && !document.querySelector(`[data-story="${one}"]`).disabled, story);
    assert.match(await page.textContent('#story-end'), promises[story] ?? otherwise, story);
    assert.equal(await page.locator('#main .problem').count(), 0, story);
    if (story === 'read-heavy') await shot(page, 'story');
    await page.evaluate(() => document.querySelector('#story-end').remove());
  }
  const { accounts } = (await signed(server, 'GET', '/_orrery/accounts?max=100')).json;
  assert.deepEqual(accounts.map((one) => one.id), ['default']);
});
