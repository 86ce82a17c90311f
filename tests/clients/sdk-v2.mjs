// The TypeScript SDK of the stateless era (@modelcontextprotocol/client 2.x) as a client:
//   sdk-v2.mjs 2026-07-28   pinned to that revision, subscriptions/listen
//   sdk-v2.mjs auto         asks with server/discover first
//   sdk-v2.mjs legacy       the same SDK over initialize and a session
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { RECONNECTION, run } from './checks.mjs';
import { expect } from './report.mjs';

const mode = process.argv[2];
const stateful = mode === 'legacy';

async function connect({ url, headers }, answers) {
  const transport = new StreamableHTTPClientTransport(url, {
    requestInit: { headers },
    reconnectionOptions: RECONNECTION,
  });
  const client = new Client(
    { name: 'gatewren-tests', version: '2' },
    {
      capabilities: answers ? { elicitation: {}, sampling: {} } : {},
      versionNegotiation: { mode: ['legacy', 'auto'].includes(mode) ? mode : { pin: mode } },
    },
  );
  if (answers) {
    client.setRequestHandler('elicitation/create', ({ params }) => answers.elicit(params));
    client.setRequestHandler('sampling/createMessage', ({ params }) => answers.sample(params));
  }
  await client.connect(transport);
  const era = client.getProtocolEra();
  expect(era === (stateful ? 'legacy' : 'modern'), `the era is ${era}`);
  return {
    client,
    call: (params, options) => client.callTool(params, options),
    ...(stateful ? onSession(client, transport) : onListen(client)),
  };
}

function onSession(client, transport) {
  return {
    subscribe: async (uris, heard) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard(params.uri));
      for (const uri of uris) await client.subscribeResource({ uri });
    },
    sessionId: () => transport.sessionId,
    close: async () => {
      await transport.terminateSession();
      await client.close();
    },
  };
}

function onListen(client) {
  let subscription;
  return {
    subscribe: async (uris, heard) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard(params.uri));
      subscription = await client.listen({ resourceSubscriptions: uris });
      const honoured = subscription.honoredFilter.resourceSubscriptions ?? [];
      expect(honoured.length === uris.length, `honoured only ${honoured}`);
    },
    interrupted: async () => {
      const how = await subscription.closed;
      expect(how === 'remote', `it ended as ${how}`);
    },
    close: async () => {
      await subscription?.close();
      await client.close();
    },
  };
}

await run(connect);
