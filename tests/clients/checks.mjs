// What a TypeScript client must be able to do with gatewren, whichever SDK it was made with.
//
// The runner changes the box when asked (`change container`, `change row` on stdout) and answers `changed` on stdin.
import { createInterface } from 'node:readline';

const CONTAINER = process.env.GATEWREN_CONTAINER; // empty where there is no container to try
const SHELL = CONTAINER ? 'container_shell' : 'system_shell';
const BOUND_MS = 60_000; // the whole of it; a client that hangs has failed
const NOTICE_MS = 3_000; // from a change to the notice of it
const BOX = 'gatewren:///public/packageData';
const NOTES = 'gatewren:///public/notes';

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let failed = false;

// Runs `client` (connected) through everything. `subscribe(uris, heard)` is the one thing the SDKs do differently:
// `heard(uri)` is to be called for each notifications/resources/updated; it resolves once the server has agreed.
export async function run(name, client, subscribe) {
  setTimeout(() => finish(name, 'bound', `not done within ${BOUND_MS} ms`), BOUND_MS).unref();
  await check(name, 'lists its tools', async () => {
    const { tools } = await client.listTools();
    for (const wanted of [SHELL, 'whoami']) {
      expect(tools.some((tool) => tool.name === wanted), `no ${wanted} among ${tools.map((tool) => tool.name)}`);
    }
  });
  await check(name, 'calls whoami', async () => {
    const result = await client.callTool({ name: 'whoami', arguments: {} });
    expect(!result.isError && result.content.length > 0, JSON.stringify(result));
  });
  await check(name, 'is told what is wrong with its arguments', async () => {
    const result = await client.callTool({ name: SHELL, arguments: { ...(CONTAINER && { container: CONTAINER }), command: 7 } });
    expect(result.isError === true && JSON.stringify(result.content).includes('command'), JSON.stringify(result));
  });
  await check(name, 'reads a resource', async () => {
    const { contents } = await client.readResource({ uri: BOX });
    const containers = JSON.parse(contents[0].text);
    expect(!CONTAINER || CONTAINER in containers, contents[0].text);
  });
  await withContainer(name, 'runs a command in a container', async () => {
    const result = await client.callTool({
      name: SHELL,
      arguments: { container: CONTAINER, command: 'echo "this is $(hostname)"' },
    });
    expect(!result.isError && JSON.stringify(result).includes(`this is ${CONTAINER}`), JSON.stringify(result));
  });

  const ear = new Ear();
  const box = CONTAINER ? `${BOX}/${CONTAINER}` : BOX;
  await check(name, 'subscribes', () => subscribe([box, NOTES], (uri) => ear.heard(uri)));
  await withContainer(name, 'hears that a container was restarted', () => ear.hears(box, 'container'));
  await check(name, 'hears of a row another program wrote', () => ear.hears(NOTES, 'row'));
}

export async function check(name, what, run) {
  try {
    await run();
    console.log(`ok ${name} ${what}`);
  } catch (error) {
    failed = true;
    console.log(`not ok ${name} ${what}: ${String(error?.message ?? error).replaceAll(/\s+/g, ' ')}`);
  }
}

// Ends the process: an open stream must not keep it.
export function finish(name, what, why) {
  if (why) console.log(`not ok ${name} ${what}: ${why}`);
  process.exit(failed || why ? 1 : 0);
}

async function withContainer(name, what, run) {
  if (CONTAINER) return check(name, what, run);
  console.log(`skip ${name} ${what}: no LXC lab here`);
}

function expect(truth, why) {
  if (!truth) throw new Error(why);
}

// Hears notices by URI, and waits for one that comes after a change was asked for.
class Ear {
  #counts = new Map();
  #wake = () => {};

  heard(uri) {
    this.#counts.set(uri, (this.#counts.get(uri) ?? 0) + 1);
    this.#wake();
  }

  async hears(uri, change) {
    const before = this.#counts.get(uri) ?? 0;
    console.log(`change ${change}`);
    const { value } = await answers.next();
    expect(value === 'changed', `the runner could not make the change: ${value}`);
    const late = Date.now() + NOTICE_MS;
    while ((this.#counts.get(uri) ?? 0) === before) {
      expect(Date.now() < late, `no notice for ${uri} within ${NOTICE_MS} ms`);
      await new Promise((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 50);
      });
    }
  }
}
