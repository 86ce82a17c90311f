// The TypeScript SDK of the stateful era (@modelcontextprotocol/sdk 1.x) as a client: session, GET stream, DELETE.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { run } from './checks.mjs';
import { expect } from './report.mjs';

async function connect({ url, headers }, answers) {
  // As most programs use it: with its own two tries to come back.
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
  const capabilities = answers ? { elicitation: {}, sampling: {} } : {};
  const client = new Client({ name: 'gatewren-tests', version: '1' }, { capabilities });
  if (answers) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => answers.elicit(params));
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => answers.sample(params));
  }
  await client.connect(transport);
  expect(transport.sessionId, 'no Mcp-Session-Id');
  return {
    client,
    call: (params, options) => client.callTool(params, undefined, options),
    subscribe: async (uris, heard) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard(params.uri));
      for (const uri of uris) await client.subscribeResource({ uri });
    },
    sessionId: () => transport.sessionId,
    comesBack: true,
    close: async () => {
      await transport.terminateSession();
      await client.close();
    },
  };
}

await run(connect);
