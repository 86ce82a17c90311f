// The TypeScript SDK of the stateful era (@modelcontextprotocol/sdk 1.x) as a client: session, GET stream, DELETE.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { check, finish, run } from './checks.mjs';

const name = 'sdk-v1';
const transport = new StreamableHTTPClientTransport(new URL(process.env.GATEWREN_URL), {
  requestInit: { headers: { Authorization: `Bearer ${process.env.GATEWREN_TOKEN}` } },
});
const client = new Client({ name: 'gatewren-tests', version: '1' });

try {
  await client.connect(transport);
} catch (error) {
  finish(name, 'connects', error.message);
}
await check(name, 'has a session', async () => {
  if (!transport.sessionId) throw new Error('no Mcp-Session-Id');
});
await run(name, client, async (uris, heard) => {
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard(params.uri));
  for (const uri of uris) await client.subscribeResource({ uri });
});
await check(name, 'ends its session', () => transport.terminateSession());
await check(name, 'closes', () => client.close());
finish(name);
