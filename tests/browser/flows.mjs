// The owner at work, from the first password on: flows.mjs KIND WIDTH HEIGHT
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { fillHistory } from './history.mjs';
import {
  PASSWORD, accessible, callTool, check, expect, finish, fits, gatewren, heading, launch, origin, person, rpc, setUp,
  shot, signIn, trial,
} from './stage.mjs';

const [kind, width, height] = process.argv.slice(2);
const viewport = { width: Number(width), height: Number(height) };
const HOSTILE = '<img src=x onerror=alert(1)> \u202egnp';
const browser = await launch();
const { context, page } = await person(browser, { viewport });
page.on('dialog', () => { throw new Error('a page of ours opened a dialog'); });
const it = (what, run) => check(kind, what, run);
const looksRight = async (name) => { await fits(page); await accessible(page); await shot(page, kind, name); };
const proposer = gatewrenAgent('proposer', 'suggest');
const operator = gatewrenAgent('worker', 'operate', '--toolset', 'all', '--mode', 'write=propose');
const asker = gatewrenAgent('asker', 'admin');

function gatewrenAgent(name, policy, ...options) {
  return JSON.parse(gatewren('agent', 'add', name, '--policy', policy, ...options, '--json')).token;
}

// A change that waits, and its id.
async function proposed(reason, text = 'as planned') {
  const args = { pointer: '/public/ui/notes', value: { text } };
  const result = await callTool(proposer, 'propose_change', { tool: 'state_put', arguments: args, reason });
  const id = JSON.stringify(result).match(/chg_[0-9a-f]{16}/)?.[0];
  expect(id, result);
  return id;
}

await it('a wrong code sets nothing, and two passwords are refused', async () => {
  await setUp(page, 'AAAAA-AAAAA');
  expect((await page.textContent('main')).includes('the code is wrong'), 'the code was taken');
  await page.getByLabel('One-time code').fill(trial.owner_code);
  await page.getByLabel('New password').fill(PASSWORD);
  await page.getByLabel('Repeat the password').fill('another one');
  await page.getByRole('button', { name: 'Set the password' }).click();
  expect((await page.textContent('main')).includes('two passwords differ'), 'they were taken');
  await looksRight('set-up');
});

await it('the code sets the first password, once, and signs in', async () => {
  await setUp(page, trial.owner_code.toLowerCase());
  expect(await heading(page) === 'Home', await heading(page));
  const cookies = await context.cookies();
  const cookie = cookies.find(({ name }) => name === '__Host-gatewren');
  expect(cookie?.httpOnly && cookie.secure && cookie.sameSite === 'Strict', cookies);
  await page.goto(`${origin}/owner/set-up`);
  expect(page.url().endsWith('/owner/sign-in'), page.url());
});

await it('a wrong password is refused, the right one leads back to the page that was asked for', async () => {
  await context.clearCookies();
  await page.goto(`${origin}/owner/agents`);
  await page.getByLabel("The owner's password").fill('wrong password');
  await page.getByRole('button', { name: 'Sign in' }).click();
  expect((await page.textContent('main')).includes("not the owner's password"), 'it was taken');
  await looksRight('sign-in');
  await page.getByLabel("The owner's password").fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  expect(await heading(page) === 'Agents', await heading(page));
});

await it('the first page is light', async () => {
  const fresh = await person(browser, { viewport, storageState: await context.storageState() });
  const asked = [];
  fresh.page.on('requestfinished', (request) => asked.push(request));
  await fresh.page.goto(`${origin}/owner`, { waitUntil: 'load' });
  await fresh.page.waitForTimeout(300);
  const sizes = await Promise.all(asked.map((request) => request.sizes()));
  const bytes = sizes.reduce((sum, { responseBodySize, responseHeadersSize }) => sum + responseBodySize + responseHeadersSize, 0);
  await fresh.context.close();
  expect(bytes > 5_000 && bytes < 60_000, `${bytes} bytes`);
});

await it('what an agent proposes appears by itself', async () => {
  await page.goto(`${origin}/owner/inbox`);
  expect((await page.textContent('main')).includes('No changes are pending'), 'something waits');
  // The stream is there when the page has asked for it.
  await page.waitForTimeout(500);
  await proposed(`please ${HOSTILE}`);
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
  expect(await page.getByRole('link', { name: 'Inbox (1)' }).count() === 1, 'the navigation counts');
  await looksRight('inbox');
});

await it('a change shows agent, risk, reason, what would differ; approving runs it', async () => {
  await page.getByRole('link', { name: 'state_put' }).click();
  const main = await page.textContent('main');
  expect(/^Change the state at .+ state_put$/.test(await heading(page)), await heading(page));
  for (const part of ['state_put', 'proposer', 'as planned', "agent's own words", '<img src=x', 'SHA-256']) {
    expect(main.includes(part), `${part} is not in: ${main}`);
  }
  expect(!main.includes('\u202e'), 'the direction of writing was turned');
  await looksRight('change');
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  expect((await page.textContent('main')).includes('It runs once'), 'it does not say so');
  await page.locator('article .tag', { hasText: /applied|failed/ }).first().waitFor();
  await shot(page, kind, 'change-approved');
});

