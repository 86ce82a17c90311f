// What a page that stays open shows: the truth, or that it is not up to date.
import {
  accessible, callTool, check, expect, finish, fits, gatewren, launch, origin, person, setUp, shot,
} from './stage.mjs';

const it = (what, run) => check('live', what, run);
const browser = await launch();
const { context, page } = await person(browser, { viewport: { width: 1280, height: 800 } });
await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
await setUp(page);
const proposer = JSON.parse(gatewren('agent', 'add', 'proposer', '--policy', 'suggest', '--json')).token;

async function proposed(reason) {
  const args = { pointer: '/public/ui/notes', value: { text: reason } };
  const result = await callTool(proposer, 'propose_change', { tool: 'state_put', arguments: args, reason });
  return JSON.stringify(result).match(/chg_[0-9a-f]{16}/)[0];
}

const bar = page.locator('#news');
const link = (name) => page.getByRole('link', { name, exact: true });
// A page, after its stream has begun.
async function open(path) {
  const begun = page.waitForRequest(/\/owner\/events/);
  await page.goto(`${origin}${path}`);
  await begun;
}
const ids = [await proposed('first')];

await it('a page whose content is not updated keeps its count of requests', async () => {
  await open('/owner/agents/new?client=other');
  await page.getByLabel('Name').fill('half a na');
  const other = await proposed('another');
  await link('Inbox (2)').waitFor();
  expect((await page.title()).startsWith('(2) New agent'), await page.title());
  expect(await page.getByLabel('Name').inputValue() === 'half a na', 'what was typed is lost');
  gatewren('inbox', 'reject', other);
});

await it('while a note is typed the count goes on, a bar names new requests, and nothing moves', async () => {
  await open('/owner/inbox');
  const note = page.locator(`#note-${ids[0]}`);
  await page.locator(`#more-${ids[0]} > summary`).click();
  await note.pressSequentially('n');
  await page.locator('h1').click();
  ids.push(await proposed('second'));
  await link('Inbox (2)').waitFor();
  expect((await page.title()).startsWith('(2) Inbox'), await page.title());
  await bar.getByText('1 new request.').waitFor();
  ids.push(await proposed('third'));
  await bar.getByText('2 new requests.').waitFor();
  await link('Inbox (3)').waitFor();
  expect(await page.locator('article').count() === 1, 'the content was replaced');
  await fits(page);
  await accessible(page);
  await shot(page, 'live', 'bar');
});

await it('the bar shows them, and what was typed stays', async () => {
  await bar.getByRole('button', { name: 'Show' }).click();
  expect(await page.locator('article').count() === 3, 'they are not shown');
  expect(await page.locator(`#note-${ids[0]}`).inputValue() === 'n', 'the note is lost');
  expect(await bar.textContent().then((text) => !text.includes('new')), 'the bar stays');
  const focused = await page.evaluate(() => document.activeElement.closest('article')?.id);
  expect(ids.slice(1).includes(focused), `the focus is on ${focused}`);
});

await it('a note that was cleared again holds nothing back', async () => {
  await page.locator(`#note-${ids[0]}`).fill('');
  await page.locator('h1').click();
  gatewren('inbox', 'reject', ids[2]);
  await link('Inbox (2)').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('article').length === 2);
});

await it('a focused summary or link holds nothing back, and what is open stays open', async () => {
  const details = page.locator(`#exact-${ids[0]}`);
  await details.locator('> summary').click();
  ids[2] = await proposed('fourth');
  await page.locator(`#${ids[2]}`).waitFor();
  expect(await details.evaluate((one) => one.open), 'it was shut');
  expect(await page.evaluate(() => document.activeElement.localName) === 'summary', 'the focus is lost');
  await page.locator(`#${ids[1]} h2 a`).focus();
  gatewren('inbox', 'reject', ids[2]);
  await page.locator(`#${ids[2]}`).waitFor({ state: 'detached' });
  expect(await page.evaluate((id) => document.activeElement.closest('article')?.id === id, ids[1]), 'the focus is lost');
});

await it('a button copies after an update', async () => {
  const details = page.locator(`#exact-${ids[1]}`);
  await details.locator('> summary').click();
  ids[2] = await proposed('fifth');
  await page.locator(`#${ids[2]}`).waitFor();
  await details.getByRole('button', { name: 'Copy' }).click();
  await details.getByRole('button', { name: 'Copied' }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied.includes('/public/ui/notes') && copied.includes('second'), copied);
});

await it('what changes elsewhere on the page is announced too', async () => {
  await open(`/owner/changes/${ids[0]}`);
  await page.locator(`#note-${ids[0]}`).fill('not yet');
  gatewren('inbox', 'reject', ids[0]);
  await bar.getByText('This page has changed.').waitFor();
  await bar.getByRole('button', { name: 'Show' }).click();
  await page.getByText('rejected').first().waitFor();
});

await it('a page that cannot reach the server says so, until it can', async () => {
  await open('/owner/inbox');
  await context.setOffline(true);
  ids.push(await proposed('sixth'));
  await bar.getByText('The server cannot be reached').waitFor();
  await context.setOffline(false);
  await page.locator(`#${ids.at(-1)}`).waitFor();
  await bar.getByText('The server cannot be reached').waitFor({ state: 'hidden' });
});

