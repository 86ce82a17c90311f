// @modelcontextprotocol/server on node:http, as its documentation shows it. `node server.mjs PORT`
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';

const uri = 'bench://document';
let handler;

function build() {
    const server = new McpServer({ name: 'example', version: '1.0.0' }, { capabilities: { resources: { subscribe: true } } });
    server.registerTool('echo', { description: 'Say the same', inputSchema: z.object({ text: z.string() }) },
        async ({ text }) => ({ content: [{ type: 'text', text }] }));
    server.registerTool('shell', { description: 'Run a command with /bin/sh', inputSchema: z.object({ command: z.string() }) },
        ({ command }) => new Promise((done, failed) => execFile('/bin/sh', ['-c', command], (cause, text) =>
            cause ? failed(cause) : done({ content: [{ type: 'text', text }] }))));
    server.registerTool('touch', { description: 'Say to all who listen that the document has changed' }, async () => {
        handler.notify.resourceUpdated(uri);
        return { content: [{ type: 'text', text: 'told' }] };
    });
    server.registerResource('document', uri, {}, async () => ({ contents: [{ uri, text: 'unchanged' }] }));
    return server;
}

handler = createMcpHandler(build, { maxSubscriptions: 20000 });
const [node, host, origin] = [toNodeHandler(handler), localhostHostValidation(), localhostOriginValidation()];
createServer((request, response) => {
    if (host(request, response) && origin(request, response)) node(request, response);
}).listen(Number(process.argv[2]), '127.0.0.1');