await it('what stands now is shown beside what would stand there', async () => {
  const id = await proposed('another text', 'otherwise');
  await page.goto(`${origin}/owner/changes/${id}`);
  const was = await page.locator('.was').textContent();
  const will = await page.locator('.will', { hasText: 'text' }).textContent();
  expect(was.includes('as planned') && will.includes('otherwise'), { was, will });
  await shot(page, kind, 'change-diff');
  gatewren('inbox', 'reject', id);
});

await it('ten kilobytes are shown, and break nothing', async () => {
  const long = `${'w'.repeat(5_000)}<script>alert(1)</script>${'\u202e'.repeat(2_500)}`;
  const id = await proposed(long.slice(0, 1_000), long);
  await page.goto(`${origin}/owner/changes/${id}`);
  await fits(page);
  const main = await page.textContent('main');
  expect(main.includes('<script>alert(1)</script>') && main.includes('\\u{202e, 2500 times}'), 'a part is missing');
  await page.goto(`${origin}/owner`);
  await fits(page);
  expect((await page.textContent('main')).includes('too long to be shown here in full'), 'it can be approved here');
  gatewren('inbox', 'reject', id);
});

await it('rejecting with a note, which the agent reads', async () => {
  const id = await proposed('again');
  await page.goto(`${origin}/owner/changes/${id}`);
  await page.getByLabel('Note, which the agent can read').fill('not today');
  await page.getByRole('button', { name: 'Reject', exact: true }).click();
  expect((await page.textContent('main')).includes('It does not run'), 'it does not say so');
  const told = JSON.stringify(await callTool(proposer, 'change_get', { change: id }).catch((error) => error.message));
  const seen = gatewren('inbox', 'show', id);
  expect(seen.includes('rejected') && seen.includes('not today'), seen + told);
});

await it('approving all decides on what was shown, or on nothing', async () => {
  const ids = [await proposed('first', 'Paris'), await proposed('second', 'Rome')];
  await page.goto(`${origin}/owner`);
  // Nothing moves under the hand of who is about to decide.
  await page.getByRole('button', { name: 'Approve all 2' }).focus();
  const late = await proposed('third', 'Madrid');
  await page.waitForTimeout(1500);
  await page.getByRole('button', { name: 'Approve all 2' }).click();
  expect((await page.textContent('main')).includes('Nothing was approved'), 'it does not say so');
  for (const id of [...ids, late]) expect(gatewren('inbox', 'show', id).includes('pending'), `${id} was decided on`);
  await page.getByRole('button', { name: 'Approve all 3' }).click();
  expect((await page.textContent('main')).includes('Each runs once'), 'it does not say so');
  for (const id of [...ids, late]) expect(!gatewren('inbox', 'show', id).includes('pending'), `${id} waits still`);
});

await it('approving and allowing the same for a while, and ending that', async () => {
  const id = await proposed('for a while', 'Lisbon');
  await page.goto(`${origin}/owner/changes/${id}`);
  await page.getByLabel('For', { exact: true }).selectOption('4h');
  await page.getByRole('button', { name: 'Approve, and allow the same' }).click();
  await page.goto(`${origin}/owner/inbox`);
  await page.getByRole('heading', { name: 'Temporary grants' }).waitFor();
  await shot(page, kind, 'grants');
  await page.getByRole('button', { name: 'End it' }).click();
  expect((await page.textContent('main')).includes('The grant has ended'), 'it does not say so');
});

// A call of an operator that waits, and its id.
async function waiting(tool, args) {
  const result = await callTool(operator, tool, args);
  const id = JSON.stringify(result).match(/chg_[0-9a-f]{16}/)?.[0];
  expect(id, result);
  return id;
}

