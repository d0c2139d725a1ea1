// Partitions and keys in the portal: a split under load, the heat map, a hot key isolated, the advisor's key through a dry run to a
// re-key; and lists of 10,000 partitions and 1,000 containers.
import { after, test } from 'node:test';
import assert from 'node:assert/strict';
import { Server } from './server.js';
import { signed } from './rest.js';
import { closeBrowser, go, openSignedIn, shot, skip } from './browser.js';

after(closeBrowser);
const json = { 'content-type': 'application/json' };

function upsert(server, item) {
  return signed(server, 'POST', '/dbs/shop/colls/orders/docs', {
    headers: { ...json, 'x-ms-documentdb-is-upsert': 'true', 'x-ms-documentdb-partitionkey': JSON.stringify([item.tenant]) }, body: item,
  });
}

// Writes until it is told to stop; most of it to one tenant. Gives what was answered, by status.
function load(server) {
  const state = { on: true, answers: new Map() };
  state.over = (async () => {
    for (let n = 0; state.on; n++) {
      const tenant = n % 2 ? 'tenant-7' : `tenant-${n % 40}`;
      const { status } = await upsert(server, { id: `o${n % 400}`, tenant, userId: `user-${n % 300}`, total: n });
      state.answers.set(status, (state.answers.get(status) ?? 0) + 1);
    }
  })();
  return state;
}

async function started(t, args = []) {
  const server = await Server.start(t, ['--dev', '--set', 'heat.pause_ms=500ms', '--set', 'partition.ru_max=1000', ...args]);
  await signed(server, 'POST', '/dbs', { headers: json, body: { id: 'shop' } });
  const made = await signed(server, 'POST', '/dbs/shop/colls', { headers: { ...json, 'x-ms-offer-throughput': '2000' }, body: { id: 'orders', partitionKey: { paths: ['/tenant'], kind: 'Hash', version: 2 } } });
  assert.equal(made.status, 201, made.text);
  return server;
}

const partitionsOf = async (server) => (await signed(server, 'GET', '/_orrery/containers/shop/orders/partitions')).json.partitions;

test('a split is watched under load, the heat map is read, and a hot key isolated', { skip }, async (t) => {
  const server = await started(t);
  const traffic = load(server);
  t.after(async () => { traffic.on = false; await traffic.over; });
  const page = await openSignedIn(t, server);
  await go(page, '#/partitions/shop/orders');
  await page.waitForFunction(() => document.querySelector('#partition-count')?.textContent === '2');
  await page.click('.partition-row button');
  await page.click('#split');
  // the server's own dry run, which begins nothing
  await page.waitForSelector('dialog .dry-run:has-text("2 → 3 physical partitions")');
  assert.equal(await page.locator('dialog .plan-strip').last().locator('span').count(), 2);
  assert.equal((await partitionsOf(server)).length, 2);
  await page.getByRole('button', { name: 'Split it' }).click();
  await page.waitForFunction(() => document.querySelector('#partition-count').textContent === '3');
  assert.equal((await partitionsOf(server)).length, 3);
  assert.match(await page.getAttribute('#map', 'aria-label'), /^3 physical partitions/);
  await shot(page, 'map');

  // the heat is where the load is
  await go(page, '#/partitions/shop/orders/heat');
  await page.waitForFunction(() => /Heat by RU: the most is [\d.,]+ RU in partition \d+/.test(document.querySelector('#heat')?.getAttribute('aria-label') ?? ''));
  await page.selectOption('#heat-by', 'keys');
  await page.waitForFunction(() => document.querySelector('#heat').getAttribute('aria-label').includes('key tenant-7'));
  await page.selectOption('#heat-measure', 'requests');
  await page.waitForFunction(() => document.querySelector('#heat').getAttribute('aria-label').includes('by requests'));
  await page.focus('#heat');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h3:has-text("Hottest keys there then")');
  await shot(page, 'heat');

  await go(page, '#/partitions/shop/orders/top');
  await page.locator('tr:has-text("tenant-7") .isolate-key').first().click();
  await page.waitForSelector('dialog:has-text("gets a physical partition for itself") .dry-run:has-text("3 →")');
  await page.getByRole('button', { name: 'Isolate it' }).click();
  await page.waitForSelector('.notice:has-text("a partition of its own")');
  for (let alone = false; !alone;) alone = (await partitionsOf(server)).some((one) => one.cut === 'isolated');
  await page.waitForFunction(() => Number(document.querySelector('#partition-count').textContent) > 3);

  // nobody got an error but for spent throughput
  traffic.on = false;
  await traffic.over;
  assert.deepEqual([...traffic.answers.keys()].filter((status) => ![200, 201, 429].includes(status)), []);
});

