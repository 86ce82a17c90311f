// What a TypeScript client must be able to do with gatewren and its fixtures, whichever SDK it was made with.
//
// A client's file brings `connect(server, answers)`, which resolves to
//   client        the SDK's client, connected to `server` ({ url, headers })
//   call          (params, options) → the result of tools/call
//   subscribe     (uris, heard) → once the server has agreed; heard(uri) for each resources/updated
//   sessionId     () → the session's id; absent in the stateless era
//   interrupted   () → once it has noticed that its subscription ended; absent where the SDK reconnects by itself
//   close         () → when all is closed
// `answers` ({ elicit, sample }), if given, are what the client says when the server asks for something.
//
// The runner does something to the box when asked (`ask WORDS` on stdout) and answers `done` on stdin.
import { createInterface } from 'node:readline';
import { NAME, check, expect, finish } from './report.mjs';

const CONTAINER = process.env.GATEWREN_CONTAINER; // empty where there is no container to try
const SHELL = CONTAINER ? 'container_shell' : 'system_shell';
export const BOUND_MS = 480_000; // the whole of it; a client that hangs has failed
const EVENT_MS = 60_000; // until something that must happen has happened
const AGAIN_MS = 2_000; // before a row is written again, for a stream that was away
const BOX = 'gatewren:///public/packageData';
export const NOTES = 'gatewren:///public/notes';

export const box = at('GATEWREN_URL', 'GATEWREN_TOKEN');
const fixtures = at('GATEWREN_FIXTURES_URL', 'GATEWREN_FIXTURES_TOKEN');
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const asked = []; // what the server has asked for, in order
const said = {
  elicit: ({ message, requestedSchema }) => {
    asked.push(message);
    const content = Object.keys(requestedSchema.properties).map((field) => [field, 'Ada']);
    return { action: 'accept', content: Object.fromEntries(content) };
  },
  sample: ({ messages }) => {
    asked.push(messages[0].content.text);
    return { role: 'assistant', model: 'none', content: { type: 'text', text: 'Paris' } };
  },
};

let agrees; // what the person says who is asked before something is stopped
const person = {
  ...said,
  elicit: ({ message, requestedSchema }) => {
    asked.push(message);
    const content = Object.keys(requestedSchema.properties).map((field) => [field, agrees]);
    return { action: 'accept', content: Object.fromEntries(content) };
  },
};

// By itself an SDK gives up after two tries, which a server on a busy machine can miss.
export const RECONNECTION = {
  initialReconnectionDelay: 200,
  maxReconnectionDelay: 1000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 600,
};

// Runs a client through everything, and ends the process: an open stream must not keep it.
export async function run(connect) {
  if (process.env.GATEWREN_FRONTS) {
    const { behindABalancer } = await import('./balanced.mjs');
    return behindABalancer(connect);
  }
  setTimeout(() => finish(`not done within ${BOUND_MS} ms`), BOUND_MS).unref();
  let made;
  await check('connects', async () => (made = await connect(box)));
  if (made) await atTheBox(made);
  made = undefined;
  await check('connects with a person', async () => (made = await connect(box, person)));
  if (made) await withAPerson(made);
  made = undefined;
  await check('connects to the fixtures', async () => (made = await connect(fixtures, said)));
  if (made) await atTheFixtures(made);
  finish();
}

async function atTheBox(made) {
  const { client, call } = made;
  const inContainer = CONTAINER ? { container: CONTAINER } : {};
  const whoami = async () => {
    const result = await call({ name: 'whoami', arguments: {} });
    expect(!result.isError && result.content.length > 0, result);
  };
  await check('lists its tools', async () => {
    const { tools } = await client.listTools();
    for (const wanted of [SHELL, 'whoami']) {
      expect(tools.some((tool) => tool.name === wanted), `no ${wanted} among ${tools.map((tool) => tool.name)}`);
    }
  });
  await check('calls whoami', whoami);
  await check('is told what is wrong with its arguments', async () => {
    const result = await call({ name: SHELL, arguments: { ...inContainer, command: 7 } });
    expect(result.isError === true && JSON.stringify(result.content).includes('command'), result);
  });
  await check('reads a resource', async () => {
    const { contents } = await client.readResource({ uri: BOX });
    expect(!CONTAINER || CONTAINER in JSON.parse(contents[0].text), contents[0].text);
  });
  await withContainer('runs a command in a container', async () => {
    const result = await call({ name: SHELL, arguments: { ...inContainer, command: 'echo "this is $(hostname)"' } });
    expect(!result.isError && JSON.stringify(result).includes(`this is ${CONTAINER}`), result);
  });
  await check('ends a command by cancelling its call', async () => {
    const seconds = 100_000 + process.pid; // no other client's command
    const abort = new AbortController();
    const asked = { name: SHELL, arguments: { ...inContainer, argv: ['sleep', `${seconds}`], timeout_s: 300 } };
    const outcome = call(asked, { signal: abort.signal }).then(JSON.stringify, () => 'cancelled');
    await ask(`see-sleep ${seconds}`);
    abort.abort();
    expect((await outcome) === 'cancelled', await outcome);
    await ask(`see-no-sleep ${seconds}`);
  });

  const ear = new Ear();
  const watched = [CONTAINER ? `${BOX}/${CONTAINER}` : BOX, NOTES];
  const subscribe = () => made.subscribe(watched, (uri) => ear.heard(uri));
  await check('subscribes', subscribe);
  await withContainer('hears that a container was restarted', () => ear.hears(watched[0], 'restart-container'));
  await check('hears of a row another program wrote', () => ear.hears(NOTES, 'write-row'));

  await check('goes on when the server was killed and has started again', async () => {
    const id = made.sessionId?.();
    await ask('restart-server');
    await eventually(whoami);
    expect(made.sessionId?.() === id, `it was session ${id} and is now ${made.sessionId?.()}`);
  });
  if (made.interrupted) {
    await check('is told that its subscription ended, and subscribes again', async () => {
      await made.interrupted();
      await subscribe();
    });
  }
  await check('hears of a row after that', () => ear.hearsInTheEnd(NOTES, 'write-row'));
  if (made.comesBack) {
    await check('hears of a row after the server was away for ten seconds', async () => {
      await ask('stop-server-for 10');
      await ear.hearsInTheEnd(NOTES, 'write-row');
    });
  }
  await check('closes', made.close);
}