await it('five requests fit on a screen: a sentence, the reason in quotes, a command in full, all else folded', async () => {
  const command = `uptime # ${'a long remark '.repeat(30)}the end`;
  const ids = [
    await waiting('system_shell', { command, reason: 'to see the load' }),
    await waiting('system_shell', { command: 'df -h' }),
    await waiting('notification_remove', { ids: [1], reason: 'it is old' }),
    await waiting('state_put', { pointer: '/public/ui/a', value: 1, reason: 'a' }),
    await waiting('state_put', { pointer: '/public/ui/b', value: 'two', reason: 'b' }),
  ];
  await page.goto(`${origin}/owner/inbox`);
  const card = (id) => page.locator(`article#${id}`);
  const text = async (id) => (await card(id).innerText()).replaceAll(/\s+/g, ' ');
  expect((await text(ids[0])).includes('“to see the load”'), await text(ids[0]));
  expect((await card(ids[0]).locator('pre.command').innerText()).endsWith('the end'), 'the command is cut');
  const [inner, outer] = await card(ids[0]).locator('pre.command').evaluate((pre) => [pre.scrollHeight, pre.clientHeight]);
  expect(inner <= outer, `the command is ${inner} high in ${outer}`);
  expect((await text(ids[1])).includes('worker gave no reason.'), await text(ids[1]));
  expect((await card(ids[3]).locator('h2 strong').innerText()) === '/public/ui/a', await card(ids[3]).locator('h2').innerText());
  for (const id of ids) expect(!(await text(id)).includes('SHA-256'), 'the digest is not folded');
  expect(/ids \S+ \[ ?1 ?\]/.test(await text(ids[2])), `an argument is missing: ${await text(ids[2])}`);
  if (kind === 'desk') {
    const ends = await Promise.all(ids.map(async (id) => {
      const box = await card(id).boundingBox();
      return box.y + box.height;
    }));
    expect(Math.max(...ends) <= 1400, `five requests are ${Math.max(...ends)} high`);
  }
  await looksRight('inbox-five');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, kind, 'inbox-five-dark');
  await page.emulateMedia({ colorScheme: null });
  await page.evaluate(() => scrollTo(0, 400));
  await page.locator('.batch').evaluate((bar) => {
    if (bar.getBoundingClientRect().top !== 0) throw new Error(`the bar is at ${bar.getBoundingClientRect().top}`);
  });
  await card(ids[1]).getByText('⋯').click();
  await card(ids[1]).getByLabel('Note, which the agent can read').fill('use the tool');
  await looksRight('inbox-more');
  await card(ids[1]).getByRole('button', { name: 'Reject', exact: true }).click();
  expect((await page.locator('[role=status].notice').innerText()).includes('it does not run'), 'no word of the result');
  expect(gatewren('inbox', 'show', ids[1]).includes('use the tool'), 'the note is lost');
  // What loses data is not among those that one press approves.
  const all = page.getByRole('button', { name: /^Approve all/ });
  expect((await all.innerText()) === 'Approve all 3', await all.innerText());
  await all.click();
  expect(gatewren('inbox', 'show', ids[2]).includes('pending'), 'it was approved with the others');
});

await it('what loses data for good is approved with its name, which the server checks, without scripts too', async () => {
  const plain = await person(browser, { viewport, javaScriptEnabled: false });
  await signIn(plain.page);
  await plain.page.goto(`${origin}/owner/inbox`);
  const card = plain.page.locator('article.loses');
  expect((await card.innerText()).includes('cannot be undone'), await card.innerText());
  const id = await card.getAttribute('id');
  const waits = () => gatewren('inbox', 'show', id).includes('pending');
  await card.getByRole('button', { name: 'Approve', exact: true }).click();
  expect(waits(), 'one press was enough');
  await plain.page.getByLabel('Name').fill('another');
  await plain.page.getByRole('button', { name: 'Approve' }).click();
  expect((await plain.page.textContent('main')).includes('another name; nothing was approved') && waits(), 'another name is enough');
  await fits(plain.page);
  await shot(plain.page, kind, 'typed-name');
  await plain.page.getByLabel('Name').fill('notification_remove');
  await plain.page.getByRole('button', { name: 'Approve' }).click();
  expect(/Done:|it failed:/.test(await plain.page.locator('[role=status].notice').innerText()), 'no result');
  expect(!waits(), 'it waits still');
  await plain.context.close();
});

await it('an approval in the inbox shows its result there, and a container is started again by its undo', async () => {
  if (!process.env.GATEWREN_LXCPATH) return;
  const id = await waiting('container_stop', { container: 'beta', reason: 'it hangs' });
  await page.goto(`${origin}/owner/inbox`);
  const card = page.locator(`article#${id}`);
  expect(/Stop the container beta/.test(await card.innerText()) && (await card.innerText()).includes('Now: running'), await card.innerText());
  await card.getByRole('button', { name: 'Approve', exact: true }).click();
  expect(page.url().endsWith(`/owner/inbox?decided=${id}`), page.url());
  await page.getByText('Done: Stop the container beta').waitFor();
  await looksRight('inbox-result');
  await page.getByRole('button', { name: 'Undo: start beta' }).click();
  expect((await page.textContent('main')).includes('The container was started.'), await page.textContent('main'));
  await page.getByRole('heading', { name: 'beta running' }).waitFor();
});

let token;
await it('a new agent: its token once, with what each client is told, and it is good', async () => {
  await page.goto(`${origin}/owner/agents`);
  await page.getByRole('link', { name: 'New agent' }).click();
  expect(await page.getByLabel('Name').count() === 0, 'the program is not chosen first');
  await looksRight('agent-new');
  await page.getByRole('link', { name: 'Claude Code' }).click();
  expect(await page.getByLabel('Name').inputValue() === 'claude-code', await page.getByLabel('Name').inputValue());
  const unfit = HOSTILE.replace('\u202e', '');
  await page.getByLabel('Name').fill(unfit);
  await page.getByLabel(/^operate/).check();
  await page.getByLabel('Expires').fill('90d');
  await page.getByRole('button', { name: 'Add it and show its token' }).click();
  expect(await page.getByLabel('Name').inputValue() === unfit, 'what was typed is lost');
  expect(await page.locator('#token').count() === 0, 'an agent has a name that a shell does not take');
  await page.getByLabel('Name').fill('kitchen');
  await page.getByText('Differences from the policy').click();
  await page.getByLabel('persist: Approve', { exact: true }).check();
  await looksRight('agent-form');
  await page.getByLabel('persist: As the policy').check();
  await page.getByRole('button', { name: 'Add it and show its token' }).click();
  token = await page.locator('#token').textContent();
  expect(/^gw_[\w-]{49}$/.test(token), token);
  await page.getByText('The token as a QR code').click();
  await page.locator('.qr svg').waitFor();
  await page.getByRole('heading', { name: '3. Connect Claude Code' }).waitFor();
  expect(await page.locator('ol:visible > li').count() >= 3, 'no steps');
  await page.getByText('Waiting for its first call…').waitFor();
  const main = await page.textContent('main');
  for (const client of ['Claude Code', 'Claude Desktop', 'Cursor', 'VS Code', 'Codex', 'Gemini CLI', 'LibreChat',
    'Open WebUI', 'n8n', 'mcp-remote', 'FastMCP', 'curl']) expect(main.includes(client), `${client} is not told`);
  expect(main.includes('kitchen'), main);
  await looksRight('token');
  expect((await rpc(token, 'tools/list')).result.tools.length > 0, 'the token is not good');
  await page.getByText('Connected ✓').waitFor();
  await page.getByRole('link', { name: 'To the agent' }).click();
  expect(!(await page.content()).includes(token), 'the token is shown again');
});

