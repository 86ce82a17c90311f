// What every flow stands on: the trial that was started, a browser that is watched, and a line for each check.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.BROWSER_MODULES}/`);
const { chromium } = require('playwright-core');
export const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const trial = JSON.parse(readFileSync(process.env.GATEWREN_TRIAL, 'utf8').split('\n')[0]);
export const origin = new URL(trial.url).origin;
export const PASSWORD = 'correct horse battery';

// Until something that must happen has happened.
const PATIENCE_MS = 30_000;

// The longest that a check may take: a question to a page has no limit of its own.
const CHECK_MS = 180_000;

let failed = false;
const faults = [];

export function expect(truth, why) {
  if (!truth) throw new Error(typeof why === 'string' ? why : JSON.stringify(why));
}

function fails(afterMs) {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done after ${afterMs / 1000} s`)), afterMs).unref();
  });
}

// One check: what it says, and whether anything went wrong in the browser meanwhile.
export async function check(kind, what, run) {
  faults.length = 0;
  try {
    await Promise.race([run(), fails(CHECK_MS)]);
    expect(faults.length === 0, faults.join('; '));
    console.log(`ok browser ${kind}: ${what}`);
  } catch (error) {
    failed = true;
    console.log(`not ok browser ${kind}: ${what}: ${`${error?.message ?? error}`.replaceAll(/\s+/g, ' ').slice(0, 600)}`);
  }
}

export function finish() {
  process.exit(failed ? 1 : 0);
}

export function launch() {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync',
      // As on a device that trusts the authority: a service worker is fetched apart from the pages.
      '--ignore-certificate-errors'],
  });
}

// A person with a browser of their own. An error on the console, or a request to anywhere else, is a fault.
export async function person(browser, { alsoTo = [], ...options } = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  // Refusals and lost connections are on the console too; those that a flow provokes are no faults.
  page.on('console', (message) => {
    const expected = /status of (400|401|403|404|429)|ERR_INTERNET_DISCONNECTED/.test(message.text());
    if (message.type() === 'error' && !expected) faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    const known = [origin, ...alsoTo].includes(url.origin);
    if (url.protocol.startsWith('http') && !known) faults.push(`request to ${request.url()}`);
  });
  return { context, page };
}

// The first password, with the code that was printed.
export async function setUp(page, code = trial.owner_code) {
  await page.goto(`${origin}/`);
  await page.getByLabel('One-time code').fill(code);
  await page.getByLabel('New password').fill(PASSWORD);
  await page.getByLabel('Repeat the password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Set the password' }).click();
}

export async function signIn(page, password = PASSWORD) {
  await page.goto(`${origin}/owner`);
  await page.getByLabel("The owner's password").fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

export const heading = (page) => page.getByRole('heading', { level: 1 }).textContent();

// Waits until the page is loaded. A click does not wait for the page that it leads to, and before the style sheet is
// applied everything is too wide. Asked again and again, because no event arrives in a page without scripts.
async function loaded(page) {
  const end = Date.now() + PATIENCE_MS;
  while (await page.evaluate(() => document.readyState) !== 'complete') {
    expect(Date.now() < end, `${page.url()} is not loaded`);
    await page.waitForTimeout(20);
  }
}

// What keeps people out who see or move otherwise: nothing that axe calls serious, in light and in dark.
export async function accessible(page) {
  await loaded(page);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const grave = found.violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    const words = grave.map(({ id, nodes }) => `${id} (${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')})`);
    expect(grave.length === 0, `${page.url()} in ${colorScheme}: ${words.join('; ')}`);
  }
  await page.emulateMedia({ colorScheme: null });
}

// Nothing is wider than the screen.
export async function fits(page) {
  await loaded(page);
  const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(wide <= screen, `${page.url()} is ${wide} wide on a screen of ${screen}`);
}

export async function shot(page, kind, name) {
  await page.screenshot({ path: `${process.env.GATEWREN_SHOTS}/${kind}-${name}.png`, fullPage: true });
}

let ids = 0;

// A call of MCP, revision 2026-07-28, as an agent.
export async function rpc(token, method, params = {}, headers = {}, capabilities = {}) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const answer = await fetch(trial.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`, 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: ++ids, method, params: { ...params, _meta } }),
  });
  const text = await answer.text();
  const json = text.startsWith('{') ? text : text.match(/^data: (\{.*"(?:result|error)".*)$/m)?.[1];
  return { status: answer.status, ...(json ? JSON.parse(json) : {}) };
}

export async function callTool(token, name, args = {}) {
  const { result, error, status } = await rpc(token, 'tools/call', { name, arguments: args }, { 'mcp-name': name });
  expect(result, { name, status, error });
  return result;
}

// The command line as root types it, on the same state.
export function gatewren(...args) {
  const directory = trial.state_db.replace(/\/state\.db$/, '');
  return execFileSync(process.env.GATEWREN_BIN, [...args, '--dir', directory], { encoding: 'utf8' });
}
