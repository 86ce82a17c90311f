// The TypeScript SDKs as programs that hold no token: from a 401 over discovery, registration, the owner's yes and the
// exchange of the code to a call, and then with a refresh token.
//   connect.mjs v1|v2       @modelcontextprotocol/sdk 1.x, @modelcontextprotocol/client 2.x
// Environment: GATEWREN_CLIENT (a name for the checks), GATEWREN_URL (of /mcp), GATEWREN_OWNER (the owner's password).
import { Owner } from './owner.mjs';
import { NAME, check, expect, finish } from './report.mjs';

const [sdk] = process.argv.slice(2);
const BOUND_MS = 60_000; // the whole of it; a client that hangs has failed
const BACK = 'http://127.0.0.1:3334/callback';
const base = new URL(process.env.GATEWREN_URL).origin;
const url = new URL('/connect/mcp', base);
const owner = new Owner(base, process.env.GATEWREN_OWNER);

setTimeout(() => finish(`not done within ${BOUND_MS} ms`), BOUND_MS).unref();
const { Client, StreamableHTTPClientTransport, UnauthorizedError, asData } = await load();

// What a program keeps, in memory.
class Provider {
  redirectUrl = BACK;
  clientMetadata = {
    client_name: 'gatewren-tests',
    redirect_uris: [BACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  state() { return 'a state'; }
  clientInformation() { return this.known; }
  saveClientInformation(known) { this.known = known; }
  tokens() { return this.kept; }
  saveTokens(kept) { this.kept = kept; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  async redirectToAuthorization(to) { this.answer = await owner.approve(to); }
}

const provider = new Provider();
let first;
await check('is sent to the owner, who approves', async () => {
  first = new StreamableHTTPClientTransport(url, { authProvider: provider });
  const refused = await new Client({ name: NAME, version: '1' }).connect(first).catch((error) => error);
  expect(refused instanceof UnauthorizedError, refused);
  expect(provider.answer?.href.startsWith(`${BACK}?`), provider.answer);
  expect(provider.answer.searchParams.get('state') === 'a state', provider.answer);
  expect(provider.answer.searchParams.get('iss') === `${base}/connect`, provider.answer);
});
await check('exchanges its code', async () => {
  const { searchParams } = provider.answer;
  await first.finishAuth(sdk === 'v1' ? searchParams.get('code') : searchParams);
  expect(provider.kept?.token_type === 'Bearer' && provider.kept.refresh_token, 'no tokens');
});
await check('calls a tool', calls);
await check('renews its token and calls again', async () => {
  const { access_token, refresh_token } = provider.kept;
  provider.kept = { ...provider.kept, access_token: 'gw_old' };
  await calls();
  expect(provider.kept.access_token !== access_token && provider.kept.refresh_token !== refresh_token, 'the same tokens');
});
finish();

async function calls() {
  const client = new Client({ name: NAME, version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }));
  const result = await client.callTool({ name: 'whoami', arguments: {} });
  // The second client of that name gets a number behind it.
  expect(!result.isError && /^gatewren-tests(-\d+)?$/.test(asData(result).name), result);
  await client.close();
}

async function load() {
  const asData = (result) => result.structuredContent;
  if (sdk === 'v1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { UnauthorizedError } = await import('@modelcontextprotocol/sdk/client/auth.js');
    return { Client, StreamableHTTPClientTransport, UnauthorizedError, asData };
  }
  return { ...(await import('@modelcontextprotocol/client')), asData };
}
