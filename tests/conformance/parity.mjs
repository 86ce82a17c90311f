// Compares gatewren's fixtures with the reference server of the MCP project, which is started over stdio: whatever it
// offers is there, and each of its tools and prompts answers with the same kinds of content. Ours are called by
// clients of both eras.   parity.mjs URL REFERENCE_SCRIPT
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';

const [url, script] = process.argv.slice(2);
const BOUND_MS = 280_000; // the whole of it; it takes about 10 s
const CAPABILITIES = { sampling: {}, roots: { listChanged: true }, elicitation: { form: {}, url: {} } };

// With these the reference also offers the tools whose questions the client answers as a task of its own.
const REFERENCE_CAPABILITIES = {
  ...CAPABILITIES,
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};

// The least that a tool needs, where that is more than its required arguments with these values.
const VALUES = {
  message: 'hello', messageType: 'success', location: 'Chicago', a: 1, b: 2, prompt: 'Say hello', topic: 'wrens',
  url: 'https://example.org/',
};
const ARGUMENTS = {
  'gzip-file-as-resource': { data: 'data:text/plain,hello' }, // the reference's default is on the network
  'trigger-long-running-operation': { duration: 0.2, steps: 2 }, // its default takes 10 s
};

// Tools of the reference that are not called there, with the kinds that they answer with, and why.
const NOT_CALLED = {
  'simulate-research-query': { kinds: 'text', why: 'there only as a task of 2025-11-25' },
  'trigger-sampling-request-async': { kinds: 'text', why: 'there only with tasks of the client' },
  'trigger-elicitation-request-async': { kinds: 'text', why: 'there only with tasks of the client' },
};

// Tools whose words are those of the reference too.
const SAME_WORDS = ['echo', 'get-sum', 'trigger-long-running-operation'];

const PROMPTS = {
  'args-prompt': { city: 'Bern' },
  'completable-prompt': { department: 'Sales', name: 'Eve' },
  'resource-prompt': { resourceType: 'Blob', resourceId: '7' },
};

const ANSWERS = {
  sampling: () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'Hello.' } }),
  roots: () => ({ roots: [{ uri: 'file:///tmp', name: 'tmp' }] }),
  elicitation: ({ params }) => ({ action: 'accept', ...(params.mode !== 'url' && { content: { name: 'Eve' } }) }),
};

let failed = false;

async function main() {
  setTimeout(() => finish(`not done within ${BOUND_MS} ms`), BOUND_MS).unref();
  const reference = await stateful(REFERENCE_CAPABILITIES, new StdioClientTransport({
    command: process.execPath, args: [script, 'stdio'], stderr: 'ignore',
  }));
  const ours = await stateful(CAPABILITIES, new StreamableHTTPClientTransport(new URL(url)));
  const modern = await stateless();
  const tools = await compareTools(reference, ours);
  for (const tool of tools) await compareCall(reference, ours, modern, tool);
  await compareLists(reference, ours);
  for (const { name } of (await reference.listPrompts()).prompts) await comparePrompt(reference, ours, name);
  await compareReading(reference, ours);
  await compareCompletions(reference, ours);
  await hearing(ours);
  await Promise.allSettled([reference.close(), ours.close(), modern.close()]);
  finish();
}

async function stateful(capabilities, transport) {
  const client = new Client({ name: 'gatewren-tests', version: '1' }, { capabilities });
  client.setRequestHandler(CreateMessageRequestSchema, ANSWERS.sampling);
  client.setRequestHandler(ListRootsRequestSchema, ANSWERS.roots);
  client.setRequestHandler(ElicitRequestSchema, ANSWERS.elicitation);
  await client.connect(transport);
  return client;
}