test("the advisor's key goes through a dry run to a re-key", { skip }, async (t) => {
  const server = await started(t, ['--set', 'advise.per_second_max=10000']);
  for (let n = 0; n < 400; n++) await upsert(server, { id: `o${n}`, tenant: n % 2 ? 'tenant-7' : `tenant-${n % 20}`, userId: `user-${n % 97}`, total: n });
  const page = await openSignedIn(t, server);
  await go(page, '#/keys/shop/orders');
  await page.waitForSelector('.candidate:has-text("today")');
  await page.waitForSelector('.candidate.good-one');
  await shot(page, 'advice');
  const key = await page.locator('.candidate.good-one .rekey').first().getAttribute('data-key');
  await page.locator('.candidate.good-one .rekey').first().click();
  await page.waitForSelector('dialog:has-text("dry run"):has-text("What will happen")');
  assert.equal((await signed(server, 'GET', '/_orrery/containers/shop/orders/rekey')).json.underWay, false);
  await page.getByRole('button', { name: 'Re-key the container' }).click();
  await page.waitForSelector('#rekey-state .badge:has-text("re-keyed")');
  const { json: definition } = await signed(server, 'GET', '/dbs/shop/colls/orders');
  assert.equal(definition.partitionKey.paths[0], key.split(',')[0]);
  await page.getByRole('button', { name: 'End the grace period…' }).click();
  await page.getByRole('button', { name: 'End it' }).click();
  await page.waitForSelector('#rekey-state', { state: 'hidden' });

  // what another key would have done stands beside today's
  await go(page, '#/keys/shop/orders/whatif');
  await page.waitForSelector('#whatif section:has-text("refused (429)")');
  await go(page, '#/keys/shop/orders/try');
  await page.waitForFunction(() => document.querySelector('.editor')?.editor);
  await page.click('#try');
  await page.waitForSelector('#tried:has-text("physical partition")');
});

test('10,000 partitions and 1,000 containers stay usable', { skip }, async (t) => {
  const server = await Server.start(t, ['--dev', '--set', 'partition.ru_max=10', '--set', 'container.partitions_max=10000', '--set', 'account.resources_max=5000']);
  await signed(server, 'POST', '/dbs', { headers: json, body: { id: 'big' } });
  const make = async (id, ru) => {
    const made = await signed(server, 'POST', '/dbs/big/colls', { headers: { ...json, 'x-ms-offer-throughput': ru }, body: { id, partitionKey: { paths: ['/k'], kind: 'Hash', version: 2 } } });
    assert.equal(made.status, 201, made.text);
  };
  await make('wide', '100000');
  await Promise.all(Array.from({ length: 8 }, async (_, lane) => {
    for (let n = lane; n < 999; n += 8) {
      const made = await signed(server, 'POST', '/dbs/big/colls', { headers: json, body: { id: `c${String(n).padStart(4, '0')}`, partitionKey: { paths: ['/k'], kind: 'Hash', version: 2 } } });
      assert.equal(made.status, 201, made.text);
    }
  }));
  const page = await openSignedIn(t, server);
  await page.waitForFunction(() => document.querySelector('#side-count').textContent.includes('1,000 containers'));
  assert.ok((await page.locator('.side-container').count()) < 100);
  await page.locator('#side .virtual').evaluate((list) => { list.scrollTop = list.scrollHeight; });
  await page.waitForSelector('.side-container:has-text("wide")');
  await page.getByLabel('Filter databases and containers').fill('c0777');
  await page.waitForFunction(() => document.querySelectorAll('.side-container').length === 1);

  await go(page, '#/partitions/big/wide');
  await page.waitForFunction(() => document.querySelector('#partition-count')?.textContent === '10,000');
  await page.waitForSelector('.partition-row [data-row]'); // before that there is nothing to scroll
  assert.ok((await page.locator('.partition-row').count()) < 100);
  await page.locator('.partition-list').evaluate((list) => { list.scrollTop = list.scrollHeight; });
  const { partitions } = (await signed(server, 'GET', '/_orrery/containers/big/wide/partitions')).json;
  await page.waitForSelector(`.partition-row [data-row="${partitions.at(-1).id}"]`);
  await page.focus('#map');
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector(`h2:has-text("Partition ${partitions[0].id}")`);
  await shot(page, 'many');
});