// What stops something runs only with a yes of the person at the client.
async function withAPerson({ call, close }) {
  const stop = async () => {
    const result = await call({ name: 'container_stop', arguments: { container: 'no-such-box' } });
    const question = asked.pop();
    expect(question?.includes('container_stop') && question.includes('no-such-box'), question);
    expect(result.isError === true, result);
    return result.content[0].text;
  };
  await check('stops nothing when the person does not agree', async () => {
    agrees = false;
    const words = await stop();
    expect(words.includes('did not agree'), words);
  });
  await check('goes on when the person agrees', async () => {
    agrees = true;
    const words = await stop();
    expect(!words.includes('person'), words);
  });
  await check('closes its connection with a person', close);
}

// What the server asks of a client, and what it says on the way to a result.
async function atTheFixtures({ call, close }) {
  const says = async (tool, args, wanted) => {
    const result = await call({ name: tool, arguments: args });
    expect(!result.isError && result.content[0].text.includes(wanted), result);
  };
  await check('answers an elicitation', async () => {
    await says('test_elicitation', { message: 'Who are you?' }, 'Ada');
    expect(asked.pop() === 'Who are you?', 'it was asked something else');
  });
  await check('answers a sampling request', async () => {
    await says('test_sampling', { prompt: 'What is the capital of France?' }, 'Paris');
    expect(asked.pop() === 'What is the capital of France?', 'it was asked something else');
  });
  await check('answers in several rounds', async () => {
    asked.length = 0;
    await says('test_input_required_result_multi_round', {}, 'Both rounds');
    expect(asked.length === 2, `it was asked ${asked.length} times`);
  });
  await check('hears of progress', async () => {
    // The SDK forgets the handler with the result, and so now and then what was read together with it.
    let heard = [];
    for (let tries = 0; tries < 10 && `${heard}` !== '0,50,100'; tries += 1) {
      expect('0,50,100'.startsWith(`${heard}`), heard);
      heard = [];
      const onprogress = ({ progress }) => heard.push(progress);
      await call({ name: 'test_tool_with_progress', arguments: {} }, { onprogress });
    }
    await eventually(async () => expect(`${heard}` === '0,50,100', heard)); // perhaps handed on after the result
  });
  await check('closes its connection to the fixtures', close);
}

async function withContainer(what, run) {
  if (CONTAINER) return check(what, run);
  console.log(`skip ${NAME} ${what}: no LXC lab here`);
}

export async function ask(what) {
  console.log(`ask ${what}`);
  const { value } = await answers.next();
  expect(value === 'done', `the runner could not ${what}: ${value}`);
}

// Tries until it works: a connection that broke may be noticed only by the request that is sent on it.
export async function eventually(run) {
  for (const late = Date.now() + EVENT_MS; ; await later(100)) {
    try {
      return await run();
    } catch (error) {
      if (Date.now() > late) throw error;
    }
  }
}

// Hears notices by URI, and waits for one that comes after a change was asked for.
export class Ear {
  #counts = new Map();
  #wake = () => {};

  heard(uri) {
    this.#counts.set(uri, (this.#counts.get(uri) ?? 0) + 1);
    this.#wake();
  }

  async hears(uri, change) {
    const before = this.#counts.get(uri);
    await ask(change);
    expect(await this.#more(uri, before, EVENT_MS), `no notice for ${uri} within ${EVENT_MS} ms`);
  }

  // For a stream that is perhaps still being opened: changes the box until it is heard.
  async hearsInTheEnd(uri, change) {
    const before = this.#counts.get(uri);
    for (const late = Date.now() + EVENT_MS; ; ) {
      await ask(change);
      if (await this.#more(uri, before, AGAIN_MS)) return;
      expect(Date.now() < late, `no notice for ${uri} within ${EVENT_MS} ms, whatever changes`);
    }
  }

  async #more(uri, before, ms) {
    for (const late = Date.now() + ms; this.#counts.get(uri) === before; ) {
      if (Date.now() > late) return false;
      await Promise.race([later(100), new Promise((resolve) => (this.#wake = resolve))]);
    }
    return true;
  }
}

function later(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function at(url, token) {
  return { url: new URL(process.env[url]), headers: { Authorization: `Bearer ${process.env[token]}` } };
}