await it('another policy: seen before it is saved, and in force with the next call', async () => {
  await page.getByText('Change name, access or expiry').click();
  await page.getByLabel(/^observe/).check();
  await page.getByRole('button', { name: 'Preview' }).click();
  const main = await page.textContent('main');
  expect(main.includes('Its tools after the change') && main.includes('policy: operate -> observe'), main);
  const names = async () => (await rpc(token, 'tools/list')).result.tools.map(({ name }) => name);
  expect((await names()).includes('container_restart'), 'the preview was in force');
  await looksRight('preview');
  await page.getByRole('button', { name: 'Save' }).click();
  expect((await page.textContent('main')).includes('Saved.'), 'it does not say so');
  expect(!(await names()).includes('container_restart'), 'it is not in force');
  await looksRight('agent');
});

await it('what cannot be saved says why and loses nothing', async () => {
  await page.getByText('Change name, access or expiry').click();
  await page.getByLabel('Networks').fill('192.168.1.5/24');
  await page.getByRole('button', { name: 'Save' }).click();
  expect((await page.textContent('main')).includes('192.168.1.0/24'), 'no word of what would be right');
  expect(await page.getByLabel('Networks').inputValue() === '192.168.1.5/24', 'what was typed is lost');
});

await it('a new token ends the old one, and revoking ends the agent', async () => {
  await page.getByRole('button', { name: 'New token' }).click();
  const next = await page.locator('#token').textContent();
  expect((await rpc(token, 'tools/list')).status === 401, 'the old one is good still');
  expect((await rpc(next, 'tools/list')).result, 'the new one is not good');
  await page.getByRole('link', { name: 'To the agent' }).click();
  await page.getByRole('button', { name: 'Revoke' }).click();
  expect(await heading(page) === 'Revoke kitchen?', await heading(page));
  expect((await rpc(next, 'tools/list')).result, 'it is revoked without an answer');
  await looksRight('revoke');
  await page.getByRole('button', { name: 'Revoke' }).click();
  expect((await page.textContent('main')).includes('is revoked'), 'it does not say so');
  expect((await rpc(next, 'tools/list')).status === 401, 'it comes in still');
});

await it('agents: a card for each, with when it worked in the last week, as a map and as a table', async () => {
  // A call that is refused, beside those that were made.
  await callTool(asker, 'container_stop', { container: 5 });
  const card = page.locator('.containers > .card', { hasText: 'proposer' });
  for (let tries = 0; tries < 50; tries++) {
    await page.goto(`${origin}/owner/agents`);
    if (await page.locator('.heat .refused').count() > 0) break;
  }
  expect(/suggest\s+active now/.test((await card.innerText()).replaceAll('\n', ' ')), await card.innerText());
  const words = await card.locator('svg.heat').getAttribute('aria-label');
  expect(/^[1-9]\d* calls in 7 days, \d+ refused\.$/.test(words), words);
  expect(await page.locator('.heat .refused').count() >= 2, 'no refusal is marked');
  await page.getByText('Values as a table').click();
  const table = page.getByRole('region', { name: 'Calls of 7 days' });
  expect(await table.locator('tbody tr').count() === 7 && await table.locator('tbody td').count() === 168, 'not 7 days of 24 hours');
  expect(/\d+, \d+ refused/.test(await table.textContent()), await table.textContent());
  await looksRight('agents');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, kind, 'agents-dark');
  await page.emulateMedia({ colorScheme: null });
  await card.getByRole('link').click();
  expect(/^\d+ calls in 7 days/.test(await page.locator('svg.heat').getAttribute('aria-label')), 'no week on the page of one');
});

