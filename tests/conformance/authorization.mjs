// Runs the conformance suite's scenarios for authorization servers against gatewren. The suite prints a URL for a person
// to open; here the owner approves it by plain requests, and the browser's way back is one too.
//   authorization.mjs SUITE FOLDER     the suite's index.js, and where its results go
// Environment: GATEWREN_URL (of /mcp), GATEWREN_OWNER (the owner's password). One line a scenario.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Owner } from '../clients/owner.mjs';

const [suite, folder] = process.argv.slice(2);
const BOUND_MS = 120_000; // for the whole of it
// What the suite has, which is to be run: another version of it may have more.
const SCENARIOS = ['authorization-server-metadata-endpoint', 'authorization-code-grant'];
const base = new URL(process.env.GATEWREN_URL).origin;
const owner = new Owner(base, process.env.GATEWREN_OWNER);
const port = 3456;

const registered = await fetch(`${base}/connect/register`, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ client_name: 'conformance', redirect_uris: [`http://127.0.0.1:${port}/callback`] }),
});
const { client_id: client } = await registered.json();
const options = ['--url', `${base}/connect`, '--client-id', client, '--resource', `${base}/connect/mcp`];
const run = spawn(process.execPath, [suite, 'authorization', ...options, '-p', `${port}`, '-o', folder], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const bound = setTimeout(() => run.kill(), BOUND_MS);
for await (const line of createInterface({ input: run.stdout })) {
  console.error(line);
  if (line.startsWith(`${base}/connect/authorize?`)) await fetch(await owner.approve(line));
}
clearTimeout(bound);

let failed = false;
for (const scenario of SCENARIOS) {
  const why = verdict(scenario);
  console.log(why ? `not ok authorization ${scenario}: ${why}` : `ok authorization ${scenario}`);
  failed ||= Boolean(why);
}
process.exit(failed ? 1 : 0);

// Why a scenario is not good; a warning is not.
function verdict(scenario) {
  const found = readdirSync(folder).find((name) => name.includes(scenario));
  if (!found) return 'no result';
  const checks = JSON.parse(readFileSync(`${folder}/${found}/checks.json`, 'utf8'));
  const bad = checks.filter((check) => check.status !== 'SUCCESS');
  return bad.map((check) => `${check.id} ${check.status}: ${check.errorMessage}`).join('; ') || (checks.length ? '' : 'no checks');
}
