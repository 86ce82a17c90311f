//! A builder for one request, and the ways to send it.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::answer::Answer;
use super::client::{Client, Connection, runtime};
use super::machine::IN_TIME;
use super::stream::Stream;

/// A request that has not been sent.
#[derive(Clone)]
pub struct Request {
    client: Client,
    verb: String,
    path: String,
    host: String,
    headers: Vec<(String, Vec<u8>)>,
    message: Option<Value>,
    body: Vec<u8>,
}

impl Request {
    pub fn new(client: &Client, verb: &str, path: &str) -> Self {
        Self {
            client: client.clone(),
            verb: verb.to_owned(),
            path: path.to_owned(),
            host: client.address.to_string(),
            headers: Vec::new(),
            message: None,
            body: Vec::new(),
        }
    }

    /// Sets a header.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.without(name).also(name, value.as_bytes())
    }

    /// Adds a header, in addition to any of the same name.
    pub fn also(mut self, name: &str, value: &[u8]) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a header.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub fn host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.host);
        self
    }

    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub fn verb(mut self, verb: &str) -> Self {
        verb.clone_into(&mut self.verb);
        self
    }

    pub fn verb_is(&self, verb: &str) -> bool {
        self.verb == verb
    }

    /// Appends this number of spaces to the body.
    pub fn padded(self, spaces: usize) -> Self {
        let mut bytes = self.bytes();
        bytes.resize(bytes.len() + spaces, b' ');
        self.body(&bytes)
    }

    pub fn accept(self, types: &str) -> Self {
        self.header("accept", types)
    }

    /// Sets the JSON-RPC message.
    pub fn message(mut self, message: Value) -> Self {
        self.message = Some(message);
        self
    }

    /// Sets a body in place of the message.
    pub fn body(mut self, body: &[u8]) -> Self {
        self.message = None;
        body.clone_into(&mut self.body);
        self
    }

    pub fn id(self, id: Value) -> Self {
        self.field("id", id)
    }

    /// Sets a field of the message.
    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.message.as_mut().unwrap()[name] = value;
        self
    }

    /// Removes the id: the message becomes a notification.
    pub fn without_id(mut self) -> Self {
        let message = self.message.as_mut().unwrap();
        message.as_object_mut().unwrap().remove("id");
        self
    }

    /// Sets one of the parameters.
    pub fn param(mut self, name: &str, value: Value) -> Self {
        self.message.as_mut().unwrap()["params"][name] = value;
        self
    }

    /// Sets an entry of `_meta`.
    pub fn meta(mut self, name: &str, value: Value) -> Self {
        self.message.as_mut().unwrap()["params"]["_meta"][name] = value;
        self
    }

    /// Sets an entry of `_meta` that belongs to the protocol.
    pub fn mcp_meta(self, name: &str, value: Value) -> Self {
        self.meta(&format!("io.modelcontextprotocol/{name}"), value)
    }

    /// Removes such an entry.
    pub fn without_mcp_meta(mut self, name: &str) -> Self {
        let meta = &mut self.message.as_mut().unwrap()["params"]["_meta"];
        let name = format!("io.modelcontextprotocol/{name}");
        meta.as_object_mut().unwrap().remove(&name);
        self
    }

    /// Sets the called name, in the body and, if the revision requires it, in the header.
    pub fn name(self, name: &str) -> Self {
        self.with_name_header(name).param("name", json!(name))
    }

    /// Sets the resource's URI.
    pub fn uri(self, uri: &str) -> Self {
        self.with_name_header(uri).param("uri", json!(uri))
    }

    fn with_name_header(self, name: &str) -> Self {
        if self.headers.iter().any(|(known, _)| known == "mcp-method") {
            self.header("mcp-name", name)
        } else {
            self
        }
    }

    /// Asks for progress notifications.
    pub fn progress(self, token: Value) -> Self {
        self.meta("progressToken", token)
    }

    /// Returns the bytes of the body.
    pub fn bytes(&self) -> Vec<u8> {
        let message = self.message.as_ref();
        message.map_or_else(|| self.body.clone(), |m| m.to_string().into_bytes())
    }

    fn build(&self) -> hyper::Request<Full<Bytes>> {
        let Self { host, path, .. } = self;
        let mut request = hyper::Request::new(Full::new(Bytes::from(self.bytes())));
        *request.method_mut() = self.verb.parse().unwrap();
        let headers = request.headers_mut();
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        if self.client.is_http2() {
            *request.uri_mut() = format!("https://{host}{path}").parse().unwrap();
        } else {
            headers.append("host", HeaderValue::from_str(host).unwrap());
            *request.uri_mut() = path.parse().unwrap();
        }
        request
    }

    /// Sends it and waits for the whole response. If the rate limit is exceeded, waits and retries.
    pub fn send(&self) -> Answer {
        loop {
            let answer = self.send_once();
            if answer.status != 429 {
                return answer;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Sends it and waits for the whole response, without retrying.
    pub fn send_once(&self) -> Answer {
        self.begin().finish()
    }

    /// Sends it over a connection that stays open.
    pub fn send_over(&self, connection: &mut Connection) -> Answer {
        let request = self.build();
        runtime().block_on(async {
            let answer = tokio::time::timeout(IN_TIME, whole(connection, request));
            answer.await.expect("an answer in time")
        })
    }

    /// Sends it without waiting.
    pub fn begin(&self) -> Running {
        let (client, request) = (self.client.clone(), self.build());
        Running(Some(runtime().spawn(async move {
            let mut connection = client.connect().await;
            whole(&mut connection, request).await
        })))
    }

    /// Sends it and returns the response as a stream.
    pub fn open(&self) -> Stream {
        let request = self.build();
        runtime().block_on(async {
            let mut connection = self.client.connect().await;
            let response = tokio::time::timeout(IN_TIME, connection.send(request)).await;
            Stream::new(response.expect("a head in time").unwrap(), Some(connection))
        })
    }

    /// Does the same with a server that may be gone.
    pub async fn try_open(&self) -> io::Result<Stream> {
        let opened = async {
            let mut connection = self.client.try_connect().await?;
            let response = connection.send(self.build()).await;
            let response = response.map_err(io::Error::other)?;
            Ok(Stream::new(response, Some(connection)))
        };
        tokio::time::timeout(IN_TIME, opened).await?
    }

    /// Sends it to a server that may be gone and waits for the whole response.
    pub async fn try_send(&self) -> io::Result<Answer> {
        let sent = async {
            let mut connection = self.client.try_connect().await?;
            let response = connection.send(self.build()).await;
            let (head, body) = response.map_err(io::Error::other)?.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?;
            Ok(Answer::new(&head, body.to_bytes().to_vec()))
        };
        tokio::time::timeout(IN_TIME, sent).await?
    }

    /// Opens a stream over a connection that stays open.
    pub fn open_over(&self, connection: &mut Connection) -> Stream {
        runtime().block_on(self.opened_over(connection))
    }

    /// Does the same over a connection that may have been closed.
    pub fn try_open_over(&self, connection: &mut Connection) -> hyper::Result<Stream> {
        let response = runtime().block_on(connection.send(self.build()))?;
        Ok(Stream::new(response, None))
    }

    /// Does the same, async.
    pub async fn opened_over(&self, connection: &mut Connection) -> Stream {
        let response = connection.send(self.build()).await.unwrap();
        Stream::new(response, None)
    }

    /// Sends it over a connection that stays open, async.
    pub async fn sent_over(&self, connection: &mut Connection) -> Answer {
        whole(connection, self.build()).await
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.verb, self.path)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {}", String::from_utf8_lossy(value))?;
        }
        f.write_str(&String::from_utf8_lossy(&self.bytes()))
    }
}

async fn whole(connection: &mut Connection, request: hyper::Request<Full<Bytes>>) -> Answer {
    let response = connection.send(request).await.expect("an answer");
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Answer::new(&head, body.to_vec())
}

/// A request in flight; dropping it closes its connection.
pub struct Running(Option<JoinHandle<Answer>>);

impl Running {
    /// Waits for the whole response.
    pub fn finish(mut self) -> Answer {
        let task = self.0.take().unwrap();
        let answer = runtime().block_on(async { tokio::time::timeout(IN_TIME, task).await });
        answer.expect("an answer in time").unwrap()
    }

    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() && self.is_finished() {
            self.show();
        } else if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Running {
    #[expect(
        clippy::print_stderr,
        reason = "the `Debug` output appears only if a test fails"
    )]
    fn show(&mut self) {
        let task = self.0.take().map(|task| runtime().block_on(task));
        eprintln!("--- a call ended early\n{task:?}");
    }
}