await it('home: what waits, the health, the server, the assistants, alerts, and who changed what', async () => {
  const id = await proposed('for the tile', 'Bonn');
  await page.goto(`${origin}/owner/home`);
  const tile = (name) => page.locator('.tiles > section', { has: page.getByRole('heading', { name }) });
  expect((await tile('Waiting for you').textContent()).match(/1\D+The oldest: just now|1\D+The oldest: \d+ min ago/), 'the tile does not count');
  expect((await tile('Health').textContent()).includes('sudo gatewren doctor'), 'no way to a full check');
  expect(/active now[1-9]/.test(await tile('Assistants').textContent()), await tile('Assistants').textContent());
  expect(/calls[1-9]/.test(await tile('Assistants').textContent()), await tile('Assistants').textContent());
  expect(/Collecting: \d+ of 60 minutes/.test(await tile('Server').textContent()), await tile('Server').textContent());
  await shot(page, kind, 'home-collecting');
  gatewren('inbox', 'reject', id);
  fillHistory(8, 'alpha', 'beta');
  await page.goto(`${origin}/owner/home`);
  expect((await tile('Waiting for you').textContent()).includes('Nothing waits'), 'something waits');
  expect(await tile('Server').locator('svg').count() === 4, `${await tile('Server').locator('svg').count()} charts`);
  expect((await tile('Server').textContent()).includes('24 h ago'), 'no time axis');
  expect(/CPU: \d+ %; lowest \d+ %, highest \d+ %/.test(await tile('Server').locator('svg').first().getAttribute('aria-label')), 'no words for the chart');
  await page.getByText('Values as a table').click();
  expect(await page.locator('#host-values tbody tr').count() >= 10, 'the table has no values');
  await page.getByText('Values as a table').click();
  const main = await page.textContent('main');
  for (const part of ['CPU', 'Memory', 'Fullest disk', 'Recent changes', 'proposer', 'ui/notes']) {
    expect(main.includes(part), `${part} is not in: ${main.slice(0, 500)}`);
  }
  // An alert is new for as long as its request waits, and comes a moment after it.
  const pending = await proposed('for the alert', 'Graz');
  const mark = page.getByRole('button', { name: 'Mark as seen' });
  const its = page.locator(`.alert a[href="/owner/changes/${pending}"]`);
  for (let tries = 0; tries < 50 && await its.count() === 0; tries++) await page.goto(`${origin}/owner/home`);
  await mark.click();
  expect((await page.textContent('main')).includes('marked as seen'), 'it does not say so');
  const marked = page.locator('.alert', { has: page.locator(`a[href="/owner/changes/${pending}"]`) });
  // Another alert may have come since, and stays new.
  const tags = await marked.locator('.tag').allTextContents();
  gatewren('inbox', 'reject', pending);
  expect(tags.join() === 'info', `its tags are ${tags}`);
  const alert = page.locator('.alert').first();
  await page.locator('#earlier-alerts summary').click();
  expect(/info|warning|error/.test(await alert.textContent()) && (await alert.locator('time').count()) === 1, await alert.textContent());
  expect(!/(packageData|units|Host) has changed/.test(main), `the first look is a change: ${main}`);
  expect(!main.includes('/public/'), `pointers are shown: ${main}`);
  const time = page.locator('tbody time').last();
  expect(/^(just now|\d+ (min|h) ago)$/.test(await time.textContent()), await time.textContent());
  expect(/\d:\d\d/.test(await time.getAttribute('title')), await time.getAttribute('title'));
  await looksRight('home');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, kind, 'home-dark');
  await page.emulateMedia({ colorScheme: null });
});

await it('containers: a card for each, and a page with charts, what happened, calls, log, snapshots and backups', async () => {
  await page.goto(`${origin}/owner/containers`);
  expect(await heading(page) === 'Containers', await heading(page));
  await looksRight('containers');
  if (!process.env.GATEWREN_LXCPATH) return;
  const card = page.locator('.card', { has: page.getByRole('link', { name: 'beta' }) });
  // Not alpha, which other parts of the tests stop.
  const opens = async () => {
    await page.goto(`${origin}/owner/containers`);
    if (await card.locator('.tag.good', { hasText: 'running' }).count() !== 1) return false;
    await card.getByRole('link', { name: 'beta' }).click();
    return await heading(page) === 'beta running';
  };
  for (const end = Date.now() + 60_000; !await opens(); await page.waitForTimeout(500)) {
    expect(Date.now() < end, `beta is not shown as running, in words and colour: ${await heading(page)}`);
  }
  for (const name of ['Usage', 'What happened', 'Last calls about it', 'Last log lines', 'Snapshots', 'Backups']) {
    await page.getByRole('heading', { name }).waitFor();
  }
  const usage = page.locator('section', { has: page.getByRole('heading', { name: 'Usage' }) });
  for (const [period, begin] of [['24 h', '24 h ago'], ['7 d', '7 days ago'], ['1 h', '1 h ago']]) {
    await page.getByRole('link', { name: period, exact: true }).click();
    expect(await usage.locator('svg').count() === 4, `${await usage.locator('svg').count()} charts in ${period}`);
    expect((await usage.textContent()).includes(begin), `no time axis in ${period}`);
    expect(await page.locator('.shortcuts [aria-current]').textContent() === period, 'the period is not marked');
  }
  await looksRight('container');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, kind, 'container-dark');
  await page.emulateMedia({ colorScheme: null });
  for (const wrong of ['nobody', 'docker%3Anobody', '..%2F..', '%00']) {
    const answer = await page.goto(`${origin}/owner/containers/${wrong}`);
    expect(answer.status() === 404, `${wrong}: ${answer.status()}`);
  }
});

