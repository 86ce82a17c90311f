// A program that holds no token, made with the TypeScript SDK, is let in by the owner in a browser, over OAuth.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import {
  PASSWORD, accessible, check, expect, finish, fits, launch, origin, person, setUp, shot,
} from './stage.mjs';

const require = createRequire(`${process.env.SDK_MODULES}/`);
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { UnauthorizedError } = require('@modelcontextprotocol/sdk/client/auth.js');

const it = (what, run) => check('program', what, run);

// Where the answer goes, on the owner's own computer.
let arrive;
const arrived = new Promise((resolve) => { arrive = resolve; });
const listener = createServer((request, answer) => {
  answer.setHeader('content-type', 'text/html').end('<!DOCTYPE html><html lang="en"><title>done</title><h1>Done</h1></html>');
  if (request.url.startsWith('/callback')) arrive(new URL(request.url, 'http://127.0.0.1'));
});
await new Promise((listening) => listener.listen(0, '127.0.0.1', listening));
const elsewhere = `http://127.0.0.1:${listener.address().port}`;
const back = `${elsewhere}/callback`;

const browser = await launch();
const { context, page } = await person(browser, { viewport: { width: 360, height: 740 }, alsoTo: [elsewhere] });
await setUp(page);
// An open page of the owner reloads when its login is gone, in the middle of the next navigation.
await page.goto('about:blank');
await context.clearCookies();

// What the program keeps, in memory.
const kept = {
  redirectUrl: back,
  clientMetadata: {
    client_name: '<b>Chat</b> \u202eeb', redirect_uris: [back], grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'], token_endpoint_auth_method: 'none',
  },
  state: () => 'a state',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.given,
  saveTokens: (given) => { kept.given = given; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: (to) => { kept.to = to; },
};
const transport = () => new StreamableHTTPClientTransport(new URL(`${origin}/connect/mcp`), { authProvider: kept });
let first;

await it('is sent to the owner, who signs in first', async () => {
  first = transport();
  const refused = await new Client({ name: 'program', version: '1' }).connect(first).catch((error) => error);
  expect(refused instanceof UnauthorizedError, `${refused}`);
  await page.goto(kept.to.href);
  await page.getByLabel("The owner's password").fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'A program asks for access' }).waitFor();
});

await it('is shown as what it is, in its own words, which are letters alone', async () => {
  const main = await page.textContent('main');
  for (const part of ['<b>Chat</b>', 'not verified', '127.0.0.1']) expect(main.includes(part), `${part}: ${main}`);
  expect(!main.includes('\u202e'), 'the direction of writing was turned');
  await fits(page);
  await accessible(page);
  await shot(page, 'program', 'consent');
  const ground = () => page.locator('body').evaluate((body) => getComputedStyle(body).backgroundColor);
  const light = await ground();
  await context.addCookies([{ name: '__Host-gatewren-theme', value: 'dark', url: origin, secure: true, sameSite: 'Strict' }]);
  await page.reload();
  expect(await ground() !== light, 'the theme that the owner chose is forgotten');
  await accessible(page);
  await shot(page, 'program', 'consent-dark');
});

await it('comes in as what the owner chose', async () => {
  await page.getByLabel('Name of the agent').fill('chat');
  await page.getByLabel(/^operate/).check();
  await page.getByRole('button', { name: 'Approve' }).click();
  const { searchParams } = await arrived;
  expect(searchParams.get('state') === 'a state' && searchParams.get('iss') === `${origin}/connect`, `${searchParams}`);
  await first.finishAuth(searchParams.get('code'));
  const client = new Client({ name: 'program', version: '1' });
  await client.connect(transport());
  const { structuredContent } = await client.callTool({ name: 'whoami', arguments: {} });
  expect(structuredContent.name === 'chat' && structuredContent.policy === 'operate', structuredContent);
  await client.close();
});

await it('is an agent like others on the page, and revoked there it is out', async () => {
  await page.goto(`${origin}/owner/agents`);
  await page.getByRole('link', { name: 'chat' }).click();
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('button', { name: 'Revoke' }).click();
  const answer = await fetch(`${origin}/connect/mcp`, {
    method: 'POST', body: '{}',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${kept.given.access_token}` },
  });
  expect(answer.status === 401, answer.status);
  expect(answer.headers.get('www-authenticate').includes('resource_metadata='), answer.headers.get('www-authenticate'));
});

await it("a decision without the page's proof is none", async () => {
  const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const form = new URLSearchParams(kept.to.search);
  form.append('decision', 'approve');
  form.append('name', 'forged');
  form.append('policy', 'admin');
  const answer = await fetch(`${origin}/connect/authorize`, {
    method: 'POST', redirect: 'manual', headers: { cookie, origin }, body: form,
  });
  expect(answer.status === 200 && (await answer.text()).includes('earlier sign-in'), answer.status);
});

listener.close();
await browser.close();
finish();
