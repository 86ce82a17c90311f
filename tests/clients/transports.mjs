// The TypeScript SDKs over stdio, HTTP+SSE and `gatewren bridge`, against the fixtures, and over stdio and the bridge
// against a trial of the product:
//   transports.mjs v1 stdio|sse|bridge                         @modelcontextprotocol/sdk 1.x
//   transports.mjs v2 stdio|bridge legacy|auto|2026-07-28      @modelcontextprotocol/client 2.x
//   transports.mjs v2 sse legacy
// Environment: GATEWREN_CLIENT (a name for the checks), GATEWREN_BIN, GATEWREN_SSE_URL, and the words of the bridge in
// GATEWREN_BRIDGE_FIXTURES and GATEWREN_BRIDGE_BOX.
import { NAME, check, expect, finish } from './report.mjs';

const [sdk, kind, mode = 'legacy'] = process.argv.slice(2);
const stateful = sdk === 'v1' || mode === 'legacy';
const BIN = process.env.GATEWREN_BIN;
const BOUND_MS = 150_000; // the whole of it; a client that hangs has failed
const EVENT_MS = 60_000; // until something that must happen has happened
const WATCHED = 'test://watched-resource';

const { connect } = sdk === 'v1' ? await first() : await second();
setTimeout(() => finish(`not done within ${BOUND_MS} ms`), BOUND_MS).unref();
await atTheFixtures();
if (kind !== 'sse') await atTheBox();
finish();

async function first() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  return {
    connect: async (args) => {
      const transport = made(args, StdioClientTransport, SSEClientTransport);
      const client = new Client({ name: NAME, version: '1' }, { capabilities: { elicitation: {}, sampling: {} } });
      client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => elicited(params));
      client.setRequestHandler(types.CreateMessageRequestSchema, sampled);
      await client.connect(transport);
      return {
        client,
        transport,
        call: (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, undefined, options),
        subscribe: (heard) => {
          client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => heard(params.uri));
          return client.subscribeResource({ uri: WATCHED });
        },
      };
    },
  };
}

async function second() {
  const { Client, SSEClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return {
    connect: async (args) => {
      const transport = made(args, StdioClientTransport, SSEClientTransport);
      const client = new Client(
        { name: NAME, version: '2' },
        {
          capabilities: { elicitation: {}, sampling: {} },
          versionNegotiation: { mode: ['legacy', 'auto'].includes(mode) ? mode : { pin: mode } },
        },
      );
      client.setRequestHandler('elicitation/create', ({ params }) => elicited(params));
      client.setRequestHandler('sampling/createMessage', sampled);
      await client.connect(transport);
      const era = client.getProtocolEra();
      expect(era === (stateful ? 'legacy' : 'modern'), `the era is ${era}`);
      return {
        client,
        transport,
        call: (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, options),
        subscribe: async (heard) => {
          client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard(params.uri));
          if (stateful) return client.subscribeResource({ uri: WATCHED });
          const { honoredFilter } = await client.listen({ resourceSubscriptions: [WATCHED] });
          expect(honoredFilter.resourceSubscriptions?.length === 1, honoredFilter);
        },
      };
    },
  };
}

function made(args, Stdio, Sse) {
  if (kind === 'sse' && args[0] === 'everything') return new Sse(new URL(process.env.GATEWREN_SSE_URL));
  if (kind === 'bridge') {
    const elsewhere = args[0] === 'everything' ? 'GATEWREN_BRIDGE_FIXTURES' : 'GATEWREN_BRIDGE_BOX';
    args = process.env[elsewhere].split(' ');
  }
  const env = { PATH: process.env.PATH, XDG_STATE_HOME: process.env.XDG_STATE_HOME };
  return new Stdio({ command: BIN, args, env, stderr: 'ignore' });
}

function elicited({ requestedSchema }) {
  const content = Object.keys(requestedSchema.properties).map((field) => [field, 'Ada']);
  return { action: 'accept', content: Object.fromEntries(content) };
}

function sampled() {
  return { role: 'assistant', model: 'none', content: { type: 'text', text: 'Paris' } };
}

async function atTheFixtures() {
  let on;
  await check('connects to the fixtures', async () => (on = await connect(['everything', 'stdio'])));
  if (!on) return;
  const says = async (tool, args, wanted) => {
    const result = await on.call(tool, args);
    expect(!result.isError && result.content[0].text.includes(wanted), result);
  };
  await check('lists tools, resources and prompts', async () => {
    expect((await on.client.listTools()).tools.length > 20, 'too few tools');
    expect((await on.client.listResources()).resources.length > 2, 'too few resources');
    expect((await on.client.listPrompts()).prompts.length > 2, 'too few prompts');
  });
  await check('calls a tool', () => says('echo', { message: 'hello' }, 'hello'));
  await check('reads a resource', async () => {
    const { contents } = await on.client.readResource({ uri: 'test://static-text' });
    expect(contents[0].text.length > 0, contents);
  });
  await check('answers an elicitation', () => says('test_elicitation', { message: 'Who are you?' }, 'Ada'));
  await check('answers a sampling request', () => says('test_sampling', { prompt: 'The capital?' }, 'Paris'));
  await check('hears of progress', async () => {
    // The SDK forgets the handler with the result, and so now and then what was read together with it.
    let heard = [];
    for (let tries = 0; tries < 10 && `${heard}` !== '0,50,100'; tries += 1) {
      expect('0,50,100'.startsWith(`${heard}`), `heard ${heard}`);
      heard = [];
      await on.call('test_tool_with_progress', {}, { onprogress: ({ progress }) => heard.push(progress) });
    }
    await eventually(() => `${heard}` === '0,50,100', () => `heard ${heard}`);
  });
  await check('ends a call by cancelling it', async () => {
    const abort = new AbortController();
    let moves;
    const moved = new Promise((resolve) => (moves = resolve));
    const options = { signal: abort.signal, onprogress: moves };
    const args = { duration: 600, steps: 1000 };
    const outcome = on.call('trigger-long-running-operation', args, options).then(JSON.stringify, () => 'cancelled');
    await moved;
    abort.abort();
    expect((await outcome) === 'cancelled', await outcome);
    await says('echo', { message: 'still here' }, 'still here');
  });
  await check('hears that a resource has changed', async () => {
    const heard = [];
    await on.subscribe((uri) => heard.push(uri));
    await on.call('test_trigger_resource_update');
    await eventually(() => heard.includes(WATCHED), () => `heard ${heard}`);
  });
  await check('closes', () => closed(on));
}

// A trial of the product, in a directory of its own.
async function atTheBox() {
  let on;
  const trial = ['try', '--stdio', '--policy', 'admin'];
  await check('connects to the box', async () => (on = await connect(trial)));
  if (!on) return;
  await check('runs a command', async () => {
    const result = await on.call('system_shell', { command: 'echo "out $((6 * 7))"; echo err >&2' });
    expect(!result.isError && JSON.stringify(result.content).includes('out 42'), result);
  });
  await check('connects a second time beside it', async () => {
    const other = await connect(trial);
    const result = await other.call('whoami');
    expect(!result.isError, result);
    await closed(other);
  });
  await check('closes its connection to the box', () => closed(on));
}

// A process that was started ends by itself when its input closes, well before the SDK would kill it.
async function closed({ client, transport }) {
  const { pid } = transport;
  await client.close();
  if (pid) await eventually(() => !runs(pid), () => `process ${pid} still runs`);
}

function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function eventually(holds, why) {
  for (const late = Date.now() + EVENT_MS; !holds(); ) {
    expect(Date.now() < late, why());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