await it('the owner stops, starts and restarts a container, after a question, and the audit has it', async () => {
  if (!process.env.GATEWREN_LXCPATH) return;
  const main = () => page.textContent('main');
  await page.goto(`${origin}/owner/containers/beta`);
  await page.getByRole('button', { name: 'Stop' }).click();
  expect(await heading(page) === 'Stop beta?', await heading(page));
  await looksRight('container-question');
  await page.getByRole('link', { name: 'Back to the container' }).click();
  expect(await heading(page) === 'beta running', await heading(page));
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  expect((await main()).includes('The container was stopped.'), await main());
  await page.getByRole('heading', { name: 'beta stopped' }).waitFor();
  await page.getByText(/stopped (just now|1 min ago)/).waitFor();
  expect(await page.getByRole('button', { name: 'Stop' }).count() === 0, 'a stopped one can be stopped');
  const what = page.getByRole('region', { name: 'What happened' }).locator('tbody tr');
  const author = what.filter({ hasText: 'Container beta is now stopped' }).first().locator('td').last();
  expect((await author.textContent()).startsWith('owner the call'), await author.textContent());
  expect((await page.getByRole('region', { name: 'Last calls about it' }).textContent()).includes('container stop'), 'the audit has no row');
  await looksRight('container-stopped');
  await page.getByRole('button', { name: 'Start' }).click();
  expect((await main()).includes('The container was started.'), await main());
  await page.getByRole('heading', { name: 'beta running' }).waitFor();
  await page.getByRole('button', { name: 'Restart' }).click();
  expect(await heading(page) === 'Restart beta?', await heading(page));
  await page.getByRole('button', { name: 'Restart' }).click();
  expect((await main()).includes('The container was restarted.'), await main());
  const calls = gatewren('audit', 'list', '--json').trim().split('\n').join();
  for (const command of ['container stop', 'container start', 'container restart']) expect(calls.includes(command), `${command} is not recorded`);
  const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const forged = await fetch(`${origin}/owner/containers/beta`, {
    method: 'POST', redirect: 'manual', headers: { cookie, origin }, body: new URLSearchParams({ do: 'stop', sure: 'yes' }),
  });
  expect(forged.status >= 400, `without the proof of the page: ${forged.status}`);
  await page.goto(`${origin}/owner/containers/beta`);
  expect(await heading(page) === 'beta running', await heading(page));
});

await it('the header: name, status in words, the pages, and a menu', async () => {
  await page.goto(`${origin}/owner`);
  expect(page.url().endsWith('/owner/home'), `nothing waits, and it leads to ${page.url()}`);
  const name = hostname();
  expect((await page.title()) === `Home · ${name}`, await page.title());
  expect((await page.locator('.brand').textContent()).startsWith(name), 'another name');
  expect(/All is well|problem/.test(await page.locator('.brand').textContent()), 'no status in words');
  const names = await page.locator('nav a:visible').allTextContents();
  const wanted = ['Home', 'Inbox', 'Containers', 'Agents', 'Activity', ...(kind === 'desk' ? ['Settings'] : [])];
  expect(names.join() === wanted.join(), names);
  // Below the content on a phone, within reach of a thumb, and never over its end.
  const box = await page.locator('nav').boundingBox();
  expect(kind === 'desk' ? box.y < 100 : Math.round(box.y + box.height) === viewport.height, box);
  const id = await proposed('to be counted', 'Oslo');
  await page.waitForFunction(() => document.title.startsWith('(1) Home'));
  expect((await page.locator('.brand').textContent()).includes('1 request waits for you')
    || (await page.locator('.dot.bad').count()) === 1, 'the status does not follow');
  await page.goto(`${origin}/owner`);
  expect(page.url().endsWith('/owner/inbox'), `something waits, and it leads to ${page.url()}`);
  gatewren('inbox', 'reject', id);
  await page.locator('#menu summary').click();
  for (const link of ['Settings', 'Sign-ins', 'Help']) await page.locator('#menu').getByRole('link', { name: link }).waitFor();
  await looksRight('menu');
  await page.locator('#menu').getByRole('link', { name: 'Help' }).click();
  expect((await page.textContent('main')).includes('gatewren doctor'), 'no help');
  await page.getByRole('link', { name: 'Read the manual' }).click();
  await looksRight('manual');
  const picture = await page.locator('.manual img').evaluate((image) => image.naturalWidth);
  expect(picture > 0, 'the picture of the manual is not shown');
  await page.getByRole('link', { name: 'gatewren-guide(7)' }).click();
  await looksRight('manual-page');
  await page.locator('.manual').getByRole('link', { name: 'THE INBOX', exact: true }).first().click();
  expect(page.url().endsWith('/owner/help/gatewren-guide.7.html#THE_INBOX'), page.url());
  await page.goto(`${origin}/owner/changes/none`);
  await page.getByRole('link', { name: 'What the manual says about it' }).click();
  expect(page.url().endsWith('/owner/help/gatewren-guide.7.html#THE_INBOX'), page.url());
  for (const name of ['none.html', 'style.css', '..%2f..%2fbin%2fgatewren.html', '.hidden.html', 'a%00.html']) {
    const answer = await page.request.get(`${origin}/owner/help/${name}`);
    expect(answer.status() === 404, `${name}: ${answer.status()}`);
  }
  await page.goto(`${origin}/owner/settings`);
  await looksRight('settings');
});