async function stateless() {
  const client = new ModernClient(
    { name: 'gatewren-tests', version: '2' },
    { capabilities: CAPABILITIES, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('sampling/createMessage', ANSWERS.sampling);
  client.setRequestHandler('roots/list', ANSWERS.roots);
  client.setRequestHandler('elicitation/create', ANSWERS.elicitation);
  await client.connect(new ModernTransport(new URL(url)));
  return client;
}

// Each tool of the reference is ours too, with the same arguments. Gives back the reference's.
async function compareTools(reference, ours) {
  // It adds the tools that depend on the client only once it has heard that the client is ready.
  const theirs = await until(async () => (await reference.listTools()).tools, (tools) => tools.length > 12);
  const mine = new Map((await ours.listTools()).tools.map((tool) => [tool.name, tool]));
  for (const tool of theirs) {
    await check(`offers the tool ${tool.name}`, () => {
      const found = mine.get(tool.name);
      expect(found, 'there is none');
      same(sorted(found.inputSchema.required), sorted(tool.inputSchema.required), 'required arguments');
      const known = Object.keys(found.inputSchema.properties ?? {});
      same(sorted(known), sorted(Object.keys(tool.inputSchema.properties ?? {})), 'arguments');
      same(sorted(found.outputSchema?.required), sorted(tool.outputSchema?.required), 'fields of the output');
      expect(found.title && found.description, 'no title or no description');
    });
  }
  return theirs;
}

// The same kinds of content come back from the reference, from ours in a session, and from ours without one.
async function compareCall(reference, ours, modern, { name, inputSchema }) {
  await check(`answers like the tool ${name}`, async () => {
    const required = Object.fromEntries((inputSchema.required ?? []).map((key) => [key, VALUES[key]]));
    const call = { name, arguments: { ...required, ...ARGUMENTS[name] } };
    const expected = name in NOT_CALLED ? null : await reference.callTool(call);
    const kinds = expected ? kindsOf(expected) : NOT_CALLED[name].kinds;
    for (const [client, era] of [[ours, 'in a session'], [modern, 'without a session']]) {
      const answer = await client.callTool(call);
      same(kindsOf(answer), kinds, `kinds of content ${era}`);
      if (SAME_WORDS.includes(name)) same(answer.content[0].text, expected.content[0].text, `words ${era}`);
    }
    // Switched on; off again, so that it disturbs nothing further down.
    if (name.startsWith('toggle-')) for (const client of [reference, ours, modern]) await client.callTool(call);
  });
}

function kindsOf({ content, isError, structuredContent, messages }) {
  const blocks = content ?? messages.map((message) => message.content);
  const kinds = blocks.map((block) => {
    const hints = block.annotations ? ` ${Object.keys(block.annotations).sort()}` : '';
    const inside = block.resource ? ` ${'blob' in block.resource ? 'blob' : 'text'}` : '';
    return `${block.type}${inside}${hints}`;
  });
  if (structuredContent) kinds.push(`data ${Object.keys(structuredContent).sort()}`);
  return (isError ? 'error: ' : '') + kinds.join(', ');
}

async function compareLists(reference, ours) {
  await check('gives instructions', () => expect(ours.getInstructions(), 'none'));
  await check('offers what the reference offers', () => {
    const { tasks, ...theirs } = reference.getServerCapabilities(); // of 2025-11-25 alone, and replaced since
    for (const [feature, flags] of Object.entries(theirs)) {
      const mine = ours.getServerCapabilities()[feature];
      expect(mine, `no ${feature}`);
      for (const flag of Object.keys(flags)) expect(mine[flag], `${feature} without ${flag}`);
    }
  });
  for (const [list, items, key] of [
    ['listResources', 'resources', 'uri'],
    ['listResourceTemplates', 'resourceTemplates', 'uriTemplate'],
  ]) {
    await check(`offers the same ${items}`, async () => {
      const mine = new Map((await ours[list]())[items].map((item) => [item[key], item]));
      for (const item of (await reference[list]())[items]) {
        expect(mine.has(item[key]), `no ${item[key]}`);
        same(mine.get(item[key]).mimeType, item.mimeType, `type of ${item[key]}`);
      }
    });
  }
}

async function comparePrompt(reference, ours, name) {
  await check(`offers and writes the prompt ${name}`, async () => {
    const listed = async (client) => (await client.listPrompts()).prompts.find((prompt) => prompt.name === name);
    const shape = (prompt) => (prompt?.arguments ?? []).map((argument) => `${argument.name} ${argument.required}`);
    const [mine, theirs] = [await listed(ours), await listed(reference)];
    expect(mine?.description && mine?.title, 'not listed, or without title or description');
    same(sorted(shape(mine)), sorted(shape(theirs)), 'arguments');
    const asked = { name, arguments: PROMPTS[name] };
    const [written, expected] = [await ours.getPrompt(asked), await reference.getPrompt(asked)];
    same(kindsOf(written), kindsOf(expected), 'kinds of content');
    same(written.messages.map((message) => message.role), expected.messages.map((message) => message.role), 'roles');
  });
}

async function compareReading(reference, ours) {
  const documents = (await reference.listResources()).resources.filter(({ uri }) => uri.includes('/static/'));
  for (const uri of [
    'demo://resource/dynamic/text/1',
    'demo://resource/dynamic/blob/2',
    'demo://resource/session/README.md.gz', // made by gzip-file-as-resource above
    ...documents.map((document) => document.uri),
  ]) {
    await check(`reads ${uri}`, async () => {
      const kind = ({ contents }) => contents.map((part) => ('blob' in part ? 'blob' : 'text')).join();
      const mine = await ours.readResource({ uri });
      same(kind(mine), kind(await reference.readResource({ uri })), 'kind');
      expect(mine.contents[0].text || mine.contents[0].blob, 'empty');
    });
  }
}

async function compareCompletions(reference, ours) {
  const prompt = { type: 'ref/prompt', name: 'completable-prompt' };
  const resource = { type: 'ref/prompt', name: 'resource-prompt' };
  const template = (kind) => ({ type: 'ref/resource', uri: `demo://resource/dynamic/${kind}/{resourceId}` });
  for (const [ref, name, value, context] of [
    [prompt, 'department', 'S'],
    [prompt, 'name', '', { department: 'Sales' }],
    [prompt, 'name', 'K', { department: 'Support' }],
    [resource, 'resourceType', ''],
    [resource, 'resourceId', '12'],
    [resource, 'resourceId', 'x'],
    [template('text'), 'resourceId', '3'],
    [template('blob'), 'resourceId', '0'],
  ]) {
    await check(`completes ${name} of ${ref.name ?? ref.uri} from '${value}'`, async () => {
      const asked = { ref, argument: { name, value }, ...(context && { context: { arguments: context } }) };
      const values = async (client) => sorted((await client.complete(asked)).completion.values);
      same(await values(ours), await values(reference), 'values');
    });
  }
}

// What goes on after its call arrives on the session's own stream.
async function hearing(ours) {
  const updated = new Set();
  const logged = new Set();
  let lists = 0;
  ours.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updated.add(params.uri));
  ours.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.add(params.level));
  ours.setNotificationHandler(ResourceListChangedNotificationSchema, () => void (lists += 1));
  await check('hears that the watched resource has changed', async () => {
    await ours.subscribeResource({ uri: 'test://watched-resource' });
    await ours.callTool({ name: 'test_trigger_resource_update', arguments: {} });
    await until(() => updated.has('test://watched-resource'));
  });
  await check('hears the simulated updates of what it is subscribed to', async () => {
    const uri = 'demo://resource/dynamic/text/1';
    await ours.subscribeResource({ uri });
    await ours.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
    await until(() => updated.has(uri));
    await ours.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
  });
  await check('hears the simulated log messages from its level on', async () => {
    await ours.setLoggingLevel('info');
    await ours.callTool({ name: 'toggle-simulated-logging', arguments: {} });
    await until(() => logged.size > 0);
    await ours.callTool({ name: 'toggle-simulated-logging', arguments: {} });
    expect(!logged.has('debug'), 'a message below the level');
  });
  await check('hears that a resource was added', async () => {
    await ours.callTool({ name: 'gzip-file-as-resource', arguments: { name: 'more.gz', data: 'data:,more' } });
    await until(() => lists > 0);
  });
}

// Asks again until the answer is good; the bound is the whole program's.
async function until(ask, good = Boolean) {
  for (;;) {
    const answer = await ask();
    if (good(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function check(what, run) {
  try {
    await run();
    console.log(`ok parity: ${what}`);
  } catch (error) {
    failed = true;
    console.log(`not ok parity: ${what}: ${String(error?.message ?? error).replaceAll(/\s+/g, ' ')}`);
  }
}

function finish(why) {
  if (why) console.log(`not ok parity: ${why}`);
  process.exit(failed || why ? 1 : 0);
}

function expect(truth, why) {
  if (!truth) throw new Error(why);
}

function same(mine, theirs, what) {
  const [a, b] = [JSON.stringify(mine), JSON.stringify(theirs)];
  expect(a === b, `${what}: ${a}, the reference has ${b}`);
}

function sorted(list) {
  return [...(list ?? [])].sort();
}

await main().catch((error) => finish(error.message));
