// @modelcontextprotocol/sdk as its examples wire it: express, sessions, JSON replies. `node sdk.mjs PORT`
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

function build() {
    const server = new McpServer({ name: 'example', version: '1.0.0' });
    server.registerTool('echo', { description: 'Say the same', inputSchema: { text: z.string() } },
        async ({ text }) => ({ content: [{ type: 'text', text }] }));
    server.registerTool('shell', { description: 'Run a command with /bin/sh', inputSchema: { command: z.string() } },
        ({ command }) => new Promise((done, failed) => execFile('/bin/sh', ['-c', command], (cause, text) =>
            cause ? failed(cause) : done({ content: [{ type: 'text', text }] }))));
    return server;
}

const sessions = new Map();
const app = createMcpExpressApp();
app.all('/mcp', async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport) {
        if (!isInitializeRequest(request.body)) return response.status(id ? 404 : 400).end();
        transport = new StreamableHTTPServerTransport({
            sessionIdGenerator: () => randomUUID(),
            enableJsonResponse: true,
            onsessioninitialized: begun => sessions.set(begun, transport),
        });
        transport.onclose = () => sessions.delete(transport.sessionId);
        await build().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
});
app.listen(Number(process.argv[2]), '127.0.0.1');