await it('earlier addresses still lead to their pages', async () => {
  for (const [old, now] of [['box', 'home'], ['audit', 'activity'], ['audit?agent=x', 'activity?agent=x']]) {
    await page.goto(`${origin}/owner/${old}`);
    expect(page.url() === `${origin}/owner/${now}`, page.url());
  }
});

await it('a theme is kept, without scripts, and back on the page that it was chosen on', async () => {
  const plain = await person(browser, { viewport, javaScriptEnabled: false, colorScheme: 'light' });
  await signIn(plain.page);
  const ground = () => plain.page.locator('body').evaluate((body) => getComputedStyle(body).backgroundColor);
  const choose = async (name) => {
    await plain.page.locator('#menu summary').click();
    await plain.page.locator('#menu').getByRole('button', { name }).click();
  };
  await plain.page.goto(`${origin}/owner/agents`);
  const light = await ground();
  await choose('Dark');
  expect(plain.page.url().endsWith('/owner/agents'), plain.page.url());
  const dark = await ground();
  expect(dark !== light, `${dark} in both`);
  await plain.page.goto(`${origin}/owner/activity`);
  expect(await ground() === dark, 'it is forgotten');
  expect(await plain.page.locator('#menu [aria-pressed=true]').textContent() === 'Dark', 'another one is marked');
  await fits(plain.page);
  await shot(plain.page, kind, 'dark');
  await choose('Light');
  await plain.page.emulateMedia({ colorScheme: 'dark' });
  expect(await ground() === light, 'the system overrules the choice');
  await choose('System');
  expect(await ground() === dark, 'the system is not followed');
  await plain.page.locator('#menu summary').click();
  await plain.page.locator('#menu').getByRole('button', { name: 'Sign out' }).click();
  expect(plain.page.url().includes('/owner/sign-in'), plain.page.url());
  await plain.context.close();
});

await it('activity: on a phone each call is a card with the head of each column, at a desk a row', async () => {
  await page.goto(`${origin}/owner/activity`);
  const cell = page.locator('table.cards tbody td[data-head="Agent"]').first();
  const seen = await cell.evaluate((td) => ({
    head: getComputedStyle(td, '::before').content, of: td.dataset.head,
    row: getComputedStyle(td.parentElement).display,
    wide: td.closest('.scroll').scrollWidth > td.closest('.scroll').clientWidth,
  }));
  const expected = kind === 'phone' ? 'block' : 'table-row';
  expect(seen.row === expected && (kind !== 'phone' || (seen.head === `"${seen.of}"` && !seen.wide)), JSON.stringify(seen));
  await looksRight('activity-rows');
});
await it('the audit: found by agent, one call in full, the chain, all of it', async () => {
  await page.goto(`${origin}/owner/activity`);
  await page.getByLabel('Agent').selectOption('proposer');
  await page.getByRole('button', { name: 'Search' }).click();
  expect(await page.getByLabel('Agent').locator(':checked').textContent() === 'proposer', 'the choice is forgotten');
  const rows = page.locator('tbody tr:not(.run)');
  expect(await rows.count() > 3, `${await rows.count()} rows`);
  expect((await rows.allTextContents()).every((row) => row.includes('proposer')), 'others are among them');
  expect(/proposer, .+, \d+ calls/.test(await page.locator('.run').first().textContent()), 'no runs');
  await page.getByLabel('Since').fill('2020-01-31');
  await page.getByRole('button', { name: 'Search' }).click();
  expect(page.url().includes('since=2020-01-31') && await rows.count() > 3, page.url());
  await page.getByLabel('Before').fill('2020-02-01');
  await page.getByRole('button', { name: 'Search' }).click();
  expect((await page.textContent('main')).includes('No calls match.'), 'calls of another year');
  await page.goto(`${origin}/owner/activity?agent=proposer&since=2h`);
  expect(await page.getByLabel('Since').inputValue() === '2h' && await rows.count() > 3, 'how long ago is forgotten');
  await looksRight('audit');
  await rows.first().getByRole('link').click();
  expect((await page.textContent('main')).includes('Arguments, without secrets'), 'it is not shown in full');
  await shot(page, kind, 'call');
  await callTool(proposer, 'propose_change', { tool: 'no_such_tool', arguments: {}, reason: 'to see it fail' });
  // The outcome is written a moment after the answer.
  const failed = page.locator('tbody tr:not(.run)');
  for (let tries = 0; tries < 100 && !(await failed.allTextContents()).some((row) => row.includes('propose_change')); tries++) {
    await page.goto(`${origin}/owner/activity?outcome=failed`);
  }
  expect(await page.locator('.shortcuts [aria-current]').textContent() === 'Failed', 'no shortcut is marked');
  const reasons = await failed.locator('.soft').allTextContents();
  expect(reasons.length > 0 && reasons.length === await failed.count(),
    `a failed call gives no reason: ${(await failed.allTextContents()).join(' / ')}`);
  await page.locator('tbody tr:not(.run)').first().getByRole('link').click();
  expect((await page.textContent('dl')).includes(reasons[0].replace('…', '')), `the page of a call has no ${reasons[0]}`);
  await page.goto(`${origin}/owner/activity?outcome=bogus`);
  expect((await page.textContent('main')).includes("There is no outcome 'bogus'; use one of ok, failed"), 'a wrong word is not told of');
  await page.goto(`${origin}/owner/activity`);
  // Not the bar of a phone, which it would cover.
  const place = await page.locator('.shortcuts').evaluate((shortcuts) => getComputedStyle(shortcuts).position);
  expect(place === 'static', `the shortcuts are ${place}`);
  await page.locator('.shortcuts').getByRole('link', { name: 'Proposed' }).click();
  expect(page.url().endsWith('?decision=propose'), page.url());
  await page.locator('.shortcuts').getByRole('link', { name: 'All' }).click();
  expect(page.url().endsWith('/owner/activity') && await failed.count() > 3, page.url());
  await page.goto(`${origin}/owner/activity?verify=1`);
  expect((await page.textContent('main')).includes('The chain is intact'), 'the chain is not verified');
  expect(!await page.getByRole('link', { name: 'Export all' }).isVisible(), 'the menu is open');
  await page.getByText('⋯').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export all' }).click(),
  ]);
  const lines = readFileSync(await download.path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  expect(lines.length > 10 && lines.slice(1).every(({ sha256 }) => sha256.length === 64), `${lines.length} lines`);
  const text = JSON.stringify(lines);
  for (const secret of [PASSWORD, trial.owner_code, token]) expect(!text.includes(secret), 'a secret is in the audit');
});

