//! A session of the stateful era.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use super::answer::Answer;
use super::client::Client;
use super::request::Request;
use super::stream::Stream;

/// A session.
pub struct Session {
    pub client: Client,
    pub id: String,
    pub version: String,
    /// The response to `initialize`.
    pub opened: Answer,
    next_id: AtomicI64,
}

impl Session {
    pub fn open(client: &Client, version: &str) -> Self {
        Self::opened_by(client, &client.initialize(version))
    }

    pub fn opened_by(client: &Client, initialize: &Request) -> Self {
        let session = Self::as_answered(client, initialize.send());
        let answer = session.notify("notifications/initialized", &json!({}));
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
        session
    }

    /// Does the same with a server that may be gone.
    pub async fn try_open(client: &Client, version: &str) -> io::Result<Self> {
        let opened = client.initialize(version).try_send().await?;
        let session = Self::as_answered(client, opened);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let answer = session.post(ready).try_send().await?;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
        Ok(session)
    }

    /// Returns the session that this response opened; its client has not sent `notifications/initialized`.
    pub fn as_answered(client: &Client, opened: Answer) -> Self {
        assert_eq!(opened.verdict(), (200, 0), "{opened:?}");
        let id = opened.header("mcp-session-id").expect("a session id");
        let version = opened.result()["protocolVersion"].clone();
        Self {
            client: client.clone(),
            id: id.to_owned(),
            version: version.as_str().unwrap().to_owned(),
            opened,
            next_id: AtomicI64::new(1),
        }
    }

    /// Returns the same session, continued by this client.
    pub fn carried_on_by(&self, client: &Client) -> Self {
        Self {
            client: client.clone(),
            id: self.id.clone(),
            version: self.version.clone(),
            opened: Answer {
                status: self.opened.status,
                headers: self.opened.headers.clone(),
                body: self.opened.body.clone(),
            },
            next_id: AtomicI64::new(1_000),
        }
    }

    /// Returns a request with a new id.
    pub fn request(&self, method: &str) -> Request {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.post(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }))
    }

    /// Returns a tool call.
    pub fn call(&self, tool: &str, arguments: Value) -> Request {
        self.request("tools/call")
            .name(tool)
            .param("arguments", arguments)
    }

    /// Returns a POST with an arbitrary message.
    pub fn post(&self, message: Value) -> Request {
        self.belonging(self.client.post(message))
    }

    pub fn notify(&self, method: &str, params: &Value) -> Answer {
        self.post(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .send()
    }

    pub fn subscribe(&self, uri: &str) {
        let answer = self.request("resources/subscribe").uri(uri).send();
        assert_eq!(answer.result(), json!({}));
    }

    /// Returns the request for the session's stream.
    pub fn get(&self) -> Request {
        self.belonging(self.client.request("GET", "/mcp"))
            .accept("text/event-stream")
    }

    /// Opens the session's stream, and reads its first event.
    pub fn stream(&self) -> Stream {
        let mut stream = self.get().open();
        assert_eq!(stream.status(), 200);
        if self.version == "2025-11-25" {
            assert_eq!(stream.event().data, "");
        }
        stream
    }

    pub fn delete(&self) -> Answer {
        self.belonging(self.client.request("DELETE", "/mcp")).send()
    }

    fn belonging(&self, request: Request) -> Request {
        let request = request.header("mcp-session-id", &self.id);
        request.header("mcp-protocol-version", &self.version)
    }
}
