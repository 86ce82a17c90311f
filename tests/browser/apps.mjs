// The cards of MCP Apps in the reference host: its AppBridge, in a page that holds each card in a sandboxed frame.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import {
  axe, callTool, check, expect, finish, gatewren, launch, origin, person, rpc, setUp, shot,
} from './stage.mjs';

const it = (what, run) => check('apps', what, run);
const HOSTILE = '<img src=x onerror=alert(1)> \u202egnp';
const MEDIA_TYPE = 'text/html;profile=mcp-app';
const CAPABILITIES = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [MEDIA_TYPE] } } };
const CHANGE = 'ui://gatewren/change';
const SERVER = 'ui://gatewren/server';

// The modules of the host, under the names that they import.
const MODULES = {
  '@modelcontextprotocol/ext-apps/app-bridge': '@modelcontextprotocol/ext-apps/dist/src/app-bridge.js',
  '@modelcontextprotocol/client': '@modelcontextprotocol/client/dist/index.mjs',
  '@modelcontextprotocol/client/_shims': '@modelcontextprotocol/client/dist/shimsBrowser.mjs',
  '@modelcontextprotocol/core': '@modelcontextprotocol/core/dist/index.mjs',
  '@modelcontextprotocol/core/internal': '@modelcontextprotocol/core/dist/internal.mjs',
  'eventsource': 'eventsource/dist/index.js',
  'eventsource-parser': 'eventsource-parser/dist/index.js',
  'eventsource-parser/stream': 'eventsource-parser/dist/stream.js',
  'pkce-challenge': 'pkce-challenge/dist/index.browser.js',
  'zod/v4': 'zod/v4/index.js',
};
const imports = Object.fromEntries(Object.entries(MODULES).map(([name, file]) => [name, `/modules/${file}`]));
const HOST = `<!doctype html><html lang="en"><title>A host</title><h1>A host</h1>
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge';
window.opened = [];
window.called = [];
window.show = async ({ src, context, capabilities, input, result }) => {
  await window.bridge?.close();
  document.querySelector('iframe')?.remove();
  const frame = document.createElement('iframe');
  frame.title = 'A card';
  frame.sandbox = 'allow-scripts';
  frame.style.cssText = 'border: 0; width: 100%; height: 20px';
  const bridge = window.bridge = new AppBridge(null, { name: 'a host', version: '1' }, capabilities, { hostContext: context });
  bridge.oncalltool = async ({ name, arguments: args }) => {
    window.called.push(name);
    return window.callServer(name, args ?? {});
  };
  bridge.onopenlink = async ({ url }) => { window.opened.push(url); return {}; };
  bridge.onsizechange = ({ height }) => { frame.style.height = height + 'px'; };
  const ready = new Promise((done) => { bridge.oninitialized = done; });
  document.body.append(frame);
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.src = src;
  await ready;
  if (input) await bridge.sendToolInput({ arguments: input });
  if (result) await bridge.sendToolResult(result);
};
window.ready = true;
</script>`;

// The policy that a host makes of the domains of a card (MCP Apps, 2026-01-26).
const policy = ({ connectDomains, resourceDomains, frameDomains, baseUriDomains }) => {
  const from = resourceDomains.join(' ');
  return [`default-src 'none'`, `script-src 'self' 'unsafe-inline' ${from}`, `style-src 'self' 'unsafe-inline' ${from}`,
    `connect-src 'self' ${connectDomains.join(' ')}`, `img-src 'self' data: ${from}`, `font-src 'self' ${from}`,
    `frame-src ${frameDomains.join(' ') || "'none'"}`, `object-src 'none'`, `base-uri ${baseUriDomains.join(' ') || "'self'"}`].join('; ');
};