await it('connecting: the authority as three files, and its fingerprint', async () => {
  await page.goto(`${origin}/owner/connect`);
  await looksRight('connect');
  const ca = new X509Certificate(readFileSync(trial.ca));
  expect((await page.textContent('main')).includes(ca.fingerprint256), 'another fingerprint');
  const file = async (form) => {
    const answer = await fetch(`${origin}/owner/connect/authority/${form}`);
    expect(answer.status === 200, answer.status);
    return Buffer.from(await answer.arrayBuffer());
  };
  expect((await file('pem')).equals(readFileSync(trial.ca)), 'another PEM');
  expect((await file('der')).equals(ca.raw), 'another DER');
  const profile = (await file('mobileconfig')).toString();
  expect(profile.includes(ca.raw.toString('base64')) && profile.includes('com.apple.security.root'), profile);
  expect(createHash('sha256').update(ca.raw).digest('hex').length === 64, 'no digest');
});

await it('sign-ins are listed, and ending one signs it out', async () => {
  const other = await person(browser, { viewport });
  await signIn(other.page);
  await page.goto(`${origin}/owner/logins`);
  await looksRight('sign-ins');
  const cards = page.locator('form.card');
  expect(await cards.count() >= 2, `${await cards.count()} sign-ins`);
  await cards.filter({ hasNotText: 'this one' }).first().getByRole('button').click();
  await other.page.goto(`${origin}/owner`);
  expect(other.page.url().includes('/owner/sign-in'), other.page.url());
  await other.context.close();
});

await it('all essentials work without a script', async () => {
  const plain = await person(browser, { viewport, javaScriptEnabled: false });
  await signIn(plain.page);
  const id = await proposed('without a script', 'Vienna');
  await plain.page.goto(`${origin}/owner`);
  await plain.page.locator('article', { hasText: 'without a script' }).getByRole('button', { name: 'Approve', exact: true }).click();
  expect(!gatewren('inbox', 'show', id).includes('pending'), 'it waits still');
  expect((await plain.page.textContent('main')).includes('Done: Change the state'), 'no word of the result');
  const spare = gatewrenAgent('spare', 'observe');
  await plain.page.goto(`${origin}/owner/agents`);
  await plain.page.getByRole('link', { name: 'spare' }).click();
  await plain.page.getByRole('button', { name: 'Revoke' }).click();
  await plain.page.getByRole('button', { name: 'Revoke' }).click();
  expect((await rpc(spare, 'tools/list')).status === 401, 'it comes in still');
  await plain.context.close();
});

// A transition would also show colours of low contrast for a moment, after the theme changes.
await it('no page has an animation or a transition', async () => {
  const moving = () => page.evaluate(() => [...document.querySelectorAll('*')].filter((one) => {
    const { transitionDuration, animationName } = getComputedStyle(one);
    return animationName !== 'none' || transitionDuration.split(', ').some((time) => parseFloat(time) > 0);
  }).length);
  for (const path of ['/owner/home', '/owner/agents']) {
    await page.goto(`${origin}${path}`);
    expect(await moving() === 0, `something moves on ${path}`);
  }
});

await it('all is reached by the keyboard', async () => {
  await page.goto(`${origin}/owner`);
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement.textContent) === 'Skip to the content', 'no way past');
  await page.keyboard.press('Enter');
  expect(await page.evaluate(() => document.activeElement.id) === 'main', 'it leads nowhere');
  await page.goto(`${origin}/owner/agents/new?client=other`);
  const reached = new Set();
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
  }
  for (const id of ['name', 'expires', 'Add it and show its token']) expect(reached.has(id), `${id} is not reached`);
});

await browser.close();
finish();
