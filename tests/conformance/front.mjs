// Lets the conformance suite, which knows neither TLS nor tokens, reach the server behind both: plain HTTP on
// loopback in, HTTPS with a bearer token out. A Host or Origin other than the front's own passes unchanged,
// so that the suite's forged ones still reach the server. Prints its address as one line of JSON.
import http from 'node:http';
import https from 'node:https';

const upstream = new URL(process.env.UPSTREAM);
const authorization = `Bearer ${process.env.TOKEN}`;
// A connection for each request: one that is kept may be closed by the server just when it is used again.
const agent = new https.Agent({ keepAlive: false });

const front = http.createServer((request, response) => {
  const own = `${front.address().address}:${front.address().port}`;
  const headers = { ...request.headers, authorization };
  if (headers.host === own) headers.host = upstream.host;
  if (headers.origin === `http://${own}`) headers.origin = upstream.origin;
  const onward = https.request(
    // An empty servername: the certificate is checked against the address, not against a forged Host.
    { agent, host: upstream.hostname, port: upstream.port, servername: '', method: request.method, path: request.url, headers },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    },
  );
  onward.on('error', (error) => {
    console.error(`front: ${error.message}`);
    response.headersSent ? response.destroy() : response.writeHead(502).end();
  });
  response.on('close', () => onward.destroy());
  request.pipe(onward);
});

front.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${front.address().port}${upstream.pathname}` }));
});
process.on('SIGTERM', () => process.exit(0));