const cards = {};
const asked = [];
const server = createServer((request, answer) => {
  asked.push(request.url);
  const card = cards[decodeURIComponent(request.url.slice(6))];
  if (request.url === '/') return answer.setHeader('content-type', 'text/html').end(HOST);
  if (request.url === '/favicon.ico') return answer.writeHead(204).end();
  if (request.url.startsWith('/modules/')) {
    return answer.setHeader('content-type', 'text/javascript').end(readFileSync(`${process.env.BROWSER_MODULES}${request.url.slice(8)}`));
  }
  if (!card) return answer.writeHead(404).end();
  answer.setHeader('content-security-policy', policy(card._meta.ui.csp));
  return answer.setHeader('content-type', 'text/html').end(card.text);
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const { port } = server.address();
const [host, sandbox] = [`http://127.0.0.1:${port}`, `http://localhost:${port}`];

const agent = (name, preset, ...options) => JSON.parse(gatewren('agent', 'add', name, '--policy', preset, ...options, '--json')).token;
const reader = agent('reader', 'observe', '--toolset', 'all');
const proposer = agent('proposer', 'suggest');
const admin = agent('admin', 'admin', '--toolset', 'all');
const operator = agent('operator', 'operate', '--toolset', 'all', '--mode', 'write=propose');
const browser = await launch();
const { page } = await person(browser, { alsoTo: [host, sandbox], viewport: { width: 800, height: 700 } });
page.on('dialog', () => { throw new Error('a card opened a dialog'); });
let token = reader;
await page.exposeFunction('callServer', (name, args) => callTool(token, name, args));
await setUp(page);
await page.goto(host);
await page.waitForFunction(() => window.ready);

const can = { openLinks: {}, serverTools: {} };
async function show(uri, options = {}) {
  const given = { context: { theme: 'light' }, capabilities: can, ...options, src: `${sandbox}/card/${encodeURIComponent(uri)}` };
  await page.evaluate((all) => window.show(all), given);
  return page.frames().find((frame) => frame.url().includes('/card/'));
}
const textOf = (frame) => frame.evaluate(() => document.body.innerText);
async function shows(frame, text) {
  const seen = frame.waitForFunction((words) => document.body.innerText.includes(words), text, { timeout: 15_000 });
  await seen.catch(async () => { throw new Error(`no ${text} in ${await textOf(frame)}`); });
}
async function looksRight(frame, name) {
  for (const theme of ['light', 'dark']) {
    await page.evaluate((to) => window.bridge.sendHostContextChange({ theme: to }), theme);
    await frame.waitForFunction((to) => document.documentElement.style.colorScheme === to, theme);
    await frame.evaluate(axe);
    const { violations } = await frame.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const words = violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`);
    expect(words.length === 0, `${name} in ${theme}: ${words.join('; ')}`);
    await shot(page, 'apps', `${name}-${theme}`);
  }
}

await it('cards are listed and read by a client that shows them', async () => {
  const { result } = await rpc(reader, 'resources/list', {}, {}, CAPABILITIES);
  for (const uri of [CHANGE, SERVER]) {
    expect(result.resources.some((one) => one.uri === uri && one.mimeType === MEDIA_TYPE), result.resources);
    const read = await rpc(reader, 'resources/read', { uri }, { 'mcp-name': uri }, CAPABILITIES);
    [cards[uri]] = read.result.contents;
    expect(cards[uri].mimeType === MEDIA_TYPE && cards[uri].text.length < 25_000, cards[uri]);
  }
});

await it('a card without data waits for it, and is readable', async () => {
  const frame = await show(CHANGE);
  await shows(frame, 'Waiting for data');
  await looksRight(frame, 'waiting');
});

const NOTES = { pointer: '/public/ui/notes', value: { title: HOSTILE, text: 'same' } };
let change;
await it('a proposal shows its exact arguments, what it would change, and that it waits for the owner', async () => {
  await callTool(admin, 'state_put', { pointer: NOTES.pointer, value: { title: 'old', text: 'same' } });
  token = operator;
  const input = { ...NOTES, reason: HOSTILE };
  const result = await callTool(token, 'state_put', input);
  change = result.structuredContent.change;
  const frame = await show(CHANGE, { input, result });
  for (const text of ['Waits for the owner', 'state_put', '/public/ui/notes', change, '"text": "same"']) {
    await shows(frame, text);
  }
  // The difference is drawn when the card has read the state.
  await frame.locator('del').first().waitFor();
  const removed = await frame.locator('del').allTextContents();
  const added = await frame.locator('ins').allTextContents();
  expect(JSON.stringify(removed) === JSON.stringify(['-   "title": "old"']), removed);
  expect(JSON.stringify(added) === JSON.stringify(['+   "title": "<img src=x onerror=alert(1)> \\u{202e}gnp"']), added);
  const text = await textOf(frame);
  expect(text.match(/<img src=x onerror=alert\(1\)> \\u\{202e\}gnp/g)?.length >= 2, text);
  expect(await frame.locator('img').count() === 0, 'a name became markup');
  const called = await page.evaluate(() => window.called);
  expect(called.every((name) => ['change_get', 'state_get'].includes(name)), called);
  await looksRight(frame, 'change');
});

await it('a card opens the owner\'s page through its host, and has nothing that decides', async () => {
  const frame = page.frames().at(-1);
  const labels = await frame.locator('button, a, input, form').allTextContents();
  expect(JSON.stringify(labels) === JSON.stringify(["Open the owner's page", 'Refresh']), labels);
  await frame.getByRole('button', { name: 'Open' }).click();
  await page.waitForFunction(() => window.opened.length > 0);
  const [url] = await page.evaluate(() => window.opened);
  expect(url === `https://localhost:${new URL(origin).port}/owner/changes/${change}` || url === `${origin}/owner/changes/${change}`, url);
});

await it('Refresh shows the owner\'s decision', async () => {
  const frame = page.frames().at(-1);
  gatewren('inbox', 'reject', change, '--note', HOSTILE);
  await frame.getByRole('button', { name: 'Refresh' }).click();
  await shows(frame, 'Rejected: nothing was done');
  await shows(frame, 'The owner says: <img');
  await looksRight(frame, 'rejected');
});

const [container] = (await callTool(reader, 'container_list')).structuredContent.containers;
if (container) {
  await it('a change of a container shows the setting that it would replace', async () => {
    token = operator;
    const input = { container: container.name, enabled: !container.autostart };
    const frame = await show(CHANGE, { input, result: await callTool(token, 'container_autostart', input) });
    await shows(frame, `- ${container.autostart}`);
    await shows(frame, `+ ${!container.autostart}`);
  });
}

await it('a host without tools and links gets the arguments of the call, and no buttons', async () => {
  token = proposer;
  const input = { tool: 'state_put', arguments: NOTES, reason: 'as planned' };
  const result = await callTool(token, 'propose_change', input);
  const frame = await show(CHANGE, { input, result, capabilities: {} });
  await shows(frame, 'Waits for the owner');
  await shows(frame, '/public/ui/notes');
  await shows(frame, 'as planned');
  expect(await frame.locator('button').count() === 0, 'a button that can do nothing');
});

await it('a failed call is shown in its words', async () => {
  const result = await callTool(operator, 'change_get', { change: 'none' });
  const frame = await show(CHANGE, { input: { change: 'none' }, result });
  await shows(frame, 'You have no change none');
});

await it('the card of the server shows each result of its tools, and everything when it is asked to', async () => {
  token = reader;
  const frame = await show(SERVER, { input: {}, result: await callTool(token, 'server_metrics') });
  await shows(frame, 'Memory');
  expect(!(await textOf(frame)).includes('What changed'), 'it called tools by itself');
  await frame.getByRole('button', { name: 'Show everything now' }).click();
  await shows(frame, 'What changed');
  await shows(frame, 'Containers');
  await looksRight(frame, 'server');
});

await it('names of containers and lines of the log are text', async () => {
  const data = { containers: [{ name: HOSTILE, runtime: 'lxc', state: 'running', addresses: [HOSTILE], memory_bytes: 5e8 }] };
  const frame = await show(SERVER, { result: { content: [{ type: 'text', text: JSON.stringify(data) }] } });
  await shows(frame, '<img src=x onerror=alert(1)> \\u{202e}gnp');
  await page.evaluate((summary) => window.bridge.sendToolResult({ content: [], structuredContent: { revisions: [], summary } }), [HOSTILE, 'b']);
  await shows(frame, 'What changed');
  expect(await frame.locator('img').count() === 0, 'a name became markup');
  await looksRight(frame, 'hostile');
});

await it('a card follows the size, the colors and the language of its host', async () => {
  const context = { theme: 'dark', locale: 'de-DE', timeZone: 'Asia/Tokyo', styles: { variables: { '--color-background-primary': '#102030' } } };
  const frame = await show(SERVER, { context, result: await callTool(reader, 'server_metrics') });
  await shows(frame, 'Load');
  const color = await frame.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  expect(color === 'rgb(16, 32, 48)', color);
  expect(/As of \d{2}\.\d{2}\.\d{4}/.test(await textOf(frame)), await textOf(frame));
  const inside = await frame.evaluate(() => Math.ceil(document.documentElement.getBoundingClientRect().height));
  await page.waitForFunction((height) => document.querySelector('iframe').clientHeight === height, inside);
});

await it('no card asks for anything, of anyone', async () => {
  const other = asked.filter((path) => !/^\/($|favicon\.ico$|modules\/|card\/)/.test(path));
  expect(other.length === 0, other);
});

server.close();
await browser.close();
finish();