await it('can be installed as an app, whose page of its own says that the server is away', async () => {
  await open('/owner/home');
  const manifest = await page.evaluate(() => fetch(document.querySelector('link[rel=manifest]').href).then((it) => it.json()));
  expect(manifest.start_url === '/owner' && manifest.display === 'standalone', manifest);
  for (const { src, sizes } of manifest.icons) {
    const width = await page.evaluate((from) => new Promise((done) => {
      const image = Object.assign(new Image(), { src: from, onload: () => done(image.naturalWidth), onerror: () => done(0) });
    }), src);
    expect(width > 0 && (sizes === 'any' || sizes === `${width}x${width}`), `${src}: ${width}`);
  }
  const scope = await page.evaluate(() => navigator.serviceWorker.ready.then((worker) => worker.scope));
  expect(scope === `${origin}/owner`, scope);
  const devtools = await context.newCDPSession(page);
  const { installabilityErrors } = await devtools.send('Page.getInstallabilityErrors');
  expect(installabilityErrors.every(({ errorId }) => errorId === 'in-incognito'), installabilityErrors);
  await context.setOffline(true);
  await page.goto(`${origin}/owner/containers`);
  await page.getByRole('heading', { name: 'The server cannot be reached' }).waitFor();
  await fits(page);
  await accessible(page);
  await shot(page, 'live', 'offline');
  const kept = await page.evaluate(async () => {
    const names = [];
    for (const name of await caches.keys()) names.push(...(await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname));
    return names.sort().join();
  });
  expect(kept === '/owner/icon.svg,/owner/offline,/owner/style.css', `kept on the device: ${kept}`);
  await context.setOffline(false);
  await page.getByRole('link', { name: 'Try again' }).click();
  await page.locator('nav').waitFor();
});

await it('the page for notifications has its forms, and a button that says why the browser refuses', async () => {
  await open('/owner/settings');
  await link('Notifications').click();
  const button = page.getByRole('button', { name: 'Notify this device' });
  await button.waitFor();
  await fits(page);
  await accessible(page);
  await shot(page, 'live', 'notifications');
  // This browser has no push service, so its own refusal is shown, and nothing is sent.
  await button.click();
  await page.waitForFunction(() => document.querySelector('#push [role=status]').textContent);
  expect(page.url() === `${origin}/owner/notifications`, page.url());
});

await it('a push message is shown by the browser, and leads to the request', async () => {
  await context.grantPermissions(['notifications'], { origin });
  await open('/owner/home');
  const devtools = await context.newCDPSession(page);
  const registered = new Promise((done) => {
    devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const found = registrations.find(({ scopeURL, isDeleted }) => scopeURL === `${origin}/owner` && !isDeleted);
      if (found) done(found.registrationId);
    });
  });
  await devtools.send('ServiceWorker.enable');
  const registrationId = await registered;
  const url = `/owner/changes/${ids.at(-1)}`;
  const message = { title: 'proposer: Change the state', body: '“sixth”', url };
  const deliver = (data) => devtools.send('ServiceWorker.deliverPushMessage', { origin, registrationId, data });
  await deliver(JSON.stringify(message));
  await deliver(JSON.stringify(message));
  const listed = () => page.evaluate(async () => {
    const registration = await navigator.serviceWorker.getRegistration('/owner');
    const all = await registration.getNotifications();
    return all.map(({ title, body, data }) => ({ title, body, url: data }));
  });
  let shown = [];
  for (let tries = 0; tries < 50 && shown.length === 0; tries += 1) {
    shown = await listed();
    await page.waitForTimeout(100);
  }
  expect(JSON.stringify(shown) === JSON.stringify([message]), shown);
  // The developer tools cannot tap a notification, and a page is opened only after a tap: the address is looked at.
  const [worker] = context.serviceWorkers();
  const opened = await worker.evaluate(async (hostile) => {
    const seen = [];
    self.clients.openWindow = async (to) => { seen.push(to); };
    const [notification] = await self.registration.getNotifications();
    self.dispatchEvent(new NotificationEvent('notificationclick', { notification }));
    await self.registration.showNotification('other', { data: hostile });
    const other = (await self.registration.getNotifications()).find(({ title }) => title === 'other');
    self.dispatchEvent(new NotificationEvent('notificationclick', { notification: other }));
    return seen;
  }, 'https://elsewhere.example/owner/x');
  expect(opened.join() === `${origin}${url},/owner`, opened);
  expect((await listed()).length === 0, 'a tapped notification stays');
});

await it('a page that no stream is left for says so', async () => {
  await page.goto('about:blank');
  const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const stop = new AbortController();
  const streams = await Promise.all(Array.from({ length: 32 }, () => (
    fetch(`${origin}/owner/events`, { headers: { cookie }, signal: stop.signal }))));
  await page.goto(`${origin}/owner`);
  await bar.getByText('no longer updated by itself').waitFor();
  stop.abort();
  await Promise.allSettled(streams.map(({ body }) => body.cancel()));
});

await browser.close();
finish();
