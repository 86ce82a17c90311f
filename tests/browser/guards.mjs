// What nobody else may do with the owner's page: other pages, frames, forged forms, guesses.
import { createServer } from 'node:http';
import { PASSWORD, check, expect, finish, launch, origin, person, setUp, signIn } from './stage.mjs';

const it = (what, run) => check('guards', what, run);
const browser = await launch();
const { context, page } = await person(browser);
await setUp(page);

// A page of another program on the same box.
let html = '';
const other = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(html));
await new Promise((listening) => other.listen(0, '127.0.0.1', listening));
const elsewhere = `http://127.0.0.1:${other.address().port}`;
// It is meant to ask our server for things, and is refused; that is on its console.
const visitor = await context.newPage();

const cookie = async () => (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
const send = async (path, fields, headers = {}) => fetch(`${origin}${path}`, {
  method: 'POST', redirect: 'manual', headers: { cookie: await cookie(), ...headers }, body: new URLSearchParams(fields),
});

await it('every answer forbids frames, foreign content and inline scripts', async () => {
  for (const path of ['/owner', '/owner/sign-in', '/owner/style.css', '/owner/page.js', '/owner/icons.svg', '/owner/nothing', '/owner/connect/authority/pem']) {
    const { headers } = await fetch(`${origin}${path}`, { headers: { cookie: await cookie() }, redirect: 'manual' });
    const policy = headers.get('content-security-policy') ?? '';
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "form-action 'self'"]) {
      expect(policy.includes(part), `${path}: ${policy}`);
    }
    expect(!policy.includes('unsafe'), policy);
    expect(headers.get('x-frame-options') === 'DENY', `${path} may be framed`);
    expect(headers.get('x-content-type-options') === 'nosniff', path);
  }
});

await it('no page of another program holds it in a frame', async () => {
  html = `<iframe src="${origin}/owner"></iframe>`;
  await visitor.goto(elsewhere);
  await visitor.waitForTimeout(1000);
  const inside = await visitor.frames().at(-1).evaluate(() => document.body?.innerText ?? '').catch(() => '');
  expect(!inside.includes('Inbox'), inside);
});

await it('no page of another program sends its forms', async () => {
  html = `<form method="post" action="${origin}/owner/agents"><input name="name" value="evil"><input name="policy" value="admin"><input name="space" value="*"><button>x</button></form>`;
  await visitor.goto(elsewhere);
  const [answer] = await Promise.all([visitor.waitForResponse(/owner/), visitor.getByRole('button').click()]);
  expect(answer.status() === 403, answer.status());
  await page.goto(`${origin}/owner/agents`);
  expect(!(await page.textContent('main')).includes('evil'), 'it was added');
});

await it('a form without its proof, or with that of another sign-in, is refused', async () => {
  const fields = { name: 'forged', policy: 'admin', space: '*' };
  expect((await send('/owner/agents', fields)).status === 403, 'without');
  expect((await send('/owner/agents', { ...fields, proof: '0'.repeat(32) })).status === 403, 'with another');
  expect((await send('/owner/agents', fields, { 'content-type': 'application/json' })).status === 415, 'as JSON');
});

await it('who follows a link from elsewhere is signed in all the same', async () => {
  html = `<a href="${origin}/owner/agents">look</a>`;
  await visitor.goto(elsewhere.replace('127.0.0.1', 'localhost'));
  await visitor.getByRole('link').click();
  await visitor.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
});

await it('nobody sees or does anything without signing in', async () => {
  for (const path of ['', '/home', '/inbox', '/containers', '/settings', '/help', '/header?tab=home', '/agents', '/activity', '/activity/export', '/connect', '/logins', '/changes/x', '/agents/x']) {
    const answer = await fetch(`${origin}/owner${path}`, { redirect: 'manual' });
    expect(answer.status === 303 && answer.headers.get('location').startsWith('/owner/sign-in'), `${path}: ${answer.status}`);
  }
  const events = await fetch(`${origin}/owner/events`, { redirect: 'manual' });
  expect(events.status === 204, `events: ${events.status}`);
  for (const path of ['/agents', '/theme', '/changes', '/changes/x', '/grants/x', '/logins', '/sign-out']) {
    const body = new URLSearchParams({ do: 'approve' });
    const answer = await fetch(`${origin}/owner${path}`, { method: 'POST', body, redirect: 'manual' });
    expect(answer.status === 303, `${path}: ${answer.status}`);
  }
});

await it("the owner's cookie is none on /mcp, and clients with a token hear nothing of pages", async () => {
  const answer = await fetch(`${origin}/mcp`, { method: 'POST', headers: { cookie: await cookie(), 'content-type': 'application/json' }, body: '{}' });
  expect(answer.status === 401, answer.status);
  const nothing = await fetch(`${origin}/`, { headers: { accept: 'application/json' }, redirect: 'manual' });
  expect(nothing.status === 404 && (await nothing.json()).error === 'not_found', nothing.status);
});

await it('guessing is slowed down, and says how long', async () => {
  const stranger = await person(browser);
  let answer;
  for (let guess = 0; guess < 6; guess += 1) {
    answer = await fetch(`${origin}/owner/sign-in`, { method: 'POST', body: new URLSearchParams({ password: `guess ${guess}` }) });
  }
  expect(answer.status === 429 && Number(answer.headers.get('retry-after')) > 0, answer.status);
  await signIn(stranger.page, PASSWORD);
  expect((await stranger.page.textContent('main')).includes('too many attempts'), 'it was let in at once');
  await stranger.context.close();
});

await it('signed out is signed out, on every page that is open', async () => {
  await visitor.goto(`${origin}/owner`);
  await page.goto(`${origin}/owner/logins`);
  await page.getByRole('button', { name: 'everywhere' }).click();
  expect(page.url().includes('/owner/sign-in'), page.url());
  // By itself: it hears that nobody is signed in any more.
  await visitor.waitForURL(/sign-in/);
});

other.close();
await browser.close();
finish();
