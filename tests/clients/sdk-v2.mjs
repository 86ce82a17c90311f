// The TypeScript SDK of the stateless era (@modelcontextprotocol/client 2.x) as a client:
//   sdk-v2.mjs 2026-07-28   pinned to that revision, subscriptions/listen
//   sdk-v2.mjs legacy       the same SDK over initialize and a session
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { check, finish, run } from './checks.mjs';

const mode = process.argv[2];
const name = `sdk-v2 ${mode}`;
const transport = new StreamableHTTPClientTransport(new URL(process.env.GATEWREN_URL), {
  requestInit: { headers: { Authorization: `Bearer ${process.env.GATEWREN_TOKEN}` } },
});
const client = new Client(
  { name: 'gatewren-tests', version: '2' },
  { versionNegotiation: { mode: mode === 'legacy' ? mode : { pin: mode } } },
);

try {
  await client.connect(transport);
} catch (error) {
  finish(name, 'connects', error.message);
}
await check(name, 'is of the era asked for', async () => {
  const era = client.getProtocolEra();
  if (era !== (mode === 'legacy' ? 'legacy' : 'modern')) throw new Error(era);
});
let subscription;
await run(name, client, async (uris, heard) => {
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard(params.uri));
  if (mode === 'legacy') {
    for (const uri of uris) await client.subscribeResource({ uri });
    return;
  }
  subscription = await client.listen({ resourceSubscriptions: uris });
  const honoured = subscription.honoredFilter.resourceSubscriptions ?? [];
  if (honoured.length !== uris.length) throw new Error(`honoured only ${JSON.stringify(honoured)}`);
});
await check(name, 'closes', async () => {
  await subscription?.close();
  await client.close();
});
finish(name);
