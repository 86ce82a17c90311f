// What a TypeScript client with a session must be able to do behind a balancer with two fronts, of which one is killed.
// `connect` is that of checks.mjs.
import { BOUND_MS, Ear, NOTES, ask, box, eventually } from './checks.mjs';
import { check, expect, finish } from './report.mjs';

const LOST_MS = 5_000; // until the client gives up the call of a killed front, whose rest no front has

// Runs a client through everything, and ends the process.
export async function behindABalancer(connect) {
  setTimeout(() => finish(`not done within ${BOUND_MS} ms`), BOUND_MS).unref();
  const questions = [];
  const elicit = ({ message, requestedSchema }) => {
    questions.push(message);
    const content = Object.keys(requestedSchema.properties).map((field) => [field, false]);
    return { action: 'accept', content: Object.fromEntries(content) };
  };
  let made;
  await check('connects', async () => (made = await connect(box, { elicit, sample: () => ({}) })));
  if (made) await withASession(made, questions);
  finish();
}

async function withASession(made, questions) {
  const { client, call } = made;
  const session = made.sessionId();
  const whoami = async () => {
    const result = await call({ name: 'whoami', arguments: {} });
    expect(!result.isError && result.content.length > 0, result);
    expect(made.sessionId() === session, `it was session ${session} and is now ${made.sessionId()}`);
  };
  await check('lists its tools', async () => {
    const { tools } = await client.listTools();
    expect(
      tools.some((tool) => tool.name === 'whoami'),
      `no whoami among ${tools.length} tools`,
    );
  });
  await check('calls whoami', whoami);
  await check('has a session that both fronts know', () => ask(`see-session ${session}`));
  await check('answers an elicitation', async () => {
    const result = await call({ name: 'container_stop', arguments: { container: 'no-such-box' } });
    expect(questions.length === 1 && questions[0].includes('no-such-box'), questions);
    expect(result.isError === true && result.content[0].text.includes('did not agree'), result);
  });
  await check('gets the progress of a longer call', async () => {
    const heard = [];
    const onprogress = ({ progress }) => heard.push(progress);
    const result = await call({ name: 'system_shell', arguments: { argv: ['sleep', '3'] } }, { onprogress });
    expect(!result.isError && heard.length >= 2, `${heard} and ${JSON.stringify(result)}`);
  });
  const ear = new Ear();
  await check('subscribes', () => made.subscribe([NOTES], (uri) => ear.heard(uri)));
  await check('hears of a row another program wrote', () => ear.hears(NOTES, 'write-row'));

  await check('goes on in its session when its front is killed in the middle of a stream', async () => {
    const lost = await callThatIsLost(call, session);
    await eventually(whoami);
    await lost();
  });
  await check('hears of a row after that', () => ear.hearsInTheEnd(NOTES, 'write-row'));
  await check('keeps its session when the front is back', async () => {
    await ask('start-front');
    await ask(`see-session ${session}`);
    await eventually(whoami);
    await ear.hearsInTheEnd(NOTES, 'write-row');
  });
  await check('ends its session at both fronts', async () => {
    await made.close();
    await ask(`see-no-session ${session}`);
  });
}

// Kills the front of the session in the middle of the stream of a call. Resolves to a function that checks the end of the
// call: its command is killed, and the client does not take it for done.
async function callThatIsLost(call, session) {
  const seconds = 100_000 + process.pid; // no other client's command
  const asked = { name: 'system_shell', arguments: { argv: ['sleep', `${seconds}`], timeout_s: 300 } };
  let began;
  const begun = new Promise((resolve) => (began = resolve));
  const running = call(asked, { timeout: LOST_MS, onprogress: began });
  const outcome = running.then(JSON.stringify, (error) => `failed: ${error.message}`);
  const first = await Promise.race([begun, outcome]);
  expect(typeof first !== 'string', first);
  await ask(`kill-front-of ${session}`);
  return async () => {
    await ask(`see-no-sleep ${seconds}`);
    const words = await outcome;
    expect(words.startsWith('failed: '), words);
  };
}
